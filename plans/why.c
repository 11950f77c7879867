/* why.c - plan-inspect --why NAME: what NAME is, the chain of facts that decided it, and how it is realised. */
#include "report.h"

#include <inttypes.h>
#include <string.h>

typedef struct range {
    uint32_t region;
    uint64_t offset, bytes;
} range;

/* Of COUNT launches from FIRST on, those that read a byte of the range; *WRITERS counts those that write one. */
static uint32_t count_users(const plan_view *v, uint32_t first, uint32_t count, range r, uint32_t *writers) {
    uint32_t readers = 0;
    *writers = 0;
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t mode = 0;
        const plan_launch_record *l = &v->launches[i];
        for (uint32_t k = 0; k < l->access_count; k++) {
            const plan_access_record *a = &v->accesses[l->access + k];
            if (a->region == r.region && a->offset < r.offset + r.bytes && r.offset < a->offset + a->bytes) mode |= a->mode;
        }
        readers += (mode & PLAN_ACCESS_READ) != 0;
        *writers += (mode & PLAN_ACCESS_WRITE) != 0;
    }
    return readers;
}

static void show_slot(const plan_view *v, uint32_t slot, FILE *out) {
    range word = {PLAN_REGION_STATE, 8 * (uint64_t)slot, 8};
    uint32_t writers, readers = count_users(v, 0, v->launch_count, word, &writers);
    fprintf(out, "realised as an extent (slot %" PRIu32 "), read by %" PRIu32 " launch%s", slot, readers, readers == 1 ? "" : "es");
    for (uint32_t i = 0; i < v->step_count; i++) {
        if (v->steps[i].slot != slot) continue;
        fputs("; after each step := ", out);
        plan_show_expr(v, v->steps[i].expr, v->steps[i].expr_count, out);
        break;
    }
}

/* "pinned to 1 in decode", "1..64 in prefill" */
static void show_ranges(const plan_view *v, uint32_t symbol, FILE *out) {
    for (uint32_t i = 0; i < v->signature_count; i++) {
        const plan_signature_record *s = &v->signatures[i];
        for (uint32_t k = s->box; k < s->box + s->box_count; k++) {
            const plan_box_record *b = &v->boxes[k];
            if (b->symbol != symbol) continue;
            if (b->lo == b->hi) fprintf(out, "; %" PRId64 " in %s", b->lo, plan_view_string(v, s->name));
            else fprintf(out, "; %" PRId64 "..%" PRId64 " in %s", b->lo, b->hi, plan_view_string(v, s->name));
        }
    }
}

static void why_symbol(const plan_view *v, uint32_t i, FILE *out) {
    const plan_symbol_record *s = &v->symbols[i];
    fprintf(out, "symbol %s\n", plan_view_string(v, s->name));
    if (s->expr_count && s->proof == PLAN_NONE) {
        fputs("  = ", out);
        plan_show_expr(v, s->expr, s->expr_count, out);
        putc('\n', out);
    }
    plan_show_chain(v, s->proof, out);
    fprintf(out, "  class: %s; ", plan_symbol_class_text(s->symbol_class));
    if (s->slot != PLAN_NONE) show_slot(v, s->slot, out);
    else if (s->expr_count) fputs("realised through the symbols that it is made of", out);
    else fputs("realised as a literal", out);
    show_ranges(v, i, out);
    putc('\n', out);
}

static void show_dim(const plan_view *v, const char *name, uint32_t axis, const plan_dim_record *d, FILE *out) {
    uint32_t shown = 0;
    fprintf(out, "%s[%" PRIu32 "] = ", name, axis);
    plan_show_expr(v, d->expr, d->expr_count, out);
    fprintf(out, "     at most %" PRId64 ", stride %" PRId64 "\n", d->upper, d->stride);
    for (uint32_t k = 0; k < d->expr_count; k++) {
        const plan_expr_record *e = &v->exprs[d->expr + k];
        if (e->op != PLAN_EXPR_SYMBOL || shown++ == 8) continue;
        const plan_symbol_record *s = &v->symbols[e->value];
        fprintf(out, "  %s is %s", plan_view_string(v, s->name), plan_symbol_class_text(s->symbol_class));
        if (s->expr_count) {
            fputs(", = ", out);
            plan_show_expr(v, s->expr, s->expr_count, out);
        }
        if (s->slot != PLAN_NONE) fprintf(out, ", extents slot %" PRIu32, s->slot);
        putc('\n', out);
        if (s->proof != PLAN_NONE) plan_show_chain(v, s->proof, out);
    }
}

