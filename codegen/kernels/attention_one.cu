/* attention_one: GroupQueryAttention of one new row a sequence, whole: the head norm and rotation of query and key, the append to the
 * caches, and the attention of the GROUP query heads that share a key head, in one launch.
 *
 * SPLITS blocks share the keys of a key head, CHUNK after CHUNK in turn. D / 8 lanes share a key; each has 8 elements of the head, for
 * all GROUP queries. A lane keeps a maximum, a sum and an accumulator a query (online softmax); they meet in the warp, in the block,
 * and, where several blocks had keys, in the last of these to arrive, which TICKETS tells: it merges what they left in STATS
 * and PART, in the order of the splits. So results do not depend on the order of arrival. All in float.
 *   Q [B, Hq, 1, D], KN VN [B, H, 1, D]   the new row           K V   the caches, appended at LEN (a sequence's total less one)
 *   NORM_Q NORM_K   with weights QW, KW and EPSILON_Q, EPSILON_K; rounded to the type of Q
 *   HALF            rotated pairs, 0 none; COS SIN; POSITIONS, INTERLEAVED
 *   WINDOW > 0      only so many last keys        SINK 1: a key with score 0 and no value; 2: its score is SINKS[head]
 *   CAPACITY        rows of the caches; the clamp keeps a wrong length inside them       ROWED: nothing is appended for a row that rests */
#define LANES (D / 8)
#define KEYS (32 / LANES) /* of a warp at a time */
#define WARPS (KERNEL_BLOCK / 32)
#define UNROLLED (CHUNK / (KEYS * WARPS))
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(float, query, GROUP * D);
    SHARED(float, fresh, 2 * D); /* the new key and value */
    SHARED(float, peaks, WARPS * GROUP);
    SHARED(float, masses, WARPS * GROUP);
    SHARED(float, parts, WARPS * GROUP * D);
    SHARED(int, order, 1);
    const idx split = BID_X, head = BID_Y, batch = BID_Z;
    if (batch >= Q_D0) return;
    const idx past = MAX(MIN((idx)LEN_LD(LEN_OFF + batch * LEN_S0), (idx)(CAPACITY) - 1), 0);
    const idx last = past + 1;
#if WINDOW > 0
    const idx begin = MAX(last - WINDOW, 0);
#else
    const idx begin = 0;
#endif
    const idx chunks = (last - begin + CHUNK - 1) / CHUNK;
    const int active = (int)MIN(chunks, (idx)SPLITS);
    if (split >= active) return;
    const int owner = (chunks - 1) % SPLITS == split; /* of the chunk with the new row */
#if ROWED
    const int stores = owner && RT_LD(RT_OFF + batch);
#else
    const int stores = owner;
#endif

    /* ---- the new row: a warp a head */
#if HALF
#if POSITIONS
    const idx position = (idx)POS_LD(POS_AT(batch, 0));
#else
    const idx position = past;
#endif
    const int inside = position >= 0 && position < COS_D0; /* a position without a row in the tables: not rotated */
#endif
    for (int item = WARP; item < GROUP + 2; item += WARPS) {
        const int is_key = item == GROUP, is_value = item == GROUP + 1;
        const idx h = item < GROUP ? head * GROUP + item : head;
        float mine[(D + 31) / 32];
        UNROLL
        for (int j = 0; j < (D + 31) / 32; j++) {
            const int d = MIN(LANE + 32 * j, D - 1);
            mine[j] = D % 32 && LANE + 32 * j >= D ? 0.0f : is_value ? (float)VN_LD(VN_AT(batch, h, 0, d)) : is_key ? (float)KN_LD(KN_AT(batch, h, 0, d)) : (float)Q_LD(Q_AT(batch, h, 0, d));
        }
#if NORM_Q || NORM_K
        float square = 0.0f;
        UNROLL
        for (int j = 0; j < (D + 31) / 32; j++) square = FMAF(mine[j], mine[j], square);
        square = WARP_SUM(square) / (float)D;
#if NORM_Q
        if (item < GROUP) {
            const float inverse = 1.0f / SQRTF(square + (float)EPSILON_Q);
            for (int j = 0; j < (D + 31) / 32; j++) mine[j] = Q_RND(mine[j] * inverse * (float)QW_LD(QW_OFF + MIN(LANE + 32 * j, D - 1) * QW_S0));
        }
#endif
#if NORM_K
        if (is_key) {
            const float inverse = 1.0f / SQRTF(square + (float)EPSILON_K);
            for (int j = 0; j < (D + 31) / 32; j++) mine[j] = Q_RND(mine[j] * inverse * (float)KW_LD(KW_OFF + MIN(LANE + 32 * j, D - 1) * KW_S0));
        }
#endif
#endif
        float *to = item < GROUP ? query + item * D : fresh + (is_value ? D : 0);
        UNROLL
        for (int j = 0; j < (D + 31) / 32; j++)
            if (D % 32 == 0 || LANE + 32 * j < D) to[LANE + 32 * j] = mine[j];
    }
    SYNC();
