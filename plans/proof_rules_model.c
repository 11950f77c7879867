/* proof_rules_model.c - rules of operators with a cache or a state, and of packed weights. */
#include "proofs.h"

#include <string.h>

/* Dim K of V is EXPECTED. */
static void dim_is(proof_node *n, const proof_value *v, uint32_t k, poly expected, const char *what) {
    if (v && !n->failed) proof_equal(n, expected, v->dims[k], what, k);
}

static const proof_value *optional(proof_node *n, uint32_t i) { return proof_has_in(n, i) ? proof_in(n, i) : NULL; }

/* A mask broadcasts to the scores; a constant last dim may be shorter or longer than the keys. */
static void mask_fits(proof_node *n, const proof_value *mask, const poly *scores) {
    int64_t number;
    if (!mask || n->failed) return;
    if (mask->rank < 1 || mask->rank > 4) {
        proof_fail(n, "a mask of rank 1 to 4", "another rank");
        return;
    }
    for (uint32_t i = 1; i <= mask->rank; i++) {
        poly d = mask->dims[mask->rank - i];
        if (i == 1 ? poly_value(n->t, d, &number) : poly_is(n->t, d, 1)) continue;
        proof_equal(n, scores[4 - i], d, "mask dim from the end", i);
    }
}

/* --- Attention --- */

typedef struct heads { int flat; poly batch, rows, fresh, past, total, q_heads, kv_heads, size, value_size; } heads;

static void attention_sizes(proof_node *n, const proof_value *q, const proof_value *k, const proof_value *v, heads *z) {
    z->flat = q->rank == 3;
    proof_rank(n, k, q->rank, "K");
    proof_rank(n, v, q->rank, "V");
    if (q->rank != 3 && q->rank != 4) proof_fail(n, "rank 3 or 4", "another rank");
    if (n->failed) return;
    z->batch = q->dims[0];
    z->rows = q->dims[z->flat ? 1 : 2];
    z->fresh = k->dims[z->flat ? 1 : 2];
    z->q_heads = z->flat ? proof_const(n, proof_int(n, "q_num_heads", 0)) : q->dims[1];
    z->kv_heads = z->flat ? proof_const(n, proof_int(n, "kv_num_heads", 0)) : k->dims[1];
    z->size = z->flat ? poly_div_exact(n->t, q->dims[2], z->q_heads) : q->dims[3];
    z->value_size = z->flat ? poly_div_exact(n->t, v->dims[2], z->kv_heads) : v->dims[3];
    dim_is(n, k, 0, z->batch, "batch of K, dim");
    dim_is(n, v, 0, z->batch, "batch of V, dim");
    dim_is(n, v, z->flat ? 1 : 2, z->fresh, "rows of V, dim");
    dim_is(n, k, z->flat ? 2 : 3, z->flat ? poly_mul(n->t, z->size, z->kv_heads) : z->size, "head size of K, dim");
    if (!z->flat) dim_is(n, v, 1, z->kv_heads, "heads of V, dim");
}

static void cache_fits(proof_node *n, const proof_value *cache, const heads *z, poly size) {
    if (!cache || n->failed) return;
    proof_rank(n, cache, 4, "cache");
    dim_is(n, cache, 0, z->batch, "batch of a cache, dim");
    dim_is(n, cache, 1, z->kv_heads, "heads of a cache, dim");
    dim_is(n, cache, 2, z->past, "rows of a cache, dim");
    dim_is(n, cache, 3, size, "head size of a cache, dim");
}

