/* fuse_filter - what stands between a causal convolution and the recurrence that alone reads it: query, key and value are channels of
 * the convolution's output, and the heads of query and key may be normed. Where a step has one token, the recurrence's kernel can
 * make all that itself (ops/linear_step.c). */
#include "fuse.h"

#include <string.h>

typedef struct NormRule { const char *op; bool squares, root; } NormRule;
/* What norms of heads fold; LpNormalization is a norm by itself. */
static const NormRule norm_rules[] = {
    {"ReduceSumSquare", true, false}, {"ReduceSum", false, false}, {"ReduceL2", true, true}, {"LpNormalization", true, false},
};

typedef struct Walk {
    Compilation *c;
    uint32_t recurrence;
    Filter *f;
    FilterNorm *norm;        /* NULL: the value has none */
    uint32_t value;          /* reached so far, from the recurrence's input on backwards */
} Walk;

static bool is_op(const Node *n, const char *name) { return !n->domain[0] && strcmp(n->op->name, name) == 0; }

/* Elements keep their order. */
static bool is_reshape(const Node *n) { return is_op(n, "Reshape") || is_op(n, "Squeeze") || is_op(n, "Unsqueeze") || is_op(n, "Flatten"); }

static bool add_member(Walk *w, uint32_t node)
{
    const Node *n = &w->c->graph.nodes[node];
    for (int i = 0; i < w->f->count; i++)
        if (w->f->members[i] == node) return true;
    if (n->dead || n->constant || n->loop != w->c->graph.nodes[w->recurrence].loop || w->f->count == MAX_FILTER) return false;
    if (n->together && n->together != w->recurrence) return false;
    w->f->members[w->f->count++] = node;
    return true;
}

static const Node *producer(const Walk *w) { return &w->c->graph.nodes[w->c->graph.values[w->value].producer]; }
static uint32_t index_of(const Walk *w, const Node *n) { return (uint32_t)(n - w->c->graph.nodes); }

/* Over node N, to its input. */
static bool step_over(Walk *w, const Node *n, int input)
{
    w->value = n->inputs[input];
    return add_member(w, index_of(w, n));
}

/* ---- norms of heads */

static const NormRule *rule_of(const Node *n)
{
    for (size_t i = 0; i < COUNT_OF(norm_rules); i++)
        if (is_op(n, norm_rules[i].op)) return &norm_rules[i];
    return NULL;
}

/* Takes all of the group that the fold's kernel makes. The one value that it reads besides constants; 0: several. */
static uint32_t group_source(Walk *w, uint32_t fold)
{
    Compilation *c = w->c;
    const Node *own = &c->graph.nodes[fold];
    uint32_t source = 0;
    const bool takes = fuse_group(c, c->graph.values[own->inputs[0]].producer) == fold;
    for (uint32_t i = takes ? 1 : fold; i <= own->epilogue; i++) {
        const Node *n = &c->graph.nodes[i];
        if (n->dead || fuse_group(c, i) != fold) continue;
        if (!add_member(w, i)) return 0;
        for (int k = 0; k < (i == fold ? 1 : n->input_count); k++) { /* axes are no elements */
            const Value *v = node_input(c, n, k);
            if (!v || v->is_constant || value_folded(v) || (v->producer && fuse_group(c, v->producer) == fold)) continue;
            if (source && source != n->inputs[k]) return 0;
            source = n->inputs[k];
        }
    }
    return source;
}

/* From the result of a norm to what it norms. */
static bool over_norm(Walk *w)
{
    Compilation *c = w->c;
    FilterNorm *norm = w->norm;
    const uint32_t index = fuse_group(c, index_of(w, producer(w)));
    const Node *n = &c->graph.nodes[index];
    const NormRule *rule = rule_of(n);
    if (!norm || norm->node || !rule) return false;
    const bool alone = is_op(n, "LpNormalization");
    if (alone ? attr_int(n, "p") != 2 || !add_member(w, index) : !n->epilogue) return false;
    const uint32_t source = alone ? n->inputs[0] : group_source(w, index);
    const Value *x = source ? &c->graph.values[source] : NULL, *y = &c->graph.values[w->value], *folded = node_input(c, n, 0);
    if (!x || x->rank < 1 || !fuse_same_dims(c, x, y) || !fuse_same_dims(c, x, folded) || folded->dtype == DT_F64) return false;
    if (alone && axis_normal(c, n, attr_int(n, "axis"), x->rank) != x->rank - 1) return false;
    norm->node = index;
    norm->squares = rule->squares;
    norm->root = rule->root;
    norm->source = source;
    norm->result = w->value;
    w->value = source;
    return true;
}

