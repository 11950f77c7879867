/* gemv_row.c - what is made of a row at the beginning of the kernel of the products that alone read the result: a norm of each head with the
 * elementwise nodes behind it, as between a recurrence and its output projection, or elementwise nodes alone, as of a gate behind an attention. */
#include "lower.h"
#include "ops/gemv.h"

/* Every block makes the row, so long as that takes less than the launch that it saves, 1.3 us of an H200: about 100 instructions a node for each 8
 * elements. And a kernel of six products has room for so many operands more. */
enum { MAX_MADE = 24 * 1024, MAX_READ = 8 };

static const Node *first_reader(const Compilation *c, uint32_t value)
{
    for (uint32_t i = c->graph.values[value].producer + 1; i <= c->graph.node_count; i++)
        for (int k = 0; k < c->graph.nodes[i].input_count; k++)
            if (c->graph.nodes[i].inputs[k] == value && !c->graph.nodes[i].dead) return &c->graph.nodes[i];
    return NULL;
}

/* The products whose row is VALUE, perhaps reshaped, and nobody else's: the first, where its kernel makes all of them; NULL: it does not. K: elements
 * of the row, of which a warp has SPAN together. */
static const Node *products_of(Lower *l, uint32_t value, int64_t *k, int64_t *span)
{
    const Compilation *c = lower_compilation(l);
    for (;;) {
        const Value *v = &c->graph.values[value];
        const Node *reader = v->is_output || v->state ? NULL : first_reader(c, value);
        if (!reader || reader->inputs[0] != value) return NULL;
        if (reader->op->facts & OP_EPILOGUE) return gemv_takes(l, reader, k, span) == (int)v->uses ? reader : NULL;
        if (!is_reshape(reader) || v->uses != 1) return NULL;
        value = reader->outputs[0];
    }
}

/* Leaves node FIRST to the products behind LAST, which makes the row: so nobody needs the reshapes between. */
static bool put_off(Lower *l, const Node *first, const Node *last)
{
    const Compilation *c = lower_compilation(l);
    for (const Node *n = first; n; n = first_reader(c, n == first ? last->outputs[0] : n->outputs[0])) {
        if (n != first && !is_reshape(n)) return true;
        l->made_by[n - c->graph.nodes] = -1;
        l->fates[n - c->graph.nodes] = (NodeFate){REAL_FUSED, -1, NULL};
    }
    return true;
}

/* Then it may not wait: the step may write the state. What is fused into a node reads none. */
static bool reads_state(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && node_input(c, n, i)->state) return true;
    return false;
}

/* Whether node LAST and those fused into it are few enough for a row of K elements. */
static bool worth_it(Compilation *c, uint32_t last, int64_t k)
{
    const Node *nodes = c->graph.nodes;
    int64_t made = 0, read = 1;
    for (uint32_t i = last; i > 0; i--) {
        uint32_t into = i;
        while (into && into != last) into = nodes[into].fused_into;
        if (!into || nodes[i].dead) continue;
        const Value *x = node_input(c, &nodes[i], 0);
        made += !x || x->dtype == node_output(c, &nodes[i], 0)->dtype; /* others convert or compare, nearly for nothing */
        read += nodes[i].input_count - 1;
    }
    return made * k <= MAX_MADE && read <= MAX_READ;
}

static bool defer_elements(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    int64_t k, span;
    if (!(n->op->facts & OP_POINTWISE) || n->op->lower || n->fused_into || reads_state(c, n)) return false;
    return products_of(l, n->outputs[0], &k, &span) && worth_it(c, (uint32_t)(n - c->graph.nodes), k) && put_off(l, n, n);
}

/* ---- behind a norm of heads */

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

