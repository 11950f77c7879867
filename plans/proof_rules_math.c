/* proof_rules_math.c - rules of elementwise operators (with integer contents), reductions, products, norms and windows. */
#include "proofs.h"

#include <string.h>

/* --- elementwise --- */

enum { WIDE = 1024 /* contents that are followed */ };

typedef poly (*element)(proof_node *n, const poly *operands);

static poly truth(proof_node *n, int value) { return proof_const(n, value); }

static poly add2(proof_node *n, const poly *x) { return poly_add(n->t, x[0], x[1]); }
static poly sub2(proof_node *n, const poly *x) { return poly_sub(n->t, x[0], x[1]); }
static poly mul2(proof_node *n, const poly *x) { return poly_mul(n->t, x[0], x[1]); }

/* ONNX divides integers towards zero: the floor where both are known to be at least 0. */
static poly div2(proof_node *n, const poly *x) {
    int64_t a, b, least, most;
    if (poly_value(n->t, x[0], &a) && poly_value(n->t, x[1], &b))
        return b && !(a == INT64_MIN && b == -1) ? proof_const(n, a / b) : 0;
    poly exact = poly_div_exact(n->t, x[0], x[1]);
    if (exact) return exact;
    poly_bounds(n->t, x[0], NULL, NULL, &least, &most);
    if (least < 0) return 0;
    poly_bounds(n->t, x[1], NULL, NULL, &least, &most);
    return least < 0 ? 0 : poly_op(n->t, PLAN_EXPR_FLOORDIV, x[0], x[1]);
}

static poly mod2(proof_node *n, const poly *x) {
    int64_t least, most;
    poly_bounds(n->t, x[0], NULL, NULL, &least, &most);
    if (proof_int(n, "fmod", 0) && least < 0) return 0;
    return poly_op(n->t, PLAN_EXPR_MOD, x[0], x[1]);
}

static poly min2(proof_node *n, const poly *x) { return poly_op(n->t, PLAN_EXPR_MIN, x[0], x[1]); }
static poly max2(proof_node *n, const poly *x) { return poly_op(n->t, PLAN_EXPR_MAX, x[0], x[1]); }
static poly neg1(proof_node *n, const poly *x) { return poly_sub(n->t, proof_const(n, 0), x[0]); }
static poly copy1(proof_node *n, const poly *x) { return (void)n, x[0]; }

static poly abs1(proof_node *n, const poly *x) {
    int sign = proof_compare(n, x[0], proof_const(n, 0));
    return sign == 2 ? 0 : sign < 0 ? neg1(n, x) : x[0];
}

static poly sign1(proof_node *n, const poly *x) {
    int sign = proof_compare(n, x[0], proof_const(n, 0));
    return sign == 2 ? 0 : proof_const(n, sign);
}

static poly relu1(proof_node *n, const poly *x) { return poly_op(n->t, PLAN_EXPR_MAX, x[0], proof_const(n, 0)); }

static poly equal2(proof_node *n, const poly *x) {
    int64_t least, most;
    poly difference = poly_sub(n->t, x[0], x[1]);
    poly_bounds(n->t, difference, NULL, NULL, &least, &most);
    if (poly_is(n->t, difference, 0)) return truth(n, 1);
    return least > 0 || most < 0 ? truth(n, 0) : 0;
}

/* a < b is certain, or a >= b is. */
static poly less(proof_node *n, poly a, poly b) {
    int64_t least, most;
    poly_bounds(n->t, poly_sub(n->t, b, a), NULL, NULL, &least, &most);
    return least > 0 ? truth(n, 1) : most <= 0 ? truth(n, 0) : 0;
}

static poly not1(proof_node *n, const poly *x) {
    int64_t value;
    return poly_value(n->t, x[0], &value) ? truth(n, !value) : 0;
}

static poly less2(proof_node *n, const poly *x) { return less(n, x[0], x[1]); }
static poly greater2(proof_node *n, const poly *x) { return less(n, x[1], x[0]); }
static poly less_equal2(proof_node *n, const poly *x) { poly p = less(n, x[1], x[0]); return not1(n, &p); }
static poly greater_equal2(proof_node *n, const poly *x) { poly p = less(n, x[0], x[1]); return not1(n, &p); }

