/* nms_rows: the boxes taken, one class of a batch after the other, as rows (batch, class, box); W gets how many. One block. */
KERNEL(THREADS)
{
    EXTENTS
    idx before = 0;
    for (idx pair = 0; pair < (PAIRS); pair++) {
        const idx count = N_LD(N_AT(pair));
        for (idx i = TID; i < count; i += THREADS) {
            Y_ST(Y_AT(before + i, 0), pair / (CLASSES));
            Y_ST(Y_AT(before + i, 1), pair % (CLASSES));
            Y_ST(Y_AT(before + i, 2), P_LD(P_AT(pair, i)));
        }
        before += count;
    }
    if (TID == 0) W_ST(W_OFF, before);
}
