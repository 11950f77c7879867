/* lower_copy.c - element copies between views, and the index texts that movement kernels are made of. */
#include "ops/move.h"

enum { COPY_BLOCK = 256 };

Dim dims_product(Compilation *c, int rank, const Dim *dims)
{
    Dim product = dim_const(c, 1);
    for (int i = 0; i < rank; i++) product = dims[i] ? dim_mul(c, product, dims[i]) : 0;
    return product;
}

/* 32-bit division where the box allows it: 64-bit division is a long sequence on a GPU. */
const char *index_split(Lower *l, int rank, const Dim *dims, const char *prefix)
{
    Compilation *c = lower_compilation(l);
    int64_t upper = lower_upper(l, dims_product(c, rank, dims));
    const char *type = upper < INT32_MAX ? "unsigned" : "idx";
    const char *text = arena_text(&c->arena, "%s %sr = (%s)n;", type, prefix, type);
    for (int i = rank - 1; i >= 0; i--) {
        if (dim_is(c, dims[i], 1))
            text = arena_text(&c->arena, "%s const idx %s%d = 0; (void)%s%d;", text, prefix, i, prefix, i);
        else if (i == 0)
            text = arena_text(&c->arena, "%s const idx %s0 = (idx)%sr; (void)%s0;", text, prefix, prefix, prefix);
        else
            text = arena_text(&c->arena, "%s const idx %s%d = (idx)(%sr %% (%s)(%s)); %sr /= (%s)(%s); (void)%s%d;", text,
                              prefix, i, prefix, type, lower_c(l, dims[i]), prefix, type, lower_c(l, dims[i]), prefix, i);
    }
    return arena_text(&c->arena, "%s (void)%sr;", text, prefix);
}

const char *index_at(Lower *l, const char *operand, int rank, const char *prefix)
{
    Compilation *c = lower_compilation(l);
    const char *text = arena_text(&c->arena, "%s_OFF", operand);
    for (int i = 0; i < rank; i++)
        text = arena_text(&c->arena, "%s + %s%d * %s_S%d", text, prefix, i, operand, i);
    return text;
}

void view_dims(Lower *l, const Value *out, View *v)
{
    v->rank = out->rank;
    for (int i = 0; i < out->rank; i++) v->dims[i] = lower_dim(l, out->dims[i]);
}

void launch_elements(Lower *l, Kernel *k, const View *out, const char *more)
{
    Compilation *c = lower_compilation(l);
    Dim count = dims_product(c, out->rank, out->dims);
    const char *index = index_split(l, out->rank, out->dims, "i");
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", more ? arena_text(&c->arena, "%s %s", index, more) : index);
    kernel_launch(k, grid_for(lower_upper(l, count), COPY_BLOCK), 1, 1, COPY_BLOCK);
}

static bool same_dims(Compilation *c, const View *a, const View *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (!dim_equal(c, a->dims[i], b->dims[i])) return false;
    return true;
}

static bool axes_merge(Compilation *c, const View *v, int axis)
{
    int64_t inner;
    return dim_is_const(c, v->dims[axis + 1], &inner) && v->stride[axis] == inner * v->stride[axis + 1];
}

static void view_drop(View *v, int axis)
{
    v->rank--;
    for (int i = axis; i < v->rank; i++) {
        v->dims[i] = v->dims[i + 1];
        v->stride[i] = v->stride[i + 1];
    }
}

/* Views of equal dims: drops axes of one element and joins neighbours that lie without a gap in both. */
static void views_collapse(Compilation *c, View *a, View *b)
{
    for (int i = a->rank - 1; i >= 0; i--) {
        if (!dim_is(c, a->dims[i], 1)) continue;
        view_drop(a, i);
        view_drop(b, i);
    }
    for (int i = a->rank - 2; i >= 0; i--) {
        if (!axes_merge(c, a, i) || !axes_merge(c, b, i)) continue;
        Dim joined = dim_mul(c, a->dims[i], a->dims[i + 1]);
        int64_t from = a->stride[i + 1], to = b->stride[i + 1];
        view_drop(a, i);
        view_drop(b, i);
        a->dims[i] = b->dims[i] = joined;
        a->stride[i] = from;
        b->stride[i] = to;
    }
}

void lower_copy(Lower *l, const Node *n, View from, View to, const char *label)
{
    Compilation *c = lower_compilation(l);
    Dim count = dims_product(c, to.rank, to.dims);
    if (lower_upper(l, count) == 0) return;
    bool same = same_dims(c, &from, &to);
    if (same) {
        for (int i = 0; i < to.rank; i++) from.dims[i] = to.dims[i];
        views_collapse(c, &from, &to);
    }
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", from);
    kernel_out(k, "Y", to);
    const char *index = index_split(l, to.rank, to.dims, "i");
    if (!same) index = arena_text(&c->arena, "%s %s", index, index_split(l, from.rank, from.dims, "j"));
    kernel_dim(k, "COUNT", count);
    kernel_text(k, "INDEX", index);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s)", index_at(l, "X", from.rank, same ? "i" : "j")));
    kernel_text(k, "TARGET", index_at(l, "Y", to.rank, "i"));
    if (label) kernel_label(k, label);
    kernel_launch(k, grid_for(lower_upper(l, count), COPY_BLOCK), 1, 1, COPY_BLOCK);
}
