/* validate.c - checks of a plan that need more than one field. The fields themselves have been checked before, so runs,
 * indices, strings and enumerations are in bounds here. */
#include "container.h"

#include <inttypes.h>
#include <string.h>

#define REGION_NAME(region) plan_region_text(region)

/* "regions" holds each region once, in order; the extents table and the token ring fit. */
static plan_status check_regions(const plan_view *v, const plan_report *r) {
    if (v->region_count != PLAN_REGION_COUNT)
        return plan_view_fail(r, "regions: expected %d records, found %" PRIu32, PLAN_REGION_COUNT, v->region_count);
    for (uint32_t i = 0; i < PLAN_REGION_COUNT; i++) {
        const plan_region_record *region = &v->regions[i];
        if (region->kind != i)
            return plan_view_fail(r, "regions[%" PRIu32 "].kind: expected %s, found %s", i, REGION_NAME(i),
                                  REGION_NAME(region->kind));
        if (region->bytes > INT64_MAX)
            return plan_view_fail(r, "regions[%" PRIu32 "].bytes: expected below 2^63, found %" PRIu64, i, region->bytes);
        if (region->initialised > region->bytes)
            return plan_view_fail(r, "regions[%" PRIu32 "].initialised: expected at most %" PRIu64 ", found %" PRIu64, i,
                                  region->bytes, region->initialised);
    }
    if (v->metadata_size > v->regions[PLAN_REGION_METADATA].bytes)
        return plan_view_fail(r, "regions[%d].bytes: expected at least %" PRIu64 " (section metadata), found %" PRIu64,
                              PLAN_REGION_METADATA, v->metadata_size, v->regions[PLAN_REGION_METADATA].bytes);
    return PLAN_OK;
}

/* With weight_refs the section holds what they name with file "". */
static plan_status check_weights(const plan_view *v, const plan_report *r) {
    uint64_t weights = v->regions[PLAN_REGION_WEIGHTS].initialised, load = v->regions[PLAN_REGION_LOAD].initialised;
    uint64_t expected = weights;
    if (load) {
        expected += (PLAN_ALIGN - expected % PLAN_ALIGN) % PLAN_ALIGN;
        expected += load;
    }
    if (v->weight_ref_count == 0 && v->weights_size != expected)
        return plan_view_fail(r, "weights: expected %" PRIu64 " bytes (what the regions say is initialised), found %"
                              PRIu64, expected, v->weights_size);
    return PLAN_OK;
}

/* OFFSET + BYTES inside REGION. */
static int outside(const plan_view *v, uint32_t region, uint64_t offset, uint64_t bytes) {
    uint64_t size = v->regions[region].bytes;
    return offset > size || bytes > size - offset;
}

static plan_status range_fault(const plan_view *v, const plan_report *r, const char *section, uint32_t i,
                               const char *field, uint32_t region, uint64_t offset, uint64_t bytes) {
    return plan_view_fail(r, "%s[%" PRIu32 "].%s: expected inside the %" PRIu64 " bytes of region %s, found %" PRIu64
                          " bytes at %" PRIu64, section, i, field, v->regions[region].bytes, REGION_NAME(region), bytes,
                          offset);
}

