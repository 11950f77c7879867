/* rules.c - helpers of all shape and contents rules. */
#include "ops/move.h"

/* ---- shapes */

bool output_set(Compilation *c, Node *n, int i, DType t, int rank, const Dim *dims)
{
    Value *v = node_output(c, n, i);
    if (!v) return true;
    if (t != DT_NONE && v->dtype != DT_NONE && v->dtype != t) {
        node_error(c, n, "output '%s' is %s here, but the model declares %s", v->name, dtype_name(t), dtype_name(v->dtype));
        return false;
    }
    if (t != DT_NONE && !dtype_is_computed(t)) {
        node_error(c, n, "output '%s' would have dtype %s, which is not supported", v->name, dtype_name(t));
        return false;
    }
    if (t != DT_NONE) v->dtype = t;
    if (rank < 0) return true;
    if (rank > MAX_RANK) {
        node_error(c, n, "output '%s' would have rank %d; the largest supported is %d", v->name, rank, MAX_RANK);
        return false;
    }
    if (v->rank >= 0 && v->rank != rank) {
        node_error(c, n, "output '%s' has rank %d here, but the model declares rank %d", v->name, rank, v->rank);
        return false;
    }
    for (int k = 0; k < rank; k++) {
        int64_t extent;
        if (!dim_is_const(c, dims[k], &extent) || extent >= 0) continue;
        node_error(c, n, "output '%s' would have extent %lld along axis %d; expected 0 or more", v->name, (long long)extent, k);
        return false;
    }
    v->rank = rank;
    for (int k = 0; k < rank; k++)
        if (dims[k]) v->dims[k] = dims[k];
    return true;
}

Dim value_elements(Compilation *c, const Value *v)
{
    return v->rank < 0 ? 0 : dims_product(c, v->rank, v->dims);
}

bool shape_same(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    return output_set(c, n, 0, x->dtype, x->rank, x->dims);
}

static bool const_above_one(Compilation *c, Dim d)
{
    int64_t v;
    return dim_is_const(c, d, &v) && v != 1;
}

bool broadcast_dim(Compilation *c, const Node *n, Dim a, Dim b, Dim *out)
{
    int64_t va, vb;
    *out = 0;
    a = dim_resolve(c, a);
    b = dim_resolve(c, b);
    if (dim_is(c, a, 1)) { *out = b; return true; }
    if (dim_is(c, b, 1)) { *out = a; return true; }
    if (!a || !b) {
        Dim known = a ? a : b;
        if (const_above_one(c, known)) *out = known;
        return true;
    }
    *out = const_above_one(c, b) ? b : a;
    if (dim_equal(c, a, b)) return true;
    if (dim_is_const(c, a, &va) && dim_is_const(c, b, &vb)) {
        node_error(c, n, "extents %lld and %lld cannot be broadcast", (long long)va, (long long)vb);
        return false;
    }
    if (!dim_equate(c, n, "broadcast", a, b)) return false;
    *out = dim_resolve(c, *out);
    return true;
}

Dim shape_broadcast_dim(Compilation *c, const Node *n, Dim a, Dim b)
{
    Dim out;
    return broadcast_dim(c, n, a, b, &out) ? out : 0;
}

bool broadcast_typed(Compilation *c, Node *n, DType t)
{
    Dim dims[MAX_RANK] = { 0 };
    int rank = 0;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (!v) continue;
        if (v->rank < 0) return output_set(c, n, 0, t, -1, NULL);
        if (v->rank > rank) rank = v->rank;
    }
    for (int k = 0; k < rank; k++) dims[k] = dim_const(c, 1);
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        for (int k = 0; v && k < v->rank; k++) {
            Dim *d = &dims[rank - v->rank + k];
            if (!broadcast_dim(c, n, *d, v->dims[k], d)) return false;
        }
    }
    return output_set(c, n, 0, t, rank, dims);
}

bool shape_broadcast(Compilation *c, Node *n)
{
    return broadcast_typed(c, n, node_input(c, n, 0)->dtype);
}

