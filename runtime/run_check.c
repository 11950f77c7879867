/* run_check.c - plan-run --check-capture: one session is replayed, another runs the same launches eagerly; logits, every
 * byte of state and the sampled token must be the same. Before that: warming and capturing change no byte of any state. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FEED_LIMIT 1024 /* longer contexts are reached by setting the position: any content does for a comparison */

typedef struct pair {
    const run_options *o;
    plan *p;
    plan_session *captured, *eager, *other;
    float *logits[2];
    size_t columns;
    unsigned char *state[2];
    char what[200]; /* the first difference */
    bool differs;
    uint32_t seed;
    size_t bytes;      /* of all states */
    uint64_t checksum; /* of their bytes, before warming and after capturing */
} pair;

static int64_t next_id(pair *c) {
    c->seed = c->seed * 1664525u + 1013904223u;
    int64_t limit = c->columns && c->columns < 256 ? (int64_t)c->columns : 256;
    return (int64_t)(c->seed >> 8) % limit;
}

static plan_status compare_states(pair *c, const char *where) {
    for (int i = 0; i < plan_state_count(c->p); i++) {
        plan_tensor t;
        plan_status status = plan_state(c->p, i, &t);
        if (!status)
            status = plan_session_read_state(c->captured, t.name, c->state[0], t.bytes);
        if (!status)
            status = plan_session_read_state(c->eager, t.name, c->state[1], t.bytes);
        if (status)
            return status;
        for (size_t k = 0; k < t.bytes && !c->differs; k++)
            if (c->state[0][k] != c->state[1][k]) {
                snprintf(c->what, sizeof c->what, "%s: state '%.100s' differs at byte %zu", where, t.name, k);
                c->differs = true;
            }
    }
    return PLAN_OK;
}

static plan_status compare(pair *c, const char *where) {
    plan_status status = PLAN_OK;
    int64_t token[2] = {0, 0}, position[2];
    if (c->differs)
        return PLAN_OK;
    if (c->columns) {
        status = plan_session_logits(c->captured, c->logits[0], c->columns);
        if (!status)
            status = plan_session_logits(c->eager, c->logits[1], c->columns);
        for (size_t i = 0; i < c->columns && !status && !c->differs; i++)
            if (memcmp(&c->logits[0][i], &c->logits[1][i], sizeof(float)) != 0) {
                snprintf(c->what, sizeof c->what, "%s: logit %zu is %.9g captured and %.9g eager", where, i,
                         (double)c->logits[0][i], (double)c->logits[1][i]);
                c->differs = true;
            }
    }
    if (!status && plan_has_sampling(c->p)) {
        status = plan_session_tokens(c->captured, &token[0], 1);
        if (!status)
            status = plan_session_tokens(c->eager, &token[1], 1);
    }
    if (!status)
        status = plan_session_position(c->captured, &position[0]);
    if (!status)
        status = plan_session_position(c->eager, &position[1]);
    if (!status && !c->differs && (token[0] != token[1] || position[0] != position[1])) {
        snprintf(c->what, sizeof c->what, "%s: token %" PRId64 " and position %" PRId64 " captured, %" PRId64 " and %" PRId64 " eager",
                 where, token[0], position[0], token[1], position[1]);
        c->differs = true;
    }
    return status ? status : compare_states(c, where);
}

static void progress(const char *text, int64_t at) {
    if (isatty(2))
        fprintf(stderr, "\r%s %" PRId64 "\033[K", text, at);
}

/* COUNT further tokens, at most FEED_LIMIT, into both. */
static plan_status feed(pair *c, int64_t count) {
    int64_t ids[FEED_LIMIT];
    if (count == 0)
        return PLAN_OK;
    for (int64_t i = 0; i < count; i++)
        ids[i] = next_id(c);
    plan_status status = plan_session_prefill(c->captured, ids, (size_t)count);
    if (!status)
        status = plan_session_prefill(c->eager, ids, (size_t)count);
    progress("fed", count);
    return status;
}