static void attention(proof_node *n) {
    const proof_value *q = proof_in(n, 0), *k = proof_in(n, 1), *v = proof_in(n, 2);
    const proof_value *past = optional(n, 4), *length = optional(n, 6);
    heads z = {0};
    if (!q || !k || !v) return;
    attention_sizes(n, q, k, v, &z);
    if (n->failed) return;
    z.past = past ? past->rank == 4 ? past->dims[2] : 0 : proof_const(n, 0);
    z.total = poly_add(n->t, z.past, z.fresh);
    cache_fits(n, past, &z, z.size);
    cache_fits(n, optional(n, 5), &z, z.value_size);
    poly scores[4] = {z.batch, z.q_heads, z.rows, z.total};
    mask_fits(n, optional(n, 3), scores);
    if (length && length->rank == 1 && !poly_is(n->t, length->dims[0], 1)) dim_is(n, length, 0, z.batch, "a length for each sequence, dim");
    poly deep[4] = {z.batch, z.q_heads, z.rows, z.value_size}, flat[3] = {z.batch, z.rows, poly_mul(n->t, z.q_heads, z.value_size)};
    poly key[4] = {z.batch, z.kv_heads, z.total, z.size}, value[4] = {z.batch, z.kv_heads, z.total, z.value_size};
    proof_give(n, 0, z.flat ? 3 : 4, z.flat ? flat : deep);
    if (proof_out(n, 1)) proof_give(n, 1, 4, key);
    if (proof_out(n, 2)) proof_give(n, 2, 4, value);
    if (proof_out(n, 3)) proof_give(n, 3, 4, scores);
}

/* com.microsoft::GroupQueryAttention: rows of the present are old and new ones, or, in a cache of fixed length, that length. */
static poly group_total(proof_node *n, const heads *z) {
    const proof_value *told = optional(n, 6);
    int64_t past, total;
    poly sum = poly_add(n->t, z->past, z->fresh), said = told && told->has_contents && told->count == 1 ? told->contents[0] : 0;
    if (!poly_value(n->t, z->past, &past) || past == 0) {
        if (said) proof_equal(n, sum, said, "total_sequence_length", 0);
        return sum;
    }
    if (poly_value(n->t, said, &total)) return proof_const(n, total > past ? total : past);
    return said && said == sum ? sum : z->past;
}

static void group_query(proof_node *n) {
    const proof_value *q = proof_in(n, 0), *k = optional(n, 1), *v = optional(n, 2), *past = optional(n, 3), *lengths = optional(n, 5);
    int64_t q_heads = proof_int(n, "num_heads", 0), kv_heads = proof_int(n, "kv_num_heads", 0);
    if (!q || n->unknown) return;
    proof_rank(n, q, 3, "query");
    if (n->failed) return;
    heads z = {.batch = q->dims[0], .rows = q->dims[1], .fresh = k ? k->dims[1] : q->dims[1], .q_heads = proof_const(n, q_heads),
               .kv_heads = proof_const(n, kv_heads), .past = past ? past->rank == 4 ? past->dims[2] : 0 : proof_const(n, 0)};
    z.size = poly_div_exact(n->t, q->dims[2], proof_const(n, k ? q_heads : q_heads + 2 * kv_heads));
    if (!z.size) {
        proof_fail(n, "a query width that the heads divide", "another");
        return;
    }
    if (k && !poly_is(n->t, z.fresh, 0)) dim_is(n, k, 1, z.rows, "rows of the keys, dim");
    for (int i = 0; i < 2; i++) {
        dim_is(n, i ? v : k, 0, z.batch, "batch of the keys, dim");
        dim_is(n, i ? v : k, 1, z.fresh, "rows of the keys, dim");
        dim_is(n, i ? v : k, 2, poly_mul(n->t, z.size, z.kv_heads), "width of the keys, dim");
        cache_fits(n, optional(n, 3 + (uint32_t)i), &z, z.size);
    }
    z.total = group_total(n, &z);
    if (lengths && lengths->rank && !poly_is(n->t, lengths->dims[0], 1)) dim_is(n, lengths, 0, z.batch, "a length for each sequence, dim");
    poly scores[4] = {z.batch, z.q_heads, z.rows, z.total}, out[3] = {z.batch, z.rows, poly_mul(n->t, z.size, z.q_heads)};
    poly present[4] = {z.batch, z.kv_heads, z.total, z.size};
    mask_fits(n, optional(n, 10), scores);
    proof_give(n, 0, 3, out);
    for (uint32_t i = 1; i < 3; i++)
        if (proof_out(n, i)) proof_give(n, i, 4, present);
    if (proof_out(n, 3)) proof_give(n, 3, 4, scores);
}

