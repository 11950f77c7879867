/* causal_conv: Y[b, c, t] = act(BIAS[c] + sum over taps of W[c, tap] * seq[t + tap * DILATION]), seq being BEFORE old positions,
 * then X; the new state is the last BEFORE positions of seq (CausalConvWithState). INDEX takes n apart into batch i0, CHANNEL
 * and STEP.
 *   PART    1: a thread makes one output; 2: a thread makes the state of a channel; 3: the outputs and the state of a channel
 *   HAS_OLD 0: zeros; 1: OLD; 2: NEW, which the channel's thread loads before it stores */
#if HAS_OLD == 2
#define CC_OLD(c, p) NEW_LD(NEW_AT(i0, c, p))
#elif HAS_OLD == 1
#define CC_OLD(c, p) OLD_LD(OLD_AT(i0, c, p))
#else
#define CC_OLD(c, p) 0.0f
#endif
/* Position p of seq. */
#define CC_SEQ(c, p) ((p) < BEFORE ? (float)CC_OLD(c, p) : (float)X_LD(X_AT(i0, c, (p) - BEFORE)))
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    for (idx n = (idx)BID_X * KERNEL_BLOCK + TID; n < (COUNT); n += (idx)GRID_X * KERNEL_BLOCK) {
        INDEX
        const idx channel = CHANNEL;
#if PART == 1
        for (idx t = STEP; t <= STEP; t++) {
#elif PART == 3
        for (idx t = 0; t < X_D2; t++) {
#endif
#if PART & 1
#if HAS_BIAS
            float sum = (float)BIAS_LD(BIAS_AT(channel));
#else
            float sum = 0.0f;
#endif
            UNROLL
            for (int tap = 0; tap < TAPS; tap++) {
                const idx p = t + tap * DILATION;
                sum = FMAF((float)W_LD(W_AT(channel, 0, tap)), CC_SEQ(channel, p), sum);
            }
#if SILU
            sum = gp_ratiof(sum, 1.0f + EXPF(-sum));
#endif
            Y_ST(Y_AT(i0, channel, t), sum);
        }
#endif
#if PART & 2
        float held[BEFORE];
        UNROLL
        for (int m = 0; m < BEFORE; m++) held[m] = CC_SEQ(channel, X_D2 + m);
        UNROLL
        for (int m = 0; m < BEFORE; m++) NEW_ST(NEW_AT(i0, channel, m), held[m]);
#endif
    }
}
