/* example_plan.h - builds a small but complete plan in memory, for tests: two signatures over the same kernels, one with a
 * seam; symbols of four classes, a state pair, metadata, code and weights. Nothing in it can run. */
#ifndef EXAMPLE_PLAN_H
#define EXAMPLE_PLAN_H

#include "../../plans/writer.h"
#include "../../runtime/plan.h"

#include <stdlib.h>

static uint32_t add_expr(plan_writer *w, uint32_t op, int64_t value) {
    plan_expr_record e = {op, 0, value};
    return plan_writer_add(w, PLAN_SECTION_EXPRS, &e);
}

static void add_proof(plan_writer *w, const char *fact, const char *rule, const char *node, uint32_t because) {
    plan_proof_record p = {plan_writer_string(w, fact), plan_writer_string(w, rule), plan_writer_string(w, node), because};
    plan_writer_add(w, PLAN_SECTION_PROOFS, &p);
}

static void add_symbols(plan_writer *w) {
    add_proof(w, "past := past + seq each step", "state pair", "", PLAN_NONE);
    add_proof(w, "present.0.key dim 2 = past + seq", "Concat adds", "layers.0/k_cat", 0);
    add_proof(w, "past + seq", "broadcast", "model/Where_12", 1);
    add_expr(w, PLAN_EXPR_CONST, 1);  /* 0 */
    add_expr(w, PLAN_EXPR_SYMBOL, 1); /* 1: past + seq, three operations */
    add_expr(w, PLAN_EXPR_SYMBOL, 2);
    add_expr(w, PLAN_EXPR_ADD, 0);
    add_expr(w, PLAN_EXPR_CONST, 64); /* 4 */
    plan_symbol_record symbols[] = {
        {plan_writer_string(w, "batch"), PLAN_SYMBOL_FIXED, PLAN_NONE, PLAN_NONE, 0, 0},
        {plan_writer_string(w, "past"), PLAN_SYMBOL_GROWING, PLAN_SLOT_POSITION, 0, 0, 0},
        {plan_writer_string(w, "seq"), PLAN_SYMBOL_RANGED, PLAN_SLOT_TOKENS, PLAN_NONE, 0, 0},
        {plan_writer_string(w, "total"), PLAN_SYMBOL_DERIVED, 3, 2, 1, 3},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) plan_writer_add(w, PLAN_SECTION_SYMBOLS, &symbols[i]);
    plan_box_record boxes[] = {{0, 0, 1, 1}, {1, 0, 0, 15}, {2, 0, 1, 1}, {0, 0, 1, 1}, {1, 0, 0, 15}, {2, 0, 1, 8}};
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) plan_writer_add(w, PLAN_SECTION_BOXES, &boxes[i]);
}

static void add_regions(plan_writer *w) {
    static const uint64_t bytes[PLAN_REGION_COUNT] = {4096, 512, 256, 8192, 2048, 2048, 8 * PLAN_RING_TOKENS};
    for (uint32_t i = 0; i < PLAN_REGION_COUNT; i++) {
        plan_region_record r = {i, 0, bytes[i], i == PLAN_REGION_WEIGHTS ? 1000 : i == PLAN_REGION_LOAD ? 200 : 0};
        plan_writer_add(w, PLAN_SECTION_REGIONS, &r);
    }
}

