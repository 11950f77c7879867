/* sample_scan: the first half of a sampling tail. A warp takes GROUP of the X_D0 logits X and writes their largest, as MAXES, and
 * the first place where it stands, PLACES; a NaN counts as the least. DRAW: before that a logit becomes y, its exponent of two:
 * divided (below zero multiplied) by the repetition penalty if its token is in HISTORY, the tokens fed before this step, or
 * in IDS, those of this step, which the first block appends to HISTORY at POSITION; then times SCALE, log2(e) / temperature,
 * unless that is 0. Y has all y, MASSES each group's sum of gp_mass under its own largest. */
KERNEL(256)
{
    EXTENTS
    const idx group = (idx)BID_X * 8 + WARP, first = group * GROUP;
    float best = -INF_F;
    idx place = X_D0;
#if DRAW
    const float scale = gp_float_of((gp_u32)WORDS_LD(WORDS_OFF + SCALE));
    float exponents[GROUP / 32];
#if REMEMBERS
    SHARED(gp_u8, seen, 8 * GROUP);
    const float penalty = gp_float_of((gp_u32)WORDS_LD(WORDS_OFF + PENALTY));
    const idx block = (idx)BID_X * 8 * GROUP, past = POSITION;
    for (idx i = TID; BID_X == 0 && i < IDS_D0; i += 256) HISTORY_ST(HISTORY_OFF + past + i, IDS_LD(IDS_OFF + i * IDS_S0));
    if (penalty != 0.0f) {
        for (int i = TID; i < 8 * GROUP; i += 256) seen[i] = 0;
        SYNC();
        for (idx i = TID; i < past + IDS_D0; i += 256) {
            const idx at = (i < past ? HISTORY_LD(HISTORY_OFF + i) : IDS_LD(IDS_OFF + (i - past) * IDS_S0)) - block;
            if (at >= 0 && at < 8 * GROUP) seen[at] = 1;
        }
        SYNC();
    }
#endif
#endif
    UNROLL
    for (int j = 0; j < GROUP / 32; j++) {
        const idx i = first + j * 32 + LANE;
        float v = i < X_D0 ? (float)X_LD(X_OFF + i * X_S0) : -INF_F;
        if (v != v) v = -INF_F;
#if DRAW
#if REMEMBERS
        if (penalty != 0.0f && seen[WARP * GROUP + j * 32 + LANE]) v = v < 0.0f ? v * penalty : v / penalty;
#endif
        if (scale != 0.0f) v *= scale;
        if (v > 1e9f) v = 1e9f; /* an infinity too: its distance from others must be a number */
        exponents[j] = v;
        if (i < X_D0) Y_ST(Y_OFF + i, v);
#endif
        if (i < X_D0 && (v > best || place == X_D0)) {
            best = v;
            place = i;
        }
    }
    const float largest = WARP_MAX(best), negative = WARP_MAX(place < X_D0 && best == largest ? -(float)place : -INF_F);
#if DRAW
    gp_u64 mass = 0;
    UNROLL
    for (int j = 0; j < GROUP / 32; j++) mass += gp_mass(exponents[j], gp_top(largest));
    /* Sixteen bits at a time: sums of 32 such are exact as floats. */
    const gp_u64 low = (gp_u64)WARP_SUM((float)(mass & 65535u)), middle = (gp_u64)WARP_SUM((float)(mass >> 16 & 65535u));
    const gp_u64 high = (gp_u64)WARP_SUM((float)(mass >> 32));
    if (LANE == 0 && first < X_D0) MASSES_ST(MASSES_OFF + group, low + (middle << 16) + (high << 32));
#endif
    if (LANE == 0 && first < X_D0) {
        MAXES_ST(MAXES_OFF + group, largest);
        PLACES_ST(PLACES_OFF + group, -negative);
    }
}
