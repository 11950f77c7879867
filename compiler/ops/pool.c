/* pool.c - pools: MaxPool, AveragePool, LpPool, their global forms, and MaxUnpool. A thread an output element; the global forms a
 * block an output element. */
#include "ops/move.h"
#include "ops/rows.h"
#include "ops/window.h"

#include <string.h>

enum { POOL_MAX = 0, POOL_MEAN = 1, POOL_POWER = 2 }; /* KIND of the kernels */

static int pool_kind(const Node *n)
{
    if (strstr(n->op_type, "Max")) return POOL_MAX;
    return strstr(n->op_type, "Lp") ? POOL_POWER : POOL_MEAN;
}

/* Spatial axes of an input [N, C, spatial...]; -1 after an error, 0 while the rank is not known. */
static int spatial_axes(Compilation *c, const Node *n, const Value *x)
{
    if (x->rank < 0) return 0;
    if (x->rank >= 3) return x->rank - 2;
    node_error(c, n, "input '%s': rank 3 or more is needed, found %d", x->name, x->rank);
    return -1;
}

/* ---- folds that the kernels share */

/* What a maximum starts from. */
static const char *lowest(DType t)
{
    if (dtype_is_float(t)) return "-INF_F";
    return t == DT_I8 ? "-128" : t == DT_U8 ? "0" : "(-9223372036854775807LL - 1)";
}

static double power_of(const Node *n)
{
    const Attr *p = node_attr(n, "p");
    return p->kind == ATTR_FLOAT ? p->f : (double)p->i;
}

/* Macros KIND, FOLD_START, POWER(v), ROOT(v). */
static void define_fold(Lower *l, Kernel *k, const Node *n, DType t)
{
    Compilation *c = lower_compilation(l);
    const int kind = pool_kind(n);
    kernel_int(k, "KIND", kind);
    kernel_text(k, "FOLD_START", kind == POOL_MAX ? lowest(t) : "0");
    if (kind != POOL_POWER) return;
    const double p = power_of(n);
    const char *f = t == DT_F64 ? "" : "f";
    const char *power = p == 1 ? "(v)" : p == 2 ? "((v) * (v))" : arena_text(&c->arena, "pow%s((v), (X_C)%a)", f, p);
    const char *root = p == 1 ? "(v)" : p == 2 ? arena_text(&c->arena, "sqrt%s(v)", f)
                                               : arena_text(&c->arena, "pow%s((v), (X_C)%a)", f, 1 / p);
    kernel_text(k, "POWER(v)", power);
    kernel_text(k, "ROOT(v)", root);
}

/* ---- pools with a window */

static bool pool_read(Compilation *c, const Node *n, const Value *x, Window *w)
{
    const int axes = spatial_axes(c, n, x);
    if (axes <= 0 || !window_read(c, n, axes, NULL, w)) return false;
    if (node_attr(n, "kernel_shape")->count != axes) {
        node_error(c, n, "kernel_shape is empty");
        return false;
    }
    if (pool_kind(n) == POOL_POWER && !(power_of(n) > 0)) {
        node_error(c, n, "the power p must be positive");
        return false;
    }
    return window_slide(c, n, x->dims + 2, w);
}

static bool pool_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK];
    Window w;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!pool_read(c, n, x, &w)) return false;
    for (int i = 0; i < x->rank; i++) dims[i] = i < 2 ? x->dims[i] : w.out[i - 2];
    return output_set(c, n, 0, x->dtype, x->rank, dims) && output_set(c, n, 1, DT_I64, x->rank, dims);
}

static bool nothing(Lower *l, const View *v) { return lower_upper(l, dims_product(lower_compilation(l), v->rank, v->dims)) == 0; }

