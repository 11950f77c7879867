/* infer - shapes and integer contents as dims, constants marked, equations collected.
 *
 * Rules run in topological order. What a rule cannot know yet because an equation comes later in the graph is tried again,
 * as long as a round learns something. */
#include "compiler.h"
#include "dim.h"
#include "ops/ops.h"

#include <string.h>

static bool value_constant(Compilation *c, const Value *v)
{
    if (v->data || v->is_constant) return true;
    if (v->contents_count < 0) return false;
    for (int i = 0; i < v->contents_count; i++)
        if (!dim_is_const(c, dim_resolve(c, v->contents[i]), NULL)) return false;
    return true;
}

static bool node_constant(Compilation *c, const Node *n)
{
    if (n->op->facts & (OP_RANDOM | OP_CONTROL)) return false;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v && !value_constant(c, v)) return false;
    }
    return true;
}

static bool dims_known(const Value *v)
{
    if (v->rank < 0) return false;
    for (int i = 0; i < v->rank; i++)
        if (!v->dims[i]) return false;
    return true;
}

static bool node_known(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->output_count; i++) {
        const Value *v = node_output(c, n, i);
        if (v && !dims_known(v)) return false;
    }
    return true;
}

static void mark_constant(Compilation *c, Node *n)
{
    n->constant = node_constant(c, n);
    for (int i = 0; i < n->output_count; i++) {
        Value *v = node_output(c, n, i);
        if (v) v->is_constant = n->constant;
    }
}

/* One round over the nodes that are not fully known; true when it learned something. */
static bool infer_round(Compilation *c, bool first, bool *good)
{
    bool learned = false;
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        while (i <= c->graph.node_count && node_expands(c, &c->graph.nodes[i])) /* what it stands for may begin with another */
            if (!*good || !node_expand(c, i)) { *good = false; return false; }
        if (i > c->graph.node_count) break;
        Node *n = &c->graph.nodes[i];
        bool known = !first && node_known(c, n);
        if (known && !n->op->contents) continue;
        if (first && !node_check_types(c, n)) { *good = false; continue; }
        if (!known && !n->op->shape(c, n)) { *good = false; continue; }
        if (n->op->contents) n->op->contents(c, n);
        if (!first && !known && node_known(c, n)) learned = true;
        mark_constant(c, n);
    }
    return learned;
}

static void infer_rounds(Compilation *c, bool *good)
{
    for (int round = 0; *good && round < 4; round++) {
        uint32_t before = dims_of(c)->epoch;
        bool learned = infer_round(c, false, good);
        if (!learned && before == dims_of(c)->epoch) break;
    }
}

/* Dims that the model declares of its outputs are believed only where no rule determines them: exporters err. */
typedef struct Declared { uint32_t value; int rank; Dim dims[MAX_RANK]; } Declared;

static Declared *take_declared(Compilation *c)
{
    Declared *list = NEW_ARRAY(c, Declared, c->graph.output_count + 1); /* ends with value 0 */
    for (uint32_t i = 0; i < c->graph.output_count; i++) {
        Value *v = &c->graph.values[c->graph.outputs[i]];
        list[i].value = c->graph.outputs[i];
        list[i].rank = -1;
        if (!v->producer) continue;
        list[i].rank = v->rank;
        memcpy(list[i].dims, v->dims, sizeof v->dims);
        v->rank = -1;
        memset(v->dims, 0, sizeof v->dims);
    }
    return list;
}

static bool believe_declared(Compilation *c, const Declared *list)
{
    bool learned = false;
    for (uint32_t i = 0; list[i].value; i++) {
        Value *v = &c->graph.values[list[i].value];
        if (list[i].rank < 0 || dims_known(v) || (v->rank >= 0 && v->rank != list[i].rank)) continue;
        v->rank = list[i].rank;
        for (int k = 0; k < v->rank; k++) {
            if (v->dims[k] || !list[i].dims[k]) continue;
            v->dims[k] = list[i].dims[k];
            learned = true;
        }
    }
    return learned;
}

