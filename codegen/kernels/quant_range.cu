/* quant_range: the least and the largest of X by blocks: Y[2 b], Y[2 b + 1] are those of block b's share; 0 counts with them.
 * Threads step over COUNT elements n; INDEX takes n apart, SOURCE is where it lies. */
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(float, least, KERNEL_BLOCK / 32);
    SHARED(float, most, KERNEL_BLOCK / 32);
    const idx count = COUNT;
    float low = 0.0f, high = 0.0f;
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < count; n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const float v = X_LD(SOURCE);
        low = FMINF(low, v);
        high = FMAXF(high, v);
    }
    low = -WARP_MAX(-low);
    high = WARP_MAX(high);
    if (LANE == 0) {
        least[WARP] = low;
        most[WARP] = high;
    }
    SYNC();
    if (TID > 0) return;
    for (int w = 1; w < KERNEL_BLOCK / 32; w++) {
        low = FMINF(low, least[w]);
        high = FMAXF(high, most[w]);
    }
    Y_ST(Y_OFF + 2 * (idx)BID_X, low);
    Y_ST(Y_OFF + 2 * (idx)BID_X + 1, high);
}
