/* run_growth.c - plan-run --check-growth: the step that reads its length on the device against the same graph compiled with
 * the length as a literal ("decode@L", which gcc-plan --check-lengths adds), at the least and the largest lengths: on the way
 * up, after rewinds, after a prompt fed in other chunks, and with rows that are not valid filled with NaN. A buffer of constant
 * size is filled with large numbers instead: all of it is the graph's, which may well multiply what it masks by 0. */
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FEED_LIMIT 4096 /* longer contexts are reached by setting the position: rows of zeros do for a comparison */
#define LENGTHS 4

typedef struct state {
    plan_tensor t;
    int axis;  /* of its rows; -1: the step replaces it as a whole, or (before the first step) not known */
    bool grows;
    size_t width;
    unsigned char *before, *after, *pinned; /* bytes around a step */
} state;

typedef struct growth {
    const run_options *o;
    plan *p;
    plan_session *s;
    size_t columns;
    int state_count;
    state *states;
    float *logits, *other, *first[LENGTHS]; /* first: of the step at each length on the way up */
    int64_t lengths[LENGTHS];
    int length_count;
    double relative, absolute; /* what two orders of the same sum may differ by; the other comparisons are of bytes */
    size_t compared, exact;
    double largest;
    bool rewinds, failed;
    char what[240];
} growth;

/* The first failure stays. */
static void differs(growth *g, const char *where, const char *text) {
    if (!g->failed)
        snprintf(g->what, sizeof g->what, "%.60s: %.159s", where, text);
    g->failed = true;
}

static int64_t token_at(const growth *g, int64_t position) {
    uint32_t x = (uint32_t)position * 2654435761u + 12345u;
    int64_t limit = g->columns && g->columns < 256 ? (int64_t)g->columns : 256;
    return (int64_t)(x >> 8) % limit;
}

/* ---- states */

static plan_status read_states(growth *g, size_t offset) {
    plan_status status = PLAN_OK;
    for (int i = 0; i < g->state_count && !status; i++) {
        state *s = &g->states[i];
        unsigned char *to = offset == 0 ? s->before : offset == 1 ? s->after : s->pinned;
        status = plan_session_read_state(g->s, s->t.name, to, s->t.bytes);
    }
    return status;
}

static plan_status write_states(growth *g, bool after, int64_t position) {
    plan_status status = plan_session_set_position(g->s, position);
    for (int i = 0; i < g->state_count && !status; i++)
        status = plan_session_write_state(g->s, g->states[i].t.name, after ? g->states[i].after : g->states[i].before, g->states[i].t.bytes);
    return status;
}

/* Bytes of one row, and of all rows together, along AXIS. */
static void row_bytes(const state *s, int axis, size_t *row, size_t *all) {
    *row = s->width;
    for (int k = axis + 1; k < s->t.rank; k++)
        *row *= (size_t)s->t.dims[k];
    *all = *row * (size_t)s->t.dims[axis];
}

/* Whether all bytes that differ lie in row ROW along AXIS. */
static bool only_row(const state *s, int axis, int64_t number) {
    size_t row, all;
    row_bytes(s, axis, &row, &all);
    for (size_t at = 0; at < s->t.bytes; at += row)
        if ((int64_t)(at % all / row) != number && memcmp(s->before + at, s->after + at, row) != 0)
            return false;
    return true;
}

/* A step at LENGTH may write row LENGTH alone. A static cache names no axis: the step's write shows it. */
static void check_written(growth *g, int64_t length, const char *where) {
    char text[160];
    for (int i = 0; i < g->state_count; i++) {
        state *s = &g->states[i];
        bool known = s->axis >= 0;
        for (int k = 0; k < s->t.rank && !known && s->axis < 0; k++)
            if (s->t.dims[k] > length && memcmp(s->before, s->after, s->t.bytes) != 0 && only_row(s, k, length))
                s->axis = k;
        if ((!known || only_row(s, s->axis, length)) && (s->axis >= 0 || !g->rewinds))
            continue;
        snprintf(text, sizeof text, "the step wrote other rows of state '%.80s' than row %" PRId64, s->t.name, length);
        differs(g, where, text);
    }
}

/* NaN, or where GROWS is false 64 and -64 in no order. */
static void poison(unsigned char *at, size_t bytes, plan_dtype dtype, bool grows) {
    static const unsigned char f32[2][4] = {{0, 0, 0x80, 0x42}, {0, 0, 0xc0, 0x7f}}, f16[2][2] = {{0, 0x54}, {0, 0x7e}},
                               bf16[2][2] = {{0x80, 0x42}, {0xc0, 0x7f}}, other[] = {0x7f};
    const unsigned char *value = dtype == PLAN_F32 ? f32[grows] : dtype == PLAN_F16 ? f16[grows] : dtype == PLAN_BF16 ? bf16[grows] : other;
    size_t width = dtype == PLAN_F32 ? 4 : dtype == PLAN_F16 || dtype == PLAN_BF16 ? 2 : 1;
    for (size_t i = 0; i < bytes; i++) {
        at[i] = value[i % width];
        if (width > 1 && i % width == width - 1 && (uint32_t)(i / width) * 2654435761u >> 31)
            at[i] |= 0x80;
    }
}

