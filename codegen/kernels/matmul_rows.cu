/* matmul_rows: Y[z, m, n] = epilogue(sum over k of A[z, m, k] * B[z, n, k]) for many rows m, on tensor cores. A is in halves,
 * contiguous along k, rows on 16 bytes.
 *
 * A block of 4 warps makes BM x BN of Y, a warp half by half of that. Tiles of 32 k go through STAGES places in shared memory,
 * the copies of STAGES - 1 of them under way. Grid: row tiles, column tiles, batch; row tiles come first, so that blocks
 * that run together share columns of B, which is read once.
 *   M N K              extents           A_SM B_SK B_SN Y_SM Y_SN   strides
 *   Z_A Z_B Z_Y        offsets of batch z, expressions; Z_BEYOND is true for a z beyond the extents
 *   TYPE               F16 BF16, of A and of a plain B
 *   FORM               0: B contiguous along k; 1: along n, rows on 16 bytes; 2: 4 bits as in matmul_nbits, KB blocks of BS (a
 *                      multiple of 32) a row, scales S of STYPE, zero points Z where ZP is 1; the sums of 32 k are scaled in float
 *   WIDE               1: blocks of 256 threads for sm_90a, BM 128 or 256, BN 128, SHARED_BYTES of shared memory: matmul_rows_wide.h. FORM 0 or 1, PARTIAL 0
 *   GROUPED            1: z counts groups of rows, each with its own B; the grid's row tiles are those of TILE (z or -1, first row)
 *   A_LINE(m) Y_LINE(m)   the lines of A and Y that row m of z is in
 *   PARTIAL            1: the extent along which an operand is contiguous may be no multiple of 8
 *   PAIRS              1: Y is in halves, neighbouring columns in one word: YTYPE is its type
 *   EPILOGUE           expression over v, z, m, n, after EPILOGUE_BODY */
#define WM (BM / 2)
#define WN (BN / 2)
#if FORM == 2
#define B_WORDS (BN * 4) /* of a stage */
#if ZP
#define ZERO_POINT(n, g) ((int)(Z[Z_OFF + Z_Z + (n) * ZP_ROW + (g) / 2] >> (g) % 2 * 4) & 15)
#define ZERO_OF(n) zeros[n]
#else
#define ZERO_POINT(n, g) 8
#define ZERO_OF(n) GP_PASTE(ZERO_, TYPE)(8)
#endif
#else
#define B_WORDS (BN * 16)
#endif
#if PARTIAL
#define FETCH(to, from, within, bytes) COPY_PART(to, from, (within) ? (bytes) : 0)
#else
#define FETCH(to, from, within, bytes) COPY16(to, from, (within) && (bytes) > 0)
#endif
/* Rows of 64 bytes, four pieces of 16: how the pieces of a row are exchanged, so that those of eight rows lie in different banks.
 * The longer rows of form 1 exchange theirs by k % 8. */
#define PLACE(row) ((row) / 2 % 4)
#include "product_store.h"
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
#if GROUPED
    const idx z = TILE_LD(TILE_OFF + 2 * (idx)BID_X), m0 = TILE_LD(TILE_OFF + 2 * (idx)BID_X + 1);
    if (z < 0) return;
#else
    const idx z = BID_Z, m0 = (idx)BID_X * BM;
#endif
    const idx rows = M, columns = N, inner = K, n0 = (idx)BID_Y * BN;
    if (Z_BEYOND || m0 >= rows || n0 >= columns) return;
#if WIDE && WGMMA
#include "matmul_rows_wide.h"
#elif TENSOR
    SHARED(gp_u32, tiles, STAGES * (BM * 16 + B_WORDS));
#if FORM == 2
    SHARED(float, scales, STAGES * BN);
#if ZP
    SHARED(gp_u32, zeros, STAGES * BN);
#endif
#endif
    const int steps = (int)((inner + 31) / 32), g = LANE / 4, t = LANE % 4;
    const int wm = WARP % 2 * WM, wn = WARP / 2 * WN;
    float sum[WM / 16][WN / 8][4];
    UNROLL
    for (int i = 0; i < WM / 16; i++) {
        UNROLL
        for (int j = 0; j < WN / 8; j++) sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0.0f;
    }
    /* Where the thread's pieces of 16 bytes come from; those beyond the extents are zeros. */
    const int m_left = (int)MIN(rows - m0, BM), n_left = (int)MIN(columns - n0, BN), depth = (int)inner;
    const int line = TID / 4, piece = TID % 4;
    const int at = (line * 4 + (piece ^ PLACE(line))) * 4;
#if GROUPED
    const A_T *a_from[BM / 32];
    UNROLL
    for (int c = 0; c < BM / 32; c++) {
        const idx m = MIN(m0 + line + 32 * c, rows - 1);
        a_from[c] = A + A_OFF + Z_A + A_LINE(m) * A_SM + piece * 8;
    }
#define A_FROM(c) (a_from[c] + next * 32)
#else
    const A_T *a_from = A + A_OFF + Z_A + (m0 + line) * A_SM + piece * 8;
