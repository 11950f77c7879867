/* sample_pick: the second half of a sampling tail, one block. From the GROUPS that sample_scan left it picks the token: the
 * first of the largest, or (DRAW, with a scale) a draw. The token goes to TOKEN and into RING at the place that COUNT says,
 * modulo 65536; it is counted; STOP becomes whether it is one of the stop tokens in WORDS; the position W advances by STEP
 * (MOVES); and the word behind the ring becomes twice the count, plus STOP. GATED: nothing happens while STOP is set.
 *
 * A draw orders the tokens by y, ties by index: a key is gp_order(y), then the index backwards. What top-k, top-p (of what
 * top-k keeps) and min-p keep is a run from the greatest key down. Tokens of [low, high) whose mass is not below `listed`
 * are sorted in `list`, one a thread; those from `high` on are kept in any case. `low` is a guess from the groups' largest; while more than
 * the list holds lie above it, the bounds are moved together by halves, each time with a pass over the logits. */
#define EACH(low, high, statement) \
    for (int g = WARP; g < GROUPS; g += 32) { \
        if (gp_order(tops[g]) < (gp_u32)((low) >> 32) || gp_mass(tops[g], top) < listed) continue; \
        for (idx i = (idx)g * GROUP + LANE; i < MIN((idx)(g + 1) * GROUP, (idx)TOKENS); i += 32) { \
            const float y = Y_LD(Y_OFF + i); \
            const gp_u64 mass = gp_mass(y, top), key = (gp_u64)gp_order(y) << 32 | (gp_u32)~(gp_u32)i; \
            if (mass >= listed && key >= (low) && key < (high)) { statement } \
        } \
    }
/* The count and the mass of [low, high). */
#define MEASURE(low, high, count, weight) \
    do { \
        gp_u64 gp_mine = 0, gp_weight = 0; \
        EACH(low, high, gp_mine++; gp_weight += mass;) \
        BLOCK_SCAN(sums, gp_mine); \
        (count) = (idx)sums[KERNEL_BLOCK - 1]; \
        BLOCK_SCAN(sums, gp_weight); \
        (weight) = sums[KERNEL_BLOCK - 1]; \
    } while (0)
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(float, warp_tops, 32);
    SHARED(float, warp_places, 32);
    if (GATED && STOP_LD(STOP_OFF) != 0) return;
    const float mine = TID < GROUPS ? MAXES_LD(MAXES_OFF + TID) : -INF_F;
    const float warp_top = WARP_MAX(mine);
    const float warp_place = WARP_MAX(TID < GROUPS && mine == warp_top ? -(float)PLACES_LD(PLACES_OFF + TID) : -INF_F);
    if (LANE == 0) {
        warp_tops[WARP] = warp_top;
        warp_places[WARP] = warp_place;
    }
    SYNC();
    const int warp = LANE & (KERNEL_BLOCK / 32 - 1);
    const float best = WARP_MAX(warp_tops[warp]);
    const float first = -WARP_MAX(warp_tops[warp] == best ? warp_places[warp] : -INF_F);
    idx token = (idx)first;
