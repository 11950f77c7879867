/* states.c - which node updates a state, and whether it may do so in place. */
#include "compiler.h"

#include <string.h>

/* What V holds, before nodes that only name the axes anew; *alone: none of them has another reader. */
static uint32_t behind_views(Compilation *c, uint32_t v, bool *alone)
{
    for (*alone = true;; v = c->graph.nodes[c->graph.values[v].producer].inputs[0]) {
        const Value *x = &c->graph.values[v];
        const Node *n = x->producer ? &c->graph.nodes[x->producer] : NULL;
        if (!n || !n->op || !(n->op->facts & OP_SAME_ORDER)) return v;
        *alone = *alone && x->uses == 1;
    }
}

/* The axis of the state that is axis AXIS of V, which holds the same elements in the same order: as far in, and as long. */
static int axis_of_state(Compilation *c, const Value *state, const Value *v, int axis)
{
    Dim before = dim_const(c, 1), front = dim_const(c, 1);
    for (int k = 0; k < axis; k++) before = dim_mul(c, before, dim_resolve(c, v->dims[k]));
    for (int k = 0; k < state->rank; k++) {
        if (dim_equal(c, front, before) && dim_equal(c, state->dims[k], v->dims[axis])) return k;
        front = dim_mul(c, front, dim_resolve(c, state->dims[k]));
    }
    return -1;
}

static bool constant_dims(Compilation *c, const Value *v)
{
    for (int k = 0; k < v->rank; k++)
        if (!dim_is_const(c, dim_resolve(c, v->dims[k]), NULL)) return false;
    return v->rank >= 0;
}

/* The node that makes the pair's output from the pair's input, when its row can share their buffer: directly, or a state of
 * constant size by other axes. */
bool state_update(Compilation *c, const StatePair *p, StateUpdate *u)
{
    bool alone;
    const uint32_t made = behind_views(c, p->output, &alone);
    const Value *out = &c->graph.values[made];
    if (!out->producer) return false;
    const Node *n = &c->graph.nodes[out->producer];
    if (!n->op || !n->op->inplace) return false;
    u->node = out->producer;
    u->output = (int)out->output_index;
    u->input = n->op->inplace(c, n, u->output, &u->axis, &u->append);
    u->viewed = made != p->output || (u->input >= 0 && n->inputs[u->input] != p->input);
    u->alone = c->graph.values[p->input].uses == 1;
    if (u->input < 0 || !u->viewed) return u->input >= 0;
    if (behind_views(c, n->inputs[u->input], &alone) != p->input || u->append) return false;
    u->alone = u->alone && alone;
    if (!constant_dims(c, out) || !constant_dims(c, &c->graph.values[p->input])) return false;
    if (u->axis >= 0) u->axis = axis_of_state(c, &c->graph.values[p->input], node_input(c, n, u->input), u->axis);
    return true;
}

int state_written_by(Compilation *c, const Node *n, int input, int output)
{
    for (int i = 0; i < c->pair_count; i++) {
        StateUpdate u;
        if (state_update(c, &c->pairs[i], &u) && &c->graph.nodes[u.node] == n && u.input == input && u.output == output) return i;
    }
    return -1;
}

bool state_only_of(Compilation *c, const Node *n, int input, int output)
{
    const Value *past = node_input(c, n, input), *present = node_output(c, n, output);
    return past && past->is_input && past->state && present->state == past->state && c->pairs[past->state - 1].update != 2;
}

int64_t state_rows(Compilation *c)
{
    int64_t least = 0;
    for (int i = 0; i < c->pair_count; i++) {
        const StatePair *p = &c->pairs[i];
        StateUpdate u;
        int64_t rows;
        if (p->growing_axis >= 0 || !state_update(c, p, &u) || u.append || u.axis < 0) continue;
        if (!dim_is_const(c, dim_resolve(c, c->graph.values[p->input].dims[u.axis]), &rows)) continue;
        if (!least || rows < least) least = rows;
    }
    return least;
}
