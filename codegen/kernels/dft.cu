/* dft: one block transforms one line of POINTS complex numbers: X, cut or filled with zeros to POINTS, times a window if there
 * is one. SIGN -1 forward, 1 inverse. In shared memory by halves where POINTS is a power of two, else by the sum itself.
 * HALF_IN: X holds the first half of a spectrum whose other half is its mirror. */
KERNEL(THREADS)
{
    EXTENTS
    const idx row = BID_X;
    if (row >= (ROWS)) return;
#if SHARED_POINTS
    SHARED(S_C, re, POINTS);
    SHARED(S_C, im, POINTS);
    SHARED(S_C, wave_re, POINTS);
    SHARED(S_C, wave_im, POINTS);
    for (int j = TID; j < POINTS; j += THREADS) {
        const double turn = SIGN * 6.283185307179586477 * (double)j / (double)POINTS;
        int to = j;
#if LOG_POINTS
        to = 0;
        for (int b = 0; b < LOG_POINTS; b++) to |= (j >> b & 1) << (LOG_POINTS - 1 - b);
#endif
        wave_re[j] = (S_C)cos(turn);
        wave_im[j] = (S_C)sin(turn);
        re[to] = (S_C)GET_RE(j);
        im[to] = (S_C)GET_IM(j);
    }
    SYNC();
#if LOG_POINTS
    for (int half = 1; half < POINTS; half *= 2) {
        for (int p = TID; p < POINTS / 2; p += THREADS) {
            const int low = p / half * half * 2 + p % half, high = low + half, w = p % half * (POINTS / 2 / half);
            const S_C a = re[high] * wave_re[w] - im[high] * wave_im[w], b = re[high] * wave_im[w] + im[high] * wave_re[w];
            re[high] = re[low] - a;
            im[high] = im[low] - b;
            re[low] += a;
            im[low] += b;
        }
        SYNC();
    }
#endif
#endif
    for (int q = TID; q < BINS; q += THREADS) {
#if LOG_POINTS
        const S_C a = re[q], b = im[q];
#else
        S_C a = 0, b = 0;
        for (int j = 0; j < POINTS; j++) {
            const int at = (int)((idx)j * q % POINTS);
#if SHARED_POINTS
            const S_C cosine = wave_re[at], sine = wave_im[at], x = re[j], y = im[j];
#else
            const double turn = SIGN * 6.283185307179586477 * (double)at / (double)POINTS;
            const S_C cosine = (S_C)cos(turn), sine = (S_C)sin(turn), x = (S_C)GET_RE(j), y = (S_C)GET_IM(j);
#endif
            a += x * cosine - y * sine;
            b += x * sine + y * cosine;
        }
#endif
        Y_ST(Y_ROW + q * Y_STEP, a * (S_C)SCALE);
#if OUT_COMPLEX
        Y_ST(Y_ROW + q * Y_STEP + Y_PART, b * (S_C)SCALE);
#endif
    }
}
