/* qmatmul.c - matrix products of quantised elements: MatMulInteger, QLinearMatMul, and onnxruntime's MatMulIntegerToFloat,
 * DynamicQuantizeMatMul, QGemm. All are one sum of (a - zero) * (b - zero), in int32 (float for 8-bit floats), and differ in
 * what becomes of it. */
#include "ops/product.h"
#include "ops/quantize.h"

#include <string.h>

/* Where an operator has its operands; -1: it has none such. */
typedef struct Ports { int a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero; } Ports;

static Ports ports_of(const Node *n)
{
    if (!strcmp(n->op_type, "MatMulInteger")) return (Ports){0, -1, 2, 1, -1, 3, -1, -1, -1};
    if (!strcmp(n->op_type, "MatMulIntegerToFloat")) return (Ports){0, 2, 4, 1, 3, 5, 6, -1, -1};
    if (!strcmp(n->op_type, "DynamicQuantizeMatMul")) return (Ports){0, -1, -1, 1, 2, 3, 4, -1, -1};
    if (!strcmp(n->op_type, "QGemm")) return (Ports){0, 1, 2, 3, 4, 5, 6, 7, 8};
    return (Ports){0, 1, 2, 3, 4, 5, -1, 6, 7}; /* QLinearMatMul */
}

/* ---- shapes */

/* Parameter I has one element, or is as long as axis FROM_END (2 rows, 1 columns) of output 0: of rank 1, or of more with 1
 * elsewhere along the matrix. */
static bool parameter_fits(Compilation *c, const Node *n, int i, int from_end)
{
    const Value *v = node_input(c, n, i), *y = node_output(c, n, 0);
    if (!v || v->rank < 0 || y->rank < from_end || dim_is(c, value_elements(c, v), 1)) return true;
    if (from_end == 0 || v->rank == 0 || v->rank > y->rank) {
        node_error(c, n, "input '%s': expected one element%s", v->name, from_end ? ", or one for each row or column" : "");
        return false;
    }
    if (v->rank == 1) return dim_equate(c, n, "a scale or zero point for each row or column", v->dims[0], y->dims[y->rank - from_end]);
    for (int k = 1; k <= v->rank; k++) {
        const Dim d = v->dims[v->rank - k];
        if (dim_is(c, d, 1)) continue;
        if (k <= 2 && k != from_end) {
            node_error(c, n, "input '%s': axis %d from the end has extent %s; expected 1", v->name, k, dim_text(c, d));
            return false;
        }
        if (!dim_equate(c, n, "a scale or zero point for each row or column", d, y->dims[y->rank - k])) return false;
    }
    return true;
}

static bool quantised_shape(Compilation *c, Node *n, DType t)
{
    const Ports p = ports_of(n);
    if (!product_shape(c, n, p.a, p.b, t)) return false;
    bool good = parameter_fits(c, n, p.a_scale, 2) && parameter_fits(c, n, p.a_zero, 2) && parameter_fits(c, n, p.b_scale, 1) &&
                parameter_fits(c, n, p.b_zero, 1);
    if (strcmp(n->op_type, "QGemm") != 0) good = good && parameter_fits(c, n, p.bias, 1);
    return good && parameter_fits(c, n, p.y_scale, 0) && parameter_fits(c, n, p.y_zero, 0);
}

static bool integer_shape(Compilation *c, Node *n) { return quantised_shape(c, n, DT_I32); }
static bool linear_shape(Compilation *c, Node *n) { return quantised_shape(c, n, node_input(c, n, 7)->dtype); }
static bool float_shape(Compilation *c, Node *n) { return quantised_shape(c, n, node_input(c, n, 2)->dtype); }

