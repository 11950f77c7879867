/* capture.c - graphs from launches: one for each segment of a signature, with a body for each of its conditional nodes.
 *
 * Edges of the plan join launches. A node of a graph is a launch, or a block with all that is inside it; so an edge leads from
 * the node that holds its first launch to the node that holds its second, in the innermost graph that has both. */
#include "internal.h"

#include <inttypes.h>

/* What is needed while the graphs of one signature are built. Launches and blocks count from the signature's first. */
typedef struct builder {
    plan_session *s;
    const plan_signature_record *g;
    uint32_t *starts, *from;   /* edges by the launch that waits: starts[to] .. starts[to + 1] in `from` */
    uint32_t *node;            /* by launch: its node in the graph that is being built */
    uint32_t *seen, stamp;     /* by node: the last stamp, so that it is listed once */
    uint32_t *before;          /* nodes that the next one waits for */
    uint64_t *handles;         /* by block */
    uint32_t next_block;       /* blocks are in order of their begin, outer first */
} builder;

static plan_status open_builder(builder *b) {
    const plan_allocator *a = &b->s->p->allocator;
    const plan_signature_record *g = b->g;
    const plan_edge_record *edges = b->s->p->view.edges + g->edge;
    b->starts = plan_host_allocate(a, (size_t)g->launch_count + 2, sizeof *b->starts);
    b->from = plan_host_allocate(a, (size_t)g->edge_count + 1, sizeof *b->from);
    b->node = plan_host_allocate(a, (size_t)g->launch_count + 1, sizeof *b->node);
    b->seen = plan_host_allocate(a, (size_t)g->launch_count + 1, sizeof *b->seen);
    b->before = plan_host_allocate(a, (size_t)g->launch_count + 1, sizeof *b->before);
    b->handles = plan_host_allocate(a, (size_t)g->block_count + 1, sizeof *b->handles);
    if (!b->starts || !b->from || !b->node || !b->seen || !b->before || !b->handles)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for %u edges", g->edge_count);
    for (uint32_t i = 0; i < g->edge_count; i++)
        b->starts[edges[i].to + 2]++;
    for (uint32_t i = 2; i < g->launch_count + 2; i++)
        b->starts[i] += b->starts[i - 1];
    /* starts[to + 1] is now where the next edge of `to` goes, and ends as where those of `to + 1` begin. */
    for (uint32_t i = 0; i < g->edge_count; i++)
        b->from[b->starts[edges[i].to + 1]++] = edges[i].from;
    return PLAN_OK;
}

static void close_builder(builder *b) {
    const plan_allocator *a = &b->s->p->allocator;
    plan_host_release(a, b->starts);
    plan_host_release(a, b->from);
    plan_host_release(a, b->node);
    plan_host_release(a, b->seen);
    plan_host_release(a, b->before);
    plan_host_release(a, b->handles);
}

static const plan_block_record *block_at(const builder *b, uint32_t i) { return &b->s->p->view.blocks[b->g->block + i]; }

/* The nodes that launches FIRST to END wait for, of those between LOW and FIRST; an edge from before LOW is kept by the stream,
 * or by the node around. Into `before`; how many. */
static uint32_t list_before(builder *b, uint32_t low, uint32_t first, uint32_t end) {
    uint32_t count = 0;
    b->stamp++;
    for (uint32_t k = b->starts[first]; k < b->starts[end]; k++) {
        uint32_t from = b->from[k];
        if (from < low || from >= first || b->seen[b->node[from]] == b->stamp)
            continue;
        b->seen[b->node[from]] = b->stamp;
        b->before[count++] = b->node[from];
    }
    return count;
}

/* The handles that the launch sets become arguments; the graph keeps them by value. */
static plan_status give_handles(builder *b, uint32_t launch) {
    const plan_launch_record *l = &b->s->p->view.launches[b->g->launch + launch];
    for (uint32_t k = l->arg; b->g->block_count && k < l->arg + l->arg_count; k++) {
        const plan_arg_record *a = &b->s->p->view.args[k];
        if (a->kind != PLAN_ARG_CONDITION)
            continue;
        if (a->value >= b->g->block_count || !b->handles[a->value])
            return plan_fail(PLAN_ERROR_FORMAT, "launch '%s': sets the condition of block %" PRIu64 "; expected a block with a node that "
                             "comes behind it or is around it", PLAN_TEXT(b->s->p, l->label), a->value);
        b->s->args[k] = b->handles[a->value];
    }
    return PLAN_OK;
}

