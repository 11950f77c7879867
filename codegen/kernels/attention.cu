/* attention: one block computes one head of one query row: softmax(SCALE * Q K^T, capped, plus mask) V, in float, with an online
 * softmax, so that no score is stored. Eight lanes share a key: each holds an eighth of the head, KV (VV) elements of K (V)
 * at a time. Each group of eight walks its own keys with a maximum, a sum and an accumulator of its own; the groups meet
 * once, in shared memory. SPLITS > 1: so many blocks share the keys of a row, at least 64 each, and leave maximum, sum and
 * accumulator in STATS and PART for attention_merge.
 * Loops go to the extent. LENGTHS declares past and total, the old keys of a sequence and all (compiler/ops/heads.c).
 * MASK: 0 none, 1 bool, 2 added; keys beyond the mask are masked. WINDOW > 0: only so many last keys. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(float, peak, THREADS / 8);
    SHARED(float, mass, THREADS / 8);
    SHARED(float, part, THREADS / 8 * VHEAD);
    const idx query = BID_X / SPLITS, split = BID_X % SPLITS, head = BID_Y, batch = BID_Z;
    if (query >= Q_D2 || batch >= Q_D0) return;
    const idx kv = head / GROUP, fresh = Q_D2;
    const int stream = TID >> 3, slice = TID & 7;
    LENGTHS
#if CAUSAL
    const idx last = MIN(total, past + query + 1);
#else
    const idx last = total;
#endif
#if WINDOW > 0
    const idx begin = MAX(past + query + 1 - WINDOW, 0);
#else
    const idx begin = 0;
#endif
#if SPLITS > 1
    const idx each = MAX((last - begin + SPLITS - 1) / SPLITS, 64);
    const idx start = begin + split * each, end = MIN(start + each, last);
    if (start >= end) {
        if (TID == 0) STATS_ST(STATS_AT(batch, head, query, split, 0), -INF_F);
        return;
    }
#else
    const idx start = begin, end = last;
#endif
    float q[(HEAD + 7) / 8], sum[(VHEAD + 7) / 8];
    UNROLL
    for (int p = 0; p < (HEAD + 7) / 8; p++) {
        const int d = p / KV * 8 * KV + slice * KV + p % KV;
        q[p] = HEAD % 8 == 0 || d < HEAD ? (float)Q_LD(Q_AT(batch, head, query, d)) * (float)SCALE : 0.0f;
    }
    UNROLL
    for (int p = 0; p < (VHEAD + 7) / 8; p++) sum[p] = 0.0f;
    float top = -INF_F, weight = 0.0f;
    const idx stride = THREADS / 8;
    const idx rounds = end > start ? (end - start + 4 * stride - 1) / (4 * stride) : 0;
    for (idx round = 0; round < rounds; round++) {
        const idx first = start + round * 4 * stride + stream;
        float score[4], high = top;
        UNROLL
        for (int u = 0; u < 4; u++) { /* four keys at once, so that their loads overlap */
            const idx key = first + u * stride;
            float dot = 0.0f;
            if (key < end) {
#if KV > 1
                float k[KV];
                UNROLL
                for (int p = 0; p < HEAD / 8; p += KV) {
                    GP_PASTE(LDV_, KTYPE)(K, K_AT(batch, kv, key, p * 8 + slice * KV), k);
                    UNROLL
                    for (int j = 0; j < KV; j++) dot = FMAF(q[p + j], k[j], dot);
                }
#else
                UNROLL
                for (int p = 0; p < (HEAD + 7) / 8; p++) {
                    const int d = p * 8 + slice;
                    if (HEAD % 8 == 0 || d < HEAD) dot = FMAF(q[p], (float)K_LD(K_AT(batch, kv, key, d)), dot);
                }
#endif
            }
            score[u] = dot;
        }
        UNROLL
        for (int u = 0; u < 4; u++) {
            const idx key = first + u * stride;
            float s = score[u];
            s += SHUFFLE_F(s, LANE ^ 1);
            s += SHUFFLE_F(s, LANE ^ 2);
            s += SHUFFLE_F(s, LANE ^ 4);
#if HAS_SOFTCAP
            s = (float)SOFTCAP * TANHF(s / (float)SOFTCAP);
#endif
#if MASK == 1
            if (key < end) s = key < M_D3 && M_LD(M_AT(batch, head, query, key)) ? s : -INF_F;
#elif MASK == 2
            if (key < end) s = key < M_D3 ? s + (float)M_LD(M_AT(batch, head, query, key)) : -INF_F;
#endif
            score[u] = key < end ? s : -INF_F;
            high = FMAXF(high, score[u]);
        }
        if (high != -INF_F) {
            const float fade = EXPF(top - high);
            weight *= fade;
            UNROLL
            for (int p = 0; p < (VHEAD + 7) / 8; p++) sum[p] *= fade;
            UNROLL
            for (int u = 0; u < 4; u++) {
                const idx key = first + u * stride;
                if (score[u] == -INF_F) continue;
                const float e = EXPF(score[u] - high);
                weight += e;
#if VV > 1
                float v[VV];
                UNROLL
                for (int p = 0; p < VHEAD / 8; p += VV) {
                    GP_PASTE(LDV_, VTYPE)(V, V_AT(batch, kv, key, p * 8 + slice * VV), v);
                    UNROLL
                    for (int j = 0; j < VV; j++) sum[p + j] = FMAF(e, v[j], sum[p + j]);
                }
#else
                UNROLL
                for (int p = 0; p < (VHEAD + 7) / 8; p++) {
                    const int d = p * 8 + slice;
                    if (VHEAD % 8 == 0 || d < VHEAD) sum[p] = FMAF(e, (float)V_LD(V_AT(batch, kv, key, d)), sum[p]);
                }
#endif
            }
            top = high;
        }
    }
    if (slice == 0) {
        peak[stream] = top;
        mass[stream] = weight;
    }
    UNROLL
    for (int p = 0; p < (VHEAD + 7) / 8; p++) {
        const int d = p / VV * 8 * VV + slice * VV + p % VV;
        if (VHEAD % 8 == 0 || d < VHEAD) part[stream * VHEAD + d] = sum[p];
    }
    SYNC();
    float best = -INF_F, whole = 0.0f, share[THREADS / 8];
    UNROLL
    for (int g = 0; g < THREADS / 8; g++) best = FMAXF(best, peak[g]);
