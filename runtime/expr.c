/* expr.c - postfix expressions over symbols: well-formedness and evaluation with checked arithmetic. */
#include "container.h"

int plan_add_i64(int64_t a, int64_t b, int64_t *out) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return 1;
    *out = a + b;
    return 0;
}

int plan_mul_i64(int64_t a, int64_t b, int64_t *out) {
    if (a == 0 || b == 0) {
        *out = 0;
        return 0;
    }
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a) : (b > 0 ? a < INT64_MIN / b : a < INT64_MAX / b))
        return 1;
    *out = a * b;
    return 0;
}

/* Rounds towards minus infinity (floor) or plus infinity (ceil). */
static int divide(int64_t a, int64_t b, int ceil, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return 1;
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0) {
        int negative = (rest < 0) != (b < 0);
        if (!ceil && negative) quotient--;
        if (ceil && !negative) quotient++;
    }
    *out = quotient;
    return 0;
}

/* The result has the divisor's sign: a - b * floor(a / b). */
static int modulo(int64_t a, int64_t b, int64_t *out) {
    if (b == 0) return 1;
    if (b == -1) {
        *out = 0;
        return 0;
    }
    int64_t rest = a % b;
    *out = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return 0;
}

const char *plan_expr_fault(const plan_expr_record *expr, uint32_t count, uint32_t symbol_count) {
    uint32_t depth = 0;
    if (count == 0) return "it is empty";
    if (count > PLAN_EXPR_LIMIT) return "it has more than 256 operations";
    for (uint32_t i = 0; i < count; i++) {
        if (expr[i].op > PLAN_EXPR_MAX) return "it has an unknown operation";
        if (expr[i].op <= PLAN_EXPR_SYMBOL) {
            if (expr[i].op == PLAN_EXPR_SYMBOL && (expr[i].value < 0 || expr[i].value >= symbol_count))
                return "it names a symbol that does not exist";
            if (++depth > PLAN_EXPR_DEPTH) return "its stack is deeper than 64";
        } else {
            if (depth < 2) return "an operation lacks operands";
            depth--;
        }
    }
    return depth == 1 ? NULL : "it leaves more than one value";
}

static int apply(uint32_t op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case PLAN_EXPR_ADD: return plan_add_i64(a, b, out);
    case PLAN_EXPR_MUL: return plan_mul_i64(a, b, out);
    case PLAN_EXPR_FLOORDIV: return divide(a, b, 0, out);
    case PLAN_EXPR_CEILDIV: return divide(a, b, 1, out);
    case PLAN_EXPR_MOD: return modulo(a, b, out);
    case PLAN_EXPR_MIN: *out = a < b ? a : b; return 0;
    default: *out = a > b ? a : b; return 0;
    }
}

plan_status plan_expr_eval(const plan_expr_record *expr, uint32_t count, const int64_t *symbol_values, int64_t *out) {
    int64_t stack[PLAN_EXPR_DEPTH];
    uint32_t depth = 0;
    if (plan_expr_fault(expr, count, UINT32_MAX)) return PLAN_ERROR_FORMAT;
    for (uint32_t i = 0; i < count; i++) {
        if (expr[i].op == PLAN_EXPR_CONST) {
            stack[depth++] = expr[i].value;
        } else if (expr[i].op == PLAN_EXPR_SYMBOL) {
            stack[depth++] = symbol_values[expr[i].value];
        } else {
            depth--;
            if (apply(expr[i].op, stack[depth - 1], stack[depth], &stack[depth - 1])) return PLAN_ERROR_RANGE;
        }
    }
    *out = stack[0];
    return PLAN_OK;
}
