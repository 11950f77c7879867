/* recurrent.c - layers that carry a state of fixed size from token to token: LinearAttention and CausalConvWithState, of
 * com.microsoft and of ai.onnx. A state that only its node reads is written in place: each column or channel has one owner,
 * which loads it before it stores. */
#include "lower.h"
#include "ops/heads.h"
#include "ops/move.h"
#include "ops/recurrent.h"

#include <math.h>
#include <string.h>

enum { NO_ROWS = -1 }; /* the whole state is replaced: see OpRow.inplace */

bool recurrent_has(const Node *n, int output)
{
    return output < n->output_count && n->outputs[output];
}

static bool has_rank(Compilation *c, const Node *n, int i, const char *what, int rank)
{
    const Value *v = node_input(c, n, i);
    if (!v || v->rank == rank) return true;
    node_error(c, n, "%s '%s' has rank %d; expected %d", what, v->name, v->rank, rank);
    return false;
}

static bool same_shape(Compilation *c, const Node *n, const char *rule, const Value *v, const Dim *dims)
{
    for (int i = 0; v && i < v->rank; i++)
        if (dims[i] && !dim_equate(c, n, rule, v->dims[i], dims[i])) return false;
    return true;
}

/* Whether the attribute NAME, where this row has it, is V. */
static bool attr_is(const Node *n, const char *name, int64_t v)
{
    for (int i = 0; i < n->attr_count; i++)
        if (!strcmp(n->attrs[i].name, name)) return n->attrs[i].i == v;
    return true;
}

static bool attrs_supported(Compilation *c, const Node *n, const char *const *names, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!attr_is(n, names[i], values[i])) {
            node_error(c, n, "%s is %lld; only %lld is supported", names[i], (long long)attr_int(n, names[i]), (long long)values[i]);
            return false;
        }
    return true;
}

View state_operands(Lower *l, Kernel *k, const Node *n, const char *prefix, int input, int output, DType t, int rank, const Dim *dims)
{
    Compilation *c = lower_compilation(l);
    const bool old = node_input(c, n, input) != NULL, named = recurrent_has(n, output);
    const char *has_old = arena_text(&c->arena, "%sHAS_OLD", prefix), *new = arena_text(&c->arena, "%sNEW", prefix);
    View state;
    if (old && named && lower_inplace(l, n, input, output, &state)) {
        for (int i = 0; i < rank; i++) state.dims[i] = lower_dim(l, dims[i]);
        lower_set_view(l, n, output, state);
        kernel_inout(k, new, state);
        kernel_int(k, has_old, 2);
        return state;
    }
    state = named ? lower_output(l, n, output) : lower_temporary(l, "state", t, rank, dims);
    kernel_out(k, new, state);
    if (old) kernel_in(k, arena_text(&c->arena, "%sOLD", prefix), lower_input(l, n, input));
    kernel_int(k, has_old, old);
    return state;
}

/* ---- LinearAttention */

static bool linear_rule(Compilation *c, const Node *n, Linear *z)
{
    const char *rule = attr_string(n, "update_rule");
    z->gated = !strcmp(rule, "gated") || !strcmp(rule, "gated_delta");
    z->delta = !strcmp(rule, "delta") || !strcmp(rule, "gated_delta");
    if (!z->gated && !z->delta && strcmp(rule, "linear") != 0)
        node_error(c, n, "update_rule '%s': expected linear, gated, delta or gated_delta", rule);
    else if (z->gated && !node_input(c, n, LA_DECAY))
        node_error(c, n, "update_rule %s needs the input decay", rule);
    else if (z->delta && !node_input(c, n, LA_BETA))
        node_error(c, n, "update_rule %s needs the input beta", rule);
    else
        return true;
    return false;
}

static bool head_counts(Compilation *c, const Node *n, Linear *z)
{
    z->q_heads = attr_int(n, "q_num_heads");
    z->kv_heads = attr_int(n, "kv_num_heads");
    if (z->q_heads > 0 && z->kv_heads > 0 &&
        (z->q_heads % z->kv_heads == 0 || (z->kv_heads % z->q_heads == 0 && !strcmp(n->domain, "com.microsoft"))))
        return true;
    node_error(c, n, "q_num_heads %lld must be a multiple of kv_num_heads %lld%s", (long long)z->q_heads, (long long)z->kv_heads,
               strcmp(n->domain, "com.microsoft") ? "" : ", or a divisor");
    return false;
}