static void pool_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *indices = node_output(c, n, 1);
    const bool wants_indices = indices && indices->uses > 0;
    const View x = window_view(c, lower_input(l, n, 0)), y = window_view(c, lower_output(l, n, 0));
    Window w;
    if (!pool_read(c, n, node_input(c, n, 0), &w)) return;
    Kernel *k = kernel_begin(l, n, "pool");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    kernel_int(k, "HAS_I", wants_indices);
    if (wants_indices) {
        kernel_out(k, "I", window_view(c, lower_output(l, n, 1)));
        kernel_int(k, "COLUMN_MAJOR", attr_int(n, "storage_order") != 0);
    }
    kernel_int(k, "COUNT_PADS", op_has(n, "count_include_pad") && attr_int(n, "count_include_pad"));
    define_fold(l, k, n, x.store);
    window_define(l, k, &w);
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    if (!nothing(l, &y)) launch_elements(l, k, &y, NULL);
}

/* ---- pools over all that is spatial */

static bool global_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK];
    if (spatial_axes(c, n, x) < 0) return false;
    if (pool_kind(n) == POOL_POWER && !(power_of(n) > 0)) {
        node_error(c, n, "the power p must be positive");
        return false;
    }
    for (int i = 0; i < x->rank; i++) dims[i] = i < 2 ? x->dims[i] : dim_const(c, 1);
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void global_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Dim columns = rows_count(c, &x, 2, x.rank), rows = rows_count(c, &x, 0, 2);
    int threads = rows_threads(lower_upper(l, columns));
    if (threads > 256) threads = 256;
    if (nothing(l, &y)) return;
    Kernel *k = kernel_begin(l, n, "global_pool");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    rows_define(c, k, "X", &x, 2);
    rows_define(c, k, "Y", &y, 2);
    define_fold(l, k, n, x.store);
    kernel_int(k, "THREADS", threads);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    kernel_launch(k, lower_upper(l, rows), 1, 1, threads);
}

/* ---- MaxUnpool */

/* Spatial dims that the pool had: they give the indices their meaning. */
static bool unpooled(Compilation *c, const Node *n, const Value *x, Dim *dims)
{
    const int axes = spatial_axes(c, n, x);
    Window w;
    if (axes <= 0 || !window_read(c, n, axes, NULL, &w)) return false;
    for (int i = 0; i < axes; i++) {
        const int64_t pads = list_value(n, "pads", i, 0) + list_value(n, "pads", axes + i, 0);
        dims[i] = 0;
        if (!x->dims[i + 2]) continue;
        const Dim last = dim_scale(c, dim_sub(c, x->dims[i + 2], dim_const(c, 1)), w.stride[i]);
        dims[i] = dim_add(c, last, dim_const(c, w.kernel[i] - pads));
    }
    return true;
}

static bool unpool_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *shape = node_input(c, n, 2);
    Dim dims[MAX_RANK] = { 0 }, *given;
    int count;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!unpooled(c, n, x, dims + 2)) return false;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    if (!shape) return output_set(c, n, 0, x->dtype, x->rank, dims);
    if (!value_dims(c, shape, &given, &count)) return output_set(c, n, 0, x->dtype, x->rank, (Dim[MAX_RANK]){ 0 });
    if (count == x->rank) return output_set(c, n, 0, x->dtype, x->rank, given);
    node_error(c, n, "output_shape has %d elements, the output rank %d", count, x->rank);
    return false;
}

static void fill_zero(Lower *l, const Node *n, const View *y)
{
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_out(k, "Y", *y);
    kernel_text(k, "VALUE", "0");
    kernel_text(k, "TARGET", index_at(l, "Y", y->rank, "i"));
    launch_elements(l, k, y, NULL);
}

