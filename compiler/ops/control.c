/* control.c - control flow, which becomes plain nodes (expand.h):
 *   If     on a known condition: the branch that it picks; on device data: see expand_data.c
 *   Loop   with a known trip count: its body so many times; Scan likewise; that ends on data: see expand_data.c
 *   Scan, and Loop over a dim: LoopEnter, the body once, LoopExit; lowering repeats it (passes/lower_loop.c) */
#include "compiler.h"
#include "expand_loop.h"
#include "ops/extent.h"
#include "ops/ops.h"

#include <string.h>

static bool equal_dims(Compilation *c, Node *n, const Value *a, const Value *b, const char *rule)
{
    if (a->rank != b->rank || a->dtype != b->dtype) {
        node_error(c, n, "%s: expected one type, found %s rank %d and %s rank %d", rule, dtype_name(a->dtype), a->rank, dtype_name(b->dtype), b->rank);
        return false;
    }
    for (int k = 0; k < a->rank; k++)
        if (!dim_equate(c, n, rule, a->dims[k], b->dims[k])) return false;
    return true;
}

static bool select_shape(Compilation *c, Node *n)
{
    const Value *a = node_input(c, n, 1), *b = node_input(c, n, 2);
    return equal_dims(c, n, a, b, "the branches of If have one shape") && output_set(c, n, 0, a->dtype, a->rank, a->dims);
}

/* ---- loops */

/* The nodes of ours have no meaning in a model file. */
static bool ours(Compilation *c, const Node *n)
{
    if (n->loop) return true;
    node_error(c, n, "this operator is the compiler's own");
    return false;
}

/* What stands for the dims of a state that may grow; NULL: the state keeps its shape. */
static LoopGrowth *open_state(const Loop *loop, int i)
{
    return loop->kind == LOOP_WHILE && i < loop->states && loop->growth ? loop->growth[i] : NULL;
}

static bool enter_shape(Compilation *c, Node *n)
{
    if (!ours(c, n)) return false;
    const Loop *loop = &c->loops[n->loop];
    bool good = output_set(c, n, 0, DT_I64, 0, NULL);
    for (int i = 0; i < n->input_count && good; i++) {
        const Value *v = node_input(c, n, i);
        Dim dims[MAX_RANK];
        int rank = 0, axis = i < loop->states ? -1 : loop->input_axes[i - loop->states];
        const LoopGrowth *g = open_state(loop, i);
        for (int k = 0; k < v->rank; k++) {
            if (k != axis) dims[rank++] = g ? g->extent[k] : v->dims[k];
            else good &= dim_equate(c, n, "all scanned inputs are equally long", v->dims[k], loop->length);
        }
        good &= output_set(c, n, i + 1, v->dtype, rank, dims);
    }
    return good;
}

static const Node *enter_of(Compilation *c, const Node *leave)
{
    for (const Node *n = leave - 1; n > c->graph.nodes; n--)
        if (n->loop == leave->loop && n->op == op_find("gcc-plan", "LoopEnter", 1)) return n;
    fault("infer", "a loop has no beginning");
}

static Sym only_symbol(Compilation *c, Dim d)
{
    for (Sym s = 1; s <= c->symbol_count; s++)
        if (dim_symbol(c, s) == d) return s;
    return 0;
}

/* The extent before an iteration becomes a symbol of class data: from the initial one on, by STEP in each iteration. */
static bool state_grows(Compilation *c, const Node *enter, LoopGrowth *g, int axis, int64_t step, Dim initial)
{
    const Loop *loop = &c->loops[enter->loop];
    Sym y = only_symbol(c, g->extent[axis]);
    int64_t most;
    if (g->axis == axis) return true;
    if (!loop->most || !initial || step < 0 || g->axis >= 0 || c->symbols[y].equals) {
        node_error(c, enter, "a carried value changes its dim %d by %lld in each iteration%s", axis, (long long)step,
                   loop->most ? "; expected that it grows, along one axis" : ", and no bound of the iterations is known");
        if (!loop->most) diag_remedy(c, "give the Loop a trip count: a constant, or one that follows from dims");
        return false;
    }
    g->axis = axis;
    g->step = dim_const(c, step);
    c->symbols[y].class = SYM_DATA;
    c->symbols[y].bound = dim_add(c, initial, dim_scale(c, loop->most, step));
    if (dim_is_const(c, c->symbols[y].bound, &most)) c->symbols[y].hi = most;
    c->symbols[y].proof = proof_add(c, "data", enter, 0, "%s is counted by the loop, at most %s", c->symbols[y].name, dim_text(c, c->symbols[y].bound));
    return true;
}