/* AXIS is PLAN_NONE for all of them. */
static void show_dims(const plan_view *v, const char *name, uint32_t axis, uint32_t first, uint32_t count, FILE *out) {
    for (uint32_t k = 0; k < count; k++)
        if (axis == PLAN_NONE || axis == k) show_dim(v, name, k, &v->dims[first + k], out);
}

static void why_binding(const plan_view *v, const plan_signature_record *s, const plan_binding_record *b, uint32_t axis,
                        FILE *out) {
    static const char *const feeds[] = {"written by the caller", "written by the device (feed: token)",
                                        "written by the device (feed: ones)", "written by the device (feed: position)",
                                        "written by the device (feed: length)", "written by the device (feed: write_index)"};
    const char *name = plan_view_string(v, b->name);
    int input = b->kind == PLAN_BINDING_INPUT;
    range place = {b->region, b->offset, b->bytes};
    uint32_t writers, readers = count_users(v, s->launch, s->launch_count, place, &writers);
    fprintf(out, "%s %s %s of %s\n", input ? "input" : "output", name, plan_dtype_text(b->dtype), plan_view_string(v, s->name));
    show_dims(v, name, axis, b->dim, b->dim_count, out);
    if (b->bytes == 0) {
        fputs("  realised: not at all, no kernel reads it\n", out);
        return;
    }
    fprintf(out, "  realised as %" PRIu64 " bytes at %s+0x%" PRIx64 ", read by %" PRIu32 " launch%s; ", b->bytes,
            plan_region_text(b->region), b->offset, readers, readers == 1 ? "" : "es");
    if (input) fprintf(out, "%s\n", feeds[b->feed]);
    else fprintf(out, "written by %" PRIu32 " launch%s\n", writers, writers == 1 ? "" : "es");
}

static void why_state(const plan_view *v, const plan_state_record *s, uint32_t axis, FILE *out) {
    static const char *const updates[] = {"appended in place", "written in place", "copied at the end of the step"};
    const char *input = plan_view_string(v, s->input);
    fprintf(out, "state %s -> %s %s\n", input, plan_view_string(v, s->output), plan_dtype_text(s->dtype));
    show_dims(v, input, axis, s->dim, s->dim_count, out);
    plan_show_chain(v, s->proof, out);
    if (s->growing_axis != PLAN_NONE) fprintf(out, "  class: growing along axis %" PRIu32 "; ", s->growing_axis);
    else fputs("  class: fixed; ", out);
    fprintf(out, "realised as %" PRIu64 " bytes at state+0x%" PRIx64 ", %s\n", s->bytes, s->offset, updates[s->update]);
}

static void why_value(const plan_view *v, const plan_signature_record *s, const plan_value_record *x, FILE *out) {
    fprintf(out, "value %s %s %s in %s\n", plan_view_string(v, x->name), plan_dtype_text(x->dtype),
            plan_view_string(v, x->dims), plan_view_string(v, s->name));
    plan_show_chain(v, x->proof, out);
    fprintf(out, "  class: %s; ", plan_symbol_class_text(x->symbol_class));
    if (x->buffer == PLAN_NONE) {
        fputs("realised without memory: folded, or kept inside a launch\n", out);
        return;
    }
    const plan_buffer_record *b = &v->buffers[x->buffer];
    range place = {b->region, b->offset + x->offset, b->bytes - x->offset};
    uint32_t writers, first = 0, count = s->launch_count;
    if (b->signature != PLAN_NONE && &v->signatures[b->signature] == s && b->last < count) /* later ones use the place again */
        first = b->first, count = b->last - b->first + 1;
    uint32_t readers = count_users(v, s->launch + first, count, place, &writers);
    fprintf(out, "realised at %s+0x%" PRIx64 " in buffer '%s' (%" PRIu64 " bytes), written by %" PRIu32 " launch%s, read by %" PRIu32 "\n",
            plan_region_text(b->region), place.offset, plan_view_string(v, b->name), b->bytes, writers, writers == 1 ? "" : "es",
            readers);
}

