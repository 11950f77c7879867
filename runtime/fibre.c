/* fibre.c - fibres for the threads of a block: switching, block barriers, warp exchanges, and finding divergence.
 *
 * Invariant that keeps scheduling to one `ctz`: a warp is never left while one of its lanes waits at an exchange. So
 * when a lane of warp w runs, every live lane of w that has not arrived at the present exchange and is not at a
 * barrier can be resumed, and in every other warp each live lane is either at a barrier or can be resumed. The barrier is
 * the block's or, for threads that are parked, that of its cluster (host_cluster.c), never both in one block.
 * The last lane to arrive computes the results and goes on; the others read them when they are resumed, which is
 * before any of them can complete the next exchange, so two copies of the exchange (parity) are enough.
 */
#include "fibre.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1 /* clang's name for it */
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(HAVE_VALGRIND_VALGRIND_H)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(from, to) 0u
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#endif

#include "host_cluster.h"

#define WARP 32u
#define WARPS (PLAN_FIBRE_MAX_THREADS / WARP)
#define STACK_BYTES 65536u
/* Tops of stacks at multiples of 64 KiB would share a few cache sets; 9 lines apart they use all of them. */
#define STACK_STRIDE (STACK_BYTES + 9u * 64u)
#define GUARD_BYTES 4096u
#define CANARY UINT64_C(0x5afec0de5afec0de)
#define CANARY_WORDS 8u

enum service { SERVICE_SUM, SERVICE_MAX, SERVICE_SHUFFLE };
static const char *const service_names[] = {"warp_sum", "warp_max", "warp_shuffle"};

typedef struct warp {
    uint32_t live, arrived, at_barrier; /* masks of lanes; arrived and at_barrier, which has the parked ones too, are within live */
    uint32_t parity;                    /* of the exchange that is being collected */
    enum service service;               /* of the first lane that arrived */
    float result[2];
    float number[2][WARP];
    unsigned long long word[2][WARP];
} warp;

struct plan_fibres {
    void *main_stack;                      /* saved stack pointer of the caller of run */
    void *stack[PLAN_FIBRE_MAX_THREADS];   /* saved stack pointers of the fibres */
    warp warps[WARPS];
    unsigned current, threads, finished, at_barrier; /* at_barrier: not those that are parked */
    int plain;                             /* a kernel without fibres runs: every service is a fault */
    plan_host_kernel *kernel;
    const unsigned long long *args;
    plan_host_index index;
    unsigned ready;                        /* fibres 0 .. ready-1 stand at the start of their loop */
    unsigned painted;                      /* stacks whose canaries are written */
    const char *fault;
    unsigned char *memory;                 /* all stacks, behind one guard page */
    size_t memory_bytes;
    unsigned valgrind_id[PLAN_FIBRE_MAX_THREADS];
    char text[256];
#if defined(__SANITIZE_ADDRESS__)
    const void *main_bottom;
    size_t main_bytes;
#endif
};

static _Thread_local plan_fibres *running __attribute__((tls_model("initial-exec")));

/* Saves the present context at *SAVE and continues the one at TO. Everything but the stack pointer, the frame pointer
 * and the resume address is declared clobbered, so the compiler saves what is in use. The jump's target is nearly
 * always the label, which the branch predictor learns; a `ret` would be mispredicted each time. */
static inline __attribute__((always_inline)) void jump(void **save, void *to) {
#if defined(__x86_64__)
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t" /* step over the red zone */
                     "pushq %%rbp\n\t"
                     "leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "movq %%rsp, (%0)\n\t"
                     "movq %1, %%rsp\n\t"
                     "popq %%rax\n\t"
                     "jmpq *%%rax\n"
                     "1:\tpopq %%rbp\n\t"
                     "leaq 128(%%rsp), %%rsp"
                     : "+D"(save), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",
                       "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12", "xmm13", "xmm14", "xmm15");
