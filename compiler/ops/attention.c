/* attention.c - ai.onnx Attention (23, 24) and TensorScatter; com.microsoft and ai.onnx RotaryEmbedding, MRotaryEmbedding. GroupQueryAttention is
 * in gqa.c. */
#include "ops/heads.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

static bool has_output(const Node *n, int i)
{
    return i < n->output_count && n->outputs[i];
}

/* ---- Attention */

/* The sizes of one Attention node, as far as its inputs tell. */
typedef struct Sizes {
    Dim batch, rows, fresh, past, total; /* query rows; new keys; old keys; all keys */
    Dim q_heads, kv_heads, head, vhead;
    bool flat;                           /* 3-D: heads side by side in the last axis */
} Sizes;

/* 0: not known yet, or an error was reported. */
static Dim per_head(Compilation *c, const Node *n, const char *what, Dim hidden, int64_t heads)
{
    const Dim known = hidden ? dim_resolve(c, hidden) : 0, d = known ? dim_div_exact(c, known, dim_const(c, heads)) : 0;
    if (!d && known && dim_is_const(c, known, NULL))
        node_error(c, n, "%s %s is not divisible by %lld heads", what, dim_text(c, known), (long long)heads);
    return d;
}

static bool flat_sizes(Compilation *c, const Node *n, const Value *q, const Value *k, const Value *v, Sizes *z)
{
    const int64_t heads = attr_given(n, "q_num_heads") ? attr_int(n, "q_num_heads") : 0;
    const int64_t kv_heads = attr_given(n, "kv_num_heads") ? attr_int(n, "kv_num_heads") : 0;
    if (heads <= 0 || kv_heads <= 0) {
        node_error(c, n, "3-D inputs need q_num_heads and kv_num_heads");
        return false;
    }
    z->rows = q->dims[1];
    z->fresh = k->dims[1];
    z->q_heads = dim_const(c, heads);
    z->kv_heads = dim_const(c, kv_heads);
    z->head = per_head(c, n, "the query's hidden size", q->dims[2], heads);
    z->vhead = per_head(c, n, "the value's hidden size", v->dims[2], kv_heads);
    if (diag_failed(c)) return false;
    return dim_equate(c, n, "query and key heads have one size", k->dims[2], z->head ? dim_scale(c, z->head, kv_heads) : 0) &&
           dim_equate(c, n, "keys and values are as many", v->dims[1], k->dims[1]);
}

static bool deep_sizes(Compilation *c, const Node *n, const Value *q, const Value *k, const Value *v, Sizes *z)
{
    z->rows = q->dims[2];
    z->fresh = k->dims[2];
    z->q_heads = q->dims[1];
    z->kv_heads = k->dims[1];
    z->head = q->dims[3];
    z->vhead = v->dims[3];
    return dim_equate(c, n, "query and key heads have one size", k->dims[3], q->dims[3]) &&
           dim_equate(c, n, "keys and values have the same heads", v->dims[1], k->dims[1]) &&
           dim_equate(c, n, "keys and values are as many", v->dims[2], k->dims[2]);
}

/* Sizes alone; posts what makes them consistent. */
static bool attention_sizes(Compilation *c, const Node *n, Sizes *z)
{
    const Value *q = node_input(c, n, 0), *k = node_input(c, n, 1), *v = node_input(c, n, 2), *past = node_input(c, n, 4);
    memset(z, 0, sizeof *z);
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank) {
        node_error(c, n, "Q, K and V must all have rank 3 or all rank 4, found %d, %d, %d", q->rank, k->rank, v->rank);
        return false;
    }
    z->flat = q->rank == 3;
    z->batch = q->dims[0];
    if (!(z->flat ? flat_sizes(c, n, q, k, v, z) : deep_sizes(c, n, q, k, v, z))) return false;
    if (past && past->rank != 4) {
        node_error(c, n, "past_key '%s' has rank %d; expected 4", past->name, past->rank);
        return false;
    }
    z->past = past ? past->dims[2] : dim_const(c, 0);
    z->total = z->past && z->fresh ? dim_add(c, z->past, z->fresh) : 0;
    return dim_equate(c, n, "keys have the query's batch", k->dims[0], q->dims[0]) &&
           dim_equate(c, n, "values have the query's batch", v->dims[0], q->dims[0]);
}

