/* proofs.c - plan-inspect --check-proofs: that what the plan claims of each value, of the symbols and of the states fits the
 * meaning of every node. Local and independent: a mistake of the compiler's passes does not certify itself here.
 *
 * The claim is a set of dims (and integer contents) over the symbols that are not derived. It is checked node by node, in
 * order, by the rules of proof_rules*.c; then that one step maps the dims of each state's input to those of its output. Dims
 * of graph inputs stand as declared, so a derived symbol's expression is what the rules then work with. What is shown is that
 * the claim holds for all inputs that have the claimed dims, not that the graph would allow no others. */
#include "proofs.h"
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct unchecked { const char *op; uint32_t dims, contents, growing; } unchecked;
typedef struct room { struct room *next; poly all[]; } room;

struct proof_checker {
    const plan_view *v;
    poly_table *t;
    FILE *out;
    proof_value *values;  /* by graph value */
    poly *symbols;        /* by symbol: itself, or what a derived one equals */
    uint32_t *by_name;    /* by string: graph value + 1, or 0 */
    uint32_t failures;
    uint32_t node_dims, node_contents, given_dims, given_contents; /* facts, and those that a rule confirmed */
    unchecked *list;
    uint32_t list_count;
    room *rooms;
    int no_memory;
};

#define TEXT(c, offset) plan_view_string((c)->v, (offset))

static int is_growing(const proof_checker *c, poly p) {
    for (uint32_t s = 0; s < c->v->symbol_count; s++)
        if (c->v->symbols[s].symbol_class == PLAN_SYMBOL_GROWING && poly_mentions(c->t, p, s)) return 1;
    return 0;
}

/* --- failures --- */

static void begin_failure(proof_node *n, const char *what) {
    proof_checker *c = n->c;
    n->failed = 1;
    c->failures++;
    fprintf(c->out, "FAIL node '%s' (%s): %s: %s: expected ", n->name, TEXT(c, n->record->op), n->rule, what);
}

void proof_fail(proof_node *n, const char *expected, const char *found) {
    if (n->failed) return;
    begin_failure(n, "inputs");
    fprintf(n->c->out, "%s, found %s\n", expected, found);
}

static void fail_polys(proof_node *n, const char *what, poly expected, poly found) {
    begin_failure(n, what);
    poly_print(n->t, expected, n->c->v, n->c->out);
    fputs(", found ", n->c->out);
    poly_print(n->t, found, n->c->v, n->c->out);
    putc('\n', n->c->out);
}

void proof_equal(proof_node *n, poly expected, poly found, const char *what, uint32_t at) {
    char text[96];
    if (!expected || !found) n->unknown = 1;
    else if (expected != found && !n->failed) {
        (void)snprintf(text, sizeof text, "%s %" PRIu32, what, at);
        fail_polys(n, text, expected, found);
    }
}

void proof_rank(proof_node *n, const proof_value *v, uint32_t rank, const char *what) {
    if (v->rank == rank || n->failed) return;
    begin_failure(n, what);
    fprintf(n->c->out, "rank %" PRIu32 ", found %" PRIu32 "\n", rank, v->rank);
}

/* --- what rules ask --- */

uint32_t proof_inputs(const proof_node *n) { return n->record->input_count; }
uint32_t proof_outputs(const proof_node *n) { return n->record->output_count; }

const proof_value *proof_value_of(proof_node *n, uint32_t link) {
    uint32_t value = n->c->v->graph_links[link].value;
    return value == PLAN_NONE || !n->c->values[value].ranked ? NULL : &n->c->values[value];
}

int proof_has_in(const proof_node *n, uint32_t i) {
    return i < n->record->input_count && n->c->v->graph_links[n->record->input + i].value != PLAN_NONE;
}

const proof_value *proof_in(proof_node *n, uint32_t i) {
    const proof_value *v = i < n->record->input_count ? proof_value_of(n, n->record->input + i) : NULL;
    if (!v) n->unknown = 1;
    return v;
}

