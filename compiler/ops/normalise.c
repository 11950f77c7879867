/* normalise.c - normalisations over the batch, the instance, groups of channels or any axes: BatchNormalization,
 * InstanceNormalization, GroupNormalization, MeanVarianceNormalization, LpNormalization, LRN. Those over the last axes stand in norm.c. */
#include "ops/move.h"
#include "ops/rows.h"
#include "ops/window.h"

#include <string.h>

static const char *accumulator(DType t) { return t == DT_F64 ? "double" : "float"; }
static const char *root(DType t) { return t == DT_F64 ? "sqrt" : "sqrtf"; }

static bool nothing(Lower *l, const View *v) { return lower_upper(l, dims_product(lower_compilation(l), v->rank, v->dims)) == 0; }

/* Input I, where given, has one dim equal to D. */
static bool vector_fits(Compilation *c, const Node *n, int i, Dim d)
{
    const Value *v = node_input(c, n, i);
    if (!v || v->rank < 0) return true;
    if (v->rank != 1) {
        node_error(c, n, "input '%s': expected rank 1, found %d", v->name, v->rank);
        return false;
    }
    return !d || !v->dims[0] || dim_equal(c, v->dims[0], d) || dim_equate(c, n, "a norm's weights have an element for each channel", v->dims[0], d);
}

static bool ranked(Compilation *c, const Node *n, const Value *x, int least)
{
    if (x->rank >= least) return true;
    node_error(c, n, "input '%s': rank %d or more is needed, found %d", x->name, least, x->rank);
    return false;
}

/* ---- rows that are standardised: the template standardise.cu */

typedef struct Rows { View x, y; int row_axes; } Rows; /* the first row_axes axes count rows, the others columns */

/* Axes of MASK are columns. */
static Rows rows_of(const View *x, const View *y, unsigned mask)
{
    int order[MAX_RANK], count = 0;
    Rows r;
    for (int i = 0; i < x->rank; i++)
        if (!(mask >> i & 1)) order[count++] = i;
    r.row_axes = count;
    for (int i = 0; i < x->rank; i++)
        if (mask >> i & 1) order[count++] = i;
    r.x = rows_order(x, order, count);
    r.y = rows_order(y, order, count);
    return r;
}

static Kernel *rows_begin(Lower *l, const Node *n, const Rows *r, int kind)
{
    Compilation *c = lower_compilation(l);
    Kernel *k = kernel_begin(l, n, "standardise");
    kernel_in(k, "X", r->x);
    kernel_out(k, "Y", r->y);
    rows_define(c, k, "X", &r->x, r->row_axes);
    rows_define(c, k, "Y", &r->y, r->row_axes);
    kernel_int(k, "KIND", kind);
    kernel_text(k, "ACC", accumulator(r->x.store));
    kernel_text(k, "ROOT(v)", arena_text(&c->arena, "%s(v)", root(r->x.store)));
    return k;
}

static void rows_launch(Lower *l, Kernel *k, const Rows *r)
{
    Compilation *c = lower_compilation(l);
    const Dim columns = rows_count(c, &r->x, r->row_axes, r->x.rank), rows = rows_count(c, &r->x, 0, r->row_axes);
    int threads = rows_threads(lower_upper(l, columns));
    if (threads > 512) threads = 512;
    kernel_int(k, "THREADS", threads);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    kernel_launch(k, lower_upper(l, rows), 1, 1, threads);
}

/* 1 / sqrt(variance + epsilon) */
static void define_inverse(Lower *l, const Node *n, Kernel *k, DType t)
{
    Compilation *c = lower_compilation(l);
    kernel_text(k, "INVERSE(v)", arena_text(&c->arena, "(1 / %s((v) + (ACC)%a))", root(t), attr_float(n, "epsilon")));
}

/* Vector V along axis AXIS of rows like X: all other axes have stride 0. */
static View along(const View *v, const View *x, int axis)
{
    View out = *x;
    out.buffer = v->buffer;
    out.store = v->store;
    out.offset = v->offset;
    for (int i = 0; i < x->rank; i++) out.stride[i] = i == axis ? v->stride[0] : 0;
    return out;
}

static void vector_operand(Lower *l, const Node *n, Kernel *k, const char *name, int input, const Rows *r, int axis)
{
    const View v = lower_input(l, n, input), wide = along(&v, &r->x, axis);
    kernel_in(k, name, wide);
    rows_define(lower_compilation(l), k, name, &wide, r->row_axes);
}

/* ---- InstanceNormalization, GroupNormalization */

static bool instance_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank < 0) return shape_same(c, n);
    if (!ranked(c, n, x, 2) || !vector_fits(c, n, 1, x->dims[1]) || !vector_fits(c, n, 2, x->dims[1])) return false;
    return shape_same(c, n);
}

