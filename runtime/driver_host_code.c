/* driver_host_code.c - the strict emulated driver: modules, launches and graphs. */
#include "driver_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fibre.h"
#include "host_abi.h"

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
    uint32_t arg_count, block;
    bool fibres;
    char name[1];
};

typedef struct host_node {
    plan_host_job job;
    uint32_t first_arg;                    /* in args */
    uint32_t first_dependency, dependencies; /* in the graph's list */
} host_node;

struct plan_driver_graph {
    plan_driver_graph *next;
    pthread_t owner;
    bool open;
    host_node *nodes;
    uint32_t count, capacity;
    unsigned long long *args;
    uint32_t arg_count, arg_capacity;
    uint32_t *dependencies;
    uint32_t dependency_count, dependency_capacity;
};

struct plan_driver_exec {
    uint32_t count;
    plan_host_job *jobs; /* in the order in which they run */
    unsigned long long *args;
};

plan_driver_graph *plan_host_graph_next(plan_driver_graph *g) { return g->next; }
const pthread_t *plan_host_graph_owner(const plan_driver_graph *g) { return &g->owner; }

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
    size_t length = strlen(shape->name);
    plan_driver_function *f = plan_host_allocate(&d->allocator, 1, sizeof *f + length);
    if (!f)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for kernel '%s'", shape->name);
    memcpy(&f->entry, &symbol, sizeof symbol); /* POSIX: a function's address from dlsym */
    f->arg_count = shape->arg_count;
    f->block = shape->block;
    f->fibres = shape->fibres;
    memcpy(f->name, shape->name, length + 1);
    *out = f;
    return PLAN_OK;
}

static void host_function_release(plan_driver *d, plan_driver_function *f) { plan_host_release(&d->allocator, f); }

/* Checks a launch and describes it; ARGS is where its arguments will lie. */
static plan_status describe(plan_host_driver *h, const plan_driver_launch *l, const unsigned long long *args,
                            plan_host_job *out) {
    const plan_driver_function *f = l->function;
    if (l->arg_count != f->arg_count || l->block != f->block)
        return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': kernel '%s' takes %u arguments and %u threads, not %u and %u", l->label,
                         f->name, f->arg_count, f->block, l->arg_count, l->block);
    for (uint32_t i = 0; i < l->arg_count; i++)
        if (l->pointers[i] && plan_host_find(h, l->args[i], 0, "argument"))
            return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': kernel '%s': argument %u, 0x%llx, points into no live allocation",
                             l->label, f->name, i, (unsigned long long)l->args[i]);
    plan_host_job job = {f->entry, f->name, l->label, args, {l->grid[0], l->grid[1], l->grid[2]}, l->block, f->fibres};
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
        status = describe(h, l, args, &job);
    if (status)
        return status;
    for (uint32_t i = 0; i < l->arg_count; i++)
        args[i] = l->args[i];
    atomic_fetch_add(&d->eager_launches, 1);
    return plan_host_pool_run(h->pool, &job);
}

static plan_status host_graph_open(plan_driver *d, plan_driver_graph **out) {
    *out = NULL;
    plan_host_driver *h = (plan_host_driver *)d;
    plan_status status = plan_host_enter(d, "create a graph", false);
    if (status)
        return status;
    plan_driver_graph *g = plan_host_allocate(&d->allocator, 1, sizeof *g);
    if (!g)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a graph");
    g->owner = pthread_self();
    g->open = true;
    pthread_mutex_lock(&h->lock);
    g->next = h->graphs;
    h->graphs = g;
    pthread_mutex_unlock(&h->lock);
    atomic_fetch_add(&h->open_graphs, 1);
    *out = g;
    return PLAN_OK;
}