static bool defer_heads(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    NormRow r;
    int64_t head, elements, k, span;
    if (!(n->op->facts & OP_NORM_ROW) || !n->epilogue || n->together || reads_state(c, n) || !norm_row(c, n, &r) || r.skip >= 0 || r.sum >= 0) return false;
    const Node *last = &c->graph.nodes[n->epilogue], *reader = products_of(l, last->outputs[0], &k, &span);
    if (!reader || !makes_one(l, n)) return false;
    const Value *x = node_input(c, n, 0), *scale = node_input(c, n, r.scale);
    if (x->dtype != node_input(c, reader, 0)->dtype || scale->dtype != x->dtype || !scale->is_constant || scale->rank != 1) return false;
    Dim all = dim_const(c, 1);
    for (int i = 0; i < x->rank; i++) all = dim_mul(c, all, lower_dim(l, x->dims[i]));
    if (!dim_is_const(c, lower_dim(l, x->dims[x->rank - 1]), &head) || !dim_is_const(c, all, &elements) || elements != k) return false;
    if (lower_dim(l, scale->dims[0]) != lower_dim(l, x->dims[x->rank - 1]) || !in_vectors(l, n, &r, head, span)) return false;
    return put_off(l, n, last);
}

bool gemv_defer_row(Lower *l, const Node *n)
{
    if (n->loop || l->signature->kind == SIG_LOAD || l->guarded) return false;
    return defer_elements(l, n) || defer_heads(l, n);
}

/* ---- in the products' kernel */

const Node *gemv_row(Lower *l, const Node *product)
{
    const Graph *g = &lower_compilation(l)->graph;
    uint32_t producer = g->values[product->inputs[0]].producer;
    while (producer && is_reshape(&g->nodes[producer])) producer = g->values[g->nodes[producer].inputs[0]].producer;
    if (!producer) return NULL;
    if (l->made_by[producer] < 0) return g->nodes[producer].op->facts & OP_POINTWISE ? &g->nodes[producer] : NULL;
    const uint32_t norm = g->nodes[producer].fused_into;
    return norm && l->made_by[norm] < 0 && (g->nodes[norm].op->facts & OP_NORM_ROW) && g->nodes[norm].epilogue == producer ? &g->nodes[norm] : NULL;
}

static void set_norm(Lower *l, Kernel *k, const Node *norm)
{
    Compilation *c = lower_compilation(l);
    const Value *x = node_input(c, norm, 0);
    NormRow r;
    if (!norm_row(c, norm, &r)) fault("gemv", "norm '%s' was put off, but is none of one row", norm->name);
    kernel_in(k, "X", lower_input(l, norm, 0));
    kernel_in(k, "SCALE", lower_input(l, norm, r.scale));
    kernel_float(k, "EPSILON", r.epsilon);
    kernel_dim(k, "HEAD", lower_dim(l, x->dims[x->rank - 1]));
}

void gemv_set_row(Lower *l, Kernel *k, const Node *first)
{
    Compilation *c = lower_compilation(l);
    const bool heads = first->op->facts & OP_NORM_ROW;
    const Node *last = heads ? &c->graph.nodes[first->epilogue] : first;
    const Given given = {first->outputs[0], "given"};
    if (heads) set_norm(l, k, first);
    const RowElements row = kernel_row(k, (uint32_t)(last - c->graph.nodes), heads ? &given : NULL, "R");
    kernel_int(k, "HELD", row.count);
    kernel_int(k, "HELD_RUNS", row.runs);
    kernel_text(k, "HELD_READ", row.read);
    kernel_text(k, "HELD_TAKE", row.take);
    kernel_text(k, "ELEMENT_BODY", heads ? arena_text(&c->arena, "%s%s", kernel_given(l, given.value, given.name, "normed"), row.body) : row.body);
    kernel_text(k, "ELEMENT_RESULT", row.result);
    for (const Node *n = first; n == first || is_reshape(n); n = first_reader(c, n == first ? last->outputs[0] : n->outputs[0]))
        l->fates[n - c->graph.nodes] = (NodeFate){REAL_FUSED, l->launch_count, NULL};
}