static void add_tensors(plan_writer *w) {
    plan_dim_record dims[] = {{0, 1, 1, 8}, {1, 3, 16, 1}, {0, 1, 1, 1024}, {1, 3, 16, 64}, {4, 1, 64, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) plan_writer_add(w, PLAN_SECTION_DIMS, &dims[i]);
    plan_binding_record bindings[] = {
        {plan_writer_string(w, "input_ids"), PLAN_BINDING_INPUT, PLAN_I64, PLAN_FEED_TOKEN, 0, 1, PLAN_REGION_IO, 0, 0, 256},
        {plan_writer_string(w, "attention_mask"), PLAN_BINDING_INPUT, PLAN_I64, PLAN_FEED_ONES, 0, 2, PLAN_REGION_IO, 0, 256, 256},
        {plan_writer_string(w, "logits"), PLAN_BINDING_OUTPUT, PLAN_F32, PLAN_FEED_CALLER, 0, 1, PLAN_REGION_IO, 0, 512, 256},
    };
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) plan_writer_add(w, PLAN_SECTION_BINDINGS, &bindings[i]);
    plan_state_record state = {plan_writer_string(w, "past_key_values.0.key"), plan_writer_string(w, "present.0.key"),
                               PLAN_F32, 1, PLAN_STATE_APPENDED, 2, 3, 1, 256, 4096};
    plan_writer_add(w, PLAN_SECTION_STATES, &state);
    plan_step_record step = {PLAN_SLOT_POSITION, 0, 1, 3};
    plan_writer_add(w, PLAN_SECTION_STEPS, &step);
}

static void add_kernels(plan_writer *w) {
    plan_kernel_record kernels[] = {
        {plan_writer_string(w, "gemv_0"), plan_writer_string(w, "gemv"), 0, 3, 128, 1},
        {plan_writer_string(w, "advance_1"), plan_writer_string(w, "advance"), 0, 1, 32, 0}};
    for (size_t i = 0; i < 2; i++) plan_writer_add(w, PLAN_SECTION_KERNELS, &kernels[i]);
    uint64_t at = plan_writer_bytes(w, PLAN_SECTION_CODE, "host code", 9);
    plan_module_record module = {plan_writer_string(w, "host-x86_64"), 0, at, 9};
    plan_writer_add(w, PLAN_SECTION_MODULES, &module);
}

/* One signature's three launches, segments, edges, nodes and values. */
static void add_launches(plan_writer *w, int segments) {
    uint32_t arg = plan_writer_count(w, PLAN_SECTION_ARGS), access = plan_writer_count(w, PLAN_SECTION_ACCESSES);
    plan_arg_record args[] = {{PLAN_ARG_POINTER, PLAN_REGION_WEIGHTS, 0}, {PLAN_ARG_I64, 0, 64},
                              {PLAN_ARG_F32, 0, 0x3f800000}, {PLAN_ARG_POINTER, PLAN_REGION_STATE, 0}};
    for (size_t i = 0; i < 4; i++) plan_writer_add(w, PLAN_SECTION_ARGS, &args[i]);
    plan_access_record accesses[] = {{PLAN_ACCESS_READ, PLAN_REGION_WEIGHTS, 0, 1000},
                                     {PLAN_ACCESS_WRITE, PLAN_REGION_ARENA, 0, 256},
                                     {PLAN_ACCESS_BOTH, PLAN_REGION_STATE, 0, 32}};
    for (size_t i = 0; i < 3; i++) plan_writer_add(w, PLAN_SECTION_ACCESSES, &accesses[i]);
    plan_launch_record launches[] = {
        {0, 4, 1, 1, 0, plan_writer_string(w, "layers.0/scores"), arg, 3, access, 2, 1000, 256},
        {0, 8, 2, 1, 1024, plan_writer_string(w, "layers.0/attention"), arg, 3, access, 3, 2000, 512},
        {1, 1, 1, 1, 0, plan_writer_string(w, "advance"), arg + 3, 1, access + 2, 1, 32, 0}};
    for (size_t i = 0; i < 3; i++) plan_writer_add(w, PLAN_SECTION_LAUNCHES, &launches[i]);
    plan_edge_record edges[] = {{0, 1}, {1, 2}};
    for (size_t i = 0; i < 2; i++) plan_writer_add(w, PLAN_SECTION_EDGES, &edges[i]);
    plan_segment_record one = {0, 3}, first = {0, 1}, second = {1, 2};
    plan_writer_add(w, PLAN_SECTION_SEGMENTS, segments == 1 ? &one : &first);
    if (segments == 2) plan_writer_add(w, PLAN_SECTION_SEGMENTS, &second);
    plan_node_record nodes[] = {
        {plan_writer_string(w, "layers.0/scores"), plan_writer_string(w, "MatMul-13"), PLAN_REALISED_LAUNCH, 0, 0, 0},
        {plan_writer_string(w, "layers.0/Transpose_4"), plan_writer_string(w, "Transpose-13"), PLAN_REALISED_VIEW, 1,
         plan_writer_string(w, "view of 'layers.0/Reshape_9', \"strides\" 24 8 1"), 0}};
    for (size_t i = 0; i < 2; i++) plan_writer_add(w, PLAN_SECTION_NODES, &nodes[i]);
}

