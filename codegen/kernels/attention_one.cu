/* attention_one: GroupQueryAttention of one new row a sequence, whole: the head norm and rotation of query and key, the append to the
 * caches, and the attention of the GROUP query heads that share a key head, in one launch.
 *
 * SPLITS blocks share the keys of a key head, KEYS at a time in turn, staged through shared memory. A warp has one query and 32 of the
 * keys, SUB warps a query: its lanes have a key each for the scores, and D / 32 elements of the head each for the values; softmax
 * online. The warps of a query meet in the first of them. Where several blocks had keys,
 * the last of them to arrive, which TICKETS tells, merges what they left in STATS and PART, in the order of the splits: results do
 * not depend on the order of arrival. All in float. The code is short on purpose: it runs once a launch, and what is fetched of it
 * counts.
 *   Q [B, Hq, 1, D], KN VN [B, H, 1, D]   the new row, of ROW_TYPE           K V   the caches, of TYPE, appended at LEN (a sequence's total less one)
 *   NORM_Q NORM_K   with weights QW, KW, constants of ROW_TYPE, and EPSILON_Q, EPSILON_K; rounded to ROW_TYPE
 *   HALF            rotated pairs, 0 none; COS SIN, by row TURN_AT; INTERLEAVED
 *   WINDOW > 0      only so many last keys        SINK 1: a key with score 0 and no value; 2: its score is SINKS[head]
 *   CAPACITY        rows of the caches; the clamp keeps a wrong length inside them       ROWED: nothing is appended for a row that rests
 *   STAGES          tiles of keys in shared memory: 2 where the next is fetched meanwhile
 *   EARLY           the length is a word that only the end of a step writes, and so are the old rows: both are read before the kernel
 *                   waits for those before it; TURN_EARLY: so is the turn of that length, from tables that are constants */
#define WARPS (GROUP * SUB)
#define THREADS (32 * WARPS)
#define KEYS (32 * SUB)
#define RUNS (D / 8)            /* of 16 bytes in a row */
#define STEP (D / 2 + 4)        /* words from key to key in a tile: lanes that read the same run of 32 keys meet no bank twice */
#define ITEMS (GROUP + 2)       /* heads of the new row: queries, key, value */
#define EACH ((ITEMS + WARPS - 1) / WARPS)
#define MINE (D / 32)           /* elements of the head that a lane has: pairs, so that lanes side by side read words side by side */
#define ELEMENT(j) (2 * (LANE + 32 * ((j) / 2)) + (j) % 2)
#define OWN(j) ((j) * 32 + LANE) /* where it keeps them in memory of its own */
#define MERGED (D > 128 ? 8 : 16) /* splits whose parts are fetched at once */
#define TURNS ((HALF + 31) / 32)
/* Keys of CHUNK into a tile, but for the new one; zeros behind the last. */
#define LOAD_KEYS(chunk) \
    do { \
        gp_u32 *const keys = TILE_OF(chunk), *const values = keys + KEYS * STEP; \
        const int left = past - begin - (chunk) * KEYS; /* old keys from the chunk's first on */ \
        UNROLL_BY(1) \
        for (int run = TID; run < KEYS * RUNS; run += THREADS) { \
            const int row = run / RUNS, at = run % RUNS, in = row < left; \
            const int from = in ? (chunk) * KEYS + row : 0; \
            if (row == left) continue; \
            COPY16(keys + row * STEP + at * 4, old_keys + (idx)from * K_S2 + at * 8, in); \
            COPY16(values + row * STEP + at * 4, old_values + (idx)from * V_S2 + at * 8, in); \
        } \
        COPY_END(); \
    } while (0)
/* The new row: a warp a head. All loads come before the first use of one: a round trip, not MINE. */
#define LOAD_MINE \
    gp_u16 raw[EACH][MINE]; \
    UNROLL \
    for (int i = 0; i < EACH; i++) { \
        const int item = WARP + i * WARPS, h = item < GROUP ? head * GROUP + item : head; \
        const gp_u16 *const from = item < GROUP ? (const gp_u16 *)Q + Q_AT(batch, h, 0, 0) : item == GROUP ? (const gp_u16 *)KN + KN_AT(batch, h, 0, 0) : (const gp_u16 *)VN + VN_AT(batch, h, 0, 0); \
        const idx step = item < GROUP ? Q_S3 : item == GROUP ? KN_S3 : VN_S3; \
        UNROLL \
        for (int j = 0; j < MINE; j++) raw[i][j] = from[(LANE + 32 * j) * step]; \
    } \
    UNROLL \
    for (int i = 0; i < EACH; i++) \
        UNROLL \
        for (int j = 0; j < MINE; j++) mine[i][j] = GP_PASTE(GP_OF_, ROW_TYPE)(raw[i][j]);
