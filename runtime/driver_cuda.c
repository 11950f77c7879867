/* driver_cuda.c - the driver table over libcuda.so.1, which is opened at run time. One primary context a plan. */
#include "driver_cuda.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define SHARED_CARVEOUT 58          /* per cent of the cache as shared memory: 132 KB of an H200's 228 (tests/bench/RESULTS.md) */

struct plan_driver_module {
    cu_module module;
    bool waits; /* its kernels begin by waiting for the kernels before them: code for sm_90 and later (see FORMAT.md) */
};
struct plan_driver_event {
    cu_event event;
};

/* The text says which call failed, for what, and what the driver says of it. */
plan_status plan_cuda_fail(cuda_driver *c, cu_result result, const char *call, const char *purpose) {
    const char *name = NULL, *text = NULL;
    if (c->api.get_error_name)
        (void)c->api.get_error_name(result, &name);
    if (c->api.get_error_string)
        (void)c->api.get_error_string(result, &text);
    return plan_fail(result == CU_OUT_OF_MEMORY ? PLAN_ERROR_MEMORY : PLAN_ERROR_DRIVER, "%s for %s: %s (%d): %s", call, purpose,
                     name ? name : "unknown error", result, text ? text : "no text");
}

/* The calling thread's context is changed only while a call runs. */
bool plan_cuda_enter(cuda_driver *c, plan_status *status, const char *purpose) {
    cu_context present = NULL;
    if (c->api.context_current(&present) == 0 && present == c->context)
        return false;
    cu_result result = c->api.context_push(c->context);
    if (result) {
        *status = plan_cuda_fail(c, result, "cuCtxPushCurrent", purpose);
        return false;
    }
    return true;
}

void plan_cuda_leave(cuda_driver *c, bool pushed) {
    cu_context popped;
    if (pushed)
        (void)c->api.context_pop(&popped);
}

/* 0 for the very architecture, more the further away, negative when it cannot run here. */
static int cuda_rank_target(plan_driver *d, const char *target) {
    cuda_driver *c = (cuda_driver *)d;
    char exact[32];
    snprintf(exact, sizeof exact, "sm_%d%da", c->major, c->minor);
    if (strcmp(target, exact) == 0)
        return 0;
    if (strcmp(target, "ptx") == 0)
        return 100;
    for (int minor = c->minor; minor >= 0; minor--) {
        snprintf(exact, sizeof exact, "sm_%d%d", c->major, minor);
        if (strcmp(target, exact) == 0)
            return 1 + c->minor - minor;
    }
    return -1;
}

static plan_status cuda_allocate(plan_driver *d, uint64_t bytes, const char *purpose, plan_address *out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    cu_deviceptr address = 0;
    char text[96];
    snprintf(text, sizeof text, "%" PRIu64 " bytes of region '%.40s'", bytes, purpose);
    CALL(c, status, "cuMemAlloc", text, c->api.mem_alloc(&address, bytes ? (size_t)bytes : 1));
    if (status)
        return status;
    atomic_fetch_add(&d->allocations, 1);
    *out = address;
    return PLAN_OK;
}

static void cuda_release(plan_driver *d, plan_address address) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (address)
        CALL(c, status, "cuMemFree", "a region", c->api.mem_free(address));
}

static plan_status cuda_allocate_pinned(plan_driver *d, uint64_t bytes, const char *purpose, void **host,
                                        plan_address *device) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    void *memory = NULL;
    cu_deviceptr address = 0;
    CALL(c, status, "cuMemHostAlloc", purpose,
         c->api.host_alloc(&memory, bytes ? (size_t)bytes : 1, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP));
    if (status)
        return status;
    CALL(c, status, "cuMemHostGetDevicePointer", purpose, c->api.host_device_pointer(&address, memory, 0));
    if (status) {
        plan_status ignored = PLAN_OK;
        CALL(c, ignored, "cuMemFreeHost", purpose, c->api.host_free(memory));
        return status;
    }
    atomic_fetch_add(&d->allocations, 1);
    *host = memory;
    *device = address;
    return PLAN_OK;
}

