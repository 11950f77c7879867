/* report.c - the summary of a plan, and a table of launches for each signature. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void show_targets(const plan_view *v, FILE *out) {
    fputs("targets     ", out);
    for (uint32_t i = 0; i < v->module_count; i++) {
        char text[24];
        fprintf(out, "%s%s (%s)", i ? ", " : "", plan_view_string(v, v->modules[i].target),
                plan_show_bytes(v->modules[i].bytes, text));
    }
    fputs(v->module_count ? "\n" : "none\n", out);
}

static void show_symbol(const plan_view *v, uint32_t i, int width, FILE *out) {
    const plan_symbol_record *s = &v->symbols[i];
    fprintf(out, "%-11s %-*s  %-8s", i ? "" : "symbols", width, plan_view_string(v, s->name),
            plan_symbol_class_text(s->symbol_class));
    if (s->slot != PLAN_NONE) fprintf(out, "  slot %-3" PRIu32, s->slot);
    else fputs("          ", out);
    if (s->expr_count) {
        fputs("  = ", out);
        plan_show_expr(v, s->expr, s->expr_count, out);
    }
    if (s->proof != PLAN_NONE) {
        const plan_proof_record *p = &v->proofs[s->proof];
        const char *node = plan_view_string(v, p->node);
        fprintf(out, "  (%s: %s%s%s%s)", plan_view_string(v, p->rule), plan_view_string(v, p->fact),
                node[0] ? ", node '" : "", node, node[0] ? "'" : "");
    }
    putc('\n', out);
}

static void show_states(const plan_view *v, FILE *out) {
    static const char *const updates[] = {"appended in place", "written in place", "copied at the end of the step"};
    if (!v->state_count) return;
    uint32_t counts[3] = {0};
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < v->state_count; i++) {
        counts[v->states[i].update]++;
        bytes += v->states[i].bytes;
    }
    char text[24];
    fprintf(out, "states      %" PRIu32 " pair%s, %s", v->state_count, plan_show_plural(v->state_count),
            plan_show_bytes(bytes, text));
    for (size_t k = 0; k < 3; k++)
        if (counts[k]) fprintf(out, ", %" PRIu32 " %s", counts[k], updates[k]);
    fprintf(out, "; first %s -> %s\n", plan_view_string(v, v->states[0].input), plan_view_string(v, v->states[0].output));
}

static void show_tensor(const plan_view *v, const plan_binding_record *b, FILE *out) {
    static const char *const feeds[] = {"the caller", "the device: sampled token", "the device: ones",
                                        "the device: position", "the device: length", "the device: write index"};
    char text[24];
    fprintf(out, "  %-6s  %s %s [", b->kind == PLAN_BINDING_INPUT ? "input" : "output", plan_view_string(v, b->name),
            plan_dtype_text(b->dtype));
    for (uint32_t k = 0; k < b->dim_count; k++) {
        if (k) fputs(", ", out);
        plan_show_expr(v, v->dims[b->dim + k].expr, v->dims[b->dim + k].expr_count, out);
    }
    if (b->bytes) fprintf(out, "]  %s at %s+0x%" PRIx64, plan_show_bytes(b->bytes, text), plan_region_text(b->region), b->offset);
    else fputs("]  no kernel reads it", out);
    if (b->kind == PLAN_BINDING_INPUT && b->bytes) fprintf(out, ", written by %s", feeds[b->feed]);
    putc('\n', out);
}

/* Nodes by launch: those of launch k are ORDER[start[k]] to ORDER[start[k + 1] - 1]. NULL without memory. */
static uint32_t *nodes_by_launch(const plan_view *v, const plan_signature_record *s, uint32_t **order) {
    uint32_t *start = calloc((size_t)s->launch_count + 2, sizeof *start);
    *order = malloc(((size_t)s->node_count + 1) * sizeof **order);
    if (!start || !*order) {
        free(start);
        free(*order);
        return NULL;
    }
    for (uint32_t i = 0; i < s->node_count; i++) {
        uint32_t launch = v->nodes[s->node + i].launch;
        if (launch != PLAN_NONE) start[launch + 2]++;
    }
    for (uint32_t k = 2; k < s->launch_count + 2; k++) start[k] += start[k - 1];
    for (uint32_t i = 0; i < s->node_count; i++) {
        uint32_t launch = v->nodes[s->node + i].launch;
        if (launch != PLAN_NONE) (*order)[start[launch + 1]++] = s->node + i;
    }
    return start;
}

