/* standardise: one block normalises one row of COLS elements in ACC. KIND 0: minus the mean, times INVERSE(variance); 1: by the sum of
 * magnitudes; 2: by the root of the sum of squares (1 and 2: a row of zeros stays one). Then times SCALE plus BIAS, where given.
 * HAS_RUNNING: MEAN and VAR get the running statistics OLD_MEAN and OLD_VAR, moved on. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(ACC, partial, THREADS);
    SHARED(ACC, eighth, 8);
    const idx row = BID_X;
    if (row >= (ROWS)) return;
    ACC total = 0, mean = 0, factor;
/* total = sum of `total` over the block, in an order that does not depend on the target */
#define GP_TOTAL() \
    do { \
        partial[TID] = total; \
        SYNC(); \
        if (TID < 8) { \
            for (int t = TID + 8; t < THREADS; t += 8) total += partial[t]; \
            eighth[TID] = total; \
        } \
        SYNC(); \
        total = eighth[0]; \
        for (int t = 1; t < 8; t++) total += eighth[t]; \
        SYNC(); \
    } while (0)
#if KIND == 0
    for (idx col = TID; col < (COLS); col += THREADS) total += (ACC)X_LD(X_ROW + X_COL);
    GP_TOTAL();
    mean = total / (ACC)(COLS);
    total = 0;
#endif
    for (idx col = TID; col < (COLS); col += THREADS) {
        const ACC v = (ACC)X_LD(X_ROW + X_COL) - mean;
        total += KIND == 1 ? (v < 0 ? -v : v) : v * v;
    }
    GP_TOTAL();
#if KIND == 0
    const ACC variance = total / (ACC)(COLS);
    factor = INVERSE(variance);
#if HAS_RUNNING
    if (TID == 0) {
        MEAN_ST(MEAN_ROW, (ACC)OLD_MEAN_LD(OLD_MEAN_ROW) * (ACC)MOMENTUM + mean * (1 - (ACC)MOMENTUM));
        VAR_ST(VAR_ROW, (ACC)OLD_VAR_LD(OLD_VAR_ROW) * (ACC)MOMENTUM + variance * (1 - (ACC)MOMENTUM));
    }
#endif
#else
    factor = total == 0 ? 0 : 1 / (KIND == 1 ? total : ROOT(total));
#endif
    for (idx col = TID; col < (COLS); col += THREADS) {
        ACC v = ((ACC)X_LD(X_ROW + X_COL) - mean) * factor;
#if HAS_SCALE
        v = v * (ACC)SCALE_LD(SCALE_ROW + SCALE_COL) + (ACC)BIAS_LD(BIAS_ROW + BIAS_COL);
#endif
        Y_ST(Y_ROW + Y_COL, v);
    }
#undef GP_TOTAL
}
