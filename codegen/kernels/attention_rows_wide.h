/* attention_rows_wide.h - part of attention_rows.cu where WIDE and WGMMA are 1, in the kernel: products of four warps (wgmma.h), which have 64 of the block's
 * rows. HEAD and VHEAD are 64 or 128.
 *
 * Queries, two tiles of KEYS keys and two of values are in shared memory, SHARED_BYTES of it, as images of 64 elements of each row. While the tensor cores
 * work on the scores of a tile and, behind them, on the values of the one before, those scores become weights. Behind the barrier at the head of a turn all
 * warps are done with the keys of that turn and the values of the one before: the next ones go there. */
#define IMAGE (KEYS * 128)
#define IMAGES(D) ((D) / 64)
    SHARED_MORE(gp_u32, tiles, SHARED_BYTES / 4);
    unsigned char *const q_tile = WGMMA_TILES(tiles), *const k_tile = q_tile + IMAGES(HEAD) * ROWS * 128, *const v_tile = k_tile + 2 * IMAGES(HEAD) * IMAGE;
    typedef char gp_fits[SHARED_BYTES >= 1024 + IMAGES(HEAD) * ROWS * 128 + 2 * (IMAGES(HEAD) + IMAGES(VHEAD)) * IMAGE && KEYS == 128 ? 1 : -1];
    const int g = LANE / 4, t = LANE % 4, line = TID / 8, piece = TID % 8, copy_at = line * 128 + (piece ^ line % 8) * 16;
    const idx row = q0 + WARP * 16 + g; /* the lane's rows are this one and the eighth after it */
    const idx last_row = MIN(q0 + ROWS, fresh) - 1, begin = FIRST(q0) / KEYS * KEYS, end = LAST(last_row);
    float score[64], sum[VHEAD / 2], top[2] = {-INF_F, -INF_F}, mass[2] = {0.0f, 0.0f}, fade[2];
    gp_u32 weights[KEYS / 16][4];
    UNROLL
    for (int j = 0; j < VHEAD / 2; j++) sum[j] = 0.0f;
    /* COUNT rows of D elements, from FROM on, STEP elements apart, of which LEFT exist. */
#define TAKE(to, from, step, count, D, left) \
    UNROLL \
    for (int c = 0; c < (count) / 32; c++) { \
        UNROLL \
        for (int i = 0; i < IMAGES(D); i++) \
            COPY16((to) + copy_at + i * (count) * 128 + c * 4096, (from) + c * 32 * (step) + i * 64, line + c * 32 < (left)); \
    }
#define TAKE_KEYS(parity) \
    TAKE(k_tile + (parity) * (IMAGES(HEAD) * IMAGE), k_from, K_S2, KEYS, HEAD, k_left) \
    k_from += KEYS * K_S2, k_left -= KEYS
#define TAKE_VALUES(parity) \
    TAKE(v_tile + (parity) * (IMAGES(VHEAD) * IMAGE), v_from, V_S2, KEYS, VHEAD, v_left) \
    v_from += KEYS * V_S2, v_left -= KEYS
#define SCORE(parity) \
    do { \
        const gp_u32 queries = WGMMA_ROWS(q_tile + WARP / 4 * 8192), keys = WGMMA_ROWS(k_tile + (parity) * (IMAGES(HEAD) * IMAGE)); \
        UNROLL \
        for (int d = 0; d < HEAD / 16; d++) \
            GP_PASTE(WGMMA_BOTH_, TYPE)(score, queries + (d / 4 * ROWS * 8 + d % 4 * 2), keys + (d / 4 * KEYS * 8 + d % 4 * 2), 0, d > 0); \
        WGMMA_END(); \
    } while (0)
#if VHEAD == 128
#define ADD_KEYS(k, values) GP_PASTE(WGMMA_TURNED_, TYPE)(sum, weights[k], WGMMA_APART((values) + (k) * 128, IMAGE))
#define TAKE_SUM WGMMA_TAKE(sum)
#else
#define ADD_KEYS(k, values) GP_PASTE(WGMMA_NARROW_, TYPE)(sum, weights[k], (values) + (k) * 128)
#define TAKE_SUM WGMMA_TAKE_NARROW(sum)
#endif
#define ADD_VALUES(parity) \
    do { \
        const gp_u32 values = WGMMA_ROWS(v_tile + (parity) * (IMAGES(VHEAD) * IMAGE)); \
        UNROLL \
        for (int k = 0; k < KEYS / 16; k++) ADD_KEYS(k, values); \
        WGMMA_END(); \
    } while (0)
    /* Where nothing else is added, products become logarithms to base 2 as they become powers. */
    const int plain = !HAS_SOFTCAP && MASK != 2 && (float)SCALE > 0.0f;
    const float factor = plain ? (float)SCALE * LOG2E : 1.0f;
    /* Scores of the keys from AT on become powers, as FADE and the sums of the rows say. */
