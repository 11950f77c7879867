/* reduce: one block folds one row of COLS elements into one, in KEY. FOLD: 0 sum, 1 mean, 2 max, 3 min,
 * 4 product, 5 sum of squares, 6 root of the sum of squares, 7 sum of magnitudes, 8 log of sum, 9 log of sum of exp.
 * With TAKES it computes the elements (TAKE) instead of loading them; with HAS_BESIDE it goes on with the row, STORED saying
 * whether anybody else reads the fold. */
#if TAKES
#define GP_FOLD_LOAD(v) COLUMN_INDEX TAKE_BODY const KEY v = (KEY)(TAKE);
#else
#define GP_FOLD_LOAD(v) const KEY v = (KEY)X_LD(X_ROW + X_COL);
#endif
KERNEL(THREADS)
{
    EXTENTS
    SHARED(KEY, partial, THREADS);
    SHARED(KEY, eighth, 8);
    const idx row = BID_X;
    if (row >= ROWS) return;
#if TAKES || HAS_BESIDE
    ROW_INDEX
#endif
    KEY fold = (KEY)FOLD_START;
#if FOLD == 9
    for (idx col = TID; col < COLS; col += THREADS) {
        GP_FOLD_LOAD(v)
        fold = fold > v ? fold : v;
    }
    partial[TID] = fold;
    SYNC();
    for (int t = 0; t < THREADS; t++) fold = fold > partial[t] ? fold : partial[t];
    const KEY top = fold > -INF_F && fold < INF_F ? fold : 0; /* of infinities alone, or with one: the sum says it */
    fold = 0;
    SYNC();
#define GP_FOLD_TAKE(a, v) ((a) + FOLD_EXP((v) - top))
#define GP_FOLD_JOIN(a, b) ((a) + (b))
#elif FOLD == 2
#define GP_FOLD_TAKE(a, v) ((v) != (v) || (v) > (a) ? (v) : (a))
#define GP_FOLD_JOIN(a, b) GP_FOLD_TAKE(a, b)
#elif FOLD == 3
#define GP_FOLD_TAKE(a, v) ((v) != (v) || (v) < (a) ? (v) : (a))
#define GP_FOLD_JOIN(a, b) GP_FOLD_TAKE(a, b)
#elif FOLD == 4
#define GP_FOLD_TAKE(a, v) ((a) * (v))
#define GP_FOLD_JOIN(a, b) ((a) * (b))
#elif FOLD == 5 || FOLD == 6
#define GP_FOLD_TAKE(a, v) ((a) + (v) * (v))
#define GP_FOLD_JOIN(a, b) ((a) + (b))
#elif FOLD == 7
#define GP_FOLD_TAKE(a, v) ((a) + ((v) < 0 ? (KEY)0 - (v) : (v)))
#define GP_FOLD_JOIN(a, b) ((a) + (b))
#else
#define GP_FOLD_TAKE(a, v) ((a) + (v))
#define GP_FOLD_JOIN(a, b) ((a) + (b))
#endif
    for (idx col = TID; col < COLS; col += THREADS) {
        GP_FOLD_LOAD(v)
        fold = GP_FOLD_TAKE(fold, v);
    }
    partial[TID] = fold;
    SYNC();
    if (TID < 8) { /* two short chains instead of a tree: two barriers, and an order that does not depend on the target */
        fold = partial[TID];
        for (int t = TID + 8; t < THREADS; t += 8) fold = GP_FOLD_JOIN(fold, partial[t]);
        eighth[TID] = fold;
    }
    SYNC();
    if (TID == 0) {
        fold = eighth[0];
        for (int t = 1; t < 8; t++) fold = GP_FOLD_JOIN(fold, eighth[t]);
#if FOLD == 1
        fold = fold / (KEY)(COLS);
#elif FOLD == 6
        fold = (KEY)FOLD_SQRT(fold);
#elif FOLD == 8
        fold = (KEY)FOLD_LOG(fold);
#elif FOLD == 9
        fold = top + (KEY)FOLD_LOG(fold);
#endif
#if STORED
        Y_ST(Y_ROW, (Y_C)fold);
#endif
        eighth[0] = fold;
    }
#if HAS_BESIDE
    SYNC();
    const KEY total = eighth[0];
    ROW_ONCE
    for (idx col = TID; col < COLS; col += THREADS) {
        COLUMN_INDEX
        ROW_EACH
    }
#endif
#undef GP_FOLD_LOAD
#undef GP_FOLD_TAKE
#undef GP_FOLD_JOIN
}
