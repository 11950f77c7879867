/* run_endurance.c - plan-run --endurance: many steps, one by one. Whatever it takes of memory it must have taken before the first. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory {
    uint64_t device;      /* in use on the device, by anybody */
    uint64_t session;     /* of which the session has */
    uint64_t allocations; /* by the driver, ever */
    size_t host;          /* that the library has from its allocator */
} memory;

static plan_status look(plan *p, plan_session *s, memory *m) {
    plan_counters c;
    plan_status status = plan_session_wait(s);
    if (!status)
        status = plan_session_counters(s, &c);
    if (!status)
        status = plan_device_bytes(p, &m->device);
    if (status)
        return status;
    m->session = c.device_bytes;
    m->allocations = c.driver_allocations;
    m->host = run_measured.held;
    return PLAN_OK;
}

/* Back to the start when the state is full; by a new prompt where it cannot be rewound. */
static plan_status make_room(const run_options *o, plan *p, plan_session *s, int64_t context, int *rewinds) {
    int64_t position;
    plan_status status = plan_session_position(s, &position);
    if (status || !plan_capacity(p) || position < plan_capacity(p))
        return status;
    ++*rewinds;
    if (plan_session_rewind(s, context) == PLAN_OK)
        return PLAN_OK;
    status = plan_session_rewind(s, 0);
    return status ? status : run_reach(o, p, s, context);
}

static plan_status run_steps(const run_options *o, plan *p, plan_session *s, int64_t context, double *times, int *rewinds) {
    double unused;
    plan_status status = run_reach(o, p, s, context);
    (void)plan_session_time(s, 1, &unused); /* from here on replays are timed */
    for (int64_t i = 0; i < o->endurance && !status; i++) {
        status = make_room(o, p, s, context, rewinds);
        if (!status && !plan_has_sampling(p))
            status = plan_session_set_token(s, 10);
        if (!status)
            status = plan_session_replay(s, 1);
        if (!status)
            status = plan_session_time(s, 1, &times[i]);
    }
    return status;
}

static void print(const run_options *o, const double *times, int rewinds, const memory *a, const memory *b) {
    const double median = times[o->endurance / 2], p99 = times[(o->endurance * 99 + 99) / 100 - 1];
    printf(o->json ? "{\"steps\": %" PRId64 ", \"rewinds\": %d, \"median_us\": %.4g, \"p99_us\": %.4g, \"ratio\": %.4g, \"device_before\": %" PRIu64
                     ", \"device_after\": %" PRIu64 ", \"allocations\": %" PRIu64 ", \"host_before\": %zu, \"host_after\": %zu}\n"
                   : "%" PRId64 " steps, %d times back to the start: median %.4g us  p99 %.4g us (%.3g times the median)\n"
                     "memory before and after: device %" PRIu64 " and %" PRIu64 " bytes, %" PRIu64 " allocations between; host %zu and %zu bytes\n",
           o->endurance, rewinds, median, p99, p99 / median, a->device, b->device, b->allocations - a->allocations, a->host, b->host);
}

int run_endurance(const run_options *o, plan *p) {
    const int64_t capacity = plan_capacity(p), context = o->context >= 0 ? o->context : capacity / 2 < 512 ? capacity / 2 : 512;
    memory before, after;
    int rewinds = 0, result = 1;
    if (capacity && context >= capacity)
        return run_message("%s: --context: expected below the capacity of %" PRId64 ", found %" PRId64, o->path, capacity, context);
    plan_session *s = run_open(o, p);
    if (!s)
        return 1;
    double *times = run_allocate((size_t)o->endurance, sizeof *times);
    if (look(p, s, &before) || run_steps(o, p, s, context, times, &rewinds) || look(p, s, &after))
        run_failed(o);
    else {
        qsort(times, (size_t)o->endurance, sizeof *times, run_compare);
        print(o, times, rewinds, &before, &after);
        result = memcmp(&before, &after, sizeof before) != 0;
        if (result)
            run_message("%s: the memory changed during the steps", o->path);
    }
    if (plan_session_close(s))
        result = run_failed(o);
    free(times);
    return result;
}
