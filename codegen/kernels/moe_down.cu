/* moe_down: Y[row, n] = sum over slots of SHARE[row, slot] * (row n of expert CHOSEN[row, slot] . A[row, slot] + its bias): the
 * second product of a mixture of experts. A block makes R columns n of a row; a warp takes every WARPS-th slot, so that the experts
 * are read at once, and the slots' sums meet in their order. Names as in moe_up. Grid: columns / R, rows. */
#define WARPS (KERNEL_BLOCK / 32)
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(float, sums, TOP * R);
    const idx row = BID_Y, n0 = (idx)BID_X * R;
    if (row >= ROWS) return;
    float mine[R]; /* of the warp's newest slot */
    for (int first = 0; first < TOP; first += WARPS) { /* the same for all warps: they meet in WARP_SUM */
        const int slot = MIN(first + WARP, TOP - 1);
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        gp_acc own[R];
        UNROLL
        for (int r = 0; r < R; r++) own[r] = gp_acc_zero();
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
            for (int r = 0; r < R; r++) {
                const idx n = MIN(n0 + r, Y_D1 - 1);
                float w[CH], scale;
                TAKE2(expert, n)
                own[r] = gp_acc_scaled(own[r], gp_mac(gp_acc_zero(), w, a, CH), scale);
            }
        }
        UNROLL
        for (int r = 0; r < R; r++) mine[r] = WARP_SUM(gp_acc_total(own[r]));
        if (LANE == 0 && first + WARP < TOP)
            for (int r = 0; r < R; r++) sums[slot * R + r] = mine[r];
    }
    SYNC();
    const idx n = n0 + TID;
    if (TID >= R || n >= Y_D1) return;
    float total = 0.0f;
    for (int slot = 0; slot < TOP; slot++) {
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        total = FMAF((float)SHARE_LD(SHARE_AT(row, slot)), sums[slot * R + TID] + BIAS2(expert, n), total);
    }
    const idx m = row;
    const float v = total;
    (void)m;
    EPILOGUE_BODY
    Y_ST(Y_AT(row, n), EPILOGUE);
}
