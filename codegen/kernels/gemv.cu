/* gemv: one row X of K elements, alone or normalised first, times the rows of one or several matrices that lie along k.
 *
 * Work is cut into units of PARTS tiles of 16 matrix rows: PARTS 2 takes the same rows of two matrices, whose results one
 * expression joins (a gate and what it gates). A block makes units BID_X, BID_X + GRID_X ...; its KS warps share each row
 * along k in slices of SLICE elements, warp w those w, w + KS ..., NS of them. A warp has DEPTH slices on their way, the first
 * ones asked for before the kernel waits for those before it: matrices and SCALE are constants. They come into registers or, with
 * RING (with 4 bits: SLICE 256, GROUP at most that, an even KG, ZERO_ROW a multiple of 4), into shared memory: what is on its way to registers is
 * waited for all at once, however old, but a ring keeps on loading.
 *   T TYPE          X's storage type, F16 or BF16, and so that of everything read here, but for what an epilogue reads
 *   BITS 16, 4      4: com.microsoft MatMulNBits, elements - zero times the scale of their group of GROUP (a multiple of 32);
 *                   ZEROS 0: zero is 8, 1: packed like the elements, rows of ZERO_ROW bytes. rows of ROW_BYTES, KB groups of 32, KG of GROUP a row
 *   RESIDENT        blocks that a multiprocessor should have room for
 *   UNITS           units of all matrices; UNITS_EACH: at most so many a block; CHUNK: tiles whose sums the block keeps
 *   TILE(u, p)      statements: for part p of unit u set w (const unsigned char *, the matrix), n (first row), last (last row of the
 *                   matrix), with BITS 4 also s (const T *, scales), and z (const unsigned char *, zeros)
 *   STORE(u, r)     statements: stores what row r of unit u's tiles makes of its sums v0 and, with PARTS 2, v1
 *   NORM            1: the row is X (+ SKIP, rounded, with HAS_SKIP; stored to SUM with HAS_SUM) times 1 / sqrt(mean of squares +
 *                   EPSILON) times SCALE, rounded; stored to ROW with HAS_ROW
 * On tensor cores (TENSOR) a lane 4 * g + t holds rows g and g + 8 of a tile. Their 16-byte runs go into the products as they
 * lie: the order along k is free as long as both operands have the same. */
