/* matmul.c - matrix products of plain elements: MatMul, Gemm, FusedMatMul, FusedGemm. Operands are views: a transposition is a
 * stride, and the strides choose the kernel. */
#include "ops/gemv.h"
#include "ops/move.h"
#include "ops/product.h"

#include <string.h>

/* ---- operands as matrices */

static bool has_attr(const Node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, name) == 0) return true;
    return false;
}

static bool flag(const Node *n, const char *name) { return has_attr(n, name) && attr_int(n, name) != 0; }

static void move_axis(View *v, int from, int to)
{
    const Dim dim = v->dims[from];
    const int64_t stride = v->stride[from];
    for (int i = from; i < to; i++) {
        v->dims[i] = v->dims[i + 1];
        v->stride[i] = v->stride[i + 1];
    }
    v->dims[to] = dim;
    v->stride[to] = stride;
}

static void insert_axis(Compilation *c, View *v, int at)
{
    for (int i = v->rank++; i > at; i--) {
        v->dims[i] = v->dims[i - 1];
        v->stride[i] = v->stride[i - 1];
    }
    v->dims[at] = dim_const(c, 1);
    v->stride[at] = 0;
}

/* Operand A or B as the product sees it: at least two axes, transposed as the attributes say. */
static View matrix(Compilation *c, const Node *n, char operand, View v)
{
    if (v.rank == 1) {
        insert_axis(c, &v, operand == 'A' ? 0 : 1);
        return v;
    }
    if (flag(n, operand == 'A' ? "transBatchA" : "transBatchB")) move_axis(&v, 0, v.rank - 2);
    if (flag(n, operand == 'A' ? "transA" : "transB")) move_axis(&v, v.rank - 2, v.rank - 1);
    return v;
}

static View value_matrix(Compilation *c, const Node *n, char operand, const Value *x)
{
    View v = {.rank = x->rank};
    for (int k = 0; k < x->rank; k++) v.dims[k] = x->dims[k];
    return matrix(c, n, operand, v);
}

/* FusedGemm's activation over V; NULL for a name that it does not know. The factors have ONNX's defaults of the operator. */
static const char *activated(Compilation *c, const Node *n, const char *v)
{
    const char *name = attr_string(n, "activation");
    const bool leaky = !strcmp(name, "LeakyRelu"), given = node_attr(n, "activation_alpha")->present;
    const double alpha = given ? attr_float(n, "activation_alpha") : leaky ? (double)0.01f : (double)0.2f;
    if (!*name) return v;
    if (!strcmp(name, "Relu")) return arena_text(&c->arena, "gp_relu(%s)", v);
    if (!strcmp(name, "Tanh")) return arena_text(&c->arena, "TANHF(%s)", v);
    if (!strcmp(name, "Sigmoid")) return arena_text(&c->arena, "gp_ratiof(1.0f, 1.0f + EXPF(-(%s)))", v);
    if (leaky) return arena_text(&c->arena, "gp_leaky_relu(%s, %af)", v, alpha);
    if (strcmp(name, "HardSigmoid") != 0) return NULL;
    return arena_text(&c->arena, "gp_clamp(%af * %s + %af, 0.0f, 1.0f)", alpha, v, attr_float(n, "activation_beta"));
}

/* ---- shapes */

static bool check_rank(Compilation *c, const Node *n, const Value *x, int least, int most)
{
    if (x->rank < 0 || (x->rank >= least && x->rank <= most)) return true;
    node_error(c, n, "input '%s': expected rank %d%s, found %d", x->name, least, most > least ? " or more" : "", x->rank);
    return false;
}

static bool equate_inner(Compilation *c, const Node *n, Dim a, Dim b)
{
    int64_t va, vb;
    if (dim_is_const(c, a, &va) && dim_is_const(c, b, &vb) && va != vb) {
        node_error(c, n, "incompatible dimensions: A has %lld columns, B has %lld rows", (long long)va, (long long)vb);
        return false;
    }
    return dim_equate(c, n, "the inner dims of a matrix product are equal", a, b);
}

