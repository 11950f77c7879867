/* mha.c - com.microsoft MultiHeadAttention and Attention: as many key heads as query heads, an additive bias of the projections, masks
 * that add a finite value. Attention makes query, key and value itself: one product of its input and its weights. */
#include "ops/heads.h"
#include "ops/move.h"
#include "ops/product.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

/* Inputs by meaning, -1 none; key, value: the query's own for Attention. */
typedef struct Ports { int bias, padding, scores, past_key, past_value, past_length, beams; } Ports;
static const Ports multi_head = {3, 4, 5, 6, 7, 8, 9}, whole = {2, 3, 5, 4, 4, 6, -1};

typedef enum Form { SEPARATE, PACKED_QKV, PACKED_KV, GIVEN } Form; /* GIVEN: keys and values are [B, heads, L, D], without bias */
typedef struct Sizes {
    Form form;
    int64_t heads;
    Dim batch, rows, fresh, past, total; /* query rows; new keys; old keys; all keys */
    Dim head, vhead;
} Sizes;

static bool is_whole(const Node *n) { return !strcmp(n->op_type, "Attention"); }
static const Ports *ports_of(const Node *n) { return is_whole(n) ? &whole : &multi_head; }
static bool has_output(const Node *n, int i) { return i < n->output_count && n->outputs[i]; }

static bool refused(Compilation *c, const Node *n)
{
    const Ports *p = ports_of(n);
    const char *what = NULL;
    if (node_input(c, n, p->past_length)) what = "past_sequence_length (a cache of constant length)";
    else if (p->beams >= 0 && node_input(c, n, p->beams)) what = "cache_indirection";
    else if (has_output(n, 3)) what = "output qk";
    else if (is_whole(n) && attr_int(n, "do_rotary")) what = "do_rotary";
    else if (is_whole(n) && attr_int(n, "past_present_share_buffer")) what = "past_present_share_buffer";
    if (what) node_error(c, n, "%s is not supported", what);
    return what != NULL;
}

/* 0: not known yet, or an error was reported. */
static Dim per_head(Compilation *c, const Node *n, const char *what, Dim width, int64_t heads)
{
    const Dim known = width ? dim_resolve(c, width) : 0, d = known ? dim_div_exact(c, known, dim_const(c, heads)) : 0;
    if (!d && known && dim_is_const(c, known, NULL))
        node_error(c, n, "%s %s is not divisible by %lld heads", what, dim_text(c, known), (long long)heads);
    return d;
}

static bool wrong_rank(Compilation *c, const Node *n, const Value *v, const char *expected)
{
    node_error(c, n, "input '%s' has rank %d; expected %s", v->name, v->rank, expected);
    return false;
}

/* ---- sizes: MultiHeadAttention */

static bool keys_sizes(Compilation *c, const Node *n, const Value *k, const Value *v, Sizes *z)
{
    if (k->rank == 5 && !v) {
        z->form = PACKED_KV;
        z->fresh = k->dims[1];
        z->vhead = z->head;
        return dim_equate(c, n, "packed keys have the query's heads", k->dims[2], dim_const(c, z->heads)) &&
               dim_equate(c, n, "packed keys and values are two", k->dims[3], dim_const(c, 2)) &&
               dim_equate(c, n, "packed keys have the query's head size", k->dims[4], z->head);
    }
    if (!v || v->rank != k->rank || (k->rank != 3 && k->rank != 4)) return wrong_rank(c, n, v ? v : k, "keys and values of rank 3 or of rank 4, or packed keys of rank 5");
    z->form = k->rank == 4 ? GIVEN : SEPARATE;
    z->fresh = k->dims[k->rank - 2];
    if (z->form == SEPARATE) {
        z->vhead = per_head(c, n, "the value's hidden size", v->dims[2], z->heads);
        return !diag_failed(c) && dim_equate(c, n, "query and key heads have one size", k->dims[2], z->head ? dim_scale(c, z->head, z->heads) : 0) &&
               dim_equate(c, n, "keys and values are as many", v->dims[1], k->dims[1]);
    }
    z->vhead = v->dims[3];
    return dim_equate(c, n, "keys have the query's heads", k->dims[1], dim_const(c, z->heads)) &&
           dim_equate(c, n, "values have the query's heads", v->dims[1], dim_const(c, z->heads)) &&
           dim_equate(c, n, "query and key heads have one size", k->dims[3], z->head) &&
           dim_equate(c, n, "keys and values are as many", v->dims[2], k->dims[2]);
}

