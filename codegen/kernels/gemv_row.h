/* gemv_row.h - part of gemv.cu, in the kernel, behind EXTENTS: reads X and what else the row is made of, makes it as NORM and ELEMENTS say, stores
 * SUM and ROW, makes the products of SIDE. It needs what has been asked for before: `scale` with NORM, `beside` and `aside` with SIDE; with
 * TENSOR and BITS 4 OWN_BLOCK. It gives
 *   line          the row: with TENSOR the operands of the warp's slices, in registers; else all of it, in shared memory
 * and with TENSOR and BITS 4
 *   magic, total  of slice i and the lane's block j: a product starts with magic[i][j] + zero * total[i][j]
 *   smaller       what sums are multiplied with in the end */
#define EIGHT(type, words, out) \
    do { \
        UNROLL \
        for (int pair = 0; pair < 4; pair++) GP_PASTE(GP_PAIR_, type)((words)[pair], (out) + 2 * pair); \
    } while (0)
/* Runs of 16 bytes that a vector of the row is read from: of X and SKIP, then of what elementwise nodes read. */
#define HAS_X (NORM || !ELEMENTS)
#if NORM == 1
#define OWN_RUNS (1 + HAS_SKIP)
#else
#define OWN_RUNS HAS_X
#endif
#if ELEMENTS
#define READS (OWN_RUNS + HELD_RUNS)
#else
#define READS OWN_RUNS
#endif
#define HELD_RUN(i) read[e][OWN_RUNS + (i)]
#define HELD_F16(run, i, first) EIGHT(F16, HELD_RUN(run), held[i]);
#define HELD_BF16(run, i, first) EIGHT(BF16, HELD_RUN(run), held[i]);
#define HELD_F32(run, i, first) \
    do { \
        UNROLL \
        for (int j = 0; j < 4; j++) held[i][(first) + j] = gp_float_of(HELD_RUN(run)[j]); \
    } while (0);
/* Vector V of what the first block stores: each store of less than a sector would take the place of a whole one. */
#define PUT_RUN(to, v, from) \
    do { \
        if (to##_RUNS) GP_PASTE(STV_, TYPE)(to, to##_OFF + (idx)(v) * 8, from); \
        else { \
            UNROLL \
            for (int j = 0; j < 8; j++) to##_ST(to##_OFF + (idx)(v) * 8 + j, (from)[j]); \
        } \
    } while (0)
#if TENSOR
    gp_u32 line[NS][4];
#if BITS == 4 /* of the lane's two blocks what takes off their sums what the products add to weights, and less the sum of their elements */
    float magic[NS][2], total[NS][2];
#endif
#else
    SHARED(gp_u32, line, PADDED / 2);
#endif
    gp_u32 read[EACH][READS + 1][4]; /* all of it in one round trip */
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
        UNROLL
        for (int i = 0; i < READS; i++) {
            UNROLL
            for (int j = 0; j < 4; j++) read[e][i][j] = 0u;
        }
        if (!ALL_VECTORS && v >= VECTORS) continue;
#if HAS_X
        LD_RUN(X + X_OFF + (idx)v * 8, read[e][0]);
#endif
#if NORM == 1 && HAS_SKIP
        LD_RUN(SKIP + SKIP_OFF + (idx)v * 8, read[e][1]);
#endif
#if ELEMENTS
        const idx n = (idx)v * 8;
        (void)n;
        HELD_READ
#endif
    }
#if NORM || ELEMENTS
    float x[EACH][8];
#endif
#if NORM
    float square = 0.0f;
#if NORM == 2
    float inverse[EACH];
#endif
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
        UNROLL
        for (int j = 0; j < 4; j++) {
            GP_PASTE(GP_PAIR_, TYPE)(read[e][0][j], x[e] + 2 * j);
#if NORM == 1 && HAS_SKIP
            float skip[2];
            GP_PASTE(GP_PAIR_, TYPE)(read[e][1][j], skip);
            x[e][2 * j] = X_RND(x[e][2 * j] + skip[0]);
            x[e][2 * j + 1] = X_RND(x[e][2 * j + 1] + skip[1]);
#endif
        }
#if NORM == 1 && HAS_SUM
        if (v < VECTORS && MINE && BID_X == 0) PUT_RUN(SUM, v, x[e]);
#endif
#if NORM == 2
        square = 0.0f;
#endif
        UNROLL
        for (int j = 0; j < 8; j++) square = FMAF(x[e][j], x[e][j], square);
#if NORM == 2 /* of the lanes that have the head */
        UNROLL
        for (int other = HEAD / 16; other > 0; other /= 2) square += SHUFFLE_F(square, LANE ^ other);
        inverse[e] = gp_inverse_root(square * (1.0f / (float)(HEAD)) + (float)EPSILON);
#endif
    }
#if NORM == 1
    SHARED(float, squares, KERNEL_BLOCK / 32);
    square = WARP_SUM(MINE ? square : 0.0f);
    if (LANE == 0) squares[WARP] = square;
    SYNC();
    float some[4] = {0.0f, 0.0f, 0.0f, 0.0f}; /* fewer additions that wait for each other */
    UNROLL
    for (int other = 0; other < KERNEL_BLOCK / 32; other++) some[other % 4] += squares[other];
    const float inverse = gp_inverse_root(((some[0] + some[1]) + (some[2] + some[3])) * (1.0f / (float)(K)) + (float)EPSILON);