static void why_node(const plan_view *v, const plan_signature_record *s, const plan_node_record *n, FILE *out) {
    static const char *const how[] = {"a launch", "no launch, a view", "no launch, folded", "no launch of its own, fused",
                                      "done once at load", "unused, nothing is done"};
    fprintf(out, "node '%s' (%s) in %s: %s\n", plan_view_string(v, n->name), plan_view_string(v, n->op),
            plan_view_string(v, s->name), how[n->realised]);
    if (n->detail) fprintf(out, "  %s\n", plan_view_string(v, n->detail));
    if (n->launch != PLAN_NONE) {
        const plan_launch_record *l = &v->launches[s->launch + n->launch];
        const plan_kernel_record *k = &v->kernels[l->kernel];
        fprintf(out, "  %s launch %" PRIu32 " '%s': kernel %s (%s), grid %" PRIu32 " x %" PRIu32 " x %" PRIu32 ", block %" PRIu32 "\n",
                n->realised == PLAN_REALISED_LAUNCH ? "is" : "part of", n->launch, plan_view_string(v, l->label),
                plan_view_string(v, k->name), plan_view_string(v, k->source), l->grid_x, l->grid_y, l->grid_z, k->block);
    }
    for (uint32_t i = 0; i < s->seam_count; i++)
        if (strcmp(plan_view_string(v, v->seams[s->seam + i].node), plan_view_string(v, n->name)) == 0) {
            fputs("  a segment ends here\n", out);
            plan_show_seams(v, s, out);
            break;
        }
    for (uint32_t i = 0; i < v->proof_count; i++) /* facts that this node gave */
        if (n->name && v->proofs[i].node == n->name)
            fprintf(out, "  says: %s (%s)\n", plan_view_string(v, v->proofs[i].fact), plan_view_string(v, v->proofs[i].rule));
}

/* Splits "name[2]" into a length and an axis; a name without brackets has axis PLAN_NONE. */
static size_t split_axis(const char *name, uint32_t *axis) {
    size_t length = strlen(name);
    *axis = PLAN_NONE;
    if (length < 4 || name[length - 1] != ']' || name[length - 3] != '[') return length;
    if (name[length - 2] < '0' || name[length - 2] > '7') return length;
    *axis = (uint32_t)(name[length - 2] - '0');
    return length - 3;
}

static int is_named(const plan_view *v, uint32_t offset, const char *name, size_t length) {
    const char *text = plan_view_string(v, offset);
    return strlen(text) == length && memcmp(text, name, length) == 0;
}

static int why_in_signature(const plan_view *v, const plan_signature_record *s, const char *name, FILE *out) {
    uint32_t axis, found = 0;
    size_t whole = strlen(name), base = split_axis(name, &axis);
    for (uint32_t i = s->binding; i < s->binding + s->binding_count; i++) {
        uint32_t text = v->bindings[i].name;
        int exact = is_named(v, text, name, whole);
        if (!exact && (axis >= v->bindings[i].dim_count || !is_named(v, text, name, base))) continue;
        why_binding(v, s, &v->bindings[i], exact ? PLAN_NONE : axis, out);
        found++;
    }
    for (uint32_t i = s->value; i < s->value + s->value_count; i++)
        if (is_named(v, v->values[i].name, name, whole)) why_value(v, s, &v->values[i], out), found++;
    for (uint32_t i = s->node; i < s->node + s->node_count; i++)
        if (is_named(v, v->nodes[i].name, name, whole)) why_node(v, s, &v->nodes[i], out), found++;
    return found != 0;
}

int plan_report_why(const plan_view *v, const char *name, FILE *out) {
    uint32_t axis;
    int found = 0;
    size_t whole = strlen(name), base = split_axis(name, &axis);
    for (uint32_t i = 0; i < v->symbol_count; i++)
        if (is_named(v, v->symbols[i].name, name, whole)) why_symbol(v, i, out), found = 1;
    for (uint32_t i = 0; i < v->state_count; i++) {
        const plan_state_record *s = &v->states[i];
        int exact = is_named(v, s->input, name, whole) || is_named(v, s->output, name, whole);
        if (!exact && (axis >= s->dim_count || !(is_named(v, s->input, name, base) || is_named(v, s->output, name, base))))
            continue;
        why_state(v, s, exact ? PLAN_NONE : axis, out);
        found = 1;
    }
    for (uint32_t i = 0; i < v->signature_count; i++) found |= why_in_signature(v, &v->signatures[i], name, out);
    return !found;
}
