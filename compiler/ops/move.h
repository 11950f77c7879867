/* move.h - helpers that the families shape, movement and pointwise share: axes, contents, slices, index texts. */
#ifndef GCC_PLAN_OPS_MOVE_H
#define GCC_PLAN_OPS_MOVE_H

#include "compiler.h"

#define TYPES_FLOAT "f32 f16 bf16 f64"
#define TYPES_INT "i64 i32 i16 i8 u64 u32 u16 u8"
#define TYPES_NUMBER TYPES_FLOAT " " TYPES_INT
#define TYPES_F8 "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"
#define TYPES_ANY TYPES_NUMBER " bool u4 i4 u2 i2 f4e2m1 f8e8m0 " TYPES_F8

/* Output 0 = broadcast of all inputs, with element type t. */
bool broadcast_typed(Compilation *c, Node *n, DType t);
/* False after an error; *out may be 0 (unknown). */
bool broadcast_dim(Compilation *c, const Node *n, Dim a, Dim b, Dim *out);

/* Two extents that must agree; the constant one stays in *known (0: none yet). False after an error. */
bool same_extent(Compilation *c, Node *n, const char *rule, Dim *known, Dim d);

/* Dims of v as numbers, and their product; false when any is not constant. */
bool shape_numbers(Compilation *c, const Value *v, int64_t *dims, int64_t *elements);
/* Room for the contents of v, when its shape is constant and small enough and its type may have contents; else NULL.
 * contents_finish keeps them if every element is known. */
Dim *contents_begin(Compilation *c, const Value *v, int64_t *count);
void contents_finish(Compilation *c, Value *v, Dim *elements, int64_t count);
/* Room for v->floats, on the same terms. */
double *floats_begin(Compilation *c, const Value *v, int64_t *count);
/* Output 0 has those of input 0; and, for lowering, is a view of it. */
void contents_first(Compilation *c, Node *n);
void lower_same(Lower *l, Node *n);
/* Output 0 (or `to`) has the contents of `from` in the same order. */
void contents_same(Compilation *c, const Value *from, Value *to);
/* to[i0, i1, ..] = from[offset + sum of i_k * stride_k], strides in elements. */
void contents_strided(Compilation *c, const Value *from, Value *to, int64_t offset, const int64_t *stride);
void row_major(const int64_t *dims, int rank, int64_t *stride);

/* D where its range says that it is not below LOW, LOW where it is not above; else the larger of both. */
Dim clamp_low(Compilation *c, Dim d, Dim low);
/* One axis of a slice: what start and end (as the node gives them) mean for extent d. Either of *first and *length is 0
 * when it cannot be decided. */
void slice_axis(Compilation *c, Dim d, Dim start, Dim end, int64_t step, Dim *first, Dim *length);

/* C text that takes linear index n of a box apart: "unsigned r0 = n; const idx i1 = r0 % 4; ..." with `prefix` for i. */
const char *index_split(Lower *l, int rank, const Dim *dims, const char *prefix);
/* "X_OFF + i0 * X_S0 + ..." for a view of that rank. */
const char *index_at(Lower *l, const char *operand, int rank, const char *prefix);
/* The extents of an output in this signature. */
void view_dims(Lower *l, const Value *out, View *v);
Dim dims_product(Compilation *c, int rank, const Dim *dims);
/* Launches k with one thread an element of `out`: sets COUNT and INDEX (i0.. of the element, then the statements `more`, if
 * any). Everything else of k is set before. */
void launch_elements(Lower *l, Kernel *k, const View *out, const char *more);

#endif
