/* view.c - how values lie in buffers: dims of the signature, bounds, strides, reshapes, C text of dims. */
#include "lower.h"
#include "dim.h"

Compilation *lower_compilation(Lower *l) { return l->c; }

static Dim pinned(Compilation *c, const void *context, Sym s)
{
    const Signature *sig = context;
    return sig->lo[s] == sig->hi[s] ? dim_const(c, sig->lo[s]) : 0;
}

Dim lower_dim(Lower *l, Dim d)
{
    const SymbolMap map = { pinned, l->signature };
    Dim r = dim_resolve(l->c, d);
    if (!r) fault("lower", "a dim is unknown at node %u", l->node);
    return dim_map(l->c, r, &map);
}

int64_t lower_upper(Lower *l, Dim d)
{
    int64_t hi = signature_upper(l->c, l->signature, d);
    if (hi == INT64_MAX) fault("lower", "dim %s has no upper bound", dim_text(l->c, d));
    return hi;
}

int64_t lower_lower(Lower *l, Dim d) { return signature_lower(l->c, l->signature, d); }

/* ---- C text */

static void c_dim(Lower *l, Text *t, Dim d, int depth);

static void c_quotient(Lower *l, Text *t, const Atom *a, int depth)
{
    Text x = { 0 }, y = { 0 };
    c_dim(l, &x, a->a, depth + 1);
    c_dim(l, &y, a->b, depth + 1);
    bool plain = lower_lower(l, a->a) >= 0;
    if (a->op == DIM_MOD) text_add(t, plain ? "(%s %% %s)" : "FLOOR_MOD(%s, %s)", x.data, y.data);
    else if (a->op == DIM_FLOORDIV) text_add(t, plain ? "(%s / %s)" : "FLOOR_DIV(%s, %s)", x.data, y.data);
    else if (a->op == DIM_CEILDIV) text_add(t, "(-FLOOR_DIV(-%s, %s))", x.data, y.data);
    else text_add(t, a->op == DIM_MIN ? "MIN(%s, %s)" : "MAX(%s, %s)", x.data, y.data);
    text_free(&x);
    text_free(&y);
}

static void c_atom(Lower *l, Text *t, const Atom *a, int depth)
{
    if (a->op != DIM_SYMBOL) { c_quotient(l, t, a, depth); return; }
    int slot = l->c->symbols[a->a].slot;
    if (slot < 0) fault("lower", "symbol %s has no word in the extents table", l->c->symbols[a->a].name);
    text_add(t, "e%d", slot);
}

static void c_dim(Lower *l, Text *t, Dim d, int depth)
{
    int64_t v;
    if (depth > MAX_DEPTH) fault("lower", "a dim is nested too deeply");
    if (dim_is_const(l->c, d, &v)) { text_add(t, v < 0 ? "(%lldLL)" : "%lldLL", (long long)v); return; }
    const Poly p = *dim_poly(l->c, d);
    text_add(t, "(");
    for (uint32_t i = 0; i < p.count; i++) {
        const Term *term = &p.terms[i];
        if (i) text_add(t, " + ");
        if (term->coef != 1 || !term->degree) text_add(t, "%lldLL%s", (long long)term->coef, term->degree ? "*" : "");
        for (uint32_t k = 0; k < term->degree; k++) {
            if (k) text_add(t, "*");
            const Atom a = dims_of(l->c)->atoms[term->atoms[k]];
            c_atom(l, t, &a, depth);
        }
    }
    text_add(t, ")");
}

const char *lower_c(Lower *l, Dim d)
{
    Text t = { 0 };
    c_dim(l, &t, lower_dim(l, d), 0);
    const char *copy = arena_copy(&l->c->arena, t.data);
    text_free(&t);
    return copy;
}

/* ---- views */

DType storage_type(DType t)
{
    switch (t) {
    case DT_U4: case DT_U2: return DT_U8;
    case DT_I4: return DT_I4_BYTE;
    case DT_I2: return DT_I2_BYTE;
    case DT_F4E2M1: return DT_F4_BYTE;
    default: return t;
    }
}

View view_dense_new(Lower *l, uint32_t buffer, DType store, int rank, const Dim *dims)
{
    View v = { .buffer = buffer, .store = store, .rank = rank, .offset = dim_const(l->c, 0) };
    int64_t stride = 1;
    for (int k = rank - 1; k >= 0; k--) {
        v.dims[k] = lower_dim(l, dims[k]);
        v.stride[k] = stride;
        int64_t upper = lower_upper(l, v.dims[k]);
        if (!checked_mul(stride, upper > 0 ? upper : 1, &stride)) fault("lower", "a buffer is too large");
    }
    return v;
}

/* Axes of extent 1 do not matter. Between two others, the outer stride must be the inner one times the inner extent, and
 * that extent must be literal: a ranged inner axis leaves gaps. */
bool view_dense(Lower *l, const View *v, int from, int to)
{
    int64_t expected = 1;
    for (int k = to - 1; k >= from; k--) {
        int64_t n;
        if (dim_is(l->c, v->dims[k], 1)) continue;
        if (v->stride[k] != expected) return false;
        if (dim_is_const(l->c, v->dims[k], &n)) expected = v->stride[k] * n;
        else expected = -1; /* only the outermost of the run may be ranged */
    }
    return true;
}