static plan_status check_model(const plan_view *v, const plan_report *r) {
    const plan_model_record *m = v->model;
    if (m->capacity < 0) return plan_view_fail(r, "model[0].capacity: expected 0 or more, found %" PRId64, m->capacity);
    if (m->sampling > 2) return plan_view_fail(r, "model[0].sampling: expected 0 to 2, found %" PRIu32, m->sampling);
    if (m->rewindable > 1)
        return plan_view_fail(r, "model[0].rewindable: expected 0 or 1, found %" PRIu32, m->rewindable);
    if (outside(v, PLAN_REGION_STATE, 0, 8 * (uint64_t)m->slot_count))
        return range_fault(v, r, "model", 0, "slot_count", PLAN_REGION_STATE, 0, 8 * (uint64_t)m->slot_count);
    if ((m->capacity || m->sampling) && m->slot_count < PLAN_SLOT_FIRST_FREE)
        return plan_view_fail(r, "model[0].slot_count: expected at least %d, found %" PRIu32, PLAN_SLOT_FIRST_FREE,
                              m->slot_count);
    if (m->sampler && (!m->sampling || m->sampler < PLAN_SLOT_FIRST_FREE || m->slot_count < PLAN_SAMPLER_WORDS ||
                       m->sampler > m->slot_count - PLAN_SAMPLER_WORDS))
        return plan_view_fail(r, "model[0].sampler: expected %d words of the extents table from %d on, and sampling, found word %" PRIu32
                              " of %" PRIu32, PLAN_SAMPLER_WORDS, PLAN_SLOT_FIRST_FREE, m->sampler, m->slot_count);
    if (m->sampling == 2 && !m->sampler) return plan_view_fail(r, "model[0].sampler: expected a word for sampling 2, found 0");
    if (m->rows && (m->capacity == 0 || m->slot_count < PLAN_SLOT_FIRST_FREE + 2 * (uint64_t)m->rows))
        return plan_view_fail(r, "model[0].rows: expected a capacity and two words of the extents table for each, found %" PRIu32
                              " and %" PRIu32 " words", m->rows, m->slot_count);
    if (m->rows && m->sampling) return plan_view_fail(r, "model[0].sampling: expected 0 with rows, found %" PRIu32, m->sampling);
    const uint64_t ring = 8 * ((uint64_t)PLAN_RING_TOKENS + (m->sampler != 0));
    if (m->sampling && outside(v, PLAN_REGION_RING, 0, ring))
        return range_fault(v, r, "model", 0, "sampling", PLAN_REGION_RING, 0, ring);
    if (m->token_binding != PLAN_NONE && v->bindings[m->token_binding].kind != PLAN_BINDING_INPUT)
        return plan_view_fail(r, "model[0].token_binding: expected an input, found output '%s'",
                              plan_view_string(v, v->bindings[m->token_binding].name));
    if (m->logits_binding != PLAN_NONE && v->bindings[m->logits_binding].kind != PLAN_BINDING_OUTPUT)
        return plan_view_fail(r, "model[0].logits_binding: expected an output, found input '%s'",
                              plan_view_string(v, v->bindings[m->logits_binding].name));
    return PLAN_OK;
}

static plan_status check_expr(const plan_view *v, const plan_report *r, const char *section, uint32_t i,
                              uint32_t first, uint32_t count) {
    const char *fault = plan_expr_fault(v->exprs + first, count, v->symbol_count);
    if (!fault) return PLAN_OK;
    return plan_view_fail(r, "%s[%" PRIu32 "].expr: expected a postfix expression, found that %s", section, i, fault);
}

/* A derived symbol has an expression over symbols that are not derived, or that come before it: no cycles. */
static plan_status check_symbols(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->symbol_count; i++) {
        const plan_symbol_record *s = &v->symbols[i];
        int derived = s->symbol_class == PLAN_SYMBOL_DERIVED;
        if (!s->expr_count && !derived) continue;
        plan_status status = check_expr(v, r, "symbols", i, s->expr, s->expr_count);
        if (status) return status;
        for (uint32_t k = 0; k < s->expr_count; k++) {
            const plan_expr_record *e = &v->exprs[s->expr + k];
            if (e->op != PLAN_EXPR_SYMBOL || e->value < i) continue;
            if (e->value == i || v->symbols[e->value].expr_count)
                return plan_view_fail(r, "symbols[%" PRIu32 "].expr: expected symbols that are known before it, found symbol %"
                                      PRId64, i, e->value);
        }
    }
    return PLAN_OK;
}

