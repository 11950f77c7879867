/* gemv.h - what the kernel for products of one row needs to know of the operators that it makes. */
#ifndef GCC_PLAN_GEMV_H
#define GCC_PLAN_GEMV_H

#include "compiler.h"

#include <string.h>

/* A node that passes on what it reads, in another shape. */
static inline bool is_reshape(const Node *n) { return strcmp(n->op->name, "Reshape") == 0; }

/* A constant matrix of N rows of K elements along k, and what belongs to it. */
typedef struct RowMatrix {
    int64_t k, n;
    View matrix, scales, zeros, bias; /* buffer 0: none; scales and zeros with bits 4; bias: N elements */
    int bits;                         /* 16: plain elements of the row's type; 4: MatMulNBits */
    int64_t stride;                   /* elements from row to row, bits 16 */
    int64_t group, zero_row;          /* elements a scale; bytes of zero points a row; bits 4 */
} RowMatrix;

/* Whether product N, of a row of type T, has such a matrix; fills *m. matmul.c, quant.c. */
bool matmul_row_matrix(Lower *l, const Node *n, DType t, RowMatrix *m);
bool nbits_row_matrix(Lower *l, const Node *n, DType t, RowMatrix *m);

/* A norm of OP_NORM_ROW as inputs and outputs of its node: x (+ skip, rounded, which is output `sum`) / sqrt(mean of squares +
 * epsilon) * scale; -1 none. False when it has or makes more than that. norm.c. */
typedef struct NormRow { int skip, scale, sum; double epsilon; } NormRow;
bool norm_row(Compilation *c, const Node *n, NormRow *r);

/* What the kernel makes: UNITS tiles of ROWS matrix rows, of PARTS matrices each, along k in slices of SPAN elements; MAIN is one of the matrices. */
typedef struct RowTiles {
    Lower *l;
    const RowMatrix *main;
    DType type;
    int parts, rows;
    int64_t span, units;
} RowTiles;
/* SLICES of each of a block's WARPS, DEPTH places of SLOT bytes in its ring; KEPT: units whose sums a block keeps. REGISTERS: of a thread at most, 0: as many
 * as it wants. SCALE_BYTES of scales that a lane copies of a slice; 0: they come through registers. */
typedef struct RowCut {
    int64_t grid, warps, slices, depth, slot, kept, registers;
    int scale_bytes;
} RowCut;
enum { GEMV_SHARED = 46 * 1024 }; /* of the host's form */
/* gemv_cut.c. Rows of a tile of 16 bits, UNITS of 8 in all: where each of those finds a multiprocessor, and an eighth is left to the kernels beside, more
 * of them fetch the matrices. (Measured: tests/bench/RESULTS.md.) */
int gemv_rows_16(Lower *l, const RowMatrix *m, DType type, int64_t units);
RowCut gemv_cut(const RowTiles *t);

/* gemv.c: the products of one kernel of gemv that product N will lead; 0: it will not. *K elements of their row, of which one warp has *SPAN together. */
int gemv_takes(Lower *l, const Node *n, int64_t *k, int64_t *span);
/* gemv_row.c: the first node of what was put off (gemv_defer_row) until PRODUCT is launched, a norm or an elementwise one; NULL: there is none. Its
 * operands and texts. */
const Node *gemv_row(Lower *l, const Node *product);
void gemv_set_row(Lower *l, Kernel *k, const Node *first);

#endif