#elif defined(__aarch64__)
    register void **save_register __asm__("x0") = save;
    register void *to_register __asm__("x1") = to;
    __asm__ volatile("sub sp, sp, #32\n\t"
                     "stp x29, x30, [sp]\n\t"
                     "adr x9, 1f\n\t"
                     "str x9, [sp, #16]\n\t"
                     "mov x10, sp\n\t"
                     "str x10, [%0]\n\t"
                     "mov sp, %1\n\t"
                     "ldr x9, [sp, #16]\n\t"
                     "br x9\n"
                     "1:\thint #36\n\t" /* bti j */
                     "ldp x29, x30, [sp]\n\t"
                     "add sp, sp, #32"
                     : "+r"(save_register), "+r"(to_register)
                     :
                     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
                       "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "memory", "cc", "v0",
                       "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
                       "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
                       "v30", "v31");
#else
#error "the host target needs a fibre switch for this processor"
#endif
}

static unsigned char *stack_bottom(const plan_fibres *f, unsigned thread) {
    return f->memory + GUARD_BYTES + (size_t)thread * STACK_STRIDE;
}

/* Switches to the fibre of thread NEXT; returns when somebody switches back. */
static inline __attribute__((always_inline)) void switch_to(plan_fibres *f, unsigned next) {
    void **save = &f->stack[f->current];
    f->current = next;
#if defined(__SANITIZE_ADDRESS__)
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, stack_bottom(f, next), STACK_BYTES);
    jump(save, f->stack[next]);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
    jump(save, f->stack[next]);
#endif
}

static void switch_to_main(plan_fibres *f) {
    void **save = &f->stack[f->current];
#if defined(__SANITIZE_ADDRESS__)
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, f->main_bottom, f->main_bytes);
    jump(save, f->main_stack);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
    jump(save, f->main_stack);
#endif
}

/* Ends the block with a fault. Returns only to a plain kernel, which runs on to its end. */
static void fault(plan_fibres *f, const char *text) {
    if (!f->fault) {
        snprintf(f->text, sizeof f->text, "%s", text);
        f->fault = f->text;
    }
    if (f->plain)
        return;
    f->ready = 0; /* the other fibres stand somewhere inside the kernel */
    switch_to_main(f);
    abort(); /* an abandoned fibre is never resumed */
}

static void fault_divergent(plan_fibres *f, const char *where, const char *others) {
    char text[200];
    snprintf(text, sizeof text, "divergent barrier: thread %u reached %s while %s", f->current, where, others);
    fault(f, text);
}

/* Butterfly order: offsets 16, 8, 4, 2, 1. Addition commutes, so every lane gets the same bits. */
static float butterfly_sum(const float *v) {
    float a[WARP / 2];
    for (unsigned i = 0; i < 16; i++)
        a[i] = v[i] + v[i + 16];
    for (unsigned half = 8; half; half /= 2)
        for (unsigned i = 0; i < half; i++)
            a[i] = a[i] + a[i + half];
    return a[0];
}

/* fmaxf: a NaN loses against a number. */
static float larger(float a, float b) { return a > b || b != b ? a : b; }

static float butterfly_max(const float *v) {
    float a[WARP / 2];
    for (unsigned i = 0; i < 16; i++)
        a[i] = larger(v[i], v[i + 16]);
    for (unsigned half = 8; half; half /= 2)
        for (unsigned i = 0; i < half; i++)
            a[i] = larger(a[i], a[i + half]);
    return a[0];
}

/* All live lanes have arrived: computes the results and opens the next exchange. */
static inline void complete(warp *w) {
    uint32_t parity = w->parity;
    float *v = w->number[parity];
    if (w->service != SERVICE_SHUFFLE && w->arrived != UINT32_MAX) {
        float absent = w->service == SERVICE_SUM ? 0.0f : -__builtin_inff();
        for (unsigned i = 0; i < WARP; i++)
            if (!(w->arrived >> i & 1u))
                v[i] = absent;
    }
    if (w->service == SERVICE_SUM)
        w->result[parity] = butterfly_sum(v);
    else if (w->service == SERVICE_MAX)
        w->result[parity] = butterfly_max(v);
    w->arrived = 0;
    w->parity = parity ^ 1u;
}

