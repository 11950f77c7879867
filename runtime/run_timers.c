/* run_timers.c - plan-run --bench --timers: where the time of a decode step goes inside the step, by kernel, from what the blocks of a plan made with
 * gcc-plan --timers stamp.
 *
 * Launches are put in the order in which their waits for those before end. A launch's phase is from there to where the next one's is, so the phases
 * of a step add up to it, whatever overlaps; the last one's ends with the step. Blocks without work end without a wait, and count for nothing but the
 * end of their launch. */
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 50 };

/* Of one launch in one step: microseconds, those of ends from the launch's wait on; then numbers. */
enum figure { PHASE, LEAD, FIRST, MEDIAN, LAST, EDGE, BLOCKS, PROCESSORS, MOST, FIGURES };
static const char *const names[FIGURES] = {"phase_us", "lead_us", "first_us", "median_us", "last_us", "edge_us", "blocks", "processors", "most"};

struct run_stamps {
    size_t launches, room, count; /* of steps */
    size_t *blocks;               /* by launch */
    double *figures;              /* by figure, launch and step; NAN: the launch did not run */
    double *steps, *spans;        /* by step: from the first wait's end, or the first begin, to the last end */
    plan_stamp *stamps;           /* of one launch */
    double *sorted;               /* as many as the largest grid has blocks */
};

typedef struct instance { uint64_t begin, wait, end; size_t launch; } instance; /* of a launch in a step */
typedef struct row {
    const char *kernel, *label; /* label of its first launch */
    size_t count;
    double microseconds;        /* of all its launches */
    double figures[FIGURES];
} row;

static double *figure_of(const run_stamps *r, enum figure f, size_t launch, size_t step) {
    return &r->figures[((size_t)f * r->launches + launch) * r->room + step];
}

