/* window.c - reads kernel shapes, strides, dilations and pads, and decides where windows lie. */
#include "ops/window.h"

#include <string.h>

bool op_has(const Node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (!strcmp(n->attrs[i].name, name)) return true;
    return false;
}

int64_t list_value(const Node *n, const char *name, int i, int64_t otherwise)
{
    const Attr *a = op_has(n, name) ? node_attr(n, name) : NULL;
    return a && i < a->count ? a->ints[i] : otherwise;
}

bool list_fits(Compilation *c, const Node *n, const char *name, int count, int64_t least)
{
    const Attr *a = op_has(n, name) ? node_attr(n, name) : NULL;
    if (!a || !a->count) return true;
    if (a->count != count) {
        node_error(c, n, "attribute '%s' has %d elements, expected %d", name, a->count, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (a->ints[i] >= least && a->ints[i] <= INT32_MAX) continue;
        node_error(c, n, "attribute '%s': %lld is out of range", name, (long long)a->ints[i]);
        return false;
    }
    return true;
}

int64_t window_extent(const Window *w, int axis) { return (w->kernel[axis] - 1) * w->dilation[axis] + 1; }

bool window_read(Compilation *c, const Node *n, int axes, const int64_t *given, Window *w)
{
    memset(w, 0, sizeof *w);
    if (axes < 1 || axes > WINDOW_AXES) {
        node_error(c, n, "%d spatial axes; 1 to %d are supported", axes, WINDOW_AXES);
        return false;
    }
    if (!list_fits(c, n, "kernel_shape", axes, 1) || !list_fits(c, n, "strides", axes, 1)) return false;
    if (!list_fits(c, n, "dilations", axes, 1) || !list_fits(c, n, "pads", 2 * axes, INT32_MIN)) return false;
    w->axes = axes;
    for (int i = 0; i < axes; i++) {
        w->kernel[i] = list_value(n, "kernel_shape", i, given ? given[i] : 1);
        w->stride[i] = list_value(n, "strides", i, 1);
        w->dilation[i] = list_value(n, "dilations", i, 1);
        if (!given || given[i] == w->kernel[i]) continue;
        node_error(c, n, "kernel_shape says %lld for axis %d, the weights have %lld", (long long)w->kernel[i], i,
                   (long long)given[i]);
        return false;
    }
    return true;
}

/* Places of a window with explicit pads. With ceil_mode the last window may reach beyond the padding at the end, but must
 * start before it. */
static Dim places(Compilation *c, const Window *w, int i, Dim input, bool ceil_mode)
{
    const Dim stride = dim_const(c, w->stride[i]), start = dim_add(c, input, w->before[i]);
    const Dim span = dim_sub(c, dim_add(c, start, w->after[i]), dim_const(c, window_extent(w, i)));
    const Dim count = dim_add(c, dim_op(c, ceil_mode ? DIM_CEILDIV : DIM_FLOORDIV, span, stride), dim_const(c, 1));
    int64_t lo, hi;
    if (!ceil_mode) return count;
    const Dim most = dim_op(c, DIM_CEILDIV, start, stride);
    dim_bounds(c, dim_sub(c, most, count), &lo, &hi);
    return lo >= 0 ? count : hi <= 0 ? most : dim_op(c, DIM_MIN, count, most);
}

/* SAME_UPPER and SAME_LOWER: one place for each `stride` inputs; an odd pad is larger at the end, or at the start. */
static void slide_same(Compilation *c, Window *w, int i, Dim input, bool lower)
{
    w->out[i] = dim_op(c, DIM_CEILDIV, input, dim_const(c, w->stride[i]));
    const Dim last = dim_scale(c, dim_sub(c, w->out[i], dim_const(c, 1)), w->stride[i]);
    const Dim need = dim_sub(c, dim_add(c, last, dim_const(c, window_extent(w, i))), input);
    const Dim total = dim_op(c, DIM_MAX, need, dim_const(c, 0));
    w->before[i] = dim_op(c, lower ? DIM_CEILDIV : DIM_FLOORDIV, total, dim_const(c, 2));
    w->after[i] = dim_sub(c, total, w->before[i]);
}

bool window_slide(Compilation *c, const Node *n, const Dim *input, Window *w)
{
    const char *pad = attr_string(n, "auto_pad");
    const bool lower = !strcmp(pad, "SAME_LOWER"), same = lower || !strcmp(pad, "SAME_UPPER"), valid = !strcmp(pad, "VALID");
    const bool ceil_mode = !valid && op_has(n, "ceil_mode") && attr_int(n, "ceil_mode");
    if (!same && !valid && *pad && strcmp(pad, "NOTSET") != 0) {
        node_error(c, n, "auto_pad '%s' is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID", pad);
        return false;
    }
    for (int i = 0; i < w->axes; i++) {
        int64_t lo, hi;
        w->before[i] = dim_const(c, valid ? 0 : list_value(n, "pads", i, 0));
        w->after[i] = dim_const(c, valid ? 0 : list_value(n, "pads", w->axes + i, 0));
        w->out[i] = 0;
        if (!input[i]) continue;
        if (same) slide_same(c, w, i, input[i], lower);
        else w->out[i] = places(c, w, i, input[i], ceil_mode);
        dim_bounds(c, w->out[i], &lo, &hi);
        if (hi >= 0) continue;
        node_error(c, n, "the window of %lld elements does not fit axis %d of %s", (long long)window_extent(w, i), i + 2,
                   dim_text(c, input[i]));
        return false;
    }
    return true;
}

View window_axes_added(Compilation *c, View v, int first, int count)
{
    for (int i = v.rank - 1; i >= first; i--) {
        v.dims[i + count] = v.dims[i];
        v.stride[i + count] = v.stride[i];
    }
    for (int i = first; i < first + count; i++) {
        v.dims[i] = dim_const(c, 1);
        v.stride[i] = 0;
    }
    v.rank += count;
    return v;
}

View window_view(Compilation *c, View v) { return window_axes_added(c, v, 2, 2 + WINDOW_AXES - v.rank); }

void window_define(Lower *l, Kernel *k, const Window *w)
{
    Compilation *c = lower_compilation(l);
    for (int i = 0; i < WINDOW_AXES; i++) {
        const int axis = i - (WINDOW_AXES - w->axes);
        const Dim zero = dim_const(c, 0);
        kernel_int(k, arena_text(&c->arena, "K%d", i), axis < 0 ? 1 : w->kernel[axis]);
        kernel_int(k, arena_text(&c->arena, "ST%d", i), axis < 0 ? 1 : w->stride[axis]);
        kernel_int(k, arena_text(&c->arena, "DI%d", i), axis < 0 ? 1 : w->dilation[axis]);
        kernel_dim(k, arena_text(&c->arena, "PB%d", i), axis < 0 ? zero : lower_dim(l, w->before[axis]));
        kernel_dim(k, arena_text(&c->arena, "PA%d", i), axis < 0 ? zero : lower_dim(l, w->after[axis]));
    }
}
