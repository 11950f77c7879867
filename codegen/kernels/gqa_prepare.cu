/* gqa_prepare: what GroupQueryAttention does before it attends: a warp takes one head of one new row of the query, the key
 * or the value; norms it, rotates it, and writes it to QO or to its row of the caches KO, VO. A sequence's new rows come
 * after its own length, LEN + 1 - S; the clamp to CAPACITY keeps a wrong length inside the buffer. ROWED: of a sequence that
 * rests, nothing goes to the caches. */
KERNEL(128)
{
    EXTENTS
    const idx item = (idx)BID_X * 4 + WARP, heads = QHEADS + 2 * KHEADS;
    const idx row = item % heads, s = item / heads % ROWS, b = item / heads / ROWS;
    if (b >= BATCH) return;
#if ROWED && KHEADS
    if (row >= QHEADS && !RT_LD(RT_OFF + b)) return;
#endif
    const idx past = MAX(MIN((idx)LEN_LD(LEN_OFF + b * LEN_S0) + 1 - ROWS, (idx)(CAPACITY) - ROWS), 0);
#if KHEADS
    if (row >= QHEADS + KHEADS) {
        const idx h = row - QHEADS - KHEADS;
        for (int d = LANE; d < HEAD; d += 32) VO_ST(VO_AT(b, h, past + s, d), VN_LD(VN_AT(b, h, s, d)));
        return;
    }
    const int is_key = row >= QHEADS;
#else
    const int is_key = 0;
#endif
    const idx h = is_key ? row - QHEADS : row;
#if KHEADS && QHEADS
#define GP_TAKE(d) (is_key ? (float)KN_LD(KN_AT(b, h, s, (d))) : (float)Q_LD(Q_AT(b, h, s, (d))))
#elif KHEADS
#define GP_TAKE(d) ((float)KN_LD(KN_AT(b, h, s, (d))))
#else
#define GP_TAKE(d) ((float)Q_LD(Q_AT(b, h, s, (d))))
#endif
#if NORM
    float square = 0.0f;
    for (int d = LANE; d < HEAD; d += 32) {
        const float v = GP_TAKE(d);
        square = FMAF(v, v, square);
    }
    const float inverse = gp_inverse_root(WARP_SUM(square) / (float)HEAD + (float)EPSILON);
    const int normed = is_key ? NORM_K : NORM_Q;
#if NORM_K && NORM_Q
#define GP_GAMMA(d) (is_key ? (float)KW_LD(KW_OFF + (d) * KW_S0) : (float)QW_LD(QW_OFF + (d) * QW_S0))
#elif NORM_K
#define GP_GAMMA(d) ((float)KW_LD(KW_OFF + (d) * KW_S0))
#else
#define GP_GAMMA(d) ((float)QW_LD(QW_OFF + (d) * QW_S0))
#endif
#if KHEADS
#define GP_ROUND(v) KN_RND(v)
#else
#define GP_ROUND(v) Q_RND(v)
#endif
#define GP_HEAD(d) (normed ? (float)GP_ROUND(GP_TAKE(d) * inverse * GP_GAMMA(d)) : GP_TAKE(d))
#else
#define GP_HEAD(d) GP_TAKE(d)
#endif
#if KHEADS && QHEADS
#define GP_PUT(d, v) do { if (is_key) KO_ST(KO_AT(b, h, past + s, (d)), v); else QO_ST(QO_AT(b, h, s, (d)), v); } while (0)
#elif KHEADS
#define GP_PUT(d, v) KO_ST(KO_AT(b, h, past + s, (d)), v)
#else
#define GP_PUT(d, v) QO_ST(QO_AT(b, h, s, (d)), v)
#endif
#if HALF
#if POSITIONS
    const idx position = (idx)POS_LD(POS_AT(b, s));
#else
    const idx position = past + s;
#endif
    const int inside = position >= 0 && position < COS_D0; /* a position without a row in the tables: not rotated */
    for (int i = LANE; i < HALF; i += 32) {
        const int x = INTERLEAVED ? 2 * i : i, y = INTERLEAVED ? 2 * i + 1 : i + HALF;
        const float u = GP_HEAD(x), v = GP_HEAD(y);
        const float cosine = inside ? (float)COS_LD(COS_AT(position, i)) : 1.0f;
        const float sine = inside ? (float)SIN_LD(SIN_AT(position, i)) : 0.0f;
        GP_PUT(x, u * cosine - v * sine);
        GP_PUT(y, u * sine + v * cosine);
    }
#endif
    for (int d = 2 * HALF + LANE; d < HEAD; d += 32) {
        const float v = GP_HEAD(d);
        GP_PUT(d, v);
    }
#undef GP_TAKE
#undef GP_HEAD
#undef GP_PUT
#undef GP_GAMMA
#undef GP_ROUND
}
