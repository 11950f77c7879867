/* expand_data.c - control flow that device data decides.
 *   If     cheap and pure branches: both, and a select for each output; otherwise IfEnter, one branch, IfElse, the other, IfExit
 *   Loop   whose condition or trip count is data: LoopEnter, the body once, LoopExit, with the condition as the first state; so too
 *          Loop and Scan whose iterations are too many to unroll, or that have such loops inside */
#include "expand_loop.h"

#include <string.h>

enum { CHEAP_NODES = 4 };

/* ---- If */

/* A few elementwise nodes: computing both branches costs less than deciding. */
static bool is_cheap(const Graph *g)
{
    if (g->node_count > CHEAP_NODES) return false;
    for (uint32_t i = 1; i <= g->node_count; i++) {
        const Node *n = &g->nodes[i];
        const OpRow *op = op_find(n->domain, n->op_type, n->opset);
        if (!op || !(op->facts & OP_POINTWISE) || (op->facts & (OP_RANDOM | OP_APPEND | OP_CONTROL))) return false;
    }
    return true;
}

/* Branches that give constants of different shapes cannot be selected between. */
static bool is_alike(Compilation *c, const Graph *a, const Graph *b)
{
    for (uint32_t i = 0; i < a->output_count && i < b->output_count; i++) {
        const Value *x = &a->values[a->outputs[i]], *y = &b->values[b->outputs[i]];
        if (!x->data || !y->data) continue;
        if (x->rank != y->rank) return false;
        for (int k = 0; k < x->rank; k++)
            if (!dim_equal(c, x->dims[k], y->dims[k])) return false;
    }
    return true;
}

/* Declared as a sequence or an optional, or made by an operator on them: a row that stands for others but is no control flow. */
static bool is_list(const Graph *g, uint32_t value)
{
    for (int hops = 0; hops < 8; hops++) {
        const Node *n = g->values[value].producer ? &g->nodes[g->values[value].producer] : NULL;
        const OpRow *op = n ? op_find(n->domain, n->op_type, n->opset) : NULL;
        if (g->values[value].list) return true;
        if (!op) return false;
        if (op->facts & OP_CONTROL) return strcmp(n->op_type, "If") != 0 && strcmp(n->op_type, "Loop") != 0 && strcmp(n->op_type, "Scan") != 0;
        if (strcmp(n->op_type, "Identity") != 0) return false;
        value = n->inputs[0];
    }
    return false;
}

/* Sequences are lists of values when compiling: only a select can join them. */
static bool gives_lists(const Graph *g)
{
    for (uint32_t i = 0; i < g->output_count; i++)
        if (is_list(g, g->outputs[i])) return true;
    return false;
}

static bool select_outputs(Expansion *e, const Graph *first, const Graph *second)
{
    uint32_t *yes = expand_clone(e, first, NULL), *no = yes ? expand_clone(e, second, NULL) : NULL;
    for (int i = 0; no && i < e->node.output_count; i++) {
        if (!e->node.outputs[i]) continue;
        Node *n = expand_node(e, "gcc-plan", "Select", 3, 1);
        n->inputs[0] = e->node.inputs[0];
        n->inputs[1] = yes[i];
        n->inputs[2] = no[i];
        n->outputs[0] = e->node.outputs[i];
    }
    return no != NULL;
}

/* NAME: NULL for one of its own. */
static void add_mark(Expansion *e, const char *op, const char *name)
{
    uint32_t out = expand_value(e, "taken");
    Node *n = expand_node(e, "gcc-plan", op, 1, 1);
    if (name) n->name = name;
    n->inputs[0] = e->node.inputs[0];
    n->outputs[0] = out;
}

