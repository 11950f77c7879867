/* gemv: one row X of K elements, alone or normalised first, times the rows of one or several matrices that lie along k.
 *
 * Work is cut into units, a tile of TILE_ROWS matrix rows each. PARTS 2: of each 16 rows of a tile the first eight and the last eight are of
 * two matrices, whose results one expression joins (a gate and what it gates), or of two places in one. A block makes units BID_X,
 * BID_X + GRID ...; its KS warps share each row along k in slices of SLICE elements, warp w those w, w + KS ..., NS of them. So a warp needs
 * its slices of the row X alone, and has them in registers. A slice of a
 * tile is TILE_ROWS rows of CHUNKS runs of 16 bytes; they come into shared memory, with 4 bits the scales and zeros behind
 * them, through a ring of DEPTH places for each warp: a divisor of NS, or a multiple. The first ones are asked for before the kernel waits for
 * those before it: matrices and SCALE are constants.
 *   T TYPE          X's storage type, F16 or BF16, and so that of everything read here, but for what an epilogue reads
 *   BITS 16, 4      4: com.microsoft MatMulNBits, elements - zero times the scale of their group of GROUP (a multiple of 32);
 *                   ZEROS 0: zero is 8, 1: packed like the elements, rows of ZERO_ROW bytes. Rows of ROW_BYTES, KB groups of 32, KG of GROUP a row
 *   CHUNKS 16, 8, 4 16, with 16 bits: TILE_ROWS 16, SLICE 128. 8, with 4 bits: TILE_ROWS 16, SLICE 256; 4, with 4 bits and whole slices:
 *                   TILE_ROWS 32, SLICE 128
 *   WHOLE           all matrices have whole tiles of rows; LINEAR: and there is one, or a gate with what it gates
 *   COPIED          a word holds the scales that a lane needs of a row's slice, and one the zeros; else they come through registers, and DEPTH divides NS
 *   SCALED          4 bits: the row is of BF16
 *   SCALE_BYTES     COPIED: of what a lane copies of them, 4 or 8
 *   RESIDENT        blocks that a multiprocessor should have room for
 *   UNITS           units of all matrices; UNITS_EACH: at most so many a block; KEPT: units whose sums the block keeps
 *   TILE(u, p)      statements: for part p of unit u set w (const unsigned char *, the matrix), n (first row), last (last row of the
 *                   matrix), perhaps end (the unit behind the matrix's last), with BITS 4 also s (const T *, scales), and z (const unsigned char *, zeros)
 *   STORE(u, r)     statements: stores what row r of unit u's parts makes of its sums v0 and, with PARTS 2, v1
 *   SIDE            rows of 16 bits besides, no more than there are blocks: SIDE_FROM(s) sets w, where row s is, SIDE_STORE(s, v) stores its product
 *   NORM            2: the row is X as rows of HEAD elements, each times 1 / sqrt(mean of squares + EPSILON) times SCALE, then what elementwise nodes
 *                   make of it: HEAD_INDEX, HEAD_ONCE, ELEMENT_INDEX, ELEMENT_EACH, ELEMENT_RESULT (HeldRow, lower.h)
 *                   1: it is X (+ SKIP, rounded, with HAS_SKIP; stored to SUM with HAS_SUM) times 1 / sqrt(mean of squares +
 *                   EPSILON) times SCALE, rounded; stored to ROW with HAS_ROW. SUM_RUNS, ROW_RUNS: they lie in vectors
 * On tensor cores (TENSOR) a lane 4 * g + t holds rows g and g + 8 of a product of 16. The order along k is free as long as both operands have
 * the same, so runs go into it as they lie. A slice has blocks of 32 elements of 16 rows: with 4 bits eight (CHUNKS 4: four of rows 0 to
 * 15, then four of rows 16 to 31), with 16 bits four. Each is a product of its own, in which the row's column j has the elements of block j:
 * column j alone is of use, and lane t, which has columns 2 * t and 2 * t + 1, keeps it. So the row's operand is the same for all of them: in lane
 * l the eight elements from 8 * l on (with slices of 128 lanes 16 to 31 have once more what lanes 0 to 15 have). */
