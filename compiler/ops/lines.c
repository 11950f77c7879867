/* lines.c - operators on lines, rows and matrices: Hardmax, CumSum, CumProd, Det, ReverseSequence, EyeLike, Shrink, TfIdfVectorizer. */
#include "lower.h"
#include "ops/move.h"
#include "ops/rows.h"

#include <string.h>

static bool nothing(Lower *l, const View *v)
{
    return lower_upper(l, dims_product(lower_compilation(l), v->rank, v->dims)) == 0;
}

/* ---- Hardmax */

static bool hardmax_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank >= 0 && axis_normal(c, n, attr_int(n, "axis"), x->rank) < 0) return false;
    return shape_same(c, n);
}

/* Before opset 13 the axes from `axis` on are one row. */
static void hardmax_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View from = lower_input(l, n, 0), to = lower_output(l, n, 0);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), from.rank);
    int order[MAX_RANK];
    const int row_axes = rows_around(axis, from.rank, n->op->since >= 13, order);
    if (nothing(l, &to)) return;
    const View x = rows_order(&from, order, from.rank), y = rows_order(&to, order, to.rank);
    const Dim rows = rows_count(c, &x, 0, row_axes), columns = rows_count(c, &x, row_axes, x.rank);
    const int threads = rows_threads(lower_upper(l, columns)) > 256 ? 256 : rows_threads(lower_upper(l, columns));
    Kernel *k = kernel_begin(l, n, "hardmax");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    rows_define(c, k, "X", &x, row_axes);
    rows_define(c, k, "Y", &y, row_axes);
    kernel_int(k, "THREADS", threads);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    kernel_launch(k, lower_upper(l, rows), 1, 1, threads);
}

/* ---- CumSum, CumProd */

static bool cumulate_axis(Compilation *c, const Node *n, int rank, int *axis)
{
    int64_t *list;
    int count;
    if (!value_ints(c, node_input(c, n, 1), &list, &count) || count != 1) {
        node_error(c, n, "the axis is not known when compiling");
        return false;
    }
    *axis = axis_normal(c, n, list[0], rank);
    return *axis >= 0;
}

static bool cumulate_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    int axis;
    return (x->rank < 0 || cumulate_axis(c, n, x->rank, &axis)) && shape_same(c, n);
}

static void cumulate_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), out = lower_output(l, n, 0);
    const bool reverse = attr_int(n, "reverse") != 0;
    View lines = out;
    int axis;
    if (!cumulate_axis(c, n, x.rank, &axis) || nothing(l, &out)) return;
    lines.dims[axis] = dim_const(c, 1);
    const Dim count = dims_product(c, lines.rank, lines.dims);
    const char *end = reverse ? arena_text(&c->arena, " + ((X_D%d) - 1)", axis) : " + (idx)0";
    const bool product = !strcmp(n->op_type, "CumProd");
    Kernel *k = kernel_begin(l, n, "cumulate");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", out);
    kernel_text(k, "SOURCE", arena_text(&c->arena, "%s%s * X_S%d", index_at(l, "X", x.rank, "i"), end, axis));
    kernel_text(k, "TARGET", arena_text(&c->arena, "%s%s * Y_S%d", index_at(l, "Y", out.rank, "i"), end, axis));
    kernel_text(k, "NEXT", product ? "(total * element)" : "(total + element)");
    kernel_int(k, "START", product);
    kernel_dim(k, "STEPS", x.dims[axis]);
    kernel_int(k, "STEP_X", reverse ? -x.stride[axis] : x.stride[axis]);
    kernel_int(k, "STEP_Y", reverse ? -out.stride[axis] : out.stride[axis]);
    kernel_int(k, "EXCLUSIVE", attr_int(n, "exclusive") != 0);
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", index_split(l, lines.rank, lines.dims, "i"));
    kernel_launch(k, grid_for(lower_upper(l, count), 64), 1, 1, 64);
}

/* ---- Det */

static bool det_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (x->rank < 2) {
        node_error(c, n, "input '%s' has rank %d; expected 2 or more", x->name, x->rank);
        return false;
    }
    const Dim a = x->dims[x->rank - 2], b = x->dims[x->rank - 1];
    if (a && b && !dim_equate(c, n, "a determinant is of a square", a, b)) return false;
    return output_set(c, n, 0, x->dtype, x->rank - 2, x->dims);
}

