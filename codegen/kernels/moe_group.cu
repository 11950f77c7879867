/* moe_group: sorts routes, number row * TOP + slot, by their expert CHOSEN[row, slot]: LIST has their numbers, those of expert e from
 * START[e] up to START[e + 1], in order; TILE[t] has, for each BM rows of an expert, its number and the first of them in its part of
 * LIST, and -1 behind the last. One block, a thread an expert. */
#define PART 2048 /* routes at a time in shared memory */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(int, part, PART);
    SHARED(int, counts, EXPERTS);
    SHARED(int, used, 1);
    const idx routes = (idx)ROWS * TOP;
    idx at = 0; /* how many, and then where the next one goes */
    for (int listing = 0; listing < 2; listing++) {
        if (listing) {
            idx start = 0, tile = 0;
            if (TID < EXPERTS) counts[TID] = (int)at;
            SYNC();
            for (int e = 0; e < TID && e < EXPERTS; e++) {
                start += counts[e];
                tile += (counts[e] + BM - 1) / BM;
            }
            if (TID < EXPERTS) {
                START_ST(START_OFF + TID, start);
                for (idx m = 0; m < at; m += BM, tile++) {
                    TILE_ST(TILE_OFF + 2 * tile, TID);
                    TILE_ST(TILE_OFF + 2 * tile + 1, m);
                }
            }
            if (TID == EXPERTS - 1) {
                START_ST(START_OFF + EXPERTS, start + at);
                used[0] = (int)tile;
            }
            SYNC();
            for (idx t = used[0] + TID; t < TILES; t += KERNEL_BLOCK) TILE_ST(TILE_OFF + 2 * t, -1);
            at = start;
        }
        for (idx base = 0; base < routes; base += PART) {
            SYNC();
            for (int i = TID; i < PART; i += KERNEL_BLOCK) part[i] = base + i < routes ? (int)CHOSEN_LD(CHOSEN_OFF + base + i) : -1;
            SYNC();
            if (listing) {
                for (int i = 0; i < PART; i++)
                    if (part[i] == TID) LIST_ST(LIST_OFF + at++, base + i);
            } else {
                UNROLL_BY(8)
                for (int i = 0; i < PART; i++) at += part[i] == TID;
            }
        }
    }
}
