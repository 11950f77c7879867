/* expand.c - nodes that stand for others become plain nodes of the main graph, as soon as inference knows enough to decide
 * how: control flow (ops/control.c), sequences and optionals (ops/sequence.c), operators that are functions. This file makes
 * the nodes, clones subgraphs, and puts the result in place.
 *
 * Values that a cloned subgraph takes from outside are found by name in the scopes around the node. */
#include "compiler.h"
#include "dim.h"
#include "expand.h"
#include "ops/ops.h"

#include <string.h>

enum { MAX_EXPANDED = 200000 };

bool expand_refuse(Expansion *e, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    node_error(e->c, &e->c->graph.nodes[e->at], "%s", text);
    return false;
}

/* ---- making nodes */

static Node *add_node(Expansion *e)
{
    if (e->count == e->room) {
        uint32_t room = e->room ? e->room * 2 : 64;
        Node *bigger = NEW_ARRAY(e->c, Node, room);
        if (e->count) memcpy(bigger, e->nodes, sizeof(Node) * e->count);
        e->nodes = bigger;
        e->room = room;
    }
    Node *n = &e->nodes[e->count++];
    *n = (Node){ .loop = e->loop ? e->loop : e->node.loop, .scope = e->node.scope };
    return n;
}

Node *expand_node(Expansion *e, const char *domain, const char *op, int inputs, int outputs)
{
    Node *n = add_node(e);
    n->name = arena_text(&e->c->arena, "%s/%s#%u", e->node.name, op, e->count);
    n->domain = domain;
    n->op_type = op;
    n->opset = *domain ? 1 : *e->node.domain ? EXPAND_OPSET : e->node.opset;
    n->input_count = inputs;
    n->output_count = outputs;
    n->inputs = NEW_ARRAY(e->c, uint32_t, inputs + 1);
    n->outputs = NEW_ARRAY(e->c, uint32_t, outputs + 1);
    return n;
}

void expand_attr(Expansion *e, Node *n, const Attr *a)
{
    Attr *more = NEW_ARRAY(e->c, Attr, n->attr_count + 1);
    if (n->attr_count) memcpy(more, n->attrs, sizeof(Attr) * (size_t)n->attr_count);
    more[n->attr_count++] = *a;
    n->attrs = more;
}

void expand_int(Expansion *e, Node *n, const char *name, int64_t v)
{
    expand_attr(e, n, &(Attr){ .name = name, .kind = ATTR_INT, .present = true, .i = v });
}

uint32_t expand_value(Expansion *e, const char *what)
{
    return graph_value(e->c, &e->c->graph, arena_text(&e->c->arena, "%s/%s#%u", e->node.name, what, e->c->graph.value_count + 1));
}

uint32_t expand_constant(Expansion *e, DType t, int rank, int count, const int64_t *v)
{
    uint32_t index = expand_value(e, "constant");
    Value *value = &e->c->graph.values[index];
    value->dtype = t;
    value->rank = rank;
    value->dims[0] = rank ? dim_const(e->c, count) : 0;
    value->contents = NEW_ARRAY(e->c, Dim, count + 1);
    for (int i = 0; i < count; i++) value->contents[i] = dim_const(e->c, v[i]);
    value->contents_count = count;
    value->is_constant = true;
    return index;
}

uint32_t expand_number(Expansion *e, DType t, int rank, int64_t v)
{
    return expand_constant(e, t, rank, 1, &v);
}

uint32_t expand_float(Expansion *e, float v)
{
    uint32_t index = expand_value(e, "constant");
    Value *value = &e->c->graph.values[index];
    float *bytes = NEW(e->c, float);
    *bytes = v;
    value->dtype = DT_F32;
    value->rank = 0;
    value->data = NEW(e->c, Data);
    *value->data = (Data){ .bytes = bytes, .size = sizeof *bytes };
    value->is_constant = true;
    return index;
}

