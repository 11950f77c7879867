/* emit - kernels compiled, the plan written. */
#include "emit.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

/* ---- launches */

static uint64_t place(const Emitter *e, uint32_t buffer, int64_t offset) { return (uint64_t)(e->c->buffers[buffer].offset + offset); }

static void emit_launch(Emitter *e, const Launch *launch)
{
    plan_launch_record r = { .kernel = launch->kernel - 1, .grid_x = (uint32_t)launch->grid[0], .grid_y = (uint32_t)launch->grid[1],
                             .grid_z = (uint32_t)launch->grid[2], .shared = (uint32_t)launch->shared, .label = plan_writer_string(e->w, launch->label),
                             .arg = plan_writer_count(e->w, PLAN_SECTION_ARGS), .arg_count = (uint32_t)launch->arg_count,
                             .access = plan_writer_count(e->w, PLAN_SECTION_ACCESSES), .access_count = (uint32_t)launch->access_count,
                             .bytes_fixed = (uint64_t)launch->bytes_fixed, .bytes_row = (uint64_t)launch->bytes_row };
    for (int i = 0; i < launch->arg_count; i++) {
        const LaunchArg *a = &launch->args[i];
        plan_arg_record arg = { .kind = a->condition ? PLAN_ARG_CONDITION : PLAN_ARG_ITERATION, .value = (uint64_t)a->value };
        if (!a->literal && !a->condition) arg = (plan_arg_record){ .kind = a->timers ? PLAN_ARG_TIMERS : PLAN_ARG_POINTER, .region = (uint32_t)e->c->buffers[a->buffer].region, .value = place(e, a->buffer, a->offset) };
        plan_writer_add(e->w, PLAN_SECTION_ARGS, &arg);
    }
    for (int i = 0; i < launch->access_count; i++) {
        const Access *a = &launch->accesses[i];
        plan_access_record access = { .mode = (uint32_t)a->mode, .region = (uint32_t)e->c->buffers[a->buffer].region,
                                      .offset = place(e, a->buffer, a->offset), .bytes = (uint64_t)a->bytes };
        plan_writer_add(e->w, PLAN_SECTION_ACCESSES, &access);
    }
    plan_writer_add(e->w, PLAN_SECTION_LAUNCHES, &r);
}

static void emit_box(Emitter *e, const Signature *s, plan_signature_record *r)
{
    r->box = plan_writer_count(e->w, PLAN_SECTION_BOXES);
    for (Sym y = 1; y <= e->c->symbol_count && s->kind != SIG_LOAD; y++) {
        const Symbol *symbol = &e->c->symbols[y];
        if (symbol->equals || e->symbol_record[y] == PLAN_NONE || s->hi[y] == INT64_MAX) continue;
        plan_box_record box = { .symbol = e->symbol_record[y], .lo = s->lo[y], .hi = s->hi[y] };
        plan_writer_add(e->w, PLAN_SECTION_BOXES, &box);
    }
    for (int i = 0; i < equations_waiting(e->c) && s->kind == SIG_MAIN; i++) { /* other signatures are not run by their sizes */
        plan_box_record box = { .symbol = e->equation_record[i] };
        if (box.symbol != PLAN_NONE) plan_writer_add(e->w, PLAN_SECTION_BOXES, &box);
    }
    r->box_count = plan_writer_count(e->w, PLAN_SECTION_BOXES) - r->box;
}

static void emit_step(Emitter *e, const Signature *s, plan_signature_record *r)
{
    r->step = plan_writer_count(e->w, PLAN_SECTION_STEPS);
    if (!e->c->position || s->kind == SIG_LOAD) return;
    plan_step_record step = { .slot = POSITION_SLOT };
    emit_expr(e, dim_add(e->c, dim_symbol(e->c, e->c->position), e->c->position_step), &step.expr, &step.expr_count);
    plan_writer_add(e->w, PLAN_SECTION_STEPS, &step);
    r->step_count = 1;
}

