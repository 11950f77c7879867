/* gemv_heads.c - the norm of each head of a row, and the elementwise nodes behind it (a gate), at the beginning of the kernel of the one product
 * that reads the result: what stands between a recurrence and its output projection. */
#include "lower.h"
#include "ops/gemv.h"

static const Node *consumer_of(const Compilation *c, uint32_t value)
{
    for (uint32_t i = c->graph.values[value].producer + 1; i <= c->graph.node_count; i++)
        for (int k = 0; k < c->graph.nodes[i].input_count; k++)
            if (c->graph.nodes[i].inputs[k] == value && !c->graph.nodes[i].dead) return &c->graph.nodes[i];
    return NULL;
}

/* The product whose row is the last of the nodes behind norm N, perhaps reshaped, and nobody else's; NULL: there is none. */
static const Node *reader_of(const Compilation *c, const Node *n)
{
    uint32_t value = c->graph.nodes[n->epilogue].outputs[0];
    for (;;) {
        const Value *v = &c->graph.values[value];
        const Node *reader = v->uses == 1 && !v->is_output && !v->state ? consumer_of(c, value) : NULL;
        if (!reader || reader->inputs[0] != value) return NULL;
        if (reader->op->facts & OP_EPILOGUE) return reader;
        if (!is_reshape(reader)) return NULL;
        value = reader->outputs[0];
    }
}

/* Whether nothing is launched between norm N and its reader: then what both read is the same. */
static bool stands_before(const Node *n, const Node *reader)
{
    for (const Node *m = n + 1; m < reader; m++)
        if (!m->dead && !m->constant && !m->fused_into && !is_reshape(m)) return false;
    return true;
}

/* Whether the norm's kernel would make the last node alone, element by element of what it norms. */
static bool makes_one(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *x = node_input(c, n, 0), *y = node_output(c, &c->graph.nodes[n->epilogue], 0);
    if (kernel_beside_stored(l, n) || y->dtype != x->dtype || y->rank != x->rank) return false;
    for (int i = 0; i < x->rank; i++)
        if (lower_dim(l, x->dims[i]) != lower_dim(l, y->dims[i])) return false;
    for (const Node *m = n + 1; m < &c->graph.nodes[n->epilogue]; m++)
        if (m->fused_into == (uint32_t)(n - c->graph.nodes)) return false;
    return true;
}

static bool in_vectors(Lower *l, const Node *n, const NormRow *r, int64_t head, int64_t span)
{
    const View x = lower_input(l, n, 0), scale = lower_input(l, n, r->scale);
    const bool power = head >= 8 && head <= span && (head & (head - 1)) == 0; /* the lanes that have a head add by halves */
    return power && view_dense(l, &x, 0, x.rank) && view_vector(l, &x) == 8 && view_vector(l, &scale) == 8;
}

bool gemv_defer_heads(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    NormRow r;
    int64_t head, elements, k, span;
    if (!(n->op->facts & OP_NORM_ROW) || !n->epilogue || n->together || n->loop || l->signature->kind == SIG_LOAD || l->guarded) return false;
    if (!norm_row(c, n, &r) || r.skip >= 0 || r.sum >= 0) return false;
    const Node *reader = reader_of(c, n);
    if (!reader || !stands_before(n, reader) || !gemv_takes(l, reader, &k, &span) || !makes_one(l, n)) return false;
    const Value *x = node_input(c, n, 0), *scale = node_input(c, n, r.scale);
    if (x->dtype != node_input(c, reader, 0)->dtype || scale->dtype != x->dtype || !scale->is_constant || scale->rank != 1) return false;
    Dim all = dim_const(c, 1);
    for (int i = 0; i < x->rank; i++) all = dim_mul(c, all, lower_dim(l, x->dims[i]));
    if (!dim_is_const(c, lower_dim(l, x->dims[x->rank - 1]), &head) || !dim_is_const(c, all, &elements) || elements != k) return false;
    if (lower_dim(l, scale->dims[0]) != lower_dim(l, x->dims[x->rank - 1]) || !in_vectors(l, n, &r, head, span)) return false;
    const uint32_t index = (uint32_t)(n - c->graph.nodes);
    l->views[c->graph.nodes[n->epilogue].outputs[0]] = lower_input(l, n, 0); /* of the same shape: what its reader normalises */
    l->fates[index] = (NodeFate){REAL_FUSED, -1, NULL};
    l->made_by[index] = -1;
    return true;
}

const Node *gemv_heads(Lower *l, const Node *product)
{
    const Graph *g = &lower_compilation(l)->graph;
    uint32_t producer = g->values[product->inputs[0]].producer;
    while (producer && is_reshape(&g->nodes[producer])) producer = g->values[g->nodes[producer].inputs[0]].producer;
    const uint32_t norm = producer ? g->nodes[producer].fused_into : 0;
    return norm && l->made_by[norm] < 0 && (g->nodes[norm].op->facts & OP_NORM_ROW) && g->nodes[norm].epilogue == producer ? &g->nodes[norm] : NULL;
}

void gemv_set_heads(Lower *l, Kernel *k, const Node *norm)
{
    Compilation *c = lower_compilation(l);
    const Value *x = node_input(c, norm, 0);
    NormRow r;
    if (!norm_row(c, norm, &r)) fault("gemv", "norm '%s' was put off, but is none of one row", norm->name);
    const HeldRow row = kernel_held_beside(k, norm, "normed", "R");
    kernel_in(k, "X", lower_input(l, norm, 0));
    kernel_in(k, "SCALE", lower_input(l, norm, r.scale));
    kernel_float(k, "EPSILON", r.epsilon);
    kernel_dim(k, "HEAD", lower_dim(l, x->dims[x->rank - 1]));
    kernel_int(k, "HAS_SKIP", 0);
    kernel_int(k, "HAS_SUM", 0);
    kernel_int(k, "HAS_ROW", 0);
    kernel_text(k, "HEAD_INDEX", row.row_index);
    kernel_text(k, "HEAD_ONCE", row.once);
    kernel_text(k, "ELEMENT_INDEX", row.column_index);
    kernel_text(k, "ELEMENT_EACH", row.each);
    kernel_text(k, "ELEMENT_RESULT", row.result);
}