const proof_value *proof_out(proof_node *n, uint32_t i) {
    return i < n->record->output_count ? proof_value_of(n, n->record->output + i) : NULL;
}

const char *proof_attribute(const proof_node *n, const char *name, size_t *length) {
    size_t size = strlen(name);
    for (const char *at = n->attributes; *at;) {
        size_t whole = strcspn(at, " ");
        if (whole > size && strncmp(at, name, size) == 0 && at[size] == '=') {
            *length = whole - size - 1;
            return at + size + 1;
        }
        at += whole + (at[whole] == ' ');
    }
    return NULL;
}

int64_t proof_int(const proof_node *n, const char *name, int64_t otherwise) {
    size_t length;
    const char *text = proof_attribute(n, name, &length);
    return text && length ? strtoll(text, NULL, 10) : otherwise;
}

int proof_ints(const proof_node *n, const char *name, int64_t *out) {
    size_t length;
    int count = 0;
    const char *text = proof_attribute(n, name, &length), *end = text + (text ? length : 0);
    if (!text) return -1;
    while (text < end && count < PROOF_LIST) {
        char *next;
        out[count++] = strtoll(text, &next, 10);
        text = next + (*next == ',');
        if (next == text && text < end) break; /* no number */
    }
    return count;
}

int proof_text(const proof_node *n, const char *name, const char *expected) {
    size_t length;
    const char *text = proof_attribute(n, name, &length);
    return text && length == strlen(expected) && memcmp(text, expected, length) == 0;
}

int proof_axis(proof_node *n, int64_t axis, uint32_t rank, uint32_t *out) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
        proof_fail(n, "an axis inside the rank", "one outside");
        return 1;
    }
    *out = (uint32_t)axis;
    return 0;
}

int proof_number(proof_node *n, const proof_value *v, uint32_t i, int64_t *out) {
    if (v->has_contents && i < v->count && poly_value(n->t, v->contents[i], out)) return 1;
    n->unknown = 1;
    return 0;
}

poly proof_const(proof_node *n, int64_t value) { return poly_const(n->t, value); }

poly proof_product(proof_node *n, const proof_value *v, uint32_t from, uint32_t to) {
    poly all = poly_const(n->t, 1);
    for (uint32_t k = from; k < to; k++) all = poly_mul(n->t, all, v->dims[k]);
    return all;
}

int proof_compare(proof_node *n, poly a, poly b) {
    int64_t least, most;
    poly_bounds(n->t, poly_sub(n->t, a, b), NULL, NULL, &least, &most);
    return least > 0 ? 1 : most < 0 ? -1 : least == 0 && most == 0 ? 0 : 2;
}

int proof_broadcast(proof_node *n, const proof_value *v, uint32_t rank, poly *dims) {
    if (v->rank > rank) {
        proof_fail(n, "a rank that broadcasts", "a larger one");
        return 1;
    }
    for (uint32_t i = 0; i < v->rank; i++) {
        poly d = v->dims[i], *to = &dims[rank - v->rank + i];
        if (poly_is(n->t, *to, 1)) *to = d;
        else if (!poly_is(n->t, d, 1)) proof_equal(n, *to, d, "operands, dim", rank - v->rank + i);
    }
    return n->failed;
}

poly *proof_room(proof_node *n, uint32_t count) {
    room *r = malloc(sizeof *r + (count + 1) * sizeof r->all[0]);
    if (!r) {
        n->c->no_memory = 1;
        return NULL;
    }
    r->next = n->c->rooms;
    n->c->rooms = r;
    return r->all;
}

const plan_graph_node_record *proof_loop(proof_node *n, int64_t loop) {
    const plan_graph_node_record *all = n->c->v->graph_nodes;
    for (const plan_graph_node_record *r = n->record; r-- > all;) {
        proof_node other = {.attributes = TEXT(n->c, r->attributes)};
        if (strcmp(TEXT(n->c, r->op), "gcc-plan::LoopEnter-1") == 0 && proof_int(&other, "loop", 0) == loop) return r;
    }
    return NULL;
}

