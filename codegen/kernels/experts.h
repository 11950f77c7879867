/* experts.h - what the kernels of a mixture of experts share: the choice of a row's experts, their shares, and tiles of 4-bit
 * matrices on tensor cores. Macros: they stand on names of the kernel that uses them.
 *
 * Routing takes LOGITS (operand), EXPERTS, TOP, NORMALISE, GIVEN (1: shares are made of GIVEN_LD(row, e), not of the logits), and
 * stores to CHOSEN and SHARE [row, slot]. Logits are compared as integers, in IEEE's total order, equal ones by their number. */
#define LOGIT(row, e) ((float)LOGITS_LD(LOGITS_AT(row, e)))

/* A lane's part of the row, logits[EXPERT_KEYS]; LOGITS_V of them in one load. */
#define EXPERT_KEYS ((EXPERTS + 31) / 32)
#define LOGITS_TAKE(row, logits) \
    do { \
        UNROLL \
        for (int j = 0; j < EXPERT_KEYS; j += LOGITS_V) { \
            const int e = LANE * EXPERT_KEYS + j; \
            if (LOGITS_V > 1) LOGITS_LOAD(LOGITS, LOGITS_AT(row, e), (logits) + j); \
            else (logits)[j] = LOGIT(row, MIN(e, EXPERTS - 1)); \
        } \
    } while (0)
/* By one warp, all of it: chosen[0..count), in shared memory, become the numbers of the largest logits of the row, in order: each lane
 * sorts its own, then the first of each lane are compared COUNT times. */
#define CHOOSE(logits, count, chosen) \
    do { \
        gp_u32 keys[EXPERT_KEYS]; \
        int numbers[EXPERT_KEYS]; \
        UNROLL \
        for (int j = 0; j < EXPERT_KEYS; j++) { \
            const gp_u32 bits = gp_bits_of((logits)[j]), key = bits ^ ((gp_u32)((int)bits >> 31) | 0x80000000u); \
            numbers[j] = LANE * EXPERT_KEYS + j; \
            keys[j] = numbers[j] >= EXPERTS ? 0u : key > 1u ? key : 1u; /* 0, below all others, is none */ \
        } \
        UNROLL \
        for (int turn = 0; turn < EXPERT_KEYS; turn++) { \
            UNROLL \
            for (int j = turn % 2; j + 1 < EXPERT_KEYS; j += 2) { \
                const gp_u32 key = keys[j], next = keys[j + 1]; \
                const int number = numbers[j], other = numbers[j + 1]; \
                const int after = next > key; \
                keys[j] = after ? next : key, keys[j + 1] = after ? key : next; \
                numbers[j] = after ? other : number, numbers[j + 1] = after ? number : other; \
            } \
        } \
        UNROLL_BY(1) \
        for (int rank = 0; rank < (count); rank++) { \
            int mine; \
            WARP_MAX_FIRST(mine, keys[0]); \
            if (mine) { \
                (chosen)[rank] = numbers[0]; \
                UNROLL \
                for (int j = 0; j + 1 < EXPERT_KEYS; j++) keys[j] = keys[j + 1], numbers[j] = numbers[j + 1]; \
                keys[EXPERT_KEYS - 1] = 0u; \
            } \
        } \
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
            if (!GIVEN) share = EXPF(LOGIT(row, (chosen)[j]) - top) / sum; \
            else if (NORMALISE) share = sum != 0.0f ? GIVEN_LD(row, (chosen)[j]) / sum : 0.0f; \
            else share = GIVEN_LD(row, (chosen)[j]); \
            CHOSEN_ST(CHOSEN_AT(row, j), (chosen)[j]); \
            SHARE_ST(SHARE_AT(row, j), share); \
        } \
    } while (0)

