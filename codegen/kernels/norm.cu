/* norm: THREADS threads, which are a block, or of TOGETHER rows a block lanes of a warp, normalise one row of COLS elements: s = X (+ SKIP (+ BIAS)),
 * rounded to the type of X; with CENTRE minus its mean; times 1/sqrt(mean of squares + EPSILON), times SCALE, plus BETA. The statistics are in
 * float; a thread keeps its PER elements in registers: with V > 1, one vector of V, its operands being aligned (Y_RUNS, SUM_RUNS: so are these). SUM, MEAN and
 * INV are outputs that a node may ask for; Y need not be stored where elementwise nodes that the kernel computes (ROW_...) alone read it. */
#if TOGETHER > 1
#define PLACE (TID % THREADS)
#else
#define PLACE TID
#endif
#if THREADS < 32
#define ROW_SUM(v) \
    do { \
        UNROLL \
        for (int other = THREADS / 2; other > 0; other /= 2) v += SHUFFLE_F(v, LANE ^ other); \
    } while (0)
#else
#define ROW_SUM(v) ((v) = WARP_SUM(v))
#endif
KERNEL(THREADS * TOGETHER)
{
    EXTENTS
#if THREADS > 32
    SHARED(float, gathered, THREADS / 32);
    SHARED(float, squares, THREADS / 32);
#endif
#if TOGETHER > 1
    const idx row = (idx)BID_X * TOGETHER + TID / THREADS;
#else
    const idx row = BID_X;
#endif
    if (row >= ROWS) return; /* of a warp perhaps a part: no lane reads one of another row */
    float keep[PER], scale[PER];
    float total = 0.0f, mean = 0.0f;
#if V > 1
#define COLUMN(p) ((idx)PLACE * V + (p))
    if ((idx)PLACE * V < COLS) {
        const idx col = (idx)PLACE * V;
        GP_PASTE(LDV_, TYPE)(SCALE, SCALE_ROW + SCALE_COL, scale);
        GP_PASTE(LDV_, TYPE)(X, X_ROW + X_COL, keep);
#if HAS_SKIP
        float skip[V];
        GP_PASTE(LDV_, TYPE)(SKIP, SKIP_ROW + SKIP_COL, skip);
        UNROLL
        for (int p = 0; p < V; p++) keep[p] += skip[p];
#endif
    }
#else
#define COLUMN(p) (PLACE + (idx)(p) * THREADS)
#endif
    UNROLL
    for (int p = 0; p < PER; p++) {
        const idx col = COLUMN(p);
        float v = 0.0f;
        if (col < COLS) {
#if V > 1
            v = keep[p];
#else
            scale[p] = (float)SCALE_LD(SCALE_ROW + SCALE_COL); /* early: its latency hides behind the sums */
            v = (float)X_LD(X_ROW + X_COL);
#if HAS_SKIP
            v = v + (float)SKIP_LD(SKIP_ROW + SKIP_COL);
#endif
#endif
#if HAS_BIAS
            v = v + (float)BIAS_LD(BIAS_ROW + BIAS_COL);
#endif
#if HAS_SKIP
            v = (float)X_RND(v);
#endif
#if HAS_SUM && !SUM_RUNS
            SUM_ST(SUM_ROW + SUM_COL, v);
#endif
        }
        keep[p] = v;
        total += v;
    }
#if HAS_SUM && SUM_RUNS
    if ((idx)PLACE * V < COLS) {
        const idx col = (idx)PLACE * V;
        GP_PASTE(STV_, TYPE)(SUM, SUM_ROW + SUM_COL, keep);
    }
#endif
#if CENTRE
    ROW_SUM(total);
#if THREADS > 32
    if (LANE == 0) gathered[WARP] = total;
    SYNC();
    total = 0.0f;
    UNROLL
    for (int w = 0; w < THREADS / 32; w++) total += gathered[w];
#endif
    mean = total / (float)(COLS);
#endif
    float square = 0.0f;
    UNROLL
    for (int p = 0; p < PER; p++) {
        const idx col = COLUMN(p);
        const float v = keep[p] - mean;
        if (col < COLS) square = FMAF(v, v, square);
    }
    ROW_SUM(square);
#if THREADS > 32
    if (LANE == 0) squares[WARP] = square;
    SYNC();
    square = 0.0f;
    UNROLL
    for (int w = 0; w < THREADS / 32; w++) square += squares[w];
#endif
    const float inverse = gp_inverse_root(square / (float)(COLS) + (float)EPSILON);
#if HAS_MEAN
    if (PLACE == 0) MEAN_ST(MEAN_ROW, mean);
#endif
#if HAS_INV
    if (PLACE == 0) INV_ST(INV_ROW, inverse);
#endif
#if HAS_BESIDE
    ROW_INDEX
    ROW_ONCE
#endif
    UNROLL
    for (int p = 0; p < PER; p++) {
        const idx col = COLUMN(p);
        if (col < COLS) {
            float v = (keep[p] - mean) * inverse * scale[p];
#if HAS_BETA
            v = v + (float)BETA_LD(BETA_ROW + BETA_COL);
#endif
#if HAS_Y && Y_RUNS
            keep[p] = v;
#elif HAS_Y
            Y_ST(Y_ROW + Y_COL, v);
#endif
#if HAS_BESIDE
            COLUMN_INDEX
            ROW_EACH
#endif
        }
    }
#if HAS_Y && Y_RUNS
    if ((idx)PLACE * V < COLS) {
        const idx col = (idx)PLACE * V;
        GP_PASTE(STV_, TYPE)(Y, Y_ROW + Y_COL, keep);
    }
#endif
}