static bool qgemm_shape(Compilation *c, Node *n)
{
    const Value *bias = node_input(c, n, 6), *zero = node_input(c, n, 8);
    if ((node_input(c, n, 7) == NULL) != (zero == NULL)) {
        node_error(c, n, "y_scale and y_zero_point are given together or not at all");
        return false;
    }
    if (!quantised_shape(c, n, zero ? zero->dtype : DT_F32)) return false;
    const Value *y = node_output(c, n, 0);
    for (int i = 1; bias && y->rank == 2 && i <= bias->rank && i <= 2; i++) {
        const Dim d = bias->dims[bias->rank - i];
        if (!dim_is(c, d, 1) && !dim_equate(c, n, "QGemm's C broadcasts to its output", d, y->dims[2 - i])) return false;
    }
    return true;
}

/* ---- lowering */

enum { MAX_PARAMETERS = 8 };

typedef struct Build {
    Lower *l;
    const Node *n;
    Product p;
    int count;
    View views[MAX_PARAMETERS];
    ProductExtra extras[MAX_PARAMETERS];
} Build;

/* Text of parameter V at row m and column n, where it follows them; it becomes an operand. FROM_END: the axis that one of rank 1 follows. */
static const char *parameter(Build *b, const char *name, View v, int from_end)
{
    Compilation *c = lower_compilation(b->l);
    const int rank = b->p.y.rank;
    View *out = &b->views[b->count];
    *out = v;
    out->rank = rank;
    for (int k = 1; k <= rank; k++) {
        const int from = v.rank == 1 ? (k == from_end ? 1 : 0) : k;
        const bool here = from >= 1 && from <= v.rank && !dim_is(c, v.dims[v.rank - from], 1);
        out->dims[rank - k] = here ? v.dims[v.rank - from] : dim_const(c, 1);
        out->stride[rank - k] = here ? v.stride[v.rank - from] : 0;
    }
    b->extras[b->count++] = (ProductExtra){name, out};
    const char *at = arena_text(&c->arena, "%s_OFF + Z_%s", name, name);
    if (out->stride[rank - 2]) at = arena_text(&c->arena, "%s + m * %lldLL", at, (long long)out->stride[rank - 2]);
    if (out->stride[rank - 1]) at = arena_text(&c->arena, "%s + n * %lldLL", at, (long long)out->stride[rank - 1]);
    return arena_text(&c->arena, "%s_LD(%s)", name, at);
}

static const char *input_parameter(Build *b, const char *name, int i, int from_end)
{
    if (i < 0 || !node_input(lower_compilation(b->l), b->n, i)) return NULL;
    return parameter(b, name, lower_input(b->l, b->n, i), from_end);
}

static bool one_element(Compilation *c, const Node *n, int i)
{
    const Value *v = node_input(c, n, i);
    return !v || dim_is(c, value_elements(c, v), 1);
}

/* Rows of all batches may count as one run where no parameter tells them apart. */
static bool rows_alike(Compilation *c, const Node *n, const Ports *p)
{
    const int columns[] = {p->b_scale, p->b_zero, p->bias};
    if (!one_element(c, n, p->a_scale) || !one_element(c, n, p->a_zero)) return false;
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        const Value *v = node_input(c, n, columns[i]);
        if (v && v->rank > 1 && !dim_is(c, value_elements(c, v), 1)) return false;
    }
    return true;
}

/* The sum v, scaled; and as the quantised output where there is a scale for it. */
static const char *scaled(Build *b, const Ports *p, const char *a_scale, const char *b_scale, const char *bias)
{
    Compilation *c = lower_compilation(b->l);
    const char *y_scale = input_parameter(b, "YS", p->y_scale, 0), *y_zero = input_parameter(b, "YZ", p->y_zero, 0);
    const bool gemm = !strcmp(b->n->op_type, "QGemm");
    const char *sum = gemm && bias ? arena_text(&c->arena, "(v + (ACC)%s)", bias) : "v";
    const char *factor = arena_text(&c->arena, "((float)%s * (float)%s)", a_scale, b_scale);
    if (gemm) factor = arena_text(&c->arena, "(%af * %s)", attr_float(b->n, "alpha"), factor);
    if (y_scale) factor = arena_text(&c->arena, "(%s / (float)%s)", factor, y_scale);
    const char *text = arena_text(&c->arena, "(float)%s * %s", sum, factor);
    if (!gemm && bias) text = arena_text(&c->arena, "%s + (float)%s", text, bias);
    return y_scale ? quantized_text(c, node_output(c, b->n, 0)->dtype, text, y_zero) : text;
}

