/* prelude.h - what kernel templates are written in. It stands at the head of every module, for both targets, and gives
 * them the same names: NVRTC compiles it as C++ without any header, the C compiler as gnu11 after the text of
 * runtime/host_abi.h. Names that begin with gp_ are its own. README.md lists the rest. */

typedef long long idx;
typedef unsigned char gp_u8;
typedef unsigned short gp_u16;
typedef unsigned int gp_u32;
typedef unsigned long long gp_u64;

#define GP_PASTE2(a, b) a##b
#define GP_PASTE(a, b) GP_PASTE2(a, b)

#ifdef __CUDACC_RTC__
#define ON_GPU 1
#elif defined(__CUDACC__)
#define ON_GPU 1
#else
#define ON_GPU 0
#endif

/* ---- targets */
#if ON_GPU

#define FN static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#ifndef TIMERS /* otherwise timers.h defines these */
#define GP_KERNEL(...) extern "C" __global__ void __VA_ARGS__ KERNEL_NAME(KERNEL_PARAMS)
#define GP_WAITED
#endif
#define KERNEL(threads) GP_KERNEL(__launch_bounds__(threads))
/* So that BLOCKS blocks find room on a multiprocessor. */
#define KERNEL_RESIDENT(threads, blocks) GP_KERNEL(__launch_bounds__(threads, blocks))
/* With no more than so many registers a thread, where the compiler knows how (CUDA 12.4). */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
#define KERNEL_LEAN(threads, registers) GP_KERNEL(__maxnreg__(registers))
#else
#define KERNEL_LEAN(threads, registers) KERNEL(threads)
#endif
/* COUNT blocks that are neighbours along x run at once and reach each other's shared memory (sm_90 and later: codegen_has_clusters). Before a thread puts
 * something there it has waited once, since the others must have begun; what it put is there for blocks whose threads wait after it arrived. Each
 * thread arrives, then waits; those that have ended count as arrived. CLUSTER_PUT4(p, rank, v): four floats to where p, 16 bytes aligned, is in the
 * cluster's block RANK, which must not end before it has waited for them. */
#if __CUDA_ARCH__ >= 900
#define KERNEL_CLUSTER(threads, count) GP_KERNEL(__cluster_dims__(count, 1, 1) __launch_bounds__(threads))
#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.release;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.acquire;" ::: "memory")
#define CLUSTER_PUT4(p, rank, v) gp_cluster_put4((p), (rank), (v))
FN void gp_cluster_put4(float *p, int rank, const float *v)
{
    gp_u32 to;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"((gp_u32)__cvta_generic_to_shared(p)), "r"(rank));
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" : : "r"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}
#endif
#define KERNEL_END
#define TID ((int)threadIdx.x)
#define BID_X ((int)blockIdx.x)
#define BID_Y ((int)blockIdx.y)
#define BID_Z ((int)blockIdx.z)
#define GRID_X ((int)gridDim.x)
#define GRID_Y ((int)gridDim.y)
#define GRID_Z ((int)gridDim.z)
/* Aligned to what a copy moves at once (32 bytes): of other places copies take twice as many. */
#define SHARED(type, name, count) __shared__ __align__(32) type name[count]
/* One array more, once in a kernel: its launch says the size (kernel_shared), so that a block may have more than 48 KB. */
#define SHARED_MORE(type, name, count) extern __shared__ __align__(128) type name[]
#define SYNC() __syncthreads()
/* Code for sm_90 and later waits for the kernels before it, and lets those after it be put in place: after that, or (GP_WAIT_EARLY, and all kernels
 * of a plan for which codegen sets STARTS_EARLY) before. Until it has waited, a kernel touches nothing but constants, what only the end of a step
 * writes, what only this kernel writes, once a step, and, behind a kernel with GP_WAIT_LATE, what that one read (past the L1 cache). So no
 * programmatic edge may lead from a step to the next. All blocks that do more than find that they have no work wait, and one at least in each kernel, so
 * that a kernel's end implies all before it. (LOAD_WORDS: the extents that EXTENTS loads, without the wait.) */
#if __CUDA_ARCH__ < 900
#define GP_WAIT_EARLY GP_WAITED
#define GP_WAIT_LATE GP_WAITED
#else
#define GP_WAIT_EARLY asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory"); GP_WAITED
#define GP_WAIT_LATE asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory"); GP_WAITED
#endif
#if __CUDA_ARCH__ < 900 || STARTS_EARLY
#define GP_WAIT GP_WAIT_EARLY
#else
#define GP_WAIT GP_WAIT_LATE
#endif
/* Sets the condition of a graph's conditional node: its kernel is linked with the device runtime. */
#define CONDITION_SET(handle, value) cudaGraphSetConditional((handle), (value))
/* Into the L2 cache, where a later read finds what is written meanwhile: allowed before the wait. */
#define PREFETCH(pointer) asm volatile("prefetch.global.L2 [%0];" : : "l"(pointer))
/* So many bytes of constants, by one thread; pointer and bytes are multiples of 16. Only from sm_90 on. */
#if __CUDA_ARCH__ >= 900
#define PREFETCH_RUN(pointer, bytes) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(pointer), "r"((gp_u32)(bytes)) : "memory")
#else
#define PREFETCH_RUN(pointer, bytes) ((void)(pointer))
#endif

/* Blocks of one launch that meet: TICKET(p), by one thread between two SYNC(), counts up from 0 the word at p; what all threads of
 * a block wrote before is there for those of the blocks with later tickets. */
#define TICKET(p) gp_ticket((unsigned int *)(p))
FN unsigned int gp_ticket(unsigned int *p)
{
    unsigned int ticket;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(p) : "memory");
    return ticket;
}
/* The same for blocks that have only read: nothing waits for the number until it is used, and the block that goes on because of it
 * calls ARRIVED_ALL before it writes what the others read. */
#define ARRIVE(p) gp_arrive((unsigned int *)(p))
#define ARRIVED_ALL() asm volatile("fence.acq_rel.gpu;" ::: "memory")
FN unsigned int gp_arrive(unsigned int *p)
{
    unsigned int ticket;
    asm volatile("fence.acq_rel.gpu;\n\tatom.relaxed.gpu.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(p) : "memory");
    return ticket;
}

FN float gp_float_of(gp_u32 bits) { return __uint_as_float(bits); }
FN gp_u32 gp_bits_of(float v) { return __float_as_uint(v); }
FN float gp_warp_sum(float v)
{
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}
FN float gp_warp_max(float v)
{
    for (int offset = 16; offset > 0; offset >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}
/* Halves the values while it doubles the lanes that hold each: `count` shuffles, not 5 * count. Lane l ends with the sum
 * of value l * count / 32. */
FN float gp_warp_sum_each(float *values, int count)
{
    const int lane = (int)threadIdx.x & 31;
    int offset = 16;
    UNROLL
    for (int half = count / 2; half > 0; half /= 2, offset /= 2) {
        const bool upper = (lane & offset) != 0;
        UNROLL
        for (int j = 0; j < half; j++) {
            const float mine = upper ? values[j + half] : values[j], other = upper ? values[j] : values[j + half];
            values[j] = mine + __shfl_xor_sync(0xffffffffu, other, offset);
        }
    }
    for (; offset > 0; offset /= 2) values[0] += __shfl_xor_sync(0xffffffffu, values[0], offset);
    return __shfl_sync(0xffffffffu, values[0], lane * (32 / count) & 31);
}
#define WARP_SUM(v) gp_warp_sum(v)
#define WARP_MAX(v) gp_warp_max(v)
#define WARP_SUM_EACH(result, values, count) ((result) = gp_warp_sum_each((values), (count)))
/* The largest of unsigned ints. */
#if __CUDA_ARCH__ >= 800
#define WARP_MOST(v) __reduce_max_sync(0xffffffffu, (gp_u32)(v))
#else
FN gp_u32 gp_warp_most(gp_u32 v)
{
    for (int offset = 16; offset > 0; offset >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}
#define WARP_MOST(v) gp_warp_most(v)
#endif
/* Products of matrices in registers (mma.m16n8k16, sm_80 and later): d[4] += a[4] x b[2] (MMA_FROM: = c[4] + that), d in floats, the others in pairs of
 * halves. Lane 4 * g + t has rows g and g + 8, columns 2 * t and 2 * t + 1 of d (d[0], d[1]; d[2], d[3]); of a, rows g, g + 8,
 * g, g + 8 at k = 2 * t, the last two 8 further on; of b, column g at k = 2 * t, and 8 further on. */
#if __CUDA_ARCH__ >= 800
#define TENSOR 1
#define GP_MMA(type, d, a, b, c) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
                 : "=f"((d)[0]), "=f"((d)[1]), "=f"((d)[2]), "=f"((d)[3]) \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]), \
                   "f"((c)[0]), "f"((c)[1]), "f"((c)[2]), "f"((c)[3]))
