/* quant.c - weights in few bits: MatMulNBits, GatherBlockQuantized, DequantizeLinear, QuantizeLinear. */
#include "ops/gemv.h"
#include "ops/move.h"
#include "ops/product.h"
#include "ops/quantize.h"
#include "ops/rows.h"

#include <string.h>


static bool known_rank(Compilation *c, const Node *n, int i)
{
    const Value *v = node_input(c, n, i);
    (void)n;
    return !v || v->rank >= 0;
}

/* False, and an error, when input I is known to have another number of elements. */
static bool check_count(Compilation *c, const Node *n, int i, const char *what, int64_t expected)
{
    const Value *v = node_input(c, n, i);
    int64_t found;
    if (!v || v->rank < 0 || !dim_is_const(c, value_elements(c, v), &found) || found == expected) return true;
    node_error(c, n, "%s '%s': expected %lld elements, found %lld", what, v->name, (long long)expected, (long long)found);
    return false;
}

static bool check_block(Compilation *c, const Node *n, int64_t block)
{
    if (block >= 16 && block <= (1 << 24) && (block & (block - 1)) == 0) return true;
    node_error(c, n, "block_size %lld: expected a power of two, 16 or more", (long long)block);
    return false;
}

static bool check_bits(Compilation *c, const Node *n, int64_t bits)
{
    if (bits == 2 || bits == 4 || bits == 8) return true;
    node_error(c, n, "bits %lld: expected 2, 4 or 8", (long long)bits);
    return false;
}

View dense_input(Lower *l, const Node *n, int i)
{
    const View v = lower_input(l, n, i);
    if (view_dense(l, &v, 0, v.rank)) return v;
    const View copy = lower_temporary(l, arena_text(&lower_compilation(l)->arena, "%s.dense", n->name), v.store, v.rank, v.dims);
    lower_copy(l, n, v, copy, arena_text(&lower_compilation(l)->arena, "%s (copy)", n->name));
    return copy;
}

/* ---- MatMulNBits */

enum { ROWS_CHUNK = 32 }; /* elements that matmul_rows scales at once */
enum { NB_A, NB_B, NB_SCALES, NB_ZEROS, NB_G_IDX, NB_BIAS };

typedef struct NBits { int64_t k, n, bits, block, blocks, zero_row; } NBits;

static NBits nbits_of(const Node *n)
{
    NBits q = {.k = attr_int(n, "K"), .n = attr_int(n, "N"), .bits = attr_int(n, "bits"), .block = attr_int(n, "block_size")};
    q.blocks = q.block > 0 ? ceil_div(q.k, q.block) : 0;
    q.zero_row = ceil_div(q.blocks * q.bits, 8);
    return q;
}

static bool check_nbits(Compilation *c, const Node *n, const NBits *q)
{
    if (!check_bits(c, n, q->bits) || !check_block(c, n, q->block)) return false;
    if (q->k < 1 || q->n < 1 || q->k > INT32_MAX || q->n > INT32_MAX) {
        node_error(c, n, "K %lld, N %lld: out of range", (long long)q->k, (long long)q->n);
        return false;
    }
    if (attr_int(n, "weight_prepacked") != 0) {
        node_error(c, n, "weight_prepacked %lld: packing of one engine; only 0 has a meaning in a file",
                   (long long)attr_int(n, "weight_prepacked"));
        return false;
    }
    return true;
}

static bool check_groups(Compilation *c, const Node *n, const NBits *q)
{
    const Value *v = node_input(c, n, NB_G_IDX);
    if (!v || !v->data || !v->data->bytes) return true;
    for (int64_t i = 0; i < q->k; i++) {
        const int64_t group = data_int(v, i);
        if (group >= 0 && group < q->blocks) continue;
        node_error(c, n, "g_idx[%lld] is %lld: a group index is 0 to %lld", (long long)i, (long long)group, (long long)q->blocks - 1);
        return false;
    }
    return true;
}

