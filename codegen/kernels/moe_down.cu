/* moe_down: Y[row, n] = sum over slots of SHARE[row, slot] * (row n of expert CHOSEN[row, slot] . A[row, slot] + its bias): the
 * second product of a mixture of experts. A warp makes one n; names as in moe_up. Grid: columns, rows. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx row = BID_Y, n = (idx)BID_X * (KERNEL_BLOCK / 32) + WARP;
    if (row >= ROWS || n >= Y_D1) return; /* whole warps */
    gp_acc sum = gp_acc_zero();
    float bias = 0.0f;
    for (int slot = 0; slot < TOP; slot++) {
        const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
        const float share = SHARE_LD(SHARE_AT(row, slot));
        gp_acc own = gp_acc_zero();
        for (idx k = (idx)LANE * CH; k < K; k += 32 * CH) {
            float a[CH], w[CH], scale;
            UNROLL
            for (int j = 0; j < CH; j += V) {
#if V == 1
                a[j] = (float)A_LD(A_AT(row, slot, k + j));
#else
                GP_PASTE(LDV_, TYPE)(A, A_AT(row, slot, k + j), a + j);
#endif
            }
            TAKE2(expert, n)
            own = gp_acc_scaled(own, gp_mac(gp_acc_zero(), w, a, CH), scale);
        }
        sum = gp_acc_scaled(sum, own, share);
        bias = FMAF(share, BIAS2(expert, n), bias);
    }
    const float total = WARP_SUM(gp_acc_total(sum));
    if (LANE == 0) Y_ST(Y_AT(row, n), total + bias);
}
