/* global_pool: one block folds the COLS elements of one row of X. KIND: 0 max (NaN wins), 1 mean, 2 root of the sum of powers P. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(X_C, partial, THREADS);
    SHARED(X_C, eighth, 8);
    const idx row = BID_X;
    if (row >= (ROWS)) return;
#if KIND == 0
#define GP_POOL_JOIN(a, b) ((b) != (b) || (b) > (a) ? (b) : (a))
#else
#define GP_POOL_JOIN(a, b) ((a) + (b))
#endif
    X_C fold = (X_C)(FOLD_START);
    for (idx col = TID; col < (COLS); col += THREADS) {
        const X_C v = X_LD(X_ROW + X_COL);
#if KIND == 2
        fold += POWER(v < 0 ? -v : v);
#else
        fold = GP_POOL_JOIN(fold, v);
#endif
    }
    partial[TID] = fold;
    SYNC();
    if (TID < 8) {
        fold = partial[TID];
        for (int t = TID + 8; t < THREADS; t += 8) fold = GP_POOL_JOIN(fold, partial[t]);
        eighth[TID] = fold;
    }
    SYNC();
    if (TID == 0) {
        fold = eighth[0];
        for (int t = 1; t < 8; t++) fold = GP_POOL_JOIN(fold, eighth[t]);
#if KIND == 1
        fold = fold / (X_C)(COLS);
#elif KIND == 2
        fold = ROOT(fold);
#endif
        Y_ST(Y_ROW, fold);
    }
#undef GP_POOL_JOIN
}
