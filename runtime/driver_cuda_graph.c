/* driver_cuda_graph.c - the CUDA driver: graphs, with the bodies of their conditional nodes. */
#include "driver_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

typedef struct graph_node {
    cu_node node;
    plan_driver_graph *body; /* of a conditional node; NULL: a kernel */
} graph_node;

struct plan_driver_graph {
    cu_graph graph;
    bool is_body; /* owned by its conditional node */
    graph_node *nodes;
    uint32_t count, capacity;
};
struct plan_driver_exec {
    cu_exec exec;
};

/* As deep as conditional nodes are nested. */
static void cuda_graph_close(plan_driver *d, plan_driver_graph *g) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (!g)
        return;
    for (uint32_t i = 0; i < g->count; i++)
        cuda_graph_close(d, g->nodes[i].body);
    if (g->graph && !g->is_body)
        CALL(c, status, "cuGraphDestroy", "a segment", c->api.graph_destroy(g->graph));
    plan_host_release(&d->allocator, g->nodes);
    plan_host_release(&d->allocator, g);
}

static plan_status cuda_graph_open(plan_driver *d, plan_driver_graph **out) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    plan_driver_graph *g = plan_host_allocate(&d->allocator, 1, sizeof *g);
    *out = NULL;
    if (!g)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for a graph");
    CALL(c, status, "cuGraphCreate", "a segment", c->api.graph_create(&g->graph, 0));
    if (status)
        cuda_graph_close(d, g);
    else
        *out = g;
    return status;
}

static bool make_room(plan_driver *d, plan_driver_graph *g) {
    if (g->count < g->capacity)
        return true;
    if (g->capacity > UINT32_MAX / 2)
        return false;
    uint32_t capacity = g->capacity ? g->capacity * 2 : 64;
    graph_node *nodes = plan_host_allocate(&d->allocator, capacity, sizeof *nodes);
    if (!nodes)
        return false;
    if (g->count)
        memcpy(nodes, g->nodes, g->count * sizeof *nodes);
    plan_host_release(&d->allocator, g->nodes);
    g->nodes = nodes;
    g->capacity = capacity;
    return true;
}

/* The nodes with these numbers: *KERNELS kernels, then conditional nodes. *OUT is to be freed, also after an error. */
static plan_status find_before(plan_driver *d, plan_driver_graph *g, const char *label, const uint32_t *dependencies, uint32_t count,
                               cu_node **out, uint32_t *kernels) {
    cu_node *before = plan_host_allocate(&d->allocator, (size_t)count + 1, sizeof *before);
    uint32_t first = 0, last = count;
    *out = before;
    if (!before || !make_room(d, g))
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for a node of a graph");
    for (uint32_t i = 0; i < count; i++) {
        if (dependencies[i] >= g->count)
            return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': depends on node %u, which is not before node %u", label, dependencies[i],
                             g->count);
        const graph_node *n = &g->nodes[dependencies[i]];
        if (n->body)
            before[--last] = n->node;
        else
            before[first++] = n->node;
    }
    *kernels = first;
    return PLAN_OK;
}

/* Edges between kernels that wait by themselves are programmatic: the second is put in place while the first runs. */
static plan_status add_edges(cuda_driver *c, plan_driver_graph *g, const char *label, const cu_node *before, uint32_t count) {
    plan_status status = PLAN_OK;
    const cu_edge edge = {CU_PORT_PROGRAMMATIC, 0, CU_EDGE_PROGRAMMATIC, {0}};
    for (uint32_t i = 0; i < count && !status; i++)
        CALL(c, status, "cuGraphAddDependencies", label,
             c->api.graph_add_edges(g->graph, &before[i], &g->nodes[g->count].node, &edge, 1));
    return status;
}

/* Edges from conditional nodes, and inside bodies, are full ones. */
static plan_status cuda_graph_add(plan_driver *d, plan_driver_graph *g, const plan_driver_launch *l,
                                  const uint32_t *dependencies, uint32_t count) {
    cuda_driver *c = (cuda_driver *)d;
    void *arguments[CUDA_MAX_ARGS];
    cu_node *before = NULL;
    uint32_t kernels = 0;
    plan_status status = plan_cuda_arguments(c, l, arguments);
    if (!status)
        status = find_before(d, g, l->label, dependencies, count, &before, &kernels);
    cu_kernel_node node = {l->function->function, l->grid[0], l->grid[1], l->grid[2], l->block, 1, 1, l->shared, arguments,
                           NULL, NULL, NULL};
    uint32_t programmatic = l->function->waits && c->api.graph_add_edges && !g->is_body ? kernels : 0, full = count - programmatic;
    if (!status)
        CALL(c, status, "cuGraphAddKernelNode", l->label,
             c->api.graph_add_kernel(&g->nodes[g->count].node, g->graph, full ? before + programmatic : NULL, full, &node));
    if (!status)
        status = add_edges(c, g, l->label, before, programmatic);
    if (!status)
        g->nodes[g->count++].body = NULL;
    plan_host_release(&d->allocator, before);
    return status;
}

