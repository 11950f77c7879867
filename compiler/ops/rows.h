/* rows.h - a tensor seen as rows of columns, whatever its strides: for the rows that reduce or normalise.
 *
 * A kernel gets, for its operand X, the macros X_ROW (offset of row `row`) and X_COL (offset of column `col` in a row), as
 * text over X_D* and X_S*; the kernel names its loop variables `row` and `col`. */
#ifndef GCC_PLAN_ROWS_H
#define GCC_PLAN_ROWS_H

#include "ops/product.h"

/* V broadcast to RANK dims, aligned at the right, as ONNX does: axes of length 1 get stride 0. */
static inline View rows_expand(Compilation *c, const View *v, int rank, const Dim *dims)
{
    View out = *v;
    out.rank = rank;
    for (int i = 0; i < rank; i++) {
        const int from = i - (rank - v->rank);
        const bool flat = from < 0 || (dim_is(c, v->dims[from], 1) && !dim_is(c, dims[i], 1));
        out.dims[i] = dims[i];
        out.stride[i] = flat ? 0 : v->stride[from];
    }
    return out;
}

/* The axes of V in the order of AXES. */
static inline View rows_order(const View *v, const int *axes, int count)
{
    View out = *v;
    out.rank = count;
    for (int i = 0; i < count; i++) {
        out.dims[i] = v->dims[axes[i]];
        out.stride[i] = v->stride[axes[i]];
    }
    return out;
}

/* The axes of a tensor in the order rows, columns: columns are AXIS and those behind it, or (ALONE) that axis only. Returns the
 * count of those that make rows. */
static inline int rows_around(int axis, int rank, bool alone, int *order)
{
    int rows = 0;
    for (int i = 0; i < rank; i++)
        if (alone ? i != axis : i < axis) order[rows++] = i;
    for (int i = axis, k = rows; k < rank; i++) order[k++] = i;
    return rows;
}

/* Whether axis OUTER steps over exactly the whole of axis INNER, so that both count as one. */
static inline bool rows_adjoin(Compilation *c, const View *v, int outer, int inner)
{
    int64_t length;
    if (v->stride[outer] == 0 && v->stride[inner] == 0) return true;
    return dim_is_const(c, v->dims[inner], &length) && v->stride[outer] == v->stride[inner] * length;
}

/* Text of the offset that INDEX, counting row-major over axes FROM..TO-1 of operand NAME, has in V. */
static inline const char *rows_text(Compilation *c, const char *name, const char *index, const View *v, int from, int to)
{
    int axes[MAX_RANK], count = 0;
    const char *text = NULL, *inner = NULL; /* inner: product of the extents right of the group */
    for (int i = from; i < to; i++)
        if (!dim_is(c, v->dims[i], 1)) axes[count++] = i;
    while (count > 0) {
        const int axis = axes[--count]; /* rightmost of the group of axes that count as one */
        const char *extent = arena_text(&c->arena, "%s_D%d", name, axis), *digit, *term;
        while (count > 0 && rows_adjoin(c, v, axes[count - 1], axes[count]))
            extent = arena_text(&c->arena, "%s_D%d * %s", name, axes[--count], extent);
        digit = inner ? arena_text(&c->arena, "%s / (%s)", index, inner) : index;
        if (count > 0) digit = arena_text(&c->arena, "%s %% (%s)", digit, extent);
        term = arena_text(&c->arena, "(%s) * %s_S%d", digit, name, axis);
        text = text ? arena_text(&c->arena, "%s + %s", term, text) : term;
        inner = inner ? arena_text(&c->arena, "%s * %s", extent, inner) : extent;
    }
    return text ? arena_text(&c->arena, "(%s)", text) : "0";
}

/* Defines NAME_ROW and NAME_COL for view V whose first ROW_AXES axes count rows, the others columns. */
static inline void rows_define(Compilation *c, Kernel *k, const char *name, const View *v, int row_axes)
{
    const char *row = rows_text(c, name, "row", v, 0, row_axes);
    kernel_text(k, arena_text(&c->arena, "%s_ROW", name), arena_text(&c->arena, "(%s_OFF + %s)", name, row));
    kernel_text(k, arena_text(&c->arena, "%s_COL", name), rows_text(c, name, "col", v, row_axes, v->rank));
}

/* Product of the dims of axes FROM..TO-1. */
static inline Dim rows_count(Compilation *c, const View *v, int from, int to)
{
    Dim d = dim_const(c, 1);
    for (int i = from; i < to; i++) d = dim_mul(c, d, v->dims[i]);
    return d;
}

/* More rows, one for each warp, are worth sharing blocks: they would not all run at once, a multiprocessor having room for 32 blocks. */
enum { MANY_ROWS = 32 * MULTIPROCESSORS };

/* Threads that share one row of COLUMNS elements. */
static inline int rows_threads(int64_t columns)
{
    if (columns <= 256) return 32;
    if (columns <= 1024) return 128;
    if (columns <= 4096) return 256;
    return columns <= 8192 ? 512 : 1024;
}

/* norm.c: softmax of FROM along AXIS and the axes behind it, or with SOFTMAX_ALONE along that axis only; SOFTMAX_LOG: its
 * logarithm. In double for f64, else in float. */
enum { SOFTMAX_ALONE = 1, SOFTMAX_LOG = 2 };
void softmax_launch(Lower *l, const Node *n, View from, View to, int axis, int form);

#endif
