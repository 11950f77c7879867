/* step.c - running steps: replay, eager, prefill, run; position and tokens; time.
 *
 * The device advances the extents table by itself. The host keeps a mirror of it by applying the plan's step map, only to
 * refuse a step that would exceed the capacity before anything is launched, and to know the extents of outputs. */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

#define SLOT_BYTES 8u

plan_status plan_session_write_slots(plan_session *s, uint32_t slot, const int64_t *values, uint32_t count) {
    plan_driver *d = s->p->driver;
    if (slot >= s->p->view.model->slot_count)
        return PLAN_OK; /* a plan in which nothing grows has no table */
    plan_status status = d->to_device(d, s->stream, s->base[PLAN_REGION_STATE] + SLOT_BYTES * slot, values, SLOT_BYTES * count);
    if (!status)
        memcpy(s->mirror + slot, values, SLOT_BYTES * count);
    return status;
}

plan_status plan_session_write_slot(plan_session *s, uint32_t slot, int64_t value) {
    return plan_session_write_slots(s, slot, &value, 1);
}

plan_status plan_session_fill_values(plan_session *s, uint32_t signature) {
    const plan_view *v = &s->p->view;
    const plan_signature_record *g = &v->signatures[signature];
    int64_t *values = plan_session_values(s, signature);
    for (uint32_t i = 0; i < v->symbol_count; i++)
        values[i] = v->symbols[i].slot == PLAN_NONE ? 0 : s->mirror[v->symbols[i].slot];
    for (uint32_t i = g->box; i < g->box + g->box_count; i++)
        if (v->boxes[i].lo == v->boxes[i].hi)
            values[v->boxes[i].symbol] = v->boxes[i].lo;
    /* Derived symbols rest on ones that are known or stand before them. */
    for (uint32_t i = 0; i < v->symbol_count; i++) {
        const plan_symbol_record *symbol = &v->symbols[i];
        if (symbol->expr_count == 0)
            continue;
        plan_status status = plan_expr_eval(v->exprs + symbol->expr, symbol->expr_count, values, &values[i]);
        if (status)
            return plan_fail(status, "symbol '%s': its value cannot be computed", PLAN_TEXT(s->p, symbol->name));
    }
    return PLAN_OK;
}

/* The slots' values after a step, from those before it; the growth of the position by a step, into *GROWTH. */
static plan_status evaluate_steps(plan_session *s, uint32_t signature, int64_t *growth) {
    const plan_view *v = &s->p->view;
    const plan_signature_record *g = &v->signatures[signature];
    plan_status status = plan_session_fill_values(s, signature);
    *growth = 0;
    for (uint32_t i = 0; i < g->step_count && !status; i++) {
        const plan_step_record *step = &v->steps[g->step + i];
        status = plan_expr_eval(v->exprs + step->expr, step->expr_count, plan_session_values(s, signature), &s->step_values[i]);
        if (status)
            return plan_fail(status, "step map of slot %u: its value cannot be computed", step->slot);
        if (step->slot == PLAN_SLOT_POSITION)
            *growth = s->step_values[i] - s->mirror[PLAN_SLOT_POSITION];
    }
    return status;
}

static void apply_steps(plan_session *s, uint32_t signature) {
    const plan_signature_record *g = &s->p->view.signatures[signature];
    for (uint32_t i = 0; i < g->step_count; i++)
        s->mirror[s->p->view.steps[g->step + i].slot] = s->step_values[i];
}

static plan_status check_capacity(const plan_session *s, int64_t rows) {
    int64_t capacity = s->p->view.model->capacity, position = s->mirror[PLAN_SLOT_POSITION];
    if (capacity == 0 || rows <= capacity - position)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_CAPACITY, "the state holds %" PRId64 " rows; position %" PRId64 ", asked for %" PRId64 " more",
                     capacity, position, rows);
}

/* Everything that can refuse a step before it is launched, but the capacity. */
static plan_status check_ready(const plan_session *s, uint32_t signature, bool eager) {
    if (eager && !s->warmed)
        return plan_fail(PLAN_ERROR_STATE, "the session was not warmed; call plan_session_warm first");
    if (!eager && !s->captured)
        return plan_fail(PLAN_ERROR_STATE, "nothing was captured; call plan_session_capture first");
    return plan_check_metadata(s->p, signature);
}