static bool multi_sizes(Compilation *c, const Node *n, Sizes *z)
{
    const Value *q = node_input(c, n, 0), *k = node_input(c, n, 1), *v = node_input(c, n, 2);
    z->batch = q->dims[0];
    z->rows = q->dims[1];
    if (q->rank == 5) {
        z->form = PACKED_QKV;
        z->fresh = q->dims[1];
        z->head = z->vhead = q->dims[4];
        if (k || v) node_error(c, n, "a packed query of rank 5 stands without key and value");
        return !diag_failed(c) && dim_equate(c, n, "a packed query has num_heads heads", q->dims[2], dim_const(c, z->heads)) &&
               dim_equate(c, n, "query, key and value are three", q->dims[3], dim_const(c, 3));
    }
    if (q->rank != 3) return wrong_rank(c, n, q, "3, or 5 when packed");
    z->head = per_head(c, n, "the query's hidden size", q->dims[2], z->heads);
    if (!k) node_error(c, n, "key is missing, and the query is not packed");
    return !diag_failed(c) && keys_sizes(c, n, k, v, z) && dim_equate(c, n, "keys have the query's batch", k->dims[0], q->dims[0]);
}

/* ---- sizes: Attention */

static bool whole_sizes(Compilation *c, const Node *n, Sizes *z)
{
    const Value *x = node_input(c, n, 0), *w = node_input(c, n, 1);
    const Attr *given = node_attr(n, "qkv_hidden_sizes");
    if (x->rank != 3) return wrong_rank(c, n, x, "3");
    if (w->rank != 2) return wrong_rank(c, n, w, "2");
    z->batch = x->dims[0];
    z->rows = z->fresh = x->dims[1];
    if (given->present && given->count) {
        if (given->count != 3 || given->ints[0] != given->ints[1]) {
            node_error(c, n, "qkv_hidden_sizes: expected three numbers, those of query and key equal");
            return false;
        }
        z->head = per_head(c, n, "the query's hidden size", dim_const(c, given->ints[0]), z->heads);
        z->vhead = per_head(c, n, "the value's hidden size", dim_const(c, given->ints[2]), z->heads);
        if (!diag_failed(c) && !dim_equate(c, n, "the weights make query, key and value", w->dims[1], dim_const(c, 2 * given->ints[0] + given->ints[2]))) return false;
    } else {
        z->head = z->vhead = per_head(c, n, "the weights' last dim", w->dims[1], 3 * z->heads);
    }
    return !diag_failed(c) && dim_equate(c, n, "the weights have a row for each column of the input", w->dims[0], x->dims[2]);
}

/* ---- shapes */

static bool past_fits(Compilation *c, const Node *n, Sizes *z)
{
    const Ports *p = ports_of(n);
    const int lead = is_whole(n) ? 1 : 0;
    z->past = dim_const(c, 0);
    for (int i = 0; i < (lead ? 1 : 2); i++) {
        const Value *v = node_input(c, n, i ? p->past_value : p->past_key);
        if (!v) continue;
        if (v->rank != 4 + lead) return wrong_rank(c, n, v, lead ? "5" : "4");
        if (z->form == GIVEN) node_error(c, n, "keys of rank 4 stand without a past");
        if (diag_failed(c) || !dim_equate(c, n, "a cache has the query's batch", v->dims[lead], z->batch) ||
            !dim_equate(c, n, "a cache has num_heads heads", v->dims[lead + 1], dim_const(c, z->heads)) ||
            !dim_equate(c, n, "a cache has the head size of the new keys", v->dims[lead + 3], i ? z->vhead : z->head))
            return false;
        if (i && !dim_equate(c, n, "past keys and values are as many", v->dims[2], z->past)) return false;
        z->past = v->dims[lead + 2];
    }
    if (!lead && !node_input(c, n, p->past_key) != !node_input(c, n, p->past_value)) {
        node_error(c, n, "past_key and past_value must be given together");
        return false;
    }
    z->total = z->past && z->fresh ? dim_add(c, z->past, z->fresh) : 0;
    return true;
}

