/* moe_route: one block a row chooses the TOP largest of EXPERTS logits X, in order, equal ones by their number, and their
 * shares: a softmax over all experts or (NORMALISE) over the chosen; with GIVEN the numbers W of the chosen, as they are or
 * divided by their sum. Logits are compared as integers, in IEEE's total order. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(int, keys, EXPERTS);
    SHARED(int, chosen, TOP);
    const idx row = BID_X;
    if (row >= ROWS) return;
    for (int e = TID; e < EXPERTS; e += KERNEL_BLOCK) {
        const int bits = (int)gp_bits_of((float)X_LD(X_AT(row, e)));
        keys[e] = bits < 0 ? bits ^ 0x7fffffff : bits;
    }
    SYNC();
    for (int e = TID; e < EXPERTS; e += KERNEL_BLOCK) {
        const int mine = keys[e];
        int rank = 0;
        for (int other = 0; other < EXPERTS; other++) rank += keys[other] > mine || (keys[other] == mine && other < e);
        if (rank < TOP) {
            chosen[rank] = e;
            CHOSEN_ST(CHOSEN_AT(row, rank), e);
        }
    }
    SYNC();
    if (WARP > 0) return;
    float sum = 0.0f;
#if GIVEN
    for (int j = LANE; j < TOP; j += 32) sum += (float)W_LD(W_AT(row, chosen[j]));
#else
    const float top = (float)X_LD(X_AT(row, chosen[0]));
#if NORMALISE
    for (int j = LANE; j < TOP; j += 32) sum += EXPF((float)X_LD(X_AT(row, chosen[j])) - top);
#else
    for (int e = LANE; e < EXPERTS; e += 32) sum += EXPF((float)X_LD(X_AT(row, e)) - top);
#endif
#endif
    sum = WARP_SUM(sum);
    for (int j = LANE; j < TOP; j += 32) {
#if GIVEN
        float share = (float)W_LD(W_AT(row, chosen[j]));
        if (NORMALISE) share = sum != 0.0f ? share / sum : 0.0f;
#else
        const float share = EXPF((float)X_LD(X_AT(row, chosen[j])) - top) / sum;
#endif
        SHARE_ST(SHARE_AT(row, j), share);
    }
}
