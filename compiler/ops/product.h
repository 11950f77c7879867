/* product.h - what lowerings of matrix products share: operands as rows and columns with a batch before them, and how the
 * work is cut into tiles. A batch index z counts over the batch axes of the output by their upper bounds. */
#ifndef GCC_PLAN_PRODUCT_H
#define GCC_PLAN_PRODUCT_H

#include "compiler.h"

enum { MULTIPROCESSORS = 132 }; /* that a cut of the work is made for: an H200's */

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* matmul.c: output 0 has the dims of the product of inputs A and B, transposed as the attributes say, and dtype T. */
bool product_shape(Compilation *c, Node *n, int a, int b, DType t);

/* Operands of one rank, at least 2; axes that are broadcast have stride 0. */
typedef struct Product { View a, b, y; } Product;
/* matmul.c: views of the inputs and the output as such operands. */
Product product_operands(Lower *l, const Node *n, View a, View b, View y);
/* matmul.c: rows of all batches become rows of one product where B is the same for all, and they lie so. */
void product_merge(Lower *l, Product *p);
/* matmul.c: the kernel for any strides. Sums are of the elements less A_ZERO (text over m and z) and B_ZERO (over n and z), where
 * those are not NULL; NULL for all: as the node's own attributes say. */
typedef struct ProductText { const char *a_zero, *b_zero, *epilogue; } ProductText;
typedef struct ProductExtra { const char *name; const View *view; } ProductExtra; /* read by the texts: of Y's rank, Z_NAME is set */
void product_lower_any(Lower *l, const Node *n, const Product *p, const ProductText *text, int count, const ProductExtra *extras);

/* V with its axes but the last as one, when it lies so. */
bool product_flatten(Lower *l, const View *v, View *out);

/* Sets Z_NAME for each operand, Z_BEYOND, and returns the batch's upper bound. The first y->rank - 2 axes are the batch, of
 * the operands too; an axis that is broadcast has stride 0. */
int64_t product_batch(Lower *l, Kernel *k, const View *y, int count, const char *const *names, const View *const *views);

/* Whether every row of V along its last axis starts at a multiple of ELEMENTS. */
bool product_aligned(Lower *l, const View *v, int64_t elements);

int product_vector(DType t); /* elements in 16 bytes */
const char *product_type(DType t); /* "F32", "F16", "BF16": suffix of the macros of prelude.h */

/* Rows that a tile of a warp has for up to ROWS rows. */
int product_rows(int64_t rows);

/* How warps share the work of a product along K. */
typedef struct Tiles { int rows, columns, split, beside; } Tiles; /* split: warps a tile; beside: tiles a block */
/* WIDE: from so many columns on, a tile has four of them. */
Tiles product_tiles(int64_t rows, int64_t columns, int64_t wide, int64_t chunks, int64_t batch);
/* A product with so many rows that tensor cores pay: rows and columns of a block's tile (matmul_rows). */
typedef struct RowTile { int rows, columns, stages; } RowTile;
/* Whether matmul_rows takes up to ROWS rows of A [.., M, K], times B of type T. */
bool product_many_rows(Lower *l, const View *a, DType t, int64_t rows);
RowTile product_row_tile(int64_t rows, int64_t columns, int64_t batch, bool packed);
enum { ROW_THREADS = 128 }; /* of a block of matmul_rows */
/* Sets BM BN STAGES PAIRS TYPE and what the host's form needs. CHUNK: elements of k that it takes at once. */
void product_rows_set(Lower *l, Kernel *k, DType t, const View *y, RowTile tile, int chunk, bool packed);
/* The same for rows as they lie, and launches. */
void product_rows_launch(Lower *l, Kernel *k, DType t, const View *y, int chunk, bool packed, int64_t batch);

enum { WIDE_ROWS = 128, WIDE_COLUMNS = 128 }; /* of a block whose products are wgmma's; twice as many rows, where that is faster */
/* Whether such blocks suit a product of Y, of up to so many rows and as many columns at least. */
bool product_wide(Lower *l, const View *y);
/* Sets BM BN STAGES SHARED_BYTES PAIRS TYPE YTYPE, and launches: matmul_wide; matmul_rows in its wide form, whose CH and R this sets too. */
void product_wide_packed(Lower *l, Kernel *k, DType t, const View *y, int64_t batch);
void product_wide_rows(Lower *l, Kernel *k, DType t, const View *y, int chunk, int64_t batch);

/* Sets MT R KS WN UNROLL_K, and launches. */
void product_launch(Kernel *k, Tiles t, int64_t rows, int64_t columns, int64_t batch);

#endif
