/* stamps_run.c - plan_session_stamps on the host target, whose clock is this program's too.
 *
 *   stamps_run decoder PLAN                  a decoder compiled with --timers
 *   stamps_run plain PLAN                    one without
 *   stamps_run branch PLAN X TRUE FALSE      files of the inputs x and cond of a network with an If
 *
 * Prints "ok NAME" or "not ok NAME" for each check. */
#include <plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_LAUNCHES = 1024, MOST_BLOCKS = 65536 };

static plan_stamp stamps[MOST_BLOCKS];

static void check(int good, const char *name) { printf("%s %s\n", good ? "ok" : "not ok", name); }

static void need(plan_status status)
{
    if (!status) return;
    printf("not ok %s\n", plan_error_message());
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void refused(plan_status found, plan_status expected, const char *text)
{
    const int good = found == expected && !strcmp(plan_error_message(), text);
    if (!good) printf("# %d: %s\n", (int)found, plan_error_message());
    check(good, text);
}

static plan_session *open_session(plan *p)
{
    plan_session *s;
    need(plan_session_open(p, NULL, &s));
    need(plan_session_warm(s));
    need(plan_session_capture(s));
    return s;
}

static size_t launches_of(plan *p, const char *signature)
{
    uint64_t launches, bytes;
    need(plan_step_cost(p, signature, 0, 1, &launches, &bytes));
    return launches < MOST_LAUNCHES ? (size_t)launches : MOST_LAUNCHES;
}

typedef struct span { uint64_t begin, end; } span;

static int earlier(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* What holds of the stamps of a step that ran between two times: no launches overlap, since the host runs one at a time. */
static void check_step(plan *p, plan_session *s, const char *signature, uint64_t from, uint64_t to, const char *name)
{
    static span spans[MOST_LAUNCHES];
    const size_t launches = launches_of(p, signature);
    int ordered = 1, within = 1, waits = 1, apart = 1;
    for (size_t i = 0; i < launches; i++) {
        size_t blocks, waited = 0;
        need(plan_session_stamps(s, signature, i, stamps, MOST_BLOCKS, &blocks));
        spans[i] = (span){UINT64_MAX, 0};
        for (size_t b = 0; b < blocks; b++) {
            const plan_stamp *t = &stamps[b];
            waited += t->waited != 0;
            within &= t->begin >= from && t->end <= to;
            ordered &= t->begin <= t->end && (!t->waited || (t->begin <= t->waited && t->waited <= t->end));
            if (t->begin < spans[i].begin) spans[i].begin = t->begin;
            if (t->end > spans[i].end) spans[i].end = t->end;
        }
        waits &= waited > 0;
    }
    qsort(spans, launches, sizeof *spans, earlier);
    for (size_t i = 1; i < launches; i++) apart &= spans[i - 1].end <= spans[i].begin;
    printf("# %s\n", name);
    check(launches > 0 && within, "every block stamped in the step");
    check(ordered, "begin, wait and end are in this order");
    check(waits, "a block of each launch waited");
    check(apart, "launches do not overlap");
}

static void check_refusals(plan_session *s, size_t launches)
{
    size_t count = 0;
    char text[128];
    refused(plan_session_stamps(s, "decode", 0, stamps, MOST_BLOCKS, &count), PLAN_ERROR_STATE,
            "stamps: expected that the session's last step was 'decode', found none");
    check(!plan_session_stamps(s, "decode", 0, NULL, 0, &count) && count > 0, "the count needs no step");
    refused(plan_session_stamps(s, "decode", 0, NULL, 5, &count), PLAN_ERROR_ARGUMENT, "stamps: expected a place for the stamps, found NULL");
    refused(plan_session_stamps(s, "decode", 0, NULL, 0, NULL), PLAN_ERROR_ARGUMENT, "stamps: expected a place for their count, found NULL");
    refused(plan_session_stamps(s, "load", 0, NULL, 0, &count), PLAN_ERROR_STATE, "signature 'load' runs at load only");
    snprintf(text, sizeof text, "launch %zu of signature 'decode': expected below %zu", launches, launches);
    refused(plan_session_stamps(s, "decode", launches, NULL, 0, &count), PLAN_ERROR_RANGE, text);
    check(plan_session_stamps(s, "nothing", 0, NULL, 0, &count) == PLAN_ERROR_NAME, "no such signature");
    for (size_t i = 0; i < launches; i++) {
        need(plan_session_stamps(s, "decode", i, NULL, 0, &count));
        if (count < 2) continue;
        snprintf(text, sizeof text, "stamps: launch %zu of signature 'decode' has %zu blocks, found room for %zu", i, count, count - 1);
        refused(plan_session_stamps(s, "decode", i, stamps, count - 1, &count), PLAN_ERROR_RANGE, text);
        return;
    }
}

static void run_decoder(plan *p)
{
    static const int64_t ids[] = {1, 2, 3, 4, 5};
    plan_session *s = open_session(p);
    size_t count;
    check_refusals(s, launches_of(p, "decode"));
    uint64_t from = now();
    need(plan_session_prefill(s, ids, 5));
    need(plan_session_wait(s));
    check_step(p, s, "prefill", from, now(), "a prompt");
    refused(plan_session_stamps(s, "decode", 0, stamps, MOST_BLOCKS, &count), PLAN_ERROR_STATE,
            "stamps: expected that the session's last step was 'decode', found prefill");
    for (int i = 0; i < 2; i++) {
        need(plan_session_replay(s, 3));
        need(plan_session_wait(s));
        from = now();
        need(i ? plan_session_eager(s, 1) : plan_session_replay(s, 1));
        need(plan_session_wait(s));
        check_step(p, s, "decode", from, now(), i ? "an eager step" : "a captured step");
    }
    need(plan_session_close(s));
}

static void run_plain(plan *p)
{
    plan_session *s = open_session(p);
    size_t count;
    refused(plan_session_stamps(s, "decode", 0, NULL, 0, &count), PLAN_ERROR_STATE, "stamps: the plan has no timers; compile it with gcc-plan --timers");
    need(plan_session_close(s));
}

static void write_input(plan_session *s, const char *name, const char *path)
{
    static char bytes[4096];
    FILE *file = fopen(path, "rb");
    if (!file) exit(1);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    need(plan_session_write_input(s, "main", name, bytes, size));
}

/* One run, with a bit for each launch that ran. */
static void find_ran(plan *p, plan_session *s, const char *x, const char *condition, int bit, int *ran)
{
    const size_t launches = launches_of(p, "main");
    size_t blocks;
    write_input(s, "x", x);
    write_input(s, "cond", condition);
    need(plan_session_run(s, "main", NULL, NULL, 0));
    for (size_t i = 0; i < launches; i++) {
        need(plan_session_stamps(s, "main", i, stamps, MOST_BLOCKS, &blocks));
        for (size_t b = 0; b < blocks; b++)
            if (stamps[b].begin) ran[i] |= bit;
    }
}

static void run_branch(plan *p, char **files)
{
    plan_session *s = open_session(p);
    for (int eager = 0; eager < 2; eager++) {
        int ran[MOST_LAUNCHES] = {0}, how_many[4] = {0};
        need(plan_session_set_eager(s, eager));
        find_ran(p, s, files[0], files[1], 1, ran);
        find_ran(p, s, files[0], files[2], 2, ran);
        for (size_t i = 0; i < launches_of(p, "main"); i++) how_many[ran[i]]++;
        check(how_many[3] > 0 && how_many[1] > 0 && how_many[2] > 0, eager ? "eager: launches of the other branch have no stamps" : "launches of the other branch have no stamps");
    }
    need(plan_session_close(s));
}

int main(int argc, char **argv)
{
    plan_options options = PLAN_OPTIONS_INIT;
    plan *p;
    if (argc < 3) return 2;
    options.target = "host";
    options.threads = 2;
    need(plan_load(argv[2], &options, &p));
    if (!strcmp(argv[1], "decoder")) run_decoder(p);
    else if (!strcmp(argv[1], "plain")) run_plain(p);
    else if (argc > 5) run_branch(p, argv + 3);
    need(plan_free(p));
    return 0;
}
