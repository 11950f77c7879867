/* slice.c - Slice. */
#include "lower.h"
#include "ops/heads.h"
#include "ops/move.h"

#include <string.h>

Dim clamp_low(Compilation *c, Dim d, Dim low)
{
    int64_t lo, hi;
    dim_bounds(c, dim_sub(c, d, low), &lo, &hi);
    if (lo >= 0) return d;
    return hi <= 0 ? low : dim_op(c, DIM_MAX, d, low);
}

/* The same for an upper bound. */
static Dim clamp_high(Compilation *c, Dim d, Dim high)
{
    int64_t lo, hi;
    dim_bounds(c, dim_sub(c, high, d), &lo, &hi);
    if (lo >= 0) return d;
    return hi <= 0 ? high : dim_op(c, DIM_MIN, d, high);
}

/* Where a start or an end lies in extent d; 0 when its sign is not known. */
static Dim slice_place(Compilation *c, Dim d, Dim at, bool backward, bool is_end)
{
    Dim low = dim_const(c, backward && is_end ? -1 : 0);
    Dim high = backward ? dim_sub(c, d, dim_const(c, 1)) : d;
    int64_t v, lo, hi;
    if (dim_is_const(c, at, &v) && v >= INT32_MAX) return high; /* exporters write INT64_MAX for "to the end" */
    if (dim_is_const(c, at, &v) && v <= -INT32_MAX) return clamp_high(c, low, high); /* below low where there is nothing */
    dim_bounds(c, at, &lo, &hi);
    if (lo < 0 && hi >= 0) return 0;
    if (hi < 0) at = dim_add(c, at, d);
    return clamp_high(c, clamp_low(c, at, low), high);
}

void slice_axis(Compilation *c, Dim d, Dim start, Dim end, int64_t step, Dim *first, Dim *length)
{
    *first = *length = 0;
    if (!d || !start || !end) return;
    bool backward = step < 0;
    Dim from = slice_place(c, d, start, backward, false), to = slice_place(c, d, end, backward, true);
    *first = from;
    if (!from || !to) return;
    Dim span = backward ? dim_sub(c, from, to) : dim_sub(c, to, from);
    span = clamp_low(c, span, dim_const(c, 0));
    int64_t size = backward ? -step : step;
    *length = size == 1 ? span : dim_op(c, DIM_CEILDIV, span, dim_const(c, size));
}

typedef struct Slice {
    bool cut[MAX_RANK];
    Dim start[MAX_RANK], end[MAX_RANK]; /* 0: not known when compiling */
    int64_t step[MAX_RANK];
} Slice;

/* A list of the slice from an attribute (opset 1) or an input; *known false when it is data. */
static int slice_list(Compilation *c, const Node *n, const char *name, int input, Dim **out, bool *known)
{
    int count = -1;
    *known = true;
    *out = NULL;
    if (n->op->since < 10) {
        const Attr *a = node_attr(n, name);
        if (!a->count) return -1;
        *out = NEW_ARRAY(c, Dim, a->count);
        for (int i = 0; i < a->count; i++) (*out)[i] = dim_const(c, a->ints[i]);
        return a->count;
    }
    const Value *v = node_input(c, n, input);
    if (!v) return -1;
    if (value_dims(c, v, out, &count)) return count;
    *known = false;
    int64_t size;
    return v->rank == 1 && dim_is_const(c, v->dims[0], &size) ? (int)size : -1;
}

static bool slice_read(Compilation *c, const Node *n, int rank, Slice *s)
{
    Dim *start, *end, *axes, *steps;
    bool start_known, end_known, axes_known, steps_known = true;
    memset(s, 0, sizeof *s);
    int count = slice_list(c, n, "starts", 1, &start, &start_known);
    int ends = slice_list(c, n, "ends", 2, &end, &end_known);
    int axis_count = slice_list(c, n, "axes", 3, &axes, &axes_known);
    int step_count = n->op->since < 10 ? -1 : slice_list(c, n, "", 4, &steps, &steps_known);
    if (count < 0 || !axes_known || !steps_known) {
        node_error(c, n, "the axes or steps are not known when compiling");
        return false;
    }
    if (ends != count || (axis_count >= 0 && axis_count != count) || (step_count >= 0 && step_count != count)) {
        node_error(c, n, "starts, ends, axes and steps differ in length");
        return false;
    }
    for (int i = 0; i < count; i++) {
        int64_t at = i, step = 1;
        if (axis_count >= 0 && !dim_is_const(c, axes[i], &at)) at = rank;
        int axis = axis_normal(c, n, at, rank);
        if (axis < 0) return false;
        if (step_count >= 0 && !dim_is_const(c, steps[i], &step)) step = 0;
        if (!step) {
            node_error(c, n, "the step of axis %d is 0 or not known when compiling", axis);
            return false;
        }
        s->cut[axis] = true;
        s->start[axis] = start_known ? start[i] : 0;
        s->end[axis] = end_known ? end[i] : 0;
        s->step[axis] = step;
    }
    return true;
}

