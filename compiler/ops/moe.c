/* moe.c - com.microsoft MoE and QMoE: a router picks k experts for each row on the device, and only those are computed: their first
 * products with the activation, then the second products with the weighted sum (moe_few.c); many rows: moe_rows.c. */
#include "ops/moe.h"
#include "ops/move.h"
#include "ops/product.h"
#include "ops/quantize.h"
#include "lower.h"

#include <math.h>
#include <string.h>

enum { MAX_EXPERTS = 4096 }; /* their keys stand in shared memory */

static bool is_quantised(const Node *n) { return !strcmp(n->op_type, "QMoE"); }

bool moe_given(Compilation *c, const Node *n, int i) { return i >= 0 && node_input(c, n, i) != NULL; }

static Moe moe_of(Compilation *c, const Node *n)
{
    static const Matrix plain[] = {{"fc1", NULL, 2, -1, 3, -1, 0, 0, 0, 0, 0}, {"fc2", NULL, 4, -1, 5, -1, 0, 0, 0, 0, 0},
                                   {"fc3", NULL, 6, -1, 7, -1, 0, 0, 0, 0, 0}};
    static const Matrix packed[] = {{"fc1", "fc1_expert_weight_bits", 2, 3, 4, 11, 0, 0, 0, 0, 0},
                                    {"fc2", "fc2_expert_weight_bits", 5, 6, 7, 12, 0, 0, 0, 0, 0},
                                    {"fc3", "fc3_expert_weight_bits", 8, 9, 10, 13, 0, 0, 0, 0, 0}};
    const Matrix *m = is_quantised(n) ? packed : plain;
    Moe z = {.up = m[0], .down = m[1], .gate3 = m[2], .quantised = is_quantised(n), .router_weights = -1};
    z.third = moe_given(c, n, z.gate3.weight);
    z.fusion = attr_int(n, "swiglu_fusion");
    z.top = attr_int(n, "k");
    if (z.quantised && moe_given(c, n, 14)) z.router_weights = 14;
    return z;
}

/* ---- what is refused */

static bool quantisation_supported(Compilation *c, const Node *n)
{
    static const char *const scales[] = {"fc1_global_scale", "fc2_global_scale", "fc1_act_scale", "fc2_act_scale", "fc1_act_block_scale",
                                         "fc2_act_block_scale"};
    if (strcmp(attr_string(n, "quant_type"), "int") != 0) {
        node_error(c, n, "quant_type '%s' is not supported; only int is", attr_string(n, "quant_type"));
        return false;
    }
    for (int i = 0; i < 6; i++)
        if (moe_given(c, n, 15 + i)) {
            node_error(c, n, "input %d '%s' belongs to fp4 and fp8 weights, which are not supported", 15 + i, scales[i]);
            return false;
        }
    /* -1, the default, is the raw layout too, as onnxruntime's CPU provider reads it. */
    if (attr_int(n, "weights_prepacked") == 1) node_error(c, n, "weights_prepacked 1: packing of one engine; only 0 and -1 are supported");
    return attr_int(n, "weights_prepacked") != 1;
}