static void add_signature(plan_writer *w, uint32_t kind, const char *name, int segments, uint64_t fingerprint) {
    static const uint64_t table[4] = {1, 2, 3, 4};
    plan_signature_record s = {.name = plan_writer_string(w, name), .kind = kind, .fingerprint = fingerprint};
    uint32_t index = plan_writer_count(w, PLAN_SECTION_SIGNATURES);
    s.box = 3 * index, s.box_count = 3;
    s.binding = 0, s.binding_count = 3;
    s.launch = plan_writer_count(w, PLAN_SECTION_LAUNCHES), s.launch_count = 3;
    s.segment = plan_writer_count(w, PLAN_SECTION_SEGMENTS), s.segment_count = (uint32_t)segments;
    s.seam = plan_writer_count(w, PLAN_SECTION_SEAMS), s.seam_count = (uint32_t)segments - 1;
    s.block = plan_writer_count(w, PLAN_SECTION_BLOCKS), s.block_count = 2;
    s.edge = plan_writer_count(w, PLAN_SECTION_EDGES), s.edge_count = 2;
    s.step = 0, s.step_count = 1;
    s.node = plan_writer_count(w, PLAN_SECTION_NODES), s.node_count = 2;
    s.value = plan_writer_count(w, PLAN_SECTION_VALUES), s.value_count = 2;
    s.arena_bytes = 512, s.arena_lower_bound = 512;
    s.metadata_offset = plan_writer_bytes_copy(w, PLAN_SECTION_METADATA, &fingerprint, 8);
    plan_writer_bytes(w, PLAN_SECTION_METADATA, table, sizeof table);
    s.metadata_bytes = 40;
    add_launches(w, segments);
    plan_buffer_record buffers[] = {
        {plan_writer_string(w, "scores"), PLAN_REGION_ARENA, index, 0, 1, 0, 0, 256},
        {plan_writer_string(w, "probabilities"), PLAN_REGION_ARENA, index, 1, 2, 0, 256, 256}};
    uint32_t buffer = plan_writer_add(w, PLAN_SECTION_BUFFERS, &buffers[0]);
    plan_writer_add(w, PLAN_SECTION_BUFFERS, &buffers[1]);
    plan_value_record values[] = {
        {plan_writer_string(w, "scores_0"), PLAN_F32, plan_writer_string(w, "[1, 2, past + seq]"), PLAN_SYMBOL_GROWING, buffer, 2, 0},
        {plan_writer_string(w, "shape_1"), PLAN_I64, plan_writer_string(w, "[3]"), PLAN_SYMBOL_FIXED, PLAN_NONE, PLAN_NONE, 0}};
    for (size_t i = 0; i < 2; i++) plan_writer_add(w, PLAN_SECTION_VALUES, &values[i]);
    plan_seam_record seam = {plan_writer_string(w, "layers.0/NonZero"), PLAN_SEAM_DATA_EXTENT,
                             plan_writer_string(w, "extent depends on data, no bound known"),
                             plan_writer_string(w, "give a bound in the recipe (bounds: {layers.0/NonZero_0: 64})")};
    uint32_t by = segments == 2 ? plan_writer_add(w, PLAN_SECTION_SEAMS, &seam) : PLAN_NONE;
    plan_block_record blocks[] = {{PLAN_BLOCK_WHILE, plan_writer_string(w, "layers.0/Loop"), 1, 2, by, 0, 256},
                                  {PLAN_BLOCK_ELSE, plan_writer_string(w, "layers.0/If"), 1, 1, PLAN_NONE, 0, 257}};
    for (size_t i = 0; i < 2; i++) plan_writer_add(w, PLAN_SECTION_BLOCKS, &blocks[i]);
    plan_writer_add(w, PLAN_SECTION_SIGNATURES, &s);
}

