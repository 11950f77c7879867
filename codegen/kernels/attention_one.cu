/* attention_one: GroupQueryAttention of one new row a sequence, whole: the head norm and rotation of query and key, the append to the
 * caches, and the attention of the GROUP query heads that share a key head, in one launch.
 *
 * SPLITS blocks share the keys of a key head, a block more for each SHARE keys. A warp has SLICE keys at a time, in turn, for all GROUP queries,
 * in shared memory of its own: the first before all else, the next ones' keys as soon as the scores are done, values behind them. So each key
 * is read once, and warps meet only when they are through. Softmax online. The blocks of a cluster, CLUSTER of them, meet in each other's shared memory, each to
 * merge its own elements of the heads; one cluster has all keys up to ROUNDS times its share. Where several clusters (or, without, blocks) had keys, the last
 * block to arrive, which TICKETS tells, merges what they left in PART. All in the order of the splits: results do not depend on the order of arrival.
 * CORES: on tensor cores. Scores are query heads x keys, the rows behind GROUP repeat its last: a lane ends with keys of one head, just as the
 * product of the values (V^T x shares, element x head) wants them. A share goes into it as two halves whose sum it is, to 16 bits at
 * least; sums are floats. Otherwise a lane has a key, then D / 32 elements, in floats. Scores are logarithms to base 2.
 *   Q [B, Hq, 1, D], KN VN [B, H, 1, D]   the new row, of ROW_TYPE           K V   the caches, of TYPE, appended at LEN (a sequence's total less one)
 *   Y_RUNS          Y lies in vectors, of ROW_TYPE
 *   ALIKE           ROW_TYPE is TYPE: the query is exact as an operand beside keys
 *   NORM_Q NORM_K   with weights QW, KW, constants of ROW_TYPE, and EPSILON_Q, EPSILON_K; rounded to ROW_TYPE
 *   HALF            rotated pairs, 0 none; COS SIN, by row TURN_AT; INTERLEAVED
 *   WINDOW > 0      only so many last keys        SINK 1: a key with score 0 and no value; 2: its score is SINKS[head]
 *   CLUSTER         1: none; else it divides SPLITS, and all targets have clusters
 *   CAPACITY        rows of the caches; the clamp keeps a wrong length inside them       ROWED: nothing is appended for a row that rests
 *   EARLY           the length is a word that only the end of a step writes, and so are the old rows: both are read before the kernel
 *                   waits for those before it; TURN_EARLY: so is the turn of that length, from tables that are constants */
