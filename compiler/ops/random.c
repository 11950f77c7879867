/* random.c - RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial. The numbers are a function of the seed,
 * of the element and of a word of the session's state that counts the node's runs: a replay draws anew, and two sessions that
 * run the same steps draw the same. A node without a seed has one made of its output's name. */
#include "lower.h"
#include "ops/move.h"

#include <string.h>

static DType wanted_type(const Node *n, DType otherwise)
{
    return attr_given(n, "dtype") ? attr_dtype(n, "dtype") : otherwise;
}

static bool type_allowed(Compilation *c, const Node *n, DType t)
{
    if (dtype_is_float(t) && dtype_bits(t) >= 16) return true;
    node_error(c, n, "dtype %s: expected f32, f16, bf16 or f64", dtype_name(t));
    return false;
}

static bool plain_shape(Compilation *c, Node *n)
{
    const Attr *shape = node_attr(n, "shape");
    const DType t = wanted_type(n, DT_F32);
    Dim dims[MAX_RANK];
    if (shape->count > MAX_RANK) {
        node_error(c, n, "rank %d; the largest supported is %d", shape->count, MAX_RANK);
        return false;
    }
    for (int i = 0; i < shape->count; i++) dims[i] = dim_const(c, shape->ints[i]);
    return type_allowed(c, n, t) && output_set(c, n, 0, t, shape->count, dims);
}

static bool like_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const DType t = wanted_type(n, x->dtype);
    return type_allowed(c, n, t) && output_set(c, n, 0, t, x->rank, x->dims);
}

static bool bernoulli_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    return output_set(c, n, 0, wanted_type(n, x->dtype), x->rank, x->dims);
}

static bool multinomial_shape(Compilation *c, Node *n)
{
    const Value *x = node_input(c, n, 0);
    const DType t = wanted_type(n, DT_I32);
    if (x->rank >= 0 && x->rank != 2) {
        node_error(c, n, "input '%s' has rank %d; expected 2", x->name, x->rank);
        return false;
    }
    if (t != DT_I32 && t != DT_I64) {
        node_error(c, n, "dtype %s: expected i32 or i64", dtype_name(t));
        return false;
    }
    const Dim dims[2] = {x->rank == 2 ? x->dims[0] : 0, dim_const(c, attr_int(n, "sample_size"))};
    return output_set(c, n, 0, t, 2, dims);
}

/* ---- lowering */

static uint64_t seed_of(Compilation *c, const Node *n)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    float seed = (float)attr_float(n, "seed");
    uint32_t bits;
    memcpy(&bits, &seed, sizeof bits);
    if (attr_given(n, "seed")) return bits;
    for (const char *p = c->graph.values[n->outputs[0]].name; *p; p++) hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    return hash;
}

/* The word of the state that counts the runs of node N, in all signatures. */
static View run_counter(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const char *name = arena_text(&c->arena, "runs of %s", c->graph.values[n->outputs[0]].name);
    const Dim one = dim_const(c, 1);
    uint32_t found = 0;
    for (uint32_t b = 1; b <= c->buffer_count && !found; b++)
        if (c->buffers[b].region == REGION_STATE && !strcmp(c->buffers[b].name, name)) found = b;
    return view_dense_new(l, found ? found : buffer_new(c, name, REGION_STATE, 8, 0), DT_I64, 1, &one);
}

static void count_run(Lower *l, const Node *n)
{
    Kernel *k = kernel_begin(l, n, "advance");
    kernel_inout(k, "W", run_counter(l, n));
    kernel_dim(k, "STEP", dim_const(l->c, 1));
    kernel_launch(k, 1, 1, 1, 32);
}

