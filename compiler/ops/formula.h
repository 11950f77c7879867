/* formula.h - elementwise operators as data: the C text of one element, and what it does to known contents. The families
 * pointwise, logic and cast have a table of formulas each. */
#ifndef GCC_PLAN_OPS_FORMULA_H
#define GCC_PLAN_OPS_FORMULA_H

#include "ops/move.h"

/* What one operator does. In texts `$` is the suffix of the compute type's functions and literals ("f" or nothing), `@name`
 * the float attribute of that name, `#` the operand a, or a + b where a bias is given. */
typedef struct Formula {
    const char *name;
    const char *floats, *ints; /* text by the compute type of input 0; ints NULL: as floats */
    const char *(*make)(Compilation *c, const Node *n); /* instead of a text */
    int folded;       /* how many inputs `fold` takes; 0: all */
    bool partial;     /* `fold` may know its result where some elements are 0 */
    Dim (*fold)(Compilation *c, const Node *n, const Dim *in, int count); /* one element of contents; 0 unknown */
    double (*real)(double a, double b); /* the same of floats, before rounding to the dtype; b only where there is a second input */
} Formula;

/* Of a node of a family's table: its text, and its contents rule. */
const char *formula_expr(Compilation *c, const Node *n, const Formula *list, size_t count);
void formula_contents(Compilation *c, Node *n, const Formula *list, size_t count);
/* NAME_expr and NAME_contents, for the rows of a family whose table is LIST. */
#define FORMULA_FAMILY(name, list) \
    static const char *name##_expr(Compilation *c, const Node *n) { return formula_expr(c, n, list, COUNT_OF(list)); } \
    static void name##_contents(Compilation *c, Node *n) { formula_contents(c, n, list, COUNT_OF(list)); }

DType input_type(Compilation *c, const Node *n, int i); /* DT_NONE: absent */
const char *float_literal(Compilation *c, double v, DType t);
/* The formula's text with `$`, `@name` and `#` replaced. */
const char *formula_text(Compilation *c, const Node *n, const char *text);
/* Bounds of in[0] - in[1]. */
void dim_difference(Compilation *c, const Dim *in, int64_t *lo, int64_t *hi);
/* 1 and 0: D is true, or not; -1: not known. */
int dim_truth(Compilation *c, Dim d);
double float_rounded(DType t, double v); /* as the f32 or f64 that it becomes */

#endif