/* One step of a signature whose inputs are in place. */
static plan_status run_step(plan_session *s, uint32_t signature, bool eager) {
    int64_t growth;
    plan_status status = evaluate_steps(s, signature, &growth);
    if (!status)
        status = plan_session_clear_stamps(s, signature);
    if (!status)
        status = plan_session_launch(s, signature, eager);
    if (status)
        return status;
    apply_steps(s, signature);
    plan_session_advance_rows(s);
    s->last = signature;
    return PLAN_OK;
}

static plan_status check_decode(plan_session *s, int64_t steps, bool eager) {
    int64_t growth, rows;
    uint32_t decode = s->p->decode;
    if (decode == PLAN_NONE)
        return plan_fail(PLAN_ERROR_STATE, "the plan has no decode signature; use plan_session_run");
    if (steps < 0)
        return plan_fail(PLAN_ERROR_ARGUMENT, "steps: expected 0 or more, found %" PRId64, steps);
    if (steps > 1 && !s->p->view.model->sampling && s->p->token_binding != PLAN_NONE)
        return plan_fail(PLAN_ERROR_ARGUMENT, "steps: expected 1, since the plan has no sampling tail; found %" PRId64, steps);
    plan_status status = check_ready(s, decode, eager);
    if (!status && steps)
        status = plan_session_prepare_rows(s, 1);
    if (!status)
        status = evaluate_steps(s, decode, &growth);
    if (status)
        return status;
    if (plan_mul_i64(growth, steps, &rows))
        return plan_fail(PLAN_ERROR_CAPACITY, "steps: %" PRId64 " is too many", steps);
    status = check_capacity(s, rows);
    if (!status && steps && s->p->token_binding != PLAN_NONE && !s->token_known)
        status = plan_fail(PLAN_ERROR_STATE, "there is no token to feed; call plan_session_prefill or plan_session_set_token");
    return status;
}

/* The sampled token is in place for the next step; without a tail the caller must bring one. */
static void count_token(plan_session *s) {
    s->token_known = s->p->view.model->sampling != 0;
    if (!s->token_known)
        return;
    s->sampled++;
    s->mirror[PLAN_SLOT_SAMPLED]++;
}

static plan_status run_steps(plan_session *s, int64_t steps, bool eager) {
    plan_status status = PLAN_OK;
    for (int64_t i = 0; i < steps && !status; i++) {
        status = run_step(s, s->p->decode, eager);
        if (!status)
            count_token(s);
    }
    return status;
}

/* A stop token ended STEPS steps early: the host's counts become those of the device. The steps launched behind it wrote rows
 * beyond the position and counted nothing; where state is updated in place there are none. */
static void take_back(plan_session *s, int64_t start, int64_t steps) {
    const int64_t beyond = s->mirror[PLAN_SLOT_SAMPLED] - s->ring[PLAN_RING_TOKENS] / 2;
    const int64_t growth = (s->mirror[PLAN_SLOT_POSITION] - start) / steps;
    s->mirror[PLAN_SLOT_SAMPLED] -= beyond;
    s->sampled -= (uint64_t)beyond;
    s->mirror[PLAN_SLOT_POSITION] -= growth * beyond;
}

#define STOP_BATCH 8 /* steps between two looks at the stop word: a wait costs a few microseconds, a step too many its time */

/* The same up to a stop token. */
static plan_status run_to_stop(plan_session *s, int64_t steps, bool eager) {
    const int64_t batch = s->p->view.model->rewindable ? STOP_BATCH : 1;
    plan_status status = plan_session_finish(s);
    while (steps > 0 && !status && !plan_session_is_stopped(s)) {
        const int64_t part = steps < batch ? steps : batch, start = s->mirror[PLAN_SLOT_POSITION];
        status = run_steps(s, part, eager);
        if (!status)
            status = plan_session_finish(s);
        if (!status && plan_session_is_stopped(s))
            take_back(s, start, part);
        steps -= part;
    }
    return status;
}

static plan_status decode(plan_session *s, int64_t steps, bool eager) {
    plan_driver *d = s->p->driver;
    bool timing = s->timing && !eager && steps > 0;
    plan_status status = check_decode(s, steps, eager);
    if (!status && timing)
        status = d->event_record(d, s->stream, s->from);
    if (!status)
        status = s->stop_count ? run_to_stop(s, steps, eager) : run_steps(s, steps, eager);
    if (timing) {
        if (!status)
            status = d->event_record(d, s->stream, s->to);
        s->timed_steps = status ? 0 : steps;
    }
    return status;
}

