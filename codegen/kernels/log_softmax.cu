/* log_softmax: one block turns one row of COLS elements into the logarithm of its softmax, in the compute type of X. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(X_C, partial, THREADS);
    const idx row = BID_X;
    if (row >= ROWS) return;
    X_C top = -INF_F, sum = 0;
    for (idx col = TID; col < COLS; col += THREADS) top = MAX(top, X_LD(X_ROW + X_COL));
    partial[TID] = top;
    SYNC();
    for (int t = 0; t < THREADS; t++) top = MAX(top, partial[t]);
    SYNC();
    for (idx col = TID; col < COLS; col += THREADS) sum += (X_C)EXP(X_LD(X_ROW + X_COL) - top);
    partial[TID] = sum;
    SYNC();
    sum = 0;
    for (int t = 0; t < THREADS; t++) sum += partial[t];
    const X_C shift = top + (X_C)LOG(sum);
    for (idx col = TID; col < COLS; col += THREADS) Y_ST(Y_ROW + Y_COL, X_LD(X_ROW + X_COL) - shift);
}
