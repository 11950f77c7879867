/* experts.h - what the kernels of a mixture of experts share: the choice of a row's experts, their shares, and tiles of 4-bit
 * matrices on tensor cores. Macros: they stand on names of the kernel that uses them.
 *
 * Routing takes LOGITS (operand), EXPERTS, TOP, NORMALISE, GIVEN (1: shares are made of GIVEN_LD(row, e), not of the logits), and
 * stores to CHOSEN and SHARE [row, slot]. Logits are compared as integers, in IEEE's total order but for zeros, which are equal; equal ones by their number. */
#define LOGIT(row, e) ((float)LOGITS_LD(LOGITS_AT(row, e)))

/* A lane's part of the row, from place AT on, as it lies: words of logits[EXPERT_KEYS]; LOGITS_V of them in one load of 16 bytes, or (1) each in a
 * word. LOGITS_16: they have 16 bits. Not from the L1 cache, which may have what was there before: moe_down reads them before its wait. */
#define EXPERT_KEYS ((EXPERTS + 31) / 32)
#define LOGITS_TAKE(row, at, logits) \
    do { \
        UNROLL \
        for (int j = 0; j < EXPERT_KEYS; j += LOGITS_V) { \
            const int e = LANE * EXPERT_KEYS + j; \
            if (LOGITS_V > 1) LD_WRITTEN(LOGITS + ((at) + j), (logits) + j / LOGITS_V * 4); \
            else if (LOGITS_16) (logits)[j] = ((const volatile gp_u16 *)LOGITS)[LOGITS_AT(row, MIN(e, EXPERTS - 1))]; \
            else (logits)[j] = ((const volatile gp_u32 *)LOGITS)[LOGITS_AT(row, MIN(e, EXPERTS - 1))]; \
        } \
    } while (0)
/* Halves of a word in the order of unsigned integers; the J-th of them. */
#define ORDERED_HALVES(word) ((word) ^ (((word) >> 15 & 0x00010001u) * 0x7fffu | 0x80008000u))
#define ORDERED_LOGIT(logits, j) \
    gp_one_zero(ORDERED_HALVES((logits)[LOGITS_V > 1 ? (j) / 2 : (j)]) >> (LOGITS_V > 1 ? (j) % 2 * 16 : 0) & 0xffffu, 0x8000u)
/* A number in such an order, in which ZERO is 0 and the one before it -0: that is taken for 0. */
FN gp_u32 gp_one_zero(gp_u32 ordered, gp_u32 zero) { return ordered == zero - 1 ? zero : ordered; }
/* By one warp, all of it: chosen[0..count), in shared memory, become the numbers of the largest logits of the row, in order. Keys of 16 bits have
 * their number behind them, so that they differ, and are less than 2^31: of those below MOST, which is the last one chosen, key - MOST is the
 * largest as an unsigned int for the largest key. Others are taken away when they have been chosen. */
#define CHOOSE(logits, count, chosen) \
    do { \
        gp_u32 keys[EXPERT_KEYS], most = 0x80000000u; \
        UNROLL \
        for (int j = 0; j < EXPERT_KEYS; j++) { \
            const int e = LANE * EXPERT_KEYS + j; \
            if (LOGITS_16) keys[j] = ORDERED_LOGIT(logits, j) << 15 | (gp_u32)(0x7fff - e); \
            else keys[j] = MAX(gp_one_zero((logits)[j] ^ ((gp_u32)((int)(logits)[j] >> 31) | 0x80000000u), 0x80000000u), 1u); \
            if (EXPERTS % 32 != 0 && e >= EXPERTS) keys[j] = LOGITS_16 ? 0xffffffffu : 0u; /* comes behind all others */ \
        } \
        UNROLL_BY(1) \
        for (int rank = 0; rank < (count); rank++) { \
            gp_u32 best[2] = {0u, 0u}; \
            int number; \
            UNROLL \
            for (int j = 0; j < EXPERT_KEYS; j++) best[j % 2] = MAX(best[j % 2], keys[j] - (LOGITS_16 ? most : 0u)); \
            best[0] = MAX(best[0], best[1]); \
            const gp_u32 next = WARP_MOST(best[0]); \
            if (LOGITS_16) { \
                most += next; \
                number = 0x7fff - (int)(most & 0x7fffu); \
            } else { \
                gp_u32 behind = 0u; /* the first one that has it */ \
                UNROLL \
                for (int j = EXPERT_KEYS - 1; j >= 0; j--) behind = keys[j] == next ? (gp_u32)(EXPERTS - LANE * EXPERT_KEYS - j) : behind; \
                number = EXPERTS - (int)WARP_MOST(behind); \
                UNROLL \
                for (int j = 0; j < EXPERT_KEYS; j++) keys[j] = LANE * EXPERT_KEYS + j == number ? 0u : keys[j]; \
            } \
            if (LANE == 0) (chosen)[rank] = number; \
        } \
        (void)most; \
    } while (0)

