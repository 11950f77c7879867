/* lrn: Y element n is X by (BIAS + ALPHA / SIZE * sum of squares of SIZE neighbouring channels, BEFORE of them before it) ^ BETA.
 * CHANNEL is the index of the channel, LINE the offset of channel 0. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx line = LINE, last = MIN(CHANNEL + (SIZE - 1 - BEFORE), (X_D1)-1);
        X_C sum = 0;
        for (idx c = MAX(CHANNEL - BEFORE, 0); c <= last; c++) {
            const X_C v = X_LD(line + c * X_S1);
            sum += v * v;
        }
        Y_ST(TARGET, X_LD(line + CHANNEL * X_S1) / POWER((X_C)BIAS + (X_C)ALPHA / (X_C)SIZE * sum, (X_C)BETA));
    }
}