static void cuda_release_pinned(plan_driver *d, void *host) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (host)
        CALL(c, status, "cuMemFreeHost", "pinned memory", c->api.host_free(host));
}

static plan_status cuda_adopt(plan_driver *d, plan_address address, uint64_t bytes) {
    (void)d, (void)address, (void)bytes;
    return PLAN_OK;
}
static void cuda_disown(plan_driver *d, plan_address address) { (void)d, (void)address; }
static plan_status cuda_check(plan_driver *d) {
    (void)d;
    return PLAN_OK;
}

static plan_status cuda_in_use(plan_driver *d, uint64_t *out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    size_t left = 0, all = 0;
    CALL(c, status, "cuMemGetInfo", "memory in use", c->api.mem_info(&left, &all));
    if (!status)
        *out = all - left;
    return status;
}

/* Our streams do not wait for the default stream, so work on it must be complete before the call returns. */
static plan_status settle(cuda_driver *c, const plan_driver_stream *stream, const char *purpose) {
    plan_status status = PLAN_OK;
    if (!stream)
        CALL(c, status, "cuStreamSynchronize", purpose, c->api.stream_synchronize(NULL));
    return status;
}

static plan_status cuda_zero(plan_driver *d, plan_driver_stream *stream, plan_address to, uint64_t bytes) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (bytes)
        CALL(c, status, "cuMemsetD8Async", "zeroing a region", c->api.memset_async(to, 0, (size_t)bytes, plan_cuda_stream(stream)));
    return status ? status : settle(c, stream, "zeroing a region");
}

static plan_status cuda_to_device(plan_driver *d, plan_driver_stream *stream, plan_address to, const void *from,
                                  uint64_t bytes) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    /* From pageable memory the driver stages the bytes before it returns. */
    if (bytes)
        CALL(c, status, "cuMemcpyHtoDAsync", "a copy to the device", c->api.copy_to(to, from, (size_t)bytes, plan_cuda_stream(stream)));
    if (status)
        return status;
    atomic_fetch_add(&d->copies, 1);
    return settle(c, stream, "a copy to the device");
}

static plan_status cuda_from_device(plan_driver *d, plan_driver_stream *stream, void *to, plan_address from, uint64_t bytes) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (bytes)
        CALL(c, status, "cuMemcpyDtoHAsync", "a copy from the device", c->api.copy_from(to, from, (size_t)bytes, plan_cuda_stream(stream)));
    if (!status)
        CALL(c, status, "cuStreamSynchronize", "a copy from the device", c->api.stream_synchronize(plan_cuda_stream(stream)));
    if (!status)
        atomic_fetch_add(&d->copies, 1);
    return status;
}

static plan_status cuda_on_device(plan_driver *d, plan_driver_stream *stream, plan_address to, plan_address from,
                                  uint64_t bytes) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (bytes)
        CALL(c, status, "cuMemcpyDtoDAsync", "a copy on the device", c->api.copy_on(to, from, (size_t)bytes, plan_cuda_stream(stream)));
    if (status)
        return status;
    atomic_fetch_add(&d->copies, 1);
    return settle(c, stream, "a copy on the device");
}