/* By one warp, when all of chosen[TOP] is there: the shares, of a softmax over all experts or (NORMALISE) over the chosen, or what is given, as
 * it is or divided by its sum. */
#define STORE_CHOICE(row, chosen) \
    do { \
        float sum = 0.0f; \
        const float top = LOGIT(row, (chosen)[0]); \
        if (GIVEN) \
            for (int j = LANE; j < TOP; j += 32) sum += GIVEN_LD(row, (chosen)[j]); \
        else if (NORMALISE) \
            for (int j = LANE; j < TOP; j += 32) sum += EXPF(LOGIT(row, (chosen)[j]) - top); \
        else \
            for (int e = LANE; e < EXPERTS; e += 32) sum += EXPF(LOGIT(row, e) - top); \
        sum = WARP_SUM(sum); \
        for (int j = LANE; j < TOP; j += 32) { \
            float share; \
            if (!GIVEN) share = gp_ratiof(EXPF(LOGIT(row, (chosen)[j]) - top), sum); \
            else if (NORMALISE) share = sum != 0.0f ? gp_ratiof(GIVEN_LD(row, (chosen)[j]), sum) : 0.0f; \
            else share = GIVEN_LD(row, (chosen)[j]); \
            CHOSEN_ST(CHOSEN_AT(row, j), (chosen)[j]); \
            SHARE_ST(SHARE_AT(row, j), share); \
        } \
    } while (0)

/* ---- one row times TILES tiles of 16 rows of a 4-bit matrix: lane 4 * g + t holds rows g and g + 8 of each. K elements, a multiple of 32, in
 * slices of 128: four runs of 32, 16 bytes each, of which lane t has number t. SHARERS warps share the rows along k, NS slices each, in spans of
 * two; DEPTH spans are on their way in registers. Groups of GROUP, a multiple of 32, have a scale, KG a row, and with ZEROS a zero point, ZERO_ROW
 * bytes a row; without it is 8. WHOLE: there are whole tiles of rows, TILE_STEP from one to the next. Scales are of type STYPE.
 * OTHER_ROW, OTHER_SCALES: expressions, whether the warp's row or its scales have type OTHER_TYPE, of 16 bits, instead; pointers to scales count in SCALE_UNIT.
 * Each warp prepares what it needs of the row, of type TYPE, and keeps it in shared memory as a word of eight weights comes apart, in F16 halves:
 * weights take the fewest instructions so. What is not F16 (SCALED) is for that brought to 2^14 and more, span by span, by a power of two.
 * A product has one word of each lane, so of each row one of four runs. In column j of the row's operand lane t == j % 4 has elements, those of its run,
 * and the others zeros: so column j has the sum of one run, and lane t, which has columns 2 * t and 2 * t + 1, scales it.
 * SPLIT 0: column j has run j of the span. Products of both slices have the same operand: columns 0 to 3 of the first one's and 4 to 7 of the
 * second one's are of use. 1: the row's elements are floats, each the sum of two halves: columns 4 to 7 have the second ones of the slice. */
#define EXPERT_RUNS (K / 32)
#define EXPERT_SPANS ((NS + 1) / 2)
#define EXPERT_ROUNDS ((EXPERT_SPANS + DEPTH - 1) / DEPTH)
#define EXPERT_FULL (SHARERS * NS * 4 == EXPERT_RUNS && NS % (2 * DEPTH) == 0)
#define EXPERT_PAIRED (GROUP == 32 && KG % 2 == 0)
#define ROW_UNIT (!SPLIT || OTHER_ROW ? 2 : 4) /* bytes of an element of the warp's row */
/* A span in shared memory: the elements, by eight; of each run, one kind behind the other, what a product starts with: of both parts what takes off
 * what the products add to weights, then (ZEROS) less the sum of the elements; then what takes the power of two off. */