bool product_shape(Compilation *c, Node *n, int ia, int ib, DType t)
{
    const Value *x = node_input(c, n, ia), *y = node_input(c, n, ib);
    Dim dims[MAX_RANK + 2] = {0};
    if (!check_rank(c, n, x, 1, MAX_RANK) || !check_rank(c, n, y, 1, MAX_RANK)) return false;
    if (x->rank < 0 || y->rank < 0) return output_set(c, n, 0, t, -1, NULL);
    const View a = value_matrix(c, n, 'A', x), b = value_matrix(c, n, 'B', y);
    const int batch = (a.rank > b.rank ? a.rank : b.rank) - 2;
    int rank = 0;
    if (!equate_inner(c, n, a.dims[a.rank - 1], b.dims[b.rank - 2])) return false;
    for (int i = 0; i < batch; i++) {
        const int ka = i - (batch + 2 - a.rank), kb = i - (batch + 2 - b.rank);
        const Dim one = dim_const(c, 1);
        if (!broadcast_dim(c, n, ka < 0 ? one : a.dims[ka], kb < 0 ? one : b.dims[kb], &dims[rank++])) return false;
    }
    if (x->rank > 1) dims[rank++] = a.dims[a.rank - 2];
    if (y->rank > 1) dims[rank++] = b.dims[b.rank - 1];
    return output_set(c, n, 0, t, rank, dims);
}

static bool matmul_shape(Compilation *c, Node *n) { return product_shape(c, n, 0, 1, node_input(c, n, 0)->dtype); }

static bool gemm_shape(Compilation *c, Node *n)
{
    if (has_attr(n, "activation") && !activated(c, n, "v")) {
        node_error(c, n, "activation '%s' is not supported", attr_string(n, "activation"));
        return false;
    }
    const Value *a = node_input(c, n, 0), *b = node_input(c, n, 1), *bias = node_input(c, n, 2);
    if (!check_rank(c, n, a, 2, 2) || !check_rank(c, n, b, 2, 2) || !matmul_shape(c, n)) return false;
    if (!bias || bias->rank < 0 || a->rank < 0 || b->rank < 0) return true;
    const Value *y = node_output(c, n, 0);
    if (bias->rank > 2) {
        node_error(c, n, "input '%s': expected rank 2 or less, found %d", bias->name, bias->rank);
        return false;
    }
    for (int i = 1; i <= bias->rank; i++) {
        const Dim d = bias->dims[bias->rank - i];
        if (!dim_is(c, d, 1) && !dim_equate(c, n, "Gemm's C broadcasts to its output", d, y->dims[2 - i])) return false;
    }
    return true;
}

/* ---- lowering */

enum { TABLE_BYTES = 32768 }; /* of sums in shared memory */

/* Operand with as many axes as Y. */
static View expand(Compilation *c, View v, const View *y)
{
    while (v.rank < y->rank) insert_axis(c, &v, 0);
    for (int i = 0; i < y->rank - 2; i++)
        if (dim_is(c, v.dims[i], 1)) v.stride[i] = 0;
    return v;
}

static bool batchless(const View *v)
{
    for (int i = 0; i < v->rank - 2; i++)
        if (v->stride[i] != 0) return false;
    return true;
}

void product_merge(Lower *l, Product *p)
{
    View a, y;
    if (p->y.rank == 2 || !batchless(&p->b)) return;
    if (!product_flatten(l, &p->a, &a) || !product_flatten(l, &p->y, &y)) return;
    View b = {.buffer = p->b.buffer, .store = p->b.store, .rank = 2, .offset = p->b.offset};
    for (int i = 0; i < 2; i++) {
        b.dims[i] = p->b.dims[p->b.rank - 2 + i];
        b.stride[i] = p->b.stride[p->b.rank - 2 + i];
    }
    *p = (Product){a, b, y};
}

Product product_operands(Lower *l, const Node *n, View a, View b, View y)
{
    Compilation *c = lower_compilation(l);
    Product p = {.y = y};
    if (a.rank == 1) insert_axis(c, &p.y, b.rank == 1 ? p.y.rank : p.y.rank - 1);
    if (b.rank == 1) insert_axis(c, &p.y, p.y.rank);
    p.a = expand(c, matrix(c, n, 'A', a), &p.y);
    p.b = expand(c, matrix(c, n, 'B', b), &p.y);
    return p;
}

static Product product_of(Lower *l, const Node *n)
{
    Product p = product_operands(l, n, lower_input(l, n, 0), lower_input(l, n, 1), lower_output(l, n, 0));
    product_merge(l, &p);
    return p;
}

static int64_t stride_from_end(const View *v, int i) { return v->stride[v->rank - i]; }
static Dim dim_from_end(const View *v, int i) { return v->dims[v->rank - i]; }