static int bits2(proof_node *n, const poly *x, int *a, int *b) {
    int64_t left, right;
    if (!poly_value(n->t, x[0], &left) || !poly_value(n->t, x[1], &right)) return 0;
    *a = left != 0;
    *b = right != 0;
    return 1;
}

static poly and2(proof_node *n, const poly *x) { int a, b; return bits2(n, x, &a, &b) ? truth(n, a && b) : 0; }
static poly or2(proof_node *n, const poly *x) { int a, b; return bits2(n, x, &a, &b) ? truth(n, a || b) : 0; }
static poly xor2(proof_node *n, const poly *x) { int a, b; return bits2(n, x, &a, &b) ? truth(n, a != b) : 0; }

static poly where3(proof_node *n, const poly *x) {
    int64_t condition;
    if (x[1] && x[1] == x[2]) return x[1];
    return poly_value(n->t, x[0], &condition) ? x[condition ? 1 : 2] : 0;
}

static poly cast1(proof_node *n, const poly *x) {
    int64_t value, bool_type = 9;
    if (proof_int(n, "to", 7) != bool_type) return x[0];
    if (poly_value(n->t, x[0], &value)) return truth(n, value != 0);
    poly pair[2] = {x[0], proof_const(n, 0)}, zero = equal2(n, pair);
    return not1(n, &zero);
}

/* E, then L and R below make the table of rules; these have contents besides. */
static const struct { const char *op; element of; uint32_t operands; } elements[] = {
    {"Add", add2, 2}, {"Sub", sub2, 2}, {"Mul", mul2, 2}, {"Div", div2, 2}, {"Mod", mod2, 2}, {"Min", min2, 2}, {"Max", max2, 2},
    {"Sum", add2, 2}, {"Neg", neg1, 1}, {"Abs", abs1, 1}, {"Sign", sign1, 1}, {"Relu", relu1, 1}, {"Floor", copy1, 1},
    {"Ceil", copy1, 1}, {"Round", copy1, 1}, {"Equal", equal2, 2}, {"Less", less2, 2}, {"Greater", greater2, 2},
    {"LessOrEqual", less_equal2, 2}, {"GreaterOrEqual", greater_equal2, 2}, {"And", and2, 2}, {"Or", or2, 2}, {"Xor", xor2, 2},
    {"Not", not1, 1}, {"Where", where3, 3}, {"Cast", cast1, 1}};

/* The element of V that lines up with element AT of an output of dims SIZES. */
static poly pick(proof_node *n, const proof_value *v, const int64_t *sizes, uint32_t rank, int64_t at) {
    int64_t index = 0, stride = 1, size;
    for (uint32_t i = 0; i < v->rank; i++) {
        uint32_t axis = v->rank - 1 - i;
        if (!poly_value(n->t, v->dims[axis], &size)) return 0;
        int64_t rest = at;
        for (uint32_t k = rank; k-- > rank - i;) rest /= sizes[k] ? sizes[k] : 1;
        int64_t here = sizes[rank - 1 - i] ? rest % sizes[rank - 1 - i] : 0;
        index += (size == 1 ? 0 : here) * stride;
        stride *= size;
    }
    return index >= 0 && index < (int64_t)v->count ? v->contents[index] : 0;
}

static void element_contents(proof_node *n, element of, uint32_t operands) {
    const proof_value *y = proof_out(n, 0);
    int64_t sizes[PLAN_RANK_LIMIT];
    if (!y || !y->has_contents || y->count > WIDE) return;
    for (uint32_t k = 0; k < y->rank; k++)
        if (!poly_value(n->t, y->dims[k], &sizes[k])) return;
    poly *all = proof_room(n, y->count);
    for (uint32_t i = 0; all && i < y->count; i++) {
        poly x[3] = {0, 0, 0};
        uint32_t inputs = proof_inputs(n);
        for (uint32_t k = 0; k < inputs; k++) {
            const proof_value *v = proof_in(n, k);
            poly next = v && v->has_contents ? pick(n, v, sizes, y->rank, i) : 0;
            if (k < operands) x[k] = next;
            else if (operands == 2) x[0] = of(n, x), x[1] = next; /* Sum, Min and Max of more than two */
        }
        all[i] = operands == 2 && inputs == 1 ? x[0] : of(n, x);
        if (!all[i]) return;
    }
    if (all) proof_give_contents(n, 0, y->count, all);
}

