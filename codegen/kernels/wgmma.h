/* wgmma.h - products of four warps that the tensor cores of sm_90a make by themselves (PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Instructions"). WGMMA is 1 where they exist: in code for sm_90a, and on the host under --emulate-gpu.
 *
 * WGMMA_F16(d, a, x), WGMMA_BF16: d[64] += a[4] x X, all 128 threads of the four warps. d is 64 x 128 floats, a 64 x 16 halves; warp w of the
 * four has rows 16 * w to 16 * w + 15, and of these each lane what it has in MMA_ (prelude.h): d[4 * j ...] as of columns 8 * j to 8 * j + 7.
 * X is 128 rows of 16 halves in shared memory, of rows of 64 (128 bytes): x is WGMMA_ROWS(first row) + 2 for each 16 further along k.
 * Piece p (16 bytes) of row r lies where piece p ^ r % 8 would; the first row lies on 1024 bytes: WGMMA_TILES(array) is the first such
 * address in a SHARED_MORE array, which has 1024 bytes more therefore.
 *
 * WGMMA_BOTH_F16(d, w, x, turned), WGMMA_BOTH_BF16: the same, but a in shared memory too, w being WGMMA_ROWS of its first row + 2 for each 16 further along
 * k: rows of 64 halves, as those of X. TURNED, a literal: such rows have 64 halves of one k, and w + 128 is 16 further along k.
 *
 * The products since the last WGMMA_END are a group. WGMMA_WAIT(n): but for the last n groups all are made; until then neither a nor X may
 * change, and d not be looked at before WGMMA_DONE(d), which waits for all. WGMMA_BEGIN stands between what writes a and the products;
 * WGMMA_ARRIVED between COPY_WAIT and the barrier behind which they read what was copied. */
/* Descriptor of X (PTX ISA, "Matrix Descriptor"). Lower word: start in units of 16 bytes; from bit 16 on a distance along k, which has no
 * meaning here. Upper word: 1024 bytes from eight rows to the next; mode 1, pieces exchanged over 128 bytes. */
#define WGMMA_ROWS(p) (GP_WGMMA_ADDRESS(p) >> 4 | 1u << 16)
#define GP_WGMMA_LAYOUT 0x40000040

#if ON_GPU && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WGMMA 1
#define WGMMA_TILES(array) ((unsigned char *)(array) + (1024 - ((gp_u32)__cvta_generic_to_shared(array) & 1023u) & 1023u))
#define GP_WGMMA_ADDRESS(p) ((gp_u32)__cvta_generic_to_shared(p))
#define WGMMA_ARRIVED() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define WGMMA_BEGIN() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_END() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(n) : "memory")
#define GP_4(d, i) "+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3])
#define GP_16(d, i) GP_4(d, i), GP_4(d, i + 4), GP_4(d, i + 8), GP_4(d, i + 12)
#define GP_64(d) GP_16(d, 0), GP_16(d, 16), GP_16(d, 32), GP_16(d, 48)
/* The sums are operands, so that nothing that reads them moves before it. */
#define WGMMA_DONE(d) asm volatile("wgmma.wait_group.sync.aligned 0;" : GP_64(d) : : "memory")
#define GP_WGMMA(type, d, a, x) \
    asm volatile("{ .reg .pred p; .reg .b64 x; setp.eq.u32 p, 0, 0; mov.b64 x, {%68, %69}; wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type \
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, " \
                 "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
                 "{%64, %65, %66, %67}, x, p, 1, 1, 0; }" \
                 : GP_64(d) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(x), "n"(GP_WGMMA_LAYOUT) : "memory")
#define WGMMA_F16(d, a, x) GP_WGMMA("f16", d, a, x)
#define WGMMA_BF16(d, a, x) GP_WGMMA("bf16", d, a, x)
#define GP_WGMMA_BOTH(type, d, w, x, turned) \
    asm volatile("{ .reg .pred p; .reg .b64 w, x; setp.eq.u32 p, 0, 0; mov.b64 w, {%64, %66}; mov.b64 x, {%65, %66}; " \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type \
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, " \
                 "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
                 "w, x, p, 1, 1, %67, 0; }" \
                 : GP_64(d) : "r"(w), "r"(x), "n"(GP_WGMMA_LAYOUT), "n"(turned) : "memory")