/* The graph is no longer being captured. */
static void end_capture(plan_host_driver *h, plan_driver_graph *g) {
    if (!g->open)
        return;
    pthread_mutex_lock(&h->lock);
    plan_driver_graph **link = &h->graphs;
    while (*link != g)
        link = &(*link)->next;
    *link = g->next;
    pthread_mutex_unlock(&h->lock);
    atomic_fetch_sub(&h->open_graphs, 1);
    g->open = false;
}

/* Makes room for COUNT items of SIZE bytes in *ITEMS, keeping what is there. */
static bool grow(const plan_allocator *a, void *items, size_t size, uint32_t used, uint32_t extra, uint32_t *capacity) {
    uint64_t needed = (uint64_t)used + extra;
    void *old;
    memcpy(&old, items, sizeof old);
    if (old && needed <= *capacity)
        return true;
    uint64_t wanted = needed * 2 + 16;
    void *fresh = wanted <= UINT32_MAX ? plan_host_allocate(a, (size_t)wanted, size) : NULL;
    if (!fresh)
        return false;
    if (old)
        memcpy(fresh, old, (size_t)used * size);
    plan_host_release(a, old);
    memcpy(items, &fresh, sizeof fresh);
    *capacity = (uint32_t)wanted;
    return true;
}

static plan_status host_graph_add(plan_driver *d, plan_driver_graph *g, const plan_driver_launch *l,
                                  const uint32_t *dependencies, uint32_t count) {
    plan_host_job job;
    plan_status status = plan_host_enter(d, "add a node", true);
    if (!status)
        status = describe((plan_host_driver *)d, l, NULL, &job);
    if (status)
        return status;
    const plan_allocator *a = &d->allocator;
    if (!grow(a, &g->nodes, sizeof *g->nodes, g->count, 1, &g->capacity) ||
        !grow(a, &g->args, sizeof *g->args, g->arg_count, l->arg_count, &g->arg_capacity) ||
        !grow(a, &g->dependencies, sizeof *g->dependencies, g->dependency_count, count, &g->dependency_capacity))
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a node of a graph");
    for (uint32_t i = 0; i < count; i++) {
        if (dependencies[i] >= g->count)
            return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': depends on node %u, which is not before node %u", l->label,
                             dependencies[i], g->count);
        g->dependencies[g->dependency_count + i] = dependencies[i];
    }
    host_node node = {job, g->arg_count, g->dependency_count, count};
    g->nodes[g->count++] = node;
    for (uint32_t i = 0; i < l->arg_count; i++)
        g->args[g->arg_count + i] = l->args[i];
    g->arg_count += l->arg_count;
    g->dependency_count += count;
    return PLAN_OK;
}

static void host_exec_close(plan_driver *d, plan_driver_exec *e) {
    if (!e)
        return;
    plan_host_release(&d->allocator, e->jobs);
    plan_host_release(&d->allocator, e->args);
    plan_host_release(&d->allocator, e);
}

/* A topological order other than the plan's where the edges allow one: of the nodes that are ready, the last. So a launch
 * list that needs an edge which it does not have computes something else than it does eagerly. ORDER, WAITING: one for
 * each node; STACK too. Quadratic in the worst case only in the number of edges of one node. */
static void order_nodes(const plan_driver_graph *g, uint32_t *order, uint32_t *waiting, uint32_t *first, uint32_t *next) {
    for (uint32_t i = 0; i < g->count; i++)
        first[i] = UINT32_MAX;
    for (uint32_t i = 0; i < g->count; i++) {
        const host_node *n = &g->nodes[i];
        waiting[i] = n->dependencies;
        for (uint32_t k = n->first_dependency; k < n->first_dependency + n->dependencies; k++) {
            next[k] = first[g->dependencies[k]]; /* the list of those that wait for a node, by edge number */
            first[g->dependencies[k]] = k;
        }
    }
    uint32_t done = 0, ready = g->count; /* the ready ones are a stack at the end of order */
    for (uint32_t i = 0; i < g->count; i++)
        if (waiting[i] == 0)
            order[--ready] = i;
    /* Pushed in ascending order: the last is on top. done <= ready always, since each node is in one of the two. */
    while (ready < g->count) {
        uint32_t node = order[ready++];
        for (uint32_t k = first[node]; k != UINT32_MAX; k = next[k]) {
            uint32_t low = 0, high = g->count; /* the node whose run of dependencies holds edge k */
            while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;
                if (g->nodes[middle].first_dependency <= k)
                    low = middle;
                else
                    high = middle;
            }
            if (--waiting[low] == 0)
                order[--ready] = low;
        }
        order[done++] = node;
    }
}