static void elementwise(proof_node *n) {
    poly dims[PLAN_RANK_LIMIT];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < proof_inputs(n); i++) {
        const proof_value *v = proof_has_in(n, i) ? proof_in(n, i) : NULL;
        if (proof_has_in(n, i) && !v) return;
        if (v && v->rank > rank) rank = v->rank;
    }
    for (uint32_t k = 0; k < rank; k++) dims[k] = proof_const(n, 1);
    for (uint32_t i = 0; i < proof_inputs(n); i++)
        if (proof_has_in(n, i) && proof_broadcast(n, proof_in(n, i), rank, dims)) return;
    proof_give(n, 0, rank, dims);
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(n->op, elements[i].op) == 0) element_contents(n, elements[i].of, elements[i].operands);
}

/* The first input's shape, whatever the others are: CastLike's second only lends its type. */
static void like_first(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (!x) return;
    proof_give_like(n, 0, x);
    if (x->has_contents && strcmp(n->op, "CastLike") == 0) proof_give_contents(n, 0, x->count, x->contents);
}

/* --- reductions --- */

static int64_t reduced_axes(proof_node *n, uint32_t rank) {
    int64_t list[PROOF_LIST], bits = 0;
    int count = proof_ints(n, "axes", list);
    if (count < 0 && proof_has_in(n, 1)) {
        const proof_value *axes = proof_in(n, 1);
        if (!axes || !axes->has_contents || axes->count > PROOF_LIST) return n->unknown = 1, -2;
        count = (int)axes->count;
        for (int i = 0; i < count; i++)
            if (!proof_number(n, axes, (uint32_t)i, &list[i])) return -2;
    }
    if (count <= 0) return proof_int(n, "noop_with_empty_axes", 0) ? 0 : (INT64_C(1) << rank) - 1;
    for (int i = 0; i < count; i++) {
        uint32_t axis;
        if (proof_axis(n, list[i], rank, &axis)) return -2;
        bits |= INT64_C(1) << axis;
    }
    return bits;
}

static void give_reduced(proof_node *n, const proof_value *x, int64_t axes) {
    poly dims[PLAN_RANK_LIMIT];
    uint32_t rank = 0;
    int keep = proof_int(n, "keepdims", 1) != 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (!(axes >> k & 1)) dims[rank++] = x->dims[k];
        else if (keep) dims[rank++] = proof_const(n, 1);
    }
    proof_give(n, 0, rank, dims);
}

static poly fold(proof_node *n, poly a, poly b) {
    const char *kind = n->op + strlen("Reduce");
    if (strcmp(kind, "Prod") == 0) return poly_mul(n->t, a, b);
    if (strcmp(kind, "Sum") == 0) return poly_add(n->t, a, b);
    if (strcmp(kind, "Max") == 0) return poly_op(n->t, PLAN_EXPR_MAX, a, b);
    return strcmp(kind, "Min") == 0 ? poly_op(n->t, PLAN_EXPR_MIN, a, b) : 0;
}

static void reduce(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    int64_t axes = x ? reduced_axes(n, x->rank) : -2;
    if (axes == -2) return;
    give_reduced(n, x, axes);
    if (!x->has_contents || !x->count || axes != (INT64_C(1) << x->rank) - 1) return;
    poly total = x->contents[0];
    for (uint32_t i = 1; i < x->count && total; i++) total = fold(n, total, x->contents[i]);
    if (total) proof_give_contents(n, 0, 1, &total);
}

static void arg_reduce(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    uint32_t axis;
    if (x && !proof_axis(n, proof_int(n, "axis", 0), x->rank, &axis)) give_reduced(n, x, INT64_C(1) << axis);
}

/* --- products --- */

