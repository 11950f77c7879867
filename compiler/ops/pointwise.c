/* pointwise.c - operators whose output element depends on the input elements at its place: the C texts of their kernels,
 * and what they do to integer contents. */
#include "ops/formula.h"

#include <math.h>
#include <string.h>

/* ---- texts */

/* Operands that are present, as letters. */
static int operands(Compilation *c, const Node *n, char *letters)
{
    int count = 0;
    for (int i = 0; i < n->input_count && i < 26; i++)
        if (node_input(c, n, i)) letters[count++] = (char)('a' + i);
    return count;
}

/* "a + b + c" */
static const char *joined(Compilation *c, const Node *n, const char *between)
{
    char letter[26];
    int count = operands(c, n, letter);
    const char *text = "";
    for (int i = 0; i < count; i++) text = arena_text(&c->arena, "%s%s%c", text, i ? between : "", letter[i]);
    return text;
}

static const char *sum_text(Compilation *c, const Node *n)
{
    return joined(c, n, " + ");
}

static const char *mean_text(Compilation *c, const Node *n)
{
    char letter[26];
    return arena_text(&c->arena, "(%s) / %s", joined(c, n, " + "),
                      float_literal(c, operands(c, n, letter), input_type(c, n, 0)));
}

/* fmax and fmin drop a NaN, ONNX keeps it. */
static const char *extreme_float(Compilation *c, const Node *n, const char *function)
{
    char letter[26];
    int count = operands(c, n, letter);
    const char *suffix = input_type(c, n, 0) == DT_F64 ? "" : "f";
    const char *text = arena_text(&c->arena, "%c", letter[count - 1]), *nan = "";
    for (int i = count - 2; i >= 0; i--)
        text = arena_text(&c->arena, "%s%s(%c, %s)", function, suffix, letter[i], text);
    for (int i = 0; i < count; i++)
        nan = arena_text(&c->arena, "%s%s%c != %c", nan, i ? " || " : "", letter[i], letter[i]);
    return arena_text(&c->arena, "(%s ? %s : %s)", nan, joined(c, n, " + "), text);
}

/* Text doubles with each operand, so many operands of integers are refused by the shape rule. */
static const char *extreme_int(Compilation *c, const Node *n, const char *compare)
{
    char letter[26] = { 0 };
    int count = operands(c, n, letter);
    const char *type = input_type(c, n, 0) == DT_U64 ? "(unsigned long long)" : "";
    const char *text = arena_text(&c->arena, "%c", letter[0]);
    for (int i = 1; i < count; i++)
        text = arena_text(&c->arena, "(%s%s %s %s%c ? %s : %c)", type, text, compare, type, letter[i], text, letter[i]);
    return text;
}

static const char *max_text(Compilation *c, const Node *n)
{
    return dtype_is_float(input_type(c, n, 0)) ? extreme_float(c, n, "fmax") : extreme_int(c, n, ">");
}

static const char *min_text(Compilation *c, const Node *n)
{
    return dtype_is_float(input_type(c, n, 0)) ? extreme_float(c, n, "fmin") : extreme_int(c, n, "<");
}

static const char *div_text(Compilation *c, const Node *n)
{
    DType t = input_type(c, n, 0);
    if (dtype_is_float(t)) return "a / b";
    if (t == DT_U64) return "(b == 0 ? 0 : (long long)((unsigned long long)a / (unsigned long long)b))";
    return "(b == 0 ? 0 : b == -1 ? 0 - a : a / b)"; /* the smallest integer by -1 would trap */
}

static const char *mod_text(Compilation *c, const Node *n)
{
    DType t = input_type(c, n, 0);
    bool c_like = attr_int(n, "fmod") != 0;
    if (dtype_is_float(t)) {
        const char *s = t == DT_F64 ? "" : "f";
        return c_like ? arena_text(&c->arena, "fmod%s(a, b)", s) : arena_text(&c->arena, "(a - b * floor%s(a / b))", s);
    }
    if (t == DT_U64) return "(b == 0 ? 0 : (long long)((unsigned long long)a % (unsigned long long)b))";
    if (c_like) return "(b == 0 || b == -1 ? 0 : a % b)";
    return "(b == 0 || b == -1 ? 0 : a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b)";
}

