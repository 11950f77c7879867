/* roi_align: Y element n of [regions, C, height, width] is the mean or (WANT_MAX) the largest of samples of X in its bin of region R
 * (x1, y1, x2, y2); SAMPLES a side, or as many as elements. A sample lies between four elements; with WANT_MAX the largest weighted
 * one of the four counts, as in the specification's vectors. A batch index out of range gives 0. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx batch = B_LD(B_AT(i0)), height = (X_D2), width = (X_D3);
        const X_C shift = (X_C)SHIFT, scale = (X_C)SPATIAL_SCALE;
        const X_C left = R_LD(R_AT(i0, 0)) * scale - shift, top = R_LD(R_AT(i0, 1)) * scale - shift;
        X_C wide = R_LD(R_AT(i0, 2)) * scale - shift - left, high = R_LD(R_AT(i0, 3)) * scale - shift - top;
#if !HALF_PIXEL
        wide = wide < 1 ? 1 : wide;
        high = high < 1 ? 1 : high;
#endif
        const X_C bin_h = high / (X_C)(Y_D2), bin_w = wide / (X_C)(Y_D3);
        const idx rows = SAMPLES > 0 ? SAMPLES : (idx)ceil((double)bin_h), columns = SAMPLES > 0 ? SAMPLES : (idx)ceil((double)bin_w);
        X_C fold = 0;
        int any = 0;
        for (idx s = 0; s < rows && batch >= 0 && batch < (X_D0); s++) {
            X_C y = top + (X_C)i2 * bin_h + ((X_C)s + (X_C)0.5f) * bin_h / (X_C)rows;
            for (idx t = 0; t < columns; t++) {
                X_C x = left + (X_C)i3 * bin_w + ((X_C)t + (X_C)0.5f) * bin_w / (X_C)columns, v = 0;
                if (y >= -1 && y <= (X_C)height && x >= -1 && x <= (X_C)width) {
                    X_C down = y > 0 ? y : 0, right = x > 0 ? x : 0;
                    const idx y0 = MIN((idx)down, height - 1), x0 = MIN((idx)right, width - 1);
                    const idx y1 = MIN(y0 + 1, height - 1), x1 = MIN(x0 + 1, width - 1);
                    down = y1 == y0 ? 0 : down - (X_C)y0;
                    right = x1 == x0 ? 0 : right - (X_C)x0;
                    const X_C a = (1 - down) * (1 - right) * X_LD(X_AT(batch, i1, y0, x0));
                    const X_C b = (1 - down) * right * X_LD(X_AT(batch, i1, y0, x1));
                    const X_C c = down * (1 - right) * X_LD(X_AT(batch, i1, y1, x0));
                    const X_C d = down * right * X_LD(X_AT(batch, i1, y1, x1));
                    v = WANT_MAX ? MAX(MAX(a, b), MAX(c, d)) : a + b + c + d;
                }
                fold = !WANT_MAX ? fold + v : !any || v > fold ? v : fold;
                any = 1;
            }
        }
#if !WANT_MAX
        fold = fold / (X_C)MAX(rows * columns, 1);
#endif
        Y_ST(TARGET, fold);
    }
}
