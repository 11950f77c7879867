/* moe_combine: Y[row, n] = sum over slots of SHARE[row, slot] * X[row * TOP + slot, n], and what the epilogue makes of it. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    const idx columns = Y_D1;
    for (idx p = (idx)BID_X * KERNEL_BLOCK + TID; p < (idx)ROWS * columns; p += (idx)GRID_X * KERNEL_BLOCK) {
        const idx row = p / columns, n = p % columns;
        float sum = 0.0f;
        for (int slot = 0; slot < TOP; slot++) sum = FMAF(SHARE_LD(SHARE_AT(row, slot)), X_LD(X_AT(row * TOP + slot, n)), sum);
        const idx m = row;
        const float v = sum;
        (void)m;
        EPILOGUE_BODY
        Y_ST(Y_AT(row, n), EPILOGUE);
    }
}
