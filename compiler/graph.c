/* graph.c - the graph's own operations: making values and nodes, order, the accessors of operator rows, reading of
 * constant elements. */
#include "compiler.h"
#include "graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Arrays are 1-based and move when they grow: a Value or Node pointer does not outlive graph_value or graph_node. */
static void *grown(Compilation *c, void *old, uint32_t count, uint32_t *room, size_t size)
{
    if (count + 1 < *room)
        return old;
    if (*room > UINT32_MAX / 4)
        fault("graph", "more than %u elements", *room);
    uint32_t wanted = *room ? *room * 2 : 64;
    void *fresh = arena_alloc(&c->arena, wanted * size);
    if (old)
        memcpy(fresh, old, (count + 1) * size);
    *room = wanted;
    return fresh;
}

uint32_t graph_value(Compilation *c, Graph *g, const char *name)
{
    g->values = grown(c, g->values, g->value_count, &g->value_room, sizeof *g->values);
    Value *v = &g->values[++g->value_count];
    *v = (Value){.name = arena_copy(&c->arena, name ? name : ""), .rank = -1, .contents_count = -1};
    return g->value_count;
}

uint32_t graph_node(Compilation *c, Graph *g, const char *domain, const char *op, const char *name, int inputs, int outputs)
{
    g->nodes = grown(c, g->nodes, g->node_count, &g->node_room, sizeof *g->nodes);
    Node *n = &g->nodes[++g->node_count];
    *n = (Node){.domain = arena_copy(&c->arena, domain ? domain : ""), .op_type = arena_copy(&c->arena, op),
                .input_count = inputs, .output_count = outputs};
    n->name = name && *name ? arena_copy(&c->arena, name) : arena_text(&c->arena, "%s#%u", op, g->node_count);
    n->inputs = NEW_ARRAY(c, uint32_t, inputs);
    n->outputs = NEW_ARRAY(c, uint32_t, outputs);
    return g->node_count;
}

void graph_count_uses(Compilation *c, Graph *g)
{
    (void)c;
    for (uint32_t v = 1; v <= g->value_count; v++)
        g->values[v].uses = 0;
    for (uint32_t n = 1; n <= g->node_count; n++)
        for (int i = 0; !g->nodes[n].dead && i < g->nodes[n].input_count; i++)
            if (g->nodes[n].inputs[i])
                g->values[g->nodes[n].inputs[i]].uses++;
    for (uint32_t i = 0; i < g->output_count; i++)
        if (g->outputs[i])
            g->values[g->outputs[i]].uses++;
}

/* ---- topological order: Kahn's algorithm, taking of the ready nodes the one that stood first. */

static void set_producers(Graph *g)
{
    for (uint32_t v = 1; v <= g->value_count; v++)
        g->values[v].producer = g->values[v].output_index = 0;
    for (uint32_t n = 1; n <= g->node_count; n++)
        for (int i = 0; i < g->nodes[n].output_count; i++) {
            uint32_t v = g->nodes[n].outputs[i];
            if (v) {
                g->values[v].producer = n;
                g->values[v].output_index = (uint32_t)i;
            }
        }
}

typedef struct Heap { uint32_t *at, size; } Heap;

