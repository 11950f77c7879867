/* gemv_scales.h - part of gemv_ring.h where BITS is 4: scales and zeros of the two rows (halves) and two blocks each that a lane keeps. With COPIED
 * they lie in the ring, behind the runs; else they come through registers. Both ways give
 *   OWN_BLOCK                  the first of the lane's two blocks, in a slice
 *   SLOT_WORDS                 words of a place of the ring
 *   SET_SCALES(p)              points to those of part p, from TILE's s, z, n and last
 *   NEXT_SCALES                on to the block's next unit, of the same matrix
 *   FETCH_SCALES(place, i)     asks for those of the warp's slice i, if `in` (FETCH)
 *   TAKE_SCALES(place, slice)  sets scale[half][block], as bits, and zero[half][block]
 * It needs g, t, LINE_PART and LINE_STEP; COPIED also scale_to, zero_to, scale_at and zero_at, where the ring has those of place 0: gemv_ring.h, further on. */
    /* Lane t keeps columns 2 * t and 2 * t + 1: the rows and blocks of which it needs scales. */
#define OWN_LINE(half) ((CHUNKS == 4 ? t / 2 * 16 : 0) + g + 8 * (half)) /* of the tile */
#define OWN_BLOCK (2 * t % BLOCKS) /* of the slice's */
#define NEXT_BLOCK(block) (WHOLE_K || (block) + 1 < KB ? (block) + 1 : (block))
#define SCALE_OF(block) ((block) * 32 / GROUP)
#define PAIRED (GROUP == 32 && KG % 2 == 0) /* the scales of two neighbouring blocks are one aligned word */
#define BLOCK_IN(slice) (WHOLE_K || (slice) * BLOCKS + OWN_BLOCK < KB)
#if COPIED
    const GP_PASTE(T_, TYPE) *scales_from = 0;
    const unsigned char *zeros_from = 0;
#define SLICE_SCALES (SLICE / GROUP) /* in a row, an even number */
#define SLOT_WORDS (512 + TILE_ROWS * SLICE_SCALES / 2 + (ZEROS ? TILE_ROWS : 0))
#define SCALE_WORDS (SCALE_BYTES / 4)                /* that a lane copies */
#define SCALE_PIECES (SLICE_SCALES / 2 / SCALE_WORDS)             /* of a row */
#define SCALES_ALL (TILE_ROWS * SCALE_PIECES == 32)               /* whether all lanes do */
    /* The lane copies scales of row LANE / SCALE_PIECES of the tile, and zeros of row LANE % TILE_ROWS: by part and number there. */
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
        scales_from += (idx)GRID * UNIT_ROWS * KG; \
        if (ZEROS) zeros_from += (idx)GRID * UNIT_ROWS * ZERO_ROW; \
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
    const GP_PASTE(T_, TYPE) *scales_from[2];
    const unsigned char *zeros_from[2];
#define SLOT_WORDS 512
#define NEXT_SCALES \
    do { \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            scales_from[half] += (idx)GRID * UNIT_ROWS * KG; \
            if (ZEROS) zeros_from[half] += (idx)GRID * UNIT_ROWS * ZERO_ROW; \
        } \
    } while (0)
    gp_u32 scales[DEPTH][2][2], zeros[DEPTH][2][2]; /* as loaded: taking them apart here would wait for them */
#define SET_SCALES(p) \
    do { \
        UNROLL \
        for (int half = PARTS == 1 ? 0 : (p); half < (PARTS == 1 ? 2 : (p) + 1); half++) { \
            const gp_u32 row = (gp_u32)MIN(n + LINE_STEP(OWN_LINE(half)), last); \
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
