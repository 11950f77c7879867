/* pool: Y element n folds a window of X, both [N, C, D, H, W]; a thread an element, the last axis fastest. KIND: 0 max (NaN
 * counts only where nothing else is), 1 mean (over the window's elements inside X, or with COUNT_PADS inside its padding), 2 root
 * of the sum of powers P. With HAS_I, I gets where the maximum lies in the whole of X; COLUMN_MAJOR counts the spatial
 * axes the other way round. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx z0 = i2 * ST0 - (PB0), z1 = i3 * ST1 - (PB1), z2 = i4 * ST2 - (PB2);
        const idx plane = X_OFF + i0 * X_S0 + i1 * X_S1;
        X_C fold = (X_C)(FOLD_START);
        idx seen = 0;
#if HAS_I
        idx at = 0;
#endif
        for (int k0 = 0; k0 < K0; k0++) {
            const idx p0 = z0 + (idx)k0 * DI0;
            if (p0 < 0 || p0 >= (X_D2)) continue;
            for (int k1 = 0; k1 < K1; k1++) {
                const idx p1 = z1 + (idx)k1 * DI1;
                if (p1 < 0 || p1 >= (X_D3)) continue;
                const idx line = plane + p0 * X_S2 + p1 * X_S3;
                for (int k2 = 0; k2 < K2; k2++) {
                    const idx p2 = z2 + (idx)k2 * DI2;
                    if (p2 < 0 || p2 >= (X_D4)) continue;
                    const X_C v = X_LD(line + p2 * X_S4);
#if KIND == 0
                    if (seen == 0 || v > fold || fold != fold) {
                        fold = v;
#if HAS_I
                        at = COLUMN_MAJOR ? p0 + (X_D2) * (p1 + (X_D3) * p2) : (p0 * (X_D3) + p1) * (X_D4) + p2;
#endif
                    }
#elif KIND == 1
                    fold += v;
#else
                    fold += POWER(v < 0 ? -v : v);
#endif
                    seen++;
                }
            }
        }
#if KIND == 1
#if COUNT_PADS
        const idx r0 = ((X_D2) + (PA0)-z0 + DI0 - 1) / DI0, r1 = ((X_D3) + (PA1)-z1 + DI1 - 1) / DI1,
                  r2 = ((X_D4) + (PA2)-z2 + DI2 - 1) / DI2;
        seen = MIN(r0, K0) * MIN(r1, K1) * MIN(r2, K2);
#endif
        fold = fold / (X_C)seen;
#elif KIND == 2
        fold = ROOT(fold);
#endif
        Y_ST(TARGET, fold);
#if HAS_I
        I_ST(I_AT(i0, i1, i2, i3, i4), (i0 * (X_D1) + i1) * ((X_D2) * (X_D3) * (X_D4)) + at);
#endif
    }
}
