/* wide_store.h - part of templates whose blocks make BM (128 or 256) rows by 64 columns for each four warps by wgmma.h, columns being its first operand: stores `sum`,
 * which all warps have. 64 rows at a time go through shared memory, `ring`, WIDE_STORE_BYTES of it, so that lanes side by side store columns
 * side by side. It needs m0, n0, `rows` and what product_store.h needs. */
#if BM == 256
#define WIDE_PART(j) (part < 2 ? (part ? sum[32 + (j)] : sum[j]) : part == 2 ? sum[64 + (j)] : sum[96 + (j)])
#else
#define WIDE_PART(j) (part ? sum[32 + (j)] : sum[j])
#endif
    {
        float *const own = (float *)ring + WARP / 4 * 64 * WIDE_PITCH;
        UNROLL_BY(1)
        for (int part = 0; part < BM / 64; part++) {
            SYNC();
            UNROLL
            for (int j = 0; j < 32; j++)
                own[(j / 4 * 8 + LANE % 4 * 2 + j % 2) * WIDE_PITCH + WARP % 4 * 16 + LANE / 4 + j % 4 / 2 * 8] = WIDE_PART(j);
            SYNC();
            UNROLL_BY(1)
            for (int first = WARP % 4; first < 64; first += 4 * WIDE_TOGETHER) {
                const idx y_m = m0 + 64 * part + first, y_n = n0 + WARP / 4 * 64 + 2 * LANE;
                const float *const pair = own + first * WIDE_PITCH + 2 * LANE;
                if (y_m >= rows) break;
#if PAIRS
                gp_u32 word[WIDE_TOGETHER];
                UNROLL
                for (int i = 0; i < WIDE_TOGETHER; i++) MAKE_PAIR(word[i], pair + 4 * i * WIDE_PITCH, MIN(y_m + 4 * i, rows - 1), y_n);
                UNROLL
                for (int i = 0; i < WIDE_TOGETHER; i++)
                    if (y_m + 4 * i < rows) PUT_PAIR(word[i], y_m + 4 * i, y_n);
#else
                UNROLL
                for (int i = 0; i < WIDE_TOGETHER; i++)
                    if (y_m + 4 * i < rows) STORE_PAIR(pair + 4 * i * WIDE_PITCH, y_m + 4 * i, y_n);
#endif
            }
        }
    }