#define EXPERT_KINDS ((1 + SPLIT) * (1 + ZEROS))
#define ROW_WORDS (128 * (1 + SPLIT))
#define SPAN_WORDS (ROW_WORDS + 8 * EXPERT_KINDS + 4)
/* The sums of COUNT warps of a row of tiles: where those of the next row are. */
#define SUMS_STEP(count) (((count) + 3) / 4 * 4 + 4)
/* What a lane holds, of warp number MINE of those that share a row, which begins at X; scales and zero points as loaded: taking them apart would wait
 * for them. `run` is the first one of the round, `asked` of the one that is asked for; from RUN_END on they are not the warp's. LINES: shared memory for
 * the row. */
#define EXPERT_TILE(mine, x, lines) \
    const int g = LANE >> 2, t = LANE & 3, has_run = t == (g & 3), own_run = SPLIT ? 2 * t % 4 : 2 * t; \
    int run = (mine) * (4 * NS), asked = run; \
    const int run_end = MIN(run + 4 * NS, EXPERT_RUNS); \
    gp_u32 held[DEPTH][TILES][2][2][4], scales[DEPTH][TILES][1 + SPLIT][2][2], points[DEPTH][TILES][1 + SPLIT][2], row_held[DEPTH][1 + SPLIT][4]; \
    gp_u32 row_part[16] = {0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u}; \
    const unsigned char *from[WHOLE ? 1 : TILES][2], *points_from[WHOLE ? 1 : TILES][2] = {{0, 0}}; \
    const unsigned char *row_from = (const unsigned char *)(x) + (run * 32 + LANE * 8) * ROW_UNIT; \
    const SCALE_T *scales_from[WHOLE ? 1 : TILES][2]; \
    gp_u32 *const line = (lines) + WARP * (DEPTH * SPAN_WORDS); \
    const gp_u32 *const row_at = line + (SPLIT ? g / 4 * 128 + g % 4 * 16 : g * 16); \
    const gp_u32 *const added_at = line + ROW_WORDS + (SPLIT ? t / 2 * 8 : 0) + own_run; \
    float sum[TILES][2]; \
    UNROLL \
    for (int tile = 0; tile < TILES; tile++) sum[tile][0] = sum[tile][1] = 0.0f; \
    (void)points_from, (void)points, (void)run_end
#define EXPERT_PLACE(tile) (WHOLE ? 0 : (tile))
#define ROW_OF(row, rows) (WHOLE ? (row) : MIN((row), (rows) - 1))
/* Whether a run of the round asked for is the warp's; whether slice SLICE of span D is, in lane run LANE_RUN of the round that begins at FIRST. */
#define EXPERT_IN(behind) (EXPERT_FULL || asked + (behind) < run_end)
#define EXPERT_SLICE_IN(d, slice, first, lane_run) \
    (SHARERS * NS * 4 == EXPERT_RUNS && EXPERT_ROUNDS == 1 ? 2 * (d) + (slice) < NS : EXPERT_FULL || (first) + (d) * 8 + (slice) * 4 + (lane_run) < run_end)
/* Bytes of a matrix. They stay before a barrier that stands behind them, as LD_CONSTANT does not: what is asked for first must not wait
 * for arithmetic. */
#if ON_GPU
#define EXPERT_TAKE(p, out) \
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((out)[0]), "=r"((out)[1]), "=r"((out)[2]), "=r"((out)[3]) : "l"(p) : "memory")
#define EXPERT_TAKE8(p, out) asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"((out)[0]), "=r"((out)[1]) : "l"(p) : "memory")
#define EXPERT_TAKE4(p, out) asm volatile("ld.global.u32 %0, [%1];" : "=r"((out)[0]) : "l"(p) : "memory")
#define EXPERT_TAKE2(p, out) \
    do { \
        gp_u16 gp_h; \
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(gp_h) : "l"(p) : "memory"); \
        (out)[0] = gp_h; \
    } while (0)
