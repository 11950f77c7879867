/* rows_run.c - a plan whose rows have lengths of their own against one of one row: each row gives at every step what a session
 * of one row gives, whatever the others do.
 *
 *   rows_run TARGET ROWS_PLAN ONE_PLAN TOLERANCE LENGTH...        a length for each row
 *
 * Prompts of these lengths, steps of all rows, steps in which a row rests, one row set back and fed anew; by graphs, then by eager
 * launches. Prints the number of comparisons and the largest difference; exit status 1 and the place at the first that is too
 * large. */
#include <plan.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_LIMIT = 16, VOCABULARY_LIMIT = 1 << 18 };

typedef struct Check {
    plan *many, *one;
    plan_session *s, *single[ROWS_LIMIT];
    int rows;
    int64_t length[ROWS_LIMIT];
    size_t columns;
    float *a, *b;
    double tolerance, largest;
    int compared, eager;
    unsigned seed;
} Check;

static void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    exit(1);
}

static void must(plan_status status, const char *what)
{
    if (status) stop("%s: %s: %s", what, plan_status_name(status), plan_error_message());
}

static void must_fail(plan_status status, plan_status expected, const char *text, const char *what)
{
    if (status != expected || !strstr(plan_error_message(), text))
        stop("%s: expected %s with <%s>, found %s: %s", what, plan_status_name(expected), text, plan_status_name(status), plan_error_message());
}

static int64_t token(Check *c)
{
    c->seed = c->seed * 1664525u + 1013904223u;
    return (int64_t)((c->seed >> 8) % (c->columns < 256 ? (unsigned)c->columns : 256u));
}

static void compare(Check *c, int row, const char *what)
{
    must(plan_session_row_logits(c->s, row, c->a, c->columns), what);
    must(plan_session_logits(c->single[row], c->b, c->columns), what);
    for (size_t i = 0; i < c->columns; i++) {
        const double difference = fabs((double)c->a[i] - (double)c->b[i]);
        if (difference > c->largest) c->largest = difference;
        if (!(difference <= c->tolerance))
            stop("%s: row %d, length %lld: logit %zu is %.9g among the rows and %.9g alone", what, row, (long long)c->length[row], i,
                 (double)c->a[i], (double)c->b[i]);
    }
    c->compared++;
}

