/* fill.c - outputs that no tensor is read for: ConstantOfShape, Range; and Dropout, of which only the mask is made. */
#include "ops/move.h"

/* ---- ConstantOfShape */

static const Value *fill_value(Compilation *c, const Node *n)
{
    const Attr *a = node_attr(n, "value");
    return a->present && a->tensor ? &c->graph.values[a->tensor] : NULL;
}

static bool fill_shape(Compilation *c, Node *n)
{
    const Value *shape = node_input(c, n, 0), *value = fill_value(c, n);
    DType t = value ? value->dtype : DT_F32;
    Dim *target, none[MAX_RANK] = { 0 };
    int rank;
    int64_t count;
    if (value_dims(c, shape, &target, &rank)) return output_set(c, n, 0, t, rank, target);
    if (shape->rank == 1 && dim_is_const(c, shape->dims[0], &count) && count <= MAX_RANK)
        return output_set(c, n, 0, t, (int)count, none);
    return output_set(c, n, 0, t, -1, NULL);
}

static void fill_contents(Compilation *c, Node *n)
{
    const Value *value = fill_value(c, n);
    Value *y = node_output(c, n, 0);
    int64_t count;
    Dim *out = contents_begin(c, y, &count);
    if (!out || !value || !value->data || !value->data->bytes) return;
    for (int64_t i = 0; i < count; i++) out[i] = dim_const(c, data_int(value, 0));
    contents_finish(c, y, out, count);
}

/* One element that all indices see, or without the attribute a kernel that writes zeros. */
/* All elements of output I become VALUE. */
static void fill_launch(Lower *l, Node *n, int i, const char *value)
{
    const View out = lower_output(l, n, i);
    if (lower_upper(l, dims_product(lower_compilation(l), out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", value);
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, NULL);
}

static void fill_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Attr *a = node_attr(n, "value");
    if (fill_value(c, n)) {
        View v = lower_value(l, a->tensor);
        view_dims(l, node_output(c, n, 0), &v);
        for (int i = 0; i < v.rank; i++) v.stride[i] = 0;
        lower_set_view(l, n, 0, v);
        return;
    }
    fill_launch(l, n, 0, "0");
}

/* ---- Range */

static bool scalar_dim(Compilation *c, const Value *v, Dim *out)
{
    Dim *d;
    int count;
    if (!dtype_is_integer(v->dtype) || !value_dims(c, v, &d, &count) || count != 1) return false;
    *out = d[0];
    return true;
}

/* Number of elements: ceil((limit - start) / delta), at least 0. */
static Dim range_count(Compilation *c, Dim start, Dim limit, Dim delta)
{
    int64_t step, lo, hi;
    if (!dim_is_const(c, delta, &step) || step == 0) return 0;
    Dim span = step > 0 ? dim_sub(c, limit, start) : dim_sub(c, start, limit);
    int64_t size = step > 0 ? step : -step;
    if (size > 1) span = dim_op(c, DIM_CEILDIV, span, dim_const(c, size));
    dim_bounds(c, span, &lo, &hi);
    if (lo >= 0) return span;
    return hi <= 0 ? dim_const(c, 0) : dim_op(c, DIM_MAX, span, dim_const(c, 0));
}

static bool scalar_float(Compilation *c, const Value *v, double *out)
{
    const double *reals;
    int count;
    if (!value_floats(c, v, &reals, &count) || count != 1) return false;
    *out = reals[0];
    return true;
}

static bool range_shape(Compilation *c, Node *n)
{
    const Value *in[3];
    Dim part[3], count = 0;
    double f[3];
    bool ints = true, floats = true;
    for (int i = 0; i < 3; i++) {
        in[i] = node_input(c, n, i);
        ints = ints && scalar_dim(c, in[i], &part[i]);
        floats = floats && scalar_float(c, in[i], &f[i]);
    }
    if (ints) {
        if (dim_is(c, part[2], 0)) {
            node_error(c, n, "delta is 0");
            return false;
        }
        count = range_count(c, part[0], part[1], part[2]);
    } else if (floats && f[2] != 0) {
        double span = (f[1] - f[0]) / f[2];
        int64_t whole = (int64_t)span;
        if (span > (double)whole) whole++;
        count = dim_const(c, whole > 0 ? whole : 0);
    }
    return output_set(c, n, 0, in[0]->dtype, 1, &count);
}

static void range_contents(Compilation *c, Node *n)
{
    Value *y = node_output(c, n, 0);
    int64_t count;
    Dim start, delta, *out = contents_begin(c, y, &count);
    if (!out || !scalar_dim(c, node_input(c, n, 0), &start) || !scalar_dim(c, node_input(c, n, 2), &delta)) return;
    for (int64_t i = 0; i < count; i++) out[i] = dim_add(c, start, dim_scale(c, delta, i));
    contents_finish(c, y, out, count);
}

static const char *range_expr(Compilation *c, const Node *n)
{
    switch (node_input(c, n, 0)->dtype) {
    case DT_F64: return "a + (double)i0 * c";
    case DT_F32: return "a + (float)i0 * c";
    default: return "a + i0 * c";
    }
}

/* ---- Dropout: nothing is dropped in inference, nor at a ratio of 0 */

static bool dropout_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    return shape_same(c, n) && output_set(c, n, 1, n->op->since < 10 ? x->dtype : DT_BOOL, x->rank, x->dims);
}

