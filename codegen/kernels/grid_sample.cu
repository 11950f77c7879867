/* grid_sample: Y element n of [N, C, D, H, W] is X between the places that G [N, D, H, W, axes] names, the last axis first; the first
 * ABSENT axes are not there. TAPS elements an axis: 1 nearest, 2 linear, 4 cubic. PADDING: 0 zeros, 1 border, 2 reflection at
 * the centres of the outer elements (ALIGN) or at their outer edges. */
KERNEL(256)
{
    EXTENTS
    const idx in[3] = {(X_D2), (X_D3), (X_D4)}, step[3] = {X_S2, X_S3, X_S4};
#define GP_REFLECT(v) \
    if (!(high > low)) { \
        v = low; \
    } else if (v < low || v > high) { \
        const float range = high - low, far = v < low ? low - v : v - high; \
        const float turns = FLOORF(far / range), rest = far - turns * range; \
        v = (v < low) == (((idx)turns & 1) == 0) ? low + rest : high - rest; \
    }
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        idx place[3][TAPS];
        ACC weight[3][TAPS];
        UNROLL
        for (int a = 0; a < 3; a++) {
            if (a < ABSENT) {
                place[a][0] = 0;
                weight[a][0] = 1;
                continue;
            }
            const float low = ALIGN ? 0.0f : -0.5f, high = (float)in[a] - (ALIGN ? 1.0f : 0.5f);
            const G_C at = G_LD(G_AT(i0, i2, i3, i4, 2 - a));
            float x = (float)(ALIGN ? (at + 1) / 2 * (G_C)(in[a] - 1) : ((at + 1) * (G_C)in[a] - 1) / 2);
            x = FMAXF(FMINF(x, 1e9f), -1e9f);
#if TAPS == 1
            x = RINTF(x);
#endif
#if PADDING == 1 && TAPS < 4 /* cubic moves the elements to the border, not the place, as PyTorch does */
            if (x < low || x > high) x = FMINF(FMAXF(x, 0.0f), (float)(in[a] - 1));
#elif PADDING == 2
            GP_REFLECT(x)
#endif
            const float below = FLOORF(x), part = x - below;
            UNROLL
            for (int t = 0; t < TAPS; t++) {
                idx i = (idx)below + t - (TAPS == 4);
                const float away = FABSF((float)(t - (TAPS == 4)) - part);
#if TAPS == 1
                ACC w = 1;
                (void)away;
#elif TAPS == 2
                ACC w = (ACC)(1.0f - away);
#else
                ACC w = (ACC)(away <= 1.0f ? (1.25f * away - 2.25f) * away * away + 1.0f
                                           : ((-0.75f * away + 3.75f) * away - 6.0f) * away + 3.0f);
#endif
#if PADDING == 0
                if (i < 0 || i >= in[a]) w = 0;
#elif PADDING == 2
                float r = (float)i;
                GP_REFLECT(r)
                i = (idx)r;
#endif
                place[a][t] = MIN(MAX(i, 0), in[a] - 1) * step[a];
                weight[a][t] = w;
            }
        }
        const idx plane = X_OFF + i0 * X_S0 + i1 * X_S1;
        ACC sum = 0;
        UNROLL
        for (int t0 = 0; t0 < (ABSENT > 0 ? 1 : TAPS); t0++) {
            UNROLL
            for (int t1 = 0; t1 < (ABSENT > 1 ? 1 : TAPS); t1++) {
                const ACC outer = weight[0][t0] * weight[1][t1];
                const idx line = plane + place[0][t0] + place[1][t1];
                UNROLL
                for (int t2 = 0; t2 < TAPS; t2++) {
                    const ACC w = outer * weight[2][t2];
                    if (w != 0) sum += w * (ACC)X_LD(line + place[2][t2]);
                }
            }
        }
        Y_ST(TARGET, (Y_C)sum);
    }
#undef GP_REFLECT
}