/* --- what rules say --- */

void proof_give(proof_node *n, uint32_t i, uint32_t rank, const poly *dims) {
    const proof_value *y = proof_out(n, i);
    char text[64];
    if (!y || n->failed) return;
    (void)snprintf(text, sizeof text, "output %" PRIu32, i);
    proof_rank(n, y, rank, text);
    for (uint32_t k = 0; k < rank && !n->failed; k++) {
        if (rank > PLAN_RANK_LIMIT || !dims[k]) {
            n->unknown = 1;
            continue;
        }
        (void)snprintf(text, sizeof text, "output %" PRIu32 " dim", i);
        proof_equal(n, dims[k], y->dims[k], text, k);
    }
    if (i < 32) n->dims_given |= 1u << i;
}

void proof_give_like(proof_node *n, uint32_t i, const proof_value *v) { proof_give(n, i, v->rank, v->dims); }

void proof_give_contents(proof_node *n, uint32_t i, uint32_t count, const poly *contents) {
    const proof_value *y = proof_out(n, i);
    if (!y || n->failed || !y->has_contents) return;
    if (y->count != count) {
        begin_failure(n, "contents");
        fprintf(n->c->out, "%" PRIu32 " elements, found %" PRIu32 "\n", count, y->count);
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (!contents[k]) return;
        proof_equal(n, contents[k], y->contents[k], "contents", k);
    }
    if (i < 32) n->contents_given |= 1u << i;
}

/* --- nodes --- */

static const proof_row *find_rule(const char *op) {
    const proof_row *const tables[] = {proof_rules_shape, proof_rules_math, proof_rules_model, proof_rules_control};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const proof_row *r = tables[t]; r->op; r++)
            if (strcmp(r->op, op) == 0) return r;
    return NULL;
}

static void note_unchecked(proof_checker *c, const char *op, int contents, int growing) {
    uint32_t i = 0;
    while (i < c->list_count && strcmp(c->list[i].op, op) != 0) i++;
    if (i == c->list_count) c->list[c->list_count++] = (unchecked){op, 0, 0, 0};
    if (contents) c->list[i].contents++;
    else c->list[i].dims++;
    c->list[i].growing += growing != 0;
}

static int value_grows(const proof_checker *c, const proof_value *v) {
    for (uint32_t k = 0; k < v->rank; k++)
        if (is_growing(c, v->dims[k])) return 1;
    for (uint32_t k = 0; k < v->count; k++)
        if (is_growing(c, v->contents[k])) return 1;
    return 0;
}

static int link_grows(const proof_checker *c, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++)
        if (c->v->graph_links[i].value != PLAN_NONE && value_grows(c, &c->values[c->v->graph_links[i].value])) return 1;
    return 0;
}

static void count_facts(proof_node *n) {
    proof_checker *c = n->c;
    const char *op = TEXT(c, n->record->op);
    int grows = link_grows(c, n->record->input, n->record->input_count) || link_grows(c, n->record->output, n->record->output_count);
    for (uint32_t i = 0; i < n->record->output_count && !n->failed; i++) {
        const proof_value *y = proof_out(n, i);
        if (!y) continue;
        int dims = !n->unknown && (i >= 32 || n->dims_given >> i & 1) && i < 32, contents = i < 32 && (n->contents_given >> i & 1);
        c->node_dims++;
        c->given_dims += dims != 0;
        if (!dims) note_unchecked(c, op, 0, grows);
        if (!y->has_contents) continue;
        c->node_contents++;
        c->given_contents += contents != 0;
        if (!contents) note_unchecked(c, op, 1, value_grows(c, y));
    }
}

