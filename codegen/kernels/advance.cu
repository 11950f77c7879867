/* advance: the last launch of a step applies the step map to the extents table W. */
KERNEL(32)
{
    EXTENTS
    if (TID == 0) W_ST(0, W_LD(0) + STEP);
}
