/* test_runtime.c - fibres, the strict host driver, and plans and sessions over it, with the decoder of small_plan.h. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#include <pthread.h>

#include "small_plan.h"

#include "../../runtime/driver.h"
#include "../../runtime/error.h"
#include "../../runtime/fibre.h"

static int passed, failed;

static void check(int good, const char *name) {
    printf("%s %s\n", good ? "ok -" : "not ok -", name);
    if (!good && plan_error_message()[0])
        printf("# %s\n", plan_error_message());
    if (good)
        passed++;
    else
        failed++;
}

static int says(const char *part) { return strstr(plan_error_message(), part) != NULL; }

/* ---- fibres */

static const plan_host_services *const S = &plan_fibre_services;
static float numbers[1024];
static int order[1024], ordered;

static void sums(const plan_host_index *x, const unsigned long long *args) {
    int t = x->first_thread;
    float total = 0;
    for (unsigned long long i = 0; i < args[0]; i++)
        total += S->warp_sum((float)(t + (int)i));
    numbers[t] = total;
}
static void largest(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    numbers[x->first_thread] = S->warp_max((float)(x->first_thread * 7 % 100));
}
static void shuffles(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    int t = x->first_thread;
    unsigned long long a = S->warp_shuffle((unsigned long long)t, (t + 1) % 32), b = S->warp_shuffle(a, (t + 1) % 32);
    numbers[t] = (float)b;
}
static void barriers(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    int t = x->first_thread;
    order[t] = 0;
    for (int i = 0; i < 5; i++) {
        S->sync();
        for (int k = 0; k < x->block_threads; k++) /* nobody is a round ahead or behind */
            if (order[k] < i || order[k] > i)
                ordered = 0;
        S->sync();
        order[t] = i + 1;
        (void)S->warp_sum(1);
    }
}
static void returns_early(const plan_host_index *x, const unsigned long long *args) {
    if (x->first_thread != (int)args[0])
        S->sync();
}
static void mixed(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    if (x->first_thread == 3)
        S->sync();
    else
        (void)S->warp_sum(1);
}
static void mixed_services(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    if (x->first_thread == 3)
        (void)S->warp_max(1);
    else
        (void)S->warp_sum(1);
}
static void half_warp(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    if (x->first_thread % 32 < 16)
        numbers[x->first_thread] = S->warp_sum(1);
}
static void overrun(const plan_host_index *x, const unsigned long long *args) {
    uintptr_t here = (uintptr_t)&x;
    (void)args;
    if (x->first_thread == 1)
        for (uintptr_t i = 60000; i < 65536; i++)
            *(volatile char *)(here - i) = 1;
}

static void test_fibres(void) {
    plan_fibres *f = plan_fibres_open();
    plan_host_index x = {0, 0, 0, 0, 0, 1, 1, 1, 256};
    unsigned long long args[1] = {3};
    check(f && !plan_fibres_run(f, sums, &x, args), "sums over warps run");
    int good = 1;
    for (int t = 0; t < 256; t++)
        good &= numbers[t] == (float)(3 * (496 + 1024 * (t / 32)) + 32 * 3);
    check(good, "sums over warps are right");
    x.block_threads = 200; /* the last warp has 8 lanes */
    good = !plan_fibres_run(f, largest, &x, args);
    for (int t = 0; t < 200; t++) {
        float expected = 0;
        for (int k = t / 32 * 32; k < t / 32 * 32 + 32 && k < 200; k++)
            expected = (float)(k * 7 % 100) > expected ? (float)(k * 7 % 100) : expected;
        good &= numbers[t] == expected;
    }
    check(good, "maxima over warps, one of them partial");
    x.block_threads = 64;
    good = !plan_fibres_run(f, shuffles, &x, args);
    for (int t = 0; t < 64; t++)
        good &= numbers[t] == (float)(t / 32 * 32 + (t + 2) % 32);
    check(good, "shuffles");
    x.block_threads = 1024;
    ordered = 1;
    check(!plan_fibres_run(f, barriers, &x, args) && ordered, "block barriers keep 1024 threads together");
    x.block_threads = 64;
    good = !plan_fibres_run(f, half_warp, &x, args);
    check(good && numbers[0] == 16 && numbers[47] == 16, "lanes that have returned are no part of an exchange");
    const char *text = NULL;
    for (args[0] = 0; args[0] < 64; args[0] += 21) { /* the first, the last, and two in between */
        text = plan_fibres_run(f, returns_early, &x, args);
        check(text && strstr(text, args[0] == 63 ? "reached its end while" : "divergent barrier"), "a barrier that one thread skips is found");
    }
    text = plan_fibres_run(f, mixed, &x, args);
    check(text && strstr(text, "divergent barrier"), "a barrier against an exchange is found");
    text = plan_fibres_run(f, mixed_services, &x, args);
    check(text && strstr(text, "another exchange"), "two kinds of exchange are found");
    x.block_threads = 256;
    args[0] = 1;
    check(!plan_fibres_run(f, sums, &x, args) && numbers[0] == 496, "after a fault the next block runs");
    text = plan_fibres_plain(f, sums, &x, args);
    check(text && strstr(text, "without barriers"), "a service called from a plain kernel is found");
    text = plan_fibres_plain(f, returns_early, &x, args);
    check(text && strstr(text, "without barriers"), "a barrier called from a plain kernel is found");
#if !defined(__SANITIZE_ADDRESS__)
    check(!plan_fibres_check(f), "stacks are intact");
    x.block_threads = 2;
    plan_fibres_run(f, overrun, &x, args);
    check(plan_fibres_check(f) != NULL && !plan_fibres_check(f), "an overrun stack is found, once");
#else
    (void)overrun;
#endif
    plan_fibres_close(f);
}

/* ---- the strict driver */

static void *module_bytes;
static size_t module_size;

