/* lower - nodes to launches, once for each signature: `load` first (what depends on constants alone; it runs once, when
 * the plan is loaded), then the boxes that sessions run. */
#include "lower.h"

#include <string.h>

static Lower *lower_new(Compilation *c, int index)
{
    Lower *l = NEW(c, Lower);
    l->c = c;
    l->signature = &c->signatures[index];
    l->signature->lower = l;
    l->index = (uint32_t)index + 1;
    l->io = NEW_ARRAY(c, uint32_t, c->graph.value_count + 1);
    l->views = NEW_ARRAY(c, View, c->graph.value_count + 1);
    l->apart = NEW_ARRAY(c, Apart *, c->graph.value_count + 1);
    l->fates = NEW_ARRAY(c, NodeFate, c->graph.node_count + 1);
    l->made_by = NEW_ARRAY(c, int, c->graph.node_count + 1);
    return l;
}

/* What `load` computed, and views of weights, hold in every signature. */
static void inherit_constants(Lower *l, const Lower *load)
{
    for (uint32_t i = 1; i <= l->c->graph.value_count; i++)
        if (load->views[i].buffer) l->views[i] = load->views[i];
}

static const char *folded_detail(Compilation *c, const Node *n)
{
    const Value *v = node_output(c, n, 0);
    if (!v || !value_folded(v)) return "nothing needs its result";
    Text t = { 0 };
    text_add(&t, "contents are known:");
    for (int i = 0; i < v->contents_count && i < 8; i++) text_add(&t, "%s %s", i ? "," : "", dim_text(c, dim_resolve(c, v->contents[i])));
    const char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

/* The product whose epilogue ends with node N, and that is launched there (OP_LATE); 0: N is none such. */
static uint32_t late_product(Compilation *c, const Node *n)
{
    const Node *into = &c->graph.nodes[n->fused_into];
    return n->fused_into && (into->op->facts & OP_LATE) && into->epilogue == (uint32_t)(n - c->graph.nodes) ? n->fused_into : 0;
}

void lower_node(Lower *l, uint32_t i)
{
    Compilation *c = l->c;
    Node *n = &c->graph.nodes[i];
    if (n->dead) {
        bool folded = n->output_count && node_output(c, n, 0) && value_folded(node_output(c, n, 0));
        l->fates[i] = (NodeFate){ folded ? REAL_FOLDED : REAL_UNUSED, -1, folded_detail(c, n) };
        return;
    }
    if (n->constant != (l->signature->kind == SIG_LOAD)) return;
    if (n->epilogue && (n->op->facts & OP_LATE)) return; /* there */
    if (late_product(c, n)) i = late_product(c, n);
    n = &c->graph.nodes[i];
    l->node = i;
    if (l->made_by[i] < 0) return;
    l->fates[i] = (NodeFate){ n->fused_into ? REAL_FUSED : REAL_VIEW, -1, NULL };
    if (l->made_by[i] > 0) l->fates[i] = (NodeFate){ REAL_FUSED, l->made_by[i] - 1, NULL };
    else if (gemv_defer_norm(l, n) || gemv_defer_row(l, n) || gqa_defer(l, n) || linear_defer(l, n) || moe_defer(l, n)) return; /* a kernel behind makes it */
    else if (gemv_lower(l, n)) return; /* one kernel for several products of a row */
    else if (n->op->lower) n->op->lower(l, n);
    else lower_pointwise(l, n);
}

static bool is_named(const Node *n, const char *op) { return !strcmp(n->domain, "gcc-plan") && !strcmp(n->op_type, op); }

uint32_t control_exit(Compilation *c, uint32_t enter)
{
    const Node *nodes = c->graph.nodes;
    const char *name = c->loops[nodes[enter].loop].kind == LOOP_IF ? "IfExit" : "LoopExit";
    uint32_t i = enter + 1;
    while (nodes[i].loop != nodes[enter].loop || !is_named(&nodes[i], name)) i++;
    return i;
}

uint32_t lower_control(Lower *l, uint32_t enter)
{
    Compilation *c = l->c;
    uint32_t leave = control_exit(c, enter);
    const Loop *loop = &c->loops[c->graph.nodes[enter].loop];
    if (!loop->needed)
        for (uint32_t i = enter; i <= leave; i++) lower_node(l, i); /* to say so */
    else if (loop->kind == LOOP_IF) lower_if(l, enter, leave);
    else if (loop->kind == LOOP_WHILE) lower_while(l, enter, leave);
    else lower_loop(l, enter, leave);
    return leave;
}

/* Constant nodes of a loop's body are lowered like any other when loading; the rest with the loop. After an error the values
 * behind it are missing, so nothing more is lowered. What is launched after them is not the last one's. */
void lower_range(Lower *l, uint32_t first, uint32_t end)
{
    const uint32_t node = l->node;
    for (uint32_t i = first; i < end && !diag_failed(l->c); i++) {
        const Node *n = &l->c->graph.nodes[i];
        bool enters = is_named(n, "LoopEnter") || is_named(n, "IfEnter");
        if (!enters || l->signature->kind == SIG_LOAD) lower_node(l, i);
        else i = lower_control(l, i);
    }
    l->node = node;
}

static void lower_nodes(Lower *l)
{
    lower_range(l, 1, l->c->graph.node_count + 1);
}

/* ---- the end of a step */

static View output_view(Lower *l, uint32_t value)
{
    const Value *v = &l->c->graph.values[value];
    return view_dense_new(l, io_buffer(l, value), storage_type(v->dtype), v->rank, v->dims);
}

static void copy_outputs(Lower *l)
{
    Graph *g = &l->c->graph;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const Value *v = &g->values[g->outputs[i]];
        if (v->state) continue;
        View from = lower_value(l, g->outputs[i]), to = output_view(l, g->outputs[i]);
        if (from.buffer != to.buffer) lower_copy(l, NULL, from, to, v->name);
        l->views[g->outputs[i]] = to;
    }
}

