/* wgmma.h - products of four warps that the tensor cores of sm_90a make by themselves (PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Instructions"). WGMMA is 1 where they exist: in code for sm_90a, and on the host under --emulate-gpu.
 *
 * WGMMA_F16(d, a, x), WGMMA_BF16: d[64] += a[4] x X, all 128 threads of the four warps. d is 64 x 128 floats, a 64 x 16 halves; warp w of the
 * four has rows 16 * w to 16 * w + 15, and of these each lane what it has in MMA_ (prelude.h): d[4 * j ...] as of columns 8 * j to 8 * j + 7.
 * X is 128 rows of 16 halves in shared memory, of rows of 64 (128 bytes): x is WGMMA_ROWS(first row) + 2 for each 16 further along k.
 * Piece p (16 bytes) of row r lies where piece p ^ r % 8 would; the first row lies on 1024 bytes: WGMMA_TILES(array) is the first such
 * address in a SHARED_MORE array, which has 1024 bytes more therefore.
 *
 * WGMMA_BOTH_F16(d, w, x, turned, more), WGMMA_BOTH_BF16: the same, but a in shared memory too, w being WGMMA_ROWS of its first row + 2 for each 16 further
 * along k: rows of 64 halves, as those of X. TURNED: such rows have 64 halves of one k, and w + 128 is 16 further along k. MORE 0: d = a x X.
 * WGMMA_BROAD_F16(d, a, x), WGMMA_BROAD_BOTH_F16(d, w, x, turned, more), the same with BF16: with 256 rows of X, so many columns of d, which is d[128].
 * WGMMA_NARROW_F16(d, a, x), WGMMA_NARROW_BF16: d[32] += a[4] x X, with 64 rows of X, so many columns of d; a row in shared memory has 64 halves of one k,
 * and x + 128 is 16 further along k. TURNED is a literal. WGMMA_TURNED_F16(d, a, x), WGMMA_TURNED_BF16: the same for d[64] and 128 rows of X; x is
 * WGMMA_APART(x, bytes), the last 64 being so many bytes behind the first.
 *
 * The products since the last WGMMA_END are a group. WGMMA_WAIT(n): but for the last n groups all are made; until then neither a nor what is in shared
 * memory may change, and d not be looked at before WGMMA_TAKE(d), for d[32] WGMMA_TAKE_NARROW(d), behind such a wait. WGMMA_DONE(d) waits for all, and takes d,
 * and WGMMA_DONE_BROAD(d) d[128].
 * WGMMA_BEGIN stands between what writes a or d and the products; WGMMA_ARRIVED between COPY_WAIT and the barrier behind which they read what was copied. */
/* Descriptor of X (PTX ISA, "Matrix Descriptor"). Lower word: start in units of 16 bytes; from bit 16 on a distance, which has no
 * meaning but for WGMMA_TURNED. Upper word: 1024 bytes from eight rows to the next; mode 1, pieces exchanged over 128 bytes. */
#define WGMMA_ROWS(p) (GP_WGMMA_ADDRESS(p) >> 4 | 1u << 16)
#define WGMMA_APART(x, bytes) ((x) & 0x3fffu | (gp_u32)(bytes) / 16 << 16)
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
#define WGMMA_DONE_BROAD(d) asm volatile("wgmma.wait_group.sync.aligned 0;" : GP_64(d), GP_64(d + 64) : : "memory")
#define WGMMA_TAKE(d) asm volatile("" : GP_64(d) : : "memory")
#define WGMMA_TAKE_NARROW(d) asm volatile("" : GP_16(d, 0), GP_16(d, 16) : : "memory")
#define GP_UP_TO_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GP_UP_TO_63 \
    GP_UP_TO_31 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
                "%58, %59, %60, %61, %62, %63"
#define GP_UP_TO_127 \
    GP_UP_TO_63 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, " \
                "%91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, " \
                "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GP_WGMMA(type, d, a, x, turned) \
    asm volatile("{ .reg .pred p; .reg .b64 x; setp.eq.u32 p, 0, 0; mov.b64 x, {%68, %69}; wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type \
                 " {" GP_UP_TO_63 "}, {%64, %65, %66, %67}, x, p, 1, 1, " turned "; }" \
                 : GP_64(d) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(x), "n"(GP_WGMMA_LAYOUT) : "memory")
