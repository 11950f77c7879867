/* matmul_nbits: Y[m, n] = sum over k of A[m, k] * (q[n, k] - zero[n, g]) * scale[n, g] + bias[n], g = k / BS, with q packed in
 * BITS bits, low bits first (com.microsoft MatMulNBits).
 *
 * A warp makes R columns n for MT rows m, its lanes side by side along k, CH weights (at most 16 bytes, within one
 * block of BS) at a time. KS warps share one such tile along k, WN tiles stand in a block: KERNEL_BLOCK = 32 * WN * KS.
 * Grid: column tiles / WN, row tiles, batch.
 *   M                  extent            N K KB (blocks a row)   literals
 *   A_SM Y_SM          strides; A and Y are contiguous along their last axis
 *   Z_A Z_Y            offsets of batch z, expressions; Z_BEYOND is true for a z beyond the extents
 *   TYPE V             A's type, and its elements in 16 bytes, or V = 1 when A is not aligned to them
 *   ZP                 0 none: 2^(BITS-1); 1: packed like q, rows of ZP_ROW bytes; 2: values Z[n, g]
 *   G_IDX              1: the block of element k is G[k]
 *   EPILOGUE           expression over v, m, n, after EPILOGUE_BODY */
#define MIDDLE ((float)(1 << (BITS - 1)))
#define PACKED_ZERO(n, g) ((float)((Z[Z_OFF + (n) * ZP_ROW + (g) * BITS / 8] >> ((g) * BITS % 8)) & ((1 << BITS) - 1)))
#if ZP == 0
#define ZERO(n, g) MIDDLE
#elif ZP == 1
#define ZERO(n, g) PACKED_ZERO(n, g)
#else
#define ZERO(n, g) Z_LD(Z_OFF + (n) * KB + (g))
#endif
KERNEL(KERNEL_BLOCK)
{
    for (int r = 0; r < R; r++) { /* the first weights of the warp */
        const idx column = ((idx)BID_X * WN + WARP / KS) * R + r, i = LANE + 32 * (WARP % KS);
        if (column < N && i * CH < K) PREFETCH(B + B_OFF + (column * KB * BS + i * CH) * BITS / 8);
    }
    EXTENTS
#if KS > 1
    SHARED(float, partial, WN * KS * R * MT);
#endif
    const idx rows = M, z = BID_Z;
    const idx m0 = (idx)BID_Y * MT, n0 = ((idx)BID_X * WN + WARP / KS) * R;
    if (Z_BEYOND || m0 >= rows || (idx)BID_X * WN * R >= N) return;
#if KS == 1
    if (n0 >= N) return;
#endif
    idx a_at[MT], column[R];
    gp_acc sum[R][MT];
    UNROLL
    for (int m = 0; m < MT; m++) a_at[m] = A_OFF + Z_A + MIN(m0 + m, rows - 1) * A_SM;
    UNROLL
    for (int r = 0; r < R; r++) {
        column[r] = MIN(n0 + r, N - 1);
        UNROLL
        for (int m = 0; m < MT; m++) sum[r][m] = gp_acc_zero();
    }

    const int part = WARP % KS;
    UNROLL_BY(UNROLL_K)
    for (int i = LANE + 32 * part; i < (K + CH - 1) / CH; i += 32 * KS) {
        const int k = i * CH, g = k / BS;
        float b[R][CH], scale[R];
#if ZP == 2 && !G_IDX
        float shift[R]; /* what the zero point adds to MIDDLE */
#endif
        UNROLL
        for (int r = 0; r < R; r++) {
            const unsigned char *packed = B + B_OFF + (column[r] * KB * BS + k) * BITS / 8;
#if G_IDX
            gp_unpack(packed, BITS, CH, 0.0f, b[r]);
            for (int j = 0; j < CH; j++) {
                const idx own = k + j < K ? (idx)G_LD(G_OFF + k + j) : 0;
                b[r][j] = (b[r][j] - ZERO(column[r], own)) * S_LD(S_OFF + column[r] * KB + own);
            }
            scale[r] = 1.0f;
#else
            scale[r] = S_LD(S_OFF + column[r] * KB + g);
#if ZP == 2
            gp_unpack(packed, BITS, CH, MIDDLE, b[r]);
            shift[r] = ZERO(column[r], g) - MIDDLE;
#else
            gp_unpack(packed, BITS, CH, ZERO(column[r], g), b[r]);
#endif
#endif
        }
        UNROLL
        for (int m = 0; m < MT; m++) {
            float a[CH];
#if K % CH != 0
            if (k + CH > K) {
                for (int j = 0; j < CH; j++) a[j] = k + j < K ? A_LD(a_at[m] + k + j) : 0.0f;
            } else
#endif
            {
                UNROLL
                for (int j = 0; j < CH; j += V) {
#if V == 1
                    a[j] = A_LD(a_at[m] + k + j);
#else
                    GP_PASTE(LDV_, TYPE)(A, a_at[m] + k + j, a + j);
#endif
                }
            }
#if ZP == 2 && !G_IDX
            float total = 0.0f;
            UNROLL
            for (int j = 0; j < CH; j++) total += a[j];
#endif
            UNROLL
            for (int r = 0; r < R; r++) {
                sum[r][m] = gp_acc_scaled(sum[r][m], gp_mac(gp_acc_zero(), b[r], a, CH), scale[r]);
#if ZP == 2 && !G_IDX
                sum[r][m] = gp_acc_add(sum[r][m], -(shift[r] * total) * scale[r]);
#endif
            }
        }
    }

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
    if (LANE < R * MT && m < rows && n < N) {
        const float v = mine;
        EPILOGUE_BODY
        Y_ST(Y_OFF + Z_Y + m * Y_SM + n, EPILOGUE);
    }
}
