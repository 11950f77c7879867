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
#define ITEMS ((GROUP + 2 + WARPS - 1) / WARPS) /* heads of the new row that a warp prepares: queries, key, value */
#define WORDS ((D + 31) / 32)
#define PAIRS (((GROUP + 1) * HALF + KERNEL_BLOCK - 1) / KERNEL_BLOCK)
#define KEY_OF(chunk, u) (begin + (chunk) * CHUNK + ((u) * WARPS + WARP) * KEYS + LANE / LANES)
#define LOAD_KEYS(chunk) \
    do { \
        UNROLL \
        for (int u = 0; u < UNROLLED; u++) { \
            UNROLL \
            for (int j = 0; j < 8; j++) k[u][j] = v[u][j] = 0.0f; \
            if (KEY_OF(chunk, u) < past) { \
                GP_PASTE(LDV_, KTYPE)(K, K_AT(batch, head, KEY_OF(chunk, u), slice), k[u]); \
                GP_PASTE(LDV_, KTYPE)(V, V_AT(batch, head, KEY_OF(chunk, u), slice), v[u]); \
            } \
        } \
    } while (0)
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

    /* What is read here comes in few round trips: first the length and the new row, then, at once, all that the length places. */
    const idx length = (idx)LEN_LD(LEN_OFF + batch * LEN_S0);
    float mine[ITEMS][WORDS];
    UNROLL
    for (int i = 0; i < ITEMS; i++) {
        const int item = WARP + i * WARPS;
        const idx h = item < GROUP ? head * GROUP + item : head;
        UNROLL
        for (int j = 0; j < WORDS; j++) {
            const int d = MIN(LANE + 32 * j, D - 1);
            mine[i][j] = item < GROUP ? (float)Q_LD(Q_AT(batch, h, 0, d)) : item == GROUP ? (float)KN_LD(KN_AT(batch, h, 0, d)) : (float)VN_LD(VN_AT(batch, h, 0, d));
            if (D % 32 && LANE + 32 * j >= D) mine[i][j] = 0.0f;
        }
    }
    const idx past = MAX(MIN(length, (idx)(CAPACITY) - 1), 0), last = past + 1;
#if WINDOW > 0
    const idx begin = MAX(last - WINDOW, 0);
#else
    const idx begin = 0;
#endif
    const idx chunks = (last - begin + CHUNK - 1) / CHUNK;
    const int active = (int)MIN(chunks, (idx)SPLITS), slice = LANE % LANES * 8;
    if (split >= active) return;
    const int owner = (chunks - 1) % SPLITS == split; /* of the chunk with the new row */
    float k[UNROLLED][8], v[UNROLLED][8];
    LOAD_KEYS(split);
#if HALF
#if POSITIONS
    const idx position = (idx)POS_LD(POS_AT(batch, 0));
#else
    const idx position = past;
#endif
    const int inside = position >= 0 && position < COS_D0; /* a position without a row in the tables: not rotated */
    float cosine[PAIRS], sine[PAIRS];
    UNROLL
    for (int p = 0; p < PAIRS; p++) {
        const int i = (TID + p * KERNEL_BLOCK) % HALF;
        cosine[p] = inside ? (float)COS_LD(COS_AT(position, i)) : 1.0f;
        sine[p] = inside ? (float)SIN_LD(SIN_AT(position, i)) : 0.0f;
    }
#endif

    /* ---- the new row: a warp a head */
    UNROLL
    for (int i = 0; i < ITEMS; i++) {
        const int item = WARP + i * WARPS;
#if NORM_Q || NORM_K
        float square = 0.0f;
        UNROLL
        for (int j = 0; j < WORDS; j++) square = FMAF(mine[i][j], mine[i][j], square);
        square = WARP_SUM(square) / (float)D;
#if NORM_Q
        if (item < GROUP) {
            const float inverse = 1.0f / SQRTF(square + (float)EPSILON_Q);
            UNROLL
            for (int j = 0; j < WORDS; j++)
                mine[i][j] = Q_RND(mine[i][j] * inverse * (float)QW_LD(QW_OFF + MIN(LANE + 32 * j, D - 1) * QW_S0));
        }
#endif
#if NORM_K
        if (item == GROUP) {
            const float inverse = 1.0f / SQRTF(square + (float)EPSILON_K);
            UNROLL
            for (int j = 0; j < WORDS; j++)
                mine[i][j] = Q_RND(mine[i][j] * inverse * (float)KW_LD(KW_OFF + MIN(LANE + 32 * j, D - 1) * KW_S0));
        }
#endif
#endif
        float *to = item < GROUP ? query + item * D : fresh + (item == GROUP ? 0 : D);
        UNROLL
        for (int j = 0; j < WORDS; j++)
            if (item < GROUP + 2 && (D % 32 == 0 || LANE + 32 * j < D)) to[LANE + 32 * j] = mine[i][j];
    }
    SYNC();
