/* gqa.c - com.microsoft GroupQueryAttention: new keys and values go behind the old ones, after an optional head norm and
 * rotation, then each query row attends to its own past. Lengths come from seqlens_k, on the device. */
#include "lower.h"
#include "ops/gemv.h"
#include "ops/heads.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

enum { GQ_QUERY, GQ_KEY, GQ_VALUE, GQ_PAST_KEY, GQ_PAST_VALUE, GQ_LENGTHS, GQ_TOTAL, GQ_COS, GQ_SIN, GQ_POSITIONS, GQ_BIAS, GQ_SINKS,
       GQ_K_SCALE, GQ_V_SCALE, GQ_Q_NORM, GQ_K_NORM };

typedef struct Sizes {
    int64_t heads, kv_heads;
    Dim batch, rows, past, total, head;
    Dim fresh;      /* new keys: as many as rows, or none: then the past is another layer's present, complete already */
    bool packed;
} Sizes;

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

static bool read_sizes(Compilation *c, const Node *n, Sizes *z)
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
    return lengths->rank < 1 || dim_is(c, lengths->dims[0], 1) ||
           dim_equate(c, n, "seqlens_k must have batch_size elements", lengths->dims[0], z->batch);
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
    if (refused(c, n) || !read_sizes(c, n, &z) || !caches_fit(c, n, &z) || !keys_fit(c, n, &z)) return false;
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

typedef struct Parts { View q, k, v; int64_t head; bool append; } Parts; /* [B, heads, S, D]; k, v: when they are appended */

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

static void prepare_rotary(Lower *l, Kernel *k, const Node *n)
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
    prepare_rotary(l, k, n);
    kernel_rows(k);
    kernel_label(k, arena_text(&c->arena, "%s: append", n->name));
    kernel_bytes(k, 2 * dtype_bytes(p->q.store, items * p->head), 0); /* the new rows only */
    kernel_launch(k, (items + 3) / 4, 1, 1, 128);
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

/* ---- one new row a sequence: all in one launch */

/* SLICE: keys that a warp has at once. A block's slices take up to ROOM bytes, which leaves some for the blocks of the kernels before and behind;
 * with ROOM_ANYWHERE no block takes more than 48 KB. A merge reads up to PARTS_BYTES. */
enum { MAX_GROUP = 8, SLICE = 16, ROOM = 64 * 1024, ROOM_ANYWHERE = 24 * 1024, PARTS_BYTES = 256 * 1024 };

static bool is_half(const Value *v) { return v && (v->dtype == DT_F16 || v->dtype == DT_BF16); }

/* Whether attention_one.cu takes the node in this signature; what only memory tells is given: buffers of states are aligned. */
static bool one_row_fits(Lower *l, const Node *n)
{
    Compilation *c = lower_compilation(l);
    Sizes z;
    int64_t head, batch;
    if (!read_sizes(c, n, &z) || !dim_is(c, lower_dim(l, z.rows), 1) || dim_is(c, lower_dim(l, z.fresh), 0)) return false;
    if (!dim_is_const(c, lower_dim(l, z.head), &head) || !dim_is_const(c, lower_dim(l, z.batch), &batch)) return false;
    if (!(head == 64 || head == 128 || head == 256) || z.heads / z.kv_heads > MAX_GROUP || batch * z.kv_heads > MAX_TICKETS) return false;
    const Value *keys = node_output(c, n, 1), *values = node_output(c, n, 2), *q_norm = node_input(c, n, GQ_Q_NORM), *k_norm = node_input(c, n, GQ_K_NORM);
    if ((q_norm && !q_norm->is_constant) || (k_norm && !k_norm->is_constant)) return false;
    return is_half(node_input(c, n, GQ_QUERY)) && is_half(keys) && is_half(values) && keys->dtype == values->dtype && !node_input(c, n, GQ_BIAS) &&
           attr_int(n, "causal") != 0 && keys->state && values->state && lower_upper(l, z.total) >= 64;
}