static void det_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Dim rows = rows_count(c, &x, 0, y.rank);
    int64_t size;
    if (!dim_is_const(c, x.dims[y.rank], &size)) {
        node_error(c, n, "the size of the matrices is not known when compiling");
        return;
    }
    if (nothing(l, &y)) return;
    const Dim dims[3] = {rows, x.dims[y.rank], x.dims[y.rank]};
    Kernel *k = kernel_begin(l, n, "det");
    kernel_in(k, "X", x);
    kernel_out(k, "A", lower_temporary(l, arena_text(&c->arena, "%s matrix", n->name), x.store == DT_F64 ? DT_F64 : DT_F32, 3, dims));
    kernel_out(k, "Y", y);
    rows_define(c, k, "X", &x, y.rank);
    rows_define(c, k, "Y", &y, y.rank);
    kernel_int(k, "SIZE", size);
    kernel_dim(k, "ROWS", rows);
    kernel_int(k, "THREADS", size > 16 ? 256 : 32);
    kernel_launch(k, lower_upper(l, rows), 1, 1, size > 16 ? 256 : 32);
}

/* ---- ReverseSequence */

static bool reverse_axes(Compilation *c, const Node *n, int rank, int *time, int *batch)
{
    *time = axis_normal(c, n, attr_int(n, "time_axis"), rank);
    *batch = axis_normal(c, n, attr_int(n, "batch_axis"), rank);
    if (*time >= 0 && *batch >= 0 && *time != *batch) return true;
    if (*time >= 0 && *batch >= 0) node_error(c, n, "time_axis and batch_axis are both %d", *time);
    return false;
}

static bool reverse_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *lengths = node_input(c, n, 1);
    int time, batch;
    if (x->rank < 0) return shape_same(c, n);
    if (!reverse_axes(c, n, x->rank, &time, &batch)) return false;
    if (lengths->rank == 1 && !dim_equate(c, n, "a length for each sequence", lengths->dims[0], x->dims[batch])) return false;
    return shape_same(c, n);
}

static void reverse_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), out = lower_output(l, n, 0);
    const char *source = "X_OFF";
    int time, batch;
    if (!reverse_axes(c, n, x.rank, &time, &batch) || nothing(l, &out)) return;
    for (int i = 0; i < x.rank; i++) source = arena_text(&c->arena, "%s + %s%d * X_S%d", source, i == time ? "from" : "i", i, i);
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", x);
    kernel_in(k, "L", lower_input(l, n, 1));
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s)", source));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, arena_text(&c->arena, "const idx length = L_LD(L_AT(i%d)), from%d = i%d < length ? length - 1 - i%d : i%d;",
                                           batch, time, time, time, time));
}

/* ---- EyeLike, Shrink */

static bool eye_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank >= 0 && x->rank != 2) {
        node_error(c, n, "input '%s' has rank %d; expected 2", x->name, x->rank);
        return false;
    }
    return output_set(c, n, 0, attr_given(n, "dtype") ? attr_dtype(n, "dtype") : x->dtype, x->rank, x->dims);
}

static void eye_lower(Lower *l, Node *n)
{
    const View out = lower_output(l, n, 0);
    if (nothing(l, &out)) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", arena_text(&lower_compilation(l)->arena, "(i1 - i0 == %lldLL)", (long long)attr_int(n, "k")));
    kernel_text(k, "TARGET", index_at(l, "Y", 2, "i"));
    launch_elements(l, k, &out, NULL);
}

static const char *shrink_expr(Compilation *c, const Node *n)
{
    const char *type = node_input(c, n, 0)->dtype == DT_F64 ? "double" : "float";
    const double limit = attr_float(n, "lambd"), bias = attr_float(n, "bias");
    return arena_text(&c->arena, "((%s)a < (%s)%a ? (%s)a + (%s)%a : (%s)a > (%s)%a ? (%s)a - (%s)%a : 0)", type, type, -limit, type,
                      type, bias, type, type, limit, type, type, bias);
}

