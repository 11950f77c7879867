/* rows - with --rows, the proof that each row of the batch may have a length of its own.
 *
 * The graph has one position for all rows. A step of a row must be what the graph computes for that row alone, at that row's
 * length. In a step of several rows the position is that of the longest, so shorter rows have a tail along every growing axis,
 * which means nothing. Therefore
 *   - no node takes the position as a number: what depends on a length comes from the inputs that the device feeds, a
 *     number or a mask for each row, or is told to a node that keeps to lengths of rows (OpRow.row_lengths);
 *   - what grows is only moved, or computed element by element, so that a tail stays in the tail; a sum along it may
 *     read it where it is known to be zeros (the fed mask, OP_ZEROS);
 *   - no node takes an element from another row;
 *   - every state is written where the row ends, and not at all for a row that rests.
 * What does not hold is an error that names the node. */
#include "lower.h"
#include "ops/ops.h"

#include <ctype.h>
#include <string.h>

#define REMEDY "compile without --rows, and open a session for each sequence"

typedef struct Rows { Compilation *c; bool *zeros; } Rows; /* zeros: by value: its tail is zeros */

int row_axis(Compilation *c, const Value *v)
{
    int found = -1;
    for (int k = 0; k < v->rank; k++) {
        if (!dim_equal(c, v->dims[k], dim_symbol(c, c->batch))) continue;
        if (found >= 0) return -1;
        found = k;
    }
    return found;
}

static bool mentions(Compilation *c, const Dim *dims, int count, Sym s)
{
    for (int i = 0; i < count; i++)
        if (dims[i] && dim_mentions(c, dim_resolve(c, dims[i]), s)) return true;
    return false;
}

static bool grows(Compilation *c, const Value *v) { return v && mentions(c, v->dims, v->rank, c->position); }
static bool has_rows(Compilation *c, const Value *v) { return v && mentions(c, v->dims, v->rank, c->batch); }

static void refuse(Compilation *c, const Node *n, const char *reason)
{
    node_error(c, n, "rows cannot have lengths of their own: %s", reason);
    diag_remedy(c, REMEDY);
}

/* ---- operands */

/* Shapes, starts and the like decide the dims of a view and are not read besides; what keeps to lengths of rows says itself
 * which of its inputs count. */
static bool reads(const Node *n, int i) { return n->inputs[i] && !n->op->row_lengths && (i == 0 || !(n->op->facts & OP_VIEW)); }

static const char *taken_as_number(Compilation *c, const Node *n)
{
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (reads(n, i) && v->contents_count > 0 && mentions(c, v->contents, v->contents_count, c->position))
            return arena_text(&c->arena, "'%s' is made of the position, which is one number for all rows", v->name);
    }
    return NULL;
}

/* ---- growing axes */

static Dim growing_part(Compilation *c, const Value *v)
{
    Dim product = dim_const(c, 1);
    for (int k = 0; k < v->rank; k++)
        if (dim_mentions(c, dim_resolve(c, v->dims[k]), c->position)) product = dim_mul(c, product, dim_resolve(c, v->dims[k]));
    return product;
}

static bool steps_back(Compilation *c, const Node *n)
{
    for (int i = 1; i < n->input_count; i++) {
        int64_t *list;
        int count;
        if (!n->inputs[i] || strcmp(schema_of(n->op)->inputs[i].name, "steps") != 0) continue;
        if (!value_ints(c, node_input(c, n, i), &list, &count)) return true;
        for (int k = 0; k < count; k++)
            if (list[k] < 0) return true;
    }
    return false;
}

static bool broadcasts(Compilation *c, const Value *from, const Value *to)
{
    for (int k = 1; k <= from->rank; k++) {
        const Dim d = from->dims[from->rank - k];
        if (!dim_is(c, d, 1) && (k > to->rank || !dim_equal(c, d, to->dims[to->rank - k]))) return false;
    }
    return true;
}

/* Each growing axis goes through whole, in its order. */
static bool view_keeps(Compilation *c, const Node *n)
{
    const Value *x = node_input(c, n, 0);
    for (int i = 0; i < n->output_count; i++) {
        const Value *y = node_output(c, n, i);
        if (y && y->uses && !broadcasts(c, x, y) && !dim_equal(c, growing_part(c, x), growing_part(c, y))) return false;
    }
    return !steps_back(c, n);
}

/* An index or an extent in an elementwise text: i0.. or D0.. */
static bool uses_index(const char *text)
{
    for (const char *p = text; *p; p++) {
        bool begins = p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != '_');
        if (begins && (*p == 'i' || *p == 'D') && isdigit((unsigned char)p[1])) return true;
    }
    return false;
}

bool node_by_place(Compilation *c, const Node *n)
{
    return (n->op->facts & OP_POINTWISE) && uses_index(n->op->expr_fn ? n->op->expr_fn(c, n) : n->op->expr);
}

static const char *wrong_growth(Rows *r, const Node *n)
{
    Compilation *c = r->c;
    bool any = false;
    for (int i = 0; i < n->input_count; i++) any |= n->inputs[i] && reads(n, i) && grows(c, node_input(c, n, i));
    for (int i = 0; i < n->output_count; i++) any |= n->outputs[i] && grows(c, node_output(c, n, i));
    if (n->op->row_lengths) return any || n->inplace ? n->op->row_lengths(c, n) : NULL;
    if (!any) return NULL;
    if ((n->op->facts & OP_ZEROS) && r->zeros[n->inputs[0]]) return NULL;
    if (n->op->facts & OP_VIEW) return view_keeps(c, n) ? NULL : "it takes a part of an axis that grows";
    if ((n->op->facts & OP_POINTWISE) && !node_by_place(c, n)) return NULL;
    return "it works along an axis that grows";
}