/* The update lies inside the cache, whose shape stays. */
static void tensor_scatter(proof_node *n) {
    const proof_value *cache = proof_in(n, 0), *update = proof_in(n, 1), *start = optional(n, 2);
    uint32_t axis;
    if (!cache || !update || proof_axis(n, proof_int(n, "axis", -2), cache->rank, &axis)) return;
    proof_rank(n, update, cache->rank, "update");
    for (uint32_t k = 0; k < cache->rank && !n->failed; k++)
        if (k != axis) dim_is(n, update, k, cache->dims[k], "dim of the update");
    if (start && start->rank == 1 && !poly_is(n->t, start->dims[0], 1)) dim_is(n, start, 0, cache->dims[0], "a write index for each sequence, dim");
    proof_give_like(n, 0, cache);
}

/* The table's rows must fit the positions only at run time; its shape is checked where it is used as a tensor. */
static void rotary(proof_node *n) {
    int own = strncmp(n->op, "com.", 4) == 0;
    const proof_value *x = proof_in(n, 0), *cosine = proof_in(n, own ? 2 : 1), *sine = proof_in(n, own ? 3 : 2);
    if (!x || !cosine || !sine) return;
    proof_rank(n, sine, cosine->rank, "sin");
    for (uint32_t k = 0; k < cosine->rank && !n->failed; k++) dim_is(n, sine, k, cosine->dims[k], "sin is as large as cos, dim");
    if (x->rank != 3 && x->rank != 4) proof_fail(n, "rank 3 or 4", "another rank");
    proof_give_like(n, 0, x);
}

/* --- recurrent state --- */

static void linear_attention(proof_node *n) {
    const proof_value *q = proof_in(n, 0), *k = optional(n, 1), *v = proof_in(n, 2), *past = optional(n, 3);
    int64_t q_heads = proof_int(n, "q_num_heads", 0), kv_heads = proof_int(n, "kv_num_heads", 0);
    if (!q || !v) return;
    proof_rank(n, q, 3, "query");
    proof_rank(n, v, 3, "value");
    if (n->failed) return;
    poly key = poly_div_exact(n->t, q->dims[2], proof_const(n, q_heads)), value = poly_div_exact(n->t, v->dims[2], proof_const(n, kv_heads));
    for (uint32_t i = 0; i < 2; i++) {
        dim_is(n, k, i, q->dims[i], "keys are as many as queries, dim");
        dim_is(n, v, i, q->dims[i], "values are as many as queries, dim");
        for (uint32_t gate = 4; gate < 6; gate++) dim_is(n, optional(n, gate), i, q->dims[i], "gates are as many as queries, dim");
    }
    poly state[4] = {q->dims[0], proof_const(n, kv_heads), key, value};
    poly out[3] = {q->dims[0], q->dims[1], poly_mul(n->t, value, proof_const(n, q_heads > kv_heads ? q_heads : kv_heads))};
    if (past) proof_rank(n, past, 4, "past_state");
    for (uint32_t i = 0; i < 4; i++) dim_is(n, past, i, state[i], "dim of the state");
    proof_give(n, 0, 3, out);
    if (proof_out(n, 1)) proof_give(n, 1, 4, state);
}

static void causal_conv(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *w = proof_in(n, 1), *past = optional(n, 3);
    if (!x || !w) return;
    proof_rank(n, x, 3, "input");
    proof_rank(n, w, 3, "weight");
    if (past) proof_rank(n, past, 3, "past_state");
    if (n->failed || proof_int(n, "channels_last", 0)) return;
    dim_is(n, w, 0, x->dims[1], "a filter for each channel, dim");
    poly reach = poly_mul(n->t, poly_sub(n->t, w->dims[2], proof_const(n, 1)), proof_const(n, proof_int(n, "dilation", 1)));
    poly state[3] = {x->dims[0], x->dims[1], reach};
    for (uint32_t i = 0; i < 3; i++) dim_is(n, past, i, state[i], "dim of the state");
    proof_give_like(n, 0, x);
    if (proof_out(n, 1)) proof_give(n, 1, 3, state);
}