/* ---- one row times 16 rows of a 4-bit matrix, as in gemv: lane 4 * g + t holds rows g and g + 8 of the tile. K elements, a multiple of
 * 32, in slices of EXPERT_SLICE; groups of GROUP, a multiple of 32, have a scale, KG a row, and with ZEROS a zero point, ZERO_ROW bytes a row; without
 * it is 8. The row lies in `line` as a word of eight weights comes apart, MTYPE each.
 * SPLIT 0: EXPERT_SLICE 256, a column of the product has one run of 32 elements. 1: the row's elements are floats, each in `line` as the sum of two
 * MTYPE, the second PADDED elements behind the first; EXPERT_SLICE 128, columns 4 to 7 have the second ones. */
#define EXPERT_HALVES (2 - SPLIT)
#define EXPERT_SLICE (128 * EXPERT_HALVES)
#define EXPERT_SLICES ((K + EXPERT_SLICE - 1) / EXPERT_SLICE)
#define EXPERT_RUNS (EXPERT_SLICE / 32)
#define EXPERT_PAIRED (GROUP == 32 && KG % 2 == 0)
/* What a lane holds of COUNT slices, and where its two rows begin; scales and zero points as loaded: taking them apart would wait for them. */
#define EXPERT_TILE(count) \
    const int g = LANE >> 2, t = LANE & 3; \
    gp_u32 held[count][2 * EXPERT_HALVES][4], scales[count][2][2], points[count][2][2]; \
    const unsigned char *from[2], *points_from[2] = {0, 0}; \
    const SCALE_T *scales_from[2]; \
    float sum[2] = {0.0f, 0.0f}; \
    (void)points_from, (void)points
/* The first of the two runs that columns 2 * t and 2 * t + 1 of the slice's product have. */
#define EXPERT_RUN(slice) ((slice) * EXPERT_RUNS + 2 * t % EXPERT_RUNS)
/* The rows from slice FIRST on, as EXPERT_LOAD reads them. */
#define EXPERT_BEGIN(first) \
    do { \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            from[half] += ((first) * EXPERT_RUNS + t) * 16; \
            if (GROUP == 32) scales_from[half] += EXPERT_RUN(first); \
            if (GROUP == 32 && ZEROS) points_from[half] += EXPERT_RUN(first) / 2; \
        } \
    } while (0)
/* Sixteen bytes of a matrix, one scale, or two that are aligned as one. They stay before a barrier that stands behind them, as LD_CONSTANT
 * does not: what is asked for first must not wait for arithmetic. */
#if ON_GPU
#define EXPERT_TAKE(p, out) \
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((out)[0]), "=r"((out)[1]), "=r"((out)[2]), "=r"((out)[3]) : "l"(p) : "memory")
#else
#define EXPERT_TAKE(p, out) LD_CONSTANT(p, out)
#endif
#define SCALE_TAKE_F32(p, out) ((out) = gp_bits_of(*(p)))
#define SCALE_TAKE_F16(p, out) ((out) = *(p))
#define SCALE_TAKE_BF16(p, out) ((out) = *(p))
#define SCALES_TAKE_F32(p, out) gp_words2((p), (out))
#define SCALES_TAKE_F16(p, out) ((out)[0] = *(const gp_u32 *)(p))
#define SCALES_TAKE_BF16(p, out) ((out)[0] = *(const gp_u32 *)(p))
FN void gp_words2(const float *p, gp_u32 *out)
{
#if ON_GPU
    const uint2 words = *(const uint2 *)p;
    out[0] = words.x, out[1] = words.y;
#else
    out[0] = gp_bits_of(p[0]), out[1] = gp_bits_of(p[1]);
#endif
}
#define SCALE_OF_F32(words, j) gp_float_of((words)[j])
#define SCALE_OF_F16(words, j) gp_from_f16((gp_u16)(EXPERT_PAIRED ? (words)[0] >> 16 * (j) : (words)[j]))
#define SCALE_OF_BF16(words, j) gp_from_bf16((gp_u16)(EXPERT_PAIRED ? (words)[0] >> 16 * (j) : (words)[j]))
/* Slice number SLICE, which is STEP behind the first. */
#define EXPERT_LOAD(d, slice, step) \
    do { \
        UNROLL \
        for (int run = 0; run < 2 * EXPERT_HALVES; run++) { \
            const int h = (run >> 1) * 4; \
            if (K % EXPERT_SLICE == 0 || (slice) * EXPERT_RUNS + h + t < K / 32) \
                EXPERT_TAKE(from[run & 1] + ((step) * EXPERT_RUNS + h) * 16, held[d][run]); \
            else held[d][run][0] = held[d][run][1] = held[d][run][2] = held[d][run][3] = 0u; \
        } \
        const int run = EXPERT_RUN(slice); /* one run, and the other, or the last */ \
        const int other = K % EXPERT_SLICE == 0 ? run + 1 : MIN(run + 1, K / 32 - 1); \
        const int one = GROUP == 32 ? (step) * EXPERT_RUNS : run * 32 / GROUP; \
        const int two = GROUP == 32 ? one + other - run : other * 32 / GROUP; \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            scales[d][half][0] = scales[d][half][1] = points[d][half][0] = points[d][half][1] = 0u; \
            if (K % EXPERT_SLICE == 0 || run < K / 32) { \
                if (EXPERT_PAIRED) GP_PASTE(SCALES_TAKE_, STYPE)(scales_from[half] + one, scales[d][half]); \
                else { \
                    GP_PASTE(SCALE_TAKE_, STYPE)(scales_from[half] + one, scales[d][half][0]); \
                    GP_PASTE(SCALE_TAKE_, STYPE)(scales_from[half] + two, scales[d][half][1]); \
                } \
                if (ZEROS) points[d][half][0] = points_from[half][one / 2]; \
                if (ZEROS && GROUP > 32) points[d][half][1] = points_from[half][two / 2]; \
            } \
        } \
    } while (0)