/* The one element of a constant, when it has one. */
static bool constant_scalar(Compilation *c, const Value *v, double *out)
{
    if (!v || !v->data || !v->data->bytes || !dim_is(c, value_elements(c, v), 1)) return false;
    *out = data_float(v, 0);
    return true;
}

static const char *pow_text(Compilation *c, const Node *n)
{
    DType t = input_type(c, n, 0);
    double e;
    if (constant_scalar(c, node_input(c, n, 1), &e)) {
        if (e == 1) return "a";
        if (e == 2) return "a * a";
        if (e == 3) return "a * a * a";
    }
    if (!dtype_is_float(t)) return dtype_is_float(input_type(c, n, 1)) ? "(long long)pow((double)a, (double)b)" : "gp_power(a, b)";
    return t == DT_F64 ? "pow(a, (double)b)" : "powf(a, (float)b)";
}

static const char *clip_text(Compilation *c, const Node *n)
{
    DType t = input_type(c, n, 0);
    if (n->op->since < 11) {
        const char *lo = float_literal(c, attr_float(n, "min"), t), *hi = float_literal(c, attr_float(n, "max"), t);
        return arena_text(&c->arena, "((a < %s ? %s : a) > %s ? %s : (a < %s ? %s : a))", lo, lo, hi, hi, lo, lo);
    }
    const char *type = t == DT_U64 ? "(unsigned long long)" : "";
    const char *text = "a";
    if (node_input(c, n, 1)) text = arena_text(&c->arena, "(%sa < %sb ? b : a)", type, type);
    if (node_input(c, n, 2)) text = arena_text(&c->arena, "(%s%s > %sc ? c : %s)", type, text, type, text);
    return text;
}

#define GELU_ERF "0.5$ * # * (1.0$ + erf$(# * 0.70710678118654752440$))"
#define GELU_TANH "0.5$ * # * (1.0$ + tanh$(0.79788456080286535588$ * (# + 0.044715$ * # * # * #)))"

static const char *gelu_text(Compilation *c, const Node *n)
{
    bool tanh_form = !*n->domain && !strcmp(attr_string(n, "approximate"), "tanh");
    return formula_text(c, n, tanh_form ? GELU_TANH : GELU_ERF);
}

/* ---- contents: one element */

static Dim fold_add(Compilation *c, const Node *n, const Dim *in, int count)
{
    Dim sum = in[0];
    (void)n;
    for (int i = 1; i < count; i++) sum = dim_add(c, sum, in[i]);
    return sum;
}

static Dim fold_sub(Compilation *c, const Node *n, const Dim *in, int count)
{
    (void)n, (void)count;
    return dim_sub(c, in[0], in[1]);
}

static Dim fold_mul(Compilation *c, const Node *n, const Dim *in, int count)
{
    (void)n, (void)count;
    return dim_mul(c, in[0], in[1]);
}

static bool not_negative(Compilation *c, Dim d)
{
    int64_t lo, hi;
    dim_bounds(c, d, &lo, &hi);
    return lo >= 0;
}

/* Truncation and floor agree where neither side is negative. */
static Dim fold_div(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t a, b;
    (void)n, (void)count;
    if (dim_is(c, in[1], 0)) return 0;
    if (dim_is_const(c, in[0], &a) && dim_is_const(c, in[1], &b)) return b == -1 ? dim_scale(c, in[0], -1) : dim_const(c, a / b);
    if (!not_negative(c, in[0]) || !not_negative(c, in[1])) return 0;
    return dim_op(c, DIM_FLOORDIV, in[0], in[1]);
}

static Dim fold_mod(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t a, b;
    (void)count;
    if (dim_is(c, in[1], 0)) return 0;
    if (dim_is_const(c, in[0], &a) && dim_is_const(c, in[1], &b)) {
        if (b == -1) return dim_const(c, 0);
        int64_t r = a % b;
        if (r && !attr_int(n, "fmod") && (r < 0) != (b < 0)) r += b;
        return dim_const(c, r);
    }
    if (!not_negative(c, in[0]) || !not_negative(c, in[1])) return 0;
    return dim_op(c, DIM_MOD, in[0], in[1]);
}

