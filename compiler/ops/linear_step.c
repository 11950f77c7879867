/* linear_step.c - LinearAttention of one token: linear_step.cu, which also makes the causal convolution and the norms of query and
 * key before it, where nobody else reads them (passes/fuse_filter.c): one launch from the convolution's input to the output. */
#include "lower.h"
#include "ops/recurrent.h"

#include <string.h>

enum { THREADS = 128, COLUMNS = 32, HELD = 64 }; /* of linear_step.cu: a block, its columns, a thread's elements of the state */
enum { FILTERED = 32 };                          /* elements of the convolution's state that a thread holds */

/* Columns in a vector of the state, when linear_step.cu can make the node; else 1. */
static int step_vector(Lower *l, const Node *n, const Linear *z, int64_t key, int64_t value)
{
    Compilation *c = lower_compilation(l);
    const Value *past = node_input(c, n, LA_PAST);
    View state;
    if (!past || !dim_is(c, lower_dim(l, z->tokens), 1) || z->q_heads > z->kv_heads) return 1;
    const bool shared = recurrent_has(n, 1) && lower_inplace(l, n, LA_PAST, 1, &state);
    if (!shared) state = lower_input(l, n, LA_PAST);
    const int width = view_vector(l, &state);
    if (width > 1 && !shared && recurrent_has(n, 1)) {
        const View made = lower_output(l, n, 1);
        if (made.store != state.store || view_vector(l, &made) != width) return 1;
    }
    const int64_t rows = THREADS / (COLUMNS / width);
    return value % width || (key + rows - 1) / rows * width > HELD ? 1 : width;
}

/* ---- the filter */

/* There before anything of this signature is launched. */
static bool from_outside(Compilation *c, const Node *n, int input)
{
    const Value *v = node_input(c, n, input);
    return !v || v->is_constant || !v->producer;
}

/* Taps of the convolution; 0: not known, or they are apart. */
static int64_t taps_of(Lower *l, const Node *conv)
{
    int64_t taps;
    return conv_dilation(conv) == 1 && dim_is_const(l->c, lower_dim(l, node_input(l->c, conv, CC_WEIGHT)->dims[2]), &taps) ? taps : 0;
}

static bool norms_heads(Lower *l, const FilterNorm *norm, Dim head)
{
    const Value *x = norm->node ? &l->c->graph.values[norm->source] : NULL;
    return !x || lower_dim(l, x->dims[x->rank - 1]) == head;
}

static bool apart(int64_t a, int64_t a_count, int64_t b, int64_t b_count) { return a + a_count <= b || b + b_count <= a; }

/* Every channel is written by those that read it, told by the ticket of one key head, or by the only one: query and key share all
 * or none, neither shares any with the value, and none is left out. */
static bool channels_fit(Lower *l, const Filter *f, const Linear *z, int64_t key, int64_t value)
{
    const int64_t keys = z->k_heads * key, values = z->kv_heads * value;
    const bool same = f->first[0] == f->first[1];
    const Dim all = lower_dim(l, node_input(l->c, &l->c->graph.nodes[f->conv], CC_INPUT)->dims[1]);
    return (same || apart(f->first[0], keys, f->first[1], keys)) && apart(f->first[0], keys, f->first[2], values) &&
           apart(f->first[1], keys, f->first[2], values) && dim_is(l->c, all, (same ? keys : 2 * keys) + values);
}

/* Whether the kernel of recurrence N makes the filter in this signature too. It is asked before the first node of the filter is
 * lowered, so the states must be there by then. */
