/* dim.h - inside of dims, for dim.c, dim_text.c, equations.c and the C text of dims. */
#ifndef GCC_PLAN_DIM_H
#define GCC_PLAN_DIM_H

#include "compiler.h"

#define MAX_TERMS 64
#define MAX_DEGREE 8
#define MAX_DEPTH 32

typedef struct Term { int64_t coef; uint32_t degree; uint32_t atoms[MAX_DEGREE]; } Term;
typedef struct Poly {
    uint32_t count;
    Term *terms;
    uint64_t hash;
    uint32_t next;                     /* in its bucket */
    Dim resolved;                      /* valid while resolved_epoch is the table's epoch */
    uint32_t resolved_epoch;
} Poly;
typedef struct Atom { DimOp op; uint32_t a, b; } Atom; /* a symbol, or two dims */
typedef struct Dims {
    uint32_t poly_count, poly_room; Poly *polys;
    uint32_t atom_count, atom_room; Atom *atoms;
    uint32_t bucket_count; uint32_t *buckets;
    uint32_t epoch;                    /* goes up with each eliminated symbol */
} Dims;

/* Ranges of symbols by index; NULL: those of c->symbols. */
typedef struct Ranges { const int64_t *lo, *hi; } Ranges;
typedef struct SymbolMap { Dim (*replace)(Compilation *c, const void *context, Sym s); const void *context; } SymbolMap;

Dims *dims_of(Compilation *c);
const Poly *dim_poly(Compilation *c, Dim d); /* valid until the next dim is made */
void dim_bounds_in(Compilation *c, const Ranges *r, Dim d, int depth, int64_t *lo, int64_t *hi);
Dim dim_map(Compilation *c, Dim d, const SymbolMap *map);
/* equations.c: the equations that wait for others, as dims that are zero. */
void pending_add(Compilation *c, Dim zero, uint32_t node, const char *rule);
void equations_shift(Compilation *c, uint32_t at, uint32_t by);
int equations_waiting(Compilation *c);
Dim equation_waiting(Compilation *c, int i, uint32_t *node, const char **rule);
bool checked_add(int64_t a, int64_t b, int64_t *out);
bool checked_mul(int64_t a, int64_t b, int64_t *out);
int64_t floor_div(int64_t a, int64_t b);

#endif