typedef struct rig {
    plan_driver *d;
    plan_driver_stream *s;
    plan_driver_module *m;
    plan_driver_function *f; /* advance: adds args[1] to the int64 at args[0] */
    plan_address memory;
} rig;

static const uint8_t pointers[2] = {1, 0};

static void rig_open(rig *r) {
    const plan_driver_options options = {0, 2, 0, {NULL, NULL, NULL}};
    const plan_kernel_shape shape = {"advance", 2, 32, false};
    if (plan_driver_host_open(&options, &r->d) || r->d->stream_open(r->d, NULL, &r->s) ||
        r->d->module_load(r->d, module_bytes, module_size, "host", &r->m) || r->d->function_get(r->d, r->m, &shape, &r->f) ||
        r->d->allocate(r->d, 64, "rig", &r->memory) || r->d->zero(r->d, r->s, r->memory, 64)) {
        printf("# %s\n", plan_error_message());
        exit(1);
    }
}

static void rig_close(rig *r) {
    r->d->release(r->d, r->memory);
    r->d->function_release(r->d, r->f);
    r->d->module_unload(r->d, r->m);
    r->d->stream_close(r->d, r->s);
    r->d->close(r->d);
}

static plan_driver_launch rig_launch(const rig *r, const uint64_t *args) {
    plan_driver_launch l = {r->f, "label", {1, 1, 1}, 32, 0, 2, args, pointers};
    return l;
}

static void test_capture_rules(void) {
    rig r;
    rig_open(&r);
    uint64_t args[2] = {r.memory, 5};
    plan_driver_launch l = rig_launch(&r, args);
    plan_driver_graph *g = NULL;
    plan_driver_exec *e = NULL;
    plan_address extra = 0;
    int64_t value = 0;
    check(!r.d->graph_open(r.d, &g) && !r.d->graph_add(r.d, g, &l, NULL, 0), "a graph is built");
    check(r.d->allocate(r.d, 8, "extra", &extra) && says("allocate while a graph is being captured"),
          "an allocation while capturing is refused");
    check(r.d->synchronise(r.d, r.s) && says("synchronise while"), "a synchronisation while capturing is refused");
    check(r.d->to_device(r.d, r.s, r.memory, &value, 8) && says("copy to the device while"),
          "a copy to the device while capturing is refused");
    check(r.d->from_device(r.d, r.s, &value, r.memory, 8) && says("copy from the device while"),
          "a copy from the device while capturing is refused");
    check(r.d->launch(r.d, r.s, &l) && says("launch while"), "an eager launch while capturing is refused");
    const uint32_t later = 1;
    check(r.d->graph_add(r.d, g, &l, &later, 1) && says("is not before"), "a dependency on a later node is refused");
    args[0] = r.memory + 65;
    check(r.d->graph_add(r.d, g, &l, NULL, 0) && says("argument 0") && says("no live allocation"),
          "a captured pointer outside every allocation is refused");
    check(r.d->graph_instantiate(r.d, g, 2, &e) && says("1 nodes, the plan 2"), "a graph with a missing node is refused");
    check(!r.d->graph_instantiate(r.d, g, 1, &e), "a graph is instantiated");
    args[0] = 0, args[1] = 77; /* the graph has its own copy */
    r.d->graph_close(r.d, g);
    check(!r.d->graph_launch(r.d, r.s, e) && !r.d->graph_launch(r.d, r.s, e) &&
          !r.d->from_device(r.d, r.s, &value, r.memory, 8) && value == 10, "a graph keeps its arguments by value");
    check(!r.d->allocate(r.d, 8, "extra", &extra), "after instantiation an allocation is allowed");
    r.d->release(r.d, extra);
    r.d->exec_close(r.d, e);
    rig_close(&r);
}

/* Clusters are what their modules say; captured as launched. */
static void test_cluster_rules(void) {
    rig r;
    rig_open(&r);
    const plan_kernel_shape shape = {"meet", 2, 32, true}, crowd = {"crowd", 2, 32, true}, stray = {"stray", 2, 32, true};
    plan_driver_function *f = NULL, *none = NULL, *bad = NULL;
    plan_driver_graph *g = NULL;
    plan_driver_exec *e = NULL;
    uint64_t args[2] = {r.memory, 5};
    int64_t values[4] = {0, 0, 0, 0};
    check(r.d->function_get(r.d, r.m, &crowd, &none) && says("kernel 'crowd': a cluster has 1 to 16 blocks, not 17"), "a cluster that is too large");
    check(!r.d->function_get(r.d, r.m, &shape, &f) && !r.d->function_get(r.d, r.m, &stray, &bad), "kernels for clusters");
    plan_driver_launch l = {f, "meeting", {4, 2, 1}, 32, 0, 2, args, pointers}, strays = {bad, "straying", {4, 2, 1}, 32, 0, 2, args, pointers};
    check(!r.d->launch(r.d, r.s, &l) && !r.d->from_device(r.d, r.s, values, r.memory, 32), "clusters are launched");
    check(values[0] == 8 && values[1] == 8 && values[2] == 8 && values[3] == 8, "and each meets alone");
    check(r.d->launch(r.d, r.s, &strays) &&
              says("launch 'straying': kernel 'stray', block (2, 1, 0): cluster: thread 0 puts into block 0 without having waited for its start"),
          "a fault in a cluster says where");
    l.grid[0] = 3;
    check(r.d->launch(r.d, r.s, &l) && says("launch 'meeting': kernel 'meet': 3 blocks along x are no whole clusters of 2"), "half a cluster");
    l.grid[0] = 4, args[1] = 6;
    check(!r.d->graph_open(r.d, &g) && !r.d->graph_add(r.d, g, &l, NULL, 0) && !r.d->graph_instantiate(r.d, g, 1, &e), "clusters are captured");
    r.d->graph_close(r.d, g);
    check(!r.d->zero(r.d, r.s, r.memory, 64) && !r.d->graph_launch(r.d, r.s, e) && !r.d->from_device(r.d, r.s, values, r.memory, 32) &&
              values[0] == 8 && values[3] == 8, "and run from a graph");
    check(!r.d->check(r.d), "nothing was overrun");
    r.d->exec_close(r.d, e);
    r.d->function_release(r.d, f);
    r.d->function_release(r.d, bad);
    rig_close(&r);
}

