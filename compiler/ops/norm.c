/* norm.c - normalisations over the last axes: RMS and layer norms, alone or behind a residual sum, and softmax. One block
 * a row, or of many short ones several; statistics in float, rounded once. */
#include "lower.h"
#include "ops/gemv.h"
#include "ops/norm.h"
#include "ops/rows.h"

#include <string.h>

static bool has_output(const Node *n, int i)
{
    return i < n->output_count && n->outputs[i];
}

/* An output that nothing names costs nothing. */
static bool wants_output(Compilation *c, const Node *n, int i)
{
    const Value *v = node_output(c, n, i);
    return v && v->uses > 0;
}

/* Not an error: a later round of inference may know. */
static bool unranked(const Value *x, const Value *y) { return x->rank < 0 || (y && y->rank < 0); }

static bool ranked(Compilation *c, const Node *n, const Value *x, int least)
{
    if (x->rank >= least) return true;
    node_error(c, n, "input '%s': rank %d or more is needed, found %d", x->name, least, x->rank);
    return false;
}

static bool scale_fits(Compilation *c, const Node *n, const char *rule, const Value *scale, const Value *x)
{
    if (!scale) return true;
    if (scale->rank > x->rank) {
        node_error(c, n, "'%s' of rank %d does not broadcast to '%s' of rank %d", scale->name, scale->rank, x->name, x->rank);
        return false;
    }
    for (int i = 1; i <= scale->rank; i++) {
        const Dim d = scale->dims[scale->rank - i];
        if (!dim_is(c, d, 1) && !dim_equate(c, n, rule, d, x->dims[x->rank - i])) return false;
    }
    return true;
}

/* ---- norms of one input: RMSNormalization, SimplifiedLayerNormalization, LayerNormalization */

static bool set_statistics(Compilation *c, Node *n, int first, const Value *x, int axis)
{
    Dim dims[MAX_RANK];
    for (int i = 0; i < x->rank; i++) dims[i] = i < axis ? x->dims[i] : dim_const(c, 1);
    for (int i = first; i < n->output_count; i++)
        if (has_output(n, i) && !output_set(c, n, i, DT_F32, x->rank, dims)) return false;
    return true;
}

static bool norm_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *scale = node_input(c, n, 1);
    int axis;
    if (unranked(x, scale)) return output_set(c, n, 0, scale->dtype, x->rank, x->dims);
    if (!ranked(c, n, x, 1)) return false;
    axis = axis_normal(c, n, attr_int(n, "axis"), x->rank);
    if (axis < 0 || !scale_fits(c, n, "a norm's scale has the dims of its rows", scale, x)) return false;
    if (!scale_fits(c, n, "a norm's bias has the dims of its rows", node_input(c, n, 2), x)) return false;
    return output_set(c, n, 0, scale->dtype, x->rank, x->dims) && set_statistics(c, n, 1, x, axis);
}

/* Operands of the template norm.cu; index -1: absent. */
typedef struct NormPorts { int skip, scale, beta, bias, mean, inverse, sum; bool centre; } NormPorts;

/* WIDTH falls to 1 when the operand cannot be read in vectors of that many elements. */
static void norm_operand(Lower *l, Kernel *k, const Node *n, const char *name, int input, const View *x, int axis, int *width)
{
    Compilation *c = lower_compilation(l);
    const View v = lower_input(l, n, input), wide = rows_expand(c, &v, x->rank, x->dims);
    kernel_in(k, name, wide);
    rows_define(c, k, name, &wide, axis);
    if (wide.store != x->store || view_vector(l, &wide) != *width) *width = 1;
}

/* Rows of one axis that vectors tile exactly, and threads enough for one vector each. */
static int norm_width(Lower *l, const View *x, int axis, Dim columns)
{
    int64_t count;
    const int width = view_vector(l, x);
    if (axis != x->rank - 1 || !dim_is_const(lower_compilation(l), columns, &count) || count % width || count / width > 1024) return 1;
    return width;
}

static int norm_threads(int64_t widest, int width)
{
    if (width == 1) return rows_threads(widest);
    const int64_t vectors = widest / width;
    return vectors <= 32 ? 32 : vectors <= 128 ? 128 : vectors <= 256 ? 256 : vectors <= 512 ? 512 : 1024;
}