#define THREADS KERNEL_BLOCK
#define CREW (THREADS / 32)
#define LOG2E 1.44269504088896f
#define RUNS (D / 8) /* of 16 bytes in a row */
/* The word where a run of a row begins; runs are exchanged by the row's number, so that eight rows' lie in different banks. */
#define RUN_AT(row, run) (((row) * RUNS + ((run) ^ ((row) & 7))) * 4)
#define SLOT (SLICE * D)        /* words of a slice: its keys, then its values */
#define ITEMS (GROUP + 2)       /* heads of the new row: queries, key, value */
#define EACH ((ITEMS + CREW - 1) / CREW)
#define MINE (D / 32)           /* elements of a head that a lane has */
#define TURNS ((HALF + 31) / 32)
#define IN_LANE (HALF % 32 == 0 && !INTERLEAVED) /* both elements of a pair */
#define HEAD_STEP (D + 4)       /* from head to head of sums; behind them their highest score and the sum of shares, as if that were 1 */
#define MERGED 8                /* parts that are fetched at once */
#define QUADS (GROUP * D / 4)   /* of elements of the heads */
#define TEAM (!TENSOR ? 1 : 4 * QUADS <= THREADS ? 4 : 2 * QUADS <= THREADS ? 2 : 1) /* threads that share a quad when warps meet, eight lanes apart */
#if TENSOR
#define POWER(v) gp_exp2(v)
#else
#define POWER(v) exp2f(v)
#endif
#if TENSOR && ALIKE
#define CORES 1
/* Shares of up to 2 to the LIFT: of a half's few exponents, more lie below 1 than above. */
#define LIFT_F16 12.0f
#define LIFT_BF16 0.0f
#else
#define CORES 0
#endif
/* The old keys (X K) or values of a slice, if it is one, on their way, a group of copies; zeros in place of the new row and behind it. */
#define LOAD_SLICE(X, to, old, slice) \
    do { \
        if ((slice) < slices) { \
            const int from = (slice) * SLICE, left = past - begin - from; \
            int lane = LANE; \
            READY4(lane); /* so that all the rest stays behind the condition */ \
            UNROLL_BY(4) \
            for (int c = 0; c < SLICE * RUNS / 32; c++) { \
                const int row = lane / RUNS + c * (32 / RUNS), run = lane % RUNS; \
                COPY16((to) + RUN_AT(row, run), (old) + (idx)(from + row) * X##_S2 + run * 8, row < left); \
            } \
        } \
        COPY_END(); \
    } while (0)
/* They have come, with the new row's, ITEM, at their end. */
#define ARRIVE_SLICE(to, item) \
    do { \
        COPY_WAIT(1); \
        SYNC_WARP(); \
        if (slice == slices - 1) { \
            if (LANE < RUNS) { \
                gp_u32 words[4]; \
                LD_RUN(lines + RUN_AT(item, LANE), words); \
                UNROLL \
                for (int j = 0; j < 4; j++) (to)[RUN_AT(left - 1, LANE) + j] = words[j]; \
            } \
            SYNC_WARP(); \
        } \
    } while (0)
/* The new row: a warp a head. All loads come before the first use of one: a round trip, not MINE. */
#define LOAD_MINE \
    gp_u16 raw[EACH][MINE]; \
    UNROLL \
    for (int i = 0; i < EACH; i++) { \
        const int item = WARP + i * CREW; \
        const idx step = item < GROUP ? Q_S3 : item == GROUP ? KN_S3 : VN_S3; \
        UNROLL \
        for (int j = 0; j < MINE; j++) raw[i][j] = fresh[i][32 * j * step]; \
    }
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
/* A pair. */
#define TURN(u, w, turn) \
    do { \
        const float gp_u = (u), gp_w = (w); \
        (u) = gp_u * cosine[turn] - gp_w * sine[turn]; \
        (w) = gp_u * sine[turn] + gp_w * cosine[turn]; \
    } while (0)
#if SINK == 2
#define SINK_SCORE ((float)SINKS_LD(SINKS_OFF + own * SINKS_S0) * LOG2E)
#else
#define SINK_SCORE 0.0f
#endif
/* The result's elements; a sink counts here, once. */
#define FINISH \
    do { \
        const int own = head * GROUP + m; \
        float keep = 1.0f; \
        if (SINK) { \
            const float sink = SINK_SCORE, best = FMAXF(high, sink); \
            keep = POWER(high - best); \
            whole = FMAF(whole, keep, POWER(sink - best)); \
        } \
        keep = gp_ratiof(keep, whole); \
        UNROLL \
        for (int j = 0; j < 4; j++) sum[j] *= keep; \
        if (Y_RUNS) GP_PASTE(STQ_, ROW_TYPE)(Y, Y_AT(batch, own, 0, d), sum); \
        else { \
            UNROLL \
            for (int j = 0; j < 4; j++) Y_ST(Y_AT(batch, own, 0, d + j), sum[j]); \
        } \
    } while (0)
/* A thread's four elements of a head, and what parts they have: COUNT at most, of which LEFT are there, one at least, STEP floats apart, their sums
 * and their highest score with the sum of shares; all loads come first. */
#define ELEMENTS(quad) \
    const int m = (quad) / (D / 4), d = (quad) % (D / 4) * 4; \
    float high = -INF_F, whole = 0.0f, sum[4] = {0.0f, 0.0f, 0.0f, 0.0f}
#define ADD_PARTS(load, count, sums_at, stats_at, step, left) \
    do { \
        gp_u32 part[count][4], stats[count][4]; \
        float best = high; \
        UNROLL \
        for (int s = 0; s < (count); s++) { \
            const int row = MIN(s, (left) - 1) * (step); \
            load((sums_at) + row, part[s]); \
            load((stats_at) + row, stats[s]); \
        } \
        UNROLL \
        for (int s = 0; s < (count); s++) best = FMAXF(best, gp_float_of(stats[s][0])); \
        const float fade = POWER(high - best); \
        high = best; \
        whole *= fade; \
        UNROLL \
        for (int j = 0; j < 4; j++) sum[j] *= fade; \
        UNROLL \
        for (int s = 0; s < (count); s++) { \
            const float keep = s < (left) ? POWER(gp_float_of(stats[s][0]) - best) : 0.0f; \
            whole = FMAF(keep, gp_float_of(stats[s][1]), whole); \
            UNROLL \
            for (int j = 0; j < 4; j++) sum[j] = FMAF(keep, gp_float_of(part[s][j]), sum[j]); \
        } \
    } while (0)
/* What the threads of a team have, together; some may have nothing yet. */
#define JOIN_TEAM \
    do { \
        UNROLL \
        for (int other = 8; other < 8 * TEAM; other *= 2) { \
            const float theirs = SHUFFLE_F(high, LANE ^ other), best = FMAXF(high, theirs), base = best == -INF_F ? 0.0f : best; \
            const float mine = POWER(high - base), keep = POWER(theirs - base); \
            high = best; \
            whole = FMAF(whole, mine, keep * SHUFFLE_F(whole, LANE ^ other)); \
            UNROLL \
            for (int j = 0; j < 4; j++) sum[j] = FMAF(sum[j], mine, keep * SHUFFLE_F(sum[j], LANE ^ other)); \
        } \
    } while (0)
#if EARLY
#define BEGIN LOAD_WORDS
#define LATE_WAIT GP_WAIT
#else
#define BEGIN EXTENTS
#define LATE_WAIT
#endif
#if CLUSTER > 1
KERNEL_CLUSTER(KERNEL_BLOCK, CLUSTER)
#else
KERNEL(KERNEL_BLOCK)
#endif
{
#if CLUSTER > 1
    CLUSTER_ARRIVE();
#endif
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
        const idx step = WARP + i * CREW < GROUP ? QW_S0 : KW_S0;
        const gp_u16 *const from = WARP + i * CREW < GROUP ? (const gp_u16 *)QW + QW_OFF : (const gp_u16 *)KW + KW_OFF;
#endif
        UNROLL
        for (int j = 0; j < MINE; j++) LD_CONSTANT2(from + (LANE + 32 * j) * step, gain[i][j]);
    }
#endif
    BEGIN
    SHARED(gp_u32, lines, ITEMS * D / 2); /* the new row: queries, of ROW_TYPE, key and value, of TYPE */
    SHARED(int, order, 1);
    SHARED_MORE(gp_u32, tiles, WARPS * SLOT);
#if HALF && !IN_LANE
    SHARED(float, turned, CREW * 2 * HALF);
#endif
#if !CORES
    SHARED(float, query, GROUP * D);
    SHARED(float, shares, WARPS * GROUP * (SLICE + 1)); /* of a slice; the last is by what older ones fade */
#endif
    const int split = BID_X, head = BID_Y, batch = BID_Z;
    if (batch >= Q_D0) {
        LATE_WAIT
        return;
    }

    /* Where the lane's elements of the new row come from, and go. */
    const gp_u16 *fresh[EACH];
    int line_at[EACH][2]; /* of the lane's even and odd elements: 64 halves on it is the same */
    UNROLL
    for (int i = 0; i < EACH; i++) {
        const int item = WARP + i * CREW, h = item < GROUP ? head * GROUP + item : head;
        fresh[i] = item < GROUP ? (const gp_u16 *)Q + Q_AT(batch, h, 0, LANE) : item == GROUP ? (const gp_u16 *)KN + KN_AT(batch, h, 0, LANE) : (const gp_u16 *)VN + VN_AT(batch, h, 0, LANE);
        line_at[i][0] = RUN_AT(item, LANE / 8) * 2 + LANE % 8;
        line_at[i][1] = RUN_AT(item, 4 + LANE / 8) * 2 + LANE % 8;
        READY8(fresh[i]);
        READY4(line_at[i][0]);
        READY4(line_at[i][1]);
    }

    /* What is read here comes in few round trips: first the length and the new row, then, at once, all that the length places. */
    const idx length = (idx)LEN_LD(LEN_OFF + batch * LEN_S0);
#if !EARLY
    LOAD_MINE
#endif
    const int past = (int)MAX(MIN(length, (idx)(CAPACITY) - 1), 0), last = past + 1;
#if WINDOW > 0
    const int begin = MAX(last - WINDOW, 0);
#else
    const int begin = 0;
#endif
    const int slices = (last - begin + SLICE - 1) / SLICE, wanted = (last - begin + SHARE - 1) / SHARE;
    /* Of a cluster all blocks take part, though some have no keys, when those are few. */
    const int active = MIN(CLUSTER == 1 ? wanted : wanted <= ROUNDS * CLUSTER ? CLUSTER : (wanted + CLUSTER - 1) / CLUSTER * CLUSTER, SPLITS);
    if (split >= active) return; /* those that have work wait: enough for the launch to end behind all before it */
    const K_T *const old_keys = K + K_AT(batch, head, begin, 0);
    const V_T *const old_values = V + V_AT(batch, head, begin, 0);
    gp_u32 *const keys = tiles + WARP * SLOT, *const values = keys + SLOT / 2;
    const int first = WARP < WARPS ? split + active * WARP : slices, pace = active * WARPS; /* the warp's slices */
    int newest = (slices - 1) % active == split; /* the block has the new row's */
    int with_keys = MIN((slices - split + active - 1) / active, WARPS); /* warps */
    READY4(newest);
    READY4(with_keys);
    LOAD_SLICE(K, keys, old_keys, first);
    LOAD_SLICE(V, values, old_values, first);
#if HALF && TURN_EARLY
    LOAD_TURN
#endif
#if CLUSTER > 1
    CLUSTER_WAIT(); /* all have begun */
#endif
    LATE_WAIT
#if EARLY
    LOAD_MINE
#endif
#if HALF && !TURN_EARLY
    LOAD_TURN
#endif
#if ROWED
    const int stores = RT_LD(RT_OFF + batch) != 0;
#else
    const int stores = 1;
#endif

#if CORES /* the lane's rows of matrices, for the first eight runs: eight runs on it is the same; while the new row is on its way */
    const int g = LANE / 4, t = LANE % 4, lo = LANE % 8;
    int q_at[4], k_at[2], v_at[4];
    UNROLL
    for (int j = 0; j < 4; j++) {
        q_at[j] = RUN_AT(MIN(lo, GROUP - 1), 2 * j + LANE / 16);
        v_at[j] = RUN_AT(LANE / 16 * 8 + lo, 2 * j + LANE / 8 % 2);
        READY4(q_at[j]);
        READY4(v_at[j]);
    }
    UNROLL
    for (int j = 0; j < 2; j++) {
        k_at[j] = RUN_AT(lo, 4 * j + LANE / 8);
        READY4(k_at[j]);
    }
#endif

    /* ---- the new row: a warp a head */
    UNROLL
    for (int i = 0; i < EACH; i++) {
        const int item = WARP + i * CREW;
        float mine[MINE];
        UNROLL
        for (int j = 0; j < MINE; j++) mine[j] = GP_PASTE(GP_OF_, ROW_TYPE)(raw[i][j]);
#if NORM_Q || NORM_K
        float square = 0.0f;
        UNROLL
        for (int j = 0; j < MINE; j++) square = FMAF(mine[j], mine[j], square);
        square = WARP_SUM(square) / (float)D;
        if ((NORM_Q && item < GROUP) || (NORM_K && item == GROUP)) {
            const float inverse = gp_inverse_root(square + (item < GROUP ? (float)EPSILON_Q : (float)EPSILON_K));
            UNROLL
            for (int j = 0; j < MINE; j++) mine[j] = Q_RND(mine[j] * inverse * GP_PASTE(GP_OF_, ROW_TYPE)((gp_u16)gain[i][j]));
        }
#endif
#if HALF && IN_LANE
        UNROLL
        for (int turn = 0; turn < TURNS && item <= GROUP; turn++) TURN(mine[turn], mine[turn + TURNS], turn);
#elif HALF
        float *const pairs = turned + WARP * 2 * HALF;
        UNROLL
        for (int j = 0; j < MINE; j++)
            if (LANE + 32 * j < 2 * HALF) pairs[LANE + 32 * j] = mine[j];
        SYNC_WARP();
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int at = LANE + 32 * turn, x = INTERLEAVED ? 2 * at : at, y = INTERLEAVED ? 2 * at + 1 : at + HALF;
            if (item <= GROUP && at < HALF) TURN(pairs[x], pairs[y], turn);
        }
        SYNC_WARP();
        UNROLL
        for (int j = 0; j < MINE; j++)
            if (LANE + 32 * j < 2 * HALF) mine[j] = pairs[LANE + 32 * j];
#endif
        UNROLL
        for (int j = 0; j < MINE && item < ITEMS; j++) {
            ((gp_u16 *)lines)[line_at[i][j % 2] + j / 2 * 64] = item < GROUP ? GP_PASTE(GP_TO_, ROW_TYPE)(mine[j]) : GP_PASTE(GP_TO_, TYPE)(mine[j]);
#if !CORES
            if (item < GROUP) query[item * D + LANE + 32 * j] = Q_RND(mine[j]);
#endif
        }
    }
    SYNC();

    /* ---- the keys */
    float *const meet = (float *)keys; /* where the warp's sums go when its slices are through */