plan_status plan_session_replay(plan_session *s, int64_t steps) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, decode(s, steps, false));
}

plan_status plan_session_eager(plan_session *s, int64_t steps) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, decode(s, steps, true));
}

plan_status plan_session_set_eager(plan_session *s, int eager) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    s->eager_prefill = eager != 0;
    return plan_session_leave(s, PLAN_OK);
}

plan_status plan_session_put_token(plan_session *s, uint32_t binding, size_t row, const int64_t *ids, size_t count) {
    plan_driver *d = s->p->driver;
    const plan_binding_record *b = &s->p->view.bindings[binding];
    uint64_t width = plan_dtype_bits(b->dtype) / 8, first = row ? row * (uint64_t)s->p->view.dims[b->dim].stride : 0;
    plan_address to = plan_session_address(s, binding) + first * width;
    if ((b->dtype != PLAN_I64 && b->dtype != PLAN_I32) || b->bytes / width < first || b->bytes / width - first < count)
        return plan_fail(PLAN_ERROR_RANGE, "input '%s': expected an int32 or int64 buffer of at least %zu tokens, found %" PRIu64
                         " bytes", PLAN_TEXT(s->p, b->name), count, b->bytes);
    if (b->dtype == PLAN_I64)
        return d->to_device(d, s->stream, to, ids, count * sizeof *ids);
    int32_t narrow[64];
    plan_status status = PLAN_OK;
    for (size_t at = 0; at < count && !status; at += 64) {
        size_t part = count - at < 64 ? count - at : 64;
        for (size_t i = 0; i < part; i++) {
            if (ids[at + i] > INT32_MAX)
                return plan_fail(PLAN_ERROR_RANGE, "token %" PRId64 " does not fit the model's int32 input", ids[at + i]);
            narrow[i] = (int32_t)ids[at + i];
        }
        status = d->to_device(d, s->stream, to + at * 4, narrow, part * 4);
    }
    return status;
}

static uint32_t find_token_input(const plan *p, uint32_t signature) {
    const plan_signature_record *g = &p->view.signatures[signature];
    for (uint32_t i = g->binding; i < g->binding + g->binding_count; i++)
        if (p->view.bindings[i].kind == PLAN_BINDING_INPUT && p->view.bindings[i].feed == PLAN_FEED_TOKEN)
            return i;
    return signature == p->decode ? p->token_binding : PLAN_NONE;
}

/* The prefill signature with the shortest range that takes as much of LEFT as any does, else decode with one token. A rest that a long one
 * takes whole is one step: two of a short one would read all weights twice. */
static uint32_t choose_signature(const plan *p, int64_t left, int64_t *take) {
    uint32_t best = p->decode;
    int64_t best_high = INT64_MAX;
    *take = 1;
    for (uint32_t i = 0; i < p->view.signature_count; i++) {
        const plan_signature_record *g = &p->view.signatures[i];
        const plan_box_record *box = plan_find_box(p, g, PLAN_SLOT_TOKENS);
        if (g->kind != PLAN_SIGNATURE_PREFILL)
            continue;
        int64_t low = box ? box->lo : 1, high = box ? box->hi : 1, can = left < high ? left : high;
        if (can < low || can < *take || (can == *take && high >= best_high))
            continue;
        best = i;
        best_high = high;
        *take = can;
    }
    return best;
}

static plan_status feed_chunk(plan_session *s, uint32_t signature, uint32_t row, const int64_t *ids, int64_t count, bool is_last) {
    uint32_t input = find_token_input(s->p, signature);
    if (input == PLAN_NONE)
        return plan_fail(PLAN_ERROR_NAME, "signature '%s' has no input that takes tokens",
                         PLAN_TEXT(s->p, s->p->view.signatures[signature].name));
    plan_status status = check_ready(s, signature, s->eager_prefill);
    if (!status)
        status = plan_session_clear_stop(s);
    if (!status)
        status = plan_session_put_token(s, input, row, ids, (size_t)count);
    if (!status)
        status = plan_session_feed_row(s, row, count);
    if (!status && signature != s->p->decode)
        status = plan_session_write_slot(s, PLAN_SLOT_TOKENS, count);
    if (!status)
        status = run_step(s, signature, s->eager_prefill);
    if (status)
        return status;
    if (is_last) {
        count_token(s);
        return PLAN_OK;
    }
    /* The tail sampled after a chunk that is not the last: that token is no answer, so its place is given back. */
    return s->p->view.model->sampling ? plan_session_write_slot(s, PLAN_SLOT_SAMPLED, (int64_t)s->sampled) : PLAN_OK;
}

