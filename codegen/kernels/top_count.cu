/* top_count: the TOP largest (or smallest) elements of each row of COLS, in order, and where they stood. One thread an element:
 * it counts the elements that come before it. Equal ones go by their place; NaN is above all numbers. */
#define TOP_ABOVE(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#if LARGEST
#define TOP_FIRST(a, b) TOP_ABOVE(a, b)
#else
#define TOP_FIRST(a, b) TOP_ABOVE(b, a)
#endif
KERNEL(128)
{
    EXTENTS
    const idx columns = COLS, total = (ROWS) * columns;
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < total; n += (idx)GRID_X * KERNEL_BLOCK) {
        const idx row = n / columns, own = n % columns, start = X_ROW;
        idx col = own, rank = 0;
        const KEY mine = (KEY)X_LD(start + X_COL);
        for (col = 0; col < columns; col++) {
            const KEY other = (KEY)X_LD(start + X_COL);
            rank += TOP_FIRST(other, mine) || (col < own && !TOP_FIRST(mine, other));
        }
        if (rank < TOP) {
            col = rank;
            Y_ST(Y_ROW + Y_COL, mine);
            I_ST(I_ROW + I_COL, own);
        }
    }
}