/* Rows that a block takes. Of many rows that fit into a warp *THREADS falls to the lanes that load something, so that sums stay the same. */
static int norm_together(int64_t rows, int64_t widest, int width, int *threads)
{
    if (*threads > 32 || rows <= MANY_ROWS) return 1;
    while (*threads > 1 && *threads / 2 * width >= widest) *threads /= 2;
    return 256 / *threads;
}

/* Returns how many elements can be stored at once. */
static int norm_result(Lower *l, Kernel *k, const Node *n, const char *name, int output, int axis)
{
    const View v = lower_output(l, n, output);
    kernel_out(k, name, v);
    rows_define(lower_compilation(l), k, name, &v, axis);
    return view_vector(l, &v);
}

/* The optional operand NAME: defines HAS_NAME either way. */
static bool norm_has(Lower *l, Kernel *k, const char *name, bool present)
{
    kernel_int(k, arena_text(&lower_compilation(l)->arena, "HAS_%s", name), present);
    return present;
}

static void norm_view(Lower *l, Node *n, const View *given, const NormPorts *p, int axis)
{
    Compilation *c = lower_compilation(l);
    const View x = *given;
    const Dim rows = rows_count(c, &x, 0, axis), columns = rows_count(c, &x, axis, x.rank);
    const int64_t widest = lower_upper(l, columns);
    int width = norm_width(l, &x, axis, columns);
    Kernel *k = kernel_begin(l, n, "norm");
    kernel_in(k, "X", x);
    rows_define(c, k, "X", &x, axis);
    norm_operand(l, k, n, "SCALE", p->scale, &x, axis, &width);
    if (norm_has(l, k, "SKIP", p->skip >= 0)) norm_operand(l, k, n, "SKIP", p->skip, &x, axis, &width);
    if (norm_has(l, k, "BETA", p->beta >= 0 && node_input(c, n, p->beta))) norm_operand(l, k, n, "BETA", p->beta, &x, axis, &width);
    if (norm_has(l, k, "BIAS", p->bias >= 0 && node_input(c, n, p->bias))) norm_operand(l, k, n, "BIAS", p->bias, &x, axis, &width);
    const int run = norm_has(l, k, "Y", kernel_beside_stored(l, n)) ? norm_result(l, k, n, "Y", 0, axis) : 1;
    if (norm_has(l, k, "MEAN", p->mean >= 0 && wants_output(c, n, p->mean))) norm_result(l, k, n, "MEAN", p->mean, axis);
    if (norm_has(l, k, "INV", p->inverse >= 0 && wants_output(c, n, p->inverse)))
        norm_result(l, k, n, "INV", p->inverse, axis);
    const int sums = norm_has(l, k, "SUM", p->sum >= 0 && wants_output(c, n, p->sum)) ? norm_result(l, k, n, "SUM", p->sum, axis) : 1;
    kernel_beside(k, n, axis, "v");
    kernel_int(k, "CENTRE", p->centre);
    int threads = norm_threads(widest, width);
    const int together = norm_together(lower_upper(l, rows), widest, width, &threads);
    kernel_int(k, "THREADS", threads);
    kernel_int(k, "TOGETHER", together);
    kernel_int(k, "V", width);
    kernel_int(k, "Y_RUNS", width > 1 && run == width);
    kernel_int(k, "SUM_RUNS", width > 1 && sums == width);
    kernel_text(k, "TYPE", x.store == DT_F32 ? "F32" : x.store == DT_F16 ? "F16" : "BF16");
    kernel_int(k, "PER", width > 1 ? width : (widest + threads - 1) / threads);
    kernel_float(k, "EPSILON", attr_float(n, "epsilon"));
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    kernel_launch(k, ceil_div(lower_upper(l, rows), together), 1, 1, threads * together);
}

static void norm_launch(Lower *l, Node *n, const NormPorts *p, int axis)
{
    const View x = lower_input(l, n, 0);
    norm_view(l, n, &x, p, axis);
}

void norm_layer(Lower *l, Node *n, const View *x, int gamma, int beta)
{
    const NormPorts p = {.skip = -1, .scale = gamma, .beta = beta, .bias = -1, .mean = -1, .inverse = -1, .sum = -1, .centre = true};
    norm_view(l, n, x, &p, x->rank - 1);
}

static void rms_lower(Lower *l, Node *n)
{
    const NormPorts p = {.skip = -1, .scale = 1, .beta = -1, .bias = -1, .mean = -1, .inverse = 1, .sum = -1};
    const Value *x = node_input(lower_compilation(l), n, 0);
    norm_launch(l, n, &p, axis_normal(lower_compilation(l), n, attr_int(n, "axis"), x->rank));
}

