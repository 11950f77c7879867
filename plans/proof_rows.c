/* proof_rows.c - where rows have lengths of their own (model.rows): that each row of a step is what the graph computes for that row
 * alone, at its own length. In a step the position is that of the longest row, so what shorter rows have behind their ends means
 * nothing: no node may take the position as a number or look behind an end, and none may mix rows. The rules are by operator,
 * and know more than names only of those that are told where rows end. */
#include "proofs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(r, offset) plan_view_string((r)->v, offset)

enum row_kind {
    EACH,   /* element by element */
    MOVES,  /* the same elements elsewhere; inputs behind the first are shapes */
    ZEROS,  /* zeros at the end change nothing in front of them */
    CUTS,   /* Slice */
    KEEPS   /* is told where rows end, and keeps to it */
};
typedef struct row_rule { const char *op; enum row_kind kind; uint32_t lengths; } row_rule; /* KEEPS: the input with a number for each row; 0: the row words */
static const row_rule rules[] = {
    {"Add", EACH, 0}, {"Sub", EACH, 0}, {"Mul", EACH, 0}, {"Div", EACH, 0}, {"Pow", EACH, 0}, {"Neg", EACH, 0}, {"Abs", EACH, 0},
    {"Exp", EACH, 0}, {"Log", EACH, 0}, {"Sqrt", EACH, 0}, {"Tanh", EACH, 0}, {"Sigmoid", EACH, 0}, {"Min", EACH, 0}, {"Max", EACH, 0},
    {"Clip", EACH, 0}, {"Mod", EACH, 0}, {"Sign", EACH, 0}, {"Cast", EACH, 0}, {"Where", EACH, 0}, {"And", EACH, 0}, {"Or", EACH, 0},
    {"Xor", EACH, 0}, {"Not", EACH, 0}, {"Equal", EACH, 0}, {"Less", EACH, 0}, {"LessOrEqual", EACH, 0}, {"Greater", EACH, 0},
    {"GreaterOrEqual", EACH, 0},
    {"Identity", MOVES, 0}, {"Reshape", MOVES, 0}, {"Flatten", MOVES, 0}, {"Transpose", MOVES, 0}, {"Squeeze", MOVES, 0},
    {"Unsqueeze", MOVES, 0}, {"Expand", MOVES, 0}, {"Split", MOVES, 0},
    {"ReduceSum", ZEROS, 0}, {"CumSum", ZEROS, 0}, {"Slice", CUTS, 0},
    {"Attention", KEEPS, 6}, {"com.microsoft::GroupQueryAttention", KEEPS, 5}, {"TensorScatter", KEEPS, 2},
};

typedef struct rows {
    proof_facts *f;
    const plan_view *v;
    const plan_signature_record *decode;
    uint32_t position, batch; /* symbols */
    uint32_t *producer;       /* by value: node + 1 */
    uint8_t *read;            /* by value: a node that is launched reads it, or it is a state's or an output */
} rows;

static void fail(rows *r, const char *what, uint32_t name, const char *expected, const char *found) {
    r->f->failures++;
    fprintf(r->f->out, "FAIL %s '%s': rows: expected %s, found %s\n", what, TEXT(r, name), expected, found);
}

static int any_mentions(const rows *r, const poly *dims, uint32_t count, uint32_t symbol) {
    for (uint32_t i = 0; i < count; i++)
        if (poly_mentions(r->f->t, dims[i], symbol)) return 1;
    return 0;
}

static uint32_t link_of(const rows *r, uint32_t first, uint32_t count, uint32_t i) {
    return i < count ? r->v->graph_links[first + i].value : PLAN_NONE;
}
static uint32_t input_of(const rows *r, const plan_graph_node_record *n, uint32_t i) { return link_of(r, n->input, n->input_count, i); }
static uint32_t output_of(const rows *r, const plan_graph_node_record *n, uint32_t i) { return link_of(r, n->output, n->output_count, i); }
static int grows(const rows *r, uint32_t value) {
    return value != PLAN_NONE && any_mentions(r, r->f->values[value].dims, r->f->values[value].rank, r->position);
}
static int has_rows(const rows *r, uint32_t value) {
    return value != PLAN_NONE && any_mentions(r, r->f->values[value].dims, r->f->values[value].rank, r->batch);
}
static int counts_rows(const rows *r, uint32_t value, uint32_t axis) {
    return value != PLAN_NONE && axis < r->f->values[value].rank && r->f->values[value].dims[axis] == r->f->symbols[r->batch];
}

static const row_rule *rule_of(const rows *r, const plan_graph_node_record *n) {
    const char *op = TEXT(r, n->op), *dash = strrchr(op, '-');
    size_t length = dash ? (size_t)(dash - op) : strlen(op);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strlen(rules[i].op) == length && strncmp(rules[i].op, op, length) == 0) return &rules[i];
    return NULL;
}