#define WGMMA_F16(d, a, x) GP_WGMMA("f16", d, a, x, "0")
#define WGMMA_BF16(d, a, x) GP_WGMMA("bf16", d, a, x, "0")
#define GP_WGMMA_BROAD(type, d, a, x) \
    asm volatile("{ .reg .pred p; .reg .b64 x; setp.eq.u32 p, 0, 0; mov.b64 x, {%132, %133}; wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type \
                 " {" GP_UP_TO_127 "}, {%128, %129, %130, %131}, x, p, 1, 1, 0; }" \
                 : GP_64(d), GP_64(d + 64) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(x), "n"(GP_WGMMA_LAYOUT) : "memory")
#define WGMMA_BROAD_F16(d, a, x) GP_WGMMA_BROAD("f16", d, a, x)
#define WGMMA_BROAD_BF16(d, a, x) GP_WGMMA_BROAD("bf16", d, a, x)
#define GP_WGMMA_BOTH(type, d, w, x, turned, more) \
    asm volatile("{ .reg .pred p; .reg .b64 w, x; setp.ne.s32 p, %68, 0; mov.b64 w, {%64, %66}; mov.b64 x, {%65, %66}; " \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" GP_UP_TO_63 "}, w, x, p, 1, 1, %67, 0; }" \
                 : GP_64(d) : "r"(w), "r"(x), "n"(GP_WGMMA_LAYOUT), "n"(turned), "r"((int)(more)) : "memory")
#define WGMMA_BOTH_F16(d, w, x, turned, more) GP_WGMMA_BOTH("f16", d, w, x, turned, more)
#define WGMMA_BOTH_BF16(d, w, x, turned, more) GP_WGMMA_BOTH("bf16", d, w, x, turned, more)
#define GP_WGMMA_BROAD_BOTH(type, d, w, x, turned, more) \
    asm volatile("{ .reg .pred p; .reg .b64 w, x; setp.ne.s32 p, %132, 0; mov.b64 w, {%128, %130}; mov.b64 x, {%129, %130}; " \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" GP_UP_TO_127 "}, w, x, p, 1, 1, %131, 0; }" \
                 : GP_64(d), GP_64(d + 64) : "r"(w), "r"(x), "n"(GP_WGMMA_LAYOUT), "n"(turned), "r"((int)(more)) : "memory")
#define WGMMA_BROAD_BOTH_F16(d, w, x, turned, more) GP_WGMMA_BROAD_BOTH("f16", d, w, x, turned, more)
#define WGMMA_BROAD_BOTH_BF16(d, w, x, turned, more) GP_WGMMA_BROAD_BOTH("bf16", d, w, x, turned, more)
#define GP_WGMMA_NARROW(type, d, a, x) \
    asm volatile("{ .reg .pred p; .reg .b64 x; setp.eq.u32 p, 0, 0; mov.b64 x, {%36, %37}; wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type \
                 " {" GP_UP_TO_31 "}, {%32, %33, %34, %35}, x, p, 1, 1, 1; }" \
                 : GP_16(d, 0), GP_16(d, 16) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(x), "n"(GP_WGMMA_LAYOUT) : "memory")
#define WGMMA_TURNED_F16(d, a, x) GP_WGMMA("f16", d, a, x, "1")
#define WGMMA_TURNED_BF16(d, a, x) GP_WGMMA("bf16", d, a, x, "1")
#define WGMMA_NARROW_F16(d, a, x) GP_WGMMA_NARROW("f16", d, a, x)
#define WGMMA_NARROW_BF16(d, a, x) GP_WGMMA_NARROW("bf16", d, a, x)
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
 * sums are no numbers, and so are they where the kernel has them before it took them from products that are made. */
