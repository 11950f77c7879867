/* resize: Y element n is a weighted mean of X along one or two axes (AXES: b, or a and b), around the places p_a and p_b that INDEX
 * computes; weights by FILTER, stretched by STRETCH_x. ACC is what weights and sums are in. EXTRAPOLATE: places outside of X
 * give EXTRA. NORMALISE: weights are divided by their sum; with EXCLUDE those outside of X count nothing. */
KERNEL(256)
{
    EXTENTS
#if CUBIC
#define GP_FILTER(t) \
    ((t) <= 1 ? (((ACC)CUBIC_A + 2) * (t) - ((ACC)CUBIC_A + 3)) * (t) * (t) + 1 \
     : (t) < 2 ? (((ACC)CUBIC_A * (t) - 5 * (ACC)CUBIC_A) * (t) + 8 * (ACC)CUBIC_A) * (t) - 4 * (ACC)CUBIC_A : 0)
#define GP_RADIUS 2.0
#else
#define GP_FILTER(t) ((t) < 1 ? 1 - (t) : 0)
#define GP_RADIUS 1.0
#endif
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx base = BASE;
#if EXTRAPOLATE
        if (!(p_b >= 0 && p_b <= (double)(IN_B)-1)) {
            Y_ST(TARGET, EXTRA);
            continue;
        }
#endif
#if AXES == 2
#if EXTRAPOLATE
        if (!(p_a >= 0 && p_a <= (double)(IN_A)-1)) {
            Y_ST(TARGET, EXTRA);
            continue;
        }
#endif
        const double stretch_a = STRETCH_A;
        const idx first_a = (idx)ceil(p_a - GP_RADIUS / stretch_a), last_a = (idx)floor(p_a + GP_RADIUS / stretch_a);
#else
        const idx first_a = 0, last_a = 0;
#endif
        const double stretch_b = STRETCH_B;
        const idx first_b = (idx)ceil(p_b - GP_RADIUS / stretch_b), last_b = (idx)floor(p_b + GP_RADIUS / stretch_b);
        ACC sum = 0, norm = 0;
        for (idx a = first_a; a <= last_a; a++) {
            ACC weight_a = 1;
            idx line = base;
#if AXES == 2
            const ACC away_a = (ACC)fabs(((double)a - p_a) * stretch_a);
            weight_a = GP_FILTER(away_a);
#if EXCLUDE
            if (a < 0 || a >= (IN_A)) continue;
#endif
            line += MIN(MAX(a, 0), (IN_A)-1) * STEP_A;
#endif
            if (weight_a == 0) continue;
            for (idx b = first_b; b <= last_b; b++) {
                const ACC away_b = (ACC)fabs(((double)b - p_b) * stretch_b);
                const ACC weight = weight_a * (GP_FILTER(away_b));
#if EXCLUDE
                if (b < 0 || b >= (IN_B)) continue;
#endif
                if (weight == 0) continue;
                norm += weight;
                sum += weight * (ACC)X_LD(line + MIN(MAX(b, 0), (IN_B)-1) * STEP_B);
            }
        }
#if NORMALISE
        sum = sum / (norm == 0 ? 1 : norm);
#endif
        Y_ST(TARGET, STORED(sum));
    }
#undef GP_FILTER
#undef GP_RADIUS
}