static bool is_reshape(const Node *n) { return strcmp(n->op->name, "Reshape") == 0; }

/* The node of FACTS that fuse gave to attention N, on the way to its INPUT: norm, rotation, reshapes between; NULL none. */
static const Node *head_node(const Graph *g, const Node *n, int input, unsigned facts)
{
    uint32_t p = n->inputs[input] ? g->values[n->inputs[input]].producer : 0;
    for (; p; p = g->values[g->nodes[p].inputs[0]].producer) {
        const Node *m = &g->nodes[p];
        const bool own = m->together == (uint32_t)(n - g->nodes) && (m->op->facts & (OP_NORM_ROW | OP_ROTARY));
        if (own && (m->op->facts & facts)) return m;
        if (!(own && (m->op->facts & OP_ROTARY)) && !(is_reshape(m) && m->inputs[0])) return NULL;
    }
    return NULL;
}

/* The norm that was put off for INPUT of attention N; NULL none. */
static const Node *head_norm(Lower *l, const Node *n, int input)
{
    const Node *norm = head_node(&l->c->graph, n, input, OP_NORM_ROW);
    return norm && l->made_by[norm - l->c->graph.nodes] < 0 ? norm : NULL;
}

/* Whether rotation R, of HEADS heads of HEAD, is one that the kernel can do: each sequence has its own row of cosines, or a position. */
static bool rotation_fits(Lower *l, const Node *r, int64_t heads, int64_t head)
{
    Compilation *c = l->c;
    const RotaryPorts ports = rotary_ports(r);
    const Value *x = node_input(c, r, 0), *cosine = node_input(c, r, ports.cosine), *positions = node_input(c, r, ports.positions);
    int64_t half;
    if (x->rank != 3 || attr_int(r, "num_heads") != heads || !dim_is(c, lower_dim(l, x->dims[2]), heads * head)) return false;
    if (!dim_is_const(c, lower_dim(l, cosine->dims[cosine->rank - 1]), &half) || 2 * half > head) return false;
    return positions ? positions->rank <= 2 : dim_is(c, lower_dim(l, cosine->dims[1]), 1);
}

/* The rotation of query and key before attention N that its kernel does in this signature; NULL: there is none, or they differ. */
static const Node *head_rotation(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const Node *q = head_node(&c->graph, n, GQ_QUERY, OP_ROTARY), *k = head_node(&c->graph, n, GQ_KEY, OP_ROTARY);
    Sizes z;
    int64_t head;
    if (!q || !k || attr_int(n, "do_rotary") || !read_sizes(c, n, &z) || !dim_is_const(c, lower_dim(l, z.head), &head)) return NULL;
    const RotaryPorts a = rotary_ports(q), b = rotary_ports(k);
    if (strcmp(q->domain, k->domain) != 0 || attr_int(q, "interleaved") != attr_int(k, "interleaved")) return NULL;
    if (q->inputs[a.cosine] != k->inputs[b.cosine] || q->inputs[a.sine] != k->inputs[b.sine]) return NULL;
    if (node_input(c, q, a.positions) != node_input(c, k, b.positions)) return NULL;
    return one_row_fits(l, n) && rotation_fits(l, q, z.heads, head) && rotation_fits(l, k, z.kv_heads, head) ? q : NULL;
}

/* Leaves node N to the attention behind it, which sees N's own input. */
static bool put_off(Lower *l, const Node *n)
{
    const uint32_t index = (uint32_t)(n - l->c->graph.nodes);
    l->views[n->outputs[0]] = lower_input(l, n, 0);
    l->fates[index] = (NodeFate){REAL_FUSED, -1, NULL};
    l->made_by[index] = -1;
    return true;
}