#define SLICES ((K + SLICE - 1) / SLICE)
#define PADDED (SLICES * SLICE)
#define VECTORS (K / 8)
/* The vectors of the row that a thread prepares, and whether it alone does. */
#if TENSOR
#define LANES (SLICE / 8)
#define EACH NS
#define VECTOR(e) ((WARP + (e) * KS) * LANES + LANE % LANES)
#define MINE (LANES == 32 || LANE < LANES)
#define ALL_VECTORS (WHOLE_K && SLICES % KS == 0)
#else
#define EACH ((PADDED / 8 + KERNEL_BLOCK - 1) / KERNEL_BLOCK)
#define VECTOR(e) (TID + (e) * KERNEL_BLOCK)
#define MINE 1
#define ALL_VECTORS 0
#endif
#define BLOCKS (SLICE / 32)    /* of 32 elements in a slice, 4 bits */
#define WHOLE_K (K % SLICE == 0)
#define SCALE_OF(block) ((block) * 32 / GROUP)
#define PAIRED (GROUP == 32 && KG % 2 == 0) /* the scales of two neighbouring blocks are one aligned word */
#define SUM_AT(unit, warp, row) (((unit) * KS + (warp)) * TILE_ROWS + (row))
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
{
#if TENSOR
    const int g = LANE >> 2, t = LANE & 3;
#define CHUNK_IN(slice) (WHOLE_K || (BITS == 4 ? (slice) * BLOCKS + LANE % CHUNKS < KB : (slice) * SLICE + LANE % CHUNKS * 8 < K))
#define SLICE_IN(i) (SLICES % KS == 0 || (i) < NS - 1 || WARP + (i) * KS < SLICES)
    /* The runs of a slice that the lane copies: of COPIES rows of the tile, by part and number there. */
#define COPIES (TILE_ROWS * CHUNKS / 32)
#define COPY_LINES (32 / CHUNKS) /* rows at once */
#define COPY_PART(j) (PARTS == 1 ? 0 : (j) * COPY_LINES / 8 % 2)
#define COPY_STEP(j) (PARTS == 1 ? (j) * COPY_LINES : (j) * COPY_LINES / 16 * 8 + (j) * COPY_LINES % 8)
    const unsigned char *from[WHOLE ? PARTS : COPIES];
    int fetched = BID_X; /* the unit */
    /* The runs that lanes read at once, of eight rows or (16 bits) of two, lie in different banks. */
#define TURN(row) (CHUNKS == 4 ? (row) / 2 % 4 : CHUNKS == 16 ? (row) % 2 * 4 : ((row) % 2 * 4 | ((row) & 2) | (row) / 4 % 2))
#define PLACE(row, chunk) (((row) * CHUNKS + ((chunk) ^ TURN(row))) * 4)
#if BITS == 4
    /* Lane t keeps columns 2 * t and 2 * t + 1: the rows and blocks of which it needs scales. */
#define OWN_LINE(half) ((CHUNKS == 4 ? t / 2 * 16 : 0) + g + 8 * (half)) /* of the tile */
#define OWN_ROW(half) (PARTS == 1 ? (CHUNKS == 4 ? t / 2 * 16 : 0) + g + 8 * (half) : (CHUNKS == 4 ? t / 2 * 8 : 0) + g)
#define OWN_BLOCK (2 * t % BLOCKS) /* of the slice's */
#define NEXT_BLOCK(block) (WHOLE_K || (block) + 1 < KB ? (block) + 1 : (block))
#define BLOCK_IN(slice) (WHOLE_K || (slice) * BLOCKS + OWN_BLOCK < KB)
#if COPIED
    const X_T *scales_from = 0;
    const unsigned char *zeros_from = 0;
#define SLICE_SCALES (SLICE / GROUP) /* in a row, an even number */
#define SLOT_WORDS (512 + TILE_ROWS * SLICE_SCALES / 2 + (ZEROS ? TILE_ROWS : 0))
#define SCALE_WORDS (TILE_ROWS * SLICE_SCALES / 2 >= 64 ? 2 : 1) /* that a lane copies */
#define SCALE_PIECES (SLICE_SCALES / 2 / SCALE_WORDS)             /* of a row */
#define SCALES_ALL (TILE_ROWS * SCALE_PIECES == 32)               /* whether all lanes do */
    /* The lane copies scales of row LANE / SCALE_PIECES of the tile, and zeros of row LANE % TILE_ROWS: by part and number there. */
#define LINE_PART(line) (PARTS == 1 ? 0 : (line) / 8 % 2)
#define LINE_STEP(line) (PARTS == 1 ? (line) : (line) / 16 * 8 + (line) % 8)
#define SCALE_LINE (SCALES_ALL ? LANE / SCALE_PIECES : LANE / SCALE_PIECES % TILE_ROWS)
#define ZERO_LINE (LANE % TILE_ROWS)
#define SET_SCALES(p) \
    do { \
        if (LINE_PART(SCALE_LINE) == (p)) \
            scales_from = s + (gp_u64)(gp_u32)MIN(n + LINE_STEP(SCALE_LINE), last) * KG + WARP * SLICE_SCALES + LANE % SCALE_PIECES * (2 * SCALE_WORDS); \
        if (ZEROS && LINE_PART(ZERO_LINE) == (p)) zeros_from = z + (gp_u64)(gp_u32)MIN(n + LINE_STEP(ZERO_LINE), last) * ZERO_ROW; \
    } while (0)
#define NEXT_SCALES \
    do { \
        scales_from += (idx)GRID * (TILE_ROWS / PARTS) * KG; \
        if (ZEROS) zeros_from += (idx)GRID * (TILE_ROWS / PARTS) * ZERO_ROW; \
    } while (0)
#define ZERO_WORD(slice) ((slice) * SLICE_SCALES / 8 * 4)
#define SCALE_IN(slice) (WHOLE_K || (slice) * SLICE_SCALES + LANE % SCALE_PIECES * (2 * SCALE_WORDS) < KG)
#define FETCH_SCALES(place, i) \
    do { \
        const int slice = WARP + (i) * KS; \
        if (SCALES_ALL || LANE < TILE_ROWS * SCALE_PIECES) \
            GP_PASTE(COPY, SCALE_BYTES)(scale_to + (place) * SLOT_WORDS, scales_from + (i) * (KS * SLICE_SCALES), in && SCALE_IN(slice)); \
        if (ZEROS && LANE < TILE_ROWS) COPY4(zero_to + (place) * SLOT_WORDS, zeros_from + ZERO_WORD(slice), in); \
    } while (0)
#define TAKE_SCALES(place, slice) \
    do { \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            const gp_u32 word = scale_at[(place) * SLOT_WORDS + half * (8 * SLICE_SCALES / 2)]; \
            const int at = ((slice) * SLICE_SCALES + SCALE_OF(OWN_BLOCK)) % 8; \
            const gp_u32 points = ZEROS ? ((const gp_u8 *)(zero_at + (place) * SLOT_WORDS + 8 * half))[at / 2] >> at % 2 * 4 : 0u; \
            UNROLL \
            for (int j = 0; j < 2; j++) { \
                scale[half][j] = (gp_u16)(PAIRED ? word >> 16 * j : word >> SCALE_OF(OWN_BLOCK + j) % 2 * 16); \
                zero[half][j] = points >> (GROUP == 32 ? 4 * j : 0) & 15u; \
            } \
        } \
    } while (0)