/* A graph of one conditional node, with what decides before it and (IN_BODY) at the end of its body; the body adds 1. */
static plan_status condition_graph(rig *r, plan_driver_function *decide, bool loop, bool before, bool in_body, plan_driver_exec **e) {
    static const uint8_t words[2] = {PLAN_WORD_ADDRESS, PLAN_WORD_CONDITION};
    uint64_t one[2] = {r->memory, 1}, set[2] = {r->memory, 0};
    const uint32_t first = 0;
    plan_driver_graph *g = NULL, *body = NULL;
    plan_driver_launch add = rig_launch(r, one), decides = {decide, "decides", {1, 1, 1}, 32, 0, 2, set, words};
    plan_status status = r->d->graph_open(r->d, &g);
    if (!status)
        status = r->d->condition_open(r->d, g, &set[1]);
    if (!status && before)
        status = r->d->graph_add(r->d, g, &decides, NULL, 0);
    if (!status)
        status = r->d->graph_add_condition(r->d, g, loop, set[1], "block", &first, before, &body);
    if (!status)
        status = r->d->graph_add(r->d, body, &add, NULL, 0);
    if (!status && in_body)
        status = r->d->graph_add(r->d, body, &decides, &first, 1);
    if (!status)
        status = r->d->graph_instantiate(r->d, g, 1 + before, e);
    r->d->graph_close(r->d, g);
    return status;
}

/* What the number becomes when the graph runs from START; -1 after an error. */
static int64_t condition_result(rig *r, plan_driver_function *decide, bool loop, bool before, bool in_body, int64_t start) {
    plan_driver_exec *e = NULL;
    int64_t value = start;
    plan_status status = condition_graph(r, decide, loop, before, in_body, &e);
    if (!status)
        status = r->d->to_device(r->d, r->s, r->memory, &value, 8);
    if (!status)
        status = r->d->graph_launch(r->d, r->s, e);
    if (!status)
        status = r->d->from_device(r->d, r->s, &value, r->memory, 8);
    r->d->exec_close(r->d, e);
    return status ? -1 : value;
}

static void test_condition_rules(void) {
    rig r;
    rig_open(&r);
    const plan_kernel_shape shape = {"decide", 2, 32, false};
    plan_driver_function *f = NULL;
    plan_driver_graph *g = NULL, *body = NULL;
    plan_driver_exec *e = NULL;
    uint64_t handle = 0, foreign = (uint64_t)(uintptr_t)&handle;
    check(!r.d->function_get(r.d, r.m, &shape, &f), "a kernel that decides");
    check(condition_result(&r, f, false, true, false, 1) == 2 && condition_result(&r, f, false, true, false, 3) == 3,
          "an IF node runs its body once, or not at all");
    check(condition_result(&r, f, true, true, true, 0) == 3 && condition_result(&r, f, true, true, true, 7) == 7,
          "a WHILE node runs its body as long as the condition holds");
    check(condition_result(&r, f, false, false, false, 1) == -1 && says("no kernel set its condition before"), "a condition that nobody sets is found");
    check(condition_result(&r, f, true, true, false, 1) == -1 && says("no kernel set its condition at the end"),
          "a loop whose body does not decide anew is found");
    static const uint8_t words[2] = {PLAN_WORD_ADDRESS, PLAN_WORD_CONDITION};
    uint64_t set[2] = {r.memory, 0};
    plan_driver_launch decides = {f, "decides", {1, 1, 1}, 32, 0, 2, set, words};
    check(r.d->launch(r.d, r.s, &decides) && says("outside a graph"), "a condition is not set outside a graph");
    if (r.d->graph_open(r.d, &g) || r.d->condition_open(r.d, g, &handle))
        abort();
    set[1] = foreign;
    check(r.d->graph_add(r.d, g, &decides, NULL, 0) && says("no condition of its graph"), "a condition of another graph is refused");
    check(r.d->graph_add_condition(r.d, g, false, foreign, "block", NULL, 0, &body) && says("is not one of this graph"), "so is a node for it");
    check(r.d->graph_instantiate(r.d, g, 0, &e) && says("has no node"), "a condition without a node is found");
    check(!r.d->graph_add_condition(r.d, g, false, handle, "block", NULL, 0, &body) &&
          r.d->graph_add_condition(r.d, g, false, handle, "block", NULL, 0, &body) && says("that has no node yet"), "a condition has one node");
    const uint32_t twice[2] = {0, 0};
    set[1] = handle;
    check(r.d->graph_add(r.d, g, &decides, twice, 2) && says("twice"), "a dependency that is listed twice is refused");
    r.d->graph_close(r.d, g);
    r.d->function_release(r.d, f);
    rig_close(&r);
}

static void test_memory_rules(void) {
    rig r;
    rig_open(&r);
    uint64_t args[2] = {r.memory, 1};
    plan_driver_launch l = rig_launch(&r, args);
    plan_address a = 0;
    check(!r.d->allocate(r.d, 24, "cache", &a) && !r.d->check(r.d), "guard bytes are intact");
    unsigned char *bytes = (unsigned char *)(uintptr_t)a, old = bytes[24];
    check(bytes[0] != 0, "fresh memory is not zero");
    bytes[24] = 0;
    check(r.d->check(r.d) && says("'cache'") && says("byte 24"), "an overrun behind the end is found");
    bytes[24] = old;
    old = bytes[-1];
    bytes[-1] = 0;
    check(r.d->check(r.d) && says("byte -1"), "an overrun before the start is found");
    bytes[-1] = old;
    check(!r.d->check(r.d), "the check is clean again");
    bytes[30] = 0;
    r.d->release(r.d, a);
    check(r.d->check(r.d) && says("byte 30"), "an overrun is found when the memory is released");
    rig_close(&r);
    rig_open(&r);
    if (r.d->allocate(r.d, 24, "gone", &a))
        abort();
    r.d->release(r.d, a);
    l = rig_launch(&r, args);
    args[0] = a;
    check(r.d->launch(r.d, r.s, &l) && says("no live allocation"), "a launch on freed memory is refused");
    check(r.d->zero(r.d, r.s, a, 8) && says("no live allocation"), "zeroing freed memory is refused");
    r.d->release(r.d, a);
    check(r.d->check(r.d) && says("not allocated"), "a second release is found");
    rig_close(&r);
}

