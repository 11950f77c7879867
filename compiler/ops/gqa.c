/* gqa.c - com.microsoft GroupQueryAttention: new keys and values go behind the old ones, after an optional head norm and
 * rotation, then each query row attends to its own past. Lengths come from seqlens_k, on the device. */
#include "lower.h"
#include "ops/gqa.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

static bool has_output(const Node *n, int i)
{
    return i < n->output_count && n->outputs[i];
}

static bool refused(Compilation *c, const Node *n)
{
    const char *what = NULL;
    if (strcmp(attr_string(n, "k_quant_type"), "NONE") != 0 || strcmp(attr_string(n, "v_quant_type"), "NONE") != 0 ||
        node_input(c, n, GQ_K_SCALE) || node_input(c, n, GQ_V_SCALE))
        what = "quantised caches (k_quant_type, v_quant_type, k_scale, v_scale) are";
    else if (attr_int(n, "qk_output") != 0 || has_output(n, 3))
        what = "output_qk is";
    if (what) node_error(c, n, "%s not supported", what);
    return what != NULL;
}

/* Rows of the present caches, 0 when not known yet. A past buffer of constant length is the whole cache, unless the total
 * says that it grows. */
static Dim present_rows(Compilation *c, const Node *n, const Sizes *z)
{
    const Dim sum = z->past && z->fresh ? dim_add(c, z->past, z->fresh) : 0;
    Dim *total = NULL;
    int count = 0;
    int64_t past, known;
    const bool told = value_dims(c, node_input(c, n, GQ_TOTAL), &total, &count) && count == 1 && total[0];
    if (!sum) return 0;
    if (!dim_is_const(c, z->past, &past) || past == 0) {
        if (told) dim_equate(c, n, "total_sequence_length counts old and new rows", total[0], sum);
        return sum;
    }
    if (told && dim_is_const(c, total[0], &known)) return dim_const(c, known > past ? known : past);
    return told && dim_equal(c, total[0], sum) ? sum : z->past;
}

static bool read_head(Compilation *c, const Node *n, Sizes *z)
{
    const Value *q = node_input(c, n, GQ_QUERY);
    const int64_t parts = z->packed ? z->heads + 2 * z->kv_heads : z->heads;
    const Dim width = q->dims[2] ? dim_resolve(c, q->dims[2]) : 0;
    z->head = width ? dim_div_exact(c, width, dim_const(c, parts)) : 0;
    if (z->head || !width || !dim_is_const(c, width, NULL)) return true;
    node_error(c, n, "the query's last dim %s is not divisible by %lld heads", dim_text(c, width), (long long)parts);
    return false;
}

/* sliding_window_cache lets whoever allocates the cache choose its rows, from the window's length on; the node drops rows only
 * when they are fewer than the positions. A plan's cache has a row for each position, so that there the attribute says nothing. */
static bool window_open(Compilation *c, const Node *n, const Sizes *z)
{
    int64_t past;
    if (!attr_int(n, "sliding_window_cache") || !z->past || !dim_is_const(c, z->past, &past) || past == 0) return true;
    node_error(c, n, "sliding_window_cache with a cache of %lld rows is not supported; expected rows that are a symbol", (long long)past);
    return false;
}

bool gqa_sizes(Compilation *c, const Node *n, Sizes *z)
{
    const Value *q = node_input(c, n, GQ_QUERY), *past = node_input(c, n, GQ_PAST_KEY);
    memset(z, 0, sizeof *z);
    z->heads = attr_int(n, "num_heads");
    z->kv_heads = attr_int(n, "kv_num_heads");
    if (z->heads <= 0 || z->kv_heads <= 0 || z->heads % z->kv_heads) {
        node_error(c, n, "num_heads %lld must be a multiple of kv_num_heads %lld", (long long)z->heads, (long long)z->kv_heads);
        return false;
    }
    if (q->rank != 3) {
        node_error(c, n, "query '%s' has rank %d; expected 3", q->name, q->rank);
        return false;
    }
    if (!node_input(c, n, GQ_KEY) != !node_input(c, n, GQ_VALUE)) {
        node_error(c, n, "key and value must be given together");
        return false;
    }
    z->packed = !node_input(c, n, GQ_KEY);
    z->batch = q->dims[0];
    z->rows = q->dims[1];
    if (past && past->rank != 4) {
        node_error(c, n, "past_key '%s' has rank %d; expected 4", past->name, past->rank);
        return false;
    }
    z->past = past ? past->dims[2] : dim_const(c, 0);
    z->fresh = z->packed ? z->rows : node_input(c, n, GQ_KEY)->dims[1];
    if (z->fresh && !dim_is(c, dim_resolve(c, z->fresh), 0)) z->fresh = z->rows;
    if (!read_head(c, n, z)) return false;
    z->total = present_rows(c, n, z);
    return !diag_failed(c) && window_open(c, n, z);
}

