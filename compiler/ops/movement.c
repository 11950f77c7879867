/* movement.c - operators that move elements: Concat, Split, Tile, Pad, Trilu. */
#include "ops/move.h"
#include "ops/tuples.h"

#include <string.h>

/* ---- Concat */

static bool concat_shape(Compilation *c, Node *n)
{
    Dim dims[MAX_RANK] = { 0 };
    DType t = node_input(c, n, 0)->dtype;
    int rank = -1;
    bool whole = true;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v->rank < 0) { whole = false; continue; }
        if (rank >= 0 && v->rank != rank) {
            node_error(c, n, "input %d has rank %d, an earlier one %d", i, v->rank, rank);
            return false;
        }
        rank = v->rank;
    }
    if (rank < 0) return output_set(c, n, 0, t, -1, NULL);
    int axis = axis_normal(c, n, attr_int(n, "axis"), rank);
    if (axis < 0) return false;
    Dim sum = dim_const(c, 0);
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        for (int k = 0; k < v->rank; k++)
            if (k != axis && !same_extent(c, n, "concat", &dims[k], v->dims[k])) return false;
        whole = whole && v->rank >= 0 && v->dims[axis];
        if (whole) sum = dim_add(c, sum, v->dims[axis]);
    }
    dims[axis] = whole ? sum : 0;
    return output_set(c, n, 0, t, rank, dims);
}

static void concat_contents(Compilation *c, Node *n)
{
    Value *y = node_output(c, n, 0);
    int64_t dims[MAX_RANK], total, inner = 1, offset = 0;
    Dim *out = contents_begin(c, y, &total);
    if (!out || !shape_numbers(c, y, dims, &total)) return;
    int axis = axis_normal(c, n, attr_int(n, "axis"), y->rank);
    for (int k = axis + 1; k < y->rank; k++) inner *= dims[k];
    int64_t row = dims[axis] * inner;
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        Dim *in;
        int count;
        int64_t own;
        if (!value_dims(c, v, &in, &count) || !dim_is_const(c, v->dims[axis], &own)) return;
        own *= inner;
        for (int64_t k = 0; k < count; k++) out[k / own * row + offset + k % own] = in[k];
        offset += own;
    }
    contents_finish(c, y, out, total);
}

static void concat_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View out;
    bool appends = lower_inplace(l, n, 0, 0, &out);
    if (n->input_count == 1 && !appends) {
        lower_set_view(l, n, 0, lower_input(l, n, 0));
        return;
    }
    if (appends) {
        view_dims(l, node_output(c, n, 0), &out);
        lower_set_view(l, n, 0, out);
    } else {
        out = lower_output(l, n, 0);
    }
    int axis = axis_normal(c, n, attr_int(n, "axis"), out.rank);
    Dim at = dim_const(c, 0);
    for (int i = 0; i < n->input_count; i++) {
        Dim rows = lower_dim(l, node_input(c, n, i)->dims[axis]);
        View part = out;
        part.dims[axis] = rows;
        part.offset = dim_add(c, out.offset, dim_scale(c, at, out.stride[axis]));
        at = dim_add(c, at, rows);
        if (!(appends && i == 0) && !dim_is(c, rows, 0)) lower_copy(l, n, lower_input(l, n, i), part, NULL);
    }
}

static int concat_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    const Value *y = node_output(c, n, 0);
    if (output != 0 || y->rank < 0) return -1;
    *axis = axis_normal(c, n, attr_int(n, "axis"), y->rank);
    *append = true;
    return 0;
}

/* ---- Split */