/* A position without a row in the tables: not rotated. */
#define LOAD_TURN \
    const idx position = TURN_AT; \
    const int inside = position >= 0 && position < COS_D0; \
    float cosine[TURNS], sine[TURNS]; \
    UNROLL \
    for (int turn = 0; turn < TURNS; turn++) { \
        const int i = MIN(LANE + 32 * turn, HALF - 1); \
        cosine[turn] = inside ? (float)COS_LD(COS_AT(position, i)) : 1.0f; \
        sine[turn] = inside ? (float)SIN_LD(SIN_AT(position, i)) : 0.0f; \
    }
#if EARLY
#define BEGIN LOAD_WORDS
#define LATE_WAIT GP_WAIT
#else
#define BEGIN EXTENTS
#define LATE_WAIT
#endif
#define TILE_OF(chunk) (tiles + (STAGES > 1 && ((chunk) / SPLITS & 1) ? 2 * KEYS * STEP : 0))
KERNEL(KERNEL_BLOCK)
{
#if NORM_Q || NORM_K
    gp_u32 gain[EACH][MINE];
    UNROLL
    for (int i = 0; i < EACH; i++) {
#if !NORM_K
        const gp_u16 *const from = (const gp_u16 *)QW + QW_OFF;
        const idx step = QW_S0;
#elif !NORM_Q
        const gp_u16 *const from = (const gp_u16 *)KW + KW_OFF;
        const idx step = KW_S0;
#else
        const idx step = WARP + i * WARPS < GROUP ? QW_S0 : KW_S0;
        const gp_u16 *const from = WARP + i * WARPS < GROUP ? (const gp_u16 *)QW + QW_OFF : (const gp_u16 *)KW + KW_OFF;
#endif
        UNROLL
        for (int j = 0; j < MINE; j++) LD_CONSTANT2(from + (LANE + 32 * j) * step, gain[i][j]);
    }
#endif
    BEGIN
    SHARED(float, query, GROUP * D);
    SHARED(float, fresh, 2 * D); /* the new key and value */
    SHARED(gp_u32, tiles, STAGES * 2 * KEYS * STEP);
    SHARED(float, shares, THREADS); /* by warp, of its keys */
    SHARED(int, order, 1);
    const int split = BID_X, head = BID_Y, batch = BID_Z;
    if (batch >= Q_D0) {
        LATE_WAIT
        return;
    }

    /* What is read here comes in few round trips: first the length and the new row, then, at once, all that the length places. */
    const idx length = (idx)LEN_LD(LEN_OFF + batch * LEN_S0);
    float mine[EACH][MINE];
#if !EARLY
    LOAD_MINE
#endif
    const int past = (int)MAX(MIN(length, (idx)(CAPACITY) - 1), 0), last = past + 1;
#if WINDOW > 0
    const int begin = MAX(last - WINDOW, 0);
#else
    const int begin = 0;
#endif
    const int chunks = (last - begin + KEYS - 1) / KEYS, active = MIN(chunks, SPLITS);
    if (split >= active) {
        LATE_WAIT
        return;
    }
    const int newest = chunks - 1, place = (past - begin) % KEYS; /* the chunk with the new row, and its row there */
    const K_T *const old_keys = K + K_AT(batch, head, begin, 0);
    const V_T *const old_values = V + V_AT(batch, head, begin, 0);
    LOAD_KEYS(split);
#if HALF && TURN_EARLY
    LOAD_TURN
#endif
    LATE_WAIT
#if EARLY
    LOAD_MINE
#endif
#if HALF && !TURN_EARLY
    LOAD_TURN
#endif

    /* ---- the new row: a warp a head */
    UNROLL
    for (int i = 0; i < EACH; i++) {
        const int item = WARP + i * WARPS;
#if NORM_Q || NORM_K
        float square = 0.0f;
        UNROLL
        for (int j = 0; j < MINE; j++) square = FMAF(mine[i][j], mine[i][j], square);
        square = WARP_SUM(square) / (float)D;
        if ((NORM_Q && item < GROUP) || (NORM_K && item == GROUP)) {
            const float inverse = 1.0f / SQRTF(square + (item < GROUP ? (float)EPSILON_Q : (float)EPSILON_K));
            UNROLL
            for (int j = 0; j < MINE; j++) mine[i][j] = Q_RND(mine[i][j] * inverse * GP_PASTE(GP_OF_, ROW_TYPE)((gp_u16)gain[i][j]));
        }
#endif
        float *to = item < GROUP ? query + item * D : fresh + (item == GROUP ? 0 : D);
        UNROLL
        for (int j = 0; j < MINE; j++)
            if (item < ITEMS) to[LANE + 32 * j] = mine[i][j];
    }
#if HALF
    SYNC();
    UNROLL
    for (int turn = 0; turn < TURNS; turn++) {
        const int i = LANE + 32 * turn;
        UNROLL_BY(1)
        for (int item = WARP; item <= GROUP && (HALF % 32 == 0 || i < HALF); item += WARPS) {
            float *row = item < GROUP ? query + item * D : fresh;
            const int x = INTERLEAVED ? 2 * i : i, y = INTERLEAVED ? 2 * i + 1 : i + HALF;
            const float u = row[x], w = row[y];
            const float first = u * cosine[turn] - w * sine[turn], second = u * sine[turn] + w * cosine[turn];
            row[x] = item < GROUP ? Q_RND(first) : first;
            row[y] = item < GROUP ? Q_RND(second) : second;
        }
    }
#endif
#if ROWED
    const int stores = RT_LD(RT_OFF + batch) != 0;
#else
    const int stores = 1;
#endif
    SYNC();
    if (stores && newest % SPLITS == split) { /* the same in the whole block */
        for (int d = TID; d < D; d += THREADS) {
            K_ST(K_AT(batch, head, past, d), fresh[d]);
            V_ST(V_AT(batch, head, past, d), fresh[D + d]);
        }
    }

    /* ---- the keys */
    const int mate = WARP % GROUP, part_of = WARP / GROUP; /* the query, and which of its warps */
    float top = -INF_F, mass = 0.0f, sum[MINE];
    UNROLL
    for (int j = 0; j < MINE; j++) sum[j] = 0.0f;
    UNROLL_BY(1)
    for (int chunk = split; chunk < chunks; chunk += SPLITS) {
        gp_u32 *const keys = TILE_OF(chunk), *const values = keys + KEYS * STEP;
        if (STAGES > 1 && chunk + SPLITS < chunks) {
            LOAD_KEYS(chunk + SPLITS);
            COPY_WAIT(1);
        } else COPY_WAIT(0);
        if (chunk == newest) { /* its row was left out */
            for (int d = TID; d < D; d += THREADS) {
                ((gp_u16 *)keys)[place * STEP * 2 + d] = GP_PASTE(GP_TO_, TYPE)(fresh[d]);
                ((gp_u16 *)values)[place * STEP * 2 + d] = GP_PASTE(GP_TO_, TYPE)(fresh[D + d]);
            }
        }
        SYNC();
        const int key = begin + chunk * KEYS + part_of * 32 + LANE;
        float score = 0.0f;
        UNROLL_BY(2)
        for (int run = 0; run < RUNS; run++) {
            float k[8];
            GP_PASTE(LDV_, TYPE)(keys, (part_of * 32 + LANE) * (2 * STEP) + run * 8, k);
            UNROLL
            for (int j = 0; j < 8; j++) score = FMAF(query[mate * D + run * 8 + j], k[j], score);
        }
        score *= (float)SCALE;
#if HAS_SOFTCAP
        score = (float)SOFTCAP * TANHF(score / (float)SOFTCAP);
#endif
        if (key >= last) score = -INF_F;
        const float high = FMAXF(top, WARP_MAX(score)); /* -INF: none of the warp's keys is there */
        const float fade = high == -INF_F ? 1.0f : EXPF(top - high), share = score == -INF_F ? 0.0f : EXPF(score - high);
        top = high;
        shares[TID] = share;
        mass = FMAF(mass, fade, WARP_SUM(share));
        SYNC_WARP();
        UNROLL
        for (int j = 0; j < MINE; j++) sum[j] *= fade;
        UNROLL_BY(4)
        for (int other = 0; other < 32; other++) {
            const float weight = shares[WARP * 32 + other];
            float v[MINE];
            UNROLL
            for (int j = 0; j < MINE; j += 2) GP_PASTE(GP_PAIR_, TYPE)(values[(part_of * 32 + other) * STEP + LANE + 32 * (j / 2)], v + j);
            UNROLL
            for (int j = 0; j < MINE; j++) sum[j] = FMAF(weight, v[j], sum[j]);
        }
        SYNC(); /* the tile, and the shares, are free */
        if (STAGES == 1 && chunk + SPLITS < chunks) LOAD_KEYS(chunk + SPLITS);
    }

#if SUB > 1 /* the tiles are free */
    float *const meet = (float *)tiles + WARP * (D + 2);
    meet[0] = top;
    meet[1] = mass;
    UNROLL
    for (int j = 0; j < MINE; j++) meet[2 + OWN(j)] = sum[j];
    SYNC();
    if (part_of == 0) {
        UNROLL
        for (int other = 1; other < SUB; other++) {
            const float *theirs = (const float *)tiles + (other * GROUP + mate) * (D + 2);
            const float high = FMAXF(top, theirs[0]), keep = EXPF(top - high), take = EXPF(theirs[0] - high);
            top = high; /* the first warp's is finite: a chunk begins with a key that is there */
            mass = mass * keep + theirs[1] * take;
            UNROLL
            for (int j = 0; j < MINE; j++) sum[j] = sum[j] * keep + theirs[2 + OWN(j)] * take;
        }
    }
#endif
    const int own = head * GROUP + mate;
#if SINK == 2
    const float sink = (float)SINKS_LD(SINKS_OFF + own * SINKS_S0);
#elif SINK
    const float sink = 0.0f;
#endif
    if (active == 1) {
        float keep = 1.0f;
#if SINK
        const float high = FMAXF(top, sink);
        keep = EXPF(top - high);
        mass = mass * keep + EXPF(sink - high);
#endif
        UNROLL
        for (int j = 0; j < MINE && part_of == 0; j++) Y_ST(Y_AT(batch, own, 0, ELEMENT(j)), sum[j] * keep / mass);
        return;
    }
    if (part_of == 0) {
        UNROLL
        for (int j = 0; j < MINE; j++) PART_ST(PART_AT(batch, head, split, mate, OWN(j)), sum[j]);
        if (LANE == 0) {
            STATS_ST(STATS_AT(batch, head, split, mate, 0), top);
            STATS_ST(STATS_AT(batch, head, split, mate, 1), mass);
        }
    }

    /* ---- the last block of a head merges: again a warp a query */
    SYNC();
    if (TID == 0) order[0] = (int)TICKET(TICKETS + TICKETS_OFF + batch * TICKETS_S0 + head);
    SYNC();
    if (order[0] != active - 1 || part_of > 0) return;
    if (TID == 0) TICKETS_ST(TICKETS_OFF + batch * TICKETS_S0 + head, 0); /* for the next launch */
    top = -INF_F;
    mass = 0.0f;
#if SINK
    top = sink;
    mass = 1.0f;
#endif
    UNROLL
    for (int j = 0; j < MINE; j++) sum[j] = 0.0f;
    UNROLL_BY(1)
    for (int from = 0; from < active; from += MERGED) {
        float peak[MERGED], weight[MERGED], part[MERGED][MINE], high = top;
        UNROLL
        for (int s = 0; s < MERGED; s++) { /* all loads first */
            const int other = MIN(from + s, active - 1);
            peak[s] = STATS_LD(STATS_AT(batch, head, other, mate, 0));
            weight[s] = STATS_LD(STATS_AT(batch, head, other, mate, 1));
            UNROLL
            for (int j = 0; j < MINE; j++) part[s][j] = PART_LD(PART_AT(batch, head, other, mate, OWN(j)));
        }
        UNROLL
        for (int s = 0; s < MERGED; s++) high = FMAXF(high, peak[s]);
        const float fade = EXPF(top - high);
        top = high;
        mass *= fade;
        UNROLL
        for (int j = 0; j < MINE; j++) sum[j] *= fade;
        UNROLL
        for (int s = 0; s < MERGED; s++) {
            const float share = from + s < active ? EXPF(peak[s] - high) : 0.0f;
            mass = FMAF(share, weight[s], mass);
            UNROLL
            for (int j = 0; j < MINE; j++) sum[j] = FMAF(share, part[s][j], sum[j]);
        }
    }
    UNROLL
    for (int j = 0; j < MINE; j++) Y_ST(Y_AT(batch, own, 0, ELEMENT(j)), sum[j] / mass);
}