static plan_status add_launch(builder *b, plan_driver_graph *graph, uint32_t low, uint32_t launch, uint32_t number) {
    plan_driver *d = b->s->p->driver;
    plan_driver_launch l;
    uint32_t count = list_before(b, low, launch, launch + 1);
    plan_status status = give_handles(b, launch);
    if (status)
        return status;
    plan_describe_launch(b->s->p, b->g->launch + launch, b->s->args, &l);
    b->node[launch] = number;
    return d->graph_add(d, graph, &l, b->before, count);
}

/* A launch may set a condition before the node exists. Blocks of this level only: each handle belongs to its node's graph. */
static plan_status open_conditions(builder *b, plan_driver_graph *graph, uint32_t end) {
    plan_driver *d = b->s->p->driver;
    plan_status status = PLAN_OK;
    for (uint32_t i = b->next_block, behind = 0; i < b->g->block_count && block_at(b, i)->launch < end && !status; i++) {
        if (block_at(b, i)->launch < behind)
            continue;
        behind = block_at(b, i)->launch + block_at(b, i)->launch_count;
        status = d->condition_open(d, graph, &b->handles[i]);
    }
    return status;
}

static plan_status add_run(builder *b, plan_driver_graph *graph, uint32_t low, uint32_t end, uint32_t *nodes);

static plan_status add_block(builder *b, plan_driver_graph *graph, uint32_t low, uint32_t number) {
    plan_driver *d = b->s->p->driver;
    const plan_block_record *block = block_at(b, b->next_block);
    uint32_t end = block->launch + block->launch_count, inside;
    plan_driver_graph *body = NULL;
    bool loop = block->kind == PLAN_BLOCK_WHILE;
    uint32_t count = list_before(b, low, block->launch, end);
    plan_status status = d->graph_add_condition(d, graph, loop, b->handles[b->next_block], PLAN_TEXT(b->s->p, block->node), b->before,
                                                count, &body);
    if (status)
        return status;
    *(loop ? &b->s->while_nodes : &b->s->if_nodes) += 1;
    b->next_block++;
    status = add_run(b, body, block->launch, end, &inside);
    for (uint32_t i = block->launch; i < end; i++)
        b->node[i] = number;
    return status;
}

/* Launches LOW to END as nodes of GRAPH, blocks as one node each. As deep as blocks are nested, which validation bounds. */
static plan_status add_run(builder *b, plan_driver_graph *graph, uint32_t low, uint32_t end, uint32_t *nodes) {
    plan_status status = open_conditions(b, graph, end);
    *nodes = 0;
    for (uint32_t at = low; at < end && !status; ++*nodes) {
        const plan_block_record *block = b->next_block < b->g->block_count ? block_at(b, b->next_block) : NULL;
        if (block && block->launch == at) {
            status = add_block(b, graph, low, *nodes);
            at = block->launch + block->launch_count;
        } else
            status = add_launch(b, graph, low, at++, *nodes);
    }
    return status;
}

static plan_status capture_segment(builder *b, uint32_t number) {
    plan_session *s = b->s;
    plan_driver *d = s->p->driver;
    const plan_segment_record *segment = &s->p->view.segments[number];
    plan_driver_graph *graph = NULL;
    uint32_t nodes = 0;
    /* Blocks with a seam are the host's: they begin and end with segments. */
    while (b->next_block < b->g->block_count && block_at(b, b->next_block)->seam != PLAN_NONE &&
           block_at(b, b->next_block)->launch <= segment->launch)
        b->next_block++;
    plan_status status = d->graph_open(d, &graph);
    if (!status)
        status = add_run(b, graph, segment->launch, segment->launch + segment->launch_count, &nodes);
    if (!status)
        status = d->graph_instantiate(d, graph, nodes, &s->execs[number]);
    if (graph)
        d->graph_close(d, graph);
    if (!status)
        s->captures++;
    return status;
}

plan_status plan_session_capture_signature(plan_session *s, uint32_t signature) {
    builder b = {.s = s, .g = &s->p->view.signatures[signature]};
    plan_status status = plan_check_metadata(s->p, signature);
    if (status)
        return status;
    status = open_builder(&b);
    for (uint32_t i = b.g->segment; i < b.g->segment + b.g->segment_count && !status; i++)
        status = capture_segment(&b, i);
    close_builder(&b);
    return status ? plan_fail_prefix(status, "capture of signature '%s'", PLAN_TEXT(s->p, b.g->name)) : PLAN_OK;
}
