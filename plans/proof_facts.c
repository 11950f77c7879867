/* proof_facts.c - the proof checker's facts beyond single nodes: classes of symbols and the step map, state pairs, bindings,
 * what signatures say of values and nodes, and that buffers are large enough. */
#include "proofs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(f, offset) plan_view_string((f)->v, (offset))

/* One kind of fact. While it is checked, its failures are counted here. */
typedef struct count { const char *what; uint32_t total, failed; } count;

static void end(const proof_facts *f, const count *c) {
    fprintf(f->out, "%-9s %6" PRIu32 " checked; %" PRIu32 " failed\n", c->what, c->total, c->failed);
}

static void fail(proof_facts *f, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
static void fail(proof_facts *f, const char *format, ...) {
    va_list arguments;
    f->failures++;
    if (f->now) ++*f->now;
    fputs("FAIL ", f->out);
    va_start(arguments, format);
    (void)vfprintf(f->out, format, arguments);
    va_end(arguments);
}

static void fail_polys(proof_facts *f, const char *kind, const char *name, const char *rule, uint32_t axis, poly expected, poly found) {
    fail(f, "%s '%s': %s: dim %" PRIu32 ": expected ", kind, name, rule, axis);
    poly_print(f->t, expected, f->v, f->out);
    fputs(", found ", f->out);
    poly_print(f->t, found, f->v, f->out);
    putc('\n', f->out);
}

static const proof_value *value_named(const proof_facts *f, uint32_t name) {
    uint32_t at = f->by_name[name];
    return at && f->values[at - 1].ranked ? &f->values[at - 1] : NULL;
}

static poly read_expr(const proof_facts *f, uint32_t first, uint32_t length) {
    return poly_read(f->t, f->v->exprs + first, length, f->symbols);
}

static const plan_box_record *box_of(const proof_facts *f, const plan_signature_record *s, uint32_t symbol) {
    for (uint32_t k = s->box; k < s->box + s->box_count; k++)
        if (f->v->boxes[k].symbol == symbol) return &f->v->boxes[k];
    return NULL;
}

/* --- symbols and the step map --- */

static const plan_step_record *step_of(const proof_facts *f, const plan_signature_record *s, uint32_t slot) {
    for (uint32_t k = s->step; slot != PLAN_NONE && k < s->step + s->step_count; k++)
        if (f->v->steps[k].slot == slot) return &f->v->steps[k];
    return NULL;
}

/* What one step of any signature makes of SYMBOL. */
static poly stepped(proof_facts *f, uint32_t symbol) {
    const plan_symbol_record *y = &f->v->symbols[symbol];
    poly all = 0;
    for (uint32_t i = 0; i < f->v->signature_count; i++) {
        const plan_signature_record *s = &f->v->signatures[i];
        if (s->kind == PLAN_SIGNATURE_LOAD) continue;
        const plan_step_record *step = step_of(f, s, y->slot);
        poly next = step ? read_expr(f, step->expr, step->expr_count) : f->symbols[symbol];
        if (all && next != all) fail(f, "symbol '%s': step map: expected one step in all signatures, found another in %s\n",
                                     TEXT(f, y->name), TEXT(f, s->name));
        all = next;
    }
    return all ? all : f->symbols[symbol];
}

static void check_class(proof_facts *f, uint32_t i, poly next) {
    const plan_symbol_record *y = &f->v->symbols[i];
    int changes = next != f->symbols[i], growing = y->symbol_class == PLAN_SYMBOL_GROWING;
    const char *name = TEXT(f, y->name), *class = plan_symbol_class_text(y->symbol_class);
    if ((y->symbol_class == PLAN_SYMBOL_DERIVED) != (y->expr_count != 0))
        fail(f, "symbol '%s': class: expected an expression exactly when it is derived, found class %s\n", name, class);
    else if (changes && !growing)
        fail(f, "symbol '%s': step map: expected growing, for a step changes it, found %s\n", name, class);
    else if (!changes && growing)
        fail(f, "symbol '%s': step map: expected a step that changes it, for it is growing, found none\n", name);
    for (uint32_t k = 0; k < f->v->signature_count && growing; k++)
        if (f->v->signatures[k].kind != PLAN_SIGNATURE_LOAD && !box_of(f, &f->v->signatures[k], i))
            fail(f, "symbol '%s': box: expected a range in %s, for it is growing, found none\n", name, TEXT(f, f->v->signatures[k].name));
}

/* MAP gets what each symbol is after a step. */
static void check_symbols(proof_facts *f, poly *map) {
    count c = {"symbols", 0, 0}, steps = {"steps", 0, 0};
    f->now = &c.failed;
    for (uint32_t i = 0; i <= f->v->symbol_count; i++) map[i] = f->symbols[i];
    for (uint32_t i = 0; i < f->v->symbol_count; i++) {
        poly next = f->v->symbols[i].expr_count ? f->symbols[i] : stepped(f, i);
        check_class(f, i, next);
        map[i] = next;
        c.total++;
    }
    end(f, &c);
    f->now = &steps.failed;
    for (uint32_t k = 0; k < f->v->step_count; k++, steps.total++) {
        uint32_t i = 0;
        while (i < f->v->symbol_count && (f->v->symbols[i].slot != f->v->steps[k].slot || f->v->symbols[i].expr_count)) i++;
        if (i == f->v->symbol_count) fail(f, "step %" PRIu32 ": step map: expected a slot of a symbol, found slot %" PRIu32 "\n", k, f->v->steps[k].slot);
    }
    end(f, &steps);
}

/* --- derived symbols: their expressions, and that inputs are declared with them --- */

static void check_derived(proof_facts *f) {
    count c = {"derived", 0, 0};
    f->now = &c.failed;
    const plan_view *v = f->v;
    for (uint32_t i = 0; i < v->symbol_count; i++) {
        if (!v->symbols[i].expr_count) continue;
        c.total++;
        if (poly_mentions(f->t, f->symbols[i], i)) fail(f, "symbol '%s': derived: expected an expression over others, found itself\n", TEXT(f, v->symbols[i].name));
        for (uint32_t k = 0; k < v->graph_value_count; k++)
            for (uint32_t d = 0; d < v->graph_values[k].dim_count; d++) {
                const plan_graph_term_record *term = &v->graph_terms[v->graph_values[k].dim + d];
                const plan_expr_record *e = &v->exprs[term->expr];
                if (term->expr_count != 1 || e->op != PLAN_EXPR_SYMBOL || e->value != i) continue;
                if (v->graph_values[k].kind != PLAN_GRAPH_INPUT)
                    fail(f, "value '%s': derived: expected dims over symbols that are not derived, found '%s'\n", TEXT(f, v->graph_values[k].name), TEXT(f, v->symbols[i].name));
            }
    }
    end(f, &c);
}

/* --- state pairs --- */

static void check_dims(proof_facts *f, const char *kind, const char *name, const char *rule, const proof_value *expected, const plan_dim_record *dims,
                       uint32_t rank) {
    if (expected->rank != rank) {
        fail(f, "%s '%s': %s: expected rank %" PRIu32 ", found %" PRIu32 "\n", kind, name, rule, expected->rank, rank);
        return;
    }
    for (uint32_t k = 0; k < rank; k++) {
        poly found = read_expr(f, dims[k].expr, dims[k].expr_count);
        if (found != expected->dims[k]) fail_polys(f, kind, name, rule, k, expected->dims[k], found);
    }
}

static int grows(const proof_facts *f, poly p) {
    for (uint32_t s = 0; s < f->v->symbol_count; s++)
        if (f->v->symbols[s].symbol_class == PLAN_SYMBOL_GROWING && poly_mentions(f->t, p, s)) return 1;
    return 0;
}

static void check_pair(proof_facts *f, const plan_state_record *s, const poly *map) {
    const proof_value *in = value_named(f, s->input), *out = value_named(f, s->output);
    const char *name = TEXT(f, s->input);
    uint32_t axis = PLAN_NONE;
    if (!in || !out || in->rank != out->rank) {
        fail(f, "state '%s': state pair: expected two values of one rank, found %s\n", name, !in || !out ? "none" : "two ranks");
        return;
    }
    uint32_t from = f->v->graph_values[f->by_name[s->input] - 1].dtype, to = f->v->graph_values[f->by_name[s->output] - 1].dtype;
    if (from != to || from != s->dtype) fail(f, "state '%s': state pair: expected one type, found %s and %s\n", name, plan_dtype_text(from), plan_dtype_text(to));
    for (uint32_t k = 0; k < in->rank; k++) {
        poly next = poly_map(f->t, in->dims[k], map);
        if (next != out->dims[k]) fail_polys(f, "state", name, "state pair: the output's dims are the input's after a step", k, next, out->dims[k]);
        if (grows(f, in->dims[k])) axis = k;
    }
    if (axis != s->growing_axis) {
        fail(f, "state '%s': growing axis: expected ", name);
        if (axis == PLAN_NONE) fputs("none", f->out);
        else fprintf(f->out, "%" PRIu32, axis);
        if (s->growing_axis == PLAN_NONE) fputs(", found none\n", f->out);
        else fprintf(f->out, ", found %" PRIu32 "\n", s->growing_axis);
    }
    check_dims(f, "state", name, "the session's dims are the graph's", in, f->v->dims + s->dim, s->dim_count);
}

static void check_states(proof_facts *f, const poly *map) {
    count c = {"states", 0, 0};
    f->now = &c.failed;
    for (uint32_t i = 0; i < f->v->state_count; i++, c.total++) check_pair(f, &f->v->states[i], map);
    for (uint32_t i = 0; i < f->v->graph_value_count; i++) {
        uint32_t k = 0;
        if (f->v->graph_values[i].kind != PLAN_GRAPH_STATE) continue;
        while (k < f->v->state_count && strcmp(TEXT(f, f->v->states[k].input), TEXT(f, f->v->graph_values[i].name)) != 0) k++;
        if (k == f->v->state_count) fail(f, "state '%s': state pair: expected a pair of it, found none\n", TEXT(f, f->v->graph_values[i].name));
    }
    end(f, &c);
}

/* --- bounds in a signature: interval arithmetic, and that a step ends within the capacity --- */

typedef struct box { int64_t *lo, *hi; poly *after; /* the growing symbol as what the step ends at, less the step */ } box;

static void fill_box(const proof_facts *f, const plan_signature_record *s, const poly *map, box *b) {
    uint32_t total = f->v->symbol_count;
    for (uint32_t i = 0; i < total; i++) {
        const plan_box_record *r = box_of(f, s, i);
        b->lo[i] = r ? r->lo : 0;
        b->hi[i] = r ? r->hi : INT64_MAX;
        b->after[i] = f->symbols[i];
        if (f->v->symbols[i].symbol_class == PLAN_SYMBOL_GROWING && f->v->model->capacity)
            b->after[i] = poly_sub(f->t, f->symbols[total], poly_sub(f->t, map[i], f->symbols[i]));
    }
    b->lo[total] = 0;
    b->hi[total] = f->v->model->capacity ? f->v->model->capacity : INT64_MAX;
    b->after[total] = f->symbols[total];
}

static int64_t upper(const proof_facts *f, const box *b, poly p) {
    int64_t least, most, other;
    poly_bounds(f->t, p, b->lo, b->hi, &least, &most);
    poly_bounds(f->t, poly_map(f->t, p, b->after), b->lo, b->hi, &least, &other);
    return other < most ? other : most;
}

/* --- what a signature says of values --- */

static const plan_binding_record *binding_named(const proof_facts *f, const plan_signature_record *s, uint32_t name, uint32_t kind) {
    for (uint32_t k = s->binding; k < s->binding + s->binding_count; k++)
        if (f->v->bindings[k].kind == kind && f->v->bindings[k].name == name) return &f->v->bindings[k];
    return NULL;
}

static void check_bindings(proof_facts *f) {
    count c = {"bindings", 0, 0};
    f->now = &c.failed;
    for (uint32_t i = 0; i < f->v->signature_count; i++)
        for (uint32_t k = 0; k < f->v->signatures[i].binding_count; k++, c.total++) {
            const plan_binding_record *b = &f->v->bindings[f->v->signatures[i].binding + k];
            const proof_value *v = value_named(f, b->name);
            if (!v) fail(f, "binding '%s': expected a value of the graph, found none\n", TEXT(f, b->name));
            else check_dims(f, "binding", TEXT(f, b->name), "its dims are the graph's", v, f->v->dims + b->dim, b->dim_count);
        }
    end(f, &c);
}

static void check_nodes_of(proof_facts *f, const plan_signature_record *s, count *c) {
    if (s->node_count != f->v->graph_node_count)
        fail(f, "signature '%s': nodes: expected %" PRIu32 ", found %" PRIu32 "\n", TEXT(f, s->name), f->v->graph_node_count, s->node_count);
    for (uint32_t k = 0; k < s->node_count && k < f->v->graph_node_count; k++, c->total++) {
        const plan_node_record *n = &f->v->nodes[s->node + k];
        const plan_graph_node_record *g = &f->v->graph_nodes[k];
        if (n->name != g->name || n->op != g->op)
            fail(f, "signature '%s': nodes: expected '%s' (%s), found '%s' (%s)\n", TEXT(f, s->name), TEXT(f, g->name), TEXT(f, g->op),
                 TEXT(f, n->name), TEXT(f, n->op));
    }
}

static int mentions_growth(const proof_facts *f, const proof_value *v) {
    for (uint32_t k = 0; k < v->rank; k++)
        if (grows(f, v->dims[k])) return 1;
    for (uint32_t k = 0; k < v->count; k++)
        if (grows(f, v->contents[k])) return 1;
    return 0;
}

static void check_value_class(proof_facts *f, const plan_signature_record *s, const plan_value_record *r, const proof_value *v) {
    const plan_binding_record *input = binding_named(f, s, r->name, PLAN_BINDING_INPUT);
    int growing = mentions_growth(f, v) || (input && input->feed > 2); /* a fed position, length or index */
    if (growing != (r->symbol_class == PLAN_SYMBOL_GROWING))
        fail(f, "value '%s' in %s: growing exactly when its dims or contents are: expected %s, found %s\n", TEXT(f, r->name), TEXT(f, s->name),
             growing ? "growing" : "fixed", plan_symbol_class_text(r->symbol_class));
}

/* Bytes of a value at its upper bounds; -1 when not bounded. */
static int64_t value_bytes(const proof_facts *f, const box *b, const proof_value *v, uint32_t dtype) {
    int64_t bytes = plan_dtype_bits(dtype) / 8;
    for (uint32_t k = 0; k < v->rank; k++) {
        int64_t most = upper(f, b, v->dims[k]);
        if (most == INT64_MAX || plan_mul_i64(bytes, most < 0 ? 0 : most, &bytes)) return -1;
    }
    return bytes;
}

/* By value of the graph: a launch makes it, so it has memory of its own for each element. Views may repeat elements. */
static void mark_launched(const proof_facts *f, const plan_signature_record *s, uint8_t *launched) {
    memset(launched, 0, f->v->graph_value_count);
    for (uint32_t k = 0; k < s->node_count && k < f->v->graph_node_count; k++) {
        const plan_graph_node_record *g = &f->v->graph_nodes[k];
        if (f->v->nodes[s->node + k].realised != PLAN_REALISED_LAUNCH) continue;
        for (uint32_t i = g->output; i < g->output + g->output_count; i++)
            if (f->v->graph_links[i].value != PLAN_NONE) launched[f->v->graph_links[i].value] = 1;
    }
}

static void check_room(proof_facts *f, const plan_signature_record *s, const box *b, const plan_value_record *r, const proof_value *v) {
    const plan_buffer_record *buffer = &f->v->buffers[r->buffer];
    int64_t bytes = value_bytes(f, b, v, r->dtype);
    if (bytes < 0) fail(f, "value '%s' in %s: buffer: expected an upper bound for each dim, found none\n", TEXT(f, r->name), TEXT(f, s->name));
    else if ((uint64_t)bytes > buffer->bytes - r->offset)
        fail(f, "value '%s' in %s: buffer '%s': expected at least %" PRId64 " bytes for the upper bounds, found %" PRIu64 "\n", TEXT(f, r->name),
             TEXT(f, s->name), TEXT(f, buffer->name), bytes, buffer->bytes - r->offset);
}

static void check_values_of(proof_facts *f, const plan_signature_record *s, const box *b, const uint8_t *launched, count *values, count *buffers) {
    for (uint32_t k = s->value; k < s->value + s->value_count; k++, values->total++) {
        const plan_value_record *r = &f->v->values[k];
        const proof_value *v = value_named(f, r->name);
        f->now = &values->failed;
        if (!v || f->v->graph_values[f->by_name[r->name] - 1].dtype != r->dtype) {
            fail(f, "value '%s' in %s: expected a value of the graph with its type, found none\n", TEXT(f, r->name), TEXT(f, s->name));
            continue;
        }
        check_value_class(f, s, r, v);
        uint32_t kind = f->v->graph_values[f->by_name[r->name] - 1].kind;
        if (r->buffer == PLAN_NONE || (kind == PLAN_GRAPH_MADE && !launched[f->by_name[r->name] - 1])) continue;
        buffers->total++;
        f->now = &buffers->failed;
        check_room(f, s, b, r, v);
    }
}

/* --- states in their buffers --- */

static int touches(const plan_access_record *a, uint32_t mode, uint64_t from, uint64_t to) {
    return a->region == PLAN_REGION_STATE && (a->mode & mode) && a->offset < to && from < a->offset + a->bytes;
}

/* A launch that appends gets the extents table: where the old rows end is not in its arguments. */
static void check_append(proof_facts *f, const plan_signature_record *s, const plan_state_record *state, count *c) {
    for (uint32_t i = s->launch; i < s->launch + s->launch_count; i++) {
        const plan_launch_record *l = &f->v->launches[i];
        int writes = 0, reads = 0;
        for (uint32_t k = l->access; k < l->access + l->access_count; k++) {
            writes |= touches(&f->v->accesses[k], PLAN_ACCESS_WRITE, state->offset, state->offset + state->bytes);
            reads |= touches(&f->v->accesses[k], PLAN_ACCESS_READ, 0, 8);
        }
        if (!writes) continue;
        c->total++;
        if (!reads) fail(f, "state '%s' in %s: append: expected launch %" PRIu32 " '%s' to read the extents table, where old rows end, found that it does not\n",
                         TEXT(f, state->input), TEXT(f, s->name), i - s->launch, TEXT(f, l->label));
    }
}

static int position_ranged(const proof_facts *f, const plan_signature_record *s) {
    for (uint32_t k = s->box; k < s->box + s->box_count; k++)
        if (f->v->symbols[f->v->boxes[k].symbol].symbol_class == PLAN_SYMBOL_GROWING) return f->v->boxes[k].lo != f->v->boxes[k].hi;
    return 0;
}

static void check_state_place(proof_facts *f, const plan_signature_record *s, const box *b, const plan_state_record *state, count *c) {
    const proof_value *out = value_named(f, state->output);
    int64_t bytes = out ? value_bytes(f, b, out, state->dtype) : -1;
    if (out && (bytes < 0 || (uint64_t)bytes > state->bytes))
        fail(f, "state '%s' in %s: capacity: expected at least %" PRId64 " bytes for its output, found %" PRIu64 "\n", TEXT(f, state->input),
             TEXT(f, s->name), bytes, state->bytes);
    for (uint32_t k = s->value; k < s->value + s->value_count && state->update != PLAN_STATE_COPIED; k++) {
        const plan_value_record *r = &f->v->values[k];
        if (r->name != state->output || r->buffer == PLAN_NONE) continue;
        const plan_buffer_record *buffer = &f->v->buffers[r->buffer];
        if (buffer->region != PLAN_REGION_STATE || buffer->offset + r->offset != state->offset)
            fail(f, "state '%s' in %s: in place: expected its output at state+0x%" PRIx64 ", found %s+0x%" PRIx64 "\n", TEXT(f, state->input),
                 TEXT(f, s->name), state->offset, plan_region_text(buffer->region), buffer->offset + r->offset);
    }
    if (state->update == PLAN_STATE_APPENDED && position_ranged(f, s)) check_append(f, s, state, c);
}

static void check_signatures(proof_facts *f, const poly *map, const box *b, uint8_t *launched) {
    count nodes = {"fates", 0, 0}, values = {"values", 0, 0}, buffers = {"buffers", 0, 0}, places = {"appends", 0, 0};
    for (uint32_t i = 0; i < f->v->signature_count; i++) {
        const plan_signature_record *s = &f->v->signatures[i];
        box copy = *b;
        if (s->kind == PLAN_SIGNATURE_LOAD) continue;
        fill_box(f, s, map, &copy);
        mark_launched(f, s, launched);
        f->now = &nodes.failed;
        check_nodes_of(f, s, &nodes);
        check_values_of(f, s, &copy, launched, &values, &buffers);
        f->now = &places.failed;
        for (uint32_t k = 0; k < f->v->state_count; k++) check_state_place(f, s, &copy, &f->v->states[k], &places);
    }
    end(f, &nodes);
    end(f, &values);
    end(f, &buffers);
    end(f, &places);
}

void plan_check_facts(proof_facts *f) {
    uint32_t room = f->v->symbol_count + 1;
    poly *map = calloc(room, sizeof *map), *after = calloc(room, sizeof *after);
    int64_t *lo = calloc(room, sizeof *lo), *hi = calloc(room, sizeof *hi);
    uint8_t *launched = calloc((size_t)f->v->graph_value_count + 1, 1);
    if (map && after && lo && hi && launched) {
        const box b = {lo, hi, after};
        check_symbols(f, map);
        check_derived(f);
        check_states(f, map);
        check_bindings(f);
        check_signatures(f, map, &b, launched);
    } else {
        fail(f, "memory: expected enough, found none\n");
    }
    free(map);
    free(after);
    free(lo);
    free(hi);
    free(launched);
}