static plan_status cuda_module_load(plan_driver *d, const void *bytes, uint64_t size, const char *target,
                                    plan_driver_module **out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    char log[1024] = "";
    int options[2] = {CU_JIT_LOG_BUFFER, CU_JIT_LOG_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)sizeof log};
    *out = NULL;
    /* The driver wants PTX as text with its NUL; a cubin knows its own size. */
    char *text = NULL;
    if (strcmp(target, "ptx") == 0) {
        text = plan_host_allocate(&d->allocator, (size_t)size + 1, 1);
        if (!text)
            return plan_fail(PLAN_ERROR_MEMORY, "no memory for %" PRIu64 " bytes of PTX", size);
        memcpy(text, bytes, (size_t)size);
    }
    plan_driver_module *m = plan_host_allocate(&d->allocator, 1, sizeof *m);
    if (!m)
        status = plan_fail(PLAN_ERROR_MEMORY, "no memory for a module");
    else {
        m->waits = strncmp(target, "sm_", 3) == 0 && strtol(target + 3, NULL, 10) >= 90;
        CALL(c, status, "cuModuleLoadDataEx", target,
             c->api.module_load(&m->module, text ? (const void *)text : bytes, 2, options, values));
    }
    plan_host_release(&d->allocator, text);
    if (status) {
        plan_host_release(&d->allocator, m);
        log[sizeof log - 1] = 0;
        return log[0] ? plan_fail(status, "%.900s; the driver's log: %s", plan_error_message(), log) : status;
    }
    *out = m;
    return PLAN_OK;
}

static void cuda_module_unload(plan_driver *d, plan_driver_module *m) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (m)
        CALL(c, status, "cuModuleUnload", "a module", c->api.module_unload(m->module));
    plan_host_release(&d->allocator, m);
}

/* With lazy loading a function is loaded by its first launch unless it is asked for. */
static cu_result load_now(cuda_driver *c, cu_function function) {
    int registers;
    if (c->api.function_load)
        return c->api.function_load(function);
    return c->api.function_attribute(&registers, CU_FUNCTION_REGISTERS, function);
}

static plan_status cuda_function_get(plan_driver *d, plan_driver_module *m, const plan_kernel_shape *shape,
                                     plan_driver_function **out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    *out = NULL;
    if (shape->arg_count > CUDA_MAX_ARGS)
        return plan_fail(PLAN_ERROR_DRIVER, "kernel '%s': %u arguments; at most %u", shape->name, shape->arg_count, CUDA_MAX_ARGS);
    plan_driver_function *f = plan_host_allocate(&d->allocator, 1, sizeof *f);
    if (!f)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for kernel '%s'", shape->name);
    f->waits = m->waits;
    CALL(c, status, "cuModuleGetFunction", shape->name, c->api.module_get_function(&f->function, m->module, shape->name));
    if (!status)
        CALL(c, status, "cuFuncLoad", shape->name, load_now(c, f->function));
    /* One split of the cache for all: a multiprocessor must be idle to change it, so kernels with different ones do not overlap. What
     * is left to the cache bounds how many loads are in flight. */
    if (!status)
        CALL(c, status, "cuFuncSetAttribute", shape->name,
             c->api.function_set_attribute(f->function, CU_FUNCTION_SHARED_CARVEOUT, SHARED_CARVEOUT));
    if (!status && m->waits) /* sm_90 and later: clusters of 16 blocks too */
        CALL(c, status, "cuFuncSetAttribute", shape->name, c->api.function_set_attribute(f->function, CU_FUNCTION_ANY_CLUSTER, 1));
    if (status)
        plan_host_release(&d->allocator, f);
    else
        *out = f;
    return status;
}

static void cuda_function_release(plan_driver *d, plan_driver_function *f) { plan_host_release(&d->allocator, f); }

static plan_status cuda_stream_open(plan_driver *d, void *given, plan_driver_stream **out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    plan_driver_stream *s = plan_host_allocate(&d->allocator, 1, sizeof *s);
    *out = NULL;
    if (!s)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for a stream");
    s->own = given == NULL;
    s->stream = given;
    if (s->own)
        CALL(c, status, "cuStreamCreate", "a session", c->api.stream_create(&s->stream, CU_STREAM_NONBLOCKING));
    if (status)
        plan_host_release(&d->allocator, s);
    else
        *out = s;
    return status;
}

static void cuda_stream_close(plan_driver *d, plan_driver_stream *s) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (s && s->own)
        CALL(c, status, "cuStreamDestroy", "a session", c->api.stream_destroy(s->stream));
    plan_host_release(&d->allocator, s);
}