uint32_t expand_cast(Expansion *e, uint32_t x, DType from, DType to)
{
    if (from == to) return x;
    const uint32_t made = expand_made(e, "Cast", x, 0);
    expand_int(e, &e->nodes[e->count - 1], "to", to);
    return made;
}

void expand_identity(Expansion *e, uint32_t from, uint32_t to)
{
    Node *n = expand_node(e, "", "Identity", 1, 1);
    n->inputs[0] = from;
    n->outputs[0] = to;
}

uint32_t expand_made(Expansion *e, const char *op, uint32_t a, uint32_t b)
{
    uint32_t made = expand_value(e, op);
    Node *n = expand_node(e, "", op, b ? 2 : 1, 1);
    n->inputs[0] = a;
    if (b) n->inputs[1] = b;
    n->outputs[0] = made;
    return made;
}

uint32_t expand_element(Expansion *e, uint32_t from, int axis, int64_t k)
{
    uint32_t to = expand_made(e, "Gather", from, expand_number(e, DT_I64, 0, k));
    expand_int(e, &e->nodes[e->count - 1], "axis", axis);
    return to;
}

void expand_stack(Expansion *e, const uint32_t *parts, int64_t count, int axis, uint32_t to)
{
    uint32_t *rows = NEW_ARRAY(e->c, uint32_t, count + 1);
    for (int64_t k = 0; k < count; k++) {
        rows[k] = expand_made(e, "Unsqueeze", parts[k], expand_number(e, DT_I64, 1, axis));
        Node *n = &e->nodes[e->count - 1];
        if (n->opset < 13) n->opset = 13; /* axes are an input there */
    }
    Node *n = expand_node(e, "", "Concat", (int)count, 1);
    memcpy(n->inputs, rows, sizeof *rows * (size_t)count);
    n->outputs[0] = to;
    expand_int(e, n, "axis", axis);
}

/* ---- sequences and optionals */

bool expand_list(Expansion *e, int i, bool optional, int count, const uint32_t *items)
{
    if (i >= e->node.output_count || !e->node.outputs[i]) return true;
    if (count > MAX_LIST) return expand_refuse(e, "the sequence would hold %d values; expected at most %d", count, MAX_LIST);
    List *list = NEW(e->c, List);
    *list = (List){ .optional = optional, .count = count, .items = NEW_ARRAY(e->c, uint32_t, count + 1) };
    if (count) memcpy(list->items, items, sizeof *items * (size_t)count);
    e->c->graph.values[e->node.outputs[i]].list = list;
    return true;
}

const List *expand_input_list(const Expansion *e, int i)
{
    const Value *v = node_input(e->c, &e->node, i);
    return v ? v->list : NULL;
}

/* ---- cloning */

static uint32_t main_value(Compilation *c, const char *name)
{
    for (uint32_t v = 1; v <= c->graph.value_count; v++)
        if (!strcmp(c->graph.values[v].name, name)) return v;
    return 0;
}

static uint32_t outer_value(Expansion *e, const char *name)
{
    for (const ScopeNames *s = e->node.scope; s; s = s->outer)
        for (uint32_t i = 0; i < s->count; i++)
            if (!strcmp(s->names[i], name)) return s->values[i];
    return main_value(e->c, name);
}

static uint32_t clone_value(Expansion *e, const Value *from)
{
    uint32_t index = graph_value(e->c, &e->c->graph, arena_text(&e->c->arena, "%s/%s#%u", e->node.name, from->name, e->c->graph.value_count + 1));
    Value *v = &e->c->graph.values[index];
    const char *name = v->name;
    *v = *from;
    v->name = name;
    v->producer = v->output_index = 0;
    v->is_input = v->is_output = false;
    if (!v->data) v->rank = -1;
    return index;
}

