/* copy: one thread an element. INDEX takes the linear index n apart, VALUE is what element n becomes, TARGET where it lies. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        Y_ST(TARGET, VALUE);
    }
}