#if HALF
    for (int pair = TID; pair < (GROUP + 1) * HALF; pair += KERNEL_BLOCK) {
        const int item = pair / HALF, i = pair % HALF;
        float *row = item < GROUP ? query + item * D : fresh;
        const int x = INTERLEAVED ? 2 * i : i, y = INTERLEAVED ? 2 * i + 1 : i + HALF;
        const float u = row[x], v = row[y];
        const float cosine = inside ? (float)COS_LD(COS_AT(position, i)) : 1.0f;
        const float sine = inside ? (float)SIN_LD(SIN_AT(position, i)) : 0.0f;
        const float first = u * cosine - v * sine, second = u * sine + v * cosine;
        row[x] = item < GROUP ? Q_RND(first) : first;
        row[y] = item < GROUP ? Q_RND(second) : second;
    }
    SYNC();
#endif
    for (int d = TID; d < 2 * D; d += KERNEL_BLOCK) {
        const float v = d < D ? (float)K_RND(fresh[d]) : (float)V_RND(fresh[d]);
        fresh[d] = v;
        if (stores && d < D) K_ST(K_AT(batch, head, past, d), v);
        if (stores && d >= D) V_ST(V_AT(batch, head, past, d - D), v);
    }
    SYNC();

    /* ---- the keys */
    const int slice = LANE % LANES * 8;
    float q[GROUP][8], sum[GROUP][8], top[GROUP], mass[GROUP];
    UNROLL
    for (int g = 0; g < GROUP; g++) {
        UNROLL
        for (int j = 0; j < 8; j++) {
            q[g][j] = query[g * D + slice + j] * (float)SCALE;
            sum[g][j] = 0.0f;
        }
        top[g] = -INF_F;
        mass[g] = 0.0f;
    }
    UNROLL_BY(1)
    for (idx chunk = split; chunk < chunks; chunk += SPLITS) {
        float k[UNROLLED][8], v[UNROLLED][8];
        UNROLL
        for (int u = 0; u < UNROLLED; u++) { /* all loads first */
            const idx key = begin + chunk * CHUNK + (u * WARPS + WARP) * KEYS + LANE / LANES;
            UNROLL
            for (int j = 0; j < 8; j++) k[u][j] = v[u][j] = 0.0f;
            if (key < past) {
                GP_PASTE(LDV_, KTYPE)(K, K_AT(batch, head, key, slice), k[u]);
                GP_PASTE(LDV_, KTYPE)(V, V_AT(batch, head, key, slice), v[u]);
            }
        }
        UNROLL
        for (int u = 0; u < UNROLLED; u++) {
            const idx key = begin + chunk * CHUNK + (u * WARPS + WARP) * KEYS + LANE / LANES;
            if (key == past) {
                UNROLL
                for (int j = 0; j < 8; j++) {
                    k[u][j] = fresh[slice + j];
                    v[u][j] = fresh[D + slice + j];
                }
            }
            UNROLL
            for (int g = 0; g < GROUP; g++) {
                float score = 0.0f;
                UNROLL
                for (int j = 0; j < 8; j++) score = FMAF(q[g][j], k[u][j], score);
                UNROLL
                for (int other = 1; other < LANES; other *= 2) score += SHUFFLE_F(score, LANE ^ other);
#if HAS_SOFTCAP
                score = (float)SOFTCAP * TANHF(score / (float)SOFTCAP);
#endif
                if (key >= last) continue;
                const float high = FMAXF(top[g], score), fade = EXPF(top[g] - high), e = EXPF(score - high);
                top[g] = high;
                mass[g] = FMAF(mass[g], fade, e);
                UNROLL
                for (int j = 0; j < 8; j++) sum[g][j] = FMAF(sum[g][j], fade, e * v[u][j]);
            }
        }
    }

    /* ---- the warp's keys meet, then the block's */
    UNROLL
    for (int g = 0; g < GROUP; g++) {
        UNROLL
        for (int other = LANES; other < 32; other *= 2) {
            const float theirs = SHUFFLE_F(top[g], LANE ^ other), high = FMAXF(top[g], theirs);
            const float keep = top[g] == -INF_F ? 0.0f : EXPF(top[g] - high), take = theirs == -INF_F ? 0.0f : EXPF(theirs - high);
            mass[g] = mass[g] * keep + SHUFFLE_F(mass[g], LANE ^ other) * take;
            UNROLL
            for (int j = 0; j < 8; j++) sum[g][j] = sum[g][j] * keep + SHUFFLE_F(sum[g][j], LANE ^ other) * take;
            top[g] = high;
        }
        if (LANE < LANES) {
            UNROLL
            for (int j = 0; j < 8; j++) parts[(WARP * GROUP + g) * D + slice + j] = sum[g][j];
        }
        if (LANE == 0) {
            peaks[WARP * GROUP + g] = top[g];
            masses[WARP * GROUP + g] = mass[g];
        }
    }
    SYNC();
    for (int at = TID; at < GROUP * D; at += KERNEL_BLOCK) {
        const int g = at / D, d = at % D;
        float best = -INF_F, whole = 0.0f, value = 0.0f;
        UNROLL
        for (int w = 0; w < WARPS; w++) best = FMAXF(best, peaks[w * GROUP + g]);
#if SINK
        const float sink = SINK == 2 ? (float)SINKS_LD(SINKS_OFF + (head * GROUP + g) * SINKS_S0) : 0.0f;
        if (active == 1) {
            best = FMAXF(best, sink);
            whole = EXPF(sink - best);
        }
#endif
        UNROLL
        for (int w = 0; w < WARPS; w++) {
            const float share = peaks[w * GROUP + g] == -INF_F ? 0.0f : EXPF(peaks[w * GROUP + g] - best);
            whole = FMAF(share, masses[w * GROUP + g], whole);
            value = FMAF(share, parts[(w * GROUP + g) * D + d], value);
        }
        if (active == 1) Y_ST(Y_AT(batch, head * GROUP + g, 0, d), value / whole);
        else {
            PART_ST(PART_AT(batch, head, split, g, d), value);
            if (d == 0) {
                STATS_ST(STATS_AT(batch, head, split, g, 0), best);
                STATS_ST(STATS_AT(batch, head, split, g, 1), whole);
            }
        }
    }
    if (active == 1) return;

    /* ---- the last block of a head merges */
    PUBLISH();
    SYNC();
    if (TID == 0) order[0] = (int)TICKET(TICKETS + TICKETS_OFF + batch * TICKETS_S0 + head);
    SYNC();
    if (order[0] != active - 1) return;
    if (TID == 0) TICKETS_ST(TICKETS_OFF + batch * TICKETS_S0 + head, 0); /* for the next launch */
    OBTAIN();
    for (int at = TID; at < GROUP * D / 4; at += KERNEL_BLOCK) {
        const int g = at * 4 / D, d = at * 4 % D;
        float best = -INF_F, whole = 0.0f, value[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        UNROLL_BY(8)
        for (int s = 0; s < active; s++) best = FMAXF(best, STATS_LD(STATS_AT(batch, head, s, g, 0)));
#if SINK
        const float sink = SINK == 2 ? (float)SINKS_LD(SINKS_OFF + (head * GROUP + g) * SINKS_S0) : 0.0f;
        best = FMAXF(best, sink);
        whole = EXPF(sink - best);
#endif
        UNROLL_BY(8)
        for (int s = 0; s < active; s++) {
            const float share = EXPF(STATS_LD(STATS_AT(batch, head, s, g, 0)) - best);
            float part[4];
            LDV_F32(PART, PART_AT(batch, head, s, g, d), part);
            whole = FMAF(share, STATS_LD(STATS_AT(batch, head, s, g, 1)), whole);
            UNROLL
            for (int j = 0; j < 4; j++) value[j] = FMAF(share, part[j], value[j]);
        }
        UNROLL
        for (int j = 0; j < 4; j++) Y_ST(Y_AT(batch, head * GROUP + g, 0, d + j), value[j] / whole);
    }
}