/* The present state as the next step will see it: growing axes hold what the output holds. */
static View state_target(Lower *l, int pair)
{
    View to = state_view(l, pair, true);
    const Value *out = &l->c->graph.values[l->c->pairs[pair].output];
    for (int k = 0; k < to.rank; k++) to.dims[k] = lower_dim(l, out->dims[k]);
    return to;
}

/* First what lies in another state's buffer moves to a temporary, so that crossed pairs do not overwrite each other. */
static void copy_states(Lower *l)
{
    Compilation *c = l->c;
    View *from = NEW_ARRAY(c, View, c->pair_count + 1);
    for (int i = 0; i < c->pair_count; i++) {
        if (c->pairs[i].update != 2) continue;
        from[i] = lower_value(l, c->pairs[i].output);
        if (c->buffers[from[i].buffer].region != REGION_STATE) continue;
        View temporary = lower_temporary(l, c->pairs[i].output_name, from[i].store, from[i].rank, from[i].dims);
        lower_copy(l, NULL, from[i], temporary, c->pairs[i].output_name);
        from[i] = temporary;
    }
    for (int i = 0; i < c->pair_count; i++)
        if (c->pairs[i].update == 2) lower_copy(l, NULL, from[i], state_target(l, i), c->pairs[i].output_name);
}

static void advance(Lower *l)
{
    const Dim one = dim_const(l->c, 1);
    const bool rows = l->c->options.rows > 0;
    if (!l->c->position) return;
    View word = view_dense_new(l, extents_buffer(l->c), DT_I64, 1, &one);
    word.offset = dim_const(l->c, POSITION_SLOT);
    Kernel *k = kernel_begin(l, NULL, "advance");
    kernel_inout(k, "W", word);
    kernel_int(k, "ROWED", rows);
    if (rows) {
        kernel_inout(k, "RL", row_words(l, false));
        kernel_in(k, "RT", row_words(l, true));
    }
    kernel_dim(k, "STEP", l->c->position_step);
    kernel_launch(k, 1, 1, 1, 32);
}

static void claim_inputs(Lower *l)
{
    Graph *g = &l->c->graph;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const Value *v = &g->values[g->inputs[i]];
        if (!v->state && !v->data && (v->feed == FEED_TOKEN || (v->feed == FEED_CALLER && v->uses))) io_buffer(l, g->inputs[i]);
    }
}

static bool lower_signature(Compilation *c, Lower *l, const Lower *load)
{
    inherit_constants(l, load);
    claim_inputs(l);
    lower_nodes(l);
    if (diag_failed(c)) return false;
    copy_outputs(l);
    copy_states(l);
    if (samples(c) && l->signature->kind != SIG_MAIN) lower_sample(l, c->signatures[1].lower);
    else advance(l);
    return !diag_failed(c);
}

/* A decode step more for each value of each choice. */
static bool lower_trials(Compilation *c, const Lower *load)
{
    const int first = c->signature_count, trials = tuning_trials(c);
    Signature *all = NEW_ARRAY(c, Signature, first + trials);
    memcpy(all, c->signatures, sizeof *all * (size_t)first);
    c->signatures = all;
    for (int j = 0; j < first; j++) all[j].lower->signature = &all[j];
    for (int i = 0; i < trials; i++) {
        const char *key;
        int64_t value;
        tuning_trial(c, i, &key, &value);
        all[first + i] = all[1];
        all[first + i].name = arena_text(&c->arena, "%s#%s=%lld", all[1].name, key, (long long)value);
        c->signature_count++;
        Lower *l = lower_new(c, first + i);
        l->trial_key = key;
        l->trial_value = value;
        if (!lower_signature(c, l, load)) return false;
    }
    return true;
}

bool pass_lower(Compilation *c)
{
    extents_buffer(c);
    conditions_choose(c);
    if (diag_failed(c)) return false;
    for (int i = 0; i < c->pair_count; i++) state_buffer(c, i);
    Lower *load = lower_new(c, 0);
    lower_nodes(load);
    for (int j = 1; j < c->signature_count; j++)
        if (!lower_signature(c, lower_new(c, j), load)) return false;
    if (c->options.tune_candidates && !lower_trials(c, load)) return false;
    tuning_unused(c);
    if (samples(c) && c->signatures[1].kind == SIG_MAIN)
        diag_error(c, NULL, "--sample needs a decode step; the model has no state pair");
    return !diag_failed(c);
}