/* Whether nothing but what is put off stands between norm N and the attention. */
static bool leads_to(Lower *l, const Node *n, const Node *reader)
{
    const Graph *g = &l->c->graph;
    for (int input = GQ_QUERY; input <= GQ_KEY; input++)
        if (head_node(g, reader, input, OP_NORM_ROW) == n) return !head_node(g, reader, input, OP_ROTARY) || head_rotation(l, reader);
    return false;
}

/* Whether reshape N puts heads into one axis again, [B, S, heads, head] to [B, S, heads * head], behind what was put off. */
static bool merges_heads(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const Value *x = node_input(c, n, 0), *y = node_output(c, n, 0);
    if (!x->producer || l->made_by[x->producer] >= 0 || x->rank != 4 || y->rank != 3) return false;
    return dim_equal(c, x->dims[0], y->dims[0]) && dim_equal(c, x->dims[1], y->dims[1]) && l->views[n->inputs[0]].rank == 4;
}

bool gqa_defer(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const Node *reader = n->together ? &c->graph.nodes[n->together] : NULL;
    NormRow r;
    Sizes z;
    if (!reader || !(reader->op->facts & OP_HEAD_NORM) || l->signature->kind == SIG_LOAD || l->guarded) return false;
    if (is_reshape(n)) return merges_heads(l, n) && put_off(l, n);
    if (n->op->facts & OP_ROTARY) return head_rotation(l, reader) && put_off(l, n);
    if (!leads_to(l, n, reader)) return false;
    if (!norm_row(c, n, &r) || r.skip >= 0 || !one_row_fits(l, reader) || !read_sizes(c, reader, &z)) return false;
    if (node_input(c, reader, GQ_Q_NORM) || node_input(c, reader, GQ_K_NORM) || !node_input(c, reader, GQ_KEY)) return false;
    const Value *x = node_input(c, n, 0), *scale = node_input(c, n, r.scale);
    const Dim head = lower_dim(l, z.head);
    if (x->dtype != node_output(c, n, 0)->dtype || scale->dtype != x->dtype || !scale->is_constant || scale->rank != 1) return false;
    if (lower_dim(l, scale->dims[0]) != head || lower_dim(l, x->dims[x->rank - 1]) != head) return false;
    return put_off(l, n);
}

/* Norms of the query and the key: the node's own inputs, or such that were put off. */
static void one_row_norms(Lower *l, Kernel *k, const Node *n)
{
    Compilation *c = l->c;
    for (int i = 0; i < 2; i++) {
        const Node *off = head_norm(l, n, i ? GQ_KEY : GQ_QUERY);
        const int own = i ? GQ_K_NORM : GQ_Q_NORM;
        NormRow r;
        kernel_int(k, i ? "NORM_K" : "NORM_Q", off || node_input(c, n, own));
        if (off && !norm_row(c, off, &r)) fault("gqa", "norm '%s' was put off, but is none of a row", off->name);
        if (off) kernel_in(k, i ? "KW" : "QW", lower_input(l, off, r.scale));
        else if (node_input(c, n, own)) kernel_in(k, i ? "KW" : "QW", lower_input(l, n, own));
        kernel_float(k, i ? "EPSILON_K" : "EPSILON_Q", off ? r.epsilon : attr_float(n, "qk_norm_epsilon"));
        if (off) l->fates[off - c->graph.nodes].launch = l->launch_count;
    }
}

/* Whether the kernel may read the length and the old rows before it waits for those before it: the length is a word that the end of
 * a step moves on, the rows are a state's, which this node alone writes. */
static bool one_row_early(Lower *l, const Node *n, const Attend *a)
{
    Compilation *c = l->c;
    if (!a->known || l->guarded || n->loop) return false;
    if (!dim_is_const(c, a->known, NULL) && !dim_is_const(c, dim_sub(c, a->known, lower_dim(l, dim_symbol(c, c->position))), NULL)) return false;
    for (int i = 0; i < 2; i++) {
        const Value *past = node_input(c, n, i ? GQ_PAST_VALUE : GQ_PAST_KEY), *present = node_output(c, n, 1 + i);
        if (!past || !past->is_input || !past->state || present->state != past->state || c->pairs[past->state - 1].update == 2) return false;
    }
    return true;
}