static void exchange_stuck(plan_fibres *f, warp *w, enum service service) {
    if (f->plain)
        fault(f, "a kernel that is recorded without barriers calls a warp exchange");
    else
        fault_divergent(f, service_names[service], f->at_barrier ? "other lanes of its warp wait at the block barrier"
                                                                 : "other lanes of its warp wait for the cluster");
    w->arrived = 0;
}

/* Arrives at an exchange whose value is deposited, and returns when it is complete. */
static inline __attribute__((always_inline)) void exchange(plan_fibres *f, warp *w, uint32_t bit, enum service service) {
    if (w->arrived == 0)
        w->service = service;
    else if (w->service != service)
        fault_divergent(f, service_names[service], "other lanes of its warp wait at another exchange");
    w->arrived |= bit;
    if (w->arrived == w->live) {
        complete(w);
        return;
    }
    uint32_t pending = w->live & ~w->arrived & ~w->at_barrier;
    /* With a lane at the barrier this exchange can never complete. */
    if (pending == 0) {
        exchange_stuck(f, w, service);
        return;
    }
    switch_to(f, (f->current & ~(WARP - 1u)) + (unsigned)__builtin_ctz(pending));
}

static float service_sum(float value) {
    plan_fibres *f = running;
    unsigned lane = f->current % WARP;
    warp *w = &f->warps[f->current / WARP];
    uint32_t parity = w->parity;
    w->number[parity][lane] = value;
    exchange(f, w, 1u << lane, SERVICE_SUM);
    return w->result[parity];
}

static float service_max(float value) {
    plan_fibres *f = running;
    unsigned lane = f->current % WARP;
    warp *w = &f->warps[f->current / WARP];
    uint32_t parity = w->parity;
    w->number[parity][lane] = value;
    exchange(f, w, 1u << lane, SERVICE_MAX);
    return w->result[parity];
}

/* A source lane that has returned or never was gives whatever it last held, as the hardware does. */
static unsigned long long service_shuffle(unsigned long long value, int source_lane) {
    plan_fibres *f = running;
    unsigned lane = f->current % WARP;
    warp *w = &f->warps[f->current / WARP];
    uint32_t parity = w->parity;
    w->word[parity][lane] = value;
    exchange(f, w, 1u << lane, SERVICE_SHUFFLE);
    return w->word[parity][(unsigned)source_lane % WARP];
}

/* The first thread that can run in a warp after that of the present one, or -1. */
static int next_warp(const plan_fibres *f) {
    unsigned warps = (f->threads + WARP - 1u) / WARP, own = f->current / WARP;
    for (unsigned i = 1; i <= warps; i++) {
        unsigned number = (own + i) % warps;
        uint32_t can_run = f->warps[number].live & ~f->warps[number].at_barrier;
        if (can_run)
            return (int)(number * WARP + (unsigned)__builtin_ctz(can_run));
    }
    return -1;
}

static void service_sync(void) {
    plan_fibres *f = running;
    unsigned lane = f->current % WARP;
    warp *w = &f->warps[f->current / WARP];
    if (f->plain) {
        fault(f, "a kernel that is recorded without barriers calls the block barrier");
        return;
    }
    if (w->arrived)
        fault_divergent(f, "the block barrier", "other lanes of its warp wait at a warp exchange");
    if (f->finished)
        fault_divergent(f, "the block barrier", "other threads of the block had returned");
    w->at_barrier |= 1u << lane;
    if (++f->at_barrier == f->threads) {
        for (unsigned i = 0; i < (f->threads + WARP - 1u) / WARP; i++)
            f->warps[i].at_barrier = 0;
        f->at_barrier = 0;
        return;
    }
    uint32_t pending = w->live & ~w->at_barrier;
    int next = pending ? (int)((f->current & ~(WARP - 1u)) + (unsigned)__builtin_ctz(pending)) : next_warp(f);
    if (next < 0) /* only parked ones are left */
        fault_divergent(f, "the block barrier", "other threads wait for the cluster");
    switch_to(f, (unsigned)next);
}

