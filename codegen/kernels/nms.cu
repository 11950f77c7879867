/* nms: one block a class of a batch: takes the best box that is left, up to the limit, and drops those that overlap it. LEFT
 * says which boxes are left, P gets the boxes taken, N how many. */
#define GP_NMS_LOW(i, k) (CENTRE ? B_LD(B_AT(batch, i, k)) - B_LD(B_AT(batch, i, 2 + k)) / 2 : FMINF(B_LD(B_AT(batch, i, k)), B_LD(B_AT(batch, i, 2 + k))))
#define GP_NMS_HIGH(i, k) (CENTRE ? B_LD(B_AT(batch, i, k)) + B_LD(B_AT(batch, i, 2 + k)) / 2 : FMAXF(B_LD(B_AT(batch, i, k)), B_LD(B_AT(batch, i, 2 + k))))
KERNEL(THREADS)
{
    EXTENTS
    SHARED(float, scores, THREADS);
    SHARED(int, places, THREADS);
    const idx pair = BID_X, batch = pair / (S_D1), kind = pair % (S_D1);
    if (pair >= (S_D0) * (S_D1)) return;
    const idx limit = MIN((idx)(LIMIT), P_D1);
    idx taken = 0;
    for (idx i = TID; i < S_D2; i += THREADS) LEFT_ST(LEFT_AT(pair, i), S_LD(S_AT(batch, kind, i)) > LEAST);
    SYNC();
    for (; taken < limit; taken++) {
        float best = -INF_F;
        int place = -1;
        for (idx i = TID; i < S_D2; i += THREADS) {
            const float score = S_LD(S_AT(batch, kind, i));
            if (!LEFT_LD(LEFT_AT(pair, i)) || (place >= 0 && !(score > best))) continue;
            best = score;
            place = (int)i;
        }
        scores[TID] = best;
        places[TID] = place;
        SYNC();
        for (int t = 0; t < THREADS; t++) {
            if (places[t] < 0 || (place >= 0 && !(scores[t] > best || (scores[t] == best && places[t] < place)))) continue;
            best = scores[t];
            place = places[t];
        }
        if (place < 0) break;
        const float y0 = GP_NMS_LOW(place, 0), y1 = GP_NMS_HIGH(place, 0), x0 = GP_NMS_LOW(place, 1), x1 = GP_NMS_HIGH(place, 1);
        for (idx i = TID; i < S_D2; i += THREADS) {
            const float v0 = GP_NMS_LOW(i, 0), v1 = GP_NMS_HIGH(i, 0), u0 = GP_NMS_LOW(i, 1), u1 = GP_NMS_HIGH(i, 1);
            const float height = FMAXF(FMINF(y1, v1) - FMAXF(y0, v0), 0.0f), width = FMAXF(FMINF(x1, u1) - FMAXF(x0, u0), 0.0f);
            const float both = height * width, all = (y1 - y0) * (x1 - x0) + (v1 - v0) * (u1 - u0) - both;
            if (i == place || (all > 0.0f && both / all > OVERLAP)) LEFT_ST(LEFT_AT(pair, i), 0);
        }
        if (TID == 0) P_ST(P_AT(pair, taken), place);
        SYNC();
    }
    if (TID == 0) N_ST(N_AT(pair), taken);
}
#undef GP_NMS_LOW
#undef GP_NMS_HIGH