/* 0 when not known yet; false after an error. */
static bool head_size(Compilation *c, const Node *n, const char *what, Dim hidden, int64_t heads, Dim *size)
{
    const Dim known = hidden ? dim_resolve(c, hidden) : 0;
    *size = known ? dim_div_exact(c, known, dim_const(c, heads)) : 0;
    if (*size || !known || !dim_is_const(c, known, NULL)) return true;
    node_error(c, n, "%s %s is not divisible by %lld heads", what, dim_text(c, known), (long long)heads);
    return false;
}

static bool key_heads(Compilation *c, const Node *n, Linear *z)
{
    const Value *k = node_input(c, n, LA_KEY);
    const Dim hidden = k->rank == 3 && k->dims[2] ? dim_resolve(c, k->dims[2]) : 0;
    const Dim count = hidden && z->key ? dim_div_exact(c, hidden, dim_resolve(c, z->key)) : 0;
    z->k_heads = 0;
    if (!hidden || !z->key || !dim_is_const(c, hidden, NULL) || !dim_is_const(c, dim_resolve(c, z->key), NULL)) return true;
    if (count && dim_is_const(c, count, &z->k_heads) && z->k_heads > 0 && z->kv_heads % z->k_heads == 0) return true;
    node_error(c, n, "the key's hidden size %s is not a number of heads of %s that divides %lld", dim_text(c, hidden), dim_text(c, z->key),
               (long long)z->kv_heads);
    return false;
}

bool linear_sizes(Compilation *c, const Node *n, Linear *z)
{
    const Value *q = node_input(c, n, LA_QUERY), *v = node_input(c, n, LA_VALUE);
    memset(z, 0, sizeof *z);
    z->batch = q->dims[0];
    z->tokens = q->dims[1];
    return linear_rule(c, n, z) && head_counts(c, n, z) &&
           head_size(c, n, "the query's hidden size", q->dims[2], z->q_heads, &z->key) &&
           head_size(c, n, "the value's hidden size", v->dims[2], z->kv_heads, &z->value) && key_heads(c, n, z);
}

/* Gates have one number for each head (decay also for each row of the state, beta also for all heads). */
static bool gate_fits(Compilation *c, const Node *n, int input, const Linear *z)
{
    const Value *v = node_input(c, n, input);
    const Dim narrow = dim_const(c, z->kv_heads), last = v && v->dims[2] ? dim_resolve(c, v->dims[2]) : 0;
    const Dim other = input == LA_BETA ? dim_const(c, 1) : z->key ? dim_scale(c, z->key, z->kv_heads) : 0;
    if (!v) return true;
    if (!dim_equate(c, n, "gates are as many as queries", v->dims[0], z->batch) ||
        !dim_equate(c, n, "gates are as many as queries", v->dims[1], z->tokens))
        return false;
    if (!last || !other || dim_equal(c, last, narrow) || dim_equal(c, last, other) || !dim_is_const(c, last, NULL)) return true;
    node_error(c, n, "%s '%s': its last dim is %s; expected %lld or %s", input == LA_BETA ? "beta" : "decay", v->name, dim_text(c, last),
               (long long)z->kv_heads, dim_text(c, other));
    return false;
}

static bool linear_fits(Compilation *c, const Node *n, const Linear *z, const Dim *state)
{
    static const char *const names[] = {"query", "key", "value", "past_state", "decay", "beta"};
    const Dim rows[3] = {z->batch, z->tokens, 0};
    for (int i = 0; i < 6; i++)
        if (!has_rank(c, n, i, names[i], i == LA_PAST ? 4 : 3)) return false;
    return same_shape(c, n, "keys are as many as queries", node_input(c, n, LA_KEY), rows) &&
           same_shape(c, n, "values are as many as queries", node_input(c, n, LA_VALUE), rows) &&
           same_shape(c, n, "a state has a matrix for each head", node_input(c, n, LA_PAST), state) &&
           gate_fits(c, n, LA_DECAY, z) && gate_fits(c, n, LA_BETA, z);
}