#if CORES
    float top = -INF_F, mass = 0.0f, sum[D / 16][4]; /* of head g, and this lane's keys; sums of heads 2 * t and the next */
    UNROLL
    for (int j = 0; j < D / 16; j++) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0.0f;
#else
    float top = -INF_F, mass = 0.0f, sum[GROUP][MINE]; /* of head LANE; sums of the lane's elements */
    UNROLL
    for (int m = 0; m < GROUP; m++)
        UNROLL
        for (int j = 0; j < MINE; j++) sum[m][j] = 0.0f;
#endif
    UNROLL_BY(1)
    for (int slice = first; slice < slices; slice += pace) {
        const int left = last - begin - slice * SLICE; /* keys from the slice's first on */
        ARRIVE_SLICE(keys, GROUP);
#if HAS_SOFTCAP
#define SCORE(v) ((float)SOFTCAP * LOG2E * TANHF((v) * (float)SCALE / (float)SOFTCAP))
#else
#define SCORE(v) ((v) * ((float)SCALE * LOG2E))
#endif
#if CORES
        float part[SLICE / 8][2][4], share[SLICE / 8][2], most = -INF_F; /* two sums, so that half as many products wait for each other */
        UNROLL
        for (int n = 0; n < SLICE / 8; n++)
            UNROLL
            for (int e = 0; e < 4; e++) part[n][0][e] = part[n][1][e] = 0.0f;
        UNROLL
        for (int d = 0; d < D / 32; d++) {
            gp_u32 a[2][4], b[4];
            LOAD_MATRICES(a[0], lines + q_at[d % 2 * 2] + d / 2 * 32);
            LOAD_MATRICES(a[1], lines + q_at[d % 2 * 2 + 1] + d / 2 * 32);
            UNROLL
            for (int n = 0; n < SLICE / 8; n++) {
                LOAD_MATRICES(b, keys + k_at[d % 2] + d / 2 * 32 + n * 4 * D);
                GP_PASTE(MMA_, TYPE)(part[n][0], a[0], b);
                GP_PASTE(MMA_, TYPE)(part[n][1], a[1], b + 2);
            }
        }
        SYNC_WARP(); /* the keys are done with */
        LOAD_SLICE(K, keys, old_keys, slice + pace);
        UNROLL
        for (int n = 0; n < SLICE / 8; n++) {
            UNROLL
            for (int e = 0; e < 2; e++) {
                share[n][e] = 8 * n + 2 * t + e < left ? SCORE(part[n][0][e] + part[n][1][e]) : -INF_F;
                most = FMAXF(most, share[n][e]);
            }
        }
        most = FMAXF(most, SHUFFLE_F(most, LANE ^ 1));
        most = FMAXF(most, SHUFFLE_F(most, LANE ^ 2));
        const float high = FMAXF(top, most - GP_PASTE(LIFT_, TYPE)), base = high == -INF_F ? 0.0f : high, fade = POWER(top - base);
        const float fades[2] = {SHUFFLE_F(fade, 8 * t), SHUFFLE_F(fade, 8 * t + 4)};
        top = high;
        mass *= fade;
        gp_u32 upper[SLICE / 8], lower[SLICE / 8];
        UNROLL
        for (int n = 0; n < SLICE / 8; n++) {
            float rounded[2];
            UNROLL
            for (int e = 0; e < 2; e++) {
                share[n][e] = POWER(share[n][e] - base);
                mass += share[n][e];
            }
            upper[n] = GP_PASTE(PACK2_, TYPE)(share[n][0], share[n][1]);
            GP_PASTE(GP_PAIR_, TYPE)(upper[n], rounded);
            lower[n] = GP_PASTE(PACK2_, TYPE)(share[n][0] - rounded[0], share[n][1] - rounded[1]);
        }
        UNROLL
        for (int j = 0; j < D / 16; j++) {
            UNROLL
            for (int e = 0; e < 4; e++) sum[j][e] *= fades[e % 2];
        }
        ARRIVE_SLICE(values, GROUP + 1);
        UNROLL
        for (int k = 0; k < SLICE / 16; k++) {
            UNROLL
            for (int j = 0; j < D / 16; j++) {
                gp_u32 a[4];
                LOAD_TRANSPOSED(a, values + v_at[j % 4] + j / 4 * 32 + k * 8 * D);
                GP_PASTE(MMA_, TYPE)(sum[j], a, upper + 2 * k);
                GP_PASTE(MMA_, TYPE)(sum[j], a, lower + 2 * k);
            }
        }
#else
        float *const by_head = shares + WARP * GROUP * (SLICE + 1);
        const int key = LANE % SLICE;
        for (int m = LANE / SLICE; m < GROUP; m += 32 / SLICE) {
            gp_acc dot = gp_acc_zero();
            for (int run = 0; run < RUNS; run++) {
                float k[8];
                GP_PASTE(LDV_, TYPE)(keys, RUN_AT(key, run) * 2, k);
                dot = gp_mac(dot, query + m * D + run * 8, k, 8);
            }
            by_head[m * (SLICE + 1) + key] = key < left ? SCORE(gp_acc_total(dot)) : -INF_F;
        }
        SYNC_WARP(); /* the keys are done with */
        LOAD_SLICE(K, keys, old_keys, slice + pace);
        if (LANE < GROUP) {
            float *const own = by_head + LANE * (SLICE + 1), high = top;
            for (int k = 0; k < SLICE; k++) high = FMAXF(high, own[k]);
            const float base = high == -INF_F ? 0.0f : high;
            own[SLICE] = POWER(top - base);
            mass *= own[SLICE];
            for (int k = 0; k < SLICE; k++) mass += own[k] = POWER(own[k] - base);
            top = high;
        }
        ARRIVE_SLICE(values, GROUP + 1);
        UNROLL
        for (int m = 0; m < GROUP; m++)
            UNROLL
            for (int j = 0; j < MINE; j++) sum[m][j] *= by_head[m * (SLICE + 1) + SLICE];
        UNROLL_BY(1)
        for (int k = 0; k < MIN(SLICE, left); k++) {
            float v[MINE];
            UNROLL
            for (int j = 0; j < MINE; j += 2) GP_PASTE(GP_PAIR_, TYPE)(values[RUN_AT(k, LANE * MINE / 8) + (LANE * MINE % 8 + j) / 2], v + j);
            UNROLL
            for (int m = 0; m < GROUP; m++)
                UNROLL
                for (int j = 0; j < MINE; j++) sum[m][j] = FMAF(by_head[m * (SLICE + 1) + k], v[j], sum[m][j]);
        }
#endif
        SYNC_WARP(); /* so are the values */
        LOAD_SLICE(V, values, old_values, slice + pace);
    }