static bool split_given(Compilation *c, Node *n, Dim d, Dim *sizes)
{
    Dim *given = NULL, sum = dim_const(c, 0);
    int count = 0;
    if (n->op->since < 13) {
        const Attr *a = node_attr(n, "split");
        count = a->count;
        given = NEW_ARRAY(c, Dim, count + 1);
        for (int i = 0; i < count; i++) given[i] = dim_const(c, a->ints[i]);
    } else if (!value_dims(c, node_input(c, n, 1), &given, &count)) {
        return true; /* sizes stay unknown */
    }
    if (count != n->output_count) {
        node_error(c, n, "%d sizes are given for %d outputs", count, n->output_count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        sizes[i] = given[i];
        sum = dim_add(c, sum, given[i]);
    }
    return !d || dim_equal(c, d, sum) || dim_equate(c, n, "split", d, sum);
}

/* Equal parts; the last one is smaller when they do not divide. */
static bool split_equal(Compilation *c, Node *n, Dim d, Dim *sizes)
{
    int count = n->output_count;
    if (n->op->since >= 18 && attr_given(n, "num_outputs") && attr_int(n, "num_outputs") != count) {
        node_error(c, n, "num_outputs is %lld, but the node has %d outputs", (long long)attr_int(n, "num_outputs"), count);
        return false;
    }
    if (!d) return true;
    Dim parts = dim_const(c, count), part = dim_div_exact(c, d, parts);
    if (!part) part = dim_op(c, DIM_CEILDIV, d, parts);
    for (int i = 0; i + 1 < count; i++) sizes[i] = part;
    sizes[count - 1] = clamp_low(c, dim_sub(c, d, dim_scale(c, part, count - 1)), dim_const(c, 0));
    return true;
}

static bool split_sizes(Compilation *c, Node *n, Dim d, Dim *sizes)
{
    bool given = n->op->since < 13 ? node_attr(n, "split")->count > 0 : node_input(c, n, 1) != NULL;
    return given ? split_given(c, n, d, sizes) : split_equal(c, n, d, sizes);
}

static bool split_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK], *sizes = NEW_ARRAY(c, Dim, n->output_count);
    int axis = x->rank < 0 ? 0 : axis_normal(c, n, attr_int(n, "axis"), x->rank);
    if (axis < 0 || (x->rank >= 0 && !split_sizes(c, n, x->dims[axis], sizes))) return false;
    for (int i = 0; i < n->output_count; i++) {
        for (int k = 0; k < x->rank; k++) dims[k] = k == axis ? sizes[i] : x->dims[k];
        if (!output_set(c, n, i, x->dtype, x->rank, dims)) return false;
    }
    return true;
}

static void split_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    int64_t dims[MAX_RANK], stride[MAX_RANK], count, size, offset = 0;
    if (!shape_numbers(c, x, dims, &count) || count > MAX_CONTENTS) return;
    int axis = axis_normal(c, n, attr_int(n, "axis"), x->rank);
    Dim *sizes = NEW_ARRAY(c, Dim, n->output_count);
    if (axis < 0 || !split_sizes(c, n, x->dims[axis], sizes)) return;
    row_major(dims, x->rank, stride);
    for (int i = 0; i < n->output_count; i++) {
        if (!dim_is_const(c, sizes[i], &size)) return;
        if (node_output(c, n, i)) contents_strided(c, x, node_output(c, n, i), offset * stride[axis], stride);
        offset += size;
    }
}

static void split_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = in;
    int axis = axis_normal(c, n, attr_int(n, "axis"), in.rank);
    Dim *sizes = NEW_ARRAY(c, Dim, n->output_count);
    if (!split_sizes(c, n, node_input(c, n, 0)->dims[axis], sizes)) return;
    for (int i = 0; i < n->output_count; i++) {
        if (!sizes[i]) {
            node_error(c, n, "the sizes of the parts are not known when compiling");
            return;
        }
        out.dims[axis] = lower_dim(l, sizes[i]);
        if (node_output(c, n, i)) lower_set_view(l, n, i, out);
        out.offset = dim_add(c, out.offset, dim_scale(c, out.dims[axis], in.stride[axis]));
    }
}

/* ---- Tile */

static bool tile_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim *repeats, dims[MAX_RANK] = { 0 };
    int count;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (value_dims(c, node_input(c, n, 1), &repeats, &count)) {
        if (count != x->rank) {
            node_error(c, n, "%d repeats are given for rank %d", count, x->rank);
            return false;
        }
        for (int i = 0; i < count; i++) dims[i] = x->dims[i] ? dim_mul(c, x->dims[i], repeats[i]) : 0;
    }
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