#else
    const X_T *scales_from[2];
    const unsigned char *zeros_from[2];
#define SLOT_WORDS 512
#define NEXT_SCALES \
    do { \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            scales_from[half] += (idx)GRID * (TILE_ROWS / PARTS) * KG; \
            if (ZEROS) zeros_from[half] += (idx)GRID * (TILE_ROWS / PARTS) * ZERO_ROW; \
        } \
    } while (0)
    gp_u32 scales[DEPTH][2][2], zeros[DEPTH][2][2]; /* as loaded: taking them apart here would wait for them */
#define SET_SCALES(p) \
    do { \
        UNROLL \
        for (int half = PARTS == 1 ? 0 : (p); half < (PARTS == 1 ? 2 : (p) + 1); half++) { \
            const gp_u32 row = (gp_u32)MIN(n + OWN_ROW(half), last); \
            scales_from[half] = s + (gp_u64)row * KG; \
            zeros_from[half] = ZEROS ? z + (gp_u64)row * ZERO_ROW : 0; \
        } \
    } while (0)
#define FETCH_SCALES(place, i) \
    do { \
        const int slice = WARP + (i) * KS, block = slice * BLOCKS + OWN_BLOCK; \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            UNROLL \
            for (int j = 0; j < 2; j++) { \
                const int at = SCALE_OF(j ? NEXT_BLOCK(block) : block); \
                scales[place][half][j] = zeros[place][half][j] = 0u; \
                if (in && BLOCK_IN(slice)) LD_CONSTANT2(scales_from[half] + at, scales[place][half][j]); \
                if (in && BLOCK_IN(slice) && ZEROS) LD_CONSTANT1(zeros_from[half] + at / 2, zeros[place][half][j]); \
            } \
        } \
    } while (0)