static void unpool_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = window_view(c, lower_input(l, n, 0)), y = window_view(c, lower_output(l, n, 0));
    const int axes = node_input(c, n, 0)->rank - 2;
    Dim dims[MAX_RANK];
    if (nothing(l, &y) || !unpooled(c, n, node_input(c, n, 0), dims)) return;
    fill_zero(l, n, &y);
    if (nothing(l, &x)) return;
    Kernel *k = kernel_begin(l, n, "max_unpool");
    kernel_in(k, "X", x);
    kernel_in(k, "I", window_view(c, lower_input(l, n, 1)));
    kernel_inout(k, "Y", y);
    for (int i = 0; i < WINDOW_AXES; i++) {
        const int axis = i - (WINDOW_AXES - axes);
        kernel_dim(k, arena_text(&c->arena, "U%d", i), axis < 0 ? dim_const(c, 1) : lower_dim(l, dims[axis]));
    }
    launch_elements(l, k, &x, NULL);
}

#define OLD_FLOATS "T=f32 f16 f64"
#define FLOATS "T=f32 f16 bf16 f64"
#define PADDING "auto_pad:string=NOTSET, kernel_shape:ints, pads:ints?, strides:ints?"
#define POOL(name_, since_, inputs_and_attributes_) \
    { .name = name_, .since = since_, .schema = inputs_and_attributes_, .shape = pool_shape, .lower = pool_lower }
#define MAX_POOL(since_, more_, types_) \
    POOL("MaxPool", since_, "X:T -> Y:T, Indices:i64? ; storage_order:int=0, " more_ PADDING " | T=" types_)
#define MEAN_POOL(since_, more_, types_) \
    POOL("AveragePool", since_, "X:T -> Y:T ; count_include_pad:int=0, " more_ PADDING " | " types_)
#define POWER_POOL(since_, more_, types_) POOL("LpPool", since_, "X:T -> Y:T ; p:int=2, " more_ PADDING " | " types_)
#define GLOBAL(name_, since_, attributes_, types_) \
    { .name = name_, .since = since_, .schema = "X:T -> Y:T" attributes_ " | " types_, .shape = global_shape, \
      .lower = global_lower }
#define UNPOOL(since_, types_) \
    { .name = "MaxUnpool", .since = since_, \
      .schema = "X:T, I:i64, output_shape:i64? -> output:T ; kernel_shape:ints, pads:ints?, strides:ints? | " types_, \
      .shape = unpool_shape, .lower = unpool_lower }

static const OpRow rows[] = {
    POOL("MaxPool", 1, "X:T -> Y:T ; " PADDING " | " OLD_FLOATS),
    MAX_POOL(8, "", "f32 f16 f64"),
    MAX_POOL(10, "ceil_mode:int=0, dilations:ints?, ", "f32 f16 f64"),
    MAX_POOL(12, "ceil_mode:int=0, dilations:ints?, ", "f32 f16 f64 i8 u8"),
    MAX_POOL(22, "ceil_mode:int=0, dilations:ints?, ", "f32 f16 bf16 f64 i8 u8"),
    MEAN_POOL(7, "", OLD_FLOATS),
    MEAN_POOL(10, "ceil_mode:int=0, ", OLD_FLOATS),
    MEAN_POOL(19, "ceil_mode:int=0, dilations:ints?, ", OLD_FLOATS),
    MEAN_POOL(22, "ceil_mode:int=0, dilations:ints?, ", FLOATS),
    POWER_POOL(2, "", OLD_FLOATS),
    POWER_POOL(18, "ceil_mode:int=0, dilations:ints?, ", OLD_FLOATS),
    POWER_POOL(22, "ceil_mode:int=0, dilations:ints?, ", FLOATS),
    GLOBAL("GlobalAveragePool", 1, "", OLD_FLOATS),
    GLOBAL("GlobalAveragePool", 22, "", FLOATS),
    GLOBAL("GlobalMaxPool", 1, "", OLD_FLOATS),
    GLOBAL("GlobalMaxPool", 22, "", FLOATS),
    GLOBAL("GlobalLpPool", 2, " ; p:int=2", OLD_FLOATS),
    GLOBAL("GlobalLpPool", 22, " ; p:int=2", FLOATS),
    UNPOOL(9, OLD_FLOATS),
    UNPOOL(22, FLOATS),
};

const OpFamily ops_pool = { rows, (int)COUNT_OF(rows), "pool.c" };