#if BITS == 4
#define RUNS (SLICE / 64) /* of 16 bytes that a lane reads of a slice: rows g, g + 8, of each 128 elements */
#define HALVES (SLICE / 128)
#else
#define RUNS 4 /* rows g, g + 8, each at 8 * t and 32 elements further on */
#endif
#define SLICES ((K + SLICE - 1) / SLICE)
#define PADDED (SLICES * SLICE)
#define VECTORS (K / 8)
#define EACH ((PADDED / 8 + KERNEL_BLOCK - 1) / KERNEL_BLOCK) /* vectors of the row that a thread prepares */
#define ITEMS (UNITS_EACH * PARTS * NS)
#define PAIRED (GROUP == 32 && KG % 2 == 0) /* the scales of two neighbouring groups are one aligned word */
#define ALIGNED (GROUP == 32) /* their zeros are one byte */
#define HELD (RING ? 1 : DEPTH) /* slices in registers */
#define AT(d) (RING ? 0 : (d))
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
{
#if TENSOR
    const int g = LANE >> 2, t = LANE & 3;
    gp_u32 held[HELD][RUNS][4];
    /* Of the tile that is being loaded: rows g and g + 8. */
    const unsigned char *from[2] = {0, 0};
#if BITS == 4
    gp_u32 scales[HELD][2][2 - PAIRED], zeros[HELD][2][2 - ALIGNED]; /* as loaded: taking them apart here would wait for them */
    const X_T *scales_from[2] = {0, 0};
    const unsigned char *zeros_from[2] = {0, 0};
#define SET_SCALES(half, row) (scales_from[half] = s + (gp_u64)(row) * KG, zeros_from[half] = ZEROS ? z + (gp_u64)(row) * ZERO_ROW : 0)
    /* A lane has groups 2 * t and 2 * t + 1 of the slice: after the products, column j has those of group j. */
#define GROUP_OF(slice) ((slice) * (SLICE / 32) + 2 * t)
#define GROUPS_IN(slice) (2 * t < SLICE / 32 && (K % SLICE == 0 || GROUP_OF(slice) < KB))
#define SCALE_OF(group) ((group) * 32 / GROUP)
#define NEXT_OF(group) (K % SLICE == 0 || (group) + 1 < KB ? (group) + 1 : (group))
#define LOAD_SCALES(d, slice) \
    do { \
        const int group = GROUP_OF(slice), other = NEXT_OF(group), in = GROUPS_IN(slice); \
        (void)other; \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            UNROLL \
            for (int j = 0; j < 2 - PAIRED; j++) { \
                scales[d][half][j] = 0u; \
                if (in && PAIRED) LD_CONSTANT4(scales_from[half] + group, scales[d][half][j]); \
                else if (in) LD_CONSTANT2(scales_from[half] + SCALE_OF(j ? other : group), scales[d][half][j]); \
            } \
            UNROLL \
            for (int j = 0; j < 2 - ALIGNED; j++) { \
                zeros[d][half][j] = 0u; \
                if (in && ZEROS) LD_CONSTANT1(zeros_from[half] + SCALE_OF(j ? other : group) / 2, zeros[d][half][j]); \
            } \
        } \
    } while (0)
#define RUN_AT(slice, h) (((slice) * (SLICE / 32) + (h) * 4 + t) * 16)
#define RUN_IN(slice, h) (K % SLICE == 0 || (slice) * (SLICE / 32) + (h) * 4 + t < KB)
#define ROW_AT(row) ((gp_u64)(row) * ROW_BYTES)
#else
#define SET_SCALES(half, row) (void)0
#define LOAD_SCALES(d, slice) (void)0
#define RUN_AT(slice, h) (((slice) * SLICE + (h) * 32 + 8 * t) * 2)
#define RUN_IN(slice, h) (K % SLICE == 0 || (slice) * SLICE + (h) * 32 + 8 * t < K)
#define ROW_AT(row) ((gp_u64)(row) * (STRIDE * 2))
#endif
#if RING
    /* What a lane copies it reads back itself: runs, and the word with its scale or two; the zeros of a row are in one word for its
     * four lanes. */
#define RUN_WORDS (RUNS * 128)
#define SLOT_WORDS (RUN_WORDS + (BITS == 4 ? 64 + (ZEROS ? 16 : 0) : 0))
#if BITS == 4
#define FETCH_SCALES(slot, slice) \
    do { \
        UNROLL \
        for (int half = 0; half < 2; half++) \
            COPY4((slot) + RUN_WORDS + half * 32 + LANE, scales_from[half] + SCALE_OF(GROUP_OF(slice)) / 2 * 2, K % SLICE == 0 || GROUP_OF(slice) < KB); \
        if (ZEROS && t < 2) COPY4((slot) + RUN_WORDS + 64 + t * 8 + g, (t ? zeros_from[1] : zeros_from[0]) + SCALE_OF((slice) * (SLICE / 32)) / 8 * 4, 1); \
    } while (0)
#define TAKE_SCALES(slot, slice) \
    do { \
        const int group = GROUP_OF(slice); \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            const gp_u32 word = (slot)[RUN_WORDS + half * 32 + LANE]; \
            UNROLL \
            for (int j = 0; j < 2 - PAIRED; j++) scales[0][half][j] = PAIRED ? word : word >> (SCALE_OF(group + j) % 2 * 16); \
            UNROLL \
            for (int j = 0; j < 2 - ALIGNED && ZEROS; j++) zeros[0][half][j] = (slot)[RUN_WORDS + 64 + half * 8 + g] >> (SCALE_OF(group + j) / 2 % 4 * 8); \
        } \
    } while (0)