#define EXPERT_TAKE1(p, out) asm volatile("ld.global.u8 %0, [%1];" : "=r"((out)[0]) : "l"(p) : "memory")
#define EXPERT_PUT(p, from) ((void)(*(uint4 *)(p) = make_uint4((from)[0], (from)[1], (from)[2], (from)[3]))) /* to shared memory */
#else
#define EXPERT_TAKE(p, out) LD_CONSTANT(p, out)
#define EXPERT_TAKE8(p, out) ((void)__builtin_memcpy((out), (p), 8))
#define EXPERT_TAKE4(p, out) LD_CONSTANT4(p, (out)[0])
#define EXPERT_TAKE2(p, out) LD_CONSTANT2(p, (out)[0])
#define EXPERT_TAKE1(p, out) LD_CONSTANT1(p, (out)[0])
#define EXPERT_PUT(p, from) ST_RUN(p, from)
#endif
#define SCALE_TAKE_F32(p, out) EXPERT_TAKE4(p, out)
#define SCALE_TAKE_F16(p, out) EXPERT_TAKE2(p, out)
#define SCALE_TAKE_BF16(p, out) EXPERT_TAKE2(p, out)
#define SCALES_TAKE_F32(p, out) EXPERT_TAKE8(p, out)
#define SCALES_TAKE_F16(p, out) EXPERT_TAKE4(p, out)
#define SCALES_TAKE_BF16(p, out) EXPERT_TAKE4(p, out)
/* Of the run J behind the lane's first: runs 2 * i and 2 * i + 1 have one scale in groups of more than 32. */
#define SCALE_WORD(words, j) (words)[GROUP == 32 ? (j) : 0]
#define SCALE_HALF(words, j) ((gp_u16)(EXPERT_PAIRED ? (words)[0] >> 16 * (j) : SCALE_WORD(words, j)))
#define SCALE_OF_F32(words, j) gp_float_of(SCALE_WORD(words, j))
#define SCALE_OF_F16(words, j) gp_from_f16(SCALE_HALF(words, j))
#define SCALE_OF_BF16(words, j) gp_from_bf16(SCALE_HALF(words, j))
#define EXPERT_SCALE(words, j) (OTHER_SCALES ? GP_PASTE(SCALE_OF_, OTHER_TYPE)(words, j) : GP_PASTE(SCALE_OF_, STYPE)(words, j))
/* Scales of runs RUN and the next, of one type. */
#define EXPERT_ASK_SCALES(type, scale, run, into) \
    do { \
        if (EXPERT_PAIRED) GP_PASTE(SCALES_TAKE_, type)(scale, into); \
        else GP_PASTE(SCALE_TAKE_, type)(scale, into); \
        if (GROUP == 32 && !EXPERT_PAIRED && (run) + 1 < EXPERT_RUNS) GP_PASTE(SCALE_TAKE_, type)(scale + SCALE_UNIT, into + 1); \
    } while (0)
/* The warp's part of span D, of the row, by loads that stay where they are; of the tiles' rows. */
#define EXPERT_ASK_ROW(d) \
    do { \
        UNROLL \
        for (int part = 0; part <= SPLIT; part++) { \
            UNROLL \
            for (int j = 0; j < 4; j++) row_held[d][part][j] = 0u; \
            if (EXPERT_IN((d) * 8 + LANE / 4) && !(OTHER_ROW && part)) LD_WRITTEN(row_from + (d) * (256 * ROW_UNIT) + 16 * part, row_held[d][part]); \
        } \
    } while (0)
#define EXPERT_ASK(d) \
    do { \
        UNROLL \
        for (int tile = 0; tile < TILES; tile++) { \
            const int at = EXPERT_PLACE(tile), step = WHOLE ? tile * TILE_STEP : 0; /* rows behind */ \
            UNROLL \
            for (int part = 0; part < 4; part++) { /* slice, row half */ \
                gp_u32 *const into = held[d][tile][part / 2][part % 2]; \
                if (EXPERT_SLICE_IN(d, part / 2, asked, t)) EXPERT_TAKE(from[at][part % 2] + (step * (K / 2) + (d) * 128 + part / 2 * 64), into); \
                else into[0] = into[1] = into[2] = into[3] = 0u; \
            } \
            UNROLL \
            for (int part = 0; part < 2 * (1 + SPLIT); part++) { \
                const int half = part % 2, behind = (d) * 8 + part / 2 * 4 + own_run, group = (asked + behind) * 32 / GROUP; \
                gp_u32 *const into = scales[d][tile][part / 2][half]; \
                const SCALE_T *const scale = scales_from[at][half] + (step * KG + (GROUP == 32 ? (d) * 8 + part / 2 * 4 : group)) * SCALE_UNIT; \
                const unsigned char *const point = points_from[at][half] + (step * ZERO_ROW + (GROUP == 32 ? (d) * 4 + part / 2 * 2 : group / 2)); \
                into[0] = into[1] = points[d][tile][part / 2][half] = 0u; \
                (void)group, (void)point; \
                if (SPLIT ? EXPERT_SLICE_IN(d, part / 2, asked, own_run) : EXPERT_IN(behind)) { \
                    if (OTHER_SCALES) EXPERT_ASK_SCALES(OTHER_TYPE, scale, asked + behind, into); \
                    else EXPERT_ASK_SCALES(STYPE, scale, asked + behind, into); \
                    if (ZEROS) EXPERT_TAKE1(point, &points[d][tile][part / 2][half]); \
                } \
            } \
        } \
    } while (0)