static bool past_fits(Compilation *c, const Node *n, const Sizes *z)
{
    const Value *key = node_input(c, n, 4), *value = node_input(c, n, 5);
    if (!key && !value) return true;
    if (!key || !value) {
        node_error(c, n, "past_key and past_value must be given together");
        return false;
    }
    if (value->rank != 4) {
        node_error(c, n, "past_value '%s' has rank %d; expected 4", value->name, value->rank);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const Value *v = i ? value : key;
        if (!dim_equate(c, n, "a cache has the query's batch", v->dims[0], z->batch) ||
            !dim_equate(c, n, "a cache has the heads of the new keys", v->dims[1], z->kv_heads) ||
            !dim_equate(c, n, "a cache has the head size of the new keys", v->dims[3], i ? z->vhead : z->head))
            return false;
    }
    return dim_equate(c, n, "past keys and values are as many", value->dims[2], key->dims[2]);
}

static bool attention_supported(Compilation *c, const Node *n)
{
    const Value *length = node_input(c, n, 6);
    int64_t heads, kv_heads;
    const int64_t mode = attr_int(n, "qk_matmul_output_mode");
    if (has_output(n, 3) && (mode < 0 || mode > 3)) {
        node_error(c, n, "qk_matmul_output_mode is %lld; expected 0 to 3", (long long)mode);
        return false;
    }
    if (length && (node_input(c, n, 4) || has_output(n, 1))) {
        node_error(c, n, "nonpad_kv_seqlen cannot stand with past or present caches");
        return false;
    }
    if (attr_given(n, "q_num_heads") && attr_given(n, "kv_num_heads")) {
        heads = attr_int(n, "q_num_heads");
        kv_heads = attr_int(n, "kv_num_heads");
        if (kv_heads > 0 && heads % kv_heads) {
            node_error(c, n, "%lld query heads are not a multiple of %lld key heads", (long long)heads, (long long)kv_heads);
            return false;
        }
    }
    return true;
}

static bool attention_shape(Compilation *c, Node *n)
{
    const Value *q = node_input(c, n, 0), *mask = node_input(c, n, 3), *length = node_input(c, n, 6);
    Sizes z;
    if (heads_unranked(c, n)) return output_set(c, n, 0, q->dtype, -1, NULL);
    if (!attention_supported(c, n) || !attention_sizes(c, n, &z) || !past_fits(c, n, &z)) return false;
    if (mask && !mask_fits(c, n, mask, z.batch, z.q_heads, z.rows, z.total)) return false;
    if (length && length->rank == 1 && !dim_is(c, length->dims[0], 1) &&
        !dim_equate(c, n, "a length for each sequence", length->dims[0], z.batch))
        return false;
    const Dim flat[3] = {z.batch, z.rows, z.q_heads && z.vhead ? dim_mul(c, z.q_heads, z.vhead) : 0};
    const Dim deep[4] = {z.batch, z.q_heads, z.rows, z.vhead};
    const Dim key[4] = {z.batch, z.kv_heads, z.total, z.head}, value[4] = {z.batch, z.kv_heads, z.total, z.vhead};
    if (!output_set(c, n, 0, q->dtype, z.flat ? 3 : 4, z.flat ? flat : deep)) return false;
    if (has_output(n, 1) && !output_set(c, n, 1, node_input(c, n, 1)->dtype, 4, key)) return false;
    if (has_output(n, 2) && !output_set(c, n, 2, node_input(c, n, 2)->dtype, 4, value)) return false;
    const Dim scores[4] = {z.batch, z.q_heads, z.rows, z.total};
    return !has_output(n, 3) || output_set(c, n, 3, q->dtype, 4, scores);
}