static bool slice_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK], first;
    Slice s;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!slice_read(c, n, x->rank, &s)) return false;
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i];
        if (s.cut[i]) slice_axis(c, x->dims[i], s.start[i], s.end[i], s.step[i], &first, &dims[i]);
    }
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void slice_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    int64_t dims[MAX_RANK], stride[MAX_RANK], count, offset = 0, at;
    Slice s;
    if (!shape_numbers(c, x, dims, &count) || !slice_read(c, n, x->rank, &s)) return;
    row_major(dims, x->rank, stride);
    for (int i = 0; i < x->rank; i++) {
        Dim first, length;
        if (!s.cut[i]) continue;
        slice_axis(c, x->dims[i], s.start[i], s.end[i], s.step[i], &first, &length);
        if (!dim_is_const(c, first, &at)) return;
        offset += at * stride[i];
        stride[i] *= s.step[i];
    }
    contents_strided(c, x, node_output(c, n, 0), offset, stride);
}

/* Where rows have lengths of their own, a slice from the position on starts behind the old elements of each row; RL + BEYOND. A row
 * that rests may lie behind the end: its slice is moved to the front of it. */
static void slice_rows(Lower *l, const Node *n, View in, int axis, Dim first)
{
    Compilation *c = lower_compilation(l);
    const View out = lower_output(l, n, 0);
    const Dim limit = dim_sub(c, in.dims[axis], out.dims[axis]);
    for (int i = 0; i < in.rank; i++) in.dims[i] = out.dims[i];
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", in);
    kernel_out(k, "Y", out);
    kernel_rows(k);
    kernel_dim(k, "BEYOND", rows_beyond(c, first));
    kernel_dim(k, "LIMIT", limit);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s + start * X_S%d)", index_at(l, "X", in.rank, "i"), axis));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, arena_text(&c->arena, "const idx start = MIN((idx)RL_LD(RL_OFF + i%d) + BEYOND, LIMIT);",
                                           row_axis(c, node_input(c, n, 0))));
}

static void slice_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = in;
    Slice s;
    int by_rows = -1;
    Dim behind = 0;
    if (!slice_read(c, n, in.rank, &s)) return;
    view_dims(l, node_output(c, n, 0), &out);
    for (int i = 0; i < in.rank; i++) {
        Dim first, length;
        if (!s.cut[i]) continue;
        Dim start = s.start[i] ? lower_dim(l, s.start[i]) : 0, end = s.end[i] ? lower_dim(l, s.end[i]) : 0;
        slice_axis(c, in.dims[i], start, end, s.step[i], &first, &length);
        if (!first) {
            node_error(c, n, "where the slice of axis %d starts is not known when compiling", i);
            return;
        }
        if (c->options.rows && dim_mentions(c, first, c->position)) {
            by_rows = i;
            behind = first;
            continue;
        }
        out.offset = dim_add(c, out.offset, dim_scale(c, first, in.stride[i]));
        out.stride[i] = in.stride[i] * s.step[i];
    }
    if (by_rows < 0) {
        lower_set_view(l, n, 0, out);
        return;
    }
    out.dims[by_rows] = in.dims[by_rows];
    slice_rows(l, n, out, by_rows, behind);
}

/* An axis that grows may be taken whole, or from the position on. */
static const char *slice_row_lengths(Compilation *c, const Node *n)
{
    const Value *x = node_input(c, n, 0), *y = node_output(c, n, 0);
    int by_rows = 0;
    Slice s;
    if (!slice_read(c, n, x->rank, &s)) return "its axes are not known";
    for (int i = 0; i < x->rank; i++) {
        const Dim d = dim_resolve(c, x->dims[i]);
        Dim first, length;
        if (!s.cut[i] || !dim_mentions(c, d, c->position)) continue;
        slice_axis(c, d, s.start[i] ? dim_resolve(c, s.start[i]) : 0, s.end[i] ? dim_resolve(c, s.end[i]) : 0, s.step[i], &first, &length);
        if (first && dim_is(c, first, 0) && dim_equal(c, d, y->dims[i])) continue;
        bool behind = first && s.step[i] == 1 && rows_beyond(c, first) && !dim_mentions(c, dim_resolve(c, y->dims[i]), c->position);
        if (!behind || row_axis(c, x) < 0 || ++by_rows > 1) return "it takes a part of an axis that grows";
    }
    return NULL;
}

#define ANY "T=" TYPES_ANY
#define ROW(since_, schema_) \
    {.name = "Slice", .since = since_, .schema = schema_, .facts = OP_VIEW | OP_SHAPE, .shape = slice_shape, .contents = slice_contents, \
     .lower = slice_lower, .row_lengths = slice_row_lengths}

static const OpRow rows[] = {
    ROW(1, "data:T -> output:T ; axes:ints?, ends:ints, starts:ints | " ANY),
    ROW(10, "data:T, starts:I, ends:I, axes:I?, steps:I? -> output:T | " ANY ", I=i64 i32"),
};

const OpFamily ops_slice = {rows, COUNT_OF(rows), "slice.c"};
