/* conv_transpose.c - ConvTranspose, DeformConv and Col2Im: a thread gathers what reaches its outputs, so that no two threads add to
 * one place. */
#include "ops/move.h"
#include "ops/window.h"

#include <string.h>

enum { PLACES = 128 /* threads of a block */, TILE = 8 /* channels of a thread */, GRID_LIMIT = 65535 };

/* ---- what convolutions share */

static bool equate(Compilation *c, const Node *n, const char *rule, Dim a, Dim b)
{
    return !a || !b || dim_equal(c, a, b) || dim_equate(c, n, rule, a, b);
}

/* Kernel dims of the weights; false while not known, or after an error. */
static bool weight_kernel(Compilation *c, const Node *n, const Value *x, const Value *w, int64_t *kernel)
{
    if (x->rank < 0 || w->rank < 0) return false;
    if (x->rank < 3 || w->rank != x->rank) {
        node_error(c, n, "input '%s' has rank %d, the weights '%s' %d; equal ranks from 3 on are needed", x->name, x->rank,
                   w->name, w->rank);
        return false;
    }
    if (x->rank - 2 > WINDOW_AXES) {
        node_error(c, n, "%d spatial axes; 1 to %d are supported", x->rank - 2, WINDOW_AXES);
        return false;
    }
    for (int i = 2; i < w->rank; i++)
        if (!dim_is_const(c, w->dims[i], &kernel[i - 2])) return false;
    return true;
}

/* Groups, and channels in and out of each; false (and an error) when they do not divide or are not constant. */
typedef struct Groups { int64_t count, in, out; } Groups;

static bool groups_read(Compilation *c, const Node *n, Dim channels_in, Dim channels_out, Groups *g)
{
    int64_t in, out;
    g->count = attr_int(n, "group");
    if (!dim_is_const(c, channels_in, &in) || !dim_is_const(c, channels_out, &out)) {
        node_error(c, n, "the channels of a convolution must be known when compiling");
        return false;
    }
    if (g->count < 1 || in % g->count || out % g->count) {
        node_error(c, n, "%lld and %lld channels are not divided by %lld groups", (long long)in, (long long)out,
                   (long long)g->count);
        return false;
    }
    g->in = in / g->count;
    g->out = out / g->count;
    return true;
}

/* A bias has one dim, that of the output's channels. */
static bool bias_fits(Compilation *c, const Node *n, const Value *bias, Dim channels)
{
    if (!bias || bias->rank < 0) return true;
    if (bias->rank == 1) return equate(c, n, "a bias has an element for each channel", bias->dims[0], channels);
    node_error(c, n, "input '%s': expected rank 1, found %d", bias->name, bias->rank);
    return false;
}

static void define_sums(Kernel *k, DType t)
{
    const bool wide = t == DT_F64;
    kernel_text(k, "ACC", wide ? "double" : "float");
    kernel_text(k, "FMA_ACC(a, b, c)", wide ? "((a) * (b) + (c))" : "FMAF(a, b, c)");
}

/* Grid: places, groups of channels, batch. CT: channels of a thread. */
static void launch_places(Lower *l, const Node *n, Kernel *k, const View *y, const Groups *g)
{
    Compilation *c = lower_compilation(l);
    int64_t tile = 1;
    while (tile < TILE && tile < g->out) tile *= 2;
    const int64_t chunks = (g->out + tile - 1) / tile, batch = lower_upper(l, y->dims[0]);
    const int64_t places = lower_upper(l, dims_product(c, y->rank - 2, y->dims + 2));
    if (batch < 1 || places < 1 || g->out < 1) return;
    if (chunks * g->count > GRID_LIMIT) {
        node_error(c, n, "%lld groups of channels; at most %d are supported", (long long)(chunks * g->count), GRID_LIMIT);
        return;
    }
    kernel_int(k, "CT", tile);
    kernel_int(k, "CHUNKS", chunks);
    kernel_int(k, "GROUP_IN", g->in);
    kernel_int(k, "GROUP_OUT", g->out);
    kernel_launch(k, (places + PLACES - 1) / PLACES, chunks * g->count, batch < GRID_LIMIT ? batch : GRID_LIMIT, PLACES);
}

static void bias_operand(Lower *l, const Node *n, Kernel *k, int input)
{
    const bool given = node_input(lower_compilation(l), n, input) != NULL;
    kernel_int(k, "HAS_B", given);
    if (given) kernel_in(k, "B", lower_input(l, n, input));
}

/* ---- ConvTranspose */