#define TAKE_SCALES(place, slice) \
    do { \
        const int block = (slice) * BLOCKS + OWN_BLOCK; \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            UNROLL \
            for (int j = 0; j < 2; j++) { \
                scale[half][j] = (gp_u16)scales[place][half][j]; \
                zero[half][j] = zeros[place][half][j] >> SCALE_OF(j ? NEXT_BLOCK(block) : block) % 2 * 4 & 15u; \
            } \
        } \
    } while (0)
#endif
#else
#define SET_SCALES(p) ((void)0)
#define NEXT_SCALES ((void)0)
#define SLOT_WORDS 1024
#define FETCH_SCALES(place, i) ((void)0)
#endif
    /* The pointers to the unit that is fetched next; behind the last one nothing is read. From a unit to the block's next of the same matrix all
     * go the same way. */
    int matrix_end = 0;
#define BEGIN_UNIT \
    do { \
        UNROLL \
        for (int p = 0; p < PARTS; p++) { \
            const unsigned char *w; \
            int n, last, end = UNITS; \
            TILE_DECLARE \
            TILE(MIN(fetched, UNITS - 1), p) \
            if (WHOLE) from[p] = w + (gp_u64)(gp_u32)(n + LANE / CHUNKS) * ROW_BYTES + (WARP * CHUNKS + LANE % CHUNKS) * 16; \
            UNROLL \
            for (int j = 0; j < COPIES && !WHOLE; j++) \
                if (COPY_PART(j) == p) \
                    from[j] = w + (gp_u64)(gp_u32)MIN(n + LANE / CHUNKS + COPY_STEP(j), last) * ROW_BYTES + (WARP * CHUNKS + LANE % CHUNKS) * 16; \
            SET_SCALES(p); \
            matrix_end = end; \
        } \
    } while (0)
#define NEXT_UNIT \
    do { \
        fetched += GRID; \
        if (LINEAR || (WHOLE && fetched < matrix_end)) { \
            UNROLL \
            for (int p = 0; p < PARTS; p++) from[p] += (idx)GRID * (TILE_ROWS / PARTS) * ROW_BYTES; \
            NEXT_SCALES; \
        } else BEGIN_UNIT; \
    } while (0)
    /* Rows that lie a multiple of eight apart have the same turn. */
#define COPY_RUN(j, place, i) \
    COPY16_BEHIND(copied[CHUNKS == 8 ? (j) % 2 : 0] + (place) * SLOT_WORDS, CHUNKS == 8 ? (j) / 2 * 1024 : (j) * 512, \
                  from[WHOLE ? COPY_PART(j) : (j)] + (i) * (KS * CHUNKS * 16), WHOLE ? COPY_STEP(j) * ROW_BYTES : 0, here)
#if BITS == 4
#define MORE_RUNS(place, i) ((void)0)
#else
#define MORE_RUNS(place, i) \
    do { \
        COPY_RUN(4, place, i); \
        COPY_RUN(5, place, i); \
        COPY_RUN(6, place, i); \
        COPY_RUN(7, place, i); \
    } while (0)
#endif
    /* The warp's slice i of it into a place of the ring. */
#define FETCH(place, i) \
    do { \
        const int in = fetched < UNITS && SLICE_IN(i), here = in && CHUNK_IN(WARP + (i) * KS); \
        COPY_RUN(0, place, i); \
        COPY_RUN(1, place, i); \
        COPY_RUN(2, place, i); \
        COPY_RUN(3, place, i); \
        MORE_RUNS(place, i); \
        FETCH_SCALES(place, i); \
    } while (0)
    SHARED_MORE(gp_u32, ring, KS * DEPTH * SLOT_WORDS);
    gp_u32 *const slots = ring + WARP * (DEPTH * SLOT_WORDS), *copied[2];
    UNROLL
    for (int j = 0; j < 2; j++) copied[j] = PINNED(slots + PLACE(LANE / CHUNKS + j * COPY_LINES, LANE % CHUNKS));
