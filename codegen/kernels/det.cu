/* det: one block a matrix of SIZE rows: eliminates below the largest pivot of each column, in a copy A. */
KERNEL(THREADS)
{
    EXTENTS
    SHARED(int, pivot, 1);
    const idx row = BID_X;
    if (row >= ROWS) return;
    const idx base = row * SIZE * SIZE;
    A_C det = 1;
    for (idx col = TID; col < SIZE * SIZE; col += THREADS) A_ST(base + col, (A_C)X_LD(X_ROW + X_COL));
    SYNC();
    for (int k = 0; k < SIZE; k++) {
        if (TID == 0) {
            int best = k;
            for (int i = k + 1; i < SIZE; i++) {
                const A_C v = A_LD(base + i * SIZE + k), w = A_LD(base + best * SIZE + k);
                if ((v < 0 ? -v : v) > (w < 0 ? -w : w)) best = i;
            }
            pivot[0] = best;
        }
        SYNC();
        const int from = pivot[0];
        const A_C top = A_LD(base + from * SIZE + k);
        det *= from == k ? top : -top;
        SYNC(); /* all have read the pivot */
        for (int j = k + TID; j < SIZE && from != k; j += THREADS) {
            const A_C v = A_LD(base + k * SIZE + j);
            A_ST(base + k * SIZE + j, A_LD(base + from * SIZE + j));
            A_ST(base + from * SIZE + j, v);
        }
        SYNC();
        const int left = SIZE - k - 1;
        for (int p = TID; p < left * left && top != 0; p += THREADS) {
            const int i = k + 1 + p / left, j = k + 1 + p % left;
            const A_C factor = A_LD(base + i * SIZE + k) / top;
            A_ST(base + i * SIZE + j, A_LD(base + i * SIZE + j) - factor * A_LD(base + k * SIZE + j));
        }
        SYNC();
    }
    if (TID == 0) Y_ST(Y_ROW, det);
}
