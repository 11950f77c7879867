/* expand.c - control flow becomes plain nodes of the main graph, as soon as inference knows enough to decide how:
 *   If     on a known condition: the branch that it picks; on device data: see expand_data.c
 *   Loop   with a known trip count: its body so many times; Scan likewise, up to MAX_UNROLL
 *   Scan, and Loop over a dim: LoopEnter, the body once, LoopExit; lowering repeats it (passes/lower_loop.c)
 *   Loop   that ends on data: see expand_data.c
 * Bodies are cloned: values that they take from outside are found by name in the scopes around the node. */
#include "expand.h"
#include "dim.h"

#include <string.h>

enum { MAX_UNROLL = 64, MAX_EXPANDED = 200000 };

bool expand_refuse(Expansion *e, const char *why)
{
    node_error(e->c, &e->c->graph.nodes[e->at], "%s", why);
    return false;
}

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
    *n = (Node){ .loop = e->loop ? e->loop : e->node.loop };
    return n;
}

/* ---- making nodes */

Node *expand_node(Expansion *e, const char *domain, const char *op, int inputs, int outputs)
{
    Node *n = add_node(e);
    n->name = arena_text(&e->c->arena, "%s/%s#%u", e->node.name, op, e->count);
    n->domain = domain;
    n->op_type = op;
    n->opset = *domain ? 1 : e->node.opset;
    n->input_count = inputs;
    n->output_count = outputs;
    n->inputs = NEW_ARRAY(e->c, uint32_t, inputs + 1);
    n->outputs = NEW_ARRAY(e->c, uint32_t, outputs + 1);
    return n;
}

static void give_int(Expansion *e, Node *n, const char *name, int64_t v)
{
    n->attrs = NEW(e->c, Attr);
    n->attr_count = 1;
    n->attrs[0] = (Attr){ .name = name, .kind = ATTR_INT, .present = true, .i = v };
}

uint32_t expand_value(Expansion *e, const char *what)
{
    return graph_value(e->c, &e->c->graph, arena_text(&e->c->arena, "%s/%s#%u", e->node.name, what, e->c->graph.value_count + 1));
}

/* An integer or bool constant as contents; rank 0, or 1 with one element. */
uint32_t expand_known(Expansion *e, DType t, int rank, int64_t v)
{
    uint32_t index = expand_value(e, "constant");
    Value *value = &e->c->graph.values[index];
    value->dtype = t;
    value->rank = rank;
    value->dims[0] = dim_const(e->c, 1);
    value->contents = NEW(e->c, Dim);
    value->contents[0] = dim_const(e->c, v);
    value->contents_count = 1;
    value->is_constant = true;
    return index;
}