static Dim fold_extreme(Compilation *c, const Dim *in, int count, bool largest)
{
    Dim best = in[0];
    for (int i = 1; i < count; i++) {
        int64_t lo, hi;
        Dim pair[2] = { best, in[i] };
        dim_difference(c, pair, &lo, &hi);
        if (lo >= 0) best = largest ? best : in[i];
        else if (hi <= 0) best = largest ? in[i] : best;
        else best = dim_op(c, largest ? DIM_MAX : DIM_MIN, best, in[i]);
    }
    return best;
}

static Dim fold_max(Compilation *c, const Node *n, const Dim *in, int count)
{
    (void)n;
    return fold_extreme(c, in, count, true);
}

static Dim fold_min(Compilation *c, const Node *n, const Dim *in, int count)
{
    (void)n;
    return fold_extreme(c, in, count, false);
}

static Dim fold_neg(Compilation *c, const Node *n, const Dim *in, int count)
{
    (void)n, (void)count;
    return dim_scale(c, in[0], -1);
}

static Dim fold_abs(Compilation *c, const Node *n, const Dim *in, int count)
{
    Dim both[2] = { in[0], dim_scale(c, in[0], -1) };
    (void)n, (void)count;
    return fold_extreme(c, both, 2, true);
}

/* ---- contents of floats: one element, of operators that sizes are computed with */

static double real_add(double a, double b) { return a + b; }
static double real_sub(double a, double b) { return a - b; }
static double real_mul(double a, double b) { return a * b; }
static double real_div(double a, double b) { return a / b; }
static double real_neg(double a, double b) { (void)b; return -a; }
static double real_abs(double a, double b) { (void)b; return fabs(a); }
static double real_floor(double a, double b) { (void)b; return floor(a); }
static double real_ceil(double a, double b) { (void)b; return ceil(a); }
static double real_round(double a, double b) { (void)b; return rint(a); }
static double real_relu(double a, double b) { (void)b; return a < 0 ? 0 : a; }
static double real_sqrt(double a, double b) { (void)b; return sqrt(a); }
static double real_reciprocal(double a, double b) { (void)b; return 1 / a; }

/* ---- the operators */

