/* argmax: one block of 1024 threads finds the first index of the largest of the X_D0 logits X (a NaN counts as the least),
 * writes it to TOKEN, appends it to RING at the place that COUNT says, modulo 65536, and counts it. */
KERNEL(1024)
{
    EXTENTS
    SHARED(float, values, 1024);
    SHARED(int, places, 1024);
    float best = -INF_F;
    int place = 0x7fffffff;
    for (idx i = TID; i < X_D0; i += 1024) {
        const float v = (float)X_LD(X_OFF + i * X_S0);
        if (v > best || place == 0x7fffffff) {
            best = v;
            place = (int)i;
        }
    }
    values[TID] = best;
    places[TID] = place;
    SYNC();
    if (TID < 32) {
        for (int t = TID + 32; t < 1024; t += 32)
            if (values[t] > best || (values[t] == best && places[t] < place)) {
                best = values[t];
                place = places[t];
            }
        values[TID] = best;
        places[TID] = place;
    }
    SYNC();
    if (TID == 0) {
        for (int t = 1; t < 32; t++)
            if (values[t] > best || (values[t] == best && places[t] < place)) {
                best = values[t];
                place = places[t];
            }
        const idx count = COUNT_LD(COUNT_OFF);
        TOKEN_ST(TOKEN_OFF, place);
        RING_ST(RING_OFF + (count & 65535), place);
        COUNT_ST(COUNT_OFF, count + 1);
    }
}