static bool linear_shape(Compilation *c, Node *n)
{
    static const char *const refused[] = {"state_window"};
    static const int64_t plain[] = {0};
    const Value *q = node_input(c, n, LA_QUERY), *past = node_input(c, n, LA_PAST), *present = node_output(c, n, 1);
    Linear z;
    if (!attrs_supported(c, n, refused, plain, 1)) return false;
    if (heads_unranked(c, n)) return output_set(c, n, 0, q->dtype, -1, NULL);
    if (!has_rank(c, n, LA_QUERY, "query", 3) || !has_rank(c, n, LA_VALUE, "value", 3) || !linear_sizes(c, n, &z)) return false;
    const Dim state[4] = {z.batch, dim_const(c, z.kv_heads), z.key, z.value};
    if (!linear_fits(c, n, &z, state)) return false;
    const Dim out[3] = {z.batch, z.tokens, z.value ? dim_scale(c, z.value, z.q_heads > z.kv_heads ? z.q_heads : z.kv_heads) : 0};
    const DType t = past ? past->dtype : present && present->dtype ? present->dtype : q->dtype;
    return output_set(c, n, 0, q->dtype, 3, out) && output_set(c, n, 1, t, 4, state);
}

/* Whether each row of a state has a decay of its own, not each head. */
static bool decays_by_row(Lower *l, const Node *n, const Linear *z) { return lower_upper(l, lower_input(l, n, LA_DECAY).dims[2]) != z->kv_heads; }

void linear_operands(Lower *l, Kernel *k, const Node *n, const Linear *z, int64_t key, int64_t value)
{
    kernel_out(k, "Y", lower_output(l, n, 0));
    int64_t each = 0;
    if (z->gated) kernel_in(k, "G", lower_input(l, n, LA_DECAY));
    if (z->delta) {
        const View beta = lower_input(l, n, LA_BETA);
        each = z->kv_heads == 1 || lower_upper(l, beta.dims[2]) > 1;
        kernel_in(k, "B", beta);
    }
    kernel_int(k, "GATED", !z->gated ? 0 : decays_by_row(l, n, z) ? 2 : 1);
    kernel_int(k, "DELTA", !z->delta ? 0 : each ? 2 : 1);
    kernel_dim(k, "BATCH", lower_dim(l, z->batch));
    kernel_int(k, "Q_HEADS", z->q_heads);
    kernel_int(k, "KV_HEADS", z->kv_heads);
    kernel_int(k, "K_HEADS", z->k_heads);
    kernel_int(k, "HEAD", key);
    kernel_int(k, "VHEAD", value);
    kernel_float(k, "SCALE", attr_float(n, "scale") != 0.0 ? attr_float(n, "scale") : 1.0 / sqrt((double)key));
}

/* Of the tokens that a block has in shared memory at once: bytes, how many. */
enum { TILE_BYTES = 46 * 1024, MOST_TOKENS = 32, MOST_COLUMNS = 32 };

/* How many they are when ROWS of KEY elements go with each; 0: not even one fits. */
static int64_t tile_tokens(int64_t key, int64_t rows)
{
    const int64_t quarter = (key + 15) / 16 * 4 + 4, floats = 4 * quarter * rows + MOST_COLUMNS + 2, tile = TILE_BYTES / 4 / floats;
    return tile > MOST_TOKENS ? MOST_TOKENS : tile;
}

static void linear_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const Value *past = node_input(c, n, LA_PAST);
    Linear z;
    if (!linear_sizes(c, n, &z)) return;
    const int64_t key = heads_constant(c, n, lower_dim(l, z.key), "the key's head size");
    const int64_t value = heads_constant(c, n, lower_dim(l, z.value), "the value's head size");
    if (key < 0 || value < 0) return;
    if (key > 1024) {
        node_error(c, n, "a key's head size of %lld is not supported; at most 1024", (long long)key);
        return;
    }
    if (linear_step(l, n, &z, key, value)) return;
    const int64_t group = z.q_heads > z.kv_heads ? z.q_heads / z.kv_heads : 1, fades = z.gated && decays_by_row(l, n, &z);
    const bool together = tile_tokens(key, 1 + group + fades) > 0; /* else each lane reads what it needs of the queries itself */
    const Dim state[4] = {z.batch, dim_const(c, z.kv_heads), z.key, z.value};
    const int64_t warps = value > 24 ? 4 : (value + 7) / 8, columns = 8 * warps;
    Kernel *k = kernel_begin(l, n, "linear_attention");
    kernel_in(k, "Q", lower_input(l, n, LA_QUERY));
    kernel_in(k, "K", lower_input(l, n, LA_KEY));
    kernel_in(k, "V", lower_input(l, n, LA_VALUE));
    linear_operands(l, k, n, &z, key, value);
    state_operands(l, k, n, "", LA_PAST, 1, past ? past->dtype : node_input(c, n, LA_QUERY)->dtype, 4, state);
    kernel_dim(k, "TOKENS", lower_dim(l, z.tokens));
    kernel_int(k, "GROUP", group);
    kernel_int(k, "TOGETHER", together);
    kernel_int(k, "TILE", tile_tokens(key, 1 + (together ? group : 0) + fades));
    const int64_t batch = lower_upper(l, lower_dim(l, z.batch));
    kernel_launch(k, (value + columns - 1) / columns, z.kv_heads, batch < 1 ? 1 : batch, (int)(32 * warps));
}