#else
#define FETCH_SCALES(slot, slice) ((void)0)
#define TAKE_SCALES(slot, slice) ((void)0)
#endif
    SHARED_MORE(gp_u32, ring, KS * DEPTH * SLOT_WORDS);
    gp_u32 *const slots = ring + WARP * (DEPTH * SLOT_WORDS);
#define FETCH(d, slice) \
    do { \
        gp_u32 *const slot = slots + (d) * SLOT_WORDS; \
        UNROLL \
        for (int run = 0; run < RUNS; run++) \
            COPY16(slot + run * 128 + LANE * 4, from[run & 1] + RUN_AT(slice, run >> 1), RUN_IN(slice, run >> 1)); \
        FETCH_SCALES(slot, slice); \
    } while (0)
#define ARRIVED(d, slice) \
    do { \
        const gp_u32 *const slot = slots + (d) * SLOT_WORDS; \
        COPY_WAIT(DEPTH - 1); \
        if (ZEROS) SYNC_WARP(); \
        UNROLL \
        for (int run = 0; run < RUNS; run++) LD_RUN(slot + run * 128 + LANE * 4, held[0][run]); \
        TAKE_SCALES(slot, slice); \
        if (ZEROS) SYNC_WARP(); \
    } while (0)
#else
#define FETCH(d, slice) \
    do { \
        UNROLL \
        for (int run = 0; run < RUNS; run++) { \
            if (RUN_IN(slice, run >> 1)) LD_CONSTANT(from[run & 1] + RUN_AT(slice, run >> 1), held[d][run]); \
            else held[d][run][0] = held[d][run][1] = held[d][run][2] = held[d][run][3] = 0u; \
        } \
        LOAD_SCALES(d, slice); \
    } while (0)
#define ARRIVED(d, slice) ((void)0)
#endif
    /* With 4 bits in registers without a branch where the work divides evenly; behind the last unit that one is read again. (Measured: so it is
     * faster, and not with 16.) The next slice of the warp's sequence into place d of what it holds; the three variables count. */
    int load_unit = BID_X, load_part = 0, load_slice = 0;
#define LOAD(d) \
    do { \
        const int slice = WARP + load_slice * KS; \
        if (load_slice == 0 && ((BITS == 4 && !RING) || load_unit < UNITS)) { \
            const int u = MIN(load_unit, UNITS - 1); \
            const unsigned char *w; \
            int n, last; \
            TILE_DECLARE \
            TILE(u, load_part) \
            const gp_u32 row = (gp_u32)MIN(n + g, last), row8 = (gp_u32)MIN(n + g + 8, last); \
            from[0] = w + ROW_AT(row), from[1] = w + ROW_AT(row8); \
            SET_SCALES(0, row), SET_SCALES(1, row8); \
        } \
        if (((BITS == 4 && !RING) || load_unit < UNITS) && (SLICES % KS == 0 || slice < SLICES)) FETCH(d, slice); \
        if (++load_slice == NS) { \
            load_slice = 0; \
            if (++load_part == PARTS) load_part = 0, load_unit += GRID_X; \
        } \
        if (RING) COPY_END(); \
    } while (0)
    UNROLL
    for (int d = 0; d < DEPTH; d++) LOAD(d);
#endif
#if NORM /* constants too */
    float scale[EACH][8];
    UNROLL
    for (int e = 0; e < EACH; e++)
        if (TID + e * KERNEL_BLOCK < VECTORS) GP_PASTE(LDV_, TYPE)(SCALE, SCALE_OFF + (idx)(TID + e * KERNEL_BLOCK) * 8, scale[e]);