static bool nbits_shape(Compilation *c, Node *n)
{
    const Value *a = node_input(c, n, NB_A), *zeros = node_input(c, n, NB_ZEROS);
    const NBits q = nbits_of(n);
    Dim dims[MAX_RANK];
    if (!check_nbits(c, n, &q)) return false;
    bool good = check_count(c, n, NB_B, "weights", q.n * q.blocks * (q.block * q.bits / 8));
    good &= check_count(c, n, NB_SCALES, "scales", q.n * q.blocks);
    if (zeros) good &= check_count(c, n, NB_ZEROS, "zero points", zeros->dtype == DT_U8 ? q.n * q.zero_row : q.n * q.blocks);
    good &= check_count(c, n, NB_BIAS, "bias", q.n);
    /* Some files give an index for the padding as well. */
    const Value *g = node_input(c, n, NB_G_IDX);
    int64_t groups;
    if (g && dim_is_const(c, value_elements(c, g), &groups) && groups != q.blocks * q.block)
        good &= check_count(c, n, NB_G_IDX, "g_idx", q.k);
    if (!good || !check_groups(c, n, &q)) return false;
    if (a->rank < 0) return output_set(c, n, 0, a->dtype, -1, NULL);
    if (a->rank < 1) {
        node_error(c, n, "input '%s': rank 1 or more is needed, found 0", a->name);
        return false;
    }
    if (!dim_equate(c, n, "MatMulNBits' A has K columns", a->dims[a->rank - 1], dim_const(c, q.k))) return false;
    for (int i = 0; i + 1 < a->rank; i++) dims[i] = a->dims[i];
    dims[a->rank - 1] = dim_const(c, q.n);
    return output_set(c, n, 0, a->dtype, a->rank, dims);
}

static bool nbits_by_row(Compilation *c, const Node *n)
{
    for (int i = 1; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        if (v && !v->is_constant) return false;
    }
    return true;
}

static void insert_row_axis(Compilation *c, View *v)
{
    if (v->rank > 1) return;
    v->dims[1] = v->dims[0];
    v->stride[1] = v->stride[0];
    v->dims[0] = dim_const(c, 1);
    v->stride[0] = 0;
    v->rank = 2;
}

/* A and Y as rows, of one product where they lie so, else of a batch. */
static void nbits_operands(Lower *l, const Node *n, View *a, View *y)
{
    View flat_a, flat_y;
    *a = lower_input(l, n, NB_A);
    *y = lower_output(l, n, 0);
    if (a->stride[a->rank - 1] != 1 && !dim_is(lower_compilation(l), a->dims[a->rank - 1], 1)) *a = dense_input(l, n, NB_A);
    insert_row_axis(lower_compilation(l), a);
    insert_row_axis(lower_compilation(l), y);
    if (!product_flatten(l, a, &flat_a) || !product_flatten(l, y, &flat_y)) return;
    *a = flat_a;
    *y = flat_y;
}

static void nbits_optional(Lower *l, const Node *n, Kernel *k, const NBits *q)
{
    Compilation *c = lower_compilation(l);
    const Value *zeros = node_input(c, n, NB_ZEROS);
    if (zeros) kernel_in(k, "Z", lower_input(l, n, NB_ZEROS));
    kernel_int(k, "ZP", !zeros ? 0 : zeros->dtype == DT_U8 ? 1 : 2);
    kernel_int(k, "ZP_ROW", q->zero_row);
    kernel_int(k, "G_IDX", node_input(c, n, NB_G_IDX) != NULL);
    if (node_input(c, n, NB_G_IDX)) kernel_in(k, "G", lower_input(l, n, NB_G_IDX));
    if (node_input(c, n, NB_BIAS)) kernel_in(k, "C", lower_input(l, n, NB_BIAS));
    kernel_epilogue(k, n, node_input(c, n, NB_BIAS) ? "(v + C_LD(C_OFF + n))" : "v");
}

static bool constant_bytes(Lower *l, const Node *n, int input, DType t, View *v)
{
    *v = lower_input(l, n, input);
    return v->store == t && view_dense(l, v, 0, v->rank) && dim_is(lower_compilation(l), v->offset, 0);
}