bool expand_if_data(Expansion *e)
{
    const Graph *first = expand_subgraph(e, "then_branch"), *second = expand_subgraph(e, "else_branch");
    int outputs = e->node.output_count;
    if (first->output_count != (uint32_t)outputs || second->output_count != (uint32_t)outputs)
        return expand_refuse(e, "its branches have %u and %u outputs; expected %d", first->output_count, second->output_count, outputs);
    /* Launches of an iteration that may not happen cannot be in a block: the block's condition would be old. */
    if (gives_lists(first) || expand_inside_dim_loop(e) || (is_cheap(first) && is_cheap(second) && is_alike(e->c, first, second)))
        return select_outputs(e, first, second);
    Shape s = { .states = outputs };
    uint32_t outer = e->loop;
    e->loop = expand_loop_new(e, &s, LOOP_IF, 0);
    add_mark(e, "IfEnter", e->node.name); /* messages and seams name the model's node */
    uint32_t *yes = expand_clone(e, first, NULL);
    if (yes) add_mark(e, "IfElse", NULL);
    uint32_t *no = yes ? expand_clone(e, second, NULL) : NULL;
    if (!no) return false;
    Node *leave = expand_node(e, "gcc-plan", "IfExit", 2 * outputs, outputs);
    memcpy(leave->inputs, yes, sizeof *yes * (size_t)outputs);
    memcpy(leave->inputs + outputs, no, sizeof *no * (size_t)outputs);
    memcpy(leave->outputs, e->node.outputs, sizeof *leave->outputs * (size_t)outputs);
    e->loop = outer;
    return true;
}

/* ---- Loop */

static bool reaches(const Graph *g, const bool *from, const bool *to, const char *op)
{
    for (uint32_t i = 1; i <= g->node_count; i++)
        if (from[i] && to[i] && !strcmp(g->nodes[i].op_type, op)) return true;
    return false;
}

static bool any_input(const Graph *g, const Node *n, uint32_t value, const bool *nodes)
{
    for (int k = 0; k < n->input_count; k++) {
        uint32_t v = n->inputs[k];
        if (v && (v == value || (g->values[v].producer && nodes[g->values[v].producer]))) return true;
    }
    return false;
}

/* Whether a Concat lies on a way from the body's input to its output: then its extent may be another in each iteration. */
static bool may_grow(Compilation *c, const Graph *g, uint32_t input, uint32_t output)
{
    bool *from = NEW_ARRAY(c, bool, g->node_count + 1), *to = NEW_ARRAY(c, bool, g->node_count + 1);
    for (uint32_t i = 1; i <= g->node_count; i++) from[i] = any_input(g, &g->nodes[i], input, from);
    if (g->values[output].producer) to[g->values[output].producer] = true;
    for (uint32_t i = g->node_count; i >= 1; i--)
        for (int k = 0; to[i] && k < g->nodes[i].input_count; k++) {
            uint32_t v = g->nodes[i].inputs[k];
            if (v && g->values[v].producer) to[g->values[v].producer] = true;
        }
    return reaches(g, from, to, "Concat");
}

/* The symbols of a loop. Their words are kept by its launches. */
static Dim new_symbol(Expansion *e, const char *what, int state, int axis)
{
    const char *name = state < 0 ? arena_text(&e->c->arena, "%s.%s", e->node.name, what)
                                 : arena_text(&e->c->arena, "%s.%s%d.%d", e->node.name, what, state, axis);
    return dim_symbol(e->c, sym_new(e->c, name, false));
}

static LoopGrowth **find_growth(Expansion *e, const Shape *s)
{
    Compilation *c = e->c;
    LoopGrowth **all = NEW_ARRAY(c, LoopGrowth *, s->states + 2);
    for (int i = 0; i < s->states; i++) {
        const Value *v = &c->graph.values[s->initial[i]];
        uint32_t in = s->body->inputs[s->first_state + i], out = s->body->outputs[s->first_output + i];
        if (v->rank < 1 || !may_grow(c, s->body, in, out)) continue;
        LoopGrowth *g = all[i + 1] = NEW(c, LoopGrowth);
        g->axis = -1;
        for (int k = 0; k < v->rank; k++) g->extent[k] = new_symbol(e, "state", i, k);
    }
    return all;
}

/* GO = iteration + STEP < LIMIT and CONDITION, each where there is one. */
static uint32_t go_on(Expansion *e, uint32_t iteration, int64_t step, uint32_t limit, uint32_t condition)
{
    uint32_t by = expand_number(e, DT_I64, 0, step), go = expand_value(e, "go");
    Node *n = expand_node(e, "gcc-plan", "GoOn", 4, 1);
    n->inputs[0] = iteration;
    n->inputs[1] = by;
    n->inputs[2] = limit;
    n->inputs[3] = condition;
    n->outputs[0] = go;
    return go;
}