static bool caches_fit(Compilation *c, const Node *n, const Sizes *z)
{
    const Value *key = node_input(c, n, GQ_PAST_KEY), *value = node_input(c, n, GQ_PAST_VALUE);
    if (!key && !value) return true;
    if (!key || !value || value->rank != 4) {
        node_error(c, n, "past_key and past_value must be given together, with rank 4");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const Value *v = i ? value : key;
        if (!dim_equate(c, n, "a cache has the query's batch", v->dims[0], z->batch) ||
            !dim_equate(c, n, "a cache has kv_num_heads", v->dims[1], dim_const(c, z->kv_heads)) ||
            !dim_equate(c, n, "a cache has the head size of the query", v->dims[3], z->head))
            return false;
    }
    return dim_equate(c, n, "past keys and values are as many", value->dims[2], key->dims[2]);
}

static bool keys_fit(Compilation *c, const Node *n, const Sizes *z)
{
    for (int i = GQ_KEY; i <= GQ_VALUE && !z->packed; i++) {
        const Value *v = node_input(c, n, i);
        if (v->rank != 3) {
            node_error(c, n, "'%s' has rank %d; expected 3", v->name, v->rank);
            return false;
        }
        if (!dim_equate(c, n, "new keys have the query's batch", v->dims[0], z->batch) ||
            !dim_equate(c, n, "new keys are as many as query rows, or none", v->dims[1], z->fresh) ||
            !dim_equate(c, n, "new keys have kv_num_heads heads", v->dims[2], z->head ? dim_scale(c, z->head, z->kv_heads) : 0))
            return false;
    }
    return true;
}

static bool lengths_fit(Compilation *c, const Node *n, const Sizes *z)
{
    const Value *lengths = node_input(c, n, GQ_LENGTHS);
    if (lengths->rank > 2) {
        node_error(c, n, "seqlens_k '%s' has rank %d; expected 0, 1 or 2", lengths->name, lengths->rank);
        return false;
    }
    const Dim one = dim_const(c, 1), *dims = lengths->dims;
    const char *rule = "seqlens_k must have batch_size elements";
    if (lengths->rank == 2 && !dim_is(c, dims[0], 1)) return dim_equate(c, n, rule, dims[0], z->batch) && dim_equate(c, n, rule, dims[1], one);
    for (int i = 0; i < lengths->rank; i++)
        if (!dim_is(c, dims[i], 1) && !dim_equate(c, n, rule, dims[i], z->batch)) return false;
    return true;
}

static bool rotary_fits(Compilation *c, const Node *n, const Sizes *z)
{
    const Value *cosine = node_input(c, n, GQ_COS), *sine = node_input(c, n, GQ_SIN), *at = node_input(c, n, GQ_POSITIONS);
    int64_t half, head;
    if (!attr_int(n, "do_rotary")) return true;
    if (!cosine || !sine || cosine->rank != 2 || sine->rank != 2) {
        node_error(c, n, "do_rotary needs cos_cache and sin_cache of rank 2");
        return false;
    }
    if (at && at->rank == 2 && (!dim_equate(c, n, "a position for each row", at->dims[0], z->batch) ||
                                !dim_equate(c, n, "a position for each row", at->dims[1], z->rows)))
        return false;
    if (dim_is_const(c, cosine->dims[1], &half) && dim_is_const(c, z->head, &head) && 2 * half > head) {
        node_error(c, n, "cos_cache is %lld wide, more than half of the head size %lld", (long long)half, (long long)head);
        return false;
    }
    return dim_equate(c, n, "cos and sin have one shape", cosine->dims[0], sine->dims[0]) &&
           dim_equate(c, n, "cos and sin have one shape", cosine->dims[1], sine->dims[1]);
}

