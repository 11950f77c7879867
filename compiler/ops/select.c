/* select.c - TopK and OneHot. */
#include "ops/extent.h"
#include "ops/move.h"
#include "ops/rows.h"

/* ---- TopK */

/* False after an error; *k is 0 where K is data: then a kernel writes it into the extents table. */
static bool top_count(Compilation *c, const Node *n, Dim *k)
{
    Dim *given;
    int count;
    int64_t lo, hi;
    *k = 0;
    if (n->op->since < 10) *k = dim_const(c, attr_int(n, "k"));
    else if (value_dims(c, node_input(c, n, 1), &given, &count) && count == 1) *k = given[0];
    if (!*k) return true;
    dim_bounds(c, *k, &lo, &hi);
    if (hi < 0) node_error(c, n, "K is %s", dim_text(c, *k));
    return hi >= 0;
}

static bool top_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK], k;
    int64_t length, most;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL) && output_set(c, n, 1, DT_I64, -1, NULL);
    if (x->rank == 0) node_error(c, n, "input '%s': rank 1 or more is needed, found 0", x->name);
    const int axis = x->rank ? axis_normal(c, n, attr_int(n, "axis"), x->rank) : -1;
    if (axis < 0 || !top_count(c, n, &k)) return false;
    if (dim_is_const(c, x->dims[axis], &length) && dim_is_const(c, k, &most) && most > length) {
        node_error(c, n, "K is %lld, but axis %d has %lld elements", (long long)most, axis, (long long)length);
        return false;
    }
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    dims[axis] = k ? k : extent_counted(c, n, 0, axis, x->dims[axis]);
    return output_set(c, n, 0, x->dtype, x->rank, dims) && output_set(c, n, 1, DT_I64, x->rank, dims);
}

/* The operand NAME with the axis that is ranked last. */
static View top_operand(Lower *l, Kernel *k, const char *name, const View *v, int axis, bool out)
{
    int order[MAX_RANK], count = 0;
    for (int i = 0; i < v->rank; i++)
        if (i != axis) order[count++] = i;
    order[count] = axis;
    const View turned = rows_order(v, order, v->rank);
    if (out) kernel_out(k, name, turned);
    else kernel_in(k, name, turned);
    rows_define(lower_compilation(l), k, name, &turned, turned.rank - 1);
    return turned;
}

/* Rows of up to this many elements: each element counts those before it. Longer ones: a block picks one after another. */
enum { COUNTED = 1024, PICKERS = 256 };

/* A computed K, no more than there are elements, becomes the extent of the outputs. */
static void top_write_count(Lower *l, const Node *n, const Dim *length, Dim counted)
{
    const View word = extent_word(l, n, counted);
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "K", lower_input(l, n, 1));
    kernel_out(k, "Y", word);
    kernel_dim(k, "LENGTH", *length);
    kernel_text(k, "VALUE", "MIN(MAX(K_LD(K_OFF), 0), LENGTH)");
    kernel_text(k, "TARGET", "Y_OFF");
    launch_elements(l, k, &word, NULL);
}

static void top_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), values = lower_output(l, n, 0), places = lower_output(l, n, 1);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), x.rank);
    if (axis < 0) return;
    if (extent_symbol(c, node_output(c, n, 0)->dims[axis])) top_write_count(l, n, &x.dims[axis], node_output(c, n, 0)->dims[axis]);
    if (lower_upper(l, values.dims[axis]) == 0) return;
    const int64_t columns = lower_upper(l, x.dims[axis]);
    const bool counted = columns <= COUNTED;
    Kernel *k = kernel_begin(l, n, counted ? "top_count" : "top_pick");
    const View turned = top_operand(l, k, "X", &x, axis, false);
    top_operand(l, k, "Y", &values, axis, true);
    top_operand(l, k, "I", &places, axis, true);
    const Dim rows = rows_count(c, &turned, 0, turned.rank - 1);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", turned.dims[turned.rank - 1]);
    kernel_dim(k, "TOP", values.dims[axis]);
    kernel_int(k, "LARGEST", n->op->since < 11 || attr_int(n, "largest") != 0);
    kernel_key(k, x.store);
    const int64_t row_limit = lower_upper(l, rows);
    if (counted) kernel_launch(k, grid_for(row_limit * columns, 128), 1, 1, 128);
    else kernel_launch(k, row_limit < 1 ? 1 : row_limit, 1, 1, PICKERS);
}

