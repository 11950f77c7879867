/* moe_up: Y[row, slot, i] = activation of element i of what expert CHOSEN[row, slot] makes of row A: the first product of a
 * mixture of experts. A warp makes one i; its lanes stand side by side along K, CH weights each. Grid: INNER, TOP, rows.
 *   TAKEx(e, n)  loads w[CH] and scale: elements k .. of row n of expert e of matrix x
 *   PAIR         0: one product, row i; the gate and what it scales: 1: rows 2i, 2i + 1; 2: rows i, INNER + i; 3: of two matrices
 *   ACTIVATION LIMIT LIMIT_AFTER ALPHA BETA   of gp_expert */
#if PAIR == 1
#define MOE_GATE (2 * i)
#define MOE_LINEAR (2 * i + 1)
#else
#define MOE_GATE i
#define MOE_LINEAR (PAIR == 2 ? INNER + i : i)
#endif
#if PAIR == 3
#define TAKE_LINEAR TAKE3
#define BIAS_LINEAR BIAS3
#else
#define TAKE_LINEAR TAKE1
#define BIAS_LINEAR BIAS1
#endif
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx row = BID_Z, slot = BID_Y, i = (idx)BID_X * (KERNEL_BLOCK / 32) + WARP;
    if (row >= ROWS || i >= INNER) return; /* whole warps */
    const idx expert = CHOSEN_LD(CHOSEN_AT(row, slot));
    gp_acc gate_sum = gp_acc_zero(), linear_sum = gp_acc_zero();
    for (idx k = (idx)LANE * CH; k < K; k += 32 * CH) {
        float a[CH], w[CH], scale;
        UNROLL
        for (int j = 0; j < CH; j += V) {
#if V == 1
            a[j] = (float)A_LD(A_AT(row, k + j));
#else
            GP_PASTE(LDV_, TYPE)(A, A_AT(row, k + j), a + j);
#endif
        }
        TAKE1(expert, MOE_GATE)
        gate_sum = gp_acc_scaled(gate_sum, gp_mac(gp_acc_zero(), w, a, CH), scale);
#if PAIR
        TAKE_LINEAR(expert, MOE_LINEAR)
        linear_sum = gp_acc_scaled(linear_sum, gp_mac(gp_acc_zero(), w, a, CH), scale);
#endif
    }
    float g = WARP_SUM(gp_acc_total(gate_sum));
    float other = WARP_SUM(gp_acc_total(linear_sum));
    if (LANE > 0) return;
    g += BIAS1(expert, MOE_GATE);
#if PAIR
    other += BIAS_LINEAR(expert, MOE_LINEAR);
#endif
    Y_ST(Y_AT(row, slot, i), gp_expert(ACTIVATION, PAIR, g, other, LIMIT, LIMIT_AFTER, ALPHA, BETA));
}
