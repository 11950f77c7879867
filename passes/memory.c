/* memory - an offset for every buffer. Weights, state, inputs and outputs lie one after the other; the arena, and the
 * temporaries of `load`, share space by lifetime. */
#include "lower.h"
#include "format.h"

#include <stdlib.h>
#include <string.h>

static int64_t align_up(int64_t n) { return (n + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN; }

/* ---- lifetimes, and where constants live */

static void touch(Compilation *c, Lower *l, uint32_t buffer, int launch)
{
    Buffer *b = &c->buffers[buffer];
    bool shared = b->signature && b->signature != l->index;
    if (b->region == REGION_LOAD && shared) b->region = REGION_WEIGHTS; /* a step reads what `load` made */
    if (b->signature != l->index && b->region != REGION_WEIGHTS) return;
    if (b->region == REGION_WEIGHTS) { /* first: read by load; last: read by a step */
        if (l->signature->kind == SIG_LOAD) b->first = launch;
        else b->last = launch;
        return;
    }
    if (b->first < 0) b->first = launch;
    b->last = launch;
}

/* At a seam the host reads a block's condition at the block's begin, behind all launches before: no launch says so. */
static void keep_conditions(Compilation *c, const Lower *l)
{
    for (int i = 0; i < l->block_count; i++) {
        const Block *block = &l->blocks[i];
        Buffer *word = &c->buffers[block->word];
        const int begin = block->first < l->launch_count ? block->first : l->launch_count - 1;
        if (word->region == REGION_ARENA && word->signature == l->index && word->first >= 0 && word->last < begin) word->last = begin;
    }
}

/* What is used inside a block and outside of it lives as long as the block: a loop comes back to its begin, and what a branch
 * leaves alone keeps the value of before. */
static void stretch(Compilation *c, const Lower *l)
{
    for (int i = l->block_count - 1; i >= 0; i--) { /* inner blocks first */
        int first = l->blocks[i].first, last = first + l->blocks[i].count - 1;
        for (uint32_t n = 1; n <= c->buffer_count; n++) {
            Buffer *b = &c->buffers[n];
            if (b->signature != l->index || b->first < 0 || b->region != REGION_ARENA) continue;
            bool inside = b->first <= last && b->last >= first, outside = b->first < first || b->last > last;
            if (!inside || !outside) continue;
            if (b->first > first) b->first = first;
            if (b->last < last) b->last = last;
        }
    }
}

static void find_lifetimes(Compilation *c)
{
    for (int j = c->signature_count - 1; j >= 0; j--) {
        Lower *l = c->signatures[j].lower;
        for (int i = 0; l && i < l->launch_count; i++)
            for (int k = 0; k < l->launches[i].access_count; k++) touch(c, l, l->launches[i].accesses[k].buffer, i);
        if (!l) continue;
        keep_conditions(c, l);
        stretch(c, l);
    }
    for (uint32_t b = 1; b <= c->buffer_count; b++) {
        Buffer *buffer = &c->buffers[b];
        if (buffer->region == REGION_WEIGHTS && buffer->data && buffer->last < 0) buffer->region = REGION_LOAD;
    }
}

/* ---- placing one after the other */

static int64_t place_run(Compilation *c, Region region, bool with_data, int64_t at)
{
    for (uint32_t b = 1; b <= c->buffer_count; b++) {
        Buffer *buffer = &c->buffers[b];
        if (buffer->region != region || (buffer->data != NULL) != with_data) continue;
        if (with_data && buffer->first < 0 && buffer->last < 0) continue; /* viewed, never read */
        buffer->offset = at;
        at = align_up(at + buffer->bytes);
    }
    return at;
}

/* ---- sharing by lifetime: largest first, each at the lowest offset that is free while it lives */

static int larger_first(const void *a, const void *b)
{
    const Buffer *x = *(Buffer *const *)a, *y = *(Buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x < y ? -1 : 1;
}

static int by_offset(const void *a, const void *b)
{
    const Buffer *x = *(Buffer *const *)a, *y = *(Buffer *const *)b;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : 0;
}

static int64_t lowest_gap(Buffer **placed, int count, const Buffer *b, int64_t base)
{
    int64_t at = base;
    for (int i = 0; i < count; i++) { /* placed is sorted by offset */
        const Buffer *p = placed[i];
        if (p->last < b->first || b->last < p->first) continue;
        if (p->offset >= at + b->bytes) break;
        int64_t end = align_up(p->offset + p->bytes);
        if (end > at) at = end;
    }
    return at;
}

static int64_t place_by_lifetime(Compilation *c, Region region, uint32_t signature, int64_t base)
{
    Buffer **all = NEW_ARRAY(c, Buffer *, c->buffer_count + 1), **placed = NEW_ARRAY(c, Buffer *, c->buffer_count + 1);
    int count = 0, done = 0;
    int64_t peak = base;
    for (uint32_t b = 1; b <= c->buffer_count; b++) {
        Buffer *buffer = &c->buffers[b];
        if (buffer->region == region && buffer->signature == signature && !buffer->data && buffer->first >= 0) all[count++] = buffer;
    }
    qsort(all, (size_t)count, sizeof *all, larger_first);
    for (int i = 0; i < count; i++) {
        all[i]->offset = lowest_gap(placed, done, all[i], base);
        int64_t end = align_up(all[i]->offset + all[i]->bytes);
        if (end > peak) peak = end;
        int k = done++;
        for (; k > 0 && by_offset(&placed[k - 1], &all[i]) > 0; k--) placed[k] = placed[k - 1];
        placed[k] = all[i];
    }
    return peak;
}

/* The largest sum of buffers alive at one launch: no placement can be smaller. */
static int64_t lower_bound(Compilation *c, uint32_t signature, int launches)
{
    int64_t *change = NEW_ARRAY(c, int64_t, launches + 2), sum = 0, best = 0;
    for (uint32_t b = 1; b <= c->buffer_count; b++) {
        const Buffer *buffer = &c->buffers[b];
        if (buffer->region != REGION_ARENA || buffer->signature != signature || buffer->first < 0) continue;
        change[buffer->first] += align_up(buffer->bytes);
        change[buffer->last + 1] -= align_up(buffer->bytes);
    }
    for (int i = 0; i <= launches; i++) {
        sum += change[i];
        if (sum > best) best = sum;
    }
    return best;
}

bool pass_memory(Compilation *c)
{
    RegionSizes *r = &c->regions;
    find_lifetimes(c);
    r->weights_initialised = place_run(c, REGION_WEIGHTS, true, 0);
    r->bytes[REGION_WEIGHTS] = place_run(c, REGION_WEIGHTS, false, r->weights_initialised);
    r->load_initialised = place_run(c, REGION_LOAD, true, 0);
    r->bytes[REGION_LOAD] = place_by_lifetime(c, REGION_LOAD, 1, r->load_initialised);
    r->bytes[REGION_STATE] = place_run(c, REGION_STATE, false, 0);
    r->bytes[REGION_IO] = place_run(c, REGION_IO, false, 0);
    r->bytes[REGION_RING] = place_run(c, REGION_RING, false, 0);
    for (int j = 1; j < c->signature_count; j++) {
        Lower *l = c->signatures[j].lower;
        l->arena_bytes = place_by_lifetime(c, REGION_ARENA, l->index, 0);
        l->arena_lower_bound = lower_bound(c, l->index, l->launch_count);
        if (l->arena_bytes > r->bytes[REGION_ARENA]) r->bytes[REGION_ARENA] = l->arena_bytes;
        r->bytes[REGION_METADATA] = align_up(l->metadata_offset + l->metadata_bytes);
    }
    return true;
}