/* The zero point of run RUN + j of the slice: with GROUP 32 both lie in one byte. */
#define POINT_OF(words, run, j) \
    ((float)(GROUP == 32 ? (words)[0] >> 4 * (j) & 15u : (words)[j] >> MIN((run) + (j), K / 32 - 1) * 32 / GROUP % 2 * 4 & 15u))
/* LINE_: of the tile's row, MAGIC and TOTAL: of its runs (with SPLIT RUNS of them: then the second elements'). */
#define EXPERT_MULTIPLY(d, slice, line_, magic_, total_) \
    do { \
        float even[4] = {0.0f, 0.0f, 0.0f, 0.0f}, odd[4] = {0.0f, 0.0f, 0.0f, 0.0f}; \
        UNROLL \
        for (int h = 0; h < EXPERT_HALVES; h++) { \
            const gp_u32 *share = (line_) + ((slice) * EXPERT_RUNS + h * 4 + t) * 16; \
            if (SPLIT && g == t + 4) share += LINE_WORDS; \
            else if (g != t + 4 * h) share = none; \
            UNROLL \
            for (int i = 0; i < 4; i++) { \
                gp_u32 a[8], b[4]; \
                LD_RUN(share + 4 * i, b); \
                GP_PASTE(NIBBLES_, MTYPE)(held[d][2 * h][i], a[0], a[2], a[4], a[6]); \
                GP_PASTE(NIBBLES_, MTYPE)(held[d][2 * h + 1][i], a[1], a[3], a[5], a[7]); \
                GP_PASTE(MMA_, MTYPE)(even, a, b); \
                GP_PASTE(MMA_, MTYPE)(odd, a + 4, b + 2); \
            } \
        } \
        const int run = EXPERT_RUN(slice), place = run + (SPLIT && t > 1 ? LINE_WORDS / 16 : 0); \
        (void)run; \
        UNROLL \
        for (int j = 0; j < 4; j++) { /* row half, column */ \
            float taken = (magic_)[place + (j & 1)]; \
            if (ZEROS) taken = FMAF(POINT_OF(points[d][j >> 1], run, j & 1), (total_)[place + (j & 1)], taken); \
            sum[j >> 1] += (even[j] + odd[j] - taken) * GP_PASTE(SCALE_OF_, STYPE)(scales[d][j >> 1], j & 1); \
        } \
    } while (0)