static void show_launch(const plan_view *v, const plan_signature_record *s, uint32_t k, int width, FILE *out) {
    const plan_launch_record *l = &v->launches[s->launch + k];
    char grid[80], bytes[64];
    if (l->grid_z > 1) (void)snprintf(grid, sizeof grid, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, l->grid_x, l->grid_y, l->grid_z);
    else if (l->grid_y > 1) (void)snprintf(grid, sizeof grid, "%" PRIu32 ",%" PRIu32, l->grid_x, l->grid_y);
    else (void)snprintf(grid, sizeof grid, "%" PRIu32, l->grid_x);
    size_t used = strlen(grid);
    used += (size_t)snprintf(grid + used, sizeof grid - used, " x %" PRIu32, v->kernels[l->kernel].block);
    if (l->shared) (void)snprintf(grid + used, sizeof grid - used, " + %" PRIu32, l->shared);
    int length = snprintf(bytes, sizeof bytes, "%" PRIu64, l->bytes_fixed);
    if (l->bytes_row) (void)snprintf(bytes + length, sizeof bytes - (size_t)length, " + %" PRIu64 "/row", l->bytes_row);
    fprintf(out, "  %5" PRIu32 "  %-*s  %-21s  %-22s  %s", k, width, plan_view_string(v, v->kernels[l->kernel].name), grid,
            bytes, plan_view_string(v, l->label));
}

static void show_covered(const plan_view *v, const uint32_t *start, const uint32_t *order, uint32_t k,
                         const char *label, FILE *out) {
    uint32_t count = start[k + 1] - start[k];
    const uint32_t *node = order + start[k];
    if (count == 1 && strcmp(plan_view_string(v, v->nodes[*node].name), label) == 0) count = 0;
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? ", " : ": ", plan_view_string(v, v->nodes[node[i]].name));
    putc('\n', out);
}

static int kernel_width(const plan_view *v, const plan_signature_record *s) {
    size_t width = 6;
    for (uint32_t k = 0; k < s->launch_count; k++) {
        size_t length = strlen(plan_view_string(v, v->kernels[v->launches[s->launch + k].kernel].name));
        if (length > width) width = length;
    }
    return width < 48 ? (int)width : 48;
}

static void show_launches(const plan_view *v, const plan_signature_record *s, FILE *out) {
    uint32_t *order = NULL, *start = nodes_by_launch(v, s, &order);
    int width = kernel_width(v, s);
    uint32_t segment = s->segment;
    fprintf(out, "  %5s  %-*s  %-21s  %-22s  %s\n", "#", width, "kernel", "grid x block + shared", "bytes", "label: nodes");
    for (uint32_t k = 0; k < s->launch_count; k++) {
        if (s->segment_count > 1 && v->segments[segment].launch == k) {
            fprintf(out, "  -- segment %" PRIu32 ": launches %" PRIu32 "..%" PRIu32 "\n", segment - s->segment + 1, k,
                    k + v->segments[segment].launch_count - 1);
            if (segment + 1 < s->segment + s->segment_count) segment++;
        }
        plan_show_blocks_at(v, s, k, out);
        show_launch(v, s, k, width, out);
        if (start) show_covered(v, start, order, k, plan_view_string(v, v->launches[s->launch + k].label), out);
        else putc('\n', out);
    }
    if (start) {
        free(start);
        free(order);
    }
}