/* beta * C, C broadcast to [M, N] */
static const char *add_bias(Lower *l, const Node *n, Kernel *k, const char *v)
{
    Compilation *c = lower_compilation(l);
    const View bias = lower_input(l, n, 2);
    int64_t stride[2] = {0, 0};
    for (int i = 1; i <= bias.rank; i++)
        if (!dim_is(c, dim_from_end(&bias, i), 1)) stride[2 - i] = stride_from_end(&bias, i);
    kernel_in(k, "C", bias);
    const char *term = arena_text(&c->arena, "C_LD(C_OFF + m * %lldLL + n * %lldLL)", (long long)stride[0], (long long)stride[1]);
    if (attr_float(n, "beta") != 1.0) {
        kernel_float(k, "BETA", attr_float(n, "beta"));
        term = arena_text(&c->arena, "BETA * %s", term);
    }
    return arena_text(&c->arena, "(%s + %s)", v, term);
}

static void set_epilogue(Lower *l, const Node *n, Kernel *k)
{
    Compilation *c = lower_compilation(l);
    const char *v = "v";
    if (has_attr(n, "alpha") && attr_float(n, "alpha") != 1.0) {
        kernel_float(k, "ALPHA", attr_float(n, "alpha"));
        v = "(ALPHA * v)";
    }
    if (has_attr(n, "beta") && node_input(c, n, 2)) v = add_bias(l, n, k, v);
    if (has_attr(n, "activation")) v = activated(c, n, v);
    kernel_epilogue(k, n, v);
}

enum { MAX_EXTRAS = 8 };

static Kernel *begin(Lower *l, const Node *n, const Product *p, const char *template, int count, const ProductExtra *extras, int64_t *batch)
{
    const char *names[3 + MAX_EXTRAS] = {"A", "B", "Y"};
    const View *views[3 + MAX_EXTRAS] = {&p->a, &p->b, &p->y};
    Kernel *k = kernel_begin(l, n, template);
    kernel_in(k, "A", p->a);
    kernel_in(k, "B", p->b);
    kernel_out(k, "Y", p->y);
    for (int i = 0; i < count; i++) {
        names[3 + i] = extras[i].name;
        views[3 + i] = extras[i].view;
        kernel_in(k, extras[i].name, *extras[i].view);
    }
    kernel_dim(k, "M", dim_from_end(&p->y, 2));
    kernel_dim(k, "N", dim_from_end(&p->y, 1));
    kernel_dim(k, "K", dim_from_end(&p->a, 1));
    kernel_int(k, "A_SM", stride_from_end(&p->a, 2));
    kernel_int(k, "Y_SM", stride_from_end(&p->y, 2));
    kernel_int(k, "Y_SN", stride_from_end(&p->y, 1));
    *batch = product_batch(l, k, &p->y, 3 + count, names, views);
    return k;
}

static bool is_short_float(DType t) { return t == DT_F32 || t == DT_F16 || t == DT_BF16; }

/* B with its last two axes exchanged: rows along n. */
static View columns_of(const View *b)
{
    View v = *b;
    move_axis(&v, v.rank - 2, v.rank - 1);
    return v;
}

static void lower_nk(Lower *l, const Node *n, const Product *p)
{
    Compilation *c = lower_compilation(l);
    int64_t batch;
    const View columns = columns_of(&p->b);
    const int64_t m = lower_upper(l, dim_from_end(&p->y, 2)), width = lower_upper(l, dim_from_end(&p->y, 1));
    int vector = product_vector(p->b.store);
    if (!product_aligned(l, &p->a, vector) || !product_aligned(l, &columns, vector)) vector = 1;
    Kernel *k = begin(l, n, p, "matmul_nk", 0, NULL, &batch);
    set_epilogue(l, n, k);
    const Tiles tiles = product_tiles(m, width, 32768, lower_upper(l, dim_from_end(&p->a, 1)) / vector, batch);
    kernel_int(k, "B_SN", stride_from_end(&p->b, 1));
    kernel_text(k, "TYPE", product_type(p->b.store));
    kernel_int(k, "V", vector);
    kernel_int(k, "STREAM", m <= tiles.rows && c->buffers[p->b.buffer].region == REGION_WEIGHTS);
    product_launch(k, tiles, m, width, batch);
}

