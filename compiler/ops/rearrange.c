/* rearrange.c - DepthToSpace, SpaceToDepth, CenterCropPad: copies whose source is computed from the output's index. */
#include "ops/move.h"
#include "ops/window.h"

#include <string.h>

/* One copy: Y element (i0, i1, ..) is X at the offset that SOURCE names, or 0 where INSIDE does not hold. */
static void copy_from(Lower *l, const Node *n, const char *source, const char *inside)
{
    Compilation *c = lower_compilation(l);
    const View y = lower_output(l, n, 0);
    if (lower_upper(l, dims_product(c, y.rank, y.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", lower_input(l, n, 0));
    kernel_out(k, "Y", y);
    kernel_text(k, "VALUE", inside ? arena_text(&c->arena, "((%s) ? X_LD(%s) : 0)", inside, source) : arena_text(&c->arena, "X_LD(%s)", source));
    kernel_text(k, "TARGET", index_at(l, "Y", y.rank, "i"));
    launch_elements(l, k, &y, NULL);
}

/* ---- DepthToSpace, SpaceToDepth: [N, C * b * b, H, W] and [N, C, H * b, W * b] */

static int64_t block_of(Compilation *c, const Node *n)
{
    const int64_t block = attr_int(n, "blocksize");
    const Value *x = node_input(c, n, 0);
    if (block < 1 || block > 32768) {
        node_error(c, n, "blocksize %lld is out of range", (long long)block);
        return 0;
    }
    if (x->rank >= 0 && x->rank != 4) {
        node_error(c, n, "input '%s': expected rank 4, found %d", x->name, x->rank);
        return 0;
    }
    return block;
}

/* d / by, which must divide. */
static bool divided(Compilation *c, const Node *n, Dim d, int64_t by, Dim *out)
{
    *out = d ? dim_op(c, DIM_FLOORDIV, d, dim_const(c, by)) : 0;
    return !d || dim_equal(c, d, dim_scale(c, *out, by)) || dim_equate(c, n, "blocks divide the extents", d, dim_scale(c, *out, by));
}

static bool block_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const int64_t block = block_of(c, n);
    Dim dims[4] = { 0 };
    if (!block) return false;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, 4, dims);
    dims[0] = x->dims[0];
    if (!strcmp(n->op_type, "DepthToSpace")) {
        if (!divided(c, n, x->dims[1], block * block, &dims[1])) return false;
        for (int i = 2; i < 4; i++) dims[i] = x->dims[i] ? dim_scale(c, x->dims[i], block) : 0;
    } else {
        dims[1] = x->dims[1] ? dim_scale(c, x->dims[1], block * block) : 0;
        for (int i = 2; i < 4; i++)
            if (!divided(c, n, x->dims[i], block, &dims[i])) return false;
    }
    if (!op_has(n, "mode") || !strcmp(attr_string(n, "mode"), "DCR") || !strcmp(attr_string(n, "mode"), "CRD"))
        return output_set(c, n, 0, x->dtype, 4, dims);
    node_error(c, n, "mode '%s' is none of DCR, CRD", attr_string(n, "mode"));
    return false;
}

static void depth_to_space_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const int b = (int)block_of(c, n);
    const bool columns_first = op_has(n, "mode") && !strcmp(attr_string(n, "mode"), "CRD");
    const char *inner = arena_text(&c->arena, "(i2 %% %d * %d + i3 %% %d)", b, b, b);
    const char *channel = columns_first ? arena_text(&c->arena, "i1 * %d + %s", b * b, inner) : arena_text(&c->arena, "%s * (Y_D1) + i1", inner);
    copy_from(l, n, arena_text(&c->arena, "X_AT(i0, %s, i2 / %d, i3 / %d)", channel, b, b), NULL);
}

static void space_to_depth_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const int b = (int)block_of(c, n);
    const char *inner = "(i1 / (X_D1))";
    copy_from(l, n, arena_text(&c->arena, "X_AT(i0, i1 %% (X_D1), i2 * %d + %s / %d, i3 * %d + %s %% %d)", b, inner, b, b, inner, b), NULL);
}

