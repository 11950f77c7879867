/* test_codegen.c - codegen/: the number conversions of prelude.h against their definition, and the compilation of modules:
 * the same bytes with any number of threads, the partition, and what is said when a compilation cannot be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "report.h"

#include "../../runtime/host_abi.h"
#include "../../codegen/kernels/prelude.h"

static int passed, failed;

static void check(bool good, const char *name)
{
    printf("%s %s\n", good ? "ok" : "not ok", name);
    if (good) passed++;
    else failed++;
}

/* ---- conversions: H has EXPONENT bits of exponent and MANTISSA bits of mantissa */

static double value_of(unsigned h, int exponent, int mantissa)
{
    const unsigned e = h >> mantissa & ((1u << exponent) - 1), m = h & ((1u << mantissa) - 1);
    const int bias = (1 << (exponent - 1)) - 1;
    const double sign = h >> (exponent + mantissa) ? -1 : 1;
    if (e == (1u << exponent) - 1) return m ? (double)NAN : sign * HUGE_VAL;
    if (e == 0) return sign * ldexp(m, 1 - bias - mantissa);
    return sign * ldexp((1 << mantissa) + (int)m, (int)e - bias - mantissa);
}

static bool loads_right(float (*load)(unsigned short), int exponent, int mantissa)
{
    for (unsigned h = 0; h < 65536; h++) {
        const double expected = value_of(h, exponent, mantissa), found = load((unsigned short)h);
        if (isnan(expected) ? !isnan(found) : found != expected || signbit(found) != signbit(expected)) return false;
    }
    return true;
}

/* Every value comes back; the middle of two neighbours goes to the even one, what is next to the middle to the nearer. */
static bool stores_right(unsigned short (*store)(float), int exponent, int mantissa)
{
    const unsigned infinity = ((1u << exponent) - 1) << mantissa;
    for (unsigned h = 0; h < infinity; h++) {
        const double here = value_of(h, exponent, mantissa);
        const double next = h + 1 < infinity ? value_of(h + 1, exponent, mantissa) : 2 * here - value_of(h - 1, exponent, mantissa);
        const float middle = (float)((here + next) / 2);
        const unsigned even = h & 1 ? h + 1 : h;
        if (store((float)here) != h || store((float)-here) != (h | 0x8000u)) return false;
        if (!isinf(middle) && (store(middle) != even || store(-middle) != (even | 0x8000u))) return false;
        if (!isinf(middle) && (store(nextafterf(middle, 0)) != h || store(nextafterf(middle, INFINITY)) != h + 1)) return false;
    }
    return store(INFINITY) == infinity && store(-INFINITY) == (infinity | 0x8000u) && store(3.4e38f) >= infinity - 1;
}

static bool keeps_nan(unsigned short (*store)(float), float (*load)(unsigned short))
{
    return isnan(load(store(gp_float_of(0x7f800001u)))) && isnan(load(store(gp_float_of(0xffffffffu))));
}

static float load_f16(unsigned short h) { return gp_from_f16(h); }
static float load_bf16(unsigned short h) { return gp_from_bf16(h); }
static unsigned short store_f16(float v) { return gp_to_f16(v); }
static unsigned short store_bf16(float v) { return gp_to_bf16(v); }

static void test_conversions(void)
{
    check(loads_right(load_f16, 5, 10), "every f16 loads exactly");
    check(stores_right(store_f16, 5, 10), "f16 stores round to nearest even, denormals and overflow too");
    check(keeps_nan(store_f16, load_f16), "f16 keeps NaN");
    check(loads_right(load_bf16, 8, 7), "every bf16 loads exactly");
    check(stores_right(store_bf16, 8, 7), "bf16 stores round to nearest even");
    check(keeps_nan(store_bf16, load_bf16), "bf16 keeps NaN");
    const unsigned char packed[2] = {0x98, 0x7a};
    check(LD_U4(packed, 0) == 8 && LD_U4(packed, 1) == 9 && LD_I4(packed, 0) == -8 && LD_I4(packed, 2) == -6 && LD_I4(packed, 3) == 7,
          "4-bit elements: low nibble first, sign");
    check(FLOOR_DIV(-7, 2) == -4 && FLOOR_DIV(7, -2) == -4 && FLOOR_DIV(6, 2) == 3 && FLOOR_MOD(-7, 2) == 1 && FLOOR_MOD(7, 3) == 1,
          "floor division");
}

static void test_unpack(void)
{
    _Alignas(16) unsigned char bytes[16];
    float w[128];
    bool good = true;
    for (int i = 0; i < 16; i++) bytes[i] = (unsigned char)(i * 37 + 11);
    for (int bits = 2; bits <= 8; bits *= 2) {
        gp_unpack(bytes, bits, 128 / bits, 3.0f, w);
        for (int j = 0; j < 128 / bits; j++)
            good &= w[j] == (float)((bytes[j * bits / 8] >> (j * bits % 8)) & ((1 << bits) - 1)) - 3.0f;
    }
    check(good, "packed weights unpack low bits first");
}

/* ---- modules */

enum { KERNELS = 14 };