/* Many rows: on tensor cores, B along k or along n. False: not for these operands. */
static bool lower_rows(Lower *l, const Node *n, const Product *p)
{
    const View columns = columns_of(&p->b);
    const DType t = p->b.store;
    const int vector = product_vector(t);
    const bool along_k = stride_from_end(&columns, 1) == 1 && product_aligned(l, &columns, vector);
    int64_t batch, inner, width;
    if (!product_many_rows(l, &p->a, t, lower_upper(l, dim_from_end(&p->y, 2)))) return false;
    if (!along_k && (stride_from_end(&p->b, 1) != 1 || !product_aligned(l, &p->b, vector))) return false;
    Kernel *k = begin(l, n, p, "matmul_rows", 0, NULL, &batch);
    set_epilogue(l, n, k);
    kernel_int(k, "B_SK", stride_from_end(&p->b, 2));
    kernel_int(k, "B_SN", stride_from_end(&p->b, 1));
    kernel_int(k, "FORM", along_k ? 0 : 1);
    const bool whole_k = dim_is_const(lower_compilation(l), dim_from_end(&p->a, 1), &inner) && inner % vector == 0;
    const bool whole_n = dim_is_const(lower_compilation(l), dim_from_end(&p->y, 1), &width) && width % vector == 0;
    const bool partial = !whole_k || (!along_k && !whole_n);
    kernel_int(k, "PARTIAL", partial);
    if (!partial && product_wide(l, &p->y)) product_wide_rows(l, k, t, &p->y, vector, batch);
    else product_rows_launch(l, k, t, &p->y, vector, false, batch);
    return true;
}

/* Threads of a block side by side along n: fewer make more blocks, and share k among more; a run of memory stays 64 bytes
 * long. */
static int threads_beside(int64_t columns, int vector, int64_t others)
{
    int beside = 32;
    while (beside > 4 && ((columns + beside * vector - 1) / (beside * vector) * others < MULTIPROCESSORS || beside * vector >= 2 * columns))
        beside /= 2;
    return beside;
}

static void set_accumulator(Kernel *k, DType t)
{
    const bool single = dtype_is_float(t) && t != DT_F64;
    kernel_text(k, "ACC", single ? "float" : t == DT_F64 ? "double" : dtype_bits(t) == 8 ? "int" : "long long");
    kernel_text(k, "FMA_ACC(a, b, c)", single ? "FMAF(a, b, c)" : "((a) * (b) + (c))");
}

/* Threads of a block: more where blocks are few and k is long for sure. */
static int threads_together(Lower *l, Dim inner, int beside, int64_t blocks, int64_t bytes_each)
{
    int threads = 256;
    int64_t k;
    if (!dim_is_const(lower_compilation(l), inner, &k)) return threads;
    while (threads < 1024 && blocks * threads < MULTIPROCESSORS * 1024 && k >= 8 * threads / beside && 2 * threads * bytes_each <= TABLE_BYTES)
        threads *= 2;
    return threads;
}

void product_lower_any(Lower *l, const Node *n, const Product *p, const ProductText *text, int count, const ProductExtra *extras)
{
    int64_t batch;
    const DType t = p->b.store;
    const int64_t m = lower_upper(l, dim_from_end(&p->y, 2)), width = lower_upper(l, dim_from_end(&p->y, 1));
    int vector = is_short_float(t) && stride_from_end(&p->b, 1) == 1 ? product_vector(t) : 1;
    const bool fixed = dim_is_const(lower_compilation(l), dim_from_end(&p->y, 1), NULL);
    if (!fixed || width % vector || !product_aligned(l, &p->b, vector)) vector = 1;
    int rows = product_rows(m);
    const int size = t != DT_F64 && (dtype_is_float(t) || dtype_bits(t) == 8) ? 4 : 8;
    while (rows * vector > 32 || rows * vector * 256 * size > TABLE_BYTES) rows /= 2;
    Kernel *k = begin(l, n, p, "matmul_kn", count, extras, &batch);
    if (text) {
        kernel_text(k, "EPILOGUE_BODY", "");
        kernel_text(k, "EPILOGUE", text->epilogue);
    } else set_epilogue(l, n, k);
    kernel_int(k, "ZEROS", text && (text->a_zero || text->b_zero));
    if (text) kernel_text(k, "A_ZERO", text->a_zero ? text->a_zero : "0");
    if (text) kernel_text(k, "B_ZERO", text->b_zero ? text->b_zero : "0");
    const int64_t row_tiles = m > rows ? (m + rows - 1) / rows : 1;
    const int beside = threads_beside(width, vector, row_tiles * batch);
    const int64_t span = (int64_t)beside * vector;
    kernel_int(k, "A_SK", stride_from_end(&p->a, 1));
    kernel_int(k, "B_SK", stride_from_end(&p->b, 2));
    kernel_int(k, "B_SN", stride_from_end(&p->b, 1));
    kernel_text(k, "TYPE", product_type(t));
    set_accumulator(k, t);
    kernel_int(k, "V", vector);
    kernel_int(k, "MT", rows);
    kernel_int(k, "LN", beside);
    const int64_t blocks = width > span ? (width + span - 1) / span : 1;
    kernel_launch(k, blocks, row_tiles, batch,
                  threads_together(l, dim_from_end(&p->a, 1), beside, blocks * row_tiles * batch, rows * vector * size));
}