static bool filter_fits(Lower *l, const Node *n, const Filter *f)
{
    Compilation *c = l->c;
    const Node *conv = &c->graph.nodes[f->conv];
    const int64_t taps = taps_of(l, conv);
    Linear z;
    int64_t key, value;
    if (l->signature->kind == SIG_LOAD || l->guarded || !from_outside(c, n, LA_PAST) || !from_outside(c, conv, CC_PAST)) return false;
    if (!linear_sizes(c, n, &z) || z.q_heads != z.k_heads || lower_upper(l, lower_dim(l, z.batch)) > MAX_TICKETS / z.k_heads) return false;
    if (!dim_is_const(c, lower_dim(l, z.key), &key) || !dim_is_const(c, lower_dim(l, z.value), &value)) return false;
    if (!channels_fit(l, f, &z, key, value)) return false;
    if (!norms_heads(l, &f->norms[0], lower_dim(l, z.key)) || !norms_heads(l, &f->norms[1], lower_dim(l, z.key))) return false;
    const int64_t channels = ((key > COLUMNS ? key : COLUMNS) + 31) / 32; /* of a lane */
    return taps > 1 && channels * taps <= FILTERED && step_vector(l, n, &z, key, value) > 1;
}

bool linear_defer(Lower *l, const Node *n)
{
    Compilation *c = l->c;
    const uint32_t index = (uint32_t)(n - c->graph.nodes);
    const Node *step = n->together ? &c->graph.nodes[n->together] : NULL;
    Filter f;
    if (!step || step == n || !(step->op->facts & OP_FILTERED) || !filter_find(c, n->together, &f) || !filter_fits(l, step, &f)) return false;
    l->made_by[index] = -1;
    l->fates[index] = (NodeFate){REAL_FUSED, -1, NULL};
    return true;
}

static bool same_row(const HeldRow *a, const HeldRow *b)
{
    return !strcmp(a->row_index, b->row_index) && !strcmp(a->column_index, b->column_index) && !strcmp(a->once, b->once) &&
           !strcmp(a->each, b->each) && !strcmp(a->take_body, b->take_body) && !strcmp(a->take, b->take) && !strcmp(a->result, b->result);
}

static void set_norm(Kernel *k, const char *name, const FilterNorm *norm, const HeldRow *row)
{
    Compilation *c = kernel_lower(k)->c;
    const struct { const char *name, *text; } texts[] = {
        {"ROW_INDEX", row->row_index}, {"COLUMN_INDEX", row->column_index}, {"ROW_ONCE", row->once}, {"ROW_EACH", row->each},
        {"TAKE_BODY", row->take_body}, {"TAKE", row->take}, {"RESULT", row->result},
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) kernel_text(k, arena_text(&c->arena, "%s_%s", name, texts[i].name), texts[i].text);
    kernel_int(k, arena_text(&c->arena, "%s_SQUARES", name), norm->squares);
    kernel_int(k, arena_text(&c->arena, "%s_ROOT", name), norm->root);
}

/* NORMS: 0 none, 1 of the query, 2 of the key, 3 both, 4 both, and the same text serves both. */
static void set_norms(Kernel *k, const FilterNorm *norms)
{
    HeldRow rows[2];
    for (int i = 0; i < 2; i++) {
        if (!norms[i].node) continue;
        rows[i] = kernel_held(k, &norms[i], i ? "NK" : "NQ");
        set_norm(k, i ? "NORM_K" : "NORM_Q", &norms[i], &rows[i]);
    }
    const bool both = norms[0].node && norms[1].node;
    const bool alike = both && norms[0].squares == norms[1].squares && norms[0].root == norms[1].root && same_row(&rows[0], &rows[1]);
    kernel_int(k, "NORMS", alike ? 4 : (norms[0].node != 0) + 2 * (norms[1].node != 0));
}

