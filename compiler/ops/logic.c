/* logic.c - comparisons, logic, Where, IsNaN, IsInf, and operators on bits. */
#include "ops/formula.h"

#include <string.h>

/* ---- texts */

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

static const char *isinf_text(Compilation *c, const Node *n)
{
    const char *text = "0";
    if (attr_int(n, "detect_positive")) text = "a == INF_F";
    if (attr_int(n, "detect_negative")) text = arena_text(&c->arena, "%s || a == -INF_F", text);
    return text;
}

/* ---- contents: one element */

static Dim truth(Compilation *c, bool v)
{
    return dim_const(c, v);
}

static Dim fold_equal(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t lo, hi;
    (void)n, (void)count;
    dim_difference(c, in, &lo, &hi);
    if (lo == 0 && hi == 0) return truth(c, true);
    return lo > 0 || hi < 0 ? truth(c, false) : 0;
}

static Dim fold_less(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t lo, hi;
    (void)n, (void)count;
    dim_difference(c, in, &lo, &hi);
    return hi < 0 ? truth(c, true) : lo >= 0 ? truth(c, false) : 0;
}

static Dim fold_less_equal(Compilation *c, const Node *n, const Dim *in, int count)
{
    int64_t lo, hi;
    (void)n, (void)count;
    dim_difference(c, in, &lo, &hi);
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

static Dim fold_not(Compilation *c, const Node *n, const Dim *in, int count)
{
    int v = dim_truth(c, in[0]);
    (void)n, (void)count;
    return v < 0 ? 0 : truth(c, !v);
}

static Dim fold_and(Compilation *c, const Node *n, const Dim *in, int count)
{
    int a = dim_truth(c, in[0]), b = dim_truth(c, in[1]);
    (void)n, (void)count;
    if (!a || !b) return truth(c, false);
    return a == 1 && b == 1 ? truth(c, true) : 0;
}

static Dim fold_or(Compilation *c, const Node *n, const Dim *in, int count)
{
    int a = dim_truth(c, in[0]), b = dim_truth(c, in[1]);
    (void)n, (void)count;
    if (a == 1 || b == 1) return truth(c, true);
    return !a && !b ? truth(c, false) : 0;
}

static Dim fold_where(Compilation *c, const Node *n, const Dim *in, int count)
{
    int choice = dim_truth(c, in[0]);
    (void)n, (void)count;
    if (choice >= 0) return choice ? in[1] : in[2];
    return in[1] && in[2] && dim_equal(c, in[1], in[2]) ? in[1] : 0;
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

static const Formula formulas[] = {
    { .name = "Where", .floats = "(a ? b : c)", .fold = fold_where, .partial = true },
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
    { .name = "BitShift", .make = shift_text, .fold = fold_shift },
    { .name = "BitwiseAnd", .floats = "a & b", .fold = fold_bitwise_and },
    { .name = "BitwiseOr", .floats = "a | b" },
    { .name = "BitwiseXor", .floats = "a ^ b" },
    { .name = "BitwiseNot", .floats = "~a" },
};

FORMULA_FAMILY(logic, formulas)

static bool where_shape(Compilation *c, Node *n)
{
    return broadcast_typed(c, n, input_type(c, n, 1));
}

static bool bool_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    return output_set(c, n, 0, DT_BOOL, x->rank, x->dims);
}

#define ROW(op, first, text, rule) \
    { .name = op, .since = first, .schema = text, .facts = OP_POINTWISE, .shape = rule, .contents = logic_contents, \
      .expr_fn = logic_expr }
#define COMPARE(op, first) ROW(op, first, "A:T, B:T -> C:bool | T=" TYPES_NUMBER " bool", shape_broadcast_bool)
#define LOGIC(op, first) ROW(op, first, "A:bool, B:bool -> C:bool", shape_broadcast_bool)
#define BITWISE(op, first) ROW(op, first, "A:T, B:T -> C:T | T=" TYPES_INT, shape_broadcast)

static const OpRow rows[] = {
    ROW("Where", 9, "condition:bool, X:T, Y:T -> output:T | T=" TYPES_ANY, where_shape),
    LOGIC("And", 7), LOGIC("Or", 7), LOGIC("Xor", 7), ROW("Not", 1, "X:bool -> Y:bool", bool_shape),
    COMPARE("Equal", 7), COMPARE("Less", 7), COMPARE("LessOrEqual", 12), COMPARE("Greater", 7),
    COMPARE("GreaterOrEqual", 12),
    ROW("IsNaN", 9, "X:T -> Y:bool | T=" TYPES_FLOAT, bool_shape),
    ROW("IsInf", 10, "X:T -> Y:bool ; detect_negative:int=1, detect_positive:int=1 | T=" TYPES_FLOAT, bool_shape),
    ROW("BitShift", 11, "X:T, Y:T -> Z:T ; direction:string | T=u64 u32 u16 u8", shape_broadcast),
    BITWISE("BitwiseAnd", 18), BITWISE("BitwiseOr", 18), BITWISE("BitwiseXor", 18),
    ROW("BitwiseNot", 18, "X:T -> Y:T | T=" TYPES_INT, shape_same),
};

const OpFamily ops_logic = { rows, (int)COUNT_OF(rows), "logic.c" };