/* ---- TfIdfVectorizer over integers */

static View table(Lower *l, const Node *n, const char *what, const int64_t *values, int count)
{
    Compilation *c = lower_compilation(l);
    int64_t *copy = NEW_ARRAY(c, int64_t, count + 1);
    if (count) memcpy(copy, values, sizeof *values * (size_t)count);
    const uint32_t b = buffer_new(c, arena_text(&c->arena, "%s %s", n->name, what), REGION_METADATA, 8 * count, l->index);
    Data *data = NEW(c, Data);
    *data = (Data){.bytes = copy, .size = 8 * (uint64_t)count};
    c->buffers[b].data = data;
    const Dim dim = dim_const(c, count);
    return view_dense_new(l, b, DT_I64, 1, &dim);
}

static bool tfidf_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const Attr *places = node_attr(n, "ngram_indexes");
    int64_t most = -1;
    if (x->rank < 0) return output_set(c, n, 0, DT_F32, -1, NULL);
    if (x->rank < 1 || x->rank > 2 || !node_attr(n, "pool_int64s")->count) {
        node_error(c, n, x->rank < 1 || x->rank > 2 ? "the input must have rank 1 or 2" : "a pool of strings is not supported");
        return false;
    }
    for (int i = 0; i < places->count; i++) most = places->ints[i] > most ? places->ints[i] : most;
    const Dim dims[2] = {x->dims[0], dim_const(c, most + 1)};
    return output_set(c, n, 0, DT_F32, x->rank, x->rank == 2 ? dims : dims + 1);
}

/* For each n-gram of the wanted lengths: place, length, first word. Returns how many, or -1 after an error. */
static int read_grams(Compilation *c, const Node *n, int64_t *grams)
{
    const Attr *starts = node_attr(n, "ngram_counts"), *pool = node_attr(n, "pool_int64s"), *places = node_attr(n, "ngram_indexes");
    int id = 0, count = 0;
    for (int s = 0; s < starts->count; s++) {
        const int64_t from = starts->ints[s], to = s + 1 < starts->count ? starts->ints[s + 1] : pool->count;
        if (from < 0 || to < from || to > pool->count || (to - from) % (s + 1)) {
            node_error(c, n, "ngram_counts: %lld to %lld are no whole %d-grams of a pool of %d", (long long)from, (long long)to, s + 1, pool->count);
            return -1;
        }
        for (int64_t at = from; at < to; at += s + 1, id++) {
            if (id >= places->count) {
                node_error(c, n, "ngram_indexes has %d elements; more n-grams are in the pool", places->count);
                return -1;
            }
            if (s + 1 < attr_int(n, "min_gram_length") || s + 1 > attr_int(n, "max_gram_length")) continue;
            grams[3 * count] = places->ints[id];
            grams[3 * count + 1] = s + 1;
            grams[3 * count++ + 2] = at;
        }
    }
    return count;
}

/* The weight of n-gram g, as text: of those that are left in GRAMS. */
static const char *gram_weights(Compilation *c, const Node *n, const int64_t *grams, int count)
{
    const Attr *weights = node_attr(n, "weights"), *places = node_attr(n, "ngram_indexes");
    Text t = {0};
    if (!weights->count) return "1.0f";
    for (int g = 0; g + 1 < count; g++)
        for (int i = 0; i < places->count && i < weights->count; i++)
            if (places->ints[i] == grams[3 * g]) text_add(&t, "g == %d ? %af : ", g, weights->floats[i]);
    for (int i = 0; count && i < places->count && i < weights->count; i++)
        if (places->ints[i] == grams[3 * (count - 1)]) text_add(&t, "g == %d ? %af : ", count - 1, weights->floats[i]);
    text_add(&t, "1.0f");
    const char *copy = arena_text(&c->arena, "(%s)", t.data);
    text_free(&t);
    return copy;
}

static const char *tfidf_value(const Node *n)
{
    const char *mode = attr_string(n, "mode");
    if (!strcmp(mode, "TF")) return "(float)found";
    return !strcmp(mode, "IDF") ? "(found ? weight : 0.0f)" : "((float)found * weight)";
}