static bool gqa_shape(Compilation *c, Node *n)
{
    const Value *q = node_input(c, n, GQ_QUERY), *bias = node_input(c, n, GQ_BIAS);
    Sizes z;
    if (heads_unranked(c, n)) return output_set(c, n, 0, q->dtype, -1, NULL);
    if (refused(c, n) || !gqa_sizes(c, n, &z) || !caches_fit(c, n, &z) || !keys_fit(c, n, &z)) return false;
    if (!lengths_fit(c, n, &z) || !rotary_fits(c, n, &z)) return false;
    if (bias && !mask_fits(c, n, bias, z.batch, dim_const(c, z.heads), z.rows, z.total)) return false;
    const Dim out[3] = {z.batch, z.rows, z.head ? dim_scale(c, z.head, z.heads) : 0};
    const Dim cache[4] = {z.batch, dim_const(c, z.kv_heads), z.total, z.head};
    if (!output_set(c, n, 0, q->dtype, 3, out)) return false;
    for (int i = 1; i < 3; i++) {
        const Value *past = node_input(c, n, GQ_PAST_KEY + i - 1);
        if (has_output(n, i) && !output_set(c, n, i, past ? past->dtype : q->dtype, 4, cache)) return false;
    }
    return true;
}

/* ---- lowering */

/* Input INPUT as [B, heads, S, head]; of nodes that were put off it is [B, S, heads, head] still. */
static View heads_of(Lower *l, const Node *n, int input, int64_t heads, int64_t head)
{
    const View v = lower_input(l, n, input);
    View out = v;
    if (v.rank != 4) return heads_split(lower_compilation(l), &v, 0, heads, head);
    out.dims[1] = v.dims[2];
    out.dims[2] = v.dims[1];
    out.stride[1] = v.stride[2];
    out.stride[2] = v.stride[1];
    return out;
}

static Parts read_parts(Lower *l, const Node *n, const Sizes *z)
{
    Compilation *c = lower_compilation(l);
    Parts p;
    p.head = heads_constant(c, n, lower_dim(l, z->head), "the head size");
    if (p.head < 0) return p;
    p.append = !dim_is(c, lower_dim(l, z->fresh), 0);
    p.q = heads_of(l, n, GQ_QUERY, z->heads, p.head);
    if (!p.append) return p;
    if (z->packed) {
        const View q = lower_input(l, n, GQ_QUERY);
        p.k = heads_split(c, &q, z->heads, z->kv_heads, p.head);
        p.v = heads_split(c, &q, z->heads + z->kv_heads, z->kv_heads, p.head);
    } else {
        const View v = lower_input(l, n, GQ_VALUE);
        p.k = heads_of(l, n, GQ_KEY, z->kv_heads, p.head);
        p.v = heads_split(c, &v, 0, z->kv_heads, p.head);
    }
    return p;
}

static void prepare_norms(Lower *l, Kernel *k, const Node *n)
{
    Compilation *c = lower_compilation(l);
    const bool q = node_input(c, n, GQ_Q_NORM) != NULL, key = node_input(c, n, GQ_K_NORM) != NULL;
    kernel_int(k, "NORM", q || key);
    kernel_int(k, "NORM_Q", q);
    kernel_int(k, "NORM_K", key);
    kernel_float(k, "EPSILON", attr_float(n, "qk_norm_epsilon"));
    if (q) kernel_in(k, "QW", lower_input(l, n, GQ_Q_NORM));
    if (key) kernel_in(k, "KW", lower_input(l, n, GQ_K_NORM));
}

/* Returns half of the elements that are rotated. */
static int64_t prepare_rotary(Lower *l, Kernel *k, const Node *n)
{
    Compilation *c = lower_compilation(l);
    const bool rotary = attr_int(n, "do_rotary") != 0, positions = rotary && node_input(c, n, GQ_POSITIONS);
    int64_t half = 0;
    if (rotary) {
        const View cosine = lower_input(l, n, GQ_COS);
        half = heads_constant(c, n, cosine.dims[1], "the width of cos_cache");
        kernel_in(k, "COS", cosine);
        kernel_in(k, "SIN", lower_input(l, n, GQ_SIN));
    }
    if (positions) kernel_in(k, "POS", lower_input(l, n, GQ_POSITIONS));
    kernel_int(k, "HALF", half);
    kernel_int(k, "POSITIONS", positions);
    kernel_int(k, "INTERLEAVED", attr_int(n, "rotary_interleaved") != 0);
    return half;
}

