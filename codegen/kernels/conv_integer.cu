/* conv_integer: the sum v over channels of a group and taps of (X - X_ZERO) * (W - W_ZERO), nothing outside of X, becomes EPILOGUE
 * (over v and the output channel i1). One thread an output; INDEX declares i0 .. i4 from n. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx first = i1 / ((Y_D1) / GROUPS) * (W_D1);
        const idx z0 = i2 * ST0 - (PB0), z1 = i3 * ST1 - (PB1), z2 = i4 * ST2 - (PB2);
        const int x_zero = (int)(X_ZERO), w_zero = (int)(W_ZERO);
        int v = 0;
        for (idx channel = 0; channel < (W_D1); channel++)
            for (int k0 = 0; k0 < K0; k0++) {
                const idx p0 = z0 + k0 * DI0;
                if (p0 < 0 || p0 >= (X_D2)) continue;
                for (int k1 = 0; k1 < K1; k1++) {
                    const idx p1 = z1 + k1 * DI1;
                    if (p1 < 0 || p1 >= (X_D3)) continue;
                    UNROLL
                    for (int k2 = 0; k2 < K2; k2++) {
                        const idx p2 = z2 + k2 * DI2;
                        if (p2 < 0 || p2 >= (X_D4)) continue;
                        v += ((int)X_LD(X_AT(i0, first + channel, p0, p1, p2)) - x_zero) * ((int)W_LD(W_AT(i1, channel, k0, k1, k2)) - w_zero);
                    }
                }
            }
        Y_ST(Y_AT(i0, i1, i2, i3, i4), EPILOGUE);
    }
}