/* Its result is computed in a step, so it may be wrong for a row. */
static int runs(const rows *r, uint32_t node) {
    if (node >= r->decode->node_count) return 1;
    uint32_t how = r->v->nodes[r->decode->node + node].realised;
    return how != PLAN_REALISED_FOLDED && how != PLAN_REALISED_UNUSED && how != PLAN_REALISED_LOAD;
}

static const plan_binding_record *fed(const rows *r, uint32_t value) {
    for (uint32_t i = r->decode->binding; i < r->decode->binding + r->decode->binding_count; i++)
        if (r->v->bindings[i].kind == PLAN_BINDING_INPUT && r->v->bindings[i].name == r->v->graph_values[value].name) return &r->v->bindings[i];
    return NULL;
}

static poly growing_product(const rows *r, uint32_t value) {
    const proof_value *v = &r->f->values[value];
    poly product = poly_const(r->f->t, 1);
    for (uint32_t k = 0; k < v->rank; k++)
        if (poly_mentions(r->f->t, v->dims[k], r->position)) product = poly_mul(r->f->t, product, v->dims[k]);
    return product;
}

/* What lies behind the end of each row is zeros: the fed mask, moved or cast. */
static int ends_in_zeros(const rows *r, uint32_t value) {
    for (int hops = 0; value != PLAN_NONE && hops < 64; hops++) {
        uint32_t node = r->producer[value];
        const plan_binding_record *b = node ? NULL : fed(r, value);
        if (!node) return b && b->feed == PLAN_FEED_ONES;
        const plan_graph_node_record *n = &r->v->graph_nodes[node - 1];
        const row_rule *rule = rule_of(r, n);
        uint32_t from = input_of(r, n, 0);
        if (!rule || (rule->kind != MOVES && strcmp(rule->op, "Cast") != 0)) return 0;
        if (from == PLAN_NONE || growing_product(r, from) != growing_product(r, value)) return 0;
        value = from;
    }
    return 0;
}

/* --- growing axes --- */

/* Element I of a list that a node is given; 0: not known. */
static poly listed(const rows *r, const plan_graph_node_record *n, uint32_t input, uint32_t i) {
    uint32_t value = input_of(r, n, input);
    const proof_value *v = value == PLAN_NONE ? NULL : &r->f->values[value];
    return v && v->has_contents && i < v->count ? v->contents[i] : 0;
}

/* The growing axes of a slice are whole, or begin behind the old elements of a row. */
static int slice_holds(const rows *r, const plan_graph_node_record *n) {
    uint32_t x = input_of(r, n, 0), y = output_of(r, n, 0), axes = input_of(r, n, 3);
    const proof_value *from = &r->f->values[x], *to = &r->f->values[y];
    int ok = 1;
    for (uint32_t k = 0; k < from->rank; k++) {
        if (!poly_mentions(r->f->t, from->dims[k], r->position)) continue;
        int known = axes == PLAN_NONE, cut = 0;
        for (uint32_t i = 0; axes != PLAN_NONE && i < r->f->values[axes].count; i++) {
            int64_t axis, step = 1, least, most;
            if (!poly_value(r->f->t, listed(r, n, 3, i), &axis)) return 0;
            if ((axis < 0 ? axis + from->rank : axis) != k) continue;
            poly start = listed(r, n, 1, i), rest;
            if (input_of(r, n, 4) != PLAN_NONE && !poly_value(r->f->t, listed(r, n, 4, i), &step)) return 0;
            poly_bounds(r->f->t, start, NULL, NULL, &least, &most);
            if (most < 0) start = poly_add(r->f->t, start, from->dims[k]);
            rest = poly_sub(r->f->t, start, r->f->symbols[r->position]);
            cut = 1;
            known = step == 1 && ((poly_is(r->f->t, start, 0) && to->dims[k] == from->dims[k]) ||
                                  (rest && !poly_mentions(r->f->t, rest, r->position) && !poly_mentions(r->f->t, to->dims[k], r->position)));
        }
        ok &= known || (!cut && to->dims[k] == from->dims[k]);
    }
    return ok;
}

static const char *wrong_growth(const rows *r, const plan_graph_node_record *n, const row_rule *rule) {
    if (!rule) return "an operator that works along an axis that grows";
    if (rule->kind == ZEROS) return ends_in_zeros(r, input_of(r, n, 0)) ? NULL : "a sum over what need not be zero behind a row";
    if (rule->kind == CUTS) return slice_holds(r, n) ? NULL : "a part of an axis that grows";
    for (uint32_t i = 0; rule->kind == MOVES && i < n->output_count; i++) {
        uint32_t x = input_of(r, n, 0), y = output_of(r, n, i);
        if (y == PLAN_NONE || !r->read[y] || growing_product(r, x) == growing_product(r, y)) continue;
        if (strcmp(rule->op, "Expand") != 0 || grows(r, x)) return "a part of an axis that grows";
    }
    return NULL;
}

