/* pointwise.c - operators whose output element depends on the input elements at its place: the C texts of their kernels,
 * and what they do to integer contents. */
#include "ops/move.h"

#include <stdlib.h>
#include <string.h>

/* What one operator does. In texts `$` is the suffix of the compute type's functions and literals ("f" or nothing), `@name`
 * the float attribute of that name, `#` the operand a, or a + b where a bias is given. */
typedef struct Formula {
    const char *name;
    const char *floats, *ints; /* text by the compute type of input 0; ints NULL: as floats */
    const char *(*make)(Compilation *c, const Node *n); /* instead of a text */
    Dim (*fold)(Compilation *c, const Node *n, const Dim *in, int count); /* one element of contents; 0 unknown */
} Formula;

static DType input_type(Compilation *c, const Node *n, int i)
{
    const Value *v = node_input(c, n, i);
    return v ? v->dtype : DT_NONE;
}

static const char *compute_type(DType t)
{
    if (t == DT_F64) return "double";
    if (dtype_is_float(t)) return "float";
    return t == DT_BOOL ? "int" : "long long";
}

static const char *float_literal(Compilation *c, double v, DType t)
{
    return arena_text(&c->arena, v < 0 ? "(%a%s)" : "%a%s", v, t == DT_F64 ? "" : "f");
}

/* ---- texts */

static const char *attr_literal(Compilation *c, const Node *n, const char **at, DType t)
{
    char name[32];
    size_t size = 0;
    for (const char *p = *at + 1; *p >= 'a' && *p <= 'z' && size + 1 < sizeof name; p++) name[size++] = *p;
    name[size] = 0;
    *at += size;
    return float_literal(c, attr_float(n, name), t);
}

static const char *expand_text(Compilation *c, const Node *n, const char *text)
{
    DType t = input_type(c, n, 0);
    Text out = { 0 };
    for (const char *p = text; *p; p++) {
        if (*p == '$') text_add(&out, "%s", t == DT_F64 ? "" : "f");
        else if (*p == '@') text_add(&out, "%s", attr_literal(c, n, &p, t));
        else if (*p == '#') text_add(&out, "%s", node_input(c, n, 1) ? "(a + b)" : "a");
        else text_add_bytes(&out, p, 1);
    }
    char *copy = NEW_ARRAY(c, char, out.size + 1);
    if (out.size) memcpy(copy, out.data, out.size);
    text_free(&out);
    return copy;
}

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
    if (!dtype_is_float(t)) return "(long long)pow((double)a, (double)b)";
    return t == DT_F64 ? "pow(a, (double)b)" : "powf(a, (float)b)";
}

static const char *compared(Compilation *c, const Node *n, const char *operator)
{
    const char *type = input_type(c, n, 0) == DT_U64 ? "(unsigned long long)" : "";
    return arena_text(&c->arena, "%sa %s %sb", type, operator, type);
}

static const char *less_text(Compilation *c, const Node *n) { return compared(c, n, "<"); }
static const char *less_equal_text(Compilation *c, const Node *n) { return compared(c, n, "<="); }
static const char *greater_text(Compilation *c, const Node *n) { return compared(c, n, ">"); }
static const char *greater_equal_text(Compilation *c, const Node *n) { return compared(c, n, ">="); }