#if BITS == 4 /* of two blocks the rows' runs, as LOAD_MATRICES asks each lane for one */
    const gp_u32 *runs[CHUNKS / 2];
    UNROLL
    for (int j = 0; j < CHUNKS / 2; j++) runs[j] = PINNED(slots + PLACE(LANE % 16, 2 * j + LANE / 16));
#if COPIED
    gp_u32 *const scale_to = PINNED(slots + 512 + LANE * SCALE_WORDS), *const zero_to = PINNED(slots + (SLOT_WORDS - TILE_ROWS) + LANE);
    const gp_u32 *const scale_at = PINNED(slots + 512 + OWN_LINE(0) * (SLICE_SCALES / 2) + SCALE_OF(OWN_BLOCK) / 2);
    const gp_u32 *const zero_at = PINNED(slots + (SLOT_WORDS - TILE_ROWS) + OWN_LINE(0));
#endif
#else
    const gp_u32 *const runs[2] = {PINNED(slots + PLACE(g, t)), PINNED(slots + PLACE(g, 4 + t))};
#endif
    BEGIN_UNIT;
    UNROLL
    for (int p = 0; p < DEPTH; p++) {
        FETCH(p, p % NS);
        COPY_END();
        if ((p + 1) % NS == 0) NEXT_UNIT;
    }
#endif
#if NORM == 1
#define HEAD K
#endif
#define FACTORS(words, out) \
    do { \
        UNROLL \
        for (int pair = 0; pair < 4; pair++) GP_PASTE(GP_PAIR_, TYPE)((words)[pair], (out) + 2 * pair); \
    } while (0)
/* Vector V of what the first block stores: each store of less than a sector would take the place of a whole one. */
#define PUT_RUN(to, v, from) \
    do { \
        if (to##_RUNS) GP_PASTE(STV_, TYPE)(to, to##_OFF + (idx)(v) * 8, from); \
        else { \
            UNROLL \
            for (int j = 0; j < 8; j++) to##_ST(to##_OFF + (idx)(v) * 8 + j, (from)[j]); \
        } \
    } while (0)
#if NORM /* constants too */
    gp_u32 scale[EACH][4];
    UNROLL
    for (int e = 0; e < EACH; e++) {
        UNROLL
        for (int j = 0; j < 4; j++) scale[e][j] = 0u;
        if (ALL_VECTORS || VECTOR(e) < VECTORS) LD_CONSTANT(SCALE + SCALE_OFF + (idx)VECTOR(e) * 8 % HEAD, scale[e]);
    }
#endif
#if SIDE /* what the thread's part of the row is to be multiplied with, of this block's row */
    gp_u32 beside[EACH][4];
    float aside = 0.0f;
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
        const unsigned char *w;
        SIDE_FROM(BID_X)
        UNROLL
        for (int j = 0; j < 4; j++) beside[e][j] = 0u;
        if (BID_X < SIDE && v < VECTORS) LD_CONSTANT(w + (idx)v * 16, beside[e]);
    }
#endif
    EXTENTS
    SHARED(float, sums, KEPT * KS * TILE_ROWS);

    /* ---- the row */
#if TENSOR
    gp_u32 line[NS][4];
#if BITS == 4 /* of the lane's two blocks what takes off their sums what the products add to weights, and less the sum of their elements */
    float magic[NS][2], total[NS][2];
#endif
#else
    SHARED(gp_u32, line, PADDED / 2);
#endif
#if NORM
    gp_u32 read[EACH][1 + HAS_SKIP][4]; /* all of it in one round trip */
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
        UNROLL
        for (int j = 0; j < 4; j++) read[e][0][j] = read[e][HAS_SKIP][j] = 0u;
        if (!ALL_VECTORS && v >= VECTORS) continue;
        LD_RUN(X + X_OFF + (idx)v * 8, read[e][0]);
#if HAS_SKIP
        LD_RUN(SKIP + SKIP_OFF + (idx)v * 8, read[e][1]);
#endif
    }
    float x[EACH][8], square = 0.0f;
#if NORM == 2
    float inverse[EACH];
#endif
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
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
        inverse[e] = gp_inverse_root(square / (float)(HEAD) + (float)EPSILON);
#endif
    }
