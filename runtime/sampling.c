/* sampling.c - the sampling tail from outside: its parameters and its stop tokens, words of the extents table that kernels read.
 *
 * The tail also writes a word behind the token ring: twice the count of tokens, plus one when the last was a stop token. It lies
 * in pinned memory, so that after a wait the host knows without a copy. */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

#define LOG2_E 1.4426950408889634
#define FRACTION 4294967296.0 /* units of a share: 2^-32 */

static uint32_t slot_of(const plan_session *s, enum plan_sampler_word word) { return s->p->view.model->sampler + (uint32_t)word; }

static plan_status no_tail(const char *what, const char *tails) {
    return plan_fail(PLAN_ERROR_STATE, "%s: the plan has no sampling tail for it; compile with gcc-plan --sample %s", what, tails);
}

bool plan_session_is_stopped(const plan_session *s) { return s->stop_count && (s->ring[PLAN_RING_TOKENS] & 1) != 0; }

plan_status plan_session_clear_stop(plan_session *s) {
    const int64_t off = 0;
    if (!s->stop_count)
        return PLAN_OK;
    plan_status status = plan_session_finish(s);
    if (status || !plan_session_is_stopped(s))
        return status;
    status = plan_session_write_slots(s, slot_of(s, PLAN_SAMPLER_STOPPED), &off, 1);
    if (!status)
        s->ring[PLAN_RING_TOKENS] &= ~INT64_C(1);
    return status;
}

plan_status plan_session_restore_sampler(plan_session *s) {
    int64_t words[PLAN_SAMPLER_WORDS];
    if (!s->p->view.model->sampler)
        return PLAN_OK;
    memcpy(words, s->mirror + s->p->view.model->sampler, sizeof words);
    words[PLAN_SAMPLER_STOPPED] = 0;
    words[PLAN_SAMPLER_BASE] = (int64_t)s->sampled;
    return plan_session_write_slots(s, s->p->view.model->sampler, words, PLAN_SAMPLER_WORDS);
}

static int64_t float_bits(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static plan_status check_number(const char *name, double value, double low, double high) {
    if (value >= low && value <= high) /* false for a NaN */
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_RANGE, "sampling: %s: expected %g to %g, found %g", name, low, high, value);
}

static plan_status check_sampling(const plan_session *s, const plan_sampling *g) {
    const uint32_t tail = s->p->view.model->sampling;
    plan_status status = g->temperature == 0 ? PLAN_OK : check_number("temperature (or 0)", g->temperature, 0.001, 1000);
    if (!status)
        status = check_number("top_k", (double)g->top_k, 0, 1024);
    if (!status)
        status = check_number("top_p", g->top_p, 1e-9, 1);
    if (!status)
        status = check_number("min_p", g->min_p, 0, 1);
    if (!status)
        status = check_number("repetition_penalty", g->repetition_penalty, 0.001, 1000);
    if (status)
        return status;
    if (tail == 0 || (tail == 1 && (g->temperature != 0 || g->repetition_penalty != 1)))
        return no_tail("sampling", "draw");
    if (g->repetition_penalty != 1 && s->p->view.model->capacity == 0)
        return plan_fail(PLAN_ERROR_STATE, "sampling: repetition_penalty: the plan has no growing state, so it keeps no tokens; "
                         "expected 1, found %g", g->repetition_penalty);
    return PLAN_OK;
}

static plan_status set_sampling(plan_session *s, const plan_sampling *given) {
    plan_sampling g = PLAN_SAMPLING_INIT;
    if (!given)
        return plan_fail(PLAN_ERROR_ARGUMENT, "sampling: expected parameters, found NULL");
    if (given->size < sizeof given->size || given->size > 65536)
        return plan_fail(PLAN_ERROR_ARGUMENT, "sampling: size is %zu; start from PLAN_SAMPLING_INIT", given->size);
    memcpy(&g, given, given->size < sizeof g ? given->size : sizeof g);
    plan_status status = check_sampling(s, &g);
    if (status || s->p->view.model->sampling != 2)
        return status;
    const bool draws = g.temperature > 0;
    const int64_t words[] = {
        draws ? float_bits(LOG2_E / g.temperature) : 0,
        draws ? g.top_k : 0,
        draws ? (int64_t)((1 - g.top_p) * FRACTION) : 0,
        draws ? (int64_t)(g.min_p * FRACTION) : 0,
        g.repetition_penalty == 1 ? 0 : float_bits(g.repetition_penalty),
        (int64_t)g.seed,
        (int64_t)s->sampled,
    };
    static_assert(sizeof words / sizeof *words == PLAN_SAMPLER_WORDS - PLAN_SAMPLER_SCALE, "words from SCALE on");
    return plan_session_write_slots(s, slot_of(s, PLAN_SAMPLER_SCALE), words, PLAN_SAMPLER_WORDS - PLAN_SAMPLER_SCALE);
}

plan_status plan_session_set_sampling(plan_session *s, const plan_sampling *sampling) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, set_sampling(s, sampling));
}

static plan_status set_stop(plan_session *s, const int64_t *ids, size_t count) {
    int64_t words[PLAN_SAMPLER_SCALE] = {0};
    if (!ids && count)
        return plan_fail(PLAN_ERROR_ARGUMENT, "stop: expected %zu tokens, found NULL", count);
    if (count > PLAN_SAMPLER_STOP_LIMIT)
        return plan_fail(PLAN_ERROR_RANGE, "stop: expected at most %d tokens, found %zu", PLAN_SAMPLER_STOP_LIMIT, count);
    if (!s->p->view.model->sampler)
        return no_tail("stop", "greedy or draw");
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0)
            return plan_fail(PLAN_ERROR_RANGE, "stop: token %zu: expected 0 or more, found %" PRId64, i, ids[i]);
        words[PLAN_SAMPLER_STOP_IDS + i] = ids[i];
    }
    words[PLAN_SAMPLER_STOP_COUNT] = (int64_t)count;
    plan_status status = plan_session_clear_stop(s);
    if (!status)
        status = plan_session_write_slots(s, s->p->view.model->sampler, words, PLAN_SAMPLER_SCALE);
    if (!status)
        s->stop_count = (uint32_t)count;
    return status;
}

plan_status plan_session_set_stop(plan_session *s, const int64_t *ids, size_t count) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, set_stop(s, ids, count));
}

static plan_status stopped(plan_session *s, int *out) {
    if (!out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the answer, found NULL");
    plan_status status = plan_session_finish(s);
    if (!status)
        *out = plan_session_is_stopped(s);
    return status;
}

plan_status plan_session_stopped(plan_session *s, int *out) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, stopped(s, out));
}