/* One decode step of both, fed with the same token. */
static plan_status step(pair *c, const char *where) {
    int64_t id = next_id(c);
    plan_status status = plan_session_set_token(c->captured, id);
    if (!status)
        status = plan_session_set_token(c->eager, id);
    if (!status)
        status = plan_session_replay(c->captured, 1);
    if (!status)
        status = plan_session_eager(c->eager, 1);
    return status ? status : compare(c, where);
}

static plan_status rewind_both(pair *c, int64_t position) {
    plan_status status = plan_session_rewind(c->captured, position);
    return status ? status : plan_session_rewind(c->eager, position);
}

/* Brings both to POSITION, which is not before the present one. */
static plan_status go_to(pair *c, int64_t position) {
    int64_t present;
    plan_status status = plan_session_position(c->captured, &present);
    if (status || position <= present)
        return status;
    if (position - present <= FEED_LIMIT)
        return feed(c, position - present);
    status = plan_session_set_position(c->captured, position);
    return status ? status : plan_session_set_position(c->eager, position);
}

/* Steps at ascending lengths; those that exist are added to LIST. */
static plan_status check_lengths(pair *c, int64_t capacity, char *list, size_t size) {
    const int64_t lengths[] = {1, 2, capacity / 2 - 1, capacity - 1};
    int64_t before = 0;
    plan_status status = PLAN_OK;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && !status; i++) {
        char where[64];
        if (lengths[i] <= before || lengths[i] >= capacity)
            continue;
        snprintf(where, sizeof where, "at length %" PRId64, lengths[i]);
        status = go_to(c, lengths[i]);
        if (!status)
            status = step(c, where);
        before = lengths[i];
        size_t used = strlen(list);
        snprintf(list + used, size - used, " %" PRId64, lengths[i]);
    }
    return status;
}

/* A third session runs between the steps of the pair. */
static plan_status check_interleaved(pair *c, int64_t room) {
    plan_status status = PLAN_OK;
    int64_t ids[4];
    for (size_t i = 0; i < 4; i++)
        ids[i] = next_id(c);
    int64_t rounds = room < 4 ? room : 4;
    for (int64_t i = 0; i < rounds && !status; i++) {
        status = plan_session_rewind(c->other, 0);
        if (!status)
            status = plan_session_prefill(c->other, ids, rounds < 4 ? 1 : 4);
        if (!status)
            status = step(c, "with a second session in between");
    }
    return status;
}

/* Tokens of a prompt that takes a step of the longest prefill signature, and one of a shorter. */
static int64_t long_prompt(const plan *p, int64_t capacity) {
    int64_t most = plan_prefill_limit(p) + 40;
    most = most < FEED_LIMIT ? most : FEED_LIMIT;
    return most < capacity / 3 ? most : capacity / 3;
}

static plan_status check_all(pair *c, char *report, size_t size) {
    char lengths[128] = "";
    int64_t capacity = plan_capacity(c->p), limit = capacity ? capacity : 128;
    int64_t back = limit > 24 ? 17 : limit / 3, unrelated = long_prompt(c->p, limit);
    plan_status status = check_lengths(c, limit, lengths, sizeof lengths);
    if (!status && rewind_both(c, back)) { /* state that does not grow: from the start again */
        status = rewind_both(c, 0);
        if (!status)
            status = feed(c, back > 0 ? back : 1);
    }
    if (!status)
        status = step(c, "after a rewind");
    if (!status)
        status = feed(c, unrelated);
    if (!status)
        status = compare(c, "after a prefill");
    if (!status)
        status = step(c, "after a prefill");
    if (!status)
        status = check_interleaved(c, limit - back - unrelated - 2);
    snprintf(report, size, "at lengths%s, after a rewind to %" PRId64 ", after a prefill of %" PRId64
             ", with a second session in between", lengths, back, unrelated);
    return status;
}

/* ---- warming and capturing */

/* All states take bytes that no step would leave there, or zeros. */
static plan_status fill_states(pair *c, bool zeros) {
    plan_status status = PLAN_OK;
    plan_tensor t;
    for (int i = 0; i < plan_state_count(c->p) && !status; i++) {
        status = plan_state(c->p, i, &t);
        for (size_t k = 0; k < t.bytes && !status; k++) {
            c->seed = c->seed * 1664525u + 1013904223u;
            c->state[0][k] = zeros ? 0 : (unsigned char)(c->seed >> 24);
        }
        if (!status)
            status = plan_session_write_state(c->captured, t.name, c->state[0], t.bytes);
    }
    return status;
}