static void emit_blocks(Emitter *e, const Lower *l, plan_signature_record *r)
{
    r->seam = plan_writer_count(e->w, PLAN_SECTION_SEAMS);
    r->seam_count = (uint32_t)l->seam_count;
    for (int i = 0; i < l->seam_count; i++) {
        const Seam *s = &l->seams[i];
        plan_seam_record seam = { plan_writer_string(e->w, e->c->graph.nodes[s->node].name), (uint32_t)s->reason,
                                  plan_writer_string(e->w, s->detail), plan_writer_string(e->w, s->remedy) };
        plan_writer_add(e->w, PLAN_SECTION_SEAMS, &seam);
    }
    r->block = plan_writer_count(e->w, PLAN_SECTION_BLOCKS);
    r->block_count = (uint32_t)l->block_count;
    for (int i = 0; i < l->block_count; i++) {
        const Block *b = &l->blocks[i];
        plan_block_record block = { .kind = (uint32_t)b->kind, .node = plan_writer_string(e->w, e->c->graph.nodes[b->node].name),
                                    .launch = (uint32_t)b->first, .launch_count = (uint32_t)b->count,
                                    .seam = b->seam < 0 ? PLAN_NONE : r->seam + (uint32_t)b->seam, .offset = place(e, b->word, 0) };
        plan_writer_add(e->w, PLAN_SECTION_BLOCKS, &block);
    }
}

static void emit_signature(Emitter *e, const Signature *s)
{
    const Lower *l = s->lower;
    plan_signature_record r = { .name = plan_writer_string(e->w, s->name), .kind = (uint32_t)s->kind, .arena_bytes = (uint64_t)l->arena_bytes,
                                .arena_lower_bound = (uint64_t)l->arena_lower_bound, .metadata_offset = (uint64_t)l->metadata_offset,
                                .metadata_bytes = (uint64_t)l->metadata_bytes, .fingerprint = l->fingerprint };
    emit_box(e, s, &r);
    emit_bindings(e, s, &r);
    r.launch = plan_writer_count(e->w, PLAN_SECTION_LAUNCHES);
    r.launch_count = (uint32_t)l->launch_count;
    for (int i = 0; i < l->launch_count; i++) emit_launch(e, &l->launches[i]);
    r.segment = plan_writer_count(e->w, PLAN_SECTION_SEGMENTS);
    r.segment_count = (uint32_t)l->segment_count;
    for (int i = 0; i < l->segment_count; i++) {
        plan_segment_record segment = { (uint32_t)l->segments[i].first, (uint32_t)l->segments[i].count };
        plan_writer_add(e->w, PLAN_SECTION_SEGMENTS, &segment);
    }
    emit_blocks(e, l, &r);
    r.edge = plan_writer_count(e->w, PLAN_SECTION_EDGES);
    r.edge_count = (uint32_t)l->edge_count;
    for (int i = 0; i < l->edge_count; i++) {
        plan_edge_record edge = { l->edges[i].from, l->edges[i].to };
        plan_writer_add(e->w, PLAN_SECTION_EDGES, &edge);
    }
    emit_step(e, s, &r);
    emit_nodes(e, s, &r);
    emit_values(e, s, &r);
    plan_writer_add(e->w, PLAN_SECTION_SIGNATURES, &r);
}

/* ---- code, metadata, weights */

static bool emit_code(Emitter *e)
{
    Compilation *c = e->c;
    ModuleCode *modules;
    int count;
    const char *targets = c->options.targets ? c->options.targets : codegen_default_targets();
    report.targets = targets;
    if (!codegen_compile(c, targets, &modules, &count, e->module_of_kernel)) return false;
    for (int i = 0; i < count; i++) {
        plan_writer_align(e->w, PLAN_SECTION_CODE);
        plan_module_record r = { .target = plan_writer_string(e->w, modules[i].target), .module = (uint32_t)modules[i].module,
                                 .offset = plan_writer_bytes(e->w, PLAN_SECTION_CODE, modules[i].bytes, modules[i].size), .bytes = modules[i].size };
        plan_writer_add(e->w, PLAN_SECTION_MODULES, &r);
    }
    for (uint32_t k = 1; k <= c->kernel_count; k++) {
        const KernelText *t = &c->kernels[k];
        plan_kernel_record r = { plan_writer_string(e->w, t->name), plan_writer_string(e->w, t->template), (uint32_t)e->module_of_kernel[k],
                                 (uint32_t)t->arg_count, (uint32_t)t->block, t->fibres };
        plan_writer_add(e->w, PLAN_SECTION_KERNELS, &r);
    }
    return true;
}

