/* gather.c - Gather, GatherElements, GatherND. */
#include "ops/move.h"
#include "ops/tuples.h"

#include <string.h>

/* ---- Gather */

static bool gather_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *index = node_input(c, n, 1);
    Dim dims[2 * MAX_RANK];
    int rank = 0;
    if (x->rank < 0 || index->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    int axis = axis_normal(c, n, attr_int(n, "axis"), x->rank);
    if (axis < 0) return false;
    for (int i = 0; i < axis; i++) dims[rank++] = x->dims[i];
    for (int i = 0; i < index->rank; i++) dims[rank++] = index->dims[i];
    for (int i = axis + 1; i < x->rank; i++) dims[rank++] = x->dims[i];
    return output_set(c, n, 0, x->dtype, rank, dims);
}

static void gather_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *index = node_input(c, n, 1);
    Value *y = node_output(c, n, 0);
    int64_t dims[MAX_RANK], total, count, inner = 1, *at;
    Dim *in, *out = contents_begin(c, y, &count);
    int have, picks;
    if (!out || !value_dims(c, x, &in, &have) || !value_ints(c, index, &at, &picks)) return;
    if (!shape_numbers(c, x, dims, &total)) return;
    int axis = axis_normal(c, n, attr_int(n, "axis"), x->rank);
    for (int i = axis + 1; i < x->rank; i++) inner *= dims[i];
    for (int64_t i = 0; i < count; i++) {
        int64_t row = at[i / inner % picks];
        if (row < 0) row += dims[axis];
        if (row < 0 || row >= dims[axis]) {
            node_error(c, n, "index %lld is out of range for extent %lld", (long long)at[i / inner % picks],
                       (long long)dims[axis]);
            return;
        }
        out[i] = in[(i / inner / picks * dims[axis] + row) * inner + i % inner];
    }
    contents_finish(c, y, out, count);
}

/* One known index: the row is a view. */
static bool gather_view(Lower *l, Node *n, int axis)
{
    Compilation *c = lower_compilation(l);
    const Value *index = node_input(c, n, 1);
    Dim *at;
    int count;
    int64_t lo, hi;
    if (!value_dims(c, index, &at, &count) || count != 1) return false;
    Dim row = lower_dim(l, at[0]);
    dim_bounds(c, row, &lo, &hi);
    if (lo < 0 && hi >= 0) return false;
    View in = lower_input(l, n, 0), out = in;
    if (hi < 0) row = dim_add(c, row, in.dims[axis]);
    out.offset = dim_add(c, in.offset, dim_scale(c, row, in.stride[axis]));
    view_dims(l, node_output(c, n, 0), &out);
    for (int i = 0; i < out.rank; i++) {
        if (i < axis) out.stride[i] = in.stride[i];
        else if (i < axis + index->rank) out.stride[i] = 0;
        else out.stride[i] = in.stride[i - index->rank + 1];
    }
    lower_set_view(l, n, 0, out);
    return true;
}

static void gather_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    int axis = axis_normal(c, n, attr_int(n, "axis"), node_input(c, n, 0)->rank);
    if (gather_view(l, n, axis)) return;
    View x = lower_input(l, n, 0), index = lower_input(l, n, 1), out = lower_output(l, n, 0);
    const char *pick = "I_OFF", *source = "X_OFF";
    for (int i = 0; i < index.rank; i++) pick = text_add_term(c, pick, index_name(c, axis + i), "I", i);
    for (int i = 0; i < x.rank; i++) {
        const char *name = i == axis ? "row" : index_name(c, i < axis ? i : i + index.rank - 1);
        source = text_add_term(c, source, name, "X", i);
    }
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "gather");
    kernel_in(k, "X", x);
    kernel_in(k, "I", index);
    kernel_out(k, "Y", out);
    kernel_text(k, "PICK", arena_text(&c->arena, "I_LD(%s)", pick));
    kernel_text(k, "SOURCE", source);
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    kernel_dim(k, "AXIS", x.dims[axis]);
    int64_t moved = dtype_bytes(out.store, lower_upper(l, dims_product(c, out.rank, out.dims)));
    kernel_bytes(k, 2 * moved, 0);
    launch_elements(l, k, &out, NULL);
}

/* ---- GatherElements */