/* From where the rows begin (ROWS_, of the first expert) to the warp's part: before the expert is known, and before the kernel waits. */
#define EXPERT_BEGIN \
    do { \
        READY8(row_from); \
        UNROLL \
        for (int part = 0; part < 2 * (WHOLE ? 1 : TILES); part++) { \
            from[part / 2][part % 2] += (run + t) * 16; \
            if (GROUP == 32) scales_from[part / 2][part % 2] += (run + own_run) * SCALE_UNIT; \
            if (GROUP == 32 && ZEROS) points_from[part / 2][part % 2] += (run + own_run) / 2; \
            READY8(from[part / 2][part % 2]); \
            READY8(scales_from[part / 2][part % 2]); \
            if (ZEROS) READY8(points_from[part / 2][part % 2]); \
        } \
    } while (0)
/* To expert number EXPERT of OUTPUTS rows each, whose first spans are asked for. */
#define EXPERT_FIRST(expert, outputs) \
    do { \
        UNROLL \
        for (int part = 0; part < 2 * (WHOLE ? 1 : TILES); part++) { \
            from[part / 2][part % 2] += (idx)(expert) * ((idx)(outputs) * (K / 2)); \
            scales_from[part / 2][part % 2] += (idx)(expert) * ((idx)(outputs) * KG * SCALE_UNIT); \
            if (ZEROS) points_from[part / 2][part % 2] += (idx)(expert) * ((idx)(outputs) * ZERO_ROW); \
        } \
        UNROLL \
        for (int d = 0; d < DEPTH; d++) EXPERT_ASK(d); \
    } while (0)
/* From a round to the next. */
#define EXPERT_MOVE(runs) \
    do { \
        asked += (runs); \
        row_from += (runs) * (32 * ROW_UNIT); \
        UNROLL \
        for (int part = 0; part < 2 * (WHOLE ? 1 : TILES); part++) { \
            from[part / 2][part % 2] += (runs) * 16; \
            if (GROUP == 32) scales_from[part / 2][part % 2] += (runs) * SCALE_UNIT; \
            if (GROUP == 32 && ZEROS) points_from[part / 2][part % 2] += (runs) / 2; \
        } \
    } while (0)
/* In lane t of a quad the quad's sum of v[t % COUNT], of 1, 2 or 4 values; overwrites them. */
#define QUAD_SUM(result, v, count) \
    do { \
        UNROLL \
        for (int j = 0; j < ((count) + 1) / 2; j++) \
            (v)[j] = (count) == 1 ? (v)[0] + SHUFFLE_F((v)[0], LANE ^ 1) \
                                  : (t % 2 ? (v)[2 * j + 1] : (v)[2 * j]) + SHUFFLE_F(t % 2 ? (v)[2 * j] : (v)[2 * j + 1], LANE ^ 1); \
        if ((count) > 2) (result) = (t / 2 ? (v)[1] : (v)[0]) + SHUFFLE_F(t / 2 ? (v)[0] : (v)[1], LANE ^ 2); \
        else (result) = (v)[0] + SHUFFLE_F((v)[0], LANE ^ 2); \
    } while (0)
#define ROW_OF_F32(words, y) \
    do { \
        UNROLL \
        for (int j = 0; j < 8; j++) (y)[j] = gp_float_of((words)[j / 4 * SPLIT][j % 4]); \
    } while (0)
