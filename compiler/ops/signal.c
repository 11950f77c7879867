/* signal.c - transforms of signals and what goes with them: DFT, STFT, the windows, MelWeightMatrix. */
#include "ops/move.h"
#include "ops/rows.h"

#include <string.h>

enum { DFT_SHARED = 2048 }; /* numbers that a block holds in shared memory: four arrays of f32, or half as many of f64 */

static bool scalar_known(Compilation *c, const Node *n, int input, Dim *out)
{
    Dim *dims;
    int count;
    *out = 0;
    if (!node_input(c, n, input) || !value_dims(c, node_input(c, n, input), &dims, &count) || count != 1) return false;
    *out = dims[0];
    return true;
}

/* ---- the launch that DFT and STFT share */

typedef struct Dft {
    View x, y;              /* rows of (points, parts): the last two axes */
    int window;             /* input that holds it, or -1 */
    Dim points, bins;
    bool inverse, mirrored; /* mirrored: the input is half a spectrum, the output real */
} Dft;

static void define_input(Lower *l, Kernel *k, const Dft *p)
{
    Compilation *c = lower_compilation(l);
    const int axis = p->x.rank - 2;
    const char *window = p->window >= 0 ? " * (S_C)W_LD(W_AT(j))" : "";
    const bool complex = dim_is(c, p->x.dims[axis + 1], 2);
    const char *at = p->mirrored ? "((j) <= (POINTS) / 2 ? (j) : (POINTS) - (j))" : "(j)";
    for (int part = 0; part < 2; part++) {
        const char *sign = p->mirrored && part ? "((j) <= (POINTS) / 2 ? 1 : -1) * " : "";
        const char *text = part && !complex ? "0"
            : arena_text(&c->arena, "(%s < X_D%d ? %s(S_C)X_LD(X_ROW + (idx)%s * X_S%d + %d * X_S%d)%s : 0)", at, axis, sign, at, axis, part,
                         axis + 1, window);
        kernel_text(k, part ? "GET_IM(j)" : "GET_RE(j)", text);
    }
}

/* How many points fit into shared memory, and their logarithm when they are a power of two (0: they are not). */
static void define_points(Lower *l, Kernel *k, Dim points, DType t, int *threads)
{
    int64_t count = 0;
    int log = 0;
    const bool known = dim_is_const(lower_compilation(l), points, &count);
    const bool shared = known && count <= (t == DT_F64 ? DFT_SHARED / 2 : DFT_SHARED);
    while (shared && (INT64_C(1) << (log + 1)) <= count) log++;
    if (!shared || (INT64_C(1) << log) != count) log = 0;
    kernel_int(k, "SHARED_POINTS", shared);
    kernel_int(k, "LOG_POINTS", log);
    *threads = count > 512 ? 256 : count > 64 ? 128 : 32;
}

