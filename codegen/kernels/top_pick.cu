/* top_pick: the TOP largest (or smallest) elements of each row of COLS, in order, and where they stood. A block takes a row, and
 * picks one element a round: the first of those behind the last pick. Equal ones go by their place; NaN is above all numbers. */
#define TOP_ABOVE(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#if LARGEST
#define TOP_FIRST(a, b) TOP_ABOVE(a, b)
#else
#define TOP_FIRST(a, b) TOP_ABOVE(b, a)
#endif
/* Element a at place i comes before b at place j. */
#define TOP_BEFORE(a, i, b, j) (TOP_FIRST(a, b) || ((i) < (j) && !TOP_FIRST(b, a)))
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(KEY, keys, KERNEL_BLOCK);
    SHARED(idx, places, KERNEL_BLOCK);
    const idx row = BID_X;
    if (row >= ROWS) return;
    const idx columns = COLS, start = X_ROW;
    KEY last = 0;
    idx last_place = -1;
    for (int round = 0; round < TOP; round++) {
        KEY best = 0;
        idx place = -1;
        for (idx col = TID; col < columns; col += KERNEL_BLOCK) {
            const KEY v = (KEY)X_LD(start + X_COL);
            const int left = round == 0 || TOP_BEFORE(last, last_place, v, col);
            if (left && (place < 0 || TOP_BEFORE(v, col, best, place))) {
                best = v;
                place = col;
            }
        }
        keys[TID] = best;
        places[TID] = place;
        SYNC();
        for (int half = KERNEL_BLOCK / 2; half > 0; half /= 2) {
            if (TID < half && places[TID + half] >= 0 &&
                (places[TID] < 0 || TOP_BEFORE(keys[TID + half], places[TID + half], keys[TID], places[TID]))) {
                keys[TID] = keys[TID + half];
                places[TID] = places[TID + half];
            }
            SYNC();
        }
        last = keys[0];
        last_place = places[0];
        if (TID == 0 && last_place >= 0) {
            const idx col = round;
            Y_ST(Y_ROW + Y_COL, last);
            I_ST(I_ROW + I_COL, last_place);
        }
        SYNC(); /* keys[0] was read by all */
    }
}