/* Appends the new keys and values to their caches; K and V become the caches. */
static void append_keys(Lower *l, Node *n, const Sizes *z, View *k, View *v)
{
    const Dim kd[4] = {z->batch, z->kv_heads, z->total, z->head}, vd[4] = {z->batch, z->kv_heads, z->total, z->vhead};
    const View keys = cache_open(l, n, 4, 1, kd, k->store).present, values = cache_open(l, n, 5, 2, vd, v->store).present;
    cache_append(l, n, &keys, &values, z->past, k, v);
}

static void attention_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    Sizes z;
    Attend a;
    View view;
    memset(&a, 0, sizeof a);
    if (!attention_sizes(c, n, &z)) return;
    const int64_t head = heads_constant(c, n, lower_dim(l, z.head), "the head size");
    const int64_t vhead = heads_constant(c, n, lower_dim(l, z.vhead), "the value's head size");
    const int64_t heads = heads_constant(c, n, lower_dim(l, z.q_heads), "the number of query heads");
    const int64_t kv_heads = heads_constant(c, n, lower_dim(l, z.kv_heads), "the number of key heads");
    if (head < 0 || vhead < 0 || heads < 0 || kv_heads < 0) return;
    view = lower_input(l, n, 0);
    a.q = heads_view(c, &view, heads, head);
    view = lower_input(l, n, 1);
    a.k = heads_view(c, &view, kv_heads, head);
    view = lower_input(l, n, 2);
    a.v = heads_view(c, &view, kv_heads, vhead);
    if (node_input(c, n, 4) || has_output(n, 1) || has_output(n, 2)) append_keys(l, n, &z, &a.k, &a.v);
    view = lower_output(l, n, 0);
    a.y = heads_view(c, &view, heads, vhead);
    if (node_input(c, n, 3)) {
        view = lower_input(l, n, 3);
        a.mask = mask_view(c, &view, &a.q);
    }
    if (node_input(c, n, 6)) {
        attend_lengths(l, n, 6, &a);
        a.lengths = LENGTH_TOTAL;
    }
    a.past = lower_dim(l, z.past);
    if (rows_differ(c, z.past)) {
        a.lengths = LENGTH_ROWS;
        a.past = rows_beyond(c, z.past);
        a.fresh = lower_dim(l, z.fresh);
    }
    a.causal = attr_int(n, "is_causal") != 0;
    a.scale = attr_given(n, "scale") ? attr_float(n, "scale") : 1.0 / sqrt((double)head);
    a.softcap = attr_float(n, "softcap");
    attend(l, n, &a);
    if (has_output(n, 3)) attend_scores(l, n, &a, lower_output(l, n, 3), (int)attr_int(n, "qk_matmul_output_mode"));
}

static int attention_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    *axis = 2;
    *append = true;
    if (output == 1 && node_input(c, n, 4)) return 4;
    return output == 2 && node_input(c, n, 5) ? 5 : -1;
}

static const char *attention_row_lengths(Compilation *c, const Node *n)
{
    const Value *past = node_input(c, n, 4);
    if (has_output(n, 3)) return "its scores, of all keys, are asked for";
    if (node_input(c, n, 6)) return rows_vector(c, n, 6);
    if (past) return rows_beyond(c, past->dims[2]) ? NULL : "its past does not grow with the rows";
    return "its keys are no cache of its own";
}

/* ---- RotaryEmbedding */

RotaryPorts rotary_ports(const Node *n)
{
    const RotaryPorts standard = {3, 1, 2}, contrib = {1, 2, 3};
    return !strcmp(n->domain, "com.microsoft") ? contrib : standard;
}