static void poison_states(growth *g, int64_t length) {
    for (int i = 0; i < g->state_count; i++) {
        state *s = &g->states[i];
        size_t row, all;
        if (s->axis < 0 || s->t.dims[s->axis] <= length)
            continue;
        row_bytes(s, s->axis, &row, &all);
        for (size_t at = 0; at < s->t.bytes; at += all)
            poison(s->before + at + row * (size_t)length, all - row * (size_t)length, s->t.dtype, s->grows);
    }
}

static float element(const state *s, const unsigned char *at) {
    uint16_t half = 0;
    uint32_t bits = 0;
    float value;
    if (s->t.dtype == PLAN_F32)
        memcpy(&bits, at, sizeof bits);
    else
        memcpy(&half, at, sizeof half);
    if (s->t.dtype == PLAN_BF16)
        bits = (uint32_t)half << 16;
    if (s->t.dtype == PLAN_F16) {
        uint32_t exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
        value = exponent ? ldexpf((float)(fraction + 1024), (int)exponent - 25) : ldexpf((float)fraction, -24);
        return half & 0x8000u ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool near(growth *g, float a, float b) {
    double difference = fabs((double)a - (double)b);
    if (difference > g->largest)
        g->largest = difference;
    return difference <= g->absolute + g->relative * fabs((double)a); /* false for a NaN */
}

/* Rows below VALID of each state: AFTER against PINNED; by bytes, or each element near. */
static void compare_states(growth *g, int64_t valid, bool bytes, const char *where) {
    char text[160];
    for (int i = 0; i < g->state_count; i++) {
        const state *s = &g->states[i];
        size_t row = s->t.bytes, all = s->t.bytes, used = s->t.bytes;
        bool floats = s->t.dtype == PLAN_F32 || s->t.dtype == PLAN_F16 || s->t.dtype == PLAN_BF16, equal = true;
        if (s->axis >= 0) {
            row_bytes(s, s->axis, &row, &all);
            used = row * (size_t)(valid < s->t.dims[s->axis] ? valid : s->t.dims[s->axis]);
        }
        for (size_t at = 0; at < s->t.bytes && !g->failed; at += s->width) {
            if (at % all >= used || memcmp(s->after + at, s->pinned + at, s->width) == 0)
                continue;
            equal = false;
            if (!bytes && floats && near(g, element(s, s->after + at), element(s, s->pinned + at)))
                continue;
            snprintf(text, sizeof text, "state '%.80s' differs at byte %zu", s->t.name, at);
            differs(g, where, text);
        }
        g->compared += !bytes;
        g->exact += !bytes && equal;
    }
}

static void compare_logits(growth *g, const float *a, const float *b, bool bytes, const char *where) {
    char text[160];
    bool equal = true;
    for (size_t i = 0; i < g->columns && !g->failed; i++) {
        if (memcmp(&a[i], &b[i], sizeof(float)) == 0)
            continue;
        equal = false;
        if (!bytes && near(g, a[i], b[i]))
            continue;
        snprintf(text, sizeof text, "logit %zu is %.9g and %.9g", i, (double)a[i], (double)b[i]);
        differs(g, where, text);
    }
    g->compared += !bytes;
    g->exact += !bytes && equal;
}

/* ---- steps */

static plan_status step(growth *g, int64_t position, float *logits) {
    plan_status status = plan_session_set_token(g->s, token_at(g, position));
    if (!status)
        status = plan_session_replay(g->s, 1);
    return status || !g->columns ? status : plan_session_logits(g->s, logits, g->columns);
}

/* The same step as compiled for this length, launch by launch. */
static plan_status pinned_step(growth *g, int64_t length, float *logits) {
    char name[40];
    snprintf(name, sizeof name, "decode@%" PRId64, length);
    plan_status status = PLAN_OK;
    int64_t token = token_at(g, length);
    int32_t narrow = (int32_t)token;
    for (int i = 0; i < plan_input_count(g->p, name) && !status; i++) {
        plan_tensor t;
        status = plan_input(g->p, name, i, &t);
        if (!status && t.feed == PLAN_FEED_TOKEN)
            status = plan_session_write_input(g->s, name, t.name, t.dtype == PLAN_I32 ? (void *)&narrow : (void *)&token,
                                              t.dtype == PLAN_I32 ? sizeof narrow : sizeof token);
    }
    if (!status)
        status = plan_session_set_eager(g->s, 1);
    if (!status)
        status = plan_session_run(g->s, name, NULL, NULL, 0);
    if (!status)
        status = plan_session_set_eager(g->s, 0);
    return status || !g->columns ? status : plan_session_logits(g->s, logits, g->columns);
}

/* At LENGTH: the captured step, the pinned one, and the captured one with the rows from LENGTH on poisoned. Ends after the
 * step; its logits are in g->logits. */
static plan_status check_step(growth *g, int64_t length, const char *how) {
    char where[96];
    snprintf(where, sizeof where, "at length %" PRId64 "%s", length, how);
    plan_status status = read_states(g, 0);
    if (!status)
        status = step(g, length, g->logits);
    if (!status)
        status = read_states(g, 1);
    if (status)
        return status;
    check_written(g, length, where);
    status = write_states(g, false, length);
    if (!status)
        status = pinned_step(g, length, g->other);
    if (!status)
        status = read_states(g, 2);
    if (status)
        return status;
    compare_logits(g, g->logits, g->other, false, where);
    compare_states(g, length + 1, false, where);
    poison_states(g, length);
    snprintf(where, sizeof where, "at length %" PRId64 "%s, rows from there on poisoned", length, how);
    status = write_states(g, false, length);
    if (!status)
        status = step(g, length, g->other);
    if (!status)
        status = read_states(g, 2);
    if (status)
        return status;
    compare_logits(g, g->logits, g->other, true, where);
    compare_states(g, length + 1, true, where);
    return write_states(g, true, length + 1);
}

/* The tokens of positions FROM to TO, in parts of PART, or as the options say (0). */
static plan_status feed(growth *g, int64_t from, int64_t to, int64_t part) {
    plan_status status = PLAN_OK;
    if (to <= from)
        return PLAN_OK;
    if (to - from > FEED_LIMIT)
        return plan_session_set_position(g->s, to);
    size_t count = (size_t)(to - from);
    int64_t *ids = run_allocate(count, sizeof *ids);
    for (size_t i = 0; i < count; i++)
        ids[i] = token_at(g, from + (int64_t)i);
    for (size_t at = 0; at < count && !status;) {
        size_t take = part > 0 && (size_t)part < count - at ? (size_t)part : count - at;
        status = run_feed(g->o, g->s, ids + at, take);
        at += take;
        part += part > 0; /* parts of growing size, so that no alignment helps */
        if (isatty(2))
            fprintf(stderr, "\rfed %" PRId64 "\033[K", from + (int64_t)at);
    }
    free(ids);
    return status;
}

static plan_status check_up(growth *g) {
    plan_status status = PLAN_OK;
    int64_t at = 0;
    for (int i = 0; i < g->length_count && !status; i++) {
        status = feed(g, at, g->lengths[i], 0);
        if (!status)
            status = check_step(g, g->lengths[i], "");
        if (!status)
            memcpy(g->first[i], g->logits, g->columns * sizeof(float));
        at = g->lengths[i] + 1;
    }
    return status;
}

/* Down again: rows beyond hold what a longer sequence left there. */
static plan_status check_rewinds(growth *g) {
    plan_status status = PLAN_OK;
    for (int i = g->length_count; i-- > 0 && !status;) {
        status = plan_session_rewind(g->s, g->lengths[i]);
        if (!status)
            status = check_step(g, g->lengths[i], " after a rewind");
        if (!status)
            compare_logits(g, g->first[i], g->logits, true, "after a rewind, against the first time");
    }
    return status;
}

/* The longest prompt of the lengths, whole and in parts: the same states and the same next step. */
static plan_status check_chunks(growth *g, int64_t *length) {
    int at = -1;
    for (int i = 0; i < g->length_count; i++)
        if (g->lengths[i] <= 512)
            at = i;
    *length = at < 0 ? 0 : g->lengths[at];
    if (*length < 2 || plan_prefill_limit(g->p) < 2 || g->o->one_at_a_time) {
        *length = 0;
        return PLAN_OK;
    }
    plan_status status = plan_session_rewind(g->s, 0);
    if (!status)
        status = feed(g, 0, *length, 0);
    if (!status)
        status = read_states(g, 1);
    if (!status)
        status = plan_session_rewind(g->s, 0);
    if (!status)
        status = feed(g, 0, *length, 1);
    if (!status)
        status = read_states(g, 2);
    if (status)
        return status;
    compare_states(g, *length, false, "after a prompt in parts");
    status = check_step(g, *length, " after a prompt in parts");
    if (!status)
        compare_logits(g, g->first[at], g->logits, false, "after a prompt in parts, against the whole prompt");
    return status;
}

/* ---- the whole */

/* The lengths that the plan has a pinned step for. */
static bool find_lengths(growth *g) {
    int64_t capacity = plan_capacity(g->p), room = capacity ? capacity : 128;
    const int64_t wanted[LENGTHS] = {1, 2, room / 2, room - 1};
    for (int i = 0; i < LENGTHS; i++) {
        char name[40];
        uint64_t launches, bytes;
        snprintf(name, sizeof name, "decode@%" PRId64, wanted[i]);
        if (g->length_count && wanted[i] <= g->lengths[g->length_count - 1])
            continue;
        if (plan_step_cost(g->p, name, wanted[i], 1, &launches, &bytes) == PLAN_OK)
            g->lengths[g->length_count++] = wanted[i];
    }
    return g->length_count > 0;
}

static void set_tolerance(growth *g) {
    plan_dtype dtype;
    g->columns = run_vocabulary(g->p, &dtype);
    g->relative = g->absolute = dtype == PLAN_BF16 ? 1e-1 : dtype == PLAN_F16 ? 1e-2 : 1e-4;
    if (g->o->tolerance >= 0)
        g->relative = g->absolute = g->o->tolerance;
}

static bool open_growth(growth *g) {
    g->s = run_open(g->o, g->p);
    g->state_count = plan_state_count(g->p);
    g->states = run_allocate((size_t)g->state_count, sizeof *g->states);
    for (int i = 0; i < g->state_count; i++) {
        state *s = &g->states[i];
        if (plan_state(g->p, i, &s->t))
            return false;
        s->axis = plan_state_axis(g->p, i);
        s->grows = s->axis >= 0;
        s->width = s->t.bytes;
        for (int k = 0; k < s->t.rank; k++)
            s->width /= s->t.dims[k] ? (size_t)s->t.dims[k] : 1;
        s->before = run_allocate(s->t.bytes, 1);
        s->after = run_allocate(s->t.bytes, 1);
        s->pinned = run_allocate(s->t.bytes, 1);
    }
    for (int i = 0; i < LENGTHS; i++)
        g->first[i] = run_allocate(g->columns, sizeof(float));
    g->logits = run_allocate(g->columns, sizeof(float));
    g->other = run_allocate(g->columns, sizeof(float));
    return g->s != NULL;
}

static void close_growth(growth *g) {
    for (int i = 0; i < g->state_count; i++) {
        free(g->states[i].before);
        free(g->states[i].after);
        free(g->states[i].pinned);
    }
    for (int i = 0; i < LENGTHS; i++)
        free(g->first[i]);
    free(g->states);
    free(g->logits);
    free(g->other);
}

/* Whether the position may be set back: asked of a plan that has run a step. */
static bool can_rewind(growth *g) {
    bool can = plan_session_set_position(g->s, 2) == PLAN_OK && plan_session_rewind(g->s, 1) == PLAN_OK;
    return plan_session_rewind(g->s, 0) == PLAN_OK && can;
}

static plan_status check_all(growth *g, int64_t *chunked) {
    plan_status status = check_up(g);
    if (!status && g->rewinds && !g->failed)
        status = check_rewinds(g);
    return status || g->failed ? status : check_chunks(g, chunked);
}

static void report(const growth *g, int64_t chunked) {
    printf("decode: growth holds at lengths");
    for (int i = 0; i < g->length_count; i++)
        printf(" %" PRId64, g->lengths[i]);
    printf("%s, with rows beyond poisoned", g->rewinds ? ", after rewinds" : ", going forward only");
    if (chunked)
        printf(", after a prompt of %" PRId64 " in parts", chunked);
    printf("; %zu of %zu comparisons equal byte for byte, largest difference %.3g (allowed %.3g)\n", g->exact, g->compared, g->largest,
           g->absolute);
}

int run_check_growth(const run_options *o, plan *p) {
    growth g;
    int64_t chunked = 0;
    int result = 1;
    memset(&g, 0, sizeof g);
    g.o = o;
    g.p = p;
    set_tolerance(&g);
    if (!find_lengths(&g))
        return run_message("%s: it has no signature 'decode@1'; compile with gcc-plan --check-lengths", o->path);
    if (open_growth(&g)) {
        g.rewinds = can_rewind(&g);
        plan_status status = check_all(&g, &chunked);
        if (isatty(2))
            fprintf(stderr, "\r\033[K");
        if (status)
            run_failed(o);
        else if (g.failed)
            run_message("%s: decode: growth %s", o->path, g.what);
        else {
            report(&g, chunked);
            result = 0;
        }
    }
    if (plan_session_close(g.s))
        result = run_failed(o);
    close_growth(&g);
    return result;
}