static void instance_lower(Lower *l, Node *n)
{
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Rows r = rows_of(&x, &y, ((1u << x.rank) - 1) & ~3u);
    if (nothing(l, &y)) return;
    Kernel *k = rows_begin(l, n, &r, 0);
    define_inverse(l, n, k, x.store);
    kernel_int(k, "HAS_SCALE", 1);
    vector_operand(l, n, k, "SCALE", 1, &r, 1);
    vector_operand(l, n, k, "BIAS", 2, &r, 1);
    rows_launch(l, k, &r);
}

/* Before 21 scale and bias have an element for each group, since then for each channel. */
static bool group_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const int64_t groups = attr_int(n, "num_groups");
    int64_t channels;
    if (x->rank < 0) return shape_same(c, n);
    if (!ranked(c, n, x, 2)) return false;
    if (groups < 1 || (dim_is_const(c, x->dims[1], &channels) && channels % groups)) {
        node_error(c, n, "%s channels are not divided by %lld groups", dim_text(c, x->dims[1]), (long long)groups);
        return false;
    }
    if (x->rank == MAX_RANK) {
        node_error(c, n, "rank %d; at most %d is supported", x->rank, MAX_RANK - 1);
        return false;
    }
    const Dim length = n->op->since < 21 ? dim_const(c, groups) : x->dims[1];
    return vector_fits(c, n, 1, length) && vector_fits(c, n, 2, length) && shape_same(c, n);
}

/* [N, C, ...] as [N, groups, C / groups, ...] */
static View grouped(Compilation *c, View v, int64_t groups, int64_t channels)
{
    for (int i = v.rank++; i > 2; i--) {
        v.dims[i] = v.dims[i - 1];
        v.stride[i] = v.stride[i - 1];
    }
    v.stride[2] = v.stride[1];
    v.stride[1] = v.stride[2] * (channels / groups);
    v.dims[1] = dim_const(c, groups);
    v.dims[2] = dim_const(c, channels / groups);
    return v;
}

static void group_operand(Lower *l, const Node *n, Kernel *k, const char *name, int input, const Rows *r, int64_t each)
{
    const View v = lower_input(l, n, input);
    View wide = along(&v, &r->x, n->op->since < 21 ? 1 : 2);
    if (n->op->since >= 21) wide.stride[1] = each * v.stride[0];
    kernel_in(k, name, wide);
    rows_define(lower_compilation(l), k, name, &wide, r->row_axes);
}

static void group_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const int64_t groups = attr_int(n, "num_groups");
    int64_t channels;
    if (!dim_is_const(c, x.dims[1], &channels)) {
        node_error(c, n, "the channels are not known when compiling");
        return;
    }
    if (nothing(l, &y)) return;
    x = grouped(c, x, groups, channels);
    y = grouped(c, y, groups, channels);
    const Rows r = { x, y, 2 };
    Kernel *k = rows_begin(l, n, &r, 0);
    define_inverse(l, n, k, x.store);
    kernel_int(k, "HAS_SCALE", 1);
    group_operand(l, n, k, "SCALE", 1, &r, channels / groups);
    group_operand(l, n, k, "BIAS", 2, &r, channels / groups);
    rows_launch(l, k, &r);
}

/* ---- MeanVarianceNormalization, LpNormalization */

/* Bit mask of the axes, or 0 after an error. */
static unsigned axes_mask(Compilation *c, const Node *n, int rank)
{
    const Attr *axes = node_attr(n, "axes");
    unsigned mask = 0;
    for (int i = 0; i < axes->count; i++) {
        const int axis = axis_normal(c, n, axes->ints[i], rank);
        if (axis < 0) return 0;
        mask |= 1u << axis;
    }
    if (!mask) node_error(c, n, "axes is empty");
    return mask;
}

static bool mean_variance_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    return (x->rank < 0 || axes_mask(c, n, x->rank)) && shape_same(c, n);
}

/* The specification divides by the deviation + 1e-9. */
static void mean_variance_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Rows r = rows_of(&x, &y, axes_mask(c, n, x.rank));
    if (nothing(l, &y)) return;
    Kernel *k = rows_begin(l, n, &r, 0);
    kernel_text(k, "INVERSE(v)", arena_text(&c->arena, "(1 / (%s(v) + (ACC)1e-9f))", root(x.store)));
    rows_launch(l, k, &r);
}

static bool lp_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (attr_int(n, "p") != 1 && attr_int(n, "p") != 2) {
        node_error(c, n, "p is %lld; only 1 and 2 have a meaning", (long long)attr_int(n, "p"));
        return false;
    }
    return (x->rank < 0 || axis_normal(c, n, attr_int(n, "axis"), x->rank) >= 0) && shape_same(c, n);
}

