/* dump.c - what the passes from lower to segment made, as text: --dump lower, metadata, memory, segment. */
#include "lower.h"

#include <inttypes.h>

static const char *region_name(Region r)
{
    static const char *const names[] = { "weights", "metadata", "load", "state", "arena", "io", "ring" };
    return names[r];
}

static void print_launch(Compilation *c, const Launch *launch, int index, FILE *out)
{
    const KernelText *k = &c->kernels[launch->kernel];
    fprintf(out, "  launch %d %s grid %" PRId64 " %" PRId64 " %" PRId64 " block %d '%s'", index, k->name, launch->grid[0], launch->grid[1],
            launch->grid[2], k->block, launch->label);
    for (int i = 0; i < launch->access_count; i++) {
        static const char *const modes[] = { "", "read", "write", "update" };
        const Access *a = &launch->accesses[i];
        fprintf(out, "\n    %-6s %s '%s' +%" PRId64 " %" PRId64 " bytes", modes[a->mode], region_name(c->buffers[a->buffer].region),
                c->buffers[a->buffer].name, a->offset, a->bytes);
    }
    fputc('\n', out);
}

void dump_launches(Compilation *c, FILE *out)
{
    for (int j = 0; j < c->signature_count; j++) {
        const Lower *l = c->signatures[j].lower;
        fprintf(out, "signature %s: %d launches\n", c->signatures[j].name, l->launch_count);
        for (int i = 0; i < l->launch_count; i++) print_launch(c, &l->launches[i], i, out);
    }
}

void dump_metadata(Compilation *c, FILE *out)
{
    for (int j = 0; j < c->signature_count; j++) {
        const Lower *l = c->signatures[j].lower;
        fprintf(out, "signature %s: block at %" PRId64 ", %" PRId64 " bytes, fingerprint %016" PRIx64 "\n", c->signatures[j].name,
                l->metadata_offset, l->metadata_bytes, l->fingerprint);
        for (uint32_t b = 1; b <= c->buffer_count; b++)
            if (c->buffers[b].region == REGION_METADATA && c->buffers[b].signature == l->index)
                fprintf(out, "  table '%s' at %" PRId64 ", %" PRId64 " bytes\n", c->buffers[b].name, c->buffers[b].offset, c->buffers[b].bytes);
    }
}

void dump_memory(Compilation *c, FILE *out)
{
    for (int r = 0; r <= REGION_RING; r++) {
        fprintf(out, "region %s: %" PRId64 " bytes\n", region_name((Region)r), c->regions.bytes[r]);
        for (uint32_t b = 1; b <= c->buffer_count; b++) {
            const Buffer *x = &c->buffers[b];
            if (x->region != (Region)r || x->offset < 0) continue;
            fprintf(out, "  +%-10" PRId64 " %10" PRId64 " bytes  signature %u  launches %d..%d  '%s'\n", x->offset, x->bytes, x->signature,
                    x->first, x->last, x->name);
        }
    }
    for (int j = 1; j < c->signature_count; j++)
        fprintf(out, "signature %s: arena %" PRId64 " bytes, lower bound %" PRId64 "\n", c->signatures[j].name,
                c->signatures[j].lower->arena_bytes, c->signatures[j].lower->arena_lower_bound);
}

void dump_segments(Compilation *c, FILE *out)
{
    for (int j = 1; j < c->signature_count; j++) {
        const Lower *l = c->signatures[j].lower;
        fprintf(out, "signature %s: %d segments, %d launches, %d edges\n", c->signatures[j].name, l->segment_count, l->launch_count, l->edge_count);
        for (int i = 0; i < l->edge_count; i++) fprintf(out, "  %u -> %u\n", l->edges[i].from, l->edges[i].to);
    }
}
