/* random: element n of Y is VALUE of the numbers u and v from [0, 1): Philox 4x32-10 of n and of how often the node has run
 * (RUNS), under the node's seed. One thread an element. */
KERNEL(256)
{
    EXTENTS
    const gp_u64 run = (gp_u64)RUNS_LD(RUNS_OFF);
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        gp_u32 a = (gp_u32)(gp_u64)n, b = (gp_u32)((gp_u64)n >> 32), c = (gp_u32)run, d = (gp_u32)(run >> 32);
        gp_u32 k0 = SEED_LOW, k1 = SEED_HIGH;
        for (int round = 0; round < 10; round++) {
            const gp_u64 p = (gp_u64)0xD2511F53u * a, q = (gp_u64)0xCD9E8D57u * c;
            a = (gp_u32)(q >> 32) ^ b ^ k0;
            b = (gp_u32)q;
            c = (gp_u32)(p >> 32) ^ d ^ k1;
            d = (gp_u32)p;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        const R_C u = UNIT(a, b), v = UNIT(c, d);
        (void)v;
        DRAW
        Y_ST(TARGET, VALUE);
    }
}
