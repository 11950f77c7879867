/* conv.c - Conv along one, two or three axes. Each output has its thread, which sums over its group's channels and the taps. */
#include "ops/move.h"

#include <string.h>

enum { MAX_AXES = 3 };

/* One spatial axis. */
typedef struct Axis { int64_t taps, stride, dilation; Dim before, length; } Axis; /* padding before; outputs */

/* Element I of an attribute with one element for each axis (or, with TWO, two); DEFAULT when it is absent. -1: an error. */
static int64_t attr_element(Compilation *c, const Node *n, const char *name, int i, int count, int64_t fallback, int64_t least)
{
    const Attr *a = node_attr(n, name);
    if (!a->present || a->count == 0) return fallback;
    if (a->count != count) {
        node_error(c, n, "%s has %d elements; expected %d", name, a->count, count);
        return -1;
    }
    if (a->ints[i] >= least && a->ints[i] <= INT32_MAX) return a->ints[i];
    node_error(c, n, "%s[%d] is %lld", name, i, (long long)a->ints[i]);
    return -1;
}

/* Outputs along an axis, and the padding before it, for an input of extent X (0: unknown). */
static bool axis_extent(Compilation *c, const Node *n, int i, int axes, Dim x, Axis *a)
{
    const char *pad = attr_string(n, "auto_pad");
    const Dim reach = dim_const(c, (a->taps - 1) * a->dilation + 1), stride = dim_const(c, a->stride), one = dim_const(c, 1);
    const bool same = !strncmp(pad, "SAME_", 5);
    a->before = dim_const(c, 0);
    a->length = 0;
    if (strcmp(pad, "NOTSET") != 0 && strcmp(pad, "VALID") != 0 && strcmp(pad, "SAME_UPPER") != 0 && strcmp(pad, "SAME_LOWER") != 0) {
        node_error(c, n, "auto_pad '%s': expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", pad);
        return false;
    }
    if (same && x) {
        a->length = dim_op(c, DIM_CEILDIV, x, stride);
        const Dim seen = dim_add(c, dim_mul(c, dim_sub(c, a->length, one), stride), reach);
        const Dim missing = dim_op(c, DIM_MAX, dim_sub(c, seen, x), dim_const(c, 0));
        a->before = dim_op(c, strcmp(pad, "SAME_UPPER") ? DIM_CEILDIV : DIM_FLOORDIV, missing, dim_const(c, 2));
        return true;
    }
    const bool given = !strcmp(pad, "NOTSET");
    const int64_t before = given ? attr_element(c, n, "pads", i, 2 * axes, 0, 0) : 0;
    const int64_t after = given ? attr_element(c, n, "pads", i + axes, 2 * axes, 0, 0) : 0;
    if (before < 0 || after < 0) return false;
    a->before = dim_const(c, before);
    if (!x || same) return true;
    const Dim free = dim_sub(c, dim_add(c, x, dim_const(c, before + after)), reach);
    a->length = dim_add(c, dim_op(c, DIM_FLOORDIV, free, stride), one);
    return true;
}

/* TAPS comes from the weight; kernel_shape must agree. */
static bool read_axis(Compilation *c, const Node *n, int i, int axes, Dim taps, Dim x, Axis *a)
{
    int64_t known = 0;
    if (!taps || !dim_is_const(c, dim_resolve(c, taps), &known)) {
        node_error(c, n, "weight '%s': its extent along axis %d is not a known number", node_input(c, n, 1)->name, i + 2);
        return false;
    }
    a->taps = attr_element(c, n, "kernel_shape", i, axes, known, 1);
    a->stride = attr_element(c, n, "strides", i, axes, 1, 1);
    a->dilation = attr_element(c, n, "dilations", i, axes, 1, 1);
    if (a->taps < 0 || a->stride < 0 || a->dilation < 0) return false;
    if (a->taps != known) {
        node_error(c, n, "kernel_shape[%d] is %lld, but the weight has %lld taps there", i, (long long)a->taps, (long long)known);
        return false;
    }
    return axis_extent(c, n, i, axes, x ? dim_resolve(c, x) : 0, a);
}

static bool read_axes(Compilation *c, const Node *n, Axis *axes)
{
    const Value *x = node_input(c, n, 0), *w = node_input(c, n, 1);
    for (int i = 0; i < x->rank - 2; i++)
        if (!read_axis(c, n, i, x->rank - 2, w->dims[i + 2], x->dims[i + 2], &axes[i])) return false;
    return true;
}