/* Elements that a thread moves at once: more than one where so are all that it reads and writes, and two such vectors tile a head. Norms sum
 * single elements. */
static int prepare_width(Lower *l, const Node *n, const Parts *p, const View *turned, const Cache *keys, const Cache *values, int64_t half)
{
    View v[8] = {p->q, *turned};
    int count = 2;
    if (p->append) v[count++] = p->k, v[count++] = p->v, v[count++] = keys->present, v[count++] = values->present;
    if (half) v[count++] = lower_input(l, n, GQ_COS), v[count++] = lower_input(l, n, GQ_SIN);
    const int width = view_vector(l, &p->q);
    for (int i = 0; i < count; i++)
        if (v[i].store != p->q.store || view_vector(l, &v[i]) != width) return 1;
    return p->head % (2 * width) || half % width || node_input(lower_compilation(l), n, GQ_Q_NORM) || node_input(lower_compilation(l), n, GQ_K_NORM) ? 1 : width;
}

/* Norm, rotation, append: one launch. The query is copied only when it changes; returns it as the attention sees it. */
static View prepare(Lower *l, const Node *n, const Sizes *z, const Parts *p, const Cache *keys, const Cache *values, const Attend *a)
{
    Compilation *c = lower_compilation(l);
    const bool changes = attr_int(n, "do_rotary") || node_input(c, n, GQ_Q_NORM);
    const int64_t heads = (changes ? z->heads : 0) + (p->append ? 2 * z->kv_heads : 0);
    const int64_t items = lower_upper(l, p->q.dims[0]) * lower_upper(l, p->q.dims[2]) * heads;
    View turned = p->q;
    if (!heads) return turned;
    Kernel *k = kernel_begin(l, n, "gqa_prepare");
    if (changes) {
        turned = lower_temporary(l, "query", p->q.store, 4, p->q.dims);
        kernel_in(k, "Q", p->q);
        kernel_out(k, "QO", turned);
    }
    if (p->append) {
        kernel_in(k, "KN", p->k);
        kernel_in(k, "VN", p->v);
        kernel_inout(k, "KO", keys->present);
        kernel_inout(k, "VO", values->present);
    }
    attend_length_operand(k, a);
    kernel_int(k, "QHEADS", changes ? z->heads : 0);
    kernel_int(k, "KHEADS", p->append ? z->kv_heads : 0);
    kernel_int(k, "HEAD", p->head);
    kernel_int(k, "CAPACITY", keys->capacity < values->capacity ? keys->capacity : values->capacity);
    kernel_dim(k, "ROWS", p->q.dims[2]);
    kernel_dim(k, "BATCH", p->q.dims[0]);
    prepare_norms(l, k, n);
    const int64_t half = prepare_rotary(l, k, n);
    const int width = items > MANY_ROWS ? prepare_width(l, n, p, &turned, keys, values, half) : 1, threads = width > 1 ? 256 : 128;
    const int64_t lanes = width > 1 ? p->head / (2 * width) : 32;
    kernel_int(k, "V", width);
    kernel_int(k, "LANES", lanes);
    kernel_int(k, "THREADS", threads);
    kernel_text(k, "TYPE", dtype_token(p->q.store));
    kernel_rows(k);
    kernel_label(k, arena_text(&c->arena, "%s: append", n->name));
    kernel_bytes(k, 2 * dtype_bytes(p->q.store, items * p->head), 0); /* the new rows only */
    const int64_t batch = width > 1 ? lower_upper(l, p->q.dims[0]) : 1;
    kernel_launch(k, ceil_div(items / batch * lanes, threads), batch, 1, threads);
    return turned;
}

static void gqa_options(Lower *l, const Node *n, Attend *a, int64_t head)
{
    Compilation *c = lower_compilation(l);
    const double scale = attr_given(n, "scale") ? attr_float(n, "scale") : 0.0;
    a->scale = scale != 0.0 ? scale : 1.0 / sqrt((double)head);
    a->softcap = attr_float(n, "softcap");
    a->window = attr_int(n, "local_window_size");
    a->causal = attr_int(n, "causal") != 0;
    a->smooth = attr_int(n, "smooth_softmax") == 1;
    if (node_input(c, n, GQ_BIAS)) {
        const View bias = lower_input(l, n, GQ_BIAS);
        a->mask = mask_view(c, &bias, &a->q);
    }
    if (node_input(c, n, GQ_SINKS)) a->sinks = lower_input(l, n, GQ_SINKS);
}

