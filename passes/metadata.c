/* metadata - one block a signature in region metadata: the fingerprint of what the block was made for, then its tables. */
#include "lower.h"
#include "format.h"

#include <string.h>

static int64_t align_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Of everything that decides what the launches expect to find: the box, and each launch's kernel and shape. */
static uint64_t fingerprint(Compilation *c, const Signature *s)
{
    Text t = { 0 };
    text_add(&t, "%s", s->name);
    for (Sym y = 1; y <= c->symbol_count; y++)
        if (!c->symbols[y].equals) text_add(&t, ";%lld..%lld", (long long)s->lo[y], (long long)s->hi[y]);
    for (int i = 0; i < s->lower->launch_count; i++) {
        const Launch *launch = &s->lower->launches[i];
        text_add(&t, ";%u:%lld,%lld,%lld", launch->kernel, (long long)launch->grid[0], (long long)launch->grid[1], (long long)launch->grid[2]);
    }
    uint64_t sum = plan_checksum(t.data, t.size);
    text_free(&t);
    return sum;
}

bool pass_metadata(Compilation *c)
{
    int64_t at = 0;
    for (int j = 0; j < c->signature_count; j++) {
        Lower *l = c->signatures[j].lower;
        if (!l) continue;
        l->fingerprint = fingerprint(c, &c->signatures[j]);
        l->metadata_offset = at;
        int64_t end = at + 8;
        for (uint32_t b = 1; b <= c->buffer_count; b++) {
            Buffer *buffer = &c->buffers[b];
            if (buffer->region != REGION_METADATA || buffer->signature != l->index) continue;
            buffer->offset = align_up(end, 16);
            end = buffer->offset + buffer->bytes;
        }
        l->metadata_bytes = end - at;
        at = align_up(end, PLAN_ALIGN);
    }
    return true;
}