/* Ids are counted by the logits' last dim, where the plan has logits. */
plan_status plan_session_check_token(const plan_session *s, const char *what, size_t place, int64_t id) {
    const plan_view *v = &s->p->view;
    int64_t limit = INT64_MAX;
    if (v->model->logits_binding != PLAN_NONE) {
        const plan_binding_record *b = &v->bindings[v->model->logits_binding];
        if (b->dim_count)
            limit = v->dims[b->dim + b->dim_count - 1].upper;
    }
    if (id >= 0 && id < limit)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_RANGE, "%s: token %zu: expected 0 or more and below %" PRId64 ", found %" PRId64, what, place, limit, id);
}

plan_status plan_session_feed_prompt(plan_session *s, uint32_t row, const int64_t *ids, size_t n) {
    if (!ids || n == 0 || n > INT64_MAX)
        return plan_fail(PLAN_ERROR_ARGUMENT, "prefill: expected at least one token, found %zu", ids ? n : (size_t)0);
    plan_status status = PLAN_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = plan_session_check_token(s, "prefill", i, ids[i]);
    for (size_t at = 0; at < n && !status;) {
        int64_t take;
        uint32_t signature = choose_signature(s->p, (int64_t)(n - at), &take);
        if (signature == PLAN_NONE)
            return plan_fail(PLAN_ERROR_STATE, "prefill: the plan has neither a decode nor a prefill signature for %zu tokens", n - at);
        status = feed_chunk(s, signature, row, ids + at, take, at + (size_t)take == n);
        at += (size_t)take;
    }
    return status;
}

static plan_status prefill(plan_session *s, const int64_t *ids, size_t n) {
    if (s->p->view.model->rows)
        return plan_fail(PLAN_ERROR_STATE, "prefill: rows have lengths of their own; call plan_session_prefill_row");
    plan_status status = n > INT64_MAX ? PLAN_OK : check_capacity(s, (int64_t)n);
    return status ? status : plan_session_feed_prompt(s, 0, ids, n);
}

plan_status plan_session_prefill(plan_session *s, const int64_t *ids, size_t n) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, prefill(s, ids, n));
}

static plan_status set_symbol(plan_session *s, const plan_signature_record *g, const char *name, int64_t value) {
    const plan_view *v = &s->p->view;
    if (!name)
        return plan_fail(PLAN_ERROR_ARGUMENT, "symbols: expected a name, found NULL");
    for (uint32_t i = g->box; i < g->box + g->box_count; i++) {
        const plan_box_record *box = &v->boxes[i];
        const plan_symbol_record *symbol = &v->symbols[box->symbol];
        if (strcmp(PLAN_TEXT(s->p, symbol->name), name) != 0)
            continue;
        if (value < box->lo || value > box->hi)
            return plan_fail(PLAN_ERROR_RANGE, "symbol '%s': expected %" PRId64 " to %" PRId64 ", found %" PRId64, name, box->lo,
                             box->hi, value);
        if (box->lo == box->hi || symbol->slot == PLAN_NONE)
            return PLAN_OK;
        return plan_session_write_slot(s, symbol->slot, value);
    }
    return plan_fail(PLAN_ERROR_NAME, "signature '%s' has no symbol '%.100s'", PLAN_TEXT(s->p, g->name), name);
}

/* Each ranged symbol must have a value inside its box by now. */
static plan_status check_box(plan_session *s, const plan_signature_record *g) {
    const plan_view *v = &s->p->view;
    for (uint32_t i = g->box; i < g->box + g->box_count; i++) {
        const plan_box_record *box = &v->boxes[i];
        const plan_symbol_record *symbol = &v->symbols[box->symbol];
        if (box->lo == box->hi || symbol->slot == PLAN_NONE || symbol->expr_count)
            continue;
        int64_t value = s->mirror[symbol->slot];
        if (value < box->lo || value > box->hi)
            return plan_fail(symbol->slot == PLAN_SLOT_POSITION ? PLAN_ERROR_CAPACITY : PLAN_ERROR_RANGE,
                             "symbol '%s': expected %" PRId64 " to %" PRId64 ", found %" PRId64, PLAN_TEXT(s->p, symbol->name),
                             box->lo, box->hi, value);
    }
    return PLAN_OK;
}