/* ---- plans and sessions */

static void *plan_bytes;
static uint64_t plan_size;
static int64_t live; /* host allocations of the library that are not released */
static int64_t fail_allocation;
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;

static void *count_allocate(void *context, size_t bytes) {
    (void)context;
    pthread_mutex_lock(&live_lock);
    int refuse = fail_allocation > 0 && --fail_allocation == 0;
    live += !refuse;
    pthread_mutex_unlock(&live_lock);
    return refuse ? NULL : malloc(bytes);
}
static void count_release(void *context, void *pointer) {
    (void)context;
    pthread_mutex_lock(&live_lock);
    live--;
    pthread_mutex_unlock(&live_lock);
    free(pointer);
}

static plan_options host_options(void) {
    plan_options o = PLAN_OPTIONS_INIT;
    o.target = "host";
    o.threads = 2;
    o.allocator.allocate = count_allocate;
    o.allocator.release = count_release;
    return o;
}

static plan_session *ready(plan *p) {
    plan_session *s = NULL;
    if (plan_session_open(p, NULL, &s) || plan_session_warm(s) || plan_session_capture(s)) {
        printf("# %s\n", plan_error_message());
        exit(1);
    }
    return s;
}

static plan *load(const void *bytes, uint64_t size) {
    plan *p = NULL;
    plan_options o = host_options();
    if (plan_load_memory(bytes, size, &o, &p)) {
        printf("# %s\n", plan_error_message());
        exit(1);
    }
    return p;
}

static const int64_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
#define PROMPT (sizeof prompt / sizeof prompt[0])

/* The tokens that follow TOKENS[0 .. COUNT - 1], appended. */
static void continue_model(int64_t *tokens, size_t count, size_t more) {
    for (size_t i = 0; i < more; i++)
        tokens[count + i] = small_model(tokens, count + i, NULL);
}

static void test_decoding(void) {
    plan *p = load(plan_bytes, plan_size);
    plan_session *s = ready(p);
    int64_t expected[64], found[64], position = 0;
    uint64_t count = 0;
    float logits[SMALL_VOCABULARY], model[SMALL_VOCABULARY];
    memcpy(expected, prompt, sizeof prompt);
    continue_model(expected, PROMPT, 9);
    check(plan_capacity(p) == SMALL_CAPACITY && plan_prefill_limit(p) == SMALL_PREFILL && plan_has_sampling(p) &&
          !strcmp(plan_target(p), "host"), "a plan says what it is");
    check(plan_session_replay(s, 1) == PLAN_ERROR_STATE && says("no token"), "a replay without a token is refused");
    check(!plan_session_prefill(s, prompt, PROMPT), "a prompt longer than the prefill range is fed in chunks");
    small_model(prompt, PROMPT, model);
    check(!plan_session_logits(s, logits, SMALL_VOCABULARY) && !memcmp(logits, model, sizeof model), "logits of a prefill");
    check(!plan_session_replay(s, 8) && !plan_session_tokens(s, found, 9) && !memcmp(found, expected + PROMPT, 9 * 8),
          "replayed tokens are right");
    check(!plan_session_token_count(s, &count) && count == 9, "tokens are counted, those after a chunk are not");
    check(!plan_session_position(s, &position) && position == (int64_t)PROMPT + 8, "the position is known");
    small_model(expected, PROMPT + 8, model);
    check(!plan_session_logits(s, logits, SMALL_VOCABULARY) && !memcmp(logits, model, sizeof model), "logits of a replay");
    check(plan_session_logits(s, logits, 15) == PLAN_ERROR_RANGE && says("16"), "logits of another length are refused");
    check(plan_session_tokens(s, found, 10) == PLAN_ERROR_RANGE, "more tokens than were sampled are refused");
    int64_t rows[SMALL_CAPACITY];
    check(!plan_session_read_state(s, "past_tokens", rows, sizeof rows) && !memcmp(rows, expected, (PROMPT + 8) * 8), "state is read");
    plan_session *e = ready(p);
    check(!plan_session_set_eager(e, 1) && !plan_session_prefill(e, prompt, PROMPT) && !plan_session_eager(e, 8) &&
          !plan_session_tokens(e, found, 9) && !memcmp(found, expected + PROMPT, 9 * 8), "eager steps give the same tokens");
    check(!plan_session_close(e), "a session is closed");
    check(plan_free(p) == PLAN_ERROR_STATE && says("1 sessions"), "a plan with an open session is not freed");
    check(!plan_session_close(s) && !plan_free(p) && live == 0, "a plan is freed, and nothing is left");
}

