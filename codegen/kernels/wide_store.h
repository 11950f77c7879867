/* wide_store.h - part of templates whose blocks make 128 rows by 64 columns for each four warps by wgmma.h, columns being its first operand: stores `sum`,
 * which all warps have. Half of the rows at a time goes through shared memory, `ring`, WIDE_STORE_BYTES of it, so that lanes side by side store columns
 * side by side. It needs m0, n0, `rows` and what product_store.h needs. */
    {
        float *const own = (float *)ring + WARP / 4 * 64 * WIDE_PITCH;
        UNROLL
        for (int part = 0; part < 2; part++) {
            SYNC();
            UNROLL
            for (int j = 0; j < 32; j++)
                own[(j / 4 * 8 + LANE % 4 * 2 + j % 2) * WIDE_PITCH + WARP % 4 * 16 + LANE / 4 + j % 4 / 2 * 8] = sum[32 * part + j];
            SYNC();
            UNROLL_BY(1)
            for (int row = WARP % 4; row < 64; row += 4) {
                const float *pair = own + row * WIDE_PITCH + 2 * LANE;
                const idx y_m = m0 + 64 * part + row, y_n = n0 + WARP / 4 * 64 + 2 * LANE;
                if (y_m >= rows) break;
                STORE_PAIR(pair, y_m, y_n);
            }
        }
    }
