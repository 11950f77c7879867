/* product_store.h - part of templates that make products of many rows: how results are stored, through the epilogue. It needs Y_LINE(m), the line
 * of Y that row m is in, Y_SN, `columns`, and what the lowering gives (matmul_rows.cu). It gives
 *   STORE(m, n, v)               stores v
 *   STORE_PAIR(pair, m, n)       stores pair[0] and pair[1] in columns n and n + 1, as far as there are such, with PAIRS in one word:
 *   MAKE_PAIR(word, pair, m, n)  without a branch, so that what the epilogues of several rows read comes in one round trip
 *   PUT_PAIR(word, m, n) */
#define STORE(m_, n_, v_) \
    do { \
        const idx m = (m_), n = (n_); \
        const float v = (v_); \
        EPILOGUE_BODY \
        Y_ST(Y_OFF + Z_Y + Y_LINE(m) * Y_SM + n * Y_SN, EPILOGUE); \
    } while (0)
#if PAIRS
#define MAKE_PAIR(word, pair, m_, n_) \
    do { \
        (word) = 0; \
        UNROLL \
        for (int e = 0; e < 2; e++) { \
            const idx m = (m_), n = MIN((n_) + e, columns - 1); \
            const float v = (pair)[e]; \
            Y_T half[1]; \
            EPILOGUE_BODY \
            GP_PASTE(ST_, YTYPE)(half, 0, EPILOGUE); \
            (word) |= (gp_u32)half[0] << 16 * e; \
        } \
    } while (0)
#define PUT_PAIR(word, m_, n_) \
    do { \
        Y_T *to = Y + Y_OFF + Z_Y + Y_LINE(m_) * Y_SM + (n_); \
        if ((n_) + 1 < columns) *(gp_u32 *)to = (word); \
        else if ((n_) < columns) *to = (Y_T)(word); \
    } while (0)
#define STORE_PAIR(pair, m_, n_) \
    do { \
        gp_u32 word; \
        MAKE_PAIR(word, pair, m_, n_); \
        PUT_PAIR(word, m_, n_); \
    } while (0)
#else
#define STORE_PAIR(pair, m_, n_) \
    do { \
        for (int e = 0; e < 2 && (n_) + e < columns; e++) STORE(m_, (n_) + e, (pair)[e]); \
    } while (0)
#endif
/* wide_store.h: floats from row to row of a result, so that lanes of a quarter and of a column fall into different banks; all of it. */
#define WIDE_PITCH 68
#define WIDE_STORE_BYTES (BN * WIDE_PITCH * 4)
#define WIDE_TOGETHER 8 /* rows whose epilogues read in one round trip */