enum { GP_WGMMAS = 32, GP_WGMMA_SUMS = 4 };
typedef struct gp_wgmma { const gp_u32 *a; gp_u64 w, x; float *d; int turned, more, rows, bf16, group; } gp_wgmma; /* a: NULL, then w, a descriptor, and turned is of w, else of x; rows: of X */
static _Thread_local struct { float sum[GP_WGMMA_SUMS][128], *d[GP_WGMMA_SUMS]; int first, count, group, begun; gp_wgmma list[GP_WGMMAS]; } gp_wgmmas[1024];
static _Thread_local gp_u32 gp_wgmma_a[32][GP_WGMMAS][32][4];
static _Thread_local gp_u16 gp_wgmma_x[32][GP_WGMMAS][256][16];
static _Thread_local unsigned char *gp_tiles;
#define GP_WGMMA_ADDRESS(p) ((gp_u32)(__UINTPTR_TYPE__)(p) & 0x3ffffu)
#define WGMMA_TILES(array) gp_wgmma_tiles(TID, (unsigned char *)(array))
#define WGMMA_ARRIVED() gp_fence_copies(TID)
#define WGMMA_BEGIN() ((void)(gp_wgmmas[TID].begun = 1))
#define WGMMA_END() ((void)(gp_wgmmas[TID].begun = 0, gp_wgmmas[TID].group++))
#define WGMMA_WAIT(n) gp_wgmmas_until(TID, gp_wgmmas[TID].group - (n))
#define WGMMA_TAKE(d) gp_wgmma_take(TID, (d), 64)
#define WGMMA_TAKE_NARROW(d) gp_wgmma_take(TID, (d), 32)
#define WGMMA_DONE(d) (gp_wgmmas_until(TID, gp_wgmmas[TID].group + 1), WGMMA_TAKE(d))
#define WGMMA_DONE_BROAD(d) (gp_wgmmas_until(TID, gp_wgmmas[TID].group + 1), gp_wgmma_take(TID, (d), 128))
#define GP_WGMMA_OF(p) ((p) | (gp_u64)GP_WGMMA_LAYOUT << 32)
#define WGMMA_F16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 0, 1, 128, 0, 0})
#define WGMMA_BF16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 0, 1, 128, 1, 0})
#define WGMMA_BROAD_F16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 0, 1, 256, 0, 0})
#define WGMMA_BROAD_BF16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 0, 1, 256, 1, 0})
#define WGMMA_BOTH_F16(d, w, x, turned, more) gp_wgmma_add(TID, (gp_wgmma){0, GP_WGMMA_OF(w), GP_WGMMA_OF(x), (d), (turned), (more), 128, 0, 0})
#define WGMMA_BOTH_BF16(d, w, x, turned, more) gp_wgmma_add(TID, (gp_wgmma){0, GP_WGMMA_OF(w), GP_WGMMA_OF(x), (d), (turned), (more), 128, 1, 0})
#define WGMMA_BROAD_BOTH_F16(d, w, x, turned, more) gp_wgmma_add(TID, (gp_wgmma){0, GP_WGMMA_OF(w), GP_WGMMA_OF(x), (d), (turned), (more), 256, 0, 0})
#define WGMMA_BROAD_BOTH_BF16(d, w, x, turned, more) gp_wgmma_add(TID, (gp_wgmma){0, GP_WGMMA_OF(w), GP_WGMMA_OF(x), (d), (turned), (more), 256, 1, 0})
#define WGMMA_NARROW_F16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 1, 1, 64, 0, 0})
#define WGMMA_NARROW_BF16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 1, 1, 64, 1, 0})
#define WGMMA_TURNED_F16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 1, 1, 128, 0, 0})
#define WGMMA_TURNED_BF16(d, a, x) gp_wgmma_add(TID, (gp_wgmma){(a), 0, GP_WGMMA_OF(x), (d), 1, 1, 128, 1, 0})
static unsigned char *gp_wgmma_tiles(int thread, unsigned char *array)
{
    for (int i = 0; i < GP_WGMMA_SUMS; i++) gp_wgmmas[thread].d[i] = 0;
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
/* Sixteen halves, along k, of a row of an operand in shared memory, where lines are rows or, TURNED, 64 rows' halves of one k, of each 64 apart. */
static void gp_wgmma_row(gp_u64 x, int row, int turned, gp_u16 *out)
{
    gp_u16 piece[8];
    const int apart = (int)(x >> 16 & 0x3fff) << 4;
    for (int k = 0; k < 16 && turned; k++) {
        gp_wgmma_piece(x, k / 8, row / 64 * apart + k % 8 * 128 + row % 64 / 8 * 16, piece);
        out[k] = piece[row % 8];
    }
    for (int i = 0; i < 2 && !turned; i++) gp_wgmma_piece(x, row / 8, row % 8 * 128 + i * 16, out + 8 * i);
}
/* A product's rows of X that the lane looks after. */
static void gp_wgmma_rows(const gp_wgmma *w, int lane, gp_u16 (*out)[16])
{
    for (int i = 0; i < w->rows / 32; i++) gp_wgmma_row(w->x, w->rows / 32 * lane + i, w->a && w->turned, out[i]);
}
/* What the lane has of the first operand, in registers or in shared memory. */
static void gp_wgmma_first(const gp_wgmma *w, int thread, gp_u32 *out)
{
    if (w->a) __builtin_memcpy(out, w->a, 16);
    for (int j = 0; j < 4 && !w->a; j++) {
        gp_u16 row[16];
        gp_wgmma_row(w->w, thread / 32 % 4 * 16 + thread % 32 / 4 + j % 2 * 8, w->turned, row);
        out[j] = row[thread % 4 * 2 + j / 2 * 8] | (gp_u32)row[thread % 4 * 2 + j / 2 * 8 + 1] << 16;
    }
}
/* Where the thread's sums D (0: none) are kept while products are under way; -1: nowhere. */
static int gp_wgmma_sums(int thread, const float *d)
{
    for (int i = 0; i < GP_WGMMA_SUMS; i++)
        if (gp_wgmmas[thread].d[i] == d) return i;
    return -1;
}
static void gp_wgmma_add(int thread, gp_wgmma w)
{
    const int lane = thread % 32, warp = thread / 32, place = gp_wgmmas[thread].count % GP_WGMMAS;
    gp_u16 (*const rows)[16] = gp_wgmma_x[warp][place] + w.rows / 32 * lane;
    int sums = gp_wgmma_sums(thread, w.d);
    if (sums < 0) {
        sums = gp_wgmma_sums(thread, 0);
        if (sums < 0) __builtin_trap();
        __builtin_memcpy(gp_wgmmas[thread].sum[sums], w.d, sizeof(float) * (gp_u32)w.rows / 2);
        __builtin_memset(w.d, 0xff, sizeof(float) * (gp_u32)w.rows / 2);
        gp_wgmmas[thread].d[sums] = w.d;
    }
    gp_wgmma_first(&w, thread, gp_wgmma_a[warp][place][lane]);
    gp_wgmma_rows(&w, lane, rows);
    if (!gp_wgmmas[thread].begun || gp_unfenced > 0) __builtin_memset(rows, 0xff, 32);
    w.group = gp_wgmmas[thread].group;
    gp_wgmmas[thread].list[place] = w;
    gp_wgmmas[thread].count++;
}
static void gp_wgmma_make(const gp_wgmma *w, float *sum, int lane, gp_u32 (*a)[4], gp_u16 (*x)[16], float (*from)(gp_u16))
{
    float row[2][16];
    for (int k = 0; k < 16; k++)
        for (int r = 0; r < 2; r++) row[r][k] = from((gp_u16)(a[lane / 4 * 4 + k % 8 / 2][r + k / 8 * 2] >> k % 2 * 16));
    for (int j = 0; j < w->rows / 2; j++) {
        const gp_u16 *column = x[j / 4 * 8 + lane % 4 * 2 + j % 2];
        if (!w->more) sum[j] = 0.0f;
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
        gp_u16 now[8][16], (*const rows)[16] = gp_wgmma_x[warp][place] + w.rows / 32 * lane;
        gp_u32 first[4];
        gp_wgmma_first(&w, thread, first);
        gp_wgmma_rows(&w, lane, now);
        if (__builtin_memcmp(now, rows, (gp_u32)w.rows) != 0 || __builtin_memcmp(first, gp_wgmma_a[warp][place][lane], 16) != 0)
            __builtin_memset(rows, 0xff, (gp_u32)w.rows);
        GP_FENCE();
        plan_host->warp_sum(0.0f);
        GP_FENCE();
        gp_wgmma_make(&w, gp_wgmmas[thread].sum[gp_wgmma_sums(thread, w.d)], lane, gp_wgmma_a[warp][place], gp_wgmma_x[warp][place],
                      w.bf16 ? gp_call_bf16 : gp_call_f16);
        GP_FENCE();
        plan_host->warp_sum(0.0f);
        GP_FENCE();
    }
}
/* The thread has its sums D, unless products of them are still under way. */
static void gp_wgmma_take(int thread, float *d, int count)
{
    const int sums = gp_wgmma_sums(thread, d);
    for (int i = gp_wgmmas[thread].first; i < gp_wgmmas[thread].count; i++)
        if (gp_wgmmas[thread].list[i % GP_WGMMAS].d == d) return;
    if (sums < 0) return;
    __builtin_memcpy(d, gp_wgmmas[thread].sum[sums], sizeof(float) * (gp_u32)count);
    gp_wgmmas[thread].d[sums] = 0;
}
#else
#define WGMMA 0
#endif

#define MUL2_F16(a, b) gp_mul_f16((a), (b))
#define MUL2_BF16(a, b) gp_mul_bf16((a), (b))
