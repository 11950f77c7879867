/* driver_host_graph.c - the strict emulated driver: graphs, with the bodies of their conditional nodes.
 *
 * A graph runs in another order than the plan's where its edges allow one. A condition that no kernel set since the last
 * decision is an error, where the real driver would go on with an old value. */
#include "driver_host.h"

#include <stdlib.h>
#include <string.h>

#define UNSET UINT32_MAX

/* The condition of one conditional node. Its address is the handle that kernels get. */
typedef struct host_condition {
    struct host_condition *next;
    const plan_driver_graph *graph; /* to which the node belongs; only compared, since the executable lives longer */
    uint32_t value;                 /* UNSET: no kernel set it in this run */
    bool used;                      /* has its node */
} host_condition;

typedef struct host_node {
    plan_host_job job;                     /* of a kernel */
    plan_driver_graph *body;               /* of a conditional node; NULL: a kernel */
    host_condition *condition;
    bool loop;
    uint32_t first_arg;                    /* in args */
    uint32_t first_dependency, dependencies; /* in the graph's list */
} host_node;

struct plan_driver_graph {
    plan_driver_graph *next;
    plan_driver_graph *root;         /* this one, or the one that its conditional node is in, and so on */
    plan_driver_graph *around;       /* whose node this is the body of; NULL for a root */
    host_condition *conditions;      /* of the root: all; taken over by what is instantiated */
    pthread_t owner;
    bool open;
    host_node *nodes;
    uint32_t count, capacity;
    unsigned long long *args;
    uint32_t arg_count, arg_capacity;
    uint32_t *dependencies;
    uint32_t dependency_count, dependency_capacity;
};

typedef struct host_step {
    plan_host_job job;
    plan_driver_exec *body; /* NULL: a kernel */
    host_condition *condition;
    const char *label;
    bool loop;
} host_step;

struct plan_driver_exec {
    uint32_t count;
    host_step *steps; /* in the order in which they run */
    unsigned long long *args;
    host_condition *conditions; /* of the outermost: all of them */
};

plan_driver_graph *plan_host_graph_next(plan_driver_graph *g) { return g->next; }
const pthread_t *plan_host_graph_owner(const plan_driver_graph *g) { return &g->owner; }

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
    g->root = g;
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

/* The condition with this handle, if it belongs to a node of G or of a graph around it that is not instantiated; or NULL. */
static host_condition *find_condition(const plan_driver_graph *g, uint64_t handle) {
    for (host_condition *c = g->root->conditions; c; c = c->next)
        for (const plan_driver_graph *at = g; at && (uint64_t)(uintptr_t)&c->value == handle; at = at->around)
            if (at == c->graph)
                return c;
    return NULL;
}

/* Room for NODE, which gets ARG_COUNT arguments, and its dependencies; then it is the graph's last. */
static plan_status add_node(plan_driver *d, plan_driver_graph *g, host_node node, const char *label, const uint64_t *args,
                            uint32_t arg_count, const uint32_t *dependencies, uint32_t count) {
    const plan_allocator *a = &d->allocator;
    if (!grow(a, &g->nodes, sizeof *g->nodes, g->count, 1, &g->capacity) ||
        !grow(a, &g->args, sizeof *g->args, g->arg_count, arg_count, &g->arg_capacity) ||
        !grow(a, &g->dependencies, sizeof *g->dependencies, g->dependency_count, count, &g->dependency_capacity))
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a node of a graph");
    for (uint32_t i = 0; i < count; i++) {
        if (dependencies[i] >= g->count)
            return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': depends on node %u, which is not before node %u", label,
                             dependencies[i], g->count);
        for (uint32_t k = 0; k < i; k++)
            if (dependencies[k] == dependencies[i])
                return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': depends on node %u twice", label, dependencies[i]);
        g->dependencies[g->dependency_count + i] = dependencies[i];
    }
    node.first_arg = g->arg_count;
    node.first_dependency = g->dependency_count;
    node.dependencies = count;
    g->nodes[g->count++] = node;
    for (uint32_t i = 0; i < arg_count; i++)
        g->args[g->arg_count + i] = args[i];
    g->arg_count += arg_count;
    g->dependency_count += count;
    return PLAN_OK;
}

