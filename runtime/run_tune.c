/* run_tune.c - plan-run --tune: which value of each choice makes the decode step fastest. The plan has a captured step for each,
 * "decode#KEY=VALUE", with all the model's weights, so that nothing stays in a cache that would not in use. They are timed in
 * turns, so that a drift of the clock hits all. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, STEPS = 10 /* between two waits */ };

typedef struct trial {
    const char *signature, *value; /* VALUE points into SIGNATURE */
    size_t key;                    /* characters of "decode#KEY" */
    double times[ROUNDS], median;  /* microseconds a step */
} trial;

static size_t find_trials(plan *p, trial *out) {
    size_t count = 0;
    for (int i = 0; i < plan_signature_count(p); i++) {
        const char *name = plan_signature_name(p, i), *equals = strrchr(name, '=');
        if (strncmp(name, "decode#", 7) != 0 || !equals)
            continue;
        out[count++] = (trial){.signature = name, .value = equals + 1, .key = (size_t)(equals - name)};
    }
    return count;
}

/* Puts the session at CONTEXT, with room for a round. */
static plan_status place(const run_options *o, plan *p, plan_session *s, int64_t context) {
    int64_t position, capacity = plan_capacity(p);
    if (plan_session_rewind(s, context) == PLAN_OK)
        return PLAN_OK;
    plan_status status = plan_session_position(s, &position);
    if (status || capacity == 0 || position + STEPS <= capacity)
        return status;
    status = plan_session_rewind(s, 0);
    return status ? status : run_reach(o, p, s, context);
}

static plan_status time_round(const run_options *o, plan *p, plan_session *s, int64_t context, trial *t, int round) {
    plan_status status = place(o, p, s, context);
    if (!status)
        status = plan_session_run(s, t->signature, NULL, NULL, 0); /* caches as the others leave them */
    if (!status)
        status = plan_session_wait(s);
    double start = run_seconds();
    for (int i = 1; i < STEPS && !status; i++)
        status = plan_session_run(s, t->signature, NULL, NULL, 0);
    if (!status)
        status = plan_session_wait(s);
    t->times[round] = (run_seconds() - start) * 1e6 / (STEPS - 1);
    return status;
}

static plan_status time_all(const run_options *o, plan *p, plan_session *s, int64_t context, trial *trials, size_t count) {
    plan_status status = run_reach(o, p, s, context);
    for (int round = 0; round < ROUNDS && !status; round++)
        for (size_t i = 0; i < count && !status; i++)
            status = time_round(o, p, s, context, &trials[i], round);
    for (size_t i = 0; i < count; i++) {
        qsort(trials[i].times, ROUNDS, sizeof(double), run_compare);
        trials[i].median = trials[i].times[ROUNDS / 2];
    }
    return status;
}

static bool same_key(const trial *a, const trial *b) { return a->key == b->key && memcmp(a->signature, b->signature, a->key) == 0; }

/* A line for each key: the fastest value, then all that were tried. Values of a key follow each other. */
static void write_lines(FILE *f, const trial *trials, size_t count) {
    for (size_t i = 0, end; i < count; i = end) {
        const trial *best = &trials[i];
        for (end = i; end < count && same_key(&trials[i], &trials[end]); end++)
            if (trials[end].median < best->median)
                best = &trials[end];
        fprintf(f, "%.*s %s #", (int)best->key - 7, best->signature + 7, best->value);
        for (size_t k = i; k < end; k++)
            fprintf(f, " %s: %.5g us", trials[k].value, trials[k].median);
        fputc('\n', f);
    }
}

static int write_file(const run_options *o, const plan *p, int64_t context, const trial *trials, size_t count) {
    FILE *f = fopen(o->tune, "w");
    if (!f)
        return run_message("%s: %s", o->tune, strerror(errno));
    fprintf(f, "# plan-run --tune on %s, context %" PRId64 ": us of a whole decode step with each value\n", plan_target(p), context);
    write_lines(f, trials, count);
    bool bad = ferror(f) != 0;
    bad |= fclose(f) != 0;
    if (bad)
        return run_message("%s: %s", o->tune, strerror(errno));
    write_lines(stdout, trials, count);
    return 0;
}

int run_tune(const run_options *o, plan *p) {
    const int64_t capacity = plan_capacity(p), context = o->context >= 0 ? o->context : capacity / 2 < 512 ? capacity / 2 : 512;
    int result = 1;
    if (capacity && context + STEPS > capacity)
        return run_message("%s: --context: expected at most the capacity of %" PRId64 " less %d steps, found %" PRId64, o->path, capacity, STEPS, context);
    trial *trials = run_allocate((size_t)plan_signature_count(p), sizeof *trials);
    const size_t count = find_trials(p, trials);
    plan_session *s = NULL;
    if (count == 0)
        run_message("%s: it has no choices to time; compile with gcc-plan --tune-candidates", o->path);
    else if ((s = run_open(o, p)) != NULL)
        result = time_all(o, p, s, context, trials, count) ? run_failed(o) : write_file(o, p, context, trials, count);
    if (plan_session_close(s))
        result = run_failed(o);
    free(trials);
    return result;
}