static unsigned long long service_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

/* Numbered as they ask first. */
static unsigned long long service_worker(void) {
    static atomic_uint count;
    static _Thread_local unsigned mine;
    if (!mine)
        mine = atomic_fetch_add(&count, 1) + 1;
    return mine - 1;
}

const plan_host_services plan_fibre_services = {
    service_sync, service_sum, service_max, service_shuffle, plan_cluster_arrive, plan_cluster_wait, plan_cluster_put,
    service_now, service_worker,
};

plan_fibres *plan_fibres_running(void) { return running; }
unsigned plan_fibres_thread(const plan_fibres *f) { return f->current; }
void plan_fibres_fault(plan_fibres *f, const char *text) { fault(f, text); }

void plan_fibres_park(plan_fibres *f) {
    warp *w = &f->warps[f->current / WARP];
    if (w->arrived)
        fault_divergent(f, "the cluster's barrier", "other lanes of its warp wait at a warp exchange");
    if (f->at_barrier)
        fault_divergent(f, "the cluster's barrier", "other threads wait at the block barrier");
    w->at_barrier |= 1u << f->current % WARP;
    uint32_t pending = w->live & ~w->at_barrier;
    switch_to(f, pending ? (f->current & ~(WARP - 1u)) + (unsigned)__builtin_ctz(pending) : (unsigned)next_warp(f));
}

void plan_fibres_unpark(plan_fibres *f) {
    for (unsigned i = 0; i < (f->threads + WARP - 1u) / WARP; i++)
        f->warps[i].at_barrier = 0;
}

/* The thread's kernel returned: the next one runs, or the block is done. Returns when the fibre is used again. */
static void finish(plan_fibres *f) {
    warp *w = &f->warps[f->current / WARP];
    w->live &= ~(1u << f->current % WARP);
    f->finished++;
    if (f->at_barrier)
        fault_divergent(f, "its end", "other threads wait at the block barrier");
    if (w->live && w->arrived == w->live)
        complete(w);
    uint32_t pending = w->live & ~w->arrived & ~w->at_barrier;
    if (w->arrived && !pending)
        fault_divergent(f, "its end", "lanes of its warp wait at a warp exchange and for the cluster");
    int next = pending ? (int)((f->current & ~(WARP - 1u)) + (unsigned)__builtin_ctz(pending)) : next_warp(f);
    if (next >= 0)
        switch_to(f, (unsigned)next);
    else
        switch_to_main(f);
}

/* The loop of a fibre: one round a block. It stays on its stack between blocks, so a block starts with plain switches. */
static void fibre_main(void) {
    plan_fibres *f = running;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
    for (;;) {
        plan_host_index index = f->index;
        index.first_thread = (int)f->current;
        index.thread_count = 1;
        f->kernel(&index, f->args);
        finish(f);
    }
}

/* Makes thread's stack look as if it had switched away just before the first instruction of fibre_main. */
static void prepare(plan_fibres *f, unsigned thread) {
    unsigned char *bottom = stack_bottom(f, thread);
    if (thread >= f->painted) {
        f->valgrind_id[thread] = VALGRIND_STACK_REGISTER(bottom, bottom + STACK_BYTES);
        f->painted = thread + 1;
        uint64_t *canary = (uint64_t *)(void *)bottom;
        for (unsigned i = 0; i < CANARY_WORDS; i++)
            canary[i] = CANARY;
    }
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(bottom, STACK_BYTES);
#endif
    void (*entry)(void) = fibre_main;
    uintptr_t top = ((uintptr_t)bottom + STACK_BYTES) & ~(uintptr_t)63;
#if defined(__x86_64__)
    /* The jump pops the entry address; the entry then finds the stack as after a call, with no caller (0). */
    uintptr_t *frame = (uintptr_t *)(top - 64);
    frame[0] = (uintptr_t)entry;
    frame[1] = 0;
#else
    uintptr_t *frame = (uintptr_t *)(top - 64);
    frame[0] = frame[1] = 0;
    frame[2] = (uintptr_t)entry;
#endif
    f->stack[thread] = frame;
}