static plan_status host_graph_add(plan_driver *d, plan_driver_graph *g, const plan_driver_launch *l,
                                  const uint32_t *dependencies, uint32_t count) {
    host_node node = {0};
    plan_status status = plan_host_enter(d, "add a node", true);
    if (!status)
        status = plan_host_describe((plan_host_driver *)d, l, NULL, &node.job);
    for (uint32_t i = 0; i < l->arg_count && !status; i++)
        if (l->pointers[i] == PLAN_WORD_CONDITION && !find_condition(g, l->args[i]))
            status = plan_fail(PLAN_ERROR_DRIVER, "launch '%s': argument %u is no condition of its graph or of one around it", l->label, i);
    return status ? status : add_node(d, g, node, l->label, l->args, l->arg_count, dependencies, count);
}

static plan_status host_condition_open(plan_driver *d, plan_driver_graph *g, uint64_t *handle) {
    plan_status status = plan_host_enter(d, "create a condition", true);
    if (status)
        return status;
    host_condition *c = plan_host_allocate(&d->allocator, 1, sizeof *c);
    if (!c)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a condition");
    c->graph = g;
    c->next = g->root->conditions;
    g->root->conditions = c;
    *handle = (uint64_t)(uintptr_t)&c->value;
    return PLAN_OK;
}

static plan_status host_graph_add_condition(plan_driver *d, plan_driver_graph *g, bool loop, uint64_t handle, const char *label,
                                            const uint32_t *dependencies, uint32_t count, plan_driver_graph **body) {
    host_node node = {.loop = loop, .condition = find_condition(g, handle)};
    *body = NULL;
    plan_status status = plan_host_enter(d, "add a conditional node", true);
    if (status)
        return status;
    if (!node.condition || node.condition->graph != g || node.condition->used)
        return plan_fail(PLAN_ERROR_DRIVER, "block '%s': its condition is not one of this graph that has no node yet", label);
    node.body = plan_host_allocate(&d->allocator, 1, sizeof *node.body);
    if (!node.body)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for the body of a conditional node");
    node.body->around = g;
    node.body->root = g->root;
    node.job.label = label;
    status = add_node(d, g, node, label, NULL, 0, dependencies, count);
    if (status) {
        plan_host_release(&d->allocator, node.body);
        return status;
    }
    node.condition->used = true;
    *body = node.body;
    return PLAN_OK;
}

static void close_conditions(plan_driver *d, host_condition *c) {
    while (c) {
        host_condition *next = c->next;
        plan_host_release(&d->allocator, c);
        c = next;
    }
}

