/* session.c - one sequence: its memory, its resolved arguments, its graphs. Opened, warmed, bound, captured (capture.c), closed.
 * All device memory is allocated by open; nothing after it allocates any. */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

static const char *const region_names[PLAN_REGION_COUNT] = {"weights", "metadata", "load", "state", "arena", "io", "ring"};

plan_status plan_session_enter(plan_session *s) {
    plan_error_clear();
    if (!s)
        return plan_fail(PLAN_ERROR_ARGUMENT, "session: expected a session, found NULL");
    int idle = 0;
    if (!atomic_compare_exchange_strong(&s->busy, &idle, 1))
        return plan_fail(PLAN_ERROR_BUSY, "the session is inside another call; a session is used by one thread at a time");
    return PLAN_OK;
}

plan_status plan_session_leave(plan_session *s, plan_status status) {
    atomic_store(&s->busy, 0);
    if (status == PLAN_OK)
        plan_error_clear();
    return status;
}

plan_status plan_session_finish(plan_session *s) {
    plan_driver *d = s->p->driver;
    plan_status status = d->synchronise(d, s->stream);
    return status ? status : d->check(d);
}

int64_t *plan_session_values(plan_session *s, uint32_t signature) {
    return s->values + (size_t)signature * s->p->view.symbol_count;
}

plan_address plan_session_address(const plan_session *s, uint32_t binding) {
    const plan_binding_record *b = &s->p->view.bindings[binding];
    return s->bound[binding].address ? s->bound[binding].address : s->base[b->region] + b->offset;
}

static bool holds(const plan_binding_record *b, uint64_t offset) {
    return b->region == PLAN_REGION_IO && offset >= b->offset && offset - b->offset < b->bytes;
}

/* The binding that byte OFFSET of region io belongs to, as a launch of the signature sees it: its own first, since
 * signatures may share bytes; then another's (the tail of a prefill writes decode's token). NONE: nobody's. */
static uint32_t find_owner(const plan_view *v, const plan_signature_record *s, uint64_t offset) {
    for (uint32_t i = s->binding; i < s->binding + s->binding_count; i++)
        if (holds(&v->bindings[i], offset))
            return i;
    for (uint32_t i = 0; i < v->binding_count; i++)
        if (holds(&v->bindings[i], offset))
            return i;
    return PLAN_NONE;
}

/* (region, offset) becomes an address, for all launches of a signature. */
static void resolve_signature(plan_session *s, const plan_signature_record *g) {
    const plan_view *v = &s->p->view;
    for (uint32_t i = g->launch; i < g->launch + g->launch_count; i++)
        for (uint32_t k = v->launches[i].arg; k < v->launches[i].arg + v->launches[i].arg_count; k++) {
            const plan_arg_record *a = &v->args[k];
            s->args[k] = a->value;
            if (!plan_arg_is_place(a))
                continue;
            s->args[k] += s->base[a->region];
            uint32_t owner = s->any_bound && a->region == PLAN_REGION_IO ? find_owner(v, g, a->value) : PLAN_NONE;
            if (owner != PLAN_NONE && s->bound[owner].address)
                s->args[k] = s->bound[owner].address + (a->value - v->bindings[owner].offset);
        }
}

static void resolve(plan_session *s) {
    const plan_view *v = &s->p->view;
    for (uint32_t i = 0; i < v->signature_count; i++)
        if (v->signatures[i].kind != PLAN_SIGNATURE_LOAD)
            resolve_signature(s, &v->signatures[i]);
}

