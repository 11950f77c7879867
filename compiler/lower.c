/* lower.c - the memory behind values while a signature is lowered: weights, state, inputs, outputs, temporaries. */
#include "lower.h"
#include "dim.h"
#include "format.h"

#include <string.h>

uint32_t buffer_new(Compilation *c, const char *name, Region region, int64_t bytes, uint32_t signature)
{
    if (c->buffer_count + 2 > c->buffer_room) {
        uint32_t room = c->buffer_room ? c->buffer_room * 2 : 256;
        Buffer *bigger = NEW_ARRAY(c, Buffer, room);
        if (c->buffer_count) memcpy(bigger, c->buffers, sizeof(Buffer) * (c->buffer_count + 1));
        c->buffers = bigger;
        c->buffer_room = room;
    }
    c->buffers[++c->buffer_count] = (Buffer){ .name = name, .region = region, .bytes = bytes > 0 ? bytes : 1,
                                              .offset = -1, .first = -1, .last = -1, .signature = signature };
    return c->buffer_count;
}

Launch *launch_new(Lower *l)
{
    if (l->launch_count == l->launch_room) {
        int room = l->launch_room ? l->launch_room * 2 : 64;
        Launch *bigger = NEW_ARRAY(l->c, Launch, room);
        if (l->launch_count) memcpy(bigger, l->launches, sizeof(Launch) * (size_t)l->launch_count);
        l->launches = bigger;
        l->launch_room = room;
    }
    Launch *launch = &l->launches[l->launch_count++];
    *launch = (Launch){ .node = l->node };
    if (l->node) l->fates[l->node] = (NodeFate){ l->signature->kind == SIG_LOAD ? REAL_LOAD : REAL_LAUNCH, l->launch_count - 1, NULL };
    return launch;
}

bool value_folded(const Value *v) { return v->contents_count >= 0; }

/* ---- state */

static int symbol_slots(Compilation *c)
{
    int count = FIRST_FREE_SLOT;
    for (Sym s = 1; s <= c->symbol_count; s++)
        if (c->symbols[s].slot >= count) count = c->symbols[s].slot + 1;
    return count;
}

bool samples(const Compilation *c) { return c->options.sample == SAMPLE_GREEDY || c->options.sample == SAMPLE_DRAW; }
int sampler_slot(Compilation *c) { return samples(c) ? symbol_slots(c) : 0; }
/* Words of symbols, then those of the tail, then those of the rows. */
int slot_count(Compilation *c) { return symbol_slots(c) + (samples(c) ? PLAN_SAMPLER_WORDS : 0) + 2 * (int)c->options.rows; }

uint32_t extents_buffer(Compilation *c)
{
    if (!c->extents) c->extents = buffer_new(c, "extents", REGION_STATE, 8 * (int64_t)slot_count(c), 0);
    return c->extents;
}

View row_words(Lower *l, bool tokens)
{
    const int64_t rows = l->c->options.rows;
    const Dim count = dim_const(l->c, rows);
    View v = view_dense_new(l, extents_buffer(l->c), DT_I64, 1, &count);
    v.offset = dim_const(l->c, slot_count(l->c) - (tokens ? rows : 2 * rows));
    return v;
}

View tickets_view(Lower *l, int rank, const Dim *dims)
{
    if (!l->c->tickets) l->c->tickets = buffer_new(l->c, "tickets", REGION_STATE, 4 * MAX_TICKETS, 0);
    return view_dense_new(l, l->c->tickets, DT_I32, rank, dims);
}

static int64_t view_bytes(DType t, int64_t elements) { return dtype_bytes(t, elements > 0 ? elements : 1); }

static int64_t capacity_elements(Compilation *c, const StatePair *p, int rank)
{
    int64_t n = 1, k;
    for (int i = 0; i < rank; i++)
        if (!dim_is_const(c, p->upper[i], &k) || !checked_mul(n, k, &n)) fault("lower", "state %s has no size", p->input_name);
    return n;
}