static int linear_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    *axis = NO_ROWS;
    *append = false;
    return output == 1 && node_input(c, n, LA_PAST) ? LA_PAST : -1;
}

/* ---- CausalConvWithState */

int64_t conv_dilation(const Node *n)
{
    return !strcmp(n->domain, "com.microsoft") ? attr_int(n, "dilation") : 1;
}

bool conv_silu(const Node *n)
{
    return strcmp(attr_string(n, "activation"), "none") != 0;
}

static bool conv_supported(Compilation *c, const Node *n)
{
    static const char *const names[] = {"ndim", "channels_last", "state_window", "state_update_capacity", "state_channels_last",
                                        "state_length", "input_channel_offset", "input_channels"};
    static const int64_t plain[] = {1, 0, 0, 0, -1, 0, 0, 0};
    const char *activation = attr_string(n, "activation");
    if (!attrs_supported(c, n, names, plain, COUNT_OF(names))) return false;
    if (recurrent_has(n, 2)) {
        node_error(c, n, "output state_update is not supported");
        return false;
    }
    if (strcmp(activation, "none") != 0 && strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0) {
        node_error(c, n, "activation '%s': expected none, silu or swish", activation);
        return false;
    }
    if (conv_dilation(n) < 1) node_error(c, n, "dilation %lld: expected 1 or more", (long long)conv_dilation(n));
    return conv_dilation(n) >= 1;
}

/* Positions before the input that a row's last output sees; 0: not known yet. */
static Dim reach(Compilation *c, const Node *n)
{
    const Dim taps = node_input(c, n, CC_WEIGHT)->dims[2];
    return taps ? dim_scale(c, dim_sub(c, dim_resolve(c, taps), dim_const(c, 1)), conv_dilation(n)) : 0;
}

static bool conv_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, CC_INPUT), *w = node_input(c, n, CC_WEIGHT);
    if (!conv_supported(c, n)) return false;
    if (heads_unranked(c, n)) return output_set(c, n, 0, x->dtype, x->rank, x->dims);
    if (!has_rank(c, n, CC_INPUT, "input", 3) || !has_rank(c, n, CC_WEIGHT, "weight", 3) || !has_rank(c, n, CC_BIAS, "bias", 1) ||
        !has_rank(c, n, CC_PAST, "past_state", 3))
        return false;
    const Dim weight[3] = {x->dims[1], dim_const(c, 1), 0}, state[3] = {x->dims[0], x->dims[1], reach(c, n)};
    return same_shape(c, n, "a filter for each channel", w, weight) &&
           same_shape(c, n, "a bias for each channel", node_input(c, n, CC_BIAS), &x->dims[1]) &&
           same_shape(c, n, "a state has what the filter sees before the input", node_input(c, n, CC_PAST), state) &&
           output_set(c, n, 0, x->dtype, 3, x->dims) && output_set(c, n, 1, x->dtype, 3, state);
}