/* The row of a table of angles for each sequence: [B, 1, HALF] as [B, HALF]. */
static View turn_table(Lower *l, const Node *n, int input)
{
    View v = lower_input(l, n, input);
    if (v.rank == 2) return v;
    v.rank = 2;
    v.dims[1] = v.dims[2];
    v.stride[1] = v.stride[2];
    return v;
}

/* How query and key are rotated: by N itself or by a rotation that was put off. EARLY: what depends on the length and on constants alone is
 * read before the kernel waits. */
static void one_row_turn(Lower *l, Kernel *k, const Node *n, bool early)
{
    Compilation *c = l->c;
    const Node *off = head_rotation(l, n), *turn = off ? off : n;
    const RotaryPorts ports = off ? rotary_ports(off) : (RotaryPorts){GQ_POSITIONS, GQ_COS, GQ_SIN};
    const bool turns = off || attr_int(n, "do_rotary");
    const Value *positions = turns ? node_input(c, turn, ports.positions) : NULL;
    int64_t half = 0;
    kernel_int(k, "TURN_EARLY", turns && early && !off && !positions && node_input(c, n, GQ_COS)->is_constant && node_input(c, n, GQ_SIN)->is_constant);
    if (turns) {
        const View cosine = turn_table(l, turn, ports.cosine);
        half = heads_constant(c, n, cosine.dims[1], "the width of cos_cache");
        kernel_in(k, "COS", cosine);
        kernel_in(k, "SIN", turn_table(l, turn, ports.sine));
    }
    if (positions) kernel_in(k, "POS", lower_input(l, turn, ports.positions));
    const bool each = positions && positions->rank == 2;
    kernel_text(k, "TURN_AT", each ? "(idx)POS_LD(POS_AT(batch, 0))" : positions ? "(idx)POS_LD(POS_OFF)" : off ? "(idx)batch" : "(idx)past");
    kernel_int(k, "HALF", half);
    kernel_int(k, "INTERLEAVED", turns && attr_int(turn, off ? "interleaved" : "rotary_interleaved") != 0);
    for (int input = GQ_QUERY; off && input <= GQ_KEY; input++) l->fates[head_node(&c->graph, n, input, OP_ROTARY) - c->graph.nodes].launch = l->launch_count;
}

/* WARPS have keys; CREW, in all, the new row and the sums. */
typedef struct OneRowCut { int64_t warps, crew, share, splits, shared; } OneRowCut;

/* How many keys of a head a block has at once, SHARE, which it reads while the kernels before it run; for more of them it pays to have another
 * block, as long as all HEADS of them fit on the device at twice. */
static OneRowCut one_row_cut(Compilation *c, int64_t head, int64_t group, int64_t heads, int64_t keys)
{
    const int64_t slot = 4 * SLICE * head, limit = codegen_shared_limit(c, c->options.targets); /* slot: bytes of a slice */
    const int64_t room = limit >= ROOM + 16 * 1024 ? ROOM : ROOM_ANYWHERE;
    OneRowCut cut = {.warps = room / slot < 16 ? room / slot : 16, .splits = 1};
    cut.crew = group + 2 > 8 ? group + 2 : 8; /* a warp for each head of the new row */
    if (cut.crew < cut.warps) cut.crew = cut.warps;
    cut.share = cut.warps * SLICE;
    cut.shared = cut.warps * slot;
    while (cut.splits < 64 && 2 * cut.splits * heads <= 264 && cut.splits * cut.share < keys && 2 * cut.splits * group * head * 4 <= PARTS_BYTES) cut.splits *= 2;
    return cut;
}

