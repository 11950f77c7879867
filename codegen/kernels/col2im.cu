/* col2im: Y element n of [N, C, D, H, W] is the sum of what the columns X [N, C * K0*K1*K2, L0*L1*L2] have for that place. */
KERNEL(256)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        X_C sum = 0;
        for (int k0 = 0; k0 < K0; k0++) {
            const idx s0 = i2 + (PB0)-k0 * (idx)DI0, p0 = s0 / ST0;
            if (s0 < 0 || s0 % ST0 != 0 || p0 >= (L0)) continue;
            for (int k1 = 0; k1 < K1; k1++) {
                const idx s1 = i3 + (PB1)-k1 * (idx)DI1, p1 = s1 / ST1;
                if (s1 < 0 || s1 % ST1 != 0 || p1 >= (L1)) continue;
                for (int k2 = 0; k2 < K2; k2++) {
                    const idx s2 = i4 + (PB2)-k2 * (idx)DI2, p2 = s2 / ST2;
                    if (s2 < 0 || s2 % ST2 != 0 || p2 >= (L2)) continue;
                    sum += X_LD(X_AT(i0, ((i1 * K0 + k0) * K1 + k1) * K2 + k2, (p0 * (L1) + p1) * (L2) + p2));
                }
            }
        }
        Y_ST(TARGET, sum);
    }
}
