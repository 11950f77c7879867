/* tensor.c - bytes in and out of a session: inputs, outputs, states, logits. Buffers on the device are strided for the
 * capacity; outside, tensors are dense and row-major. */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

/* A binding's present extents and where its elements lie. */
typedef struct layout {
    int rank;
    int64_t dims[8], strides[8];
    uint64_t width;  /* bytes of an element; 0: less than a byte, and then the tensor is dense */
    uint64_t bytes;  /* dense */
    uint64_t reach;  /* bytes of the buffer from its start to the end of the last element */
} layout;

/* Computes sizes from dims and strides. */
static plan_status measure(layout *l, uint32_t dtype, const char *name) {
    uint64_t count = 1, last = 0, part, bits = plan_dtype_bits(dtype);
    bool dense = true;
    int64_t expected = 1;
    for (int i = l->rank - 1; i >= 0; i--) {
        if (l->dims[i] < 0)
            return plan_fail(PLAN_ERROR_RANGE, "'%s': dim %d: expected 0 or more, found %" PRId64, name, i, l->dims[i]);
        dense = dense && (l->dims[i] == 1 || l->strides[i] == expected);
        expected *= l->dims[i] ? l->dims[i] : 1;
        if (!plan_mul_u64(count, (uint64_t)l->dims[i], &count) ||
            !plan_mul_u64(l->dims[i] ? (uint64_t)l->dims[i] - 1 : 0, (uint64_t)l->strides[i], &part) ||
            !plan_add_u64(last, part, &last))
            return plan_fail(PLAN_ERROR_RANGE, "'%s': its size does not fit 64 bits", name);
    }
    if (count > UINT64_MAX / 64 || last > UINT64_MAX / 64 - 1)
        return plan_fail(PLAN_ERROR_RANGE, "'%s': its size does not fit 64 bits", name);
    if (bits < 8 && !dense)
        return plan_fail(PLAN_ERROR_RANGE, "'%s': elements of %" PRIu64 " bits are read and written only where they are dense", name,
                         bits);
    l->width = bits / 8;
    l->bytes = (count * bits + 7) / 8;
    l->reach = count ? ((last + 1) * bits + 7) / 8 : 0;
    return PLAN_OK;
}

static plan_status binding_layout(plan_session *s, uint32_t signature, uint32_t binding, layout *out) {
    const plan_view *v = &s->p->view;
    const plan_binding_record *b = &v->bindings[binding];
    const char *name = PLAN_TEXT(s->p, b->name);
    memset(out, 0, sizeof *out);
    out->rank = (int)b->dim_count;
    for (int i = 0; i < out->rank && i < 8; i++) {
        const plan_dim_record *dim = &v->dims[b->dim + (uint32_t)i];
        plan_status status = plan_expr_eval(v->exprs + dim->expr, dim->expr_count, plan_session_values(s, signature), &out->dims[i]);
        if (status)
            return plan_fail(status, "'%s': dim %d cannot be computed", name, i);
        if (out->dims[i] > dim->upper)
            return plan_fail(PLAN_ERROR_RANGE, "'%s': dim %d: expected at most %" PRId64 ", found %" PRId64, name, i, dim->upper,
                             out->dims[i]);
        out->strides[i] = dim->stride;
    }
    return measure(out, b->dtype, name);
}

/* Counts that kernels wrote into the extents table (symbols of class data) in the signature's last run: read back into the
 * host's mirror, and what derives from them. Waits when there are any. */
static plan_status read_counts(plan_session *s, uint32_t signature) {
    const plan_view *v = &s->p->view;
    plan_driver *d = s->p->driver;
    int64_t *values = plan_session_values(s, signature);
    plan_status status = PLAN_OK;
    bool any = false;
    for (uint32_t i = 0; i < v->symbol_count && !status; i++) {
        const plan_symbol_record *symbol = &v->symbols[i];
        if (symbol->symbol_class != PLAN_SYMBOL_DATA || symbol->slot == PLAN_NONE || symbol->expr_count)
            continue;
        if (!any)
            status = plan_session_finish(s);
        any = true;
        if (!status)
            status = d->from_device(d, s->stream, &s->mirror[symbol->slot],
                                    s->base[PLAN_REGION_STATE] + sizeof(int64_t) * symbol->slot, sizeof(int64_t));
        if (!status)
            values[i] = s->mirror[symbol->slot];
    }
    for (uint32_t i = 0; i < v->symbol_count && any && !status; i++)
        if (v->symbols[i].expr_count)
            status = plan_expr_eval(v->exprs + v->symbols[i].expr, v->symbols[i].expr_count, values, &values[i]);
    return status;
}