#define A_FROM(c) (a_from + c * 32 * A_SM)
#endif
#if FORM == 0
    const B_T *b_from = B + B_OFF + Z_B + (n0 + line) * B_SN + piece * 8;
#elif FORM == 1
    const int b_line = TID / (BN / 8), b_piece = TID % (BN / 8), b_bytes = MAX(MIN(2 * (n_left - b_piece * 8), 16), 0);
    const int b_at = b_line * (BN / 2) + (b_piece ^ b_line % 8) * 4;
    const B_T *b_from = B + B_OFF + Z_B + b_line * B_SK + n0 + b_piece * 8;
#else
    const idx own_column = n0 + MIN(TID, n_left - 1);
    const B_T *b_from = B + B_OFF + Z_B + own_column * (KB * BS / 2);
    const S_T *s_from = S + S_OFF + Z_S + own_column * KB;
    const int takes_column = BN == KERNEL_BLOCK || TID < BN;
#if ZP
    const Z_T *z_from = Z + Z_OFF + Z_Z + own_column * ZP_ROW;
#endif
#endif
    int place = 0, here = 0; /* in `tiles`: of the stage that is fetched, and of the one that is multiplied */
    for (int step = 1 - STAGES; step < steps; step++) {
        const int next = step + STAGES - 1, k_left = depth - next * 32;
        gp_u32 *a_next = tiles + place * BM * 16, *b_next = tiles + STAGES * BM * 16 + place * B_WORDS;
        if (step >= 0) {
            COPY_WAIT(STAGES - 2);
            SYNC();
        }
#if FORM == 2
        S_T scale = 0; /* as they come: a conversion here would wait for them */
        int zero = 0;
        const int group = next * 32 / BS;
#endif
        if (k_left > 0) {
            const int bytes = MAX(MIN(2 * k_left - 16 * piece, 16), 0);
            UNROLL
            for (int c = 0; c < BM / 32; c++)
                FETCH(a_next + at + c * 512, A_FROM(c), line + c * 32 < m_left, bytes);
#if !GROUPED
            a_from += 32;
#endif
#if FORM == 0
            UNROLL
            for (int c = 0; c < BN / 32; c++)
                FETCH(b_next + at + c * 512, b_from + c * 32 * B_SN, line + c * 32 < n_left, bytes);
            b_from += 32;
#elif FORM == 1
            UNROLL
            for (int c = 0; c < BN / 32; c++)
                FETCH(b_next + b_at + c * 512, b_from + c * (1024 / BN) * B_SK, b_line + c * (1024 / BN) < k_left, b_bytes);
            b_from += 32 * B_SK;
#else
            if (takes_column) {
                COPY16(b_next + TID * 4, b_from, 1);
                b_from += 16;
                scale = s_from[group];
#if ZP
                zero = z_from[group / 2];
#endif
            }
#endif
        }
        COPY_END();
        if (step >= 0) {
            const gp_u32 *a_now = tiles + here * BM * 16, *b_now = tiles + STAGES * BM * 16 + here * B_WORDS;
            gp_u32 a[WM / 16][2][4];
            UNROLL
            for (int i = 0; i < WM / 16; i++) {
                const int row = wm + 16 * i + LANE % 16;
                LOAD_MATRICES(a[i][0], a_now + (row * 4 + (LANE / 16 ^ PLACE(row))) * 4);
                LOAD_MATRICES(a[i][1], a_now + (row * 4 + ((2 + LANE / 16) ^ PLACE(row))) * 4);
            }
            UNROLL
            for (int j = 0; j < WN / 8; j++) {
                gp_u32 b[4];
#if FORM == 0
                const int column = wn + 8 * j + LANE % 8;
                LOAD_MATRICES(b, b_now + (column * 4 + (LANE / 8 ^ PLACE(column))) * 4);
#elif FORM == 1
                LOAD_TRANSPOSED(b, b_now + LANE * (BN / 2) + ((wn / 8 + j) ^ LANE % 8) * 4);
#else
                const int n = here * BN + wn + 8 * j;
                float scale_of[2];
                gp_u32 packed[4];
                LD_RUN(b_now + (wn + 8 * j + g) * 4, packed);
                gp_two(scales + n + 2 * t, scale_of);
                UNPACK4(TYPE, packed, t, ZERO_OF(n + g), b);
#endif
                UNROLL
                for (int i = 0; i < WM / 16; i++) {
#if FORM == 2
                    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                    GP_PASTE(MMA_, TYPE)(part, a[i][0], b);
                    GP_PASTE(MMA_, TYPE)(part, a[i][1], b + 2);
                    UNROLL
                    for (int e = 0; e < 4; e++) sum[i][j][e] = FMAF(part[e], scale_of[e % 2], sum[i][j][e]);
#else
                    GP_PASTE(MMA_, TYPE)(sum[i][j], a[i][0], b);
                    GP_PASTE(MMA_, TYPE)(sum[i][j], a[i][1], b + 2);
#endif
                }
            }
        }
#if FORM == 2
        if (k_left > 0 && takes_column) {
            scales[place * BN + TID] = GP_PASTE(LD_, STYPE)(&scale, 0);
#if ZP
            zeros[place * BN + TID] = GP_PASTE(ZERO_, TYPE)(zero >> group % 2 * 4 & 15);
#endif
        }
#endif
        place = place + 1 == STAGES ? 0 : place + 1;
        if (step >= 0) here = here + 1 == STAGES ? 0 : here + 1;
    }

    /* Sixteen rows of a warp at a time through shared memory, so that lanes side by side store columns side by side. */
    float *own = (float *)tiles + WARP * 16 * (WN + 8);
    COPY_WAIT(0);
    SYNC();
    UNROLL
    for (int i = 0; i < WM / 16; i++) {
        UNROLL
        for (int j = 0; j < WN / 8; j++) {
            UNROLL
            for (int e = 0; e < 4; e++) own[(g + e / 2 * 8) * (WN + 8) + 8 * j + 2 * t + e % 2] = sum[i][j][e];
        }
        SYNC_WARP();
        UNROLL_BY(1)
        for (int row = LANE / (WN / 2); row < 16; row += 64 / WN) {
            const int column = LANE % (WN / 2) * 2;
            const float *pair = own + row * (WN + 8) + column;
            const idx y_m = m0 + wm + 16 * i + row, y_n = n0 + wn + column;
            if (y_m >= rows) continue;
            STORE_PAIR(pair, y_m, y_n);
        }
        SYNC_WARP();
    }