/* A value whose dims no rule determines gets symbols of its own: unknown, never fixed. */
static void mint_unknown(Compilation *c)
{
    for (uint32_t i = 1; i <= c->graph.value_count; i++) {
        Value *v = &c->graph.values[i];
        if (!v->producer || v->rank < 0) continue;
        for (int k = 0; k < v->rank; k++)
            if (!v->dims[k]) v->dims[k] = dim_symbol(c, sym_new(c, NULL, false));
    }
}

static void count_uses(Compilation *c)
{
    Graph *g = &c->graph;
    for (uint32_t i = 1; i <= g->value_count; i++) g->values[i].uses = 0;
    for (uint32_t i = 1; i <= g->node_count; i++)
        for (int k = 0; k < g->nodes[i].input_count; k++)
            if (g->nodes[i].inputs[k]) g->values[g->nodes[i].inputs[k]].uses++;
    for (uint32_t i = 0; i < g->output_count; i++) g->values[g->outputs[i]].uses++;
}

/* Which symbols equations should keep: those of states, then of the tokens (or of what the caller feeds instead of them), then of
 * other inputs. */
static void rank_symbols(Compilation *c)
{
    const bool tokens = token_input(c) != 0;
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        int keep = v->state ? 3 : v->feed == FEED_TOKEN || (!tokens && v->feed == FEED_CALLER) ? 2 : 1;
        for (int k = 0; k < v->rank; k++)
            for (Sym s = 1; s <= c->symbol_count; s++)
                if (dim_mentions(c, v->dims[k], s)) {
                    if (c->symbols[s].keep < keep) c->symbols[s].keep = keep;
                    if (v->feed == FEED_TOKEN) c->symbols[s].lo = 1; /* a step is fed at least one token */
                }
    }
}

/* One round, without what follows from faulty nodes and from control nodes. */
void infer_survey(Compilation *c, const bool *good)
{
    bool *known = NEW_ARRAY(c, bool, c->graph.node_count + 1);
    (void)take_declared(c);
    known[0] = true; /* graph inputs and initializers */
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        Node *n = &c->graph.nodes[i];
        known[i] = good[i] && !(n->op->facts & OP_CONTROL);
        for (int k = 0; k < n->input_count; k++)
            known[i] = known[i] && known[c->graph.values[n->inputs[k]].producer];
        known[i] = known[i] && node_check_types(c, n) && n->op->shape(c, n);
        if (known[i] && n->op->contents) n->op->contents(c, n);
    }
}

static bool pin(Compilation *c, const Range *list, int count)
{
    bool good = true;
    for (int i = 0; i < count; i++) {
        Sym s = list[i].lo == list[i].hi ? sym_find(c, list[i].symbol) : 0;
        if (s) good &= dim_equate(c, NULL, "pinned", dim_symbol(c, s), dim_const(c, list[i].lo));
    }
    return good;
}

/* Where a model has control flow, what is pinned for all signatures is known before: it may pick branches and count iterations. */
static bool apply_pins(Compilation *c)
{
    bool control = false;
    for (uint32_t i = 1; i <= c->graph.node_count; i++) control |= (c->graph.nodes[i].op->facts & OP_CONTROL) != 0;
    return !control || (pin(c, c->recipe.ranges, c->recipe.range_count) && pin(c, c->options.max, c->options.max_count));
}

/* Where tokens broadcast against all positions, equal lengths would mean that no state ever grows: it is one token. */
static bool apply_one_token(Compilation *c)
{
    const Value *t = &c->graph.values[token_input(c)];
    return !c->options.one_token ||
           dim_equate(c, NULL, "a state grows, and the tokens of a step broadcast to all its rows", t->dims[t->rank - 1], dim_const(c, 1));
}

bool pass_infer(Compilation *c)
{
    bool good = apply_pins(c);
    const Declared *declared = take_declared(c);
    rank_symbols(c);
    good = good && apply_one_token(c);
    count_uses(c);
    (void)infer_round(c, true, &good);
    good = good && lists_end(c);
    infer_rounds(c, &good);
    if (good && believe_declared(c, declared)) infer_rounds(c, &good);
    if (good) mint_unknown(c);
    for (uint32_t v = 1; v <= c->graph.value_count; v++) c->graph.values[v].floats = NULL;
    return good && !diag_failed(c);
}