static bool gather_elements_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *index = node_input(c, n, 1);
    if (x->rank >= 0 && index->rank >= 0 && x->rank != index->rank) {
        node_error(c, n, "data has rank %d and indices %d; they must be equal", x->rank, index->rank);
        return false;
    }
    if (x->rank >= 0 && axis_normal(c, n, attr_int(n, "axis"), x->rank) < 0) return false;
    return output_set(c, n, 0, x->dtype, index->rank, index->dims);
}

static void gather_elements_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View x = lower_input(l, n, 0), index = lower_input(l, n, 1), out = lower_output(l, n, 0);
    int axis = axis_normal(c, n, attr_int(n, "axis"), x.rank);
    const char *source = "X_OFF";
    for (int i = 0; i < x.rank; i++) source = text_add_term(c, source, i == axis ? "row" : index_name(c, i), "X", i);
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "gather");
    kernel_in(k, "X", x);
    kernel_in(k, "I", index);
    kernel_out(k, "Y", out);
    kernel_text(k, "PICK", arena_text(&c->arena, "I_LD(%s)", index_at(l, "I", index.rank, "i")));
    kernel_text(k, "SOURCE", source);
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    kernel_dim(k, "AXIS", x.dims[axis]);
    launch_elements(l, k, &out, NULL);
}

/* ---- GatherND */

static int64_t nd_batch(const Node *n)
{
    return n->op->since >= 12 ? attr_int(n, "batch_dims") : 0;
}

static bool gather_nd_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *index = node_input(c, n, 1);
    Dim dims[2 * MAX_RANK];
    int64_t size, batch = nd_batch(n);
    int rank = 0;
    if (x->rank < 0 || index->rank < 1 || !index->dims[index->rank - 1])
        return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!dim_is_const(c, index->dims[index->rank - 1], &size) || size < 1 || batch < 0 || batch + size > x->rank
        || batch >= index->rank) {
        node_error(c, n, "the last extent of the indices must be a constant from 1 to the rank of data without batch_dims");
        return false;
    }
    for (int i = 0; i < index->rank - 1; i++) {
        dims[rank] = index->dims[i];
        if (i < batch && !same_extent(c, n, "gather_nd", &dims[rank], x->dims[i])) return false;
        rank++;
    }
    for (int i = (int)(batch + size); i < x->rank; i++) dims[rank++] = x->dims[i];
    return output_set(c, n, 0, x->dtype, rank, dims);
}

static void gather_nd_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View x = lower_input(l, n, 0), index = lower_input(l, n, 1), out = lower_output(l, n, 0);
    int last = index.rank - 1, batch = (int)nd_batch(n);
    int64_t size;
    if (!dim_is_const(c, index.dims[last], &size)) return;
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "gather_nd");
    kernel_in(k, "X", x);
    kernel_in(k, "I", index);
    kernel_out(k, "Y", out);
    kernel_text(k, "PICKS", tuple_picks(c, tuple_base(c, last), last, "X", batch, (int)size));
    kernel_text(k, "SOURCE", tuple_place(c, "X", x.rank, batch, (int)size, last));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, NULL);
}

#define INDEXED " | T=" TYPES_ANY ", I=i64 i32"
static const OpRow rows[] = {
    { .name = "Gather", .since = 1, .schema = "data:T, indices:I -> output:T ; axis:int=0" INDEXED, .facts = OP_SHAPE,
      .shape = gather_shape, .contents = gather_contents, .lower = gather_lower },
    { .name = "GatherElements", .since = 11, .schema = "data:T, indices:I -> output:T ; axis:int=0" INDEXED,
      .shape = gather_elements_shape, .lower = gather_elements_lower },
    { .name = "GatherND", .since = 11, .schema = "data:T, indices:i64 -> output:T | T=" TYPES_ANY, .facts = OP_ACROSS,
      .shape = gather_nd_shape, .lower = gather_nd_lower },
    { .name = "GatherND", .since = 12, .schema = "data:T, indices:i64 -> output:T ; batch_dims:int=0 | T=" TYPES_ANY,
      .facts = OP_ACROSS, .shape = gather_nd_shape, .lower = gather_nd_lower },
};

const OpFamily ops_gather = { rows, (int)COUNT_OF(rows), "gather.c" };
