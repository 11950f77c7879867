/* gemv: one row of K elements, X, perhaps normalised, or what elementwise nodes make, times the rows of one or several matrices that lie along k.
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
 *   CHUNKS 16, 8, 4 16, with 16 bits: TILE_ROWS 16 or, with PARTS 1, 8, SLICE 128. 8, with 4 bits: TILE_ROWS 16, SLICE 256; 4, with 4 bits and whole
 *                   slices: TILE_ROWS 32, SLICE 128
 *   WHOLE           all matrices have whole tiles of rows; LINEAR: and there is one, or a gate with what it gates
 *   COPIED          a word holds the scales that a lane needs of a row's slice, and one the zeros; else they come through registers, and DEPTH divides NS
 *   SCALED          4 bits: the row is of BF16
 *   SCALE_BYTES     COPIED: of what a lane copies of them, 4 or 8
 *   RESIDENT        blocks that a multiprocessor should have room for; REGISTERS > 0: so many a thread at most, instead
 *   UNITS           units of all matrices; UNITS_EACH: at most so many a block; KEPT: units whose sums the block keeps
 *   TILE(u, p)      statements: for part p of unit u set w (const unsigned char *, the matrix), n (first row), last (last row of the
 *                   matrix), perhaps end (the unit behind the matrix's last) and each (its rows in a unit), with BITS 4 also s (const T *, scales), and z (const unsigned char *, zeros)
 *   STORE(u, r)     statements: stores what row r of unit u's parts makes of its sums v0 and, with PARTS 2, v1, and of constants;
 *   READ(u, r)      reads those, no more than CONSTANTS of a part's row, to CONSTANT(0) ..., words
 *   SIDE            rows of 16 bits besides, no more than there are blocks: SIDE_FROM(s) sets w, where row s is, SIDE_STORE(s, v) stores its product,
 *                   with SIDE_CONSTANTS that SIDE_READ(s) reads
 *   AHEAD           bytes that a block brings into the L2 cache, of each of the AHEADS matrices AHEAD0, AHEAD1 that are read next
 *   NORM            2: the row is X as rows of HEAD elements, each times 1 / sqrt(mean of squares + EPSILON) times SCALE; with ELEMENTS
 *                   1: it is X (+ SKIP, rounded, with HAS_SKIP; stored to SUM with HAS_SUM) times 1 / sqrt(mean of squares +
 *                   EPSILON) times SCALE, rounded; stored to ROW with HAS_ROW. SUM_RUNS, ROW_RUNS: they lie in vectors
 *   ELEMENTS        1: the row is what elementwise nodes make: of that with NORM 2, whose element is `normed`; else there is no X. HELD_READ, of
 *                   HELD_RUNS runs, HELD_TAKE, of HELD vectors, ELEMENT_BODY, ELEMENT_RESULT: RowElements in lower.h, for vector v and its element n
 * Parts: gemv_ring.h, how tiles come into the ring, with gemv_scales.h; gemv_row.h, how the row comes into registers. Here: what is asked for before
 * the wait, products, sums.
 * On tensor cores (TENSOR) a lane 4 * g + t holds rows g and g + 8 of a product of 16. The order along k is free as long as both operands have
 * the same, so runs go into it as they lie. A slice has blocks of 32 elements of 16 rows: with 4 bits eight (CHUNKS 4: four of rows 0 to
 * 15, then four of rows 16 to 31), with 16 bits four. Each is a product of its own, in which the row's column j has the elements of block j:
 * column j alone is of use, and lane t, which has columns 2 * t and 2 * t + 1, keeps it. So the row's operand is the same for all of them: in lane
 * l the eight elements from 8 * l on (with slices of 128 lanes 16 to 31 have once more what lanes 0 to 15 have). Eight rows (TILE_ROWS 8) are the
 * product's columns instead, and what was the row's column j its row j: lanes with g % 4 == j keep block j of rows 2 * t and 2 * t + 1. */
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
#define SUM_AT(unit, warp, row) (((unit) * KS + (warp)) * TILE_ROWS + (row))
#define MADE_ROWS (TILE_ROWS / PARTS) /* of a unit */
#define CONSTANT(i) constant[half * CONSTANTS + (i)]
/* Whether all rows of a block are made at once, by a thread each, which can have read its constants before the wait. */
#define HOLDS (CONSTANTS && KEPT >= UNITS_EACH && KERNEL_BLOCK >= UNITS_EACH * MADE_ROWS)
#if REGISTERS
KERNEL_LEAN(KERNEL_BLOCK, REGISTERS)
#else
KERNEL_RESIDENT(KERNEL_BLOCK, RESIDENT)
#endif
{
#if TENSOR
    const int g = LANE >> 2, t = LANE & 3;
#include "gemv_ring.h"
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
    gp_u32 side_constant[SIDE_CONSTANTS + 1];
    UNROLL
    for (int j = 0; j < SIDE_CONSTANTS; j++) side_constant[j] = 0u;
    if (BID_X < SIDE && TID == 0) {
        gp_u32 *const constant = side_constant;
        const int half = 0;
        (void)constant, (void)half;
        SIDE_READ(BID_X)
    }
#endif
#if HOLDS
    gp_u32 constant[PARTS * CONSTANTS];
    UNROLL
    for (int j = 0; j < PARTS * CONSTANTS; j++) constant[j] = 0u;
    if (TID < UNITS_EACH * MADE_ROWS) {
        const int u = BID_X + TID / MADE_ROWS * GRID, r = TID % MADE_ROWS;
        READ(u, r)
    }
#endif
    EXTENTS
    SHARED(float, sums, KEPT * KS * TILE_ROWS);

    /* ---- the row */
#include "gemv_row.h"

    /* ---- the products */
    int unit = BID_X, kept = 0; /* the next one; units in `sums` */
    /* Row r of a unit's parts: where its sums are; with two parts the second one's are eight further on. */
#define SUM_ROW(r) (PARTS == 1 ? (r) : (r) / 8 * 16 + (r) % 8)
#if HOLDS || !CONSTANTS
#define READ_LATE(u, r)
#else
#define READ_LATE(u, r) \
    gp_u32 constant[PARTS * CONSTANTS]; \
    READ(u, r)
#endif
#define FINISH \
    SYNC(); \
    for (int e = TID; e < kept * MADE_ROWS; e += KERNEL_BLOCK) { \
        const int made = e / MADE_ROWS, u = unit - (kept - made) * GRID, r = e % MADE_ROWS; \
        READ_LATE(u, r) \
        float some[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}}; /* by part; two sums, so that half as many additions wait for each other */ \
        UNROLL \
        for (int other = 0; other < KS; other++) { \
            some[0][other % 2] += sums[SUM_AT(made, other, SUM_ROW(r))]; \
            if (PARTS == 2) some[1][other % 2] += sums[SUM_AT(made, other, SUM_ROW(r) + 8)]; \
        } \
        const float v0 = some[0][0] + some[0][1], v1 = some[1][0] + some[1][1]; \
        (void)v1; \
        STORE(u, r) \
    }