static plan_status cuda_condition_open(plan_driver *d, plan_driver_graph *g, uint64_t *handle) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    unsigned long long made = 0;
    if (!c->api.condition_create || !c->api.graph_add_node)
        return plan_fail(PLAN_ERROR_TARGET, "the driver has no conditional nodes, which the plan needs; expected one of CUDA 12.4 or later, or "
                         "a plan that was compiled with --conditions=seam");
    CALL(c, status, "cuGraphConditionalHandleCreate", "a block",
         c->api.condition_create(&made, g->graph, c->context, 0, CU_CONDITION_ASSIGN_DEFAULT));
    *handle = made;
    return status;
}

static plan_status cuda_graph_add_condition(plan_driver *d, plan_driver_graph *g, bool loop, uint64_t handle, const char *label,
                                            const uint32_t *dependencies, uint32_t count, plan_driver_graph **body) {
    cuda_driver *c = (cuda_driver *)d;
    cu_node *before = NULL;
    uint32_t kernels;
    *body = NULL;
    plan_status status = find_before(d, g, label, dependencies, count, &before, &kernels);
    plan_driver_graph *inside = status ? NULL : plan_host_allocate(&d->allocator, 1, sizeof *inside);
    if (!status && !inside)
        status = plan_fail(PLAN_ERROR_MEMORY, "no memory for the body of a conditional node");
    cu_node_params params = {.type = CU_NODE_CONDITIONAL};
    params.of.condition = (cu_condition_node){handle, loop ? CU_CONDITION_WHILE : CU_CONDITION_IF, 1, NULL, c->context};
    if (!status)
        CALL(c, status, "cuGraphAddNode", label,
             c->api.graph_add_node(&g->nodes[g->count].node, g->graph, count ? before : NULL, NULL, count, &params));
    plan_host_release(&d->allocator, before);
    if (status) {
        plan_host_release(&d->allocator, inside);
        return status;
    }
    inside->graph = params.of.condition.bodies[0];
    inside->is_body = true;
    g->nodes[g->count++].body = inside;
    *body = inside;
    return PLAN_OK;
}

/* A launch that went elsewhere would be missing here: the count is compared with the plan's, in bodies with what was added. */
static plan_status check_count(cuda_driver *c, const plan_driver_graph *g, uint32_t expected) {
    plan_status status = PLAN_OK;
    size_t found = 0;
    CALL(c, status, "cuGraphGetNodes", "a segment", c->api.graph_get_nodes(g->graph, NULL, &found));
    if (!status && found != expected)
        status = plan_fail(PLAN_ERROR_DRIVER, "the graph has %zu nodes, the plan %u", found, expected);
    for (uint32_t i = 0; i < g->count && !status; i++)
        if (g->nodes[i].body)
            status = check_count(c, g->nodes[i].body, g->nodes[i].body->count);
    return status;
}

static plan_status cuda_graph_instantiate(plan_driver *d, plan_driver_graph *g, uint32_t expected, plan_driver_exec **out) {
    cuda_driver *c = (cuda_driver *)d;
    *out = NULL;
    plan_status status = check_count(c, g, expected);
    if (status)
        return status;
    plan_driver_exec *e = plan_host_allocate(&d->allocator, 1, sizeof *e);
    if (!e)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for a graph");
    CALL(c, status, "cuGraphInstantiateWithFlags", "a segment", c->api.graph_instantiate(&e->exec, g->graph, 0));
    if (status)
        plan_host_release(&d->allocator, e);
    else
        *out = e;
    return status;
}

static plan_status cuda_graph_launch(plan_driver *d, plan_driver_stream *s, plan_driver_exec *e) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    CALL(c, status, "cuGraphLaunch", "a segment", c->api.graph_launch(e->exec, plan_cuda_stream(s)));
    if (!status)
        atomic_fetch_add(&d->graph_launches, 1);
    return status;
}

static void cuda_exec_close(plan_driver *d, plan_driver_exec *e) {
    cuda_driver *c = (cuda_driver *)d;
    plan_status status = PLAN_OK;
    if (e)
        CALL(c, status, "cuGraphExecDestroy", "a segment", c->api.exec_destroy(e->exec));
    plan_host_release(&d->allocator, e);
}

void plan_cuda_fill_graphs(plan_driver *d) {
    d->graph_open = cuda_graph_open;
    d->graph_add = cuda_graph_add;
    d->condition_open = cuda_condition_open;
    d->graph_add_condition = cuda_graph_add_condition;
    d->graph_instantiate = cuda_graph_instantiate;
    d->graph_close = cuda_graph_close;
    d->graph_launch = cuda_graph_launch;
    d->exec_close = cuda_exec_close;
}
