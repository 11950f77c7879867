/* moe_route: one block a row chooses the TOP largest of EXPERTS logits, in order, and their shares: see experts.h. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(int, keys, EXPERTS);
    SHARED(int, chosen, TOP);
    const idx row = BID_X;
    if (row >= ROWS) return;
    for (int e = TID; e < EXPERTS; e += KERNEL_BLOCK) {
        const int bits = (int)gp_bits_of(LOGIT(row, e) + 0.0f); /* -0 becomes 0 */
        keys[e] = bits < 0 ? bits ^ 0x7fffffff : bits;
    }
    SYNC();
    for (int e = TID; e < EXPERTS; e += KERNEL_BLOCK) {
        const int mine = keys[e];
        int rank = 0;
        for (int other = 0; other < EXPERTS; other++) rank += keys[other] > mine || (keys[other] == mine && other < e);
        if (rank < TOP) chosen[rank] = e;
    }
    SYNC();
    if (WARP == 0) STORE_CHOICE(row, chosen);
}