static void layer_lower(Lower *l, Node *n)
{
    const NormPorts p = {.skip = -1, .scale = 1, .beta = 2, .bias = -1, .mean = 1, .inverse = 2, .sum = -1, .centre = true};
    const Value *x = node_input(lower_compilation(l), n, 0);
    norm_launch(l, n, &p, axis_normal(lower_compilation(l), n, attr_int(n, "axis"), x->rank));
}

/* ---- norms of a residual sum: output 3 is the sum */

static bool skip_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const bool centre = !strcmp(n->op_type, "SkipLayerNormalization");
    if (unranked(x, node_input(c, n, 1))) return output_set(c, n, 0, x->dtype, x->rank, x->dims);
    if (!ranked(c, n, x, 2)) return false;
    if (!scale_fits(c, n, "the skip input has the dims of the input", node_input(c, n, 1), x)) return false;
    for (int i = 2; i < (centre ? 5 : 4); i++)
        if (!scale_fits(c, n, "a norm's weights have the last dim of its input", node_input(c, n, i), x)) return false;
    if (!output_set(c, n, 0, x->dtype, x->rank, x->dims)) return false;
    if (has_output(n, 3) && !output_set(c, n, 3, x->dtype, x->rank, x->dims)) return false;
    const int statistics = n->output_count;
    Dim dims[MAX_RANK];
    for (int i = 0; i < x->rank; i++) dims[i] = i < x->rank - 1 ? x->dims[i] : dim_const(c, 1);
    for (int i = 1; i < 3 && i < statistics; i++)
        if (has_output(n, i) && !output_set(c, n, i, DT_F32, x->rank, dims)) return false;
    return true;
}

static void skip_rms_lower(Lower *l, Node *n)
{
    const NormPorts p = {.skip = 1, .scale = 2, .beta = -1, .bias = 3, .mean = 1, .inverse = 2, .sum = 3};
    norm_launch(l, n, &p, node_input(lower_compilation(l), n, 0)->rank - 1);
}

static void skip_layer_lower(Lower *l, Node *n)
{
    const NormPorts p = {.skip = 1, .scale = 2, .beta = 3, .bias = 4, .mean = 1, .inverse = 2, .sum = 3, .centre = true};
    norm_launch(l, n, &p, node_input(lower_compilation(l), n, 0)->rank - 1);
}

bool norm_row(Compilation *c, const Node *n, NormRow *r)
{
    const bool skip = n->op->lower == skip_rms_lower;
    const Value *x = node_input(c, n, 0);
    *r = (NormRow){.skip = skip ? 1 : -1, .scale = skip ? 2 : 1, .sum = skip ? 3 : -1, .epsilon = attr_float(n, "epsilon")};
    if (skip) return !node_input(c, n, 3) && !wants_output(c, n, 1) && !wants_output(c, n, 2);
    return axis_normal(c, n, attr_int(n, "axis"), x->rank) == x->rank - 1 && !wants_output(c, n, 1);
}

static bool norm_by_row(Compilation *c, const Node *n)
{
    const int rank = node_input(c, n, 0)->rank;
    return axis_normal(c, n, attr_int(n, "axis"), rank) == rank - 1;
}

static bool skip_by_row(Compilation *c, const Node *n)
{
    (void)c, (void)n;
    return true;
}

/* ---- softmax */

static bool softmax_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!ranked(c, n, x, 1)) return false;
    if (axis_normal(c, n, attr_int(n, "axis"), x->rank) < 0) return false;
    return output_set(c, n, 0, x->dtype, x->rank, x->dims);
}

