/* logits - with --logits last (a sampling tail asks for it too) the logits are of the last row alone: what only they need of the
 * rows before is not computed. Backwards from the output, nodes that go row by row (OpRow.by_row, elementwise ones) and whose
 * results nothing else reads have one row left; a Slice takes it of what they read.
 *
 * A step of one row is to be as it was: no Slice comes between nodes that would share a kernel, but for the sake of the product
 * that makes the logits. */
#include "dim.h"
#include "expand.h"
#include "graph.h"
#include "lower.h"

#include <string.h>

typedef struct Narrow {
    Compilation *c;
    uint32_t logits;
    Dim rows;        /* extent of the axis before the last */
    bool *narrowed;  /* by node */
    bool *kept;      /* by node: it shares a kernel with one that has all rows */
    bool *head;      /* by node: it stands between the logits and their product, or is that */
    uint32_t *uses;  /* by value: by narrowed nodes, of its rows */
    bool product;    /* one is narrowed */
} Narrow;

static bool has_rows(const Narrow *w, const Value *v) { return v->rank >= 2 && dim_equal(w->c, v->dims[v->rank - 2], w->rows); }

static bool one_row(Compilation *c, const Value *v) { return v->rank < 2 || dim_is(c, dim_resolve(c, v->dims[v->rank - 2]), 1); }

static bool is_product(const Node *n) { return n->op->by_row && (n->op->facts & OP_EPILOGUE); }

static bool elementwise(const Node *n) { return (n->op->facts & OP_POINTWISE) != 0; }

/* Its only input under another name: Identity. */
static bool hands_on(Compilation *c, const Node *n)
{
    const Value *x = node_input(c, n, 0), *y = node_output(c, n, 0);
    if (!(n->op->facts & OP_SAME_ORDER) || n->input_count != 1 || n->output_count != 1 || !x || !y || x->rank != y->rank) return false;
    for (int i = 0; i < x->rank; i++)
        if (!dim_equal(c, x->dims[i], y->dims[i])) return false;
    return true;
}

static bool goes_by_row(Compilation *c, const Node *n)
{
    if (n->loop || n->constant || (n->op->facts & OP_RANDOM) || node_by_place(c, n)) return false;
    return n->op->by_row ? n->op->by_row(c, n) : elementwise(n) || hands_on(c, n);
}

/* Each operand has these rows, or the same for all of them. */
static bool operands_fit(const Narrow *w, const Node *n)
{
    int found = 0;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(w->c, n, i);
        if (!v) continue;
        const bool rows = has_rows(w, v);
        if (v->is_constant ? rows : !rows && !one_row(w->c, v)) return false;
        found += rows;
    }
    return found > 0;
}

static bool results_fit(const Narrow *w, const Node *n)
{
    int found = 0;
    for (int i = 0; i < n->output_count; i++) {
        const Value *v = node_output(w->c, n, i);
        if (!v) continue;
        if (v->state || v->contents_count >= 0 || !has_rows(w, v) || w->uses[n->outputs[i]] != v->uses) return false;
        found += v->uses > 0;
    }
    return found > 0;
}

static void sweep(Narrow *w)
{
    Graph *g = &w->c->graph;
    const uint32_t first = g->values[w->logits].producer;
    memset(w->uses, 0, sizeof *w->uses * (g->value_count + 1));
    w->uses[w->logits] = 1;
    w->head[first] = true;
    w->product = false;
    for (uint32_t i = g->node_count; i >= 1; i--) {
        const Node *n = &g->nodes[i];
        w->narrowed[i] = !w->kept[i] && goes_by_row(w->c, n) && results_fit(w, n) && operands_fit(w, n);
        if (!w->narrowed[i]) continue;
        w->product |= is_product(n);
        for (int k = 0; k < n->input_count; k++) {
            const Value *v = node_input(w->c, n, k);
            if (!v || !has_rows(w, v)) continue;
            w->uses[n->inputs[k]]++;
            if (w->head[i] && !is_product(n)) w->head[v->producer] = true;
        }
    }
}