/* Keys of a row that are masked: a length for each sequence, a row of marks, or a row for each query row. */
static bool padding_fits(Compilation *c, const Node *n, const Sizes *z)
{
    const Value *v = node_input(c, n, ports_of(n)->padding);
    if (!v) return true;
    if (v->rank < 1 || v->rank > 3) return wrong_rank(c, n, v, "1, 2 or 3");
    if (!dim_equate(c, n, "a mask has the query's batch", v->dims[0], z->batch)) return false;
    if (v->rank == 3 && !dim_equate(c, n, "a mask has the query's rows", v->dims[1], z->rows)) return false;
    return v->rank == 1 || dim_equate(c, n, "a mask is as long as the keys", v->dims[v->rank - 1], z->total);
}

static bool read_sizes(Compilation *c, const Node *n, Sizes *z)
{
    memset(z, 0, sizeof *z);
    z->heads = attr_int(n, "num_heads");
    if (z->heads < 1) {
        node_error(c, n, "num_heads is %lld; expected 1 or more", (long long)z->heads);
        return false;
    }
    return (is_whole(n) ? whole_sizes(c, n, z) : multi_sizes(c, n, z)) && past_fits(c, n, z);
}

static bool mha_shape(Compilation *c, Node *n)
{
    const Value *q = node_input(c, n, 0), *bias = node_input(c, n, ports_of(n)->bias), *scores = node_input(c, n, ports_of(n)->scores);
    Sizes z;
    if (heads_unranked(c, n)) return output_set(c, n, 0, q->dtype, -1, NULL);
    if (refused(c, n) || !read_sizes(c, n, &z) || !padding_fits(c, n, &z)) return false;
    if (is_whole(n) && has_output(n, 1) && z.head && z.vhead && !dim_equate(c, n, "one cache holds keys and values", z.vhead, z.head)) return false;
    if (bias && bias->rank != 1) return wrong_rank(c, n, bias, "1");
    if (bias && z.head && z.vhead && !dim_equate(c, n, "the bias is that of query, key and value", bias->dims[0],
                                                 dim_scale(c, dim_add(c, dim_scale(c, z.head, 2), z.vhead), z.heads)))
        return false;
    if (scores && !mask_fits(c, n, scores, z.batch, dim_const(c, z.heads), z.rows, z.total)) return false;
    const Dim out[3] = {z.batch, z.rows, z.vhead ? dim_scale(c, z.vhead, z.heads) : 0};
    const Dim both[5] = {dim_const(c, 2), z.batch, dim_const(c, z.heads), z.total, z.head};
    const Dim value[4] = {z.batch, dim_const(c, z.heads), z.total, z.vhead};
    if (!output_set(c, n, 0, q->dtype, 3, out)) return false;
    if (is_whole(n)) return !has_output(n, 1) || output_set(c, n, 1, q->dtype, 5, both);
    return (!has_output(n, 1) || output_set(c, n, 1, q->dtype, 4, &both[1])) && (!has_output(n, 2) || output_set(c, n, 2, q->dtype, 4, value));
}

/* ---- lowering */

typedef struct Parts { View q, k, v; int64_t head, vhead; } Parts; /* [B, heads, rows, D] */

/* Columns FIRST.. of V [B, S, width] as HEADS heads. */
static View columns(Compilation *c, const View *v, int64_t first, int64_t heads, int64_t d)
{
    View out = heads_split(c, v, 0, heads, d);
    out.offset = dim_add(c, out.offset, dim_const(c, first * v->stride[2]));
    return out;
}

