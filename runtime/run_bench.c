/* run_bench.c - plan-run --bench: the time of a decode step at one position. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct measurement {
    double *times; /* microseconds a step, sorted */
    size_t count;
    double run;    /* microseconds a step of one long replay; 0: not measured */
    int64_t run_steps, context;
    double bandwidth;
    uint64_t launches, bytes, weights;
    run_stamps *stamps; /* NULL without --timers */
} measurement;

int run_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const measurement *m, double share) {
    size_t i = (size_t)(share * (double)(m->count - 1) + 0.5);
    return m->times[i < m->count ? i : m->count - 1];
}

void run_go_back(plan_session *s, int64_t context, bool *fixed) {
    if (*fixed && plan_session_rewind(s, context))
        *fixed = false;
}

plan_status run_reach(const run_options *o, plan *p, plan_session *s, int64_t context) {
    int64_t limit = plan_prefill_limit(p);
    size_t chunk = limit > 0 ? (size_t)limit : 1;
    plan_status status = PLAN_OK;
    run_ids prompt;
    if (run_prompt(o, &prompt))
        exit(1);
    if (context == 0)
        status = plan_session_set_token(s, prompt.ids[0]);
    int64_t *ids = run_allocate(chunk, sizeof *ids);
    for (int64_t at = 0; at < context && !status;) {
        size_t count = (int64_t)chunk < context - at ? chunk : (size_t)(context - at);
        for (size_t i = 0; i < count; i++)
            ids[i] = prompt.ids[((size_t)at + i) % prompt.count];
        status = plan_session_prefill(s, ids, count);
        at += (int64_t)count;
    }
    if (!status && !plan_has_sampling(p))
        status = plan_session_set_token(s, prompt.ids[0]);
    free(ids);
    free(prompt.ids);
    return status;
}

static plan_status time_steps(const run_options *o, plan *p, plan_session *s, measurement *m) {
    bool fixed = true;
    plan_status status = run_reach(o, p, s, m->context);
    double unused;
    if (!status)
        (void)plan_session_time(s, 1, &unused); /* from here on replays are timed */
    int64_t capacity = plan_capacity(p);
    for (int64_t i = 0; i < o->warmup + o->iterations && !status; i++) {
        if (!fixed && capacity && m->context + i >= capacity)
            break;
        status = plan_session_replay(s, 1);
        if (!status && i >= o->warmup)
            status = plan_session_time(s, 1, &m->times[m->count++]);
        if (!status)
            status = plan_session_wait(s);
        if (!status)
            run_go_back(s, m->context, &fixed);
        if (!status && !plan_has_sampling(p))
            status = plan_session_set_token(s, 10);
    }
    return status;
}

/* Many steps without the host: what a user of the tail sees. */
static plan_status time_run(const run_options *o, plan *p, plan_session *s, measurement *m) {
    int64_t position, capacity = plan_capacity(p), steps = o->iterations;
    plan_status status = plan_session_position(s, &position);
    if (status || !plan_has_sampling(p))
        return status;
    if (capacity && steps > capacity - position)
        steps = capacity - position;
    if (steps < 1)
        return PLAN_OK;
    double start = run_seconds();
    status = plan_session_replay(s, steps);
    if (!status)
        status = plan_session_wait(s);
    m->run = (run_seconds() - start) * 1e6 / (double)steps;
    m->run_steps = steps;
    return status;
}

static void print_json(const plan *p, const measurement *m) {
    printf("{\"target\": \"%s\", \"context\": %" PRId64 ", \"iterations\": %zu, \"median_us\": %.4g, \"p10_us\": %.4g, "
           "\"p90_us\": %.4g, \"p99_us\": %.4g, \"tokens_per_second\": %.6g, \"launches\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"bandwidth\": %.6g, \"share\": %.4g, \"run_steps\": %" PRId64 ", \"run_us\": %.4g, \"weights\": %" PRIu64
           ", \"load_s\": %.4g, \"warm_ms\": %.4g, \"capture_ms\": %.4g",
           plan_target(p), m->context, m->count, percentile(m, 0.5), percentile(m, 0.1), percentile(m, 0.9), percentile(m, 0.99),
           1e6 / percentile(m, 0.5), m->launches, m->bytes, m->bandwidth,
           (double)m->bytes / (percentile(m, 0.5) * 1e-6) / m->bandwidth, m->run_steps, m->run, m->weights,
           run_measured.load, run_measured.warm * 1e3, run_measured.capture * 1e3);
}

