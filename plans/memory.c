/* memory.c - plan-inspect --memory: the exact memory certificate. Peak and lower bound are computed again here from the
 * buffers and compared with what the plan says; buffers that live together must not overlap. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a buffer takes: buffers begin at multiples of PLAN_ALIGN. */
static uint64_t align_up(uint64_t bytes) {
    return bytes + (PLAN_ALIGN - bytes % PLAN_ALIGN) % PLAN_ALIGN;
}

typedef struct bounds {
    uint64_t peak;  /* largest end of a buffer */
    uint64_t lower; /* largest sum of the buffers alive at one launch */
    uint64_t overlaps;
} bounds;

static const plan_buffer_record *sort_base;

static int by_place(const void *a, const void *b) {
    const plan_buffer_record *x = &sort_base[*(const uint32_t *)a], *y = &sort_base[*(const uint32_t *)b];
    if (x->region != y->region) return x->region < y->region ? -1 : 1;
    if (x->signature != y->signature) return x->signature + 1 < y->signature + 1 ? -1 : 1; /* shared by all first */
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

/* The buffers ORDER[0] to ORDER[count - 1] are of one region and one signature, by offset. */
static int measure(const plan_view *v, const uint32_t *order, uint32_t count, uint32_t launches, bounds *out) {
    uint64_t *change = calloc((size_t)launches + 1, sizeof *change), alive = 0;
    if (!change) return 1;
    *out = (bounds){0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        const plan_buffer_record *a = &v->buffers[order[i]];
        uint64_t end = a->offset + a->bytes;
        if (align_up(end) > out->peak) out->peak = align_up(end);
        if (a->first < launches) change[a->first] += align_up(a->bytes);
        if (a->last < launches) change[a->last + 1] -= align_up(a->bytes); /* wraps; the sums do not */
        for (uint32_t k = i + 1; k < count && v->buffers[order[k]].offset < end; k++) {
            const plan_buffer_record *b = &v->buffers[order[k]];
            if (b->bytes && b->first <= a->last && a->first <= b->last) out->overlaps++;
        }
    }
    for (uint32_t k = 0; k < launches; k++) {
        alive += change[k];
        if (alive > out->lower) out->lower = alive;
    }
    free(change);
    return 0;
}

static void show_buffer(const plan_view *v, const plan_buffer_record *b, FILE *out) {
    fprintf(out, "    0x%-10" PRIx64 " %12" PRIu64 "  ", b->offset, b->bytes);
    if (b->signature == PLAN_NONE) fprintf(out, "%-13s", "always");
    else {
        char life[32];
        (void)snprintf(life, sizeof life, "%" PRIu32 "..%" PRIu32, b->first, b->last);
        fprintf(out, "%-13s", life);
    }
    fprintf(out, "  %s\n", plan_view_string(v, b->name));
}

/* One run of buffers with the same region and signature. */
static int show_run(const plan_view *v, const uint32_t *order, uint32_t count, FILE *out) {
    const plan_buffer_record *first = &v->buffers[order[0]];
    const plan_signature_record *s = first->signature == PLAN_NONE ? NULL : &v->signatures[first->signature];
    bounds found;
    if (measure(v, order, count, s ? s->launch_count : 1, &found)) return 1;
    fprintf(out, "  %s, %s: %" PRIu32 " buffer%s, ends at %" PRIu64, plan_region_text(first->region),
            s ? plan_view_string(v, s->name) : "all signatures", count, plan_show_plural(count), found.peak);
    if (s) fprintf(out, ", lower bound %" PRIu64, found.lower);
    if (found.overlaps) fprintf(out, ", %" PRIu64 " OVERLAPS of buffers that live together", found.overlaps);
    else fputs(", no overlap of buffers that live together", out);
    if (s && first->region == PLAN_REGION_ARENA && (found.peak > s->arena_bytes || found.lower != s->arena_lower_bound))
        fprintf(out, "; the plan says peak %" PRIu64 ", lower bound %" PRIu64, s->arena_bytes, s->arena_lower_bound);
    putc('\n', out);
    fprintf(out, "    %-12s %12s  %-13s  %s\n", "offset", "bytes", "launches", "buffer");
    for (uint32_t i = 0; i < count; i++) show_buffer(v, &v->buffers[order[i]], out);
    return 0;
}

static void show_totals(const plan_view *v, FILE *out) {
    static const char *const lives[] = {"plan", "plan", "plan, until the load signature has run", "session", "session",
                                        "session", "session, pinned host memory"};
    uint64_t plan_bytes = 0, session_bytes = 0;
    fprintf(out, "%-9s %14s %14s  %s\n", "region", "bytes", "from the file", "lives with");
    for (uint32_t i = 0; i < v->region_count; i++) {
        const plan_region_record *r = &v->regions[i];
        uint64_t stored = i == PLAN_REGION_METADATA ? v->metadata_size : r->initialised;
        fprintf(out, "%-9s %14" PRIu64 " %14" PRIu64 "  %s\n", plan_region_text(i), r->bytes, stored, lives[i]);
        if (i <= PLAN_REGION_LOAD) plan_bytes += r->bytes;
        else if (i != PLAN_REGION_RING) session_bytes += r->bytes;
    }
    fprintf(out, "device    %14" PRIu64 " bytes for the plan (%" PRIu64 " after load), %" PRIu64 " for each session\n\n", plan_bytes,
            plan_bytes - v->regions[PLAN_REGION_LOAD].bytes, session_bytes);
    for (uint32_t i = 0; i < v->signature_count; i++) {
        const plan_signature_record *s = &v->signatures[i];
        fprintf(out, "%-9s arena peak %" PRIu64 ", lower bound %" PRIu64 ", metadata %" PRIu64 " at 0x%" PRIx64 "\n",
                plan_view_string(v, s->name), s->arena_bytes, s->arena_lower_bound, s->metadata_bytes, s->metadata_offset);
    }
}

int plan_report_memory(const plan_view *v, FILE *out) {
    uint32_t *order = malloc(((size_t)v->buffer_count + 1) * sizeof *order);
    if (!order) return 1;
    for (uint32_t i = 0; i < v->buffer_count; i++) order[i] = i;
    sort_base = v->buffers;
    qsort(order, v->buffer_count, sizeof *order, by_place);
    show_totals(v, out);
    int status = 0;
    for (uint32_t i = 0, next; i < v->buffer_count && !status; i = next) {
        const plan_buffer_record *b = &v->buffers[order[i]];
        for (next = i + 1; next < v->buffer_count; next++) {
            const plan_buffer_record *c = &v->buffers[order[next]];
            if (c->region != b->region || c->signature != b->signature) break;
        }
        putc('\n', out);
        status = show_run(v, order + i, next - i, out);
    }
    free(order);
    return status;
}