static void matmul(proof_node *n) {
    const proof_value *a = proof_in(n, 0), *b = proof_in(n, 1);
    proof_value left, right;
    poly dims[PLAN_RANK_LIMIT];
    if (!a || !b || !a->rank || !b->rank) return;
    left = *a, right = *b;
    uint32_t rank = left.rank > right.rank ? left.rank : right.rank, last = 0;
    if (rank < 2) rank = 2;
    for (uint32_t k = 0; k < rank; k++) dims[k] = proof_const(n, 1);
    poly inner = a->dims[a->rank - 1], other = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    proof_equal(n, inner, other, "inner dims", 0);
    left.rank = a->rank > 2 ? a->rank - 2 : 0;
    right.rank = b->rank > 2 ? b->rank - 2 : 0;
    if (proof_broadcast(n, &left, rank - 2, dims) || proof_broadcast(n, &right, rank - 2, dims)) return;
    last = rank - 2;
    if (a->rank > 1) dims[last++] = a->dims[a->rank - 2];
    if (b->rank > 1) dims[last++] = b->dims[b->rank - 1];
    proof_give(n, 0, last, dims);
}

static void gemm(proof_node *n) {
    const proof_value *a = proof_in(n, 0), *b = proof_in(n, 1), *c = proof_has_in(n, 2) ? proof_in(n, 2) : NULL;
    int ta = proof_int(n, "transA", 0) != 0, tb = proof_int(n, "transB", 0) != 0;
    if (!a || !b) return;
    proof_rank(n, a, 2, "A");
    proof_rank(n, b, 2, "B");
    if (n->failed) return;
    proof_equal(n, a->dims[!ta], b->dims[tb], "inner dims", 0);
    poly dims[2] = {a->dims[ta], b->dims[!tb]}, wide[2] = {dims[0], dims[1]};
    proof_give(n, 0, 2, dims);
    if (!c || proof_broadcast(n, c, 2, wide)) return;
    proof_equal(n, dims[0], wide[0], "C broadcasts, dim", 0);
    proof_equal(n, dims[1], wide[1], "C broadcasts, dim", 1);
}

/* Each letter has one size; the output's letters say its dims. An ellipsis is not followed. */
static void einsum(proof_node *n) {
    poly size[128] = {0}, dims[PLAN_RANK_LIMIT];
    size_t length, at = 0;
    uint32_t input = 0, axis = 0, rank = 0;
    const char *text = proof_attribute(n, "equation", &length);
    if (!text || memchr(text, '.', length) || !memchr(text, '>', length)) return;
    for (; text[at] != '-'; at++) {
        const proof_value *x = proof_in(n, input);
        unsigned char letter = (unsigned char)text[at];
        if (!x) return;
        if (letter == ',') {
            input++, axis = 0;
            continue;
        }
        if (letter >= 128 || axis >= x->rank) return;
        if (!size[letter] || poly_is(n->t, size[letter], 1)) size[letter] = x->dims[axis];
        else if (!poly_is(n->t, x->dims[axis], 1)) proof_equal(n, size[letter], x->dims[axis], "dim of one letter", axis);
        axis++;
    }
    for (at += 2; at < length && rank < PLAN_RANK_LIMIT; at++) dims[rank++] = size[(unsigned char)text[at] & 127];
    proof_give(n, 0, rank, dims);
}

/* --- norms: the input's shape; statistics have 1 from the axis on --- */

static void norm(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    uint32_t axis;
    if (!x || proof_axis(n, proof_int(n, "axis", -1), x->rank, &axis)) return;
    proof_give_like(n, 0, x);
    for (uint32_t i = 1; i < proof_inputs(n); i++) {
        const proof_value *scale = proof_has_in(n, i) ? proof_in(n, i) : NULL;
        poly dims[PLAN_RANK_LIMIT];
        memcpy(dims, x->dims, sizeof dims);
        if (!scale || proof_broadcast(n, scale, x->rank, dims)) continue;
        for (uint32_t k = 0; k < x->rank; k++) proof_equal(n, x->dims[k], dims[k], "scale or bias, dim", k);
    }
    for (uint32_t i = 1; i < proof_outputs(n); i++) {
        poly dims[PLAN_RANK_LIMIT];
        for (uint32_t k = 0; k < x->rank; k++) dims[k] = k < axis ? x->dims[k] : proof_const(n, 1);
        if (proof_out(n, i)) proof_give(n, i, x->rank, dims);
    }
}