/* Nodes come after what they read, and a value is made once: otherwise facts could prove themselves. */
static void check_order(proof_node *n) {
    proof_checker *c = n->c;
    n->rule = "order";
    for (uint32_t i = 0; i < n->record->input_count; i++) {
        uint32_t value = c->v->graph_links[n->record->input + i].value;
        if (value != PLAN_NONE && !c->values[value].made) proof_fail(n, "values that are made before", "one that is not");
    }
    for (uint32_t i = 0; i < n->record->output_count; i++) {
        uint32_t value = c->v->graph_links[n->record->output + i].value;
        if (value == PLAN_NONE) continue;
        if (c->values[value].made) proof_fail(n, "outputs that no one else makes", "one that is made twice");
        c->values[value].made = 1;
    }
}

static void check_node(proof_checker *c, uint32_t i) {
    const plan_graph_node_record *r = &c->v->graph_nodes[i];
    const char *op = TEXT(c, r->op), *dash = strrchr(op, '-');
    char name[128];
    (void)snprintf(name, sizeof name, "%.*s", dash ? (int)(dash - op) : (int)strlen(op), op);
    const proof_row *row = find_rule(name);
    proof_node n = {.c = c, .t = c->t, .record = r, .name = TEXT(c, r->name), .op = name, .version = dash ? atoi(dash + 1) : 0,
                    .attributes = TEXT(c, r->attributes)};
    check_order(&n);
    n.rule = row ? row->text : "no rule";
    if (row && !n.failed) row->rule(&n);
    count_facts(&n);
}

/* Contents are as many as the dims say. */
static void check_count(proof_checker *c, uint32_t i) {
    const proof_value *v = &c->values[i];
    poly elements = poly_const(c->t, 1);
    for (uint32_t k = 0; k < v->rank; k++) elements = poly_mul(c->t, elements, v->dims[k]);
    if (!v->has_contents || poly_is(c->t, elements, v->count)) return;
    c->failures++;
    fprintf(c->out, "FAIL value '%s': contents: expected ", TEXT(c, c->v->graph_values[i].name));
    poly_print(c->t, elements, c->v, c->out);
    fprintf(c->out, " elements, found %" PRIu32 "\n", v->count);
}

static void check_nodes(proof_checker *c) {
    uint32_t before = c->failures;
    for (uint32_t i = 0; i < c->v->graph_value_count; i++) check_count(c, i);
    for (uint32_t i = 0; i < c->v->graph_node_count; i++) check_node(c, i);
    for (uint32_t i = 0; i < c->v->graph_value_count; i++) {
        if (c->values[i].made) continue;
        c->failures++;
        fprintf(c->out, "FAIL value '%s': order: expected a node that makes it, found none\n", TEXT(c, c->v->graph_values[i].name));
    }
    fprintf(c->out, "nodes     %6" PRIu32 ": %" PRIu32 " of %" PRIu32 " outputs have the dims that their rule gives, %" PRIu32 " of %" PRIu32
            " the integer contents; %" PRIu32 " failed\n", c->v->graph_node_count, c->given_dims, c->node_dims, c->given_contents,
            c->node_contents, c->failures - before);
}

/* --- setting up --- */

static void read_value(proof_checker *c, uint32_t i, proof_node *at) {
    const plan_graph_value_record *r = &c->v->graph_values[i];
    proof_value *v = &c->values[i];
    v->made = r->kind != PLAN_GRAPH_MADE;
    v->ranked = r->known != PLAN_GRAPH_NO_RANK;
    v->rank = r->dim_count;
    for (uint32_t k = 0; k < v->rank; k++) {
        const plan_graph_term_record *d = &c->v->graph_terms[r->dim + k];
        v->dims[k] = poly_read(c->t, c->v->exprs + d->expr, d->expr_count, c->symbols);
    }
    v->has_contents = r->known == PLAN_GRAPH_CONTENTS;
    v->count = v->has_contents ? r->content_count : 0;
    v->contents = v->has_contents ? proof_room(at, v->count) : NULL;
    for (uint32_t k = 0; v->contents && k < v->count; k++) {
        const plan_graph_term_record *d = &c->v->graph_terms[r->content + k];
        v->contents[k] = poly_read(c->t, c->v->exprs + d->expr, d->expr_count, c->symbols);
    }
    if (c->by_name[r->name] == 0) c->by_name[r->name] = i + 1;
}

