/* segment - edges from what launches read and write, and maximal captured runs.
 *
 * Lowering emits launches only, and a launch cannot synchronise, allocate or read the host; so a signature is one segment
 * unless the host has to decide whether a block of launches runs: then segments end where such blocks begin and end. */
#include "lower.h"

#include <string.h>

/* Two buffers may share arena space, so conflicts are decided by region and offset. */
static bool overlaps(Compilation *c, const Access *a, const Access *b)
{
    const Buffer *x = &c->buffers[a->buffer], *y = &c->buffers[b->buffer];
    if (x->region != y->region || !((a->mode | b->mode) & 2)) return false;
    int64_t from = x->offset + a->offset, other = y->offset + b->offset;
    return from < other + b->bytes && other < from + a->bytes;
}

static bool conflict(Compilation *c, const Launch *a, const Launch *b)
{
    for (int i = 0; i < a->access_count; i++)
        for (int j = 0; j < b->access_count; j++)
            if (overlaps(c, &a->accesses[i], &b->accesses[j])) return true;
    return false;
}

/* The condition of a block's node must be set before the node is reached. */
static bool decides(const Lower *l, int from, int to)
{
    const Launch *launch = &l->launches[from];
    for (int k = 0; k < launch->arg_count; k++) {
        if (!launch->args[k].condition) continue;
        const Block *b = &l->blocks[launch->args[k].value];
        if (to >= b->first && to < b->first + b->count) return true;
    }
    return false;
}

/* Edges to the nearest conflicting launches; what they already wait for is left out. */
static void find_edges(Compilation *c, Lower *l)
{
    int n = l->launch_count, words = (n + 63) / 64, room = n * 2 + 16;
    uint64_t *before = NEW_ARRAY(c, uint64_t, (size_t)n * (size_t)words + 1); /* launches that each one comes after */
    l->edges = NEW_ARRAY(c, Edge, room);
    for (int j = 0; j < n; j++) {
        uint64_t *mine = &before[(size_t)j * (size_t)words];
        for (int i = j - 1; i >= 0; i--) {
            if (mine[i / 64] >> (i % 64) & 1 || !(conflict(c, &l->launches[i], &l->launches[j]) || decides(l, i, j))) continue;
            if (l->edge_count == room) {
                Edge *bigger = NEW_ARRAY(c, Edge, room * 2);
                memcpy(bigger, l->edges, sizeof(Edge) * (size_t)room);
                l->edges = bigger;
                room *= 2;
            }
            l->edges[l->edge_count++] = (Edge){ (uint32_t)i, (uint32_t)j };
            for (int w = 0; w < words; w++) mine[w] |= before[(size_t)i * (size_t)words + (size_t)w];
            mine[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
}

static void find_segments(Compilation *c, Lower *l)
{
    bool *begins = NEW_ARRAY(c, bool, l->launch_count + 1);
    begins[0] = true;
    for (int i = 0; i < l->block_count; i++)
        if (l->blocks[i].seam >= 0) begins[l->blocks[i].first] = begins[l->blocks[i].first + l->blocks[i].count] = true;
    l->segments = NEW_ARRAY(c, Segment, 2 * l->block_count + 2);
    for (int i = 0; i < l->launch_count; i++) {
        if (begins[i]) l->segments[l->segment_count++].first = i;
        l->segments[l->segment_count - 1].count++;
    }
}

bool pass_segment(Compilation *c)
{
    for (int j = 0; j < c->signature_count; j++) {
        Lower *l = c->signatures[j].lower;
        find_segments(c, l);
        if (l->signature->kind != SIG_LOAD) find_edges(c, l); /* load runs once, in order, without a graph */
    }
    return true;
}