/* A state whose shape was left open: each dim is the initial one, or grows. */
static bool close_state(Compilation *c, Node *n, const Node *enter, LoopGrowth *g, const Value *fresh, const Value *initial)
{
    if (fresh->rank != initial->rank) return equal_dims(c, n, fresh, initial, "a carried value keeps its rank");
    for (int k = 0; k < fresh->rank; k++) {
        int64_t step;
        if (!fresh->dims[k]) continue;
        if (dim_is_const(c, dim_resolve(c, dim_sub(c, fresh->dims[k], g->extent[k])), &step) && step != 0) {
            if (!state_grows(c, enter, g, k, step, initial->dims[k])) return false;
        } else if (!dim_equate(c, n, "a carried value keeps its shape", fresh->dims[k], g->extent[k]) ||
                   !dim_equate(c, n, "a carried value keeps its shape", g->extent[k], initial->dims[k]))
            return false;
    }
    return true;
}

static bool exit_shape(Compilation *c, Node *n)
{
    if (!ours(c, n)) return false;
    const Loop *loop = &c->loops[n->loop];
    const Node *enter = enter_of(c, n);
    bool good = true;
    for (int i = 0; i < n->input_count && good; i++) {
        const Value *v = node_input(c, n, i);
        Dim dims[MAX_RANK];
        int rank = 0;
        if (v->rank < 0 || v->rank >= MAX_RANK) return true;
        LoopGrowth *g = open_state(loop, i);
        if (g) good &= close_state(c, n, enter, g, v, node_input(c, enter, i));
        else if (i < loop->states) good &= equal_dims(c, n, v, node_output(c, enter, i + 1), "a carried value keeps its shape");
        int axis = i < loop->states ? -1 : loop->output_axes[i - loop->states];
        if (i >= loop->states && axis < 0) axis += v->rank + 1;
        for (int k = 0; k < v->rank; k++) {
            if (k == axis) dims[rank++] = loop->length;
            dims[rank++] = g ? g->extent[k] : v->dims[k];
        }
        if (axis == v->rank) dims[rank++] = loop->length;
        if (n->outputs[i]) good &= output_set(c, n, i, v->dtype, rank, dims);
    }
    return good;
}

/* ---- branches */

static bool mark_shape(Compilation *c, Node *n) { return ours(c, n) && output_set(c, n, 0, DT_BOOL, 0, NULL); }

/* The dim of an output: that of both branches, or, when they are known to differ, a count that each branch writes. */
static Dim joined_dim(Compilation *c, Node *n, int i, int axis, Dim a, Dim b)
{
    Loop *loop = &c->loops[n->loop];
    int64_t difference;
    if (!a || !b) return 0;
    if (!dim_is_const(c, dim_resolve(c, dim_sub(c, a, b)), &difference) || difference == 0)
        return dim_equate(c, n, "the branches of If have one shape", a, b) ? a : 0;
    if (!loop->growth) loop->growth = NEW_ARRAY(c, LoopGrowth *, loop->states + 1);
    if (!loop->growth[i]) loop->growth[i] = NEW(c, LoopGrowth);
    LoopGrowth *g = loop->growth[i];
    if (!g->extent[axis]) g->extent[axis] = extent_counted(c, n, i, axis, difference > 0 ? a : b);
    return g->extent[axis];
}