static bool map_values(Expansion *e, const Graph *g, const uint32_t *inputs, ScopeNames *s)
{
    s->outer = e->node.scope;
    s->names = NEW_ARRAY(e->c, const char *, g->value_count + 1);
    s->values = NEW_ARRAY(e->c, uint32_t, g->value_count + 1);
    for (uint32_t i = 1; i <= g->value_count; i++) {
        const Value *v = &g->values[i];
        uint32_t mapped = 0;
        for (uint32_t k = 0; k < g->input_count; k++)
            if (g->inputs[k] == i) mapped = inputs[k];
        if (!mapped && !v->data && !v->producer && *v->name) {
            mapped = outer_value(e, v->name);
            if (!mapped) return expand_refuse(e, "its subgraph reads '%s', which nothing makes", v->name);
        }
        if (!mapped) mapped = clone_value(e, v);
        s->names[i - 1] = v->name;
        s->values[i - 1] = mapped;
        s->count = i;
    }
    return true;
}

static void clone_node(Expansion *e, const Node *from, const ScopeNames *s)
{
    Node *n = add_node(e);
    uint32_t loop = n->loop;
    *n = *from;
    n->op = NULL;
    n->loop = loop;
    n->scope = s;
    n->name = arena_text(&e->c->arena, "%s/%s", e->node.name, from->name);
    n->inputs = NEW_ARRAY(e->c, uint32_t, n->input_count + 1);
    n->outputs = NEW_ARRAY(e->c, uint32_t, n->output_count + 1);
    for (int i = 0; i < n->input_count; i++) n->inputs[i] = from->inputs[i] ? s->values[from->inputs[i] - 1] : 0;
    for (int i = 0; i < n->output_count; i++) n->outputs[i] = from->outputs[i] ? s->values[from->outputs[i] - 1] : 0;
    n->attrs = NEW_ARRAY(e->c, Attr, n->attr_count + 1);
    n->attr_count = 0;
    for (int i = 0; i < from->attr_count; i++) {
        if (from->op && !from->attrs[i].present) continue;
        Attr *a = &n->attrs[n->attr_count++];
        *a = from->attrs[i];
        if (a->kind == ATTR_TENSOR) a->tensor = s->values[a->tensor - 1];
    }
}

const Graph *expand_subgraph(const Expansion *e, const char *attr)
{
    return &e->c->subgraphs[node_attr(&e->node, attr)->graph];
}

uint32_t *expand_clone(Expansion *e, const Graph *g, const uint32_t *inputs)
{
    ScopeNames *s = NEW(e->c, ScopeNames);
    if (!map_values(e, g, inputs, s)) return NULL;
    for (uint32_t i = 1; i <= g->node_count; i++) clone_node(e, &g->nodes[i], s);
    uint32_t *outputs = NEW_ARRAY(e->c, uint32_t, g->output_count + 1);
    for (uint32_t i = 0; i < g->output_count; i++) outputs[i] = s->values[g->outputs[i] - 1];
    return e->count > MAX_EXPANDED ? (expand_refuse(e, "its body, repeated, is too large"), NULL) : outputs;
}

/* ---- putting the new nodes in place */

static void shift(uint32_t *index, uint32_t at, uint32_t by)
{
    if (*index > at) *index += by;
}

static void splice(Expansion *e)
{
    Compilation *c = e->c;
    Graph *g = &c->graph;
    const uint32_t by = e->count - 1; /* wraps where nothing takes its place */
    const uint32_t total = g->node_count + by;
    Node *nodes = NEW_ARRAY(c, Node, total + 2);
    memcpy(nodes, g->nodes, sizeof(Node) * e->at);
    if (e->count) memcpy(nodes + e->at, e->nodes, sizeof(Node) * e->count);
    memcpy(nodes + e->at + e->count, g->nodes + e->at + 1, sizeof(Node) * (g->node_count - e->at));
    g->nodes = nodes;
    g->node_count = total;
    g->node_room = total + 2;
    for (uint32_t v = 1; v <= g->value_count; v++) g->values[v].producer = 0;
    for (uint32_t n = 1; n <= total; n++)
        for (int i = 0; i < nodes[n].output_count; i++)
            if (nodes[n].outputs[i]) {
                g->values[nodes[n].outputs[i]].producer = n;
                g->values[nodes[n].outputs[i]].output_index = (uint32_t)i;
            }
    for (Sym s = 1; s <= c->symbol_count; s++) shift(&c->symbols[s].solved_by, e->at, by);
    for (uint32_t p = 1; p <= c->proof_count; p++) shift(&c->proofs[p].node, e->at, by);
    equations_shift(c, e->at, by);
}

