/* linear_step: linear_attention (see there) for one token and no more query than state heads. Grid: column slices, KV_HEADS, batch.
 *
 * A block owns ACROSS vectors of WIDTH columns: thread (r, j) = TID / ACROSS, TID % ACROSS holds rows r, r + ROWS ... of vector j, all loaded
 * before anything else, so that the whole state is on its way at once. Sums over rows go through the lanes of a warp, then
 * through shared memory. Nothing else reads or writes these columns, so OLD may be NEW.
 *
 * FILTER: query, key and value are channels FIRST_Q, FIRST_K and FIRST_V on of CX after a causal convolution (causal_conv, with CW, CBIAS,
 * COLD and CNEW as W, BIAS, OLD and NEW there), and NORM_Q, NORM_K say that a head of the query or key is divided by what a fold makes of it.
 * A block filters what it reads of them, a warp each. Blocks that share a key head read the same of the convolution's state, which may
 * be CNEW: the last of them to have read it, as TICKETS tells, writes the new one of the query and key. Its own columns of
 * the value nobody else reads. All is rounded, and folded in the order, as by causal_conv, reduce and standardise. */
#if HAS_OLD == 2
#define LS_OLD NEW
#define LS_OLD_AT NEW_AT
#else
#define LS_OLD OLD
#define LS_OLD_AT OLD_AT
#endif
#define ROWS (KERNEL_BLOCK / ACROSS)
#define HELD ((HEAD + ROWS - 1) / ROWS)
#define EACH_ROW(p, i) for (int p = 0, i = TID / ACROSS; p < HELD; p++, i += ROWS)
#define ROW_EXISTS(i) (HEAD % ROWS == 0 || (i) < HEAD)
#define EACH_COLUMN(e) for (int e = 0; e < WIDTH; e++)
/* Sums of a warp over its rows of PART[WIDTH], left where all its threads and, behind a SYNC, the block find them. */
#define SUM_ROWS(part, sums) \
    UNROLL \
    for (int step = ACROSS; step < 32; step *= 2) { \
        UNROLL \
        EACH_COLUMN(e) part[e] += SHUFFLE_F(part[e], LANE ^ step); \
    } \
    if (LANE < ACROSS) EACH_COLUMN(e) sums[(WARP * ACROSS + LANE) * WIDTH + e] = part[e]; \
    SYNC();
#if FILTER
#if CHAS_OLD == 2
#define LS_BEFORE(c, p) CNEW_LD(CNEW_AT(batch, c, p))
#elif CHAS_OLD == 1
#define LS_BEFORE(c, p) COLD_LD(COLD_AT(batch, c, p))
#else
#define LS_BEFORE(c, p) 0.0f
#endif
#define COLUMNS (ACROSS * WIDTH)
#define CHANNELS (2 * HEAD + COLUMNS) /* of the block: its query, its key, its columns of the value */
#define CHANNEL(n) ((n) < HEAD ? FIRST_Q + q_head * HEAD + (n) : (n) < 2 * HEAD ? FIRST_K + k_head * HEAD + (n) - HEAD : \
                    FIRST_V + head * VHEAD + BID_X * COLUMNS + (n) - 2 * HEAD)
