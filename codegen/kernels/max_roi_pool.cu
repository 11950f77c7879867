/* max_roi_pool: Y element n of [regions, C, height, width] is the largest of X in its bin of region R (batch, x1, y1, x2, y2; both ends
 * inside). Bins share the elements on their borders; an empty bin, or a batch out of range, gives 0. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx batch = (idx)R_LD(R_AT(i0, 0));
        const double scale = (double)SPATIAL_SCALE;
        const idx x0 = (idx)round((double)R_LD(R_AT(i0, 1)) * scale), y0 = (idx)round((double)R_LD(R_AT(i0, 2)) * scale);
        const idx x1 = (idx)round((double)R_LD(R_AT(i0, 3)) * scale), y1 = (idx)round((double)R_LD(R_AT(i0, 4)) * scale);
        const idx wide = MAX(x1 - x0 + 1, 1), high = MAX(y1 - y0 + 1, 1);
        const idx top = y0 + FLOOR_DIV(i2 * high, Y_D2), bottom = y0 - FLOOR_DIV(-(i2 + 1) * high, Y_D2);
        const idx left = x0 + FLOOR_DIV(i3 * wide, Y_D3), right = x0 - FLOOR_DIV(-(i3 + 1) * wide, Y_D3);
        X_C fold = 0;
        int any = 0;
        if (batch >= 0 && batch < (X_D0)) {
            for (idx y = MAX(top, 0); y < MIN(bottom, (X_D2)); y++)
                for (idx x = MAX(left, 0); x < MIN(right, (X_D3)); x++) {
                    const X_C v = X_LD(X_AT(batch, i1, y, x));
                    if (!any || v > fold) fold = v;
                    any = 1;
                }
        }
        Y_ST(TARGET, fold);
    }
}
