/* linear_attention: Y[t] = SCALE * q . S after S was updated by token t, for a state S of HEAD rows and VHEAD columns a head
 * (LinearAttention). Grid: column slices, KV_HEADS, batch.
 *
 * A warp owns 8 columns: lane (r, j) = LANE / 8, LANE % 8 holds rows r, r + 4 ... of column j in registers, loads them before
 * any is stored, and sums over rows are two exchanges. Nothing else reads or writes these columns, so OLD may be NEW.
 *   GATED   0 no decay; 1 G[b, t, head]; 2 G[b, t, head * HEAD + row]
 *   DELTA   0 S += k v; 1, 2 S += k beta (v - S k), beta for all heads or for each
 *   HAS_OLD 0: starts from zero; 1: OLD; 2: NEW */
#if HAS_OLD == 2
#define OLD_LOAD(b, h, i, j) NEW_LD(NEW_AT(b, h, i, j))
#elif HAS_OLD == 1
#define OLD_LOAD(b, h, i, j) OLD_LD(OLD_AT(b, h, i, j))
#else
#define OLD_LOAD(b, h, i, j) 0.0f
#endif
#define HELD ((HEAD + 3) / 4)
#define EACH_ROW(p, i) for (int p = 0, i = LANE / 8; p < HELD; p++, i += 4)
#define ROW_EXISTS(i) (HEAD % 4 == 0 || (i) < HEAD)
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx batch = BID_Z, head = BID_Y;
    const int column = (BID_X * (KERNEL_BLOCK / 32) + WARP) * 8 + LANE % 8;
    if (batch >= BATCH || (BID_X * (KERNEL_BLOCK / 32) + WARP) * 8 >= VHEAD) return; /* whole warps */
    const int inside = column < VHEAD, at = inside ? column : VHEAD - 1;
    const idx k_head = head / (KV_HEADS / K_HEADS);
    float state[HELD];
    UNROLL
    EACH_ROW(p, i) state[p] = ROW_EXISTS(i) ? (float)OLD_LOAD(batch, head, i, at) : 0.0f;
    const idx tokens = TOKENS;
    for (idx t = 0; t < tokens; t++) {
        float key[HELD];
        UNROLL
        EACH_ROW(p, i) key[p] = ROW_EXISTS(i) ? (float)K_LD(K_AT(batch, t, k_head * HEAD + i)) : 0.0f;
        float change = (float)V_LD(V_AT(batch, t, head * VHEAD + at));
#if GATED == 1
        const float fade = EXPF((float)G_LD(G_AT(batch, t, head)));
        UNROLL
        EACH_ROW(p, i) state[p] *= fade;
#elif GATED == 2
        UNROLL
        EACH_ROW(p, i) if (ROW_EXISTS(i)) state[p] *= EXPF((float)G_LD(G_AT(batch, t, head * HEAD + i)));
#endif
#if DELTA
        float seen = 0.0f;
        UNROLL
        EACH_ROW(p, i) seen = FMAF(state[p], key[p], seen);
        seen += SHUFFLE_F(seen, LANE ^ 8);
        seen += SHUFFLE_F(seen, LANE ^ 16);
        change = (float)B_LD(B_AT(batch, t, DELTA == 2 ? head : 0)) * (change - seen);
#endif
        UNROLL
        EACH_ROW(p, i) state[p] = FMAF(key[p], change, state[p]);
#if Q_HEADS > KV_HEADS
        for (int g = 0; g < Q_HEADS / KV_HEADS; g++) {
            const idx q_head = head * (Q_HEADS / KV_HEADS) + g, y_head = q_head;
#else
        {
            const idx q_head = head * Q_HEADS / KV_HEADS, y_head = head;
#endif
            float sum = 0.0f;
            UNROLL
            EACH_ROW(p, i) if (ROW_EXISTS(i)) sum = FMAF((float)Q_LD(Q_AT(batch, t, q_head * HEAD + i)), state[p], sum);
            sum += SHUFFLE_F(sum, LANE ^ 8);
            sum += SHUFFLE_F(sum, LANE ^ 16);
            if (LANE < 8 && inside) Y_ST(Y_AT(batch, t, y_head * VHEAD + column), (float)SCALE * sum);
        }
    }
    UNROLL
    EACH_ROW(p, i) if (inside && ROW_EXISTS(i)) NEW_ST(NEW_AT(batch, head, i, column), state[p]);
}