static void test_rewind(void) {
    plan *p = load(plan_bytes, plan_size);
    plan_session *s = ready(p);
    int64_t expected[64], found[8], other[] = {7, 7, 7, 7, 7}, rows[SMALL_CAPACITY] = {0};
    memcpy(expected, prompt, sizeof prompt);
    check(!plan_session_prefill(s, prompt, PROMPT) && !plan_session_replay(s, 6) && !plan_session_rewind(s, 4) &&
          !plan_session_set_token(s, 5) && !plan_session_replay(s, 4), "rewind and replay");
    continue_model(expected, 5, 4);
    check(!plan_session_tokens(s, found, 4) && !memcmp(found, expected + 5, 4 * 8), "tokens after a rewind are those of the shorter text");
    check(plan_session_rewind(s, 9) == PLAN_ERROR_RANGE, "rewinding forwards is refused");
    check(!plan_session_prefill(s, other, 5) && !plan_session_rewind(s, 5) && !plan_session_set_token(s, expected[5]) &&
          !plan_session_replay(s, 3) && !plan_session_tokens(s, found, 3) && !memcmp(found, expected + 6, 3 * 8),
          "an unrelated prefill leaves no trace");
    memcpy(rows, prompt, 4 * 8);
    check(!plan_session_write_state(s, "present_tokens", rows, sizeof rows) && !plan_session_set_position(s, 4) &&
          !plan_session_set_token(s, 5) && !plan_session_replay(s, 4) && !plan_session_tokens(s, found, 4) &&
          !memcmp(found, expected + 5, 4 * 8), "state that was written and a position that was set");
    check(plan_session_set_position(s, SMALL_CAPACITY + 1) == PLAN_ERROR_RANGE, "a position beyond the capacity is refused");
    check(!plan_session_close(s) && !plan_free(p), "closed");
}

/* Two prefill signatures: chunks are as long as can be, and each is the shorter signature's where that takes as much. */
static void test_ladder(void) {
    static const struct { size_t tokens; uint64_t steps; const char *last; } cases[] = {
        {1, 1, "prefill"}, {8, 1, "prefill"}, {9, 1, "prefill_long"}, {16, 1, "prefill_long"}, {17, 2, "prefill"}, {21, 2, "prefill"}, {24, 2, "prefill"},
        {25, 2, "prefill_long"}, {32, 2, "prefill_long"}, {37, 3, "prefill"}};
    const small_options o = {.sampling = 1, .ladder = 1};
    uint64_t size;
    void *bytes = small_plan(&o, module_bytes, module_size, &size);
    plan *p = load(bytes, size);
    plan_session *s = ready(p), *e = ready(p);
    const char *name = "";
    check(plan_prefill_limit(p) == SMALL_LONG, "the limit is that of the longest signature");
    check(!plan_session_signature(s, &name) && !name, "no step was of any signature");
    check(plan_session_signature(s, NULL) == PLAN_ERROR_ARGUMENT, "a place for the name is needed");
    check(!plan_session_set_eager(e, 1), "eager");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t tokens[SMALL_CAPACITY + 2], found[3];
        float logits[SMALL_VOCABULARY], eager[SMALL_VOCABULARY], model[SMALL_VOCABULARY];
        plan_counters before, after;
        const size_t count = cases[i].tokens;
        for (size_t k = 0; k < count; k++)
            tokens[k] = (int64_t)(k * k + i) % SMALL_VOCABULARY;
        continue_model(tokens, count, 3);
        small_model(tokens, count, model);
        check(!plan_session_rewind(s, 0) && !plan_session_counters(s, &before) && !plan_session_prefill(s, tokens, count) &&
              !plan_session_counters(s, &after) && after.graph_launches - before.graph_launches == cases[i].steps, "steps of a prompt");
        check(!plan_session_signature(s, &name) && !strcmp(name, cases[i].last), "the signature of the last of them");
        check(!plan_session_logits(s, logits, SMALL_VOCABULARY) && !memcmp(logits, model, sizeof model), "their logits");
        check(!plan_session_replay(s, 2) && !plan_session_tokens(s, found, 3) && !memcmp(found, tokens + count, sizeof found), "the tokens behind");
        check(!plan_session_signature(s, &name) && !strcmp(name, "decode"), "which are decode's");
        check(!plan_session_rewind(e, 0) && !plan_session_prefill(e, tokens, count) && !plan_session_logits(e, eager, SMALL_VOCABULARY) &&
              !memcmp(eager, model, sizeof model), "the same without graphs");
    }
    check(!plan_session_close(e) && !plan_session_close(s) && !plan_free(p) && live == 0, "closed");
    free(bytes);
}

static void test_refusals(void) {
    plan *p = load(plan_bytes, plan_size);
    plan_session *s = NULL;
    int64_t many[SMALL_CAPACITY + 1] = {0}, bad[2] = {1, -1}, position;
    plan_counters a, b;
    check(!plan_session_open(p, NULL, &s), "open");
    check(plan_session_capture(s) == PLAN_ERROR_STATE && says("warm"), "capture before warm is refused");
    check(!plan_session_warm(s) && plan_session_prefill(s, prompt, 2) == PLAN_ERROR_STATE && says("captured"),
          "a prefill before capture is refused");
    check(!plan_session_capture(s) && plan_session_capture(s) == PLAN_ERROR_STATE, "a second capture is refused");
    check(plan_session_prefill(s, bad, 2) == PLAN_ERROR_RANGE && says("token 1"), "a negative token is refused");
    check(plan_session_prefill(s, many, SMALL_CAPACITY + 1) == PLAN_ERROR_CAPACITY && says("40 rows") && says("position 0") && says("41"),
          "a prompt beyond the capacity is refused");
    check(!plan_session_prefill(s, many, SMALL_CAPACITY - 2) && !plan_session_counters(s, &a) &&
          plan_session_replay(s, 3) == PLAN_ERROR_CAPACITY && says("position 38") && !plan_session_counters(s, &b) &&
          a.graph_launches == b.graph_launches, "a replay beyond the capacity is refused, and nothing is launched");
    check(!plan_session_replay(s, 2) && !plan_session_position(s, &position) && position == SMALL_CAPACITY, "the state can be filled");
    check(plan_session_replay(s, 1) == PLAN_ERROR_CAPACITY, "a full state takes no more");
    check(plan_session_replay(s, -1) == PLAN_ERROR_ARGUMENT, "negative steps are refused");
    check(plan_session_run(s, "load", NULL, NULL, 0) == PLAN_ERROR_STATE, "the load signature cannot be run");
    check(plan_session_run(s, "nothing", NULL, NULL, 0) == PLAN_ERROR_NAME, "an unknown signature is refused");
    plan_session *none = s;
    check(plan_session_replay(NULL, 1) == PLAN_ERROR_ARGUMENT && plan_session_open(NULL, NULL, &none) == PLAN_ERROR_ARGUMENT && !none,
          "null arguments are refused");
    check(!plan_session_close(s) && !plan_free(p) && live == 0, "closed");
}