static void identity(Expansion *e, uint32_t from, uint32_t to)
{
    Node *n = expand_node(e, "", "Identity", 1, 1);
    n->inputs[0] = from;
    n->outputs[0] = to;
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
            if (!mapped) return expand_refuse(e, arena_text(&e->c->arena, "its subgraph reads '%s', which nothing makes", v->name));
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

/* The subgraph's nodes with its inputs bound to INPUTS; the values of its outputs. NULL after an error. */
uint32_t *expand_clone(Expansion *e, const Graph *g, const uint32_t *inputs)
{
    ScopeNames *s = NEW(e->c, ScopeNames);
    if (!map_values(e, g, inputs, s)) return NULL;
    for (uint32_t i = 1; i <= g->node_count; i++) clone_node(e, &g->nodes[i], s);
    uint32_t *outputs = NEW_ARRAY(e->c, uint32_t, g->output_count + 1);
    for (uint32_t i = 0; i < g->output_count; i++) outputs[i] = s->values[g->outputs[i] - 1];
    return e->count > MAX_EXPANDED ? (expand_refuse(e, "its body, repeated, is too large"), NULL) : outputs;
}

/* ---- If */

const Graph *expand_subgraph(Expansion *e, const char *attr) { return &e->c->subgraphs[node_attr(&e->node, attr)->graph]; }

static bool expand_if(Expansion *e)
{
    const Value *condition = node_input(e->c, &e->node, 0);
    int64_t *known;
    int count;
    if (value_ints(e->c, condition, &known, &count) && count == 1) {
        const Graph *branch = expand_subgraph(e, known[0] ? "then_branch" : "else_branch");
        uint32_t *outputs = expand_clone(e, branch, NULL);
        for (int i = 0; outputs && i < e->node.output_count; i++)
            if (e->node.outputs[i]) identity(e, outputs[i], e->node.outputs[i]);
        return outputs != NULL;
    }
    return expand_if_data(e);
}

/* ---- unrolling */

/* The value of a scanned input at iteration k: a view of one index along its axis. */
static uint32_t element(Expansion *e, uint32_t from, int axis, int64_t k)
{
    uint32_t index = expand_known(e, DT_I64, 0, k), to = expand_value(e, "slice");
    Node *n = expand_node(e, "", "Gather", 2, 1);
    n->inputs[0] = from;
    n->inputs[1] = index;
    n->outputs[0] = to;
    give_int(e, n, "axis", axis);
    return to;
}

/* parts[0..count-1], each one slice along a new axis, together. */
static void stack(Expansion *e, const uint32_t *parts, int64_t count, int axis, bool reverse, uint32_t to)
{
    uint32_t *rows = NEW_ARRAY(e->c, uint32_t, count);
    for (int64_t k = 0; k < count; k++) {
        rows[k] = expand_value(e, "row");
        uint32_t axes = expand_known(e, DT_I64, 1, axis);
        Node *n = expand_node(e, "", "Unsqueeze", 2, 1);
        if (n->opset < 13) n->opset = 13;
        n->inputs[0] = parts[reverse ? count - 1 - k : k];
        n->inputs[1] = axes;
        n->outputs[0] = rows[k];
    }
    Node *n = expand_node(e, "", "Concat", (int)count, 1);
    memcpy(n->inputs, rows, sizeof *rows * (size_t)count);
    n->outputs[0] = to;
    give_int(e, n, "axis", axis);
}

static bool unroll(Expansion *e, const Shape *s, int64_t trip)
{
    uint32_t *carried = NEW_ARRAY(e->c, uint32_t, s->states + 1), *inputs = NEW_ARRAY(e->c, uint32_t, s->body->input_count + 1);
    uint32_t *rows = NEW_ARRAY(e->c, uint32_t, (trip + 1) * (s->scan_outputs + 1));
    memcpy(carried, s->initial, sizeof *carried * (size_t)s->states);
    for (int64_t k = 0; k < trip; k++) {
        int at = 0;
        if (s->is_loop) {
            inputs[at++] = expand_known(e, DT_I64, 0, k);
            inputs[at++] = expand_known(e, DT_BOOL, 0, 1);
        }
        for (int i = 0; i < s->states; i++) inputs[at++] = carried[i];
        for (int i = 0; i < s->scan_inputs; i++)
            inputs[at++] = element(e, s->initial[s->states + i], s->input_axes[i], s->input_reverse[i] ? trip - 1 - k : k);
        uint32_t *outputs = expand_clone(e, s->body, inputs);
        if (!outputs) return false;
        for (int i = 0; i < s->states; i++) carried[i] = outputs[s->first_output + i];
        for (int i = 0; i < s->scan_outputs; i++) rows[i * trip + k] = outputs[s->first_output + s->states + i];
    }
    for (int i = 0; i < s->states; i++)
        if (e->node.outputs[i]) identity(e, carried[i], e->node.outputs[i]);
    for (int i = 0; i < s->scan_outputs; i++)
        if (e->node.outputs[s->states + i]) stack(e, rows + i * trip, trip, s->output_axes[i], s->output_reverse[i], e->node.outputs[s->states + i]);
    return true;
}

/* ---- loops that stay */

uint32_t expand_loop_new(Expansion *e, const Shape *s, LoopKind kind, Dim trip)
{
    Compilation *c = e->c;
    if (c->loop_count + 2 > c->loop_room) {
        uint32_t room = c->loop_room ? c->loop_room * 2 : 8;
        Loop *bigger = NEW_ARRAY(c, Loop, room);
        if (c->loop_count) memcpy(bigger, c->loops, sizeof(Loop) * (c->loop_count + 1));
        c->loops = bigger;
        c->loop_room = room;
    }
    Loop *loop = &c->loops[++c->loop_count];
    *loop = (Loop){ .kind = kind, .outer = e->node.loop, .trip = trip, .length = trip, .states = s->states, .scan_inputs = s->scan_inputs, .scan_outputs = s->scan_outputs };
    memcpy(loop->input_axes, s->input_axes, sizeof loop->input_axes);
    memcpy(loop->output_axes, s->output_axes, sizeof loop->output_axes);
    memcpy(loop->input_reverse, s->input_reverse, sizeof loop->input_reverse);
    memcpy(loop->output_reverse, s->output_reverse, sizeof loop->output_reverse);
    return c->loop_count;
}

bool expand_inside_dim_loop(const Expansion *e)
{
    for (uint32_t at = e->node.loop; at; at = e->c->loops[at].outer)
        if (e->c->loops[at].kind == LOOP_DIM) return true;
    return false;
}

/* Whether the body's condition is always true: the one it was given, or a constant, through any Identity. */
static bool always_goes_on(const Graph *body)
{
    uint32_t v = body->outputs[0];
    for (int hops = 0; hops < 8; hops++) {
        const Value *value = &body->values[v];
        if (v == body->inputs[1]) return true;
        if (value->data) return data_int(value, 0) != 0;
        if (!value->producer || strcmp(body->nodes[value->producer].op_type, "Identity") != 0) return false;
        v = body->nodes[value->producer].inputs[0];
    }
    return false;
}

/* Whether the body has a loop whose iterations are not known to be few: it cannot stand in a launch loop. */
static bool repeats_inside(Compilation *c, const Graph *body)
{
    for (uint32_t i = 1; i <= body->node_count; i++) {
        const Node *n = &body->nodes[i];
        if (*n->domain) continue;
        for (int k = 0; !strcmp(n->op_type, "If") && k < n->attr_count; k++)
            if (n->attrs[k].kind == ATTR_GRAPH && repeats_inside(c, &c->subgraphs[n->attrs[k].graph])) return true;
        if (strcmp(n->op_type, "Scan") != 0 && strcmp(n->op_type, "Loop") != 0) continue;
        const Graph *inner = NULL;
        for (int k = 0; k < n->attr_count; k++)
            if (n->attrs[k].kind == ATTR_GRAPH) inner = &c->subgraphs[n->attrs[k].graph];
        bool fixed = !strcmp(n->op_type, "Loop") && n->inputs[0] && body->values[n->inputs[0]].data && inner && always_goes_on(inner);
        if (!fixed || repeats_inside(c, inner)) return true;
    }
    return false;
}

static bool keep_loop(Expansion *e, const Shape *s, Dim trip)
{
    if (repeats_inside(e->c, s->body)) return expand_while(e, s, trip, true);
    if (expand_inside_dim_loop(e)) return expand_refuse(e, "a loop over a dim inside another one is not supported");
    e->loop = expand_loop_new(e, s, LOOP_DIM, trip);
    uint32_t *inputs = NEW_ARRAY(e->c, uint32_t, s->body->input_count + 1);
    int moved = s->states + s->scan_inputs, at = 0;
    uint32_t *made = NEW_ARRAY(e->c, uint32_t, moved + 1);
    for (int i = 0; i <= moved; i++) made[i] = expand_value(e, i ? "in" : "iteration");
    Node *enter = expand_node(e, "gcc-plan", "LoopEnter", moved, moved + 1);
    memcpy(enter->inputs, s->initial, sizeof(uint32_t) * (size_t)moved);
    memcpy(enter->outputs, made, sizeof(uint32_t) * (size_t)(moved + 1));
    if (s->is_loop) {
        inputs[at++] = made[0];
        inputs[at++] = expand_known(e, DT_BOOL, 0, 1);
    }
    for (int i = 0; i < moved; i++) inputs[at++] = made[i + 1];
    uint32_t *outputs = expand_clone(e, s->body, inputs);
    if (!outputs) return false;
    int left = s->states + s->scan_outputs;
    Node *leave = expand_node(e, "gcc-plan", "LoopExit", left, left);
    memcpy(leave->inputs, outputs + s->first_output, sizeof(uint32_t) * (size_t)left);
    memcpy(leave->outputs, e->node.outputs, sizeof(uint32_t) * (size_t)(left < e->node.output_count ? left : e->node.output_count));
    return true;
}

/* ---- Loop and Scan */

static bool expand_loop(Expansion *e)
{
    Shape s = { .body = expand_subgraph(e, "body"), .is_loop = true, .first_state = 2, .first_output = 1 };
    int64_t *known, trip;
    int count;
    const Value *limit = e->node.input_count > 0 ? node_input(e->c, &e->node, 0) : NULL;
    const Value *condition = e->node.input_count > 1 ? node_input(e->c, &e->node, 1) : NULL;
    s.states = e->node.input_count - 2;
    s.scan_outputs = (int)s.body->output_count - 1 - s.states;
    s.initial = e->node.inputs + 2;
    if ((int)s.body->input_count != s.states + 2 || s.scan_outputs < 0 || s.scan_outputs > MAX_LOOP_SCANS)
        return expand_refuse(e, arena_text(&e->c->arena, "its body has %u inputs and %u outputs, which do not fit %d carried values",
                                    s.body->input_count, s.body->output_count, s.states));
    bool starts = !condition || (value_ints(e->c, condition, &known, &count) && count == 1 && known[0]);
    Dim *dims;
    bool counted = limit && value_dims(e->c, limit, &dims, &count) && count == 1;
    Dim d = counted ? dim_resolve(e->c, dims[0]) : 0;
    bool exact = starts && always_goes_on(s.body) && d;
    if (exact && !dim_is_const(e->c, d, &trip)) return keep_loop(e, &s, d);
    if (exact && trip >= 1 && trip <= MAX_UNROLL * 16) return unroll(e, &s, trip);
    return expand_while(e, &s, d, exact);
}

static int listed(const Expansion *e, const char *attr, int i)
{
    const Attr *a = node_attr(&e->node, attr);
    return a->present && i < a->count ? (int)a->ints[i] : 0;
}

static bool expand_scan(Expansion *e)
{
    Shape s = { .body = expand_subgraph(e, "body") };
    s.scan_inputs = (int)attr_int(&e->node, "num_scan_inputs");
    s.states = e->node.input_count - s.scan_inputs;
    s.scan_outputs = (int)s.body->output_count - s.states;
    s.initial = e->node.inputs;
    if (s.scan_inputs < 1 || s.scan_inputs > MAX_LOOP_SCANS || s.states < 0 || (int)s.body->input_count != s.states + s.scan_inputs ||
        s.scan_outputs < 0 || s.scan_outputs > MAX_LOOP_SCANS)
        return expand_refuse(e, arena_text(&e->c->arena, "its body has %u inputs and %u outputs, which do not fit %d inputs of which %d are scanned",
                                    s.body->input_count, s.body->output_count, e->node.input_count, s.scan_inputs));
    for (int i = 0; i < s.scan_inputs; i++) {
        const Value *v = &e->c->graph.values[s.initial[s.states + i]];
        s.input_axes[i] = listed(e, "scan_input_axes", i);
        if (s.input_axes[i] < 0) s.input_axes[i] += v->rank;
        s.input_reverse[i] = listed(e, "scan_input_directions", i) != 0;
        if (s.input_axes[i] < 0 || s.input_axes[i] >= v->rank) return expand_refuse(e, "an axis in scan_input_axes is out of range");
    }
    for (int i = 0; i < s.scan_outputs; i++) {
        s.output_axes[i] = listed(e, "scan_output_axes", i);
        s.output_reverse[i] = listed(e, "scan_output_directions", i) != 0;
    }
    int64_t trip;
    Dim d = dim_resolve(e->c, e->c->graph.values[s.initial[s.states]].dims[s.input_axes[0]]);
    if (!d) return expand_refuse(e, "the length that it scans is unknown");
    if (!dim_is_const(e->c, d, &trip)) return keep_loop(e, &s, d);
    if (trip < 1 || trip > MAX_UNROLL * 16) return expand_while(e, &s, d, true);
    return unroll(e, &s, trip);
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
    uint32_t by = e->count - 1, total = g->node_count + by;
    Node *nodes = NEW_ARRAY(c, Node, total + 2);
    memcpy(nodes, g->nodes, sizeof(Node) * e->at);
    memcpy(nodes + e->at, e->nodes, sizeof(Node) * e->count);
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

bool control_expand(Compilation *c, uint32_t node)
{
    Expansion e = { .c = c, .at = node, .node = c->graph.nodes[node] };
    const char *op = e.node.op_type;
    bool good = !strcmp(op, "If") ? expand_if(&e) : !strcmp(op, "Loop") ? expand_loop(&e) : expand_scan(&e);
    if (!good) return false;
    if (!e.count) return expand_refuse(&e, "it has no outputs");
    splice(&e);
    for (uint32_t i = node; i < node + e.count; i++)
        if (!node_resolve(c, &c->graph.nodes[i])) good = false;
    return good && !diag_failed(c);
}
