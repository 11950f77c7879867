/* matmul_rows_wide.h - part of matmul_rows.cu where WIDE and WGMMA are 1, in the kernel: both operands out of shared memory, four warps at a time
 * (wgmma.h), 64 columns of the tile each.
 *
 * Steps of 64 k go through STAGES places, each with BM rows of A, then B: images of 64 columns, rows of 64 k, or (FORM 1) of 64 k, rows of 64 columns; all
 * rows are 128 bytes. Copies are STAGES - 2 steps ahead: the place of the step before the last is free behind the barrier, since each warp has waited
 * for the products of that step before it arrives there. */
#define ROW_BYTES (BM * 128)
#define STAGE_BYTES (ROW_BYTES + BN * 128)
#define COPY_A(c) \
    COPY16_BEHIND(ring + to + a_at, (c) * KERNEL_BLOCK * 16, a_from, (c) * (KERNEL_BLOCK / 8) * A_SM * 2, line + (c) * (KERNEL_BLOCK / 8) < m_left && at_k + piece * 8 < depth)
#if BM == 256
#define COPY_A_MORE COPY_A(4); COPY_A(5); COPY_A(6); COPY_A(7);
#define MULTIPLY GP_PASTE(WGMMA_BROAD_BOTH_, TYPE)
#define DONE WGMMA_DONE_BROAD
#else
#define COPY_A_MORE
#define MULTIPLY GP_PASTE(WGMMA_BOTH_, TYPE)
#define DONE WGMMA_DONE
#endif
#if FORM == 0
#define COPY_B(c) \
    COPY16_BEHIND(ring + to + b_at, (c) * KERNEL_BLOCK * 16, b_from, (c) * (KERNEL_BLOCK / 8) * B_SN * 2, line + (c) * (KERNEL_BLOCK / 8) < n_left && at_k + piece * 8 < depth)
#define B_STEP 64
#define ALONG_K 2 /* 16 k further on, as descriptors count */
#else
#define COPY_B(c) COPY16_BEHIND(ring + to + b_at, (c) * 2048, b_from, (c) * 16 * B_SK * 2, b_piece * 8 < n_left && at_k + b_line + (c) * 16 < depth)
#define B_STEP (64 * B_SK)
#define ALONG_K 128
#endif
    SHARED_MORE(gp_u32, tiles, SHARED_BYTES / 4);
    typedef char gp_fits[SHARED_BYTES >= 1024 + STAGES * STAGE_BYTES && STAGES * STAGE_BYTES >= WIDE_STORE_BYTES && BN * 2 == KERNEL_BLOCK ? 1 : -1];
    unsigned char *const ring = WGMMA_TILES(tiles);
    float sum[BM / 2];
    UNROLL
    for (int j = 0; j < BM / 2; j++) sum[j] = 0.0f;
    /* Where the thread's pieces of 16 bytes come from and go to; those beyond the extents are zeros. */
    const int m_left = (int)MIN(rows - m0, BM), n_left = (int)MIN(columns - n0, BN), depth = (int)inner, steps = (depth + 63) / 64;
    const int line = TID / 8, piece = TID % 8, a_at = line * 128 + (piece ^ line % 8) * 16;
    const A_T *a_from = A + A_OFF + Z_A + (m0 + line) * A_SM + piece * 8;
#if FORM == 0
    const int b_at = ROW_BYTES + a_at;
    const B_T *b_from = B + B_OFF + Z_B + (n0 + line) * B_SN + piece * 8;
#else
    const int b_line = TID / (BN / 8), b_piece = TID % (BN / 8), b_at = ROW_BYTES + b_piece / 8 * 8192 + b_line * 128 + (b_piece % 8 ^ b_line % 8) * 16;
    const B_T *b_from = B + B_OFF + Z_B + b_line * B_SK + n0 + b_piece * 8;
#endif
    int at_k = 0, to = 0, here = 0; /* what is fetched next, and its place in `ring`; that of what is multiplied */
#define FETCH_STEP \
    do { \
        if (at_k < depth) { \
            COPY_A(0); COPY_A(1); COPY_A(2); COPY_A(3); COPY_A_MORE \
            COPY_B(0); COPY_B(1); COPY_B(2); COPY_B(3); \
        } \
        COPY_END(); \
        a_from += 64, b_from += B_STEP, at_k += 64; \
        to = to == (STAGES - 1) * STAGE_BYTES ? 0 : to + STAGE_BYTES; \
    } while (0)
    for (int stage = 0; stage < STAGES - 2; stage++) FETCH_STEP;
    UNROLL_BY(1)
    for (int step = 0; step < steps; step++) {
        COPY_WAIT(STAGES - 3);
        WGMMA_ARRIVED();
        SYNC();
        FETCH_STEP;
        const gp_u32 rows_here = WGMMA_ROWS(ring + here), columns_here = WGMMA_ROWS(ring + here + ROW_BYTES + WARP / 4 * 8192);
        WGMMA_BEGIN();
        UNROLL
        for (int k = 0; k < 4; k++) MULTIPLY(sum, columns_here + k * ALONG_K, rows_here + k * 2, FORM, 1);
        WGMMA_END();
        WGMMA_WAIT(1);
        here = here == (STAGES - 1) * STAGE_BYTES ? 0 : here + STAGE_BYTES;
    }
    DONE(sum);
#include "wide_store.h"
