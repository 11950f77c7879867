/* matmul_kn: Y[z, m, n] = epilogue(sum over k of A[z, m, k] * B[z, k, n]), whatever the strides.
 *
 * A thread sums V neighbouring columns n (16 bytes of B, or one column) for MT rows m over every SLOTS-th k. LN threads
 * stand side by side along n; the KERNEL_BLOCK / LN = SLOTS groups share k, and add up in shared memory, in the order
 * of the groups. Grid: columns / (LN * V), row tiles, batch.
 *   M N K              extents           A_SM A_SK B_SK B_SN Y_SM Y_SN   strides; B_SN is 1 when V > 1
 *   Z_A Z_B Z_Y        offsets of batch z, expressions; Z_BEYOND is true for a z beyond the extents
 *   TYPE               F32 F16 BF16 when V > 1      ACC   type of sums      EPILOGUE   expression over v, z, m, n
 *   ZEROS              1 (with V 1): elements count less A_ZERO, B_ZERO, expressions over m and z, n and z */
#define SLOTS (KERNEL_BLOCK / LN)
KERNEL(KERNEL_BLOCK)
{
    EXTENTS
    SHARED(ACC, partial, SLOTS * MT * LN * V);
    const idx z = BID_Z;
    const idx rows = M, columns = N, inner = K;
    const idx m0 = (idx)BID_Y * MT, first = (idx)BID_X * LN * V;
    if (Z_BEYOND || m0 >= rows || first >= columns) return;
    const int lane = TID % LN, slot = TID / LN;
    const idx n0 = first + lane * V;
    ACC sum[MT][V];
    idx a_at[MT];
    UNROLL
    for (int m = 0; m < MT; m++) {
        a_at[m] = A_OFF + Z_A + MIN(m0 + m, rows - 1) * A_SM;
        UNROLL
        for (int j = 0; j < V; j++) sum[m][j] = 0;
    }
#if ZEROS
    ACC a_zero[MT], b_zero = 0;
    UNROLL
    for (int row = 0; row < MT; row++) {
        const idx m = MIN(m0 + row, rows - 1);
        a_zero[row] = (ACC)(A_ZERO);
        (void)m;
    }
#endif
    if (n0 < columns) {
        const idx b_at = B_OFF + Z_B + n0 * B_SN;
#if ZEROS
        const idx n = n0;
        b_zero = (ACC)(B_ZERO);
        (void)n;
#endif
        UNROLL_BY(4)
        for (idx k = slot; k < inner; k += SLOTS) {
#if ZEROS
            ACC b[1] = {(ACC)B_LD(b_at + k * B_SK) - b_zero};
#elif V == 1
            ACC b[1] = {(ACC)B_LD(b_at + k * B_SK)};
#else
            float b[V];
            GP_PASTE(LDV_, TYPE)(B, b_at + k * B_SK, b);
#endif
            UNROLL
            for (int m = 0; m < MT; m++) {
#if ZEROS
                const ACC a = (ACC)A_LD(a_at[m] + k * A_SK) - a_zero[m];
#else
                const ACC a = (ACC)A_LD(a_at[m] + k * A_SK);
#endif
                UNROLL
                for (int j = 0; j < V; j++) sum[m][j] = FMA_ACC(a, b[j], sum[m][j]);
            }
        }
    }
    UNROLL
    for (int m = 0; m < MT; m++) {
        UNROLL
        for (int j = 0; j < V; j++) partial[(slot * MT + m) * LN * V + lane * V + j] = sum[m][j];
    }
    SYNC();
    for (int t = TID; t < MT * LN * V; t += KERNEL_BLOCK) {
        const idx m = m0 + t / (LN * V), n = first + t % (LN * V);
        if (m >= rows || n >= columns) continue;
        ACC v = 0;
        for (int other = 0; other < SLOTS; other++) v += partial[other * MT * LN * V + t];
        EPILOGUE_BODY
        Y_ST(Y_OFF + Z_Y + m * Y_SM + n * Y_SN, EPILOGUE);
    }
}
