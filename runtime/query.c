/* query.c - what a plan says of itself: target, limits, tensors, costs, and the bandwidth of its device. */
#include "internal.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

const char *plan_target(const plan *p) { return p ? p->driver->target : ""; }
int64_t plan_capacity(const plan *p) { return p ? p->view.model->capacity : 0; }
int64_t plan_prefill_limit(const plan *p) { return p ? p->prefill_limit : 0; }
int plan_has_sampling(const plan *p) { return p ? (int)p->view.model->sampling : 0; }

int plan_signature_count(const plan *p) { return p ? (int)p->view.signature_count : 0; }

const char *plan_signature_name(const plan *p, int index) {
    return p && index >= 0 && (uint32_t)index < p->view.signature_count ? PLAN_TEXT(p, p->view.signatures[index].name) : NULL;
}

plan_status plan_device_bytes(plan *p, uint64_t *out) {
    plan_error_clear();
    if (!p || !out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "%s: expected a %s, found NULL", p ? "out" : "plan", p ? "place for the bytes" : "plan");
    return p->driver->in_use(p->driver, out);
}

plan_status plan_weight_bytes(const plan *p, uint64_t *out) {
    plan_error_clear();
    if (!p || !out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "plan_weight_bytes: expected a plan and a place for the result, found NULL");
    *out = p->view.regions[PLAN_REGION_WEIGHTS].bytes + p->view.regions[PLAN_REGION_METADATA].bytes;
    return PLAN_OK;
}

static void fill_dims(const plan *p, uint32_t first, uint32_t count, plan_tensor *out) {
    out->rank = (int)count; /* validation: at most 8 */
    for (uint32_t i = 0; i < count && i < 8; i++) {
        out->dims[i] = p->view.dims[first + i].upper;
        out->strides[i] = p->view.dims[first + i].stride;
    }
}

/* The number of bindings of KIND in the signature; with WANTED >= 0 also which binding is the WANTED-th of them. */
static int count_bindings(const plan *p, const char *signature, uint32_t kind, int wanted, uint32_t *found, plan_status *status) {
    uint32_t number;
    int count = 0;
    plan_error_clear();
    *status = p ? plan_find_signature(p, signature, &number) : plan_fail(PLAN_ERROR_ARGUMENT, "plan: expected a plan, found NULL");
    if (*status)
        return -1;
    const plan_signature_record *g = &p->view.signatures[number];
    for (uint32_t i = g->binding; i < g->binding + g->binding_count; i++)
        if (p->view.bindings[i].kind == kind && count++ == wanted)
            *found = i;
    return count;
}