plan_fibres *plan_fibres_open(void) {
    plan_fibres *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->memory_bytes = GUARD_BYTES + (size_t)PLAN_FIBRE_MAX_THREADS * STACK_STRIDE;
    void *memory = mmap(NULL, f->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(f);
        return NULL;
    }
    f->memory = memory;
    (void)mprotect(memory, GUARD_BYTES, PROT_NONE); /* best effort: the canaries are the check */
    return f;
}

void plan_fibres_close(plan_fibres *f) {
    if (!f)
        return;
    for (unsigned i = 0; i < f->painted; i++)
        VALGRIND_STACK_DEREGISTER(f->valgrind_id[i]);
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(f->memory + GUARD_BYTES, f->memory_bytes - GUARD_BYTES);
#endif
    munmap(f->memory, f->memory_bytes);
    free(f);
}

const char *plan_fibres_check(plan_fibres *f) {
    for (unsigned i = 0; i < f->painted; i++) {
        uint64_t *canary = (uint64_t *)(void *)stack_bottom(f, i);
        int intact = 1;
        for (unsigned k = 0; k < CANARY_WORDS; k++) {
            intact = intact && canary[k] == CANARY;
            canary[k] = CANARY;
        }
        if (!intact) {
            snprintf(f->text, sizeof f->text, "thread %u overran its stack of %u bytes", i, STACK_BYTES);
            return f->text;
        }
    }
    return NULL;
}

static void start_block(plan_fibres *f, plan_host_kernel *kernel, const plan_host_index *block,
                        const unsigned long long *args) {
    running = f;
    f->kernel = kernel;
    f->args = args;
    f->index = *block;
    f->threads = (unsigned)block->block_threads;
    f->current = f->finished = f->at_barrier = 0;
    f->fault = NULL;
    for (unsigned i = 0; i * WARP < f->threads; i++) {
        unsigned lanes = f->threads - i * WARP;
        f->warps[i].live = lanes >= WARP ? UINT32_MAX : (1u << lanes) - 1u;
        f->warps[i].arrived = f->warps[i].at_barrier = 0;
    }
}

const char *plan_fibres_run(plan_fibres *f, plan_host_kernel *kernel, const plan_host_index *block,
                            const unsigned long long *args) {
    if (block->block_threads < 1 || block->block_threads > PLAN_FIBRE_MAX_THREADS)
        return "a block has 1 to 1024 threads";
    start_block(f, kernel, block, args);
    f->plain = 0;
    for (; f->ready < f->threads; f->ready++)
        prepare(f, f->ready);
#if defined(__SANITIZE_ADDRESS__)
    pthread_attr_t attributes;
    void *bottom = NULL;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &bottom, &f->main_bytes);
        pthread_attr_destroy(&attributes);
    }
    f->main_bottom = bottom;
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, stack_bottom(f, 0), STACK_BYTES);
    jump(&f->main_stack, f->stack[0]);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
    jump(&f->main_stack, f->stack[0]);
#endif
    running = NULL;
    return f->fault;
}

const char *plan_fibres_plain(plan_fibres *f, plan_host_kernel *kernel, const plan_host_index *block,
                              const unsigned long long *args) {
    plan_host_index index = *block;
    index.first_thread = 0;
    index.thread_count = block->block_threads;
    running = f;
    f->plain = 1;
    f->current = 0;
    f->fault = NULL;
    f->warps[0].live = f->warps[0].arrived = f->warps[0].at_barrier = 0; /* every exchange is stuck at once */
    kernel(&index, args);
    running = NULL;
    return f->fault;
}
