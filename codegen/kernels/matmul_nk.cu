/* matmul_nk: Y[z, m, n] = epilogue(sum over k of A[z, m, k] * B[z, n, k]); A and B lie contiguously along k.
 *
 * A warp makes R columns n for MT rows m, its lanes side by side along k, V elements (16 bytes, or one) at a time. KS
 * warps share the work of one such tile along k, WN tiles stand in a block: KERNEL_BLOCK = 32 * WN * KS.
 * Grid: column tiles / WN, row tiles, batch.
 *   M N K              extents           A_SM B_SN Y_SM Y_SN   strides
 *   Z_A Z_B Z_Y        offsets of batch z, expressions; Z_BEYOND is true for a z beyond the extents
 *   TYPE               F32 F16 BF16      EPILOGUE   expression over v, z, m, n, after EPILOGUE_BODY
 *   STREAM             1: B is read once a launch, and constant */
KERNEL(KERNEL_BLOCK)
{
#if STREAM
    for (int r = 0; r < R; r++) { /* the first weights of the warp */
        const idx column = ((idx)BID_X * WN + WARP / KS) * R + r, i = LANE + 32 * (WARP % KS);
        if (BID_Z == 0 && column < N && i * V < K) PREFETCH(B + B_OFF + column * B_SN + i * V);
    }
#endif
    EXTENTS
#if KS > 1
    SHARED(float, partial, WN * KS * R * MT);
#endif
    const idx z = BID_Z;
    const idx rows = M, columns = N, inner = K;
    const idx m0 = (idx)BID_Y * MT, n0 = ((idx)BID_X * WN + WARP / KS) * R;
    if (Z_BEYOND || m0 >= rows || (idx)BID_X * WN * R >= columns) return;
#if KS == 1
    if (n0 >= columns) return;
#endif
    idx a_at[MT], b_at[R];
    gp_acc sum[R][MT];
    UNROLL
    for (int m = 0; m < MT; m++) a_at[m] = A_OFF + Z_A + MIN(m0 + m, rows - 1) * A_SM;
    UNROLL
    for (int r = 0; r < R; r++) {
        b_at[r] = B_OFF + Z_B + MIN(n0 + r, columns - 1) * B_SN;
        UNROLL
        for (int m = 0; m < MT; m++) sum[r][m] = gp_acc_zero();
    }

    const int part = WARP % KS;
    const idx chunks = inner / V;
    UNROLL_BY(UNROLL_K)
    for (idx i = LANE + 32 * part; i < chunks; i += 32 * KS) {
        float b[R][V], a[V];
        UNROLL
        for (int r = 0; r < R; r++) {
#if V == 1
            b[r][0] = B_LD(b_at[r] + i);
#elif STREAM
            GP_PASTE(LDVS_, TYPE)(B, b_at[r] + i * V, b[r]);
#else
            GP_PASTE(LDV_, TYPE)(B, b_at[r] + i * V, b[r]);
#endif
        }
        UNROLL
        for (int m = 0; m < MT; m++) {
#if V == 1
            a[0] = A_LD(a_at[m] + i);
#else
            GP_PASTE(LDV_, TYPE)(A, a_at[m] + i * V, a);
#endif
            UNROLL
            for (int r = 0; r < R; r++) sum[r][m] = gp_mac(sum[r][m], b[r], a, V);
        }
    }
#if V > 1
    if (part == 0 && chunks * V + LANE < inner) {
        const idx k = chunks * V + LANE;
        for (int r = 0; r < R; r++)
            for (int m = 0; m < MT; m++) sum[r][m] = gp_acc_add(sum[r][m], A_LD(a_at[m] + k) * B_LD(b_at[r] + k));
    }
#endif

    float totals[R * MT], mine; /* lane r * MT + m gets its sum, and stores it */
    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int m = 0; m < MT; m++) totals[r * MT + m] = gp_acc_total(sum[r][m]);
    }
    WARP_SUM_EACH(mine, totals, R * MT);
#if KS > 1
    if (LANE < R * MT) partial[WARP * R * MT + LANE] = mine;
    SYNC();
    if (part > 0) return;
    if (LANE < R * MT)
        for (int other = 1; other < KS; other++) mine += partial[(WARP + other) * R * MT + LANE];
#endif
    const idx m = m0 + LANE % MT, n = n0 + LANE / MT;
    if (LANE < R * MT && m < rows && n < columns) {
        const float v = mine;
        EPILOGUE_BODY
        Y_ST(Y_OFF + Z_Y + m * Y_SM + n * Y_SN, EPILOGUE);
    }
}