bool nbits_row_matrix(Lower *l, const Node *n, DType t, RowMatrix *m)
{
    const NBits q = nbits_of(n);
    const Value *zeros = node_input(lower_compilation(l), n, NB_ZEROS);
    if (q.bits != 4 || q.block % 32 != 0 || q.k % 32 != 0 || node_input(lower_compilation(l), n, NB_G_IDX)) return false;
    m->k = q.k;
    m->n = q.n;
    m->bits = 4;
    m->group = q.block;
    if (!constant_bytes(l, n, NB_B, DT_U8, &m->matrix) || !constant_bytes(l, n, NB_SCALES, t, &m->scales)) return false;
    if (zeros && !constant_bytes(l, n, NB_ZEROS, DT_U8, &m->zeros)) return false;
    if (zeros) m->zero_row = q.zero_row;
    if (node_input(lower_compilation(l), n, NB_BIAS)) {
        m->bias = lower_input(l, n, NB_BIAS);
        return view_dense(l, &m->bias, 0, m->bias.rank);
    }
    return true;
}

/* Weights that a lane takes at once: 16 bytes, of one block, and no more than registers hold. */
static int64_t nbits_chunk(const NBits *q)
{
    int64_t chunk = 128 / q->bits;
    if (chunk > 32) chunk = 32;
    return chunk < q->block ? chunk : q->block;
}

static Kernel *nbits_begin(Lower *l, const Node *n, const char *template, const NBits *q, const View *a, const View *y, int64_t *batch)
{
    static const char *const names[] = {"A", "Y"};
    const View *const views[] = {a, y};
    Kernel *k = kernel_begin(l, n, template);
    kernel_in(k, "A", *a);
    kernel_in(k, "B", lower_input(l, n, NB_B));
    kernel_in(k, "S", lower_input(l, n, NB_SCALES));
    kernel_out(k, "Y", *y);
    nbits_optional(l, n, k, q);
    kernel_dim(k, "M", y->dims[y->rank - 2]);
    kernel_int(k, "A_SM", a->stride[a->rank - 2]);
    kernel_int(k, "Y_SM", y->stride[y->rank - 2]);
    kernel_int(k, "N", q->n);
    kernel_int(k, "K", q->k);
    kernel_int(k, "KB", q->blocks);
    kernel_int(k, "BS", q->block);
    *batch = product_batch(l, k, y, 2, names, views);
    return k;
}

/* Hundreds of rows, for sm_90a: four warps at a time. */
static bool nbits_wide(Lower *l, const Node *n, const NBits *q, const View *a, const View *y)
{
    Compilation *c = lower_compilation(l);
    int64_t batch;
    if (!product_wide(l, y) || q->k % 32 != 0 || q->n * q->blocks > INT32_MAX || node_input(c, n, NB_SCALES)->dtype != a->store) return false;
    Kernel *k = nbits_begin(l, n, "matmul_wide", q, a, y, &batch);
    product_wide_packed(l, k, a->store, y, batch);
    return true;
}

/* Many rows: on tensor cores. False: not for these operands. */
static bool nbits_rows(Lower *l, const Node *n, const NBits *q, const View *a, const View *y)
{
    const Value *zeros = node_input(lower_compilation(l), n, NB_ZEROS);
    int64_t batch;
    if (q->bits != 4 || q->block < ROWS_CHUNK || node_input(lower_compilation(l), n, NB_G_IDX) || (zeros && zeros->dtype != DT_U8)) return false;
    if (!product_many_rows(l, a, a->store, lower_upper(l, y->dims[y->rank - 2]))) return false;
    if (nbits_wide(l, n, q, a, y)) return true;
    Kernel *k = nbits_begin(l, n, "matmul_rows", q, a, y, &batch);
    kernel_int(k, "FORM", 2);
    kernel_int(k, "Y_SN", 1);
    kernel_int(k, "Z_B", 0);
    kernel_int(k, "Z_S", 0);
    kernel_int(k, "Z_Z", 0);
    kernel_text(k, "STYPE", product_type(node_input(lower_compilation(l), n, NB_SCALES)->dtype));
    kernel_int(k, "PARTIAL", q->k % product_vector(a->store) != 0);
    product_rows_launch(l, k, a->store, y, ROWS_CHUNK, true, batch);
    return true;
}

