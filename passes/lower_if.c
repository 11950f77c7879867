/* lower_if.c - an If on device data: one block for each branch, which write the same outputs. */
#include "lower.h"

typedef struct Branches {
    Lower *l;
    const Loop *loop;
    const Node *leave;
    View *outputs;   /* buffer 0: nothing needs it */
} Branches;

/* Output I as a branch fills it, whose value has dims of its own where the branches differ. */
static View place_for(Branches *b, int i, uint32_t value)
{
    View to = b->outputs[i];
    const Value *v = &b->l->c->graph.values[value];
    for (int k = 0; k < to.rank; k++) to.dims[k] = lower_dim(b->l, v->dims[k]);
    return to;
}

/* INPUTS: the branch's values in the exit's inputs. A value is made in place where this branch alone makes it. */
static void lower_branch(Branches *b, const uint32_t *inputs, uint32_t first, uint32_t end)
{
    Lower *l = b->l;
    int outputs = b->leave->output_count;
    for (int i = 0; i < outputs; i++) {
        bool twice = false;
        for (int k = 0; k < i; k++) twice |= inputs[k] == inputs[i] && b->outputs[k].buffer;
        if (b->outputs[i].buffer && !twice && made_between(l->c, inputs[i], first, end)) l->views[inputs[i]] = place_for(b, i, inputs[i]);
    }
    lower_range(l, first, end);
    for (int i = 0; i < outputs && !diag_failed(l->c); i++) {
        if (!b->outputs[i].buffer) continue;
        View made = lower_value(l, inputs[i]), to = place_for(b, i, inputs[i]);
        if (made.buffer != to.buffer || made.offset != to.offset) lower_copy(l, b->leave, made, to, b->leave->name);
        const LoopGrowth *differs = b->loop->growth ? b->loop->growth[i] : NULL;
        for (int k = 0; differs && k < to.rank; k++)
            if (differs->extent[k]) set_extent(l, differs->extent[k], to.dims[k], &b->outputs[i]);
    }
}

static uint32_t find_else(Compilation *c, uint32_t enter)
{
    const Node *nodes = c->graph.nodes;
    uint32_t i = enter + 1;
    while (nodes[i].loop != nodes[enter].loop || nodes[i].op != op_find("gcc-plan", "IfElse", 1)) i++;
    return i;
}

/* The condition as a byte at the start of a buffer of the arena, where a block wants it. */
static View condition_word(Lower *l, const Node *enter)
{
    View from = lower_input(l, enter, 0), word = block_word(l, enter->name);
    Kernel *k = kernel_begin(l, enter, "go_on");
    kernel_in(k, "C", from);
    kernel_out(k, "W", word);
    kernel_text(k, "GOES_ON", "C_LD(C_OFF) != 0");
    kernel_launch(k, 1, 1, 1, 32);
    return word;
}

void lower_if(Lower *l, uint32_t enter, uint32_t leave)
{
    Compilation *c = l->c;
    Branches b = { .l = l, .loop = &c->loops[c->graph.nodes[enter].loop], .leave = &c->graph.nodes[leave] };
    uint32_t other = find_else(c, enter);
    l->node = enter;
    View word = condition_word(l, &c->graph.nodes[enter]);
    b.outputs = NEW_ARRAY(c, View, b.leave->output_count + 1);
    for (int i = 0; i < b.leave->output_count; i++)
        if (b.leave->outputs[i] && c->graph.values[b.leave->outputs[i]].uses) b.outputs[i] = lower_output(l, b.leave, i);
    for (int branch = 0; branch < 2 && !diag_failed(c); branch++) {
        View *kept = views_keep(l);
        int block = block_begin(l, branch ? BLOCK_ELSE : BLOCK_IF, word, enter);
        lower_branch(&b, b.leave->inputs + branch * b.leave->output_count, branch ? other + 1 : enter + 1, branch ? leave : other);
        block_end(l, block);
        views_restore(l, kept);
    }
    const char *how = c->condition_nodes ? "IF node" : "IF at a seam";
    l->fates[enter] = l->fates[other] = l->fates[leave] = (NodeFate){ REAL_VIEW, -1, how };
    l->node = 0;
}