static void count_iterations(Expansion *e, Dim limit, Loop *loop)
{
    Compilation *c = e->c;
    Dim trip = new_symbol(e, "iterations", -1, 0);
    Sym y = c->symbol_count;
    int64_t most = INT64_MAX;
    if (limit) dim_is_const(c, limit, &most);
    const char *text = limit ? dim_text(c, limit) : "no bound is known";
    c->symbols[y].class = SYM_DATA;
    c->symbols[y].hi = most < 0 ? 0 : most;
    c->symbols[y].bound = limit;
    c->symbols[y].proof = proof_add(c, "data", &c->graph.nodes[e->at], 0, "%s is counted by the loop, at most %s", c->symbols[y].name, text);
    loop->trip = trip;
    loop->most = limit;
}

/* How long the first scanned input is, as a value. */
static uint32_t scanned_length(Expansion *e, const Shape *s)
{
    uint32_t length = expand_value(e, "length");
    Node *n = expand_node(e, "", "Shape", 1, 1);
    if (n->opset < 15) n->opset = 15;
    n->inputs[0] = s->initial[s->states];
    n->outputs[0] = length;
    expand_int(e, n, "start", s->input_axes[0]);
    expand_int(e, n, "end", s->input_axes[0] + 1);
    return length;
}

bool expand_while(Expansion *e, const Shape *s, Dim limit, bool exact)
{
    Compilation *c = e->c;
    if (expand_inside_dim_loop(e)) return expand_refuse(e, "a loop that ends on data inside a loop over a dim is not supported");
    for (int i = 0; i < s->states; i++)
        if (c->graph.values[s->initial[i]].list) return expand_refuse(e, "it carries a sequence, and its iterations depend on data");
    uint32_t given = s->is_loop ? e->node.inputs[0] : scanned_length(e, s), condition = s->is_loop && !exact ? e->node.inputs[1] : 0;
    Shape inside = *s;
    inside.states = s->states + 1;
    uint32_t first = go_on(e, expand_number(e, DT_I64, 0, 0), 0, given, condition), outer = e->loop;
    uint32_t number = expand_loop_new(e, &inside, LOOP_WHILE, 0);
    LoopGrowth **growth = find_growth(e, s);
    count_iterations(e, limit, &c->loops[number]);
    c->loops[number].growth = growth;
    c->loops[number].length = exact ? limit : c->loops[number].trip;
    e->loop = number;
    int moved = s->states + s->scan_inputs, left = s->states + s->scan_outputs, at = 0;
    uint32_t *made = NEW_ARRAY(c, uint32_t, moved + 2), *inputs = NEW_ARRAY(c, uint32_t, moved + 2);
    for (int i = 0; i < moved + 2; i++) made[i] = expand_value(e, i ? "in" : "iteration");
    Node *enter = expand_node(e, "gcc-plan", "LoopEnter", moved + 1, moved + 2);
    enter->name = e->node.name;
    enter->inputs[0] = first;
    memcpy(enter->inputs + 1, s->initial, sizeof *enter->inputs * (size_t)moved);
    memcpy(enter->outputs, made, sizeof *made * (size_t)(moved + 2));
    if (s->is_loop) {
        inputs[at++] = made[0];
        inputs[at++] = expand_number(e, DT_BOOL, 0, 1);
    }
    memcpy(inputs + at, made + 2, sizeof *made * (size_t)moved);
    uint32_t *outputs = expand_clone(e, s->body, inputs);
    if (!outputs) return false;
    uint32_t again = go_on(e, made[0], 1, given, exact ? 0 : outputs[0]), last = expand_value(e, "last");
    Node *leave = expand_node(e, "gcc-plan", "LoopExit", left + 1, left + 1);
    leave->inputs[0] = again;
    leave->outputs[0] = last;
    memcpy(leave->inputs + 1, outputs + s->first_output, sizeof *outputs * (size_t)left);
    memcpy(leave->outputs + 1, e->node.outputs, sizeof *outputs * (size_t)(left < e->node.output_count ? left : e->node.output_count));
    e->loop = outer;
    return true;
}