/* Part I of V [B, S, heads, parts, D]. */
static View packed_part(Compilation *c, const View *v, int i)
{
    View out = *v;
    const int axes[4] = {0, 2, 1, 4};
    out.rank = 4;
    for (int k = 0; k < 4; k++) {
        out.dims[k] = v->dims[axes[k]];
        out.stride[k] = v->stride[axes[k]];
    }
    out.offset = dim_add(c, v->offset ? v->offset : dim_const(c, 0), dim_const(c, i * v->stride[3]));
    return out;
}

/* X plus the columns FIRST.. of the bias. */
static View biased(Lower *l, const Node *n, const View *x, int64_t first)
{
    Compilation *c = lower_compilation(l);
    if (!node_input(c, n, ports_of(n)->bias)) return *x;
    View bias = lower_input(l, n, ports_of(n)->bias);
    const int64_t step = bias.stride[0], head = lower_upper(l, x->dims[3]);
    bias.rank = 4;
    bias.offset = dim_add(c, bias.offset ? bias.offset : dim_const(c, 0), dim_const(c, first * step));
    for (int i = 0; i < 4; i++) {
        bias.dims[i] = x->dims[i];
        bias.stride[i] = i == 1 ? head * step : i == 3 ? step : 0;
    }
    const View y = lower_temporary(l, "projection", x->store, 4, x->dims);
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "X", *x);
    kernel_in(k, "B", bias);
    kernel_out(k, "Y", y);
    kernel_text(k, "VALUE", arena_text(&c->arena, "X_LD(%s) + B_LD(%s)", index_at(l, "X", 4, "i"), index_at(l, "B", 4, "i")));
    kernel_text(k, "TARGET", index_at(l, "Y", 4, "i"));
    kernel_label(k, arena_text(&c->arena, "%s: bias", n->name));
    launch_elements(l, k, &y, NULL);
    return y;
}

/* Attention's query, key and value side by side, [B, S, width]. */
static View project(Lower *l, const Node *n, const Sizes *z)
{
    const View x = lower_input(l, n, 0), w = lower_input(l, n, 1);
    const Dim dims[3] = {lower_dim(l, z->batch), lower_dim(l, z->rows), w.dims[1]};
    const View y = lower_temporary(l, "projections", x.store, 3, dims);
    const ProductText plain = {NULL, NULL, "v"};
    Product p = product_operands(l, n, x, w, y);
    product_merge(l, &p);
    product_lower_any(l, n, &p, &plain, 0, NULL);
    return y;
}

static Parts read_parts(Lower *l, const Node *n, const Sizes *z)
{
    Compilation *c = lower_compilation(l);
    Parts p = {.head = heads_constant(c, n, lower_dim(l, z->head), "the head size"),
               .vhead = heads_constant(c, n, lower_dim(l, z->vhead), "the value's head size")};
    if (p.head < 0 || p.vhead < 0) return p;
    const int64_t width = z->heads * p.head;
    const View q = is_whole(n) ? project(l, n, z) : lower_input(l, n, 0);
    if (is_whole(n)) {
        p.q = columns(c, &q, 0, z->heads, p.head);
        p.k = columns(c, &q, width, z->heads, p.head);
        p.v = columns(c, &q, 2 * width, z->heads, p.vhead);
    } else if (z->form == PACKED_QKV) {
        p.q = packed_part(c, &q, 0);
        p.k = packed_part(c, &q, 1);
        p.v = packed_part(c, &q, 2);
    } else {
        const View k = lower_input(l, n, 1), v = z->form == PACKED_KV ? k : lower_input(l, n, 2);
        p.q = heads_view(c, &q, z->heads, p.head);
        p.k = z->form == PACKED_KV ? packed_part(c, &k, 0) : heads_view(c, &k, z->heads, p.head);
        p.v = z->form == PACKED_KV ? packed_part(c, &k, 1) : heads_view(c, &v, z->heads, p.vhead);
    }
    p.q = biased(l, n, &p.q, 0);
    if (z->form == GIVEN) return p;
    p.k = biased(l, n, &p.k, width);
    p.v = biased(l, n, &p.v, 2 * width);
    return p;
}

