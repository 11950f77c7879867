/* shape.c - operators about shapes: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Identity, Expand. */
#include "expand.h"
#include "ops/move.h"

/* ---- Shape, Size */

static void shape_range(Compilation *c, const Node *n, int rank, int *start, int *end)
{
    (void)c;
    int64_t from = 0, to = rank;
    if (n->op->since >= 15) {
        from = attr_int(n, "start");
        if (attr_given(n, "end")) to = attr_int(n, "end");
    }
    if (from < 0) from += rank;
    if (to < 0) to += rank;
    from = from < 0 ? 0 : from > rank ? rank : from;
    to = to < from ? from : to > rank ? rank : to;
    *start = (int)from;
    *end = (int)to;
}

static bool shape_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim count = 0;
    int start, end;
    if (x->rank >= 0) {
        shape_range(c, n, x->rank, &start, &end);
        count = dim_const(c, end - start);
    }
    return output_set(c, n, 0, DT_I64, 1, &count);
}

static void shape_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Value *y = node_output(c, n, 0);
    int start, end;
    int64_t count;
    if (x->rank < 0) return;
    shape_range(c, n, x->rank, &start, &end);
    Dim *out = contents_begin(c, y, &count);
    if (!out || count != end - start) return;
    for (int i = start; i < end; i++) out[i - start] = x->dims[i];
    contents_finish(c, y, out, count);
}

static bool size_shape(Compilation *c, Node *n)
{
    return output_set(c, n, 0, DT_I64, 0, NULL);
}

static void size_contents(Compilation *c, Node *n)
{
    Dim *out = NEW_ARRAY(c, Dim, 1);
    out[0] = value_elements(c, node_input(c, n, 0));
    contents_finish(c, node_output(c, n, 0), out, 1);
}

/* ---- Reshape, Flatten */

static void lower_reshaped(Lower *l, Node *n)
{
    View in = lower_input(l, n, 0), out, target = { 0 };
    view_dims(l, node_output(lower_compilation(l), n, 0), &target);
    if (view_reshape(l, &in, target.rank, target.dims, &out)) {
        lower_set_view(l, n, 0, out);
        return;
    }
    if (!lower_set_apart(l, n, &in)) lower_copy(l, n, in, lower_output(l, n, 0), NULL);
}

/* Removes from both lists what they have in common, so that equations stay linear. */
static void cancel_common(Compilation *c, Dim *a, int *na, Dim *b, int *nb)
{
    for (int i = 0; i < *na; i++) {
        for (int k = 0; k < *nb; k++) {
            if (!dim_equal(c, a[i], b[k]) || dim_is(c, a[i], 0)) continue; /* without the 0 the others would have to agree */
            a[i--] = a[--*na];
            b[k] = b[--*nb];
            break;
        }
    }
}

/* The extent that makes both products equal; 0 when not known. False after an error. */
static bool reshape_infer(Compilation *c, Node *n, Dim total, Dim rest, Dim *out)
{
    int64_t vt, vr;
    *out = 0;
    if (dim_is(c, rest, 0)) return true;
    *out = dim_div_exact(c, total, rest);
    if (*out) return true;
    if (dim_is_const(c, total, &vt) && dim_is_const(c, rest, &vr)) {
        node_error(c, n, "%lld elements cannot be divided by %lld", (long long)vt, (long long)vr);
        return false;
    }
    *out = dim_symbol(c, sym_new(c, NULL, false)); /* the product stays, so the quotient is exact */
    return dim_equate(c, n, "reshape keeps the product", dim_mul(c, *out, rest), total);
}

static bool reshape_solve(Compilation *c, Node *n, const Value *x, int rank, Dim *dims, int infer)
{
    Dim from[MAX_RANK], to[MAX_RANK];
    int from_count = 0, to_count = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!x->dims[i]) return true;
        if (!dim_is(c, x->dims[i], 1)) from[from_count++] = x->dims[i];
    }
    for (int i = 0; i < rank; i++)
        if (i != infer && !dim_is(c, dims[i], 1)) to[to_count++] = dims[i];
    cancel_common(c, from, &from_count, to, &to_count);
    Dim total = dims_product(c, from_count, from), rest = dims_product(c, to_count, to);
    if (infer >= 0) return reshape_infer(c, n, total, rest, &dims[infer]);
    if (dim_equal(c, total, rest)) return true;
    return dim_equate(c, n, "reshape", total, rest);
}

