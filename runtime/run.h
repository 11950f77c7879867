/* run.h - what the files of plan-run share. plan-run is a user of plan.h only. */
#ifndef PLAN_RUN_H
#define PLAN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

typedef struct run_options {
    const char *path;
    const char *prompt_bytes, *prompt_ids;
    const char *verify;
    const char *tune;             /* the file to write */
    const char *target;
    int64_t generate;             /* -1: not asked */
    int64_t context, warmup, iterations;
    plan_sampling sampling;
    bool samples;                 /* an option set some of it */
    int64_t stop[16];
    size_t stop_count;
    double tolerance, margin;     /* negative: by the model's type */
    int64_t endurance;            /* steps; 0: not asked */
    int threads;
    bool eager, one_at_a_time, check_capture, check_growth, bench, profile, timers, counters, json, raw;
} run_options;

/* What the command has measured of itself. */
typedef struct run_clock {
    double load, warm, capture; /* seconds */
    atomic_size_t held;               /* bytes that the library has from its allocator */
} run_clock;
extern run_clock run_measured;

typedef struct run_ids {
    int64_t *ids;
    size_t count;
} run_ids;

/* Prints "PATH: the library's message" and returns 1, the exit status. */
int run_failed(const run_options *o);
int run_message(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;
void *run_allocate(size_t count, size_t size); /* zeroed; ends the program when memory ran out */
/* Opened, warmed and captured; NULL after a message. */
plan_session *run_open(const run_options *o, plan *p);
/* The prompt of the options, or an example. 0, or 1 after a message. */
int run_prompt(const run_options *o, run_ids *out);
/* Columns of the logits of decode; 0 when there are none. *DTYPE is the coarsest of logits and states. */
size_t run_vocabulary(const plan *p, plan_dtype *dtype);
/* Feeds a prompt as the options say. */
plan_status run_feed(const run_options *o, plan_session *s, const int64_t *ids, size_t count);
/* One decode step fed with TOKEN. */
plan_status run_token(const run_options *o, plan_session *s, int64_t token);
size_t run_argmax(const float *values, size_t count);
double run_seconds(void);

int run_verify(const run_options *o, plan *p);
int run_check_capture(const run_options *o, plan *p);
int run_check_growth(const run_options *o, plan *p);
int run_counters(const run_options *o, plan *p);
int run_bench(const run_options *o, plan *p);
int run_tune(const run_options *o, plan *p);
int run_endurance(const run_options *o, plan *p);
/* The prompt, again and again, up to the position; the next token is set. */
plan_status run_reach(const run_options *o, plan *p, plan_session *s, int64_t context);
int run_compare(const void *a, const void *b); /* of doubles, for qsort */
/* Puts the session back to the position; sets *FIXED to false when its state does not allow that. */
void run_go_back(plan_session *s, int64_t context, bool *fixed);
/* --timers: what the launches of decode steps at a position stamped. *OUT is the caller's to free, also after an error. */
typedef struct run_stamps run_stamps;
plan_status run_take_stamps(const run_options *o, plan *p, plan_session *s, int64_t context, run_stamps **out);
plan_status run_print_stamps(const run_options *o, const plan *p, run_stamps *r); /* a table, or a member of a JSON object */
void run_free_stamps(run_stamps *r);
/* Prints where the time of a decode step goes, with --json as a member of an object; the state is lost. */
plan_status run_profile(const run_options *o, plan *p, plan_session *s);

#endif