static const char *shift_text(Compilation *c, const Node *n)
{
    (void)c;
    if (!strcmp(attr_string(n, "direction"), "LEFT")) return "((unsigned long long)b < 64 ? (long long)((unsigned long long)a << b) : 0)";
    return "((unsigned long long)b < 64 ? (long long)((unsigned long long)a >> b) : 0)"; /* operands are unsigned */
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

static const char *isinf_text(Compilation *c, const Node *n)
{
    const char *text = "0";
    if (attr_int(n, "detect_positive")) text = "a == INF_F";
    if (attr_int(n, "detect_negative")) text = arena_text(&c->arena, "%s || a == -INF_F", text);
    return text;
}

static const char *largest_f8(DType t)
{
    switch (t) {
    case DT_F8E4M3FN: return "448.0f";
    case DT_F8E4M3FNUZ: return "240.0f";
    case DT_F8E5M2: case DT_F8E5M2FNUZ: return "57344.0f";
    default: return NULL;
    }
}

/* Of more bits than a float has, rounded once: by way of a float with an odd last bit. */
static const char *cast_to_float(Compilation *c, const Node *n, DType from, DType to)
{
    const char *text = from == DT_U64 ? "(unsigned long long)a" : "a";
    bool wide = from == DT_F64 || (dtype_is_integer(from) && dtype_bits(from) >= 32 && to == DT_BF16);
    if (to == DT_F64 || to == DT_F32 || !wide) text = arena_text(&c->arena, "(%s)%s", compute_type(to), text);
    else text = arena_text(&c->arena, "gp_odd((double)%s)", text);
    bool saturate = n->op->since < 19 || attr_int(n, "saturate") != 0;
    if (to == DT_F8E8M0) {
        const char *mode = n->op->since < 24 ? "up" : attr_string(n, "round_mode");
        return arena_text(&c->arena, "gp_e8m0(%s, %d, %d)", text, !strcmp(mode, "up") ? 1 : !strcmp(mode, "nearest") ? 2 : 0, saturate);
    }
    if (saturate && largest_f8(to)) return arena_text(&c->arena, "gp_saturate(%s, %s)", text, largest_f8(to));
    return text;
}

static const char *cast_to(Compilation *c, const Node *n, DType to)
{
    DType from = input_type(c, n, 0);
    bool of_float = dtype_is_float(from);
    if (to == DT_BOOL) return "a != 0";
    if (dtype_is_float(to)) return cast_to_float(c, n, from, to);
    if (to == DT_U4) return "((long long)a & 15)";
    if (to == DT_I4) return "((((long long)a & 15) ^ 8) - 8)";
    if (to == DT_U2) return "((long long)a & 3)";
    if (to == DT_I2) return "((((long long)a & 3) ^ 2) - 2)";
    if (to == DT_U64 && of_float) return "(a < 0 ? (long long)a : (long long)(unsigned long long)a)";
    return "(long long)a";
}

static DType cast_target(Compilation *c, const Node *n)
{
    if (n->input_count > 1) return input_type(c, n, 1); /* CastLike */
    return (DType)attr_int(n, "to");
}

static const char *cast_text(Compilation *c, const Node *n)
{
    return cast_to(c, n, cast_target(c, n));
}

#define GELU_ERF "0.5$ * # * (1.0$ + erf$(# * 0.70710678118654752440$))"
#define GELU_TANH "0.5$ * # * (1.0$ + tanh$(0.79788456080286535588$ * (# + 0.044715$ * # * # * #)))"

static const char *gelu_text(Compilation *c, const Node *n)
{
    bool tanh_form = !*n->domain && !strcmp(attr_string(n, "approximate"), "tanh");
    return expand_text(c, n, tanh_form ? GELU_TANH : GELU_ERF);
}

/* The second input gives a type alone, so this is no kernel over both. */
static void cast_like_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = lower_output(l, n, 0);
    if (lower_upper(l, dims_product(c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", in);
    kernel_out(k, "Y", out);
    kernel_text(k, "VALUE", cast_text(c, n));
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, arena_text(&c->arena, "const X_C a = X_LD(%s);", index_at(l, "X", in.rank, "i")));
}

/* ---- contents: one element */

static Dim truth(Compilation *c, bool v)
{
    return dim_const(c, v);
}

/* Bounds of a - b. */
static void difference(Compilation *c, const Dim *in, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    if (!dim_equal(c, in[0], in[1])) dim_bounds(c, dim_sub(c, in[0], in[1]), lo, hi);
}

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
        difference(c, pair, &lo, &hi);
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

static Dim fold_equal(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t lo, hi;
    (void)n, (void)count;
    difference(c, in, &lo, &hi);
    if (lo == 0 && hi == 0) return truth(c, true);
    return lo > 0 || hi < 0 ? truth(c, false) : 0;
}

static Dim fold_less(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t lo, hi;
    (void)n, (void)count;
    difference(c, in, &lo, &hi);
    return hi < 0 ? truth(c, true) : lo >= 0 ? truth(c, false) : 0;
}

static Dim fold_less_equal(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t lo, hi;
    (void)n, (void)count;
    difference(c, in, &lo, &hi);
    return hi <= 0 ? truth(c, true) : lo > 0 ? truth(c, false) : 0;
}

static Dim fold_greater(Compilation *c, const Node *n, const Dim *in, int count)
{
    Dim swapped[2] = { in[1], in[0] };
    return fold_less(c, n, swapped, count);
}

static Dim fold_greater_equal(Compilation *c, const Node *n, const Dim *in, int count)
{
    Dim swapped[2] = { in[1], in[0] };
    return fold_less_equal(c, n, swapped, count);
}

/* Whether d is not 0: 0 or 1; -1 unknown. */
static int nonzero(Compilation *c, Dim d)
{
    int64_t lo, hi;
    if (!d) return -1;
    dim_bounds(c, d, &lo, &hi);
    if (lo == 0 && hi == 0) return 0;
    return lo > 0 || hi < 0 ? 1 : -1;
}

static Dim fold_not(Compilation *c, const Node *n, const Dim *in, int count)
{
    int v = nonzero(c, in[0]);
    (void)n, (void)count;
    return v < 0 ? 0 : truth(c, !v);
}

static Dim fold_and(Compilation *c, const Node *n, const Dim *in, int count)
{
    int a = nonzero(c, in[0]), b = nonzero(c, in[1]);
    (void)n, (void)count;
    if (!a || !b) return truth(c, false);
    return a == 1 && b == 1 ? truth(c, true) : 0;
}

static Dim fold_or(Compilation *c, const Node *n, const Dim *in, int count)
{
    int a = nonzero(c, in[0]), b = nonzero(c, in[1]);
    (void)n, (void)count;
    if (a == 1 || b == 1) return truth(c, true);
    return !a && !b ? truth(c, false) : 0;
}

static Dim fold_where(Compilation *c, const Node *n, const Dim *in, int count)
{
    int choice = nonzero(c, in[0]);
    (void)n, (void)count;
    if (choice >= 0) return choice ? in[1] : in[2];
    return in[1] && in[2] && dim_equal(c, in[1], in[2]) ? in[1] : 0;
}

static Dim fold_cast(Compilation *c, const Node *n, const Dim *in, int count)
{
    DType to = cast_target(c, n);
    int64_t v;
    (void)count;
    if (to == DT_BOOL) {
        int set = nonzero(c, in[0]);
        return set < 0 ? 0 : truth(c, set);
    }
    if (to == DT_I64 || to == DT_I32) return in[0]; /* lengths fit */
    int bits = dtype_bits(to) < 8 ? dtype_bits(to) : 8; /* those that every type of the width holds */
    return dim_is_const(c, in[0], &v) && v >= 0 && v < 1 << (bits - 1) ? in[0] : 0;
}

static Dim fold_bitwise_and(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t a, b;
    (void)n, (void)count;
    return dim_is_const(c, in[0], &a) && dim_is_const(c, in[1], &b) ? dim_const(c, a & b) : 0;
}

static Dim fold_shift(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t a, b;
    (void)count;
    if (!dim_is_const(c, in[0], &a) || !dim_is_const(c, in[1], &b) || a < 0 || b < 0 || b > 62) return 0;
    if (!strcmp(attr_string(n, "direction"), "RIGHT")) return dim_const(c, a >> b);
    int bits = dtype_bits(input_type(c, n, 0)); /* what is shifted out is lost */
    if (bits >= 64) return a >> (62 - b) ? 0 : dim_const(c, a << b);
    return dim_const(c, (int64_t)(((uint64_t)a << b) & ((UINT64_C(1) << bits) - 1)));
}

/* ---- the operators */

#define SOFTPLUS "(fmax$(a, 0.0$) + log1p$(exp$(-fabs$(a))))"
static const Formula formulas[] = {
    { .name = "Add", .floats = "a + b", .fold = fold_add },
    { .name = "Sub", .floats = "a - b", .fold = fold_sub },
    { .name = "Mul", .floats = "a * b", .fold = fold_mul },
    { .name = "Div", .make = div_text, .fold = fold_div },
    { .name = "Mod", .make = mod_text, .fold = fold_mod },
    { .name = "Pow", .make = pow_text },
    { .name = "Neg", .floats = "-a", .ints = "0 - a", .fold = fold_neg },
    { .name = "Abs", .floats = "fabs$(a)", .ints = "(a < 0 ? 0 - a : a)", .fold = fold_abs },
    { .name = "Sign", .floats = "(a > 0 ? 1.0$ : a < 0 ? -1.0$ : a * 0.0$)", .ints = "(a > 0) - (a < 0)" },
    { .name = "Sqrt", .floats = "sqrt$(a)" },
    { .name = "Reciprocal", .floats = "1.0$ / a" },
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
    { .name = "Floor", .floats = "floor$(a)" },
    { .name = "Ceil", .floats = "ceil$(a)" },
    { .name = "Round", .floats = "rint$(a)" },
    { .name = "Sigmoid", .floats = "1.0$ / (1.0$ + exp$(-a))" },
    { .name = "Relu", .floats = "(a < 0 ? 0 : a)" }, /* keeps NaN */
    { .name = "LeakyRelu", .floats = "(a < 0 ? @alpha * a : a)" },
    { .name = "PRelu", .floats = "(a < 0 ? a * b : a)" },
    { .name = "ThresholdedRelu", .floats = "(a > @alpha ? a : 0)" },
    { .name = "Elu", .floats = "(a < 0 ? @alpha * expm1$(a) : a)" },
    { .name = "Selu", .floats = "@gamma * (a <= 0 ? @alpha * expm1$(a) : a)" },
    { .name = "Celu", .floats = "(a < 0 ? @alpha * expm1$(a / @alpha) : a)" },
    { .name = "HardSigmoid", .floats = "fmax$(0.0$, fmin$(1.0$, @alpha * a + @beta))" },
    { .name = "HardSwish", .floats = "a * fmax$(0.0$, fmin$(1.0$, a / 6.0$ + 0.5$))" },
    { .name = "Softplus", .floats = SOFTPLUS },
    { .name = "Softsign", .floats = "a / (1.0$ + fabs$(a))" },
    { .name = "Mish", .floats = "a * tanh$" SOFTPLUS },
    { .name = "Swish", .floats = "a / (1.0$ + exp$(-(@alpha * a)))" },
    { .name = "QuickGelu", .floats = "a / (1.0$ + exp$(-(@alpha * a)))" },
    { .name = "Gelu", .make = gelu_text },
    { .name = "BiasGelu", .floats = GELU_ERF },
    { .name = "FastGelu", .floats = GELU_TANH },
    { .name = "Min", .make = min_text, .fold = fold_min },
    { .name = "Max", .make = max_text, .fold = fold_max },
    { .name = "Sum", .make = sum_text },
    { .name = "Mean", .make = mean_text },
    { .name = "Clip", .make = clip_text },
    { .name = "Where", .floats = "(a ? b : c)", .fold = fold_where },
    { .name = "And", .floats = "a && b", .fold = fold_and },
    { .name = "Or", .floats = "a || b", .fold = fold_or },
    { .name = "Xor", .floats = "(a != 0) != (b != 0)" },
    { .name = "Not", .floats = "!a", .fold = fold_not },
    { .name = "Equal", .floats = "a == b", .fold = fold_equal },
    { .name = "Less", .make = less_text, .fold = fold_less },
    { .name = "LessOrEqual", .make = less_equal_text, .fold = fold_less_equal },
    { .name = "Greater", .make = greater_text, .fold = fold_greater },
    { .name = "GreaterOrEqual", .make = greater_equal_text, .fold = fold_greater_equal },
    { .name = "IsNaN", .floats = "a != a" },
    { .name = "IsInf", .make = isinf_text },
    { .name = "Cast", .make = cast_text, .fold = fold_cast },
    { .name = "CastLike", .make = cast_text, .fold = fold_cast },
    { .name = "BitShift", .make = shift_text, .fold = fold_shift },
    { .name = "BitwiseAnd", .floats = "a & b", .fold = fold_bitwise_and },
    { .name = "BitwiseOr", .floats = "a | b" },
    { .name = "BitwiseXor", .floats = "a ^ b" },
    { .name = "BitwiseNot", .floats = "~a" },
};

static const Formula *formula_of(const Node *n)
{
    for (size_t i = 0; i < COUNT_OF(formulas); i++)
        if (!strcmp(formulas[i].name, n->op->name)) return &formulas[i];
    fault("ops", "%s has no formula", n->op->name);
}

static const char *pointwise_expr(Compilation *c, const Node *n)
{
    const Formula *f = formula_of(n);
    if (f->make) return f->make(c, n);
    bool ints = f->ints && !dtype_is_float(input_type(c, n, 0));
    return expand_text(c, n, ints ? f->ints : f->floats);
}

/* ---- contents: all elements */

typedef struct Operand {
    const Dim *elements;        /* NULL: not known */
    int64_t stride[MAX_RANK];   /* by output axis; 0 where it is repeated */
} Operand;

static bool operand_read(Compilation *c, const Value *v, int rank, Operand *o)
{
    int64_t dims[MAX_RANK], stride[MAX_RANK], count;
    Dim *in;
    int have;
    memset(o, 0, sizeof *o);
    if (!value_dims(c, v, &in, &have) || !shape_numbers(c, v, dims, &count) || v->rank > rank) return true;
    o->elements = in;
    row_major(dims, v->rank, stride);
    for (int i = 0; i < v->rank; i++) o->stride[rank - v->rank + i] = dims[i] == 1 ? 0 : stride[i];
    return true;
}

/* Where may know its result without all of its operands; others need all. */
static void pointwise_contents(Compilation *c, Node *n)
{
    const Formula *f = formula_of(n);
    Value *y = node_output(c, n, 0);
    int64_t total, elements, dims[MAX_RANK], place[MAX_RANK];
    int count = !strcmp(f->name, "CastLike") ? 1 : n->input_count;
    Dim *out = f->fold && count > 0 && count <= MAX_RANK ? contents_begin(c, y, &total) : NULL, in[MAX_RANK];
    Operand operand[MAX_RANK];
    if (!out || !shape_numbers(c, y, dims, &elements)) return;
    for (int i = 0; i < count; i++) {
        if (!node_input(c, n, i) || !operand_read(c, node_input(c, n, i), y->rank, &operand[i])) return;
        if (!operand[i].elements && f->fold != fold_where) return;
    }
    row_major(dims, y->rank, place);
    for (int64_t e = 0; e < total; e++) {
        for (int i = 0; i < count; i++) {
            int64_t at = 0;
            for (int k = 0; k < y->rank; k++) at += e / place[k] % dims[k] * operand[i].stride[k];
            in[i] = operand[i].elements ? operand[i].elements[at] : 0;
        }
        out[e] = f->fold(c, n, in, count);
        if (!out[e]) return;
    }
    contents_finish(c, y, out, total);
}

/* ---- shapes that are not plain broadcasts */

static bool where_shape(Compilation *c, Node *n)
{
    return broadcast_typed(c, n, input_type(c, n, 1));
}

static bool cast_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (n->op->since >= 24) {
        const char *mode = attr_string(n, "round_mode");
        if (strcmp(mode, "up") != 0 && strcmp(mode, "down") != 0 && strcmp(mode, "nearest") != 0) {
            node_error(c, n, "round_mode '%s': expected up, down or nearest", mode);
            return false;
        }
    }
    return output_set(c, n, 0, cast_target(c, n), x->rank, x->dims);
}

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

static bool bool_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    return output_set(c, n, 0, DT_BOOL, x->rank, x->dims);
}