static bool reshape_copy_zero(Compilation *c, Node *n, const Value *x, int axis, Dim *out)
{
    if (x->rank < 0) { *out = 0; return true; }
    if (axis >= x->rank) {
        node_error(c, n, "the target shape has 0 at axis %d, but the input has rank %d", axis, x->rank);
        return false;
    }
    *out = x->dims[axis];
    (void)c;
    return true;
}

static bool reshape_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *shape = node_input(c, n, 1);
    bool allow_zero = n->op->since >= 14 && attr_int(n, "allowzero") != 0;
    Dim *target, dims[MAX_RANK] = { 0 };
    int rank, infer = -1, unknown = 0;
    if (!value_dims(c, shape, &target, &rank)) {
        int64_t count;
        if (shape->rank == 1 && dim_is_const(c, shape->dims[0], &count) && count <= MAX_RANK)
            return output_set(c, n, 0, x->dtype, (int)count, dims);
        return output_set(c, n, 0, x->dtype, -1, NULL);
    }
    if (rank > MAX_RANK) return output_set(c, n, 0, x->dtype, rank, NULL);
    for (int i = 0; i < rank; i++) {
        dims[i] = target[i];
        if (dim_is(c, target[i], 0) && !allow_zero && !reshape_copy_zero(c, n, x, i, &dims[i])) return false;
        if (dim_is(c, target[i], -1)) {
            if (infer >= 0) {
                node_error(c, n, "the target shape has -1 twice");
                return false;
            }
            infer = i;
            dims[i] = 0;
        } else if (!dims[i]) {
            unknown++;
        }
    }
    if (x->rank >= 0 && !unknown && !reshape_solve(c, n, x, rank, dims, infer)) return false;
    return output_set(c, n, 0, x->dtype, rank, dims);
}

static bool flatten_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[2] = { 0, 0 };
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, 2, dims);
    int64_t axis = attr_int(n, "axis");
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank) {
        node_error(c, n, "axis %lld is out of range for rank %d", (long long)attr_int(n, "axis"), x->rank);
        return false;
    }
    dims[0] = dims_product(c, (int)axis, x->dims);
    dims[1] = dims_product(c, x->rank - (int)axis, x->dims + axis);
    return output_set(c, n, 0, x->dtype, 2, dims);
}

/* ---- Squeeze, Unsqueeze */

/* Axes from the attribute (before opset 13) or from input 1. *count -1: none given. False: not known. */
static bool node_axes(Compilation *c, const Node *n, int64_t **axes, int *count)
{
    *count = -1;
    if (n->op->since < 13) {
        const Attr *a = node_attr(n, "axes");
        if (a->present || a->count) { *axes = a->ints; *count = a->count; }
        return true;
    }
    const Value *v = node_input(c, n, 1);
    return !v || value_ints(c, v, axes, count);
}

static bool mark_axes(Compilation *c, Node *n, const int64_t *axes, int count, int rank, bool *marked)
{
    for (int i = 0; i < count; i++) {
        int axis = axis_normal(c, n, axes[i], rank);
        if (axis < 0) return false;
        if (marked[axis]) {
            node_error(c, n, "axis %d is given twice", axis);
            return false;
        }
        marked[axis] = true;
    }
    return true;
}

/* Which axes of the input go away. */
static bool squeeze_marks(Compilation *c, Node *n, const Value *x, bool *gone)
{
    int64_t *axes;
    int count;
    if (!node_axes(c, n, &axes, &count)) {
        node_error(c, n, "the axes are not known when compiling");
        return false;
    }
    if (count >= 0) return mark_axes(c, n, axes, count, x->rank, gone);
    for (int i = 0; i < x->rank; i++) gone[i] = dim_is(c, x->dims[i], 1);
    return true;
}

static bool squeeze_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    bool gone[MAX_RANK] = { false };
    Dim dims[MAX_RANK], one = dim_const(c, 1);
    int rank = 0;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!squeeze_marks(c, n, x, gone)) return false;
    for (int i = 0; i < x->rank; i++) {
        if (!gone[i]) dims[rank++] = x->dims[i];
        else if (x->dims[i] && !dim_is(c, x->dims[i], 1) && !dim_equate(c, n, "squeeze", x->dims[i], one)) return false;
    }
    return output_set(c, n, 0, x->dtype, rank, dims);
}