static plan_status check_boxes_and_dims(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->box_count; i++)
        if (v->boxes[i].lo > v->boxes[i].hi)
            return plan_view_fail(r, "boxes[%" PRIu32 "].hi: expected at least %" PRId64 ", found %" PRId64, i,
                                  v->boxes[i].lo, v->boxes[i].hi);
    for (uint32_t i = 0; i < v->dim_count; i++) {
        const plan_dim_record *d = &v->dims[i];
        plan_status status = check_expr(v, r, "dims", i, d->expr, d->expr_count);
        if (status) return status;
        if (d->upper < 0)
            return plan_view_fail(r, "dims[%" PRIu32 "].upper: expected 0 or more, found %" PRId64, i, d->upper);
        if (d->stride < 0)
            return plan_view_fail(r, "dims[%" PRIu32 "].stride: expected 0 or more, found %" PRId64, i, d->stride);
    }
    for (uint32_t i = 0; i < v->step_count; i++) {
        if (v->steps[i].slot >= v->model->slot_count)
            return plan_view_fail(r, "steps[%" PRIu32 "].slot: expected below %" PRIu32 ", found %" PRIu32, i,
                                  v->model->slot_count, v->steps[i].slot);
        plan_status status = check_expr(v, r, "steps", i, v->steps[i].expr, v->steps[i].expr_count);
        if (status) return status;
    }
    return PLAN_OK;
}

/* Bytes that a tensor of the upper bounds reaches; UINT64_MAX on overflow. */
static uint64_t tensor_reach(const plan_view *v, uint32_t dtype, uint32_t first, uint32_t count) {
    int64_t last = 0, part, bits;
    for (uint32_t k = 0; k < count; k++) {
        const plan_dim_record *d = &v->dims[first + k];
        if (d->upper == 0) return 0;
        if (plan_mul_i64(d->upper - 1, d->stride, &part) || plan_add_i64(last, part, &last)) return UINT64_MAX;
    }
    if (plan_add_i64(last, 1, &last) || plan_mul_i64(last, plan_dtype_bits(dtype), &bits)) return UINT64_MAX;
    return (uint64_t)(bits / 8) + (bits % 8 != 0);
}

static plan_status check_tensor(const plan_view *v, const plan_report *r, const char *section, uint32_t i,
                                uint32_t dtype, uint32_t first, uint32_t count, uint64_t bytes) {
    if (count > PLAN_RANK_LIMIT)
        return plan_view_fail(r, "%s[%" PRIu32 "].dim_count: expected at most %d, found %" PRIu32, section, i,
                              PLAN_RANK_LIMIT, count);
    uint64_t reach = tensor_reach(v, dtype, first, count);
    if (bytes && reach > bytes)
        return plan_view_fail(r, "%s[%" PRIu32 "].bytes: expected at least %" PRIu64 " for its dims and strides, found %"
                              PRIu64, section, i, reach, bytes);
    return PLAN_OK;
}

static plan_status check_bindings_and_states(const plan_view *v, const plan_report *r) {
    plan_status status;
    for (uint32_t i = 0; i < v->binding_count; i++) {
        const plan_binding_record *b = &v->bindings[i];
        if (outside(v, b->region, b->offset, b->bytes))
            return range_fault(v, r, "bindings", i, "offset", b->region, b->offset, b->bytes);
        if ((status = check_tensor(v, r, "bindings", i, b->dtype, b->dim, b->dim_count, b->bytes))) return status;
    }
    for (uint32_t i = 0; i < v->state_count; i++) {
        const plan_state_record *s = &v->states[i];
        if (outside(v, PLAN_REGION_STATE, s->offset, s->bytes))
            return range_fault(v, r, "states", i, "offset", PLAN_REGION_STATE, s->offset, s->bytes);
        if ((status = check_tensor(v, r, "states", i, s->dtype, s->dim, s->dim_count, s->bytes))) return status;
        if (s->growing_axis != PLAN_NONE && s->growing_axis >= s->dim_count)
            return plan_view_fail(r, "states[%" PRIu32 "].growing_axis: expected below %" PRIu32 ", found %" PRIu32, i,
                                  s->dim_count, s->growing_axis);
    }
    return PLAN_OK;
}

