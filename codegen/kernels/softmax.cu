/* softmax: one block turns one row of COLS elements into exp(x - max) / sum, or with TAKE_LOG into its logarithm. Sums in
 * float. COLS may be an extent: nothing beyond it is read. */
KERNEL(THREADS)
{
    EXTENTS
#if THREADS > 32
    SHARED(float, tops, THREADS / 32);
    SHARED(float, sums, THREADS / 32);
#endif
    const idx row = BID_X;
    if (row >= ROWS) return;
    float top = -INF_F, sum = 0.0f;
    for (idx col = TID; col < COLS; col += THREADS) top = FMAXF(top, (float)X_LD(X_ROW + X_COL));
    top = WARP_MAX(top);
#if THREADS > 32
    if (LANE == 0) tops[WARP] = top;
    SYNC();
    UNROLL
    for (int w = 0; w < THREADS / 32; w++) top = FMAXF(top, tops[w]);
#endif
    for (idx col = TID; col < COLS; col += THREADS) sum += EXPF((float)X_LD(X_ROW + X_COL) - top);
    sum = WARP_SUM(sum);
#if THREADS > 32
    if (LANE == 0) sums[WARP] = sum;
    SYNC();
    sum = 0.0f;
    UNROLL
    for (int w = 0; w < THREADS / 32; w++) sum += sums[w];
#endif
#if TAKE_LOG
    const float shift = top + LOGF(sum);
    for (idx col = TID; col < COLS; col += THREADS) Y_ST(Y_ROW + Y_COL, (float)X_LD(X_ROW + X_COL) - shift);
#else
    for (idx col = TID; col < COLS; col += THREADS) Y_ST(Y_ROW + Y_COL, EXPF((float)X_LD(X_ROW + X_COL) - top) / sum);
#endif
}