/* FNV-1a over all states and the position. */
static plan_status sum_states(pair *c, uint64_t *sum) {
    plan_status status = PLAN_OK;
    plan_tensor t;
    int64_t position = 0;
    *sum = 14695981039346656037u;
    c->bytes = 0;
    for (int i = 0; i < plan_state_count(c->p) && !status; i++) {
        status = plan_state(c->p, i, &t);
        if (!status)
            status = plan_session_read_state(c->captured, t.name, c->state[0], t.bytes);
        for (size_t k = 0; k < t.bytes && !status; k++)
            *sum = (*sum ^ c->state[0][k]) * 1099511628211u;
        c->bytes += t.bytes;
    }
    if (!status)
        status = plan_session_position(c->captured, &position);
    *sum = (*sum ^ (uint64_t)position) * 1099511628211u;
    return status;
}

static plan_status expect_sum(pair *c, const char *after) {
    uint64_t sum;
    plan_status status = sum_states(c, &sum);
    if (!status && sum != c->checksum && !c->differs) {
        snprintf(c->what, sizeof c->what, "%s: the states' checksum is %016" PRIx64 ", and was %016" PRIx64, after, sum, c->checksum);
        c->differs = true;
    }
    return status;
}

/* The session that will be captured is filled first, so that a write of any value would show. */
static plan_status capture_filled(pair *c) {
    plan_status status = plan_session_open(c->p, NULL, &c->captured);
    if (!status)
        status = fill_states(c, false);
    if (!status)
        status = sum_states(c, &c->checksum);
    if (!status)
        status = plan_session_warm(c->captured);
    if (!status)
        status = expect_sum(c, "after warming");
    if (!status)
        status = plan_session_capture(c->captured);
    if (!status)
        status = expect_sum(c, "after capturing");
    if (!status)
        status = plan_session_recapture(c->captured);
    if (!status)
        status = expect_sum(c, "after capturing again");
    return status ? status : fill_states(c, true);
}

static bool open_pair(pair *c, const run_options *eager) {
    size_t largest = 1;
    plan_tensor t;
    c->columns = run_vocabulary(c->p, NULL);
    for (int i = 0; i < plan_state_count(c->p); i++)
        if (!plan_state(c->p, i, &t) && t.bytes > largest)
            largest = t.bytes;
    for (int i = 0; i < 2; i++) {
        c->logits[i] = run_allocate(c->columns, sizeof(float));
        c->state[i] = run_allocate(largest, 1);
    }
    if (capture_filled(c)) {
        run_failed(c->o);
        return false;
    }
    c->eager = run_open(eager, c->p);
    c->other = c->eager ? run_open(c->o, c->p) : NULL;
    return c->other != NULL;
}

int run_check_capture(const run_options *o, plan *p) {
    char report[400] = "";
    run_options eager = *o;
    pair c;
    memset(&c, 0, sizeof c);
    c.o = o;
    c.p = p;
    c.seed = 20261129u;
    eager.eager = true;
    int result = 1;
    if (open_pair(&c, &eager)) {
        plan_status status = check_all(&c, report, sizeof report);
        if (isatty(2))
            fprintf(stderr, "\r\033[K");
        if (status)
            run_failed(o);
        else if (c.differs)
            run_message("%s: decode: captured differs from eager %s", o->path, c.what);
        else {
            printf("decode: captured = eager, byte for byte, %s", report);
            if (c.bytes)
                printf("; warming and capturing changed none of %zu state bytes (checksum %016" PRIx64 ")", c.bytes, c.checksum);
            putchar('\n');
            result = 0;
        }
    }
    if (plan_session_close(c.captured) || plan_session_close(c.eager) || plan_session_close(c.other))
        result = run_failed(o);
    for (int i = 0; i < 2; i++) {
        free(c.logits[i]);
        free(c.state[i]);
    }
    return result;
}