static plan_status check_code(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->module_count; i++) {
        const plan_module_record *m = &v->modules[i];
        if (m->offset > v->code_size || m->bytes > v->code_size - m->offset)
            return plan_view_fail(r, "modules[%" PRIu32 "].offset: expected inside the %" PRIu64
                                  " bytes of section code, found %" PRIu64 " bytes at %" PRIu64, i, v->code_size,
                                  m->bytes, m->offset);
        if (m->module >= v->module_count)
            return plan_view_fail(r, "modules[%" PRIu32 "].module: expected below %" PRIu32 ", found %" PRIu32, i,
                                  v->module_count, m->module);
    }
    for (uint32_t i = 0; i < v->kernel_count; i++) {
        const plan_kernel_record *k = &v->kernels[i];
        if (k->block < 1 || k->block > PLAN_BLOCK_LIMIT)
            return plan_view_fail(r, "kernels[%" PRIu32 "].block: expected 1 to %d, found %" PRIu32, i, PLAN_BLOCK_LIMIT,
                                  k->block);
        if (k->fibres > 1)
            return plan_view_fail(r, "kernels[%" PRIu32 "].fibres: expected 0 or 1, found %" PRIu32, i, k->fibres);
        if (v->module_count && k->module >= v->module_count)
            return plan_view_fail(r, "kernels[%" PRIu32 "].module: expected below %" PRIu32 ", found %" PRIu32, i,
                                  v->module_count, k->module);
    }
    return PLAN_OK;
}

/* A record for each block of the launch. */
static plan_status check_timers(const plan_view *v, const plan_report *r, const plan_launch_record *l) {
    const plan_arg_record *a = plan_launch_timers(v, l);
    if (!a) return PLAN_OK;
    const uint64_t blocks = plan_launch_blocks(l), bytes = blocks > UINT64_MAX / PLAN_STAMP_BYTES ? UINT64_MAX : blocks * PLAN_STAMP_BYTES;
    return outside(v, a->region, a->value, bytes) ? range_fault(v, r, "args", (uint32_t)(a - v->args), "value", a->region, a->value, bytes) : PLAN_OK;
}

static plan_status check_launches(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->launch_count; i++) {
        const plan_launch_record *l = &v->launches[i];
        uint32_t grid[3] = {l->grid_x, l->grid_y, l->grid_z};
        uint32_t limit[3] = {INT32_MAX, 65535, 65535};
        for (int k = 0; k < 3; k++)
            if (grid[k] < 1 || grid[k] > limit[k])
                return plan_view_fail(r, "launches[%" PRIu32 "].grid_%c: expected 1 to %" PRIu32 ", found %" PRIu32, i,
                                      'x' + k, limit[k], grid[k]);
        if (l->arg_count != v->kernels[l->kernel].arg_count)
            return plan_view_fail(r, "launches[%" PRIu32 "].arg_count: expected %" PRIu32 " for kernel '%s', found %" PRIu32,
                                  i, v->kernels[l->kernel].arg_count,
                                  plan_view_string(v, v->kernels[l->kernel].name), l->arg_count);
        plan_status status = check_timers(v, r, l);
        if (status) return status;
    }
    for (uint32_t i = 0; i < v->arg_count; i++) {
        const plan_arg_record *a = &v->args[i];
        if (plan_arg_is_place(a) && outside(v, a->region, a->value, 0))
            return range_fault(v, r, "args", i, "value", a->region, a->value, 0);
        if (a->kind == PLAN_ARG_F32 && a->value >> 32)
            return plan_view_fail(r, "args[%" PRIu32 "].value: expected 32 bits, found 0x%" PRIx64, i, a->value);
    }
    for (uint32_t i = 0; i < v->access_count; i++) {
        const plan_access_record *a = &v->accesses[i];
        if (outside(v, a->region, a->offset, a->bytes))
            return range_fault(v, r, "accesses", i, "offset", a->region, a->offset, a->bytes);
    }
    return PLAN_OK;
}

