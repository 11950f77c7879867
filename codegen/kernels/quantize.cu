/* quantize: Y[i] = X[i] / scale (rounded as QUOTIENT says), to nearest even where Y is an integer, + zero, kept within Y's range:
 * STORED(v, zero). Names as in dequantize. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx count = COUNT;
    for (idx i = (idx)BID_X * KERNEL_BLOCK + TID; i < count; i += (idx)GRID_X * KERNEL_BLOCK) {
        COORDINATES
        const idx p = i, inside = i % INNER, along = i / INNER % AXIS, before = i / INNER / AXIS;
        const idx s = SCALE_AT;
#if ZP == 0
        const float zero = 0.0f;
#else
        const float zero = (float)Z_LD(Z_OFF + s);
#endif
        const float v = QUOTIENT((float)X_LD(X_PLACE) / S_LD(S_OFF + s));
        Y_ST(Y_PLACE, STORED(v, zero));
        (void)before;
        (void)inside;
        (void)along;
        (void)p;
    }
}
