/* reduce.c - folds over axes: sum, mean, max, min, product, norms, and the index of the extreme. One block an output element. */
#include "lower.h"
#include "ops/rows.h"

#include <string.h>

typedef struct FoldName { const char *op; int fold; const char *start; } FoldName; /* fold: FOLD of reduce.cu */
static const FoldName fold_names[] = {
    {"ReduceSum", 0, "0"},       {"ReduceMean", 1, "0"}, {"ReduceMax", 2, NULL},       {"ReduceMin", 3, NULL},
    {"ReduceProd", 4, "1"},      {"ReduceSumSquare", 5, "0"}, {"ReduceL2", 6, "0"},    {"ReduceL1", 7, "0"},
    {"ReduceLogSum", 8, "0"},    {"ReduceLogSumExp", 9, "-INF_F"},
};

static const FoldName *fold_of(const Node *n)
{
    for (size_t i = 0; i < COUNT_OF(fold_names); i++)
        if (!strcmp(fold_names[i].op, n->op_type)) return &fold_names[i];
    fault("reduce", "no fold for %s", n->op_type);
}

/* ReduceSum takes its axes as an input since 13, the others since 18. */
static bool axes_given(Compilation *c, const Node *n, int64_t **axes, int *count)
{
    const Value *v = n->op->since >= 13 ? node_input(c, n, 1) : NULL;
    *axes = NULL;
    *count = 0;
    if (n->op->since < 13) {
        const Attr *a = node_attr(n, "axes");
        *axes = a->ints;
        *count = a->count;
        return true;
    }
    if (!v || value_ints(c, v, axes, count)) return true;
    node_error(c, n, "axes '%s' are not constant", v->name);
    return false;
}

/* Bit mask of the axes that are folded. No axes: all of them, or none when the node says so. */
static bool folded_axes(Compilation *c, const Node *n, int rank, unsigned *mask)
{
    int64_t *axes;
    int count;
    *mask = 0;
    if (!axes_given(c, n, &axes, &count)) return false;
    for (int i = 0; i < count; i++) {
        const int axis = axis_normal(c, n, axes[i], rank);
        if (axis < 0) return false;
        *mask |= 1u << axis;
    }
    if (count == 0 && !(n->op->since >= 13 && attr_int(n, "noop_with_empty_axes"))) *mask = (1u << rank) - 1;
    return true;
}

static bool reduced_shape(Compilation *c, Node *n, DType t, const Value *x, unsigned mask)
{
    Dim dims[MAX_RANK];
    int rank = 0;
    const bool keep = attr_int(n, "keepdims") != 0;
    for (int i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1)) dims[rank++] = x->dims[i];
        else if (keep) dims[rank++] = dim_const(c, 1);
    }
    return output_set(c, n, 0, t, rank, dims);
}

static bool reduce_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    unsigned mask;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    return folded_axes(c, n, x->rank, &mask) && reduced_shape(c, n, x->dtype, x, mask);
}

/* ---- integer contents */

static Dim fold_dims(Compilation *c, int fold, Dim a, Dim b)
{
    switch (fold) {
    case 2: return dim_op(c, DIM_MAX, a, b);
    case 3: return dim_op(c, DIM_MIN, a, b);
    case 4: return dim_mul(c, a, b);
    case 5: return dim_add(c, a, dim_mul(c, b, b));
    default: return dim_add(c, a, b);
    }
}

/* Position in the output of element E of the input, both row-major. */
static int64_t folded_place(const int64_t *lengths, int rank, unsigned mask, int64_t e)
{
    int64_t place = 0, step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int64_t digit = e % lengths[i];
        e /= lengths[i];
        if (mask >> i & 1) continue;
        place += digit * step;
        step *= lengths[i];
    }
    return place;
}

static void reduce_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Value *y = node_output(c, n, 0);
    const int fold = fold_of(n)->fold;
    int64_t lengths[MAX_RANK], elements = 1, results = 1;
    unsigned mask;
    Dim *contents;
    if (!y || x->contents_count <= 0 || !dtype_is_integer(x->dtype) || fold == 1 || fold > 5) return;
    if (!folded_axes(c, n, x->rank, &mask)) return;
    for (int i = 0; i < x->rank; i++) {
        if (!dim_is_const(c, x->dims[i], &lengths[i])) return;
        elements *= lengths[i];
        if (!(mask >> i & 1)) results *= lengths[i];
    }
    if (elements != x->contents_count) return;
    contents = NEW_ARRAY(c, Dim, results);
    for (int64_t e = 0; e < elements; e++) {
        Dim *place = &contents[folded_place(lengths, x->rank, mask, e)];
        const Dim v = x->contents[e];
        if (!v) return;
        *place = *place ? fold_dims(c, fold, *place, v) : fold == 5 ? dim_mul(c, v, v) : v;
    }
    y->contents = contents;
    y->contents_count = (int)results;
}