#if CORES
    mass += SHUFFLE_F(mass, LANE ^ 1);
    mass += SHUFFLE_F(mass, LANE ^ 2);
    if (WARP < WARPS) {
        if (t == 0 && g < GROUP) {
            meet[g * HEAD_STEP + D] = top;
            meet[g * HEAD_STEP + D + 1] = mass;
        }
        UNROLL
        for (int e = 0; e < 4; e++) {
            float *const to = meet + (2 * t + e % 2) * HEAD_STEP + e / 2 * 8 + g;
            if (2 * t + e % 2 < GROUP) {
                UNROLL
                for (int j = 0; j < D / 16; j++) to[16 * j] = sum[j][e];
            }
        }
    }
#else
    if (WARP < WARPS) {
        if (LANE < GROUP) {
            meet[LANE * HEAD_STEP + D] = top;
            meet[LANE * HEAD_STEP + D + 1] = mass;
        }
        UNROLL
        for (int m = 0; m < GROUP; m++)
            UNROLL
            for (int j = 0; j < MINE; j++) meet[m * HEAD_STEP + LANE * MINE + j] = sum[m][j];
    }
#endif
    SYNC();
    if (stores && newest && TID >= THREADS - 2 * RUNS) { /* here, where few threads have work */
        const int item = (THREADS - 1 - TID) / RUNS, run = TID % RUNS;
        gp_u32 words[4];
        LD_RUN(lines + RUN_AT(GROUP + item, run), words);
        ST_RUN(item == 0 ? (void *)(K + K_AT(batch, head, past, run * 8)) : (void *)(V + V_AT(batch, head, past, run * 8)), words);
    }

    /* ---- the warps meet, then the blocks of a cluster */
    const int clusters = active / CLUSTER, cluster = split / CLUSTER;
    float *const parts = PART + PART_AT(batch, head, 0, 0, 0);