static plan_status cuda_synchronise(plan_driver *d, plan_driver_stream *s) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    atomic_fetch_add(&d->synchronisations, 1);
    CALL(c, status, "cuStreamSynchronize", "a session", c->api.stream_synchronize(plan_cuda_stream(s)));
    return status;
}

/* The driver reads each argument with the size that the kernel declares; the low bytes come first. */
plan_status plan_cuda_arguments(cuda_driver *c, const plan_driver_launch *l, void **out) {
    plan_status status = PLAN_OK;
    if (l->arg_count > CUDA_MAX_ARGS)
        return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': %u arguments; at most %u", l->label, l->arg_count, CUDA_MAX_ARGS);
    for (uint32_t i = 0; i < l->arg_count; i++)
        memcpy(&out[i], &(const void *){&l->args[i]}, sizeof out[i]);
    if (l->shared) /* the default leaves 48 KB less what the kernel declares */
        CALL(c, status, "cuFuncSetAttribute", l->label,
             c->api.function_set_attribute(l->function->function, CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)l->shared));
    return status;
}

static plan_status cuda_launch(plan_driver *d, plan_driver_stream *s, const plan_driver_launch *l) {
    cuda_driver *c = (cuda_driver *)d;
    void *arguments[CUDA_MAX_ARGS];
    plan_status status = plan_cuda_arguments(c, l, arguments);
    if (status)
        return status;
    CALL(c, status, "cuLaunchKernel", l->label,
         c->api.launch_kernel(l->function->function, l->grid[0], l->grid[1], l->grid[2], l->block, 1, 1, l->shared, plan_cuda_stream(s),
                              arguments, NULL));
    if (!status)
        atomic_fetch_add(&d->eager_launches, 1);
    return status;
}

static plan_status cuda_event_open(plan_driver *d, plan_driver_event **out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    plan_driver_event *e = plan_host_allocate(&d->allocator, 1, sizeof *e);
    *out = NULL;
    if (!e)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for an event");
    CALL(c, status, "cuEventCreate", "timing", c->api.event_create(&e->event, 0));
    if (status)
        plan_host_release(&d->allocator, e);
    else
        *out = e;
    return status;
}

static void cuda_event_close(plan_driver *d, plan_driver_event *e) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (e)
        CALL(c, status, "cuEventDestroy", "timing", c->api.event_destroy(e->event));
    plan_host_release(&d->allocator, e);
}

static plan_status cuda_event_record(plan_driver *d, plan_driver_stream *s, plan_driver_event *e) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    CALL(c, status, "cuEventRecord", "timing", c->api.event_record(e->event, plan_cuda_stream(s)));
    return status;
}

static plan_status cuda_event_elapsed(plan_driver *d, plan_driver_event *from, plan_driver_event *to, double *microseconds) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    float milliseconds = 0;
    CALL(c, status, "cuEventElapsedTime", "timing", c->api.event_elapsed(&milliseconds, from->event, to->event));
    if (!status)
        *microseconds = (double)milliseconds * 1e3;
    return status;
}

/* libcuda stays open: it does not take being unloaded well. */
static void cuda_close(plan_driver *d) {
    cuda_driver *c = (cuda_driver *)d;
    if (c->retained)
        (void)c->api.context_release(c->device);
    plan_allocator allocator = d->allocator;
    plan_host_release(&allocator, c);
}

