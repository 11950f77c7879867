/* einsum: one thread an element of Y: the sum of PRODUCT over the labels that Y has not; LOOPS runs them. */
KERNEL(128)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        Y_C sum = 0;
        LOOPS sum += PRODUCT;
        Y_ST(TARGET, sum);
    }
}