/* Half I of a cache [2, B, heads, rows, D]. */
static View half(Compilation *c, const View *v, int i)
{
    View out = *v;
    out.rank = 4;
    for (int k = 0; k < 4; k++) {
        out.dims[k] = v->dims[k + 1];
        out.stride[k] = v->stride[k + 1];
    }
    out.offset = dim_add(c, v->offset ? v->offset : dim_const(c, 0), dim_const(c, i * v->stride[0]));
    return out;
}

/* Attention's one cache: old rows are copied, halves as KEYS and VALUES. */
static void open_both(Lower *l, const Node *n, const Sizes *z, DType t, View *keys, View *values)
{
    Compilation *c = lower_compilation(l);
    const Dim dims[5] = {dim_const(c, 2), lower_dim(l, z->batch), dim_const(c, z->heads), lower_dim(l, z->total), lower_dim(l, z->head)};
    const View whole_cache = has_output(n, 1) ? lower_output(l, n, 1) : lower_temporary(l, "cache", t, 5, dims);
    *keys = half(c, &whole_cache, 0);
    *values = half(c, &whole_cache, 1);
    if (!node_input(c, n, whole.past_key)) return;
    const View past = lower_input(l, n, whole.past_key);
    for (int i = 0; i < 2 && lower_upper(l, past.dims[3]) > 0; i++) {
        View to = i ? *values : *keys;
        to.dims[2] = past.dims[3];
        lower_copy(l, n, half(c, &past, i), to, arena_text(&c->arena, "%s: old rows", n->name));
    }
}

/* The new rows go behind the old ones, where there are any or the caches are wanted; P's keys and values become the caches. */
static void append(Lower *l, const Node *n, const Sizes *z, Parts *p)
{
    Compilation *c = lower_compilation(l);
    View keys, values;
    if (!node_input(c, n, ports_of(n)->past_key) && !has_output(n, 1) && !has_output(n, 2)) return;
    if (is_whole(n)) {
        open_both(l, n, z, p->k.store, &keys, &values);
    } else {
        const Dim kd[4] = {z->batch, dim_const(c, z->heads), z->total, z->head}, vd[4] = {kd[0], kd[1], kd[2], z->vhead};
        keys = cache_open(l, n, multi_head.past_key, 1, kd, p->k.store).present;
        values = cache_open(l, n, multi_head.past_value, 2, vd, p->v.store).present;
    }
    cache_append(l, n, &keys, &values, z->past, &p->k, &p->v);
}

/* The mask of keys as what is added to the scores, with the scores' own bias; a masked key's score falls by mask_filter_value. */
static View padded_scores(Lower *l, const Node *n, const Sizes *z)
{
    Compilation *c = lower_compilation(l);
    const Ports *p = ports_of(n);
    const bool scores = node_input(c, n, p->scores) != NULL;
    const View given = lower_input(l, n, p->padding), bias = scores ? lower_input(l, n, p->scores) : given;
    const Dim one = dim_const(c, 1), rows = lower_dim(l, z->rows);
    const Dim dims[4] = {lower_dim(l, z->batch), scores && bias.rank == 4 ? bias.dims[1] : one, scores || given.rank == 3 ? rows : one, lower_dim(l, z->total)};
    const View y = lower_temporary(l, "mask", DT_F32, 4, dims);
    View padding = given;
    padding.rank = 4;
    for (int i = 0; i < 4; i++) {
        padding.dims[i] = dims[i];
        padding.stride[i] = i == 0 ? given.stride[0] : i == 2 && given.rank == 3 ? given.stride[1] : i == 3 && given.rank > 1 ? given.stride[given.rank - 1] : 0;
    }
    Kernel *k = kernel_begin(l, n, "copy");
    kernel_in(k, "P", padding);
    kernel_out(k, "Y", y);
    kernel_float(k, "FILTER", attr_float(n, "mask_filter_value"));
    const char *at = index_at(l, "P", 4, "i");
    const char *text = arena_text(&c->arena, given.rank == 1 ? "(i3 < P_LD(%s) ? 0.0f : (float)FILTER)" : "(P_LD(%s) > 0 ? 0.0f : (float)FILTER)", at);
    if (scores) {
        kernel_in(k, "S", rows_expand(c, &bias, 4, dims));
        text = arena_text(&c->arena, "%s + (float)S_LD(%s)", text, index_at(l, "S", 4, "i"));
    }
    kernel_text(k, "VALUE", text);
    kernel_text(k, "TARGET", index_at(l, "Y", 4, "i"));
    kernel_label(k, arena_text(&c->arena, "%s: mask", n->name));
    launch_elements(l, k, &y, NULL);
    return y;
}

