/* gated.c - com.microsoft LinearAttentionGate and GatedRMSNorm: functions, each the chain that it fuses, in float between
 * one widening and one rounding. */
#include "expand.h"

#include <string.h>

static DType type_of(const Expansion *e, int input) { return node_input(e->c, &e->node, input)->dtype; }

static bool has_output(const Expansion *e, int i) { return i < e->node.output_count && e->node.outputs[i]; }

static bool expand_gate(Expansion *e)
{
    const DType type = type_of(e, 0);
    if (has_output(e, 1) && !node_input(e->c, &e->node, 3)) return expand_refuse(e, "output beta needs input b");
    if (has_output(e, 0)) {
        const uint32_t biased = expand_made(e, "Add", expand_cast(e, e->node.inputs[0], type, DT_F32), e->node.inputs[1]);
        const uint32_t decay = expand_made(e, "Mul", expand_made(e, "Softplus", biased, 0), e->node.inputs[2]);
        expand_identity(e, expand_cast(e, decay, DT_F32, type), e->node.outputs[0]);
    }
    if (has_output(e, 1)) expand_identity(e, expand_made(e, "Sigmoid", e->node.inputs[3], 0), e->node.outputs[1]);
    return true;
}

/* X with its last dim, WIDTH of them each COUNT long, split in two (or joined again: COUNT 0). */
static uint32_t regrouped(Expansion *e, uint32_t x, int rank, int64_t width, int64_t count)
{
    int64_t shape[MAX_RANK] = {0};
    int last = rank - 1; /* the dims before are those of x */
    shape[last++] = count ? width / count : width;
    if (count) shape[last++] = count;
    return expand_made(e, "Reshape", x, expand_constant(e, DT_I64, 1, last, shape));
}

static bool expand_gated_norm(Expansion *e)
{
    const Value *x = node_input(e->c, &e->node, 0), *scale = node_input(e->c, &e->node, 1);
    const char *activation = attr_string(&e->node, "activation");
    int64_t width, count;
    if (strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0 && strcmp(activation, "sigmoid") != 0)
        return expand_refuse(e, "activation '%s' is not known; expected silu, swish or sigmoid", activation);
    if (x->rank < 1 || x->rank >= MAX_RANK || scale->rank != 1)
        return expand_refuse(e, "input X has rank %d and scale rank %d; expected 1 to %d, and 1", x->rank, scale->rank, MAX_RANK - 1);
    if (!x->dims[x->rank - 1] || !dim_is_const(e->c, dim_resolve(e->c, x->dims[x->rank - 1]), &width) || !scale->dims[0] ||
        !dim_is_const(e->c, dim_resolve(e->c, scale->dims[0]), &count))
        return expand_refuse(e, "the last dim of X and the length of scale must be known when compiling");
    if (count <= 0 || width % count)
        return expand_refuse(e, "the last dim of X, %lld, is not a multiple of scale's length %lld", (long long)width, (long long)count);
    const DType type = x->dtype;
    const int rank = x->rank;
    const Attr epsilon = {.name = "epsilon", .kind = ATTR_FLOAT, .present = true, .f = attr_float(&e->node, "epsilon")};
    uint32_t wide = expand_cast(e, e->node.inputs[0], type, DT_F32);
    if (width != count) wide = regrouped(e, wide, rank, width, count);
    uint32_t y = expand_made(e, "RMSNormalization", wide, expand_cast(e, e->node.inputs[1], type, DT_F32));
    expand_attr(e, &e->nodes[e->count - 1], &epsilon);
    if (width != count) y = regrouped(e, y, rank, width, 0);
    const uint32_t gate = expand_cast(e, e->node.inputs[2], type, DT_F32), open = expand_made(e, "Sigmoid", gate, 0);
    y = expand_made(e, "Mul", y, strcmp(activation, "sigmoid") != 0 ? expand_made(e, "Mul", gate, open) : open);
    expand_identity(e, expand_cast(e, y, DT_F32, type), e->node.outputs[0]);
    return true;
}

static const OpRow rows[] = {
    {.domain = "com.microsoft", .name = "LinearAttentionGate", .since = 1, .facts = OP_CONTROL,
     .schema = "a:T, dt_bias:f32, decay_scale:f32, b:T? -> decay:T, beta:T? | T=f32 f16 bf16", .expand = expand_gate},
    {.domain = "com.microsoft", .name = "GatedRMSNorm", .since = 1, .facts = OP_CONTROL,
     .schema = "X:T, scale:T, gate:T -> Y:T ; activation:string=silu, epsilon:float=1e-5 | T=f32 f16 bf16", .expand = expand_gated_norm},
};

const OpFamily ops_gated = {rows, COUNT_OF(rows), "compiler/ops/gated.c"};