static void nbits_lower(Lower *l, Node *n)
{
    View a, y;
    const NBits q = nbits_of(n);
    int64_t batch;
    nbits_operands(l, n, &a, &y);
    if (nbits_rows(l, n, &q, &a, &y)) return;
    const int64_t chunk = nbits_chunk(&q), rows = lower_upper(l, y.dims[y.rank - 2]);
    const int vector = product_vector(a.store);
    Kernel *k = nbits_begin(l, n, "matmul_nbits", &q, &a, &y, &batch);
    kernel_int(k, "BITS", q.bits);
    kernel_int(k, "CH", chunk);
    kernel_text(k, "TYPE", product_type(a.store));
    kernel_int(k, "V", product_aligned(l, &a, vector) ? vector : 1);
    Tiles tiles = product_tiles(rows, q.n, 512, ceil_div(q.k, chunk), batch);
    if (tiles.rows > 1 && tiles.columns > 2) tiles.columns = 2; /* decoded weights of a tile stay in registers */
    product_launch(k, tiles, rows, q.n, batch);
}

/* ---- what GatherBlockQuantized and DequantizeLinear share: the layout of scales around an axis */

typedef struct Layout {
    int mode;             /* 0 one scale, 1 one for each coordinate, 2 one for each block, in the shape of X */
    Dim inner, axis;      /* extents */
    int64_t blocks, block;
} Layout;

static Dim product_of_dims(Compilation *c, const Dim *dims, int from, int to)
{
    Dim d = dim_const(c, 1);
    for (int i = from; i < to; i++) d = dim_mul(c, d, dims[i]);
    return d;
}

static void set_layout(Lower *l, Kernel *k, const Layout *y)
{
    static const char *const scales[] = {"0", "along", "((before * BLOCKS + along / BLOCK) * INNER + inside)"};
    (void)l;
    kernel_text(k, "SCALE_AT", scales[y->mode]);
    kernel_dim(k, "INNER", y->inner);
    kernel_dim(k, "AXIS", y->axis);
    kernel_int(k, "BLOCKS", y->blocks);
    kernel_int(k, "BLOCK", y->block);
}

/* Where elements lie: one after another, or, when not in both, by their coordinates. */
static void set_places(Lower *l, Kernel *k, const View *x, const View *y)
{
    Compilation *c = lower_compilation(l);
    const bool dense = view_dense(l, x, 0, x->rank) && view_dense(l, y, 0, y->rank);
    kernel_text(k, "COORDINATES", dense ? "" : arena_text(&c->arena, "const idx n = i; %s", index_split(l, y->rank, y->dims, "i")));
    kernel_text(k, "X_PLACE", dense ? "X_OFF + p" : index_at(l, "X", x->rank, "i"));
    kernel_text(k, "Y_PLACE", dense ? "Y_OFF + i" : index_at(l, "Y", y->rank, "i"));
}

static void launch_elementwise(Lower *l, Kernel *k, const View *out)
{
    enum { BLOCK = 256 };
    const Dim count = product_of_dims(lower_compilation(l), out->dims, 0, out->rank);
    kernel_dim(k, "COUNT", count);
    kernel_launch(k, grid_for(lower_upper(l, count), BLOCK), 1, 1, BLOCK);
}

/* ---- GatherBlockQuantized */

enum { GQ_DATA, GQ_INDICES, GQ_SCALES, GQ_ZEROS };

/* Bits of an element when bytes hold several; 0 for the 4-bit types and for plain bytes. */
static int gather_bits(Compilation *c, const Node *n)
{
    return node_input(c, n, GQ_DATA)->dtype == DT_U8 ? (int)attr_int(n, "bits") : 0;
}

/* Dims of the data with its last axis unpacked. */
static bool gather_dims(Compilation *c, const Node *n, Dim *dims)
{
    const Value *data = node_input(c, n, GQ_DATA);
    const int bits = gather_bits(c, n);
    for (int i = 0; i < data->rank; i++) dims[i] = data->dims[i];
    if (bits && data->rank > 0 && dims[data->rank - 1]) dims[data->rank - 1] = dim_scale(c, dims[data->rank - 1], 8 / bits);
    return data->rank > 0;
}

