/* affine_grid: Y element n of [N, D, H, W, axes] is row i4 of THETA [N, axes, axes + 1] times the place (x, y, z, 1), each of -1..1:
 * from the centres of the outer elements (ALIGN) or from their outer edges. AXES spatial axes, the last ones. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx at[3] = {i3, i2, i1}, size[3] = {(Y_D3), (Y_D2), (Y_D1)};
        THETA_C sum = THETA_LD(THETA_AT(i0, i4, AXES));
        UNROLL
        for (int a = 0; a < AXES; a++) {
            const THETA_C place = ALIGN ? (size[a] > 1 ? (THETA_C)(2 * at[a]) / (THETA_C)(size[a] - 1) - 1 : (THETA_C)-1)
                                        : (THETA_C)(2 * at[a] + 1) / (THETA_C)size[a] - 1;
            sum += THETA_LD(THETA_AT(i0, i4, a)) * place;
        }
        Y_ST(TARGET, sum);
    }
}