/* A product with, or a quotient by, one constant number. */
static bool over_scale(Walk *w, const Node *n)
{
    Compilation *c = w->c;
    FilterNorm *norm = w->norm;
    if (!norm || norm->node || norm->scales == MAX_SCALES || n->fused_into || !(is_op(n, "Mul") || is_op(n, "Div"))) return false;
    for (int k = 0; k < 2; k++) {
        const Value *v = node_input(c, n, k), *by = node_input(c, n, 1 - k);
        if (v->is_constant || !by->is_constant || !dim_is(c, value_elements(c, by), 1) || !fuse_same_dims(c, v, node_output(c, n, 0))) continue;
        memmove(norm->scale + 1, norm->scale, sizeof *norm->scale * (size_t)norm->scales++);
        norm->scale[0] = index_of(w, n);
        return step_over(w, n, k);
    }
    return false;
}

/* ---- back to the convolution */

/* Where output OUTPUT of Split N begins along its axis; -1 not known. */
static int64_t split_begins(Compilation *c, const Node *n, uint32_t output, int axis)
{
    int64_t sum = 0, extent;
    for (uint32_t i = 0; i < output; i++) {
        if (!n->outputs[i] || !dim_is_const(c, node_output(c, n, (int)i)->dims[axis], &extent)) return -1;
        sum += extent;
    }
    return sum;
}

static bool swaps_last(const Node *n)
{
    const Attr *perm = is_op(n, "Transpose") ? node_attr(n, "perm") : NULL;
    return perm && perm->count == 3 && perm->ints[0] == 0 && perm->ints[1] == 2 && perm->ints[2] == 1;
}

/* From a value [batch, tokens, channels] to the convolution [batch, all channels, tokens]. */
static bool over_channels(Walk *w, int64_t *first)
{
    Compilation *c = w->c;
    int axis = 2;
    *first = 0;
    for (;;) {
        const Value *v = &c->graph.values[w->value];
        const Node *n = v->producer ? producer(w) : NULL;
        if (!n) return false;
        if (swaps_last(n)) {
            axis = 3 - axis;
            if (!step_over(w, n, 0)) return false;
        } else if (is_op(n, "Split") && axis_normal(c, n, attr_int(n, "axis"), v->rank) == axis) {
            const int64_t begins = split_begins(c, n, v->output_index, axis);
            if (begins < 0 || !step_over(w, n, 0)) return false;
            *first += begins;
        } else {
            const uint32_t index = index_of(w, n);
            if (!(n->op->facts & OP_FILTER) || v->output_index || axis != 1 || (w->f->conv && w->f->conv != index)) return false;
            w->f->conv = index;
            return add_member(w, index);
        }
    }
}

static bool walk(Walk *w, int input)
{
    Compilation *c = w->c;
    const Value *from = node_input(c, &c->graph.nodes[w->recurrence], input);
    w->value = c->graph.nodes[w->recurrence].inputs[input];
    w->norm = input < 2 ? &w->f->norms[input] : NULL;
    for (;;) {
        const Value *v = &c->graph.values[w->value];
        const Node *n = v->producer ? producer(w) : NULL;
        if (!n) return false;
        if (swaps_last(n) || is_op(n, "Split")) break;
        if (is_reshape(n) ? !step_over(w, n, 0) : !over_scale(w, n) && !over_norm(w)) return false;
    }
    if (w->norm && w->norm->scales && !w->norm->node) return false;
    return from->rank == 3 && fuse_same_dims(c, &c->graph.values[w->value], from) && over_channels(w, &w->f->first[input]);
}

/* ---- nobody else reads what the members make */

static uint32_t reads_of(Compilation *c, uint32_t recurrence, const Filter *f, uint32_t value)
{
    uint32_t count = 0;
    for (int i = 0; i < f->count; i++) {
        const Node *n = &c->graph.nodes[f->members[i]];
        for (int k = 0; k < n->input_count; k++) count += n->inputs[k] == value;
    }
    for (int k = 0; k < 3; k++) count += c->graph.nodes[recurrence].inputs[k] == value;
    return count;
}

static bool closed(Compilation *c, uint32_t recurrence, const Filter *f)
{
    for (int i = 0; i < f->count; i++) {
        const Node *n = &c->graph.nodes[f->members[i]];
        for (int k = 0; k < n->output_count; k++) {
            const Value *v = node_output(c, n, k);
            const bool state = f->members[i] == f->conv && k == 1; /* it is made later: only the next step may read it */
            if (v && v->uses != (state ? (uint32_t)v->is_output : reads_of(c, recurrence, f, n->outputs[k]))) return false;
        }
    }
    return true;
}

bool filter_find(Compilation *c, uint32_t recurrence, Filter *f)
{
    const Node *n = &c->graph.nodes[recurrence];
    Walk w = {.c = c, .recurrence = recurrence, .f = f};
    memset(f, 0, sizeof *f);
    if (n->dead || n->constant || !(n->op->facts & OP_FILTERED)) return false;
    for (int i = 0; i < 3; i++)
        if (!n->inputs[i] || !walk(&w, i)) return false;
    return closed(c, recurrence, f);
}

void fuse_filters(Compilation *c)
{
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        Filter f;
        if (!filter_find(c, i, &f)) continue;
        for (int k = 0; k < f.count; k++) c->graph.nodes[f.members[k]].together = i;
    }
}