static void pad_to(Emitter *e, uint32_t section, uint64_t base, int64_t offset)
{
    uint64_t at = plan_writer_size(e->w, section), to = base + (uint64_t)offset;
    if (to < at) fault("emit", "section %u: buffers overlap", section);
    plan_writer_zeros(e->w, section, to - at);
}

static void emit_metadata(Emitter *e)
{
    Compilation *c = e->c;
    for (int j = 0; j < c->signature_count; j++) {
        const Lower *l = c->signatures[j].lower;
        pad_to(e, PLAN_SECTION_METADATA, 0, l->metadata_offset);
        plan_writer_bytes(e->w, PLAN_SECTION_METADATA, &l->fingerprint, 8);
        for (uint32_t b = 1; b <= c->buffer_count; b++) {
            const Buffer *buffer = &c->buffers[b];
            if (buffer->region != REGION_METADATA || buffer->signature != l->index) continue;
            pad_to(e, PLAN_SECTION_METADATA, 0, buffer->offset);
            plan_writer_bytes(e->w, PLAN_SECTION_METADATA, buffer->data->bytes, buffer->data->size);
        }
    }
    pad_to(e, PLAN_SECTION_METADATA, 0, c->regions.bytes[REGION_METADATA]);
}

/* Embedded: the bytes follow each other in the section. By reference: what lies in the model's own files is only named;
 * what does not (small constants that the model file spells out) is written, with file "". */
static void emit_weight(Emitter *e, const Buffer *b, uint64_t base)
{
    const Data *d = b->data;
    if (!e->c->options.weights_reference) {
        pad_to(e, PLAN_SECTION_WEIGHTS, base, b->offset);
        plan_writer_bytes(e->w, PLAN_SECTION_WEIGHTS, d->bytes, d->size);
        return;
    }
    plan_weight_ref_record r = { .file = plan_writer_string(e->w, d->file), .region = (uint32_t)b->region, .file_offset = d->file_offset,
                                 .region_offset = (uint64_t)b->offset, .bytes = d->size };
    if (!d->file) r.file_offset = plan_writer_bytes(e->w, PLAN_SECTION_WEIGHTS, d->bytes, d->size);
    if (d->bytes) r.checksum = plan_checksum(d->bytes, d->size);
    plan_writer_add(e->w, PLAN_SECTION_WEIGHT_REFS, &r);
}

static void emit_weights(Emitter *e)
{
    Compilation *c = e->c;
    const Region regions[] = { REGION_WEIGHTS, REGION_LOAD };
    const int64_t sizes[] = { c->regions.weights_initialised, c->regions.load_initialised };
    uint64_t base = 0;
    for (int i = 0; i < 2; i++) {
        for (uint32_t b = 1; b <= c->buffer_count; b++)
            if (c->buffers[b].region == regions[i] && c->buffers[b].data && c->buffers[b].offset >= 0) emit_weight(e, &c->buffers[b], base);
        if (!c->options.weights_reference) pad_to(e, PLAN_SECTION_WEIGHTS, base, sizes[i]);
        base += (uint64_t)sizes[i];
    }
}

/* ---- the model's record */

/* An input that is an output too, as it is, has two. */
static uint32_t find_binding(const Emitter *e, const char *signature, uint32_t kind, const char *name)
{
    uint32_t text = plan_writer_string(e->w, name), sig = plan_writer_string(e->w, signature);
    for (uint32_t i = 0; i < plan_writer_count(e->w, PLAN_SECTION_SIGNATURES); i++) {
        const plan_signature_record *s = plan_writer_record(e->w, PLAN_SECTION_SIGNATURES, i);
        if (s->name != sig) continue;
        for (uint32_t k = s->binding; k < s->binding + s->binding_count; k++) {
            const plan_binding_record *b = plan_writer_record(e->w, PLAN_SECTION_BINDINGS, k);
            if (b->name == text && b->kind == kind) return k;
        }
    }
    return PLAN_NONE;
}

static bool rewindable(Compilation *c)
{
    for (int i = 0; i < c->pair_count; i++)
        if (!c->pairs[i].rows) return false;
    return true;
}