/* Heads and head size of X; the contrib form may leave the heads to the table's width. */
static bool rotary_sizes(Compilation *c, const Node *n, const Value *x, Dim *heads, Dim *head)
{
    const int64_t count = attr_int(n, "num_heads");
    const Value *table = node_input(c, n, rotary_ports(n).cosine);
    if (x->rank == 4) {
        *heads = x->dims[1];
        *head = x->dims[3];
        return true;
    }
    if (count > 0) {
        *heads = dim_const(c, count);
        *head = per_head(c, n, "the hidden size", x->dims[2], count);
        return !diag_failed(c);
    }
    if (strcmp(n->domain, "com.microsoft") != 0) {
        node_error(c, n, "a 3-D input needs num_heads");
        return false;
    }
    *heads = *head = 0;
    if (!x->dims[2] || !table->dims[table->rank - 1]) return true;
    *head = dim_scale(c, dim_resolve(c, table->dims[table->rank - 1]), 2);
    *heads = dim_div_exact(c, dim_resolve(c, x->dims[2]), *head);
    if (!*heads && dim_is_const(c, *head, NULL))
        node_error(c, n, "the hidden size %s is not a multiple of the head size %s", dim_text(c, x->dims[2]), dim_text(c, *head));
    return !diag_failed(c);
}

static bool rotary_tables_fit(Compilation *c, const Node *n, const Value *x, Dim head)
{
    const RotaryPorts ports = rotary_ports(n);
    const Value *cosine = node_input(c, n, ports.cosine), *sine = node_input(c, n, ports.sine);
    const Value *positions = node_input(c, n, ports.positions);
    const int64_t turned = attr_int(n, "rotary_embedding_dim");
    const int expected = positions ? 2 : 3, batch = positions && positions->rank == 3;
    if (cosine->rank != expected || sine->rank != expected) {
        node_error(c, n, "cos and sin must have rank %d %s position_ids, found %d and %d", expected,
                   positions ? "with" : "without", cosine->rank, sine->rank);
        return false;
    }
    for (int i = 0; i < expected; i++)
        if (!dim_equate(c, n, "cos and sin have one shape", cosine->dims[i], sine->dims[i])) return false;
    if (positions && positions->rank >= 2) {
        if (!dim_equate(c, n, "a position for each row", positions->dims[batch], x->dims[0]) ||
            !dim_equate(c, n, "a position for each row", positions->dims[batch + 1], x->dims[x->rank == 4 ? 2 : 1]))
            return false;
    }
    if (!positions && !dim_equate(c, n, "an angle for each row", cosine->dims[1], x->dims[x->rank == 4 ? 2 : 1])) return false;
    const Dim width = cosine->dims[expected - 1];
    return dim_equate(c, n, "cos has half the width that is rotated", width ? dim_scale(c, width, 2) : 0,
                      turned > 0 ? dim_const(c, turned) : head);
}

/* MRotaryEmbedding: three rows of positions; mrope_section tells which of them each angle goes by. */
static const Attr *rotary_sections(const Node *n)
{
    return strcmp(n->op_type, "MRotaryEmbedding") != 0 ? NULL : node_attr(n, "mrope_section");
}

static bool sections_fit(Compilation *c, const Node *n)
{
    const Value *positions = node_input(c, n, 1), *cosine = node_input(c, n, 2);
    const Attr *sections = rotary_sections(n);
    int64_t half, sum = 0;
    if (sections->count != 3 || sections->ints[0] < 0 || sections->ints[1] < 0 || sections->ints[2] < 0) {
        node_error(c, n, "mrope_section must be 3 integers that are not negative");
        return false;
    }
    for (int i = 0; i < 3; i++) sum += sections->ints[i];
    if (attr_int(n, "mrope_layout") < 0 || attr_int(n, "mrope_layout") > 1) {
        node_error(c, n, "mrope_layout is %lld; expected 0 or 1", (long long)attr_int(n, "mrope_layout"));
        return false;
    }
    if (positions->rank != 3) {
        node_error(c, n, "position_ids '%s' has rank %d; expected 3", positions->name, positions->rank);
        return false;
    }
    if (cosine->rank > 0 && dim_is_const(c, cosine->dims[cosine->rank - 1], &half) && half != sum) {
        node_error(c, n, "mrope_section counts %lld angles; cos has %lld", (long long)sum, (long long)half);
        return false;
    }
    return dim_equate(c, n, "three positions for each row", positions->dims[0], dim_const(c, 3));
}

