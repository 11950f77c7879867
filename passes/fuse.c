/* fuse - what is needed at all, and which elementwise nodes become part of their only consumer's kernel. Each fused node
 * keeps its rounding, so results are those of the unfused graph, bit for bit. */
#include "lower.h"

enum { MAX_LEAVES = 16, MAX_FUSED = 24 };

static const OpRow *loop_enter_row(void) { return op_find("gcc-plan", "LoopEnter", 1); }

static bool needs_launch(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->output_count; i++) {
        const Value *v = node_output(c, n, i);
        if (v && v->uses && !value_folded(v)) return true;
    }
    return false;
}

/* Backwards from the outputs. Contents that are known need no launch, so nobody needs their producer; `uses` ends as the
 * count of uses by nodes that are launched. */
static void mark_needed(Compilation *c)
{
    Graph *g = &c->graph;
    for (uint32_t i = 1; i <= g->value_count; i++) g->values[i].uses = 0;
    for (uint32_t i = 0; i < g->output_count; i++) g->values[g->outputs[i]].uses++;
    for (uint32_t i = g->node_count; i >= 1; i--) {
        Node *n = &g->nodes[i];
        n->dead = !needs_launch(c, n) && !(n->loop && n->op->shape == loop_enter_row()->shape && c->loops[n->loop].needed);
        if (n->loop && !n->dead) c->loops[n->loop].needed = true;
        for (int k = 0; k < n->input_count && !n->dead; k++)
            if (n->inputs[k]) g->values[n->inputs[k]].uses++;
    }
}

static bool pointwise(const Node *n) { return (n->op->facts & OP_POINTWISE) && !n->op->lower; }

static bool same_dims(Compilation *c, const Value *a, const Value *b)
{
    if (a->rank != b->rank) return false;
    for (int k = 0; k < a->rank; k++)
        if (!dim_equal(c, a->dims[k], b->dims[k])) return false;
    return true;
}

static bool reads_state(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v && v->state) return true;
    }
    return false;
}

/* A value that one elementwise node makes and one elementwise node of the same shape reads. */
static bool fusible(Compilation *c, const Node *consumer, const Value *v)
{
    if (!v->producer || v->uses != 1 || v->is_output || v->state || value_folded(v)) return false;
    const Node *p = &c->graph.nodes[v->producer];
    return !p->dead && pointwise(p) && p->constant == consumer->constant && p->loop == consumer->loop && !reads_state(c, p) &&
           same_dims(c, v, node_output(c, consumer, 0));
}

static void fuse_node(Compilation *c, uint32_t index, int *leaves, int *members)
{
    Node *n = &c->graph.nodes[index];
    leaves[index] = n->input_count;
    members[index] = 1;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (!v || !fusible(c, n, v)) continue;
        int total = leaves[index] - 1 + leaves[v->producer];
        if (total > MAX_LEAVES || members[index] + members[v->producer] > MAX_FUSED) continue;
        c->graph.nodes[v->producer].fused_into = index;
        leaves[index] = total;
        members[index] += members[v->producer];
    }
}

/* ---- epilogues: an elementwise group behind a product is computed where the product's kernel has its result */

static uint32_t group_of(Compilation *c, uint32_t node)
{
    while (c->graph.nodes[node].fused_into) node = c->graph.nodes[node].fused_into;
    return node;
}

/* All that the group reads, but the product's own result, is there before the product is launched. */
static bool leaves_before(Compilation *c, uint32_t group, uint32_t product)
{
    for (uint32_t i = product + 1; i <= group; i++) {
        const Node *n = &c->graph.nodes[i];
        if (n->dead || !pointwise(n) || group_of(c, i) != group) continue;
        if (reads_state(c, n)) return false;
        for (int k = 0; k < n->input_count; k++) {
            const Value *v = node_input(c, n, k);
            uint32_t p = v ? v->producer : 0;
            if (p > product && !value_folded(v) && group_of(c, p) != group) return false;
        }
    }
    return true;
}

static bool one_matrix(Compilation *c, const Value *v)
{
    if (v->rank < 2 || !(v->dtype == DT_F32 || v->dtype == DT_F16 || v->dtype == DT_BF16)) return false;
    for (int k = 0; k + 2 < v->rank; k++)
        for (int j = 1; j < c->signature_count; j++)
            if (signature_upper(c, &c->signatures[j], v->dims[k]) != 1) return false;
    return true;
}

static uint32_t only_consumer(Compilation *c, uint32_t value)
{
    for (uint32_t i = c->graph.values[value].producer + 1; i <= c->graph.node_count; i++)
        for (int k = 0; k < c->graph.nodes[i].input_count && !c->graph.nodes[i].dead; k++)
            if (c->graph.nodes[i].inputs[k] == value) return i;
    return 0;
}

static void fuse_epilogue(Compilation *c, uint32_t index, const int *leaves)
{
    Node *n = &c->graph.nodes[index];
    if (n->dead || n->constant || !(n->op->facts & OP_EPILOGUE)) return;
    const Value *v = node_output(c, n, 0);
    if (v->uses != 1 || v->is_output || v->state || !one_matrix(c, v)) return;
    uint32_t consumer = only_consumer(c, n->outputs[0]);
    if (!consumer || !pointwise(&c->graph.nodes[consumer])) return;
    uint32_t group = group_of(c, consumer);
    Node *last = &c->graph.nodes[group];
    if (!pointwise(last) || last->constant || last->loop != n->loop || leaves[group] > MAX_LEAVES) return;
    if (!same_dims(c, v, node_output(c, last, 0)) || !leaves_before(c, group, index)) return;
    last->fused_into = index;
    n->epilogue = group;
}

bool pass_fuse(Compilation *c)
{
    int *leaves = NEW_ARRAY(c, int, c->graph.node_count + 1), *members = NEW_ARRAY(c, int, c->graph.node_count + 1);
    mark_needed(c);
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        if (!c->graph.nodes[i].dead && pointwise(&c->graph.nodes[i])) fuse_node(c, i, leaves, members);
    for (uint32_t i = c->graph.node_count; i >= 1; i--) fuse_epilogue(c, i, leaves); /* the last product of a group takes it */
    return true;
}
