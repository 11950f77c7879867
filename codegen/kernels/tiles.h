/* tiles.h - what templates that stage tiles through shared memory for the tensor cores are written in; it stands behind
 * prelude.h. Where TENSOR is 0 there is nothing. */
#if TENSOR

/* The words of a half-precision operand as MMA wants them need not be those of 16 neighbouring k: the same k's of A and B must meet.
 * So a lane takes 16 bytes of a row, k = 8 * t .. 8 * t + 7 of 32, as words 0 1 (first product) and 2 3 (second). */

#if ON_GPU
/* 16 bytes from global to shared memory while the thread goes on; behind the first BYTES come zeros, BYTES 0 reads nothing. */
#define COPY16(to, from, bytes) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
                 : : "r"((gp_u32)__cvta_generic_to_shared(to)), "l"(from), "r"((int)(bytes)) : "memory")
/* The copies since the last COPY_END are a group; COPY_WAIT(n): but for the last n groups all have arrived, this thread's. */
#define COPY_END() asm volatile("cp.async.commit_group;" : : : "memory")
#define COPY_WAIT(n) asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory")
#define SYNC_WARP() __syncwarp()
/* Four words of four 8 x 8 matrices of halves in shared memory, each transposed: lane l gives the address of row l % 8 of matrix
 * l / 8, 16 bytes; lane 4 * g + t gets column g of rows 2 * t and 2 * t + 1 of matrix j in r[j]. */
#define LOAD_TRANSPOSED(r, row) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) \
                 : "r"((gp_u32)__cvta_generic_to_shared(row)) : "memory")
FN void gp_words(const gp_u32 *p, gp_u32 *w)
{
    const uint4 v = *(const uint4 *)p;
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
}
/* Bytes of the pair a, b by the nibbles of CHOICE, as PRMT does. */
FN gp_u32 gp_bytes(gp_u32 a, gp_u32 b, gp_u32 choice) { return __byte_perm(a, b, choice); }
FN gp_u32 gp_add_f16(gp_u32 a, gp_u32 b)
{
    gp_u32 r;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
FN gp_u32 gp_add_bf16(gp_u32 a, gp_u32 b)
{
    gp_u32 r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return r;
}
FN gp_u32 gp_pack_f16(float low, float high)
{
    gp_u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
FN gp_u32 gp_pack_bf16(float low, float high)
{
    gp_u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
#else
#define COPY16(to, from, bytes) gp_copy16((to), (from), (int)(bytes))
#define COPY_END() ((void)0)
#define COPY_WAIT(n) ((void)0)
#define SYNC_WARP() do { GP_FENCE(); plan_host->warp_sum(0.0f); GP_FENCE(); } while (0)
#define LOAD_TRANSPOSED(r, row) \
    do { \
        static _Thread_local const void *gp_rows[32][32]; \
        gp_rows[WARP][LANE] = (row); \
        SYNC_WARP(); \
        for (int gp_j = 0; gp_j < 4; gp_j++) { \
            const gp_u16 *gp_x = gp_rows[WARP][8 * gp_j + 2 * (LANE % 4)], *gp_y = gp_rows[WARP][8 * gp_j + 2 * (LANE % 4) + 1]; \
            (r)[gp_j] = gp_x[LANE / 4] | (gp_u32)gp_y[LANE / 4] << 16; \
        } \
        SYNC_WARP(); \
    } while (0)
FN void gp_copy16(void *to, const void *from, int bytes)
{
    __builtin_memset(to, 0, 16);
    if (bytes > 0) __builtin_memcpy(to, from, (unsigned)bytes);
}
FN void gp_words(const gp_u32 *p, gp_u32 *w) { __builtin_memcpy(w, p, 16); }
FN gp_u32 gp_bytes(gp_u32 a, gp_u32 b, gp_u32 choice)
{
    const gp_u64 pair = a | (gp_u64)b << 32;
    gp_u32 r = 0;
    for (int j = 0; j < 4; j++) r |= (gp_u32)(pair >> (choice >> 4 * j & 7) * 8 & 255) << 8 * j;
    return r;
}
FN gp_u32 gp_pack_f16(float low, float high) { return gp_to_f16(low) | (gp_u32)gp_to_f16(high) << 16; }
FN gp_u32 gp_pack_bf16(float low, float high) { return gp_to_bf16(low) | (gp_u32)gp_to_bf16(high) << 16; }
FN gp_u32 gp_add_f16(gp_u32 a, gp_u32 b)
{
    return gp_pack_f16(gp_from_f16((gp_u16)a) + gp_from_f16((gp_u16)b), gp_from_f16((gp_u16)(a >> 16)) + gp_from_f16((gp_u16)(b >> 16)));
}
FN gp_u32 gp_add_bf16(gp_u32 a, gp_u32 b)
{
    return gp_pack_bf16(gp_from_bf16((gp_u16)a) + gp_from_bf16((gp_u16)b),
                        gp_from_bf16((gp_u16)(a >> 16)) + gp_from_bf16((gp_u16)(b >> 16)));
}
#endif

/* a[4] of MMA from the words that a lane took of rows g and g + 8: those of product S (0, 1). */
#define MMA_ROWS(low, high, s) {(low)[2 * (s)], (high)[2 * (s)], (low)[2 * (s) + 1], (high)[2 * (s) + 1]}

/* Two numbers 0 to 15 in the mantissas of two halves: MAGIC + q exactly. What is added to take MAGIC and a zero point off is
 * exact too, and so is the difference. */
#define MAGIC_F16 0x64006400u  /* 1024, its last bit 1 */
#define MAGIC_BF16 0x43004300u /* 128 */
#define ADD2_F16(a, b) gp_add_f16((a), (b))
#define ADD2_BF16(a, b) gp_add_bf16((a), (b))
#define PACK2_F16(low, high) gp_pack_f16((low), (high))
#define PACK2_BF16(low, high) gp_pack_bf16((low), (high))
#define ZERO_F16(z) gp_pack_f16(-(float)(1024 + (z)), -(float)(1024 + (z)))
#define ZERO_BF16(z) gp_pack_bf16(-(float)(128 + (z)), -(float)(128 + (z)))
/* Eight numbers of 4 bits, low bits first, less a zero point (ZERO_TYPE of it), as four pairs: b of two products. */
#define UNPACK4(type, word, zero, b) \
    do { \
        const gp_u32 gp_even = (word), gp_odd4 = (word) >> 4; \
        UNROLL \
        for (int gp_j = 0; gp_j < 4; gp_j++) { \
            const gp_u32 gp_pair = gp_bytes(gp_even, gp_odd4, 0x0400u + 0x0101u * (gp_u32)gp_j) & 0x000f000fu; \
            (b)[gp_j] = GP_PASTE(ADD2_, type)(gp_pair | GP_PASTE(MAGIC_, type), (zero)); \
        } \
    } while (0)

#endif