static void skip_norm(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *skip = proof_in(n, 1);
    poly dims[PLAN_RANK_LIMIT];
    if (!x || !skip) return;
    memcpy(dims, x->dims, sizeof dims);
    if (proof_broadcast(n, skip, x->rank, dims)) return;
    for (uint32_t k = 0; k < x->rank; k++) proof_equal(n, x->dims[k], dims[k], "skip, dim", k);
    for (uint32_t i = 2; i < proof_inputs(n); i++) {
        const proof_value *weight = proof_has_in(n, i) ? proof_in(n, i) : NULL;
        if (weight && weight->rank) proof_equal(n, x->dims[x->rank - 1], weight->dims[weight->rank - 1], "weights of a norm, input", i);
    }
    proof_give_like(n, 0, x);
    if (proof_out(n, 3)) proof_give_like(n, 3, x);
    for (uint32_t i = 1; i < 3; i++) {
        memcpy(dims, x->dims, sizeof dims);
        dims[x->rank - 1] = proof_const(n, 1);
        if (proof_out(n, i)) proof_give(n, i, x->rank, dims);
    }
}

/* --- windows --- */

/* floor((in + pads - dilation (kernel - 1) - 1) / stride) + 1, or by auto_pad */
static poly window_dim(proof_node *n, poly in, uint32_t axis, uint32_t axes, int64_t kernel) {
    int64_t strides[PROOF_LIST], dilations[PROOF_LIST], pads[PROOF_LIST];
    int64_t stride = proof_ints(n, "strides", strides) > (int)axis ? strides[axis] : 1;
    int64_t dilation = proof_ints(n, "dilations", dilations) > (int)axis ? dilations[axis] : 1;
    int64_t padding = proof_ints(n, "pads", pads) == (int)(2 * axes) ? pads[axis] + pads[axis + axes] : 0;
    if (proof_text(n, "auto_pad", "SAME_UPPER") || proof_text(n, "auto_pad", "SAME_LOWER"))
        return poly_op(n->t, PLAN_EXPR_CEILDIV, in, proof_const(n, stride));
    if (proof_text(n, "auto_pad", "VALID")) padding = 0;
    if (stride < 1 || proof_int(n, "ceil_mode", 0)) return 0;
    poly span = poly_add(n->t, in, proof_const(n, padding - dilation * (kernel - 1) - 1));
    return poly_add(n->t, poly_op(n->t, PLAN_EXPR_FLOORDIV, span, proof_const(n, stride)), proof_const(n, 1));
}

static void conv(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *w = proof_in(n, 1);
    poly dims[PLAN_RANK_LIMIT];
    if (!x || !w || x->rank < 3) return;
    proof_rank(n, w, x->rank, "weight");
    if (n->failed) return;
    proof_equal(n, x->dims[1], poly_mul(n->t, w->dims[1], proof_const(n, proof_int(n, "group", 1))), "input channels", 0);
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (uint32_t k = 2; k < x->rank; k++) {
        int64_t kernel;
        dims[k] = poly_value(n->t, w->dims[k], &kernel) ? window_dim(n, x->dims[k], k - 2, x->rank - 2, kernel) : 0;
        if (!dims[k]) n->unknown = 1;
    }
    proof_give(n, 0, x->rank, dims);
}

static void pool(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    int64_t kernel[PROOF_LIST];
    poly dims[PLAN_RANK_LIMIT];
    if (!x || x->rank < 3 || proof_ints(n, "kernel_shape", kernel) != (int)x->rank - 2) return;
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t k = 2; k < x->rank; k++) {
        dims[k] = window_dim(n, x->dims[k], k - 2, x->rank - 2, kernel[k - 2]);
        if (!dims[k]) n->unknown = 1;
    }
    proof_give(n, 0, x->rank, dims);
    if (proof_out(n, 1)) proof_give(n, 1, x->rank, dims);
}

