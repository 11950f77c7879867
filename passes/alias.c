/* alias - which states are updated in place, with the proof that every old read precedes the write; the others are copied
 * at the end of the step. */
#include "lower.h"

static bool appended(Compilation *c, StatePair *p, const StateUpdate *u)
{
    const Node *n = &c->graph.nodes[u->node];
    if (u->viewed || p->growing_axis < 0 || u->axis != p->growing_axis) return false;
    p->update = 0;
    p->rows = true;
    p->proof = proof_add(c, "append", n, p->proof, "%s and %s are one buffer: the step writes rows from the extent on, and reads of the "
                         "old state end before it", p->input_name, p->output_name);
    return true;
}

static bool written(Compilation *c, StatePair *p, const StateUpdate *u)
{
    const Node *n = &c->graph.nodes[u->node];
    if (p->growing_axis >= 0 || u->append || !u->alone) return false;
    p->update = 1;
    p->rows = u->axis >= 0;
    p->proof = proof_add(c, "in place", n, p->proof, "%s and %s are one buffer: node '%s' alone reads the old state, and it makes the new one",
                         p->input_name, p->output_name, n->name);
    return true;
}

bool pass_alias(Compilation *c)
{
    for (int i = 0; i < c->pair_count; i++) {
        StatePair *p = &c->pairs[i];
        StateUpdate u;
        p->update = 2;
        p->rows = p->growing_axis >= 0;
        if (state_update(c, p, &u) && (appended(c, p, &u) || written(c, p, &u))) {
            c->graph.nodes[u.node].inplace |= 1u << u.output;
            continue;
        }
        p->proof = proof_add(c, "copy", NULL, p->proof, "%s is copied to %s after all launches of the step that read it", p->output_name,
                             p->input_name);
    }
    return true;
}