#endif
    EXTENTS
    SHARED(gp_u32, line, PADDED / 2 + 16); /* the row; behind it zeros */
    SHARED(float, sums, CHUNK * KS * 16);
#if BITS == 4
    SHARED(float, magic, PADDED / 32); /* by group of 32: the sum of the row's elements times what the products add to weights */
    SHARED(float, total, ZEROS ? PADDED / 32 : 1);
#endif

    /* ---- the row */
#if NORM
    gp_u32 read[EACH][1 + HAS_SKIP][4]; /* all of it in one round trip */
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = TID + e * KERNEL_BLOCK;
        UNROLL
        for (int j = 0; j < 4; j++) read[e][0][j] = read[e][HAS_SKIP][j] = 0u;
        if (v >= VECTORS) continue;
        LD_RUN(X + X_OFF + (idx)v * 8, read[e][0]);
#if HAS_SKIP
        LD_RUN(SKIP + SKIP_OFF + (idx)v * 8, read[e][1]);
#endif
    }
    SHARED(float, squares, KERNEL_BLOCK / 32);
    float x[EACH][8], square = 0.0f;
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = TID + e * KERNEL_BLOCK;
        UNROLL
        for (int j = 0; j < 4; j++) {
            GP_PASTE(GP_PAIR_, TYPE)(read[e][0][j], x[e] + 2 * j);
#if HAS_SKIP
            float skip[2];
            GP_PASTE(GP_PAIR_, TYPE)(read[e][1][j], skip);
            x[e][2 * j] = X_RND(x[e][2 * j] + skip[0]);
            x[e][2 * j + 1] = X_RND(x[e][2 * j + 1] + skip[1]);
#endif
        }
#if HAS_SUM
        if (v < VECTORS && BID_X == 0)
            for (int j = 0; j < 8; j++) SUM_ST(SUM_OFF + (idx)v * 8 + j, x[e][j]);
#endif
        UNROLL
        for (int j = 0; j < 8; j++) square = FMAF(x[e][j], x[e][j], square);
    }
    square = WARP_SUM(square);
    if (LANE == 0) squares[WARP] = square;
    SYNC();
    square = 0.0f;
    UNROLL
    for (int other = 0; other < KERNEL_BLOCK / 32; other++) square += squares[other];
    const float inverse = 1.0f / SQRTF(square / (float)(K) + (float)EPSILON);
#endif
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = TID + e * KERNEL_BLOCK;
        float y[8];
        gp_u32 bits[8];
#if NORM
        UNROLL
        for (int j = 0; j < 8; j++) y[j] = v < VECTORS ? X_RND(x[e][j] * inverse * scale[e][j]) : 0.0f;
#if HAS_ROW
        if (v < VECTORS && BID_X == 0)
            for (int j = 0; j < 8; j++) ROW_ST(ROW_OFF + (idx)v * 8 + j, y[j]);
#endif
#else
        UNROLL
        for (int j = 0; j < 8; j++) y[j] = 0.0f;
        if (v < VECTORS) GP_PASTE(LDV_, TYPE)(X, X_OFF + (idx)v * 8, y);
#endif
        UNROLL
        for (int j = 0; j < 8; j++) bits[j] = (gp_u32)GP_PASTE(GP_BITS_, TYPE)(y[j]);
        if (v < PADDED / 8) {
            UNROLL
            for (int j = 0; j < 4; j++) {
#if BITS == 4 && TENSOR
                line[4 * v + j] = bits[j] | bits[j + 4] << 16; /* as a word of eight weights comes apart */
#else
                line[4 * v + j] = bits[2 * j] | bits[2 * j + 1] << 16;
#endif
            }
        }
