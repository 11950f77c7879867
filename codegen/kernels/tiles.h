/* tiles.h - what templates that stage tiles through shared memory for the tensor cores are written in; it stands behind
 * prelude.h. Where TENSOR is 0 there is nothing. */
#if TENSOR

#if ON_GPU
/* COPY16 (prelude.h) with zeros behind the first BYTES, 0 to 16. */
#define COPY_PART(to, from, bytes) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
                 : : "r"((gp_u32)__cvta_generic_to_shared(to)), "l"(from), "r"((int)(bytes)) : "memory")
/* Four matrices of 8 x 8 halves from shared memory: lane l gives the address of row l % 8 (16 bytes) of matrix l / 8; lane 4 * g + t
 * gets elements 2 * t and 2 * t + 1 of row g of matrix j in r[j], or, TRANSPOSED, those of column g. */
#define LOAD_MATRICES(r, row) GP_LOAD_MATRICES("", r, row)
#define LOAD_TRANSPOSED(r, row) GP_LOAD_MATRICES(".trans", r, row)
#define GP_LOAD_MATRICES(how, r, row) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) \
                 : "r"((gp_u32)__cvta_generic_to_shared(row)) : "memory")
/* 2^v, to 2 units in the last place; what is below the normal numbers is 0. */
FN float gp_exp2(float v)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
FN void gp_two(const float *p, float *v)
{
    const float2 pair = *(const float2 *)p;
    v[0] = pair.x, v[1] = pair.y;
}
/* Bytes of the pair a, b by the nibbles of CHOICE. */
FN gp_u32 gp_bytes(gp_u32 a, gp_u32 b, gp_u32 choice) { return __byte_perm(a, b, choice); }
/* The low four bits of both halves, or-ed with MAGIC: one instruction. */
FN gp_u32 gp_fours(gp_u32 a, gp_u32 magic)
{
    gp_u32 r;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(a), "n"(0x000f000f), "r"(magic));
    return r;
}
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
#else
#define COPY_PART(to, from, bytes) gp_copy(TID, (to), (from), 16, (int)(bytes))
#define LOAD_MATRICES(r, row) GP_LOAD_MATRICES(gp_x[1][2 * t] | (gp_u32)gp_x[1][2 * t + 1] << 16, r, row)
#define LOAD_TRANSPOSED(r, row) GP_LOAD_MATRICES(gp_x[0][g] | (gp_u32)gp_x[2][g] << 16, r, row)
#define GP_LOAD_MATRICES(words, r, row) \
    do { \
        static _Thread_local const gp_u16 *gp_rows[32][32]; \
        const int g = LANE / 4, t = LANE % 4; \
        gp_rows[WARP][LANE] = (const gp_u16 *)(row); \
        SYNC_WARP(); \
        for (int gp_j = 0; gp_j < 4; gp_j++) { \
            const gp_u16 *const *gp_m = gp_rows[WARP] + 8 * gp_j, *const gp_x[3] = {gp_m[2 * t], gp_m[g], gp_m[2 * t + 1]}; \
            (r)[gp_j] = words; \
        } \
        SYNC_WARP(); \
    } while (0)
FN float gp_exp2(float v) { return exp2f(v); }
FN gp_u32 gp_fours(gp_u32 a, gp_u32 magic) { return (a & 0x000f000fu) | magic; }
FN void gp_two(const float *p, float *v) { v[0] = p[0], v[1] = p[1]; }
FN gp_u32 gp_bytes(gp_u32 a, gp_u32 b, gp_u32 choice)
{
    const gp_u64 pair = a | (gp_u64)b << 32;
    gp_u32 r = 0;
    for (int j = 0; j < 4; j++) r |= (gp_u32)(pair >> (choice >> 4 * j & 7) * 8 & 255) << 8 * j;
    return r;
}
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
/* 32 numbers of 4 bits, low bits first in four words, less a zero point (ZERO_TYPE of it): what the lane has of them as b[4] of two
 * products, t = LANE % 4. */
#define UNPACK4(type, words, t, zero, b) \
    do { \
        UNROLL \
        for (int gp_j = 0; gp_j < 4; gp_j++) { /* numbers 8 * j + 2 * t and the next are byte t of word j */ \
            const gp_u32 gp_pair = gp_bytes((words)[gp_j], (words)[gp_j] >> 4, 0x0400u + 0x0101u * (gp_u32)(t)); \
            (b)[gp_j] = GP_PASTE(ADD2_, type)(gp_fours(gp_pair, GP_PASTE(MAGIC_, type)), (zero)); \
        } \
    } while (0)

#endif