/* An axis of one element repeats with stride 0. */
static void tile_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = in;
    const char *source = "X_OFF";
    bool view = true;
    view_dims(l, node_output(c, n, 0), &out);
    for (int i = 0; i < in.rank; i++) {
        bool same = dim_equal(c, in.dims[i], out.dims[i]), one = dim_is(c, in.dims[i], 1);
        if (!same && one) out.stride[i] = 0;
        view = view && (same || one);
        const char *name = same ? index_name(c, i) : arena_text(&c->arena, "(i%d %% (X_D%d))", i, i);
        source = text_add_term(c, source, name, "X", i);
    }
    if (view) {
        lower_set_view(l, n, 0, out);
        return;
    }
    out = lower_output(l, n, 0);
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", in);
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s)", source));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, NULL);
}

/* ---- Pad */

/* before[] and after[] for each axis; false when not known, with an error if `must`. */
static bool pad_read(Compilation *c, Node *n, int rank, Dim *before, Dim *after, bool must)
{
    Dim *pads = NULL;
    int64_t *axes = NULL;
    int count = 0, axis_count = rank;
    if (n->op->since < 11) {
        const Attr *a = node_attr(n, "pads");
        count = a->count;
        pads = NEW_ARRAY(c, Dim, count + 1);
        for (int i = 0; i < count; i++) pads[i] = dim_const(c, a->ints[i]);
    } else if (!value_dims(c, node_input(c, n, 1), &pads, &count)) {
        if (must) node_error(c, n, "the pads are not known when compiling");
        return false;
    }
    if (n->op->since >= 18 && node_input(c, n, 3) && !value_ints(c, node_input(c, n, 3), &axes, &axis_count)) count = -1;
    if (count != 2 * axis_count) {
        if (must) node_error(c, n, "the pads do not fit the axes");
        return false;
    }
    for (int i = 0; i < rank; i++) before[i] = after[i] = dim_const(c, 0);
    for (int i = 0; i < axis_count; i++) {
        int axis = axis_normal(c, n, axes ? axes[i] : i, rank);
        if (axis < 0) return false;
        before[axis] = pads[i];
        after[axis] = pads[axis_count + i];
    }
    return true;
}

static bool pad_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim before[MAX_RANK], after[MAX_RANK], dims[MAX_RANK] = { 0 };
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (pad_read(c, n, x->rank, before, after, false))
        for (int i = 0; i < x->rank; i++)
            dims[i] = x->dims[i] ? dim_add(c, x->dims[i], dim_add(c, before[i], after[i])) : 0;
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

/* The index along axis i in the input, by mode; *inside gains what constant mode must check. */
static const char *pad_index(Lower *l, const char *mode, int i, Dim before, const char **inside)
{
    Compilation *c = lower_compilation(l);
    const char *j = arena_text(&c->arena, "(i%d - (%s))", i, lower_c(l, lower_dim(l, before)));
    const char *d = arena_text(&c->arena, "(X_D%d)", i);
    if (!strcmp(mode, "edge")) return arena_text(&c->arena, "(%s < 0 ? 0 : %s >= %s ? %s - 1 : %s)", j, j, d, d, j);
    if (!strcmp(mode, "reflect"))
        return arena_text(&c->arena, "(%s < 0 ? -%s : %s >= %s ? 2 * (%s - 1) - %s : %s)", j, j, j, d, d, j, j);
    if (!strcmp(mode, "wrap")) return arena_text(&c->arena, "((%s %% %s + %s) %% %s)", j, d, d, d);
    *inside = arena_text(&c->arena, "%s && %s >= 0 && %s < %s", *inside, j, j, d);
    return j;
}