static void global_pool(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    poly dims[PLAN_RANK_LIMIT];
    if (!x) return;
    for (uint32_t k = 0; k < x->rank; k++) dims[k] = k < 2 ? x->dims[k] : proof_const(n, 1);
    proof_give(n, 0, x->rank, dims);
}

#define BROADCAST "dims are equal or 1"
#define LIKE "the input's shape"
#define E(op) {op, elementwise, BROADCAST}
#define L(op) {op, like_first, LIKE}
#define R(op) {op, reduce, "reduced axes become 1 or go"}
const proof_row proof_rules_math[] = {
    E("Add"), E("Sub"), E("Mul"), E("Div"), E("Pow"), E("Mod"), E("Neg"), E("Abs"), E("Sign"), E("Sqrt"), E("Reciprocal"), E("Exp"),
    E("Log"), E("Erf"), E("Sin"), E("Cos"), E("Tan"), E("Asin"), E("Acos"), E("Atan"), E("Sinh"), E("Cosh"), E("Tanh"), E("Floor"),
    E("Ceil"), E("Round"), E("Sigmoid"), E("Relu"), E("LeakyRelu"), E("ThresholdedRelu"), E("PRelu"), E("Elu"), E("Celu"),
    E("Selu"), E("HardSigmoid"), E("HardSwish"), E("Softplus"), E("Softsign"), E("Mish"), E("Swish"), E("Gelu"), E("Min"), E("Max"),
    E("Sum"), E("Mean"), E("Where"), E("And"), E("Or"), E("Xor"), E("Not"), E("Equal"), E("Less"), E("LessOrEqual"), E("Greater"),
    E("GreaterOrEqual"), E("IsNaN"), E("IsInf"), E("Cast"), E("BitShift"), E("BitwiseAnd"), E("BitwiseOr"), E("BitwiseXor"),
    E("BitwiseNot"), L("CastLike"), E("com.microsoft::Gelu"), E("com.microsoft::BiasGelu"), E("com.microsoft::FastGelu"),
    E("com.microsoft::QuickGelu"),
    L("Clip"), L("Softmax"), L("LogSoftmax"), L("LpNormalization"), L("InstanceNormalization"), L("GroupNormalization"), L("LRN"),
    L("MeanVarianceNormalization"), L("QuantizeLinear"), L("DequantizeLinear"), L("com.microsoft::QuantizeLinear"),
    L("com.microsoft::DequantizeLinear"), L("Bernoulli"), L("Shrink"),
    R("ReduceSum"), R("ReduceMean"), R("ReduceMax"), R("ReduceMin"), R("ReduceProd"), R("ReduceSumSquare"), R("ReduceL1"),
    R("ReduceL2"), R("ReduceLogSum"), R("ReduceLogSumExp"),
    {"ArgMax", arg_reduce, "the axis becomes 1 or goes"}, {"ArgMin", arg_reduce, "the axis becomes 1 or goes"},
    {"MatMul", matmul, "MatMul inner dims"}, {"MatMulInteger", matmul, "MatMul inner dims"}, {"Gemm", gemm, "Gemm inner dims"},
    {"Einsum", einsum, "Einsum letters"},
    {"LayerNormalization", norm, LIKE}, {"RMSNormalization", norm, LIKE}, {"SimplifiedLayerNormalization", norm, LIKE},
    {"com.microsoft::SimplifiedLayerNormalization", norm, LIKE},
    {"com.microsoft::SkipLayerNormalization", skip_norm, LIKE}, {"com.microsoft::SkipSimplifiedLayerNormalization", skip_norm, LIKE},
    {"Conv", conv, "Conv windows"}, {"MaxPool", pool, "pool windows"}, {"AveragePool", pool, "pool windows"}, {"LpPool", pool, "pool windows"},
    {"GlobalAveragePool", global_pool, "pooled dims are 1"}, {"GlobalMaxPool", global_pool, "pooled dims are 1"},
    {"GlobalLpPool", global_pool, "pooled dims are 1"},
    {NULL, NULL, NULL}};
