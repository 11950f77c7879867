/* rows.c - rows of a batch with lengths of their own: feeding one, feeding each, setting one back.
 *
 * The last words of the extents table are, for each row, its length, then the tokens that it is fed in a step; 0: the row
 * rests. Word 0, the position, is the largest length of the rows that are fed, all of which get as many tokens in a step; the host
 * writes it only when other rows are fed than in the step before. */
#include "internal.h"

#include <inttypes.h>

static uint32_t length_slot(const plan *p, uint32_t row) { return p->view.model->slot_count - 2 * p->view.model->rows + row; }
static uint32_t tokens_slot(const plan *p, uint32_t row) { return p->view.model->slot_count - p->view.model->rows + row; }

int64_t plan_rows(const plan *p) { return p ? p->view.model->rows : 0; }

static plan_status find_row(const plan_session *s, int64_t row) {
    uint32_t rows = s->p->view.model->rows;
    if (rows == 0)
        return plan_fail(PLAN_ERROR_STATE, "the plan's rows have one length; compile with gcc-plan --rows for lengths of their own");
    if (row < 0 || row >= (int64_t)rows)
        return plan_fail(PLAN_ERROR_RANGE, "row: expected 0 to %u, found %" PRId64, rows - 1, row);
    return PLAN_OK;
}

/* A word that has VALUE already is not written again. */
static plan_status set_word(plan_session *s, uint32_t slot, int64_t value) {
    return s->mirror[slot] == value ? PLAN_OK : plan_session_write_slot(s, slot, value);
}

/* The largest length: of the rows that are fed in the next step, or of all. */
static int64_t longest(const plan_session *s, bool fed) {
    int64_t most = 0;
    for (uint32_t r = 0; r < s->p->view.model->rows; r++) {
        int64_t length = s->mirror[length_slot(s->p, r)];
        if (length > most && (!fed || s->mirror[tokens_slot(s->p, r)]))
            most = length;
    }
    return most;
}

int64_t plan_session_longest_row(const plan_session *s) { return longest(s, false); }

plan_status plan_session_prepare_rows(plan_session *s, int64_t most) {
    bool any = false;
    for (uint32_t r = 0; r < s->p->view.model->rows; r++) {
        int64_t fed = s->mirror[tokens_slot(s->p, r)];
        if (fed > most)
            return plan_fail(PLAN_ERROR_STATE, "row %u would be fed %" PRId64 " tokens in a step that has %" PRId64
                             "; call plan_session_set_tokens first", r, fed, most);
        any = any || fed;
    }
    if (!any && s->p->view.model->rows)
        return plan_fail(PLAN_ERROR_STATE, "no row is fed; call plan_session_set_tokens first");
    return s->p->view.model->rows ? set_word(s, PLAN_SLOT_POSITION, longest(s, true)) : PLAN_OK;
}

void plan_session_advance_rows(plan_session *s) {
    for (uint32_t r = 0; r < s->p->view.model->rows; r++) {
        int64_t fed = s->mirror[tokens_slot(s->p, r)];
        s->mirror[length_slot(s->p, r)] += fed;
        s->row_fed[r] = fed > 0;
    }
}

plan_status plan_session_set_back_rows(plan_session *s, int64_t position, bool all) {
    plan_status status = PLAN_OK;
    for (uint32_t r = 0; r < s->p->view.model->rows && !status; r++)
        if (all || s->mirror[length_slot(s->p, r)] > position)
            status = set_word(s, length_slot(s->p, r), position);
    return status;
}

plan_status plan_session_restore_rows(plan_session *s) {
    plan_status status = PLAN_OK;
    for (uint32_t r = 0; r < s->p->view.model->rows && !status; r++)
        status = plan_session_write_slot(s, length_slot(s->p, r), s->mirror[length_slot(s->p, r)]);
    return status;
}

/* COUNT tokens for ROW alone. */
plan_status plan_session_feed_row(plan_session *s, uint32_t row, int64_t count) {
    plan_status status = PLAN_OK;
    for (uint32_t r = 0; r < s->p->view.model->rows && !status; r++)
        status = set_word(s, tokens_slot(s->p, r), r == row ? count : 0);
    return status ? status : plan_session_prepare_rows(s, count);
}

static plan_status prefill_row(plan_session *s, int64_t row, const int64_t *ids, size_t n) {
    plan_status status = find_row(s, row);
    if (status)
        return status;
    int64_t length = s->mirror[length_slot(s->p, (uint32_t)row)], capacity = s->p->view.model->capacity;
    if (n > (uint64_t)(capacity - length))
        return plan_fail(PLAN_ERROR_CAPACITY, "row %" PRId64 ": the state holds %" PRId64 " rows; length %" PRId64 ", asked for %zu more",
                         row, capacity, length, n);
    return plan_session_feed_prompt(s, (uint32_t)row, ids, n);
}

plan_status plan_session_prefill_row(plan_session *s, int64_t row, const int64_t *ids, size_t n) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, prefill_row(s, row, ids, n));
}

static plan_status set_tokens(plan_session *s, const int64_t *ids, size_t count) {
    plan_status status = find_row(s, 0);
    if (status)
        return status;
    if (!ids || count != s->p->view.model->rows)
        return plan_fail(PLAN_ERROR_ARGUMENT, "set_tokens: expected a token for each of %u rows, found %zu", s->p->view.model->rows,
                         ids ? count : (size_t)0);
    if (s->p->token_binding == PLAN_NONE)
        return plan_fail(PLAN_ERROR_NAME, "decode has no input that takes a token");
    for (size_t r = 0; r < count && !status; r++)
        if (ids[r] != PLAN_REST)
            status = plan_session_check_token(s, "set_tokens", r, ids[r]);
    for (size_t r = 0; r < count && !status; r++) {
        if (ids[r] != PLAN_REST)
            status = plan_session_put_token(s, s->p->token_binding, r, &ids[r], 1);
        if (!status)
            status = set_word(s, tokens_slot(s->p, (uint32_t)r), ids[r] != PLAN_REST);
    }
    s->token_known = s->token_known || !status;
    return status;
}

plan_status plan_session_set_tokens(plan_session *s, const int64_t *ids, size_t count) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, set_tokens(s, ids, count));
}

plan_status plan_session_row_position(plan_session *s, int64_t row, int64_t *out) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    status = out ? find_row(s, row) : plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the position, found NULL");
    if (!status)
        *out = s->mirror[length_slot(s->p, (uint32_t)row)];
    return plan_session_leave(s, status);
}

static plan_status rewind_row(plan_session *s, int64_t row, int64_t position) {
    plan_status status = find_row(s, row);
    if (status)
        return status;
    uint32_t slot = length_slot(s->p, (uint32_t)row);
    if (position < 0 || position > s->mirror[slot])
        return plan_fail(PLAN_ERROR_RANGE, "rewind of row %" PRId64 ": expected 0 to %" PRId64 ", which is its position; found %" PRId64,
                         row, s->mirror[slot], position);
    return set_word(s, slot, position);
}

plan_status plan_session_rewind_row(plan_session *s, int64_t row, int64_t position) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, rewind_row(s, row, position));
}

plan_status plan_session_row_fed(const plan_session *s, int64_t row) {
    plan_status status = find_row(s, row);
    if (!status && !s->row_fed[row])
        status = plan_fail(PLAN_ERROR_STATE, "logits: row %" PRId64 " was not fed in the last step", row);
    return status;
}
