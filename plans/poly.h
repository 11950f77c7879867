/* poly.h - dims of the proof checker: polynomials with integer coefficients in a normal form of its own. Equal polynomials
 * have equal numbers; 0 is "not known" (also: too large to handle), and every operation on it gives 0. */
#ifndef PLAN_POLY_H
#define PLAN_POLY_H

#include "../runtime/container.h"

#include <stdio.h>

typedef uint32_t poly;
typedef struct poly_table poly_table;

/* SYMBOL_COUNT symbols, by index; NULL without memory. Each is at least lo[i] and at most hi[i] (INT64_MAX: unbounded),
 * copied; the normal form uses that to decide min, max and quotients. */
poly_table *poly_table_new(uint32_t symbol_count, const int64_t *lo, const int64_t *hi);
void poly_table_free(poly_table *t); /* NULL is allowed */
int poly_no_memory(const poly_table *t);

poly poly_const(poly_table *t, int64_t value);
poly poly_symbol(poly_table *t, uint32_t symbol);
poly poly_add(poly_table *t, poly a, poly b);
poly poly_sub(poly_table *t, poly a, poly b);
poly poly_mul(poly_table *t, poly a, poly b);
poly poly_op(poly_table *t, uint32_t op, poly a, poly b); /* enum plan_expr_op from ADD on */
poly poly_div_exact(poly_table *t, poly a, poly b);       /* 0 when b does not divide a */
/* A checked postfix expression, with symbol i replaced by SYMBOLS[i]. */
poly poly_read(poly_table *t, const plan_expr_record *expr, uint32_t count, const poly *symbols);
poly poly_map(poly_table *t, poly a, const poly *symbols);
int poly_value(const poly_table *t, poly a, int64_t *out); /* 1 and the number when it is one */
int poly_is(const poly_table *t, poly a, int64_t value);
int poly_mentions(const poly_table *t, poly a, uint32_t symbol);
/* Interval arithmetic over ranges by symbol; NULL: those of the table. INT64_MIN and INT64_MAX: unbounded. */
void poly_bounds(const poly_table *t, poly a, const int64_t *lo, const int64_t *hi, int64_t *least, int64_t *most);
void poly_print(const poly_table *t, poly a, const plan_view *names, FILE *out);

#endif