/* The slices of a row that SHARERS warps share, of which this is number MINE: those asked for at once, then the products of all. */
#define EXPERT_FIRST(sharers, mine) \
    do { \
        EXPERT_BEGIN(mine); \
        UNROLL \
        for (int d = 0; d < DEPTH; d++) \
            if (EXPERT_SLICES % ((sharers) * DEPTH) == 0 || (mine) + d * (sharers) < EXPERT_SLICES) EXPERT_LOAD(d, (mine) + d * (sharers), d * (sharers)); \
    } while (0)
#define EXPERT_PRODUCTS(sharers, mine, line_, magic_, total_) \
    do { \
        UNROLL_BY(1) \
        for (int first = 0; first < EXPERT_SLICES; first += (sharers) * DEPTH) { \
            UNROLL \
            for (int d = 0; d < DEPTH; d++) { \
                const int slice = first + d * (sharers) + (mine), next = slice + DEPTH * (sharers); \
                if (EXPERT_SLICES % ((sharers) * DEPTH) == 0 || slice < EXPERT_SLICES) EXPERT_MULTIPLY(d, slice, line_, magic_, total_); \
                if (EXPERT_SLICES > (sharers) * DEPTH && next < EXPERT_SLICES) EXPERT_LOAD(d, next, next - (mine)); \
            } \
        } \
    } while (0)
/* The lanes' parts of both rows to TO[16], by lanes with t 0. */
#define EXPERT_SUMS(to) \
    do { \
        UNROLL \
        for (int half = 0; half < 2; half++) { \
            sum[half] += SHUFFLE_F(sum[half], LANE ^ 1); \
            sum[half] += SHUFFLE_F(sum[half], LANE ^ 2); \
            if (t == 0) (to)[g + 8 * half] = sum[half]; \
        } \
    } while (0)
/* Vector V of eight elements of the row, y, to line_, and with its three neighbours what a run's products have too much to magic_, and its
 * sum to total_; all lanes, VALID or not. */
#define LINE_PUT(valid, v, y, line_, magic_, total_) \
    do { \
        UNROLL \
        for (int piece = 0; piece <= SPLIT; piece++) { \
            gp_u32 words[4]; \
            float part[8]; \
            UNROLL \
            for (int j = 0; j < 4; j++) { \
                words[j] = GP_PASTE(PACK2_, MTYPE)((y)[j], (y)[j + 4]); \
                part[j] = SPLIT ? GP_PASTE(GP_OF_, MTYPE)((gp_u16)(words[j] & 0xffffu)) : (y)[j]; \
                part[j + 4] = SPLIT ? GP_PASTE(GP_OF_, MTYPE)((gp_u16)(words[j] >> 16)) : (y)[j + 4]; \
                (y)[j] -= SPLIT ? part[j] : 0.0f, (y)[j + 4] -= SPLIT ? part[j + 4] : 0.0f; \
            } \
            if (valid) { \
                UNROLL \
                for (int j = 0; j < 4; j++) (line_)[piece * LINE_WORDS + 4 * (v) + j] = words[j]; \
            } \
            float low = (part[0] + part[4]) + (part[2] + part[6]), high = (part[1] + part[5]) + (part[3] + part[7]); \
            low += SHUFFLE_F(low, LANE ^ 1); \
            high += SHUFFLE_F(high, LANE ^ 1); \
            low += SHUFFLE_F(low, LANE ^ 2); \
            high += SHUFFLE_F(high, LANE ^ 2); \
            if ((valid) && (LANE & 3) == 0) { \
                const float excess = FMAF(GP_PASTE(NIBBLE_LOW_, MTYPE), low, GP_PASTE(NIBBLE_HIGH_, MTYPE) * high); \
                (magic_)[piece * (LINE_WORDS / 16) + (v) / 4] = excess + (ZEROS ? 0.0f : 8.0f * (low + high)); \
                if (ZEROS) (total_)[piece * (LINE_WORDS / 16) + (v) / 4] = low + high; \
            } \
        } \
    } while (0)