static const char *logits_text(const Compilation *c)
{
    return c->logits_rows == ROWS_LAST ? " logits=last" : c->logits_rows == ROWS_ALL ? " logits=all" : "";
}

static void emit_model(Emitter *e)
{
    Compilation *c = e->c;
    const Options *o = &c->options;
    uint32_t logits = logits_output(c), token = token_input(c);
    const char *main_name = c->signatures[1].name;
    const char *options = arena_text(&c->arena, "capacity=%lld sample=%s%s targets=%s weights=%s%s%s%s%s%s%s%s", (long long)c->capacity,
                                     sample_name(o->sample), logits_text(c), report.targets, o->weights_reference ? "reference" : "embed",
                                     o->check_lengths ? " check-lengths" : "", o->emulate_gpu ? " emulate-gpu" : "", o->timers ? " timers" : "",
                                     o->tune_candidates ? " tune-candidates" : "", tuning_option(c),
                                     o->rows ? arena_text(&c->arena, " rows=%lld", (long long)o->rows) : "",
                                     o->conditions == CONDITIONS_SEAM ? " conditions=seam" : "");
    plan_model_record r = { .name = plan_writer_string(e->w, c->file), .compiler = plan_writer_string(e->w, "gcc-plan 0.1.0"),
                            .options = plan_writer_string(e->w, options),
                            .architecture = plan_writer_string(e->w, arena_text(&c->arena, "%s, %u nodes", c->pair_count ? "decoder" : "network", c->graph.node_count)),
                            .model_hash = c->model_hash, .capacity = c->capacity, .slot_count = (uint32_t)slot_count(c), .sampling = o->sample == SAMPLE_DRAW ? 2u : samples(c),
                            .token_binding = token ? find_binding(e, main_name, PLAN_BINDING_INPUT, c->graph.values[token].name) : PLAN_NONE,
                            .logits_binding = logits ? find_binding(e, main_name, PLAN_BINDING_OUTPUT, c->graph.values[logits].name) : PLAN_NONE,
                            .rewindable = rewindable(c), .sampler = (uint32_t)sampler_slot(c), .rows = (uint32_t)o->rows };
    plan_writer_add(e->w, PLAN_SECTION_MODEL, &r);
}

static void emit_regions(Emitter *e)
{
    const RegionSizes *sizes = &e->c->regions;
    for (int k = 0; k <= REGION_RING; k++) {
        plan_region_record r = { .kind = (uint32_t)k, .bytes = (uint64_t)sizes->bytes[k] };
        r.initialised = k == REGION_WEIGHTS ? (uint64_t)sizes->weights_initialised : k == REGION_LOAD ? (uint64_t)sizes->load_initialised : 0;
        plan_writer_add(e->w, PLAN_SECTION_REGIONS, &r);
    }
}

static bool emit_plan(Emitter *e)
{
    Compilation *c = e->c;
    if (!emit_code(e)) return false;
    emit_symbols(e);
    emit_equations(e);
    emit_proofs(e);
    emit_buffers(e);
    emit_states(e);
    emit_regions(e);
    for (int j = 0; j < c->signature_count; j++) emit_signature(e, &c->signatures[j]);
    emit_graph(e);
    emit_model(e);
    emit_metadata(e);
    emit_weights(e);
    char error[512];
    uint64_t written = 0;
    if (plan_writer_write(e->w, c->options.output_path, &written, error, sizeof error)) {
        diag_error(c, NULL, "%s", error);
        return false;
    }
    report.plan_bytes = (int64_t)written;
    return true;
}

bool pass_emit(Compilation *c)
{
    if (!c->options.output_path) return true;
    Emitter e = { .c = c, .w = plan_writer_new() };
    if (!e.w) fault("emit", "out of memory");
    e.symbol_record = NEW_ARRAY(c, uint32_t, c->symbol_count + 1);
    e.buffer_record = NEW_ARRAY(c, uint32_t, c->buffer_count + 1);
    e.module_of_kernel = NEW_ARRAY(c, int, c->kernel_count + 1);
    bool good = emit_plan(&e);
    plan_writer_free(e.w);
    return good;
}