static void print_bytes(double bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    printf("%.3g %s", bytes, units[unit]);
}

static void print_text(const plan *p, const measurement *m) {
    double median = percentile(m, 0.5);
    printf("target %s   copy bandwidth here ", plan_target(p));
    print_bytes(m->bandwidth);
    printf("/s   context %" PRId64 "   %zu steps\n", m->context, m->count);
    printf("median %.4g us  p10 %.4g  p90 %.4g  p99 %.4g   %.4g tok/s   bytes a token ", median, percentile(m, 0.1),
           percentile(m, 0.9), percentile(m, 0.99), 1e6 / median);
    print_bytes((double)m->bytes);
    printf("   %.3g %% of bandwidth   %" PRIu64 " launches\n", 100 * (double)m->bytes / (median * 1e-6) / m->bandwidth, m->launches);
    printf("load %.3g s (weights ", run_measured.load);
    print_bytes((double)m->weights);
    printf(", %.3g GB/s)   warm %.3g ms   capture %.3g ms\n", (double)m->weights / run_measured.load * 1e-9, run_measured.warm * 1e3,
           run_measured.capture * 1e3);
    if (m->run > 0)
        printf("%" PRId64 " steps in one replay: %.4g us a token (%.4g tok/s)\n", m->run_steps, m->run, 1e6 / m->run);
}

static plan_status print(const run_options *o, plan *p, plan_session *s, const measurement *m) {
    if (!o->json)
        print_text(p, m);
    else
        print_json(p, m);
    if (o->json && m->stamps)
        printf(", ");
    plan_status status = m->stamps ? run_print_stamps(o, p, m->stamps) : PLAN_OK;
    if (o->json && o->profile)
        printf(", ");
    if (!status && o->profile)
        status = run_profile(o, p, s);
    if (o->json)
        printf("}\n");
    return status;
}

int run_bench(const run_options *o, plan *p) {
    measurement m;
    int result = 1;
    int64_t capacity = plan_capacity(p);
    size_t blocks;
    memset(&m, 0, sizeof m);
    m.context = o->context >= 0 ? o->context : capacity / 2 < 512 ? capacity / 2 : 512;
    if (capacity && m.context >= capacity)
        return run_message("%s: --context: expected below the capacity of %" PRId64 ", found %" PRId64, o->path, capacity, m.context);
    plan_session *s = run_open(o, p);
    if (!s)
        return 1;
    m.times = run_allocate((size_t)o->iterations, sizeof *m.times);
    if (plan_measure_bandwidth(p, &m.bandwidth) || plan_weight_bytes(p, &m.weights) || plan_step_cost(p, "decode", m.context, 1, &m.launches, &m.bytes) ||
        (o->timers && plan_session_stamps(s, "decode", 0, NULL, 0, &blocks)) || time_steps(o, p, s, &m) || time_run(o, p, s, &m) ||
        (o->timers && m.count && run_take_stamps(o, p, s, m.context, &m.stamps)))
        run_failed(o);
    else if (m.count == 0)
        run_message("%s: no step fits between --context %" PRId64 " and the capacity of %" PRId64 " after the warm-up", o->path,
                    m.context, capacity);
    else {
        qsort(m.times, m.count, sizeof *m.times, run_compare);
        result = print(o, p, s, &m) ? run_failed(o) : 0;
    }
    if (plan_session_close(s))
        result = run_failed(o);
    free(m.times);
    run_free_stamps(m.stamps);
    return result;
}
