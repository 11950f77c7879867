/* lower_loop.c - a loop over a dim becomes a launch loop: its body's launches once for each possible iteration.
 *
 * Where the signature pins the dim, that is plain unrolling. Where it is ranged, the launches of iteration k begin by
 * comparing k with the extent and return when the loop has ended: the graph is fixed, the number of iterations is not. A
 * carried value then lives in one place, which each iteration updates at its end. */
#include "lower.h"

enum { MAX_LOOP_LAUNCHES = 16384, MAX_LOOP_STATES = 64 };

typedef struct LoopFrame {
    Lower *l;
    const Loop *loop;
    uint32_t enter, leave;
    Dim trip;
    bool ranged;
    View *carried;  /* by state */
    View *scanned;  /* by scanned input: the whole of it */
    View *stacked;  /* by scan output: the whole of it; buffer 0: nothing needs it */
} LoopFrame;

static Node *node_at(LoopFrame *f, uint32_t i) { return &f->l->c->graph.nodes[i]; }

static Dim place(LoopFrame *f, bool reverse, int64_t iteration)
{
    Compilation *c = f->l->c;
    if (!reverse) return dim_const(c, iteration);
    return dim_sub(c, f->trip, dim_const(c, iteration + 1));
}

static View counter(LoopFrame *f, int64_t iteration)
{
    Compilation *c = f->l->c;
    uint32_t b = buffer_new(c, "iteration", REGION_METADATA, 8, f->l->index);
    int64_t *word = NEW(c, int64_t);
    Data *data = NEW(c, Data);
    *word = iteration;
    *data = (Data){ .bytes = word, .size = 8 };
    c->buffers[b].data = data;
    return view_dense_new(f->l, b, DT_I64, 0, NULL);
}

/* ---- before and after */

static void prepare(LoopFrame *f)
{
    Lower *l = f->l;
    Node *enter = node_at(f, f->enter), *leave = node_at(f, f->leave);
    for (int i = 0; i < f->loop->states; i++) {
        View initial = lower_input(l, enter, i);
        f->carried[i] = initial;
        if (!f->ranged) continue;
        const Value *v = node_input(l->c, enter, i);
        f->carried[i] = lower_temporary(l, v->name, v->dtype, v->rank, v->dims);
        lower_copy(l, enter, initial, f->carried[i], enter->name);
    }
    for (int i = 0; i < f->loop->scan_inputs; i++) f->scanned[i] = lower_input(l, enter, f->loop->states + i);
    for (int i = 0; i < f->loop->scan_outputs; i++) {
        uint32_t out = leave->outputs[f->loop->states + i];
        if (out && l->c->graph.values[out].uses) f->stacked[i] = lower_output(l, leave, f->loop->states + i);
    }
}

static void finish(LoopFrame *f)
{
    Node *leave = node_at(f, f->leave);
    for (int i = 0; i < f->loop->states; i++)
        if (leave->outputs[i]) f->l->views[leave->outputs[i]] = f->carried[i];
}

/* ---- one iteration */

static int output_axis(LoopFrame *f, int i)
{
    int axis = f->loop->output_axes[i];
    return axis < 0 ? axis + f->stacked[i].rank : axis;
}

static void forget_body(LoopFrame *f)
{
    for (uint32_t i = f->enter; i < f->leave; i++) {
        const Node *n = node_at(f, i);
        for (int k = 0; k < n->output_count && !n->constant; k++)
            if (n->outputs[k]) f->l->views[n->outputs[k]] = (View){ .buffer = 0 };
    }
}

static void bind_inputs(LoopFrame *f, int64_t iteration)
{
    Node *enter = node_at(f, f->enter);
    const Graph *g = &f->l->c->graph;
    if (g->values[enter->outputs[0]].uses) f->l->views[enter->outputs[0]] = counter(f, iteration);
    for (int i = 0; i < f->loop->states; i++) f->l->views[enter->outputs[1 + i]] = f->carried[i];
    for (int i = 0; i < f->loop->scan_inputs; i++)
        f->l->views[enter->outputs[1 + f->loop->states + i]] =
            view_slice(f->l, &f->scanned[i], f->loop->input_axes[i], place(f, f->loop->input_reverse[i], iteration));
}

static void write_scans(LoopFrame *f, int64_t iteration, bool before)
{
    Lower *l = f->l;
    Node *leave = node_at(f, f->leave);
    for (int i = 0; i < f->loop->scan_outputs; i++) {
        if (!f->stacked[i].buffer) continue;
        uint32_t value = leave->inputs[f->loop->states + i];
        View row = view_slice(l, &f->stacked[i], output_axis(f, i), place(f, f->loop->output_reverse[i], iteration));
        bool twice = false; /* the same value may be stacked twice: only one of them is made in place */
        for (int k = 0; k < i; k++) twice |= leave->inputs[f->loop->states + k] == value;
        if (before) {
            if (made_between(l->c, value, f->enter + 1, f->leave) && !twice) l->views[value] = row;
            continue;
        }
        View made = lower_value(l, value);
        if (made.buffer != row.buffer || made.offset != row.offset) lower_copy(l, leave, made, row, leave->name);
    }
}

static void carry(LoopFrame *f)
{
    Lower *l = f->l;
    Node *leave = node_at(f, f->leave);
    if (f->ranged) carry_states(l, leave, f->loop->states, f->carried);
    for (int i = 0; i < f->loop->states && !f->ranged; i++) f->carried[i] = lower_value(l, leave->inputs[i]);
}

static void iterate(LoopFrame *f, int64_t iteration)
{
    Lower *l = f->l;
    forget_body(f);
    bind_inputs(f, iteration);
    l->guarded = f->ranged && lower_lower(l, f->trip) <= iteration;
    l->guard_trip = f->trip;
    l->guard_iteration = iteration;
    write_scans(f, iteration, true);
    lower_range(l, f->enter + 1, f->leave);
    if (diag_failed(l->c)) return;
    write_scans(f, iteration, false);
    carry(f);
    l->guarded = false;
}

void lower_loop(Lower *l, uint32_t enter, uint32_t leave)
{
    Compilation *c = l->c;
    LoopFrame f = { .l = l, .loop = &c->loops[c->graph.nodes[enter].loop], .enter = enter, .leave = leave };
    f.trip = lower_dim(l, f.loop->trip);
    f.ranged = !dim_is_const(c, f.trip, NULL);
    f.carried = NEW_ARRAY(c, View, f.loop->states + 1);
    f.scanned = NEW_ARRAY(c, View, f.loop->scan_inputs + 1);
    f.stacked = NEW_ARRAY(c, View, f.loop->scan_outputs + 1);
    int64_t trips = lower_upper(l, f.trip);
    if (trips * (f.leave - enter) > MAX_LOOP_LAUNCHES) {
        node_error(c, node_at(&f, enter), "its loop of up to %lld iterations, unrolled, is too long for one graph", (long long)trips);
        return;
    }
    if (f.loop->states > MAX_LOOP_STATES) {
        node_error(c, node_at(&f, enter), "its loop carries %d values; expected at most %d", f.loop->states, MAX_LOOP_STATES);
        return;
    }
    l->node = enter;
    prepare(&f);
    for (int64_t k = 0; k < trips && !diag_failed(c); k++) iterate(&f, k);
    if (diag_failed(c)) return;
    l->node = f.leave;
    finish(&f);
    l->fates[enter] = l->fates[f.leave] = (NodeFate){ REAL_VIEW, -1, arena_text(&c->arena, "launch loop, %lld iterations", (long long)trips) };
}