#define MMA_FROM_F16(d, a, b, c) GP_MMA("f16", d, a, b, c)
#define MMA_FROM_BF16(d, a, b, c) GP_MMA("bf16", d, a, b, c)
#else
#define TENSOR 0
#endif
#define SHUFFLE_F(v, lane) __shfl_sync(0xffffffffu, (float)(v), (lane))
#define SHUFFLE_I(v, lane) __shfl_sync(0xffffffffu, (int)(v), (lane))

FN float gp_from_f16(gp_u16 h)
{
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
FN gp_u16 gp_to_f16(float v)
{
    gp_u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}

/* A quotient and the inverse of a root without the branches of those that are rounded correctly: off by 2 units in the last place, as exp is
 * (CUDA C++ Programming Guide, "Mathematical Functions"; PTX ISA, div.full and rsqrt.approx). */
FN float gp_ratiof(float a, float b)
{
    float v;
    asm("div.full.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
}
FN float gp_inverse_root(float v)
{
    float r;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

/* a*b+c rounded once. The compiler is told not to contract, so that a product and a sum round as written. */
#define FMAF(a, b, c) fmaf((a), (b), (c))
#define INF_F __int_as_float(0x7f800000)
#define NAN_F __int_as_float(0x7fc00000)

#else /* host */

#define FN static inline __attribute__((always_inline, unused))
#define UNROLL
#ifndef TIMERS /* otherwise timers.h defines these */
#define GP_BEGUN
#define GP_WAITED
#define GP_ENDED
#endif
#define GP_BODY GP_PASTE(KERNEL_NAME, _body)
#define KERNEL(threads) \
    static inline __attribute__((always_inline)) \
    void GP_BODY(const plan_host_index *gp_index, const int gp_thread, KERNEL_PARAMS)
#define KERNEL_RESIDENT(threads, blocks) KERNEL(threads)
#define KERNEL_LEAN(threads, registers) KERNEL(threads)
#define KERNEL_END \
    __attribute__((visibility("default"))) \
    void KERNEL_NAME(const plan_host_index *gp_index, const unsigned long long *gp_args) \
    { \
        const int gp_end = gp_index->first_thread + gp_index->thread_count; \
        GP_BEGUN \
        for (int gp_thread = gp_index->first_thread; gp_thread < gp_end; gp_thread++) { \
            GP_COPIES_NONE(); \
            GP_BODY(gp_index, gp_thread, KERNEL_UNPACK); \
        } \
        GP_ENDED \
    }
#define TID gp_thread
#define BID_X (gp_index->block_x)
#define BID_Y (gp_index->block_y)
#define BID_Z (gp_index->block_z)
#define GRID_X (gp_index->grid_x)
#define GRID_Y (gp_index->grid_y)
#define GRID_Z (gp_index->grid_z)
#ifndef GP_EMULATE
#define GP_COPIES_NONE() ((void)0)
#endif
#define TICKET(p) __atomic_fetch_add((unsigned int *)(p), 1u, __ATOMIC_ACQ_REL)
#define ARRIVE(p) TICKET(p)
#define ARRIVED_ALL() ((void)0)
/* The fibres of a block run on one thread of the system, and a thread runs one block at a time. */
#define GP_WAIT GP_WAITED
#define GP_WAIT_EARLY GP_WAITED
#define GP_WAIT_LATE GP_WAITED
#define PREFETCH(pointer) ((void)0)
#define PREFETCH_RUN(pointer, bytes) ((void)(pointer))
#define CONDITION_SET(handle, value) (*(gp_u32 *)(handle) = (gp_u32)(value))
#define SHARED(type, name, count) static _Thread_local __attribute__((aligned(16))) type name[count]
#define SHARED_MORE(type, name, count) SHARED(type, name, count)

__attribute__((visibility("default"))) const plan_host_services *plan_host;

#define GP_FENCE() __asm__ volatile("" ::: "memory")
#define SYNC() do { GP_FENCE(); plan_host->sync(); GP_FENCE(); } while (0)
#define WARP_SUM(v) plan_host->warp_sum(v)
/* One switch a lane; the sum serves as the barrier. The table belongs to the place in the text. */
#define WARP_SUM_EACH(result, values, count) \
    do { \
        static _Thread_local float gp_table[32][count][32]; \
        for (int gp_j = 0; gp_j < (count); gp_j++) gp_table[WARP][gp_j][LANE] = (values)[gp_j]; \
        GP_FENCE(); \
        plan_host->warp_sum(0.0f); \
        GP_FENCE(); \
        (result) = LANE < (count) ? gp_sum32(gp_table[WARP][LANE]) : 0.0f; \
    } while (0)
#define WARP_MAX(v) plan_host->warp_max(v)
#define WARP_MOST(v) gp_warp_most(v)
/* Only under --emulate-gpu: slow, so that tests can run what is written for tensor cores. */
#ifdef GP_EMULATE
static _Thread_local float gp_place; /* from it another block's shared memory is found: the distances are the same */
#define KERNEL_CLUSTER(threads, count) \
    __attribute__((visibility("default"))) void *GP_PASTE(KERNEL_NAME, _cluster)(int *gp_count) \
    { \
        *gp_count = (count); \
        return &gp_place; \
    } \
    KERNEL(threads)
#define CLUSTER_ARRIVE() do { GP_FENCE(); plan_host->cluster_arrive(); GP_FENCE(); } while (0)
#define CLUSTER_WAIT() do { GP_FENCE(); plan_host->cluster_wait(); GP_FENCE(); } while (0)
#define CLUSTER_PUT4(p, rank, v) do { GP_FENCE(); plan_host->cluster_put((p), (rank), (v)); GP_FENCE(); } while (0)
#define TENSOR 1
#define GP_MMA(from, d, a, b, c) \
    do { \
        static _Thread_local gp_u32 gp_a[32][32][4], gp_b[32][32][2]; \
        for (int gp_j = 0; gp_j < 4; gp_j++) gp_a[WARP][LANE][gp_j] = (a)[gp_j]; \
        for (int gp_j = 0; gp_j < 2; gp_j++) gp_b[WARP][LANE][gp_j] = (b)[gp_j]; \
        GP_FENCE(); \
        plan_host->warp_sum(0.0f); \
        GP_FENCE(); \
        for (int gp_j = 0; gp_j < 4; gp_j++) { \
            (d)[gp_j] = (c)[gp_j]; \
            for (int gp_k = 0; gp_k < 16; gp_k++) { \
                const gp_u32 gp_x = gp_a[WARP][LANE / 4 * 4 + gp_k % 8 / 2][gp_j / 2 + gp_k / 8 * 2] >> gp_k % 2 * 16; \
                const gp_u32 gp_y = gp_b[WARP][(LANE % 4 * 2 + gp_j % 2) * 4 + gp_k % 8 / 2][gp_k / 8] >> gp_k % 2 * 16; \
                (d)[gp_j] += from((gp_u16)gp_x) * from((gp_u16)gp_y); \
            } \
        } \
        GP_FENCE(); \
        plan_host->warp_sum(0.0f); \
        GP_FENCE(); \
    } while (0)
#define MMA_FROM_F16(d, a, b, c) GP_MMA(gp_from_f16, d, a, b, c)
#define MMA_FROM_BF16(d, a, b, c) GP_MMA(gp_from_bf16, d, a, b, c)
#else
#define TENSOR 0
#endif
#define SHUFFLE_F(v, lane) gp_shuffle_f((v), (lane))
#define SHUFFLE_I(v, lane) ((int)plan_host->warp_shuffle((gp_u64)(gp_u32)(v), (lane)))

float expf(float), logf(float), sqrtf(float), tanhf(float), sinf(float), cosf(float), powf(float, float), erff(float),
    fabsf(float), floorf(float), ceilf(float), rintf(float), fmaxf(float, float), fminf(float, float), log1pf(float),
    expm1f(float), fmodf(float, float), tanf(float), asinf(float), acosf(float), atanf(float), atan2f(float, float),
    sinhf(float), coshf(float), asinhf(float), acoshf(float), atanhf(float), roundf(float), truncf(float), exp2f(float),
    log2f(float);
double exp(double), log(double), sqrt(double), tanh(double), sin(double), cos(double), pow(double, double), erf(double),
    fabs(double), floor(double), ceil(double), rint(double), fmax(double, double), fmin(double, double), log1p(double),
    expm1(double), fmod(double, double), tan(double), asin(double), acos(double), atan(double), atan2(double, double),
    sinh(double), cosh(double), asinh(double), acosh(double), atanh(double), round(double), trunc(double);

typedef float gp_f4 __attribute__((vector_size(16)));
FN float gp_sum32(const float *v)
{
    gp_f4 sum = {0, 0, 0, 0}, x;
    for (int j = 0; j < 32; j += 4) {
        __builtin_memcpy(&x, v + j, 16);
        sum += x;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
FN float gp_float_of(gp_u32 bits)
{
    float v;
    __builtin_memcpy(&v, &bits, 4);
    return v;
}
FN gp_u32 gp_bits_of(float v)
{
    gp_u32 bits;
    __builtin_memcpy(&bits, &v, 4);
    return bits;
}
/* By halves, which floats have exactly. */
FN gp_u32 gp_warp_most(gp_u32 v)
{
    const gp_u32 high = (gp_u32)plan_host->warp_max((float)(v >> 16));
    return high << 16 | (gp_u32)plan_host->warp_max(v >> 16 == high ? (float)(v & 0xffffu) : 0.0f);
}
FN float gp_shuffle_f(float v, int lane) { return gp_float_of((gp_u32)plan_host->warp_shuffle(gp_bits_of(v), lane)); }

/* Exact, denormals too: the half's exponent and mantissa, read as a float, are off by 2^112. */
FN float gp_from_f16(gp_u16 h)
{
    const gp_u32 magnitude = (gp_u32)(h & 0x7fff) << 13, sign = (gp_u32)(h & 0x8000) << 16;
    const gp_u32 bits = gp_bits_of(gp_float_of(magnitude) * 0x1p112f);
    return gp_float_of(bits | (magnitude >= 0x0f800000u ? 0x7f800000u : 0u) | sign);
}
/* To nearest even. Below 2^-14 the addition of 0.5 does the rounding; above, it is done in the integer. */
FN gp_u16 gp_to_f16(float v)
{
    const gp_u32 u = gp_bits_of(v) & 0x7fffffffu, sign = (gp_bits_of(v) >> 16) & 0x8000u;
    const gp_u32 tiny = gp_bits_of(gp_float_of(u < 0x38800000u ? u : 0u) + 0.5f) - 0x3f000000u;
    const gp_u32 normal = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;
    const gp_u32 large = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (gp_u16)(sign | (u < 0x38800000u ? tiny : u >= 0x47800000u ? large : normal));
}

FN float gp_ratiof(float a, float b) { return a / b; }
FN float gp_inverse_root(float v) { return 1.0f / sqrtf(v); }

#define FMAF(a, b, c) ((a) * (b) + (c))
#define INF_F __builtin_inff()
#define NAN_F __builtin_nanf("")

#endif

/* ---- both */
#define MMA_F16(d, a, b) MMA_FROM_F16(d, a, b, d)
#define MMA_BF16(d, a, b) MMA_FROM_BF16(d, a, b, d)
#define LANE (TID & 31)
#define WARP (TID >> 5)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* Rounded towards minus infinity. */
#define FLOOR_DIV(a, b) gp_floor_div((a), (b))
#define FLOOR_MOD(a, b) ((a) - gp_floor_div((a), (b)) * (b))
FN idx gp_floor_div(idx a, idx b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
#define EXPF(v) expf(v)
#define LOGF(v) logf(v)
#define SQRTF(v) sqrtf(v)
#define TANHF(v) tanhf(v)
#define SINF(v) sinf(v)
#define COSF(v) cosf(v)
#define POWF(a, b) powf((a), (b))
#define ERFF(v) erff(v)
#define LOG1PF(v) log1pf(v)
#define FABSF(v) fabsf(v)
#define FLOORF(v) floorf(v)
#define CEILF(v) ceilf(v)
#define RINTF(v) rintf(v)
#define FMAXF(a, b) fmaxf((a), (b))
#define FMINF(a, b) fminf((a), (b))

/* A power of integers, exact but for what wraps; 0 for what is no integer. */
FN long long gp_power(long long a, long long b)
{
    unsigned long long base = (unsigned long long)a, product = 1;
    if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
    for (; b > 0; b /= 2, base *= base)
        if (b % 2) product *= base;
    return (long long)product;
}
FN double gp_ratio(double a, double b) { return a / b; }
/* These keep NaN. */
FN float gp_relu(float v) { return v < 0.0f ? 0.0f : v; }
FN float gp_clamp(float v, float low, float high) { return v < low ? low : v > high ? high : v; }
FN float gp_leaky_relu(float v, float alpha) { return v < 0.0f ? alpha * v : v; }
/* What an expert makes of its first product, gate G and OTHER; PAIR 0: of G alone. ACTIVATION 0 relu, 1 gelu (tanh), 2 silu, 3 swiglu, 4
 * identity, 5 relu2, 6 geglu (tanh); LIMIT to BETA are of silu and swiglu with a pair. */
FN float gp_expert(int activation, int pair, float g, float other, float limit, int limit_after, float alpha, float beta)
{
    if (pair && (activation == 2 || activation == 3)) {
        if (!limit_after && g > limit) g = limit;
        g = gp_ratiof(g, 1.0f + EXPF(-alpha * g));
        if (limit_after && g > limit) g = limit;
        other = gp_clamp(other, -limit, limit) + beta;
    } else if (activation == 0) g = gp_relu(g);
    else if (activation == 1 || activation == 6) g = 0.5f * g * (1.0f + TANHF(0.7978845608f * (g + 0.044715f * g * g * g)));
    else if (activation == 2 || activation == 3) g = gp_ratiof(g, 1.0f + EXPF(-g));
    else if (activation == 5) g = gp_relu(g) * gp_relu(g);
    return pair ? g * other : g;
}

FN float gp_from_bf16(gp_u16 h) { return gp_float_of((gp_u32)h << 16); }
#if ON_GPU
FN gp_u32 gp_pack_f16(float low, float high)
{
    gp_u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
#else
FN gp_u32 gp_pack_f16(float low, float high) { return (gp_u32)gp_to_f16(low) | (gp_u32)gp_to_f16(high) << 16; }
#endif
#if ON_GPU && __CUDA_ARCH__ >= 800
FN gp_u32 gp_pack_bf16(float low, float high)
{
    gp_u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
FN gp_u16 gp_to_bf16(float v) { return (gp_u16)gp_pack_bf16(v, 0.0f); } /* the conversion of one alone has a fraction of its rate */
#else
FN gp_u16 gp_to_bf16(float v)
{
    const gp_u32 u = gp_bits_of(v);
    const gp_u32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (gp_u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
}
FN gp_u32 gp_pack_bf16(float low, float high) { return (gp_u32)gp_to_bf16(low) | (gp_u32)gp_to_bf16(high) << 16; }
#endif

/* ---- floats of 8 and 4 bits: a sign, MANTISSA low bits, an exponent between, of that BIAS. What the largest codes mean
 * differs, and is left to the callers. */
FN float gp_from_small(gp_u32 code, int mantissa, int bias)
{
    const float v = gp_float_of((code & 0x7fu) << (23 - mantissa)) * gp_float_of((gp_u32)(254 - bias) << 23);
    return gp_float_of(gp_bits_of(v) | (code & 0x80u) << 24);
}
/* To nearest even, without sign and upper limit; v is no NaN. Below the least normal number an addition does the rounding. */
FN gp_u32 gp_to_small(float v, int mantissa, int bias)
{
    const gp_u32 u = gp_bits_of(v) & 0x7fffffffu, magic = (gp_u32)(151 - bias - mantissa) << 23;
    if (u < (gp_u32)(128 - bias) << 23) return gp_bits_of(gp_float_of(u) + gp_float_of(magic)) - magic;
    return (u - ((gp_u32)(127 - bias) << 23) + (1u << (22 - mantissa)) - 1u + ((u >> (23 - mantissa)) & 1u)) >> (23 - mantissa);
}
/* TOP is the largest finite code; OVER what lies beyond it becomes (ONNX's Cast with saturate = 0). NAN 0x80: the type has
 * no sign with it, nor with zero. */
FN gp_u8 gp_to_f8(float v, int mantissa, int bias, gp_u32 top, gp_u32 over, gp_u32 nan)
{
    const gp_u32 sign = (gp_bits_of(v) >> 24) & 0x80u;
    const int is_nan = (gp_bits_of(v) & 0x7fffffffu) > 0x7f800000u;
    gp_u32 code = is_nan ? nan : gp_to_small(v, mantissa, bias);
    if (!is_nan && code > top) code = over;
    return (gp_u8)(nan == 0x80u && (code & 0x7fu) == 0 ? code : sign | code);
}
FN float gp_from_f8e4m3fn(gp_u8 h) { return (h & 0x7f) == 0x7f ? NAN_F : gp_from_small(h, 3, 7); }
FN float gp_from_f8e4m3fnuz(gp_u8 h) { return h == 0x80 ? NAN_F : gp_from_small(h, 3, 8); }
FN float gp_from_f8e5m2fnuz(gp_u8 h) { return h == 0x80 ? NAN_F : gp_from_small(h, 2, 16); }
FN float gp_from_f8e5m2(gp_u8 h)
{
    return gp_float_of(gp_bits_of(gp_from_small(h, 2, 15)) | ((h & 0x7f) >= 0x7c ? 0x7f800000u : 0u));
}
FN float gp_from_f8e8m0(gp_u8 h) { return h == 255 ? NAN_F : gp_float_of(h ? (gp_u32)h << 23 : 0x00400000u); }
FN float gp_from_f4(gp_u8 h) { return gp_from_small((h & 7u) | (h & 8u) << 4, 1, 1); }
#define gp_to_f8e4m3fn(v) gp_to_f8((v), 3, 7, 0x7eu, 0x7fu, 0x7fu)
#define gp_to_f8e4m3fnuz(v) gp_to_f8((v), 3, 8, 0x7fu, 0x80u, 0x80u)
#define gp_to_f8e5m2(v) gp_to_f8((v), 2, 15, 0x7bu, 0x7cu, 0x7eu)
#define gp_to_f8e5m2fnuz(v) gp_to_f8((v), 2, 16, 0x7fu, 0x80u, 0x80u)
/* The exponent alone; what is no power of two is made one before (gp_e8m0). */
FN gp_u8 gp_to_f8e8m0(float v) { return (gp_u8)(gp_bits_of(v) >> 23); }
/* All finite: what lies beyond 6 is 6; NaN becomes -0 (or 0, with the sign set), as in ml_dtypes. */
FN gp_u8 gp_to_f4(float v)
{
    const gp_u8 code = gp_to_f8(v, 1, 1, 7u, 7u, 0x80u);
    if (v != v) return gp_bits_of(v) >> 31 ? 0 : 8;
    return (gp_u8)((code & 7) | (gp_bits_of(v) >> 28 & 8u));
}
/* v as a power of two: ROUND 0 down, 1 up, 2 to nearest; the sign is lost, infinities are NaN, zero is the least. */
FN float gp_e8m0(float v, int round, int saturate)
{
    const gp_u32 u = gp_bits_of(v) & 0x7fffffffu, fraction = u & 0x7fffffu;
    gp_u32 exponent = u >> 23;
    const int up = round == 1 ? fraction != 0 : round == 2 && (fraction > 0x400000u || (fraction == 0x400000u && exponent > 0));
    if (exponent < 255 && up && !(saturate && exponent == 254)) exponent++;
    return gp_from_f8e8m0((gp_u8)exponent);
}
/* Kept between -limit and limit; NaN stays. */
FN float gp_saturate(float v, float limit) { return v > limit ? limit : v < -limit ? -limit : v; }
/* A double as a float whose last bit is odd where bits were lost: rounding it again, to fewer bits, rounds v once. */
FN float gp_odd(double v)
{
    const float f = (float)v;
    const double back = (double)f;
    const gp_u32 u = gp_bits_of(f);
    if (back == v || v != v || (u & 1u) || (u & 0x7fffffffu) == 0x7f800000u) return f;
    return gp_float_of((back < 0 ? -back : back) < (v < 0 ? -v : v) ? u + 1u : u - 1u);
}

/* ---- storage types: T_ the C type, LD_ loads element i, ST_ stores one, RND_ rounds to it. */
#define T_F32 float
#define T_F16 unsigned short
#define T_BF16 unsigned short
#define T_F64 double
#define T_U8 unsigned char
#define T_I8 signed char
#define T_U16 unsigned short
#define T_I16 short
#define T_U32 unsigned int
#define T_I32 int
#define T_U64 unsigned long long
#define T_I64 long long
#define T_BOOL unsigned char
#define T_U4 unsigned char
#define T_I4 unsigned char
#define T_U2 unsigned char
#define T_I2 unsigned char
#define T_F4E2M1 unsigned char
#define T_F4_BYTE unsigned char
#define T_I4_BYTE unsigned char
#define T_I2_BYTE unsigned char
#define T_F8E4M3FN unsigned char
#define T_F8E4M3FNUZ unsigned char
#define T_F8E5M2 unsigned char
#define T_F8E5M2FNUZ unsigned char
#define T_F8E8M0 unsigned char

#define LD_F32(p, i) (((const float *)(p))[i])
#define LD_F16(p, i) gp_from_f16(((const gp_u16 *)(p))[i])
#define LD_BF16(p, i) gp_from_bf16(((const gp_u16 *)(p))[i])
#define LD_F64(p, i) (((const double *)(p))[i])
#define LD_U8(p, i) ((idx)((const unsigned char *)(p))[i])
#define LD_I8(p, i) ((idx)((const signed char *)(p))[i])
#define LD_U16(p, i) ((idx)((const unsigned short *)(p))[i])
#define LD_I16(p, i) ((idx)((const short *)(p))[i])
#define LD_U32(p, i) ((idx)((const unsigned int *)(p))[i])
#define LD_I32(p, i) ((idx)((const int *)(p))[i])
#define LD_U64(p, i) ((idx)((const unsigned long long *)(p))[i])
#define LD_I64(p, i) (((const long long *)(p))[i])
#define LD_BOOL(p, i) ((int)(((const unsigned char *)(p))[i] != 0))
#define LD_U4(p, i) gp_ld_u4((const unsigned char *)(p), (i))
#define LD_I4(p, i) gp_ld_i4((const unsigned char *)(p), (i))
#define LD_U2(p, i) gp_ld_u2((const unsigned char *)(p), (i))
#define LD_I2(p, i) ((gp_ld_u2((const unsigned char *)(p), (i)) ^ 2) - 2)
#define LD_F4E2M1(p, i) gp_from_f4((gp_u8)gp_ld_u4((const unsigned char *)(p), (i)))
#define LD_I4_BYTE(p, i) RND_I4_BYTE(((const unsigned char *)(p))[i])
#define LD_I2_BYTE(p, i) RND_I2_BYTE(((const unsigned char *)(p))[i])
#define LD_F4_BYTE(p, i) gp_from_f4(((const unsigned char *)(p))[i])
#define LD_F8E4M3FN(p, i) gp_from_f8e4m3fn(((const unsigned char *)(p))[i])
#define LD_F8E4M3FNUZ(p, i) gp_from_f8e4m3fnuz(((const unsigned char *)(p))[i])
#define LD_F8E5M2(p, i) gp_from_f8e5m2(((const unsigned char *)(p))[i])
#define LD_F8E5M2FNUZ(p, i) gp_from_f8e5m2fnuz(((const unsigned char *)(p))[i])
#define LD_F8E8M0(p, i) gp_from_f8e8m0(((const unsigned char *)(p))[i])

FN idx gp_ld_u4(const unsigned char *p, idx i) { return (p[i >> 1] >> ((int)(i & 1) * 4)) & 15; }
FN idx gp_ld_u2(const unsigned char *p, idx i) { return (p[i >> 2] >> ((int)(i & 3) * 2)) & 3; }
FN idx gp_ld_i4(const unsigned char *p, idx i) { return (gp_ld_u4(p, i) ^ 8) - 8; }

#define ST_F32(p, i, v) ((void)(((float *)(p))[i] = (float)(v)))
#define ST_F16(p, i, v) ((void)(((gp_u16 *)(p))[i] = gp_to_f16((float)(v))))
#define ST_BF16(p, i, v) ((void)(((gp_u16 *)(p))[i] = gp_to_bf16((float)(v))))
#define ST_F64(p, i, v) ((void)(((double *)(p))[i] = (double)(v)))
#define ST_U8(p, i, v) ((void)(((unsigned char *)(p))[i] = (unsigned char)(v)))
#define ST_I8(p, i, v) ((void)(((signed char *)(p))[i] = (signed char)(v)))
#define ST_U16(p, i, v) ((void)(((unsigned short *)(p))[i] = (unsigned short)(v)))
#define ST_I16(p, i, v) ((void)(((short *)(p))[i] = (short)(v)))
#define ST_U32(p, i, v) ((void)(((unsigned int *)(p))[i] = (unsigned int)(v)))
#define ST_I32(p, i, v) ((void)(((int *)(p))[i] = (int)(v)))
#define ST_U64(p, i, v) ((void)(((unsigned long long *)(p))[i] = (unsigned long long)(v)))
#define ST_I64(p, i, v) ((void)(((long long *)(p))[i] = (long long)(v)))
#define ST_BOOL(p, i, v) ((void)(((unsigned char *)(p))[i] = (unsigned char)((v) != 0)))
#define ST_I4_BYTE(p, i, v) ((void)(((gp_u8 *)(p))[i] = (gp_u8)RND_I4_BYTE(v)))
#define ST_I2_BYTE(p, i, v) ((void)(((gp_u8 *)(p))[i] = (gp_u8)RND_I2_BYTE(v)))
#define ST_F4_BYTE(p, i, v) ((void)(((gp_u8 *)(p))[i] = gp_to_f4((float)(v))))
#define ST_F8E4M3FN(p, i, v) ((void)(((gp_u8 *)(p))[i] = gp_to_f8e4m3fn((float)(v))))
#define ST_F8E4M3FNUZ(p, i, v) ((void)(((gp_u8 *)(p))[i] = gp_to_f8e4m3fnuz((float)(v))))
#define ST_F8E5M2(p, i, v) ((void)(((gp_u8 *)(p))[i] = gp_to_f8e5m2((float)(v))))
#define ST_F8E5M2FNUZ(p, i, v) ((void)(((gp_u8 *)(p))[i] = gp_to_f8e5m2fnuz((float)(v))))
#define ST_F8E8M0(p, i, v) ((void)(((gp_u8 *)(p))[i] = gp_to_f8e8m0((float)(v))))

#define RND_F32(v) ((float)(v))
#define RND_F16(v) gp_from_f16(gp_to_f16((float)(v)))
#define RND_BF16(v) gp_from_bf16(gp_to_bf16((float)(v)))
#define RND_F64(v) ((double)(v))
#define RND_U8(v) ((idx)(unsigned char)(v))
#define RND_I8(v) ((idx)(signed char)(v))
#define RND_U16(v) ((idx)(unsigned short)(v))
#define RND_I16(v) ((idx)(short)(v))
#define RND_U32(v) ((idx)(unsigned int)(v))
#define RND_I32(v) ((idx)(int)(v))
#define RND_U64(v) ((idx)(unsigned long long)(v))
#define RND_I64(v) ((idx)(v))
#define RND_BOOL(v) ((int)((v) != 0))
#define RND_I4_BYTE(v) ((((idx)(v) & 15) ^ 8) - 8)
#define RND_I2_BYTE(v) ((((idx)(v) & 3) ^ 2) - 2)
#define RND_F4_BYTE(v) gp_from_f4(gp_to_f4((float)(v)))
#define RND_F8E4M3FN(v) gp_from_f8e4m3fn(gp_to_f8e4m3fn((float)(v)))
#define RND_F8E4M3FNUZ(v) gp_from_f8e4m3fnuz(gp_to_f8e4m3fnuz((float)(v)))
#define RND_F8E5M2(v) gp_from_f8e5m2(gp_to_f8e5m2((float)(v)))
#define RND_F8E5M2FNUZ(v) gp_from_f8e5m2fnuz(gp_to_f8e5m2fnuz((float)(v)))
#define RND_F8E8M0(v) gp_from_f8e8m0(gp_to_f8e8m0((float)(v)))

/* ---- sixteen bytes at once: LDV_TYPE(p, i, out) puts elements i.. into floats; p + i is a multiple of 16 bytes. VEC_TYPE
 * is their number. LDVS_ is the same for what is read once, and is written by no kernel that runs at the same time. */
#define VEC_F32 4
#define VEC_F16 8
#define VEC_BF16 8
#define LDV_F32(p, i, out) gp_ldv_f32((const float *)(p) + (i), (out), 0)
#define LDV_F16(p, i, out) gp_ldv_f16((const gp_u16 *)(p) + (i), (out), 0)
#define LDV_BF16(p, i, out) gp_ldv_bf16((const gp_u16 *)(p) + (i), (out), 0)
#define LDVS_F32(p, i, out) gp_ldv_f32((const float *)(p) + (i), (out), 1)
#define LDVS_F16(p, i, out) gp_ldv_f16((const gp_u16 *)(p) + (i), (out), 1)
#define LDVS_BF16(p, i, out) gp_ldv_bf16((const gp_u16 *)(p) + (i), (out), 1)

/* STV_TYPE(p, i, from): the same way back, each element rounded. */
#define STV_F32(p, i, from) gp_stv_f32((float *)(p) + (i), (from))
#define STV_F16(p, i, from) gp_stv_f16((gp_u16 *)(p) + (i), (from))
#define STV_BF16(p, i, from) gp_stv_bf16((gp_u16 *)(p) + (i), (from))

/* Four elements, rounded, at p + i, a multiple of 8 bytes. */
#define STQ_F16(p, i, from) gp_store_pairs((gp_u16 *)(p) + (i), gp_pack_f16((from)[0], (from)[1]), gp_pack_f16((from)[2], (from)[3]))
#define STQ_BF16(p, i, from) gp_store_pairs((gp_u16 *)(p) + (i), gp_pack_bf16((from)[0], (from)[1]), gp_pack_bf16((from)[2], (from)[3]))
FN void gp_store_pairs(gp_u16 *p, gp_u32 first, gp_u32 second)
{
#if ON_GPU
    *(uint2 *)p = make_uint2(first, second);
#else
    const gp_u32 words[2] = {first, second};
    __builtin_memcpy(p, words, 8);
#endif
}

#if ON_GPU
#define GP_TEXT2(a) #a
#define GP_TEXT(a) GP_TEXT2(a)
#define UNROLL_BY(n) _Pragma(GP_TEXT(unroll n))

FN uint4 gp_load16(const void *p, int stream)
{
    uint4 v;
    if (!stream) return *(const uint4 *)p;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
FN void gp_ldv_f32(const float *p, float *out, int stream)
{
    const uint4 v = gp_load16(p, stream);
    out[0] = gp_float_of(v.x), out[1] = gp_float_of(v.y), out[2] = gp_float_of(v.z), out[3] = gp_float_of(v.w);
}
FN void gp_ldv_f16(const gp_u16 *p, float *out, int stream)
{
    const uint4 v = gp_load16(p, stream);
    const gp_u32 words[4] = {v.x, v.y, v.z, v.w};
    UNROLL
    for (int j = 0; j < 4; j++) {
        out[2 * j] = gp_from_f16((gp_u16)(words[j] & 0xffffu));
        out[2 * j + 1] = gp_from_f16((gp_u16)(words[j] >> 16));
    }
}
FN void gp_ldv_bf16(const gp_u16 *p, float *out, int stream)
{
    const uint4 v = gp_load16(p, stream);
    const gp_u32 words[4] = {v.x, v.y, v.z, v.w};
    UNROLL
    for (int j = 0; j < 4; j++) {
        out[2 * j] = gp_float_of(words[j] << 16);
        out[2 * j + 1] = gp_float_of(words[j] & 0xffff0000u);
    }
}
/* In one piece: of an assignment the compiler makes four. P lies in global memory. */
FN void gp_store16(void *p, gp_u32 x, gp_u32 y, gp_u32 z, gp_u32 w)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(p), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
FN void gp_stv_f32(float *p, const float *from) { gp_store16(p, gp_bits_of(from[0]), gp_bits_of(from[1]), gp_bits_of(from[2]), gp_bits_of(from[3])); }
FN void gp_stv_f16(gp_u16 *p, const float *from)
{
    gp_store16(p, gp_pack_f16(from[0], from[1]), gp_pack_f16(from[2], from[3]), gp_pack_f16(from[4], from[5]), gp_pack_f16(from[6], from[7]));
}
FN void gp_stv_bf16(gp_u16 *p, const float *from)
{
    gp_store16(p, gp_pack_bf16(from[0], from[1]), gp_pack_bf16(from[2], from[3]), gp_pack_bf16(from[4], from[5]), gp_pack_bf16(from[6], from[7]));
}
#else
#define UNROLL_BY(n)
FN void gp_stv_f32(float *p, const float *from)
{
    for (int j = 0; j < 4; j++) p[j] = from[j];
}
FN void gp_stv_f16(gp_u16 *p, const float *from)
{
    for (int j = 0; j < 8; j++) p[j] = gp_to_f16(from[j]);
}
FN void gp_stv_bf16(gp_u16 *p, const float *from)
{
    for (int j = 0; j < 8; j++) p[j] = gp_to_bf16(from[j]);
}
FN void gp_ldv_f32(const float *p, float *out, int stream)
{
    (void)stream;
    __builtin_memcpy(out, p, 16);
}
FN void gp_ldv_f16(const gp_u16 *p, float *out, int stream)
{
    (void)stream;
    for (int j = 0; j < 8; j++) out[j] = gp_from_f16(p[j]);
}
FN void gp_ldv_bf16(const gp_u16 *p, float *out, int stream)
{
    (void)stream;
    for (int j = 0; j < 8; j++) out[j] = gp_from_bf16(p[j]);
}
#endif

/* ---- sums of products: one sum a thread on a GPU, four side by side on the host, where a vector holds them */
#if ON_GPU
typedef float gp_acc;
FN gp_acc gp_acc_zero(void) { return 0.0f; }
FN gp_acc gp_acc_add(gp_acc acc, float v) { return acc + v; }
FN float gp_acc_total(gp_acc acc) { return acc; }
/* acc + the dot product of a and b */
FN gp_acc gp_mac(gp_acc acc, const float *a, const float *b, int count)
{
    UNROLL
    for (int j = 0; j < count; j++) acc = fmaf(a[j], b[j], acc);
    return acc;
}
/* acc + s times that of another */
FN gp_acc gp_acc_scaled(gp_acc acc, gp_acc other, float s) { return fmaf(other, s, acc); }
#else
typedef gp_f4 gp_acc;
FN gp_acc gp_acc_zero(void) { return (gp_acc){0, 0, 0, 0}; }
FN gp_acc gp_acc_add(gp_acc acc, float v) { return acc + (gp_acc){v, 0, 0, 0}; }
FN float gp_acc_total(gp_acc acc) { return (acc[0] + acc[1]) + (acc[2] + acc[3]); }
FN gp_acc gp_mac(gp_acc acc, const float *a, const float *b, int count)
{
    int j = 0;
    for (; j + 4 <= count; j += 4) {
        gp_acc x, y;
        __builtin_memcpy(&x, a + j, 16);
        __builtin_memcpy(&y, b + j, 16);
        acc += x * y;
    }
    for (; j < count; j++) acc[0] += a[j] * b[j];
    return acc;
}
FN gp_acc gp_acc_scaled(gp_acc acc, gp_acc other, float s) { return acc + other * (gp_acc){s, s, s, s}; }
#endif

/* ---- packed integers: w[j] = element j - zero, for `count` elements of `bits` (2, 4, 8) in count*bits/8 bytes (4, 8 or
 * 16, as aligned as long), low bits first. `zero` is an integer, so that every w is exact. */
#if ON_GPU
FN void gp_unpack(const unsigned char *p, int bits, int count, float zero, float *w)
{
    gp_u32 words[4];
    const int size = count * bits / 32;
    if (size == 4) {
        const uint4 v = gp_load16(p, 1);
        words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else if (size == 2) {
        const uint2 v = *(const uint2 *)p;
        words[0] = v.x, words[1] = v.y;
    } else {
        words[0] = *(const gp_u32 *)p;
    }
    /* An element at bit b below 16, put into the mantissa of 2^23 where it stands, is 2^23 + q * 2^b: one fused
     * multiply-add brings it down and takes `zero` off. */
    UNROLL
    for (int j = 0; j < count; j++) {
        const int shift = j * bits % 16;
        const gp_u32 word = j * bits % 32 < 16 ? words[j * bits / 32] : words[j * bits / 32] >> 16;
        const gp_u32 mask = ((1u << bits) - 1u) << shift;
        const float down = 1.0f / (float)(1 << shift);
        w[j] = fmaf(gp_float_of(0x4b000000u | (word & mask)), down, -(8388608.0f * down + zero));
    }
}
#else
FN void gp_unpack(const unsigned char *p, int bits, int count, float zero, float *w)
{
    unsigned char q[128];
    if (bits == 8) {
        for (int j = 0; j < count; j++) w[j] = (float)(int)p[j] - zero;
        return;
    }
    if (bits == 4) {
        for (int j = 0; j < count / 2; j++) {
            q[2 * j] = p[j] & 15;
            q[2 * j + 1] = p[j] >> 4;
        }
    } else {
        for (int j = 0; j < count / 4; j++)
            for (int i = 0; i < 4; i++) q[4 * j + i] = (p[j] >> (2 * i)) & 3;
    }
    for (int j = 0; j < count; j++) w[j] = (float)(int)q[j] - zero;
}
#endif

/* ---- operands of MMA_: halves by their bits (of floats that are such halves), and what brings them into registers */
#define GP_BITS_F16(v) gp_to_f16(v)
#define GP_BITS_BF16(v) (gp_bits_of(v) >> 16)
#define GP_PACK_F16(low, high) gp_pack_f16((low), (high))
#define GP_PACK_BF16(low, high) gp_pack_bf16((low), (high))
#define GP_OF_F16(h) gp_from_f16(h)
#define GP_OF_BF16(h) gp_from_bf16(h)
/* Four pairs of halves from the eight elements of 4 bits in a word: elements j and j + 4 in pair j, each with NIBBLE_LOW
 * (j = 0, 2) or NIBBLE_HIGH (j = 1, 3) added, which puts it into the mantissa as it stands. */
#define NIBBLE_LOW_F16 1024.0f
#define NIBBLE_HIGH_F16 64.0f
#define NIBBLE_LOW_BF16 128.0f
#define NIBBLE_HIGH_BF16 128.0f
/* (v & mask) | magic: on a GPU in one instruction, which the compiler does not find, since only one constant fits into it. */
#if ON_GPU
#define GP_MASKED(out, v, mask, magic) asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(out) : "r"(v), "n"(mask), "r"(magic))
#else
#define GP_MASKED(out, v, mask, magic) ((void)((out) = ((v) & (mask)) | (magic)))
#endif
#define NIBBLES_F16(word, p0, p1, p2, p3) \
    do { \
        const gp_u32 gp_w = (word), gp_v = gp_w >> 8; \
        GP_MASKED(p0, gp_w, 0x000f000f, 0x64006400u); \
        GP_MASKED(p1, gp_w, 0x00f000f0, 0x54005400u); \
        GP_MASKED(p2, gp_v, 0x000f000f, 0x64006400u); \
        GP_MASKED(p3, gp_v, 0x00f000f0, 0x54005400u); \
    } while (0)
#define NIBBLES_BF16(word, p0, p1, p2, p3) \
    do { \
        const gp_u32 gp_w = (word); \
        GP_MASKED(p0, gp_w, 0x000f000f, 0x43004300u); \
        GP_MASKED(p1, gp_w >> 4, 0x000f000f, 0x43004300u); \
        GP_MASKED(p2, gp_w >> 8, 0x000f000f, 0x43004300u); \
        GP_MASKED(p3, gp_w >> 12, 0x000f000f, 0x43004300u); \
    } while (0)
/* Sixteen bytes, aligned to them, to out[4]: of a constant, in place in the text (before EXTENTS, say); of shared memory. The same
 * for a word, two bytes and one of a constant: to an unsigned int. */
#if ON_GPU
#define LD_CONSTANT(p, out) \
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((out)[0]), "=r"((out)[1]), "=r"((out)[2]), "=r"((out)[3]) : "l"(p))
#define LD_CONSTANT4(p, out) asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(out) : "l"(p))
#define LD_CONSTANT2(p, out) \
    do { \
        gp_u16 gp_h; \
        asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(gp_h) : "l"(p)); \
        (out) = gp_h; \
    } while (0)
#define LD_CONSTANT1(p, out) asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(out) : "l"(p))
#define LD_RUN(p, out) \
    do { \
        const uint4 gp_v = *(const uint4 *)(p); \
        (out)[0] = gp_v.x, (out)[1] = gp_v.y, (out)[2] = gp_v.z, (out)[3] = gp_v.w; \
    } while (0)
#define ST_RUN(p, from) gp_store16((p), (from)[0], (from)[1], (from)[2], (from)[3])
/* As LD_RUN, of what other blocks wrote; such loads stay in the order of the text. */
#define LD_WRITTEN(p, out) \
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"((out)[0]), "=r"((out)[1]), "=r"((out)[2]), "=r"((out)[3]) : "l"(p) : "memory")
/* A pointer into shared memory, kept in a register: the compiler would rather compute it each time anew. */
#define PINNED(p) gp_pinned(p)
FN gp_u32 *gp_pinned(const void *p)
{
    gp_u32 place = (gp_u32)__cvta_generic_to_shared(p);
    asm volatile("" : "+r"(place));
    return (gp_u32 *)__cvta_shared_to_generic(place);
}
/* What is in a variable of so many bytes has been computed here. */
#define READY4(v) asm volatile("" : "+r"(v))
#define READY8(v) asm volatile("" : "+l"(v))
#else
#define LD_CONSTANT(p, out) ((void)__builtin_memcpy((out), (p), 16))
#define LD_CONSTANT4(p, out) ((void)__builtin_memcpy(&(out), (p), 4))
#define LD_CONSTANT2(p, out) ((void)((out) = *(const gp_u16 *)(p)))
#define LD_CONSTANT1(p, out) ((void)((out) = *(const gp_u8 *)(p)))
#define LD_RUN(p, out) ((void)__builtin_memcpy((out), (p), 16))
#define ST_RUN(p, from) ((void)__builtin_memcpy((p), (from), 16))
#define LD_WRITTEN(p, out) LD_RUN(p, out)
#define PINNED(p) (p)
#define READY4(v) ((void)0)
#define READY8(v) ((void)0)
#endif

/* ---- the sampling tail: integers throughout, so that neither the order of threads nor the target changes a draw */

/* Philox 4x32-10 of the counter in w, in place. */
FN void gp_philox(gp_u32 *w, gp_u32 k0, gp_u32 k1)
{
    for (int round = 0; round < 10; round++) {
        const gp_u64 p = (gp_u64)0xD2511F53u * w[0], q = (gp_u64)0xCD9E8D57u * w[2];
        w[0] = (gp_u32)(q >> 32) ^ w[1] ^ k0;
        w[1] = (gp_u32)q;
        w[2] = (gp_u32)(p >> 32) ^ w[3] ^ k1;
        w[3] = (gp_u32)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}
/* 64 random bits: number `index` under `seed`. */
FN gp_u64 gp_draw(gp_u64 seed, gp_u64 index)
{
    gp_u32 w[4] = {(gp_u32)index, (gp_u32)(index >> 32), 0, 0};
    gp_philox(w, (gp_u32)seed, (gp_u32)(seed >> 32));
    return (gp_u64)w[0] << 32 | w[1];
}
/* The upper half of a * b: a fraction b / 2^64 of a. */
FN gp_u64 gp_share(gp_u64 a, gp_u64 b)
{
    const gp_u64 low = (a & 0xffffffffu) * (b & 0xffffffffu), left = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
    const gp_u64 right = (a & 0xffffffffu) * (b >> 32) + (left & 0xffffffffu);
    return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32);
}
/* Floats in the order of unsigned integers, and back; no NaN. */
FN gp_u32 gp_order(float v)
{
    const gp_u32 u = gp_bits_of(v);
    return u >> 31 ? ~u : u | 0x80000000u;
}
FN float gp_unorder(gp_u32 u) { return gp_float_of(u >> 31 ? u & 0x7fffffffu : ~u); }
/* The power of two that is not below 2^y, for gp_mass. */
FN int gp_top(float y) { return (int)CEILF(FMAXF(-1e9f, FMINF(y, 1e9f))); }
/* 2^(y - top) in units of 2^-31, for y <= top; 0 below 2^-32. Products and sums of floats, each rounded: the same everywhere. */
FN gp_u64 gp_mass(float y, int top)
{
    const float d = y - (float)top;
    if (!(d > -32.0f)) return 0;
    const float whole = FLOORF(d), f = d - whole;
    float p = 1.3215487e-6f;
    p = p * f + 1.5252734e-5f;
    p = p * f + 1.5403530e-4f;
    p = p * f + 1.3333558e-3f;
    p = p * f + 9.6181291e-3f;
    p = p * f + 5.5504109e-2f;
    p = p * f + 2.4022651e-1f;
    p = p * f + 6.9314718e-1f;
    p = p * f + 1.0f;
    return (gp_u64)(p * 2147483648.0f) >> -(int)whole;
}
/* SYNC_COUNT(result, condition): how many threads of the block meet the condition. BLOCK_SCAN(sums, value): sums[t], one for
 * each thread of the block, is the sum of the values of the threads up to t. Both are barriers, before and after. */
#if ON_GPU
#define SYNC_COUNT(result, condition) ((result) = __syncthreads_count(condition))
FN gp_u64 gp_warp_scan(gp_u64 v)
{
    for (int offset = 1; offset < 32; offset *= 2) {
        const gp_u64 other = __shfl_up_sync(0xffffffffu, v, offset);
        if (((int)threadIdx.x & 31) >= offset) v += other;
    }
    return v;
}
FN void gp_block_scan(gp_u64 *sums, gp_u64 value)
{
    const int thread = (int)threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const gp_u64 mine = gp_warp_scan(value);
    __syncthreads();
    sums[thread] = mine;
    __syncthreads();
    const gp_u64 totals = gp_warp_scan(lane * 32 < (int)blockDim.x ? sums[lane * 32 + 31] : 0);
    const gp_u64 before = __shfl_sync(0xffffffffu, totals, warp > 0 ? warp - 1 : 0);
    __syncthreads();
    sums[thread] = mine + (warp > 0 ? before : 0);
    __syncthreads();
}
#define BLOCK_SCAN(sums, value) gp_block_scan((sums), (value))
#else
#define SYNC_COUNT(result, condition) \
    do { \
        static _Thread_local int gp_count; \
        const int gp_met = (condition) != 0; \
        SYNC(); \
        if (TID == 0) gp_count = 0; \
        SYNC(); \
        gp_count += gp_met; \
        SYNC(); \
        (result) = gp_count; \
    } while (0)
#define BLOCK_SCAN(sums, value) \
    do { \
        const gp_u64 gp_value = (value); \
        SYNC(); \
        (sums)[TID] = gp_value; \
        SYNC(); \
        for (int gp_t = 1; TID == 0 && gp_t < KERNEL_BLOCK; gp_t++) (sums)[gp_t] += (sums)[gp_t - 1]; \
        SYNC(); \
    } while (0)
#endif
#define GP_TO_F16(v) gp_to_f16(v)
#define GP_TO_BF16(v) gp_to_bf16(v)
/* The pair of halves in a word as two floats. */
#define GP_PAIR_F16(word, v) ((v)[0] = gp_from_f16((gp_u16)((word) & 0xffffu)), (v)[1] = gp_from_f16((gp_u16)((word) >> 16)))
#define GP_PAIR_BF16(word, v) ((v)[0] = gp_float_of((word) << 16), (v)[1] = gp_float_of((word) & 0xffff0000u))
/* COPY16, COPY8, COPY4: aligned bytes from global to shared memory while the thread goes on; zeros, and nothing is read, where not WANTED. COPY16_BEHIND:
 * so many bytes behind both, which are literals and cost no instruction. The copies
 * since the last COPY_END are a group; COPY_WAIT(n): but for the last n groups all have arrived, this thread's. SYNC_WARP: as SYNC, of a
 * warp. */
#if ON_GPU
#define SYNC_WARP() __syncwarp()
#if __CUDA_ARCH__ >= 800
#define COPY16(to, from, wanted) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }" \
                 : : "r"((gp_u32)__cvta_generic_to_shared(to)), "l"(from), "r"((int)(wanted)) : "memory")
#define COPY16_BEHIND(to, to_bytes, from, from_bytes, wanted) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, p; }" \
                 : : "r"((gp_u32)__cvta_generic_to_shared(to)), "l"(from), "r"((int)(wanted)), "n"(to_bytes), "n"(from_bytes) : "memory")
#define GP_COPY_SMALL(size, to, from, wanted) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], " size ", p; }" \
                 : : "r"((gp_u32)__cvta_generic_to_shared(to)), "l"(from), "r"((int)(wanted)) : "memory")
#define COPY4(to, from, wanted) GP_COPY_SMALL("4", to, from, wanted)
#define COPY8(to, from, wanted) GP_COPY_SMALL("8", to, from, wanted)
#define COPY_END() asm volatile("cp.async.commit_group;" : : : "memory")
#define COPY_WAIT(n) asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory")
#else
#define COPY16(to, from, wanted) ((void)(*(uint4 *)(to) = (wanted) ? *(const uint4 *)(from) : make_uint4(0, 0, 0, 0)))
#define COPY4(to, from, wanted) ((void)(*(gp_u32 *)(to) = (wanted) ? *(const gp_u32 *)(from) : 0u))
#define COPY8(to, from, wanted) ((void)(*(gp_u64 *)(to) = (wanted) ? *(const gp_u64 *)(from) : 0u))
#define COPY_END() ((void)0)
#define COPY_WAIT(n) ((void)0)
#endif
#else
#define SYNC_WARP() do { GP_FENCE(); plan_host->warp_sum(0.0f); GP_FENCE(); } while (0)
#define COPY16_BEHIND(to, to_bytes, from, from_bytes, wanted) \
    COPY16((unsigned char *)(to) + (to_bytes), (const unsigned char *)(from) + (from_bytes), wanted)
#define COPY16(to, from, wanted) gp_copy(TID, (to), (from), 16, (wanted) ? 16 : 0)
#define COPY4(to, from, wanted) gp_copy(TID, (to), (from), 4, (wanted) ? 4 : 0)
#define COPY8(to, from, wanted) gp_copy(TID, (to), (from), 8, (wanted) ? 8 : 0)
#ifdef GP_EMULATE /* as late as is allowed, and till then what is there is no number */
typedef struct gp_copy_wanted { void *to; const void *from; int size, bytes, group; } gp_copy_wanted;
static _Thread_local struct { int first, count, group, unfenced; gp_copy_wanted list[512]; } gp_copies[1024];
static _Thread_local int gp_unfenced; /* threads with copies that arrived since their last WGMMA_ARRIVED (wgmma.h) */
#define GP_COPIES_NONE() (gp_copies[gp_thread].first = gp_copies[gp_thread].count = 0, gp_fence_copies(gp_thread))
#define COPY_END() ((void)gp_copies[TID].group++)
#define COPY_WAIT(n) gp_copies_until(TID, gp_copies[TID].group - (n))
static inline void gp_fence_copies(int thread)
{
    gp_unfenced -= gp_copies[thread].unfenced;
    gp_copies[thread].unfenced = 0;
}
static void gp_copies_until(int thread, int group) /* those of groups before it */
{
    while (gp_copies[thread].first < gp_copies[thread].count && gp_copies[thread].list[gp_copies[thread].first].group - group < 0) {
        const gp_copy_wanted *w = &gp_copies[thread].list[gp_copies[thread].first++];
        __builtin_memset(w->to, 0, (unsigned)w->size);
        if (w->bytes > 0) __builtin_memcpy(w->to, w->from, (unsigned)w->bytes);
        if (!gp_copies[thread].unfenced) gp_copies[thread].unfenced = 1, gp_unfenced++;
    }
    if (gp_copies[thread].first == gp_copies[thread].count) gp_copies[thread].first = gp_copies[thread].count = 0;
}
static void gp_copy(int thread, void *to, const void *from, int size, int bytes)
{
    if (gp_copies[thread].count == 512) gp_copies_until(thread, gp_copies[thread].group + 1);
    gp_copies[thread].list[gp_copies[thread].count++] = (gp_copy_wanted){to, from, size, bytes, gp_copies[thread].group};
    __builtin_memset(to, 0xff, (unsigned)size);
}
#else
#define COPY_END() ((void)0)
#define COPY_WAIT(n) ((void)0)
FN void gp_copy(int thread, void *to, const void *from, unsigned size, int bytes)
{
    (void)thread;
    __builtin_memset(to, 0, size);
    if (bytes > 0) __builtin_memcpy(to, from, (unsigned)bytes);
}
#endif
#endif
