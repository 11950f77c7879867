/* run_profile.c - plan-run --bench --profile: the launches of a decode step, each timed by itself, summed by kernel. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 50 };

typedef struct row {
    const char *kernel, *label; /* label of its first launch */
    size_t count;
    double microseconds;        /* of all its launches */
    double bytes;
} row;

static int slower_first(const void *a, const void *b) {
    const row *x = a, *y = b;
    return (x->microseconds < y->microseconds) - (x->microseconds > y->microseconds);
}

static row *find_row(row *rows, size_t *count, const char *kernel) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp(rows[i].kernel, kernel) == 0)
            return &rows[i];
    row *fresh = &rows[(*count)++];
    memset(fresh, 0, sizeof *fresh);
    fresh->kernel = kernel;
    return fresh;
}

static void print_rows(row *rows, size_t count, size_t launches) {
    double total = 0;
    qsort(rows, count, sizeof *rows, slower_first);
    for (size_t i = 0; i < count; i++)
        total += rows[i].microseconds;
    printf("%zu launches, %.4g us when each is timed by itself (%d times in a row)\n", launches, total, REPEATS);
    printf("%-20s %6s %9s %9s %6s %9s  %s\n", "kernel", "times", "us each", "us", "share", "GB/s", "first");
    for (size_t i = 0; i < count; i++)
        printf("%-20s %6zu %9.3f %9.2f %5.1f%% %9.0f  %s\n", rows[i].kernel, rows[i].count, rows[i].microseconds / (double)rows[i].count,
               rows[i].microseconds, 100 * rows[i].microseconds / total, rows[i].bytes / rows[i].microseconds / 1e3, rows[i].label);
}

static void print_json(row *rows, size_t count) {
    qsort(rows, count, sizeof *rows, slower_first);
    printf("\"profile\": [");
    for (size_t i = 0; i < count; i++)
        printf("%s{\"kernel\": \"%s\", \"times\": %zu, \"us\": %.6g, \"bytes\": %.0f}", i ? ", " : "", rows[i].kernel, rows[i].count, rows[i].microseconds,
               rows[i].bytes);
    printf("]");
}

plan_status run_profile(const run_options *o, plan *p, plan_session *s) {
    uint64_t launches = 0, bytes;
    plan_status status = plan_step_cost(p, "decode", 0, 1, &launches, &bytes);
    if (status || launches == 0)
        return status;
    double *times = run_allocate((size_t)launches, sizeof *times);
    row *rows = run_allocate((size_t)launches, sizeof *rows);
    size_t count = 0;
    status = plan_session_profile(s, "decode", REPEATS, times, (size_t)launches);
    for (size_t i = 0; i < launches && !status; i++) {
        const char *kernel, *label;
        status = plan_launch_info(p, "decode", i, &kernel, &label, &bytes);
        if (status)
            break;
        row *r = find_row(rows, &count, kernel);
        if (r->count++ == 0)
            r->label = label;
        r->microseconds += times[i];
        r->bytes += (double)bytes;
    }
    if (!status && o->json)
        print_json(rows, count);
    else if (!status)
        print_rows(rows, count, (size_t)launches);
    free(times);
    free(rows);
    return status;
}