void softmax_launch(Lower *l, const Node *n, View from, View to, int axis, int form)
{
    Compilation *c = lower_compilation(l);
    int order[MAX_RANK];
    const bool wide = from.store == DT_F64;
    const int row_axes = rows_around(axis, from.rank, form & SOFTMAX_ALONE, order);
    const View x = rows_order(&from, order, from.rank), y = rows_order(&to, order, to.rank);
    const Dim rows = rows_count(c, &x, 0, row_axes), columns = rows_count(c, &x, row_axes, x.rank);
    if (lower_upper(l, rows) == 0 || lower_upper(l, columns) == 0) return;
    const int most = rows_threads(lower_upper(l, columns)), threads = wide && most > 256 ? 256 : most;
    Kernel *k = kernel_begin(l, n, "softmax");
    kernel_in(k, "X", x);
    kernel_out(k, "Y", y);
    rows_define(c, k, "X", &x, row_axes);
    rows_define(c, k, "Y", &y, row_axes);
    kernel_int(k, "WIDE", wide);
    kernel_text(k, "REAL", wide ? "double" : "float");
    kernel_text(k, "FMAX", wide ? "fmax" : "FMAXF");
    kernel_text(k, "EXP", wide ? "exp" : "EXPF");
    kernel_text(k, "LOG", wide ? "log" : "LOGF");
    kernel_int(k, "THREADS", threads);
    kernel_int(k, "TAKE_LOG", (form & SOFTMAX_LOG) != 0);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "COLS", columns);
    kernel_launch(k, lower_upper(l, rows), 1, 1, threads);
}

/* Since 13 along one axis; before, over all axes from it on. */
static void softmax_lower(Lower *l, Node *n)
{
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const int axis = axis_normal(lower_compilation(l), n, attr_int(n, "axis"), x.rank);
    const int alone = n->op->since >= 13 ? SOFTMAX_ALONE : 0, logarithm = !strcmp(n->op_type, "LogSoftmax") ? SOFTMAX_LOG : 0;
    softmax_launch(l, n, x, y, axis, alone | logarithm);
}

#define FLOATS "T=f32 f16 bf16, V=f32 f16 bf16, U=f32"
#define SOFTMAX(name_, since_, axis_) \
    {.domain = "", .name = name_, .since = since_, .schema = "input:T -> output:T ; axis:int=" axis_ " | T=f32 f16 bf16 f64", \
     .shape = softmax_shape, .lower = softmax_lower}
#define SIMPLIFIED(domain_) \
    {.domain = domain_, .name = "SimplifiedLayerNormalization", .since = 1, \
     .schema = "X:T, scale:V -> Y:V, inv_std_var:U? ; axis:int=-1, epsilon:float=1e-5, stash_type:int=1 | " FLOATS, \
     .facts = OP_NORM_ROW | OP_BESIDE, .shape = norm_shape, .lower = rms_lower, .by_row = norm_by_row}

static const OpRow rows[] = {
    {.domain = "", .name = "RMSNormalization", .since = 23,
     .schema = "X:T, scale:V -> Y:V ; axis:int=-1, epsilon:float=1e-5, stash_type:int=1 | T=f32 f16 bf16, V=f32 f16 bf16",
     .facts = OP_NORM_ROW | OP_BESIDE, .shape = norm_shape, .lower = rms_lower, .by_row = norm_by_row},
    SIMPLIFIED(""),
    SIMPLIFIED("com.microsoft"),
    {.domain = "", .name = "LayerNormalization", .since = 1, /* an extension before 17, with the same meaning */
     .schema = "X:T, Scale:V, B:V? -> Y:V, Mean:U?, InvStdDev:U? ; axis:int=-1, epsilon:float=1e-5, stash_type:int=1 | " FLOATS,
     .facts = OP_BESIDE, .shape = norm_shape, .lower = layer_lower, .by_row = norm_by_row},
    {.domain = "com.microsoft", .name = "SkipSimplifiedLayerNormalization", .since = 1,
     .schema = "input:T, skip:T, gamma:T, bias:T? -> output:T, mean:U?, inv_std_var:U?, input_skip_bias_sum:T? ; "
               "epsilon:float=1e-12 | T=f32 f16 bf16, U=f32",
     .facts = OP_NORM_ROW | OP_BESIDE, .shape = skip_shape, .lower = skip_rms_lower, .by_row = skip_by_row},
    {.domain = "com.microsoft", .name = "SkipLayerNormalization", .since = 1,
     .schema = "input:T, skip:T, gamma:T, beta:T?, bias:T? -> output:T, mean:U?, inv_std_var:U?, input_skip_bias_sum:T? ; "
               "epsilon:float=1e-12 | T=f32 f16 bf16, U=f32",
     .facts = OP_BESIDE, .shape = skip_shape, .lower = skip_layer_lower, .by_row = skip_by_row},
    SOFTMAX("Softmax", 1, "1"),
    SOFTMAX("Softmax", 13, "-1"),
    SOFTMAX("LogSoftmax", 1, "1"),
    SOFTMAX("LogSoftmax", 13, "-1"),
};

const OpFamily ops_norm = {rows, COUNT_OF(rows), "compiler/ops/norm.c"};