static bool rotary_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Dim heads, head;
    if (heads_unranked(c, n)) return output_set(c, n, 0, x->dtype, x->rank, x->dims);
    if (x->rank != 3 && x->rank != 4) {
        node_error(c, n, "input '%s' has rank %d; expected 3 or 4", x->name, x->rank);
        return false;
    }
    if (!strcmp(n->domain, "com.microsoft")) {
        if (attr_int(n, "is_packed_batching") || attr_float(n, "scale") != 1.0) { /* no file of ours has them */
            node_error(c, n, "is_packed_batching and scale are not supported");
            return false;
        }
    }
    if (rotary_sections(n) && !sections_fit(c, n)) return false;
    if (!rotary_sizes(c, n, x, &heads, &head)) return false;
    /* The contrib form may rotate less than the head without saying so; then the table's width tells. */
    if (attr_int(n, "rotary_embedding_dim") == 0 && !strcmp(n->domain, "com.microsoft"))
        return output_set(c, n, 0, x->dtype, x->rank, x->dims);
    return rotary_tables_fit(c, n, x, head) && output_set(c, n, 0, x->dtype, x->rank, x->dims);
}

/* The row of positions of angle `at`: sections one behind another, or the second and third at every third angle. */
static const char *stream_text(Compilation *c, const Node *n)
{
    const int64_t *s = rotary_sections(n)->ints;
    if (attr_int(n, "mrope_layout") == 0)
        return arena_text(&c->arena, "((at) < %lldLL ? 0 : (at) < %lldLL ? 1 : 2)", (long long)s[0], (long long)(s[0] + s[1]));
    return arena_text(&c->arena, "((at) %% 3 == 1 && (at) < %lldLL ? 1 : (at) %% 3 == 2 && (at) < %lldLL ? 2 : 0)", (long long)(3 * s[1]),
                      (long long)(3 * s[2]));
}

static void rotary_positions(Lower *l, Kernel *k, const Node *n, int input)
{
    Compilation *c = lower_compilation(l);
    if (!node_input(c, n, input)) {
        kernel_int(k, "POSITIONS", 0);
        return;
    }
    const View v = lower_input(l, n, input);
    kernel_in(k, "POS", v);
    kernel_int(k, "POSITIONS", v.rank >= 2 ? v.rank : 1);
    if (v.rank == 3) kernel_text(k, "STREAM(at)", stream_text(c, n));
}

static void rotary_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const RotaryPorts ports = rotary_ports(n);
    const Value *value = node_input(c, n, 0);
    Dim heads_dim, head_dim;
    if (!rotary_sizes(c, n, value, &heads_dim, &head_dim)) return;
    const int64_t heads = heads_constant(c, n, lower_dim(l, heads_dim), "the number of heads");
    const int64_t head = heads_constant(c, n, lower_dim(l, head_dim), "the head size");
    const View from = lower_input(l, n, 0), to = lower_output(l, n, 0);
    const View cosine = lower_input(l, n, ports.cosine), sine = lower_input(l, n, ports.sine);
    const int64_t half = heads_constant(c, n, cosine.dims[cosine.rank - 1], "the width of cos");
    if (heads < 0 || head < 0 || half < 0) return;
    const View x = heads_view(c, &from, heads, head);
    Kernel *k = kernel_begin(l, n, "rotary");
    kernel_in(k, "X", x);
    const int64_t turned = lower_upper(l, x.dims[0]) * lower_upper(l, x.dims[2]);
    kernel_in_rows(k, "COS", cosine, turned);
    kernel_in_rows(k, "SIN", sine, turned);
    rotary_positions(l, k, n, ports.positions);
    kernel_out(k, "Y", heads_view(c, &to, heads, head));
    kernel_int(k, "TABLE", cosine.rank);
    kernel_int(k, "HEAD", head);
    kernel_int(k, "HALF", half);
    kernel_int(k, "INTERLEAVED", attr_int(n, "interleaved") != 0);
    kernel_launch(k, grid_for(lower_upper(l, rows_count(c, &x, 0, 3)) * (head - half), 256), 1, 1, 256);
}