/* ---- lowering */

/* X with the kept axes first; Y without the folded ones. Returns the count of kept axes. */
static int reduce_views(const View *from, const View *to, unsigned mask, bool keep, View *x, View *y)
{
    int order[MAX_RANK], kept[MAX_RANK], rows = 0, all;
    for (int i = 0, at = 0; i < from->rank; i++) {
        const bool folded = mask >> i & 1;
        if (!folded) {
            order[rows] = i;
            kept[rows++] = keep ? i : at;
        }
        if (!folded || keep) at++;
    }
    all = rows;
    for (int i = 0; i < from->rank; i++)
        if (mask >> i & 1) order[all++] = i;
    *x = rows_order(from, order, all);
    *y = rows_order(to, kept, rows);
    return rows;
}

/* Without a buffer where the kernel computes what it folds. */
static View fold_input(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *v = node_input(c, n, 0);
    if (l->views[n->inputs[0]].buffer || !v->producer || c->graph.nodes[v->producer].fused_into != (uint32_t)(n - c->graph.nodes)) return lower_input(l, n, 0);
    View view = {.rank = v->rank};
    for (int i = 0; i < v->rank; i++) view.dims[i] = lower_dim(l, v->dims[i]);
    return view;
}

static Kernel *reduce_begin(Lower *l, const Node *n, const char *template, unsigned mask, int64_t *grid, int *threads)
{
    Compilation *c = lower_compilation(l);
    const bool stored = kernel_beside_stored(l, n);
    const View from = fold_input(l, n), to = stored ? lower_output(l, n, 0) : from;
    View x, y;
    const int kept = reduce_views(&from, &to, mask, attr_int(n, "keepdims") != 0, &x, &y);
    const Dim rows = rows_count(c, &x, 0, kept), columns = rows_count(c, &x, kept, x.rank);
    Kernel *k = kernel_begin(l, n, template);
    *threads = rows_threads(lower_upper(l, columns));
    if (*threads > 256) *threads = 256;
    if (x.buffer) kernel_in(k, "X", x);
    if (x.buffer) rows_define(c, k, "X", &x, kept);
    if (stored) kernel_out(k, "Y", y);
    if (stored) rows_define(c, k, "Y", &y, kept);
    kernel_int(k, "STORED", stored);
    kernel_int(k, "THREADS", *threads);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    *grid = lower_upper(l, rows);
    return k;
}

/* What max and min start from: the least and the greatest value of T. It is the result where nothing is folded. */
static const char *extreme_start(Compilation *c, DType t, bool max)
{
    const bool is_signed = t == DT_I8 || t == DT_I16 || t == DT_I32 || t == DT_I64;
    if (dtype_is_float(t)) return max ? "-INF_F" : "INF_F";
    if (t == DT_BOOL) return max ? "0" : "1";
    if (!is_signed && max) return "0";
    const uint64_t most = UINT64_MAX >> (64 - dtype_bits(t) + (is_signed ? 1 : 0));
    return arena_text(&c->arena, !is_signed ? "%lluULL" : max ? "(-%lluLL - 1)" : "%lluLL", (unsigned long long)most);
}

static void reduce_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *x = node_input(c, n, 0);
    const FoldName *name = fold_of(n);
    const bool wide = x->dtype == DT_F64 || !dtype_is_float(x->dtype);
    unsigned mask;
    int64_t grid;
    int threads;
    Kernel *k;
    if (!folded_axes(c, n, x->rank, &mask)) return;
    if (!mask) {
        if (name->fold == 0 || (name->fold >= 1 && name->fold <= 4)) {
            lower_copy(l, n, lower_input(l, n, 0), lower_output(l, n, 0), n->name);
            return;
        }
    }
    k = reduce_begin(l, n, "reduce", mask, &grid, &threads);
    kernel_beside(k, n, x->rank - 1, "total");
    kernel_takes(k, n);
    kernel_key(k, x->dtype);
    kernel_int(k, "FOLD", name->fold);
    kernel_text(k, "FOLD_EXP(v)", wide ? "exp((double)(v))" : "EXPF((float)(v))");
    kernel_text(k, "FOLD_LOG(v)", wide ? "log((double)(v))" : "LOGF((float)(v))");
    kernel_text(k, "FOLD_SQRT(v)", wide ? "sqrt((double)(v))" : "SQRTF((float)(v))");
    kernel_text(k, "FOLD_START", name->start ? name->start : extreme_start(c, x->dtype, name->fold == 2));
    kernel_launch(k, grid, 1, 1, threads);
}