#endif
#endif
#if ELEMENTS /* apart from the sums, so that what they read one by one is on its way meanwhile */
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
        if (!ALL_VECTORS && v >= VECTORS) continue;
        float held[HELD + 1][8];
        HELD_TAKE
        (void)held;
#if NORM == 2
        float factor[8];
        EIGHT(TYPE, scale[e], factor);
#endif
        UNROLL
        for (int j = 0; j < 8; j++) {
            const idx n = (idx)v * 8 + j;
            (void)n;
#if NORM == 2
            const float normed = x[e][j] * inverse[e] * factor[j];
#endif
            ELEMENT_BODY
            x[e][j] = (float)(ELEMENT_RESULT);
        }
    }
#endif
    float y[EACH][8];
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
#if NORM == 1
        float factor[8];
        EIGHT(TYPE, scale[e], factor);
        UNROLL
        for (int j = 0; j < 8; j++) x[e][j] = X_RND(x[e][j] * inverse * factor[j]);
#endif
#if NORM || ELEMENTS
        UNROLL
        for (int j = 0; j < 8; j++) y[e][j] = ALL_VECTORS || v < VECTORS ? x[e][j] : 0.0f;
#if NORM == 1 && HAS_ROW
        if (v < VECTORS && MINE && BID_X == 0) PUT_RUN(ROW, v, y[e]);
#endif
#else
        EIGHT(TYPE, read[e][0], y[e]);
#endif
#if SIDE
        UNROLL
        for (int j = 0; j < 4 && MINE; j++) {
            float pair[2];
            GP_PASTE(GP_PAIR_, TYPE)(beside[e][j], pair);
            aside = FMAF(y[e][2 * j], pair[0], aside);
            aside = FMAF(y[e][2 * j + 1], pair[1], aside);
        }
#endif
    }
#if TENSOR && BITS == 4
    /* Products with 4 bits are of F16 halves, since those take fewer instructions to come apart. What a warp has of a row of BF16 is for that brought
     * to 2^14 and more by a power of two, which its sums lose again: exact, but for elements below 2^-29 of the largest. */
#if SCALED
    gp_u32 most = 0u;
    UNROLL
    for (int e = 0; e < EACH; e++) {
        UNROLL
        for (int j = 0; j < 8; j++) most = MAX(most, gp_bits_of(y[e][j]) & 0x7fffffffu);
    }
    most = WARP_MOST(most) >> 23;
    const gp_u32 up = MIN(268u - most, 253u);
    const float larger = gp_float_of(up << 23), smaller = gp_float_of((254u - up) << 23);
#else
    const float larger = 1.0f, smaller = 1.0f;
#endif
#endif
    UNROLL
    for (int e = 0; e < EACH; e++) {
#if !TENSOR
        for (int j = 0; j < 4 && VECTOR(e) < PADDED / 8; j++)
            line[4 * VECTOR(e) + j] = (gp_u32)GP_PASTE(GP_BITS_, TYPE)(y[e][2 * j]) | (gp_u32)GP_PASTE(GP_BITS_, TYPE)(y[e][2 * j + 1]) << 16;
#elif BITS == 16
        UNROLL
        for (int j = 0; j < 4; j++) line[e][j] = GP_PASTE(GP_PACK_, TYPE)(y[e][2 * j], y[e][2 * j + 1]);
#else
        UNROLL
        for (int j = 0; j < 8; j++) y[e][j] *= larger;
        UNROLL
        for (int j = 0; j < 4; j++) line[e][j] = gp_pack_f16(y[e][j], y[e][j + 4]); /* as a word of eight weights comes apart */
        /* Of the four lanes that have a block; then to the lanes whose block it is. */
        const float low = (y[e][0] + y[e][4]) + (y[e][2] + y[e][6]), high = (y[e][1] + y[e][5]) + (y[e][3] + y[e][7]);
        float all = low + high, added = FMAF(NIBBLE_LOW_F16, low, NIBBLE_HIGH_F16 * high) + (ZEROS ? 0.0f : 8.0f * all);
        UNROLL
        for (int other = 1; other < 4; other *= 2) {
            added += SHUFFLE_F(added, LANE ^ other);
            if (ZEROS) all += SHUFFLE_F(all, LANE ^ other);
        }
        UNROLL
        for (int j = 0; j < 2; j++) {
            magic[e][j] = -SHUFFLE_F(added, 4 * (OWN_BLOCK + j));
            total[e][j] = ZEROS ? -SHUFFLE_F(all, 4 * (OWN_BLOCK + j)) : 0.0f;
        }
#endif
    }
#if SIDE
    SHARED(float, asides, KERNEL_BLOCK / 32);
    aside = WARP_SUM(aside);
    if (LANE == 0) asides[WARP] = aside;
#endif
#if SIDE || !TENSOR
    SYNC();
#endif
#if SIDE
    if (BID_X < SIDE && TID == 0) {
        float v = 0.0f;
        UNROLL
        for (int other = 0; other < KERNEL_BLOCK / 32; other++) v += asides[other];
        gp_u32 *const constant = side_constant;
        const int half = 0;
        (void)constant, (void)half;
        SIDE_STORE(BID_X, v)
    }
#endif
