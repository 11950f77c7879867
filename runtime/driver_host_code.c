/* driver_host_code.c - the strict emulated driver: modules and launches. */
#include "driver_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fibre.h"
#include "host_abi.h"
#include "host_cluster.h"

#if defined(__x86_64__)
#define HOST_TARGET "host-x86_64"
#elif defined(__aarch64__)
#define HOST_TARGET "host-aarch64"
#else
#define HOST_TARGET "host-unknown"
#endif

#define MAX_ARGS 64u

struct plan_driver_module {
    void *handle;
    int file; /* stays open: dlopen knows a library by its name, and this number is in the name */
};

struct plan_driver_function {
    plan_host_kernel *entry;
    plan_host_cluster_kernel *place; /* of a kernel for clusters of so many blocks; else NULL and 0 */
    uint32_t arg_count, block, cluster;
    bool fibres;
    char name[1];
};

static int host_rank_target(plan_driver *d, const char *target) {
    (void)d;
    return strcmp(target, HOST_TARGET) == 0 ? 0 : -1;
}

/* A file without a name that holds the module, or -1 with errno set. */
static int module_file(const void *bytes, uint64_t size) {
    int file = memfd_create("plan-module", MFD_CLOEXEC);
    if (file < 0) {
        char path[] = "/tmp/plan-module-XXXXXX";
        file = mkstemp(path);
        if (file < 0)
            return -1;
        unlink(path);
    }
    for (uint64_t at = 0; at < size;) {
        ssize_t n = write(file, (const char *)bytes + at, (size_t)(size - at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(file);
            return -1;
        }
        at += (uint64_t)n;
    }
    return file;
}

static void host_module_unload(plan_driver *d, plan_driver_module *m) {
    if (!m)
        return;
    if (m->handle)
        dlclose(m->handle);
    if (m->file >= 0)
        close(m->file);
    plan_host_release(&d->allocator, m);
}

static plan_status host_module_load(plan_driver *d, const void *bytes, uint64_t size, const char *target,
                                    plan_driver_module **out) {
    *out = NULL;
    plan_status status = plan_host_enter(d, "load a module", false);
    if (status)
        return status;
    plan_driver_module *m = plan_host_allocate(&d->allocator, 1, sizeof *m);
    if (!m)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a module");
    m->file = module_file(bytes, size);
    if (m->file < 0) {
        status = plan_fail(PLAN_ERROR_DRIVER, "host driver: module %s: cannot be written to memory: %s", target, strerror(errno));
        goto failed;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->handle) {
        status = plan_fail(PLAN_ERROR_DRIVER, "host driver: module %s: %s", target, dlerror());
        goto failed;
    }
    const plan_host_services **services = dlsym(m->handle, "plan_host");
    if (!services) {
        status = plan_fail(PLAN_ERROR_DRIVER, "host driver: module %s has no variable plan_host", target);
        goto failed;
    }
    *services = &plan_fibre_services;
    *out = m;
    return PLAN_OK;
failed:
    host_module_unload(d, m);
    return status;
}

/* F is a kernel for clusters, of as many blocks as SYMBOL of its module says; plans do not say it. */
static plan_status set_cluster(plan_driver_function *f, void *symbol) {
    int count;
    memcpy(&f->place, &symbol, sizeof symbol);
    (void)f->place(&count);
    if (count < 1 || count > PLAN_CLUSTER_MAX_BLOCKS)
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: kernel '%s': a cluster has 1 to %u blocks, not %d", f->name,
                         (unsigned)PLAN_CLUSTER_MAX_BLOCKS, count);
    f->cluster = (uint32_t)count;
    return PLAN_OK;
}

