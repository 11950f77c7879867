/* linear_step: linear_attention (see there) for one token and no more query than state heads. Grid: column slices, KV_HEADS, batch.
 *
 * A block owns ACROSS vectors of WIDTH columns: thread (r, j) = TID / ACROSS, TID % ACROSS holds rows r, r + ROWS ... of vector j, all loaded
 * before anything else, so that the whole state is on its way at once. Sums over rows go through the lanes of a warp, then
 * through shared memory. Nothing else reads or writes these columns, so OLD may be NEW.
 *
 * FILTER: query, key and value are channels FIRST_Q, FIRST_K and FIRST_V on of CX after a causal convolution (causal_conv, with CW, CBIAS,
 * COLD and CNEW as W, BIAS, OLD and NEW there), and NORMS say which of query and key are normed by head, by texts of fuse (HeldRow).
 * A block filters what it reads of them, a warp each. Blocks that share a key head read the same of the convolution's state, which may
 * be CNEW: the last of them to have read it, as TICKETS tells, writes the new one of the query and key. Its own columns of
 * the value nobody else reads. All is rounded, and folded in the order, as by causal_conv, reduce and standardise.
 *
 * EARLY: the states are in NEW and CNEW, which nothing else writes in a step, and the filter is constant: they are read before the kernel waits for
 * those before it. */
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
/* Sums of a warp over its rows of PART[WIDTH], WIDTH being the lanes of a column too: they take apart the values while they add, so that each
 * ends with one, left where all its threads and, behind a SYNC, the block find them. */
#define SUM_ROWS(part, sums) \
    do { \
        int own = 0; \
        UNROLL \
        for (int step = ACROSS, half = WIDTH / 2; half > 0; step *= 2, half /= 2) { \
            const int upper = (LANE & step) != 0; \
            own += upper ? half : 0; \
            UNROLL \
            for (int e = 0; e < half; e++) { \
                const float mine = upper ? part[e + half] : part[e], other = upper ? part[e] : part[e + half]; \
                part[e] = mine + SHUFFLE_F(other, LANE ^ step); \
            } \
        } \
        sums[(WARP * ACROSS + LANE % ACROSS) * WIDTH + own] = part[0]; \
        SYNC(); \
    } while (0)
#if FILTER
#if CHAS_OLD == 2
#define LS_BEFORE(c, p) CNEW_LD(CNEW_AT(batch, c, p))
#elif CHAS_OLD == 1
#define LS_BEFORE(c, p) COLD_LD(COLD_AT(batch, c, p))
#else
#define LS_BEFORE(c, p) 0.0f
#endif
#if HAS_BIAS
#define LS_BIAS(c) CBIAS_LD(CBIAS_AT(c))
#else
#define LS_BIAS(c) 0.0f
#endif
#define COLUMNS (ACROSS * WIDTH)
#define BEFORE (TAPS - 1)     /* positions of the convolution's state */
#define MINE ((MAX(HEAD, COLUMNS) + 31) / 32) /* channels of a lane: every 32nd of those of its warp */
#define MINE_END (WARP < 2 ? HEAD : WARP == 2 ? (VHEAD % COLUMNS == 0 ? COLUMNS : MIN(COLUMNS, VHEAD - BID_X * COLUMNS)) : 0)
#define EACH_MINE(j, inner) for (int j = 0, inner = LANE; j < MINE; j++, inner += 32)
#define SHARERS (KV_HEADS / K_HEADS * GRID_X)
#define ARRIVER (KERNEL_BLOCK - 32) /* of a warp that filters nothing */
/* In a loop over a lane's channels J of a head that a warp holds in VALUE: the column and its element, where there is one. */
#define HEAD_ELEMENT(value, j) \
    const idx col = LANE + 32 * (j); \
    const float element = value[j]; \
    (void)element; \
    if (HEAD % 32 != 0 && col >= HEAD) continue
