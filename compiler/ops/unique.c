/* unique.c - Unique: of elements, or of slices along an axis; one block sorts them. */
#include "ops/extent.h"
#include "ops/move.h"
#include "ops/rows.h"

/* The axis, or -1 without one, or -2 after an error. */
static int unique_axis(Compilation *c, const Node *n, int rank)
{
    if (!attr_given(n, "axis")) return -1;
    const int axis = axis_normal(c, n, attr_int(n, "axis"), rank);
    return axis < 0 ? -2 : axis;
}

static bool unique_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK];
    const int axis = x->rank < 0 ? -1 : unique_axis(c, n, x->rank), count_axis = axis < 0 ? 0 : axis;
    if (axis < -1) return false;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    const Dim items = axis < 0 ? value_elements(c, x) : x->dims[axis];
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    dims[count_axis] = extent_counted(c, n, 0, count_axis, items);
    return output_set(c, n, 0, x->dtype, axis < 0 ? 1 : x->rank, dims) && output_set(c, n, 1, DT_I64, 1, &dims[count_axis])
           && output_set(c, n, 2, DT_I64, 1, &items) && output_set(c, n, 3, DT_I64, 1, &dims[count_axis]);
}

static void result(Lower *l, Kernel *k, const Node *n, int output, const char *name)
{
    const Value *v = node_output(l->c, n, output);
    const bool there = v && v->uses > 0;
    kernel_int(k, arena_text(&l->c->arena, "HAS_%s", name), there);
    if (there) kernel_out(k, name, lower_output(l, n, output));
}

static void scratch(Lower *l, Kernel *k, const Node *n, const char *name, int64_t room)
{
    const Dim dim = dim_const(l->c, room);
    kernel_out(k, name, lower_temporary(l, arena_text(&l->c->arena, "%s %s", n->name, name), DT_I32, 1, &dim));
}

/* ITEM_AT(item, e) and RESULT_AT(place, e): the axis first, the others as columns. */
static void define_places(Lower *l, Kernel *k, const View *x, const View *y, int axis)
{
    Compilation *c = l->c;
    if (axis < 0) {
        kernel_text(k, "ITEM_AT(row, col)", arena_text(&c->arena, "(X_OFF + %s)", rows_text(c, "X", "(idx)(row)", x, 0, x->rank)));
        kernel_text(k, "RESULT_AT(row, col)", "Y_AT(row)");
        kernel_int(k, "SLICE", 1);
        return;
    }
    kernel_text(k, "ITEM_AT(row, col)", arena_text(&c->arena, "(X_OFF + (idx)(row) * X_S0 + %s)", rows_text(c, "X", "(col)", x, 1, x->rank)));
    kernel_text(k, "RESULT_AT(row, col)", arena_text(&c->arena, "(Y_OFF + (idx)(row) * Y_S0 + %s)", rows_text(c, "Y", "(col)", y, 1, y->rank)));
    kernel_dim(k, "SLICE", rows_count(c, x, 1, x->rank));
}

static void unique_lower(Lower *l, Node *n)
{
    Compilation *c = l->c;
    const View from = lower_input(l, n, 0), to = lower_output(l, n, 0);
    const int axis = unique_axis(c, n, from.rank);
    int order[MAX_RANK], count = 1;
    order[0] = axis < 0 ? 0 : axis;
    for (int i = 0; i < from.rank; i++)
        if (i != order[0]) order[count++] = i;
    const View x = axis < 0 ? from : rows_order(&from, order, from.rank), y = axis < 0 ? to : rows_order(&to, order, to.rank);
    const Dim items = axis < 0 ? dims_product(c, x.rank, x.dims) : x.dims[0];
    const int64_t most = lower_upper(l, items);
    int64_t room = 1;
    while (room < most) room *= 2;
    if (room > INT32_MAX / 2) {
        node_error(c, n, "%lld items are too many; expected at most %d", (long long)most, INT32_MAX / 2);
        return;
    }
    const int threads = room >= 2048 ? 1024 : room >= 256 ? 256 : 32;
    Kernel *k = kernel_begin(l, n, "unique");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    result(l, k, n, 1, "FIRST");
    result(l, k, n, 2, "INVERSE");
    result(l, k, n, 3, "COUNTS");
    kernel_out(k, "W", extent_word(l, n, node_output(c, n, 0)->dims[order[0]]));
    scratch(l, k, n, "O", room);
    scratch(l, k, n, "G", room);
    if (!attr_int(n, "sorted")) {
        scratch(l, k, n, "F", room);
        scratch(l, k, n, "M", room);
    }
    define_places(l, k, &x, &y, axis);
    kernel_key(k, x.store);
    kernel_int(k, "SORTED", attr_int(n, "sorted") != 0);
    kernel_int(k, "ROOM", room);
    kernel_int(k, "THREADS", threads);
    kernel_dim(k, "ITEMS", items);
    kernel_launch(k, 1, 1, 1, threads);
}

static const OpRow rows[] = {
    {.domain = "", .name = "Unique", .since = 11,
     .schema = "X:T -> Y:T, indices:i64?, inverse_indices:i64?, counts:i64? ; axis:int?, sorted:int=1 | T=" TYPES_NUMBER " bool",
     .facts = OP_RANDOM, .shape = unique_shape, .lower = unique_lower},
};

const OpFamily ops_unique = {rows, COUNT_OF(rows), "unique.c"};
