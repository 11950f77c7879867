/* cumulate: sums or products along an axis: NEXT of `total`, at first START, and `element`. One thread a line of the axis; STEPS
 * elements from SOURCE, STEP_X and STEP_Y apart (negative when reversed). */
KERNEL(64)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        idx from = SOURCE, to = TARGET;
        Y_C total = START;
        for (idx s = 0; s < (STEPS); s++, from += STEP_X, to += STEP_Y) {
            const Y_C element = X_LD(from), next = NEXT;
            Y_ST(to, EXCLUSIVE ? total : next);
            total = next;
        }
    }
}