static void one_row_launch(Lower *l, const Node *n, const Sizes *z, const Parts *p, const Cache *keys, const Cache *values, const Attend *a)
{
    Compilation *c = l->c;
    const int64_t group = z->heads / z->kv_heads, batch = lower_upper(l, p->q.dims[0]);
    const int64_t capacity = keys->capacity < values->capacity ? keys->capacity : values->capacity;
    const OneRowCut cut = one_row_cut(c, p->head, group, z->kv_heads * batch, a->window > 0 && a->window < capacity ? a->window : capacity);
    const Dim shape[5] = {p->q.dims[0], dim_const(c, z->kv_heads), dim_const(c, cut.splits), dim_const(c, group), dim_const(c, p->head + 4)};
    Kernel *k = kernel_begin(l, n, "attention_one");
    kernel_in(k, "Q", p->q);
    kernel_in(k, "KN", p->k);
    kernel_in(k, "VN", p->v);
    kernel_inout(k, "K", keys->present);
    kernel_inout(k, "V", values->present);
    attend_length_operand(k, a);
    kernel_out(k, "Y", a->y);
    kernel_out(k, "PART", lower_temporary(l, arena_text(&c->arena, "%s: parts", n->name), DT_F32, 5, shape));
    kernel_inout(k, "TICKETS", tickets_view(l, 2, shape));
    attend_sinks(k, a);
    const bool early = one_row_early(l, n, a);
    one_row_norms(l, k, n);
    one_row_turn(l, k, n, early);
    kernel_rows(k);
    kernel_text(k, "TYPE", keys->present.store == DT_F16 ? "F16" : "BF16");
    kernel_text(k, "ROW_TYPE", p->q.store == DT_F16 ? "F16" : "BF16");
    kernel_int(k, "D", p->head);
    kernel_int(k, "GROUP", group);
    kernel_int(k, "ALIKE", keys->present.store == p->q.store);
    kernel_int(k, "SLICE", SLICE);
    kernel_int(k, "WARPS", cut.warps);
    kernel_int(k, "SPLITS", cut.splits);
    kernel_int(k, "SHARE", cut.share);
    kernel_int(k, "EARLY", early);
    kernel_int(k, "CAPACITY", capacity);
    kernel_int(k, "WINDOW", a->window > 0 ? a->window : 0);
    kernel_int(k, "HAS_SOFTCAP", a->softcap > 0);
    kernel_float(k, "SOFTCAP", a->softcap);
    kernel_float(k, "SCALE", a->scale);
    kernel_shared(k, cut.shared);
    const int64_t row = 2 * batch * z->kv_heads * dtype_bytes(keys->present.store, p->head);
    kernel_bytes(k, 2 * row + 2 * batch * z->heads * dtype_bytes(p->q.store, p->head), row);
    kernel_launch(k, cut.splits, z->kv_heads, batch, (int)(32 * cut.crew));
}

static void gqa_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    Sizes z;
    Attend a;
    memset(&a, 0, sizeof a);
    if (!read_sizes(c, n, &z)) return;
    const Parts p = read_parts(l, n, &z);
    if (p.head < 0) return;
    const Cache keys = open_cache(l, n, &z, &p, GQ_PAST_KEY, 1), values = open_cache(l, n, &z, &p, GQ_PAST_VALUE, 2);
    attend_lengths(l, n, GQ_LENGTHS, &a);
    a.lengths = LENGTH_LESS_ONE;
    const View y = lower_output(l, n, 0);
    const bool one = one_row_fits(l, n);
    a.y = heads_split(c, &y, 0, z.heads, p.head);
    a.q = one ? p.q : prepare(l, n, &z, &p, &keys, &values, &a);
    a.k = keys.present;
    a.v = values.present;
    gqa_options(l, n, &a, p.head);
    if (one) one_row_launch(l, n, &z, &p, &keys, &values, &a);
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
