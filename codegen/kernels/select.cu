/* select: of the elements n < TOTAL those for which FLAG holds, in order: WRITE stores number `place` of them, W gets how many
 * there are. PHASE 0 counts each of CHUNKS runs of elements into N, 1 sums them up in one block, 2 writes; 3 does all in one
 * block. */
KERNEL(THREADS)
{
    EXTENTS
#if PHASE == 1
    SHARED(idx, sums, THREADS);
    const int each = (CHUNKS + THREADS - 1) / THREADS;
    idx sum = 0;
    for (int k = TID * each; k < MIN((TID + 1) * each, CHUNKS); k++) sum += N_LD(k);
    sums[TID] = sum;
    SYNC();
    idx before = 0;
    for (int t = 0; t < TID; t++) before += sums[t];
    if (TID == THREADS - 1) W_ST(W_OFF, before + sum);
    for (int k = TID * each; k < MIN((TID + 1) * each, CHUNKS); k++) {
        const idx count = N_LD(k);
        N_ST(k, before);
        before += count;
    }
#else
    const idx chunk = ((TOTAL) + CHUNKS - 1) / CHUNKS, number = (idx)BID_X * KERNEL_BLOCK + TID;
    const idx first = MIN(number * chunk, (TOTAL)), last = MIN(first + chunk, (TOTAL));
    idx place = 0;
#if PHASE != 2
    for (idx n = first; n < last; n++) {
        INDEX
        place += FLAG;
    }
#endif
#if PHASE == 0
    N_ST(number, place);
#elif PHASE == 3
    SHARED(idx, sums, THREADS);
    sums[TID] = place;
    SYNC();
    if (TID == THREADS - 1) {
        idx all = 0;
        for (int t = 0; t < THREADS; t++) all += sums[t];
        W_ST(W_OFF, all);
    }
    place = 0;
    for (int t = 0; t < TID; t++) place += sums[t];
#else
    place = N_LD(number);
#endif
#if PHASE >= 2
    for (idx n = first; n < last; n++) {
        INDEX
        if (!(FLAG)) continue;
        WRITE
        place++;
    }
#endif
#endif
}