uint32_t state_buffer(Compilation *c, int pair)
{
    StatePair *p = &c->pairs[pair];
    const Value *v = &c->graph.values[p->input];
    if (!p->buffer)
        p->buffer = buffer_new(c, p->input_name, REGION_STATE, view_bytes(storage_type(v->dtype), capacity_elements(c, p, v->rank)), 0);
    return p->buffer;
}

/* The rows of a state that are valid before the step, or (whole) the buffer for its capacity. */
View state_view(Lower *l, int pair, bool whole)
{
    const StatePair *p = &l->c->pairs[pair];
    const Value *v = &l->c->graph.values[p->input];
    View view = view_dense_new(l, state_buffer(l->c, pair), storage_type(v->dtype), v->rank, p->upper);
    for (int k = 0; k < v->rank && !whole; k++) view.dims[k] = lower_dim(l, v->dims[k]);
    return view;
}

bool lower_inplace(Lower *l, const Node *n, int input, int output, View *whole)
{
    const Value *in = node_input(l->c, n, input), *out = node_output(l->c, n, output);
    if (!in || !out || !(n->inplace >> output & 1)) return false;
    const bool direct = in->state && in->state == out->state;
    const int pair = direct ? (int)in->state - 1 : state_written_by(l->c, n, input, output);
    if (pair < 0) return false;
    *whole = direct ? state_view(l, pair, true) : view_dense_new(l, state_buffer(l->c, pair), storage_type(out->dtype), out->rank, out->dims);
    return true;
}

/* ---- inputs, outputs, temporaries */

static int64_t upper_bytes(Lower *l, DType store, int rank, const Dim *dims)
{
    int64_t n = 1;
    for (int k = 0; k < rank; k++) {
        int64_t upper = lower_upper(l, lower_dim(l, dims[k]));
        if (!checked_mul(n, upper > 0 ? upper : 1, &n)) fault("lower", "a buffer is too large");
    }
    return view_bytes(store, n);
}

uint32_t io_buffer(Lower *l, uint32_t value)
{
    const Value *v = &l->c->graph.values[value];
    if (!l->io[value]) l->io[value] = buffer_new(l->c, v->name, REGION_IO, upper_bytes(l, storage_type(v->dtype), v->rank, v->dims), l->index);
    return l->io[value];
}

View lower_temporary(Lower *l, const char *name, DType t, int rank, const Dim *dims)
{
    DType store = storage_type(t);
    Region region = l->signature->kind == SIG_LOAD ? REGION_LOAD : REGION_ARENA;
    return view_dense_new(l, buffer_new(l->c, name, region, upper_bytes(l, store, rank, dims), l->index), store, rank, dims);
}

View lower_output(Lower *l, const Node *n, int i)
{
    if (i == 0 && n->epilogue && (n->op->facts & OP_EPILOGUE)) return lower_output(l, &l->c->graph.nodes[n->epilogue], 0); /* what the kernel stores */
    uint32_t index = n->outputs[i];
    const Value *v = &l->c->graph.values[index];
    if (l->views[index].buffer) return l->views[index];
    if (v->is_output && !v->state && l->signature->kind != SIG_LOAD)
        l->views[index] = view_dense_new(l, io_buffer(l, index), storage_type(v->dtype), v->rank, v->dims);
    else
        l->views[index] = lower_temporary(l, v->name, v->dtype, v->rank, v->dims);
    return l->views[index];
}

static const char *view_detail(Lower *l, const View *v)
{
    Text t = { 0 };
    text_add(&t, "view of '%s', strides", l->c->buffers[v->buffer].name);
    for (int k = 0; k < v->rank; k++) text_add(&t, " %lld", (long long)v->stride[k]);
    if (!dim_is(l->c, v->offset, 0)) text_add(&t, ", from element %s", dim_text(l->c, v->offset));
    const char *copy = arena_copy(&l->c->arena, t.data);
    text_free(&t);
    return copy;
}