/* Operands X (an input, or NULL), RUNS and Y; DRAW are statements before VALUE. */
static void random_launch(Lower *l, Node *n, const View *x, bool wide, const char *draw, const char *value)
{
    const View out = lower_output(l, n, 0);
    const uint64_t seed = seed_of(l->c, n);
    if (lower_upper(l, dims_product(l->c, out.rank, out.dims)) == 0) return;
    Kernel *k = kernel_begin(l, n, "random");
    if (x) kernel_in(k, "X", *x);
    kernel_in(k, "RUNS", run_counter(l, n));
    kernel_out(k, "Y", out);
    kernel_text(k, "R_C", wide ? "double" : "float");
    kernel_text(k, "UNIT(high, low)", wide ? "((double)((gp_u64)((high) >> 5) << 26 | (low) >> 6) * 0x1p-53)" : "((float)((high) >> 8) * 0x1p-24f)");
    kernel_text(k, "SEED_LOW", arena_text(&l->c->arena, "%uu", (unsigned)(seed & 0xffffffffu)));
    kernel_text(k, "SEED_HIGH", arena_text(&l->c->arena, "%uu", (unsigned)(seed >> 32)));
    kernel_text(k, "DRAW", draw);
    kernel_text(k, "VALUE", value);
    kernel_text(k, "TARGET", index_at(l, "Y", out.rank, "i"));
    launch_elements(l, k, &out, NULL);
    count_run(l, n);
}

static void uniform_lower(Lower *l, Node *n)
{
    const bool wide = node_output(l->c, n, 0)->dtype == DT_F64;
    random_launch(l, n, NULL, wide, "", arena_text(&l->c->arena, "(R_C)%a + u * (R_C)%a", attr_float(n, "low"),
                                                   attr_float(n, "high") - attr_float(n, "low")));
}

static void normal_lower(Lower *l, Node *n)
{
    const bool wide = node_output(l->c, n, 0)->dtype == DT_F64;
    random_launch(l, n, NULL, wide, "", arena_text(&l->c->arena, wide ? "%a + %a * (sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586477 * v))"
                                                   : "%af + %af * (SQRTF(-2.0f * LOGF(1.0f - u)) * COSF(6.2831853f * v))",
                                                   attr_float(n, "mean"), attr_float(n, "scale")));
}

static void bernoulli_lower(Lower *l, Node *n)
{
    const View x = lower_input(l, n, 0);
    random_launch(l, n, &x, x.store == DT_F64, "", arena_text(&l->c->arena, "(u < X_LD(%s))", index_at(l, "X", x.rank, "i")));
}

/* The class where the running sum of the probabilities passes u. */
static void multinomial_lower(Lower *l, Node *n)
{
    const View x = lower_input(l, n, 0);
    const bool wide = x.store == DT_F64;
    const char *exp = wide ? "exp" : "EXPF";
    random_launch(l, n, &x, wide, arena_text(&l->c->arena,
        "R_C top = X_LD(X_AT(i0, 0)), sum = 0, run_sum = 0; idx pick = 0;"
        " for (idx j = 1; j < X_D1; j++) top = MAX(top, X_LD(X_AT(i0, j)));"
        " for (idx j = 0; j < X_D1; j++) sum += %s(X_LD(X_AT(i0, j)) - top);"
        " for (; pick + 1 < X_D1; pick++) { run_sum += %s(X_LD(X_AT(i0, pick)) - top); if (u * sum < run_sum) break; }", exp, exp), "pick");
}

#define NORMAL "dtype:int?, mean:float=0, scale:float=1, seed:float?"
#define UNIFORM "dtype:int?, high:float=1, low:float=0, seed:float?"
#define ROW(name_, since_, schema_, shape_, lower_) \
    {.domain = "", .name = name_, .since = since_, .schema = schema_, .facts = OP_RANDOM, .shape = shape_, .lower = lower_}
static const OpRow rows[] = {
    ROW("RandomNormal", 1, "-> output:any ; " NORMAL ", shape:ints", plain_shape, normal_lower),
    ROW("RandomUniform", 1, "-> output:any ; " UNIFORM ", shape:ints", plain_shape, uniform_lower),
    ROW("RandomNormalLike", 1, "input:T -> output:any ; " NORMAL " | T=" TYPES_ANY, like_shape, normal_lower),
    ROW("RandomUniformLike", 1, "input:T -> output:any ; " UNIFORM " | T=" TYPES_ANY, like_shape, uniform_lower),
    ROW("Bernoulli", 15, "input:T -> output:any ; dtype:int?, seed:float? | T=" TYPES_FLOAT, bernoulli_shape, bernoulli_lower),
    ROW("Multinomial", 7, "input:T -> output:any ; dtype:int?, sample_size:int=1, seed:float? | T=" TYPES_FLOAT, multinomial_shape,
        multinomial_lower),
};

const OpFamily ops_random = {rows, COUNT_OF(rows), "random.c"};