static void fill_table(plan_driver *d) {
    d->close = cuda_close;
    d->rank_target = cuda_rank_target;
    d->allocate = cuda_allocate;
    d->release = cuda_release;
    d->allocate_pinned = cuda_allocate_pinned;
    d->release_pinned = cuda_release_pinned;
    d->adopt = cuda_adopt;
    d->disown = cuda_disown;
    d->check = cuda_check;
    d->in_use = cuda_in_use;
    d->zero = cuda_zero;
    d->to_device = cuda_to_device;
    d->from_device = cuda_from_device;
    d->on_device = cuda_on_device;
    d->module_load = cuda_module_load;
    d->module_unload = cuda_module_unload;
    d->function_get = cuda_function_get;
    d->function_release = cuda_function_release;
    d->stream_open = cuda_stream_open;
    d->stream_close = cuda_stream_close;
    d->synchronise = cuda_synchronise;
    d->launch = cuda_launch;
    plan_cuda_fill_graphs(d);
    d->event_open = cuda_event_open;
    d->event_close = cuda_event_close;
    d->event_record = cuda_event_record;
    d->event_elapsed = cuda_event_elapsed;
}

static void find_symbol(void *library, const char *symbol, void *function) {
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof address); /* POSIX: a function's address from dlsym */
}

/* NULL, or the name of the symbol that the driver lacks. */
static const char *find_symbols(cuda_driver *c) {
#define CU_FIND(member, symbol, parameters) \
    find_symbol(c->library, symbol, &c->api.member); \
    if (!c->api.member) \
        return symbol;
#define CU_FIND_OPTIONAL(member, symbol, parameters) find_symbol(c->library, symbol, &c->api.member);
    CU_REQUIRED(CU_FIND)
    CU_OPTIONAL(CU_FIND_OPTIONAL)
    return NULL;
}

static plan_status open_device(cuda_driver *c, int ordinal) {
    int count = 0;
    char name[64] = "";
    cu_result result = c->api.init(0);
    if (result) {
        (void)plan_cuda_fail(c, result, "cuInit", "target cuda");
        return plan_fail(PLAN_ERROR_TARGET, "%.1000s", plan_error_message());
    }
    if ((result = c->api.device_get_count(&count)) != 0)
        return plan_cuda_fail(c, result, "cuDeviceGetCount", "target cuda");
    if (ordinal < 0 || ordinal >= count)
        return plan_fail(PLAN_ERROR_TARGET, "target cuda: device %d; there are %d devices", ordinal, count);
    if ((result = c->api.device_get(&c->device, ordinal)) != 0)
        return plan_cuda_fail(c, result, "cuDeviceGet", "target cuda");
    if ((result = c->api.device_get_name(name, sizeof name, c->device)) != 0)
        return plan_cuda_fail(c, result, "cuDeviceGetName", "target cuda");
    if ((result = c->api.device_get_attribute(&c->major, CU_COMPUTE_MAJOR, c->device)) != 0 ||
        (result = c->api.device_get_attribute(&c->minor, CU_COMPUTE_MINOR, c->device)) != 0)
        return plan_cuda_fail(c, result, "cuDeviceGetAttribute", "the compute capability");
    if ((result = c->api.context_retain(&c->context, c->device)) != 0)
        return plan_cuda_fail(c, result, "cuDevicePrimaryCtxRetain", name);
    c->retained = true;
    name[sizeof name - 1] = 0;
    snprintf(c->base.target, sizeof c->base.target, "sm_%d%d%s (%s)", c->major, c->minor, c->major >= 9 ? "a" : "", name);
    return PLAN_OK;
}

plan_status plan_driver_cuda_open(const plan_driver_options *options, plan_driver **out) {
    *out = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return plan_fail(PLAN_ERROR_TARGET, "target cuda: no driver: %s", dlerror());
    cuda_driver *c = plan_host_allocate(&options->allocator, 1, sizeof *c);
    if (!c)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for the driver");
    c->library = library;
    c->base.allocator = options->allocator;
    fill_table(&c->base);
    const char *missing = find_symbols(c);
    plan_status status = missing ? plan_fail(PLAN_ERROR_TARGET, "target cuda: the driver is too old: it has no %s", missing)
                                 : open_device(c, options->device);
    if (status) {
        cuda_close(&c->base);
        return status;
    }
    *out = &c->base;
    return PLAN_OK;
}