/* A vector of lengths is the row's own when it is no number of the graph and has an element for each row. */
static const char *wrong_lengths(const rows *r, const plan_graph_node_record *n, const row_rule *rule) {
    uint32_t value = input_of(r, n, rule->lengths);
    if (value != PLAN_NONE) return counts_rows(r, value, 0) && !r->f->values[value].has_contents ? NULL : "one length for all rows";
    if (strcmp(rule->op, "Attention") != 0) return "no lengths";
    value = input_of(r, n, 4);
    if (value == PLAN_NONE) return "keys that are no cache of its own";
    poly beyond = poly_sub(r->f->t, r->f->values[value].dims[2], r->f->symbols[r->position]);
    return beyond && !poly_mentions(r->f->t, beyond, r->position) ? NULL : "a past that does not grow with the rows";
}

static const char *wrong_mixing(const rows *r, const plan_graph_node_record *n) {
    const char *axis = strstr(TEXT(r, n->attributes), "axis=");
    uint32_t x = input_of(r, n, 0);
    int carries = 0;
    for (uint32_t i = 0; i < n->input_count; i++) carries |= has_rows(r, input_of(r, n, i));
    if (!carries) return NULL;
    if (axis && x != PLAN_NONE && (axis == TEXT(r, n->attributes) || axis[-1] == ' ')) {
        long k = strtol(axis + 5, NULL, 10), rank = (long)r->f->values[x].rank;
        k += k < 0 ? rank : 0;
        if (k >= 0 && k < rank && poly_mentions(r->f->t, r->f->values[x].dims[k], r->batch)) return "one that works along the axis of the rows";
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        uint32_t y = output_of(r, n, i);
        if (y != PLAN_NONE && r->read[y] && !r->f->values[y].has_contents && !has_rows(r, y)) return "one result of all rows";
    }
    return NULL;
}

static void check_node(rows *r, uint32_t node) {
    const plan_graph_node_record *n = &r->v->graph_nodes[node];
    const row_rule *rule = rule_of(r, n);
    const char *wrong = NULL;
    int touches = 0;
    for (uint32_t i = 0; i < n->output_count; i++) touches |= grows(r, output_of(r, n, i));
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t value = input_of(r, n, i);
        int is_data = rule && rule->kind == KEEPS ? 0 : i == 0 || !rule || rule->kind == EACH || rule->kind == ZEROS;
        if (value == PLAN_NONE) continue;
        touches |= is_data && grows(r, value);
        if (is_data && any_mentions(r, r->f->values[value].contents, r->f->values[value].count, r->position))
            wrong = "the position, one number for all rows";
    }
    if (rule && rule->kind == KEEPS) wrong = wrong_lengths(r, n, rule);
    else if (touches && !wrong) wrong = wrong_growth(r, n, rule);
    if (!wrong) wrong = wrong_mixing(r, n);
    if (wrong) fail(r, "node", n->name, "that each row keeps to itself and to its length", wrong);
}

/* --- inputs, outputs, states, launches --- */

static void check_bindings(rows *r) {
    for (uint32_t i = r->decode->binding; i < r->decode->binding + r->decode->binding_count; i++) {
        const plan_binding_record *b = &r->v->bindings[i];
        uint32_t value = r->f->by_name[b->name] - 1;
        int axis = 0;
        if (value == PLAN_NONE || !r->read[value]) continue;
        for (uint32_t k = 0; k < r->f->values[value].rank; k++) axis += counts_rows(r, value, k);
        if (b->kind == PLAN_BINDING_INPUT && b->feed > PLAN_FEED_TOKEN && axis != 1) fail(r, "input", b->name, "one axis that counts the rows", "another");
        if ((b->kind == PLAN_BINDING_OUTPUT || b->feed <= PLAN_FEED_TOKEN) && grows(r, value)) fail(r, "binding", b->name, "no axis that grows", "one");
    }
}

/* A launch that writes the state is given the words that say which rows are fed. */
static int told_rows(const rows *r, const plan_launch_record *l) {
    uint64_t words = 8 * ((uint64_t)r->v->model->slot_count - r->v->model->rows);
    for (uint32_t k = l->arg; k < l->arg + l->arg_count; k++)
        if (r->v->args[k].kind == PLAN_ARG_POINTER && r->v->args[k].region == PLAN_REGION_STATE && r->v->args[k].value == words) return 1;
    return 0;
}