#define ROW_OF_F16(words, y) ROW_OF_PAIRS(GP_PAIR_F16, words, y)
#define ROW_OF_BF16(words, y) ROW_OF_PAIRS(GP_PAIR_BF16, words, y)
#define ROW_OF_PAIRS(pair, words, y) \
    do { \
        UNROLL \
        for (int j = 0; j < 4; j++) pair((words)[0][j], (y) + 2 * j); \
    } while (0)
/* Span D of the row into the warp's shared memory; a lane has eight elements, a quad a run. */
#define EXPERT_PREPARE(d) \
    do { \
        gp_u32 *const to = line + (d) * SPAN_WORDS; \
        float y[8], added[4] = {0.0f, 0.0f, 0.0f, 0.0f}, total; \
        if (OTHER_ROW) GP_PASTE(ROW_OF_, OTHER_TYPE)(row_held[d], y); \
        else GP_PASTE(ROW_OF_, TYPE)(row_held[d], y); \
        if (SCALED) { \
            gp_u32 most = 0u; \
            UNROLL \
            for (int j = 0; j < 8; j++) most = MAX(most, gp_bits_of(y[j]) & 0x7fffffffu); \
            most = WARP_MOST(most) >> 23; \
            const gp_u32 up = MIN(268u - most, 253u); \
            UNROLL \
            for (int j = 0; j < 8; j++) y[j] *= gp_float_of(up << 23); \
            if (LANE == 0) to[SPAN_WORDS - 4] = (254u - up) << 23; \
        } \
        UNROLL \
        for (int part = 0; part <= SPLIT; part++) { \
            gp_u32 words[4]; \
            float of[8]; \
            UNROLL \
            for (int j = 0; j < 4; j++) { \
                float pair[2]; \
                words[j] = gp_pack_f16(y[j], y[j + 4]); \
                GP_PAIR_F16(words[j], pair); \
                of[j] = SPLIT ? pair[0] : y[j], of[j + 4] = SPLIT ? pair[1] : y[j + 4]; \
                y[j] -= of[j], y[j + 4] -= of[j + 4]; \
            } \
            EXPERT_PUT(to + part * 128 + LANE * 4, words); \
            const float low = (of[0] + of[4]) + (of[2] + of[6]), high = (of[1] + of[5]) + (of[3] + of[7]), all = low + high; \
            added[part] = -FMAF(NIBBLE_LOW_F16, low, NIBBLE_HIGH_F16 * high); \
            if (!ZEROS) added[part] -= 8.0f * all; \
            if (ZEROS) added[1 + SPLIT + part] = -all; \
        } \
        QUAD_SUM(total, added, EXPERT_KINDS); \
        if (t < EXPERT_KINDS) to[ROW_WORDS + t * 8 + LANE / 4] = gp_bits_of(total); \
    } while (0)
