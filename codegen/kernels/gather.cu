/* gather: Y element n is X at row PICK of an axis of AXIS elements. Negative rows count from the end; a row out of range
 * gives zero. SOURCE names `row`. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        idx row = PICK;
        if (row < 0) row += (AXIS);
        if (row >= 0 && row < (AXIS)) Y_ST(TARGET, X_LD(SOURCE));
        else Y_ST(TARGET, 0);
    }
}