/* Copies between a dense tensor and a strided one of the same extents; DENSE advances in row-major order. */
static void copy_strided(const layout *l, unsigned char *dense, unsigned char *strided, bool to_dense) {
    int64_t index[8] = {0};
    if (l->bytes == 0)
        return;
    if (l->width == 0 || l->bytes == l->reach) { /* dense: same bytes in the same order, since strides are row-major */
        bool ordered = true;
        int64_t expected = 1;
        for (int i = l->rank - 1; i >= 0; i--) {
            ordered = ordered && (l->dims[i] == 1 || l->strides[i] == expected);
            expected *= l->dims[i];
        }
        if (ordered) {
            memcpy(to_dense ? dense : strided, to_dense ? strided : dense, (size_t)l->bytes);
            return;
        }
    }
    for (;;) {
        uint64_t at = 0;
        for (int i = 0; i < l->rank; i++)
            at += (uint64_t)(index[i] * l->strides[i]);
        memcpy(to_dense ? dense : strided + at * l->width, to_dense ? strided + at * l->width : dense, (size_t)l->width);
        dense += l->width;
        int i = l->rank - 1;
        while (i >= 0 && ++index[i] == l->dims[i])
            index[i--] = 0;
        if (i < 0)
            return;
    }
}

/* The only extent of those that may vary, or the only one that is not at its upper bound now; -1: there is none, or several. */
static int free_extent(const plan *p, const plan_binding_record *b, const layout *l) {
    int ranged = 0, below = 0, last = -1, last_below = -1;
    for (int i = 0; i < l->rank; i++) {
        const plan_dim_record *dim = &p->view.dims[b->dim + (uint32_t)i];
        if (dim->expr_count == 1 && p->view.exprs[dim->expr].op == PLAN_EXPR_CONST)
            continue;
        ranged++;
        last = i;
        if (l->dims[i] == dim->upper)
            continue;
        below++;
        last_below = i;
    }
    return below == 1 ? last_below : ranged == 1 ? last : -1;
}

/* Before a network's run the host does not know its ranged symbols: with one unknown extent, the size says it. */
static bool deduce_extent(const plan *p, const plan_binding_record *b, size_t bytes, layout *l) {
    const int unknown = free_extent(p, b, l);
    uint64_t rest = plan_dtype_bits(b->dtype);
    for (int i = 0; i < l->rank; i++)
        if (i != unknown && !plan_mul_u64(rest, (uint64_t)l->dims[i], &rest))
            return false;
    uint64_t bits;
    if (unknown < 0 || rest == 0 || !plan_mul_u64(bytes, 8, &bits) || bits % rest ||
        bits / rest > (uint64_t)p->view.dims[b->dim + (uint32_t)unknown].upper)
        return false;
    l->dims[unknown] = (int64_t)(bits / rest);
    return measure(l, b->dtype, "") == PLAN_OK && l->bytes == bytes;
}

static plan_status find_input(plan_session *s, const char *signature, const char *name, uint32_t *number, uint32_t *binding,
                              int kind) {
    plan_status status = plan_find_signature(s->p, signature, number);
    return status ? status : plan_find_binding(s->p, *number, name, kind, binding);
}

static plan_status write_input(plan_session *s, const char *signature, const char *name, const void *data, size_t bytes) {
    uint32_t number, binding;
    layout l;
    plan_driver *d = s->p->driver;
    plan_status status = find_input(s, signature, name, &number, &binding, PLAN_BINDING_INPUT);
    if (!status && !data && bytes)
        status = plan_fail(PLAN_ERROR_ARGUMENT, "input '%s': expected data, found NULL", name);
    if (!status && s->p->view.bindings[binding].bytes == 0) /* no kernel reads it */
        return PLAN_OK;
    if (!status)
        status = plan_session_fill_values(s, number);
    if (!status)
        status = binding_layout(s, number, binding, &l);
    if (status)
        return status;
    uint64_t expected = l.bytes;
    if (l.bytes != bytes && !deduce_extent(s->p, &s->p->view.bindings[binding], bytes, &l))
        return plan_fail(PLAN_ERROR_RANGE, "input '%s': expected %" PRIu64 " bytes at the present extents, found %zu", name, expected,
                         bytes);
    if (l.reach == 0)
        return PLAN_OK;
    plan_address to = plan_session_address(s, binding);
    if (l.reach > s->p->view.bindings[binding].bytes)
        return plan_fail(PLAN_ERROR_RANGE, "input '%s': its extents exceed its buffer", name);
    if (binding == s->p->token_binding)
        s->token_known = true;
    unsigned char *image = plan_host_allocate(&s->p->allocator, (size_t)l.reach, 1);
    unsigned char *dense = plan_host_allocate(&s->p->allocator, (size_t)l.bytes, 1);
    if (!image || !dense)
        status = plan_fail(PLAN_ERROR_MEMORY, "input '%s': no memory for %" PRIu64 " bytes", name, l.reach);
    else {
        memcpy(dense, data, bytes);
        copy_strided(&l, dense, image, false);
        status = d->to_device(d, s->stream, to, image, l.reach);
    }
    plan_host_release(&s->p->allocator, image);
    plan_host_release(&s->p->allocator, dense);
    return status;
}

