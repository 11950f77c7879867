/* matmul_wide: as matmul_rows of FORM 2, Y[z, m, n] = epilogue(sum over k of A[z, m, k] * B[n, k]) with B in 4 bits, on the tensor cores of
 * sm_90a (wgmma.h), for rows in hundreds. Weights are rounded to TYPE, as (q - zero) * scale.
 *
 * A block makes BM x BN of Y. Each four warps have 64 columns, whose weights are the first operand, out of registers; rows of A are the
 * second, out of shared memory, so that the numbers of a column come apart in one lane. Steps of 64 k go through STAGES places, in two halves:
 * while the tensor cores work on one, the other is taken apart. Copies are STAGES - 2 steps ahead: the place of the step before the last is
 * free behind the barrier, since at most one half is under way when a thread arrives there with the last step's other half.
 * Grid: row tiles, column tiles, batch, as in matmul_rows, whose operands these are:
 *   M N K  A_SM Y_SM  Z_A Z_Y Z_BEYOND  TYPE (of A and the scales)  KB BS ZP ZP_ROW  PAIRS YTYPE  EPILOGUE
 * K is a multiple of 32; BM is 128 or 256, BN 128. */
#define ROW_BYTES (BM * 128) /* of a stage: rows of A, then words of B, and a pair of words for each column and half: scale, zero point */
#define WORD_BYTES (BN * 32)
#define STAGE_BYTES (ROW_BYTES + WORD_BYTES + BN * 16)
#if ZP
#define LD_ZERO LD_CONSTANT1(Z + Z_OFF + (z_first + own_group / 2), zero)
#define ZERO_POINT (zero >> own_group % 2 * 4 & 15)
#else
#define LD_ZERO (void)zero
#define ZERO_POINT 8u
#endif
/* Asks for the next step, into the stage at TO, and for its scale and zero point, which come through registers: they lie on no 4 bytes. */
#define FETCH(to) \
    do { \
        unsigned char *const a_to = ring + (to) + a_at; \
        if (at_k < K) { \
            COPY_ROWS(0); \
            COPY_ROWS(1); \
            COPY_ROWS(2); \
            COPY_ROWS(3); \
            COPY_ROWS_MORE \
            COPY16(ring + (to) + b_at, b_from, at_k + b_piece * 32 < K); \
        } \
        COPY_END(); \
        own_group = (gp_u32)MIN(at_k + own_half * 32, K - 32) / BS; \
        LD_CONSTANT2(S + S_OFF + (s_first + own_group), scale); \
        LD_ZERO; \
        a_from += 64, b_from += 32, at_k += 64; \
    } while (0)
#define COPY_ROWS(c) \
    COPY16_BEHIND(a_to, c * KERNEL_BLOCK * 16, a_from, c * (KERNEL_BLOCK / 8) * A_SM * 2, line + c * (KERNEL_BLOCK / 8) < m_left && at_k + piece * 8 < K)
#if BM == 256
#define COPY_ROWS_MORE COPY_ROWS(4); COPY_ROWS(5); COPY_ROWS(6); COPY_ROWS(7);
#define MULTIPLY GP_PASTE(WGMMA_BROAD_, TYPE)
#define DONE WGMMA_DONE_BROAD
#else
#define COPY_ROWS_MORE
#define MULTIPLY GP_PASTE(WGMMA_, TYPE)
#define DONE WGMMA_DONE
#endif
/* A step later, since this waits for what FETCH loads. */
#define PUT_SCALE(to) \
    do { \
        const gp_u32 less = GP_PASTE(MAGIC_, TYPE) | 0x80008000u | ZERO_POINT * 0x10001u; \
        *(gp_u64 *)(ring + (to) + s_at) = scale * 0x10001u | (gp_u64)less << 32; \
    } while (0)
#define Y_LINE(m) (m)
#define Y_SN 1
#include "product_store.h"
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx z = BID_Z, m0 = (idx)BID_X * BM, n0 = (idx)BID_Y * BN, rows = M, columns = N;
    if (Z_BEYOND || m0 >= rows) return;