static Cache open_cache(Lower *l, const Node *n, const Sizes *z, const Parts *p, int input, int output)
{
    Compilation *c = lower_compilation(l);
    const Dim dims[4] = {z->batch, dim_const(c, z->kv_heads), z->total, z->head};
    Cache cache;
    if (p->append) return cache_open(l, n, input, output, dims, output == 1 ? p->k.store : p->v.store);
    cache.present = lower_input(l, n, input); /* nothing new: the present is the past */
    cache.capacity = lower_upper(l, cache.present.dims[2]);
    if (has_output(n, output)) lower_set_view(l, n, output, cache.present);
    return cache;
}

static void gqa_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    Sizes z;
    Attend a;
    memset(&a, 0, sizeof a);
    if (!gqa_sizes(c, n, &z)) return;
    const Parts p = read_parts(l, n, &z);
    if (p.head < 0) return;
    const Cache keys = open_cache(l, n, &z, &p, GQ_PAST_KEY, 1), values = open_cache(l, n, &z, &p, GQ_PAST_VALUE, 2);
    attend_lengths(l, n, GQ_LENGTHS, &a);
    a.lengths = LENGTH_LESS_ONE;
    const View y = lower_output(l, n, 0);
    const bool one = gqa_one_row_fits(l, n);
    a.y = heads_split(c, &y, 0, z.heads, p.head);
    a.q = one ? p.q : prepare(l, n, &z, &p, &keys, &values, &a);
    a.k = keys.present;
    a.v = values.present;
    gqa_options(l, n, &a, p.head);
    if (one) gqa_one_row(l, n, &z, &p, &keys, &values, &a);
    else attend(l, n, &a);
}

/* A buffer of constant length is written where the lengths say; one that grows, behind its old rows. */
static int gqa_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    const int input = output == 1 ? GQ_PAST_KEY : output == 2 ? GQ_PAST_VALUE : -1;
    const Value *past = input < 0 ? NULL : node_input(c, n, input), *present = input < 0 ? NULL : node_output(c, n, output);
    if (!past || !present) return -1;
    *axis = 2;
    *append = !dim_equal(c, past->dims[2], present->dims[2]);
    return node_input(c, n, GQ_KEY) && dim_is(c, dim_resolve(c, node_input(c, n, GQ_KEY)->dims[1]), 0) ? -1 : input;
}

static const char *gqa_row_lengths(Compilation *c, const Node *n) { return rows_vector(c, n, GQ_LENGTHS); }

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "GroupQueryAttention", .since = 1, .facts = OP_APPEND | OP_HEAD_NORM,
     .schema = "query:T, key:T?, value:T?, past_key:C?, past_value:C?, seqlens_k:i32, total_sequence_length:i32, cos_cache:T?, "
               "sin_cache:T?, position_ids:i64?, attention_bias:T?, head_sink:T?, k_scale:S?, v_scale:S?, q_norm_weight:T?, "
               "k_norm_weight:T? -> output:T, present_key:C?, present_value:C?, output_qk:T? ; "
               "causal:int=1, do_rotary:int=0, k_quant_type:string=NONE, kv_cache_bit_width:int=0, kv_num_heads:int, "
               "local_window_size:int=-1, num_heads:int, qk_norm_epsilon:float=1e-6, qk_output:int=0, rotary_interleaved:int=0, "
               "scale:float?, sliding_window_cache:int=0, smooth_softmax:int=-1, softcap:float=0.0, v_quant_type:string=NONE | "
               "T=f32 f16 bf16, C=f32 f16 bf16, S=f32",
     .shape = gqa_shape, .lower = gqa_lower, .inplace = gqa_inplace, .length_input = GQ_LENGTHS + 1, .row_lengths = gqa_row_lengths,
     .note = "not: quantised caches, output_qk, sliding_window_cache of constant rows"},
};

const OpFamily ops_gqa = {rows, COUNT_OF(rows), "compiler/ops/gqa.c"};
