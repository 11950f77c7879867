/* uniform.c - values all of whose elements are one dim: ones that the device writes, their sum, the length of the sequence that an
 * exporter computes from them. Kernels that want such a length take the dim (OpRow.length_input), so nothing has to compute it, and
 * they know it before the kernels in front of them have ended. */
#include "compiler.h"

#include <string.h>

/* The element that all elements of V are; 0: they differ, or it is not known. */
static Dim element_of(Compilation *c, const Value *v)
{
    if (v->contents_count < 1) return v->each;
    for (int i = 1; i < v->contents_count; i++)
        if (!dim_equal(c, v->contents[i], v->contents[0])) return 0;
    return v->contents[0];
}

static Dim fed(Compilation *c, const Value *v)
{
    const Dim position = dim_symbol(c, c->position), after = dim_add(c, position, c->position_step);
    switch (v->feed) {
    case FEED_ONES: return v->rank && dim_equal(c, v->dims[v->rank - 1], after) ? dim_const(c, 1) : 0;
    case FEED_LENGTH: return after;
    case FEED_WRITE_INDEX: return position;
    default: return 0;
    }
}

static Dim elements(Compilation *c, const Value *v)
{
    Dim product = dim_const(c, 1);
    for (int k = 0; k < v->rank; k++) product = product ? dim_mul(c, product, v->dims[k]) : 0;
    return product;
}

/* As often as elements of X make one of Y. */
static Dim sum_of(Compilation *c, const Node *n, Dim x)
{
    const Dim all = elements(c, node_input(c, n, 0)), kept = elements(c, node_output(c, n, 0));
    const Dim each = all && kept ? dim_div_exact(c, all, kept) : 0;
    return each ? dim_mul(c, x, each) : 0;
}

static bool moves(const char *op)
{
    static const char *const names[] = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Expand", "Flatten", "Transpose"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!strcmp(op, names[i])) return true;
    return false;
}

static Dim computed(Compilation *c, const Node *n)
{
    const Value *x = node_input(c, n, 0), *y = node_input(c, n, 1);
    const char *op = n->op->name;
    const Dim a = x ? element_of(c, x) : 0, b = y ? element_of(c, y) : 0;
    if (!a || n->domain[0]) return 0;
    if (moves(op)) return a;
    if (!strcmp(op, "ReduceSum")) return sum_of(c, n, a);
    if (!b) return 0;
    if (!strcmp(op, "Add")) return dim_add(c, a, b);
    if (!strcmp(op, "Sub")) return dim_sub(c, a, b);
    return strcmp(op, "Mul") == 0 ? dim_mul(c, a, b) : 0;
}

static bool counts(const Value *v) { return v && (v->dtype == DT_I64 || v->dtype == DT_I32); }

void find_uniform(Compilation *c)
{
    Graph *g = &c->graph;
    if (!c->position || c->options.rows > 0) return; /* rows have lengths of their own */
    for (uint32_t i = 0; i < g->input_count; i++) {
        Value *v = &g->values[g->inputs[i]];
        if (counts(v)) v->each = fed(c, v);
    }
    for (uint32_t i = 1; i <= g->node_count; i++) {
        const Node *n = &g->nodes[i];
        Value *v = n->output_count == 1 ? node_output(c, n, 0) : NULL;
        if (!counts(v) || n->loop || !counts(node_input(c, n, 0))) continue;
        const Dim each = computed(c, n);
        v->each = each;
    }
}

bool uniform_length(Compilation *c, const Node *n, int input)
{
    const Value *v = node_input(c, n, input);
    return v && n->op->length_input == input + 1 && v->each != 0;
}
