/* states.c - which node updates a state, and whether it may do so in place. */
#include "compiler.h"

#include <string.h>

/* The node that makes the pair's output from the pair's input directly, when its row can share their buffer. */
bool state_update(Compilation *c, const StatePair *p, StateUpdate *u)
{
    const Value *out = &c->graph.values[p->output];
    if (!out->producer) return false;
    const Node *n = &c->graph.nodes[out->producer];
    if (!n->op || !n->op->inplace) return false;
    u->node = out->producer;
    u->output = (int)out->output_index;
    u->input = n->op->inplace(c, n, u->output, &u->axis, &u->append);
    return u->input >= 0 && n->inputs[u->input] == p->input;
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