static void quantised_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Ports p = ports_of(n);
    const bool dynamic = !strcmp(n->op_type, "DynamicQuantizeMatMul");
    Quantisation q;
    const View a = dynamic ? dynamic_quantize(l, n, lower_input(l, n, 0), &q) : lower_input(l, n, p.a);
    Build b = {.l = l, .n = n, .p = product_operands(l, n, a, lower_input(l, n, p.b), lower_output(l, n, 0))};
    if (rows_alike(c, n, &p)) product_merge(l, &b.p);
    ProductText text = {0};
    text.a_zero = dynamic ? parameter(&b, "AZ", q.zero, 0) : input_parameter(&b, "AZ", p.a_zero, 2);
    text.b_zero = input_parameter(&b, "BZ", p.b_zero, 1);
    const char *a_scale = dynamic ? parameter(&b, "AS", q.scale, 0) : input_parameter(&b, "AS", p.a_scale, 2);
    const char *b_scale = input_parameter(&b, "BS", p.b_scale, 1), *bias = input_parameter(&b, "BIAS", p.bias, 1);
    text.epilogue = a_scale ? scaled(&b, &p, a_scale, b_scale, bias) : "v";
    product_lower_any(l, n, &b.p, &text, b.count, b.extras);
}

#define BYTES "u8 i8"
#define SMALL BYTES " f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"
#define LINEAR(since_, types_, scales_) \
    {.domain = "", .name = "QLinearMatMul", .since = since_, \
     .schema = "a:A, a_scale:S, a_zero_point:A, b:B, b_scale:S, b_zero_point:B, y_scale:S, y_zero_point:Y -> y:Y | A=" types_ \
               ", B=" types_ ", Y=" types_ ", S=" scales_, \
     .shape = linear_shape, .lower = quantised_lower}

static const OpRow rows[] = {
    {.domain = "", .name = "MatMulInteger", .since = 10,
     .schema = "A:A, B:B, a_zero_point:A?, b_zero_point:B? -> Y:i32 | A=" BYTES ", B=" BYTES,
     .shape = integer_shape, .lower = quantised_lower},
    LINEAR(10, BYTES, "f32"),
    LINEAR(21, SMALL, "f32 f16 bf16"),
    {.domain = "com.microsoft", .name = "MatMulIntegerToFloat", .since = 1,
     .schema = "A:A, B:B, a_scale:T, b_scale:T, a_zero_point:A?, b_zero_point:B?, bias:T? -> Y:T | A=" BYTES ", B=" BYTES
               ", T=f32 f16",
     .shape = float_shape, .lower = quantised_lower},
    {.domain = "com.microsoft", .name = "DynamicQuantizeMatMul", .since = 1,
     .schema = "A:f32, B:B, b_scale:f32, b_zero_point:B?, bias:f32? -> Y:f32 | B=" BYTES,
     .shape = float_shape, .lower = quantised_lower},
    {.domain = "com.microsoft", .name = "QGemm", .since = 1,
     .schema = "A:A, a_scale:f32, a_zero_point:A, B:B, b_scale:f32, b_zero_point:B, C:i32?, y_scale:f32?, y_zero_point:Z? -> Y:Y ; "
               "alpha:float=1, transA:int=0, transB:int=0 | A=" BYTES ", B=" BYTES ", Z=" BYTES ", Y=f32 " BYTES,
     .shape = qgemm_shape, .lower = quantised_lower},
};

const OpFamily ops_qmatmul = {rows, COUNT_OF(rows), "compiler/ops/qmatmul.c"};