static bool gather_axes(Compilation *c, const Node *n, int *gather, int *quantize)
{
    const int rank = node_input(c, n, GQ_DATA)->rank;
    *gather = axis_normal(c, n, attr_int(n, "gather_axis"), rank);
    *quantize = axis_normal(c, n, attr_int(n, "quantize_axis"), rank);
    if (*gather < 0 || *quantize < 0) return false;
    if (*gather == *quantize) {
        node_error(c, n, "gather_axis and quantize_axis are both %d", *gather);
        return false;
    }
    if (gather_bits(c, n) && (*quantize != rank - 1 || *gather == rank - 1)) {
        node_error(c, n, "packed uint8 data is quantised along its last axis, and gathered along another");
        return false;
    }
    return true;
}

static bool check_gather_scales(Compilation *c, const Node *n, const Dim *dims, int quantize)
{
    const Value *data = node_input(c, n, GQ_DATA), *zeros = node_input(c, n, GQ_ZEROS);
    const int64_t block = attr_int(n, "block_size"), bits = gather_bits(c, n);
    int64_t along, others = 1, d;
    for (int i = 0; i < data->rank; i++) {
        if (i == quantize) continue;
        if (!dim_is_const(c, dims[i], &d)) return true;
        others *= d;
    }
    if (!dim_is_const(c, dims[quantize], &along)) return true;
    const int64_t blocks = ceil_div(along, block);
    bool good = check_count(c, n, GQ_SCALES, "scales", others * blocks);
    if (zeros) good &= check_count(c, n, GQ_ZEROS, "zero points", others * (bits ? ceil_div(blocks * bits, 8) : blocks));
    return good;
}

static bool gather_shape(Compilation *c, Node *n)
{
    const Value *data = node_input(c, n, GQ_DATA), *indices = node_input(c, n, GQ_INDICES);
    const DType t = node_input(c, n, GQ_SCALES)->dtype;
    Dim from[MAX_RANK], dims[2 * MAX_RANK];
    int rank = 0, gather, quantize;
    if (!check_block(c, n, attr_int(n, "block_size"))) return false;
    if (data->dtype == DT_U8 && !check_bits(c, n, attr_int(n, "bits"))) return false;
    if (!known_rank(c, n, GQ_DATA) || !known_rank(c, n, GQ_INDICES)) return output_set(c, n, 0, t, -1, NULL);
    if (!gather_axes(c, n, &gather, &quantize) || !gather_dims(c, n, from)) return false;
    if (!check_gather_scales(c, n, from, quantize)) return false;
    for (int i = 0; i < gather; i++) dims[rank++] = from[i];
    for (int i = 0; i < indices->rank; i++) dims[rank++] = indices->dims[i];
    for (int i = gather + 1; i < data->rank; i++) dims[rank++] = from[i];
    return output_set(c, n, 0, t, rank, dims);
}

/* Element of the data for output element i; an index outside gives -1, which reads as zero. */
static void gather_source(Lower *l, Kernel *k, const View *indices, const Dim *dims, int rank, int gather)
{
    Compilation *c = lower_compilation(l);
    kernel_dim(k, "LENGTH", dims[gather]);
    kernel_dim(k, "TAIL", product_of_dims(c, dims, gather + 1, rank));
    kernel_text(k, "INDEX(j)", arena_text(&c->arena, "I_LD(I_OFF + %s)", rows_text(c, "I", "(j)", indices, 0, indices->rank)));
    kernel_text(k, "WRAPPED(j)", "(INDEX(j) < 0 ? INDEX(j) + LENGTH : INDEX(j))");
    kernel_text(k, "PLACE(i)", "WRAPPED((i) / (TAIL) % PICKED)");
    kernel_text(k, "SOURCE", "(PLACE(i) < 0 || PLACE(i) >= LENGTH ? -1 : "
                             "(i / (TAIL) / PICKED * LENGTH + PLACE(i)) * (TAIL) + i % (TAIL))");
}

static void gather_zeros(Lower *l, const Node *n, Kernel *k, int64_t blocks)
{
    Compilation *c = lower_compilation(l);
    const int bits = gather_bits(c, n);
    const bool given = node_input(c, n, GQ_ZEROS) != NULL;
    if (given) kernel_in(k, "Z", lower_input(l, n, GQ_ZEROS));
    kernel_int(k, "BITS", bits == 8 ? 0 : bits);
    kernel_int(k, "ZP", !given ? 0 : bits && bits < 8 ? 2 : 1);
    kernel_int(k, "ZP_ROW", ceil_div(blocks * bits, 8));
    kernel_int(k, "ZERO_POINT", bits ? 1 << (bits - 1) : 0);
}