#define SOFTPLUS "(fmax$(a, 0.0$) + log1p$(exp$(-fabs$(a))))"
static const Formula formulas[] = {
    { .name = "Add", .floats = "a + b", .real = real_add, .fold = fold_add },
    { .name = "Sub", .floats = "a - b", .real = real_sub, .fold = fold_sub },
    { .name = "Mul", .floats = "a * b", .real = real_mul, .fold = fold_mul },
    { .name = "Div", .make = div_text, .fold = fold_div, .real = real_div },
    { .name = "Mod", .make = mod_text, .fold = fold_mod },
    { .name = "Pow", .make = pow_text },
    { .name = "Neg", .floats = "-a", .real = real_neg, .ints = "0 - a", .fold = fold_neg },
    { .name = "Abs", .floats = "fabs$(a)", .real = real_abs, .ints = "(a < 0 ? 0 - a : a)", .fold = fold_abs },
    { .name = "Sign", .floats = "(a > 0 ? 1.0$ : a < 0 ? -1.0$ : a * 0.0$)", .ints = "(a > 0) - (a < 0)" },
    { .name = "Sqrt", .floats = "sqrt$(a)", .real = real_sqrt },
    { .name = "Reciprocal", .floats = "1.0$ / a", .real = real_reciprocal },
    { .name = "Exp", .floats = "exp$(a)" },
    { .name = "Log", .floats = "log$(a)" },
    { .name = "Erf", .floats = "erf$(a)" },
    { .name = "Sin", .floats = "sin$(a)" },
    { .name = "Cos", .floats = "cos$(a)" },
    { .name = "Tan", .floats = "tan$(a)" },
    { .name = "Asin", .floats = "asin$(a)" },
    { .name = "Acos", .floats = "acos$(a)" },
    { .name = "Atan", .floats = "atan$(a)" },
    { .name = "Sinh", .floats = "sinh$(a)" },
    { .name = "Cosh", .floats = "cosh$(a)" },
    { .name = "Tanh", .floats = "tanh$(a)" },
    { .name = "Asinh", .floats = "asinh$(a)" },
    { .name = "Acosh", .floats = "acosh$(a)" },
    { .name = "Atanh", .floats = "atanh$(a)" },
    { .name = "Floor", .floats = "floor$(a)", .real = real_floor },
    { .name = "Ceil", .floats = "ceil$(a)", .real = real_ceil },
    { .name = "Round", .floats = "rint$(a)", .real = real_round },
    { .name = "Sigmoid", .floats = "gp_ratio$(1.0$, 1.0$ + exp$(-a))" },
    { .name = "Relu", .floats = "(a < 0 ? 0 : a)", .real = real_relu }, /* keeps NaN */
    { .name = "LeakyRelu", .floats = "(a < 0 ? @alpha * a : a)" },
    { .name = "PRelu", .floats = "(a < 0 ? a * b : a)" },
    { .name = "ThresholdedRelu", .floats = "(a > @alpha ? a : 0)" },
    { .name = "Elu", .floats = "(a < 0 ? @alpha * expm1$(a) : a)" },
    { .name = "Selu", .floats = "@gamma * (a <= 0 ? @alpha * expm1$(a) : a)" },
    { .name = "Celu", .floats = "(a < 0 ? @alpha * expm1$(a / @alpha) : a)" },
    { .name = "HardSigmoid", .floats = "(@alpha * a + @beta < 0 ? 0 : @alpha * a + @beta > 1 ? 1 : @alpha * a + @beta)" }, /* keeps NaN */
    { .name = "HardSwish", .floats = "a * fmax$(0.0$, fmin$(1.0$, a / 6.0$ + 0.5$))" },
    { .name = "Softplus", .floats = SOFTPLUS },
    { .name = "Softsign", .floats = "a / (1.0$ + fabs$(a))" },
    { .name = "Mish", .floats = "a * tanh$" SOFTPLUS },
    { .name = "Swish", .floats = "gp_ratio$(a, 1.0$ + exp$(-(@alpha * a)))" },
    { .name = "QuickGelu", .floats = "gp_ratio$(a, 1.0$ + exp$(-(@alpha * a)))" },
    { .name = "Gelu", .make = gelu_text },
    { .name = "BiasGelu", .floats = GELU_ERF },
    { .name = "FastGelu", .floats = GELU_TANH },
    { .name = "Min", .make = min_text, .fold = fold_min },
    { .name = "Max", .make = max_text, .fold = fold_max },
    { .name = "Sum", .make = sum_text },
    { .name = "Mean", .make = mean_text },
    { .name = "Clip", .make = clip_text },
};

FORMULA_FAMILY(pointwise, formulas)

/* ---- contents: all elements */

/* ---- shapes that are not plain broadcasts */

static bool variadic_shape(Compilation *c, Node *n)
{
    if (n->input_count > 12) {
        node_error(c, n, "%d inputs; at most 12 are supported", n->input_count);
        return false;
    }
    return shape_broadcast(c, n);
}

/* Bounds are scalars. */
static bool first_shape(Compilation *c, Node *n)
{
    return shape_same(c, n);
}

#define ROW(op, first, text, rule) \
    { .name = op, .since = first, .schema = text, .facts = OP_POINTWISE, .shape = rule, .contents = pointwise_contents, \
      .expr_fn = pointwise_expr }
#define MS_ROW(op, text, rule) \
    { .domain = "com.microsoft", .name = op, .since = 1, .schema = text, .facts = OP_POINTWISE, .shape = rule, \
      .expr_fn = pointwise_expr }