#define LEAVE_PART \
    do { \
        STV_F32(parts, (cluster * GROUP + m) * HEAD_STEP + d, sum); \
        if (d == 0) { \
            const float stats[4] = {high, whole, 0.0f, 0.0f}; \
            STV_F32(parts, (cluster * GROUP + m) * HEAD_STEP + D, stats); \
        } \
    } while (0)
#if CLUSTER > 1
#define OWN ((QUADS + CLUSTER - 1) / CLUSTER) /* quads that a block of the cluster merges */
    SHARED(float, met, OWN * CLUSTER * 8);    /* of each, by block: sums, their highest score, the sum of shares */
    const int rank = split % CLUSTER;
#endif
    UNROLL_BY(1)
    for (int item = TID; item < QUADS * TEAM; item += THREADS) {
        const int member = item / 8 % TEAM, quad = item / (8 * TEAM) * 8 + item % 8, left = (with_keys - member + TEAM - 1) / TEAM;
        ELEMENTS(quad);
        const float *const from = (const float *)tiles + m * HEAD_STEP + member * SLOT;
        if (left > 0) ADD_PARTS(LD_RUN, (WARPS + TEAM - 1) / TEAM, from + d, from + D, TEAM * SLOT, left);
        JOIN_TEAM;
        if (member) continue;
#if CLUSTER > 1
        float *const to = met + (rank * OWN + quad % OWN) * 8;
        const float stats[4] = {high, whole, 0.0f, 0.0f};
        CLUSTER_PUT4(to, quad / OWN, sum);
        CLUSTER_PUT4(to + 4, quad / OWN, stats);
    }
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
    UNROLL_BY(1)
    for (int quad = rank * OWN + TID; quad < MIN((rank + 1) * OWN, QUADS); quad += THREADS) {
        ELEMENTS(quad);
        const float *const from = met + (quad - rank * OWN) * 8;
        UNROLL_BY(1)
        for (int b = 0; b < CLUSTER; b += MERGED)
            ADD_PARTS(LD_RUN, MIN(CLUSTER, MERGED), from + b * OWN * 8, from + b * OWN * 8 + 4, OWN * 8, CLUSTER - b);
#endif
        if (clusters == 1) FINISH;
        else LEAVE_PART;
    }
    if (clusters == 1) return;

    /* ---- the last block of a head merges */
    SYNC();
    if (TID == 0) order[0] = (int)TICKET(TICKETS + TICKETS_OFF + batch * TICKETS_S0 + head);
    SYNC();
    if (order[0] != active - 1) return;
    if (TID == 0) TICKETS_ST(TICKETS_OFF + batch * TICKETS_S0 + head, 0); /* for the next launch */
    UNROLL_BY(1)
    for (int quad = TID; quad < QUADS; quad += THREADS) {
        ELEMENTS(quad);
        UNROLL_BY(1)
        for (int b = 0; b < clusters; b += MERGED) {
            const float *const from = parts + (b * GROUP + m) * HEAD_STEP;
            ADD_PARTS(LD_WRITTEN, MERGED, from + d, from + D, GROUP * HEAD_STEP, clusters - b);
        }
        FINISH;
    }
}