static plan_status allocate_tables(plan_session *s) {
    const plan_view *v = &s->p->view;
    const plan_allocator *a = &s->p->allocator;
    uint64_t values;
    if (!plan_mul_u64(v->signature_count, v->symbol_count, &values) || values > SIZE_MAX / sizeof(int64_t))
        return plan_fail(PLAN_ERROR_MEMORY, "session: too many symbols");
    s->args = plan_host_allocate(a, v->arg_count, sizeof *s->args);
    s->execs = plan_host_allocate(a, v->segment_count, sizeof(plan_driver_exec *));
    s->bound = plan_host_allocate(a, v->binding_count, sizeof *s->bound);
    s->mirror = plan_host_allocate(a, (size_t)v->model->slot_count + PLAN_SLOT_FIRST_FREE, sizeof *s->mirror);
    s->values = plan_host_allocate(a, (size_t)values, sizeof *s->values);
    s->step_values = plan_host_allocate(a, v->step_count, sizeof *s->step_values);
    s->row_fed = plan_host_allocate(a, v->model->rows, sizeof *s->row_fed);
    if (s->args && s->execs && s->bound && s->mirror && s->values && s->step_values && s->row_fed)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_MEMORY, "session: no memory for its tables");
}

static plan_status allocate_regions(plan_session *s) {
    plan_driver *d = s->p->driver;
    plan_status status = PLAN_OK;
    void *ring = NULL;
    s->base[PLAN_REGION_WEIGHTS] = s->p->base[PLAN_REGION_WEIGHTS];
    s->base[PLAN_REGION_METADATA] = s->p->base[PLAN_REGION_METADATA];
    for (uint32_t region = PLAN_REGION_STATE; region <= PLAN_REGION_IO && !status; region++) {
        uint64_t bytes = s->p->view.regions[region].bytes;
        if (!bytes)
            continue;
        status = d->allocate(d, bytes, region_names[region], &s->base[region]);
        if (!status)
            s->device_bytes += bytes;
        if (!status && region != PLAN_REGION_ARENA)
            status = d->zero(d, s->stream, s->base[region], bytes);
    }
    uint64_t bytes = s->p->view.regions[PLAN_REGION_RING].bytes;
    if (!status && bytes)
        status = d->allocate_pinned(d, bytes, region_names[PLAN_REGION_RING], &ring, &s->base[PLAN_REGION_RING]);
    s->ring = ring;
    return status;
}

static void drop_graphs(plan_session *s) {
    plan_driver *d = s->p->driver;
    for (uint32_t i = 0; s->execs && i < s->p->view.segment_count; i++) {
        if (!s->execs[i])
            continue;
        d->exec_close(d, s->execs[i]);
        s->execs[i] = NULL;
        if (s->captured)
            s->invalidations++;
    }
    s->captured = false;
}

static void close_session(plan_session *s) {
    plan *p = s->p;
    plan_driver *d = p->driver;
    drop_graphs(s);
    for (uint32_t i = 0; s->bound && i < p->view.binding_count; i++)
        if (s->bound[i].address)
            d->disown(d, s->bound[i].address);
    for (uint32_t region = PLAN_REGION_STATE; region <= PLAN_REGION_IO; region++)
        if (s->base[region])
            d->release(d, s->base[region]);
    if (s->ring)
        d->release_pinned(d, s->ring);
    if (s->from)
        d->event_close(d, s->from);
    if (s->to)
        d->event_close(d, s->to);
    if (s->stream)
        d->stream_close(d, s->stream);
    plan_host_release(&p->allocator, s->args);
    plan_host_release(&p->allocator, s->execs);
    plan_host_release(&p->allocator, s->bound);
    plan_host_release(&p->allocator, s->mirror);
    plan_host_release(&p->allocator, s->values);
    plan_host_release(&p->allocator, s->step_values);
    plan_host_release(&p->allocator, s->row_fed);
    plan_host_release(&p->allocator, s);
    atomic_fetch_sub(&p->sessions, 1);
}