static void lp_lower(Lower *l, Node *n)
{
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Rows r = rows_of(&x, &y, 1u << axis_normal(lower_compilation(l), n, attr_int(n, "axis"), x.rank));
    if (nothing(l, &y)) return;
    rows_launch(l, rows_begin(l, n, &r, (int)attr_int(n, "p")), &r);
}

/* ---- BatchNormalization */

static bool trains(const Node *n) { return op_has(n, "training_mode") && attr_int(n, "training_mode") != 0; }

/* Each element of an instance has its own statistics (opset 7). */
static bool by_element(const Node *n) { return op_has(n, "spatial") && !attr_int(n, "spatial"); }

static bool batch_output(Compilation *c, Node *n, int i, const Value *x)
{
    return output_set(c, n, i, node_input(c, n, i + 2)->dtype, 1, &x->dims[1]);
}

static bool batch_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank < 0) return shape_same(c, n);
    if (!ranked(c, n, x, 1)) return false;
    for (int i = 1; i < n->output_count; i++)
        if (!trains(n) && node_output(c, n, i)) {
            node_error(c, n, "output '%s': statistics are an output of training, which is supported from opset 14 on with training_mode",
                       node_output(c, n, i)->name);
            return false;
        }
    for (int i = 1; i < 5 && !by_element(n); i++)
        if (!vector_fits(c, n, i, x->rank > 1 ? x->dims[1] : dim_const(c, 1))) return false;
    for (int i = 1; i < 5 && by_element(n); i++)
        if (node_input(c, n, i)->rank >= 0 && node_input(c, n, i)->rank != x->rank - 1) {
            node_error(c, n, "input '%s': expected rank %d, found %d", node_input(c, n, i)->name, x->rank - 1, node_input(c, n, i)->rank);
            return false;
        }
    if (trains(n) && x->rank < 2 && !ranked(c, n, x, 2)) return false;
    if (trains(n) && !(batch_output(c, n, 1, x) && batch_output(c, n, 2, x))) return false;
    return shape_same(c, n);
}

static void batch_operand(Lower *l, const Node *n, Kernel *k, const char *name, int input, const View *x)
{
    Compilation *c = lower_compilation(l);
    const View v = lower_input(l, n, input);
    const View wide = by_element(n) ? rows_expand(c, &v, x->rank, x->dims) : along(&v, x, 1);
    kernel_in(k, name, wide);
    kernel_text(k, arena_text(&c->arena, "%s_PLACE", name), index_at(l, name, x->rank, "i"));
}

/* Statistics of the batch itself; the running ones move on by 1 - momentum. */
static void batch_train(Lower *l, const Node *n, const View *x, const View *y)
{
    Compilation *c = lower_compilation(l);
    const Rows r = rows_of(x, y, ((1u << x->rank) - 1) & ~2u);
    const bool running = node_output(c, n, 1) || node_output(c, n, 2);
    Kernel *k = rows_begin(l, n, &r, 0);
    define_inverse(l, n, k, x->store);
    kernel_int(k, "HAS_SCALE", 1);
    vector_operand(l, n, k, "SCALE", 1, &r, 0);
    vector_operand(l, n, k, "BIAS", 2, &r, 0);
    kernel_int(k, "HAS_RUNNING", running);
    for (int i = 0; i < 2 && running; i++) {
        const char *name = i ? "VAR" : "MEAN";
        const View out = node_output(c, n, i + 1) ? lower_output(l, n, i + 1) : lower_temporary(l, name, r.x.store, 1, r.x.dims);
        vector_operand(l, n, k, arena_text(&c->arena, "OLD_%s", name), i + 3, &r, 0);
        kernel_out(k, name, out);
        rows_define(c, k, name, &out, 1);
    }
    kernel_float(k, "MOMENTUM", attr_float(n, "momentum"));
    rows_launch(l, k, &r);
}

static void batch_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    if (nothing(l, &y)) return;
    if (trains(n)) {
        batch_train(l, n, &x, &y);
        return;
    }
    Kernel *k = kernel_begin(l, n, "batch_norm");
    kernel_in(k, "X", x);
    batch_operand(l, n, k, "SCALE", 1, &x);
    batch_operand(l, n, k, "BIAS", 2, &x);
    batch_operand(l, n, k, "MEAN", 3, &x);
    batch_operand(l, n, k, "VAR", 4, &x);
    kernel_out(k, "Y", y);
    kernel_text(k, "ACC", accumulator(x.store));
    kernel_text(k, "ROOT(v)", arena_text(&c->arena, "%s(v)", root(x.store)));
    kernel_float(k, "EPSILON", attr_float(n, "epsilon"));
    kernel_text(k, "SOURCE", index_at(l, "X", x.rank, "i"));
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, NULL);
}

