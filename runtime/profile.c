/* profile.c - where a step's time goes: each launch of a signature timed by itself, inside a graph.
 *
 * A launch is repeated in a chain, as it stands in the step's own graph, and the chain is timed by events; so the figure
 * holds what a node costs, but finds its weights in the cache where they fit. */
#include "internal.h"

#include <string.h>

enum { MAX_REPEATS = 1000 };

static plan_status time_launch(plan_session *s, const plan_driver_launch *l, int repeats, double *microseconds) {
    plan_driver *d = s->p->driver;
    plan_driver_graph *graph = NULL;
    plan_driver_exec *exec = NULL;
    plan_status status = d->graph_open(d, &graph);
    for (uint32_t i = 0; i < (uint32_t)repeats && !status; i++) {
        uint32_t before = i ? i - 1 : 0;
        status = d->graph_add(d, graph, l, &before, i != 0);
    }
    if (!status)
        status = d->graph_instantiate(d, graph, (uint32_t)repeats, &exec);
    if (!status)
        status = d->graph_launch(d, s->stream, exec); /* once before, for the caches */
    if (!status)
        status = d->event_record(d, s->stream, s->from);
    if (!status)
        status = d->graph_launch(d, s->stream, exec);
    if (!status)
        status = d->event_record(d, s->stream, s->to);
    if (!status)
        status = d->synchronise(d, s->stream);
    if (!status)
        status = d->event_elapsed(d, s->from, s->to, microseconds);
    *microseconds /= repeats;
    if (exec)
        d->exec_close(d, exec);
    if (graph)
        d->graph_close(d, graph);
    return status;
}

/* The launches move the position, the count of tokens and the lengths of rows; all go back. */
static plan_status restore(plan_session *s) {
    plan_status status = plan_session_write_slot(s, PLAN_SLOT_POSITION, s->mirror[PLAN_SLOT_POSITION]);
    if (!status)
        status = plan_session_write_slot(s, PLAN_SLOT_SAMPLED, s->mirror[PLAN_SLOT_SAMPLED]);
    return status ? status : plan_session_restore_rows(s);
}

static plan_status profile(plan_session *s, const char *name, int repeats, double *microseconds, size_t count) {
    plan_driver *d = s->p->driver;
    uint32_t signature;
    plan_status status = plan_find_signature(s->p, name, &signature);
    if (status)
        return status;
    const plan_signature_record *g = &s->p->view.signatures[signature];
    if (repeats < 1 || repeats > MAX_REPEATS || count != g->launch_count)
        return plan_fail(PLAN_ERROR_ARGUMENT, "profile: expected 1 to %d repeats and %u figures, found %d and %zu", MAX_REPEATS,
                         g->launch_count, repeats, count);
    if (!s->warmed)
        return plan_fail(PLAN_ERROR_STATE, "the session was not warmed; call plan_session_warm first");
    if (!s->from)
        status = d->event_open(d, &s->from);
    if (!status && !s->to)
        status = d->event_open(d, &s->to);
    for (uint32_t i = 0; i < g->launch_count && !status; i++) {
        plan_driver_launch l;
        plan_describe_launch(s->p, g->launch + i, s->args, &l);
        microseconds[i] = 0;
        if (plan_sets_condition(&l)) /* there is no node whose condition it could set */
            continue;
        status = time_launch(s, &l, repeats, &microseconds[i]);
        if (!status)
            status = restore(s);
    }
    return status;
}

plan_status plan_session_profile(plan_session *s, const char *signature, int repeats, double *microseconds, size_t count) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, profile(s, signature, repeats, microseconds, count));
}

plan_status plan_launch_info(const plan *p, const char *signature, size_t index, const char **kernel, const char **label,
                             uint64_t *bytes) {
    uint32_t number;
    if (!p || !signature || !kernel || !label || !bytes)
        return plan_fail(PLAN_ERROR_ARGUMENT, "plan_launch_info: expected no null argument");
    plan_status status = plan_find_signature(p, signature, &number);
    if (status)
        return status;
    const plan_signature_record *g = &p->view.signatures[number];
    if (index >= g->launch_count)
        return plan_fail(PLAN_ERROR_RANGE, "launch %zu of signature '%s': expected below %u", index, signature, g->launch_count);
    const plan_launch_record *l = &p->view.launches[g->launch + index];
    *kernel = PLAN_TEXT(p, p->view.kernels[l->kernel].name);
    *label = PLAN_TEXT(p, l->label);
    *bytes = l->bytes_fixed;
    return PLAN_OK;
}