#define ROW(op, first, text, rule) \
    { .name = op, .since = first, .schema = text, .facts = OP_POINTWISE, .shape = rule, .contents = pointwise_contents, \
      .expr_fn = pointwise_expr }
#define MS_ROW(op, text, rule) \
    { .domain = "com.microsoft", .name = op, .since = 1, .schema = text, .facts = OP_POINTWISE, .shape = rule, \
      .expr_fn = pointwise_expr }
#define CAST_LIKE(first, attrs) \
    { .name = "CastLike", .since = first, \
      .schema = "input:T1, target_type:T2 -> output:T2" attrs " | T1=" TYPES_ANY ", T2=" TYPES_ANY, \
      .shape = cast_shape, .contents = pointwise_contents, .lower = cast_like_lower }
#define UNARY(op, first) ROW(op, first, "X:T -> Y:T | T=" TYPES_FLOAT, shape_same)
#define UNARY_ATTR(op, first, attrs) ROW(op, first, "X:T -> Y:T ; " attrs " | T=" TYPES_FLOAT, shape_same)
#define BINARY(op, first) ROW(op, first, "A:T, B:T -> C:T | T=" TYPES_NUMBER, shape_broadcast)
#define VARIADIC(op, first, types) ROW(op, first, "data_0:T* -> out:T | T=" types, variadic_shape)
#define COMPARE(op, first) ROW(op, first, "A:T, B:T -> C:bool | T=" TYPES_NUMBER " bool", shape_broadcast_bool)
#define LOGIC(op, first) ROW(op, first, "A:bool, B:bool -> C:bool", shape_broadcast_bool)
#define BITWISE(op, first) ROW(op, first, "A:T, B:T -> C:T | T=" TYPES_INT, shape_broadcast)
#define CAST(first, attrs) \
    { .name = "Cast", .since = first, .schema = "input:T1 -> output:T2 ; to:int" attrs " | T1=" TYPES_ANY ", T2=" TYPES_ANY, \
      .facts = OP_POINTWISE | OP_ZEROS, .shape = cast_shape, .contents = pointwise_contents, .expr_fn = pointwise_expr }

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
    ROW("Where", 9, "condition:bool, X:T, Y:T -> output:T | T=" TYPES_ANY, where_shape),
    LOGIC("And", 7), LOGIC("Or", 7), LOGIC("Xor", 7), ROW("Not", 1, "X:bool -> Y:bool", bool_shape),
    COMPARE("Equal", 7), COMPARE("Less", 7), COMPARE("LessOrEqual", 12), COMPARE("Greater", 7),
    COMPARE("GreaterOrEqual", 12),
    ROW("IsNaN", 9, "X:T -> Y:bool | T=" TYPES_FLOAT, bool_shape),
    ROW("IsInf", 10, "X:T -> Y:bool ; detect_negative:int=1, detect_positive:int=1 | T=" TYPES_FLOAT, bool_shape),
    CAST(6, ""), CAST(19, ", saturate:int=1"), CAST(24, ", saturate:int=1, round_mode:string=up"),
    CAST_LIKE(15, ""), CAST_LIKE(19, " ; saturate:int=1"), CAST_LIKE(24, " ; saturate:int=1, round_mode:string=up"),
    ROW("BitShift", 11, "X:T, Y:T -> Z:T ; direction:string | T=u64 u32 u16 u8", shape_broadcast),
    BITWISE("BitwiseAnd", 18), BITWISE("BitwiseOr", 18), BITWISE("BitwiseXor", 18),
    ROW("BitwiseNot", 18, "X:T -> Y:T | T=" TYPES_INT, shape_same),
    MS_ROW("Gelu", "X:T -> Y:T | T=" TYPES_FLOAT, shape_same),
    MS_ROW("BiasGelu", "A:T, B:T -> C:T | T=" TYPES_FLOAT, shape_broadcast),
    MS_ROW("FastGelu", "X:T, bias:T? -> Y:T | T=" TYPES_FLOAT, shape_broadcast),
    MS_ROW("QuickGelu", "X:T -> Y:T ; alpha:float=1.702 | T=" TYPES_FLOAT, shape_same),
};

const OpFamily ops_pointwise = { rows, (int)COUNT_OF(rows), "pointwise.c" };