static void test_metadata(void) {
    void *copy = malloc(plan_size);
    if (!copy)
        abort();
    memcpy(copy, plan_bytes, plan_size);
    plan *p = load(copy, plan_size);
    plan_session *s = ready(p);
    /* The fingerprints 0x22 and 0x33 are the only such words at multiples of 256. */
    uint64_t *decode = NULL;
    for (uint64_t at = 0; at + 8 <= plan_size; at += 256)
        if (*(uint64_t *)((char *)copy + at) == 0x22)
            decode = (uint64_t *)((char *)copy + at);
    check(decode && !plan_session_prefill(s, prompt, 3) && !plan_session_replay(s, 1), "a replay with its own metadata");
    plan_counters a, b;
    plan_session_counters(s, &a);
    if (decode)
        *decode = 0x44;
    check(plan_session_replay(s, 1) == PLAN_ERROR_METADATA && says("'decode'") && says("0x0000000000000022") && says("44"),
          "a replay with another signature's metadata is refused");
    check(plan_session_eager(s, 1) == PLAN_ERROR_METADATA, "an eager step too");
    check(plan_session_recapture(s) == PLAN_ERROR_METADATA, "a capture too");
    plan_session_counters(s, &b);
    check(a.graph_launches == b.graph_launches && a.eager_launches == b.eager_launches, "and nothing was launched");
    if (decode)
        *decode = 0x22;
    check(!plan_session_recapture(s) && !plan_session_replay(s, 1), "with the right metadata it goes on");
    if (decode) /* prefill is captured after decode */
        decode[32] = 0x44;
    check(plan_session_recapture(s) == PLAN_ERROR_METADATA && says("'prefill'") && plan_session_replay(s, 1) == PLAN_ERROR_STATE,
          "a capture that fails half-way leaves nothing captured");
    plan_session *t = NULL;
    check(!plan_session_open(p, NULL, &t) && !plan_session_warm(t) && plan_session_capture(t) == PLAN_ERROR_METADATA, "in a new session too");
    if (decode)
        decode[32] = 0x33;
    check(!plan_session_recapture(s) && !plan_session_replay(s, 1) && !plan_session_capture(t) && !plan_session_close(t), "and can be repeated");
    check(!plan_session_close(s) && !plan_free(p) && live == 0, "closed");
    free(copy);
}

static void test_bind(void) {
    plan *p = load(plan_bytes, plan_size);
    plan_session *s = NULL;
    static _Alignas(256) float mine[SMALL_VOCABULARY], other[SMALL_VOCABULARY], model[SMALL_VOCABULARY];
    plan_counters c;
    check(!plan_session_open(p, NULL, &s) && plan_session_bind(s, "decode", "logits", mine, 60) == PLAN_ERROR_RANGE, "a short binding is refused");
    check(plan_session_bind(s, "decode", "logits", (char *)mine + 4, 64) == PLAN_ERROR_ARGUMENT, "an unaligned binding is refused");
    check(plan_session_bind(s, "decode", "nothing", mine, 64) == PLAN_ERROR_NAME, "an unknown binding is refused");
    check(!plan_session_bind(s, "decode", "logits", mine, sizeof mine) && !plan_session_warm(s) && !plan_session_capture(s),
          "an output is bound before capture");
    int64_t tokens[64];
    memcpy(tokens, prompt, sizeof prompt);
    continue_model(tokens, PROMPT, 3);
    small_model(tokens, PROMPT + 1, model);
    check(!plan_session_prefill(s, prompt, PROMPT) && !plan_session_replay(s, 1) && !plan_session_wait(s) &&
          !memcmp(mine, model, sizeof model), "logits arrive at the bound address");
    check(plan_session_bind(s, "decode", "logits", other, sizeof other) == PLAN_ERROR_BINDING && says("recapture"),
          "a binding after capture is refused");
    small_model(tokens, PROMPT + 2, model);
    check(!plan_session_replay(s, 1) && !memcmp(mine, model, sizeof model), "the old graphs keep the old address");
    check(!plan_session_recapture(s) && !plan_session_counters(s, &c) && c.invalidations == 2 && c.captures == 4, "recapture drops the graphs");
    small_model(tokens, PROMPT + 3, model);
    check(!plan_session_replay(s, 1) && !memcmp(other, model, sizeof model), "after recapture the new address is used");
    check(!plan_session_close(s) && !plan_free(p) && live == 0, "closed");
}

/* An input that the model gives as an output has two bindings of one name: both move. */
static void test_bind_echo(void) {
    const small_options o = {.sampling = 1, .echo = 1};
    static _Alignas(256) int64_t mine[SMALL_PREFILL];
    int64_t found[SMALL_PREFILL] = {0};
    uint64_t size;
    void *bytes = small_plan(&o, module_bytes, module_size, &size);
    plan *p = load(bytes, size);
    plan_session *s = NULL;
    check(!plan_session_open(p, NULL, &s) && !plan_session_bind(s, "prefill", "input_ids", mine, sizeof mine) && !plan_session_warm(s) &&
          !plan_session_capture(s) && !plan_session_prefill(s, prompt, SMALL_PREFILL), "an input is bound that is an output too");
    size_t written = 0;
    check(!plan_session_read_output(s, "prefill", "input_ids", found, sizeof found, &written) && written == sizeof found &&
          !memcmp(found, prompt, written) && !memcmp(mine, prompt, written), "the output is read where the input was written");
    check(!plan_session_close(s) && !plan_free(p) && live == 0, "closed");
    free(bytes);
}

