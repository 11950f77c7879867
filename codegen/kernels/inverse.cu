/* inverse: one block inverts one N x N matrix of X by Gauss-Jordan elimination with row pivots, in the scratch W: rows of 2 N
 * numbers, the matrix and beside it what becomes its inverse. Every thread finds the same pivot. A singular matrix gives
 * infinities or NaN. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx row = BID_X, size = N; /* `row` counts matrices, `col` their elements */
    if (row >= (COUNT)) return;
    const idx at = W_OFF + row * W_S0;
    for (idx t = TID; t < size * size * 2; t += KERNEL_BLOCK) {
        const idx i = t / (2 * size), j = t % (2 * size), col = i * size + j;
        W_ST(at + t, j < size ? (W_C)X_LD(X_ROW + X_COL) : (W_C)(j - size == i));
    }
    SYNC();
    for (idx step = 0; step < size; step++) {
        idx pivot = step;
        W_C best = -1;
        for (idx i = step; i < size; i++) {
            W_C v = W_LD(at + i * 2 * size + step);
            v = v < 0 ? -v : v;
            if (v > best) best = v, pivot = i;
        }
        SYNC();
        for (idx j = TID; j < 2 * size && pivot != step; j += KERNEL_BLOCK) {
            const W_C v = W_LD(at + step * 2 * size + j);
            W_ST(at + step * 2 * size + j, W_LD(at + pivot * 2 * size + j));
            W_ST(at + pivot * 2 * size + j, v);
        }
        SYNC();
        const W_C scale = 1 / W_LD(at + step * 2 * size + step);
        SYNC();
        for (idx j = TID; j < 2 * size; j += KERNEL_BLOCK) W_ST(at + step * 2 * size + j, W_LD(at + step * 2 * size + j) * scale);
        SYNC();
        /* Columns up to `step` are done with; column `step` stays, for the factors are read from it. */
        for (idx t = TID; t < size * (2 * size - step - 1); t += KERNEL_BLOCK) {
            const idx i = t / (2 * size - step - 1), j = step + 1 + t % (2 * size - step - 1);
            if (i == step) continue;
            W_ST(at + i * 2 * size + j, W_LD(at + i * 2 * size + j) - W_LD(at + i * 2 * size + step) * W_LD(at + step * 2 * size + j));
        }
        SYNC();
    }
    for (idx col = TID; col < size * size; col += KERNEL_BLOCK) Y_ST(Y_ROW + Y_COL, W_LD(at + col / size * 2 * size + size + col % size));
}