static void check_state(rows *r, const plan_state_record *state) {
    uint32_t out = r->f->by_name[state->output] - 1, node = out == PLAN_NONE ? 0 : r->producer[out];
    const row_rule *rule = node ? rule_of(r, &r->v->graph_nodes[node - 1]) : NULL;
    if (state->update == PLAN_STATE_COPIED || !rule || rule->kind != KEEPS) fail(r, "state", state->input, "a node that writes rows that are fed, alone", "another");
    for (uint32_t i = 0; i < r->v->signature_count; i++) {
        const plan_signature_record *s = &r->v->signatures[i];
        for (uint32_t k = s->launch; k < s->launch + s->launch_count && s->kind != PLAN_SIGNATURE_LOAD; k++) {
            const plan_launch_record *l = &r->v->launches[k];
            int writes = 0;
            for (uint32_t a = l->access; a < l->access + l->access_count; a++) {
                const plan_access_record *at = &r->v->accesses[a];
                writes |= at->region == PLAN_REGION_STATE && (at->mode & PLAN_ACCESS_WRITE) && at->offset < state->offset + state->bytes &&
                          state->offset < at->offset + at->bytes;
            }
            if (writes && !told_rows(r, l)) fail(r, "launch", l->label, "the words of the rows among its arguments", "none, though it writes a state");
        }
    }
}

/* --- the whole --- */

static void mark_values(rows *r) {
    for (uint32_t i = 0; i < r->v->graph_node_count; i++) {
        const plan_graph_node_record *n = &r->v->graph_nodes[i];
        for (uint32_t k = 0; k < n->output_count; k++)
            if (output_of(r, n, k) != PLAN_NONE) r->producer[output_of(r, n, k)] = i + 1;
        for (uint32_t k = 0; k < n->input_count && runs(r, i); k++)
            if (input_of(r, n, k) != PLAN_NONE) r->read[input_of(r, n, k)] = 1;
    }
    for (uint32_t i = 0; i < r->v->state_count; i++)
        if (r->f->by_name[r->v->states[i].output]) r->read[r->f->by_name[r->v->states[i].output] - 1] = 1;
    for (uint32_t i = 0; i < r->v->binding_count; i++)
        if (r->v->bindings[i].kind == PLAN_BINDING_OUTPUT && r->f->by_name[r->v->bindings[i].name]) r->read[r->f->by_name[r->v->bindings[i].name] - 1] = 1;
}

/* The symbols of the position and of the rows; 0 where the plan has none. */
static int find_symbols(rows *r) {
    const plan_model_record *m = r->v->model;
    const plan_binding_record *b = m->token_binding == PLAN_NONE ? NULL : &r->v->bindings[m->token_binding];
    r->position = r->batch = PLAN_NONE;
    for (uint32_t s = 0; s < r->v->symbol_count; s++)
        if (r->v->symbols[s].symbol_class == PLAN_SYMBOL_GROWING) r->position = s;
    for (uint32_t s = 0; b && b->dim_count && s < r->v->symbol_count; s++) {
        const plan_dim_record *d = &r->v->dims[b->dim];
        if (poly_read(r->f->t, r->v->exprs + d->expr, d->expr_count, r->f->symbols) == r->f->symbols[s] && d->upper == m->rows) r->batch = s;
    }
    for (uint32_t i = 0; i < r->v->signature_count; i++)
        if (r->v->signatures[i].kind == PLAN_SIGNATURE_DECODE) r->decode = &r->v->signatures[i];
    return r->decode && r->position != PLAN_NONE && r->batch != PLAN_NONE;
}

void plan_check_rows(proof_facts *f) {
    rows r = {.f = f, .v = f->v};
    uint32_t before = f->failures;
    if (!f->v->model->rows) return;
    r.producer = calloc((size_t)f->v->graph_value_count + 1, sizeof *r.producer);
    r.read = calloc((size_t)f->v->graph_value_count + 1, 1);
    if (!r.producer || !r.read) {
        f->failures++;
        fprintf(f->out, "FAIL memory: expected enough, found none\n");
    } else if (!find_symbols(&r)) {
        fail(&r, "model", f->v->model->name, "a decode signature whose tokens have as many rows, and a position", "none");
    } else {
        mark_values(&r);
        check_bindings(&r);
        for (uint32_t i = 0; i < f->v->graph_node_count; i++)
            if (runs(&r, i)) check_node(&r, i);
        for (uint32_t i = 0; i < f->v->state_count; i++) check_state(&r, &f->v->states[i]);
    }
    fprintf(f->out, "rows      %6" PRIu32 " of the batch keep to themselves; %" PRIu32 " failed\n", f->v->model->rows, f->failures - before);
    free(r.producer);
    free(r.read);
}