/* A list is an operand of rows alone that know what to do with it. */
static bool lists_allowed(Compilation *c, const Node *n)
{
    for (int i = 0; !n->op->expand && i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (!v || !v->list) continue;
        node_error(c, n, "input %d '%s' is %s; expected a tensor", i, v->name, v->list->optional ? "an optional" : "a sequence");
        return false;
    }
    return true;
}

bool node_expands(Compilation *c, const Node *n)
{
    bool lists = false;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        lists |= v && v->list;
    }
    return lists || (n->op->facts & OP_CONTROL);
}

bool expand_before(Expansion *e)
{
    *add_node(e) = e->node;
    splice(e);
    for (uint32_t i = e->at; i + 1 < e->at + e->count; i++)
        if (!node_resolve(e->c, &e->c->graph.nodes[i])) return false;
    return true;
}

bool node_expand(Compilation *c, uint32_t node)
{
    Expansion e = { .c = c, .at = node, .node = c->graph.nodes[node] };
    if (!lists_allowed(c, &e.node) || !e.node.op->expand(&e)) return false;
    splice(&e);
    bool good = true;
    for (uint32_t i = node; i < node + e.count; i++)
        if (!node_resolve(c, &c->graph.nodes[i])) good = false;
    (void)ops_report_missing(c);
    return good && !diag_failed(c);
}

/* ---- graph outputs */

static uint32_t output_copy(Compilation *c, uint32_t from, const char *name)
{
    Graph *g = &c->graph;
    const uint32_t to = graph_value(c, g, name), node = graph_node(c, g, "", "Identity", name, 1, 1);
    Node *n = &g->nodes[node];
    n->opset = 1;
    n->inputs[0] = from;
    n->outputs[0] = to;
    g->values[to].producer = node;
    g->values[to].is_output = true;
    (void)node_resolve(c, n);
    return to;
}

/* The values in V as graph outputs in OUT, where room is for them; how many, or -1 after an error. */
static int output_items(Compilation *c, uint32_t v, uint32_t *out)
{
    const char *name = c->graph.values[v].name;
    const List *list = c->graph.values[v].list;
    c->graph.values[v].is_output = false;
    c->graph.values[v].name = arena_text(&c->arena, "%s: the list", name);
    while (list && list->optional && list->count) {
        v = list->items[0];
        list = c->graph.values[v].list;
    }
    if (!list) {
        *out = output_copy(c, v, name);
        return 1;
    }
    for (int i = 0; i < list->count; i++) {
        if (c->graph.values[list->items[i]].list) {
            diag_error(c, arena_text(&c->arena, "output '%s'", name), "a sequence of sequences or optionals is not supported");
            return -1;
        }
        out[i] = output_copy(c, list->items[i], arena_text(&c->arena, "%s[%d]", name, i));
    }
    return list->count;
}

bool lists_end(Compilation *c)
{
    Graph *g = &c->graph;
    size_t room = 1;
    for (uint32_t i = 0; i < g->output_count; i++) room += g->values[g->outputs[i]].list ? MAX_LIST : 1;
    uint32_t *outputs = NEW_ARRAY(c, uint32_t, room), count = 0;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t v = g->outputs[i];
        const int items = g->values[v].list ? output_items(c, v, outputs + count) : (outputs[count] = v, 1);
        if (items < 0) return false;
        count += (uint32_t)items;
    }
    g->outputs = outputs;
    g->output_count = count;
    for (uint32_t v = 1; v <= g->value_count; v++) g->values[v].list = NULL;
    return true;
}