#define SOFTEN(at) \
    do { \
        UNROLL \
        for (int j = 0; j < 64 && !plain; j++) score[j] = LOGARITHM(score[j]); \
        if (MASK || (at) + KEYS > LAST(q0 + WARP / 4 * 64) || (at) < FIRST(last_row)) { \
            UNROLL \
            for (int j = 0; j < 64; j++) SEE(score[j], row + j % 4 / 2 * 8, (at) + 8 * (j / 4) + 2 * t + j % 2); \
        } \
        UNROLL \
        for (int h = 0; h < 2; h++) { \
            float most = -INF_F; \
            UNROLL \
            for (int j = 0; j < 16; j++) most = FMAXF(most, FMAXF(score[4 * j + 2 * h], score[4 * j + 2 * h + 1])); \
            most = FMAXF(most, SHUFFLE_F(most, LANE ^ 1)); \
            most = FMAXF(most, SHUFFLE_F(most, LANE ^ 2)); \
            most = FMAXF(most * factor, top[h]); \
            const float high = most == -INF_F ? 0.0f : most; /* no key yet: all weights are 0 */ \
            fade[h] = gp_exp2(top[h] - high); \
            top[h] = most; \
            mass[h] *= fade[h]; \
            UNROLL \
            for (int j = 0; j < 32; j++) { \
                float *const own = score + j / 2 * 4 + 2 * h + j % 2; \
                *own = gp_exp2(FMAF(*own, factor, -high)); \
                mass[h] += *own; \
            } \
        } \
    } while (0)
#define PACK_WEIGHTS \
    UNROLL \
    for (int j = 0; j < 32; j++) weights[j / 4][j % 4] = PACK2(score[2 * j], score[2 * j + 1])
    if (begin < end) {
        const Q_T *q_from = Q + Q_AT(batch, head, q0 + line, piece * 8);
        const K_T *k_from = K + K_AT(batch, kv, begin + line, piece * 8);
        const V_T *v_from = V + V_AT(batch, kv, begin + line, piece * 8);
        int k_left = (int)(total - begin), v_left = k_left, parity = 0; /* of the tile whose weights there are */
        TAKE(q_tile, q_from, Q_S2, ROWS, HEAD, (int)MIN(fresh - q0, ROWS))
        TAKE_KEYS(0);
        COPY_END();
        if (begin + KEYS < end) { TAKE_KEYS(1); }
        TAKE_VALUES(0);
        COPY_END();
        COPY_WAIT(1);
        WGMMA_ARRIVED();
        SYNC();
        WGMMA_BEGIN();
        SCORE(0);
        WGMMA_WAIT(0);
        WGMMA_TAKE(score);
        SOFTEN(begin);
        PACK_WEIGHTS;
        UNROLL_BY(1)
        for (idx next = begin + KEYS; next < end; next += KEYS) {
            COPY_WAIT(0);
            WGMMA_ARRIVED();
            SYNC();
            if (next + KEYS < end) { TAKE_KEYS(parity); }
            TAKE_VALUES(parity ^ 1);
            COPY_END();
            WGMMA_BEGIN();
            SCORE(parity ^ 1);
            WGMMA_BEGIN();
            ADD_VALUES(parity);
            WGMMA_WAIT(1);
            WGMMA_TAKE(score);
            int again = (int)next; /* never below 0, which the compiler does not know: it would put the wait before all this */
            do {
                SOFTEN(next);
                READY4(again);
            } while (again < 0);
            WGMMA_WAIT(0);
            TAKE_SUM;
            UNROLL
            for (int j = 0; j < VHEAD / 2; j++) sum[j] *= fade[j % 4 / 2];
            PACK_WEIGHTS;
            parity ^= 1;
        }
        COPY_WAIT(0);
        WGMMA_ARRIVED();
        SYNC();
        WGMMA_BEGIN();
        ADD_VALUES(parity);
        WGMMA_WAIT(0);
        TAKE_SUM;
    }
#define SUM(j, e) sum[(j) * 4 + (e)]