/* Extent of the output of axis I without any padding. */
static Dim whole_extent(Compilation *c, const Node *n, const Window *w, int i, Dim input)
{
    const Dim last = dim_scale(c, dim_sub(c, input, dim_const(c, 1)), w->stride[i]);
    return dim_add(c, last, dim_const(c, window_extent(w, i) + list_value(n, "output_padding", i, 0)));
}

/* Pads of axis I, and its output extent in w->out. Where the extent is given, what is too much becomes padding. */
static void transposed_axis(Compilation *c, const Node *n, Window *w, int i, Dim input)
{
    const char *pad = attr_string(n, "auto_pad");
    const bool upper = !strcmp(pad, "SAME_UPPER"), same = upper || !strcmp(pad, "SAME_LOWER"), fixed = node_attr(n, "output_shape")->count > 0;
    const bool valid = !strcmp(pad, "VALID");
    const Dim whole = whole_extent(c, n, w, i, input);
    if (fixed || same) {
        w->out[i] = fixed ? dim_const(c, list_value(n, "output_shape", i, 0)) : dim_scale(c, input, w->stride[i]);
        const Dim total = dim_op(c, DIM_MAX, dim_sub(c, whole, w->out[i]), dim_const(c, 0));
        w->before[i] = dim_op(c, upper ? DIM_FLOORDIV : DIM_CEILDIV, total, dim_const(c, 2));
        w->after[i] = dim_sub(c, total, w->before[i]);
        return;
    }
    w->before[i] = dim_const(c, valid ? 0 : list_value(n, "pads", i, 0));
    w->after[i] = dim_const(c, valid ? 0 : list_value(n, "pads", w->axes + i, 0));
    w->out[i] = dim_sub(c, whole, dim_add(c, w->before[i], w->after[i]));
}

static bool transposed_read(Compilation *c, const Node *n, const Value *x, const int64_t *kernel, Window *w)
{
    const int axes = x->rank - 2;
    if (!window_read(c, n, axes, kernel, w)) return false;
    if (!list_fits(c, n, "output_padding", axes, 0) || !list_fits(c, n, "output_shape", axes, 0)) return false;
    for (int i = 0; i < axes; i++)
        if (x->dims[i + 2]) transposed_axis(c, n, w, i, x->dims[i + 2]);
    return true;
}

static bool transposed_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *weights = node_input(c, n, 1);
    Dim dims[MAX_RANK] = { 0 };
    int64_t kernel[WINDOW_AXES];
    Window w;
    if (!weight_kernel(c, n, x, weights, kernel)) return !diag_failed(c) && output_set(c, n, 0, x->dtype, x->rank, dims);
    if (!equate(c, n, "a transposed convolution's weights have a row for each input channel", x->dims[1], weights->dims[0])) return false;
    dims[0] = x->dims[0];
    dims[1] = weights->dims[1] ? dim_scale(c, weights->dims[1], attr_int(n, "group")) : 0;
    if (!bias_fits(c, n, node_input(c, n, 2), dims[1]) || !transposed_read(c, n, x, kernel, &w)) return false;
    for (int i = 0; i < w.axes; i++) dims[i + 2] = w.out[i];
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void transposed_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *x = node_input(c, n, 0), *weights = node_input(c, n, 1);
    const View y = window_view(c, lower_output(l, n, 0));
    int64_t kernel[WINDOW_AXES];
    Groups g;
    Window w;
    if (!weight_kernel(c, n, x, weights, kernel)) {
        node_error(c, n, "the kernel's extents are not known when compiling");
        return;
    }
    if (!transposed_read(c, n, x, kernel, &w) || !groups_read(c, n, weights->dims[0], y.dims[1], &g)) return;
    Kernel *k = kernel_begin(l, n, "conv_transpose");
    kernel_in(k, "X", window_view(c, lower_input(l, n, 0)));
    kernel_in(k, "W", window_view(c, lower_input(l, n, 1)));
    bias_operand(l, n, k, 2);
    kernel_out(k, "Y", y);
    window_define(l, k, &w);
    for (int i = 0; i < WINDOW_AXES; i++) {
        const int axis = i - (WINDOW_AXES - w.axes);
        const int64_t step = axis < 0 ? 1 : w.stride[axis] / common_divisor(w.stride[axis], w.dilation[axis]);
        kernel_int(k, arena_text(&c->arena, "STEP%d", i), step);
    }
    define_sums(k, y.store);
    launch_places(l, n, k, &y, &g);
}

/* ---- DeformConv */