static void gather_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *data = node_input(c, n, GQ_DATA);
    Dim dims[MAX_RANK];
    int gather, quantize;
    gather_axes(c, n, &gather, &quantize);
    gather_dims(c, n, dims);
    for (int i = 0; i < data->rank; i++) dims[i] = lower_dim(l, dims[i]);
    const View indices = lower_input(l, n, GQ_INDICES), out = lower_output(l, n, 0);
    const int64_t block = attr_int(n, "block_size");
    const Layout layout = {2, product_of_dims(c, dims, quantize + 1, data->rank), dims[quantize],
                           ceil_div(lower_upper(l, dims[quantize]), block), block};
    Kernel *k = kernel_begin(l, n, "dequantize");
    const int64_t picked = lower_upper(l, product_of_dims(c, indices.dims, 0, indices.rank));
    kernel_in_rows(k, "X", lower_input(l, n, GQ_DATA), picked);
    kernel_in(k, "I", indices);
    kernel_in_rows(k, "S", lower_input(l, n, GQ_SCALES), picked);
    kernel_out(k, "Y", out);
    kernel_dim(k, "PICKED", product_of_dims(c, indices.dims, 0, indices.rank));
    gather_source(l, k, &indices, dims, data->rank, gather);
    gather_zeros(l, n, k, layout.blocks);
    set_layout(l, k, &layout);
    kernel_text(k, "COORDINATES", "");
    kernel_text(k, "X_PLACE", "X_OFF + p");
    kernel_text(k, "Y_PLACE", arena_text(&c->arena, "Y_OFF + %s", rows_text(c, "Y", "i", &out, 0, out.rank)));
    launch_elementwise(l, k, &out);
}

/* ---- DequantizeLinear, QuantizeLinear */

static int64_t linear_block(const Node *n)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, "block_size") == 0) return n->attrs[i].i;
    return 0;
}

static bool is_one(Compilation *c, const Value *v)
{
    return v->rank == 0 || (v->rank == 1 && dim_is(c, v->dims[0], 1));
}

/* Scales (and zero points, input 2) fit the input. */
static bool linear_fits(Compilation *c, const Node *n)
{
    const Value *x = node_input(c, n, 0), *scale = node_input(c, n, 1), *zero = node_input(c, n, 2);
    const int64_t block = linear_block(n);
    if (x->rank < 0 || scale->rank < 0) return true;
    if (block < 0) {
        node_error(c, n, "block_size %lld is negative", (long long)block);
        return false;
    }
    if (zero && zero->rank >= 0 && !(is_one(c, zero) && is_one(c, scale)) && zero->rank != scale->rank) {
        node_error(c, n, "zero points '%s' have rank %d, scales '%s' rank %d", zero->name, zero->rank, scale->name, scale->rank);
        return false;
    }
    if (block == 0 && is_one(c, scale)) return true;
    const int axis = axis_normal(c, n, attr_int(n, "axis"), x->rank);
    if (axis < 0) return false;
    if (scale->rank != (block ? x->rank : 1)) {
        node_error(c, n, "scales '%s': expected rank %d, found %d", scale->name, block ? x->rank : 1, scale->rank);
        return false;
    }
    if (!block) return dim_equate(c, n, "scales follow an axis of the input", scale->dims[0], x->dims[axis]);
    for (int i = 0; i < x->rank; i++) {
        const Dim d = i == axis && x->dims[i] ? dim_op(c, DIM_CEILDIV, x->dims[i], dim_const(c, block)) : x->dims[i];
        if (!dim_equate(c, n, "scales have one element a block of the input", scale->dims[i], d)) return false;
    }
    return true;
}

/* The attribute's dtype; OTHERWISE without it, or 0. */
static DType type_attr(const Node *n, const char *name, DType otherwise)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, name) == 0 && n->attrs[i].i) return attr_dtype(n, name);
    return otherwise;
}