/* --- packed weights --- */

static void matmul_nbits(proof_node *n) {
    const proof_value *a = proof_in(n, 0), *b = proof_in(n, 1), *scales = proof_in(n, 2);
    int64_t block = proof_int(n, "block_size", 0), columns = proof_int(n, "K", 0), bits = proof_int(n, "bits", 4);
    poly dims[PLAN_RANK_LIMIT];
    if (!a || !a->rank || !b || !scales) return;
    if (block < 1 || columns < 1 || columns > INT32_MAX || block > INT32_MAX || bits < 1 || bits > 8) {
        proof_fail(n, "K, bits and block_size that are sizes", "others");
        return;
    }
    poly blocks = proof_const(n, (columns + block - 1) / block), all = poly_mul(n->t, blocks, proof_const(n, proof_int(n, "N", -1)));
    proof_equal(n, all, proof_product(n, scales, 0, scales->rank), "scales, elements", 0);
    proof_equal(n, poly_mul(n->t, all, proof_const(n, block * bits / 8)), proof_product(n, b, 0, b->rank), "packed weights, bytes", 0);
    dim_is(n, a, a->rank - 1, proof_const(n, proof_int(n, "K", -1)), "columns of A, dim");
    memcpy(dims, a->dims, sizeof dims);
    dims[a->rank - 1] = proof_const(n, proof_int(n, "N", -1));
    proof_give(n, 0, a->rank, dims);
}

/* Packed bytes hold 8 / bits elements along the quantised axis. */
static void gather_packed(proof_node *n) {
    const proof_value *x = proof_in(n, 0), *index = proof_in(n, 1), *scales = proof_in(n, 2);
    uint32_t axis, quantised, rank = 0;
    poly dims[2 * PLAN_RANK_LIMIT];
    if (!x || !index || !scales) return;
    if (proof_axis(n, proof_int(n, "gather_axis", 0), x->rank, &axis) || proof_axis(n, proof_int(n, "quantize_axis", 1), x->rank, &quantised)) return;
    const proof_value *y = proof_out(n, 0);
    for (uint32_t k = 0; k < x->rank; k++) {
        for (uint32_t i = 0; k == axis && i < index->rank; i++) dims[rank++] = index->dims[i];
        if (k == axis) continue;
        poly packed = poly_mul(n->t, x->dims[k], proof_const(n, 8 / (proof_int(n, "bits", 4) ? proof_int(n, "bits", 4) : 4)));
        dims[rank] = k == quantised && y && rank < y->rank && y->dims[rank] == packed ? packed : x->dims[k];
        rank++;
    }
    proof_give(n, 0, rank, dims);
}

static void experts(proof_node *n) {
    const proof_value *x = proof_in(n, 0);
    if (x) proof_give_like(n, 0, x);
}

const proof_row proof_rules_model[] = {
    {"Attention", attention, "Attention: present = past + new"},
    {"com.microsoft::GroupQueryAttention", group_query, "GroupQueryAttention: present = past + new"},
    {"TensorScatter", tensor_scatter, "TensorScatter keeps the cache's shape"},
    {"RotaryEmbedding", rotary, "the input's shape"},
    {"com.microsoft::RotaryEmbedding", rotary, "the input's shape"},
    {"LinearAttention", linear_attention, "LinearAttention: a matrix for each head"},
    {"com.microsoft::LinearAttention", linear_attention, "LinearAttention: a matrix for each head"},
    {"CausalConvWithState", causal_conv, "CausalConvWithState: what the filter sees before"},
    {"com.microsoft::CausalConvWithState", causal_conv, "CausalConvWithState: what the filter sees before"},
    {"com.microsoft::MatMulNBits", matmul_nbits, "MatMulNBits K and N"},
    {"com.microsoft::GatherBlockQuantized", gather_packed, "GatherBlockQuantized replaces an axis"},
    {"com.microsoft::MoE", experts, "the input's shape"},
    {"com.microsoft::QMoE", experts, "the input's shape"},
    {NULL, NULL, NULL}};
