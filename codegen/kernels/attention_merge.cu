/* attention_merge: what the SPLITS blocks of a row left in STATS (maximum, sum) and PART (accumulator) becomes its result Y.
 * A split without a key has the maximum -INF and nothing else. SINK as in attention. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx query = BID_X, head = BID_Y, batch = BID_Z;
    if (query >= Y_D2 || batch >= Y_D0) return;
    float best = -INF_F, whole = 0.0f, share[SPLITS];
    UNROLL
    for (int s = 0; s < SPLITS; s++) {
        share[s] = STATS_LD(STATS_AT(batch, head, query, s, 0));
        best = FMAXF(best, share[s]);
    }
#if SINK == 1
    const float sink = 0.0f;
#elif SINK == 2
    const float sink = (float)SINKS_LD(SINKS_OFF + head * SINKS_S0);
#endif
#if SINK
    best = FMAXF(best, sink);
    whole = EXPF(sink - best);
#endif
    UNROLL
    for (int s = 0; s < SPLITS; s++) {
        const int any = share[s] != -INF_F;
        share[s] = any ? EXPF(share[s] - best) : 0.0f;
        whole = any ? FMAF(share[s], STATS_LD(STATS_AT(batch, head, query, s, 1)), whole) : whole;
    }
    for (int d = TID; d < VHEAD; d += KERNEL_BLOCK) {
        float v = 0.0f;
        UNROLL
        for (int s = 0; s < SPLITS; s++)
            v = share[s] != 0.0f ? FMAF(share[s], PART_LD(PART_AT(batch, head, query, s, d)), v) : v;
        Y_ST(Y_AT(batch, head, query, d), best == -INF_F ? 0.0f : v / whole);
    }
}