static const char macros[] =
    "#define KERNEL_NAME sum_%d\n#define KERNEL_BLOCK 64\n#define EXTENTS\n#define M 1\n#define N 8\n#define K %d\n"
    "#define A_LD(i) LD_F32(A, i)\n#define B_LD(i) LD_F32(B, i)\n#define Y_ST(i, v) ST_F32(Y, i, v)\n"
    "#define A_OFF 0\n#define B_OFF 0\n#define Y_OFF 0\n#define A_SM 0\n#define A_SK 1\n#define B_SK 8\n#define B_SN 1\n"
    "#define Y_SM 0\n#define Y_SN 1\n#define Z_A 0\n#define Z_B 0\n#define Z_Y 0\n#define Z_BEYOND 0\n#define EPILOGUE_BODY\n#define EPILOGUE v\n"
    "#define ACC float\n#define FMA_ACC(a, b, c) FMAF(a, b, c)\n#define V 1\n#define MT 1\n#define LN 8\n"
    "#define KERNEL_PARAMS const float *A, const float *B, float *Y\n"
    "#define KERNEL_UNPACK (const float *)gp_args[0], (const float *)gp_args[1], (float *)gp_args[2]\n%s";

static Compilation *compilation(int threads, const char *more)
{
    Compilation *c = calloc(1, sizeof *c);
    c->file = "test.onnx";
    c->options.threads = threads;
    c->kernel_count = KERNELS;
    c->kernels = NEW_ARRAY(c, KernelText, KERNELS + 1);
    for (int k = 1; k <= KERNELS; k++)
        c->kernels[k] = (KernelText){arena_text(&c->arena, "sum_%d", k), "matmul_kn", arena_text(&c->arena, macros, k, k, more), 3, 64, true};
    return c;
}

static void discard(Compilation *c)
{
    arena_free(&c->arena);
    free(c);
}

static void test_modules(const char *targets, int target_count, const char *name)
{
    Compilation *one = compilation(1, ""), *four = compilation(4, "");
    ModuleCode *a, *b;
    int count_a, count_b, module[KERNELS + 1];
    const bool compiled = codegen_compile(one, targets, &a, &count_a, module) && codegen_compile(four, targets, &b, &count_b, module);
    bool same = compiled && count_a == count_b;
    for (int i = 0; same && i < count_a; i++)
        same = !strcmp(a[i].target, b[i].target) && a[i].module == b[i].module && a[i].size == b[i].size &&
               !memcmp(a[i].bytes, b[i].bytes, a[i].size);
    check(same, name);
    if (compiled)
        check(count_a == 2 * target_count && module[1] == 0 && module[12] == 0 && module[13] == 1 && a[1].module == 1, "modules of twelve kernels");
    discard(one);
    discard(four);
}

/* What codegen_compile says; it must fail. */
static const char *refusal(const char *targets)
{
    static char text[2000];
    Compilation *c = compilation(1, "");
    ModuleCode *modules;
    int count, module[KERNELS + 1];
    text[0] = 0;
    if (!codegen_compile(c, targets, &modules, &count, module) && diag_failed(c)) {
        FILE *f = tmpfile();
        diag_print(c, f);
        rewind(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
    }
    discard(c);
    return text;
}

static int64_t shared_limit(const char *targets)
{
    Compilation *c = compilation(1, "");
    const int64_t limit = codegen_shared_limit(c, targets);
    discard(c);
    return limit;
}

/* Opt-in maxima of the CUDA C++ Programming Guide's table of compute capabilities. */
static void test_shared_limit(void)
{
    check(shared_limit("sm_90a") == 227 * 1024 && shared_limit("sm_80") == 163 * 1024, "shared memory of a block, by architecture");
    check(shared_limit("sm_90a,sm_86") == 99 * 1024, "shared memory of a block is the least of the targets'");
    check(shared_limit("sm_90a,ptx") == 99 * 1024, "code for any device has the shared memory that all devices have");
}

static bool has_wgmma(const char *targets)
{
    Compilation *c = compilation(1, "");
    const bool has = codegen_has_wgmma(c, targets);
    discard(c);
    return has;
}

static void test_wgmma(void)
{
    check(has_wgmma("sm_90a") && has_wgmma("host,sm_90a") && has_wgmma("host"), "products of four warps, for sm_90a and the host alone");
    check(!has_wgmma("sm_90") && !has_wgmma("sm_90a,sm_100a") && !has_wgmma("sm_90a,ptx"), "no products of four warps for other devices, or any");
}

static void test_refusals(void)
{
    check(strstr(refusal("host,sm_17"), "target 'sm_17' is not known to this build\n  remedy: possible here: host, host-") != NULL,
          "an unknown target is named with what is possible");
    check(strstr(refusal(","), "no target is named in ','") != NULL, "an empty list of targets");
    setenv("GCC_PLAN_CC", "/no/such/compiler -O1", 1);
    check(strstr(refusal("host"), "the C compiler '/no/such/compiler -O1' cannot be run") != NULL, "a compiler that is not there");
    setenv("GCC_PLAN_CC", "false", 1);
    check(strstr(refusal("host"), "the C compiler 'false' failed (exit status 1): it said nothing\n  remedy: set GCC_PLAN_CC") != NULL,
          "a compiler that fails");
    unsetenv("GCC_PLAN_CC");
    const char *old = getenv("TMPDIR");
    char *kept = old ? strdup(old) : NULL;
    setenv("TMPDIR", "/no/such/folder", 1);
    check(strstr(refusal("host"), "no temporary folder can be made in '/no/such/folder'") != NULL, "a temporary folder that is not there");
    if (kept) setenv("TMPDIR", kept, 1);
    else unsetenv("TMPDIR");
    free(kept);
}

int main(void)
{
    test_conversions();
    test_unpack();
    test_modules("host", 1, "host modules: the same bytes with 1 and 4 threads");
    if (strstr(codegen_default_targets(), "ptx")) {
        test_modules("sm_80,ptx", 2, "CUDA modules: the same bytes with 1 and 4 threads");
        test_shared_limit();
        test_wgmma();
    } else printf("skip CUDA modules: built without NVRTC\n");
    test_refusals();
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