static plan_status describe_binding(const plan *p, const char *signature, uint32_t kind, int index, plan_tensor *out) {
    plan_status status;
    uint32_t found = PLAN_NONE;
    int count = count_bindings(p, signature, kind, index, &found, &status);
    if (status)
        return status;
    if (!out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the tensor, found NULL");
    if (found == PLAN_NONE)
        return plan_fail(PLAN_ERROR_RANGE, "%s: expected 0 to %d, found %d", kind == PLAN_BINDING_INPUT ? "input" : "output",
                         count - 1, index);
    const plan_binding_record *b = &p->view.bindings[found];
    memset(out, 0, sizeof *out);
    out->name = PLAN_TEXT(p, b->name);
    out->dtype = (plan_dtype)b->dtype;
    out->bytes = (size_t)b->bytes;
    out->feed = (int)b->feed;
    fill_dims(p, b->dim, b->dim_count, out);
    return PLAN_OK;
}

int plan_input_count(const plan *p, const char *signature) {
    plan_status status;
    return count_bindings(p, signature, PLAN_BINDING_INPUT, -1, NULL, &status);
}

int plan_output_count(const plan *p, const char *signature) {
    plan_status status;
    return count_bindings(p, signature, PLAN_BINDING_OUTPUT, -1, NULL, &status);
}

plan_status plan_input(const plan *p, const char *signature, int index, plan_tensor *out) {
    return describe_binding(p, signature, PLAN_BINDING_INPUT, index, out);
}

plan_status plan_output(const plan *p, const char *signature, int index, plan_tensor *out) {
    return describe_binding(p, signature, PLAN_BINDING_OUTPUT, index, out);
}

int plan_state_count(const plan *p) { return p ? (int)p->view.state_count : 0; }

plan_status plan_state(const plan *p, int index, plan_tensor *out) {
    plan_error_clear();
    if (!p || !out)
        return plan_fail(PLAN_ERROR_ARGUMENT, "plan_state: expected a plan and a place for the result, found NULL");
    if (index < 0 || (uint32_t)index >= p->view.state_count)
        return plan_fail(PLAN_ERROR_RANGE, "state: expected 0 to %" PRId64 ", found %d", (int64_t)p->view.state_count - 1, index);
    const plan_state_record *s = &p->view.states[index];
    memset(out, 0, sizeof *out);
    out->name = PLAN_TEXT(p, s->input);
    out->dtype = (plan_dtype)s->dtype;
    out->bytes = (size_t)s->bytes;
    fill_dims(p, s->dim, s->dim_count, out);
    return PLAN_OK;
}

int plan_state_axis(const plan *p, int index) {
    if (!p || index < 0 || (uint32_t)index >= p->view.state_count || p->view.states[index].growing_axis == PLAN_NONE)
        return -1;
    return (int)p->view.states[index].growing_axis;
}

plan_status plan_step_cost(const plan *p, const char *signature, int64_t position, int64_t tokens, uint64_t *launches,
                           uint64_t *bytes) {
    uint32_t number;
    plan_error_clear();
    if (!p || !launches || !bytes)
        return plan_fail(PLAN_ERROR_ARGUMENT, "plan_step_cost: expected a plan and places for the results, found NULL");
    plan_status status = plan_find_signature(p, signature, &number);
    if (status)
        return status;
    if (position < 0 || tokens < 0 || tokens > INT64_MAX - position)
        return plan_fail(PLAN_ERROR_RANGE, "position and tokens: expected 0 or more, found %" PRId64 " and %" PRId64, position,
                         tokens);
    const plan_signature_record *g = &p->view.signatures[number];
    uint64_t sum = 0, rows = (uint64_t)(position + tokens);
    for (uint32_t i = g->launch; i < g->launch + g->launch_count; i++) {
        uint64_t part;
        if (!plan_mul_u64(p->view.launches[i].bytes_row, rows, &part) || !plan_add_u64(sum, part, &sum) ||
            !plan_add_u64(sum, p->view.launches[i].bytes_fixed, &sum))
            return plan_fail(PLAN_ERROR_RANGE, "signature '%s': its bytes do not fit 64 bits", signature);
    }
    *launches = g->launch_count;
    *bytes = sum;
    return PLAN_OK;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Copies until a fifth of a second has passed. */
static plan_status time_copies(plan_driver *d, plan_driver_stream *stream, plan_address to, plan_address from, uint64_t bytes,
                               double *out) {
    plan_status status = d->on_device(d, stream, to, from, bytes); /* the first touches the pages */
    if (!status)
        status = d->synchronise(d, stream);
    double start = seconds(), spent = 0, moved = 0;
    while (!status && spent < 0.2) {
        for (int i = 0; i < 4 && !status; i++)
            status = d->on_device(d, stream, to, from, bytes);
        if (!status)
            status = d->synchronise(d, stream);
        moved += 4 * 2 * (double)bytes;
        spent = seconds() - start;
    }
    if (!status)
        *out = moved / spent;
    return status;
}

plan_status plan_measure_bandwidth(plan *p, double *bytes_per_second) {
    plan_error_clear();
    if (!p || !bytes_per_second)
        return plan_fail(PLAN_ERROR_ARGUMENT, "plan_measure_bandwidth: expected a plan and a place for the result, found NULL");
    plan_driver *d = p->driver;
    plan_address from = 0, to = 0;
    plan_driver_stream *stream = NULL;
    uint64_t bytes = UINT64_C(1) << (strcmp(d->target, "host") == 0 ? 26 : 29); /* well beyond the caches */
    plan_status status = d->allocate(d, bytes, "bandwidth", &from);
    if (!status)
        status = d->allocate(d, bytes, "bandwidth", &to);
    if (!status)
        status = d->stream_open(d, NULL, &stream);
    if (!status)
        status = time_copies(d, stream, to, from, bytes, bytes_per_second);
    if (stream)
        d->stream_close(d, stream);
    d->release(d, from);
    d->release(d, to);
    return status;
}