bool shape_broadcast_bool(Compilation *c, Node *n)
{
    return broadcast_typed(c, n, DT_BOOL);
}

bool same_extent(Compilation *c, Node *n, const char *rule, Dim *known, Dim d)
{
    if (!d) return true;
    if (!*known || dim_equal(c, *known, d)) {
        if (!*known || dim_is_const(c, d, NULL)) *known = d;
        return true;
    }
    if (!dim_equate(c, n, rule, *known, d)) return false;
    *known = dim_resolve(c, d);
    return true;
}

/* ---- contents */

bool shape_numbers(Compilation *c, const Value *v, int64_t *dims, int64_t *elements)
{
    *elements = 1;
    if (v->rank < 0) return false;
    for (int i = 0; i < v->rank; i++) {
        if (!dim_is_const(c, v->dims[i], &dims[i]) || dims[i] < 0) return false;
        if (dims[i] > INT32_MAX || *elements > INT32_MAX) return false; /* too large to have contents */
        *elements *= dims[i];
    }
    return true;
}

Dim *contents_begin(Compilation *c, const Value *v, int64_t *count)
{
    int64_t dims[MAX_RANK];
    if (!v || !(dtype_is_integer(v->dtype) || v->dtype == DT_BOOL)) return NULL;
    if (!shape_numbers(c, v, dims, count) || *count > MAX_CONTENTS) return NULL;
    return NEW_ARRAY(c, Dim, *count + 1); /* never of no bytes */
}

void contents_finish(Compilation *c, Value *v, Dim *elements, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!elements[i]) return;
        elements[i] = dim_resolve(c, elements[i]);
    }
    v->contents = elements;
    v->contents_count = (int)count;
}

void row_major(const int64_t *dims, int rank, int64_t *stride)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dims[i];
    }
}

double *floats_begin(Compilation *c, const Value *v, int64_t *count)
{
    int64_t dims[MAX_RANK];
    if (!v || (v->dtype != DT_F32 && v->dtype != DT_F64)) return NULL;
    return shape_numbers(c, v, dims, count) && *count <= MAX_CONTENTS ? NEW_ARRAY(c, double, *count + 1) : NULL;
}

void contents_same(Compilation *c, const Value *from, Value *to)
{
    int64_t count;
    int have;
    const double *reals;
    if (floats_begin(c, to, &count) && value_floats(c, from, &reals, &have) && have == count) to->floats = reals;
    Dim *in, *out = contents_begin(c, to, &count);
    if (!out || !value_dims(c, from, &in, &have) || have != count) return;
    for (int64_t i = 0; i < count; i++) out[i] = in[i];
    contents_finish(c, to, out, count);
}

void contents_strided(Compilation *c, const Value *from, Value *to, int64_t offset, const int64_t *stride)
{
    int64_t count, dims[MAX_RANK], place[MAX_RANK], elements;
    int have;
    Dim *in = NULL, *out = contents_begin(c, to, &count);
    const double *reals = NULL;
    double *floats = out ? NULL : floats_begin(c, to, &count);
    if (!out && !floats) return;
    if (!(out ? value_dims(c, from, &in, &have) : value_floats(c, from, &reals, &have)) || !shape_numbers(c, to, dims, &elements)) return;
    row_major(dims, to->rank, place);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = offset;
        for (int k = 0; k < to->rank; k++) at += i / place[k] % dims[k] * stride[k];
        if (at < 0 || at >= have) return;
        if (out) out[i] = in[at];
        else floats[i] = reals[at];
    }
    if (out) contents_finish(c, to, out, count);
    else to->floats = floats;
}

void contents_first(Compilation *c, Node *n)
{
    contents_same(c, node_input(c, n, 0), node_output(c, n, 0));
}

/* ---- views */

void lower_same(Lower *l, Node *n)
{
    lower_set_view(l, n, 0, lower_input(l, n, 0));
}
