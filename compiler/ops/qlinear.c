/* qlinear.c - onnxruntime's elementwise operators, concatenation and softmax over quantised bytes, and BiasSoftmax. Each computes
 * in float: (x - zero) * scale in, / scale, rounded, + zero, saturated out. */
#include "ops/move.h"
#include "ops/quantize.h"
#include "ops/rows.h"

#include <string.h>

/* ---- elementwise: expressions over the letters of the inputs */

/* Input X, its scale and its zero point (which may be absent) as a float. */
static const char *real_text(Compilation *c, const Node *n, int x)
{
    if (!node_input(c, n, x + 2)) return arena_text(&c->arena, "((float)%c * %c)", 'a' + x, 'a' + x + 1);
    return arena_text(&c->arena, "((float)(%c - %c) * %c)", 'a' + x, 'a' + x + 2, 'a' + x + 1);
}

/* VALUE by the scale and zero point from input I on. */
static const char *result_text(Compilation *c, const Node *n, const char *value, int i)
{
    const char *zero = node_input(c, n, i + 1) ? arena_text(&c->arena, "%c", 'a' + i + 1) : NULL;
    return quantized_text(c, node_output(c, n, 0)->dtype, arena_text(&c->arena, "(%s) / %c", value, 'a' + i), zero);
}

static const char *binary_text(Compilation *c, const Node *n)
{
    const char *operator = !strcmp(n->op_type, "QLinearAdd") ? "+" : "*";
    return result_text(c, n, arena_text(&c->arena, "%s %s %s", real_text(c, n, 0), operator, real_text(c, n, 3)), 6);
}

static const char *unary_text(Compilation *c, const Node *n)
{
    const char *x = real_text(c, n, 0);
    if (!strcmp(n->op_type, "QLinearSigmoid")) return result_text(c, n, arena_text(&c->arena, "1.0f / (1.0f + expf(-%s))", x), 3);
    return result_text(c, n, arena_text(&c->arena, "gp_leaky_relu(%s, %af)", x, attr_float(n, "alpha")), 3);
}

static bool binary_shape(Compilation *c, Node *n)
{
    static const int single[] = {1, 2, 4, 5, 6, 7};
    const Value *a = node_input(c, n, 0), *b = node_input(c, n, 3);
    if (!one_element_each(c, n, single, COUNT_OF(single))) return false;
    if (a->rank < 0 || b->rank < 0) return output_set(c, n, 0, a->dtype, -1, NULL);
    Dim dims[MAX_RANK];
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < rank; i++) {
        const int ka = i - (rank - a->rank), kb = i - (rank - b->rank);
        const Dim one = dim_const(c, 1);
        if (!broadcast_dim(c, n, ka < 0 ? one : a->dims[ka], kb < 0 ? one : b->dims[kb], &dims[i])) return false;
    }
    return output_set(c, n, 0, a->dtype, rank, dims);
}

static bool unary_shape(Compilation *c, Node *n)
{
    static const int single[] = {1, 2, 3, 4};
    const Value *x = node_input(c, n, 0);
    return one_element_each(c, n, single, COUNT_OF(single)) && output_set(c, n, 0, x->dtype, x->rank, x->dims);
}

/* ---- QLinearConcat: Y_scale, Y_zero_point, then a tensor, its scale and its zero point for each */

enum { FIRST_PART = 2, PART = 3 };

static bool concat_shape(Compilation *c, Node *n)
{
    const Value *first = node_input(c, n, FIRST_PART), *zero = node_input(c, n, 1);
    const int count = (n->input_count - FIRST_PART) / PART;
    Dim dims[MAX_RANK];
    if (n->input_count < FIRST_PART + PART || (n->input_count - FIRST_PART) % PART) {
        node_error(c, n, "%d inputs; expected 2, and 3 for each part", n->input_count);
        return false;
    }
    for (int i = 0; i < n->input_count; i++) {
        if (!node_input(c, n, i)) {
            node_error(c, n, "input %d is missing", i);
            return false;
        }
        const int place = i < FIRST_PART ? 1 : (i - FIRST_PART) % PART;
        if (place && !one_element_each(c, n, &i, 1)) return false;
        if (place != 1 && node_input(c, n, i)->dtype == DT_F32) {
            node_error(c, n, "input %d '%s': expected u8 or i8, found f32", i, node_input(c, n, i)->name);
            return false;
        }
    }
    if (first->rank < 0) return output_set(c, n, 0, zero->dtype, -1, NULL);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), first->rank);
    if (axis < 0) return false;
    memcpy(dims, first->dims, sizeof dims);
    for (int i = 1; i < count; i++) {
        const Value *v = node_input(c, n, FIRST_PART + PART * i);
        if (v->rank < 0) return output_set(c, n, 0, zero->dtype, -1, NULL);
        if (v->rank != first->rank) {
            node_error(c, n, "input '%s': expected rank %d, found %d", v->name, first->rank, v->rank);
            return false;
        }
        for (int k = 0; k < v->rank; k++) {
            if (k == axis) dims[k] = dims[k] && v->dims[k] ? dim_add(c, dims[k], v->dims[k]) : 0;
            else if (!dim_equate(c, n, "parts agree but for the axis", v->dims[k], dims[k])) return false;
        }
    }
    return output_set(c, n, 0, zero->dtype, first->rank, dims);
}

