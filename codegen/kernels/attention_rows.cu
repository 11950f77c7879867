/* attention_rows: attention's result for many query rows: a block makes 64 rows of one head, with WIDE 1 (for sm_90a: attention_rows_wide.h) 128, a warp
 * 16 of them, on tensor cores.
 * Keys and values go through shared memory KEYS at a time; scores, in floats, stay in registers; the online softmax is in float,
 * its weights are rounded to TYPE for the product with V. All operands are of TYPE (F16 BF16), contiguous along the head, rows on
 * 16 bytes; HEAD and VHEAD are 64, 128 or 256. The other macros are attention's. Grid: heads, batch, row tiles, so that all long ones are first. */
#define ROWS (WIDE ? 128 : 64)
#define LOG2E 1.44269504088896f
#define PACK2(low, high) GP_PASTE(PACK2_, TYPE)(low, high)
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx tile = (Q_D2 + ROWS - 1) / ROWS - 1 - BID_Z, head = BID_X, batch = BID_Y; /* the longest rows first */
    if (tile < 0 || batch >= Q_D0) return;
    const idx kv = head / GROUP, fresh = Q_D2, q0 = tile * ROWS;
    LENGTHS
/* The keys of a query row: from FIRST up to LAST. */
#if CAUSAL
#define LAST(query) MAX(MIN(total, past + (query) + 1), 0)
#else
#define LAST(query) total
#endif
#if WINDOW > 0
#define FIRST(query) MAX(past + (query) + 1 - WINDOW, 0)
#else
#define FIRST(query) 0
#endif
/* A score, in one of the lane's registers, as a logarithm to base 2. */
#if HAS_SOFTCAP
#define LOGARITHM(v) ((float)SOFTCAP * LOG2E * TANHF((v) * (float)SCALE / (float)SOFTCAP))
#else
#define LOGARITHM(v) ((v) * ((float)SCALE * LOG2E))
#endif
/* Minus infinity where a row does not see a key; what a mask adds, where it does. */
#define SEE(score, query_, key_) \
    do { \
        const idx query = (query_), key = (key_); \
        int seen = key < LAST(query) && key >= FIRST(query); \
        SEE_MASK(score) \
        if (!seen) (score) = -INF_F; \
    } while (0)
#if MASK == 1
#define SEE_MASK(score) \
    seen = seen && query < fresh && key < M_D3; \
    if (seen) seen = M_LD(M_AT(batch, head, query, key));
#elif MASK == 2
#define SEE_MASK(score) \
    seen = seen && query < fresh && key < M_D3; \
    if (seen) (score) += (float)M_LD(M_AT(batch, head, query, key)) * LOG2E;
#else
#define SEE_MASK(score)
#endif
#if SINK == 1
    const float sink = 0.0f;
#elif SINK == 2
    const float sink = (float)SINKS_LD(SINKS_OFF + head * SINKS_S0);
#endif
#if WIDE && WGMMA
#include "attention_rows_wide.h"
#elif TENSOR
    SHARED(gp_u32, k_tile, KEYS * HEAD / 2);
    SHARED(gp_u32, v_tile, KEYS * VHEAD / 2);
    const int g = LANE / 4, t = LANE % 4;
    const idx row = q0 + WARP * 16 + g; /* the lane's rows are this one and the eighth after it */
    gp_u32 q[HEAD / 16][4];
    float sum[VHEAD / 8][4], top[2] = {-INF_F, -INF_F}, mass[2] = {0.0f, 0.0f};
    UNROLL
    for (int d = 0; d < HEAD / 16; d++) {
        UNROLL
        for (int w = 0; w < 4; w++) {
            const idx query = row + w % 2 * 8;
            q[d][w] = query < fresh ? *(const gp_u32 *)(Q + Q_AT(batch, head, query, 16 * d + w / 2 * 8 + 2 * t)) : 0;
        }
    }
    UNROLL
    for (int j = 0; j < VHEAD / 8; j++) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0.0f;
    const idx last_row = MIN(q0 + ROWS, fresh) - 1;
    const idx begin = FIRST(q0) / KEYS * KEYS, end = LAST(last_row);
    /* Pieces of 16 bytes of KEYS rows of X, from X_FROM on, of which LEFT exist; the pieces of a row are exchanged by its number, so
     * that eight rows lie in different banks. */
