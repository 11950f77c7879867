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

bool pass_fuse(Compilation *c)
{
    int *leaves = NEW_ARRAY(c, int, c->graph.node_count + 1), *members = NEW_ARRAY(c, int, c->graph.node_count + 1);
    mark_needed(c);
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        if (!c->graph.nodes[i].dead && pointwise(&c->graph.nodes[i])) fuse_node(c, i, leaves, members);
    return true;
}
