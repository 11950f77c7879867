/* linear_step: linear_attention (see there) for one token and no more query than state heads. Grid: column slices, KV_HEADS, batch.
 *
 * A block owns ACROSS vectors of WIDTH columns: thread (r, j) = TID / ACROSS, TID % ACROSS holds rows r, r + ROWS ... of vector j, all loaded
 * before anything else, so that the whole state is on its way at once. Sums over rows go through the lanes of a warp, then
 * through shared memory. Nothing else reads or writes these columns, so OLD may be NEW. */
#if HAS_OLD == 2
#define LS_OLD NEW
#define LS_OLD_AT NEW_AT
#else
#define LS_OLD OLD
#define LS_OLD_AT OLD_AT
#endif
#define ROWS (KERNEL_BLOCK / ACROSS)
#define HELD ((HEAD + ROWS - 1) / ROWS)
#define EACH_ROW(p, i) for (int p = 0, i = TID / ACROSS; p < HELD; p++, i += ROWS)
#define ROW_EXISTS(i) (HEAD % ROWS == 0 || (i) < HEAD)
#define EACH_COLUMN(e) for (int e = 0; e < WIDTH; e++)
/* Sums of a warp over its rows of PART[WIDTH], left where all its threads and, behind a SYNC, the block find them. */
#define SUM_ROWS(part, sums) \
    UNROLL \
    for (int step = ACROSS; step < 32; step *= 2) { \
        UNROLL \
        EACH_COLUMN(e) part[e] += SHUFFLE_F(part[e], LANE ^ step); \
    } \
    if (LANE < ACROSS) EACH_COLUMN(e) sums[(WARP * ACROSS + LANE) * WIDTH + e] = part[e]; \
    SYNC();
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(float, seen, KERNEL_BLOCK / 32 * ACROSS * WIDTH);
    SHARED(float, made, KERNEL_BLOCK / 32 * ACROSS * WIDTH);
    const idx batch = BID_Z, head = BID_Y, k_head = head / (KV_HEADS / K_HEADS), q_head = head * Q_HEADS / KV_HEADS;
    if (batch >= BATCH) return; /* whole blocks */
    const int column = (BID_X * ACROSS + TID % ACROSS) * WIDTH, inside = column < VHEAD, at = inside ? column : 0;
    float state[HELD][WIDTH], key[HELD], query[HELD], change[WIDTH], part[WIDTH];
    UNROLL
    EACH_ROW(p, i) {
#if HAS_OLD
        if (ROW_EXISTS(i)) GP_PASTE(LDV_, TYPE)(LS_OLD, LS_OLD_AT(batch, head, i, at), state[p]);
        else
#endif
        { UNROLL EACH_COLUMN(e) state[p][e] = 0.0f; }
    }
    UNROLL
    EACH_ROW(p, i) {
        key[p] = ROW_EXISTS(i) ? (float)K_LD(K_AT(batch, 0, k_head * HEAD + i)) : 0.0f;
        query[p] = ROW_EXISTS(i) ? (float)Q_LD(Q_AT(batch, 0, q_head * HEAD + i)) : 0.0f;
    }
    UNROLL
    EACH_COLUMN(e) change[e] = (float)V_LD(V_AT(batch, 0, head * VHEAD + at + e));
#if GATED == 1
    const float fade = EXPF((float)G_LD(G_AT(batch, 0, head)));
    UNROLL
    EACH_ROW(p, i) {
#elif GATED == 2
    UNROLL
    EACH_ROW(p, i) {
        const float fade = EXPF((float)G_LD(G_AT(batch, 0, head * HEAD + (ROW_EXISTS(i) ? i : 0))));
#endif
#if GATED
        UNROLL
        EACH_COLUMN(e) state[p][e] *= fade;
    }
#endif
#if DELTA
    const float rate = (float)B_LD(B_AT(batch, 0, DELTA == 2 ? head : 0));
    UNROLL
    EACH_COLUMN(e) part[e] = 0.0f;
    UNROLL
    EACH_ROW(p, i) EACH_COLUMN(e) part[e] = FMAF(state[p][e], key[p], part[e]);
    SUM_ROWS(part, seen)
    UNROLL
    EACH_COLUMN(e) {
        float total = 0.0f;
        UNROLL
        for (int w = 0; w < KERNEL_BLOCK / 32; w++) total += seen[(w * ACROSS + TID % ACROSS) * WIDTH + e];
        change[e] = rate * (change[e] - total);
    }
#endif
    UNROLL
    EACH_COLUMN(e) part[e] = 0.0f;
    UNROLL
    EACH_ROW(p, i) EACH_COLUMN(e) {
        state[p][e] = FMAF(key[p], change[e], state[p][e]);
        part[e] = FMAF(query[p], state[p][e], part[e]);
    }
    UNROLL
    EACH_ROW(p, i) if (inside && ROW_EXISTS(i)) GP_PASTE(STV_, TYPE)(NEW, NEW_AT(batch, head, i, column), state[p]);
    SUM_ROWS(part, made)
    for (int c = TID; c < ACROSS * WIDTH; c += KERNEL_BLOCK) {
        float total = 0.0f;
        UNROLL
        for (int w = 0; w < KERNEL_BLOCK / 32; w++) total += made[w * ACROSS * WIDTH + c];
        if (BID_X * ACROSS * WIDTH + c < VHEAD) Y_ST(Y_AT(batch, 0, head * VHEAD + BID_X * ACROSS * WIDTH + c), (float)SCALE * total);
    }
}