static void concat_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View out = lower_output(l, n, 0);
    const Quantisation to = quantisation_of(l, n, 0, 1);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), out.rank);
    Dim at = dim_const(c, 0);
    for (int i = FIRST_PART; i + 2 < n->input_count; i += PART) {
        const View x = lower_input(l, n, i);
        const Quantisation from = quantisation_of(l, n, i + 1, i + 2);
        View y = out;
        y.dims[axis] = x.dims[axis];
        y.offset = dim_add(c, out.offset, dim_scale(c, at, out.stride[axis]));
        requantize(l, n, x, &from, y, &to, node_output(c, n, 0)->dtype, NULL);
        at = dim_add(c, at, x.dims[axis]);
    }
}

/* ---- softmax over floats that were made for it */

static bool softmax_shape(Compilation *c, Node *n)
{
    static const int single[] = {1, 2, 3, 4};
    const Value *x = node_input(c, n, 0);
    if (!one_element_each(c, n, single, COUNT_OF(single))) return false;
    if (x->rank >= 0 && axis_normal(c, n, attr_int(n, "axis"), x->rank) < 0) return false;
    return output_set(c, n, 0, x->dtype, x->rank, x->dims);
}

static void softmax_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Quantisation from = quantisation_of(l, n, 1, 2), to = quantisation_of(l, n, 3, 4);
    const View floats = lower_temporary(l, arena_text(&c->arena, "%s.floats", n->name), DT_F32, x.rank, x.dims);
    const View shares = lower_temporary(l, arena_text(&c->arena, "%s.shares", n->name), DT_F32, x.rank, x.dims);
    requantize(l, n, x, &from, floats, NULL, DT_F32, arena_text(&c->arena, "%s (dequantise)", n->name));
    softmax_launch(l, n, floats, shares, axis_normal(c, n, attr_int(n, "axis"), x.rank), attr_int(n, "opset") >= 13 ? SOFTMAX_ALONE : 0);
    requantize(l, n, shares, NULL, y, &to, node_output(c, n, 0)->dtype, arena_text(&c->arena, "%s (quantise)", n->name));
}

/* ---- BiasSoftmax: softmax(data + bias), the bias broadcast from the right as everywhere */

static bool bias_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *bias = node_input(c, n, 1);
    if (!output_set(c, n, 0, x->dtype, x->rank, x->dims)) return false;
    if (x->rank < 0 || bias->rank < 0) return true;
    if (axis_normal(c, n, attr_int(n, "axis"), x->rank) < 0) return false;
    if (bias->rank > x->rank) {
        node_error(c, n, "bias '%s' has rank %d, data '%s' %d", bias->name, bias->rank, x->name, x->rank);
        return false;
    }
    for (int k = 1; k <= bias->rank; k++) {
        const Dim d = bias->dims[bias->rank - k];
        if (!dim_is(c, d, 1) && !dim_equate(c, n, "BiasSoftmax's bias broadcasts to its data", d, x->dims[x->rank - k])) return false;
    }
    return true;
}

static void bias_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), given = lower_input(l, n, 1), y = lower_output(l, n, 0);
    const View bias = rows_expand(c, &given, x.rank, x.dims);
    const View sum = lower_temporary(l, arena_text(&c->arena, "%s.sum", n->name), DT_F32, x.rank, x.dims);
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", x);
    kernel_in(k, "B", bias);
    kernel_out(k, "Y", sum);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s) + B_LD(%s)", index_at(l, "X", x.rank, "i"), index_at(l, "B", x.rank, "i")));
    kernel_text(k, "TARGET", index_at(l, "Y", x.rank, "i"));
    launch_elements(l, k, &sum, NULL);
    softmax_launch(l, n, sum, y, axis_normal(c, n, attr_int(n, "axis"), x.rank), 0);
}

#define BYTES "u8 i8"
#define BINARY(name_) \
    {.domain = "com.microsoft", .name = name_, .since = 1, .facts = OP_POINTWISE, .shape = binary_shape, .expr_fn = binary_text, \
     .schema = "A:T, A_scale:f32, A_zero_point:T?, B:T, B_scale:f32, B_zero_point:T?, C_scale:f32, C_zero_point:T? -> C:T | T=" BYTES}
#define UNARY(name_, attrs_) \
    {.domain = "com.microsoft", .name = name_, .since = 1, .facts = OP_POINTWISE, .shape = unary_shape, .expr_fn = unary_text, \
     .schema = "X:T, X_scale:f32, X_zero_point:T?, Y_scale:f32, Y_zero_point:T? -> Y:T" attrs_ " | T=" BYTES}

static const OpRow rows[] = {
    BINARY("QLinearAdd"),
    BINARY("QLinearMul"),
    UNARY("QLinearSigmoid", ""),
    UNARY("QLinearLeakyRelu", " ; alpha:float=0.01"),
    {.domain = "com.microsoft", .name = "QLinearConcat", .since = 1,
     .schema = "Y_scale:f32, Y_zero_point:T, inputs:any* -> Y:T ; axis:int | T=" BYTES,
     .shape = concat_shape, .lower = concat_lower},
    {.domain = "com.microsoft", .name = "QLinearSoftmax", .since = 1,
     .schema = "X:T, X_scale:f32, x_zero_point:T?, y_scale:f32, y_zero_point:T -> Y:T ; axis:int=-1, opset:int | T=" BYTES,
     .shape = softmax_shape, .lower = softmax_lower},
    {.domain = "com.microsoft", .name = "BiasSoftmax", .since = 1,
     .schema = "data:T, bias:T -> output:T ; axis:int=1, is_inner_broadcast:int | T=f32 f16",
     .shape = bias_shape, .lower = bias_lower},
};

const OpFamily ops_qlinear = {rows, COUNT_OF(rows), "compiler/ops/qlinear.c"};