/* PART 1: outputs, 2: the new state, 3: both, by the channel's owner. UNIT names what a thread makes: a box of three axes. */
static void conv_launch(Lower *l, Node *n, int part, const View *x, const View *y, int64_t taps, int64_t before)
{
    Compilation *c = lower_compilation(l);
    const bool across = x->stride[1] == 1 && x->stride[2] != 1; /* neighbouring threads take neighbouring elements */
    const Dim one = dim_const(c, 1), steps = part == 1 ? x->dims[2] : one;
    const Dim along[3] = {x->dims[0], x->dims[1], steps}, other[3] = {x->dims[0], steps, x->dims[1]};
    const Dim state[3] = {x->dims[0], x->dims[1], dim_const(c, before)};
    Kernel *k = kernel_begin(l, n, "causal_conv");
    kernel_in(k, "X", *x);
    kernel_in(k, "W", lower_input(l, n, CC_WEIGHT));
    kernel_out(k, "Y", *y);
    if (node_input(c, n, CC_BIAS)) kernel_in(k, "BIAS", lower_input(l, n, CC_BIAS));
    if (part & 2) {
        state_operands(l, k, n, "", CC_PAST, 1, x->store, 3, state);
    } else {
        if (node_input(c, n, CC_PAST)) kernel_in(k, "OLD", lower_input(l, n, CC_PAST));
        kernel_int(k, "HAS_OLD", node_input(c, n, CC_PAST) != NULL);
    }
    kernel_int(k, "PART", part);
    kernel_int(k, "HAS_BIAS", node_input(c, n, CC_BIAS) != NULL);
    kernel_int(k, "TAPS", taps);
    kernel_int(k, "DILATION", conv_dilation(n));
    kernel_int(k, "BEFORE", before);
    kernel_int(k, "SILU", conv_silu(n));
    kernel_dim(k, "COUNT", dims_product(c, 3, along));
    kernel_text(k, "INDEX", index_split(l, 3, across ? other : along, "i"));
    kernel_text(k, "CHANNEL", across ? "i2" : "i1");
    kernel_text(k, "STEP", across ? "i1" : "i2");
    if (part == 2) kernel_label(k, arena_text(&c->arena, "%s: state", n->name));
    const int block = part == 1 ? 256 : 128;
    kernel_launch(k, grid_for(lower_upper(l, dims_product(c, 3, along)), block), 1, 1, block);
}

static void conv_lower(Lower *l, Node *n)
{
    Compilation *c = lower_compilation(l);
    const View x = lower_input(l, n, CC_INPUT), y = lower_output(l, n, 0);
    const int64_t taps = heads_constant(c, n, lower_dim(l, node_input(c, n, CC_WEIGHT)->dims[2]), "the filter's length");
    const int64_t before = taps < 0 ? -1 : (taps - 1) * conv_dilation(n);
    const bool state = recurrent_has(n, 1) && before > 0;
    if (taps < 0) return;
    if (before > 64 && state) {
        node_error(c, n, "a state of %lld positions is not supported; at most 64", (long long)before);
        return;
    }
    if (state && lower_upper(l, x.dims[2]) <= 4) {
        conv_launch(l, n, 3, &x, &y, taps, before);
        return;
    }
    conv_launch(l, n, 1, &x, &y, taps, before);
    if (state) conv_launch(l, n, 2, &x, &y, taps, before);
}

static int conv_inplace(Compilation *c, const Node *n, int output, int *axis, bool *append)
{
    *axis = NO_ROWS;
    *append = false;
    return output == 1 && node_input(c, n, CC_PAST) ? CC_PAST : -1;
}

#define FLOATS "f32 f16 bf16"
#define LINEAR(domain_, since_, more_) \
    {.domain = domain_, .name = "LinearAttention", .since = since_, .facts = OP_APPEND | OP_FILTERED, \
     .schema = "query:T, key:T, value:T, past_state:S?, decay:T?, beta:T? -> output:T, present_state:S? ; " \
               "q_num_heads:int, kv_num_heads:int, update_rule:string=gated_delta, scale:float=0.0, chunk_size:int=64" more_ \
               " | T=" FLOATS ", S=" FLOATS, \
     .shape = linear_shape, .lower = linear_lower, .inplace = linear_inplace}

static const OpRow rows[] = {
    LINEAR("com.microsoft", 1, ", state_window:int=0"),
    LINEAR("", 27, ""),
    {.domain = "com.microsoft", .name = "CausalConvWithState", .since = 1, .facts = OP_APPEND | OP_FILTER,
     .schema = "input:T, weight:T, bias:T?, past_state:T? -> output:T, present_state:T?, state_update:T? ; activation:string=none, "
               "ndim:int=1, dilation:int=1, channels_last:int=0, state_window:int=0, state_update_capacity:int=0, "
               "state_channels_last:int=-1, state_length:int=0, input_channel_offset:int=0, input_channels:int=0 | T=" FLOATS,
     .shape = conv_shape, .lower = conv_lower, .inplace = conv_inplace},
    {.domain = "", .name = "CausalConvWithState", .since = 27, .facts = OP_APPEND | OP_FILTER,
     .schema = "input:T, weight:T, bias:T?, past_state:T? -> output:T, present_state:T? ; activation:string=none | T=" FLOATS,
     .shape = conv_shape, .lower = conv_lower, .inplace = conv_inplace},
};

const OpFamily ops_recurrent = {rows, COUNT_OF(rows), "compiler/ops/recurrent.c"};