#if NORM == 2 /* apart from the sums, so that what the elements read besides is on its way meanwhile */
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
        const idx row = (idx)v * 8 / HEAD;
        (void)row;
        if (!ALL_VECTORS && v >= VECTORS) continue;
        float factor[8];
        FACTORS(scale[e], factor);
        HEAD_INDEX
        HEAD_ONCE
        UNROLL
        for (int j = 0; j < 8; j++) {
            const idx col = (idx)v * 8 % HEAD + j;
            const float normed = x[e][j] * inverse[e] * factor[j];
            ELEMENT_INDEX
            ELEMENT_EACH
            x[e][j] = (float)(ELEMENT_RESULT);
        }
    }
#endif
#if NORM == 1
    SHARED(float, squares, KERNEL_BLOCK / 32);
    square = WARP_SUM(MINE ? square : 0.0f);
    if (LANE == 0) squares[WARP] = square;
    SYNC();
    square = 0.0f;
    UNROLL
    for (int other = 0; other < KERNEL_BLOCK / 32; other++) square += squares[other];
    const float inverse = gp_inverse_root(square / (float)(K) + (float)EPSILON);
#endif
#endif
    float y[EACH][8];
    UNROLL
    for (int e = 0; e < EACH; e++) {
        const int v = VECTOR(e);
#if NORM
#if NORM == 1
        float factor[8];
        FACTORS(scale[e], factor);
        UNROLL
        for (int j = 0; j < 8; j++) x[e][j] = X_RND(x[e][j] * inverse * factor[j]);
#endif
        UNROLL
        for (int j = 0; j < 8; j++) y[e][j] = ALL_VECTORS || v < VECTORS ? x[e][j] : 0.0f;
#if HAS_ROW
        if (v < VECTORS && MINE && BID_X == 0) PUT_RUN(ROW, v, y[e]);
#endif
#else
        UNROLL
        for (int j = 0; j < 8; j++) y[e][j] = 0.0f;
        if (ALL_VECTORS || v < VECTORS) GP_PASTE(LDV_, TYPE)(X, X_OFF + (idx)v * 8, y[e]);
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
    const gp_u32 up = MIN(268u - (WARP_MOST(most) >> 23), 253u);
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
        SIDE_STORE(BID_X, v)
    }
#endif

    /* ---- the products */
    int unit = BID_X, kept = 0; /* the next one; units in `sums` */
    /* Row r of a unit's parts: where its sums are; with two parts the second one's are eight further on. */
#define SUM_ROW(r) (PARTS == 1 ? (r) : (r) / 8 * 16 + (r) % 8)
#define FINISH \
    SYNC(); \
    for (int e = TID; e < kept * (TILE_ROWS / PARTS); e += KERNEL_BLOCK) { \
        const int made = e / (TILE_ROWS / PARTS), u = unit - (kept - made) * GRID, r = e % (TILE_ROWS / PARTS); \
        float v0 = 0.0f, v1 = 0.0f; \
        UNROLL \
        for (int other = 0; other < KS; other++) { \
            v0 += sums[SUM_AT(made, other, SUM_ROW(r))]; \
            if (PARTS == 2) v1 += sums[SUM_AT(made, other, SUM_ROW(r) + 8)]; \
        } \
        (void)v1; \
        STORE(u, r) \
    }