#define WGMMA_BOTH_F16(d, w, x, turned) GP_WGMMA_BOTH("f16", d, w, x, turned)
#define WGMMA_BOTH_BF16(d, w, x, turned) GP_WGMMA_BOTH("bf16", d, w, x, turned)
FN gp_u32 gp_mul_f16(gp_u32 a, gp_u32 b)
{
    gp_u32 r;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
FN gp_u32 gp_mul_bf16(gp_u32 a, gp_u32 b)
{
    gp_u32 r;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
#elif defined(GP_EMULATE)
#define WGMMA 1
FN gp_u32 gp_mul_f16(gp_u32 a, gp_u32 b)
{
    return gp_pack_f16(gp_from_f16((gp_u16)a) * gp_from_f16((gp_u16)b), gp_from_f16((gp_u16)(a >> 16)) * gp_from_f16((gp_u16)(b >> 16)));
}
FN gp_u32 gp_mul_bf16(gp_u32 a, gp_u32 b)
{
    return gp_pack_bf16(gp_from_bf16((gp_u16)a) * gp_from_bf16((gp_u16)b), gp_from_bf16((gp_u16)(a >> 16)) * gp_from_bf16((gp_u16)(b >> 16)));
}
/* A product is made as late as is allowed, from what stood there when it began; where that has changed meanwhile, or a fence is missing, the
 * sums are no numbers, and so are they where the kernel has them while products are under way. */
enum { GP_WGMMAS = 16 };
typedef struct gp_wgmma { const gp_u32 *a; gp_u64 w, x; int turned, group, bf16; } gp_wgmma; /* a: NULL, then w, a descriptor */
static _Thread_local struct { float sum[64], *d; int first, count, group, begun; gp_wgmma list[GP_WGMMAS]; } gp_wgmmas[1024];
static _Thread_local gp_u32 gp_wgmma_a[32][GP_WGMMAS][32][4];
static _Thread_local gp_u16 gp_wgmma_x[32][GP_WGMMAS][128][16];
static _Thread_local unsigned char *gp_tiles;
#define GP_WGMMA_ADDRESS(p) ((gp_u32)(__UINTPTR_TYPE__)(p) & 0x3ffffu)
#define WGMMA_TILES(array) gp_wgmma_tiles(TID, (unsigned char *)(array))
#define WGMMA_ARRIVED() gp_fence_copies(TID)
#define WGMMA_BEGIN() ((void)(gp_wgmmas[TID].begun = 1))
#define WGMMA_END() ((void)(gp_wgmmas[TID].begun = 0, gp_wgmmas[TID].group++))
#define WGMMA_WAIT(n) gp_wgmmas_until(TID, gp_wgmmas[TID].group - (n))
#define WGMMA_DONE(d) gp_wgmmas_until(TID, gp_wgmmas[TID].group + 1)
#define GP_WGMMA_OF(p) ((p) | (gp_u64)GP_WGMMA_LAYOUT << 32)
#define WGMMA_F16(d, a, x) gp_wgmma_add(TID, (d), (gp_wgmma){(a), 0, GP_WGMMA_OF(x), 0, 0, 0})
#define WGMMA_BF16(d, a, x) gp_wgmma_add(TID, (d), (gp_wgmma){(a), 0, GP_WGMMA_OF(x), 0, 0, 1})
#define WGMMA_BOTH_F16(d, w, x, turned) gp_wgmma_add(TID, (d), (gp_wgmma){0, GP_WGMMA_OF(w), GP_WGMMA_OF(x), (turned), 0, 0})
#define WGMMA_BOTH_BF16(d, w, x, turned) gp_wgmma_add(TID, (d), (gp_wgmma){0, GP_WGMMA_OF(w), GP_WGMMA_OF(x), (turned), 0, 1})
static unsigned char *gp_wgmma_tiles(int thread, unsigned char *array)
{
    gp_wgmmas[thread].d = 0;
    gp_wgmmas[thread].first = gp_wgmmas[thread].count = gp_wgmmas[thread].begun = 0;
    gp_tiles = array + (1024 - ((__UINTPTR_TYPE__)array & 1023) & 1023);
    return gp_tiles;
}
/* The 16 bytes of shared memory that a descriptor names: so many bytes from its start, in the group of eight lines given. The bits of an address that say
 * the line, 7 to 9, are added to those that say the piece, 4 to 6. */
static void gp_wgmma_piece(gp_u64 x, int eight, int bytes, gp_u16 *out)
{
    const gp_u32 start = (gp_u32)(x & 0x3fff) << 4, eight_lines = (gp_u32)(x >> 32 & 0x3fff) << 4;
    gp_u32 address = start + (gp_u32)eight * eight_lines + (gp_u32)bytes;
    address ^= address >> 3 & 0x70;
    const unsigned char *from = gp_tiles + ((address - GP_WGMMA_ADDRESS(gp_tiles)) & 0x3ffff);
    if (x >> 62 == 1 && (x >> 49 & 7) == 0) __builtin_memcpy(out, from, 16);
    else __builtin_memset(out, 0xff, 16);
}
/* Sixteen halves of a row of X. */
static void gp_wgmma_row(gp_u64 x, int row, gp_u16 *out)
{
    for (int piece = 0; piece < 2; piece++) gp_wgmma_piece(x, row / 8, row % 8 * 128 + piece * 16, out + 8 * piece);
}
/* What the lane has of the first operand, in registers or in shared memory. */
static void gp_wgmma_first(const gp_wgmma *w, int thread, gp_u32 *out)
{
    if (w->a) __builtin_memcpy(out, w->a, 16);
    for (int j = 0; j < 4 && !w->a; j++) {
        const int row = thread / 32 % 4 * 16 + thread % 32 / 4 + j % 2 * 8;
        gp_u16 pair[2], line[16];
        for (int e = 0; e < 2; e++) {
            const int k = thread % 4 * 2 + j / 2 * 8 + e;
            if (w->turned) gp_wgmma_piece(w->w, k / 8, k % 8 * 128 + row / 8 * 16, line);
            else gp_wgmma_row(w->w, row, line);
            pair[e] = line[w->turned ? row % 8 : k];
        }
        out[j] = (gp_u32)pair[0] | (gp_u32)pair[1] << 16;
    }
}
static void gp_wgmma_add(int thread, float *d, gp_wgmma w)
{
    const int lane = thread % 32, warp = thread / 32, place = gp_wgmmas[thread].count % GP_WGMMAS;
    if (!gp_wgmmas[thread].d) {
        __builtin_memcpy(gp_wgmmas[thread].sum, d, sizeof gp_wgmmas[thread].sum);
        __builtin_memset(d, 0xff, sizeof gp_wgmmas[thread].sum);
        gp_wgmmas[thread].d = d;
    }
    gp_wgmma_first(&w, thread, gp_wgmma_a[warp][place][lane]);
    for (int row = 4 * lane; row < 4 * lane + 4; row++) gp_wgmma_row(w.x, row, gp_wgmma_x[warp][place][row]);
    if (!gp_wgmmas[thread].begun || gp_unfenced > 0 || gp_wgmmas[thread].d != d) __builtin_memset(gp_wgmma_x[warp][place][4 * lane], 0xff, 128);
    w.group = gp_wgmmas[thread].group;
    gp_wgmmas[thread].list[place] = w;
    gp_wgmmas[thread].count++;
}
static void gp_wgmma_make(float *sum, int lane, gp_u32 (*a)[4], gp_u16 (*x)[16], float (*from)(gp_u16))
{
    float row[2][16];
    for (int k = 0; k < 16; k++)
        for (int r = 0; r < 2; r++) row[r][k] = from((gp_u16)(a[lane / 4 * 4 + k % 8 / 2][r + k / 8 * 2] >> k % 2 * 16));
    for (int j = 0; j < 64; j++) {
        const gp_u16 *column = x[j / 4 * 8 + lane % 4 * 2 + j % 2];
        for (int k = 0; k < 16; k++) sum[j] += row[j % 4 / 2][k] * from(column[k]);
    }
}
static float gp_call_f16(gp_u16 h) { return gp_from_f16(h); }
static float gp_call_bf16(gp_u16 h) { return gp_from_bf16(h); }
static void gp_wgmmas_until(int thread, int group)
{
    const int lane = thread % 32, warp = thread / 32;
    while (gp_wgmmas[thread].first < gp_wgmmas[thread].count && gp_wgmmas[thread].list[gp_wgmmas[thread].first % GP_WGMMAS].group < group) {
        const int place = gp_wgmmas[thread].first++ % GP_WGMMAS;
        const gp_wgmma w = gp_wgmmas[thread].list[place];
        gp_u16 now[4][16];
        gp_u32 first[4];
        gp_wgmma_first(&w, thread, first);
        for (int row = 0; row < 4; row++) gp_wgmma_row(w.x, 4 * lane + row, now[row]);
        if (__builtin_memcmp(now, gp_wgmma_x[warp][place][4 * lane], 128) != 0 || __builtin_memcmp(first, gp_wgmma_a[warp][place][lane], 16) != 0)
            __builtin_memset(gp_wgmma_x[warp][place][4 * lane], 0xff, 128);
        GP_FENCE();
        plan_host->warp_sum(0.0f);
        GP_FENCE();
        gp_wgmma_make(gp_wgmmas[thread].sum, lane, gp_wgmma_a[warp][place], gp_wgmma_x[warp][place], w.bf16 ? gp_call_bf16 : gp_call_f16);
        GP_FENCE();
        plan_host->warp_sum(0.0f);
        GP_FENCE();
    }
    if (gp_wgmmas[thread].d && group > gp_wgmmas[thread].group) {
        __builtin_memcpy(gp_wgmmas[thread].d, gp_wgmmas[thread].sum, sizeof gp_wgmmas[thread].sum);
        gp_wgmmas[thread].d = 0;
    }
}
#else
#define WGMMA 0
#endif

#define MUL2_F16(a, b) gp_mul_f16((a), (b))
#define MUL2_BF16(a, b) gp_mul_bf16((a), (b))
