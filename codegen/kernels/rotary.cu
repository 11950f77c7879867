/* rotary: rotates the first 2 * HALF elements of each head of X [B, heads, S, HEAD] by the angles of its position, copies the
 * others. TABLE: 2 COS and SIN are [positions, HALF], 3 they are [B, S, HALF]. POSITIONS: 0 none, 1 POS is the first
 * position, 2 POS is [B, S], 3 it is [3, B, S] and STREAM(at) says which of the three angle `at` goes by. A position without a row in the tables is not rotated. */
KERNEL(256)
{
    EXTENTS
    const idx width = HEAD - HALF, count = X_D0 * X_D1 * X_D2 * width;
    for (idx i = (idx)BID_X * KERNEL_BLOCK + TID; i < count; i += (idx)GRID_X * KERNEL_BLOCK) {
        const idx at = i % width, h = i / width % X_D1, s = i / width / X_D1 % X_D2, b = i / width / X_D1 / X_D2;
        if (at >= HALF) {
            Y_ST(Y_AT(b, h, s, at + HALF), X_LD(X_AT(b, h, s, at + HALF)));
            continue;
        }
        const idx x = INTERLEAVED ? 2 * at : at, y = INTERLEAVED ? 2 * at + 1 : at + HALF;
        const float u = (float)X_LD(X_AT(b, h, s, x)), v = (float)X_LD(X_AT(b, h, s, y));
#if TABLE == 3
        const float cosine = (float)COS_LD(COS_AT(b, s, at)), sine = (float)SIN_LD(SIN_AT(b, s, at));
#else
#if POSITIONS == 1
        const idx position = (idx)POS_LD(POS_OFF) + s;
#elif POSITIONS == 3
        const idx position = (idx)POS_LD(POS_AT(STREAM(at), b, s));
#else
        const idx position = (idx)POS_LD(POS_AT(b, s));
#endif
        const int inside = position >= 0 && position < COS_D0;
        const float cosine = inside ? (float)COS_LD(COS_AT(position, at)) : 1.0f;
        const float sine = inside ? (float)SIN_LD(SIN_AT(position, at)) : 0.0f;
#endif
        Y_ST(Y_AT(b, h, s, x), u * cosine - v * sine);
        Y_ST(Y_AT(b, h, s, y), u * sine + v * cosine);
    }
}