static plan_session *inner_session;
static plan_status inner_status;
static void call_from_log(void *context, int level, const char *text) {
    (void)context, (void)level, (void)text;
    if (inner_session)
        inner_status = plan_session_replay(inner_session, 1);
}

static void test_busy(void) {
    plan *p = NULL;
    plan_options o = host_options();
    o.log = call_from_log;
    plan_session *s = NULL;
    check(!plan_load_memory(plan_bytes, plan_size, &o, &p) && !plan_session_open(p, NULL, &s) && !plan_session_warm(s), "load with a log");
    inner_session = s;
    check(!plan_session_capture(s) && inner_status == PLAN_ERROR_BUSY, "a call inside a call of the same session is refused");
    inner_session = NULL;
    check(!plan_session_close(s) && !plan_free(p), "closed");
}

static void test_counters(void) {
    plan *p = load(plan_bytes, plan_size);
    plan_session *s = ready(p);
    plan_counters a, b;
    check(!plan_session_prefill(s, prompt, 4) && !plan_session_wait(s) && !plan_session_counters(s, &a) &&
          !plan_session_replay(s, 32) && !plan_session_counters(s, &b), "32 tokens");
    check(b.graph_launches - a.graph_launches == 32 && b.replays - a.replays == 32, "one graph launch a token");
    check(b.driver_allocations == a.driver_allocations, "no allocations between them");
    check(b.driver_synchronisations == a.driver_synchronisations, "no synchronisations between them");
    check(b.driver_copies == a.driver_copies, "no copies between them");
    check(b.eager_launches == 0 && b.captures == 2 && b.invalidations == 0, "no eager launches");
    double us = -1;
    check(plan_session_time(s, 1, &us) == PLAN_ERROR_STATE && !plan_session_replay(s, 1) && !plan_session_time(s, 1, &us) && us >= 0 &&
          plan_session_time(s, 2, &us) == PLAN_ERROR_RANGE, "the time of a replay");
    uint64_t launches, bytes;
    check(!plan_step_cost(p, "decode", 9, 1, &launches, &bytes) && launches == 4 && bytes == 40 + 80, "the cost of a step");
    check(!plan_session_close(s) && !plan_free(p) && live == 0, "closed");
}

typedef struct runner {
    plan *p;
    int64_t start;
    int good;
} runner;

static void *run_session(void *argument) {
    runner *r = argument;
    int64_t tokens[SMALL_CAPACITY], found[20];
    r->good = 1;
    for (int round = 0; round < 20 && r->good; round++) {
        plan_session *s = ready(r->p);
        for (int64_t i = 0; i < 5; i++)
            tokens[i] = (r->start + i * (round + 1)) % SMALL_VOCABULARY;
        continue_model(tokens, 5, 20);
        r->good = !plan_session_prefill(s, tokens, 5) && !plan_session_replay(s, 19) && !plan_session_tokens(s, found, 20) &&
                  !memcmp(found, tokens + 5, sizeof found);
        r->good &= !plan_session_close(s);
    }
    return NULL;
}

static void test_threads(void) {
    plan *p = load(plan_bytes, plan_size);
    runner r[3] = {{p, 1, 0}, {p, 5, 0}, {p, 11, 0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, run_session, &r[i]))
            abort();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    check(r[0].good && r[1].good && r[2].good, "three sessions of one plan in parallel threads");
    check(!plan_free(p) && live == 0, "closed");
}

/* Everything that a program does; the first status that is not OK. */
static plan_status whole_run(const plan_options *o) {
    plan *p = NULL;
    plan_session *s = NULL;
    int64_t tokens[4];
    float logits[SMALL_VOCABULARY];
    double us;
    uint64_t bytes;
    plan_status status = plan_load_memory(plan_bytes, plan_size, o, &p);
    if (!status)
        status = plan_session_open(p, NULL, &s);
    if (!status)
        status = plan_session_warm(s);
    if (!status)
        status = plan_session_capture(s);
    if (!status)
        status = plan_session_prefill(s, prompt, PROMPT);
    if (!status)
        status = plan_session_time(s, 3, &us) == PLAN_ERROR_STATE ? PLAN_OK : PLAN_ERROR_STATE;
    if (!status)
        status = plan_session_replay(s, 3);
    if (!status)
        status = plan_session_time(s, 3, &us);
    if (!status)
        status = plan_session_eager(s, 1);
    if (!status)
        status = plan_session_tokens(s, tokens, 4);
    if (!status)
        status = plan_session_logits(s, logits, SMALL_VOCABULARY);
    if (!status)
        status = plan_device_bytes(p, &bytes);
    if (!status)
        status = plan_session_rewind(s, 2);
    if (!status)
        status = plan_session_recapture(s);
    if (!status && live == 0)
        status = PLAN_ERROR_STATE;
    plan_status closed = plan_session_close(s);
    if (!status)
        status = closed;
    if (plan_free(p))
        abort(); /* a session is still counted as open */
    return status;
}

static void test_failures(void) {
    plan_options o = host_options();
    int good = 1, done = 0;
    uint64_t calls = 0;
    for (uint64_t n = 1; n < 1000 && !done; n++) {
        o.fail_call = n;
        plan_status status = whole_run(&o);
        done = status == PLAN_OK;
        calls = n - 1;
        if (!done && (status != PLAN_ERROR_DRIVER || live != 0)) {
            printf("# call %llu: %s, %lld left: %s\n", (unsigned long long)n, plan_status_name(status), (long long)live, plan_error_message());
            good = 0;
        }
    }
    check(good && done && calls > 40, "each driver call may fail: DRIVER, and nothing is left");
    good = 1, done = 0, o.fail_call = 0, calls = 0;
    for (int64_t n = 1; n < 1000 && !done; n++) {
        fail_allocation = n;
        plan_status status = whole_run(&o);
        done = status == PLAN_OK && fail_allocation > 0;
        calls++;
        if (!done && (status != PLAN_ERROR_MEMORY || live != 0)) {
            printf("# allocation %lld: %s, %lld left: %s\n", (long long)n, plan_status_name(status), (long long)live, plan_error_message());
            good = 0;
        }
    }
    fail_allocation = 0;
    check(good && done && calls > 40, "each host allocation may fail: MEMORY, and nothing is left");
}

