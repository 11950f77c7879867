/* gemv_ring.h - part of gemv.cu where TENSOR is 1, in the kernel: what a lane asks for of the matrices, and where in the ring that lies. It gives
 *   BEGIN_UNIT, NEXT_UNIT  point to what the lane copies of the unit `fetched`; of the one that the block fetches after it
 *   FETCH(place, i)        asks for the warp's slice i of that unit; COPY_END is left to the caller
 *   SLICE_IN(i)            whether the warp has a slice i
 *   runs                   where the lane's operands lie in place 0; those of the next place are SLOT_WORDS further on
 * and with BITS 4 what gemv_scales.h does. It needs g and t, and what the lowering gives (gemv.cu). */
#define CHUNK_IN(slice) (WHOLE_K || (BITS == 4 ? (slice) * BLOCKS + LANE % CHUNKS < KB : (slice) * SLICE + LANE % CHUNKS * 8 < K))
#define SLICE_IN(i) (SLICES % KS == 0 || (i) < NS - 1 || WARP + (i) * KS < SLICES)
    /* The runs of a slice that the lane copies: of COPIES rows of the tile, by part and number there. */
#define COPIES (TILE_ROWS * CHUNKS / 32)
#define COPY_LINES (32 / CHUNKS) /* rows at once */
#define LINE_PART(line) (PARTS == 1 ? 0 : (line) / 8 % 2)
#define LINE_STEP(line) (PARTS == 1 ? (line) : (line) / 16 * 8 + (line) % 8)
#define RUN_PART(j) LINE_PART((j) * COPY_LINES)
#define RUN_STEP(j) LINE_STEP((j) * COPY_LINES)
    const unsigned char *from[WHOLE ? PARTS : COPIES];
    int fetched = BID_X; /* the unit */
    /* The runs that lanes read at once, of eight rows or (16 bits) of two, lie in different banks. */
#define TURN(row) (CHUNKS == 4 ? (row) / 2 % 4 : CHUNKS == 16 ? (row) % 2 * 4 : ((row) % 2 * 4 | ((row) & 2) | (row) / 4 % 2))
#define PLACE(row, chunk) (((row) * CHUNKS + ((chunk) ^ TURN(row))) * 4)
#if BITS == 4
#include "gemv_scales.h"
#else
#define SET_SCALES(p) ((void)0)
#define NEXT_SCALES ((void)0)
#define SLOT_WORDS (TILE_ROWS * CHUNKS * 4)
#define FETCH_SCALES(place, i) ((void)0)
#endif
    /* The pointers to the unit that is fetched next; behind the last one nothing is read. From a unit to the block's next of the same matrix all
     * go the same way. */
    int matrix_end = 0, unit_rows = 0;
#define UNIT_ROWS (LINEAR || PARTS == 1 ? TILE_ROWS / PARTS : unit_rows) /* from unit to unit of a matrix: of a pair, half of the tile */
#define BEGIN_UNIT \
    do { \
        UNROLL \
        for (int p = 0; p < PARTS; p++) { \
            const unsigned char *w; \
            int n, last, end = UNITS, each = TILE_ROWS / PARTS; \
            TILE_DECLARE \
            TILE(MIN(fetched, UNITS - 1), p) \
            if (WHOLE) from[p] = w + (gp_u64)(gp_u32)(n + LANE / CHUNKS) * ROW_BYTES + (WARP * CHUNKS + LANE % CHUNKS) * 16; \
            UNROLL \
            for (int j = 0; j < COPIES && !WHOLE; j++) \
                if (RUN_PART(j) == p) \
                    from[j] = w + (gp_u64)(gp_u32)MIN(n + LANE / CHUNKS + RUN_STEP(j), last) * ROW_BYTES + (WARP * CHUNKS + LANE % CHUNKS) * 16; \
            SET_SCALES(p); \
            matrix_end = end; \
            unit_rows = each; \
        } \
    } while (0)
#define NEXT_UNIT \
    do { \
        fetched += GRID; \
        if (LINEAR || (WHOLE && fetched < matrix_end)) { \
            UNROLL \
            for (int p = 0; p < PARTS; p++) from[p] += (idx)GRID * UNIT_ROWS * ROW_BYTES; \
            NEXT_SCALES; \
        } else BEGIN_UNIT; \
    } while (0)
    /* Rows that lie a multiple of eight apart have the same turn. */
#define COPY_RUN(j, place, i) \
    COPY16_BEHIND(copied[CHUNKS == 8 ? (j) % 2 : 0] + (place) * SLOT_WORDS, CHUNKS == 8 ? (j) / 2 * 1024 : (j) * 512, \
                  from[WHOLE ? RUN_PART(j) : (j)] + (i) * (KS * CHUNKS * 16), WHOLE ? RUN_STEP(j) * ROW_BYTES : 0, here)
#if COPIES == 4
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