/* C of a Gemm, a value for each column. */
static bool row_bias(Lower *l, const Node *n, int64_t columns, View *bias)
{
    Compilation *c = lower_compilation(l);
    if (!node_input(c, n, 2)) return true;
    *bias = lower_input(l, n, 2);
    for (int i = 0; i + 1 < bias->rank; i++)
        if (!dim_is(c, bias->dims[i], 1)) return false;
    return attr_float(n, "beta") == 1.0 && bias->rank > 0 && dim_is(c, dim_from_end(bias, 1), columns) && stride_from_end(bias, 1) == 1;
}

bool matmul_row_matrix(Lower *l, const Node *n, DType t, RowMatrix *m)
{
    Compilation *c = lower_compilation(l);
    if (flag(n, "transA") || flag(n, "transBatchA") || (has_attr(n, "activation") && *attr_string(n, "activation"))) return false;
    if (has_attr(n, "alpha") && attr_float(n, "alpha") != 1.0) return false;
    const View b = lower_input(l, n, 1);
    if (b.rank != 2 || b.store != t) return false;
    const View by_row = flag(n, "transB") ? b : columns_of(&b);
    m->bits = 16;
    m->matrix = b;
    m->stride = by_row.stride[0];
    if (!product_aligned(l, &by_row, 8)) return false;
    if (!dim_is_const(c, by_row.dims[0], &m->n) || !dim_is_const(c, by_row.dims[1], &m->k) || by_row.stride[1] != 1) return false;
    return m->stride % 8 == 0 && (n->input_count < 3 || row_bias(l, n, m->n, &m->bias));
}

static void product_lower(Lower *l, Node *n)
{
    const Product p = product_of(l, n);
    const bool along_k = stride_from_end(&p.a, 1) == 1 && stride_from_end(&p.b, 2) == 1;
    if (lower_rows(l, n, &p)) return;
    if (along_k && is_short_float(p.b.store)) lower_nk(l, n, &p);
    else product_lower_any(l, n, &p, NULL, 0, NULL);
}

static bool matmul_by_row(Compilation *c, const Node *n)
{
    const Value *b = node_input(c, n, 1);
    return b->is_constant && b->rank >= 2 && !flag(n, "transA") && !flag(n, "transBatchA");
}

#define FUSED(name_) \
    {.domain = "com.microsoft", .name = name_, .since = 1, \
     .schema = "A:T, B:T -> Y:T ; alpha:float=1, transA:int=0, transB:int=0, transBatchA:int=0, transBatchB:int=0 | " \
               "T=f32 f16 bf16 f64", \
     .facts = OP_EPILOGUE, .shape = matmul_shape, .lower = product_lower, .by_row = matmul_by_row}

static const OpRow rows[] = {
    {.domain = "", .name = "MatMul", .since = 1, .schema = "A:T, B:T -> Y:T | T=f32 f16 bf16 f64 i32 i64 u32 u64",
     .facts = OP_EPILOGUE, .shape = matmul_shape, .lower = product_lower, .by_row = matmul_by_row},
    {.domain = "", .name = "Gemm", .since = 7,
     .schema = "A:T, B:T, C:T? -> Y:T ; alpha:float=1, beta:float=1, transA:int=0, transB:int=0 | T=f32 f16 bf16 f64",
     .facts = OP_EPILOGUE, .shape = gemm_shape, .lower = product_lower},
    {.domain = "com.microsoft", .name = "FusedGemm", .since = 1,
     .schema = "A:T, B:T, C:T? -> Y:T ; alpha:float=1, beta:float=1, transA:int=0, transB:int=0, activation:string='', "
               "activation_alpha:float=0.2, activation_beta:float=0.5, activation_gamma:float? | T=f32 f16 bf16",
     .facts = OP_EPILOGUE, .shape = gemm_shape, .lower = product_lower},
    FUSED("FusedMatMul"),
    FUSED("TransposeMatMul"),
};

const OpFamily ops_matmul = {rows, COUNT_OF(rows), "compiler/ops/matmul.c"};