static bool check_type(Compilation *c, const Node *n, const char *what, DType t, const DType *allowed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (allowed[i] == t) return true;
    node_error(c, n, "%s: %s is not among the operator's", what, dtype_name(t));
    return false;
}

static const DType wide_floats[] = {DT_F32, DT_F16, DT_BF16};

static bool dequantize_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const DType t = type_attr(n, "output_dtype", node_input(c, n, 1)->dtype);
    return check_type(c, n, "output type", t, wide_floats, COUNT_OF(wide_floats)) && linear_fits(c, n) &&
           output_set(c, n, 0, t, x->rank, x->dims);
}

static bool quantize_shape(Compilation *c, Node *n)
{
    static const DType allowed[] = {DT_U8, DT_I8, DT_U16, DT_I16, DT_U4, DT_I4, DT_U2, DT_I2, DT_F4E2M1, DT_F8E4M3FN, DT_F8E4M3FNUZ,
                                    DT_F8E5M2, DT_F8E5M2FNUZ};
    const Value *x = node_input(c, n, 0), *zero = node_input(c, n, 2);
    const DType t = type_attr(n, "output_dtype", zero ? zero->dtype : DT_U8);
    if (zero && zero->dtype != t) {
        node_error(c, n, "output_dtype is %s, zero points '%s' are %s", dtype_name(t), zero->name, dtype_name(zero->dtype));
        return false;
    }
    if (!check_type(c, n, "output type", t, allowed, COUNT_OF(allowed))) return false;
    if (!check_type(c, n, "precision", type_attr(n, "precision", DT_F32), wide_floats, COUNT_OF(wide_floats))) return false;
    return linear_fits(c, n) && output_set(c, n, 0, t, x->rank, x->dims);
}

static Layout linear_layout(Lower *l, const Node *n, const View *x)
{
    Compilation *c = lower_compilation(l);
    const Dim one = dim_const(c, 1);
    const int64_t block = linear_block(n);
    if (block == 0 && is_one(c, node_input(c, n, 1))) return (Layout){0, one, one, 1, 1};
    const int axis = axis_normal(c, n, attr_int(n, "axis"), x->rank);
    const Dim inner = product_of_dims(c, x->dims, axis + 1, x->rank);
    if (block == 0) return (Layout){1, inner, x->dims[axis], 1, 1};
    return (Layout){2, inner, x->dims[axis], ceil_div(lower_upper(l, x->dims[axis]), block), block};
}

static Kernel *linear_begin(Lower *l, const Node *n, const char *template, View *out)
{
    const View x = lower_input(l, n, 0);
    const Layout layout = linear_layout(l, n, &x);
    const bool given = node_input(lower_compilation(l), n, 2) != NULL;
    View scale = dense_input(l, n, 1), zero = {0};
    if (given) zero = dense_input(l, n, 2);
    *out = lower_output(l, n, 0);
    Kernel *k = kernel_begin(l, n, template);
    kernel_in(k, "X", x);
    kernel_in(k, "S", scale);
    if (given) kernel_in(k, "Z", zero);
    kernel_out(k, "Y", *out);
    kernel_int(k, "ZP", given);
    set_layout(l, k, &layout);
    set_places(l, k, &x, out);
    return k;
}

static void dequantize_lower(Lower *l, Node *n)
{
    View out;
    Kernel *k = linear_begin(l, n, "dequantize", &out);
    kernel_text(k, "SOURCE", "i");
    kernel_int(k, "BITS", 0);
    kernel_int(k, "ZERO_POINT", 0);
    launch_elementwise(l, k, &out);
}

void quantized_range(DType t, double *low, double *high)
{
    const int bits = dtype_bits(t);
    const bool has_sign = t == DT_I8 || t == DT_I16 || t == DT_I4 || t == DT_I2;
    *low = has_sign ? -(double)(1 << (bits - 1)) : 0.0;
    *high = (double)((1 << (has_sign ? bits - 1 : bits)) - 1);
}

static double largest_small_float(DType t)
{
    return t == DT_F4E2M1 ? 6 : t == DT_F8E4M3FN ? 448 : t == DT_F8E4M3FNUZ ? 240 : 57344;
}

