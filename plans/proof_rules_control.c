/* proof_rules_control.c - rules of the compiler's own nodes, which stand for control flow. */
#include "proofs.h"

static void select_branch(proof_node *n) {
    const proof_value *a = proof_in(n, 1), *b = proof_in(n, 2);
    if (!a || !b) return;
    proof_rank(n, b, a->rank, "second branch");
    for (uint32_t k = 0; k < a->rank && !n->failed; k++) proof_equal(n, a->dims[k], b->dims[k], "dim of the branches", k);
    proof_give_like(n, 0, a);
}

/* The claimed extent of an output that the device counts: at most what the table of symbols says, at least WANTED. */
static poly counted(proof_node *n, const proof_value *y, uint32_t axis, poly wanted) {
    int64_t least, most, low, high;
    if (!y || axis >= y->rank || !y->dims[axis] || !wanted) return 0;
    poly_bounds(n->t, wanted, NULL, NULL, &least, &most);
    poly_bounds(n->t, y->dims[axis], NULL, NULL, &low, &high);
    if (high < most) proof_fail(n, "room for the largest extent in a dim that the device counts", "less");
    return y->dims[axis];
}

/* A state that grows in the body has an extent of its own before each iteration: the initial one fits into it. */
static void open_axis(proof_node *n, uint32_t output, int64_t growing, poly *dims) {
    const proof_value *y = proof_out(n, output);
    if (growing < PLAN_RANK_LIMIT) dims[growing] = counted(n, y, (uint32_t)growing, dims[growing]);
}

/* Inputs: states, then scanned inputs. Outputs: the iteration number, the states, one slice of each scanned input. */
static void loop_enter(proof_node *n) {
    int64_t axes[PROOF_LIST];
    int64_t growing[PROOF_LIST];
    uint32_t states = (uint32_t)proof_int(n, "states", 0);
    poly trip = 0;
    int grown = proof_ints(n, "growing_axes", growing);
    proof_ints(n, "input_axes", axes);
    proof_give(n, 0, 0, NULL);
    for (uint32_t i = 0; i < proof_inputs(n) && !n->failed; i++) {
        const proof_value *x = proof_in(n, i);
        poly dims[PLAN_RANK_LIMIT];
        uint32_t axis = PLAN_NONE, rank = 0;
        if (!x || i >= states + PROOF_LIST || (i >= states && proof_axis(n, axes[i - states], x->rank, &axis))) return;
        for (uint32_t k = 0; k < x->rank; k++)
            if (k != axis) dims[rank++] = x->dims[k];
        if (i < states && i < PROOF_LIST && grown > (int)i && growing[i] >= 0) open_axis(n, i + 1, growing[i], dims);
        if (axis != PLAN_NONE && trip) proof_equal(n, trip, x->dims[axis], "all scanned inputs are equally long, input", i);
        if (axis != PLAN_NONE) trip = x->dims[axis];
        if (proof_out(n, i + 1)) proof_give(n, i + 1, rank, dims);
    }
}

/* The scanned length, by the loop's beginning; 0 when nothing is scanned. */
static poly loop_trip(proof_node *n, const plan_graph_node_record *enter, uint32_t states) {
    int64_t axes[PROOF_LIST];
    const proof_value *x = enter && enter->input_count > states ? proof_value_of(n, enter->input + states) : NULL;
    uint32_t axis;
    if (!x || proof_ints(n, "input_axes", axes) < 1 || proof_axis(n, axes[0], x->rank, &axis)) return 0;
    return x->dims[axis];
}

/* A dim of a new state is that of the old one, or more of it by a number, the same in each iteration. */
static void check_carried(proof_node *n, const proof_value *x, const proof_value *before, uint32_t k, int grows) {
    int64_t step;
    if (!grows) proof_equal(n, before->dims[k], x->dims[k], "dim of a carried value", k);
    else if (!x->dims[k] || !before->dims[k]) n->unknown = 1;
    else if (!poly_value(n->t, poly_sub(n->t, x->dims[k], before->dims[k]), &step) || step < 0)
        proof_fail(n, "a carried value that grows by a number", "another extent");
}