#if TENSOR
#define TURNS (DEPTH > NS ? DEPTH / NS : 1) /* units that the ring holds */
    UNROLL_BY(1)
    while (unit < UNITS) {
#if KEPT < UNITS_EACH
        if (kept + TURNS > KEPT) {
            FINISH
            kept = 0;
            SYNC();
        }
#endif
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (TURNS > 1 && unit >= UNITS) continue;
            float sum[2] = {0.0f, 0.0f}; /* of the lane's two rows */
#if BITS == 16
            float product[4][4];
            UNROLL
            for (int j = 0; j < 16; j++) product[j / 4][j % 4] = 0.0f;
#endif
            UNROLL
            for (int i = 0; i < NS; i++) {
                const int slice = WARP + i * KS, place = (turn * NS + i) % DEPTH;
                (void)slice;
                COPY_WAIT(DEPTH - 1);
                SYNC_WARP();
                if (SLICE_IN(i)) {
#if BITS == 4
                    gp_u32 zero[2][2], words[4]; /* of two blocks: of rows g and g + 8 each */
                    gp_u16 scale[2][2];
                    float start[4];
                    TAKE_SCALES(place, slice);
                    UNROLL
                    for (int j = 0; j < 4; j++) /* row half, column */
                        start[j] = ZEROS ? FMAF((float)zero[j / 2][j % 2], total[i][j % 2], magic[i][j % 2]) : magic[i][j % 2];
                    UNROLL
                    for (int block = 0; block < 8; block++) {
                        gp_u32 a[8];
                        float product[4];
                        if (block % 2 == 0)
                            LOAD_MATRICES(words, runs[block / 2 % (CHUNKS / 2)] + (place * SLOT_WORDS + block / CHUNKS * 16 * CHUNKS * 4));
                        NIBBLES_F16(words[block % 2 * 2], a[0], a[2], a[4], a[6]);
                        NIBBLES_F16(words[block % 2 * 2 + 1], a[1], a[3], a[5], a[7]);
                        MMA_FROM_F16(product, a, line[i], start);
                        MMA_F16(product, a + 4, line[i] + 2);
                        if (t == block / 2) {
                            sum[0] = FMAF(product[block % 2], GP_PASTE(GP_OF_, TYPE)(scale[0][block % 2]), sum[0]);
                            sum[1] = FMAF(product[2 + block % 2], GP_PASTE(GP_OF_, TYPE)(scale[1][block % 2]), sum[1]);
                        }
                    }
#else
                    UNROLL
                    for (int block = 0; block < 4; block++) {
                        const gp_u32 *const run = runs[block % 2] + (place * SLOT_WORDS + block / 2 * 32);
                        gp_u32 low[4], high[4];
                        LD_RUN(run, low);
                        LD_RUN(run + 8 * CHUNKS * 4, high);
                        const gp_u32 first[4] = {low[0], high[0], low[1], high[1]}, second[4] = {low[2], high[2], low[3], high[3]};
                        GP_PASTE(MMA_, TYPE)(product[block], first, line[i]);
                        GP_PASTE(MMA_, TYPE)(product[block], second, line[i] + 2);
                    }
#endif
                }
#if UNITS_EACH * NS > DEPTH
                SYNC_WARP();
                FETCH(place, (i + DEPTH) % NS);
                if ((i + DEPTH + 1) % NS == 0) NEXT_UNIT;
#endif
                COPY_END(); /* COPY_WAIT counts groups */
            }
#if BITS == 16
            UNROLL
            for (int half = 0; half < 2; half++)
                sum[half] = t % 2 == 0 ? product[0][2 * half] + product[1][2 * half + 1] : product[2][2 * half] + product[3][2 * half + 1];
#endif
            /* Each lane has its blocks' part of two rows, and keeps one. */
            float mine = t % 2 == 0 ? sum[0] : sum[1];
            mine += SHUFFLE_F(t % 2 == 0 ? sum[1] : sum[0], LANE ^ 1);
            if (CHUNKS == 8) mine += SHUFFLE_F(mine, LANE ^ 2);
#if BITS == 4
            mine *= smaller;
#endif
            if (t < 2 || CHUNKS == 4) sums[SUM_AT(kept, WARP, g + 8 * t)] = mine;
            kept++;
            unit += GRID;
        }
    }
    if (kept == 0) return;
    FINISH
#else
    /* A thread takes every KS-th run of 32 elements of one row of the tile. */
    for (; unit < UNITS; unit += GRID) {
        const int r = TID % TILE_ROWS, first = TID / TILE_ROWS; /* not all threads have work here */
        const unsigned char *w;
        int n, last, end;
        TILE_DECLARE
        TILE(unit, PARTS == 1 ? 0 : r / 8 % 2)
        (void)end;
        const idx row = MIN(n + (PARTS == 1 ? r : r / 16 * 8 + r % 8), last);
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
                GP_PASTE(LDV_, TYPE)((const gp_u16 *)w, row * (ROW_BYTES / 2) + run * 32 + j, b + j);
            }
            sum = gp_mac(sum, b, a, count);
#endif
        }
        if (first < KS) sums[SUM_AT(kept, first, r)] = gp_acc_total(sum);
        kept++;
        if (kept < KEPT && unit + GRID < UNITS) continue;
        unit += GRID;
        FINISH
        kept = 0;
        unit -= GRID;
        SYNC();
    }
#endif
}