static void heap_push(Heap *h, uint32_t x)
{
    uint32_t i = h->size++;
    for (; i > 0 && h->at[(i - 1) / 2] > x; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = x;
}

static uint32_t heap_pop(Heap *h)
{
    uint32_t least = h->at[0], last = h->at[--h->size], i = 0;
    for (uint32_t k; (k = 2 * i + 1) < h->size; i = k) {
        if (k + 1 < h->size && h->at[k + 1] < h->at[k])
            k++;
        if (h->at[k] >= last)
            break;
        h->at[i] = h->at[k];
    }
    h->at[i] = last;
    return least;
}

typedef struct Sorter {
    uint32_t *waits;        /* by node: inputs that are not made yet */
    uint32_t *first, *user; /* users of node n: user[first[n]] .. user[first[n + 1] - 1] */
    uint32_t *order, done;  /* old index of each new place, from 1 */
} Sorter;

static void sorter_users(Compilation *c, const Graph *g, Sorter *s)
{
    s->waits = NEW_ARRAY(c, uint32_t, g->node_count + 1);
    s->first = NEW_ARRAY(c, uint32_t, g->node_count + 3);
    s->order = NEW_ARRAY(c, uint32_t, g->node_count + 1);
    for (int round = 0; round < 2; round++) {
        for (uint32_t n = 1; n <= g->node_count; n++)
            for (int i = 0; i < g->nodes[n].input_count; i++) {
                uint32_t v = g->nodes[n].inputs[i], p = v ? g->values[v].producer : 0;
                if (!p)
                    continue;
                if (round == 0) {
                    s->first[p + 2]++;
                    s->waits[n]++;
                } else {
                    s->user[s->first[p + 1]++] = n;
                }
            }
        if (round == 0) {
            for (uint32_t n = 1; n <= g->node_count + 2; n++)
                s->first[n] += s->first[n - 1];
            s->user = NEW_ARRAY(c, uint32_t, s->first[g->node_count + 2] + 1);
        }
    }
}

static void sorter_run(Compilation *c, const Graph *g, Sorter *s)
{
    Heap ready = {NEW_ARRAY(c, uint32_t, g->node_count + 1), 0};
    for (uint32_t n = 1; n <= g->node_count; n++)
        if (!s->waits[n])
            heap_push(&ready, n);
    while (ready.size) {
        uint32_t n = heap_pop(&ready);
        s->order[++s->done] = n;
        for (uint32_t u = s->first[n]; u < s->first[n + 1]; u++)
            if (--s->waits[s->user[u]] == 0)
                heap_push(&ready, s->user[u]);
    }
}

/* From any waiting node, walking to a producer that waits too, as often as there are nodes, ends on a cycle. */
static uint32_t node_on_cycle(const Graph *g, const Sorter *s)
{
    uint32_t at = 1;
    while (at <= g->node_count && !s->waits[at])
        at++;
    for (uint32_t step = 0; step < g->node_count; step++)
        for (int i = 0; i < g->nodes[at].input_count; i++) {
            uint32_t v = g->nodes[at].inputs[i], p = v ? g->values[v].producer : 0;
            if (p && s->waits[p]) {
                at = p;
                break;
            }
        }
    return at;
}

bool graph_sort(Compilation *c, Graph *g)
{
    Sorter s = {0};
    set_producers(g);
    sorter_users(c, g, &s);
    sorter_run(c, g, &s);
    if (s.done < g->node_count) {
        node_error(c, &g->nodes[node_on_cycle(g, &s)], "the graph has a cycle through this node: it needs its own output");
        return false;
    }
    Node *nodes = NEW_ARRAY(c, Node, g->node_room ? g->node_room : 1);
    for (uint32_t n = 1; n <= g->node_count; n++)
        nodes[n] = g->nodes[s.order[n]];
    for (uint32_t n = 1; n <= g->node_count; n++) /* indices of nodes follow them */
        s.waits[s.order[n]] = n;
    for (uint32_t n = 1; n <= g->node_count; n++) {
        nodes[n].fused_into = nodes[n].fused_into ? s.waits[nodes[n].fused_into] : 0;
        nodes[n].epilogue = nodes[n].epilogue ? s.waits[nodes[n].epilogue] : 0;
        nodes[n].together = nodes[n].together ? s.waits[nodes[n].together] : 0;
        nodes[n].gate = nodes[n].gate ? s.waits[nodes[n].gate] : 0;
    }
    g->nodes = nodes;
    set_producers(g);
    graph_count_uses(c, g);
    return true;
}

/* ---- accessors. They are asked with nodes of the main graph or of a subgraph; a node does not know its graph, so
 * it is found by address. */

static Graph *graph_of(Compilation *c, const Node *n)
{
    uintptr_t at = (uintptr_t)n;
    for (uint32_t i = 0; i < c->subgraph_count; i++) {
        uintptr_t first = (uintptr_t)c->subgraphs[i].nodes;
        if (first && at > first && at <= first + c->subgraphs[i].node_count * sizeof *n)
            return &c->subgraphs[i];
    }
    return &c->graph;
}

static Value *value_at(Compilation *c, const Node *n, const uint32_t *list, int count, int i)
{
    if (i < 0 || i >= count || !list[i])
        return NULL;
    return &graph_of(c, n)->values[list[i]];
}

Value *node_input(Compilation *c, const Node *n, int i)
{
    return value_at(c, n, n->inputs, n->input_count, i);
}

Value *node_output(Compilation *c, const Node *n, int i)
{
    return value_at(c, n, n->outputs, n->output_count, i);
}

static const Attr *attr_find(const Node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (!strcmp(n->attrs[i].name, name))
            return &n->attrs[i];
    return NULL;
}

const Attr *node_attr(const Node *n, const char *name)
{
    const Attr *a = attr_find(n, name);
    if (!a && n->op)
        fault("ops", "the row of %s-%d has no attribute '%s'", n->op_type, n->op->since, name);
    return a;
}

int64_t attr_int(const Node *n, const char *name)
{
    const Attr *a = node_attr(n, name);
    return a ? a->i : 0;
}

DType attr_dtype(const Node *n, const char *name)
{
    const int64_t number = attr_int(n, name);
    return number > DT_NONE && number <= DT_I2 ? (DType)number : DT_UNKNOWN;
}

double attr_float(const Node *n, const char *name)
{
    const Attr *a = node_attr(n, name);
    return a ? a->f : 0;
}

const char *attr_string(const Node *n, const char *name)
{
    const Attr *a = node_attr(n, name);
    return a && a->s ? a->s : "";
}

bool attr_given(const Node *n, const char *name)
{
    const Attr *a = attr_find(n, name);
    return a && a->present;
}

int axis_normal(Compilation *c, const Node *n, int64_t axis, int rank)
{
    if (axis < -(int64_t)rank || axis >= rank) {
        node_error(c, n, "axis %lld is out of range for rank %d", (long long)axis, rank);
        return -1;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- constant elements */

bool value_count(Compilation *c, const Value *v, int64_t *count)
{
    int64_t n = 1, d;
    if (v->rank < 0)
        return false;
    for (int i = 0; i < v->rank; i++) {
        if (!dim_is_const(c, v->dims[i], &d) || d < 0 || (d && n > INT64_MAX / d))
            return false;
        n *= d;
    }
    *count = n;
    return true;
}

/* Elements of a constant whose bytes are at hand and enough. */
static bool data_count(Compilation *c, const Value *v, int64_t *count)
{
    if (!v->data || !value_count(c, v, count))
        return false;
    int64_t bytes = dtype_bytes(v->dtype, *count);
    return bytes == 0 || (v->data->bytes && (uint64_t)bytes <= v->data->size);
}

static bool known_contents(const Value *v)
{
    return v->contents_count >= 0 && (v->contents || v->contents_count == 0);
}

bool value_ints(Compilation *c, const Value *v, int64_t **out, int *count)
{
    if (!v)
        return false;
    if (known_contents(v)) {
        int64_t *list = NEW_ARRAY(c, int64_t, v->contents_count);
        for (int i = 0; i < v->contents_count; i++)
            if (!dim_is_const(c, v->contents[i], &list[i]))
                return false;
        *out = list;
        *count = v->contents_count;
        return true;
    }
    int64_t n;
    if ((!dtype_is_integer(v->dtype) && v->dtype != DT_BOOL) || !data_count(c, v, &n) || n > INT32_MAX)
        return false;
    int64_t *list = NEW_ARRAY(c, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        list[i] = data_int(v, i);
    *out = list;
    *count = (int)n;
    return true;
}

bool value_dims(Compilation *c, const Value *v, Dim **out, int *count)
{
    if (!v)
        return false;
    if (known_contents(v)) {
        *out = v->contents;
        *count = v->contents_count;
        return true;
    }
    int64_t *ints, n;
    if (!data_count(c, v, &n) || n > MAX_CONTENTS || !value_ints(c, v, &ints, count))
        return false;
    *out = NEW_ARRAY(c, Dim, *count);
    for (int i = 0; i < *count; i++)
        (*out)[i] = dim_const(c, ints[i]);
    return true;
}

bool value_floats(Compilation *c, const Value *v, const double **out, int *count)
{
    int64_t n;
    if (!v || !dtype_is_float(v->dtype) || !value_count(c, v, &n) || n > MAX_CONTENTS) return false;
    *count = (int)n;
    *out = v->floats;
    if (v->floats) return true;
    if (!data_count(c, v, &n)) return false;
    double *list = NEW_ARRAY(c, double, n + 1);
    for (int64_t i = 0; i < n; i++) list[i] = data_float(v, i);
    *out = list;
    return true;
}

static uint64_t load(const Value *v, int64_t i, size_t bytes)
{
    uint64_t x = 0;
    const unsigned char *p = (const unsigned char *)v->data->bytes + (size_t)i * bytes;
    for (size_t b = 0; b < bytes; b++)
        x |= (uint64_t)p[b] << 8 * b;
    return x;
}

/* Element i of a packed type. */
static unsigned load_bits(const Value *v, int64_t i, int bits)
{
    unsigned byte = ((const unsigned char *)v->data->bytes)[i * bits / 8];
    return byte >> i * bits % 8 & ((1u << bits) - 1);
}

/* A small float: `bias`, `mantissa` bits; SPECIAL says what its largest exponent means: 'i' infinities and NaN as in
 * IEEE, 'n' only all ones is NaN, 'u' only minus zero is NaN, 'f' all finite. */
static double small_float(unsigned x, int exponent, int mantissa, int bias, char special)
{
    unsigned top = (1u << exponent) - 1, e = x >> mantissa & top, m = x & ((1u << mantissa) - 1);
    unsigned sign = x >> (exponent + mantissa) & 1;
    double value;
    if (special == 'i' && e == top)
        value = m ? (double)NAN : (double)INFINITY;
    else if (special == 'n' && e == top && m == (1u << mantissa) - 1)
        value = (double)NAN;
    else if (special == 'u' && sign && !e && !m)
        return (double)NAN;
    else if (e == 0)
        value = ldexp((double)m, 1 - bias - mantissa);
    else
        value = ldexp((double)(m | 1u << mantissa), (int)e - bias - mantissa);
    return sign ? -value : value;
}

int64_t data_int(const Value *v, int64_t i)
{
    switch (v->dtype) {
    case DT_BOOL: return load(v, i, 1) != 0;
    case DT_U8: return (int64_t)load(v, i, 1);
    case DT_I8: return (int8_t)load(v, i, 1);
    case DT_U16: return (int64_t)load(v, i, 2);
    case DT_I16: return (int16_t)load(v, i, 2);
    case DT_U32: return (int64_t)load(v, i, 4);
    case DT_I32: return (int32_t)load(v, i, 4);
    case DT_U64: case DT_I64: return (int64_t)load(v, i, 8);
    case DT_U4: return load_bits(v, i, 4);
    case DT_I4: return (int64_t)(load_bits(v, i, 4) ^ 8) - 8;
    case DT_U2: return load_bits(v, i, 2);
    case DT_I2: return (int64_t)(load_bits(v, i, 2) ^ 2) - 2;
    default: return (int64_t)data_float(v, i);
    }
}

double data_float(const Value *v, int64_t i)
{
    switch (v->dtype) {
    case DT_F32: case DT_BF16: {
        uint32_t bits = v->dtype == DT_F32 ? (uint32_t)load(v, i, 4) : (uint32_t)load(v, i, 2) << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    case DT_F64: {
        uint64_t bits = load(v, i, 8);
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    case DT_F16: return small_float((unsigned)load(v, i, 2), 5, 10, 15, 'i');
    case DT_F8E4M3FN: return small_float((unsigned)load(v, i, 1), 4, 3, 7, 'n');
    case DT_F8E4M3FNUZ: return small_float((unsigned)load(v, i, 1), 4, 3, 8, 'u');
    case DT_F8E5M2: return small_float((unsigned)load(v, i, 1), 5, 2, 15, 'i');
    case DT_F8E5M2FNUZ: return small_float((unsigned)load(v, i, 1), 5, 2, 16, 'u');
    case DT_F4E2M1: return small_float(load_bits(v, i, 4), 2, 1, 1, 'f');
    case DT_F8E8M0: return load(v, i, 1) == 255 ? (double)NAN : ldexp(1.0, (int)load(v, i, 1) - 127);
    case DT_U64: return (double)load(v, i, 8);
    case DT_NONE: case DT_STRING: case DT_C64: case DT_C128:
        fault("graph", "element %lld of '%s' (%s) is no number", (long long)i, v->name, dtype_name(v->dtype));
    default: return (double)data_int(v, i);
    }
}
