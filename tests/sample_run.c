/* sample_run.c - stop tokens and the errors of the sampling tail, through plan.h.
 *
 *   sample_run TARGET PLAN TOKEN...     the prompt; PLAN was compiled with --sample draw or greedy
 *
 * Prints "ok NAME" or "not ok NAME" for each check. What a stopped replay must give is what one that was not stopped gave. */
#include <plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60 };

static void check(int good, const char *name) { printf("%s %s\n", good ? "ok" : "not ok", name); }

static plan_session *open_session(plan *p)
{
    plan_session *s = NULL;
    if (plan_session_open(p, NULL, &s) || plan_session_warm(s) || plan_session_capture(s)) {
        fprintf(stderr, "%s\n", plan_error_message());
        exit(1);
    }
    return s;
}

static uint64_t count_of(plan_session *s)
{
    uint64_t count = 0;
    return plan_session_token_count(s, &count) ? 0 : count;
}

static int is_stopped(plan_session *s)
{
    int stopped = -1;
    return plan_session_stopped(s, &stopped) ? -1 : stopped;
}

static int64_t position_of(plan_session *s)
{
    int64_t position = -1;
    return plan_session_position(s, &position) ? -1 : position;
}

/* All tokens after the prompt, without a stop: STEPS + 1. */
static void run_free(plan *p, const int64_t *prompt, size_t n, int64_t *out)
{
    plan_session *s = open_session(p);
    if (plan_session_prefill(s, prompt, n) || plan_session_replay(s, STEPS) || plan_session_tokens(s, out, STEPS + 1)) {
        fprintf(stderr, "%s\n", plan_error_message());
        exit(1);
    }
    plan_session_close(s);
}

/* The first place, at least FROM, of a token that did not occur before it; 0: there is none. */
static int fresh_place(const int64_t *tokens, int from)
{
    for (int i = from; i < STEPS - 8; i++) {
        int known = 0;
        for (int k = 0; k < i; k++) known |= tokens[k] == tokens[i];
        if (!known) return i;
    }
    return 0;
}

static void check_stop(plan *p, const int64_t *prompt, size_t n, const int64_t *expected, int eager)
{
    const int at = fresh_place(expected, 2);
    const int64_t ids[2] = { 1 << 19, expected[at] };
    int64_t got[STEPS + 1] = { 0 };
    plan_session *s = open_session(p);
    plan_session_set_eager(s, eager);
    int good = at > 0 && !plan_session_set_stop(s, ids, 2) && !plan_session_prefill(s, prompt, n);
    good = good && !(eager ? plan_session_eager(s, 256) : plan_session_replay(s, 256));
    check(good && count_of(s) == (uint64_t)at + 1 && is_stopped(s) == 1, "256 steps end at the stop token, which is counted");
    check(!plan_session_tokens(s, got, (size_t)at + 1) && !memcmp(got, expected, sizeof *got * (size_t)(at + 1)), "tokens up to it are those without it");
    if (plan_capacity(p)) check(position_of(s) == (int64_t)n + at, "the position stands behind the token before it");
    check(!plan_session_replay(s, 10) && count_of(s) == (uint64_t)at + 1 && is_stopped(s) == 1, "later replays do nothing");
    good = !plan_session_set_token(s, expected[at]) && !plan_session_replay(s, 7) && is_stopped(s) == 0;
    good = good && count_of(s) == (uint64_t)at + 8 && !plan_session_tokens(s, got, 7);
    check(good && !memcmp(got, expected + at + 1, 7 * sizeof *got), "after set_token it goes on, as if it had not stopped");
    plan_session_close(s);
}

/* The prompt's own token is a stop token. */
static void check_first(plan *p, const int64_t *prompt, size_t n, const int64_t *expected)
{
    plan_session *s = open_session(p);
    int good = !plan_session_set_stop(s, expected, 1) && !plan_session_prefill(s, prompt, n) && is_stopped(s) == 1;
    check(good && !plan_session_replay(s, 9) && count_of(s) == 1, "a stop token after the prompt ends it there");
    check(!plan_session_rewind(s, 0) && is_stopped(s) == 0 && !plan_session_set_stop(s, NULL, 0) && !plan_session_prefill(s, prompt, n) &&
          !plan_session_replay(s, 9) && count_of(s) == 11, "rewind lets it go on; no stop tokens, no stop");
    plan_session_close(s);
}

static void check_error(plan_session *s, plan_sampling g, plan_status status, const char *text)
{
    const plan_status found = plan_session_set_sampling(s, &g);
    const int good = found == status && !strcmp(plan_error_message(), text);
    if (!good) printf("found %s: %s\n", plan_status_name(found), plan_error_message());
    check(good, text);
}