/* Segments tile the signature's launches in order. */
static plan_status check_segments(const plan_view *v, const plan_report *r, const plan_signature_record *s, uint32_t i) {
    uint32_t next = 0;
    for (uint32_t k = s->segment; k < s->segment + s->segment_count; k++) {
        const plan_segment_record *g = &v->segments[k];
        if (g->launch != next)
            return plan_view_fail(r, "segments[%" PRIu32 "].launch: expected %" PRIu32 " (segments follow each other), found %"
                                  PRIu32, k, next, g->launch);
        if (g->launch_count < 1 || g->launch_count > s->launch_count - next)
            return plan_view_fail(r, "segments[%" PRIu32 "].launch_count: expected 1 to %" PRIu32 ", found %" PRIu32, k,
                                  s->launch_count - next, g->launch_count);
        next += g->launch_count;
    }
    if (next != s->launch_count)
        return plan_view_fail(r, "signatures[%" PRIu32 "].segment: expected segments over %" PRIu32 " launches, found %"
                              PRIu32, i, s->launch_count, next);
    return PLAN_OK;
}

/* The first of the signature's segments that begins at LAUNCH or behind it; the end of the run when there is none. */
static uint32_t segment_from(const plan_view *v, const plan_signature_record *s, uint32_t launch) {
    uint32_t low = s->segment, high = s->segment + s->segment_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (v->segments[middle].launch < launch) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* A segment begins at LAUNCH, or all launches end there. */
static int is_boundary(const plan_view *v, const plan_signature_record *s, uint32_t launch) {
    uint32_t segment = segment_from(v, s, launch);
    return launch == s->launch_count || (segment < s->segment + s->segment_count && v->segments[segment].launch == launch);
}

static plan_status check_block(const plan_view *v, const plan_report *r, const plan_signature_record *s, uint32_t k) {
    const plan_block_record *b = &v->blocks[k];
    if (b->launch >= s->launch_count || b->launch_count < 1 || b->launch_count > s->launch_count - b->launch)
        return plan_view_fail(r, "blocks[%" PRIu32 "].launch_count: expected 1 or more inside %" PRIu32 " launches, found %" PRIu32
                              " from %" PRIu32, k, s->launch_count, b->launch_count, b->launch);
    if (outside(v, PLAN_REGION_ARENA, b->offset, 1))
        return range_fault(v, r, "blocks", k, "offset", PLAN_REGION_ARENA, b->offset, 1);
    if (b->seam == PLAN_NONE) {
        uint32_t next = segment_from(v, s, b->launch + 1);
        if (next < s->segment + s->segment_count && v->segments[next].launch < b->launch + b->launch_count)
            return plan_view_fail(r, "blocks[%" PRIu32 "].seam: expected a seam, since segments end inside it, found none", k);
        return PLAN_OK;
    }
    if (b->seam < s->seam || b->seam - s->seam >= s->seam_count)
        return plan_view_fail(r, "blocks[%" PRIu32 "].seam: expected one of its signature's %" PRIu32 " seams, found %" PRIu32, k,
                              s->seam_count, b->seam);
    if (!is_boundary(v, s, b->launch) || !is_boundary(v, s, b->launch + b->launch_count))
        return plan_view_fail(r, "blocks[%" PRIu32 "].seam: expected a block that begins and ends with segments, found one within a segment", k);
    return PLAN_OK;
}

/* Each boundary between segments is a seam, or the begin or end of a block with one. */
static plan_status check_seams(const plan_view *v, const plan_report *r, const plan_signature_record *s, uint32_t i) {
    uint64_t ends = 0, boundaries = s->segment_count ? s->segment_count - 1 : 0;
    for (uint32_t k = s->block; k < s->block + s->block_count; k++)
        if (v->blocks[k].seam != PLAN_NONE) ends += 2;
    if (s->seam_count + ends >= boundaries) return PLAN_OK;
    return plan_view_fail(r, "signatures[%" PRIu32 "].seam_count: expected at least %" PRIu64 ", found %" PRIu32, i, boundaries - ends,
                          s->seam_count);
}

/* In order of their begin, outer first; each inside or outside of each other; no seam inside a node. */
static plan_status check_blocks(const plan_view *v, const plan_report *r, const plan_signature_record *s, uint32_t i) {
    uint32_t around[PLAN_NESTING_LIMIT], depth = 0;
    if (s->block_count && s->kind == PLAN_SIGNATURE_LOAD)
        return plan_view_fail(r, "signatures[%" PRIu32 "].block_count: expected 0 for a load signature, found %" PRIu32, i, s->block_count);
    for (uint32_t k = s->block; k < s->block + s->block_count; k++) {
        const plan_block_record *b = &v->blocks[k];
        plan_status status = check_block(v, r, s, k);
        if (status) return status;
        if (k > s->block && (b->launch < b[-1].launch || (b->launch == b[-1].launch && b->launch_count > b[-1].launch_count)))
            return plan_view_fail(r, "blocks[%" PRIu32 "].launch: expected blocks in order of their begin, outer first, found %" PRIu32
                                  " after %" PRIu32, k, b->launch, b[-1].launch);
        while (depth && b->launch >= v->blocks[around[depth - 1]].launch + v->blocks[around[depth - 1]].launch_count) depth--;
        const plan_block_record *outer = depth ? &v->blocks[around[depth - 1]] : NULL;
        if (outer && b->launch + b->launch_count > outer->launch + outer->launch_count)
            return plan_view_fail(r, "blocks[%" PRIu32 "].launch_count: expected an end inside block %" PRIu32 ", found one behind it", k,
                                  around[depth - 1]);
        if (outer && outer->seam == PLAN_NONE && b->seam != PLAN_NONE)
            return plan_view_fail(r, "blocks[%" PRIu32 "].seam: expected none inside the node of block %" PRIu32 ", found %" PRIu32, k,
                                  around[depth - 1], b->seam);
        if (depth == PLAN_NESTING_LIMIT)
            return plan_view_fail(r, "blocks[%" PRIu32 "]: expected at most %d blocks inside each other, found more", k, PLAN_NESTING_LIMIT);
        around[depth++] = k;
    }
    return check_seams(v, r, s, i);
}

static plan_status check_edges_and_nodes(const plan_view *v, const plan_report *r, const plan_signature_record *s) {
    for (uint32_t k = s->edge; k < s->edge + s->edge_count; k++) {
        const plan_edge_record *e = &v->edges[k];
        if (e->to >= s->launch_count)
            return plan_view_fail(r, "edges[%" PRIu32 "].to: expected below %" PRIu32 ", found %" PRIu32, k,
                                  s->launch_count, e->to);
        if (e->from >= e->to)
            return plan_view_fail(r, "edges[%" PRIu32 "].from: expected below %" PRIu32 ", found %" PRIu32, k, e->to,
                                  e->from);
    }
    for (uint32_t k = s->node; k < s->node + s->node_count; k++)
        if (v->nodes[k].launch != PLAN_NONE && v->nodes[k].launch >= s->launch_count)
            return plan_view_fail(r, "nodes[%" PRIu32 "].launch: expected below %" PRIu32 " or none, found %" PRIu32, k,
                                  s->launch_count, v->nodes[k].launch);
    return PLAN_OK;
}

static plan_status check_metadata(const plan_view *v, const plan_report *r, const plan_signature_record *s, uint32_t i) {
    uint64_t found;
    if (s->metadata_offset > v->metadata_size || s->metadata_bytes > v->metadata_size - s->metadata_offset)
        return plan_view_fail(r, "signatures[%" PRIu32 "].metadata_offset: expected inside the %" PRIu64
                              " bytes of section metadata, found %" PRIu64 " bytes at %" PRIu64, i, v->metadata_size,
                              s->metadata_bytes, s->metadata_offset);
    if (s->metadata_bytes == 0) return PLAN_OK;
    if (s->metadata_bytes < 8)
        return plan_view_fail(r, "signatures[%" PRIu32 "].metadata_bytes: expected 0 or at least 8, found %" PRIu64, i,
                              s->metadata_bytes);
    memcpy(&found, v->metadata + s->metadata_offset, 8);
    if (found == s->fingerprint) return PLAN_OK;
    (void)plan_view_fail(r, "signatures[%" PRIu32 "] '%s': the metadata was made for another signature; expected fingerprint 0x%016"
                         PRIx64 ", found 0x%016" PRIx64, i, plan_view_string(v, s->name), s->fingerprint, found);
    return PLAN_ERROR_METADATA;
}

/* The runs that validation walks through must not overlap: that keeps it linear. */
static plan_status check_disjoint(const plan_report *r, uint32_t i, const char *field, uint32_t first, uint32_t count,
                                  uint32_t *end) {
    if (count == 0) return PLAN_OK;
    if (first < *end)
        return plan_view_fail(r, "signatures[%" PRIu32 "].%s: expected a run from %" PRIu32
                              " on (signatures share none), found %" PRIu32, i, field, *end, first);
    *end = first + count;
    return PLAN_OK;
}

static plan_status check_signatures(const plan_view *v, const plan_report *r) {
    uint32_t end[7] = {0};
    for (uint32_t i = 0; i < v->signature_count; i++) {
        const plan_signature_record *s = &v->signatures[i];
        plan_status status = check_disjoint(r, i, "launch", s->launch, s->launch_count, &end[0]);
        if (!status) status = check_disjoint(r, i, "segment", s->segment, s->segment_count, &end[1]);
        if (!status) status = check_disjoint(r, i, "seam", s->seam, s->seam_count, &end[2]);
        if (!status) status = check_disjoint(r, i, "edge", s->edge, s->edge_count, &end[3]);
        if (!status) status = check_disjoint(r, i, "node", s->node, s->node_count, &end[4]);
        if (!status) status = check_disjoint(r, i, "value", s->value, s->value_count, &end[5]);
        if (!status) status = check_disjoint(r, i, "block", s->block, s->block_count, &end[6]);
        if (!status) status = check_segments(v, r, s, i);
        if (!status) status = check_blocks(v, r, s, i);
        if (!status) status = check_edges_and_nodes(v, r, s);
        if (!status) status = check_metadata(v, r, s, i);
        if (!status && s->arena_bytes > v->regions[PLAN_REGION_ARENA].bytes)
            status = range_fault(v, r, "signatures", i, "arena_bytes", PLAN_REGION_ARENA, 0, s->arena_bytes);
        if (status) return status;
    }
    return PLAN_OK;
}

static plan_status check_buffers(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->buffer_count; i++) {
        const plan_buffer_record *b = &v->buffers[i];
        if (outside(v, b->region, b->offset, b->bytes))
            return range_fault(v, r, "buffers", i, "offset", b->region, b->offset, b->bytes);
        if (b->first > b->last)
            return plan_view_fail(r, "buffers[%" PRIu32 "].last: expected at least %" PRIu32 ", found %" PRIu32, i, b->first,
                                  b->last);
        if (b->signature == PLAN_NONE) continue;
        uint32_t launches = v->signatures[b->signature].launch_count;
        if (b->last >= launches && b->last > 0)
            return plan_view_fail(r, "buffers[%" PRIu32 "].last: expected below %" PRIu32 ", found %" PRIu32, i, launches,
                                  b->last);
    }
    for (uint32_t i = 0; i < v->value_count; i++) {
        const plan_value_record *value = &v->values[i];
        if (value->buffer != PLAN_NONE && value->offset > v->buffers[value->buffer].bytes)
            return plan_view_fail(r, "values[%" PRIu32 "].offset: expected inside the %" PRIu64
                                  " bytes of buffer '%s', found %" PRIu64, i, v->buffers[value->buffer].bytes,
                                  plan_view_string(v, v->buffers[value->buffer].name), value->offset);
    }
    return PLAN_OK;
}