/* Inputs: new states, then a slice for each scan output. Outputs: the states, then the slices stacked along an axis. */
static void loop_exit(proof_node *n) {
    const plan_graph_node_record *enter = proof_loop(n, proof_int(n, "loop", 0));
    int64_t axes[PROOF_LIST];
    int64_t growing[PROOF_LIST];
    int grown = proof_ints(n, "growing_axes", growing);
    uint32_t states = (uint32_t)proof_int(n, "states", 0);
    poly trip = loop_trip(n, enter, states);
    proof_ints(n, "output_axes", axes);
    if (!enter) proof_fail(n, "a loop that began before", "none");
    for (uint32_t i = 0; i < proof_inputs(n) && !n->failed; i++) {
        const proof_value *x = proof_in(n, i), *y = proof_out(n, i), *before = i < states ? proof_value_of(n, enter->input + i) : NULL;
        poly dims[PLAN_RANK_LIMIT + 1];
        uint32_t axis = PLAN_NONE, rank = 0;
        if (!x || i >= states + PROOF_LIST) return;
        if (before) proof_rank(n, before, x->rank, "a carried value");
        uint32_t open = i < PROOF_LIST && grown > (int)i && growing[i] >= 0 ? (uint32_t)growing[i] : PLAN_NONE;
        const proof_value *within = open == PLAN_NONE ? before : proof_value_of(n, enter->output + i + 1);
        for (uint32_t k = 0; before && within && k < x->rank && !n->failed; k++) check_carried(n, x, within, k, k == open);
        if (!y) continue;
        if (i >= states && proof_axis(n, axes[i - states], x->rank + 1, &axis)) return;
        if (!trip && axis != PLAN_NONE && axis < y->rank) trip = y->dims[axis]; /* counted by the loop alone: one for all */
        for (uint32_t k = 0; k <= x->rank; k++) {
            if (k == axis) dims[rank++] = trip;
            if (k < x->rank) dims[rank++] = k == open && within ? within->dims[k] : x->dims[k];
        }
        proof_give(n, i, rank, dims);
    }
}

static void scalar(proof_node *n) { proof_give(n, 0, 0, NULL); }

/* Inputs: the first branch's values, then the second's. A dim that differs is counted by the branch that runs. */
static void if_exit(proof_node *n) {
    uint32_t outputs = proof_outputs(n);
    for (uint32_t i = 0; i < outputs && !n->failed; i++) {
        const proof_value *a = proof_in(n, i), *b = proof_in(n, outputs + i), *y = proof_out(n, i);
        poly dims[PLAN_RANK_LIMIT];
        if (!a || !b || !y) continue;
        proof_rank(n, b, a->rank, "second branch");
        for (uint32_t k = 0; k < a->rank && !n->failed; k++) {
            dims[k] = a->dims[k] == b->dims[k] ? a->dims[k] : counted(n, y, k, a->dims[k]);
            if (a->dims[k] != b->dims[k] && !n->failed) (void)counted(n, y, k, b->dims[k]);
        }
        proof_give(n, i, a->rank, dims);
    }
}

const proof_row proof_rules_control[] = {
    {"gcc-plan::Select", select_branch, "the branches have one shape"},
    {"gcc-plan::LoopEnter", loop_enter, "a loop's slices"},
    {"gcc-plan::LoopExit", loop_exit, "a loop keeps its states and stacks its slices"},
    {"gcc-plan::GoOn", scalar, "one condition"},
    {"gcc-plan::IfEnter", scalar, "one condition"},
    {"gcc-plan::IfElse", scalar, "one condition"},
    {"gcc-plan::IfExit", if_exit, "what both branches give"},
    {NULL, NULL, NULL}};
