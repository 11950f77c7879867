/* fuse_rows - kernels that hold a whole row, its fold or its norm (OP_BESIDE), compute elementwise nodes of the row besides: the
 * group that makes what a fold alone reads, where it loads, and the groups behind, where it stores. So the chain of an L2
 * norm, or a layer norm in elementary operators, is one or two launches. */
#include "fuse.h"

enum { MAX_COLUMNS = 8192, MAX_OPERANDS_BESIDE = 24 }; /* a block makes a row: one too long is better spread over the device */

typedef struct Rows {
    Compilation *c;
    const int *leaves;
    uint32_t node;           /* with OP_BESIDE */
    const Value *each, *once; /* of their shapes are values with an element for each column, and with one a row; once NULL: no fold */
    int operands;            /* that the nodes taken so far read */
} Rows;

static bool few_columns(Compilation *c, Dim columns)
{
    for (int j = 1; j < c->signature_count; j++)
        if (signature_upper(c, &c->signatures[j], columns) > MAX_COLUMNS) return false;
    return true;
}

/* Shapes alone tell a fold of the last axis, whose result broadcasts back over the row. */
static bool rows_begin(Rows *r)
{
    const Node *n = &r->c->graph.nodes[r->node];
    if (n->dead || !(n->op->facts & OP_BESIDE)) return false;
    const Value *x = node_input(r->c, n, 0), *y = node_output(r->c, n, 0);
    if (!x || !y || x->rank < 1 || x->rank != y->rank || y->state || !few_columns(r->c, x->dims[x->rank - 1])) return false;
    r->each = x;
    r->once = NULL;
    if (fuse_same_dims(r->c, x, y)) return true;
    for (int k = 0; k + 1 < x->rank; k++)
        if (!dim_equal(r->c, x->dims[k], y->dims[k])) return false;
    r->once = y;
    return dim_is(r->c, y->dims[y->rank - 1], 1);
}

/* The last node of a group that may become part of the kernel, as far as it goes alone. */
static bool takes(const Rows *r, uint32_t last)
{
    const Node *n = &r->c->graph.nodes[last], *own = &r->c->graph.nodes[r->node];
    if (n->dead || n->fused_into || !fuse_pointwise(n) || n->constant != own->constant || n->loop != own->loop) return false;
    if (fuse_reads_state(r->c, n)) return false; /* the others of its group do not */
    return !node_output(r->c, n, 0)->state && r->operands + r->leaves[last] <= MAX_OPERANDS_BESIDE;
}

static void take(Rows *r, uint32_t last)
{
    r->c->graph.nodes[last].fused_into = r->node;
    r->operands += r->leaves[last];
}

/* ---- before a fold */

static void take_before(Rows *r)
{
    const Value *x = node_input(r->c, &r->c->graph.nodes[r->node], 0);
    if (!rows_begin(r) || !r->once || x->uses != 1 || x->is_output || x->state || !x->producer || value_folded(x)) return;
    if (takes(r, x->producer)) take(r, x->producer);
}

/* ---- behind it */

/* A value that the kernel has: the result of its node, or of a group that it computes. */
static bool has(const Rows *r, const Value *v)
{
    if (v->producer == r->node) return v->output_index == 0;
    return v->producer > r->node && r->c->graph.nodes[v->producer].fused_into == r->node;
}

static bool reads_any(const Rows *r, const Node *n)
{
    for (int k = 0; k < n->input_count; k++)
        if (n->inputs[k] && has(r, &r->c->graph.values[n->inputs[k]])) return true;
    return false;
}

/* All that the group reads from outside is there when the kernel is launched, or made by it. */
static bool ready(const Rows *r, uint32_t last)
{
    Compilation *c = r->c;
    for (uint32_t i = r->node + 1; i <= last; i++) {
        const Node *n = &c->graph.nodes[i];
        if (n->dead || !fuse_pointwise(n) || fuse_group(c, i) != last) continue;
        for (int k = 0; k < n->input_count; k++) {
            const Value *v = node_input(c, n, k);
            if (v && v->producer >= r->node && !v->is_constant && !value_folded(v) && !has(r, v) && fuse_group(c, v->producer) != last) return false;
        }
    }
    return true;
}

static void take_behind(Rows *r)
{
    Compilation *c = r->c;
    if (!rows_begin(r)) return;
    for (uint32_t i = r->node + 1; i <= c->graph.node_count; i++) {
        const Node *n = &c->graph.nodes[i];
        if (n->dead || !fuse_pointwise(n) || !reads_any(r, n)) continue;
        const uint32_t last = fuse_group(c, i);
        if (!takes(r, last)) continue;
        const Value *v = node_output(c, &c->graph.nodes[last], 0);
        if (!fuse_same_dims(c, v, r->each) && !(r->once && fuse_same_dims(c, v, r->once))) continue;
        if (!ready(r, last)) continue;
        take(r, last);
        Node *own = &c->graph.nodes[r->node];
        if (own->epilogue < last) own->epilogue = last;
    }
}

void fuse_row_kernels(Compilation *c, const int *leaves)
{
    Rows *rows = NEW_ARRAY(c, Rows, c->graph.node_count + 1);
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        rows[i] = (Rows){.c = c, .leaves = leaves, .node = i};
        if (c->graph.nodes[i].op->facts & OP_BESIDE) take_before(&rows[i]);
    }
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        if (c->graph.nodes[i].op->facts & OP_BESIDE) take_behind(&rows[i]);
}
