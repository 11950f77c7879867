/* moe_down: Y[row, n] = sum over slots of SHARE[row, slot] * (row n of expert CHOSEN[row, slot] . A[row, slot] + its bias), and what the
 * epilogue makes of it: the second product of a mixture of experts. A block makes R columns n of a row. Its warps take SLOTS slots side by
 * side, PARTS warps each, so that the experts are read at once, and the slots' sums meet in their order. Grid: columns / R, rows.
 * Names as in moe_up. TILED: on tensor cores, R 16, a slot's warps share k (experts.h: SPLIT, MTYPE BF16), LINE_MORE: rows in SHARED_MORE;
 * otherwise they share the columns. */
#define SLOTS (KERNEL_BLOCK / 32 / PARTS)
#define SLOT_VECTORS (EXPERT_SLICES * EXPERT_SLICE / 8)
#define COLUMNS (R / PARTS) /* of a warp */
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
{
    EXTENTS
    const idx row = BID_Y, n0 = (idx)BID_X * R, m = row, n = MIN(n0 + TID % R, Y_D1 - 1);
    const int part = WARP % PARTS;
    if (row >= ROWS) return;
    (void)m, (void)part;
#if TENSOR && TILED
#if LINE_MORE
    SHARED_MORE(gp_u32, line, 2 * LINE_WORDS + 16);
#else
    SHARED(gp_u32, line, 2 * LINE_WORDS + 16);
#endif
    SHARED(float, magic, 2 * LINE_WORDS / 16);
    SHARED(float, total, ZEROS ? 2 * LINE_WORDS / 16 : 1);
    SHARED(float, sums, SLOTS * PARTS * 16);
    const gp_u32 *none = line + 2 * LINE_WORDS;
    const int slot = WARP / PARTS;
    const int expert = (int)CHOSEN_LD(CHOSEN_AT(row, slot));
    EXPERT_TILE(DEPTH);
    ROWS_2(0, expert * OUTPUTS_2 + MIN((int)n0 + g, OUTPUTS_2 - 1));
    ROWS_2(1, expert * OUTPUTS_2 + MIN((int)n0 + g + 8, OUTPUTS_2 - 1));
    EXPERT_FIRST(PARTS, part);
    /* What is needed at the end, while the weights are under way. */
    float share[TOP], bias[TOP];
    UNROLL
    for (int s = 0; s < TOP && TID < R; s++) {
        share[s] = (float)SHARE_LD(SHARE_AT(row, s));
        bias[s] = BIAS2(CHOSEN_LD(CHOSEN_AT(row, s)), n);
    }
    EPILOGUE_READS
    SYNC(); /* all that is asked for stands before the row: the compiler would read the scales behind the row's arithmetic */
    float x[VECTORS][8];
    UNROLL
    for (int e = 0; e < VECTORS; e++) {
        const gp_u32 v = (gp_u32)TID + e * KERNEL_BLOCK, k = v % SLOT_VECTORS * 8;
        UNROLL
        for (int j = 0; j < 8; j++) x[e][j] = 0.0f;
        if (v < TOP * SLOT_VECTORS && k < K) {
            LDV_F32(A, A_AT(row, v / SLOT_VECTORS, k), x[e]);
            LDV_F32(A, A_AT(row, v / SLOT_VECTORS, k + 4), x[e] + 4);
        }
    }
    if (TID < 16) line[2 * LINE_WORDS + TID] = 0u;
    UNROLL
    for (int e = 0; e < VECTORS; e++) LINE_PUT(TID + e * KERNEL_BLOCK < LINE_WORDS / 4, TID + e * KERNEL_BLOCK, x[e], line, magic, total);
    SYNC();
    const gp_u32 *own = line + slot * (SLOT_VECTORS * 4);
    const float *own_magic = magic + slot * (SLOT_VECTORS / 4), *own_total = total + (ZEROS ? slot * (SLOT_VECTORS / 4) : 0);
    EXPERT_PRODUCTS(PARTS, part, own, own_magic, own_total);
    EXPERT_SUMS(sums + WARP * 16);
    SYNC();
    if (TID >= R || n0 + TID >= Y_D1) return;
    float v = 0.0f;
    UNROLL
    for (int s = 0; s < TOP; s++) {
        float sum_of = 0.0f;
        UNROLL
        for (int other = 0; other < PARTS; other++) sum_of += sums[(s * PARTS + other) * 16 + TID];
        v = FMAF(share[s], sum_of + bias[s], v);
    }
#else
    SHARED(float, sums, TOP * R);
    float totals[COLUMNS];
    EPILOGUE_READS
    for (int first = 0; first < TOP; first += SLOTS) { /* the same for all warps: they meet in WARP_SUM */
        const int slot = MIN(first + WARP / PARTS, TOP - 1);
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        gp_acc own[COLUMNS];
        UNROLL
        for (int r = 0; r < COLUMNS; r++) own[r] = gp_acc_zero();
        for (idx k = (idx)LANE * CH; k < K; k += 32 * CH) {
            float a[CH];
            UNROLL
            for (int j = 0; j < CH; j += V) {
#if V == 1
                a[j] = (float)A_LD(A_AT(row, slot, k + j));
#else
                GP_PASTE(LDV_, TYPE)(A, A_AT(row, slot, k + j), a + j);
#endif
            }
            UNROLL
            for (int r = 0; r < COLUMNS; r++) {
                const idx n = MIN(n0 + part * COLUMNS + r, Y_D1 - 1);
                float w[CH], scale;
                TAKE2(expert, n)
                own[r] = gp_acc_scaled(own[r], gp_mac(gp_acc_zero(), w, a, CH), scale);
            }
        }
        UNROLL
        for (int r = 0; r < COLUMNS; r++) totals[r] = WARP_SUM(gp_acc_total(own[r]));
        if (LANE == 0 && first + WARP / PARTS < TOP)
            for (int r = 0; r < COLUMNS; r++) sums[slot * R + part * COLUMNS + r] = totals[r];
    }
    SYNC();
    if (TID >= R || n0 + TID >= Y_D1) return;
    float v = 0.0f;
    for (int slot = 0; slot < TOP; slot++) {
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        v = FMAF((float)SHARE_LD(SHARE_AT(row, slot)), sums[slot * R + TID] + BIAS2(expert, n), v);
    }
#endif
    EPILOGUE_BODY
    Y_ST(Y_AT(row, n), EPILOGUE);
}
