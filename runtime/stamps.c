/* stamps.c - what the blocks of a step's launches stamped, in plans that were compiled with timers. */
#include "internal.h"

#include <inttypes.h>

static_assert(sizeof(plan_stamp) == PLAN_STAMP_BYTES, "kernels write plan_stamp");

/* A launch in a block that did not run has nothing of an earlier step. Launches outside of blocks write all that they have. */
plan_status plan_session_clear_stamps(plan_session *s, uint32_t signature) {
    plan_driver *d = s->p->driver;
    const plan_view *v = &s->p->view;
    const plan_signature_record *g = &v->signatures[signature];
    plan_status status = PLAN_OK;
    for (uint32_t i = g->block; s->p->timers && i < g->block + g->block_count && !status; i++)
        for (uint32_t k = v->blocks[i].launch; k < v->blocks[i].launch + v->blocks[i].launch_count && !status; k++) {
            const plan_launch_record *l = &v->launches[g->launch + k];
            const plan_arg_record *a = plan_launch_timers(v, l);
            if (a)
                status = d->zero(d, s->stream, s->base[a->region] + a->value, plan_launch_blocks(l) * PLAN_STAMP_BYTES);
        }
    return status;
}

static plan_status stamps(plan_session *s, const char *name, size_t launch, plan_stamp *out, size_t room, size_t *count) {
    plan_driver *d = s->p->driver;
    const plan_view *v = &s->p->view;
    uint32_t signature;
    plan_status status = plan_find_signature(s->p, name, &signature);
    if (status)
        return status;
    const plan_signature_record *g = &v->signatures[signature];
    if (!count || (!out && room))
        return plan_fail(PLAN_ERROR_ARGUMENT, "stamps: expected a place for %s, found NULL", count ? "the stamps" : "their count");
    if (g->kind == PLAN_SIGNATURE_LOAD)
        return plan_fail(PLAN_ERROR_STATE, "signature '%s' runs at load only", name);
    if (launch >= g->launch_count)
        return plan_fail(PLAN_ERROR_RANGE, "launch %zu of signature '%s': expected below %u", launch, name, g->launch_count);
    const plan_launch_record *l = &v->launches[g->launch + launch];
    const plan_arg_record *a = plan_launch_timers(v, l);
    if (!a)
        return plan_fail(PLAN_ERROR_STATE, "stamps: the plan has no timers; compile it with gcc-plan --timers");
    if (out && room < plan_launch_blocks(l))
        return plan_fail(PLAN_ERROR_RANGE, "stamps: launch %zu of signature '%s' has %" PRIu64 " blocks, found room for %zu", launch, name,
                         plan_launch_blocks(l), room);
    if (out && s->last != signature)
        return plan_fail(PLAN_ERROR_STATE, "stamps: expected that the session's last step was '%s', found %s", name,
                         s->last == PLAN_NONE ? "none" : PLAN_TEXT(s->p, v->signatures[s->last].name));
    if (out)
        status = d->from_device(d, s->stream, out, s->base[a->region] + a->value, plan_launch_blocks(l) * PLAN_STAMP_BYTES);
    if (!status)
        *count = (size_t)plan_launch_blocks(l);
    return status;
}

plan_status plan_session_stamps(plan_session *s, const char *signature, size_t launch, plan_stamp *out, size_t room, size_t *count) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, stamps(s, signature, launch, out, room, count));
}
