/* linear_attention: Y[t] = SCALE * q . S after S was updated by token t, for a state S of HEAD rows and VHEAD columns a head
 * (LinearAttention). Grid: column slices, KV_HEADS, batch.
 *
 * A warp owns 8 columns: lane (r, j) = LANE / 8, LANE % 8 holds the r-th quarter of column j in registers, loads it before
 * any is stored, and sums over rows are two exchanges. Nothing else reads or writes these columns, so OLD may be NEW. What a
 * block's warps need of TILE tokens, they bring into shared memory together, as floats.
 *   GATED   0 no decay; 1 G[b, t, head]; 2 G[b, t, head * HEAD + row]
 *   DELTA   0 S += k v; 1, 2 S += k beta (v - S k), beta for all heads or for each
 *   HAS_OLD 0: starts from zero; 1: OLD; 2: NEW
 *   GROUP   heads of the query that read a state     TOGETHER 0: too many for shared memory: each lane reads its own part of them */
#if HAS_OLD == 2
#define OLD_LOAD(b, h, i, j) NEW_LD(NEW_AT(b, h, i, j))
#elif HAS_OLD == 1
#define OLD_LOAD(b, h, i, j) OLD_LD(OLD_AT(b, h, i, j))
#else
#define OLD_LOAD(b, h, i, j) 0.0f
#endif
#define COLUMNS (KERNEL_BLOCK / 4) /* of a block */
#define HELD ((HEAD + 3) / 4)
#define HELD_RUNS ((HELD + 3) / 4 * 4)
#define QUARTER (HELD_RUNS + 4) /* floats: quarters of a token lie in different banks */
#define TOKEN (4 * QUARTER)
#define EACH_ROW(p) for (int p = 0; p < HELD; p++)
#define TAKE_ROWS(from, out) \
    float out[HELD_RUNS]; \
    UNROLL \
    for (int p = 0; p < HELD_RUNS; p += 4) LDV_F32((from) + r * QUARTER, p, (out) + p)
/* A quarter's part of a sum, then all of it. Four sums side by side, which do not wait for each other. */
#define SUM_ROWS(v, a, b) \
    float v; \
    do { \
        float part[4] = {0.0f, 0.0f, 0.0f, 0.0f}; \
        UNROLL \
        EACH_ROW(p) part[p % 4] = FMAF((a)[p], (b)[p], part[p % 4]); \
        v = (part[0] + part[1]) + (part[2] + part[3]); \
        v += SHUFFLE_F(v, LANE ^ 8); \
        v += SHUFFLE_F(v, LANE ^ 16); \
    } while (0)
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx batch = BID_Z, head = BID_Y, k_head = head / (KV_HEADS / K_HEADS), q_head = Q_HEADS > KV_HEADS ? head * GROUP : head * Q_HEADS / KV_HEADS;
    const int r = LANE / 8, column = BID_X * COLUMNS + WARP * 8 + LANE % 8, inside = column < VHEAD, at = inside ? column : VHEAD - 1;
    if (batch >= BATCH) return;
    SHARED(float, keys, TILE * TOKEN);
    SHARED(float, queries, TOGETHER ? GROUP * TILE * TOKEN : 1);
    SHARED(float, values, TILE * COLUMNS);
    SHARED(float, fades, GATED == 2 ? TILE * TOKEN : TILE);
    SHARED(float, betas, TILE);
    float state[HELD];
    UNROLL
    EACH_ROW(p) state[p] = r * HELD + p < HEAD ? (float)OLD_LOAD(batch, head, r * HELD + p, at) : 0.0f;
    const idx tokens = TOKENS;
    for (idx first = 0; first < tokens; first += TILE) {
        const int count = (int)MIN(tokens - first, TILE);
        SYNC(); /* the tile before is done with */
        UNROLL_BY(8)
        for (int e = TID; e < count * 4 * HELD; e += KERNEL_BLOCK) {
            const int u = e / (4 * HELD), i = e % (4 * HELD), to = u * TOKEN + i / HELD * QUARTER + i % HELD;
            const int exists = HEAD % 4 == 0 || i < HEAD;
            const idx t = first + u;
            keys[to] = exists ? (float)K_LD(K_AT(batch, t, k_head * HEAD + i)) : 0.0f;
            UNROLL
            for (int g = 0; g < GROUP && TOGETHER; g++) queries[g * TILE * TOKEN + to] = exists ? (float)Q_LD(Q_AT(batch, t, (q_head + g) * HEAD + i)) : 0.0f;
#if GATED == 2
            fades[to] = exists ? EXPF((float)G_LD(G_AT(batch, t, head * HEAD + i))) : 0.0f;
#endif
        }
        for (int e = TID; e < count * COLUMNS; e += KERNEL_BLOCK)
            values[e] = (float)V_LD(V_AT(batch, first + e / COLUMNS, head * VHEAD + MIN(BID_X * COLUMNS + e % COLUMNS, VHEAD - 1)));
        for (int u = TID; u < count; u += KERNEL_BLOCK) {
#if GATED == 1
            fades[u] = EXPF((float)G_LD(G_AT(batch, first + u, head)));
#endif
#if DELTA
            betas[u] = (float)B_LD(B_AT(batch, first + u, DELTA == 2 ? head : 0));
#endif
        }
        SYNC();
        UNROLL_BY(1)
        for (int u = 0; u < count; u++) {
            TAKE_ROWS(keys + u * TOKEN, key);
            float change = values[u * COLUMNS + WARP * 8 + LANE % 8];
#if GATED == 1
            const float fade = fades[u];
            UNROLL
            EACH_ROW(p) state[p] *= fade;
#elif GATED == 2
            TAKE_ROWS(fades + u * TOKEN, fade);
            UNROLL
            EACH_ROW(p) state[p] *= fade[p];
#endif
#if DELTA
            SUM_ROWS(seen, state, key);
            change = betas[u] * (change - seen);
#endif
            UNROLL
            EACH_ROW(p) state[p] = FMAF(key[p], change, state[p]);
            UNROLL_BY(TOGETHER ? GROUP : 1)
            for (int g = 0; g < GROUP; g++) {
#if TOGETHER
                TAKE_ROWS(queries + (g * TILE + u) * TOKEN, query);
#else
                float query[HELD];
                UNROLL
                EACH_ROW(p) query[p] = r * HELD + p < HEAD ? (float)Q_LD(Q_AT(batch, first + u, (q_head + g) * HEAD + r * HELD + p)) : 0.0f;
#endif
                SUM_ROWS(sum, state, query);
                const idx y_head = Q_HEADS > KV_HEADS ? q_head + g : head;
                if (LANE < 8 && inside) Y_ST(Y_AT(batch, first + u, y_head * VHEAD + column), (float)SCALE * sum);
            }
        }
    }
    UNROLL
    EACH_ROW(p) if (inside && r * HELD + p < HEAD) NEW_ST(NEW_AT(batch, head, r * HELD + p, column), state[p]);
}
