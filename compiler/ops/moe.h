/* moe.h - a mixture of experts: its sizes, for moe.c, moe_few.c and moe_rows.c. */
#ifndef GCC_PLAN_MOE_H
#define GCC_PLAN_MOE_H

#include "compiler.h"

/* One weight of the experts, [E, outputs, inputs], and the inputs of the node that belong to it; -1: none. */
typedef struct Matrix {
    const char *name, *bits_name;
    int weight, scale, bias, zero;
    int64_t outputs, inputs, bits, block, blocks; /* bits 0: not quantised; blocks: scales along a row */
} Matrix;

typedef struct Moe {
    Matrix up, down, gate3; /* fc1, fc2, fc3 */
    bool quantised, third;  /* third: fc3 is given, and fc1 is the gate */
    int64_t fusion, top, experts, hidden, inner;
    int router_weights;
} Moe;

/* The sizes of node N; false, and an error: they do not fit each other. */
bool moe_read(Compilation *c, const Node *n, Moe *z);
/* Whether input I is given; -1 is not. */
bool moe_given(Compilation *c, const Node *n, int i);
int64_t moe_byte_count(int64_t elements, int64_t bits);
/* Bytes of zero points for each expert. */
int64_t moe_zero_bytes(const Matrix *m);
/* Sets PAIR INNER and what gp_expert takes. */
void moe_activation(Kernel *k, const Node *n, const Moe *z);
/* What choosing the experts takes (codegen/kernels/experts.h): the logits ROUTER [rows, experts]. */
void moe_logits(Lower *l, Kernel *k, const Moe *z, const View *router);
/* What routing takes: from those to CHOSEN and SHARE [rows, top]. */
void moe_routing(Lower *l, Kernel *k, const Node *n, const Moe *z, const View *router, const View *chosen, const View *share);

/* moe_few.c: whether moe_up chooses the experts itself; otherwise it expects CHOSEN and SHARE to be written. */
bool moe_routes(Lower *l, const Moe *z, const View *x);
void moe_up(Lower *l, const Node *n, const Moe *z, const View *x, const View *router, const View *chosen, const View *share, const View *inner);
void moe_down(Lower *l, const Node *n, const Moe *z, const View *inner, const View *router, const View *chosen, const View *share, const View *y);

/* moe_rows.c: many rows X [rows, hidden] to Y, by products on tensor cores; expects CHOSEN and SHARE [rows, top] to be written.
 * False, and nothing is launched: not for these operands. */
bool moe_rows(Lower *l, const Node *n, const Moe *z, const View *x, const View *y, const View *chosen, const View *share);

#endif