void lower_set_view(Lower *l, const Node *n, int i, View v)
{
    if (!n->outputs[i]) return;
    for (int k = 0; k < v.rank; k++)
        if (lower_upper(l, v.dims[k]) == 0) v.offset = dim_const(l->c, 0); /* of no elements the first may lie beyond the buffer */
    l->views[n->outputs[i]] = v;
    NodeFate *fate = &l->fates[n - l->c->graph.nodes];
    if (fate->how != REAL_LAUNCH && fate->how != REAL_LOAD) *fate = (NodeFate){ REAL_VIEW, -1, view_detail(l, &v) };
}

/* Whether all readers of VALUE are elementwise nodes, and neither they nor its producer stand in a loop, where what it lies in is written again. */
static bool read_by_elements(const Graph *g, uint32_t value)
{
    const uint32_t producer = g->values[value].producer;
    for (uint32_t i = producer + 1; i <= g->node_count; i++) {
        const Node *n = &g->nodes[i];
        for (int k = 0; k < n->input_count && !n->dead; k++)
            if (n->inputs[k] == value && (n->loop || !(n->op->facts & OP_POINTWISE) || n->op->lower)) return false;
    }
    return !g->nodes[producer].loop;
}

bool lower_set_apart(Lower *l, const Node *n, const View *in)
{
    const Value *v = node_output(l->c, n, 0);
    Apart apart;
    const bool may_change = l->c->buffers[in->buffer].region == REGION_STATE;
    if (v->is_output || v->state || l->signature->kind == SIG_LOAD || may_change) return false;
    if (!read_by_elements(&l->c->graph, n->outputs[0]) || !view_apart(l, in, v->rank, v->dims, &apart)) return false;
    l->apart[n->outputs[0]] = NEW(l->c, Apart);
    *l->apart[n->outputs[0]] = apart;
    l->fates[n - l->c->graph.nodes] = (NodeFate){ REAL_VIEW, -1, view_detail(l, &apart.view) };
    return true;
}

static View weight_view(Lower *l, uint32_t index)
{
    Value *v = &l->c->graph.values[index];
    if (!v->data->weights) { /* a constant that subgraphs see has many values, but one place */
        v->data->weights = buffer_new(l->c, v->name, REGION_WEIGHTS, (int64_t)v->data->size, 0);
        l->c->buffers[v->data->weights].data = v->data;
    }
    return view_dense_new(l, v->data->weights, v->dtype, v->rank, v->dims);
}

static bool nothing_in(Lower *l, const Value *v)
{
    for (int k = 0; k < v->rank; k++)
        if (lower_upper(l, lower_dim(l, v->dims[k])) == 0) return true;
    return false;
}

View lower_value(Lower *l, uint32_t index)
{
    const Value *v = &l->c->graph.values[index];
    if (l->views[index].buffer) return l->views[index];
    if (v->data) l->views[index] = weight_view(l, index);
    else if (v->is_input && v->state) l->views[index] = state_view(l, (int)v->state - 1, false);
    else if (v->is_input && (v->feed == FEED_CALLER || v->feed == FEED_TOKEN))
        l->views[index] = view_dense_new(l, io_buffer(l, index), storage_type(v->dtype), v->rank, v->dims);
    else if (nothing_in(l, v)) l->views[index] = lower_temporary(l, v->name, v->dtype, v->rank, v->dims); /* nobody had to make it */
    else lower_materialise(l, index);
    if (!l->views[index].buffer) fault("lower", "value '%s' has no memory", v->name);
    return l->views[index];
}

View lower_input(Lower *l, const Node *n, int i)
{
    if (i >= n->input_count || !n->inputs[i]) fault("lower", "node '%s' has no input %d", n->name, i);
    return lower_value(l, n->inputs[i]);
}
