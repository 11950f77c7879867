/* moe_down: Y[row, n] = sum over slots of SHARE[row, slot] * (row n of expert CHOSEN[row, slot] . A[row, slot] + its bias), and what the
 * epilogue makes of it: the second product of a mixture of experts. A block makes R columns n of a row. Its warps take SLOTS slots side by
 * side, PARTS warps each, so that the experts are read at once, and the slots' sums meet in their order. Grid: columns / R, rows.
 * BESIDE: 1: one slot more has row X[row] and the matrix WX, a shared expert's, which is known before the choice; its product is `beside` for the epilogue.
 * Names as in moe_up. CHOOSES (with TILED): each block chooses the experts itself, of logits that were there before moe_up had waited, and asks for its weights
 * while moe_up runs: that one lets blocks of this kernel be put in place no sooner (kernel_late). TILED: on tensor cores, R 16 * TILES, all slots at once, a slot's warps share k (experts.h: SPLIT); otherwise they share the
 * columns. */
#define SLOTS (KERNEL_BLOCK / 32 / PARTS)
#define TILE_STEP 16
#define COLUMNS ((R + PARTS - 1) / PARTS) /* of a warp */
#define OF_EXPERT (!BESIDE || slot < TOP) /* the warp's slot is */
#if BESIDE
#define SLOT_ROW (OF_EXPERT ? (const void *)(A + A_AT(row, slot, 0)) : (const void *)(X + X_AT(row, 0)))
#define SLOT_ROWS(place, half, line) (OF_EXPERT ? (void)ROWS_2(place, half, line) : (void)ROWS_X(place, half, line))
#else
#define SLOT_ROW (A + A_AT(row, slot, 0))
#define SLOT_ROWS ROWS_2
#endif
/* Sums of a row of the tiles: the experts', then those beside, in runs of 16 bytes. */
#define EXPERT_WARPS (TOP * PARTS)
#define BESIDE_AT ((EXPERT_WARPS + 3) / 4 * 4)
#define ALL_SUMS (BESIDE ? BESIDE_AT + PARTS : EXPERT_WARPS)
#if REGISTERS
KERNEL_LEAN(KERNEL_BLOCK, REGISTERS)
#else
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
#endif
{
    const int n0 = BID_X * R, part = (int)((gp_u32)WARP % PARTS);
    const idx row = BID_Y, m = row;
    (void)m, (void)part;
#if TENSOR && TILED
    SHARED(gp_u32, rows, (TOP + BESIDE) * PARTS * DEPTH * SPAN_WORDS);
    SHARED(float, sums, R * SUMS_STEP(ALL_SUMS));
    const int slot = (int)((gp_u32)WARP / PARTS);
    idx share_at = SHARE_AT(row, slot);
    READY8(share_at);
#if !CHOOSES
    idx chosen_at = CHOSEN_AT(row, slot);
    READY8(chosen_at);
#endif
    EXPERT_TILE(part, SLOT_ROW, rows);
    UNROLL
    for (int place = 0; place < (WHOLE ? 1 : TILES); place++) {
        SLOT_ROWS(place, 0, ROW_OF(n0 + place * 16 + g, OUTPUTS_2));
        SLOT_ROWS(place, 1, ROW_OF(n0 + place * 16 + g + 8, OUTPUTS_2));
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
    const int expert = OF_EXPERT ? chosen[slot] : 0;
    EXPERT_FIRST(expert, OUTPUTS_2);
#elif BESIDE /* that matrix is known */
    if (!OF_EXPERT) EXPERT_FIRST(0, OUTPUTS_2);
#endif
#endif
    EXTENTS
    if (row >= ROWS) return;
    const idx n = MIN(n0 + (int)((gp_u32)TID % R), (int)(Y_D1) - 1);
#if TENSOR && TILED
#if !CHOOSES
    const int expert = OF_EXPERT ? (int)CHOSEN_LD(chosen_at) : 0;
#endif
    const float share = OF_EXPERT ? (float)SHARE_LD(share_at) : 1.0f;
#if !CHOOSES
    if (OF_EXPERT) EXPERT_FIRST(expert, OUTPUTS_2);
#endif
    /* What is needed at the end, while the weights are under way. */
    float bias = 0.0f, v;
    UNROLL
    for (int s = 0; s < TOP && BIASED_2 && TID < R; s++) bias = FMAF((float)SHARE_LD(SHARE_AT(row, s)), BIAS2(CHOSEN_LD(CHOSEN_AT(row, s)), n), bias);
    EPILOGUE_READS
    EXPERT_PRODUCTS(expert);
    EXPERT_SUMS(sums, OF_EXPERT ? WARP : BESIDE_AT + part, ALL_SUMS, share);
    SYNC();
    if (TID >= R || n0 + TID >= (int)(Y_D1)) return;
    EXPERT_TOTAL(v, sums, TID * SUMS_STEP(ALL_SUMS), EXPERT_WARPS);
    if (BIASED_2) v += bias;
#if BESIDE
    float beside;
    EXPERT_TOTAL(beside, sums, TID * SUMS_STEP(ALL_SUMS) + BESIDE_AT, PARTS);
#endif
#else
    SHARED(float, sums, (TOP + BESIDE) * R);
    float totals[COLUMNS];
    EPILOGUE_READS
    for (int first = 0; first < TOP + BESIDE; first += SLOTS) { /* the same for all warps: they meet in WARP_SUM */
        const int slot = MIN(first + WARP / PARTS, TOP + BESIDE - 1);
        const idx expert = OF_EXPERT ? CHOSEN_LD(CHOSEN_AT(row, slot)) : 0;
        gp_acc own[COLUMNS];
        UNROLL
        for (int r = 0; r < COLUMNS; r++) own[r] = gp_acc_zero();
        for (idx k = (idx)LANE * CH; k < K; k += 32 * CH) {
            float a[CH];
            if (OF_EXPERT) {
                UNROLL
                for (int j = 0; j < CH; j += V) {
#if V == 1
                    a[j] = (float)A_LD(A_AT(row, slot, k + j));
#else
                    GP_PASTE(LDV_, TYPE)(A, A_AT(row, slot, k + j), a + j);
#endif
                }
            }
#if BESIDE
            else
                for (int j = 0; j < CH; j++) a[j] = (float)X_LD(X_AT(row, k + j));
#endif
            UNROLL
            for (int r = 0; r < COLUMNS; r++) {
                const idx n = MIN(n0 + part * COLUMNS + r, Y_D1 - 1);
                float w[CH], scale;
                if (OF_EXPERT) { TAKE2(expert, n) }
#if BESIDE
                else { TAKEX(0, n) }
#endif
                own[r] = gp_acc_scaled(own[r], gp_mac(gp_acc_zero(), w, a, CH), scale);
            }
        }
        UNROLL
        for (int r = 0; r < COLUMNS; r++) totals[r] = WARP_SUM(gp_acc_total(own[r]));
        if (LANE == 0 && first + WARP / PARTS < TOP + BESIDE)
            for (int r = 0; r < MIN(COLUMNS, R - part * COLUMNS); r++) sums[slot * R + part * COLUMNS + r] = totals[r];
    }
    SYNC();
    if (TID >= R || n0 + TID >= (int)(Y_D1)) return;
    float v = 0.0f;
#if BESIDE
    const float beside = sums[TOP * R + TID];
#endif
    for (int slot = 0; slot < TOP; slot++) {
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        v = FMAF((float)SHARE_LD(SHARE_AT(row, slot)), sums[slot * R + TID] + BIAS2(expert, n), v);
    }
#endif
    EPILOGUE_BODY
    Y_ST(Y_AT(row, n), EPILOGUE);
}