static void squeeze_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = in;
    bool gone[MAX_RANK] = { false };
    if (!squeeze_marks(c, n, node_input(c, n, 0), gone)) return;
    out.rank = 0;
    for (int i = 0; i < in.rank; i++) {
        if (gone[i]) continue;
        out.dims[out.rank] = in.dims[i];
        out.stride[out.rank++] = in.stride[i];
    }
    lower_set_view(l, n, 0, out);
}

/* Which axes of the output are new; *rank is its rank. */
static bool unsqueeze_marks(Compilation *c, Node *n, int input_rank, int *rank, bool *made)
{
    int64_t *axes;
    int count;
    if (!node_axes(c, n, &axes, &count) || count < 0) {
        node_error(c, n, "the axes are not known when compiling");
        return false;
    }
    *rank = input_rank + count;
    if (*rank > MAX_RANK) {
        node_error(c, n, "the output would have rank %d; the largest supported is %d", *rank, MAX_RANK);
        return false;
    }
    return mark_axes(c, n, axes, count, *rank, made);
}

static bool unsqueeze_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    bool made[MAX_RANK] = { false };
    Dim dims[MAX_RANK];
    int rank;
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!unsqueeze_marks(c, n, x->rank, &rank, made)) return false;
    for (int i = 0, from = 0; i < rank; i++) dims[i] = made[i] ? dim_const(c, 1) : x->dims[from++];
    return output_set(c, n, 0, x->dtype, rank, dims);
}

static void unsqueeze_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = in;
    bool made[MAX_RANK] = { false };
    if (!unsqueeze_marks(c, n, in.rank, &out.rank, made)) return;
    for (int i = 0, from = 0; i < out.rank; i++) {
        out.dims[i] = made[i] ? dim_const(c, 1) : in.dims[from];
        out.stride[i] = made[i] ? 0 : in.stride[from];
        from += !made[i];
    }
    lower_set_view(l, n, 0, out);
}

/* ---- Transpose */

static bool transpose_perm(Compilation *c, const Node *n, int rank, int *perm)
{
    const Attr *a = node_attr(n, "perm");
    bool seen[MAX_RANK] = { false };
    for (int i = 0; i < rank; i++) perm[i] = rank - 1 - i;
    if (!a->present) return true;
    if (a->count != rank) {
        node_error(c, n, "perm has %d axes, but the input has rank %d", a->count, rank);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        perm[i] = axis_normal(c, n, a->ints[i], rank);
        if (perm[i] < 0) return false;
        if (seen[perm[i]]) {
            node_error(c, n, "perm names axis %d twice", perm[i]);
            return false;
        }
        seen[perm[i]] = true;
    }
    return true;
}

static bool transpose_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim dims[MAX_RANK];
    int perm[MAX_RANK];
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (!transpose_perm(c, n, x->rank, perm)) return false;
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[perm[i]];
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

static void transpose_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    int64_t dims[MAX_RANK], stride[MAX_RANK], moved[MAX_RANK], count;
    int perm[MAX_RANK];
    if (!shape_numbers(c, x, dims, &count) || !transpose_perm(c, n, x->rank, perm)) return;
    row_major(dims, x->rank, stride);
    for (int i = 0; i < x->rank; i++) moved[i] = stride[perm[i]];
    contents_strided(c, x, node_output(c, n, 0), 0, moved);
}

static void transpose_lower(Lower *l, Node *n)
{
    View in = lower_input(l, n, 0), out = in;
    int perm[MAX_RANK];
    if (!transpose_perm(lower_compilation(l), n, in.rank, perm)) return;
    for (int i = 0; i < in.rank; i++) {
        out.dims[i] = in.dims[perm[i]];
        out.stride[i] = in.stride[perm[i]];
    }
    lower_set_view(l, n, 0, out);
}

/* ---- Expand */

static bool expand_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0), *shape = node_input(c, n, 1);
    Dim *target = NULL, dims[MAX_RANK] = { 0 };
    int count = 0;
    int64_t number;
    bool known = value_dims(c, shape, &target, &count);
    if (!known && shape->rank == 1 && dim_is_const(c, shape->dims[0], &number)) count = (int)number;
    else if (!known) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    int rank = count > x->rank ? count : x->rank;
    if (rank > MAX_RANK) return output_set(c, n, 0, x->dtype, rank, NULL);
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x->rank), at = i - (rank - count);
        Dim a = from >= 0 ? x->dims[from] : dim_const(c, 1);
        Dim b = at < 0 ? dim_const(c, 1) : known ? target[at] : 0;
        if (!broadcast_dim(c, n, a, b, &dims[i])) return false;
    }
    return output_set(c, n, 0, x->dtype, rank, dims);
}