/* The same of symbols that follow from others; their values are computed. */
static plan_status check_derived(plan_session *s, uint32_t signature) {
    const plan_view *v = &s->p->view;
    const plan_signature_record *g = &v->signatures[signature];
    for (uint32_t i = g->box; i < g->box + g->box_count; i++) {
        const plan_box_record *box = &v->boxes[i];
        const int64_t value = plan_session_values(s, signature)[box->symbol];
        if (v->symbols[box->symbol].expr_count && (value < box->lo || value > box->hi))
            return plan_fail(PLAN_ERROR_RANGE, "%s: expected %" PRId64 " to %" PRId64 ", found %" PRId64,
                             PLAN_TEXT(s->p, v->symbols[box->symbol].name), box->lo, box->hi, value);
    }
    return PLAN_OK;
}

static plan_status run(plan_session *s, const char *signature, const char *const *names, const int64_t *values, int count) {
    uint32_t number;
    int64_t growth;
    plan_status status = plan_find_signature(s->p, signature, &number);
    if (status)
        return status;
    const plan_signature_record *g = &s->p->view.signatures[number];
    if (count < 0 || (count > 0 && (!names || !values)))
        return plan_fail(PLAN_ERROR_ARGUMENT, "symbols: expected %d names and values, found NULL", count);
    if (g->kind == PLAN_SIGNATURE_LOAD)
        return plan_fail(PLAN_ERROR_STATE, "signature '%s' runs at load only", signature);
    if (s->p->view.model->rows)
        return plan_fail(PLAN_ERROR_STATE, "run: rows have lengths of their own; call plan_session_prefill_row and plan_session_replay");
    status = check_ready(s, number, s->eager_prefill);
    for (int i = 0; i < count && !status; i++)
        status = set_symbol(s, g, names[i], values[i]);
    if (!status)
        status = check_box(s, g);
    if (!status)
        status = evaluate_steps(s, number, &growth);
    if (!status)
        status = check_derived(s, number);
    if (!status)
        status = check_capacity(s, growth);
    if (!status)
        status = plan_session_clear_stop(s);
    if (!status)
        status = run_step(s, number, s->eager_prefill);
    if (!status && (g->kind == PLAN_SIGNATURE_DECODE || g->kind == PLAN_SIGNATURE_PREFILL))
        count_token(s);
    return status;
}

plan_status plan_session_run(plan_session *s, const char *signature, const char *const *names, const int64_t *values,
                             int count) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, run(s, signature, names, values, count));
}

static plan_status set_token(plan_session *s, int64_t token) {
    if (s->p->view.model->rows)
        return plan_fail(PLAN_ERROR_STATE, "set_token: rows have lengths of their own; call plan_session_set_tokens");
    plan_status range = plan_session_check_token(s, "set_token", 0, token);
    if (range)
        return range;
    if (s->p->token_binding == PLAN_NONE)
        return plan_fail(PLAN_ERROR_NAME, "decode has no input that takes a token");
    plan_status status = plan_session_clear_stop(s);
    if (!status)
        status = plan_session_put_token(s, s->p->token_binding, 0, &token, 1);
    if (!status)
        s->token_known = true;
    return status;
}

plan_status plan_session_set_token(plan_session *s, int64_t token) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, set_token(s, token));
}

static plan_status tokens(plan_session *s, int64_t *out, size_t n) {
    if (!out && n)
        return plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for %zu tokens, found NULL", n);
    if (n > s->sampled || n > PLAN_RING_TOKENS || (n && !s->ring))
        return plan_fail(PLAN_ERROR_RANGE, "tokens: expected at most %" PRIu64 ", which were sampled, and %u, which the ring holds; "
                         "asked for %zu", s->sampled, PLAN_RING_TOKENS, n);
    plan_status status = plan_session_finish(s);
    for (size_t i = 0; i < n && !status; i++)
        out[i] = s->ring[(s->sampled - n + i) % PLAN_RING_TOKENS];
    return status;
}

plan_status plan_session_tokens(plan_session *s, int64_t *out, size_t n) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, tokens(s, out, n));
}