static void pad_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View x = lower_input(l, n, 0), out = lower_output(l, n, 0);
    Dim before[MAX_RANK], after[MAX_RANK];
    const char *mode = attr_string(n, "mode"), *inside = "1", *source = "X_OFF", *fill = "0";
    if (!pad_read(c, n, x.rank, before, after, true)) return;
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    for (int i = 0; i < x.rank; i++) {
        bool plain = dim_is(c, before[i], 0) && dim_is(c, after[i], 0);
        source = text_add_term(c, source, plain ? index_name(c, i) : pad_index(l, mode, i, before[i], &inside), "X", i);
    }
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", x);
    if (n->op->since < 11) {
        fill = arena_text(&c->arena, "(X_C)%a", attr_float(n, "value"));
    } else if (node_input(c, n, 2)) {
        kernel_in(k, "P", lower_input(l, n, 2));
        fill = "P_LD(P_OFF)";
    }
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", arena_text(&c->arena, "((%s) ? X_LD(%s) : %s)", inside, source, fill));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, NULL);
}

/* ---- Trilu */

static bool trilu_shape(Compilation *c, Node *n)
{
    if (node_input(c, n, 0)->rank == 0 || node_input(c, n, 0)->rank == 1) {
        node_error(c, n, "the input must have rank 2 or more");
        return false;
    }
    return shape_same(c, n);
}

static const char *trilu_expr(Compilation *c, const Node *n)
{
    int rank = node_input(c, n, 0)->rank;
    const char *k = node_input(c, n, 1) ? "b" : "0";
    return arena_text(&c->arena, "(i%d - i%d %s %s ? a : 0)", rank - 1, rank - 2, attr_int(n, "upper") ? ">=" : "<=", k);
}

#define ANY "T=" TYPES_ANY
#define INDEXED " | " ANY ", I=i64 i32"
static const OpRow rows[] = {
    { .name = "Concat", .since = 4, .schema = "inputs:T* -> concat_result:T ; axis:int | " ANY, .facts = OP_SHAPE | OP_APPEND,
      .shape = concat_shape, .contents = concat_contents, .lower = concat_lower, .inplace = concat_inplace },
    { .name = "Split", .since = 2, .schema = "input:T -> outputs:T* ; axis:int=0, split:ints? | " ANY,
      .facts = OP_VIEW | OP_SHAPE, .shape = split_shape, .contents = split_contents, .lower = split_lower },
    { .name = "Split", .since = 13, .schema = "input:T, split:i64? -> outputs:T* ; axis:int=0 | " ANY,
      .facts = OP_VIEW | OP_SHAPE, .shape = split_shape, .contents = split_contents, .lower = split_lower },
    { .name = "Split", .since = 18, .schema = "input:T, split:i64? -> outputs:T* ; axis:int=0, num_outputs:int? | " ANY,
      .facts = OP_VIEW | OP_SHAPE, .shape = split_shape, .contents = split_contents, .lower = split_lower },
    { .name = "Tile", .since = 6, .schema = "input:T, repeats:i64 -> output:T | " ANY, .facts = OP_VIEW, .shape = tile_shape,
      .lower = tile_lower },
    { .name = "Pad", .since = 2, .schema = "data:T -> output:T ; mode:string=constant, pads:ints, value:float=0 | " ANY,
      .shape = pad_shape, .lower = pad_lower },
    { .name = "Pad", .since = 11, .schema = "data:T, pads:i64, constant_value:T? -> output:T ; mode:string=constant | " ANY,
      .shape = pad_shape, .lower = pad_lower },
    { .name = "Pad", .since = 18,
      .schema = "data:T, pads:i64, constant_value:T?, axes:I? -> output:T ; mode:string=constant" INDEXED,
      .shape = pad_shape, .lower = pad_lower },
    { .name = "Trilu", .since = 14, .schema = "input:T, k:i64? -> output:T ; upper:int=1 | " ANY, .facts = OP_POINTWISE,
      .shape = trilu_shape, .expr_fn = trilu_expr },
    { .domain = "com.microsoft", .name = "Trilu", .since = 1, .schema = "input:T, k:i64? -> output:T ; upper:int=1 | " ANY, .facts = OP_POINTWISE,
      .shape = trilu_shape, .expr_fn = trilu_expr },
};

const OpFamily ops_movement = { rows, (int)COUNT_OF(rows), "movement.c" };