#define TAKE(X, D, left) \
    UNROLL \
    for (int c = 0; c < KEYS * D / 1024; c++) { \
        const int line = TID / (D / 8) + c * (1024 / D), piece = TID % (D / 8); \
        COPY16((X##_TILE) + (line * (D / 8) + (piece ^ line % 8)) * 4, (X##_FROM) + c * (1024 / D) * X##_S2, line < (left)); \
    } \
    COPY_END(); \
    X##_FROM += KEYS * X##_S2
    const K_T *k_from = K + K_AT(batch, kv, begin + TID / (HEAD / 8), TID % (HEAD / 8) * 8);
    const V_T *v_from = V + V_AT(batch, kv, begin + TID / (VHEAD / 8), TID % (VHEAD / 8) * 8);
#define K_FROM k_from
#define V_FROM v_from
#define K_TILE k_tile
#define V_TILE v_tile
    /* Where the lane's row of a matrix begins, for the first eight pieces; eight pieces on it is the same. */
    const int lo = LANE % 8, k_row = lo * (HEAD / 2), v_row = LANE % 16 * (VHEAD / 2);
    const int k_at[2] = {k_row + (LANE / 8 ^ lo) * 4, k_row + ((4 + LANE / 8) ^ lo) * 4};
    const int v_at[4] = {v_row + (LANE / 16 ^ lo) * 4, v_row + ((2 + LANE / 16) ^ lo) * 4, v_row + ((4 + LANE / 16) ^ lo) * 4,
                         v_row + ((6 + LANE / 16) ^ lo) * 4};
    int left = (int)(total - begin);
    if (begin < end) { TAKE(K, HEAD, left); }
    for (idx from = begin; from < end; from += KEYS) {
        float score[KEYS / 8][4], high[2];
        COPY_WAIT(0);
        SYNC(); /* these keys are there, and the values before are done with */
        TAKE(V, VHEAD, left);
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) score[j][0] = score[j][1] = score[j][2] = score[j][3] = 0.0f;
        UNROLL
        for (int d = 0; d < HEAD / 32; d++) {
            UNROLL
            for (int j = 0; j < KEYS / 8; j++) {
                gp_u32 b[4];
                LOAD_MATRICES(b, k_tile + k_at[d % 2] + d / 2 * 32 + j * 4 * HEAD);
                GP_PASTE(MMA_, TYPE)(score[j], q[2 * d], b);
                GP_PASTE(MMA_, TYPE)(score[j], q[2 * d + 1], b + 2);
            }
        }
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) {
            UNROLL
            for (int e = 0; e < 4; e++) score[j][e] = LOGARITHM(score[j][e]);
        }
        if (MASK || from + KEYS > LAST(q0) || from < FIRST(last_row)) {
            UNROLL
            for (int j = 0; j < KEYS / 8; j++) {
                UNROLL
                for (int e = 0; e < 4; e++) SEE(score[j][e], row + e / 2 * 8, from + 8 * j + 2 * t + e % 2);
            }
        }
        UNROLL
        for (int h = 0; h < 2; h++) {
            float most = -INF_F;
            UNROLL
            for (int j = 0; j < KEYS / 8; j++) most = FMAXF(most, FMAXF(score[j][2 * h], score[j][2 * h + 1]));
            most = FMAXF(most, SHUFFLE_F(most, LANE ^ 1));
            most = FMAXF(most, SHUFFLE_F(most, LANE ^ 2));
            most = FMAXF(most, top[h]);
            high[h] = most == -INF_F ? 0.0f : most; /* no key yet: all weights are 0 */
            const float fade = gp_exp2(top[h] - high[h]);
            top[h] = most;
            mass[h] *= fade;
            UNROLL
            for (int j = 0; j < VHEAD / 8; j++) {
                sum[j][2 * h] *= fade;
                sum[j][2 * h + 1] *= fade;
            }
        }
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) {
            UNROLL
            for (int e = 0; e < 4; e++) {
                score[j][e] = gp_exp2(score[j][e] - high[e / 2]);
                mass[e / 2] += score[j][e];
            }
        }
        COPY_WAIT(0);
        SYNC(); /* the values are there, and the keys are done with */
        left -= KEYS;
        if (from + KEYS < end) { TAKE(K, HEAD, left); }
        UNROLL
        for (int k = 0; k < KEYS / 16; k++) {
            const gp_u32 weights[4] = {
                PACK2(score[2 * k][0], score[2 * k][1]), PACK2(score[2 * k][2], score[2 * k][3]),
                PACK2(score[2 * k + 1][0], score[2 * k + 1][1]), PACK2(score[2 * k + 1][2], score[2 * k + 1][3])};
            UNROLL
            for (int j = 0; j < VHEAD / 8; j += 2) {
                gp_u32 b[4];
                LOAD_TRANSPOSED(b, v_tile + v_at[j / 2 % 4] + j / 8 * 32 + k * 8 * VHEAD);
                GP_PASTE(MMA_, TYPE)(sum[j], weights, b);
                GP_PASTE(MMA_, TYPE)(sum[j + 1], weights, b + 2);
            }
        }
    }