/* ---- TensorScatter */

static bool scatter_shape(Compilation *c, Node *n)
{
    const Value *cache = node_input(c, n, 0), *update = node_input(c, n, 1), *start = node_input(c, n, 2);
    const int axis = cache->rank > 1 ? axis_normal(c, n, attr_int(n, "axis"), cache->rank) : -1;
    if (heads_unranked(c, n)) return output_set(c, n, 0, cache->dtype, cache->rank, cache->dims);
    if (cache->rank < 2 || update->rank != cache->rank) {
        node_error(c, n, "past_cache and update must have one rank of 2 or more, found %d and %d", cache->rank, update->rank);
        return false;
    }
    if (axis == 0) node_error(c, n, "axis 0 is the batch");
    if (axis <= 0) return false;
    for (int i = 0; i < cache->rank; i++)
        if (i != axis && !dim_equate(c, n, "an update has the cache's other dims", update->dims[i], cache->dims[i])) return false;
    if (start && start->rank == 1 && !dim_is(c, start->dims[0], 1) &&
        !dim_equate(c, n, "a write index for each sequence", start->dims[0], cache->dims[0]))
        return false;
    if (strcmp(attr_string(n, "mode"), "linear") != 0 && strcmp(attr_string(n, "mode"), "circular") != 0) {
        node_error(c, n, "mode '%s' is neither linear nor circular", attr_string(n, "mode"));
        return false;
    }
    return output_set(c, n, 0, cache->dtype, cache->rank, cache->dims);
}

/* V without the scattered axis. */
static View scatter_rest(const View *v, int axis)
{
    int order[MAX_RANK], count = 0;
    for (int i = 0; i < v->rank; i++)
        if (i != axis) order[count++] = i;
    return rows_order(v, order, count);
}

static View scatter_cache(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    View whole;
    if (lower_inplace(l, n, 0, 0, &whole)) {
        const Value *y = node_output(c, n, 0);
        for (int i = 0; i < whole.rank; i++) whole.dims[i] = lower_dim(l, y->dims[i]);
        lower_set_view(l, n, 0, whole);
        return whole;
    }
    whole = lower_output(l, n, 0);
    lower_copy(l, n, lower_input(l, n, 0), whole, arena_text(&c->arena, "%s: old rows", n->name));
    return whole;
}

static void scatter_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View update = lower_input(l, n, 1), cache = scatter_cache(l, n);
    const int axis = axis_normal(c, n, attr_int(n, "axis"), cache.rank);
    const View x = scatter_rest(&update, axis), y = scatter_rest(&cache, axis);
    const Dim rows = rows_count(c, &x, 0, x.rank);
    Kernel *k = kernel_begin(l, n, "tensor_scatter");
    kernel_in(k, "X", x);
    kernel_inout(k, "Y", y);
    rows_define(c, k, "X", &x, x.rank);
    rows_define(c, k, "Y", &y, y.rank);
    kernel_int(k, "INDEXED", node_input(c, n, 2) != NULL);
    if (node_input(c, n, 2)) {
        const View at = lower_input(l, n, 2);
        kernel_in(k, "AT", batch_vector(c, &at));
    }
    kernel_int(k, "CIRCULAR", !strcmp(attr_string(n, "mode"), "circular"));
    kernel_int(k, "AXIS_STRIDE", cache.stride[axis]);
    kernel_int(k, "X_AXIS_STRIDE", update.stride[axis]);
    kernel_dim(k, "CAPACITY", cache.dims[axis]);
    kernel_dim(k, "STEPS", update.dims[axis]);
    kernel_dim(k, "ROWS", rows);
    kernel_dim(k, "BATCH", x.dims[0]);
    kernel_rows(k);
    kernel_launch(k, grid_for(lower_upper(l, rows) * lower_upper(l, update.dims[axis]), 256), 1, 1, 256);
}

