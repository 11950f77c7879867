/* lower_while.c - a loop that ends on data: its body once, in a block that runs again as long as its condition holds.
 *
 * A carried value lives in one place, which each iteration updates at its end. How many iterations there were so far, and the
 * extent of a carried value that grows, are words of the extents table: the last launches of the body move them on. */
#include "lower.h"

typedef struct WhileFrame {
    Lower *l;
    const Loop *loop;
    const Node *enter, *leave;
    uint32_t first, end;  /* nodes of the body */
    View *carried;        /* by state */
    View *scanned;        /* by scanned input: the whole of it */
    View *stacked;        /* by scan output; buffer 0: nothing needs it */
} WhileFrame;

static const LoopGrowth *growth(const WhileFrame *f, int i)
{
    const LoopGrowth *g = f->loop->growth ? f->loop->growth[i] : NULL;
    return g && g->axis >= 0 ? g : NULL;
}

/* Initial values go to their places, which are as large as the values can become. */
static void prepare(WhileFrame *f)
{
    Lower *l = f->l;
    for (int i = 0; i < f->loop->states; i++) {
        const Value *inside = node_output(l->c, f->enter, 1 + i);
        View initial = lower_input(l, f->enter, i);
        f->carried[i] = i ? lower_temporary(l, inside->name, inside->dtype, inside->rank, inside->dims) : block_word(l, inside->name);
        if (growth(f, i)) set_extent(l, growth(f, i)->extent[growth(f, i)->axis], initial.dims[growth(f, i)->axis], NULL);
        View to = f->carried[i];
        for (int k = 0; k < to.rank; k++) to.dims[k] = initial.dims[k];
        lower_copy(l, f->enter, initial, to, f->enter->name);
    }
    for (int i = 0; i < f->loop->scan_inputs; i++) f->scanned[i] = lower_input(l, f->enter, f->loop->states + i);
    for (int i = 0; i < f->loop->scan_outputs; i++) {
        uint32_t out = f->leave->outputs[f->loop->states + i];
        if (out && l->c->graph.values[out].uses) f->stacked[i] = lower_output(l, f->leave, f->loop->states + i);
    }
    set_extent(l, f->loop->trip, dim_const(l->c, 0), NULL);
}

/* The word that counts iterations, as the body's iteration number. */
static View iteration_view(WhileFrame *f)
{
    View word;
    if (extent_view(f->l, f->loop->trip, 0, &word)) return word;
    return lower_temporary(f->l, f->enter->name, DT_I64, 0, NULL); /* there is no iteration */
}

/* Where an iteration reads and writes along the axes of what is scanned and stacked. */
static Dim place(WhileFrame *f, bool reverse)
{
    Compilation *c = f->l->c;
    return reverse ? dim_sub(c, dim_sub(c, lower_dim(f->l, f->loop->length), f->loop->trip), dim_const(c, 1)) : f->loop->trip;
}

static void bind_inputs(WhileFrame *f)
{
    f->l->views[f->enter->outputs[0]] = iteration_view(f);
    for (int i = 0; i < f->loop->states; i++) f->l->views[f->enter->outputs[1 + i]] = f->carried[i];
    for (int i = 0; i < f->loop->scan_inputs; i++)
        f->l->views[f->enter->outputs[1 + f->loop->states + i]] =
            view_slice(f->l, &f->scanned[i], f->loop->input_axes[i], place(f, f->loop->input_reverse[i]));
}

static View scan_row(WhileFrame *f, int i)
{
    int axis = f->loop->output_axes[i];
    return view_slice(f->l, &f->stacked[i], axis < 0 ? axis + f->stacked[i].rank : axis, place(f, f->loop->output_reverse[i]));
}

/* Rows are made in place where the body makes them, otherwise copied. */
static void place_scans(WhileFrame *f, bool before)
{
    Lower *l = f->l;
    for (int i = 0; i < f->loop->scan_outputs; i++) {
        if (!f->stacked[i].buffer) continue;
        const uint32_t *values = f->leave->inputs + f->loop->states;
        View row = scan_row(f, i);
        bool twice = false;
        for (int k = 0; k < i; k++) twice |= values[k] == values[i];
        if (before && !twice && made_between(l->c, values[i], f->first, f->end)) l->views[values[i]] = row;
        if (before) continue;
        View made = lower_value(l, values[i]);
        if (made.buffer != row.buffer || made.offset != row.offset) lower_copy(l, f->leave, made, row, f->leave->name);
    }
}

/* The next iteration's condition is made in place: nothing of this one reads the old one. */
static void lower_body(WhileFrame *f)
{
    Lower *l = f->l;
    bind_inputs(f);
    place_scans(f, true);
    if (made_between(l->c, f->leave->inputs[0], f->first, f->end)) l->views[f->leave->inputs[0]] = f->carried[0];
    lower_range(l, f->first, f->end);
    if (diag_failed(l->c)) return;
    place_scans(f, false);
    Dim *extents = NEW_ARRAY(l->c, Dim, f->loop->states + 1);
    for (int i = 0; i < f->loop->states; i++)
        if (growth(f, i)) extents[i] = lower_value(l, f->leave->inputs[i]).dims[growth(f, i)->axis];
    carry_states(l, f->leave, f->loop->states, f->carried);
    for (int i = 0; i < f->loop->states; i++)
        if (extents[i]) set_extent(l, growth(f, i)->extent[growth(f, i)->axis], extents[i], NULL);
    set_extent(l, f->loop->trip, dim_add(l->c, f->loop->trip, dim_const(l->c, 1)), NULL);
}

void lower_while(Lower *l, uint32_t enter, uint32_t leave)
{
    Compilation *c = l->c;
    WhileFrame f = { .l = l, .loop = &c->loops[c->graph.nodes[enter].loop], .enter = &c->graph.nodes[enter], .leave = &c->graph.nodes[leave],
                     .first = enter + 1, .end = leave };
    f.carried = NEW_ARRAY(c, View, f.loop->states + 1);
    f.scanned = NEW_ARRAY(c, View, f.loop->scan_inputs + 1);
    f.stacked = NEW_ARRAY(c, View, f.loop->scan_outputs + 1);
    l->node = enter;
    prepare(&f);
    View *kept = views_keep(l);
    int block = block_begin(l, BLOCK_WHILE, f.carried[0], enter);
    lower_body(&f);
    block_end(l, block);
    views_restore(l, kept);
    for (int i = 0; i < f.loop->states; i++)
        if (f.leave->outputs[i]) l->views[f.leave->outputs[i]] = f.carried[i];
    l->fates[enter] = l->fates[leave] = (NodeFate){ REAL_VIEW, -1, c->condition_nodes ? "WHILE node" : "WHILE at a seam" };
    l->node = 0;
}