static bool reduce_by_row(Compilation *c, const Node *n)
{
    const int rank = node_input(c, n, 0)->rank;
    unsigned mask;
    return rank > 0 && attr_int(n, "keepdims") && folded_axes(c, n, rank, &mask) && mask == 1u << (rank - 1);
}

/* ---- ArgMax, ArgMin */

static bool arg_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const int axis = x->rank > 0 ? axis_normal(c, n, attr_int(n, "axis"), x->rank) : -1;
    if (x->rank < 0) return output_set(c, n, 0, DT_I64, -1, NULL);
    if (x->rank < 1) node_error(c, n, "input '%s': rank 1 or more is needed, found %d", x->name, x->rank);
    return axis >= 0 && reduced_shape(c, n, DT_I64, x, 1u << axis);
}

static void arg_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), node_input(c, n, 0)->rank);
    int64_t grid;
    int threads;
    Kernel *k = reduce_begin(l, n, "arg_reduce", 1u << axis, &grid, &threads);
    kernel_key(k, node_input(c, n, 0)->dtype);
    kernel_int(k, "WANT_MAX", !strcmp(n->op_type, "ArgMax"));
    kernel_int(k, "LAST", n->op->since >= 12 && attr_int(n, "select_last_index") != 0);
    kernel_launch(k, grid, 1, 1, threads);
}

#define NUMBERS "f32 f16 bf16 f64 i32 i64 u32 u64 i16 u16 i8 u8"
#define OLD(name_, types_, facts_) \
    {.domain = "", .name = name_, .since = 1, .schema = "data:T -> reduced:T ; axes:ints?, keepdims:int=1 | T=" types_, \
     .facts = OP_BESIDE | facts_, .shape = reduce_shape, .contents = reduce_contents, .lower = reduce_lower, .by_row = reduce_by_row}
#define NEW_(name_, since_, types_, facts_) \
    {.domain = "", .name = name_, .since = since_, \
     .schema = "data:T, axes:i64? -> reduced:T ; keepdims:int=1, noop_with_empty_axes:int=0 | T=" types_, \
     .facts = OP_BESIDE | facts_, .shape = reduce_shape, .contents = reduce_contents, .lower = reduce_lower, .by_row = reduce_by_row}
#define BOTH(name_, types_) OLD(name_, types_, 0), NEW_(name_, 18, types_, 0)
#define ARG(name_) \
    {.domain = "", .name = name_, .since = 1, .schema = "data:T -> reduced:i64 ; axis:int=0, keepdims:int=1 | T=" NUMBERS, \
     .shape = arg_shape, .lower = arg_lower}, \
    {.domain = "", .name = name_, .since = 12, \
     .schema = "data:T -> reduced:i64 ; axis:int=0, keepdims:int=1, select_last_index:int=0 | T=" NUMBERS, \
     .shape = arg_shape, .lower = arg_lower}

static const OpRow rows[] = {
    OLD("ReduceSum", NUMBERS, OP_ZEROS),
    NEW_("ReduceSum", 13, NUMBERS, OP_ZEROS),
    BOTH("ReduceMean", NUMBERS),
    BOTH("ReduceMax", NUMBERS " bool"),
    BOTH("ReduceMin", NUMBERS " bool"),
    BOTH("ReduceProd", NUMBERS),
    BOTH("ReduceSumSquare", NUMBERS),
    BOTH("ReduceL2", NUMBERS),
    BOTH("ReduceL1", NUMBERS),
    BOTH("ReduceLogSum", NUMBERS),
    BOTH("ReduceLogSumExp", "f32 f16 bf16 f64"),
    ARG("ArgMax"),
    ARG("ArgMin"),
};

const OpFamily ops_reduce = {rows, COUNT_OF(rows), "compiler/ops/reduce.c"};