static void show_signature(const plan_view *v, const plan_signature_record *s, FILE *out) {
    uint64_t fixed = 0, row = 0, realised[6] = {0};
    for (uint32_t k = 0; k < s->launch_count; k++) {
        fixed += v->launches[s->launch + k].bytes_fixed;
        row += v->launches[s->launch + k].bytes_row;
    }
    for (uint32_t k = 0; k < s->node_count; k++) realised[v->nodes[s->node + k].realised]++;
    char peak[24], bound[24];
    fprintf(out, "\n%-11s %" PRIu32 " segment%s, %" PRIu32 " launch%s, %" PRIu32 " seam%s; ", plan_view_string(v, s->name),
            s->segment_count, plan_show_plural(s->segment_count), s->launch_count, s->launch_count == 1 ? "" : "es",
            s->seam_count, plan_show_plural(s->seam_count));
    plan_show_box(v, s, out);
    fprintf(out, "\n  moves %" PRIu64 " bytes + %" PRIu64 " a row of state; arena %s (lower bound %s); %" PRIu32 " edges\n", fixed, row,
            plan_show_bytes(s->arena_bytes, peak), plan_show_bytes(s->arena_lower_bound, bound), s->edge_count);
    fprintf(out, "  nodes %" PRIu32 ": %" PRIu64 " launched, %" PRIu64 " fused, %" PRIu64 " views, %" PRIu64 " folded, %" PRIu64
            " at load, %" PRIu64 " unused\n", s->node_count, realised[PLAN_REALISED_LAUNCH], realised[PLAN_REALISED_FUSED],
            realised[PLAN_REALISED_VIEW], realised[PLAN_REALISED_FOLDED], realised[PLAN_REALISED_LOAD],
            realised[PLAN_REALISED_UNUSED]);
    for (uint32_t k = 0; k < s->step_count; k++) {
        const plan_step_record *step = &v->steps[s->step + k];
        fprintf(out, "  step    slot %" PRIu32 " := ", step->slot);
        plan_show_expr(v, step->expr, step->expr_count, out);
        putc('\n', out);
    }
    for (uint32_t k = 0; k < s->binding_count; k++) show_tensor(v, &v->bindings[s->binding + k], out);
    if (s->block_count) plan_show_conditional(v, s, out);
    plan_show_seams(v, s, out);
    show_launches(v, s, out);
}

void plan_report_summary(const plan_view *v, const char *file_name, FILE *out) {
    const plan_model_record *m = v->model;
    char text[24];
    fprintf(out, "%s: %s: %s\n", file_name, plan_view_string(v, m->name), plan_view_string(v, m->architecture));
    fprintf(out, "plan        version %u, %s, by %s%s%s; model checksum 0x%016" PRIx64 "\n", PLAN_FORMAT_VERSION,
            plan_show_bytes(v->size, text), plan_view_string(v, m->compiler), m->options ? ", options " : "",
            plan_view_string(v, m->options), m->model_hash);
    show_targets(v, out);
    int width = 6;
    for (uint32_t i = 0; i < v->symbol_count; i++) {
        size_t length = strlen(plan_view_string(v, v->symbols[i].name));
        if (length > (size_t)width && length < 40) width = (int)length;
    }
    for (uint32_t i = 0; i < v->symbol_count; i++) show_symbol(v, i, width, out);
    if (m->capacity)
        fprintf(out, "capacity    %" PRId64 " rows, %s\n", m->capacity, m->rewindable ? "may be rewound" : "cannot be rewound");
    if (m->rows) fprintf(out, "rows        %" PRIu32 ", each with a length of its own\n", m->rows);
    show_states(v, out);
    fputs("memory     ", out);
    for (uint32_t i = 0; i < v->region_count; i++)
        if (v->regions[i].bytes)
            fprintf(out, " %s %s ", plan_region_text(i), plan_show_bytes(v->regions[i].bytes, text));
    putc('\n', out);
    if (v->weight_ref_count)
        fprintf(out, "weights     by reference: %" PRIu32 " ranges of the model's own files, first '%s'\n", v->weight_ref_count,
                plan_view_string(v, v->weight_refs[0].file));
    for (uint32_t i = 0; i < v->signature_count; i++) show_signature(v, &v->signatures[i], out);
}
