/* conv_transpose: a thread makes CT channels of one place of Y [N, M, D, H, W]; the places of a block lie side by side. Grid: places,
 * groups of channels, batch. W is [C, M / groups, K0, K1, K2]. A kernel element k reaches place o from X place (o + PB - k*DI) / ST
 * where that divides: of each STEP elements in a row at most one does, so the loops look for it once. */
KERNEL(128)
{
    EXTENTS
    const idx chunk = BID_Y % CHUNKS, group = BID_Y / CHUNKS;
    const idx first = group * GROUP_OUT + chunk * CT; /* channel */
    const idx places = (Y_D2) * (Y_D3) * (Y_D4);
    for (idx batch = BID_Z; batch < (Y_D0); batch += GRID_Z) {
        for (idx place = (idx)BID_X * KERNEL_BLOCK + TID; place < places; place += (idx)GRID_X * KERNEL_BLOCK) {
            const idx o2 = place % (Y_D4), o1 = place / (Y_D4) % (Y_D3), o0 = place / (Y_D4) / (Y_D3);
            ACC sum[CT];
            int b0 = 0, b1 = 0, b2 = 0;
            UNROLL
            for (int j = 0; j < CT; j++) sum[j] = 0;
            while (b0 < STEP0 && FLOOR_MOD(o0 + (PB0)-b0 * (idx)DI0, ST0) != 0) b0++;
            while (b1 < STEP1 && FLOOR_MOD(o1 + (PB1)-b1 * (idx)DI1, ST1) != 0) b1++;
            while (b2 < STEP2 && FLOOR_MOD(o2 + (PB2)-b2 * (idx)DI2, ST2) != 0) b2++;
            if (b0 == STEP0) b0 = K0;
            if (b1 == STEP1) b1 = K1;
            if (b2 == STEP2) b2 = K2;
            for (int k0 = b0; k0 < K0; k0 += STEP0) {
                const idx p0 = FLOOR_DIV(o0 + (PB0)-k0 * (idx)DI0, ST0);
                if (p0 < 0 || p0 >= (X_D2)) continue;
                for (int k1 = b1; k1 < K1; k1 += STEP1) {
                    const idx p1 = FLOOR_DIV(o1 + (PB1)-k1 * (idx)DI1, ST1);
                    if (p1 < 0 || p1 >= (X_D3)) continue;
                    for (int k2 = b2; k2 < K2; k2 += STEP2) {
                        const idx p2 = FLOOR_DIV(o2 + (PB2)-k2 * (idx)DI2, ST2);
                        if (p2 < 0 || p2 >= (X_D4)) continue;
                        const idx at = X_AT(batch, group * GROUP_IN, p0, p1, p2);
                        const idx weight = W_AT(group * GROUP_IN, chunk * CT, k0, k1, k2);
                        for (idx ci = 0; ci < GROUP_IN; ci++) {
                            const ACC v = (ACC)X_LD(at + ci * X_S1);
                            UNROLL
                            for (int j = 0; j < CT; j++)
                                if (GROUP_OUT % CT == 0 || chunk * CT + j < GROUP_OUT)
                                    sum[j] = FMA_ACC(v, (ACC)W_LD(weight + ci * W_S0 + j * W_S1), sum[j]);
                        }
                    }
                }
            }
            UNROLL
            for (int j = 0; j < CT; j++) {
                if (GROUP_OUT % CT != 0 && chunk * CT + j >= GROUP_OUT) continue;
#if HAS_B
                sum[j] += (ACC)B_LD(B_AT(first + j));
#endif
                Y_ST(Y_AT(batch, first + j, o0, o1, o2), sum[j]);
            }
        }
    }
}