static void dft_launch(Lower *l, Node *n, const Dft *p)
{
    Compilation *c = lower_compilation(l);
    const int axis = p->x.rank - 2;
    int threads;
    const Dim rows = rows_count(c, &p->x, 0, axis);
    if (lower_upper(l, dims_product(c, p->y.rank, p->y.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "dft");
    kernel_in(k, "X", p->x);
    if (p->window >= 0) kernel_in(k, "W", lower_input(l, n, p->window));
    kernel_out(k, "Y", p->y);
    rows_define(c, k, "X", &p->x, axis);
    rows_define(c, k, "Y", &p->y, axis);
    kernel_text(k, "S_C", p->x.store == DT_F64 ? "double" : "float");
    define_points(l, k, p->points, p->x.store, &threads);
    define_input(l, k, p);
    kernel_int(k, "Y_STEP", p->y.stride[axis]);
    kernel_int(k, "Y_PART", p->y.stride[axis + 1]);
    kernel_int(k, "OUT_COMPLEX", dim_is(c, p->y.dims[axis + 1], 2));
    kernel_text(k, "SIGN", p->inverse ? "1.0" : "-1.0");
    kernel_text(k, "SCALE", p->inverse ? "(1.0 / (double)(POINTS))" : "1.0");
    kernel_dim(k, "POINTS", p->points);
    kernel_dim(k, "BINS", p->bins);
    kernel_dim(k, "ROWS", rows);
    kernel_int(k, "THREADS", threads);
    kernel_launch(k, lower_upper(l, rows), 1, 1, threads);
}

static Dim half_bins(Compilation *c, Dim points)
{
    return points ? dim_add(c, dim_op(c, DIM_FLOORDIV, points, dim_const(c, 2)), dim_const(c, 1)) : 0;
}

/* ---- DFT */

typedef struct DftNode { int axis; Dim points, bins; bool inverse, onesided; } DftNode;

static bool dft_read(Compilation *c, const Node *n, const Value *x, DftNode *d)
{
    int64_t axis = n->op->since < 20 ? attr_int(n, "axis") : -2;
    const Value *given = n->op->since < 20 ? NULL : node_input(c, n, 2);
    int64_t *list;
    int count;
    if (given && (!value_ints(c, given, &list, &count) || count != 1)) {
        node_error(c, n, "the axis is not known when compiling");
        return false;
    }
    if (given) axis = list[0];
    d->axis = axis_normal(c, n, axis, x->rank);
    if (d->axis < 0) return false;
    if (d->axis == x->rank - 1) {
        node_error(c, n, "axis %d holds the parts of the numbers", d->axis);
        return false;
    }
    d->inverse = attr_int(n, "inverse") != 0;
    d->onesided = attr_int(n, "onesided") != 0;
    const Dim extent = x->dims[d->axis];
    if (node_input(c, n, 1)) scalar_known(c, n, 1, &d->points);
    else if (d->inverse && d->onesided) d->points = extent ? dim_scale(c, dim_sub(c, extent, dim_const(c, 1)), 2) : 0;
    else d->points = extent;
    d->bins = d->onesided && !d->inverse ? half_bins(c, d->points) : d->points;
    return true;
}

static bool dft_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    DftNode d;
    Dim dims[MAX_RANK];
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (x->rank < 2) {
        node_error(c, n, "input '%s' has rank %d; expected 2 or more", x->name, x->rank);
        return false;
    }
    if (!dft_read(c, n, x, &d)) return false;
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    dims[d.axis] = d.bins;
    dims[x->rank - 1] = dim_const(c, d.inverse && d.onesided ? 1 : 2);
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void dft_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    DftNode d;
    int order[MAX_RANK], count = 0;
    if (!dft_read(c, n, node_input(c, n, 0), &d)) return;
    if (!dim_is(c, x.dims[x.rank - 1], 1) && !dim_is(c, x.dims[x.rank - 1], 2)) {
        node_error(c, n, "the last dim is %s; expected 1 or 2", dim_text(c, x.dims[x.rank - 1]));
        return;
    }
    for (int i = 0; i < x.rank; i++)
        if (i != d.axis) order[count++] = i;
    order[count] = order[count - 1];
    order[count - 1] = d.axis;
    const Dft p = {.x = rows_order(&x, order, x.rank), .y = rows_order(&y, order, y.rank), .window = -1, .points = lower_dim(l, d.points),
                   .bins = lower_dim(l, d.bins), .inverse = d.inverse, .mirrored = d.inverse && d.onesided};
    dft_launch(l, n, &p);
}

/* ---- STFT */

typedef struct Stft { Dim step, length, frames, bins; } Stft;

/* False after an error; fields are 0 while they are not known. */
static bool stft_read(Compilation *c, const Node *n, Stft *s)
{
    const Value *x = node_input(c, n, 0), *window = node_input(c, n, 2);
    memset(s, 0, sizeof *s);
    scalar_known(c, n, 1, &s->step);
    if (node_input(c, n, 3)) scalar_known(c, n, 3, &s->length);
    else if (window) s->length = window->rank == 1 ? window->dims[0] : 0;
    else {
        node_error(c, n, "neither a window nor a frame length is given");
        return false;
    }
    if (s->step && !dim_is_const(c, s->step, NULL)) s->step = 0;
    if (x->rank >= 0 && x->rank != 3) {
        node_error(c, n, "the signal has rank %d; expected 3", x->rank);
        return false;
    }
    if (s->step && s->length && x->rank == 3 && x->dims[1])
        s->frames = dim_add(c, dim_op(c, DIM_FLOORDIV, dim_sub(c, x->dims[1], s->length), s->step), dim_const(c, 1));
    s->bins = attr_int(n, "onesided") ? half_bins(c, s->length) : s->length;
    return true;
}

static bool stft_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Stft s;
    if (!stft_read(c, n, &s)) return false;
    const Dim dims[4] = {x->rank == 3 ? x->dims[0] : 0, s.frames, s.bins, dim_const(c, 2)};
    return output_set(c, n, 0, x->dtype, 4, dims);
}

/* A frame is a view: frames overlap in the signal. */
static void stft_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View signal = lower_input(l, n, 0), y = lower_output(l, n, 0);
    Stft s;
    int64_t step;
    if (!stft_read(c, n, &s)) return;
    if (!s.step || !s.length || !dim_is_const(c, s.step, &step) || step < 1) {
        node_error(c, n, "the frame step and length are not known when compiling");
        return;
    }
    View frames = signal;
    frames.rank = 4;
    frames.dims[1] = lower_dim(l, s.frames);
    frames.dims[2] = lower_dim(l, s.length);
    frames.dims[3] = signal.dims[2];
    frames.stride[1] = signal.stride[1] * step;
    frames.stride[2] = signal.stride[1];
    frames.stride[3] = signal.stride[2];
    const Dft p = {.x = frames, .y = y, .window = node_input(c, n, 2) ? 2 : -1, .points = frames.dims[2], .bins = lower_dim(l, s.bins)};
    dft_launch(l, n, &p);
}