static int scatter_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    const Value *cache = node_input(c, n, 0);
    if (output != 0 || cache->rank < 2) return -1;
    *axis = axis_normal(c, n, attr_int(n, "axis"), cache->rank);
    *append = false;
    return 0;
}

static const char *scatter_row_lengths(Compilation *c, const Node *n) { return rows_vector(c, n, 2); }

#define ATTENTION_ATTRS \
    "is_causal:int=0, kv_num_heads:int?, q_num_heads:int?, qk_matmul_output_mode:int=0, scale:float?, softcap:float=0.0, " \
    "softmax_precision:int? | T1=f32 f16 bf16, T2=f32 f16 bf16, U=bool f32 f16 bf16"

static const OpRow rows[] = {
    {.domain = "", .name = "Attention", .since = 23, .facts = OP_APPEND,
     .schema = "Q:T1, K:T1, V:T2, attn_mask:U?, past_key:T1?, past_value:T2? -> "
               "Y:T1, present_key:T1?, present_value:T2?, qk_matmul_output:T1? ; " ATTENTION_ATTRS,
     .shape = attention_shape, .lower = attention_lower, .inplace = attention_inplace, .length_input = 7,
     .row_lengths = attention_row_lengths},
    {.domain = "", .name = "Attention", .since = 24, .facts = OP_APPEND,
     .schema = "Q:T1, K:T1, V:T2, attn_mask:U?, past_key:T1?, past_value:T2?, nonpad_kv_seqlen:i64? -> "
               "Y:T1, present_key:T1?, present_value:T2?, qk_matmul_output:T1? ; " ATTENTION_ATTRS,
     .shape = attention_shape, .lower = attention_lower, .inplace = attention_inplace, .length_input = 7,
     .row_lengths = attention_row_lengths},
    {.domain = "", .name = "RotaryEmbedding", .since = 23, .facts = OP_ROTARY,
     .schema = "X:T, cos_cache:T, sin_cache:T, position_ids:i64? -> Y:T ; "
               "interleaved:int=0, num_heads:int=0, rotary_embedding_dim:int=0 | T=f32 f16 bf16",
     .shape = rotary_shape, .lower = rotary_lower},
    {.domain = "com.microsoft", .name = "RotaryEmbedding", .since = 1, .facts = OP_ROTARY,
     .schema = "input:T, position_ids:i64, cos_cache:T, sin_cache:T -> output:T ; "
               "interleaved:int=0, is_packed_batching:int=0, num_heads:int=0, rotary_embedding_dim:int=0, scale:float=1.0 | "
               "T=f32 f16 bf16",
     .shape = rotary_shape, .lower = rotary_lower, .note = "not: is_packed_batching, scale"},
    {.domain = "com.microsoft", .name = "MRotaryEmbedding", .since = 1,
     .schema = "input:T, position_ids:i64, cos_cache:T, sin_cache:T -> output:T ; "
               "interleaved:int=0, is_packed_batching:int=0, mrope_layout:int=0, mrope_section:ints, num_heads:int=0, "
               "rotary_embedding_dim:int=0, scale:float=1.0 | T=f32 f16 bf16",
     .shape = rotary_shape, .lower = rotary_lower, .note = "not: is_packed_batching, scale"},
    {.domain = "", .name = "TensorScatter", .since = 24, .facts = OP_APPEND,
     .schema = "past_cache:T, update:T, write_indices:i64? -> present_cache:T ; axis:int=-2, mode:string=linear | "
               "T=f32 f16 bf16 f64 i8 u8 i16 u16 i32 i64 u32 u64 bool",
     .shape = scatter_shape, .lower = scatter_lower, .inplace = scatter_inplace, .row_lengths = scatter_row_lengths},
};

const OpFamily ops_attention = {rows, COUNT_OF(rows), "compiler/ops/attention.c"};