static plan_status host_graph_instantiate(plan_driver *d, plan_driver_graph *g, uint32_t expected, plan_driver_exec **out) {
    *out = NULL;
    plan_status status = plan_host_enter(d, "instantiate a graph", true);
    if (status)
        return status;
    if (g->count != expected)
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: the graph has %u nodes, the plan %u", g->count, expected);
    const plan_allocator *a = &d->allocator;
    plan_driver_exec *e = plan_host_allocate(a, 1, sizeof *e);
    uint32_t *order = plan_host_allocate(a, (size_t)g->count + 1, sizeof *order);
    uint32_t *waiting = plan_host_allocate(a, (size_t)g->count + 1, sizeof *waiting);
    uint32_t *first = plan_host_allocate(a, (size_t)g->count + 1, sizeof *first);
    uint32_t *next = plan_host_allocate(a, (size_t)g->dependency_count + 1, sizeof *next);
    if (e) {
        e->jobs = plan_host_allocate(a, (size_t)g->count + 1, sizeof *e->jobs);
        e->args = plan_host_allocate(a, (size_t)g->arg_count + 1, sizeof *e->args);
    }
    if (!e || !e->jobs || !e->args || !order || !waiting || !first || !next) {
        host_exec_close(d, e);
        status = plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a graph of %u nodes", g->count);
        goto done;
    }
    if (g->arg_count)
        memcpy(e->args, g->args, g->arg_count * sizeof *e->args);
    order_nodes(g, order, waiting, first, next);
    for (uint32_t i = 0; i < g->count; i++) {
        e->jobs[i] = g->nodes[order[i]].job;
        e->jobs[i].args = e->args + g->nodes[order[i]].first_arg;
    }
    e->count = g->count;
    end_capture((plan_host_driver *)d, g);
    *out = e;
done:
    plan_host_release(a, order);
    plan_host_release(a, waiting);
    plan_host_release(a, first);
    plan_host_release(a, next);
    return status;
}

static void host_graph_close(plan_driver *d, plan_driver_graph *g) {
    if (!g)
        return;
    end_capture((plan_host_driver *)d, g);
    plan_host_release(&d->allocator, g->nodes);
    plan_host_release(&d->allocator, g->args);
    plan_host_release(&d->allocator, g->dependencies);
    plan_host_release(&d->allocator, g);
}

static plan_status host_graph_launch(plan_driver *d, plan_driver_stream *s, plan_driver_exec *e) {
    (void)s;
    plan_host_driver *h = (plan_host_driver *)d;
    plan_status status = plan_host_enter(d, "launch a graph", false);
    if (status)
        return status;
    atomic_fetch_add(&d->graph_launches, 1);
    for (uint32_t i = 0; i < e->count && !status; i++)
        status = plan_host_pool_run(h->pool, &e->jobs[i]);
    return status;
}

void plan_host_fill_code(plan_driver *d) {
    d->rank_target = host_rank_target;
    d->module_load = host_module_load;
    d->module_unload = host_module_unload;
    d->function_get = host_function_get;
    d->function_release = host_function_release;
    d->launch = host_launch;
    d->graph_open = host_graph_open;
    d->graph_add = host_graph_add;
    d->graph_instantiate = host_graph_instantiate;
    d->graph_close = host_graph_close;
    d->graph_launch = host_graph_launch;
    d->exec_close = host_exec_close;
}
