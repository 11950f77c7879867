/* moe_down: Y[row, n] = sum over slots of SHARE[row, slot] * (row n of expert CHOSEN[row, slot] . A[row, slot] + its bias), and what the
 * epilogue makes of it: the second product of a mixture of experts. A block makes R columns n of a row. Its warps take SLOTS slots side by
 * side, PARTS warps each, so that the experts are read at once, and the slots' sums meet in their order. Grid: columns / R, rows.
 * Names as in moe_up. CHOOSES (with TILED): each block chooses the experts itself, of logits that were there before moe_up had waited, and asks for its weights
 * while moe_up runs: that one lets blocks of this kernel be put in place no sooner (kernel_late). TILED: on tensor cores, R 16 * TILES, all slots at once, a slot's warps share k (experts.h: SPLIT); otherwise they share the
 * columns. */
#define SLOTS (KERNEL_BLOCK / 32 / PARTS)
#define TILE_STEP 16
#define COLUMNS ((R + PARTS - 1) / PARTS) /* of a warp */
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
{
    const int n0 = BID_X * R, part = (int)((gp_u32)WARP % PARTS);
    const idx row = BID_Y, m = row;
    (void)m, (void)part;
#if TENSOR && TILED
    SHARED(gp_u32, rows, TOP * PARTS * DEPTH * SPAN_WORDS);
    SHARED(float, sums, R * SUMS_STEP(TOP * PARTS));
    const int slot = (int)((gp_u32)WARP / PARTS);
    idx share_at = SHARE_AT(row, slot);
    READY8(share_at);
#if !CHOOSES
    idx chosen_at = CHOSEN_AT(row, slot);
    READY8(chosen_at);
#endif
    EXPERT_TILE(part, A + A_AT(row, slot, 0), rows);
    UNROLL
    for (int place = 0; place < (WHOLE ? 1 : TILES); place++) {
        ROWS_2(place, 0, ROW_OF(n0 + place * 16 + g, OUTPUTS_2));
        ROWS_2(place, 1, ROW_OF(n0 + place * 16 + g + 8, OUTPUTS_2));
    }
    EXPERT_BEGIN;
#if CHOOSES
    SHARED(int, chosen, TOP);
    if (WARP == 0) {
        gp_u32 logits[EXPERT_KEYS];
        LOGITS_TAKE(row, LOGITS_AT(row, LANE * EXPERT_KEYS), logits);
        CHOOSE(logits, TOP, chosen);
    }
    SYNC();
    const int expert = chosen[slot];
    EXPERT_FIRST(expert, OUTPUTS_2);
#endif
#endif
    EXTENTS
    if (row >= ROWS) return;
    const idx n = MIN(n0 + (int)((gp_u32)TID % R), (int)(Y_D1) - 1);
#if TENSOR && TILED
#if !CHOOSES
    const int expert = (int)CHOSEN_LD(chosen_at);
#endif
    const float share = (float)SHARE_LD(share_at);
#if !CHOOSES
    EXPERT_FIRST(expert, OUTPUTS_2);
#endif
    /* What is needed at the end, while the weights are under way. */
    float bias = 0.0f, v;
    UNROLL
    for (int s = 0; s < TOP && BIASED_2 && TID < R; s++) bias = FMAF((float)SHARE_LD(SHARE_AT(row, s)), BIAS2(CHOSEN_LD(CHOSEN_AT(row, s)), n), bias);
    EPILOGUE_READS
    EXPERT_PRODUCTS(expert);
    EXPERT_SUMS(sums, WARP, TOP * PARTS, share);
    SYNC();
    if (TID >= R || n0 + TID >= (int)(Y_D1)) return;
    EXPERT_TOTAL(v, sums, TID, TOP * PARTS);
    if (BIASED_2) v += bias;
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
            for (int r = 0; r < MIN(COLUMNS, R - part * COLUMNS); r++) sums[slot * R + part * COLUMNS + r] = totals[r];
    }
    SYNC();
    if (TID >= R || n0 + TID >= (int)(Y_D1)) return;
    float v = 0.0f;
    for (int slot = 0; slot < TOP; slot++) {
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        v = FMAF((float)SHARE_LD(SHARE_AT(row, slot)), sums[slot * R + TID] + BIAS2(expert, n), v);
    }
#endif
    EPILOGUE_BODY
    Y_ST(Y_AT(row, n), EPILOGUE);
}