/* A node whose second input is absent, and its two values: one with contents. */
static void add_graph(plan_writer *w) {
    plan_graph_term_record one = {0, 1}, total = {1, 3};
    plan_writer_add(w, PLAN_SECTION_GRAPH_TERMS, &one);
    plan_writer_add(w, PLAN_SECTION_GRAPH_TERMS, &total);
    for (int i = 2; i < 10; i++) plan_writer_add(w, PLAN_SECTION_GRAPH_TERMS, &one);
    plan_graph_value_record values[] = {
        {plan_writer_string(w, "attention_mask"), PLAN_I64, PLAN_GRAPH_INPUT, PLAN_GRAPH_CONTENTS, 0, 1, 1, 1},
        {plan_writer_string(w, "scores_0"), PLAN_F32, PLAN_GRAPH_MADE, PLAN_GRAPH_DIMS, 0, 2, 0, 0}};
    for (size_t i = 0; i < 2; i++) plan_writer_add(w, PLAN_SECTION_GRAPH_VALUES, &values[i]);
    plan_graph_link_record links[] = {{0}, {PLAN_NONE}, {1}};
    for (size_t i = 0; i < 3; i++) plan_writer_add(w, PLAN_SECTION_GRAPH_LINKS, &links[i]);
    plan_graph_node_record node = {plan_writer_string(w, "layers.0/scores"), plan_writer_string(w, "MatMul-13"),
                                   plan_writer_string(w, "axis=1 perm=0,2,1,3"), 0, 2, 2, 1, 0};
    plan_writer_add(w, PLAN_SECTION_GRAPH_NODES, &node);
}

/* The whole plan, not yet written. */
static plan_writer *build(void) {
    static uint8_t weights[1000];
    plan_writer *w = plan_writer_new();
    if (!w) abort();
    for (size_t i = 0; i < 100; i++) weights[i] = (uint8_t)(i + 1);
    weights[999] = 7;
    plan_model_record model = {plan_writer_string(w, "model.onnx"), plan_writer_string(w, "gcc-plan 0.1.0"),
                               plan_writer_string(w, "--target=host\t\x01\"\\\n"), plan_writer_string(w, "decoder, 2 nodes"),
                               UINT64_C(0xfedcba9876543210), 16, 4, 1, 0, 2, 1, 0, 0, 0};
    plan_writer_add(w, PLAN_SECTION_MODEL, &model);
    add_symbols(w);
    add_regions(w);
    add_tensors(w);
    add_kernels(w);
    add_signature(w, PLAN_SIGNATURE_DECODE, "decode", 1, UINT64_C(0x1111222233334444));
    add_signature(w, PLAN_SIGNATURE_PREFILL, "prefill", 2, UINT64_C(0x5555666677778888));
    add_graph(w);
    plan_writer_bytes(w, PLAN_SECTION_WEIGHTS, weights, 500);
    plan_writer_bytes(w, PLAN_SECTION_WEIGHTS, weights + 500, 500);
    plan_writer_align(w, PLAN_SECTION_WEIGHTS);
    plan_writer_zeros(w, PLAN_SECTION_WEIGHTS, 200);
    return w;
}

#endif
