/* max_unpool: puts X element n where I says: a place counted row-major in [N, C, U0, U1, U2], which Y may exceed. Places out of
 * range are left alone. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        idx at = I_LD(I_AT(i0, i1, i2, i3, i4));
        if (at < 0) continue;
        const idx y4 = at % (U2);
        at /= (U2);
        const idx y3 = at % (U1);
        at /= (U1);
        const idx y2 = at % (U0);
        at /= (U0);
        const idx y1 = at % (Y_D1), y0 = at / (Y_D1);
        if (y0 >= (Y_D0) || y2 >= (Y_D2) || y3 >= (Y_D3) || y4 >= (Y_D4)) continue;
        Y_ST(Y_AT(y0, y1, y2, y3, y4), X_LD(X_AT(i0, i1, i2, i3, i4)));
    }
}
