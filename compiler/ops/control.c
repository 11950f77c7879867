/* control.c - If, Loop and Scan, which expand.c turns into plain nodes, and the nodes of ours that stand for what is left. */
#include "compiler.h"
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

/* ---- loops over a dim */

/* The nodes of ours have no meaning in a model file. */
static bool ours(Compilation *c, const Node *n)
{
    if (n->loop) return true;
    node_error(c, n, "this operator is the compiler's own");
    return false;
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
        for (int k = 0; k < v->rank; k++) {
            if (k != axis) dims[rank++] = v->dims[k];
            else good &= dim_equate(c, n, "all scanned inputs are equally long", v->dims[k], loop->trip);
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
        if (i < loop->states) good &= equal_dims(c, n, v, node_output(c, enter, i + 1), "a carried value keeps its shape");
        int axis = i < loop->states ? -1 : loop->output_axes[i - loop->states];
        if (i >= loop->states && axis < 0) axis += v->rank + 1;
        for (int k = 0; k < v->rank; k++) {
            if (k == axis) dims[rank++] = loop->trip;
            dims[rank++] = v->dims[k];
        }
        if (axis == v->rank) dims[rank++] = loop->trip;
        if (n->outputs[i]) good &= output_set(c, n, i, v->dtype, rank, dims);
    }
    return good;
}

/* passes/lower_loop.c lowers a loop as a whole, from its Enter to its Exit. */
static void lowered_by_loop(Lower *l, Node *n)
{
    (void)l;
    fault("lower", "node '%s' stands outside its loop", n->name);
}

static const OpRow rows[] = {
    { .domain = "", .name = "If", .since = 1, .schema = "cond:bool -> outputs:any* ; then_branch:graph, else_branch:graph",
      .facts = OP_CONTROL, .shape = not_inferred },
    { .domain = "", .name = "Loop", .since = 1, .schema = "M:i64?, cond:bool?, v:any* -> outputs:any* ; body:graph",
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
};
const OpFamily ops_control = { rows, (int)COUNT_OF(rows), "compiler/ops/control.c" };
