/* lower_block.c - blocks: launches that run on a condition which the device computes. One representation, realised in one of two
 * ways for a whole plan: by a conditional node of the graph, whose handle a launch sets, or by the host at a seam. */
#include "lower.h"
#include "format.h"
#include "ops/extent.h"

#include <stdlib.h>
#include <string.h>

void conditions_choose(Compilation *c)
{
    const char *without = codegen_without_conditions(c, c->options.targets);
    c->condition_nodes = !without && c->options.conditions != CONDITIONS_SEAM;
    if (c->condition_nodes) return;
    if (without && c->options.conditions == CONDITIONS_NODE) {
        diag_error(c, NULL, "--conditions=node: %s", without);
        diag_remedy(c, "name other targets, or leave the option out: then the host decides");
        return;
    }
    if (c->options.conditions == CONDITIONS_SEAM) {
        c->seam_reason = PLAN_SEAM_REQUESTED;
        c->seam_detail = "the host decides, as --conditions=seam asks";
        c->seam_remedy = "leave --conditions=seam out";
        return;
    }
    c->seam_reason = PLAN_SEAM_NO_CONDITIONAL_NODES;
    c->seam_detail = arena_text(&c->arena, "the host decides: %s", without);
    c->seam_remedy = "name targets that have conditional nodes: --target host,sm_90a and the like";
}

View block_word(Lower *l, const char *name) { return lower_temporary(l, name, DT_BOOL, 0, NULL); }

static void set_condition(Lower *l, int block)
{
    const Block *b = &l->blocks[block];
    Kernel *k = kernel_begin(l, NULL, "set_condition");
    kernel_in(k, "W", view_dense_new(l, b->word, DT_BOOL, 0, NULL));
    kernel_condition(k, block);
    kernel_text(k, "HOLDS", b->kind == BLOCK_ELSE ? "!word" : "word");
    kernel_label(k, l->c->graph.nodes[b->node].name);
    kernel_launch(k, 1, 1, 1, 32);
}

/* One seam for all blocks of a node; the first time the person is told. */
static int seam_for(Lower *l, uint32_t node)
{
    Compilation *c = l->c;
    for (int i = 0; i < l->seam_count; i++)
        if (l->seams[i].node == node) return i;
    if (l->seam_count == l->seam_room) {
        int room = l->seam_room ? l->seam_room * 2 : 8;
        Seam *bigger = NEW_ARRAY(c, Seam, room);
        if (l->seam_count) memcpy(bigger, l->seams, sizeof(Seam) * (size_t)l->seam_count);
        l->seams = bigger;
        l->seam_room = room;
    }
    l->seams[l->seam_count] = (Seam){ node, c->seam_reason, c->seam_detail, c->seam_remedy };
    diag_note(c, "signature '%s': a seam at node '%s': %s", l->signature->name, c->graph.nodes[node].name, c->seam_detail);
    return l->seam_count++;
}

static int open_blocks(const Lower *l)
{
    int open = 0;
    for (int i = 0; i < l->block_count; i++) open += !l->blocks[i].count;
    return open;
}

int block_begin(Lower *l, BlockKind kind, View word, uint32_t node)
{
    Compilation *c = l->c;
    if (open_blocks(l) == PLAN_NESTING_LIMIT)
        node_error(c, &c->graph.nodes[node], "it stands in %d others that run on conditions; expected fewer", PLAN_NESTING_LIMIT);
    if (l->block_count == l->block_room) {
        int room = l->block_room ? l->block_room * 2 : 8;
        Block *bigger = NEW_ARRAY(c, Block, room);
        if (l->block_count) memcpy(bigger, l->blocks, sizeof(Block) * (size_t)l->block_count);
        l->blocks = bigger;
        l->block_room = room;
    }
    int block = l->block_count++;
    l->blocks[block] = (Block){ .kind = kind, .word = word.buffer, .seam = -1, .node = node };
    if (c->condition_nodes) set_condition(l, block);
    else l->blocks[block].seam = seam_for(l, node);
    l->blocks[block].first = l->launch_count;
    return block;
}

