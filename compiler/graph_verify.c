/* graph_verify.c - the checks between passes: what every pass may rely on. A breach is our own fault. */
#include "compiler.h"
#include "graph.h"

#include <string.h>

typedef struct Verifier {
    Compilation *c;
    const Graph *g;
    const char *after;
    bool dims; /* infer has run: every live value has dtype, rank and dims */
} Verifier;

static void check_value_lists(const Verifier *v)
{
    const Graph *g = v->g;
    for (uint32_t i = 0; i < g->input_count; i++) {
        uint32_t x = g->inputs[i];
        if (x == 0 || x > g->value_count || !g->values[x].is_input)
            fault(v->after, "graph input %u is value %u, which is not marked as one", i, x);
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        uint32_t x = g->outputs[i];
        if (x == 0 || x > g->value_count || !g->values[x].is_output)
            fault(v->after, "graph output %u is value %u, which is not marked as one", i, x);
    }
}

static void check_node(const Verifier *v, uint32_t index, unsigned char *made)
{
    const Graph *g = v->g;
    const Node *n = &g->nodes[index];
    if (!n->name || !*n->name || !n->op_type || !n->domain)
        fault(v->after, "node %u has no name, operator or domain", index);
    if (n->fused_into > g->node_count || n->fused_into == index)
        fault(v->after, "node '%s' is fused into node %u of %u", n->name, n->fused_into, g->node_count);
    for (int i = 0; i < n->input_count; i++) {
        uint32_t x = n->inputs[i];
        if (x > g->value_count)
            fault(v->after, "node '%s' input %d is value %u of %u", n->name, i, x, g->value_count);
        uint32_t p = x ? g->values[x].producer : 0;
        if (p >= index)
            fault(v->after, "node '%s' stands before node %u, which makes its input %d '%s'", n->name, p, i, g->values[x].name);
        const bool is_dim = x && g->values[x].each && n->op && n->op->length_input == i + 1; /* uniform_length */
        if (p && g->nodes[p].dead && !n->dead && !g->values[x].data && g->values[x].contents_count < 0 && !is_dim)
            fault(v->after, "node '%s' needs '%s' from the dead node '%s'", n->name, g->values[x].name, g->nodes[p].name);
    }
    for (int i = 0; i < n->output_count; i++) {
        uint32_t x = n->outputs[i];
        if (x > g->value_count)
            fault(v->after, "node '%s' output %d is value %u of %u", n->name, i, x, g->value_count);
        if (x && made[x]++)
            fault(v->after, "value %u '%s' is made twice, here by node '%s'", x, g->values[x].name, n->name);
        if (x && (g->values[x].producer != index || g->values[x].output_index != (uint32_t)i))
            fault(v->after, "value %u '%s' does not name its producer '%s'", x, g->values[x].name, n->name);
    }
    for (int i = 0; i < n->attr_count; i++)
        if (n->attrs[i].kind == ATTR_TENSOR && n->attrs[i].tensor > g->value_count)
            fault(v->after, "node '%s' attribute '%s' is value %u of %u", n->name, n->attrs[i].name, n->attrs[i].tensor,
                  g->value_count);
}

static bool value_live(const Graph *g, const Value *x)
{
    if (x->producer)
        return !g->nodes[x->producer].dead;
    return x->is_input || x->uses > 0;
}

static void check_value(const Verifier *v, uint32_t index)
{
    const Graph *g = v->g;
    const Value *x = &g->values[index];
    if (!x->name)
        fault(v->after, "value %u has no name", index);
    if (x->producer > g->node_count)
        fault(v->after, "value %u '%s' is made by node %u of %u", index, x->name, x->producer, g->node_count);
    if (x->producer && (x->output_index >= (uint32_t)g->nodes[x->producer].output_count ||
                        g->nodes[x->producer].outputs[x->output_index] != index))
        fault(v->after, "value %u '%s' is no output of the node that it names", index, x->name);
    if (x->rank < -1 || x->rank > MAX_RANK || x->contents_count < -1)
        fault(v->after, "value %u '%s' has rank %d and %d contents", index, x->name, x->rank, x->contents_count);
    if (x->state > (uint32_t)v->c->pair_count)
        fault(v->after, "value %u '%s' belongs to state pair %u of %d", index, x->name, x->state, v->c->pair_count);
    for (int i = 0; i < x->contents_count; i++)
        if (!x->contents || !x->contents[i])
            fault(v->after, "value %u '%s' has no content %d of %d", index, x->name, i, x->contents_count);
    if (!v->dims || !value_live(g, x))
        return;
    if (x->dtype == DT_NONE || x->rank < 0)
        fault(v->after, "value %u '%s' has dtype %s and rank %d after infer", index, x->name, dtype_name(x->dtype), x->rank);
    for (int i = 0; i < x->rank; i++)
        if (!x->dims[i])
            fault(v->after, "value %u '%s' has no dim %d after infer", index, x->name, i);
    int64_t count;
    if (x->data && value_count(v->c, x, &count) && (uint64_t)dtype_bytes(x->dtype, count) > x->data->size)
        fault(v->after, "value %u '%s' has %llu bytes for %lld elements", index, x->name,
              (unsigned long long)x->data->size, (long long)count);
}

static void check_uses(const Verifier *v)
{
    const Graph *g = v->g;
    uint32_t *uses = NEW_ARRAY(v->c, uint32_t, g->value_count + 1);
    for (uint32_t n = 1; n <= g->node_count; n++)
        for (int i = 0; !g->nodes[n].dead && i < g->nodes[n].input_count; i++)
            uses[g->nodes[n].inputs[i]]++;
    for (uint32_t i = 0; i < g->output_count; i++)
        uses[g->outputs[i]]++;
    for (uint32_t x = 1; x <= g->value_count; x++)
        if (uses[x] != g->values[x].uses)
            fault(v->after, "value %u '%s' has %u uses, counted %u", x, g->values[x].name, g->values[x].uses, uses[x]);
}

static void check_tables(Compilation *c, const char *after)
{
    for (uint32_t i = 1; i <= c->proof_count; i++)
        if (c->proofs[i].because >= i)
            fault(after, "proof %u rests on proof %u", i, c->proofs[i].because);
    for (uint32_t i = 1; i <= c->symbol_count; i++)
        if (c->symbols[i].proof > c->proof_count || c->symbols[i].lo > c->symbols[i].hi)
            fault(after, "symbol '%s' has proof %u and range %lld..%lld", c->symbols[i].name, c->symbols[i].proof,
                  (long long)c->symbols[i].lo, (long long)c->symbols[i].hi);
    for (int i = 0; i < c->pair_count; i++)
        if (c->pairs[i].input == 0 || c->pairs[i].input > c->graph.value_count || c->pairs[i].output == 0 ||
            c->pairs[i].output > c->graph.value_count)
            fault(after, "state pair %d joins values %u and %u", i, c->pairs[i].input, c->pairs[i].output);
}

static void verify_graph(Compilation *c, const Graph *g, const char *after, bool dims)
{
    Verifier v = {c, g, after, dims};
    unsigned char *made = NEW_ARRAY(c, unsigned char, g->value_count + 1);
    check_value_lists(&v);
    for (uint32_t n = 1; n <= g->node_count; n++)
        check_node(&v, n, made);
    check_uses(&v);
    for (uint32_t x = 1; x <= g->value_count; x++)
        check_value(&v, x);
}

void graph_verify(Compilation *c, const char *after)
{
    bool dims = strcmp(after, "import") != 0 && strcmp(after, "text") != 0; /* a text may be of before infer */
    verify_graph(c, &c->graph, after, dims);
    check_tables(c, after);
}