/* Its operands, and what the nodes became. */
static void filter_operands(Lower *l, Kernel *k, const Filter *f, const Linear *z)
{
    static const char *const firsts[] = {"FIRST_Q", "FIRST_K", "FIRST_V"};
    Compilation *c = l->c;
    const Node *conv = &c->graph.nodes[f->conv];
    const View x = lower_input(l, conv, CC_INPUT), w = lower_input(l, conv, CC_WEIGHT);
    const int64_t taps = taps_of(l, conv), batch = lower_upper(l, lower_dim(l, z->batch));
    const Dim state[3] = {x.dims[0], x.dims[1], dim_const(c, taps - 1)}, sharing[2] = {dim_const(c, batch), dim_const(c, z->k_heads)};
    kernel_in(k, "CX", x);
    kernel_in(k, "CW", w);
    kernel_int(k, "HAS_BIAS", node_input(c, conv, CC_BIAS) != NULL);
    if (node_input(c, conv, CC_BIAS)) kernel_in(k, "CBIAS", lower_input(l, conv, CC_BIAS));
    kernel_int(k, "C_STATE", recurrent_has(conv, 1));
    if (recurrent_has(conv, 1)) {
        state_operands(l, k, conv, "C", CC_PAST, 1, x.store, 3, state);
        kernel_inout(k, "TICKETS", tickets_view(l, 2, sharing));
    } else {
        if (node_input(c, conv, CC_PAST)) kernel_in(k, "COLD", lower_input(l, conv, CC_PAST));
        kernel_int(k, "CHAS_OLD", node_input(c, conv, CC_PAST) != NULL);
    }
    kernel_int(k, "TAPS", taps);
    kernel_int(k, "SILU", conv_silu(conv));
    for (int i = 0; i < 3; i++) kernel_int(k, firsts[i], f->first[i]);
    set_norms(k, f->norms);
    for (int i = 0; i < f->count; i++) l->fates[f->members[i]] = (NodeFate){REAL_FUSED, l->launch_count, NULL};
}

/* Whether the kernel may read the states, and those of the convolution CONV with its filter, before it waits for those before it. */
static bool reads_early(Lower *l, const Node *n, const Linear *z, const Node *conv)
{
    Compilation *c = l->c;
    View whole;
    if (l->guarded || n->loop || !dim_is_const(c, lower_dim(l, z->batch), NULL)) return false;
    if (!recurrent_has(n, 1) || !lower_inplace(l, n, LA_PAST, 1, &whole) || !state_only_of(c, n, LA_PAST, 1)) return false;
    if (!conv) return true;
    const Value *bias = node_input(c, conv, CC_BIAS);
    if (!node_input(c, conv, CC_WEIGHT)->is_constant || (bias && !bias->is_constant)) return false;
    return recurrent_has(conv, 1) && lower_inplace(l, conv, CC_PAST, 1, &whole) && state_only_of(c, conv, CC_PAST, 1);
}

bool linear_step(Lower *l, const Node *n, const Linear *z, int64_t key, int64_t value)
{
    Compilation *c = l->c;
    const int vector = step_vector(l, n, z, key, value);
    const Dim state[4] = {z->batch, dim_const(c, z->kv_heads), z->key, z->value};
    Filter f;
    if (vector == 1) return false;
    const bool filter = filter_find(c, (uint32_t)(n - c->graph.nodes), &f) && l->made_by[f.conv] < 0;
    Kernel *k = kernel_begin(l, n, "linear_step");
    if (filter) {
        filter_operands(l, k, &f, z);
    } else {
        kernel_in(k, "Q", lower_input(l, n, LA_QUERY));
        kernel_in(k, "K", lower_input(l, n, LA_KEY));
        kernel_in(k, "V", lower_input(l, n, LA_VALUE));
    }
    linear_operands(l, k, n, z, key, value);
    const View made = state_operands(l, k, n, "", LA_PAST, 1, node_input(c, n, LA_PAST)->dtype, 4, state);
    kernel_int(k, "FILTER", filter);
    kernel_int(k, "EARLY", reads_early(l, n, z, filter ? &c->graph.nodes[f.conv] : NULL));
    kernel_int(k, "ACROSS", COLUMNS / vector);
    kernel_int(k, "WIDTH", vector);
    kernel_text(k, "TYPE", dtype_token(made.store));
    const int64_t batch = lower_upper(l, lower_dim(l, z->batch));
    kernel_launch(k, (value + COLUMNS - 1) / COLUMNS, z->kv_heads, batch < 1 ? 1 : batch, THREADS);
    return true;
}