plan_status plan_session_write_input(plan_session *s, const char *signature, const char *name, const void *data,
                                     size_t bytes) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, write_input(s, signature, name, data, bytes));
}

static plan_status read_output(plan_session *s, const char *signature, const char *name, void *data, size_t bytes,
                               size_t *written) {
    uint32_t number, binding;
    layout l;
    plan_driver *d = s->p->driver;
    plan_status status = find_input(s, signature, name, &number, &binding, PLAN_BINDING_OUTPUT);
    if (!status)
        status = read_counts(s, number);
    if (!status)
        status = binding_layout(s, number, binding, &l);
    if (status)
        return status;
    if (!data || bytes < l.bytes)
        return plan_fail(data ? PLAN_ERROR_RANGE : PLAN_ERROR_ARGUMENT, "output '%s': expected a place for %" PRIu64
                         " bytes, found %zu", name, l.bytes, data ? bytes : (size_t)0);
    if (l.reach > s->p->view.bindings[binding].bytes)
        return plan_fail(PLAN_ERROR_RANGE, "output '%s': its extents exceed its buffer", name);
    status = plan_session_finish(s);
    unsigned char *image = plan_host_allocate(&s->p->allocator, (size_t)l.reach, 1);
    if (!status && !image)
        status = plan_fail(PLAN_ERROR_MEMORY, "output '%s': no memory for %" PRIu64 " bytes", name, l.reach);
    if (!status && l.reach)
        status = d->from_device(d, s->stream, image, plan_session_address(s, binding), l.reach);
    if (!status)
        copy_strided(&l, data, image, true);
    plan_host_release(&s->p->allocator, image);
    if (!status && written)
        *written = (size_t)l.bytes;
    return status;
}

plan_status plan_session_read_output(plan_session *s, const char *signature, const char *name, void *data, size_t bytes,
                                     size_t *written) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, read_output(s, signature, name, data, bytes, written));
}

static plan_status describe_output(plan_session *s, const char *signature, const char *name, plan_tensor *out) {
    uint32_t number, binding;
    layout l;
    plan_status status = out ? find_input(s, signature, name, &number, &binding, PLAN_BINDING_OUTPUT)
                             : plan_fail(PLAN_ERROR_ARGUMENT, "out: expected a place for the tensor, found NULL");
    if (!status)
        status = read_counts(s, number);
    if (!status)
        status = binding_layout(s, number, binding, &l);
    if (status)
        return status;
    const plan_binding_record *b = &s->p->view.bindings[binding];
    memset(out, 0, sizeof *out);
    out->name = PLAN_TEXT(s->p, b->name);
    out->dtype = (plan_dtype)b->dtype;
    out->rank = l.rank;
    memcpy(out->dims, l.dims, sizeof out->dims);
    memcpy(out->strides, l.strides, sizeof out->strides);
    out->bytes = (size_t)b->bytes;
    return PLAN_OK;
}

plan_status plan_session_output(plan_session *s, const char *signature, const char *name, plan_tensor *out) {
    plan_status status = plan_session_enter(s);
    return status ? status : plan_session_leave(s, describe_output(s, signature, name, out));
}

static float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_from_half(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
    if (exponent == 31)
        return float_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* a multiple of 2^-24 */
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
}

/* Element number I of an image of elements of type DTYPE. */
static float element(const unsigned char *image, uint32_t dtype, uint64_t i) {
    uint16_t half;
    uint32_t word;
    if (dtype == PLAN_F32) {
        memcpy(&word, image + 4 * i, sizeof word);
        return float_from_bits(word);
    }
    memcpy(&half, image + 2 * i, sizeof half);
    return dtype == PLAN_F16 ? float_from_half(half) : float_from_bits((uint32_t)half << 16);
}

static plan_status find_logits(const plan_session *s, uint32_t *signature, uint32_t *binding) {
    const plan *p = s->p;
    if (p->view.model->logits_binding == PLAN_NONE)
        return plan_fail(PLAN_ERROR_NAME, "logits: the plan names no output as the logits");
    if (s->last == PLAN_NONE)
        return plan_fail(PLAN_ERROR_STATE, "logits: nothing has run; call plan_session_prefill first");
    *signature = s->last;
    return plan_find_binding(p, s->last, PLAN_TEXT(p, p->view.bindings[p->view.model->logits_binding].name), PLAN_BINDING_OUTPUT,
                             binding);
}

