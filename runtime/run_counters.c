/* run_counters.c - plan-run --counters: what the driver did for some steps, and what the captured graphs hold. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps of decode after a prompt; the counters before and after them. */
static plan_status count_tokens(const run_options *o, plan *p, plan_session *s, const run_ids *prompt, int64_t steps, plan_counters *a,
                                plan_counters *b) {
    plan_status status = run_feed(o, s, prompt->ids, prompt->count);
    if (!status)
        status = plan_session_wait(s);
    if (!status)
        status = plan_session_counters(s, a);
    if (plan_has_sampling(p)) {
        if (!status)
            status = o->eager ? plan_session_eager(s, steps) : plan_session_replay(s, steps);
    } else
        for (int64_t i = 0; i < steps && !status; i++)
            status = run_token(o, s, prompt->ids[(size_t)i % prompt->count]);
    return status ? status : plan_session_counters(s, b);
}

/* The same for a plan of a network without tokens, whose inputs are as they are. */
static plan_status count_runs(const run_options *o, plan_session *s, int64_t steps, plan_counters *a, plan_counters *b) {
    plan_status status = plan_session_set_eager(s, o->eager);
    if (!status)
        status = plan_session_counters(s, a);
    for (int64_t i = 0; i < steps && !status; i++)
        status = plan_session_run(s, "main", NULL, NULL, 0);
    return status ? status : plan_session_counters(s, b);
}

/* Before anything waits for the steps. */
int run_counters(const run_options *o, plan *p) {
    run_ids prompt;
    int result = 1;
    int64_t steps = o->generate >= 0 ? o->generate : 64;
    bool tokens = plan_input_count(p, "decode") >= 0;
    plan_counters a, b;
    if (run_prompt(o, &prompt))
        return 1;
    plan_session *s = run_open(o, p);
    if (!s)
        goto done;
    if (tokens ? count_tokens(o, p, s, &prompt, steps, &a, &b) : count_runs(o, s, steps, &a, &b))
        run_failed(o);
    else {
        printf("%" PRId64 " %s: %" PRIu64 " graph launches, %" PRIu64 " eager launches, %" PRIu64 " allocations, %" PRIu64
               " synchronisations, %" PRIu64 " copies\n",
               steps, tokens ? "tokens" : "runs", b.graph_launches - a.graph_launches, b.eager_launches - a.eager_launches,
               b.driver_allocations - a.driver_allocations, b.driver_synchronisations - a.driver_synchronisations,
               b.driver_copies - a.driver_copies);
        printf("graphs: %" PRIu64 " captured, %" PRIu64 " IF nodes, %" PRIu64 " WHILE nodes; %" PRIu64 " conditions read by the host\n", b.captures,
               b.if_nodes, b.while_nodes, b.decisions - a.decisions);
        result = 0;
    }
done:
    if (plan_session_close(s))
        result = run_failed(o);
    free(prompt.ids);
    return result;
}
