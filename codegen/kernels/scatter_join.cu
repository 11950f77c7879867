/* scatter_join: updates that meet at one place are joined in their order: one thread walks all of the updates that can meet
 * (STEPS of them along a line, or tuples of indices), so that the result is always the same. */
KERNEL(128)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        for (idx s = 0; s < (STEPS); s++) {
            STEP
            int inside = 1;
            PICKS
            if (!inside) continue;
            const idx to = TARGET;
            const Y_C a = Y_LD(to), b = U_LD(SOURCE);
            Y_ST(to, JOIN);
        }
    }
}