#if BITS == 4 && TENSOR
        float low = (y[0] + y[4]) + (y[2] + y[6]), high = (y[1] + y[5]) + (y[3] + y[7]);
        low += SHUFFLE_F(low, LANE ^ 1);
        high += SHUFFLE_F(high, LANE ^ 1);
        low += SHUFFLE_F(low, LANE ^ 2);
        high += SHUFFLE_F(high, LANE ^ 2);
        if (v < PADDED / 8 && (LANE & 3) == 0) {
            magic[v / 4] = FMAF(GP_PASTE(NIBBLE_LOW_, TYPE), low, GP_PASTE(NIBBLE_HIGH_, TYPE) * high) + (ZEROS ? 0.0f : 8.0f * (low + high));
            if (ZEROS) total[v / 4] = low + high;
        }
#endif
    }
    if (TID < 16) line[PADDED / 2 + TID] = 0u;
    SYNC();

    /* ---- the products */
    int unit = BID_X, kept = 0; /* tiles in `sums` */
#define FINISH \
    SYNC(); \
    for (int e = TID; e < kept / PARTS * 16; e += KERNEL_BLOCK) { \
        const int u = unit - (kept / PARTS - 1 - e / 16) * GRID_X, r = e % 16; \
        float v0 = 0.0f, v1 = 0.0f; \
        UNROLL \
        for (int other = 0; other < KS; other++) { \
            v0 += sums[(e / 16 * PARTS * KS + other) * 16 + r]; \
            if (PARTS == 2) v1 += sums[((e / 16 * PARTS + 1) * KS + other) * 16 + r]; \
        } \
        (void)v1; \
        STORE(u, r) \
    }
#if TENSOR
    int part = 0, slice_of = 0;
    float sum0 = 0.0f, sum8 = 0.0f; /* rows g and g + 8 */
    UNROLL_BY(1)
    for (int item = 0; item < ITEMS && unit < UNITS; item += DEPTH) {
        UNROLL_BY((RING ? 1 : DEPTH))
        for (int d = 0; d < DEPTH; d++) {
            const int slice = WARP + slice_of * KS;
            ARRIVED(d, slice);
            if (unit < UNITS && slice < SLICES) {
                float even[4] = {0.0f, 0.0f, 0.0f, 0.0f}, odd[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#if BITS == 4
                UNROLL
                for (int h = 0; h < HALVES; h++) {
                    const gp_u32 *share = line + (g == t + 4 * h ? (slice * (SLICE / 32) + h * 4 + t) * 16 : PADDED / 2);
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        gp_u32 a[8], b[4];
                        LD_RUN(share + 4 * i, b);
                        GP_PASTE(NIBBLES_, TYPE)(held[AT(d)][2 * h][i], a[0], a[2], a[4], a[6]);
                        GP_PASTE(NIBBLES_, TYPE)(held[AT(d)][2 * h + 1][i], a[1], a[3], a[5], a[7]);
                        GP_PASTE(MMA_, TYPE)(even, a, b);
                        GP_PASTE(MMA_, TYPE)(odd, a + 4, b + 2);
                    }
                }
                const int group = GROUP_OF(slice), at = MIN(group, PADDED / 32 - 2);
                (void)group;
                UNROLL
                for (int j = 0; j < 4; j++) { /* row half, group */
                    const int half = j >> 1, next = j & 1;
                    float taken = magic[at + next];
#if ZEROS && ALIGNED
                    taken = FMAF((float)(zeros[AT(d)][half][0] >> (4 * next) & 15u), total[at + next], taken);
#elif ZEROS
                    const int place = SCALE_OF(next ? NEXT_OF(group) : group) % 2 * 4;
                    taken = FMAF((float)(zeros[AT(d)][half][next] >> place & 15u), total[at + next], taken);
#endif
                    const gp_u32 scale = PAIRED ? scales[AT(d)][half][0] >> (16 * next) : scales[AT(d)][half][(1 - PAIRED) * next];
                    const float product = (even[j] + odd[j] - taken) * GP_PASTE(GP_OF_, TYPE)((gp_u16)(scale & 0xffffu));
                    if (half) sum8 += product;
                    else sum0 += product;
                }
#else
                UNROLL
                for (int h = 0; h < 2; h++) {
                    gp_u32 b[4];
                    LD_RUN(line + (slice * SLICE + h * 32 + 8 * t) / 2, b);
                    const gp_u32 *low = held[AT(d)][2 * h], *high = held[AT(d)][2 * h + 1];
                    const gp_u32 first[4] = {low[0], high[0], low[1], high[1]}, second[4] = {low[2], high[2], low[3], high[3]};
                    GP_PASTE(MMA_, TYPE)(even, first, b);
                    GP_PASTE(MMA_, TYPE)(odd, second, b + 2);
                }
                sum0 += even[0] + odd[0];
                sum8 += even[2] + odd[2];
#endif
            }
#if ITEMS > DEPTH
            LOAD(d);
#elif RING
            COPY_END(); /* ARRIVED counts groups */
#endif
            if (++slice_of == NS && unit < UNITS) {
                slice_of = 0;
#if BITS == 4 /* each lane has its groups' part */
                sum0 += SHUFFLE_F(sum0, LANE ^ 1);
                sum8 += SHUFFLE_F(sum8, LANE ^ 1);
#if HALVES > 1
                sum0 += SHUFFLE_F(sum0, LANE ^ 2);
                sum8 += SHUFFLE_F(sum8, LANE ^ 2);
#endif
#endif
                if (t == 0) {
                    sums[(kept * KS + WARP) * 16 + g] = sum0;
                    sums[(kept * KS + WARP) * 16 + g + 8] = sum8;
                }
                sum0 = sum8 = 0.0f;
                kept++;
                if (++part == PARTS) {
                    part = 0;
#if CHUNK < UNITS_EACH * PARTS
                    if (kept == CHUNK) {
                        FINISH
                        kept = 0;
                        SYNC();
                    }
#endif
                    unit += GRID_X;
                }
            }
        }
    }
    unit -= GRID_X; /* the last one made */
    if (kept == 0) return;
    FINISH