plan_status plan_session_token_count(plan_session *s, uint64_t *out) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    if (!out)
        return plan_session_leave(s, plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the count, found NULL"));
    *out = s->sampled;
    return plan_session_leave(s, PLAN_OK);
}

plan_status plan_session_signature(plan_session *s, const char **out) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    if (!out)
        return plan_session_leave(s, plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the name, found NULL"));
    *out = s->last == PLAN_NONE ? NULL : PLAN_TEXT(s->p, s->p->view.signatures[s->last].name);
    return plan_session_leave(s, PLAN_OK);
}

plan_status plan_session_position(plan_session *s, int64_t *out) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    if (!out)
        return plan_session_leave(s, plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the position, found NULL"));
    *out = s->p->view.model->rows ? plan_session_longest_row(s) : s->mirror[PLAN_SLOT_POSITION];
    return plan_session_leave(s, PLAN_OK);
}

/* All state becomes as new; what was sampled stays counted, since the ring goes on. */
static plan_status clear_state(plan_session *s) {
    plan_driver *d = s->p->driver;
    const plan_view *v = &s->p->view;
    plan_status status = d->zero(d, s->stream, s->base[PLAN_REGION_STATE], v->regions[PLAN_REGION_STATE].bytes);
    if (status)
        return status;
    const uint32_t kept = v->model->sampler ? v->model->sampler : v->model->slot_count + PLAN_SLOT_FIRST_FREE;
    memset(s->mirror, 0, kept * sizeof *s->mirror);
    status = plan_session_restore_sampler(s);
    return status ? status : plan_session_write_slot(s, PLAN_SLOT_SAMPLED, (int64_t)s->sampled);
}

static plan_status rewind_to(plan_session *s, int64_t position) {
    int64_t present = s->p->view.model->rows ? plan_session_longest_row(s) : s->mirror[PLAN_SLOT_POSITION];
    if (position < 0 || position > present)
        return plan_fail(PLAN_ERROR_RANGE, "rewind: expected 0 to %" PRId64 ", which is the position; found %" PRId64, present,
                         position);
    plan_status status = plan_session_clear_stop(s);
    if (status)
        return status;
    if (s->p->view.model->rows)
        return plan_session_set_back_rows(s, position, false);
    if (s->p->view.model->rewindable)
        return plan_session_write_slot(s, PLAN_SLOT_POSITION, position);
    if (position != 0)
        return plan_fail(PLAN_ERROR_STATE, "rewind: the plan has state that does not grow, which cannot be set back to %" PRId64
                         "; only 0 is possible", position);
    return s->p->view.regions[PLAN_REGION_STATE].bytes ? clear_state(s) : PLAN_OK;
}

plan_status plan_session_rewind(plan_session *s, int64_t position) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, rewind_to(s, position));
}

plan_status plan_session_set_position(plan_session *s, int64_t position) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    int64_t capacity = s->p->view.model->capacity ? s->p->view.model->capacity : INT64_MAX; /* 0: nothing fills up */
    if (position < 0 || position > capacity)
        status = plan_fail(PLAN_ERROR_RANGE, "position: expected 0 to %" PRId64 ", found %" PRId64, capacity, position);
    else if (s->p->view.model->rows)
        status = plan_session_set_back_rows(s, position, true);
    else
        status = plan_session_write_slot(s, PLAN_SLOT_POSITION, position);
    return plan_session_leave(s, status);
}

static plan_status time_of(plan_session *s, int64_t steps, double *microseconds) {
    plan_driver *d = s->p->driver;
    bool had = s->timing;
    if (!microseconds)
        return plan_fail(PLAN_ERROR_ARGUMENT, "microseconds: expected a place for the time, found NULL");
    s->timing = true;
    if (!had || s->timed_steps == 0)
        return plan_fail(PLAN_ERROR_STATE, "time: no replay was timed; replays are from now on");
    if (s->timed_steps != steps)
        return plan_fail(PLAN_ERROR_RANGE, "time: expected %" PRId64 " steps, as in the last replay; found %" PRId64,
                         s->timed_steps, steps);
    plan_status status = plan_session_finish(s);
    return status ? status : d->event_elapsed(d, s->from, s->to, microseconds);
}

plan_status plan_session_time(plan_session *s, int64_t steps, double *microseconds) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, time_of(s, steps, microseconds));
}
