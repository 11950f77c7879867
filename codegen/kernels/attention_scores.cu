/* attention_scores: one block writes one row (batch, head, query) of what attention computes on its way: STAGE 0 SCALE * Q K^T, 1 that
 * capped, 2 with the mask added and what may not be seen at -inf, 3 its softmax (0 where nothing may be seen). LENGTHS, MASK, PAST and
 * CAUSAL as in attention.cu. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(float, tops, THREADS / 32);
    SHARED(float, sums, THREADS / 32);
    const idx query = BID_X, head = BID_Y, batch = BID_Z, kv = head / GROUP, fresh = Q_D2;
    if (query >= Q_D2 || batch >= Q_D0) return;
    LENGTHS
    const idx last = CAUSAL ? MIN(total, past + query + 1) : total;
    float top = -INF_F, sum = 0.0f;
    for (int pass = STAGE == 3 ? 0 : 2; pass < 3; pass++) { /* the maximum, the sum, the results */
        for (idx key = TID; key < K_D2; key += THREADS) {
            float s = 0.0f;
            for (int d = 0; d < HEAD; d++)
                s = FMAF((float)Q_LD(Q_AT(batch, head, query, d)) * (float)SCALE, (float)K_LD(K_AT(batch, kv, key, d)), s);
#if STAGE >= 1 && HAS_SOFTCAP
            s = (float)SOFTCAP * TANHF(s / (float)SOFTCAP);
#endif
#if STAGE >= 2
#if MASK == 1
            if (key >= M_D3 || !M_LD(M_AT(batch, head, query, key))) s = -INF_F;
#elif MASK == 2
            s = key < M_D3 ? s + (float)M_LD(M_AT(batch, head, query, key)) : -INF_F;
#endif
            if (key >= last) s = -INF_F;
#endif
            if (pass == 0) top = FMAXF(top, s);
            else if (pass == 1) sum += s == -INF_F ? 0.0f : EXPF(s - top);
            else Y_ST(Y_AT(batch, head, query, key), STAGE < 3 ? s : s == -INF_F ? 0.0f : EXPF(s - top) / sum);
        }
        if (pass == 2) break;
        const float part = pass ? WARP_SUM(sum) : WARP_MAX(top);
        if (LANE == 0) (pass ? sums : tops)[WARP] = part;
        SYNC();
        sum = 0.0f;
        UNROLL
        for (int w = 0; w < THREADS / 32; w++)
            if (pass) sum += sums[w];
            else top = FMAXF(top, tops[w]);
    }
}