static bool deform_counts(Compilation *c, const Node *n, const Window *w, Dim channels)
{
    const int64_t groups = attr_int(n, "offset_group"), places = w->kernel[0] * w->kernel[1];
    const Value *offset = node_input(c, n, 2), *mask = node_input(c, n, 4);
    int64_t in;
    if (groups < 1 || (dim_is_const(c, channels, &in) && in % groups)) {
        node_error(c, n, "the input channels are not divided by %lld offset groups", (long long)groups);
        return false;
    }
    if (offset->rank != 4 || (mask && mask->rank != 4)) {
        node_error(c, n, "the offsets and the mask must have rank 4");
        return false;
    }
    if (!equate(c, n, "DeformConv has two offsets for each place", offset->dims[1], dim_const(c, 2 * groups * places))) return false;
    return !mask || equate(c, n, "DeformConv has one factor for each place", mask->dims[1], dim_const(c, groups * places));
}

static bool deform_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *weights = node_input(c, n, 1), *offset = node_input(c, n, 2);
    Dim dims[MAX_RANK] = { 0 };
    int64_t kernel[WINDOW_AXES];
    Window w;
    if (x->rank >= 0 && x->rank != 4) {
        node_error(c, n, "input '%s' has rank %d; only two spatial axes (rank 4) are supported", x->name, x->rank);
        return false;
    }
    if (!weight_kernel(c, n, x, weights, kernel) || offset->rank < 0) return !diag_failed(c) && output_set(c, n, 0, x->dtype, x->rank, dims);
    if (!window_read(c, n, 2, kernel, &w) || !deform_counts(c, n, &w, x->dims[1])) return false;
    if (!bias_fits(c, n, node_input(c, n, 3), weights->dims[0])) return false;
    dims[0] = x->dims[0];
    dims[1] = weights->dims[0];
    for (int i = 0; i < 2; i++) {
        const Dim pads = dim_const(c, list_value(n, "pads", i, 0) + list_value(n, "pads", i + 2, 0) - window_extent(&w, i));
        if (!x->dims[i + 2]) continue;
        const Dim span = dim_op(c, DIM_FLOORDIV, dim_add(c, x->dims[i + 2], pads), dim_const(c, w.stride[i]));
        dims[i + 2] = dim_add(c, span, dim_const(c, 1));
        if (!equate(c, n, "DeformConv has offsets for each output place", dims[i + 2], offset->dims[i + 2])) return false;
    }
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void deform_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *x = node_input(c, n, 0), *weights = node_input(c, n, 1);
    const View y = lower_output(l, n, 0);
    int64_t kernel[WINDOW_AXES];
    Groups g;
    Window w;
    if (!weight_kernel(c, n, x, weights, kernel)) {
        node_error(c, n, "the kernel's extents are not known when compiling");
        return;
    }
    if (!window_read(c, n, 2, kernel, &w) || !groups_read(c, n, x->dims[1], weights->dims[0], &g)) return;
    for (int i = 0; i < 2; i++) {
        w.before[i] = dim_const(c, list_value(n, "pads", i, 0));
        w.after[i] = dim_const(c, list_value(n, "pads", i + 2, 0));
    }
    Kernel *k = kernel_begin(l, n, "deform_conv");
    kernel_in(k, "X", lower_input(l, n, 0));
    kernel_in(k, "W", lower_input(l, n, 1));
    kernel_in(k, "O", lower_input(l, n, 2));
    bias_operand(l, n, k, 3);
    kernel_int(k, "HAS_MASK", node_input(c, n, 4) != NULL);
    if (node_input(c, n, 4)) kernel_in(k, "MASK", lower_input(l, n, 4));
    kernel_out(k, "Y", y);
    kernel_int(k, "OFFSET_IN", g.in * g.count / attr_int(n, "offset_group"));
    window_define(l, k, &w);
    define_sums(k, y.store);
    launch_places(l, n, k, &y, &g);
}

/* ---- Col2Im */