#define CHANNEL_EXISTS(n) (VHEAD % COLUMNS == 0 || (n) < 2 * HEAD || BID_X * COLUMNS + (n) - 2 * HEAD < VHEAD)
#define SEQUENCE(n, p) sequence[(p) * CHANNELS + (n)]
#define MINE ((MAX(HEAD, COLUMNS) + 31) / 32) /* channels of a lane: every 32nd of those of its warp */
#define MINE_END (WARP < 2 ? HEAD : WARP == 2 ? COLUMNS : 0)
#define EACH_MINE(j, inner, n) for (int j = 0, inner = LANE, n = WARP * HEAD + LANE; j < MINE; j++, inner += 32, n += 32)
#define MINE_EXISTS(inner, n) ((inner) < MINE_END && CHANNEL_EXISTS(n))
#define SHARERS (KV_HEADS / K_HEADS * GRID_X)
#define ARRIVER (KERNEL_BLOCK - 32) /* of a warp that filters nothing */
/* The head that a warp holds in VALUE, normed; texts NAME_... see kernel_held (lower.h). Eight chains, then their sum. */
#define NORM_HEAD(name, value, number) \
    do { \
        const idx row = (number); \
        float part = 0.0f, total = 0.0f; \
        (void)row; \
        name##_ROW_INDEX \
        UNROLL \
        for (int j = 0; j < MINE; j++) { \
            const idx col = LANE + 32 * j; \
            const float element = value[j]; \
            if (HEAD % 32 != 0 && col >= HEAD) continue; \
            name##_COLUMN_INDEX name##_TAKE_BODY \
            const float v = (float)(name##_TAKE); \
            part = part + (name##_SQUARES ? v * v : v); \
        } \
        float eighth = SHUFFLE_F(part, LANE & 7); \
        UNROLL \
        for (int t = 8; t < 32; t += 8) eighth = eighth + SHUFFLE_F(part, (LANE & 7) + t); \
        UNROLL \
        for (int t = 0; t < 8; t++) total = t ? total + SHUFFLE_F(eighth, t) : SHUFFLE_F(eighth, t); \
        if (name##_ROOT) total = SQRTF(total); \
        name##_ROW_ONCE \
        UNROLL \
        for (int j = 0; j < MINE; j++) { \
            const idx col = LANE + 32 * j; \
            const float element = value[j]; \
            (void)element; \
            if (HEAD % 32 != 0 && col >= HEAD) continue; \
            name##_COLUMN_INDEX name##_ROW_EACH \
            value[j] = (float)(name##_RESULT); \
        } \
    } while (0)
#endif
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(float, seen, KERNEL_BLOCK / 32 * ACROSS * WIDTH);
    SHARED(float, made, KERNEL_BLOCK / 32 * ACROSS * WIDTH);
#if FILTER
    SHARED(float, sequence, CHANNELS * (BEFORE + 1)); /* what the filter sees: BEFORE old positions, and the token */
    SHARED(float, fresh, CHANNELS);
    SHARED(int, order, 1);
#endif
    const idx batch = BID_Z, head = BID_Y, k_head = head / (KV_HEADS / K_HEADS), q_head = head * Q_HEADS / KV_HEADS;
    if (batch >= BATCH) return; /* whole blocks */
    const int column = (BID_X * ACROSS + TID % ACROSS) * WIDTH, inside = column < VHEAD, at = inside ? column : 0;
    float state[HELD][WIDTH], key[HELD], query[HELD], change[WIDTH], part[WIDTH];
    UNROLL
    EACH_ROW(p, i) {
#if HAS_OLD
        if (ROW_EXISTS(i)) GP_PASTE(LDV_, TYPE)(LS_OLD, LS_OLD_AT(batch, head, i, at), state[p]);
        else
#endif
        { UNROLL EACH_COLUMN(e) state[p][e] = 0.0f; }
    }
#if FILTER
    float taps[MINE][TAPS], value[MINE]; /* of the channels that the lane filters; warp 0 has the query, 1 the key, 2 the value */
    UNROLL
    EACH_MINE(j, inner, n) {
        value[j] = 0.0f;
        if (!MINE_EXISTS(inner, n)) continue;
#if HAS_BIAS
        value[j] = (float)CBIAS_LD(CBIAS_AT(CHANNEL(n)));
#endif
        UNROLL
        for (int tap = 0; tap < TAPS; tap++) taps[j][tap] = (float)CW_LD(CW_AT(CHANNEL(n), 0, tap));
    }
    UNROLL
    for (int i = TID; i < CHANNELS * BEFORE; i += KERNEL_BLOCK) {
        const int n = i / BEFORE, from = i % BEFORE;
        SEQUENCE(n, from) = CHANNEL_EXISTS(n) ? (float)LS_BEFORE(CHANNEL(n), from) : 0.0f;
    }
    UNROLL
    for (int n = TID; n < CHANNELS; n += KERNEL_BLOCK) SEQUENCE(n, BEFORE) = CHANNEL_EXISTS(n) ? (float)CX_LD(CX_AT(batch, CHANNEL(n), 0)) : 0.0f;
    SYNC(); /* the convolution's state is read */
#if C_STATE
    int ticket = SHARERS - 1;
    if (SHARERS > 1 && TID == ARRIVER) ticket = (int)ARRIVE(TICKETS + TICKETS_AT(batch, k_head));
#endif
    if (WARP < 3) {
        UNROLL
        EACH_MINE(j, inner, n) {
            if (!MINE_EXISTS(inner, n)) continue;
            float sum = value[j];
            UNROLL
            for (int tap = 0; tap < TAPS; tap++) sum = FMAF(taps[j][tap], SEQUENCE(n, tap * DILATION), sum);
#if SILU
            sum = sum / (1.0f + EXPF(-sum));
#endif
            value[j] = (float)CX_RND(sum);
        }
#if NORM_Q
        if (WARP == 0) NORM_HEAD(NQ, value, batch * K_HEADS + q_head);
#endif
#if NORM_K
        if (WARP == 1) NORM_HEAD(NK, value, batch * K_HEADS + k_head);
#endif
        UNROLL
        EACH_MINE(j, inner, n) if (inner < MINE_END) fresh[n] = value[j];
    }
    SYNC();
    UNROLL
    EACH_ROW(p, i) {
        query[p] = ROW_EXISTS(i) ? fresh[i] : 0.0f;
        key[p] = ROW_EXISTS(i) ? fresh[HEAD + i] : 0.0f;
    }
    UNROLL
    EACH_COLUMN(e) change[e] = fresh[2 * HEAD + TID % ACROSS * WIDTH + e];
#else
    UNROLL
    EACH_ROW(p, i) {
        key[p] = ROW_EXISTS(i) ? (float)K_LD(K_AT(batch, 0, k_head * HEAD + i)) : 0.0f;
        query[p] = ROW_EXISTS(i) ? (float)Q_LD(Q_AT(batch, 0, q_head * HEAD + i)) : 0.0f;
    }
    UNROLL
    EACH_COLUMN(e) change[e] = (float)V_LD(V_AT(batch, 0, head * VHEAD + at + e));
#endif
#if GATED == 1
    const float fade = EXPF((float)G_LD(G_AT(batch, 0, head)));
    UNROLL
    EACH_ROW(p, i) {
#elif GATED == 2
    UNROLL
    EACH_ROW(p, i) {
        const float fade = EXPF((float)G_LD(G_AT(batch, 0, head * HEAD + (ROW_EXISTS(i) ? i : 0))));
#endif
#if GATED
        UNROLL
        EACH_COLUMN(e) state[p][e] *= fade;
    }
#endif
#if DELTA
    const float rate = (float)B_LD(B_AT(batch, 0, DELTA == 2 ? head : 0));
    UNROLL
    EACH_COLUMN(e) part[e] = 0.0f;
    UNROLL
    EACH_ROW(p, i) EACH_COLUMN(e) part[e] = FMAF(state[p][e], key[p], part[e]);
    SUM_ROWS(part, seen)
    UNROLL
    EACH_COLUMN(e) {
        float total = 0.0f;
        UNROLL
        for (int w = 0; w < KERNEL_BLOCK / 32; w++) total += seen[(w * ACROSS + TID % ACROSS) * WIDTH + e];
        change[e] = rate * (change[e] - total);
    }
#endif
    UNROLL
    EACH_COLUMN(e) part[e] = 0.0f;
    UNROLL
    EACH_ROW(p, i) EACH_COLUMN(e) {
        state[p][e] = FMAF(key[p], change[e], state[p][e]);
        part[e] = FMAF(query[p], state[p][e], part[e]);
    }
#if FILTER && C_STATE
    if (TID == ARRIVER) {
        if (SHARERS > 1 && ticket == SHARERS - 1) ARRIVED();
        order[0] = ticket;
    }
#endif
    UNROLL
    EACH_ROW(p, i) if (inside && ROW_EXISTS(i)) GP_PASTE(STV_, TYPE)(NEW, NEW_AT(batch, head, i, column), state[p]);
    SUM_ROWS(part, made)
    for (int c = TID; c < ACROSS * WIDTH; c += KERNEL_BLOCK) {
        float total = 0.0f;
        UNROLL
        for (int w = 0; w < KERNEL_BLOCK / 32; w++) total += made[w * ACROSS * WIDTH + c];
        if (BID_X * ACROSS * WIDTH + c < VHEAD) Y_ST(Y_AT(batch, 0, head * VHEAD + BID_X * ACROSS * WIDTH + c), (float)SCALE * total);
    }
#if FILTER && C_STATE
    const int last = order[0] == SHARERS - 1; /* everybody has read what this one read of the query and key */
    for (int i = TID; i < CHANNELS * BEFORE; i += KERNEL_BLOCK) {
        const int n = i / BEFORE, to = i % BEFORE;
        if (CHANNEL_EXISTS(n) && (last || n >= 2 * HEAD)) CNEW_ST(CNEW_AT(batch, CHANNEL(n), to), SEQUENCE(n, to + 1));
    }
    if (SHARERS > 1 && last && TID == 0) TICKETS_ST(TICKETS_AT(batch, k_head), 0); /* for the next launch */
#endif
}
