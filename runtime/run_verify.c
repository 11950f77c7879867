/* run_verify.c - plan-run --verify: every step is fed the golden token, and judged by itself. */
#include "run_golden.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rule {
    double tolerance, margin;
} rule;

typedef struct verdict {
    size_t tokens, equal, excused, wrong; /* excused: another token where the golden margin is small */
    size_t compared;                      /* reference logits files */
    double smallest_margin, largest_difference;
    size_t unsampled;                     /* the tail sampled something else than the largest logit */
    bool not_finite;
} verdict;

static rule rule_of(const run_options *o, plan_dtype dtype) {
    rule r = {1e-3, 0.01};
    if (dtype == PLAN_F16)
        r.tolerance = r.margin = 0.1;
    if (dtype == PLAN_BF16)
        r.tolerance = r.margin = 0.5;
    if (o->tolerance >= 0)
        r.tolerance = o->tolerance;
    if (o->margin >= 0)
        r.margin = o->margin;
    return r;
}

static void compare_logits(const run_golden *g, size_t step, const float *logits, size_t columns, verdict *v) {
    for (size_t i = 0; i < g->reference_count; i++) {
        const run_reference *r = &g->references[i];
        if (r->step != step)
            continue;
        v->compared++;
        if (!r->ids && r->count != columns)
            v->not_finite = true;
        for (size_t k = 0; k < r->count; k++) {
            size_t column = r->ids ? (size_t)r->ids[k] : k;
            double difference = column < columns ? fabs((double)logits[column] - (double)r->values[k]) : INFINITY;
            if (!(difference <= v->largest_difference)) /* a NaN too */
                v->largest_difference = difference;
        }
    }
}

static void judge(const run_golden *g, size_t prompt, size_t step, const float *logits, size_t columns, const rule *r, verdict *v) {
    double margin = g->margins[prompt][step];
    size_t token = run_argmax(logits, columns);
    v->tokens++;
    for (size_t i = 0; i < columns; i++)
        if (isnan(logits[i]))
            v->not_finite = true;
    if (margin < v->smallest_margin)
        v->smallest_margin = margin;
    if ((int64_t)token == g->tokens[prompt].ids[step])
        v->equal++;
    else if (margin < r->margin)
        v->excused++;
    else
        v->wrong++;
    if (prompt == 0)
        compare_logits(g, step, logits, columns, v);
}

/* The tail must have sampled the largest logit; ties may go to another column of the same value. */
static plan_status check_tail(plan *p, plan_session *s, const float *logits, size_t columns, verdict *v) {
    int64_t sampled;
    if (!plan_has_sampling(p))
        return PLAN_OK;
    plan_status status = plan_session_tokens(s, &sampled, 1);
    if (!status && (sampled < 0 || (size_t)sampled >= columns || logits[sampled] < logits[run_argmax(logits, columns)]))
        v->unsampled++;
    return status;
}

static plan_status verify_prompt(const run_options *o, plan *p, plan_session *s, const run_golden *g, size_t prompt,
                                 float *logits, size_t columns, const rule *r, verdict *v) {
    const run_ids *tokens = &g->tokens[prompt];
    plan_status status = plan_session_rewind(s, 0);
    for (size_t i = 0; i < tokens->count && !status; i++) {
        status = i ? run_token(o, s, tokens->ids[i - 1]) : run_feed(o, s, g->prompts[prompt].ids, g->prompts[prompt].count);
        if (!status)
            status = plan_session_logits(s, logits, columns);
        if (!status)
            judge(g, prompt, i, logits, columns, r, v);
        if (!status)
            status = check_tail(p, s, logits, columns, v);
    }
    return status;
}

static bool is_good(const verdict *v, const rule *r) {
    return v->tokens > 0 && v->wrong == 0 && v->unsampled == 0 && !v->not_finite && v->largest_difference <= r->tolerance;
}

static void print_text(size_t prompt, const verdict *v, const rule *r) {
    printf("prompt %zu: %zu of %zu tokens equal", prompt + 1, v->equal, v->tokens);
    if (v->excused)
        printf(" (%zu others at margins below %.3g)", v->excused, r->margin);
    printf(", smallest margin %.3g", v->smallest_margin);
    if (v->compared)
        printf(", largest logit difference %.3g (tolerance %.3g)", v->largest_difference, r->tolerance);
    if (v->unsampled)
        printf(", %zu tokens sampled that are not the largest logit", v->unsampled);
    if (v->not_finite)
        printf(", logits are not numbers or of another length");
    printf("%s\n", is_good(v, r) ? "" : "  FAILED");
}

static void print_json(size_t prompt, const verdict *v, const rule *r) {
    printf("%s{\"prompt\": %zu, \"tokens\": %zu, \"equal\": %zu, \"excused\": %zu, \"wrong\": %zu, \"not_sampled\": %zu, "
           "\"smallest_margin\": %.6g, \"logits_compared\": %zu, ",
           prompt ? ", " : "", prompt + 1, v->tokens, v->equal, v->excused, v->wrong, v->unsampled, v->smallest_margin, v->compared);
    if (isfinite(v->largest_difference))
        printf("\"largest_difference\": %.6g", v->largest_difference);
    else
        printf("\"largest_difference\": null");
    printf(", \"tolerance\": %.6g, \"margin\": %.6g, \"good\": %s}", r->tolerance, r->margin, is_good(v, r) ? "true" : "false");
}

static int verify(const run_options *o, plan *p, plan_session *s, const run_golden *g) {
    plan_dtype dtype;
    size_t columns = run_vocabulary(p, &dtype), compared = 0;
    const rule r = rule_of(o, dtype);
    int result = 0;
    if (columns == 0)
        return run_message("%s: decode has no output that could be the logits", o->path);
    float *logits = run_allocate(columns, sizeof *logits);
    if (o->json)
        printf("{\"prompts\": [");
    for (size_t i = 0; i < g->count; i++) {
        verdict v = {.smallest_margin = INFINITY};
        if (verify_prompt(o, p, s, g, i, logits, columns, &r, &v)) {
            result = run_failed(o);
            break;
        }
        compared += v.compared;
        if (o->json)
            print_json(i, &v, &r);
        else
            print_text(i, &v, &r);
        if (!is_good(&v, &r))
            result = 1;
    }
    if (!result && g->reference_count && compared != g->reference_count)
        result = run_message("%s: %zu of %zu files of logits belong to no step", o->verify, g->reference_count - compared,
                             g->reference_count);
    if (o->json)
        printf("], \"verified\": %s}\n", result ? "false" : "true");
    else
        printf("%s\n", result ? "not verified" : "verified");
    free(logits);
    return result;
}

int run_verify(const run_options *o, plan *p) {
    run_golden g;
    int result = run_golden_read(o->verify, &g);
    plan_session *s = result ? NULL : run_open(o, p);
    if (s)
        result = verify(o, p, s, &g);
    else
        result = 1;
    if (plan_session_close(s))
        result = run_failed(o);
    run_golden_free(&g);
    return result;
}