/* Whether a kernel may make what N reads as V and N, see fuse. */
static bool share(Compilation *c, const Value *v, const Node *n)
{
    const Node *p = &c->graph.nodes[v->producer];
    while (v->producer && (p->op->facts & (OP_VIEW | OP_SAME_ORDER)) && node_input(c, p, 0)) {
        v = node_input(c, p, 0);
        p = &c->graph.nodes[v->producer];
    }
    if (!v->producer) return false;
    const bool makes = elementwise(p) || (p->op->facts & OP_BESIDE);
    if (elementwise(n)) return makes || (p->op->facts & OP_EPILOGUE);
    if (is_product(n)) return makes;
    const Value *y = node_output(c, n, 0);
    return elementwise(p) && (n->op->facts & OP_BESIDE) && dim_is(c, y->dims[y->rank - 1], 1); /* a fold */
}

/* Whether all rows of what node INDEX reads are made by what could share its kernel. */
static bool parted(const Narrow *w, uint32_t index)
{
    const Node *n = &w->c->graph.nodes[index];
    for (int k = 0; k < n->input_count; k++) {
        const Value *v = node_input(w->c, n, k);
        if (!v || !has_rows(w, v) || w->narrowed[v->producer] || w->uses[n->inputs[k]] != v->uses) continue;
        if (share(w->c, v, n)) return true;
    }
    return false;
}

/* What can be narrowed, less what would part kernels; less is left each time. */
static void choose(Narrow *w)
{
    for (bool more = true; more;) {
        more = false;
        sweep(w);
        for (uint32_t i = 1; i <= w->c->graph.node_count; i++)
            if (w->narrowed[i] && !w->head[i] && parted(w, i)) more = w->kept[i] = true;
    }
}

/* ---- the Slice */

static void set_slice(Expansion *e, Node *n, uint32_t from, uint32_t to)
{
    n->opset = EXPAND_OPSET;
    n->inputs[0] = from;
    n->inputs[1] = expand_number(e, DT_I64, 1, -1);
    n->inputs[2] = expand_number(e, DT_I64, 1, INT64_MAX);
    n->inputs[3] = expand_number(e, DT_I64, 1, -2);
    n->outputs[0] = to;
}

/* Values that are new or have a row less than they had have no shape; so has what makes them. */
static bool shapeless(const Compilation *c, const Node *n)
{
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] && c->graph.values[n->outputs[i]].rank < 0) return true;
    return false;
}

static void shape_again(Compilation *c)
{
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        if (shapeless(c, &c->graph.nodes[i]) && !c->graph.nodes[i].op->shape(c, &c->graph.nodes[i]))
            fault("logits", "node '%s' refuses one row", c->graph.nodes[i].name);
}

/* Nodes without a shape, from AT on, read the last row of FROM instead of all. */
static void slice_before(Compilation *c, uint32_t from, uint32_t at)
{
    Expansion e = { .c = c, .at = at, .node = c->graph.nodes[at] };
    const uint32_t to = expand_value(&e, "last row");
    set_slice(&e, expand_node(&e, "", "Slice", 4, 1), from, to);
    if (!expand_before(&e)) fault("logits", "Slice is none of our operators");
    for (uint32_t i = at + 1; i <= c->graph.node_count; i++)
        for (int k = 0; shapeless(c, &c->graph.nodes[i]) && k < c->graph.nodes[i].input_count; k++)
            if (c->graph.nodes[i].inputs[k] == from) c->graph.nodes[i].inputs[k] = to;
}

static void narrow_nodes(Narrow *w)
{
    Compilation *c = w->c;
    const uint32_t values = c->graph.value_count;
    uint32_t *reader = NEW_ARRAY(c, uint32_t, values + 1); /* the first narrowed node that reads the value's rows */
    for (uint32_t i = c->graph.node_count; i >= 1; i--) {
        const Node *n = &c->graph.nodes[i];
        for (int k = 0; w->narrowed[i] && k < n->input_count; k++) {
            const Value *v = node_input(c, n, k);
            if (v && has_rows(w, v) && !w->narrowed[v->producer]) reader[n->inputs[k]] = i;
        }
    }
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        for (int k = 0; w->narrowed[i] && k < c->graph.nodes[i].output_count; k++) {
            Value *v = node_output(c, &c->graph.nodes[i], k);
            if (v) v->rank = -1, memset(v->dims, 0, sizeof v->dims);
        }
    for (uint32_t i = c->graph.node_count; i >= 1; i--) /* from the last on: places before it stay */
        for (uint32_t v = 1; v <= values; v++)
            if (reader[v] == i) slice_before(c, v, i);
    shape_again(c);
}

