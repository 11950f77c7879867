/* deform_conv: a thread makes CT channels of one place of Y [N, M, H, W]: kernel element (k0, k1) is read from X where the window has
 * it, moved by OFFSET [N, groups * K * 2, H, W] (rows, then columns), between four elements (those outside are 0), times MASK. */
KERNEL(128)
{
    EXTENTS
    const idx chunk = BID_Y % CHUNKS, group = BID_Y / CHUNKS;
    const idx first = group * GROUP_OUT + chunk * CT; /* channel */
    const idx places = (Y_D2) * (Y_D3);
    for (idx batch = BID_Z; batch < (Y_D0); batch += GRID_Z) {
        for (idx place = (idx)BID_X * KERNEL_BLOCK + TID; place < places; place += (idx)GRID_X * KERNEL_BLOCK) {
            const idx o1 = place % (Y_D3), o0 = place / (Y_D3);
            ACC sum[CT];
            UNROLL
            for (int j = 0; j < CT; j++) sum[j] = 0;
            for (idx from = group * GROUP_IN; from < (group + 1) * GROUP_IN;) {
                const idx moved = from / OFFSET_IN; /* group of offsets; its channels share places */
                const idx end = MIN((moved + 1) * OFFSET_IN, (group + 1) * GROUP_IN);
                for (int kernel = 0; kernel < K1 * K2; kernel++) {
                    const int k0 = kernel / K2, k1 = kernel % K2;
                    const idx m = moved * (K1 * K2) + kernel;
                    const ACC h = (ACC)(o0 * ST1 - (PB1) + k0 * DI1) + (ACC)O_LD(O_AT(batch, 2 * m, o0, o1));
                    const ACC w = (ACC)(o1 * ST2 - (PB2) + k1 * DI2) + (ACC)O_LD(O_AT(batch, 2 * m + 1, o0, o1));
                    if (!(h > -1 && h < (ACC)(X_D2) && w > -1 && w < (ACC)(X_D3))) continue;
                    const idx h0 = (idx)(h + 1) - 1, w0 = (idx)(w + 1) - 1; /* towards minus infinity: both are above -1 */
                    const ACC dh = h - (ACC)h0, dw = w - (ACC)w0;
                    const int top = h0 >= 0, bottom = h0 + 1 < (X_D2), left = w0 >= 0, right = w0 + 1 < (X_D3);
                    ACC scale = 1;
#if HAS_MASK
                    scale = (ACC)MASK_LD(MASK_AT(batch, m, o0, o1));
#endif
                    for (idx ci = from; ci < end; ci++) {
                        const idx at = X_AT(batch, ci, h0, w0);
                        ACC v = 0;
                        if (top && left) v += (1 - dh) * (1 - dw) * (ACC)X_LD(at);
                        if (top && right) v += (1 - dh) * dw * (ACC)X_LD(at + X_S3);
                        if (bottom && left) v += dh * (1 - dw) * (ACC)X_LD(at + X_S2);
                        if (bottom && right) v += dh * dw * (ACC)X_LD(at + X_S2 + X_S3);
                        v = v * scale;
                        UNROLL
                        for (int j = 0; j < CT; j++)
                            if (GROUP_OUT % CT == 0 || chunk * CT + j < GROUP_OUT)
                                sum[j] = FMA_ACC(v, (ACC)W_LD(W_AT(first + j, ci - group * GROUP_IN, k0, k1)), sum[j]);
                    }
                }
                from = end;
            }
            UNROLL
            for (int j = 0; j < CT; j++) {
                if (GROUP_OUT % CT != 0 && chunk * CT + j >= GROUP_OUT) continue;
#if HAS_B
                sum[j] += (ACC)B_LD(B_AT(first + j));
#endif
                Y_ST(Y_AT(batch, first + j, o0, o1), sum[j]);
            }
        }
    }
}