#else
    /* A thread takes every KS-th run of 32 elements of one row of the tile. */
    for (; unit < UNITS; unit += GRID_X) {
        for (int part = 0; part < PARTS; part++) {
            const unsigned char *w;
            int n, last;
            TILE_DECLARE
            TILE(unit, part)
            const int r = TID % 16, first = TID / 16; /* half of the threads have work here */
            const idx row = MIN(n + r, last);
            gp_acc sum = gp_acc_zero();
            for (int run = first; first < KS && run < (K + 31) / 32; run += KS) {
                float a[32], b[32];
#if BITS == 4
                const int group = run * 32 / GROUP;
                const float zero = ZEROS ? (float)(z[row * ZERO_ROW + group / 2] >> (group % 2 * 4) & 15) : 8.0f;
                gp_unpack(w + row * ROW_BYTES + run * 16, 4, 32, zero, b);
                for (int j = 0; j < 32; j += 8) GP_PASTE(LDV_, TYPE)(line, run * 32 + j, a + j);
                sum = gp_acc_scaled(sum, gp_mac(gp_acc_zero(), b, a, 32), GP_PASTE(LD_, TYPE)(s, row * KG + group));
#else
                const int count = MIN(K - run * 32, 32);
                for (int j = 0; j < count; j += 8) {
                    GP_PASTE(LDV_, TYPE)(line, run * 32 + j, a + j);
                    GP_PASTE(LDV_, TYPE)((const gp_u16 *)w + row * STRIDE, run * 32 + j, b + j);
                }
                sum = gp_mac(sum, b, a, count);
#endif
            }
            if (first < KS) sums[(kept * KS + first) * 16 + r] = gp_acc_total(sum);
            kept++;
        }
        if (kept == CHUNK || unit + GRID_X >= UNITS) {
            FINISH
            kept = 0;
            SYNC();
        }
    }
#endif
}
