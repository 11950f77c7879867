/* moe_up: Y[row, slot, i] = activation of element i of what expert CHOSEN[row, slot] makes of row A: the first product of a
 * mixture of experts. A block makes EACH elements i of a row and slot. Grid: INNER / EACH, TOP, rows.
 *   ROUTED       1: each block chooses the experts itself (experts.h), and one of a row stores CHOSEN and SHARE
 *   TAKEx(e, n)  loads w[CH] and scale: elements k .. of row n of expert e of matrix x
 *   PAIR         0: one product, row i; the gate and what it scales: 1: rows 2i, 2i + 1; 2: rows i, INNER + i; 3: of two matrices
 *   ACTIVATION LIMIT LIMIT_AFTER ALPHA BETA   of gp_expert
 *   TILED        1: on tensor cores the block's warps share each row along k (experts.h), TILES tiles: gates are rows 0 to 7 of a tile, what they
 *                scale rows 8 to 15. ROWS_x(place, half, line): sets where the lane's row lies, OUTPUTS_x: rows of an expert,
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
#define TILE_EACH (PAIR ? 8 : 16) /* elements i of a tile */
#define TILE_STEP MOE_GATE(TILE_EACH)
/* The warp that chooses: blocks on one multiprocessor are of slots far apart, and leave it to different schedulers. */
#define CHOOSER ((int)((gp_u32)slot * 4 / TOP % MIN(WARPS, 4)))
#define AHEAD(p, bytes) \
    UNROLL \
    for (int first = 0; first < (bytes) / 128; first += BLOCKS * KERNEL_BLOCK) \
        if (first + BID_X + BLOCKS * TID < (bytes) / 128) \
            PREFETCH((const unsigned char *)(p) + (idx)expert * (bytes) + (first + BID_X + BLOCKS * TID) * 128)
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
{
    const idx row = BID_Z;
    const int slot = BID_Y, i0 = BID_X * EACH;
#if TENSOR && TILED
    SHARED(gp_u32, rows, WARPS * DEPTH * SPAN_WORDS);
    SHARED(float, sums, TILES * 16 * SUMS_STEP(WARPS));
    EXPERT_TILE(WARP, A + A_AT(row, 0), rows);
    UNROLL
    for (int place = 0; place < (WHOLE ? 1 : TILES); place++) {
        const int first = i0 + place * TILE_EACH + g;
        ROWS_1(place, 0, MOE_GATE(ROW_OF(first, INNER)));
#if PAIR
        ROWS_LINEAR(place, 1, MOE_LINEAR(ROW_OF(first, INNER)));
#else
        ROWS_1(place, 1, ROW_OF(first + 8, INNER));
#endif
    }
    EXPERT_BEGIN;
#endif
#if ROUTED
    SHARED(int, chosen, TOP);
    gp_u32 logits[EXPERT_KEYS];
    idx logits_at = LOGITS_AT(row, LANE * EXPERT_KEYS);
    READY8(logits_at);
#endif
    EXTENTS
    if (row >= ROWS) return;
#if ROUTED
    if (WARP == CHOOSER) LOGITS_TAKE(row, logits_at, logits);
    if (WARP == CHOOSER) CHOOSE(logits, slot + 1, chosen);
    SYNC();
    const int expert = chosen[slot];
#else
    const int expert = (int)CHOSEN_LD(CHOSEN_AT(row, slot));
#endif
#if TENSOR && TILED
    EXPERT_FIRST(expert, OUTPUTS_1);
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
    /* The row of the tiles whose sum the thread makes; what a gate scales stands eight rows behind it. */
    const int in_tile = TID & 15, i = i0 + (TID >> 4) * TILE_EACH + (in_tile & (TILE_EACH - 1));
    const int mine = TID < 16 * TILES && i < INNER;
    idx to = Y_AT(row, slot, i);
    float bias = 0.0f, gate;
    READY8(to);
#if PAIR
    if (mine && in_tile >= 8) bias = BIAS_LINEAR(expert, MOE_LINEAR(i));
    else
#endif
    if (mine) bias = BIAS1(expert, MOE_GATE(i));
    EXPERT_PRODUCTS(expert);
    EXPERT_SUMS(sums, WARP, WARPS, 1.0f);
    SYNC();
    if (WARP >= (TILES + 1) / 2) return;
    EXPERT_TOTAL(gate, sums, MIN(TID, 16 * TILES - 1) * SUMS_STEP(WARPS), WARPS);
    gate += bias;
    const float other = PAIR ? SHUFFLE_F(gate, LANE ^ 8) : 0.0f;
    if (!mine || in_tile >= TILE_EACH) return;
#else
    for (int i = i0 + WARP; i < MIN(i0 + EACH, INNER); i += WARPS) { /* whole warps */
        const idx to = Y_AT(row, slot, i);
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
        gate += BIAS1(expert, MOE_GATE(i));
#if PAIR
        other += BIAS_LINEAR(expert, MOE_LINEAR(i));
#endif
#endif
    Y_ST(to, gp_expert(ACTIVATION, PAIR, gate, other, LIMIT, LIMIT_AFTER, ALPHA, BETA));
#if !(TENSOR && TILED)
    }
#endif
}
