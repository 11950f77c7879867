/* conv: Y[b, m, o0, o1, o2] = BIAS[m] + the sum over channels of m's group and taps of W * X, zero outside of X. One thread an
 * output; INDEX declares i0 .. i4 from n. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx first = i1 / ((Y_D1) / GROUPS) * (W_D1);
        const idx from0 = i2 * STRIDE0 - (BEFORE0), from1 = i3 * STRIDE1 - (BEFORE1), from2 = i4 * STRIDE2 - (BEFORE2);
        X_C sum = 0;
        for (idx channel = 0; channel < (W_D1); channel++)
            for (int t0 = 0; t0 < TAPS0; t0++) {
                const idx p0 = from0 + t0 * DILATION0;
                if (p0 < 0 || p0 >= (X_D2)) continue;
                for (int t1 = 0; t1 < TAPS1; t1++) {
                    const idx p1 = from1 + t1 * DILATION1;
                    if (p1 < 0 || p1 >= (X_D3)) continue;
                    UNROLL
                    for (int t2 = 0; t2 < TAPS2; t2++) {
                        const idx p2 = from2 + t2 * DILATION2;
                        if (p2 < 0 || p2 >= (X_D4)) continue;
                        sum += (X_C)X_LD(X_AT(i0, first + channel, p0, p1, p2)) * (X_C)W_LD(W_AT(i1, channel, t0, t1, t2));
                    }
                }
            }
#if HAS_BIAS
        sum += (X_C)BIAS_LD(BIAS_AT(i1));
#endif
        Y_ST(Y_AT(i0, i1, i2, i3, i4), sum);
    }
}