#if SPLITS == 1 && SINK == 1
    const float sink = 0.0f;
#elif SPLITS == 1 && SINK == 2
    const float sink = (float)SINKS_LD(SINKS_OFF + head * SINKS_S0);
#endif
#if SPLITS == 1 && SINK
    best = FMAXF(best, sink);
    whole = EXPF(sink - best);
#endif
    UNROLL
    for (int g = 0; g < THREADS / 8; g++) {
        share[g] = peak[g] == -INF_F ? 0.0f : EXPF(peak[g] - best);
        whole = FMAF(share[g], mass[g], whole);
    }
    for (int d = TID; d < VHEAD; d += THREADS) {
        float v = 0.0f;
        UNROLL
        for (int g = 0; g < THREADS / 8; g++) v = FMAF(share[g], part[g * VHEAD + d], v);
#if SPLITS > 1
        PART_ST(PART_AT(batch, head, query, split, d), v);
#else
        Y_ST(Y_AT(batch, head, query, d), best == -INF_F ? 0.0f : v / whole); /* all keys masked: 0 */
#endif
    }
#if SPLITS > 1
    if (TID == 0) {
        STATS_ST(STATS_AT(batch, head, query, split, 0), best);
        STATS_ST(STATS_AT(batch, head, query, split, 1), whole);
    }
#endif
}