static void expand_contents(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Value *y = node_output(c, n, 0);
    int64_t dims[MAX_RANK], stride[MAX_RANK], wide[MAX_RANK] = { 0 }, count;
    if (!shape_numbers(c, x, dims, &count) || y->rank < x->rank) return;
    row_major(dims, x->rank, stride);
    for (int i = 0; i < x->rank; i++)
        if (dims[i] != 1) wide[y->rank - x->rank + i] = stride[i];
    contents_strided(c, x, y, 0, wide);
}

static void expand_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View in = lower_input(l, n, 0), out = in;
    view_dims(l, node_output(c, n, 0), &out);
    for (int i = 0; i < out.rank; i++) {
        int from = i - (out.rank - in.rank);
        bool repeated = from < 0 || (dim_is(c, in.dims[from], 1) && !dim_is(c, out.dims[i], 1));
        out.stride[i] = repeated ? 0 : in.stride[from];
    }
    lower_set_view(l, n, 0, out);
}

#define ANY "T=" TYPES_ANY
/* A list has another name. */
static bool identity_expand(Expansion *e)
{
    const List *list = expand_input_list(e, 0);
    return expand_list(e, 0, list->optional, list->count, list->items);
}

static const OpRow rows[] = {
    { .name = "Shape", .since = 1, .schema = "data:T -> shape:i64 | " ANY, .facts = OP_SHAPE, .shape = shape_shape,
      .contents = shape_contents },
    { .name = "Shape", .since = 15, .schema = "data:T -> shape:i64 ; start:int=0, end:int? | " ANY, .facts = OP_SHAPE,
      .shape = shape_shape, .contents = shape_contents },
    { .name = "Size", .since = 1, .schema = "data:T -> size:i64 | " ANY, .facts = OP_SHAPE, .shape = size_shape,
      .contents = size_contents },
    { .name = "Reshape", .since = 5, .schema = "data:T, shape:i64 -> reshaped:T | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = reshape_shape, .contents = contents_first, .lower = lower_reshaped },
    { .name = "Reshape", .since = 14, .schema = "data:T, shape:i64 -> reshaped:T ; allowzero:int=0 | " ANY,
      .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER, .shape = reshape_shape, .contents = contents_first, .lower = lower_reshaped },
    { .name = "Flatten", .since = 1, .schema = "input:T -> output:T ; axis:int=1 | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = flatten_shape, .contents = contents_first, .lower = lower_reshaped },
    { .name = "Squeeze", .since = 1, .schema = "data:T -> squeezed:T ; axes:ints? | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = squeeze_shape, .contents = contents_first, .lower = squeeze_lower },
    { .name = "Squeeze", .since = 13, .schema = "data:T, axes:i64? -> squeezed:T | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = squeeze_shape, .contents = contents_first, .lower = squeeze_lower },
    { .name = "Unsqueeze", .since = 1, .schema = "data:T -> expanded:T ; axes:ints | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = unsqueeze_shape, .contents = contents_first, .lower = unsqueeze_lower },
    { .name = "Unsqueeze", .since = 13, .schema = "data:T, axes:i64 -> expanded:T | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = unsqueeze_shape, .contents = contents_first, .lower = unsqueeze_lower },
    { .name = "Transpose", .since = 1, .schema = "data:T -> transposed:T ; perm:ints? | " ANY, .facts = OP_VIEW | OP_SHAPE,
      .shape = transpose_shape, .contents = transpose_contents, .lower = transpose_lower },
    { .name = "Identity", .since = 1, .schema = "input:T -> output:T | " ANY, .facts = OP_VIEW | OP_SHAPE | OP_SAME_ORDER,
      .shape = shape_same, .contents = contents_first, .lower = lower_same, .expand = identity_expand },
    { .name = "Expand", .since = 8, .schema = "input:T, shape:i64 -> output:T | " ANY, .facts = OP_VIEW | OP_SHAPE,
      .shape = expand_shape, .contents = expand_contents, .lower = expand_lower },
};

const OpFamily ops_shape = { rows, (int)COUNT_OF(rows), "shape.c" };