static void mha_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Ports *ports = ports_of(n);
    Sizes z;
    Attend a;
    memset(&a, 0, sizeof a);
    if (!read_sizes(c, n, &z)) return;
    Parts p = read_parts(l, n, &z);
    if (p.head < 0 || p.vhead < 0) return;
    append(l, n, &z, &p);
    const View y = lower_output(l, n, 0);
    a.q = p.q;
    a.k = p.k;
    a.v = p.v;
    a.y = heads_split(c, &y, 0, z.heads, p.vhead);
    if (node_input(c, n, ports->padding) || node_input(c, n, ports->scores)) {
        const View mask = node_input(c, n, ports->padding) ? padded_scores(l, n, &z) : lower_input(l, n, ports->scores);
        a.mask = mask_view(c, &mask, &a.q);
    }
    a.past = lower_dim(l, z.past);
    a.causal = attr_int(n, "unidirectional") != 0;
    const double scale = attr_given(n, "scale") ? attr_float(n, "scale") : 0.0;
    a.scale = scale != 0.0 ? scale : 1.0 / sqrt((double)p.head);
    attend(l, n, &a);
}

static int mha_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append_rows)
{
    const int input = output == 1 ? multi_head.past_key : output == 2 ? multi_head.past_value : -1;
    *axis = 2;
    *append_rows = true;
    return input >= 0 && node_input(c, n, input) ? input : -1;
}

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "MultiHeadAttention", .since = 1, .facts = OP_APPEND,
     .schema = "query:T, key:T?, value:T?, bias:T?, key_padding_mask:i32?, attention_bias:T?, past_key:T?, past_value:T?, "
               "past_sequence_length:i32?, cache_indirection:i32? -> output:T, present_key:T?, present_value:T?, qk:any? ; "
               "mask_filter_value:float=-10000.0, num_heads:int, scale:float?, unidirectional:int=0 | T=f32 f16 bf16",
     .shape = mha_shape, .lower = mha_lower, .inplace = mha_inplace,
     .note = "not: past_sequence_length, cache_indirection, output qk, a mask of positions (3 B + 2)"},
    {.domain = "com.microsoft", .name = "Attention", .since = 1,
     .schema = "input:T, weights:T, bias:T?, mask_index:i32?, past:T?, attention_bias:T?, past_sequence_length:i32? -> output:T, present:T? ; "
               "do_rotary:int=0, mask_filter_value:float=-10000.0, num_heads:int, past_present_share_buffer:int=0, qkv_hidden_sizes:ints?, "
               "rotary_embedding_dim:int=0, scale:float?, unidirectional:int=0 | T=f32 f16 bf16",
     .shape = mha_shape, .lower = mha_lower,
     .note = "not: do_rotary, past_sequence_length, past_present_share_buffer, a mask of positions (2 B, 3 B + 2) or of rank 4"},
};

const OpFamily ops_mha = {rows, COUNT_OF(rows), "compiler/ops/mha.c"};