int view_vector(Lower *l, const View *v)
{
    int width = v->store == DT_F32 ? 4 : v->store == DT_F16 || v->store == DT_BF16 ? 8 : 1;
    if (width == 1 || v->rank < 1 || v->stride[v->rank - 1] != 1) return 1;
    if (!dim_is(l->c, v->offset, 0) && !dim_div_exact(l->c, v->offset, dim_const(l->c, width))) return 1;
    for (int k = 0; k < v->rank - 1; k++)
        if (!dim_is(l->c, v->dims[k], 1) && v->stride[k] % width) return 1;
    return width;
}

/* Axes `from`..`to`-1 as one run of elements with one stride: false when they do not lie so. */
static bool run_of(Lower *l, const View *v, int from, int to, int64_t *stride)
{
    int64_t expected = 0;
    bool first = true;
    *stride = 1;
    for (int k = to - 1; k >= from; k--) {
        int64_t n;
        if (dim_is(l->c, v->dims[k], 1)) continue;
        if (first) *stride = v->stride[k];
        else if (expected < 0 || v->stride[k] != expected) return false;
        first = false;
        expected = dim_is_const(l->c, v->dims[k], &n) ? v->stride[k] * n : -1;
    }
    return true;
}

/* Splits the run over new axes [from, to). Inner axes must be literal; the outermost may be ranged. */
static bool split_run(Lower *l, View *out, int from, int to, int64_t stride)
{
    for (int k = to - 1; k >= from; k--) {
        int64_t n;
        out->stride[k] = stride;
        if (dim_is(l->c, out->dims[k], 1)) continue;
        if (stride < 0) return false;
        stride = dim_is_const(l->c, out->dims[k], &n) ? stride * n : -1;
    }
    return true;
}

/* Axes [*i0, *i) of V and [*j0, *j) of DIMS: the smallest runs behind those of before that have equal products. False: there are none. */
static bool next_group(Compilation *c, const View *v, int rank, const Dim *dims, int *i, int *j)
{
    Dim p = *i < v->rank ? v->dims[(*i)++] : dim_const(c, 1), q = *j < rank ? dims[(*j)++] : dim_const(c, 1);
    while (p && q && p != q) {
        if (dim_div_exact(c, q, p) && *i < v->rank) p = dim_mul(c, p, v->dims[(*i)++]);
        else if (*j < rank) q = dim_mul(c, q, dims[(*j)++]);
        else if (*i < v->rank) p = dim_mul(c, p, v->dims[(*i)++]);
        else return false;
    }
    return p && p == q;
}

/* Groups axes of both shapes greedily into the smallest runs with equal products, then maps each group. */
bool view_reshape(Lower *l, const View *v, int rank, const Dim *dims, View *out)
{
    *out = *v;
    out->rank = rank;
    for (int k = 0; k < rank; k++) out->dims[k] = lower_dim(l, dims[k]);
    for (int i = 0, j = 0; i < v->rank || j < rank;) {
        const int i0 = i, j0 = j;
        int64_t stride;
        if (!next_group(l->c, v, rank, out->dims, &i, &j) || !run_of(l, v, i0, i, &stride) || !split_run(l, out, j0, j, stride)) return false;
    }
    return true;
}

static bool put_axis(Apart *a, Dim dim, int64_t stride, int of)
{
    const int k = a->view.rank++;
    if (k == MAX_RANK) return false;
    a->view.dims[k] = dim;
    a->view.stride[k] = stride;
    a->of[k] = of;
    return true;
}

/* Axes [FROM, TO) of V as parts of axis OF; all but the first must be literal, since they divide its index. */
static bool put_axes(Lower *l, Apart *a, const View *v, int from, int to, int of)
{
    bool first = true;
    for (int k = from; k < to; k++) {
        if (dim_is(l->c, v->dims[k], 1)) continue;
        if ((!first && !dim_is_const(l->c, v->dims[k], NULL)) || !put_axis(a, v->dims[k], v->stride[k], of)) return false;
        first = false;
    }
    return true;
}

bool view_apart(Lower *l, const View *v, int rank, const Dim *dims, Apart *out)
{
    Dim own[MAX_RANK];
    View whole = *v;
    *out = (Apart){ .view = *v };
    out->view.rank = 0;
    for (int k = 0; k < rank; k++) own[k] = lower_dim(l, dims[k]);
    for (int i = 0, j = 0; i < v->rank || j < rank;) {
        const int i0 = i, j0 = j;
        int64_t stride;
        if (!next_group(l->c, v, rank, own, &i, &j)) return false;
        if (j == j0 + 1 || j == j0) {
            if (!put_axes(l, out, v, i0, i, j0)) return false;
            continue;
        }
        for (int k = j0; k < j; k++) whole.dims[k] = own[k];
        if (!run_of(l, v, i0, i, &stride) || !split_run(l, &whole, j0, j, stride)) return false;
        for (int k = j0; k < j; k++)
            if (!put_axis(out, own[k], whole.stride[k], k)) return false;
    }
    return out->view.rank > 0 && out->view.stride[out->view.rank - 1] == 1; /* else a copy reads it better, once */
}