static plan_status logits(plan_session *s, int64_t row, float *out, size_t count) {
    uint32_t signature = PLAN_NONE, binding = PLAN_NONE;
    layout l;
    plan_driver *d = s->p->driver;
    plan_status status = find_logits(s, &signature, &binding);
    if (!status)
        status = binding_layout(s, signature, binding, &l);
    if (status)
        return status;
    const plan_binding_record *b = &s->p->view.bindings[binding];
    if (b->dtype != PLAN_F32 && b->dtype != PLAN_F16 && b->dtype != PLAN_BF16)
        return plan_fail(PLAN_ERROR_RANGE, "logits: expected float32, float16 or bfloat16, found type %u", b->dtype);
    if (!out || l.rank < 1 || l.dims[l.rank - 1] != (int64_t)count || l.bytes == 0)
        return plan_fail(out ? PLAN_ERROR_RANGE : PLAN_ERROR_ARGUMENT, "logits: expected a place for %" PRId64
                         " numbers, found one for %zu", l.rank < 1 ? 0 : l.dims[l.rank - 1], out ? count : (size_t)0);
    bool rows = s->p->view.model->rows != 0, last = l.rank >= 2 && (!rows || l.rank >= 3);
    if (rows && l.dims[0] != s->p->view.model->rows)
        return plan_fail(PLAN_ERROR_RANGE, "logits: expected %u rows, found %" PRId64, s->p->view.model->rows, l.dims[0]);
    uint64_t first = last ? (uint64_t)(l.dims[l.rank - 2] - 1) * (uint64_t)l.strides[l.rank - 2] : 0;
    if (rows)
        first += (uint64_t)(row * l.strides[0]);
    uint64_t stride = (uint64_t)l.strides[l.rank - 1], reach = ((count - 1) * stride + 1) * l.width;
    if (first * l.width > b->bytes || reach > b->bytes - first * l.width)
        return plan_fail(PLAN_ERROR_RANGE, "logits: the last row lies outside its buffer");
    status = plan_session_finish(s);
    unsigned char *image = plan_host_allocate(&s->p->allocator, (size_t)reach, 1);
    if (!status && !image)
        status = plan_fail(PLAN_ERROR_MEMORY, "logits: no memory for %" PRIu64 " bytes", reach);
    if (!status)
        status = d->from_device(d, s->stream, image, plan_session_address(s, binding) + first * l.width, reach);
    for (size_t i = 0; i < count && !status; i++)
        out[i] = element(image, b->dtype, i * stride);
    plan_host_release(&s->p->allocator, image);
    return status;
}

plan_status plan_session_logits(plan_session *s, float *out, size_t count) {
    plan_status status = plan_session_enter(s);
    if (!status && s->p->view.model->rows)
        return plan_session_leave(s, plan_fail(PLAN_ERROR_STATE, "logits: each row has its own; call plan_session_row_logits"));
    return status ? status : plan_session_leave(s, logits(s, 0, out, count));
}

plan_status plan_session_row_logits(plan_session *s, int64_t row, float *out, size_t count) {
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    status = plan_session_row_fed(s, row);
    return plan_session_leave(s, status ? status : logits(s, row, out, count));
}

static plan_status find_state(const plan_session *s, const char *name, size_t bytes, bool has_data, plan_address *out) {
    const plan_view *v = &s->p->view;
    if (!name || !has_data)
        return plan_fail(PLAN_ERROR_ARGUMENT, "state: expected a name and data, found NULL");
    for (uint32_t i = 0; i < v->state_count; i++) {
        if (strcmp(PLAN_TEXT(s->p, v->states[i].input), name) != 0 && strcmp(PLAN_TEXT(s->p, v->states[i].output), name) != 0)
            continue;
        if (bytes != v->states[i].bytes)
            return plan_fail(PLAN_ERROR_RANGE, "state '%s': expected %" PRIu64 " bytes, found %zu", name, v->states[i].bytes, bytes);
        *out = s->base[PLAN_REGION_STATE] + v->states[i].offset;
        return PLAN_OK;
    }
    return plan_fail(PLAN_ERROR_NAME, "the plan has no state '%.100s'", name);
}

plan_status plan_session_read_state(plan_session *s, const char *name, void *data, size_t bytes) {
    plan_address from;
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    plan_driver *d = s->p->driver;
    status = find_state(s, name, bytes, data != NULL, &from);
    if (!status)
        status = plan_session_finish(s);
    if (!status)
        status = d->from_device(d, s->stream, data, from, bytes);
    return plan_session_leave(s, status);
}

plan_status plan_session_write_state(plan_session *s, const char *name, const void *data, size_t bytes) {
    plan_address to;
    plan_status status = plan_session_enter(s);
    if (status)
        return status;
    plan_driver *d = s->p->driver;
    status = find_state(s, name, bytes, data != NULL, &to);
    if (!status)
        status = d->to_device(d, s->stream, to, data, bytes);
    if (!status)
        status = plan_session_finish(s);
    return plan_session_leave(s, status);
}