#if HALF
    UNROLL
    for (int p = 0; p < PAIRS; p++) {
        const int pair = TID + p * KERNEL_BLOCK, item = pair / HALF, i = pair % HALF;
        float *row = item < GROUP ? query + item * D : fresh;
        const int x = INTERLEAVED ? 2 * i : i, y = INTERLEAVED ? 2 * i + 1 : i + HALF;
        if (item <= GROUP) {
            const float u = row[x], w = row[y];
            const float first = u * cosine[p] - w * sine[p], second = u * sine[p] + w * cosine[p];
            row[x] = item < GROUP ? Q_RND(first) : first;
            row[y] = item < GROUP ? Q_RND(second) : second;
        }
    }
    SYNC();
#endif
#if ROWED
    const int stores = RT_LD(RT_OFF + batch) != 0;
#else
    const int stores = 1;
#endif
    if (owner) {
        for (int d = TID; d < 2 * D; d += KERNEL_BLOCK) {
            const float x = d < D ? (float)K_RND(fresh[d]) : (float)V_RND(fresh[d]);
            fresh[d] = x;
            if (!stores) continue;
            if (d < D) K_ST(K_AT(batch, head, past, d), x);
            else V_ST(V_AT(batch, head, past, d - D), x);
        }
        SYNC(); /* owner is the same in the whole block */
    }

    /* ---- the keys */
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
        if (chunk > split) LOAD_KEYS(chunk);
        UNROLL
        for (int u = 0; u < UNROLLED; u++) {
            const idx key = KEY_OF(chunk, u);
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
    SYNC();
    if (TID == 0) order[0] = (int)TICKET(TICKETS + TICKETS_OFF + batch * TICKETS_S0 + head);
    SYNC();
    if (order[0] != active - 1) return;
    if (TID == 0) TICKETS_ST(TICKETS_OFF + batch * TICKETS_S0 + head, 0); /* for the next launch */
    for (int at = TID; at < GROUP * D / 4; at += KERNEL_BLOCK) {
        const int g = at * 4 / D, d = at * 4 % D;
        float best = -INF_F, whole = 0.0f, value[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#if SINK
        best = SINK == 2 ? (float)SINKS_LD(SINKS_OFF + (head * GROUP + g) * SINKS_S0) : 0.0f;
        whole = 1.0f;
#endif
        UNROLL_BY(1)
        for (int from = 0; from < active; from += 16) {
            float peak[16], share[16], part[16][4];
            UNROLL
            for (int s = 0; s < 16; s++) { /* all loads first */
                const int other = MIN(from + s, active - 1);
                peak[s] = STATS_LD(STATS_AT(batch, head, other, g, 0));
                share[s] = STATS_LD(STATS_AT(batch, head, other, g, 1));
                LDV_F32(PART, PART_AT(batch, head, other, g, d), part[s]);
            }
            float high = best;
            UNROLL
            for (int s = 0; s < 16; s++) high = FMAXF(high, peak[s]);
            const float fade = best == -INF_F ? 0.0f : EXPF(best - high);
            best = high;
            whole *= fade;
            UNROLL
            for (int j = 0; j < 4; j++) value[j] *= fade;
            UNROLL
            for (int s = 0; s < 16; s++) {
                const float weight = from + s < active ? EXPF(peak[s] - high) : 0.0f;
                whole = FMAF(weight, share[s], whole);
                UNROLL
                for (int j = 0; j < 4; j++) value[j] = FMAF(weight, part[s][j], value[j]);
            }
        }
        UNROLL
        for (int j = 0; j < 4; j++) Y_ST(Y_AT(batch, head * GROUP + g, 0, d + j), value[j] / whole);
    }
}
