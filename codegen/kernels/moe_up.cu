/* moe_up: Y[row, slot, i] = activation of element i of what expert CHOSEN[row, slot] makes of row A: the first product of a
 * mixture of experts. A block makes EACH elements i of a row and slot. Grid: INNER / EACH, TOP, rows.
 *   ROUTED       1: each block chooses the experts itself (experts.h), and one of a row stores CHOSEN and SHARE
 *   TAKEx(e, n)  loads w[CH] and scale: elements k .. of row n of expert e of matrix x
 *   PAIR         0: one product, row i; the gate and what it scales: 1: rows 2i, 2i + 1; 2: rows i, INNER + i; 3: of two matrices
 *   ACTIVATION LIMIT LIMIT_AFTER ALPHA BETA   of gp_expert
 *   TILED        1: on tensor cores the block's warps share each row along k (experts.h; MTYPE is A's type), gates are rows 0 to 7 of the
 *                tile, what they scale rows 8 to 15. ROWS_x(half, line): sets where the lane's row lies, OUTPUTS_x: rows of an expert,
 *                of matrix x; AHEAD_W AHEAD_S AHEAD_Z: bytes of an expert's part of the second product's operands, brought into the L2 cache
 * Otherwise a warp makes one i; its lanes stand side by side along K, CH weights each. */
#if PAIR == 1
#define MOE_GATE(i) (2 * (i))
#define MOE_LINEAR(i) (2 * (i) + 1)
#else
#define MOE_GATE(i) (i)
#define MOE_LINEAR(i) (PAIR == 2 ? INNER + (i) : (i))
#endif
#if PAIR == 3
#define TAKE_LINEAR TAKE3
#define BIAS_LINEAR BIAS3
#define ROWS_LINEAR ROWS_3
#else
#define TAKE_LINEAR TAKE1
#define BIAS_LINEAR BIAS1
#define ROWS_LINEAR ROWS_1
#endif
#define WARPS (KERNEL_BLOCK / 32)
/* The warp that chooses: blocks on one multiprocessor, 132 apart, leave it to different schedulers. */
#define CHOOSER ((BID_X + BLOCKS * slot) / 132 % MIN(WARPS, 4))
#define AHEAD(p, bytes) \
    UNROLL \
    for (int first = 0; first < (bytes) / 128; first += BLOCKS * KERNEL_BLOCK) \
        if (first + BID_X + BLOCKS * TID < (bytes) / 128) \
            PREFETCH((const unsigned char *)(p) + (idx)expert * (bytes) + (first + BID_X + BLOCKS * TID) * 128)
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
{
    EXTENTS
    const idx row = BID_Z;
    const int slot = BID_Y, i0 = BID_X * EACH;
    if (row >= ROWS) return;
#if ROUTED
    SHARED(int, chosen, TOP);
    float logits[EXPERT_KEYS];
    if (WARP == CHOOSER) LOGITS_TAKE(row, logits);
#endif
#if TENSOR && TILED
    SHARED(gp_u32, line, LINE_WORDS + 16);
    SHARED(float, magic, LINE_WORDS / 16);
    SHARED(float, total, ZEROS ? LINE_WORDS / 16 : 1);
    SHARED(float, sums, WARPS * 16);
    const gp_u32 *none = line + LINE_WORDS;
    float x[VECTORS][8];
    UNROLL
    for (int e = 0; e < VECTORS; e++) {
        const int v = TID + e * KERNEL_BLOCK;
        UNROLL
        for (int j = 0; j < 8; j++) x[e][j] = 0.0f;
        if (v < K / 8) GP_PASTE(LDV_, MTYPE)(A, A_AT(row, v * 8), x[e]);
    }
#endif
#if ROUTED
    if (WARP == CHOOSER) CHOOSE(logits, slot + 1, chosen);
#endif
#if TENSOR && TILED
    if (TID < 16) line[LINE_WORDS + TID] = 0u;
    UNROLL
    for (int e = 0; e < VECTORS; e++) LINE_PUT(TID + e * KERNEL_BLOCK < LINE_WORDS / 4, TID + e * KERNEL_BLOCK, x[e], line, magic, total);
#endif
#if ROUTED || (TENSOR && TILED)
    SYNC();
#endif
#if ROUTED
    const int expert = chosen[slot];
#else
    const int expert = (int)CHOSEN_LD(CHOSEN_AT(row, slot));
#endif
#if TENSOR && TILED
    EXPERT_TILE(DEPTH);
    const int i_low = MIN(i0 + g, INNER - 1), i_high = MIN(i0 + g + 8, INNER - 1);
    ROWS_1(0, expert * OUTPUTS_1 + MOE_GATE(i_low));
    (void)i_high;
#if PAIR
    ROWS_LINEAR(1, expert * OUTPUTS_1 + MOE_LINEAR(i_low));
#else
    ROWS_1(1, expert * OUTPUTS_1 + i_high);
#endif
    EXPERT_FIRST(WARPS, WARP);
#if AHEAD_W
    AHEAD(W2 + W2_OFF, AHEAD_W);
    AHEAD(S2 + S2_OFF, AHEAD_S);
#if AHEAD_Z
    AHEAD(Z2 + Z2_OFF, AHEAD_Z);
#endif
#endif
#endif
#if ROUTED /* while the weights are under way */
    if (BID_X == 0 && slot == TOP - 1 && WARP == 0) STORE_CHOICE(row, chosen);
#endif
#if TENSOR && TILED
    EXPERT_PRODUCTS(WARPS, WARP, line, magic, total);
    EXPERT_SUMS(sums + WARP * 16);
    SYNC();
    const int i = i0 + TID;
    if (TID >= EACH || i >= INNER) return;
    float gate = 0.0f, other = 0.0f;
    UNROLL
    for (int w = 0; w < WARPS; w++) {
        gate += sums[w * 16 + TID];
        if (PAIR) other += sums[w * 16 + 8 + TID];
    }
#else
    for (int i = i0 + WARP; i < MIN(i0 + EACH, INNER); i += WARPS) { /* whole warps */
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
            TAKE1(expert, MOE_GATE(i))
            gate_sum = gp_acc_scaled(gate_sum, gp_mac(gp_acc_zero(), w, a, CH), scale);
#if PAIR
            TAKE_LINEAR(expert, MOE_LINEAR(i))
            linear_sum = gp_acc_scaled(linear_sum, gp_mac(gp_acc_zero(), w, a, CH), scale);
#endif
        }
        float gate = WARP_SUM(gp_acc_total(gate_sum)), other = WARP_SUM(gp_acc_total(linear_sum));
        if (LANE > 0) continue;
#endif
    gate += BIAS1(expert, MOE_GATE(i));
#if PAIR
    other += BIAS_LINEAR(expert, MOE_LINEAR(i));
#endif
    Y_ST(Y_AT(row, slot, i), gp_expert(ACTIVATION, PAIR, gate, other, LIMIT, LIMIT_AFTER, ALPHA, BETA));
#if !(TENSOR && TILED)
    }
#endif
}