/* ACTIVATION of the template. */
static int activation_code(const char *name)
{
    static const char *const names[] = {"relu", "gelu", "silu", "swiglu", "identity", "relu2", "geglu"};
    for (int i = 0; i < (int)COUNT_OF(names); i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

static bool activation_supported(Compilation *c, const Node *n, const Moe *z)
{
    const char *name = attr_string(n, "activation_type");
    const bool pair = !strcmp(name, "swiglu") || !strcmp(name, "geglu");
    if (activation_code(name) < 0)
        node_error(c, n, "activation_type '%s': expected relu, gelu, silu, swiglu, identity, relu2 or geglu", name);
    else if (z->fusion < 0 || z->fusion > 2)
        node_error(c, n, "swiglu_fusion %lld: expected 0, 1 or 2", (long long)z->fusion);
    else if (z->fusion && !pair)
        node_error(c, n, "swiglu_fusion %lld needs activation_type swiglu or geglu, found %s", (long long)z->fusion, name);
    else if (z->fusion && z->third)
        node_error(c, n, "swiglu_fusion %lld holds fc3 in fc1, but fc3 is given too", (long long)z->fusion);
    else if (!z->fusion && pair && !z->third)
        node_error(c, n, "activation_type %s with swiglu_fusion 0 needs fc3", name);
    else
        return true;
    return false;
}

static bool moe_supported(Compilation *c, const Node *n, const Moe *z)
{
    if (attr_int(n, "use_sparse_mixer")) {
        node_error(c, n, "use_sparse_mixer is not supported");
        return false;
    }
    if (attr_given(n, "swiglu_limit") && !(attr_float(n, "swiglu_limit") > 0)) {
        node_error(c, n, "swiglu_limit %g: expected a positive number", attr_float(n, "swiglu_limit"));
        return false;
    }
    return (!z->quantised || quantisation_supported(c, n)) && activation_supported(c, n, z);
}

/* ---- sizes: those of the weights are constants */

static bool extent(Compilation *c, const Node *n, int input, int axis, int64_t *out)
{
    const Value *v = node_input(c, n, input);
    if (v->rank == 3 && v->dims[axis] && dim_is_const(c, dim_resolve(c, v->dims[axis]), out) && *out > 0) return true;
    node_error(c, n, "weights '%s' must have three known extents", v->name);
    return false;
}

static bool matrix_bits(Compilation *c, const Node *n, Matrix *m)
{
    m->bits = attr_given(n, m->bits_name) ? attr_int(n, m->bits_name) : attr_int(n, "expert_weight_bits");
    m->block = attr_given(n, "block_size") && attr_int(n, "block_size") > 0 ? attr_int(n, "block_size") : 0;
    if (m->bits != 2 && m->bits != 4 && m->bits != 8) {
        node_error(c, n, "%s has %lld bits; expected 2, 4 or 8", m->name, (long long)m->bits);
        return false;
    }
    if (m->block && (m->block < 16 || (m->block & (m->block - 1)))) {
        node_error(c, n, "block_size %lld: expected a power of two, 16 or more", (long long)m->block);
        return false;
    }
    if (!moe_given(c, n, m->scale)) node_error(c, n, "%s_scales are missing", m->name);
    return moe_given(c, n, m->scale);
}

static bool count_is(Compilation *c, const Node *n, int input, const char *matrix, const char *what, int64_t expected)
{
    const Value *v = input >= 0 ? node_input(c, n, input) : NULL;
    int64_t found;
    if (!v || v->rank < 0 || !dim_is_const(c, value_elements(c, v), &found) || found == expected) return true;
    node_error(c, n, "%s %s '%s': expected %lld elements, found %lld", matrix, what, v->name, (long long)expected, (long long)found);
    return false;
}

int64_t moe_byte_count(int64_t elements, int64_t bits) { return (elements * bits + 7) / 8; }

int64_t moe_zero_bytes(const Matrix *m)
{
    return m->block ? m->outputs * moe_byte_count(m->blocks, m->bits) : moe_byte_count(m->outputs, m->bits);
}

static bool read_matrix(Compilation *c, const Node *n, const Moe *z, Matrix *m, int64_t outputs, int64_t inputs)
{
    int64_t experts, columns;
    if (z->quantised && !matrix_bits(c, n, m)) return false;
    if (!extent(c, n, m->weight, 0, &experts) || !extent(c, n, m->weight, 1, &m->outputs) || !extent(c, n, m->weight, 2, &columns))
        return false;
    m->inputs = inputs;
    if (experts != z->experts || m->outputs != outputs || columns != (z->quantised ? moe_byte_count(inputs, m->bits) : inputs)) {
        node_error(c, n, "%s weights: expected %lld experts of %lld x %lld, found %lld of %lld x %lld%s", m->name, (long long)z->experts,
                   (long long)outputs, (long long)inputs, (long long)experts, (long long)m->outputs, (long long)columns,
                   z->quantised ? " bytes" : "");
        return false;
    }
    if (z->quantised && inputs % (32 / m->bits)) {
        node_error(c, n, "%s: %lld inputs are not a multiple of %lld", m->name, (long long)inputs, (long long)(32 / m->bits));
        return false;
    }
    m->blocks = m->block ? (inputs + m->block - 1) / m->block : 1;
    return count_is(c, n, m->bias, m->name, "bias", experts * outputs) &&
           (!z->quantised || (count_is(c, n, m->scale, m->name, "scales", experts * outputs * m->blocks) &&
                              count_is(c, n, m->zero, m->name, "zero points", experts * moe_zero_bytes(m))));
}

/* The input's last dim; where that is no number, or not known yet, it is what fc2 makes. */
static bool hidden_size(Compilation *c, const Node *n, const Value *x, Moe *z)
{
    const Dim last = x->dims[x->rank - 1];
    if (last && dim_is_const(c, dim_resolve(c, last), &z->hidden)) return true;
    return extent(c, n, z->down.weight, 1, &z->hidden) && dim_equate(c, n, "experts make the hidden size", last, dim_const(c, z->hidden));
}

/* The first axis of the weights counts the experts. */
static bool read_sizes(Compilation *c, const Node *n, Moe *z)
{
    const Value *x = node_input(c, n, 0);
    int64_t outputs;
    if (!hidden_size(c, n, x, z)) return false;
    if (!extent(c, n, z->up.weight, 0, &z->experts) || !extent(c, n, z->up.weight, 1, &outputs)) return false;
    z->inner = z->fusion ? outputs / 2 : outputs;
    if (z->fusion && outputs % 2) node_error(c, n, "fc1 has %lld outputs; two for each inner element are needed", (long long)outputs);
    if (z->top < 1 || z->top > z->experts || z->experts > MAX_EXPERTS)
        node_error(c, n, "k is %lld of %lld experts; expected 1 or more of at most %d", (long long)z->top, (long long)z->experts,
                   MAX_EXPERTS);
    return !diag_failed(c) && read_matrix(c, n, z, &z->up, outputs, z->hidden) &&
           read_matrix(c, n, z, &z->down, z->hidden, z->inner) &&
           (!z->third || read_matrix(c, n, z, &z->gate3, z->inner, z->hidden));
}

bool moe_read(Compilation *c, const Node *n, Moe *z)
{
    *z = moe_of(c, n);
    return read_sizes(c, n, z);
}

/* Router logits are [rows, experts], rows flattened or not. */
static bool router_fits(Compilation *c, const Node *n, const Moe *z, int input)
{
    const Value *x = node_input(c, n, 0), *v = input >= 0 ? node_input(c, n, input) : NULL;
    if (!v || v->rank < 1) return true;
    if (!dim_equate(c, n, "a router's logit for each expert", v->dims[v->rank - 1], dim_const(c, z->experts))) return false;
    const Dim rows = dims_product(c, x->rank - 1, x->dims), found = dims_product(c, v->rank - 1, v->dims);
    return !rows || !found || dim_equate(c, n, "a router's logits for each row", found, rows);
}

static bool moe_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    Moe z = moe_of(c, n);
    if (x->rank < 0) return output_set(c, n, 0, x->dtype, -1, NULL);
    if (x->rank < 2) {
        node_error(c, n, "input '%s': rank 2 or 3 is needed, found %d", x->name, x->rank);
        return false;
    }
    if (!moe_supported(c, n, &z) || !read_sizes(c, n, &z) || !router_fits(c, n, &z, 1) || !router_fits(c, n, &z, z.router_weights))
        return false;
    Dim dims[MAX_RANK];
    memcpy(dims, x->dims, sizeof(Dim) * (size_t)x->rank);
    dims[x->rank - 1] = dim_const(c, z.hidden);
    return output_set(c, n, 0, x->dtype, x->rank, dims);
}

/* ---- lowering */

/* V as rows, or a copy that lies so. */
static View as_rows(Lower *l, const Node *n, const View *v)
{
    Compilation *c = lower_compilation(l);
    View flat;
    if (v->stride[v->rank - 1] == 1 && product_flatten(l, v, &flat)) return flat;
    const Dim dims[2] = {dims_product(c, v->rank - 1, v->dims), v->dims[v->rank - 1]};
    const View dense = lower_temporary(l, arena_text(&c->arena, "%s.dense", n->name), v->store, 2, dims);
    lower_copy(l, n, *v, dense, arena_text(&c->arena, "%s (copy)", n->name));
    if (!product_flatten(l, &dense, &flat)) fault("lower", "%s: rows do not lie behind one another", n->name);
    return flat;
}

void moe_logits(Lower *l, Kernel *k, const Moe *z, const View *router)
{
    const int vector = view_vector(l, router);
    const int64_t each = z->experts / 32; /* logits of a lane */
    kernel_in(k, "LOGITS", *router);
    kernel_int(k, "EXPERTS", z->experts);
    kernel_int(k, "LOGITS_16", router->store != DT_F32);
    kernel_int(k, "LOGITS_V", vector > 1 && z->experts % 32 == 0 && each % vector == 0 ? vector : 1);
}

void moe_routing(Lower *l, Kernel *k, const Node *n, const Moe *z, const View *router, const View *chosen, const View *share)
{
    const bool given = z->router_weights >= 0;
    moe_logits(l, k, z, router);
    if (given) {
        const View own = lower_input(l, n, z->router_weights);
        kernel_in(k, "W", as_rows(l, n, &own));
    }
    kernel_out(k, "CHOSEN", *chosen);
    kernel_out(k, "SHARE", *share);
    kernel_int(k, "TOP", z->top);
    kernel_int(k, "GIVEN", given);
    kernel_text(k, "GIVEN_LD(row, e)", given ? "((float)W_LD(W_AT(row, e)))" : "0.0f");
    kernel_int(k, "NORMALISE", attr_int(n, "normalize_routing_weights") != 0);
}

static void route(Lower *l, const Node *n, const Moe *z, const View *router, const View *chosen, const View *share)
{
    int64_t threads = (z->experts + 31) / 32 * 32;
    if (threads > 256) threads = 256;
    Kernel *k = kernel_begin(l, n, "moe_route");
    moe_routing(l, k, n, z, router, chosen, share);
    kernel_dim(k, "ROWS", chosen->dims[0]);
    kernel_label(k, arena_text(&lower_compilation(l)->arena, "%s: routing", n->name));
    const int64_t rows = lower_upper(l, chosen->dims[0]);
    kernel_launch(k, rows < 1 ? 1 : rows, 1, 1, (int)threads);
}

void moe_activation(Kernel *k, const Node *n, const Moe *z)
{
    kernel_int(k, "PAIR", z->third ? 3 : (int)z->fusion);
    kernel_int(k, "INNER", z->inner);
    kernel_int(k, "ACTIVATION", activation_code(attr_string(n, "activation_type")));
    kernel_float(k, "ALPHA", attr_float(n, "activation_alpha"));
    kernel_float(k, "BETA", attr_float(n, "activation_beta"));
    kernel_float(k, "LIMIT", attr_given(n, "swiglu_limit") ? attr_float(n, "swiglu_limit") : HUGE_VAL);
    kernel_int(k, "LIMIT_AFTER", attr_int(n, "swiglu_limit_after_activation") != 0);
}

static void moe_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    Moe z;
    View y;
    if (!moe_read(c, n, &z)) return;
    const View from = lower_input(l, n, 0), x = as_rows(l, n, &from), to = lower_output(l, n, 0);
    if (!product_flatten(l, &to, &y)) fault("lower", "%s: the output's rows do not lie behind one another", n->name);
    const Dim routes[2] = {x.dims[0], dim_const(c, z.top)}, wide[3] = {x.dims[0], dim_const(c, z.top), dim_const(c, z.inner)};
    const View probs = lower_input(l, n, 1), router = as_rows(l, n, &probs);
    const View chosen = lower_temporary(l, "chosen experts", DT_I32, 2, routes), share = lower_temporary(l, "shares", DT_F32, 2, routes);
    if (!moe_routes(l, &z, &x)) route(l, n, &z, &router, &chosen, &share);
    if (moe_rows(l, n, &z, &x, &y, &chosen, &share)) return;
    const View inner = lower_temporary(l, "inner", DT_F32, 3, wide);
    moe_up(l, n, &z, &x, &router, &chosen, &share, &inner);
    moe_down(l, n, &z, &inner, &router, &chosen, &share, &y);
}