/* A block without launches is none; then the launch that sets its condition goes too. */
void block_end(Lower *l, int block)
{
    Block *b = &l->blocks[block];
    if (l->launch_count == b->first) {
        if (b->seam < 0) l->launch_count--;
        l->block_count = block;
        return;
    }
    if (b->kind == BLOCK_WHILE && b->seam < 0) set_condition(l, block);
    l->blocks[block].count = l->launch_count - l->blocks[block].first;
}

bool extent_view(Lower *l, Dim counted, int rank, View *word)
{
    Sym s = extent_symbol(l->c, counted);
    Dim one = dim_const(l->c, 1);
    if (!s || l->c->symbols[s].slot < 0) return false;
    *word = view_dense_new(l, extents_buffer(l->c), DT_I64, rank, &one);
    word->offset = dim_const(l->c, l->c->symbols[s].slot);
    return true;
}

void set_extent(Lower *l, Dim counted, Dim value, const View *counts)
{
    View word;
    if (counts) counted = dim_resolve(l->c, counted); /* equal to the count of another buffer: this one has its writer too */
    if (!extent_view(l, counted, 1, &word)) return; /* it can only be one value, and nobody reads the word */
    Kernel *k = kernel_begin(l, NULL, "set_extent");
    kernel_out(k, "W", word);
    if (counts) kernel_out(k, "COUNTS", *counts); /* the rows behind the extent are none: whoever reads may take all for written */
    kernel_dim(k, "EXTENT", value);
    kernel_label(k, l->c->symbols[extent_symbol(l->c, counted)].name);
    kernel_launch(k, 1, 1, 1, 32);
}

View view_slice(Lower *l, const View *whole, int axis, Dim index)
{
    View v = *whole;
    v.offset = dim_add(l->c, v.offset, dim_scale(l->c, index, v.stride[axis]));
    v.rank--;
    for (int k = axis; k < v.rank; k++) {
        v.dims[k] = v.dims[k + 1];
        v.stride[k] = v.stride[k + 1];
    }
    return v;
}

static bool same_place(const View *a, const View *b)
{
    return a->buffer == b->buffer && a->offset == b->offset && !memcmp(a->stride, b->stride, sizeof *a->stride * (size_t)a->rank);
}

/* A new state that lies in a place which another copy may overwrite moves aside first. */
void carry_states(Lower *l, const Node *leave, int states, const View *places)
{
    View *fresh = NEW_ARRAY(l->c, View, states + 1);
    for (int i = 0; i < states; i++) {
        fresh[i] = lower_value(l, leave->inputs[i]);
        bool overlaps = false;
        for (int k = 0; k < states; k++) overlaps |= fresh[i].buffer == places[k].buffer;
        if (!overlaps || same_place(&fresh[i], &places[i])) continue;
        View aside = lower_temporary(l, leave->name, fresh[i].store, fresh[i].rank, fresh[i].dims);
        lower_copy(l, leave, fresh[i], aside, leave->name);
        fresh[i] = aside;
    }
    for (int i = 0; i < states; i++) {
        View to = places[i];
        memcpy(to.dims, fresh[i].dims, sizeof to.dims);
        if (!same_place(&fresh[i], &to)) lower_copy(l, leave, fresh[i], to, leave->name);
    }
}

bool made_between(Compilation *c, uint32_t value, uint32_t first, uint32_t end)
{
    uint32_t p = c->graph.values[value].producer;
    return p >= first && p < end && !c->graph.nodes[p].constant && !value_folded(&c->graph.values[value]);
}

View *views_keep(Lower *l)
{
    size_t bytes = sizeof(View) * (l->c->graph.value_count + 1);
    View *kept = malloc(bytes);
    if (!kept) fault("lower", "out of memory");
    memcpy(kept, l->views, bytes);
    return kept;
}

void views_restore(Lower *l, View *kept)
{
    memcpy(l->views, kept, sizeof(View) * (l->c->graph.value_count + 1));
    free(kept);
}