#if WGMMA
    SHARED_MORE(gp_u32, tiles, SHARED_BYTES / 4);
    typedef char gp_fits[SHARED_BYTES >= 1024 + STAGES * STAGE_BYTES && STAGES * STAGE_BYTES >= WIDE_STORE_BYTES && BN * 2 == KERNEL_BLOCK ? 1 : -1];
    unsigned char *const ring = WGMMA_TILES(tiles);
    const int steps = (K + 63) / 64, g = LANE / 4, t = LANE % 4, own_row = WARP * 16 + g;
    const int other = (BN + (g ^ 4) - g) * 16; /* from a first piece of words to the second */
    float sum[BM / 2];
    UNROLL
    for (int j = 0; j < BM / 2; j++) sum[j] = 0.0f;
    /* Where the thread's pieces of 16 bytes come from and go to. Pieces of words: all columns' first, then all second ones, these
     * exchanged so that both of four columns lie in different banks. */
    const int m_left = (int)MIN(rows - m0, BM), n_last = (int)MIN(columns - n0, BN) - 1;
    const int line = TID / 8, piece = TID % 8, a_at = line * 128 + (piece ^ line % 8) * 16;
    const A_T *a_from = A + A_OFF + Z_A + (m0 + line) * A_SM + piece * 8;
    const int b_line = TID / 2, b_piece = TID % 2, b_at = ROW_BYTES + (b_piece * BN + (b_line ^ b_piece * 4)) * 16;
    const B_T *b_from = B + B_OFF + (n0 + MIN(b_line, n_last)) * (KB * BS / 2) + b_piece * 16;
    const int own_half = TID / BN, s_at = ROW_BYTES + WORD_BYTES + TID * 8;
    const gp_u32 own_column = (gp_u32)n0 + (gp_u32)MIN(TID % BN, n_last), s_first = own_column * KB, z_first = own_column * ZP_ROW;
    int at_k = 0; /* of what is fetched next */
    gp_u32 scale = 0, zero = 0, own_group = 0;
    for (int to = 0; to < (STAGES - 2) * STAGE_BYTES; to += STAGE_BYTES) {
        if (to > 0) PUT_SCALE(to - STAGE_BYTES);
        FETCH(to);
    }
    int here = 0, next = (STAGES - 2) * STAGE_BYTES; /* in `ring`: of the stage that is multiplied, and of the one that is fetched */
    gp_u32 a[2][2][4];
    UNROLL_BY(1)
    for (int step = 0; step < steps; step++) {
        COPY_WAIT(STAGES - 3);
        WGMMA_ARRIVED();
        SYNC();
        PUT_SCALE(next > 0 ? next - STAGE_BYTES : (STAGES - 1) * STAGE_BYTES);
        FETCH(next);
        const unsigned char *b_here = ring + here + ROW_BYTES + own_row * 16, *s_here = ring + here + ROW_BYTES + WORD_BYTES + own_row * 8;
        const gp_u32 rows_here = WGMMA_ROWS(ring + here);
        UNROLL
        for (int half = 0; half < 2; half++) {
            gp_u32 packed[2][4];
            gp_u64 scales[2];
            UNROLL
            for (int r = 0; r < 2; r++) {
                LD_RUN((half ? b_here + other : b_here) + r * 128, packed[r]);
                scales[r] = *(const gp_u64 *)(s_here + (half * BN + 8 * r) * 8);
            }
            WGMMA_WAIT(1); /* the products that read a[half] */
            UNROLL
            for (int j = 0; j < 8; j++) { /* numbers 8 * (j / 2) + 2 * t and the next are byte t of word j / 2 */
                const gp_u32 word = packed[j % 2][j / 2], pair = gp_bytes(word, word >> 4, 0x0400u + 0x0101u * (gp_u32)t);
                const gp_u32 less = GP_PASTE(ADD2_, TYPE)(gp_fours(pair, GP_PASTE(MAGIC_, TYPE)), (gp_u32)(scales[j % 2] >> 32));
                a[half][j / 4][j % 4] = GP_PASTE(MUL2_, TYPE)(less, (gp_u32)scales[j % 2]);
            }
            WGMMA_BEGIN();
            MULTIPLY(sum, a[half][0], rows_here + 4 * half);
            MULTIPLY(sum, a[half][1], rows_here + 4 * half + 2);
            WGMMA_END();
        }
        here = here == (STAGES - 1) * STAGE_BYTES ? 0 : here + STAGE_BYTES;
        next = next == (STAGES - 1) * STAGE_BYTES ? 0 : next + STAGE_BYTES;
    }
    DONE(sum);
#include "wide_store.h"
#else
    /* A thread makes eight rows by some columns. */
    const int each = BM * BN / 8 / KERNEL_BLOCK;
    const idx m_at = m0 + TID % (BM / 8) * 8, n_at = n0 + TID / (BM / 8) * each;
    for (idx own = n_at; own < n_at + each && own < columns && m_at < rows; own++) {
        gp_acc sum[8];
        for (int i = 0; i < 8; i++) sum[i] = gp_acc_zero();
        for (idx k = 0; k < K; k += 32) {
            const float scale = (float)S_LD(S_OFF + own * KB + k / BS);
            float a[32], b[32];
#if ZP
            const gp_u32 zero = Z[Z_OFF + own * ZP_ROW + k / BS / 2], own_group = (gp_u32)(k / BS);
#endif
            gp_unpack(B + B_OFF + (own * KB * BS + k) / 2, 4, 32, (float)ZERO_POINT, b);
            for (int i = 0; i < 8; i++) {
                const idx at = A_OFF + Z_A + MIN(m_at + i, rows - 1) * A_SM + k;
                for (int j = 0; j < 32; j += 8) GP_PASTE(LDV_, TYPE)(A, at + j, a + j);
                sum[i] = gp_acc_scaled(sum[i], gp_mac(gp_acc_zero(), b, a, 32), scale);
            }
        }
        for (int i = 0; i < 8 && m_at + i < rows; i++) STORE(m_at + i, own, gp_acc_total(sum[i]));
    }
#endif
}