/* ---- rows that mix */

static bool axis_of_rows(Compilation *c, const Node *n)
{
    const Value *x = n->input_count ? node_input(c, n, 0) : NULL;
    for (int i = 0; x && i < n->attr_count; i++) {
        int64_t axis = n->attrs[i].i;
        if (strcmp(n->attrs[i].name, "axis") != 0 || n->attrs[i].kind != ATTR_INT) continue;
        if (axis < 0) axis += x->rank;
        if (axis >= 0 && axis < x->rank && dim_mentions(c, dim_resolve(c, x->dims[axis]), c->batch)) return true;
    }
    return false;
}

static const char *wrong_mixing(Compilation *c, const Node *n)
{
    bool carries = false;
    for (int i = 0; i < n->input_count; i++) carries |= n->inputs[i] && has_rows(c, node_input(c, n, i));
    if (!carries) return NULL;
    if (n->op->facts & (OP_RANDOM | OP_ACROSS)) return "it may take elements of other rows";
    if (axis_of_rows(c, n)) return "it works along the axis of the rows";
    for (int i = 0; i < n->output_count; i++) {
        const Value *y = node_output(c, n, i);
        if (y && y->uses && y->contents_count < 0 && !has_rows(c, y)) return "it makes one result of all rows";
    }
    return NULL;
}

static void check_node(Rows *r, const Node *n)
{
    Compilation *c = r->c;
    const char *reason = taken_as_number(c, n);
    if (!reason) reason = wrong_growth(r, n);
    if (!reason) reason = wrong_mixing(c, n);
    if (reason) refuse(c, n, reason);
    const Value *x = n->input_count ? node_input(c, n, 0) : NULL, *y = n->output_count ? node_output(c, n, 0) : NULL;
    bool keeps = (n->op->facts & (OP_ZEROS | OP_VIEW)) && !(n->op->facts & OP_TAIL);
    if (x && y && keeps && r->zeros[n->inputs[0]] && dim_equal(c, growing_part(c, x), growing_part(c, y))) r->zeros[n->outputs[0]] = true;
}

/* ---- inputs, outputs, states */

static void check_inputs(Rows *r)
{
    Compilation *c = r->c;
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        if (v->state || v->data || !v->uses) continue;
        if (v->feed == FEED_ONES) r->zeros[c->graph.inputs[i]] = true;
        if (v->feed == FEED_CALLER ? !grows(c, v) : row_axis(c, v) >= 0) continue;
        diag_error(c, arena_text(&c->arena, "input '%s'", v->name), "rows cannot have lengths of their own: expected %s",
                   v->feed == FEED_CALLER ? "no axis that grows, for the caller writes it" : "one axis that counts the rows");
        diag_remedy(c, REMEDY);
    }
    for (uint32_t i = 0; i < c->graph.output_count; i++) {
        const Value *v = &c->graph.values[c->graph.outputs[i]];
        if (v->state || !grows(c, v)) continue;
        diag_error(c, arena_text(&c->arena, "output '%s'", v->name), "rows cannot have lengths of their own: it grows, and is no state");
        diag_remedy(c, REMEDY);
    }
}

static void check_state(Compilation *c, StatePair *p)
{
    const Value *v = &c->graph.values[p->input];
    const char *reason = NULL;
    StateUpdate u;
    if (row_axis(c, v) < 0) reason = "no axis of it counts the rows";
    else if (!p->rows) reason = "a step replaces it as a whole, also for rows that rest";
    else if (p->update == 2 || !state_update(c, p, &u)) reason = "a step copies it as a whole, also for rows that rest";
    else if (!c->graph.nodes[u.node].op->row_lengths)
        reason = arena_text(&c->arena, "node '%s' writes it also for rows that rest", c->graph.nodes[u.node].name);
    if (!reason) {
        p->proof = proof_add(c, "rows", NULL, p->proof, "row r of %s is written from the row's own length on, word %d + r of the extents "
                             "table, and read up to it", p->input_name, slot_count(c) - 2 * (int)c->options.rows);
        return;
    }
    diag_error(c, arena_text(&c->arena, "state '%s'", p->input_name), "rows cannot have lengths of their own: %s", reason);
    diag_remedy(c, REMEDY);
}

bool pass_rows(Compilation *c)
{
    if (!c->options.rows) return true;
    Rows r = { c, NEW_ARRAY(c, bool, c->graph.value_count + 1) };
    const Dim step = c->position_step ? dim_resolve(c, c->position_step) : 0;
    if (!c->batch || !c->pair_count || !step || !(c->sequence ? dim_equal(c, step, dim_symbol(c, c->sequence)) : dim_is(c, step, 1))) {
        diag_error(c, NULL, "--rows needs %s", !c->pair_count ? "states" : !c->batch ? "a token input with an axis of free length for the rows"
                                                                                      : "states that grow by the tokens of a step");
        return false;
    }
    if (samples(c)) diag_error(c, NULL, "sample: %s has one row, --rows several", sample_name(c->options.sample)); /* the recipe says so */
    check_inputs(&r);
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        if (!c->graph.nodes[i].dead && !c->graph.nodes[i].constant) check_node(&r, &c->graph.nodes[i]);
    for (int i = 0; i < c->pair_count; i++) check_state(c, &c->pairs[i]);
    return !diag_failed(c);
}
