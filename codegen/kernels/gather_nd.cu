/* gather_nd: Y element n is X at a tuple of indices. PICKS reads them into k0, k1 ..., makes negative ones count from the
 * end, and clears `inside` when one is out of range; SOURCE is the place in X. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        int inside = 1;
        PICKS
        if (inside) Y_ST(TARGET, X_LD(SOURCE));
        else Y_ST(TARGET, 0);
    }
}