/* The head that a warp holds in VALUE, normed; by texts NAME_... (HeldRow, lower.h). Eight chains, then their sum. */
#define NORM_HEAD(name, value, number) \
    do { \
        const idx row = (number); \
        float part = 0.0f, total = 0.0f; \
        (void)row; \
        name##_ROW_INDEX \
        UNROLL \
        for (int j = 0; j < MINE; j++) { \
            HEAD_ELEMENT(value, j); \
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
            HEAD_ELEMENT(value, j); \
            name##_COLUMN_INDEX name##_ROW_EACH \
            value[j] = (float)(name##_RESULT); \
        } \
    } while (0)
#endif
/* The thread's part of the states, and the filter; without branches, so that all is on its way at once. */
#define READ_STATE \
    do { \
        UNROLL \
        EACH_ROW(p, i) { \
            UNROLL \
            EACH_COLUMN(e) state[p][e] = 0.0f; \
            if (HAS_OLD && ROW_EXISTS(i)) LS_TAKE(i, state[p]); \
        } \
        READ_FILTER; \
    } while (0)
#if HAS_OLD
#define LS_TAKE(i, to) GP_PASTE(LDV_, TYPE)(LS_OLD, LS_OLD_AT(batch, head, i, at), to)
#else
#define LS_TAKE(i, to) ((void)0)
#endif
#if FILTER
#define READ_FILTER \
    UNROLL \
    EACH_MINE(j, inner) { \
        const int mine = channel + (inner < mine_end ? inner : 0); \
        value[j] = (float)LS_BIAS(mine); \
        UNROLL \
        for (int tap = 0; tap < TAPS; tap++) { \
            taps[j][tap] = (float)CW_LD(CW_AT(mine, 0, tap)); \
            if (tap < BEFORE) before[j][tap] = (float)LS_BEFORE(mine, tap); \
        } \
    }
#else
#define READ_FILTER
#endif
KERNEL(KERNEL_BLOCK)
{
    const idx batch = BID_Z, head = BID_Y, k_head = head / (KV_HEADS / K_HEADS), q_head = head * Q_HEADS / KV_HEADS;
    const int column = (BID_X * ACROSS + TID % ACROSS) * WIDTH, inside = column < VHEAD, at = inside ? column : 0;
#if FILTER
    /* Warp 0 filters the query, 1 the key, 2 the value. */
    const int mine_end = MINE_END;
    const int channel = (int)(WARP == 0 ? FIRST_Q + q_head * HEAD : WARP == 1 ? FIRST_K + k_head * HEAD : FIRST_V + head * VHEAD + BID_X * COLUMNS);
#endif
    float state[HELD][WIDTH];
#if FILTER
    float taps[MINE][TAPS], before[MINE][TAPS], value[MINE]; /* before: the state's positions, and the token */
#endif
#if EARLY
    READ_STATE;
#endif
    EXTENTS
    SHARED(float, seen, KERNEL_BLOCK / 32 * ACROSS * WIDTH);
    SHARED(float, made, KERNEL_BLOCK / 32 * ACROSS * WIDTH);
#if FILTER
    SHARED(float, fresh, 2 * HEAD + COLUMNS); /* the query, the key, the columns of the value */
    SHARED(int, order, 1);
#endif
    if (batch >= BATCH) return; /* whole blocks */
    float key[HELD], query[HELD], change[WIDTH], part[WIDTH];
#if !EARLY
    READ_STATE;
#endif
#if GATED == 1
    const float decay[1] = {(float)G_LD(G_AT(batch, 0, head))};
#elif GATED == 2
    float decay[HELD];
    UNROLL
    EACH_ROW(p, i) decay[p] = (float)G_LD(G_AT(batch, 0, head * HEAD + (ROW_EXISTS(i) ? i : 0)));
#endif
#if DELTA
    const float rate = (float)B_LD(B_AT(batch, 0, DELTA == 2 ? head : 0));
#endif
#if FILTER
    UNROLL
    EACH_MINE(j, inner) before[j][BEFORE] = (float)CX_LD(CX_AT(batch, channel + (inner < mine_end ? inner : 0), 0));
    UNROLL
    EACH_MINE(j, inner) {
        UNROLL
        for (int tap = 0; tap < BEFORE; tap++) value[j] = FMAF(taps[j][tap], before[j][tap], value[j]);
        if (inner < mine_end) fresh[WARP * HEAD + inner] = value[j]; /* so that the state has been read behind this: */
    }
    SYNC();
#if C_STATE
    int ticket = SHARERS - 1;
    if (SHARERS > 1 && TID == ARRIVER) ticket = (int)ARRIVE(TICKETS + TICKETS_AT(batch, k_head));
#endif
    if (WARP < 3) {
        UNROLL
        EACH_MINE(j, inner) {
            float sum = FMAF(taps[j][BEFORE], before[j][BEFORE], value[j]);
#if SILU
            sum = gp_ratiof(sum, 1.0f + EXPF(-sum));
#endif
            value[j] = (float)CX_RND(sum);
        }
#if NORMS == 4
        if (WARP < 2) NORM_HEAD(NORM_Q, value, batch * K_HEADS + k_head);
#endif
#if NORMS & 1
        if (WARP == 0) NORM_HEAD(NORM_Q, value, batch * K_HEADS + k_head);
#endif
#if NORMS & 2
        if (WARP == 1) NORM_HEAD(NORM_K, value, batch * K_HEADS + k_head);
#endif
        UNROLL
        EACH_MINE(j, inner) if (inner < mine_end) fresh[WARP * HEAD + inner] = value[j];
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
#if GATED
    UNROLL
    EACH_ROW(p, i) {
        const float fade = EXPF(decay[GATED == 2 ? p : 0]);
        UNROLL
        EACH_COLUMN(e) state[p][e] *= fade;
    }
#endif
#if DELTA
    UNROLL
    EACH_COLUMN(e) part[e] = 0.0f;
    UNROLL
    EACH_ROW(p, i) EACH_COLUMN(e) part[e] = FMAF(state[p][e], key[p], part[e]);
    SUM_ROWS(part, seen);
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
        if (SHARERS > 1 && ticket == SHARERS - 1) ARRIVED_ALL();
        order[0] = ticket;
    }
#endif
    UNROLL
    EACH_ROW(p, i) if (inside && ROW_EXISTS(i)) GP_PASTE(STV_, TYPE)(NEW, NEW_AT(batch, head, i, column), state[p]);
    SUM_ROWS(part, made);
    if (TID < ACROSS * WIDTH && BID_X * ACROSS * WIDTH + TID < VHEAD) {
        float total = 0.0f;
        UNROLL
        for (int w = 0; w < KERNEL_BLOCK / 32; w++) total += made[w * ACROSS * WIDTH + TID];
        Y_ST(Y_AT(batch, 0, head * VHEAD + BID_X * ACROSS * WIDTH + TID), (float)SCALE * total);
    }
#if FILTER && C_STATE
    const int last = order[0] == SHARERS - 1; /* everybody has read what this one read of the query and key */
    if (last || WARP == 2) {
        UNROLL
        EACH_MINE(j, inner) if (inner < mine_end) {
            UNROLL
            for (int p = 0; p < BEFORE; p++) CNEW_ST(CNEW_AT(batch, channel + inner, p), before[j][p + 1]);
        }
    }
    if (SHARERS > 1 && last && TID == 0) TICKETS_ST(TICKETS_AT(batch, k_head), 0); /* for the next launch */
#endif
}
