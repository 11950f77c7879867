/* random: element n of Y is VALUE of the numbers u and v from [0, 1): Philox 4x32-10 of n and of how often the node has run
 * (RUNS), under the node's seed. One thread an element. */
KERNEL(256)
{
    EXTENTS
    const gp_u64 run = (gp_u64)RUNS_LD(RUNS_OFF);
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        gp_u32 w[4] = {(gp_u32)(gp_u64)n, (gp_u32)((gp_u64)n >> 32), (gp_u32)run, (gp_u32)(run >> 32)};
        gp_philox(w, SEED_LOW, SEED_HIGH);
        const R_C u = UNIT(w[0], w[1]), v = UNIT(w[2], w[3]);
        (void)v;
        DRAW
        Y_ST(TARGET, VALUE);
    }
}