/* ---- CenterCropPad */

/* Target extents of the axes that change, 0 for the others; false while not known. */
static bool crop_read(Compilation *c, const Node *n, int rank, Dim *target)
{
    const Attr *axes = attr_given(n, "axes") ? node_attr(n, "axes") : NULL;
    Dim *given;
    int count;
    memset(target, 0, sizeof(Dim) * MAX_RANK);
    if (!value_dims(c, node_input(c, n, 1), &given, &count)) return false;
    if (count != (axes ? axes->count : rank)) {
        node_error(c, n, "the target shape has %d elements for %d axes", count, axes ? axes->count : rank);
        return false;
    }
    for (int i = 0; i < count; i++) {
        const int axis = axes ? axis_normal(c, n, axes->ints[i], rank) : i;
        if (axis < 0) return false;
        target[axis] = given[i];
    }
    return true;
}

static bool crop_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const Attr *axes = attr_given(n, "axes") ? node_attr(n, "axes") : NULL;
    Dim dims[MAX_RANK] = { 0 }, target[MAX_RANK];
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    const bool known = crop_read(c, n, x->rank, target);
    if (!known && diag_failed(c)) return false;
    for (int i = 0; i < x->rank; i++) dims[i] = known || axes ? (target[i] ? target[i] : x->dims[i]) : 0;
    for (int i = 0; axes && !known && i < axes->count; i++) {
        const int axis = axis_normal(c, n, axes->ints[i], x->rank);
        if (axis < 0) return false;
        dims[axis] = 0;
    }
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void crop_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, 0), y = lower_output(l, n, 0);
    const char *source = "X_OFF", *inside = "1";
    for (int i = 0; i < x.rank; i++) {
        const char *at = arena_text(&c->arena, "i%d", i);
        if (!dim_equal(c, y.dims[i], x.dims[i])) {
            const char *in = lower_c(l, x.dims[i]), *out = lower_c(l, y.dims[i]);
            at = arena_text(&c->arena, "(i%d + ((%s) > (%s) ? ((%s) - (%s)) / 2 : -(((%s) - (%s)) / 2)))", i, in, out, in, out, out, in);
            inside = arena_text(&c->arena, "%s && %s >= 0 && %s < (X_D%d)", inside, at, at, i);
        }
        source = arena_text(&c->arena, "%s + %s * X_S%d", source, at, i);
    }
    copy_from(l, n, source, inside);
}

#define OLD_TYPES TYPES_INT " f32 f16 f64 bool"
#define TYPES OLD_TYPES " bf16"
#define BLOCKS(name_, since_, attributes_, types_, lower_) \
    { .name = name_, .since = since_, .schema = "input:T -> output:T ; " attributes_ " | T=" types_, .shape = block_shape, .lower = lower_ }

static const OpRow rows[] = {
    BLOCKS("DepthToSpace", 1, "blocksize:int", OLD_TYPES, depth_to_space_lower),
    BLOCKS("DepthToSpace", 11, "blocksize:int, mode:string=DCR", OLD_TYPES, depth_to_space_lower),
    BLOCKS("DepthToSpace", 13, "blocksize:int, mode:string=DCR", TYPES, depth_to_space_lower),
    BLOCKS("SpaceToDepth", 1, "blocksize:int", OLD_TYPES, space_to_depth_lower),
    BLOCKS("SpaceToDepth", 13, "blocksize:int", TYPES, space_to_depth_lower),
    { .name = "CenterCropPad", .since = 18, .schema = "input_data:T, shape:I -> output_data:T ; axes:ints? | T=" TYPES ", I=i32 i64",
      .shape = crop_shape, .lower = crop_lower },
};

const OpFamily ops_rearrange = { rows, (int)COUNT_OF(rows), "rearrange.c" };
