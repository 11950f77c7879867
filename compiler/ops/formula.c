/* formula.c - what the families of formulas share: their texts, and contents of all elements. */
#include "ops/formula.h"

#include <string.h>

DType input_type(Compilation *c, const Node *n, int i)
{
    const Value *v = node_input(c, n, i);
    return v ? v->dtype : DT_NONE;
}

/* ---- texts */

const char *float_literal(Compilation *c, double v, DType t)
{
    return arena_text(&c->arena, v < 0 ? "(%a%s)" : "%a%s", v, t == DT_F64 ? "" : "f");
}

static const char *attr_literal(Compilation *c, const Node *n, const char **at, DType t)
{
    char name[32];
    size_t size = 0;
    for (const char *p = *at + 1; *p >= 'a' && *p <= 'z' && size + 1 < sizeof name; p++) name[size++] = *p;
    name[size] = 0;
    *at += size;
    return float_literal(c, attr_float(n, name), t);
}

const char *formula_text(Compilation *c, const Node *n, const char *text)
{
    DType t = input_type(c, n, 0);
    Text out = { 0 };
    for (const char *p = text; *p; p++) {
        if (*p == '$') text_add(&out, "%s", t == DT_F64 ? "" : "f");
        else if (*p == '@') text_add(&out, "%s", attr_literal(c, n, &p, t));
        else if (*p == '#') text_add(&out, "%s", node_input(c, n, 1) ? "(a + b)" : "a");
        else text_add_bytes(&out, p, 1);
    }
    char *copy = NEW_ARRAY(c, char, out.size + 1);
    if (out.size) memcpy(copy, out.data, out.size);
    text_free(&out);
    return copy;
}

static const Formula *formula_of(const Node *n, const Formula *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].name, n->op->name)) return &list[i];
    fault("ops", "%s has no formula", n->op->name);
}

const char *formula_expr(Compilation *c, const Node *n, const Formula *list, size_t count)
{
    const Formula *f = formula_of(n, list, count);
    if (f->make) return f->make(c, n);
    const bool ints = f->ints && !dtype_is_float(input_type(c, n, 0));
    return formula_text(c, n, ints ? f->ints : f->floats);
}

/* ---- contents */

void dim_difference(Compilation *c, const Dim *in, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    if (!dim_equal(c, in[0], in[1])) dim_bounds(c, dim_sub(c, in[0], in[1]), lo, hi);
}

int dim_truth(Compilation *c, Dim d)
{
    int64_t lo, hi;
    if (!d) return -1;
    dim_bounds(c, d, &lo, &hi);
    if (lo == 0 && hi == 0) return 0;
    return lo > 0 || hi < 0 ? 1 : -1;
}

double float_rounded(DType t, double v)
{
    return t == DT_F32 ? (double)(float)v : v;
}

typedef struct Operand {
    const Dim *elements;        /* of integers; NULL: not known */
    const double *reals;        /* of floats */
    int64_t stride[MAX_RANK];   /* by output axis; 0 where it is repeated */
} Operand;

static void operand_read(Compilation *c, const Value *v, int rank, Operand *o)
{
    int64_t dims[MAX_RANK], stride[MAX_RANK], count;
    Dim *in = NULL;
    int have;
    memset(o, 0, sizeof *o);
    if (!(dtype_is_float(v->dtype) ? value_floats(c, v, &o->reals, &have) : value_dims(c, v, &in, &have))) return;
    if (!shape_numbers(c, v, dims, &count) || v->rank > rank) return;
    o->elements = in;
    row_major(dims, v->rank, stride);
    for (int i = 0; i < v->rank; i++) o->stride[rank - v->rank + i] = dims[i] == 1 ? 0 : stride[i];
}

/* Where the operand's element for element E of an output of DIMS lies. */
static int64_t operand_at(const Operand *o, int64_t e, const int64_t *dims, const int64_t *place, int rank)
{
    int64_t at = 0;
    for (int k = 0; k < rank; k++) at += e / place[k] % dims[k] * o->stride[k];
    return at;
}

/* Sums, products, quotients and roots of f32, computed in double and rounded, are those of f32. */
static void real_contents(Compilation *c, Node *n, double (*real)(double, double))
{
    Value *y = node_output(c, n, 0);
    int64_t total, elements, dims[MAX_RANK], place[MAX_RANK];
    double *out = n->input_count <= 2 ? floats_begin(c, y, &total) : NULL;
    Operand operand[2] = { 0 };
    if (!out || !shape_numbers(c, y, dims, &elements)) return;
    for (int i = 0; i < n->input_count; i++) {
        operand_read(c, node_input(c, n, i), y->rank, &operand[i]);
        if (!operand[i].reals) return;
    }
    row_major(dims, y->rank, place);
    for (int64_t e = 0; e < total; e++) {
        double in[2] = { 0, 0 };
        for (int i = 0; i < n->input_count; i++) in[i] = operand[i].reals[operand_at(&operand[i], e, dims, place, y->rank)];
        out[e] = float_rounded(y->dtype, real(in[0], in[1]));
    }
    y->floats = out;
}

void formula_contents(Compilation *c, Node *n, const Formula *list, size_t formulas)
{
    const Formula *f = formula_of(n, list, formulas);
    Value *y = node_output(c, n, 0);
    if (f->real && dtype_is_float(y->dtype)) real_contents(c, n, f->real);
    int64_t total, elements, dims[MAX_RANK], place[MAX_RANK];
    const int count = f->folded ? f->folded : n->input_count;
    Dim *out = f->fold && count > 0 && count <= MAX_RANK ? contents_begin(c, y, &total) : NULL, in[MAX_RANK];
    Operand operand[MAX_RANK];
    if (!out || !shape_numbers(c, y, dims, &elements)) return;
    for (int i = 0; i < count; i++) {
        if (!node_input(c, n, i)) return;
        operand_read(c, node_input(c, n, i), y->rank, &operand[i]);
        if (!operand[i].elements && !f->partial) return;
    }
    row_major(dims, y->rank, place);
    for (int64_t e = 0; e < total; e++) {
        for (int i = 0; i < count; i++)
            in[i] = operand[i].elements ? operand[i].elements[operand_at(&operand[i], e, dims, place, y->rank)] : 0;
        out[e] = f->fold(c, n, in, count);
        if (!out[e]) return;
    }
    contents_finish(c, y, out, total);
}