plan_status plan_session_open(plan *p, void *stream, plan_session **out) {
    plan_error_clear();
    if (!out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the session, found NULL");
    *out = NULL;
    if (!p)
        return plan_fail(PLAN_ERROR_ARGUMENT, "plan: expected a plan, found NULL");
    plan_session *s = plan_host_allocate(&p->allocator, 1, sizeof *s);
    if (!s)
        return plan_fail(PLAN_ERROR_MEMORY, "no memory for a session");
    plan_driver *d = p->driver;
    s->p = p;
    s->last = PLAN_NONE;
    atomic_fetch_add(&p->sessions, 1);
    plan_status status = allocate_tables(s);
    if (!status)
        status = d->stream_open(d, stream, &s->stream);
    if (!status)
        status = allocate_regions(s);
    if (!status)
        status = d->event_open(d, &s->from);
    if (!status)
        status = d->event_open(d, &s->to);
    if (!status)
        status = d->synchronise(d, s->stream); /* the zeros are there, also for callers on other streams */
    if (status) {
        close_session(s);
        return status;
    }
    resolve(s);
    plan_log_text(p, 3, "session: %" PRIu64 " bytes on the device", s->device_bytes);
    *out = s;
    plan_error_clear();
    return PLAN_OK;
}

plan_status plan_session_warm(plan_session *s) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    status = plan_load_functions(s->p, PLAN_NONE);
    if (!status)
        s->warmed = true;
    return plan_session_leave(s, status);
}

static plan_status capture(plan_session *s) {
    plan_status status = PLAN_OK;
    const plan_view *v = &s->p->view;
    if (!s->warmed)
        return plan_fail(PLAN_ERROR_STATE, "capture: the session was not warmed; call plan_session_warm first");
    for (uint32_t i = 0; i < v->signature_count && !status; i++)
        if (v->signatures[i].kind != PLAN_SIGNATURE_LOAD)
            status = plan_session_capture_signature(s, i);
    if (status)
        drop_graphs(s); /* all or nothing */
    else
        s->captured = true;
    plan_log_text(s->p, 3, "captured %" PRIu64 " graphs", s->captures);
    return status;
}

plan_status plan_session_capture(plan_session *s) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    status = s->captured ? plan_fail(PLAN_ERROR_STATE, "capture: already captured; call plan_session_recapture") : capture(s);
    return plan_session_leave(s, status);
}

/* Addresses that were given after the last capture take effect. */
static plan_status apply_pending(plan_session *s) {
    plan_driver *d = s->p->driver;
    for (uint32_t i = 0; i < s->p->view.binding_count; i++) {
        plan_bound *b = &s->bound[i];
        if (!b->pending)
            continue;
        plan_status status = d->adopt(d, b->pending, b->pending_bytes);
        if (status)
            return status;
        if (b->address)
            d->disown(d, b->address);
        b->address = b->pending;
        b->bytes = b->pending_bytes;
        b->pending = 0;
        s->any_bound = true;
    }
    resolve(s);
    return PLAN_OK;
}

static plan_status recapture(plan_session *s) {
    if (!s->warmed)
        return plan_fail(PLAN_ERROR_STATE, "recapture: the session was not warmed; call plan_session_warm first");
    /* The old graphs may still run. */
    plan_status status = plan_session_finish(s);
    if (status)
        return status;
    drop_graphs(s);
    status = apply_pending(s);
    return status ? status : capture(s);
}

plan_status plan_session_recapture(plan_session *s) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, recapture(s));
}

plan_status plan_find_binding(const plan *p, uint32_t signature, const char *name, int kind, uint32_t *out) {
    const plan_signature_record *g = &p->view.signatures[signature];
    if (!name)
        return plan_fail(PLAN_ERROR_ARGUMENT, "name: expected a name, found NULL");
    for (uint32_t i = g->binding; i < g->binding + g->binding_count; i++)
        if ((kind < 0 || p->view.bindings[i].kind == (uint32_t)kind) && strcmp(PLAN_TEXT(p, p->view.bindings[i].name), name) == 0) {
            *out = i;
            return PLAN_OK;
        }
    return plan_fail(PLAN_ERROR_NAME, "signature '%s' has no %s '%.100s'", PLAN_TEXT(p, g->name),
                     kind == PLAN_BINDING_INPUT    ? "input"
                     : kind == PLAN_BINDING_OUTPUT ? "output"
                                                   : "input or output", name);
}