#elif FORM == 1
    /* A thread makes columns / 8 by rows of the tile, four rows at a time. */
    const int each = BM * BN / 8 / KERNEL_BLOCK, fours = MIN(each, 4);
    const idx n_at = n0 + TID % (BN / 8) * 8, m_at = m0 + TID / (BN / 8) * each;
    for (idx first = m_at; first < m_at + each && first < rows && n_at < columns; first += fours) {
        float sum[4][8];
        const int width = (int)MIN(columns - n_at, 8);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 8; j++) sum[i][j] = 0.0f;
        for (idx k = 0; k < inner; k++) {
            const idx at = B_OFF + Z_B + k * B_SK + n_at;
            float b[8];
            if (width == 8) GP_PASTE(LDV_, TYPE)(B, at, b);
            else for (int j = 0; j < 8; j++) b[j] = j < width ? B_LD(at + j) : 0.0f;
            for (int i = 0; i < fours; i++) {
                const float a = A_LD(A_OFF + Z_A + MIN(first + i, rows - 1) * A_SM + k);
                for (int j = 0; j < 8; j++) sum[i][j] = FMAF(a, b[j], sum[i][j]);
            }
        }
        for (int i = 0; i < fours && first + i < rows; i++)
            for (int j = 0; j < width; j++) STORE(first + i, n_at + j, sum[i][j]);
    }
#else
    /* A thread makes eight rows by some columns, R of them at a time. */
    const int each = BM * BN / 8 / KERNEL_BLOCK;
    const idx m_at = m0 + TID % (BM / 8) * 8, n_at = n0 + TID / (BM / 8) * each;
    for (idx first = n_at; first < n_at + each && first < columns && m_at < rows; first += R) {
        gp_acc sum[R][8];
        for (int r = 0; r < R; r++)
            for (int i = 0; i < 8; i++) sum[r][i] = gp_acc_zero();
        for (idx k = 0; k < inner; k += CH) {
            float a[CH], b[R][CH], scale[R];
            for (int r = 0; r < R; r++) {
                const idx n = MIN(first + r, columns - 1);
#if FORM == 2
                const idx group = k / BS;
                gp_unpack(B + B_OFF + Z_B + (n * KB * BS + k) / 2, 4, CH, (float)ZERO_POINT(n, group), b[r]);
                scale[r] = (float)S_LD(S_OFF + Z_S + n * KB + group);
#else
                const idx at = B_OFF + Z_B + n * B_SN + k;
                if (k + CH <= inner) GP_PASTE(LDV_, TYPE)(B, at, b[r]);
                else for (int j = 0; j < CH; j++) b[r][j] = k + j < inner ? B_LD(at + j) : 0.0f;
#endif
            }
            for (int i = 0; i < 8; i++) {
                const idx m = MIN(m_at + i, rows - 1), at = A_OFF + Z_A + A_LINE(m) * A_SM + k;
                if (k + CH <= inner) for (int j = 0; j < CH; j += 8) GP_PASTE(LDV_, TYPE)(A, at + j, a + j);
                else for (int j = 0; j < CH; j++) a[j] = k + j < inner ? A_LD(at + j) : 0.0f;
                for (int r = 0; r < R; r++) {
#if FORM == 2
                    sum[r][i] = gp_acc_scaled(sum[r][i], gp_mac(gp_acc_zero(), b[r], a, CH), scale[r]);
#else
                    sum[r][i] = gp_mac(sum[r][i], b[r], a, CH);
#endif
                }
            }
        }
        for (int i = 0; i < 8 && m_at + i < rows; i++)
            for (int r = 0; r < R && first + r < MIN(n_at + each, columns); r++) STORE(m_at + i, first + r, gp_acc_total(sum[r][i]));
    }
#endif
}
