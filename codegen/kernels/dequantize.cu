/* dequantize: Y[i] = (X[p] - zero) * scale, elementwise, or gathered by rows (GatherBlockQuantized).
 *
 * X's shape is seen as [.., AXIS, INNER] around the axis that the scales follow: element p has the coordinate
 * p / INNER % AXIS there. Grid: any, threads step over COUNT elements.
 *   COUNT              elements of Y         SOURCE     expression over i: the element of X; -1 gives 0
 *   X_PLACE Y_PLACE    where elements p of X and i of Y lie, over what COORDINATES declares from i
 *   AXIS INNER         extents               BLOCKS     scales along the axis;  BLOCK elements share one
 *   SCALE_AT           expression over before, along, inside: the scale of element p
 *   BITS               of an element when X is bytes that hold several, low bits first; 0: X_LD
 *   ZP                 0 none (ZERO_POINT, a literal), 1 like the scales, 2 like X: rows of ZP_ROW bytes, packed */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx count = COUNT;
    for (idx i = (idx)BID_X * KERNEL_BLOCK + TID; i < count; i += (idx)GRID_X * KERNEL_BLOCK) {
        COORDINATES
        const idx p = SOURCE;
        if (p < 0) {
            Y_ST(Y_PLACE, 0.0f);
            continue;
        }
        const idx inside = p % INNER, along = p / INNER % AXIS, before = p / INNER / AXIS;
        const idx s = SCALE_AT;
#if BITS
        const int q = (X[X_OFF + p * BITS / 8] >> (int)(p * BITS % 8)) & ((1 << BITS) - 1);
#else
        const X_C q = X_LD(X_PLACE);
#endif
#if ZP == 0
        const float v = (float)q - (float)ZERO_POINT;
#elif ZP == 1
        const float v = (float)(q - Z_LD(Z_OFF + s));
#else
        const idx group = along / BLOCK;
        const float v = (float)(q - ((Z[Z_OFF + before * ZP_ROW + group * BITS / 8] >> (int)(group * BITS % 8)) & ((1 << BITS) - 1)));
#endif
        Y_ST(Y_PLACE, v * S_LD(S_OFF + s));
        (void)before;
        (void)inside;
        (void)along;
    }
}