#define BIND_ALIGN 16u /* kernels read vectors of 16 bytes */

/* An input that is an output too, as it is, has two bindings of one name and one place: they move together. */
static void set_pending(plan_session *s, uint32_t signature, const char *name, plan_address wanted, size_t bytes) {
    const plan_signature_record *g = &s->p->view.signatures[signature];
    for (uint32_t i = g->binding; i < g->binding + g->binding_count; i++)
        if (strcmp(PLAN_TEXT(s->p, s->p->view.bindings[i].name), name) == 0) {
            s->bound[i].pending = wanted;
            s->bound[i].pending_bytes = bytes;
        }
}

static plan_status bind(plan_session *s, const char *signature, const char *name, void *address, size_t bytes) {
    uint32_t number, binding;
    plan_status status = plan_find_signature(s->p, signature, &number);
    if (!status)
        status = plan_find_binding(s->p, number, name, -1, &binding);
    if (status)
        return status;
    uint64_t needed = s->p->view.bindings[binding].bytes;
    plan_address wanted = (plan_address)(uintptr_t)address;
    if (!address || wanted % BIND_ALIGN)
        return plan_fail(PLAN_ERROR_ARGUMENT, "binding '%s': expected an address that is a multiple of %u, found 0x%" PRIx64, name,
                         BIND_ALIGN, wanted);
    if (bytes < needed)
        return plan_fail(PLAN_ERROR_RANGE, "binding '%s': expected at least %" PRIu64 " bytes, found %zu", name, needed, bytes);
    if (needed == 0) /* no kernel reads it */
        return PLAN_OK;
    if (s->p->view.bindings[binding].region != PLAN_REGION_IO)
        return plan_fail(PLAN_ERROR_BINDING, "binding '%s': lies in another region than io and cannot be moved", name);
    if (s->captured && s->bound[binding].address == wanted)
        return PLAN_OK;
    set_pending(s, number, name, wanted, bytes);
    if (s->captured)
        return plan_fail(PLAN_ERROR_BINDING, "binding '%s': the captured graphs hold address 0x%" PRIx64 ", not 0x%" PRIx64
                         "; call plan_session_recapture", name, plan_session_address(s, binding), wanted);
    return apply_pending(s);
}

plan_status plan_session_bind(plan_session *s, const char *signature, const char *name, void *address, size_t bytes) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, bind(s, signature, name, address, bytes));
}

plan_status plan_session_wait(plan_session *s) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, plan_session_finish(s));
}

plan_status plan_session_close(plan_session *s) {
    plan_error_clear();
    if (!s)
        return PLAN_OK;
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    /* Freed in any case: what fails here is what the session's work did before. */
    status = plan_session_finish(s);
    close_session(s);
    return status;
}

plan_status plan_session_counters(plan_session *s, plan_counters *out) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    if (!out)
        return plan_session_leave(s, plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the counters, found NULL"));
    plan_driver *d = s->p->driver;
    memset(out, 0, sizeof *out);
    out->captures = s->captures;
    out->replays = s->replays;
    out->graph_launches = s->graph_launches;
    out->eager_launches = s->eager_launches;
    out->invalidations = s->invalidations;
    out->driver_allocations = atomic_load(&d->allocations);
    out->driver_synchronisations = atomic_load(&d->synchronisations);
    out->driver_copies = atomic_load(&d->copies);
    out->device_bytes = s->device_bytes;
    out->if_nodes = s->if_nodes;
    out->while_nodes = s->while_nodes;
    out->decisions = s->decisions;
    return plan_session_leave(s, PLAN_OK);
}