/* ---- windows */

static bool window_shape(Compilation *c, Node *n)
{
    Dim size;
    scalar_known(c, n, 0, &size);
    return output_set(c, n, 0, attr_dtype(n, "output_datatype"), 1, &size);
}

static void window_lower(Lower *l, Node *n)
{
    static const char *const shapes[] = {"0.5 - 0.5 * cos(turn)", "25.0 / 46.0 - 21.0 / 46.0 * cos(turn)",
                                         "0.42 - 0.5 * cos(turn) + 0.08 * cos(2.0 * turn)"};
    Compilation *c = lower_compilation(l);
    const View out = lower_output(l, n, 0);
    const char *shape = shapes[!strcmp(n->op_type, "HannWindow") ? 0 : !strcmp(n->op_type, "HammingWindow") ? 1 : 2];
    if (lower_upper(l, out.dims[0]) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", shape);
    kernel_text(k, "TARGET", index_at(l, "Y", 1, "i"));
    launch_elements(l, k, &out, arena_text(&c->arena, "const double turn = 6.283185307179586477 * (double)i0 / (double)((Y_D0)%s);",
                                           attr_int(n, "periodic") ? "" : " - 1"));
}

/* ---- MelWeightMatrix */

static bool mel_shape(Compilation *c, Node *n)
{
    Dim bands, points;
    scalar_known(c, n, 0, &bands);
    scalar_known(c, n, 1, &points);
    const Dim dims[2] = {half_bins(c, points), bands};
    return output_set(c, n, 0, attr_dtype(n, "output_datatype"), 2, dims);
}

static void mel_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View out = lower_output(l, n, 0);
    Dim bands, points;
    if (!scalar_known(c, n, 0, &bands) || !scalar_known(c, n, 1, &points)) {
        node_error(c, n, "the number of bands and the length of the transform are not known when compiling");
        return;
    }
    if (lower_upper(l, dims_product(c, 2, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "mel_weights");
    kernel_in(k, "RATE", lower_input(l, n, 2));
    kernel_in(k, "LOW", lower_input(l, n, 3));
    kernel_in(k, "HIGH", lower_input(l, n, 4));
    kernel_out(k, "Y", out);
    kernel_dim(k, "BANDS", lower_dim(l, bands));
    kernel_dim(k, "POINTS", lower_dim(l, points));
    kernel_text(k, "TARGET", index_at(l, "Y", 2, "i"));
    kernel_dim(k, "COUNT", dims_product(c, 2, out.dims));
    kernel_text(k, "INDEX", index_split(l, 2, out.dims, "i"));
    kernel_launch(k, grid_for(lower_upper(l, dims_product(c, 2, out.dims)), 128), 1, 1, 128);
}

#define WINDOW(name_) \
    {.domain = "", .name = name_, .since = 17, \
     .schema = "size:I -> output:any ; output_datatype:int=1, periodic:int=1 | I=i32 i64", .shape = window_shape, .lower = window_lower}
static const OpRow rows[] = {
    {.domain = "", .name = "DFT", .since = 17,
     .schema = "input:T, dft_length:I? -> output:T ; axis:int=1, inverse:int=0, onesided:int=0 | T=" TYPES_FLOAT ", I=i32 i64",
     .shape = dft_shape, .lower = dft_lower},
    {.domain = "", .name = "DFT", .since = 20,
     .schema = "input:T, dft_length:I?, axis:i64? -> output:T ; inverse:int=0, onesided:int=0 | T=" TYPES_FLOAT ", I=i32 i64",
     .shape = dft_shape, .lower = dft_lower},
    {.domain = "", .name = "STFT", .since = 17,
     .schema = "signal:T, frame_step:I, window:T?, frame_length:I? -> output:T ; onesided:int=1 | T=" TYPES_FLOAT ", I=i32 i64",
     .shape = stft_shape, .lower = stft_lower},
    WINDOW("HannWindow"),
    WINDOW("HammingWindow"),
    WINDOW("BlackmanWindow"),
    {.domain = "", .name = "MelWeightMatrix", .since = 17,
     .schema = "num_mel_bins:I, dft_length:I, sample_rate:I, lower_edge_hertz:F, upper_edge_hertz:F -> output:any ; "
               "output_datatype:int=1 | I=i32 i64, F=" TYPES_FLOAT, .shape = mel_shape, .lower = mel_lower},
};

const OpFamily ops_signal = {rows, COUNT_OF(rows), "signal.c"};