#define SUM(j, e) sum[j][e]
#endif
#if TENSOR
    UNROLL
    for (int h = 0; h < 2; h++) {
        const idx query = row + 8 * h;
        float whole = mass[h], share = 1.0f;
        whole += SHUFFLE_F(whole, LANE ^ 1);
        whole += SHUFFLE_F(whole, LANE ^ 2);
#if SINK
        const float best = FMAXF(top[h], sink * LOG2E);
        share = gp_exp2(top[h] - best);
        whole = FMAF(share, whole, gp_exp2(sink * LOG2E - best));
#endif
        share = whole > 0.0f ? share / whole : whole; /* all keys masked: 0; NaN stays */
        UNROLL
        for (int j = 0; j < VHEAD / 8; j++) {
            if (query < fresh)
                *(gp_u32 *)(Y + Y_AT(batch, head, query, 8 * j + 2 * t)) = PACK2(SUM(j, 2 * h) * share, SUM(j, 2 * h + 1) * share);
        }
    }
#else
    /* One thread a row. */
    const idx query = q0 + TID;
    if (TID >= ROWS || query >= fresh) return;
    float q[HEAD], sum[VHEAD], top = -INF_F, whole = 0.0f;
    for (int d = 0; d < HEAD; d++) q[d] = (float)Q_LD(Q_AT(batch, head, query, d)) * (float)SCALE;
    for (int d = 0; d < VHEAD; d++) sum[d] = 0.0f;
    for (idx key = FIRST(query); key < LAST(query); key++) {
        gp_acc dot = gp_acc_zero();
        float x[8];
        for (int d = 0; d < HEAD; d += 8) {
            GP_PASTE(LDV_, TYPE)(K, K_AT(batch, kv, key, d), x);
            dot = gp_mac(dot, q + d, x, 8);
        }
        float s = gp_acc_total(dot);
#if HAS_SOFTCAP
        s = (float)SOFTCAP * TANHF(s / (float)SOFTCAP);
#endif
#if MASK == 1
        s = key < M_D3 && M_LD(M_AT(batch, head, query, key)) ? s : -INF_F;
#elif MASK == 2
        s = key < M_D3 ? s + (float)M_LD(M_AT(batch, head, query, key)) : -INF_F;
#endif
        if (s == -INF_F) continue;
        if (s > top) {
            const float fade = EXPF(top - s);
            for (int d = 0; d < VHEAD; d++) sum[d] *= fade;
            whole *= fade;
            top = s;
        }
        const float e = EXPF(s - top);
        whole += e;
        for (int d = 0; d < VHEAD; d += 8) {
            GP_PASTE(LDV_, TYPE)(V, V_AT(batch, kv, key, d), x);
            for (int j = 0; j < 8; j++) sum[d + j] = FMAF(e, x[j], sum[d + j]);
        }
    }
    float share = 1.0f;
#if SINK
    const float best = FMAXF(top, sink);
    share = EXPF(top - best);
    whole = FMAF(share, whole, EXPF(sink - best));
#endif
    for (int d = 0; d < VHEAD; d++) Y_ST(Y_AT(batch, head, query, d), whole == 0.0f ? 0.0f : sum[d] * share / whole);
#endif
}