#if TENSOR
#define TURNS (DEPTH > NS ? DEPTH / NS : 1) /* units that the ring holds */
/* Which of the lanes that have blocks of the same rows it is; from each to the next. */
#define OWN_LANE (TILE_ROWS == 8 ? g : t)
#define OWN_STEP (TILE_ROWS == 8 ? 4 : 1)
    UNROLL_BY(1)
    while (unit < UNITS) {
#if AHEAD
        if (unit + TURNS * GRID >= UNITS && TID == 0) { /* all that the block reads has been asked for */
            PREFETCH_RUN((const unsigned char *)(AHEAD0 + AHEAD0_OFF) + (idx)BID_X * AHEAD, AHEAD);
#if AHEADS == 2
            PREFETCH_RUN((const unsigned char *)(AHEAD1 + AHEAD1_OFF) + (idx)BID_X * AHEAD, AHEAD);
#endif
        }
#endif
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
                        gp_u32 low[4];
                        LD_RUN(run, low);
#if TILE_ROWS == 8
                        const gp_u32 first[4] = {line[i][0], line[i][0], line[i][1], line[i][1]}, second[4] = {line[i][2], line[i][2], line[i][3], line[i][3]};
                        GP_PASTE(MMA_, TYPE)(product[block], first, low);
                        GP_PASTE(MMA_, TYPE)(product[block], second, low + 2);
#else
                        gp_u32 high[4];
                        LD_RUN(run + 8 * CHUNKS * 4, high);
                        const gp_u32 first[4] = {low[0], high[0], low[1], high[1]}, second[4] = {low[2], high[2], low[3], high[3]};
                        GP_PASTE(MMA_, TYPE)(product[block], first, line[i]);
                        GP_PASTE(MMA_, TYPE)(product[block], second, line[i] + 2);
#endif
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
#if TILE_ROWS == 8
            UNROLL
            for (int j = 0; j < 2; j++) sum[j] = g & 2 ? (g & 1 ? product[3][j] : product[2][j]) : g & 1 ? product[1][j] : product[0][j];
#elif BITS == 16
            UNROLL
            for (int half = 0; half < 2; half++)
                sum[half] = t % 2 == 0 ? product[0][2 * half] + product[1][2 * half + 1] : product[2][2 * half] + product[3][2 * half + 1];
#endif
            /* Each lane has its blocks' part of two rows, and keeps one. */
            float mine = OWN_LANE % 2 == 0 ? sum[0] : sum[1];
            mine += SHUFFLE_F(OWN_LANE % 2 == 0 ? sum[1] : sum[0], LANE ^ OWN_STEP);
            if (CHUNKS == 8 || TILE_ROWS == 8) mine += SHUFFLE_F(mine, LANE ^ 2 * OWN_STEP);
#if BITS == 4
            mine *= smaller;
#endif
            if (OWN_LANE < 2 || CHUNKS == 4) sums[SUM_AT(kept, WARP, TILE_ROWS == 8 ? 2 * t + g : g + 8 * t)] = mine;
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
        int n, last, end, each;
        TILE_DECLARE
        TILE(unit, PARTS == 1 ? 0 : r / 8 % 2)
        (void)end, (void)each;
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
