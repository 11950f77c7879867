/* tfidf: one thread an element (row i0, n-gram place i1) of Y: how often the n-grams of that place occur in the row, with
 * up to SKIPS elements between neighbours. G holds for each n-gram its place, length and first word in POOL. */
KERNEL(128)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        idx found = 0;
        float weight = 1.0f;
        for (int g = 0; g < GRAMS; g++) {
            if (G_LD(g * 3) != (PLACE)) continue;
            const int length = (int)G_LD(g * 3 + 1), first = (int)G_LD(g * 3 + 2);
            weight = WEIGHT;
            for (int skip = 0; skip <= (length > 1 ? SKIPS : 0); skip++)
                for (idx s = 0; s + (idx)(length - 1) * (skip + 1) < (WORDS); s++) {
                    int same = 1;
                    for (int j = 0; j < length; j++) same = same && X_LD(SOURCE(s + (idx)j * (skip + 1))) == POOL_LD(first + j);
                    found += same;
                }
        }
        Y_ST(TARGET, VALUE);
    }
}