#define MOE_ATTRS \
    "k:int=1, activation_type:string=relu, normalize_routing_weights:int=0, use_sparse_mixer:int=0, swiglu_fusion:int=0, " \
    "swiglu_limit:float?, swiglu_limit_after_activation:int=0, activation_alpha:float=1.0, activation_beta:float=0.0"

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "MoE", .since = 1,
     .schema = "input:T, router_probs:R, fc1_experts_weights:T, fc1_experts_bias:T?, fc2_experts_weights:T, fc2_experts_bias:T?, "
               "fc3_experts_weights:T?, fc3_experts_bias:T? -> output:T ; " MOE_ATTRS " | T=f32 f16 bf16, R=f32 f16 bf16",
     .facts = OP_EPILOGUE | OP_LATE, .shape = moe_shape, .lower = moe_lower, .note = "not: use_sparse_mixer"},
    {.domain = "com.microsoft", .name = "QMoE", .since = 1,
     .schema = "input:T, router_probs:R, fc1_experts_weights:W, fc1_scales:S?, fc1_experts_bias:T?, fc2_experts_weights:W, "
               "fc2_scales:S?, fc2_experts_bias:T?, fc3_experts_weights:W?, fc3_scales:S?, fc3_experts_bias:T?, "
               "fc1_zero_points:W?, fc2_zero_points:W?, fc3_zero_points:W?, router_weights:R?, fc1_global_scale:any?, "
               "fc2_global_scale:any?, fc1_act_scale:any?, fc2_act_scale:any?, fc1_act_block_scale:any?, fc2_act_block_scale:any? -> "
               "output:T ; " MOE_ATTRS ", expert_weight_bits:int=4, fc1_expert_weight_bits:int?, fc2_expert_weight_bits:int?, "
               "fc3_expert_weight_bits:int?, block_size:int?, quant_type:string=int, weights_prepacked:int=-1, accuracy_level:int=0, "
               "prefill_min_tokens:int=2 | T=f32 f16 bf16, R=f32 f16 bf16, S=f32 f16 bf16, W=u8 f8e4m3fn",
     .facts = OP_EPILOGUE | OP_LATE, .shape = moe_shape, .lower = moe_lower,
     .note = "not: use_sparse_mixer, fp4 and fp8 weights, weights_prepacked 1"},
};

const OpFamily ops_moe = {rows, COUNT_OF(rows), "compiler/ops/moe.c"};
