/* cumprod: one thread a line of the axis; STEPS elements from SOURCE, STEP_X and STEP_Y apart (negative when reversed). */
KERNEL(64)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        idx from = SOURCE, to = TARGET;
        Y_C product = 1;
        for (idx s = 0; s < (STEPS); s++, from += STEP_X, to += STEP_Y) {
            const Y_C next = product * X_LD(from);
            Y_ST(to, EXCLUSIVE ? product : next);
            product = next;
        }
    }
}
