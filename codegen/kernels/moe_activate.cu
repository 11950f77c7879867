/* moe_activate: Y[route, i] = what an expert makes of its first product X (and X3, with PAIR 3): see moe_up and gp_expert. */
#if PAIR == 1
#define GATE (2 * i)
#define LINEAR (2 * i + 1)
#else
#define GATE i
#define LINEAR (PAIR == 2 ? INNER + i : i)
#endif
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    for (idx p = (idx)BID_X * KERNEL_BLOCK + TID; p < (idx)ROWS * TOP * INNER; p += (idx)GRID_X * KERNEL_BLOCK) {
        const idx route = p / INNER, i = p % INNER;
        const float g = X_LD(X_AT(route, GATE));
#if PAIR == 3
        const float other = X3_LD(X3_AT(route, LINEAR));
#elif PAIR
        const float other = X_LD(X_AT(route, LINEAR));
#else
        const float other = 0.0f;
#endif
        Y_ST(Y_AT(route, i), gp_expert(ACTIVATION, PAIR, g, other, LIMIT, LIMIT_AFTER, ALPHA, BETA));
    }
}
