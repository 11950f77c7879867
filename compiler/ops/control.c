/* control.c - If, Loop and Scan, which expand.c turns into plain nodes, and the nodes of ours that stand for what is left. */
#include "compiler.h"
#include "ops/extent.h"
#include "ops/ops.h"

/* Expansion comes before these could be asked for. */
static bool not_inferred(Compilation *c, Node *n)
{
    node_error(c, n, "control flow was not expanded");
    return false;
}

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

static const OpRow rows[] = {
    { .domain = "", .name = "If", .since = 1, .schema = "cond:bool -> outputs:any* ; then_branch:graph, else_branch:graph",
      .facts = OP_CONTROL, .shape = not_inferred },
    { .domain = "", .name = "Loop", .since = 1, .schema = "M:i64?, cond:bool?, v:any?* -> outputs:any* ; body:graph",
      .facts = OP_CONTROL, .shape = not_inferred },
    { .domain = "", .name = "Scan", .since = 9, .schema = "inputs:any* -> outputs:any* ; body:graph, num_scan_inputs:int, "
      "scan_input_axes:ints?, scan_input_directions:ints?, scan_output_axes:ints?, scan_output_directions:ints?",
      .facts = OP_CONTROL, .shape = not_inferred },
    { .domain = "gcc-plan", .name = "Select", .since = 1, .schema = "cond:bool, a:any, b:any -> o:any", .facts = OP_POINTWISE,
      .shape = select_shape, .expr = "a ? b : c" },
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
