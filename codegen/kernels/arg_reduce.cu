/* arg_reduce: one block finds the index of the largest (WANT_MAX) or smallest of the COLS elements of a row; the first of equal
 * ones, or with LAST the last. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(KEY, values, THREADS);
    SHARED(int, places, THREADS);
    const idx row = BID_X;
    if (row >= ROWS) return;
#if WANT_MAX
#define GP_ARG_BEATS(v, i, w, j) ((j) < 0 || (v) > (w) || ((v) == (w) && (LAST ? (i) > (j) : (i) < (j))))
#else
#define GP_ARG_BEATS(v, i, w, j) ((j) < 0 || (v) < (w) || ((v) == (w) && (LAST ? (i) > (j) : (i) < (j))))
#endif
    KEY best = 0;
    int place = -1;
    for (idx col = TID; col < COLS; col += THREADS) {
        const KEY v = (KEY)X_LD(X_ROW + X_COL);
        if (GP_ARG_BEATS(v, (int)col, best, place)) {
            best = v;
            place = (int)col;
        }
    }
    values[TID] = best;
    places[TID] = place;
    SYNC();
    if (TID == 0) {
        for (int t = 1; t < THREADS; t++)
            if (places[t] >= 0 && GP_ARG_BEATS(values[t], places[t], best, place)) {
                best = values[t];
                place = places[t];
            }
        Y_ST(Y_ROW, place);
    }
#undef GP_ARG_BEATS
}