/* The window of the block over the image; IMAGE gets the image's dims. False while not known (with an error if `must`). */
static bool columns_read(Compilation *c, const Node *n, bool must, Window *w, Dim *image)
{
    int64_t *block;
    Dim *dims;
    int axes, count;
    if (!value_dims(c, node_input(c, n, 1), &dims, &count) || !value_ints(c, node_input(c, n, 2), &block, &axes)) {
        if (must) node_error(c, n, "the image's or the block's shape is not known when compiling");
        return false;
    }
    if (axes != count) {
        node_error(c, n, "the image has %d axes, the block %d", count, axes);
        return false;
    }
    for (int i = 0; i < axes; i++)
        if (block[i] < 1) {
            node_error(c, n, "the block has %lld elements along axis %d", (long long)block[i], i);
            return false;
        }
    if (!window_read(c, n, axes, block, w)) return false;
    for (int i = 0; i < axes; i++) {
        image[i] = dims[i];
        w->before[i] = dim_const(c, list_value(n, "pads", i, 0));
        w->after[i] = dim_const(c, list_value(n, "pads", axes + i, 0));
        const Dim padded = dim_add(c, dims[i], dim_add(c, w->before[i], w->after[i]));
        const Dim span = dim_sub(c, padded, dim_const(c, window_extent(w, i)));
        w->out[i] = dim_add(c, dim_op(c, DIM_FLOORDIV, span, dim_const(c, w->stride[i])), dim_const(c, 1));
    }
    return true;
}

static bool columns_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *image_shape = node_input(c, n, 1);
    Dim dims[MAX_RANK] = { 0 }, blocks = dim_const(c, 1);
    int64_t size = 1, axes;
    Window w;
    if (x->rank >= 0 && x->rank != 3) {
        node_error(c, n, "input '%s': expected rank 3, found %d", x->name, x->rank);
        return false;
    }
    if (x->rank < 0 || !columns_read(c, n, false, &w, dims + 2)) {
        const bool ranked = image_shape->rank == 1 && dim_is_const(c, image_shape->dims[0], &axes) && axes <= WINDOW_AXES;
        return !diag_failed(c) && output_set(c, n, 0, x->dtype, ranked ? (int)axes + 2 : -1, (Dim[MAX_RANK]){ 0 });
    }
    for (int i = 0; i < w.axes; i++) {
        size *= w.kernel[i];
        blocks = dim_mul(c, blocks, w.out[i]);
    }
    if (!equate(c, n, "Col2Im has a column for each place of the block", x->dims[2], blocks)) return false;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1] ? dim_op(c, DIM_FLOORDIV, x->dims[1], dim_const(c, size)) : 0;
    if (dims[1] && !equate(c, n, "the block divides Col2Im's rows", x->dims[1], dim_scale(c, dims[1], size))) return false;
    return output_set(c, n, 0, x->dtype, w.axes + 2, dims);
}

static void columns_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View y = window_view(c, lower_output(l, n, 0));
    Dim image[MAX_RANK];
    Window w;
    if (!columns_read(c, n, true, &w, image) || lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "col2im");
    kernel_in(k, "X", lower_input(l, n, 0));
    kernel_out(k, "Y", y);
    window_define(l, k, &w);
    for (int i = 0; i < WINDOW_AXES; i++) {
        const int axis = i - (WINDOW_AXES - w.axes);
        kernel_dim(k, arena_text(&c->arena, "L%d", i), axis < 0 ? dim_const(c, 1) : lower_dim(l, w.out[axis]));
    }
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, NULL);
}

#define TRANSPOSED(since_, types_) \
    { .name = "ConvTranspose", .since = since_, \
      .schema = "X:T, W:T, B:T? -> Y:T ; auto_pad:string=NOTSET, dilations:ints?, group:int=1, kernel_shape:ints?, " \
                "output_padding:ints?, output_shape:ints?, pads:ints?, strides:ints? | T=" types_, \
      .shape = transposed_shape, .lower = transposed_lower }
#define DEFORM(since_, types_) \
    { .name = "DeformConv", .since = since_, \
      .schema = "X:T, W:T, offset:T, B:T?, mask:T? -> Y:T ; dilations:ints?, group:int=1, kernel_shape:ints?, " \
                "offset_group:int=1, pads:ints?, strides:ints? | T=" types_, \
      .shape = deform_shape, .lower = deform_lower }

static const OpRow rows[] = {
    TRANSPOSED(1, "f32 f16 f64"),
    TRANSPOSED(22, "f32 f16 bf16 f64"),
    DEFORM(19, "f32 f16 f64"),
    DEFORM(22, "f32 f16 bf16 f64"),
    { .name = "Col2Im", .since = 18,
      .schema = "input:T, image_shape:i64, block_shape:i64 -> output:T ; dilations:ints?, pads:ints?, strides:ints? | "
                "T=" TYPES_NUMBER,
      .shape = columns_shape, .lower = columns_lower },
};

const OpFamily ops_conv_transpose = { rows, (int)COUNT_OF(rows), "conv_transpose.c" };