/* As deep as conditional nodes are nested, here and where graphs are closed, instantiated and run. */
static void host_exec_close(plan_driver *d, plan_driver_exec *e) {
    if (!e)
        return;
    for (uint32_t i = 0; e->steps && i < e->count; i++)
        host_exec_close(d, e->steps[i].body);
    close_conditions(d, e->conditions);
    plan_host_release(&d->allocator, e->steps);
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

static plan_status instantiate(plan_driver *d, const plan_driver_graph *g, plan_driver_exec **out) {
    const plan_allocator *a = &d->allocator;
    plan_status status = PLAN_OK;
    plan_driver_exec *e = plan_host_allocate(a, 1, sizeof *e);
    uint32_t *order = plan_host_allocate(a, (size_t)g->count + 1, sizeof *order);
    uint32_t *waiting = plan_host_allocate(a, (size_t)g->count + 1, sizeof *waiting);
    uint32_t *first = plan_host_allocate(a, (size_t)g->count + 1, sizeof *first);
    uint32_t *next = plan_host_allocate(a, (size_t)g->dependency_count + 1, sizeof *next);
    if (e) {
        e->steps = plan_host_allocate(a, (size_t)g->count + 1, sizeof *e->steps);
        e->args = plan_host_allocate(a, (size_t)g->arg_count + 1, sizeof *e->args);
    }
    if (!e || !e->steps || !e->args || !order || !waiting || !first || !next) {
        status = plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a graph of %u nodes", g->count);
        goto done;
    }
    if (g->arg_count)
        memcpy(e->args, g->args, g->arg_count * sizeof *e->args);
    order_nodes(g, order, waiting, first, next);
    for (uint32_t i = 0; i < g->count && !status; i++) {
        const host_node *n = &g->nodes[order[i]];
        host_step *step = &e->steps[e->count++];
        *step = (host_step){.job = n->job, .condition = n->condition, .label = n->job.label, .loop = n->loop};
        step->job.args = e->args + n->first_arg;
        if (n->body)
            status = instantiate(d, n->body, &step->body);
    }
done:
    plan_host_release(a, order);
    plan_host_release(a, waiting);
    plan_host_release(a, first);
    plan_host_release(a, next);
    if (status)
        host_exec_close(d, e);
    else
        *out = e;
    return status;
}

static plan_status host_graph_instantiate(plan_driver *d, plan_driver_graph *g, uint32_t expected, plan_driver_exec **out) {
    *out = NULL;
    plan_status status = plan_host_enter(d, "instantiate a graph", true);
    if (status)
        return status;
    if (g->count != expected)
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: the graph has %u nodes, the plan %u", g->count, expected);
    for (const host_condition *c = g->conditions; c; c = c->next)
        if (!c->used)
            return plan_fail(PLAN_ERROR_DRIVER, "host driver: a condition of the graph has no node");
    status = instantiate(d, g, out);
    if (status)
        return status;
    (*out)->conditions = g->conditions;
    g->conditions = NULL;
    end_capture((plan_host_driver *)d, g);
    return PLAN_OK;
}

static void host_graph_close(plan_driver *d, plan_driver_graph *g) {
    if (!g)
        return;
    end_capture((plan_host_driver *)d, g);
    for (uint32_t i = 0; i < g->count; i++)
        host_graph_close(d, g->nodes[i].body);
    close_conditions(d, g->conditions);
    plan_host_release(&d->allocator, g->nodes);
    plan_host_release(&d->allocator, g->args);
    plan_host_release(&d->allocator, g->dependencies);
    plan_host_release(&d->allocator, g);
}

static plan_status run_steps(plan_host_driver *h, const plan_driver_exec *e);

static plan_status check_set(const host_step *step, const char *when) {
    if (step->condition->value != UNSET)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_DRIVER, "host driver: block '%s': no kernel set its condition %s", step->label, when);
}

/* A condition holds for one decision: what is not set again by the body of a loop is missing. */
static plan_status run_condition(plan_host_driver *h, const host_step *step) {
    plan_status status = check_set(step, "before its node is reached");
    while (!status && step->condition->value) {
        step->condition->value = UNSET;
        status = run_steps(h, step->body);
        if (!step->loop || status)
            break;
        status = check_set(step, "at the end of the loop's body");
    }
    step->condition->value = UNSET;
    return status;
}

static plan_status run_steps(plan_host_driver *h, const plan_driver_exec *e) {
    plan_status status = PLAN_OK;
    for (uint32_t i = 0; i < e->count && !status; i++)
        status = e->steps[i].body ? run_condition(h, &e->steps[i]) : plan_host_pool_run(h->pool, &e->steps[i].job);
    return status;
}

static plan_status host_graph_launch(plan_driver *d, plan_driver_stream *s, plan_driver_exec *e) {
    (void)s;
    plan_status status = plan_host_enter(d, "launch a graph", false);
    if (status)
        return status;
    atomic_fetch_add(&d->graph_launches, 1);
    for (host_condition *c = e->conditions; c; c = c->next)
        c->value = UNSET;
    return run_steps((plan_host_driver *)d, e);
}

void plan_host_fill_graphs(plan_driver *d) {
    d->graph_open = host_graph_open;
    d->graph_add = host_graph_add;
    d->condition_open = host_condition_open;
    d->graph_add_condition = host_graph_add_condition;
    d->graph_instantiate = host_graph_instantiate;
    d->graph_close = host_graph_close;
    d->graph_launch = host_graph_launch;
    d->exec_close = host_exec_close;
}