static void tfidf_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), out = lower_output(l, n, 0);
    const Attr *pool = node_attr(n, "pool_int64s");
    int64_t *grams = NEW_ARRAY(c, int64_t, 3 * pool->count + 3);
    const int count = read_grams(c, n, grams), last = x.rank - 1;
    const Dim total = dims_product(c, out.rank, out.dims);
    if (count < 0 || lower_upper(l, total) == 0) return;
    Kernel *k = kernel_begin(l, n, "tfidf");
    kernel_in(k, "X", x);
    kernel_in(k, "G", table(l, n, "n-grams", grams, 3 * count));
    kernel_in(k, "POOL", table(l, n, "pool", pool->ints, pool->count));
    kernel_out(k, "Y", out);
    kernel_text(k, "PLACE", last ? "i1" : "i0");
    kernel_text(k, "SOURCE(s)", last ? "X_AT(i0, s)" : "X_AT(s)");
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    kernel_text(k, "VALUE", tfidf_value(n));
    kernel_text(k, "WEIGHT", gram_weights(c, n, grams, count));
    kernel_int(k, "GRAMS", count);
    kernel_int(k, "SKIPS", attr_int(n, "max_skip_count"));
    kernel_dim(k, "WORDS", x.dims[last]);
    kernel_dim(k, "COUNT", total);
    kernel_text(k, "INDEX", index_split(l, out.rank, out.dims, "i"));
    kernel_launch(k, grid_for(lower_upper(l, total), 128), 1, 1, 128);
}

#define ANY TYPES_NUMBER " bool"
static const OpRow rows[] = {
    {.domain = "", .name = "Hardmax", .since = 1, .schema = "input:T -> output:T ; axis:int=1 | T=" TYPES_FLOAT, .shape = hardmax_shape,
     .lower = hardmax_lower},
    {.domain = "", .name = "Hardmax", .since = 13, .schema = "input:T -> output:T ; axis:int=-1 | T=" TYPES_FLOAT, .shape = hardmax_shape,
     .lower = hardmax_lower},
    {.domain = "", .name = "CumSum", .since = 11, .schema = "x:T, axis:I -> y:T ; exclusive:int=0, reverse:int=0 | T=" TYPES_NUMBER
     ", I=i64 i32", .facts = OP_ZEROS | OP_TAIL, .shape = cumulate_shape, .lower = cumulate_lower},
    {.domain = "", .name = "CumProd", .since = 26, .schema = "x:T, axis:I -> y:T ; exclusive:int=0, reverse:int=0 | T=" TYPES_NUMBER
     ", I=i64 i32", .shape = cumulate_shape, .lower = cumulate_lower},
    {.domain = "", .name = "Det", .since = 11, .schema = "X:T -> Y:T | T=" TYPES_FLOAT, .shape = det_shape, .lower = det_lower},
    {.domain = "", .name = "ReverseSequence", .since = 10,
     .schema = "input:T, sequence_lens:i64 -> Y:T ; batch_axis:int=1, time_axis:int=0 | T=" TYPES_ANY, .shape = reverse_shape, .lower = reverse_lower},
    {.domain = "", .name = "EyeLike", .since = 9, .schema = "input:T -> output:any ; dtype:int?, k:int=0 | T=" ANY, .shape = eye_shape,
     .lower = eye_lower},
    {.domain = "", .name = "Shrink", .since = 9, .schema = "input:T -> output:T ; bias:float=0, lambd:float=0.5 | T=" TYPES_NUMBER,
     .facts = OP_POINTWISE, .shape = shape_same, .expr_fn = shrink_expr},
    {.domain = "", .name = "TfIdfVectorizer", .since = 9,
     .schema = "X:I -> Y:f32 ; max_gram_length:int, max_skip_count:int, min_gram_length:int, mode:string, ngram_counts:ints, "
               "ngram_indexes:ints, pool_int64s:ints?, pool_strings:strings?, weights:floats? | I=i32 i64",
     .shape = tfidf_shape, .lower = tfidf_lower},
};

const OpFamily ops_lines = {rows, COUNT_OF(rows), "lines.c"};
