/* cuda_trace.c - stands in for libcuda.so.1: forwards every entry point that the runtime uses to the real library, named by
 * CUDA_TRACE_REAL, and writes the name of each call, in order, to the file named by CUDA_TRACE. So a run's driver calls can
 * be counted from outside the runtime, whatever its own counters say.
 *
 * All arguments are integers or pointers, so twelve words forwarded are enough for any of them. */
#include "../runtime/driver_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef long forward(long, long, long, long, long, long, long, long, long, long, long, long);

static void *real_symbol(const char *name)
{
    static void *library;
    if (!library) library = dlopen(getenv("CUDA_TRACE_REAL"), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) {
        fprintf(stderr, "cuda_trace: no %s in CUDA_TRACE_REAL\n", name);
        exit(1);
    }
    return symbol;
}

static void note(const char *name)
{
    static FILE *file;
    if (!file) file = fopen(getenv("CUDA_TRACE"), "w");
    if (file) fprintf(file, "%s\n", name);
}

#define STAND_IN(member, symbol, parameters) \
    long trace_##member(long, long, long, long, long, long, long, long, long, long, long, long) __asm__(symbol); \
    long trace_##member(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) \
    { \
        static forward *real; \
        if (!real) real = (forward *)real_symbol(symbol); \
        note(symbol); \
        return real(a, b, c, d, e, f, g, h, i, j, k, l); \
    }
CU_REQUIRED(STAND_IN)
