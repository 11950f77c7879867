/* legacy.c - nodes of models that import ai.onnx 1 to 6, as nodes of version 7: rows of operators begin there (a few at 8). Most
 * operators did not change on the way; those that did are in a table, and what has no counterpart stays as it is and has no
 * row. */
#include <string.h>

#include "reader.h"

#define NEW_BROADCAST 7 /* the version that broadcasts as numpy does */

typedef enum Change {
    SAME,      /* nothing but `consumed_inputs`, a hint of version 1 */
    BROADCAST, /* the second input is broadcast on request, from `axis` on */
    CHANNELS,  /* PRelu: the slope is one number, or one a channel */
    THIRD,     /* Gemm: the third input is broadcast on request */
    INFERENCE, /* `is_test`: without it the node trains */
    EQUAL_DIMS, /* until version 8 the inputs are not broadcast */
    OTHER      /* another operator before */
} Change;

static const struct { const char *op; int changed; Change change; } changes[] = {
    {"Add", 7, BROADCAST},   {"Sub", 7, BROADCAST},     {"Mul", 7, BROADCAST}, {"Div", 7, BROADCAST},  {"Pow", 7, BROADCAST},
    {"And", 7, BROADCAST},   {"Or", 7, BROADCAST},      {"Xor", 7, BROADCAST}, {"Equal", 7, BROADCAST}, {"Greater", 7, BROADCAST},
    {"Less", 7, BROADCAST},  {"PRelu", 7, CHANNELS},    {"Gemm", 7, THIRD},    {"Dropout", 7, INFERENCE},
    {"Max", 8, EQUAL_DIMS},  {"Min", 8, EQUAL_DIMS},    {"Sum", 8, EQUAL_DIMS}, {"Mean", 8, EQUAL_DIMS},
    {"BatchNormalization", 7, INFERENCE},               {"Upsample", 7, OTHER}, {"GRU", 7, OTHER},     {"LSTM", 7, OTHER},
    {"RNN", 7, OTHER},       {"Cast", 6, OTHER},        {"Tile", 6, OTHER},    {"Reshape", 5, OTHER},  {"Concat", 4, OTHER},
    {"Pad", 2, OTHER},       {"Split", 2, OTHER},       {"LpPool", 2, OTHER},  {"GlobalLpPool", 2, OTHER},
};

static Change change_of(const Node *n)
{
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        if (!strcmp(changes[i].op, n->op_type))
            return n->opset < changes[i].changed ? changes[i].change : SAME;
    return SAME;
}

/* Takes an attribute away; its value, or `missing`. */
static int64_t take(Node *n, const char *name, int64_t missing)
{
    int64_t value = missing;
    int kept = 0;
    for (int i = 0; i < n->attr_count; i++) {
        if (!strcmp(n->attrs[i].name, name))
            value = n->attrs[i].i;
        else
            n->attrs[kept++] = n->attrs[i];
    }
    n->attr_count = kept;
    return value;
}

/* Input `i` gets `count` dims of 1 behind its own. */
static void append_dims(Compilation *c, Graph *g, uint32_t node, int i, int rank, int count)
{
    uint32_t from = g->nodes[node].inputs[i];
    uint32_t to = graph_value(c, g, arena_text(&c->arena, "%s/%s", g->nodes[node].name, g->values[from].name));
    uint32_t added = graph_node(c, g, "", "Unsqueeze", g->values[to].name, 1, 1);
    Attr *axes = NEW(c, Attr);
    *axes = (Attr){.name = "axes", .kind = ATTR_INTS, .present = true, .count = count, .ints = NEW_ARRAY(c, int64_t, count)};
    for (int k = 0; k < count; k++)
        axes->ints[k] = rank + k;
    Node *n = &g->nodes[added];
    n->opset = NEW_BROADCAST;
    n->attrs = axes;
    n->attr_count = 1;
    n->inputs[0] = from;
    n->outputs[0] = to;
    g->values[to].dtype = g->values[from].dtype;
    g->nodes[node].inputs[i] = to;
}

/* The second input's first dim stands at `axis` of the first input, not its last dim at the end. */
static bool align(Reader *r, Graph *g, uint32_t node, int64_t axis, const char *place)
{
    const Node *n = &g->nodes[node];
    if (n->input_count < 2 || !n->inputs[0] || !n->inputs[1])
        return true; /* reported where the operator is resolved */
    int a = g->values[n->inputs[0]].rank, b = g->values[n->inputs[1]].rank;
    if (a < 0 || b < 0) {
        diag_error(r->c, place, "axis %lld of version %d needs inputs of known rank; expected inputs of the graph or constants",
                   (long long)axis, n->opset);
        return false;
    }
    int64_t behind = a - axis - b;
    if (axis < 0 || behind < 0) {
        diag_error(r->c, place, "axis %lld is out of range for ranks %d and %d", (long long)axis, a, b);
        return false;
    }
    if (behind && b)
        append_dims(r->c, g, node, 1, b, (int)behind);
    return true;
}

static bool raise_broadcast(Reader *r, Graph *g, uint32_t node, const char *place)
{
    const int64_t none = -1;
    int64_t axis = take(&g->nodes[node], "axis", none);
    (void)take(&g->nodes[node], "broadcast", 0); /* without it the dims are equal, and nothing is broadcast */
    return axis == none || align(r, g, node, axis, place);
}

static bool raise_channels(Reader *r, Graph *g, uint32_t node, const char *place)
{
    const Node *n = &g->nodes[node];
    const Value *slope = n->input_count > 1 && n->inputs[1] ? &g->values[n->inputs[1]] : NULL;
    if (!slope || (slope->rank == 1 && dim_is(r->c, slope->dims[0], 1)))
        return true;
    return align(r, g, node, 1, place);
}

static bool raise_inference(Reader *r, Node *n, const char *place)
{
    if (take(n, "is_test", 0))
        return true;
    diag_error(r->c, place, "it trains (is_test is 0), which is not supported");
    return false;
}

bool legacy_raise(Reader *r, Graph *g, uint32_t node, const char *place)
{
    Node *n = &g->nodes[node];
    if (*n->domain || n->opset > NEW_BROADCAST)
        return true;
    Change change = change_of(n);
    bool good = true;
    if (change == OTHER || (change == SAME && n->opset == NEW_BROADCAST))
        return true;
    (void)take(n, "consumed_inputs", 0);
    if (change == BROADCAST)
        good = raise_broadcast(r, g, node, place);
    else if (change == CHANNELS)
        good = raise_channels(r, g, node, place);
    else if (change == THIRD)
        (void)take(n, "broadcast", 0);
    else if (change == INFERENCE)
        good = raise_inference(r, n, place);
    g->nodes[node].opset = change == EQUAL_DIMS ? NEW_BROADCAST + 1 : NEW_BROADCAST;
    return good;
}