static plan_status check_proofs(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->proof_count; i++)
        if (v->proofs[i].because != PLAN_NONE && v->proofs[i].because >= i)
            return plan_view_fail(r, "proofs[%" PRIu32 "].because: expected below %" PRIu32 " or none, found %" PRIu32, i, i,
                                  v->proofs[i].because);
    return PLAN_OK;
}

#define PATH_LIMIT 4096 /* characters; also keeps these checks linear */

/* A path that stays inside the model's folder: relative, without "..". */
static int leaves_folder(const char *path) {
    if (path[0] == '/' || strnlen(path, PATH_LIMIT) == PATH_LIMIT) return 1;
    for (const char *part = path;; part = strchr(part, '/') + 1) {
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return 1;
        if (!strchr(part, '/')) return 0;
    }
}

static plan_status check_weight_refs(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->weight_ref_count; i++) {
        const plan_weight_ref_record *w = &v->weight_refs[i];
        if (leaves_folder(plan_view_string(v, w->file)))
            return plan_view_fail(r, "weight_refs[%" PRIu32 "].file: expected a file inside the model's folder, found '%.99s'", i,
                                  plan_view_string(v, w->file));
        if (w->region != PLAN_REGION_WEIGHTS && w->region != PLAN_REGION_LOAD)
            return plan_view_fail(r, "weight_refs[%" PRIu32 "].region: expected weights or load, found %s", i,
                                  REGION_NAME(w->region));
        uint64_t size = v->regions[w->region].initialised;
        if (w->region_offset > size || w->bytes > size - w->region_offset)
            return plan_view_fail(r, "weight_refs[%" PRIu32 "].region_offset: expected inside the %" PRIu64
                                  " initialised bytes of region %s, found %" PRIu64 " bytes at %" PRIu64, i, size,
                                  REGION_NAME(w->region), w->bytes, w->region_offset);
        if (!w->file && (w->file_offset > v->weights_size || w->bytes > v->weights_size - w->file_offset))
            return plan_view_fail(r, "weight_refs[%" PRIu32 "].file_offset: expected inside the %" PRIu64
                                  " bytes of section weights, found %" PRIu64 " bytes at %" PRIu64, i, v->weights_size,
                                  w->bytes, w->file_offset);
        if (w->file_offset > INT64_MAX || w->bytes > INT64_MAX - w->file_offset)
            return plan_view_fail(r, "weight_refs[%" PRIu32 "].file_offset: expected an end below 2^63, found %" PRIu64
                                  " bytes at %" PRIu64, i, w->bytes, w->file_offset);
    }
    return PLAN_OK;
}

/* Whether nodes come in order is the proof checker's question: nothing else reads the graph. */
static plan_status check_graph(const plan_view *v, const plan_report *r) {
    for (uint32_t i = 0; i < v->graph_term_count; i++) {
        plan_status status = check_expr(v, r, "graph_terms", i, v->graph_terms[i].expr, v->graph_terms[i].expr_count);
        if (status) return status;
    }
    for (uint32_t i = 0; i < v->graph_value_count; i++)
        if (v->graph_values[i].dim_count > PLAN_RANK_LIMIT)
            return plan_view_fail(r, "graph_values[%" PRIu32 "].dim_count: expected at most %d, found %" PRIu32, i,
                                  PLAN_RANK_LIMIT, v->graph_values[i].dim_count);
    return PLAN_OK;
}

plan_status plan_view_validate(const plan_view *v, const plan_report *r) {
    static plan_status (*const checks[])(const plan_view *, const plan_report *) = {
        check_regions, check_model, check_symbols, check_boxes_and_dims, check_bindings_and_states,
        check_code, check_launches, check_signatures, check_buffers, check_proofs, check_graph, check_weight_refs,
        check_weights};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        plan_status status = checks[i](v, r);
        if (status) return status;
    }
    return PLAN_OK;
}
