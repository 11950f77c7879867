/* gqa_prepare: what GroupQueryAttention does before it attends: a warp takes one head of one new row of the query, the key
 * or the value; norms it, rotates it, and writes it to QO or to its row of the caches KO, VO. A sequence's new rows come
 * after its own length, LEN + 1 - S; the clamp to CAPACITY keeps a wrong length inside the buffer. ROWED: of a sequence that
 * rests, nothing goes to the caches. With V > 1, where nothing is normed and all rows lie in vectors of V elements, LANES threads take a head, two
 * vectors each. */
#if POSITIONS
#define GP_POSITION (idx)POS_LD(POS_AT(b, s))
#else
#define GP_POSITION (past + s)
#endif
#define GP_INSIDE(position) ((position) >= 0 && (position) < COS_D0) /* without a row in the tables it is not rotated */
KERNEL(THREADS)
{
    EXTENTS
#if V > 1
    const idx place = (idx)BID_X * THREADS + TID, item = place / LANES, heads = QHEADS + 2 * KHEADS;
    const idx row = item % heads, s = item / heads, b = BID_Y;
    if (s >= ROWS || b >= BATCH) return;
#else
    const idx item = (idx)BID_X * 4 + WARP, heads = QHEADS + 2 * KHEADS;
    const idx row = item % heads, s = item / heads % ROWS, b = item / heads / ROWS;
    if (b >= BATCH) return;
#endif
#if ROWED && KHEADS
    if (row >= QHEADS && !RT_LD(RT_OFF + b)) return;
#endif
    const idx past = MAX(MIN((idx)LEN_LD(LEN_OFF + b * LEN_S0) + 1 - ROWS, (idx)(CAPACITY) - ROWS), 0);
#if V > 1
    const GP_PASTE(T_, TYPE) *from = 0;
    GP_PASTE(T_, TYPE) *to = 0;
#if QHEADS
    if (row < QHEADS) from = Q + Q_AT(b, row, s, 0), to = QO + QO_AT(b, row, s, 0);
#endif
#if KHEADS
    const idx key = row - QHEADS, value = key - KHEADS;
    if (value >= 0) from = VN + VN_AT(b, value, s, 0), to = VO + VO_AT(b, value, past + s, 0);
    else if (key >= 0) from = KN + KN_AT(b, key, s, 0), to = KO + KO_AT(b, key, past + s, 0);
#endif
    const int i = (int)(place % LANES) * V, turns = i < HALF && row < QHEADS + KHEADS; /* pairs i .. i + V - 1; else elements 2 * i .. */
    const int x = turns && !INTERLEAVED ? i : 2 * i, y = turns && !INTERLEAVED ? i + HALF : 2 * i + V;
    float e[2 * V];
    GP_PASTE(LDV_, TYPE)(from, x, e);
    GP_PASTE(LDV_, TYPE)(from, y, e + V);
#if HALF
    if (turns) {
        const idx position = GP_POSITION;
        float cosine[V], sine[V];
        UNROLL
        for (int p = 0; p < V; p++) cosine[p] = 1.0f, sine[p] = 0.0f;
        if (GP_INSIDE(position)) {
            GP_PASTE(LDV_, TYPE)(COS, COS_AT(position, i), cosine);
            GP_PASTE(LDV_, TYPE)(SIN, SIN_AT(position, i), sine);
        }
        UNROLL
        for (int p = 0; p < V; p++) {
            const int a = INTERLEAVED ? 2 * p : p, c = INTERLEAVED ? 2 * p + 1 : p + V;
            const float u = e[a], v = e[c];
            e[a] = u * cosine[p] - v * sine[p];
            e[c] = u * sine[p] + v * cosine[p];
        }
    }
#endif
    GP_PASTE(STV_, TYPE)(to, x, e);
    GP_PASTE(STV_, TYPE)(to, y, e + V);
#else
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
    const idx position = GP_POSITION;
    const int inside = GP_INSIDE(position);
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
#endif
#undef GP_POSITION
#undef GP_INSIDE
#undef GP_TAKE
#undef GP_HEAD
#undef GP_PUT
#undef GP_GAMMA
#undef GP_ROUND
}