/* The output becomes the last row of what it was. */
static void slice_output(Narrow *w)
{
    Compilation *c = w->c;
    Graph *g = &c->graph;
    const char *name = g->values[w->logits].name;
    const uint32_t node = graph_node(c, g, "", "Slice", arena_text(&c->arena, "%s/Slice", name), 4, 1);
    Expansion e = { .c = c, .at = node, .node = g->nodes[node] };
    const uint32_t to = graph_value(c, g, name);
    g->values[w->logits].name = arena_text(&c->arena, "%s: all rows", name);
    g->values[w->logits].is_output = false;
    g->values[to].is_output = true;
    g->values[to].producer = node;
    for (uint32_t i = 0; i < g->output_count; i++)
        if (g->outputs[i] == w->logits) g->outputs[i] = to;
    set_slice(&e, &g->nodes[node], w->logits, to);
    if (!node_resolve(c, &g->nodes[node])) fault("logits", "Slice is none of our operators");
    shape_again(c);
    w->logits = to;
}

/* ---- */

static bool asked(const Compilation *c) { return c->options.logits == LOGITS_LAST; }

/* The output that is meant; 0 and perhaps an error: there is none. */
static uint32_t find_logits(Compilation *c)
{
    const uint32_t logits = logits_output(c);
    if (!asked(c) || (logits && (samples(c) || !strcmp(c->graph.values[logits].name, "logits")))) return logits;
    diag_error(c, NULL, "--logits last needs a float output 'logits'; found none");
    return 0;
}

/* Whether it has rows, one at least, to choose from. Of rank 2 it has one for each sequence. */
static bool rows_of(Compilation *c, const Value *v, Dim *rows)
{
    int64_t least, most;
    if (v->rank < 3 || one_row(c, v)) return false;
    *rows = dim_resolve(c, v->dims[v->rank - 2]);
    const Value *tokens = &c->graph.values[token_input(c)];
    if (token_input(c) && (tokens->rank < 1 || !dim_equal(c, *rows, tokens->dims[tokens->rank - 1]))) {
        if (asked(c)) diag_error(c, arena_text(&c->arena, "output '%s'", v->name), "--logits last needs a row for each of the tokens of '%s' along dim %d, found %s", tokens->name, v->rank - 2, dim_text(c, *rows));
        return false;
    }
    dim_bounds(c, *rows, &least, &most);
    if (least < 1 && asked(c)) diag_error(c, arena_text(&c->arena, "output '%s'", v->name), "--logits last needs a row, dim %d = %s may be 0", v->rank - 2, dim_text(c, *rows));
    return least >= 1;
}

bool pass_logits(Compilation *c)
{
    if (c->options.logits == LOGITS_ALL || !(asked(c) || samples(c))) return true;
    Narrow w = { .c = c, .logits = find_logits(c) };
    if (!w.logits || !rows_of(c, &c->graph.values[w.logits], &w.rows)) return !diag_failed(c);
    graph_count_uses(c, &c->graph);
    const uint32_t nodes = c->graph.node_count;
    w.narrowed = NEW_ARRAY(c, bool, nodes + 1);
    w.kept = NEW_ARRAY(c, bool, nodes + 1);
    w.head = NEW_ARRAY(c, bool, nodes + 1);
    w.uses = NEW_ARRAY(c, uint32_t, c->graph.value_count + 1);
    choose(&w);
    const bool whole = w.narrowed[c->graph.values[w.logits].producer];
    c->logits_rows = asked(c) || (whole && w.product) ? ROWS_LAST : ROWS_ALL; /* to cut off rows that were made saves nothing */
    if (c->logits_rows == ROWS_ALL) return true;
    if (whole) narrow_nodes(&w);
    else slice_output(&w);
    const Node *n = &c->graph.nodes[c->graph.values[w.logits].producer];
    c->graph.values[w.logits].proof = proof_add(c, "logits", n, 0, "'%s' is of the last row alone, of %s", c->graph.values[w.logits].name, dim_text(c, w.rows));
    return true;
}