/* ---- OneHot */

static bool one_hot_depth(Compilation *c, const Node *n, Dim *depth)
{
    const Value *v = node_input(c, n, 1);
    Dim *given;
    int count;
    *depth = 0;
    if (value_dims(c, v, &given, &count) && count == 1) *depth = given[0];
    else if (v->data && v->data->bytes) *depth = dim_const(c, (int64_t)data_float(v, 0));
    else node_error(c, n, "depth '%s' is not a known number", v->name);
    return *depth != 0;
}

/* Where the new axis stands; -1 after an error. */
static int one_hot_axis(Compilation *c, const Node *n, int rank)
{
    return axis_normal(c, n, attr_int(n, "axis"), rank + 1);
}

static bool one_hot_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *values = node_input(c, n, 2);
    Dim dims[MAX_RANK], depth;
    if (x->rank < 0) return output_set(c, n, 0, values->dtype, -1, NULL);
    const int axis = x->rank < MAX_RANK ? one_hot_axis(c, n, x->rank) : -1;
    if (x->rank >= MAX_RANK) node_error(c, n, "indices of rank %d have no room for an axis", x->rank);
    if (axis < 0 || !one_hot_depth(c, n, &depth)) return false;
    if (values->rank == 1 && !dim_equate(c, n, "values are off and on", values->dims[0], dim_const(c, 2))) return false;
    for (int i = 0; i <= x->rank; i++) dims[i] = i == axis ? depth : x->dims[i - (i > axis)];
    return output_set(c, n, 0, values->dtype, x->rank + 1, dims);
}

static void one_hot_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const int axis = one_hot_axis(c, n, x.rank);
    const char *at = "X_OFF";
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", x);
    kernel_in(k, "V", lower_input(l, n, 2));
    kernel_out(k, "Y", y);
    for (int i = 0; i < x.rank; i++) at = arena_text(&c->arena, "%s + i%d * X_S%d", at, i + (i >= axis), i);
    kernel_text(k, "VALUE", arena_text(&c->arena, "V_LD(V_OFF + (hot == i%d ? V_S0 : 0))", axis));
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, arena_text(&c->arena, "idx hot = (idx)X_LD(%s); hot += hot < 0 ? Y_D%d : 0;", at, axis));
}

#define TOP_OLD "f32 f16 f64"
#define TOP_NEW TYPES_FLOAT " " TYPES_INT
#define TOP_ATTRS "axis:int=-1, largest:int=1, sorted:int=1"
#define ONE_HOT(since_) \
    {.domain = "", .name = "OneHot", .since = since_, \
     .schema = "indices:T1, depth:T2, values:T3 -> output:T3 ; axis:int=-1 | T1=" TYPES_NUMBER ", T2=" TYPES_NUMBER ", T3=" TYPES_NUMBER \
               " bool", \
     .shape = one_hot_shape, .lower = one_hot_lower}

static const OpRow rows[] = {
    {.domain = "", .name = "TopK", .since = 1, .schema = "X:T -> Values:T, Indices:i64 ; axis:int=-1, k:int | T=" TOP_OLD,
     .shape = top_shape, .lower = top_lower},
    {.domain = "", .name = "TopK", .since = 10, .schema = "X:T, K:i64 -> Values:T, Indices:i64 ; axis:int=-1 | T=" TOP_OLD,
     .shape = top_shape, .lower = top_lower},
    {.domain = "", .name = "TopK", .since = 11, .schema = "X:T, K:i64 -> Values:T, Indices:i64 ; " TOP_ATTRS " | T=" TOP_NEW,
     .shape = top_shape, .lower = top_lower},
    {.domain = "", .name = "TopK", .since = 24, .schema = "X:T, K:i64 -> Values:T, Indices:i64 ; " TOP_ATTRS " | T=" TOP_NEW,
     .shape = top_shape, .lower = top_lower},
    ONE_HOT(9),
    ONE_HOT(11),
};

const OpFamily ops_select = {rows, COUNT_OF(rows), "compiler/ops/select.c"};