static double median_of(double *values, size_t count) {
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, run_compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double microseconds(uint64_t from, uint64_t to) { return to < from ? -(double)(from - to) * 1e-3 : (double)(to - from) * 1e-3; }

/* How many processors the blocks in `sorted` are on, and how many blocks the fullest of them has. */
static void count_processors(const run_stamps *r, size_t blocks, double *processors, double *most) {
    size_t run = 0, largest = 0;
    qsort(r->sorted, blocks, sizeof *r->sorted, run_compare);
    *processors = 0;
    for (size_t i = 0; i < blocks; i++) {
        run = i && r->sorted[i] == r->sorted[i - 1] ? run + 1 : 1;
        *processors += run == 1;
        largest = run > largest ? run : largest;
    }
    *most = (double)largest;
}

/* All figures of a launch that need no other launch; false when no block of it had work. */
static bool take_launch(run_stamps *r, size_t launch, instance *out) {
    size_t working = 0;
    *out = (instance){UINT64_MAX, UINT64_MAX, 0, launch};
    for (size_t b = 0; b < r->blocks[launch]; b++) {
        const plan_stamp *t = &r->stamps[b];
        out->end = t->end > out->end ? t->end : out->end;
        out->begin = t->begin < out->begin ? t->begin : out->begin;
        if (!t->waited)
            continue;
        out->wait = t->waited < out->wait ? t->waited : out->wait;
        r->stamps[working++] = *t;
    }
    if (working == 0)
        return false;
    for (size_t b = 0; b < working; b++)
        r->sorted[b] = microseconds(r->stamps[b].begin, out->wait);
    *figure_of(r, LEAD, launch, r->count) = median_of(r->sorted, working);
    for (size_t b = 0; b < working; b++)
        r->sorted[b] = microseconds(out->wait, r->stamps[b].end);
    *figure_of(r, MEDIAN, launch, r->count) = median_of(r->sorted, working);
    *figure_of(r, FIRST, launch, r->count) = r->sorted[0];
    *figure_of(r, LAST, launch, r->count) = microseconds(out->wait, out->end);
    *figure_of(r, BLOCKS, launch, r->count) = (double)working;
    for (size_t b = 0; b < working; b++)
        r->sorted[b] = (double)r->stamps[b].processor;
    count_processors(r, working, figure_of(r, PROCESSORS, launch, r->count), figure_of(r, MOST, launch, r->count));
    return true;
}

static int earlier_first(const void *a, const void *b) {
    const instance *x = a, *y = b;
    return x->wait != y->wait ? (x->wait > y->wait) - (x->wait < y->wait) : (x->launch > y->launch) - (x->launch < y->launch);
}

static void take_order(run_stamps *r, instance *all, size_t count) {
    uint64_t begin = UINT64_MAX, end = 0;
    qsort(all, count, sizeof *all, earlier_first);
    for (size_t i = 0; i < count; i++) {
        begin = all[i].begin < begin ? all[i].begin : begin;
        end = all[i].end > end ? all[i].end : end;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t next = i + 1 < count ? all[i + 1].wait : end;
        *figure_of(r, PHASE, all[i].launch, r->count) = microseconds(all[i].wait, next);
        *figure_of(r, EDGE, all[i].launch, r->count) = microseconds(all[i].end, next);
    }
    r->steps[r->count] = count ? microseconds(all[0].wait, end) : 0;
    r->spans[r->count] = count ? microseconds(begin, end) : 0;
}

static plan_status take_step(run_stamps *r, plan_session *s) {
    instance *all = run_allocate(r->launches, sizeof *all);
    plan_status status = PLAN_OK;
    size_t count = 0, blocks;
    for (size_t i = 0; i < r->launches && !status; i++) {
        for (int f = 0; f < FIGURES; f++)
            *figure_of(r, (enum figure)f, i, r->count) = NAN;
        status = plan_session_stamps(s, "decode", i, r->stamps, r->blocks[i], &blocks);
        count += !status && take_launch(r, i, &all[count]);
    }
    if (!status)
        take_order(r, all, count);
    r->count += !status;
    free(all);
    return status;
}

static plan_status open_stamps(const run_options *o, plan *p, plan_session *s, run_stamps *r) {
    uint64_t launches, bytes;
    plan_status status = plan_step_cost(p, "decode", 0, 1, &launches, &bytes);
    size_t most = 0;
    if (status)
        return status;
    r->launches = (size_t)launches;
    r->room = o->iterations < STEPS ? (size_t)o->iterations : STEPS;
    r->blocks = run_allocate(r->launches, sizeof *r->blocks);
    r->figures = run_allocate(r->launches * r->room, FIGURES * sizeof *r->figures);
    r->steps = run_allocate(r->room, sizeof *r->steps);
    r->spans = run_allocate(r->room, sizeof *r->spans);
    for (size_t i = 0; i < r->launches && !status; i++) {
        status = plan_session_stamps(s, "decode", i, NULL, 0, &r->blocks[i]);
        most = r->blocks[i] > most ? r->blocks[i] : most;
    }
    r->stamps = run_allocate(most, sizeof *r->stamps);
    r->sorted = run_allocate(most, sizeof *r->sorted);
    return status;
}

plan_status run_take_stamps(const run_options *o, plan *p, plan_session *s, int64_t context, run_stamps **out) {
    run_stamps *r = *out = run_allocate(1, sizeof *r);
    const int64_t capacity = plan_capacity(p);
    bool fixed = true;
    plan_status status = open_stamps(o, p, s, r);
    if (!status)
        status = plan_session_rewind(s, 0);
    if (!status)
        status = run_reach(o, p, s, context);
    for (int64_t i = 0; r->count < r->room && !status; i++) {
        if (!fixed && capacity && context + i >= capacity)
            break;
        status = plan_session_replay(s, 1);
        if (!status)
            status = take_step(r, s);
        if (!status)
            run_go_back(s, context, &fixed);
        if (i == 0 && r->room > 1 && (fixed || !capacity || context + 1 < capacity)) /* the first one warms the caches */
            r->count = 0;
        if (!status && !plan_has_sampling(p))
            status = plan_session_set_token(s, 10);
    }
    return status;
}

void run_free_stamps(run_stamps *r) {
    if (!r)
        return;
    free(r->blocks);
    free(r->figures);
    free(r->steps);
    free(r->spans);
    free(r->stamps);
    free(r->sorted);
    free(r);
}

/* ---- by kernel */

static int slower_first(const void *a, const void *b) {
    const row *x = a, *y = b;
    return (x->microseconds < y->microseconds) - (x->microseconds > y->microseconds);
}

/* One figure of a launch in all steps in which it ran, into VALUES; how many. */
static size_t gather(const run_stamps *r, enum figure f, size_t launch, double *values) {
    size_t count = 0;
    for (size_t k = 0; k < r->count; k++)
        if (!isnan(*figure_of(r, f, launch, k)))
            values[count++] = *figure_of(r, f, launch, k);
    return count;
}

static plan_status make_rows(const plan *p, const run_stamps *r, row *rows, size_t *count) {
    double *values = run_allocate(r->launches * r->room, sizeof *values);
    size_t *owner = run_allocate(r->launches, sizeof *owner);
    plan_status status = PLAN_OK;
    for (size_t i = 0; i < r->launches && !status; i++) {
        const char *kernel, *label;
        uint64_t bytes;
        size_t at = 0, found = gather(r, PHASE, i, values);
        status = plan_launch_info(p, "decode", i, &kernel, &label, &bytes);
        while (!status && at < *count && strcmp(rows[at].kernel, kernel) != 0)
            at++;
        owner[i] = found ? at : SIZE_MAX;
        if (status || !found)
            continue;
        if (at == *count)
            rows[(*count)++] = (row){.kernel = kernel, .label = label};
        rows[at].count++;
        rows[at].microseconds += median_of(values, found);
    }
    for (size_t at = 0; at < *count; at++)
        for (int f = 0; f < FIGURES; f++) {
            size_t found = 0;
            for (size_t i = 0; i < r->launches; i++)
                if (owner[i] == at)
                    found += gather(r, (enum figure)f, i, values + found);
            rows[at].figures[f] = median_of(values, found);
        }
    free(values);
    free(owner);
    qsort(rows, *count, sizeof *rows, slower_first);
    return status;
}

static void print_label(const char *text) {
    putchar('"');
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else
            printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('"');
}

static void print_json(const row *rows, size_t count, size_t steps, double step, double span) {
    printf("\"timers\": {\"steps\": %zu, \"step_us\": %.6g, \"span_us\": %.6g, \"kernels\": [", steps, step, span);
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"kernel\": \"%s\", \"times\": %zu, \"us\": %.6g", i ? ", " : "", rows[i].kernel, rows[i].count, rows[i].microseconds);
        for (int f = 0; f < FIGURES; f++)
            printf(", \"%s\": %.6g", names[f], rows[i].figures[f]);
        printf(", \"label\": ");
        print_label(rows[i].label);
        putchar('}');
    }
    printf("]}");
}