/* Floats of 8 bits lose what lies beyond their range when saturate is 0; storing does that. */
static void set_stored(Kernel *k, const Node *n, DType t)
{
    double low, high;
    bool saturate = true;
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, "saturate") == 0) saturate = n->attrs[i].i != 0;
    if (dtype_is_float(t)) {
        kernel_float(k, "HIGHEST", largest_small_float(t));
        kernel_text(k, "STORED(v, zero)", saturate ? "gp_saturate(v + zero, HIGHEST)" : "(v + zero)");
        return;
    }
    quantized_range(t, &low, &high);
    kernel_float(k, "LOWEST", low);
    kernel_float(k, "HIGHEST", high);
    kernel_text(k, "STORED(v, zero)", "(int)FMINF(FMAXF(RINTF(v) + zero, LOWEST), HIGHEST)");
}

static void quantize_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View out;
    Kernel *k = linear_begin(l, n, "quantize", &out);
    const DType precision = type_attr(n, "precision", node_input(c, n, 1)->dtype);
    kernel_text(k, "QUOTIENT", precision == DT_F16 ? "RND_F16" : precision == DT_BF16 ? "RND_BF16" : "RND_F32");
    set_stored(k, n, node_output(c, n, 0)->dtype);
    launch_elementwise(l, k, &out);
}

#define FLOATS "f32 f16 bf16"
#define NARROW "u8 i8 u16 i16 u4 i4 u2 i2 f4e2m1 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"
#define SCALES FLOATS " f8e8m0"
#define DEQUANTIZE(domain_, since_, more_, out_) \
    {.domain = domain_, .name = "DequantizeLinear", .since = since_, \
     .schema = "x:P, x_scale:S, x_zero_point:P? -> y:" out_ " ; axis:int=1" more_ " | P=" NARROW " i32, S=" SCALES ", Y=" FLOATS, \
     .shape = dequantize_shape, .lower = dequantize_lower}
#define QUANTIZE(domain_, since_, more_) \
    {.domain = domain_, .name = "QuantizeLinear", .since = since_, \
     .schema = "x:T, y_scale:S, y_zero_point:Z? -> y:Y ; axis:int=1" more_ \
               " | T=" FLOATS " i32, S=" SCALES ", Z=" NARROW ", Y=" NARROW, \
     .shape = quantize_shape, .lower = quantize_lower}

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "MatMulNBits", .since = 1,
     .schema = "A:T, B:u8, scales:S, zero_points:Z?, g_idx:i32?, bias:T? -> Y:T ; K:int, N:int, bits:int=4, block_size:int, "
               "accuracy_level:int=0, weight_prepacked:int=0 | T=" FLOATS ", S=" FLOATS ", Z=u8 " FLOATS,
     .facts = OP_EPILOGUE, .shape = nbits_shape, .lower = nbits_lower, .by_row = nbits_by_row},
    {.domain = "com.microsoft", .name = "GatherBlockQuantized", .since = 1,
     .schema = "data:D, indices:I, scales:T, zero_points:D? -> output:T ; bits:int=4, block_size:int=128, gather_axis:int=0, "
               "quantize_axis:int=1 | D=u8 u4 i4, I=i32 i64, T=" FLOATS,
     .shape = gather_shape, .lower = gather_lower},
    DEQUANTIZE("", 10, "", "S"),
    DEQUANTIZE("", 21, ", block_size:int=0", "S"),
    DEQUANTIZE("", 23, ", block_size:int=0, output_dtype:int=0", "Y"),
    DEQUANTIZE("com.microsoft", 1, ", block_size:int=0", "S"),
    QUANTIZE("", 10, ""),
    QUANTIZE("", 19, ", saturate:int=1"),
    QUANTIZE("", 21, ", saturate:int=1, block_size:int=0, output_dtype:int=0"),
    QUANTIZE("", 23, ", saturate:int=1, block_size:int=0, output_dtype:int=0, precision:int=0"),
    QUANTIZE("com.microsoft", 1, ", saturate:int=1, block_size:int=0"),
};

const OpFamily ops_quant = {rows, COUNT_OF(rows), "compiler/ops/quant.c"};
