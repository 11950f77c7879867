/* inverse.c - com.microsoft.Inverse: matrices one by one. */
#include "ops/move.h"
#include "ops/rows.h"

static bool inverse_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (x->rank < 2) {
        node_error(c, n, "input '%s': rank 2 or more is needed, found %d", x->name, x->rank);
        return false;
    }
    if (!dim_equate(c, n, "a matrix with an inverse is square", x->dims[x->rank - 2], x->dims[x->rank - 1])) return false;
    return output_set(c, n, 0, x->dtype, x->rank, x->dims);
}

static void inverse_lower(Lower *l, Node *n)
{
    enum { BLOCK = 128 };
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const Dim count = dims_product(c, x.rank - 2, x.dims), size = x.dims[x.rank - 1];
    if (lower_upper(l, dims_product(c, x.rank, x.dims)) == 0) return;
    const Dim scratch[2] = {count, dim_scale(c, dim_mul(c, size, size), 2)};
    const View w = lower_temporary(l, arena_text(&c->arena, "%s.scratch", n->name), x.store == DT_F64 ? DT_F64 : DT_F32, 2, scratch);
    Kernel *k = kernel_begin(l, n, "inverse");
    kernel_in(k, "X", x);
    kernel_out(k, "W", w);
    kernel_out(k, "Y", y);
    rows_define(c, k, "X", &x, x.rank - 2);
    rows_define(c, k, "Y", &y, y.rank - 2);
    kernel_dim(k, "N", size);
    kernel_dim(k, "COUNT", count);
    kernel_launch(k, lower_upper(l, count), 1, 1, BLOCK);
}

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "Inverse", .since = 1, .schema = "X:T -> Y:T | T=f32 f16 f64", .shape = inverse_shape, .lower = inverse_lower},
};

const OpFamily ops_inverse = {rows, COUNT_OF(rows), "compiler/ops/inverse.c"};
