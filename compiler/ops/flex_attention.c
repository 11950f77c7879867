/* flex_attention.c - ai.onnx.preview FlexAttention, which is a function: its body, with score_mod and prob_mod in their places. */
#include "expand.h"

#include <math.h>
#include <string.h>

/* Keys or values with REPEAT copies of each head side by side, so that they are as many as the query's. */
static uint32_t repeated(Expansion *e, uint32_t x, int64_t repeat, int64_t heads, int64_t width)
{
    if (repeat == 1) return x;
    const int64_t copies[5] = {1, 1, repeat, 1, 1}, shape[4] = {0, heads, -1, width};
    x = expand_made(e, "Unsqueeze", x, expand_number(e, DT_I64, 1, 2));
    x = expand_made(e, "Expand", x, expand_constant(e, DT_I64, 1, 5, copies));
    return expand_made(e, "Reshape", x, expand_constant(e, DT_I64, 1, 4, shape));
}

static uint32_t transposed(Expansion *e, uint32_t x)
{
    static int64_t order[4] = {0, 1, 3, 2};
    const uint32_t made = expand_made(e, "Transpose", x, 0);
    expand_attr(e, &e->nodes[e->count - 1], &(Attr){.name = "perm", .kind = ATTR_INTS, .present = true, .count = 4, .ints = order});
    return made;
}

/* What the subgraph of attribute ATTR makes of X; X where there is none, 0 after an error. */
static uint32_t modified(Expansion *e, const char *attr, uint32_t x)
{
    if (!attr_given(&e->node, attr)) return x;
    const Graph *g = expand_subgraph(e, attr);
    if (g->input_count != 1 || g->output_count != 1) {
        expand_refuse(e, "%s has %u inputs and %u outputs; expected 1 and 1", attr, g->input_count, g->output_count);
        return 0;
    }
    const uint32_t *outputs = expand_clone(e, g, &x);
    return outputs ? outputs[0] : 0;
}

typedef struct Heads { int64_t count, kv_count, width, v_width; } Heads;

static bool known(Expansion *e, Dim d, const char *what, int64_t *out)
{
    return (d && dim_is_const(e->c, dim_resolve(e->c, d), out)) || expand_refuse(e, "%s is not known when compiling", what);
}

static bool heads_of(Expansion *e, Heads *h)
{
    const Value *q = node_input(e->c, &e->node, 0), *k = node_input(e->c, &e->node, 1), *v = node_input(e->c, &e->node, 2);
    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        return expand_refuse(e, "Q, K and V must have rank 4, found %d, %d, %d", q->rank, k->rank, v->rank);
    if (!known(e, q->dims[1], "the number of query heads", &h->count) || !known(e, k->dims[1], "the number of key heads", &h->kv_count) ||
        !known(e, q->dims[3], "the head size", &h->width) || !known(e, v->dims[3], "the value's head size", &h->v_width))
        return false;
    return (h->kv_count > 0 && h->count % h->kv_count == 0) ||
           expand_refuse(e, "%lld query heads are not a multiple of %lld key heads", (long long)h->count, (long long)h->kv_count);
}

/* The dtype of scores and probabilities; DT_NONE after an error. */
static DType precision_of(Expansion *e, DType type)
{
    const DType usual = type == DT_F64 ? DT_F64 : DT_F32;
    const DType t = attr_given(&e->node, "softmax_precision") ? attr_dtype(&e->node, "softmax_precision") : usual;
    if (t == DT_F32 || t == DT_F16 || t == DT_BF16 || t == DT_F64) return t;
    expand_refuse(e, "softmax_precision is %d; expected %d, %d, %d or %d", (int)t, DT_F32, DT_F16, DT_F64, DT_BF16);
    return DT_NONE;
}

static bool expand_flex(Expansion *e)
{
    Heads h;
    const DType type = node_input(e->c, &e->node, 0)->dtype, wide = precision_of(e, type);
    if (!wide || !heads_of(e, &h)) return false;
    const double scale = attr_given(&e->node, "scale") ? attr_float(&e->node, "scale") : 1.0 / sqrt((double)h.width);
    const uint32_t root = expand_cast(e, expand_float(e, (float)sqrt(scale)), DT_F32, type); /* half of it for each side */
    const uint32_t q = expand_made(e, "Mul", e->node.inputs[0], root);
    const uint32_t k = expand_made(e, "Mul", repeated(e, e->node.inputs[1], h.count / h.kv_count, h.count, h.width), root);
    const uint32_t v = expand_cast(e, repeated(e, e->node.inputs[2], h.count / h.kv_count, h.count, h.v_width), type, wide);
    const uint32_t scores = modified(e, "score_mod", expand_cast(e, expand_made(e, "MatMul", q, transposed(e, k)), type, wide));
    if (!scores) return false;
    const uint32_t softmax = expand_made(e, "Softmax", scores, 0); /* of the last axis */
    const uint32_t probabilities = modified(e, "prob_mod", softmax);
    if (!probabilities) return false;
    expand_identity(e, expand_cast(e, expand_made(e, "MatMul", probabilities, v), wide, type), e->node.outputs[0]);
    return true;
}

static const OpRow rows[] = {
    {.domain = "ai.onnx.preview", .name = "FlexAttention", .since = 1, .facts = OP_CONTROL,
     .schema = "Q:T, K:T, V:T -> Y:T ; prob_mod:graph?, scale:float?, score_mod:graph?, softmax_precision:int? | T=bf16 f16 f32 f64",
     .expand = expand_flex},
};

const OpFamily ops_flex_attention = {rows, COUNT_OF(rows), "compiler/ops/flex_attention.c"};
