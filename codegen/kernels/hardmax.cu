/* hardmax: one block writes a row of COLS elements: 1 at the first of the largest, 0 elsewhere. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(X_C, values, THREADS);
    SHARED(int, places, THREADS);
    const idx row = BID_X;
    if (row >= ROWS) return;
    X_C best = 0;
    int place = -1;
    for (idx col = TID; col < COLS; col += THREADS) {
        const X_C v = X_LD(X_ROW + X_COL);
        if (place >= 0 && !(v > best)) continue;
        best = v;
        place = (int)col;
    }
    values[TID] = best;
    places[TID] = place;
    SYNC();
    for (int t = 0; t < THREADS; t++) {
        if (places[t] < 0 || (place >= 0 && !(values[t] > best || (values[t] == best && places[t] < place)))) continue;
        best = values[t];
        place = places[t];
    }
    for (idx col = TID; col < COLS; col += THREADS) Y_ST(Y_ROW + Y_COL, col == place);
}
