/* scatter: element n of U goes to a place in Y that indices name. PICKS reads them (see gather_nd); what is out of range is
 * dropped. Two indices of one place leave either value, as the specification allows. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        int inside = 1;
        PICKS
        if (inside) Y_ST(TARGET, U_LD(SOURCE));
    }
}