static void test_variants(void) {
    uint64_t size;
    int64_t expected[64], token;
    float logits[SMALL_VOCABULARY], model[SMALL_VOCABULARY];
    small_options o = {0};
    memcpy(expected, prompt, sizeof prompt);
    continue_model(expected, PROMPT, 6);
    void *bytes = small_plan(&o, module_bytes, module_size, &size);
    plan *p = load(bytes, size);
    plan_session *s = ready(p);
    check(!plan_session_prefill(s, prompt, PROMPT) && plan_session_replay(s, 1) == PLAN_ERROR_STATE, "without a tail the token must be set");
    check(!plan_session_set_token(s, expected[PROMPT]) && plan_session_replay(s, 2) == PLAN_ERROR_ARGUMENT, "and only one step is allowed");
    small_model(expected, PROMPT + 1, model);
    check(!plan_session_replay(s, 1) && !plan_session_logits(s, logits, SMALL_VOCABULARY) && !memcmp(logits, model, sizeof model),
          "a plan without a tail");
    check(plan_session_tokens(s, &token, 1) == PLAN_ERROR_RANGE, "and it has no tokens");
    check(!plan_session_close(s) && !plan_free(p), "closed");
    free(bytes);

    small_options two = {.sampling = 1, .two_segments = 1};
    bytes = small_plan(&two, module_bytes, module_size, &size);
    p = load(bytes, size);
    s = ready(p);
    plan_counters a, b;
    int64_t found[5];
    check(!plan_session_prefill(s, prompt, PROMPT) && !plan_session_counters(s, &a) && !plan_session_replay(s, 4) &&
          !plan_session_counters(s, &b) && b.graph_launches - a.graph_launches == 8 && !plan_session_tokens(s, found, 5) &&
          !memcmp(found, expected + PROMPT, 5 * 8), "two segments are two graph launches a step");
    check(!plan_session_close(s) && !plan_free(p), "closed");
    free(bytes);

    small_options loose = {.sampling = 1, .no_edges = 1};
    bytes = small_plan(&loose, module_bytes, module_size, &size);
    p = load(bytes, size);
    s = ready(p);
    check(!plan_session_prefill(s, prompt, PROMPT) && !plan_session_replay(s, 4) && !plan_session_tokens(s, found, 5) &&
          memcmp(found, expected + PROMPT, 5 * 8) != 0, "missing edges show: the host driver runs another order");
    check(!plan_session_close(s) && !plan_free(p), "closed");
    free(bytes);

    small_options stray = {.sampling = 1, .stray = 1};
    bytes = small_plan(&stray, module_bytes, module_size, &size);
    p = load(bytes, size);
    s = ready(p);
    check(!plan_session_prefill(s, prompt, 3) && plan_session_wait(s) == PLAN_ERROR_DRIVER && says("'ring'") && says("524288"),
          "a kernel that writes beyond its region is found");
    check(plan_session_close(s) == PLAN_ERROR_DRIVER && plan_free(p) == PLAN_OK && live == 0, "and closing says so too");
    free(bytes);
}

static void test_loading(void) {
    plan *p = (plan *)&p;
    plan_options o = host_options();
    check(plan_load("/nonexistent/x.plan", &o, &p) == PLAN_ERROR_FILE && !p && says("/nonexistent/x.plan: cannot be opened"),
          "a missing file");
    check(plan_load("/", &o, &p) == PLAN_ERROR_FILE && says("expected a file"), "a folder");
    check(plan_load_memory(plan_bytes, 100, &o, &p) == PLAN_ERROR_FORMAT, "a cut plan");
    o.target = "tpu";
    check(plan_load_memory(plan_bytes, plan_size, &o, &p) == PLAN_ERROR_ARGUMENT && says("tpu"), "an unknown target");
    o.target = "cuda";
    check(plan_load_memory(plan_bytes, plan_size, &o, &p) == PLAN_ERROR_TARGET, "a target without code");
    o = host_options();
    o.allocator.release = NULL;
    check(plan_load_memory(plan_bytes, plan_size, &o, &p) == PLAN_ERROR_ARGUMENT && says("allocator"), "half an allocator");
    o = host_options();
    o.target = NULL;
    check(!plan_load_memory(plan_bytes, plan_size, &o, &p) && !strcmp(plan_target(p), "host") && !plan_free(p), "the target is found");
    check(live == 0, "and nothing is left");
}

int main(int argc, char **argv) {
    const small_options o = {.sampling = 1};
    module_bytes = small_compile(&module_size);
    plan_bytes = small_plan(&o, module_bytes, module_size, &plan_size);
    if (argc > 1) { /* for trying plan-run by hand */
        rmdir(small_folder());
        FILE *f = fopen(argv[1], "wb");
        return !f || fwrite(plan_bytes, 1, plan_size, f) != plan_size || fclose(f) != 0;
    }
    test_fibres();
    test_capture_rules();
    test_cluster_rules();
    test_condition_rules();
    test_memory_rules();
    test_decoding();
    test_rewind();
    test_ladder();
    test_metadata();
    test_bind();
    test_bind_echo();
    test_busy();
    test_counters();
    test_threads();
    test_failures();
    test_variants();
    test_loading();
    test_refusals();
    free(plan_bytes);
    free(module_bytes);
    rmdir(small_folder());
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
