/* tensor_scatter: writes row t of the update X, along the scattered axis, as row start + t of the cache Y; in a ring of
 * CAPACITY rows when CIRCULAR, else never outside it. Row `row` counts the other axes, the batch first.
 * ROWED: nothing for a sequence that rests. */
KERNEL(256)
{
    EXTENTS
    const idx steps = STEPS, count = ROWS * steps;
    for (idx i = (idx)BID_X * KERNEL_BLOCK + TID; i < count; i += (idx)GRID_X * KERNEL_BLOCK) {
        const idx row = i % (ROWS), t = i / (ROWS);
#if ROWED
        if (!RT_LD(RT_OFF + row / (ROWS / BATCH))) continue;
#endif
#if INDEXED
        idx place = (idx)AT_LD(AT_OFF + row / (ROWS / BATCH) * AT_S0) + t;
#else
        idx place = t;
#endif
#if CIRCULAR
        place = (place % (CAPACITY) + (CAPACITY)) % (CAPACITY);
#endif
        if (place >= 0 && place < CAPACITY) Y_ST(Y_ROW + place * AXIS_STRIDE, X_LD(X_ROW + t * X_AXIS_STRIDE));
    }
}