/* ---- LRN */

static bool lrn_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const int64_t size = attr_int(n, "size");
    if (size >= 1 && size <= INT32_MAX) return (x->rank < 0 || ranked(c, n, x, 2)) && shape_same(c, n);
    node_error(c, n, "size %lld is out of range", (long long)size);
    return false;
}

static void lrn_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const char *line = "X_OFF";
    if (nothing(l, &y)) return;
    for (int i = 0; i < x.rank; i++)
        if (i != 1) line = arena_text(&c->arena, "%s + i%d * X_S%d", line, i, i);
    Kernel *k = kernel_begin(l, n, "lrn");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    kernel_text(k, "LINE", line);
    kernel_text(k, "CHANNEL", "i1");
    kernel_int(k, "SIZE", attr_int(n, "size"));
    kernel_int(k, "BEFORE", (attr_int(n, "size") - 1) / 2);
    kernel_float(k, "ALPHA", attr_float(n, "alpha"));
    kernel_float(k, "BETA", attr_float(n, "beta"));
    kernel_float(k, "BIAS", attr_float(n, "bias"));
    kernel_text(k, "POWER(a, b)", x.store == DT_F64 ? "pow((a), (b))" : "powf((a), (b))");
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, NULL);
}

#define OLD "f32 f16 f64"
#define FLOATS "f32 f16 bf16 f64"
#define BATCH(since_, schema_) { .name = "BatchNormalization", .since = since_, .schema = schema_, .shape = batch_shape, .lower = batch_lower }
#define OLD_BATCH "X:T, scale:T, B:T, mean:T, var:T -> Y:T, mean:T?, var:T?, saved_mean:T?, saved_var:T? ; epsilon:float=1e-5, momentum:float=0.9"
#define TRAINING "epsilon:float=1e-5, momentum:float=0.9, training_mode:int=0"
#define INSTANCE(since_, types_) \
    { .name = "InstanceNormalization", .since = since_, .schema = "input:T, scale:T, B:T -> output:T ; epsilon:float=1e-5 | T=" types_, \
      .shape = instance_shape, .lower = instance_lower }
#define GROUP(since_, more_) \
    { .name = "GroupNormalization", .since = since_, \
      .schema = "X:T, scale:T, bias:T -> Y:T ; epsilon:float=1e-5, num_groups:int" more_ " | T=" FLOATS, .shape = group_shape, .lower = group_lower }
#define MEAN_VARIANCE(since_, types_) \
    { .name = "MeanVarianceNormalization", .since = since_, .schema = "X:T -> Y:T ; axes:ints=[0 2 3] | T=" types_, \
      .shape = mean_variance_shape, .lower = mean_variance_lower }
#define LP(since_, types_) \
    { .name = "LpNormalization", .since = since_, .schema = "input:T -> output:T ; axis:int=-1, p:int=2 | T=" types_, .shape = lp_shape, \
      .lower = lp_lower }
#define LOCAL_RESPONSE(since_, types_) \
    { .name = "LRN", .since = since_, .schema = "X:T -> Y:T ; alpha:float=0.0001, beta:float=0.75, bias:float=1, size:int | T=" types_, \
      .shape = lrn_shape, .lower = lrn_lower }

static const OpRow rows[] = {
    BATCH(7, OLD_BATCH ", spatial:int=1 | T=" OLD),
    BATCH(9, OLD_BATCH " | T=" OLD),
    BATCH(14, "X:T, scale:T, B:T, input_mean:U, input_var:U -> Y:T, running_mean:U?, running_var:U? ; " TRAINING " | T=" FLOATS ", U=" FLOATS),
    BATCH(15, "X:T, scale:V, B:V, input_mean:U, input_var:U -> Y:T, running_mean:U?, running_var:U? ; " TRAINING " | T=" FLOATS ", U=" FLOATS
              ", V=" FLOATS),
    INSTANCE(6, OLD),
    INSTANCE(22, FLOATS),
    GROUP(18, ""),
    GROUP(21, ", stash_type:int=1"),
    MEAN_VARIANCE(9, OLD),
    MEAN_VARIANCE(13, FLOATS),
    LP(1, OLD),
    LP(22, FLOATS),
    LOCAL_RESPONSE(1, OLD),
    LOCAL_RESPONSE(13, FLOATS),
};

const OpFamily ops_normalise = { rows, (int)COUNT_OF(rows), "normalise.c" };