static void prompt(Check *c, int row, int64_t count, const char *what)
{
    int64_t *ids = malloc((size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++) ids[i] = token(c);
    must(plan_session_prefill_row(c->s, row, ids, (size_t)count), what);
    must(plan_session_prefill(c->single[row], ids, (size_t)count), what);
    free(ids);
    c->length[row] += count;
    compare(c, row, what);
}

/* One step in which row REST rests (-1: none). */
static void step(Check *c, int rest, const char *what)
{
    int64_t ids[ROWS_LIMIT];
    for (int r = 0; r < c->rows; r++) {
        ids[r] = r == rest ? PLAN_REST : token(c);
        if (r == rest) continue;
        must(plan_session_set_token(c->single[r], ids[r]), what);
        must(c->eager ? plan_session_eager(c->single[r], 1) : plan_session_replay(c->single[r], 1), what);
        c->length[r]++;
    }
    must(plan_session_set_tokens(c->s, ids, (size_t)c->rows), what);
    must(c->eager ? plan_session_eager(c->s, 1) : plan_session_replay(c->s, 1), what);
    for (int r = 0; r < c->rows; r++) {
        int64_t position;
        must(plan_session_row_position(c->s, r, &position), what);
        if (position != c->length[r]) stop("%s: row %d: position %lld, expected %lld", what, r, (long long)position, (long long)c->length[r]);
        if (r != rest) compare(c, r, what);
    }
    if (rest >= 0) must_fail(plan_session_row_logits(c->s, rest, c->a, c->columns), PLAN_ERROR_STATE, "was not fed in the last step", what);
}

static void set_back(Check *c, int row, int64_t to)
{
    must(plan_session_rewind_row(c->s, row, to), "rewind of a row");
    must(plan_session_rewind(c->single[row], to), "rewind");
    c->length[row] = to;
}

static void run(Check *c, const int64_t *lengths)
{
    const int middle = c->rows / 2;
    must(plan_session_set_eager(c->s, c->eager), "eager");
    for (int r = 0; r < c->rows; r++) must(plan_session_set_eager(c->single[r], c->eager), "eager");
    for (int r = c->rows - 1; r >= 0; r--) prompt(c, r, lengths[r], "prompt");
    for (int i = 0; i < 3; i++) step(c, -1, "step");
    for (int r = 0; r < c->rows; r++) step(c, r, "step while a row rests");
    set_back(c, middle, lengths[middle] / 2);
    for (int i = 0; i < 2; i++) step(c, -1, "step after one row was set back");
    prompt(c, middle, 3, "prompt behind a row that was set back");
    set_back(c, c->rows - 1, 1);
    prompt(c, 0, 5, "prompt beside a row that was set back");
    for (int i = 0; i < 2; i++) step(c, -1, "step after two rows were set back");
    for (int r = 0; r < c->rows; r++) set_back(c, r, 0);
}

/* One step of the last row, of TOKEN, another than the one there, beside others at POSITION that rest: no byte of theirs changes. States have the
 * rows as their first axis. */
static void step_alone(Check *c, int64_t position, int64_t token)
{
    int64_t ids[ROWS_LIMIT];
    must(plan_session_set_position(c->s, position), "set_position");
    must(plan_session_rewind_row(c->s, c->rows - 1, 4), "rewind_row");
    for (int r = 0; r < c->rows; r++) ids[r] = r == c->rows - 1 ? token : PLAN_REST;
    must(plan_session_set_tokens(c->s, ids, (size_t)c->rows), "set_tokens");
    const int count = plan_state_count(c->many);
    unsigned char **before = calloc((size_t)count, sizeof *before);
    plan_tensor t;
    for (int after = 0; after < 2; after++) {
        for (int i = 0; i < count; i++) {
            must(plan_state(c->many, i, &t), "state");
            unsigned char *bytes = malloc(t.bytes);
            must(plan_session_read_state(c->s, t.name, bytes, t.bytes), "read_state");
            if (t.dims[0] != c->rows) stop("state '%s': expected %d rows, found %lld", t.name, c->rows, (long long)t.dims[0]);
            const size_t others = t.bytes / (size_t)c->rows * (size_t)(c->rows - 1);
            if (after && memcmp(before[i], bytes, others)) stop("state '%s': a step wrote to rows that rest", t.name);
            if (after && !memcmp(before[i] + others, bytes + others, t.bytes - others)) stop("state '%s': a step wrote nothing", t.name);
            free(after ? before[i] : NULL);
            before[i] = bytes;
        }
        if (!after) must(plan_session_replay(c->s, 1), "a step beside rows that rest");
    }
    for (int i = 0; i < count; i++) free(before[i]);
    free(before);
}

static void refusals(Check *c)
{
    int64_t ids[ROWS_LIMIT + 1] = {0}, position;
    const int64_t capacity = plan_capacity(c->many);
    must_fail(plan_session_prefill(c->s, ids, 1), PLAN_ERROR_STATE, "call plan_session_prefill_row", "prefill");
    must_fail(plan_session_set_token(c->s, 0), PLAN_ERROR_STATE, "call plan_session_set_tokens", "set_token");
    must_fail(plan_session_run(c->s, "decode", NULL, NULL, 0), PLAN_ERROR_STATE, "rows have lengths of their own", "run");
    must_fail(plan_session_logits(c->s, c->a, c->columns), PLAN_ERROR_STATE, "call plan_session_row_logits", "logits");
    must_fail(plan_session_prefill_row(c->s, c->rows, ids, 1), PLAN_ERROR_RANGE, "row: expected 0 to", "prefill_row");
    must_fail(plan_session_set_tokens(c->s, ids, (size_t)c->rows + 1), PLAN_ERROR_ARGUMENT, "a token for each of", "set_tokens");
    must_fail(plan_session_rewind_row(c->s, 0, 1), PLAN_ERROR_RANGE, "rewind of row 0: expected 0 to 0", "rewind_row");
    must_fail(plan_session_row_position(c->single[0], 0, &position), PLAN_ERROR_STATE, "compile with gcc-plan --rows", "row_position");
    for (int r = 0; r < c->rows; r++) ids[r] = PLAN_REST;
    must(plan_session_set_tokens(c->s, ids, (size_t)c->rows), "set_tokens");
    must_fail(plan_session_replay(c->s, 1), PLAN_ERROR_STATE, "no row is fed", "replay");
    ids[0] = -2;
    must_fail(plan_session_set_tokens(c->s, ids, (size_t)c->rows), PLAN_ERROR_RANGE, "token 0: expected 0 or more", "set_tokens");
    /* A row that is full stops a step that feeds it, and no other. */
    step_alone(c, 5, 5);
    step_alone(c, capacity, 6);
    for (int r = 0; r < c->rows; r++) ids[r] = PLAN_REST;
    ids[0] = 1;
    must(plan_session_set_tokens(c->s, ids, (size_t)c->rows), "set_tokens");
    must_fail(plan_session_replay(c->s, 1), PLAN_ERROR_CAPACITY, "the state holds", "a step of a full row");
    must_fail(plan_session_prefill_row(c->s, 0, ids, 1), PLAN_ERROR_CAPACITY, "row 0: the state holds", "prefill_row");
    must(plan_session_position(c->s, &position), "position");
    if (position != capacity) stop("position: expected that of the longest row, %lld, found %lld", (long long)capacity, (long long)position);
    must(plan_session_rewind(c->s, 3), "rewind");
    must(plan_session_row_position(c->s, 0, &position), "row_position");
    if (position != 3) stop("rewind: expected rows at 3, found %lld", (long long)position);
    must(plan_session_rewind(c->s, 0), "rewind");
}

static plan_session *opened(plan *p)
{
    plan_session *s = NULL;
    must(plan_session_open(p, NULL, &s), "open");
    must(plan_session_warm(s), "warm");
    must(plan_session_capture(s), "capture");
    return s;
}

int main(int argc, char **argv)
{
    Check c = {.seed = 20261130u};
    int64_t lengths[ROWS_LIMIT];
    plan_options options = PLAN_OPTIONS_INIT;
    if (argc < 6 || argc - 5 > ROWS_LIMIT) {
        fprintf(stderr, "usage: rows_run TARGET ROWS_PLAN ONE_PLAN TOLERANCE LENGTH...\n");
        return 2;
    }
    options.target = argv[1];
    must(plan_load(argv[2], &options, &c.many), argv[2]);
    must(plan_load(argv[3], &options, &c.one), argv[3]);
    c.tolerance = strtod(argv[4], NULL);
    for (c.rows = 0; c.rows < argc - 5; c.rows++) lengths[c.rows] = strtoll(argv[5 + c.rows], NULL, 10);
    if (plan_rows(c.many) != c.rows || plan_rows(c.one) != 0) stop("expected a plan of %d rows, found %lld", c.rows, (long long)plan_rows(c.many));
    plan_tensor t;
    must(plan_output(c.one, "decode", 0, &t), "logits");
    c.columns = (size_t)t.dims[t.rank - 1];
    c.a = calloc(c.columns, sizeof(float));
    c.b = calloc(c.columns, sizeof(float));
    c.s = opened(c.many);
    for (int r = 0; r < c.rows; r++) c.single[r] = opened(c.one);
    for (c.eager = 0; c.eager < 2; c.eager++) run(&c, lengths);
    must(plan_session_set_eager(c.s, 0), "eager");
    refusals(&c);
    for (int r = 0; r < c.rows; r++) must(plan_session_close(c.single[r]), "close");
    must(plan_session_close(c.s), "close");
    must(plan_free(c.one), "free");
    must(plan_free(c.many), "free");
    free(c.a);
    free(c.b);
    printf("%d comparisons, largest difference %.3g\n", c.compared, c.largest);
    return 0;
}