#if DRAW
    SHARED(float, tops, KERNEL_BLOCK);
    SHARED(gp_u64, sums, KERNEL_BLOCK);
    SHARED(gp_u64, list, KERNEL_BLOCK);
    SHARED(gp_u64, picked, 2);
    tops[TID] = mine;
    if (TID == 0) picked[0] = (gp_u64)token;
    SYNC();
    if (gp_float_of((gp_u32)WORDS_LD(WORDS_OFF + SCALE)) != 0.0f && best > -INF_F) {
        const int top = gp_top(best), shift = top - gp_top(mine);
        const idx top_k = MIN(WORDS_LD(WORDS_OFF + TOP_K), (idx)1024);
        const gp_u64 cut = (gp_u64)WORDS_LD(WORDS_OFF + TOP_P) << 32, min_p = (gp_u64)WORDS_LD(WORDS_OFF + MIN_P);
        const gp_u64 part = gp_mass(best, top) * min_p, least = part >> 32 ? part >> 32 : 1;
        const gp_u64 listed = top_k ? 1 : least; /* top-p counts what min-p drops */
        const gp_u64 random = gp_draw((gp_u64)WORDS_LD(WORDS_OFF + SEED), (gp_u64)(NUMBER));
        gp_u64 group_mass = TID < GROUPS && shift < 64 ? (gp_u64)MASSES_LD(MASSES_OFF + TID) >> shift : 0;
        BLOCK_SCAN(sums, group_mass);
        const gp_u64 total = sums[KERNEL_BLOCK - 1];
        gp_u64 rest = gp_share(total, random), kept_from = 0; /* what is left of the draw; the least key that a group's token may have */
        int by_group = !top_k && !cut && !min_p;
        if (!by_group) {
            const int wanted = top_k ? (int)top_k : 256;
            gp_u64 low = 0, high = ~(gp_u64)0, sure = 0, need = cut ? total - gp_share(total, cut) : ~(gp_u64)0, weight, step_weight;
            idx count, step_count;
            int groups = 0;
            if (top_k || cut) {
                float a = (float)top - 33.0f, b = best;
                SYNC_COUNT(groups, TID < GROUPS && mine >= a);
                for (int n = 0; n < 24 && groups > wanted + wanted / 4; n++) {
                    const float middle = 0.5f * (a + b);
                    int reach;
                    SYNC_COUNT(reach, TID < GROUPS && mine >= middle);
                    if (reach >= wanted) {
                        a = middle;
                        groups = reach;
                    } else {
                        b = middle;
                    }
                }
                low = groups >= wanted ? (gp_u64)gp_order(a) << 32 : 0;
            }
            MEASURE(low, high, count, weight);
            if (!top_k && cut && weight < need && low) { /* top-p reaches below the guess */
                low = 0;
                MEASURE(low, high, count, weight);
            }
            gp_u64 ceiling = ((gp_u64)gp_order(best) << 32) + 0x100000000ull;
            while (count > KERNEL_BLOCK && (top_k || cut)) {
                const gp_u64 middle = low + (ceiling - low) / 2;
                MEASURE(middle, high, step_count, step_weight);
                if (top_k ? step_count >= top_k : sure + step_weight >= need) {
                    low = middle;
                    count = step_count;
                } else {
                    ceiling = middle;
                    if (!top_k) {
                        high = middle;
                        sure += step_weight;
                        count -= step_count;
                    }
                }
            }
            if (count > KERNEL_BLOCK) { /* min-p alone: all that is left is kept */
                by_group = 1;
                rest = gp_share(weight, random);
            } else {
                gp_u64 at = 0;
                EACH(low, high, at++;)
                BLOCK_SCAN(sums, at);
                at = sums[TID] - at;
                list[TID] = 0;
                SYNC();
                EACH(low, high, list[at++] = key;)
                for (int run = 2; run < 2 * count; run *= 2)
                    for (int stride = run / 2; stride > 0; stride /= 2) {
                        const int other = TID ^ stride;
                        SYNC();
                        const gp_u64 x = list[TID], y = list[other];
                        if (other > TID && ((TID & run) == 0 ? x < y : x > y)) {
                            list[TID] = y;
                            list[other] = x;
                        }
                    }
                SYNC();
                const gp_u64 mass = TID < count ? gp_mass(gp_unorder((gp_u32)(list[TID] >> 32)), top) : 0;
                BLOCK_SCAN(sums, mass);
                const idx limit = top_k ? MIN(count, top_k) : count;
                if (top_k && cut) need = sums[limit - 1] - gp_share(sums[limit - 1], cut);
                const gp_u64 before = sums[TID] - mass;
                const int kept = TID < limit && mass >= least && (sure + before < need || sure + before == 0);
                int kept_count;
                SYNC_COUNT(kept_count, kept);
                rest = gp_share(sure + (kept_count ? sums[kept_count - 1] : 0), random);
                if (rest < sure) {
                    by_group = 1;
                    kept_from = high;
                } else if (kept && rest - sure >= before && rest - sure < sums[TID]) {
                    picked[0] = (gp_u32)~(gp_u32)list[TID];
                }
            }
            if (by_group) { /* masses of what is kept, which no group has ready */
                group_mass = 0;
                for (idx i = (idx)TID * GROUP; i < MIN((idx)(TID + 1) * GROUP, (idx)TOKENS); i++) {
                    const float y = Y_LD(Y_OFF + i);
                    const gp_u64 mass = gp_mass(y, top), key = (gp_u64)gp_order(y) << 32 | (gp_u32)~(gp_u32)i;
                    if (mass >= least && key >= kept_from) group_mass += mass;
                }
                BLOCK_SCAN(sums, group_mass);
            }
        }
        if (by_group) {
            const gp_u64 before = sums[TID] - group_mass;
            if (rest >= before && rest < sums[TID]) {
                picked[0] = (gp_u64)TID;
                picked[1] = rest - before;
            }
            SYNC();
            const idx g = (idx)picked[0], i = g * GROUP + TID;
            rest = picked[1];
            gp_u64 mass = 0;
            if (TID < GROUP && i < TOKENS) {
                const float y = Y_LD(Y_OFF + i);
                mass = gp_mass(y, top);
                if (mass < least || ((gp_u64)gp_order(y) << 32 | (gp_u32)~(gp_u32)i) < kept_from) mass = 0;
            }
            BLOCK_SCAN(sums, mass);
            /* A group's mass was rounded as a whole: it may be a few units more than its tokens'. */
            if (rest >= sums[KERNEL_BLOCK - 1]) rest = sums[KERNEL_BLOCK - 1] ? sums[KERNEL_BLOCK - 1] - 1 : 0;
            if (TID == 0 && !sums[KERNEL_BLOCK - 1]) picked[0] = (gp_u64)PLACES_LD(PLACES_OFF + g);
            if (mass && rest >= sums[TID] - mass && rest < sums[TID]) picked[0] = (gp_u64)i;
        }
    }
    SYNC();
    token = (idx)picked[0];
#endif
    int stop;
    SYNC_COUNT(stop, TID < STOP_TOKENS && TID < WORDS_LD(WORDS_OFF + STOP_COUNT) && WORDS_LD(WORDS_OFF + STOP_IDS + TID) == token);
    if (TID == 0) {
        const idx count = COUNT_LD(COUNT_OFF);
        TOKEN_ST(TOKEN_OFF, token);
        RING_ST(RING_OFF + (count & 65535), token);
        COUNT_ST(COUNT_OFF, count + 1);
        STOP_ST(STOP_OFF, stop != 0);
        RING_ST(RING_OFF + 65536, 2 * (count + 1) + (stop != 0));
#if MOVES
        W_ST(W_OFF, W_LD(W_OFF) + STEP);
#endif
    }
}
#undef EACH
#undef MEASURE