/* A zero point of the group that run BEHIND of the round is in: with GROUP 32 those of both runs of the lane lie in one byte. */
#define POINT_OF(byte, behind, j) ((float)((byte) >> (GROUP == 32 ? 4u * (j) : (gp_u32)(run + (behind)) * 32 / GROUP % 2 * 4) & 15u))
/* Span D of the row times that of the tiles. Two sums of a product, so that one does not wait for the other. */
#define EXPERT_MULTIPLY(d) \
    do { \
        float part_of[TILES][2]; \
        UNROLL \
        for (int tile = 0; tile < TILES; tile++) part_of[tile][0] = part_of[tile][1] = 0.0f; \
        UNROLL \
        for (int slice = 0; slice < 2; slice++) { \
            if (!EXPERT_SLICE_IN(d, slice, run, 0)) continue; /* the same for all lanes */ \
            const int own = SPLIT ? slice : 0; \
            const gp_u32 *const added = added_at + ((d) * SPAN_WORDS + own * 4); \
            if (has_run && (SPLIT || slice == 0)) { \
                UNROLL \
                for (int j = 0; j < 4; j++) LD_RUN(row_at + ((d) * SPAN_WORDS + own * 64 + 4 * j), row_part + 4 * j); \
            } \
            UNROLL \
            for (int tile = 0; tile < TILES; tile++) { \
                float start[4], even[4], odd[4] = {0.0f, 0.0f, 0.0f, 0.0f}; \
                UNROLL \
                for (int j = 0; j < 4; j++) { /* row half, column */ \
                    start[j] = gp_float_of(added[j % 2]); \
                    if (ZEROS) \
                        start[j] = FMAF(POINT_OF(points[d][tile][own][j / 2], (d) * 8 + own * 4 + own_run, j % 2), \
                                        gp_float_of(added[8 * (1 + SPLIT) + j % 2]), start[j]); \
                } \
                UNROLL \
                for (int i = 0; i < 4; i++) { \
                    gp_u32 a[8]; \
                    NIBBLES_F16(held[d][tile][slice][0][i], a[0], a[2], a[4], a[6]); \
                    NIBBLES_F16(held[d][tile][slice][1][i], a[1], a[3], a[5], a[7]); \
                    if (i == 0) MMA_FROM_F16(even, a, row_part, start); \
                    else MMA_F16(even, a, row_part + 4 * i); \
                    MMA_F16(odd, a + 4, row_part + (4 * i + 2)); \
                } \
                if (SPLIT || t / 2 == slice) { \
                    UNROLL \
                    for (int j = 0; j < 4; j++) \
                        part_of[tile][j / 2] = FMAF(even[j] + odd[j], EXPERT_SCALE(scales[d][tile][own][j / 2], j % 2), part_of[tile][j / 2]); \
                } \
            } \
        } \
        UNROLL \
        for (int part = 0; part < 2 * TILES; part++) { \
            float *const to = &sum[part / 2][part % 2]; \
            *to = FMAF(part_of[part / 2][part % 2], SCALED ? gp_float_of(line[((d) + 1) * SPAN_WORDS - 4]) : 1.0f, *to); \
        } \
    } while (0)
/* All rounds. The row is read, which the L2 cache has, and prepared in a loop that ends at once, which the compiler does not know: instructions of a warp
 * issue in order, and without it some that wait for weights stand before the row's arithmetic, or loads of weights behind what waits for the row. */
#define EXPERT_PRODUCTS(expert) \
    do { \
        UNROLL_BY(1) \
        for (int round = 0; round < EXPERT_ROUNDS; round++) { \
            const int more = round + 1 < EXPERT_ROUNDS; \
            if (round > 0) SYNC_WARP(); \
            int again = (expert); /* a number, so not below 0 */ \
            do { \
                UNROLL \
                for (int d = 0; d < DEPTH && round == 0; d++) EXPERT_ASK_ROW(d); \
                UNROLL \
                for (int d = 0; d < DEPTH; d++) EXPERT_PREPARE(d); \
                READY4(again); \
            } while (again < 0); \
            SYNC_WARP(); \
            if (more) { \
                EXPERT_MOVE(8 * DEPTH); \
                UNROLL \
                for (int d = 0; d < DEPTH; d++) EXPERT_ASK_ROW(d); \
            } \
            UNROLL \
            for (int d = 0; d < DEPTH; d++) { \
                EXPERT_MULTIPLY(d); \
                if (more) EXPERT_ASK(d); \
            } \
            run += 8 * DEPTH; \
        } \
    } while (0)
/* The warp's sums of the tiles' rows, times FACTOR, to those of COUNT warps; the total of COUNT from place AT on. */
#define EXPERT_SUMS(sums, warp, count, factor) \
    do { \
        UNROLL \
        for (int tile = 0; tile < TILES; tile += 2) { \
            const int next = MIN(tile + 1, TILES - 1), two = next > tile; \
            float both[4] = {sum[tile][0], sum[tile][1], sum[next][0], sum[next][1]}, total; \
            QUAD_SUM(total, both, 2 + 2 * two); \
            if (two || t < 2) (sums)[(tile * 16 + t * 8 + g) * SUMS_STEP(count) + (warp)] = total * (factor); \
        } \
    } while (0)
#define EXPERT_TOTAL(total, sums, at, count) \
    do { \
        float four[4] = {0.0f, 0.0f, 0.0f, 0.0f}; \
        UNROLL \
        for (int warp = 0; warp < (count); warp += 4) { \
            gp_u32 words[4]; \
            LD_RUN((sums) + ((at) + warp), words); \
            UNROLL \
            for (int j = 0; j < 4 && warp + j < (count); j++) four[j] = warp == 0 ? gp_float_of(words[j]) : four[j] + gp_float_of(words[j]); \
        } \
        (total) = (four[0] + four[1]) + (four[2] + four[3]); \
    } while (0)