static bool if_exit_shape(Compilation *c, Node *n)
{
    if (!ours(c, n)) return false;
    for (int i = 0; i < n->output_count; i++) {
        const Value *a = node_input(c, n, i), *b = node_input(c, n, n->output_count + i);
        Dim dims[MAX_RANK];
        if (!n->outputs[i] || a->rank < 0 || b->rank < 0) continue;
        if (a->rank != b->rank || a->dtype != b->dtype) return equal_dims(c, n, a, b, "the branches of If have one type");
        for (int k = 0; k < a->rank; k++) dims[k] = joined_dim(c, n, i, k, a->dims[k], b->dims[k]);
        if (diag_failed(c) || !output_set(c, n, i, a->dtype, a->rank, dims)) return false;
    }
    return true;
}

static bool go_on_shape(Compilation *c, Node *n) { return output_set(c, n, 0, DT_BOOL, 0, NULL); }

static void go_on_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View word = lower_output(l, n, 0);
    Kernel *k = kernel_begin(l, n, "go_on");
    const char *test = "1";
    if (n->inputs[2]) {
        kernel_in(k, "I", lower_input(l, n, 0));
        kernel_in(k, "STEP", lower_input(l, n, 1));
        kernel_in(k, "M", lower_input(l, n, 2));
        test = "I_LD(I_OFF) + STEP_LD(STEP_OFF) < M_LD(M_OFF)";
    }
    if (n->inputs[3]) {
        kernel_in(k, "C", lower_input(l, n, 3));
        test = arena_text(&c->arena, "%s && C_LD(C_OFF) != 0", test);
    }
    kernel_out(k, "W", word);
    kernel_text(k, "GOES_ON", test);
    kernel_launch(k, 1, 1, 1, 32);
}

/* passes/lower_loop.c and its like lower a loop or branches as a whole, from the Enter to the Exit. */
static void lowered_by_loop(Lower *l, Node *n)
{
    (void)l;
    fault("lower", "node '%s' stands outside its loop", n->name);
}

/* ---- If */

static bool expand_if(Expansion *e)
{
    const Value *condition = node_input(e->c, &e->node, 0);
    int64_t *known;
    int count;
    if (value_ints(e->c, condition, &known, &count) && count == 1) {
        const Graph *branch = expand_subgraph(e, known[0] ? "then_branch" : "else_branch");
        uint32_t *outputs = expand_clone(e, branch, NULL);
        for (int i = 0; outputs && i < e->node.output_count; i++)
            if (e->node.outputs[i]) expand_identity(e, outputs[i], e->node.outputs[i]);
        return outputs != NULL;
    }
    return expand_if_data(e);
}

/* Lists of one length: their items are selected. (Tensors: select_shape.) */
static bool expand_select(Expansion *e)
{
    const List *a = expand_input_list(e, 1), *b = expand_input_list(e, 2);
    if (!a || !b || a->optional != b->optional || a->count != b->count)
        return expand_refuse(e, "the branches of If do not give sequences of one length, and its condition depends on data");
    uint32_t *items = NEW_ARRAY(e->c, uint32_t, a->count + 1);
    for (int i = 0; i < a->count; i++) {
        items[i] = expand_value(e, "item");
        Node *n = expand_node(e, "gcc-plan", "Select", 3, 1);
        n->inputs[0] = e->node.inputs[0];
        n->inputs[1] = a->items[i];
        n->inputs[2] = b->items[i];
        n->outputs[0] = items[i];
    }
    return expand_list(e, 0, a->optional, a->count, items);
}

/* ---- unrolling */

