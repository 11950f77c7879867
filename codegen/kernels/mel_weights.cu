/* mel_weights: element (bin i0, band i1) of the matrix that takes a spectrum to mel bands; one thread an element. */
KERNEL(128)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const double low = 2595.0 * 0.43429448190325182765 * log(1.0 + (double)LOW_LD(LOW_OFF) / 700.0);
        const double high = 2595.0 * 0.43429448190325182765 * log(1.0 + (double)HIGH_LD(HIGH_OFF) / 700.0), step = (high - low) / (double)((BANDS) + 2);
        idx edge[3];
        for (int k = 0; k < 3; k++) {
            const double hertz = 700.0 * (pow(10.0, ((double)(i1 + k) * step + low) / 2595.0) - 1.0);
            edge[k] = (idx)floor((double)((POINTS) + 1) * hertz / (double)RATE_LD(RATE_OFF));
        }
        double v = 0.0;
        if (edge[1] == edge[0]) v = i0 == edge[1] ? 1.0 : 0.0;
        else if (i0 >= edge[0] && i0 <= edge[1]) v = (double)(i0 - edge[0]) / (double)(edge[1] - edge[0]);
        if (edge[2] > edge[1] && i0 >= edge[1] && i0 < edge[2]) v = (double)(edge[2] - i0) / (double)(edge[2] - edge[1]);
        Y_ST(TARGET, v);
    }
}