static void symbol_ranges(const plan_view *v, int64_t *lo, int64_t *hi) {
    for (uint32_t s = 0; s <= v->symbol_count; s++) lo[s] = INT64_MAX, hi[s] = -1;
    for (uint32_t i = 0; i < v->signature_count; i++) {
        const plan_signature_record *r = &v->signatures[i];
        for (uint32_t s = 0; s <= v->symbol_count && r->kind != PLAN_SIGNATURE_LOAD; s++) {
            int64_t least = 0, most = INT64_MAX;
            for (uint32_t k = r->box; k < r->box + r->box_count; k++)
                if (v->boxes[k].symbol == s) least = v->boxes[k].lo, most = v->boxes[k].hi;
            if (least < lo[s]) lo[s] = least;
            if (most > hi[s]) hi[s] = most;
        }
    }
    for (uint32_t s = 0; s <= v->symbol_count; s++)
        if (hi[s] < lo[s]) lo[s] = 0, hi[s] = INT64_MAX;
}

static int set_up(proof_checker *c) {
    const plan_view *v = c->v;
    int64_t *lo = calloc(v->symbol_count + 1, sizeof *lo), *hi = calloc(v->symbol_count + 1, sizeof *hi);
    c->values = calloc(v->graph_value_count + 1, sizeof *c->values);
    c->symbols = calloc(v->symbol_count + 1, sizeof *c->symbols);
    c->by_name = calloc((size_t)v->strings_size + 1, sizeof *c->by_name);
    c->list = calloc(2 * (size_t)v->graph_node_count + 1, sizeof *c->list);
    if (lo && hi) symbol_ranges(v, lo, hi);
    c->t = lo && hi ? poly_table_new(v->symbol_count + 1, lo, hi) : NULL;
    free(lo);
    free(hi);
    if (!c->t || !c->values || !c->symbols || !c->by_name || !c->list) return 1;
    for (uint32_t s = 0; s <= v->symbol_count; s++) c->symbols[s] = poly_symbol(c->t, s);
    for (uint32_t s = 0; s < v->symbol_count; s++)
        if (v->symbols[s].expr_count)
            c->symbols[s] = poly_read(c->t, v->exprs + v->symbols[s].expr, v->symbols[s].expr_count, c->symbols);
    proof_node at = {.c = c, .t = c->t};
    for (uint32_t i = 0; i < v->graph_value_count; i++) read_value(c, i, &at);
    return c->no_memory;
}

static void tear_down(proof_checker *c) {
    for (room *r = c->rooms, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    poly_table_free(c->t);
    free(c->values);
    free(c->symbols);
    free(c->by_name);
    free(c->list);
}

/* --- the whole --- */

static int show_unchecked(proof_checker *c) {
    int status = 0;
    for (uint32_t i = 0; i < c->list_count; i++) {
        const unchecked *u = &c->list[i];
        fprintf(c->out, "unchecked %s: dims of %" PRIu32 " outputs, contents of %" PRIu32 "%s\n", u->op, u->dims, u->contents,
                u->growing ? "; a growing dim passes through" : "");
        status |= u->growing != 0;
    }
    return status;
}

int plan_report_proofs(const plan_view *view, FILE *out) {
    proof_checker c = {.v = view, .out = out};
    int status = set_up(&c);
    if (!status && !view->graph_node_count) {
        fputs("FAIL graph: expected the nodes of the model, found none\n", out);
        c.failures++;
    }
    if (!status) {
        proof_facts facts = {view, c.t, out, c.values, c.symbols, c.by_name, 0, NULL};
        check_nodes(&c);
        plan_check_facts(&facts);
        plan_check_rows(&facts);
        c.failures += facts.failures;
        int growing = show_unchecked(&c);
        status = c.no_memory || poly_no_memory(c.t) ? 2 : c.failures || growing;
        if (status != 2) fprintf(out, "%s\n", status ? "the proofs do not hold" : "all proofs hold");
    } else status = 2;
    tear_down(&c);
    return status;
}