static void print_text(const row *rows, size_t count, size_t steps, double step) {
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += rows[i].microseconds;
    printf("timers are on, and cost time: with them a step takes %.4g us from the end of its first wait to its last block's end\n"
           "medians of %zu steps, in us: phase (from a wait's end to the next launch's), begin of the median block before the wait's end (lead),\n"
           "ends of the first, median and last block after it, from there to the next launch's wait's end (edge)\n", step, steps);
    printf("%-20s %6s %9s %9s %6s %8s %8s %8s %8s %8s %7s %5s %5s  %s\n", "kernel", "times", "phase", "us", "share", "lead", "first", "median", "last",
           "edge", "blocks", "SMs", "most", "label");
    for (size_t i = 0; i < count; i++) {
        const double *f = rows[i].figures;
        printf("%-20s %6zu %9.2f %9.2f %5.1f%% %8.2f %8.2f %8.2f %8.2f %8.2f %7.0f %5.0f %5.0f  %s\n", rows[i].kernel, rows[i].count, f[PHASE],
               rows[i].microseconds, 100 * rows[i].microseconds / total, f[LEAD], f[FIRST], f[MEDIAN], f[LAST], f[EDGE], f[BLOCKS], f[PROCESSORS],
               f[MOST], rows[i].label);
    }
}

plan_status run_print_stamps(const run_options *o, const plan *p, run_stamps *r) {
    row *rows = run_allocate(r->launches, sizeof *rows);
    size_t count = 0;
    plan_status status = make_rows(p, r, rows, &count);
    const double step = r->count ? median_of(r->steps, r->count) : 0, span = r->count ? median_of(r->spans, r->count) : 0;
    if (!status && o->json)
        print_json(rows, count, r->count, step, span);
    else if (!status)
        print_text(rows, count, r->count, step);
    free(rows);
    return status;
}