static plan_status host_function_get(plan_driver *d, plan_driver_module *m, const plan_kernel_shape *shape,
                                     plan_driver_function **out) {
    *out = NULL;
    plan_status status = plan_host_enter(d, "get a function", false);
    if (status)
        return status;
    if (shape->arg_count > MAX_ARGS || shape->block < 1 || shape->block > PLAN_FIBRE_MAX_THREADS)
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: kernel '%s': %u arguments, %u threads; at most %u and %u", shape->name,
                         shape->arg_count, shape->block, MAX_ARGS, (unsigned)PLAN_FIBRE_MAX_THREADS);
    void *symbol = dlsym(m->handle, shape->name);
    if (!symbol)
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: the module has no kernel '%s'", shape->name);
    static const char suffix[] = "_cluster";
    size_t length = strlen(shape->name);
    plan_driver_function *f = plan_host_allocate(&d->allocator, 1, sizeof *f + length + sizeof suffix);
    if (!f)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for kernel '%s'", shape->name);
    memcpy(&f->entry, &symbol, sizeof symbol); /* POSIX: a function's address from dlsym */
    f->arg_count = shape->arg_count;
    f->block = shape->block;
    f->fibres = shape->fibres;
    memcpy(f->name, shape->name, length);
    memcpy(f->name + length, suffix, sizeof suffix);
    symbol = dlsym(m->handle, f->name);
    f->name[length] = 0;
    status = symbol ? set_cluster(f, symbol) : PLAN_OK;
    if (status)
        plan_host_release(&d->allocator, f);
    else
        *out = f;
    return status;
}

static void host_function_release(plan_driver *d, plan_driver_function *f) { plan_host_release(&d->allocator, f); }

plan_status plan_host_describe(plan_host_driver *h, const plan_driver_launch *l, const unsigned long long *args,
                               plan_host_job *out) {
    const plan_driver_function *f = l->function;
    if (l->arg_count != f->arg_count || l->block != f->block)
        return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': kernel '%s' takes %u arguments and %u threads, not %u and %u", l->label,
                         f->name, f->arg_count, f->block, l->arg_count, l->block);
    for (uint32_t i = 0; i < l->arg_count; i++)
        if (l->pointers[i] == PLAN_WORD_ADDRESS && plan_host_find(h, l->args[i], 0, "argument"))
            return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': kernel '%s': argument %u, 0x%llx, points into no live allocation",
                             l->label, f->name, i, (unsigned long long)l->args[i]);
    if (f->cluster && l->grid[0] % f->cluster)
        return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': kernel '%s': %u blocks along x are no whole clusters of %u", l->label,
                         f->name, l->grid[0], f->cluster);
    plan_host_job job = {f->entry, f->name, l->label, args, {l->grid[0], l->grid[1], l->grid[2]}, l->block, f->fibres,
                         f->place, f->cluster};
    *out = job;
    return PLAN_OK;
}

static plan_status host_launch(plan_driver *d, plan_driver_stream *s, const plan_driver_launch *l) {
    (void)s;
    plan_host_driver *h = (plan_host_driver *)d;
    unsigned long long args[MAX_ARGS] = {0};
    plan_host_job job;
    plan_status status = plan_host_enter(d, "launch", false);
    if (!status)
        status = plan_host_describe(h, l, args, &job);
    for (uint32_t i = 0; i < l->arg_count && !status; i++)
        if (l->pointers[i] == PLAN_WORD_CONDITION)
            status = plan_fail(PLAN_ERROR_DRIVER, "launch '%s': sets the condition of a graph's node, outside a graph", l->label);
    if (status)
        return status;
    for (uint32_t i = 0; i < l->arg_count; i++)
        args[i] = l->args[i];
    atomic_fetch_add(&d->eager_launches, 1);
    return plan_host_pool_run(h->pool, &job);
}

void plan_host_fill_code(plan_driver *d) {
    d->rank_target = host_rank_target;
    d->module_load = host_module_load;
    d->module_unload = host_module_unload;
    d->function_get = host_function_get;
    d->function_release = host_function_release;
    d->launch = host_launch;
}