#define UNARY(op, first) ROW(op, first, "X:T -> Y:T | T=" TYPES_FLOAT, shape_same)
#define UNARY_ATTR(op, first, attrs) ROW(op, first, "X:T -> Y:T ; " attrs " | T=" TYPES_FLOAT, shape_same)
#define BINARY(op, first) ROW(op, first, "A:T, B:T -> C:T | T=" TYPES_NUMBER, shape_broadcast)
#define VARIADIC(op, first, types) ROW(op, first, "data_0:T* -> out:T | T=" types, variadic_shape)

static const OpRow rows[] = {
    BINARY("Add", 7), BINARY("Sub", 7), BINARY("Mul", 7), BINARY("Div", 7),
    ROW("Pow", 7, "X:T, Y:T1 -> Z:T | T=" TYPES_NUMBER ", T1=" TYPES_NUMBER, shape_broadcast),
    ROW("Mod", 10, "A:T, B:T -> C:T ; fmod:int=0 | T=" TYPES_NUMBER, shape_broadcast),
    ROW("Neg", 6, "X:T -> Y:T | T=" TYPES_NUMBER, shape_same), ROW("Abs", 6, "X:T -> Y:T | T=" TYPES_NUMBER, shape_same),
    ROW("Sign", 9, "X:T -> Y:T | T=" TYPES_NUMBER, shape_same),
    UNARY("Sqrt", 6), UNARY("Reciprocal", 6), UNARY("Exp", 6), UNARY("Log", 6), UNARY("Erf", 9),
    UNARY("Sin", 7), UNARY("Cos", 7), UNARY("Tan", 7), UNARY("Asin", 7), UNARY("Acos", 7), UNARY("Atan", 7),
    UNARY("Sinh", 9), UNARY("Cosh", 9), UNARY("Tanh", 6), UNARY("Asinh", 9), UNARY("Acosh", 9), UNARY("Atanh", 9),
    UNARY("Floor", 6), UNARY("Ceil", 6), UNARY("Round", 11),
    UNARY("Sigmoid", 6), ROW("Relu", 6, "X:T -> Y:T | T=" TYPES_FLOAT " i8 i16 i32 i64", shape_same),
    UNARY_ATTR("LeakyRelu", 6, "alpha:float=0.01"), UNARY_ATTR("ThresholdedRelu", 10, "alpha:float=1.0"),
    ROW("PRelu", 7, "X:T, slope:T -> Y:T | T=" TYPES_NUMBER, shape_broadcast),
    UNARY_ATTR("Elu", 6, "alpha:float=1.0"), UNARY_ATTR("Celu", 12, "alpha:float=1.0"),
    UNARY_ATTR("Selu", 6, "alpha:float=1.67326319217681884765625, gamma:float=1.05070102214813232421875"),
    UNARY_ATTR("HardSigmoid", 6, "alpha:float=0.2, beta:float=0.5"), UNARY("HardSwish", 14),
    UNARY("Softplus", 1), UNARY("Softsign", 1), UNARY("Mish", 18), UNARY_ATTR("Swish", 24, "alpha:float=1.0"),
    UNARY_ATTR("Gelu", 20, "approximate:string=none"),
    VARIADIC("Min", 8, TYPES_NUMBER), VARIADIC("Max", 8, TYPES_NUMBER), VARIADIC("Sum", 8, TYPES_FLOAT),
    VARIADIC("Mean", 8, TYPES_FLOAT),
    UNARY_ATTR("Clip", 6, "max:float=3.4028234663852886e+38, min:float=-3.4028234663852886e+38"),
    ROW("Clip", 11, "input:T, min:T?, max:T? -> output:T | T=" TYPES_NUMBER, first_shape),
    MS_ROW("Gelu", "X:T -> Y:T | T=" TYPES_FLOAT, shape_same),
    MS_ROW("BiasGelu", "A:T, B:T -> C:T | T=" TYPES_FLOAT, shape_broadcast),
    MS_ROW("FastGelu", "X:T, bias:T? -> Y:T | T=" TYPES_FLOAT, shape_broadcast),
    MS_ROW("QuickGelu", "X:T -> Y:T ; alpha:float=1.702 | T=" TYPES_FLOAT, shape_same),
};

const OpFamily ops_pointwise = { rows, (int)COUNT_OF(rows), "pointwise.c" };