static bool drops(Compilation *c, const Node *n)
{
    int64_t *training;
    const double *ratio;
    int count;
    if (n->op->since < 12 || !node_input(c, n, 2)) return false;
    if (value_ints(c, node_input(c, n, 2), &training, &count) && count == 1 && !training[0]) return false;
    return !(node_input(c, n, 1) && value_floats(c, node_input(c, n, 1), &ratio, &count) && count == 1 && ratio[0] == 0);
}

static void dropout_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    if (drops(c, n)) {
        node_error(c, n, "training mode is not supported");
        return;
    }
    if (node_output(c, n, 1) && node_output(c, n, 1)->uses) fill_launch(l, n, 1, "1");
    if (node_output(c, n, 0) && node_output(c, n, 0)->uses) lower_same(l, n);
}

static const OpRow rows[] = {
    { .name = "ConstantOfShape", .since = 9, .schema = "input:i64 -> output:T ; value:tensor? | T=" TYPES_ANY, .facts = OP_SHAPE,
      .shape = fill_shape, .contents = fill_contents, .lower = fill_lower },
    { .name = "Range", .since = 11, .schema = "start:T, limit:T, delta:T -> output:T | T=f32 f64 i16 i32 i64",
      .facts = OP_POINTWISE | OP_SHAPE, .shape = range_shape, .contents = range_contents, .expr_fn = range_expr },
    { .name = "Range", .since = 27, .schema = "start:T, limit:T, delta:T -> output:T ; stash_type:int=1 | T=" TYPES_FLOAT " i16 i32 i64",
      .facts = OP_POINTWISE | OP_SHAPE, .shape = range_shape, .contents = range_contents, .expr_fn = range_expr },
    { .name = "Dropout", .since = 7, .schema = "data:T -> output:T, mask:T? ; ratio:float=0.5 | T=" TYPES_FLOAT,
      .facts = OP_VIEW, .shape = dropout_shape, .lower = dropout_lower },
    { .name = "Dropout", .since = 10, .schema = "data:T -> output:T, mask:bool? ; ratio:float=0.5 | T=" TYPES_FLOAT,
      .facts = OP_VIEW, .shape = dropout_shape, .lower = dropout_lower },
    { .name = "Dropout", .since = 12,
      .schema = "data:T, ratio:R?, training_mode:bool? -> output:T, mask:bool? ; seed:int? | T=" TYPES_FLOAT ", R=" TYPES_FLOAT,
      .facts = OP_VIEW, .shape = dropout_shape, .lower = dropout_lower },
};

const OpFamily ops_fill = { rows, (int)COUNT_OF(rows), "fill.c" };
