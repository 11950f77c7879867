/* unique: one block sorts the ITEMS items (of SLICE elements each) by value, then by place, and keeps the first of equal ones.
 * O is the sorted order, G the group of each sorted item, then F and M: groups in the order in which they first occur. */
#define GP_UNIQUE_BEFORE(a, b) ((a) < (b) || ((a) == (a) && (b) != (b)))
KERNEL(THREADS)
{
    EXTENTS
    SHARED(int, sums, THREADS);
    const int items = (int)(ITEMS), each = (items + THREADS - 1) / THREADS;
    const int first = MIN(TID * each, items), last = MIN(first + each, items);
    for (int i = TID; i < ROOM; i += THREADS) O_ST(i, i);
    SYNC();
    for (int k = 2; k <= ROOM; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            for (int i = TID; i < ROOM; i += THREADS) {
                const int p = i ^ j;
                if (p <= i) continue;
                const int a = (int)O_LD(i), b = (int)O_LD(p);
                int swap = b < a; /* whether b comes before a */
                if (a < items && b < items)
                    for (idx e = 0; e < (SLICE); e++) {
                        const KEY v = (KEY)X_LD(ITEM_AT(a, e)), w = (KEY)X_LD(ITEM_AT(b, e));
                        if (GP_UNIQUE_BEFORE(v, w)) swap = 0;
                        else if (GP_UNIQUE_BEFORE(w, v)) swap = 1;
                        else continue;
                        break;
                    }
                if (swap == ((i & k) == 0)) {
                    O_ST(i, b);
                    O_ST(p, a);
                }
            }
            SYNC();
        }
    int heads = 0;
    for (int s = first; s < last; s++) {
        int head = s == 0;
        for (idx e = 0; e < (SLICE) && !head; e++) {
            const X_C v = X_LD(ITEM_AT(O_LD(s - 1), e)), w = X_LD(ITEM_AT(O_LD(s), e));
            head = GP_UNIQUE_BEFORE(v, w) || GP_UNIQUE_BEFORE(w, v);
        }
        G_ST(s, head);
        heads += head;
    }
    sums[TID] = heads;
    SYNC();
    int group = -1, all = 0;
    for (int t = 0; t < THREADS; t++) {
        if (t < TID) group += sums[t];
        all += sums[t];
    }
    if (TID == 0) W_ST(W_OFF, all);
    for (int s = first; s < last; s++) {
        const int head = (int)G_LD(s);
        group += head;
        G_ST(s, group);
#if !SORTED
        F_ST((int)O_LD(s), head ? group + 1 : 0);
#endif
    }
    SYNC();
#if SORTED
#define GP_UNIQUE_PLACE(g) (g)
#else
#define GP_UNIQUE_PLACE(g) ((int)M_LD(g))
    heads = 0;
    for (int i = first; i < last; i++) heads += F_LD(i) != 0;
    sums[TID] = heads;
    SYNC();
    heads = 0;
    for (int t = 0; t < TID; t++) heads += sums[t];
    for (int i = first; i < last; i++)
        if (F_LD(i) != 0) M_ST((int)F_LD(i) - 1, heads++);
    SYNC();
#endif
    for (int s = first; s < last; s++) {
        const int g = (int)G_LD(s), place = GP_UNIQUE_PLACE(g), item = (int)O_LD(s);
        (void)place;
#if HAS_INVERSE
        INVERSE_ST(INVERSE_AT(item), place);
#endif
        if (s > 0 && (int)G_LD(s - 1) == g) continue;
        for (idx e = 0; e < (SLICE); e++) Y_ST(RESULT_AT(place, e), X_LD(ITEM_AT(item, e)));
#if HAS_FIRST
        FIRST_ST(FIRST_AT(place), item);
#endif
#if HAS_COUNTS
        int end = s + 1;
        while (end < items && (int)G_LD(end) == g) end++;
        COUNTS_ST(COUNTS_AT(place), end - s);
#endif
    }
#undef GP_UNIQUE_PLACE
}
#undef GP_UNIQUE_BEFORE
