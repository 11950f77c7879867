/* softmax: one block turns one row of COLS elements into exp(x - max) / sum, or with TAKE_LOG into its logarithm, in REAL: float,
 * or double with WIDE. COLS may be an extent: nothing beyond it is read. */
KERNEL(THREADS)
{
    EXTENTS
#if WIDE /* warps exchange floats only */
    SHARED(double, partial, THREADS);
#elif THREADS > 32
    SHARED(float, tops, THREADS / 32);
    SHARED(float, sums, THREADS / 32);
#endif
    const idx row = BID_X;
    if (row >= ROWS) return;
    REAL top = -INF_F, sum = 0;
    for (idx col = TID; col < COLS; col += THREADS) top = FMAX(top, (REAL)X_LD(X_ROW + X_COL));
#if WIDE
    partial[TID] = top;
    SYNC();
    for (int t = 0; t < THREADS; t++) top = FMAX(top, partial[t]);
    SYNC();
#else
    top = WARP_MAX(top);
#if THREADS > 32
    if (LANE == 0) tops[WARP] = top;
    SYNC();
    UNROLL
    for (int w = 0; w < THREADS / 32; w++) top = FMAX(top, tops[w]);
#endif
#endif
    for (idx col = TID; col < COLS; col += THREADS) sum += EXP((REAL)X_LD(X_ROW + X_COL) - top);
#if WIDE
    partial[TID] = sum;
    SYNC();
    sum = 0;
    for (int t = 0; t < THREADS; t++) sum += partial[t];
#else
    sum = WARP_SUM(sum);
#if THREADS > 32
    if (LANE == 0) sums[WARP] = sum;
    SYNC();
    sum = 0.0f;
    UNROLL
    for (int w = 0; w < THREADS / 32; w++) sum += sums[w];
#endif
#endif
#if TAKE_LOG
    const REAL shift = top + LOG(sum);
    for (idx col = TID; col < COLS; col += THREADS) Y_ST(Y_ROW + Y_COL, (REAL)X_LD(X_ROW + X_COL) - shift);
#else
    for (idx col = TID; col < COLS; col += THREADS) Y_ST(Y_ROW + Y_COL, EXP((REAL)X_LD(X_ROW + X_COL) - top) / sum);
#endif
}