static void check_errors(plan *p)
{
    const plan_sampling standard = PLAN_SAMPLING_INIT;
    const int64_t negative = -1, many[17] = { 0 };
    plan_session *s = open_session(p);
    plan_sampling g = standard;
    g.temperature = 1e-9;
    check_error(s, g, PLAN_ERROR_RANGE, "sampling: temperature (or 0): expected 0.001 to 1000, found 1e-09");
    g = standard, g.top_k = 1025;
    check_error(s, g, PLAN_ERROR_RANGE, "sampling: top_k: expected 0 to 1024, found 1025");
    g = standard, g.top_p = 0;
    check_error(s, g, PLAN_ERROR_RANGE, "sampling: top_p: expected 1e-09 to 1, found 0");
    g = standard, g.min_p = 1.5;
    check_error(s, g, PLAN_ERROR_RANGE, "sampling: min_p: expected 0 to 1, found 1.5");
    g = standard, g.repetition_penalty = 0;
    check_error(s, g, PLAN_ERROR_RANGE, "sampling: repetition_penalty: expected 0.001 to 1000, found 0");
    g = standard, g.size = 3;
    check_error(s, g, PLAN_ERROR_ARGUMENT, "sampling: size is 3; start from PLAN_SAMPLING_INIT");
    g = standard, g.temperature = 1;
    if (plan_has_sampling(p) == 1)
        check_error(s, g, PLAN_ERROR_STATE, "sampling: the plan has no sampling tail for it; compile with gcc-plan --sample draw");
    g = standard, g.repetition_penalty = 2;
    if (plan_has_sampling(p) == 2 && !plan_capacity(p))
        check_error(s, g, PLAN_ERROR_STATE, "sampling: repetition_penalty: the plan has no growing state, so it keeps no tokens; expected 1, found 2");
    check(plan_session_set_stop(s, &negative, 1) == PLAN_ERROR_RANGE &&
          !strcmp(plan_error_message(), "stop: token 0: expected 0 or more, found -1"), "a stop token below 0");
    check(plan_session_set_stop(s, many, 17) == PLAN_ERROR_RANGE &&
          !strcmp(plan_error_message(), "stop: expected at most 16 tokens, found 17"), "17 stop tokens");
    check(plan_session_set_stop(s, NULL, 1) == PLAN_ERROR_ARGUMENT && plan_session_set_sampling(s, NULL) == PLAN_ERROR_ARGUMENT &&
          plan_session_stopped(s, NULL) == PLAN_ERROR_ARGUMENT, "NULL");
    plan_session_close(s);
}

/* Every driver call of a stopped run fails once: the call that makes it says so, and the session can be closed. */
static plan_status run_failing(const char *path, uint64_t call, const int64_t *prompt, size_t n, int64_t stop)
{
    plan_options options = PLAN_OPTIONS_INIT;
    plan_sampling g = PLAN_SAMPLING_INIT;
    plan *p = NULL;
    plan_session *s = NULL;
    int stopped;
    options.target = "host";
    options.fail_call = call;
    plan_status status = plan_load(path, &options, &p);
    if (!status) status = plan_session_open(p, NULL, &s);
    if (!status) status = plan_session_warm(s);
    if (!status) status = plan_session_capture(s);
    if (!status) status = plan_session_set_sampling(s, &g);
    if (!status) status = plan_session_set_stop(s, &stop, 1);
    if (!status) status = plan_session_prefill(s, prompt, n);
    if (!status) status = plan_session_replay(s, STEPS);
    if (!status) status = plan_session_stopped(s, &stopped);
    if (!status) status = plan_session_set_token(s, prompt[0]);
    if (!status) status = plan_session_rewind(s, 0);
    plan_session_close(s);
    plan_free(p);
    return status;
}

static void check_failures(const char *path, const int64_t *prompt, size_t n, int64_t stop)
{
    int good = 1, done = 0;
    uint64_t call = 1;
    for (; call < 1000 && !done; call++) {
        const plan_status status = run_failing(path, call, prompt, n, stop);
        done = status == PLAN_OK;
        good &= done || status == PLAN_ERROR_DRIVER;
    }
    check(good && done && call > 30, "each driver call may fail: DRIVER");
}

int main(int argc, char **argv)
{
    plan_options options = PLAN_OPTIONS_INIT;
    plan *p = NULL;
    int64_t prompt[64], expected[STEPS + 1];
    const size_t n = (size_t)(argc - 3);
    if (argc < 4 || n > 64) {
        fprintf(stderr, "usage: sample_run TARGET PLAN TOKEN...\n");
        return 2;
    }
    for (size_t i = 0; i < n; i++) prompt[i] = atoll(argv[i + 3]);
    options.target = argv[1];
    if (plan_load(argv[2], &options, &p)) {
        fprintf(stderr, "%s\n", plan_error_message());
        return 1;
    }
    run_free(p, prompt, n, expected);
    check_stop(p, prompt, n, expected, 0);
    check_stop(p, prompt, n, expected, 1);
    check_first(p, prompt, n, expected);
    check_errors(p);
    if (strcmp(argv[1], "host") == 0) check_failures(argv[2], prompt, n, expected[fresh_place(expected, 2)]); /* of the host driver alone a call can be made to fail */
    return plan_free(p) ? 1 : 0;
}