static bool channels_fit(Compilation *c, const Node *n)
{
    const Value *x = node_input(c, n, 0), *w = node_input(c, n, 1), *bias = node_input(c, n, 2);
    const int64_t group = attr_int(n, "group");
    int64_t outputs;
    if (group < 1) {
        node_error(c, n, "group is %lld", (long long)group);
        return false;
    }
    if (w->dims[0] && dim_is_const(c, dim_resolve(c, w->dims[0]), &outputs) && outputs % group) {
        node_error(c, n, "%lld output channels are not divisible by %lld groups", (long long)outputs, (long long)group);
        return false;
    }
    const Dim channels = w->dims[1] ? dim_scale(c, dim_resolve(c, w->dims[1]), group) : 0;
    if (channels && !dim_equate(c, n, "a filter has the channels of its group", x->dims[1], channels))
        return false;
    return !bias || bias->rank != 1 || dim_equate(c, n, "a bias for each output channel", bias->dims[0], w->dims[0]);
}

static bool conv_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *w = node_input(c, n, 1);
    Axis axes[MAX_AXES];
    Dim dims[MAX_RANK];
    if (x->rank < 0 || w->rank < 0) return output_set(c, n, 0, x->dtype, x->rank, (Dim[MAX_RANK]){0});
    if (x->rank < 3 || x->rank > 2 + MAX_AXES || w->rank != x->rank) {
        node_error(c, n, "X and W must have one rank of 3 to %d, found %d and %d", 2 + MAX_AXES, x->rank, w->rank);
        return false;
    }
    if (!channels_fit(c, n) || !read_axes(c, n, axes)) return false;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 2; i < x->rank; i++) dims[i] = axes[i - 2].length;
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

/* V with three spatial axes: those that are missing come first, of one element. */
static View with_axes(Compilation *c, const View *v)
{
    View out = *v;
    const int missing = 2 + MAX_AXES - v->rank;
    for (int i = v->rank - 1; i >= 2; i--) {
        out.dims[i + missing] = v->dims[i];
        out.stride[i + missing] = v->stride[i];
    }
    for (int i = 2; i < 2 + missing; i++) {
        out.dims[i] = dim_const(c, 1);
        out.stride[i] = 0;
    }
    out.rank = 2 + MAX_AXES;
    return out;
}

static void conv_axes(Lower *l, Kernel *k, const Axis *axes, int count)
{
    Compilation *c = lower_compilation(l);
    for (int i = 0; i < MAX_AXES; i++) {
        const Axis plain = {1, 1, 1, dim_const(c, 0), 0}, *a = i < MAX_AXES - count ? &plain : &axes[i - (MAX_AXES - count)];
        kernel_int(k, arena_text(&c->arena, "TAPS%d", i), a->taps);
        kernel_int(k, arena_text(&c->arena, "STRIDE%d", i), a->stride);
        kernel_int(k, arena_text(&c->arena, "DILATION%d", i), a->dilation);
        kernel_dim(k, arena_text(&c->arena, "BEFORE%d", i), lower_dim(l, a->before));
    }
}

static void conv_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), w = lower_input(l, n, 1), out = lower_output(l, n, 0);
    const View y = with_axes(c, &out);
    Axis axes[MAX_AXES];
    if (!read_axes(c, n, axes)) return;
    Kernel *k = kernel_begin(l, n, "conv");
    kernel_in(k, "X", with_axes(c, &x));
    kernel_in(k, "W", with_axes(c, &w));
    if (node_input(c, n, 2)) kernel_in(k, "BIAS", lower_input(l, n, 2));
    kernel_out(k, "Y", y);
    kernel_int(k, "HAS_BIAS", node_input(c, n, 2) != NULL);
    kernel_int(k, "GROUPS", attr_int(n, "group"));
    conv_axes(l, k, axes, x.rank - 2);
    launch_elements(l, k, &y, NULL);
}

#define CONV(since_, types_) \
    {.domain = "", .name = "Conv", .since = since_, \
     .schema = "X:T, W:T, B:T? -> Y:T ; auto_pad:string=NOTSET, dilations:ints?, group:int=1, kernel_shape:ints?, pads:ints?, " \
               "strides:ints? | T=" types_, \
     .shape = conv_shape, .lower = conv_lower}

static const OpRow rows[] = {
    CONV(1, "f32 f16 bf16 f64"),
    CONV(11, "f32 f16 bf16 f64"),
    CONV(22, "f32 f16 bf16 f64"),
};

const OpFamily ops_conv = {rows, COUNT_OF(rows), "compiler/ops/conv.c"};