static bool unroll(Expansion *e, const Shape *s, int64_t trip)
{
    uint32_t *carried = NEW_ARRAY(e->c, uint32_t, s->states + 1), *inputs = NEW_ARRAY(e->c, uint32_t, s->body->input_count + 1);
    uint32_t *rows = NEW_ARRAY(e->c, uint32_t, (trip + 1) * (s->scan_outputs + 1));
    if (s->states) memcpy(carried, s->initial, sizeof *carried * (size_t)s->states);
    for (int i = 0; i < s->scan_outputs && !trip; i++)
        if (e->node.outputs[s->states + i]) return expand_refuse(e, "it has no iterations, so that output %d has no shape", s->states + i);
    for (int64_t k = 0; k < trip; k++) {
        int at = 0;
        if (s->is_loop) {
            inputs[at++] = expand_number(e, DT_I64, 0, k);
            inputs[at++] = expand_number(e, DT_BOOL, 0, 1);
        }
        for (int i = 0; i < s->states; i++) inputs[at++] = carried[i];
        for (int i = 0; i < s->scan_inputs; i++)
            inputs[at++] = expand_element(e, s->initial[s->states + i], s->input_axes[i], s->input_reverse[i] ? trip - 1 - k : k);
        uint32_t *outputs = expand_clone(e, s->body, inputs);
        if (!outputs) return false;
        for (int i = 0; i < s->states; i++) carried[i] = outputs[s->first_output + i];
        for (int i = 0; i < s->scan_outputs; i++)
            rows[i * trip + (s->output_reverse[i] ? trip - 1 - k : k)] = outputs[s->first_output + s->states + i];
    }
    for (int i = 0; i < s->states; i++)
        if (e->node.outputs[i]) expand_identity(e, carried[i], e->node.outputs[i]);
    for (int i = 0; i < s->scan_outputs; i++)
        if (e->node.outputs[s->states + i]) expand_stack(e, rows + i * trip, trip, s->output_axes[i], e->node.outputs[s->states + i]);
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
        inputs[at++] = expand_number(e, DT_BOOL, 0, 1);
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

/* The body's shape; false after an error. */
static bool loop_shape(Expansion *e, Shape *s)
{
    *s = (Shape){ .body = expand_subgraph(e, "body"), .is_loop = true, .first_state = 2, .first_output = 1 };
    s->states = e->node.input_count - 2;
    s->scan_outputs = (int)s->body->output_count - 1 - s->states;
    s->initial = e->node.inputs + 2;
    if ((int)s->body->input_count == s->states + 2 && s->scan_outputs >= 0 && s->scan_outputs <= MAX_LOOP_SCANS) return true;
    return expand_refuse(e, "its body has %u inputs and %u outputs, which do not fit %d carried values", s->body->input_count,
                         s->body->output_count, s->states);
}

static bool expand_loop(Expansion *e)
{
    Shape s;
    int64_t *starts, trip;
    int count;
    Dim *dims;
    const Value *limit = node_input(e->c, &e->node, 0), *condition = node_input(e->c, &e->node, 1);
    if (!loop_shape(e, &s)) return false;
    bool known = !condition || (value_ints(e->c, condition, &starts, &count) && count == 1);
    if (condition && known && !starts[0]) return unroll(e, &s, 0);
    bool counted = limit && value_dims(e->c, limit, &dims, &count) && count == 1;
    Dim d = counted ? dim_resolve(e->c, dims[0]) : 0;
    bool exact = known && always_goes_on(s.body) && d;
    if (exact && !dim_is_const(e->c, d, &trip)) return keep_loop(e, &s, d);
    if (exact && trip <= MAX_UNROLL) return unroll(e, &s, trip > 0 ? trip : 0);
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
        return expand_refuse(e, "its body has %u inputs and %u outputs, which do not fit %d inputs of which %d are scanned",
                             s.body->input_count, s.body->output_count, e->node.input_count, s.scan_inputs);
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
    return trip > MAX_UNROLL ? expand_while(e, &s, d, true) : unroll(e, &s, trip);
}

/* Of opset 8: the whole once for each entry of the batch, which is the first axis of all inputs and outputs. */
static bool expand_scan_batch(Expansion *e)
{
    const Node *old = &e->node;
    const int inputs = old->input_count - 1, outputs = old->output_count;
    const Value *first = inputs > 0 ? node_input(e->c, old, 1) : NULL;
    int64_t batch;
    if (node_input(e->c, old, 0)) return expand_refuse(e, "sequence_lens is not supported");
    if (!first || first->rank < 1 || !dim_is_const(e->c, dim_resolve(e->c, first->dims[0]), &batch) || batch < 1 || batch > MAX_UNROLL)
        return expand_refuse(e, "its batch is not known when compiling; expected 1 to %d", MAX_UNROLL);
    uint32_t *made = NEW_ARRAY(e->c, uint32_t, outputs * batch + 1), *entry = NEW_ARRAY(e->c, uint32_t, inputs + 1);
    for (int64_t b = 0; b < batch; b++) {
        for (int i = 0; i < inputs; i++) entry[i] = expand_element(e, old->inputs[i + 1], 0, b);
        for (int i = 0; i < outputs; i++) made[i * batch + b] = expand_value(e, "entry");
        Node *n = expand_node(e, "", "Scan", inputs, outputs);
        n->opset = 9;
        memcpy(n->inputs, entry, sizeof *entry * (size_t)inputs);
        for (int i = 0; i < outputs; i++) n->outputs[i] = made[i * batch + b];
        Attr directions = *node_attr(old, "directions");
        directions.name = "scan_input_directions";
        expand_attr(e, n, node_attr(old, "body"));
        expand_attr(e, n, node_attr(old, "num_scan_inputs"));
        if (directions.present) expand_attr(e, n, &directions);
    }
    for (int i = 0; i < outputs; i++)
        if (old->outputs[i]) expand_stack(e, made + i * batch, batch, 0, old->outputs[i]);
    return true;
}

static const OpRow rows[] = {
    { .domain = "", .name = "If", .since = 1, .schema = "cond:bool -> outputs:any* ; then_branch:graph, else_branch:graph",
      .facts = OP_CONTROL, .expand = expand_if },
    { .domain = "", .name = "Loop", .since = 1, .schema = "M:i64?, cond:bool?, v:any?* -> outputs:any* ; body:graph",
      .facts = OP_CONTROL, .expand = expand_loop },
    { .domain = "", .name = "Scan", .since = 8, .schema = "sequence_lens:i64?, inputs:any* -> outputs:any* ; body:graph, "
      "directions:ints?, num_scan_inputs:int", .facts = OP_CONTROL, .expand = expand_scan_batch },
    { .domain = "", .name = "Scan", .since = 9, .schema = "inputs:any* -> outputs:any* ; body:graph, num_scan_inputs:int, "
      "scan_input_axes:ints?, scan_input_directions:ints?, scan_output_axes:ints?, scan_output_directions:ints?",
      .facts = OP_CONTROL, .expand = expand_scan },
    { .domain = "gcc-plan", .name = "Select", .since = 1, .schema = "cond:bool, a:any, b:any -> o:any", .facts = OP_POINTWISE,
      .shape = select_shape, .expr = "a ? b : c", .expand = expand_select },
    { .domain = "gcc-plan", .name = "LoopEnter", .since = 1, .schema = "inputs:any* -> outputs:any*", .facts = OP_RANDOM,
      .shape = enter_shape, .lower = lowered_by_loop },
    { .domain = "gcc-plan", .name = "LoopExit", .since = 1, .schema = "inputs:any* -> outputs:any*", .facts = OP_RANDOM,
      .shape = exit_shape, .lower = lowered_by_loop },
    { .domain = "gcc-plan", .name = "GoOn", .since = 1, .schema = "iteration:i64, step:i64, limit:i64?, cond:bool? -> go:bool",
      .shape = go_on_shape, .lower = go_on_lower },
    { .domain = "gcc-plan", .name = "IfEnter", .since = 1, .schema = "cond:bool -> taken:bool", .facts = OP_RANDOM,
      .shape = mark_shape, .lower = lowered_by_loop },
    { .domain = "gcc-plan", .name = "IfElse", .since = 1, .schema = "cond:bool -> taken:bool", .facts = OP_RANDOM,
      .shape = mark_shape, .lower = lowered_by_loop },
    { .domain = "gcc-plan", .name = "IfExit", .since = 1, .schema = "inputs:any* -> outputs:any*", .facts = OP_RANDOM,
      .shape = if_exit_shape, .lower = lowered_by_loop },
};
const OpFamily ops_control = { rows, (int)COUNT_OF(rows), "compiler/ops/control.c" };
