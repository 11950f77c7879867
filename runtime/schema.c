/* schema.c - the tables of schema.h.
 *
 * T_record_field says where an index leads or which names an enumeration has. A field of kind FIRST, INDEX or ENUM
 * without its T_ line does not compile.
 */
#include "schema.h"
#include "plan.h"

#include <stddef.h>
#include <string.h>

#define LIST(what, ...) \
    static const plan_enum_name what##_names[] = {__VA_ARGS__}; \
    static const plan_enum what##_enum = {#what, what##_names, sizeof what##_names / sizeof *what##_names};

LIST(dtype, {PLAN_F32, "f32"}, {PLAN_U8, "u8"}, {PLAN_I8, "i8"}, {PLAN_U16, "u16"}, {PLAN_I16, "i16"},
     {PLAN_I32, "i32"}, {PLAN_I64, "i64"}, {PLAN_BOOL, "bool"}, {PLAN_F16, "f16"}, {PLAN_F64, "f64"},
     {PLAN_U32, "u32"}, {PLAN_U64, "u64"}, {PLAN_BF16, "bf16"}, {PLAN_U4, "u4"}, {PLAN_I4, "i4"},
     {PLAN_U2, "u2"}, {PLAN_I2, "i2"}, {PLAN_F4E2M1, "f4e2m1"}, {PLAN_F8E4M3FN, "f8e4m3fn"},
     {PLAN_F8E4M3FNUZ, "f8e4m3fnuz"}, {PLAN_F8E5M2, "f8e5m2"}, {PLAN_F8E5M2FNUZ, "f8e5m2fnuz"}, {PLAN_F8E8M0, "f8e8m0"})
LIST(region, {PLAN_REGION_WEIGHTS, "weights"}, {PLAN_REGION_METADATA, "metadata"}, {PLAN_REGION_LOAD, "load"},
     {PLAN_REGION_STATE, "state"}, {PLAN_REGION_ARENA, "arena"}, {PLAN_REGION_IO, "io"}, {PLAN_REGION_RING, "ring"})
LIST(feed, {PLAN_FEED_CALLER, "caller"}, {PLAN_FEED_TOKEN, "token"}, {PLAN_FEED_ONES, "ones"},
     {PLAN_FEED_POSITION, "position"}, {PLAN_FEED_LENGTH, "length"}, {PLAN_FEED_WRITE_INDEX, "write_index"})
LIST(symbol_class, {PLAN_SYMBOL_FIXED, "fixed"}, {PLAN_SYMBOL_RANGED, "ranged"}, {PLAN_SYMBOL_GROWING, "growing"},
     {PLAN_SYMBOL_DATA, "data"}, {PLAN_SYMBOL_UNKNOWN, "unknown"}, {PLAN_SYMBOL_DERIVED, "derived"})
LIST(signature_kind, {PLAN_SIGNATURE_LOAD, "load"}, {PLAN_SIGNATURE_DECODE, "decode"},
     {PLAN_SIGNATURE_PREFILL, "prefill"}, {PLAN_SIGNATURE_MAIN, "main"})
LIST(binding_kind, {PLAN_BINDING_INPUT, "input"}, {PLAN_BINDING_OUTPUT, "output"})
LIST(arg_kind, {PLAN_ARG_POINTER, "pointer"}, {PLAN_ARG_I64, "i64"}, {PLAN_ARG_F32, "f32"},
     {PLAN_ARG_ITERATION, "iteration"}, {PLAN_ARG_CONDITION, "condition"}, {PLAN_ARG_TIMERS, "timers"})
LIST(block_kind, {PLAN_BLOCK_IF, "if"}, {PLAN_BLOCK_ELSE, "else"}, {PLAN_BLOCK_WHILE, "while"})
LIST(access_mode, {PLAN_ACCESS_READ, "read"}, {PLAN_ACCESS_WRITE, "write"}, {PLAN_ACCESS_BOTH, "both"})
LIST(expr_op, {PLAN_EXPR_CONST, "const"}, {PLAN_EXPR_SYMBOL, "symbol"}, {PLAN_EXPR_ADD, "add"},
     {PLAN_EXPR_MUL, "mul"}, {PLAN_EXPR_FLOORDIV, "floordiv"}, {PLAN_EXPR_CEILDIV, "ceildiv"},
     {PLAN_EXPR_MOD, "mod"}, {PLAN_EXPR_MIN, "min"}, {PLAN_EXPR_MAX, "max"})
LIST(update, {PLAN_STATE_APPENDED, "appended"}, {PLAN_STATE_IN_PLACE, "in_place"}, {PLAN_STATE_COPIED, "copied"})
LIST(seam_reason, {PLAN_SEAM_CONTROL_FLOW, "control_flow"}, {PLAN_SEAM_DATA_EXTENT, "data_extent"},
     {PLAN_SEAM_UNSUPPORTED_CAPTURE, "unsupported_capture"}, {PLAN_SEAM_HOST_READ, "host_read"},
     {PLAN_SEAM_NO_CONDITIONAL_NODES, "no_conditional_nodes"}, {PLAN_SEAM_LIBRARY_CALL, "library_call"},
     {PLAN_SEAM_REQUESTED, "requested"})
LIST(realised, {PLAN_REALISED_LAUNCH, "launch"}, {PLAN_REALISED_VIEW, "view"}, {PLAN_REALISED_FOLDED, "folded"},
     {PLAN_REALISED_FUSED, "fused"}, {PLAN_REALISED_LOAD, "load"}, {PLAN_REALISED_UNUSED, "unused"})

LIST(graph_kind, {PLAN_GRAPH_MADE, "made"}, {PLAN_GRAPH_INPUT, "input"}, {PLAN_GRAPH_STATE, "state"}, {PLAN_GRAPH_CONSTANT, "constant"})
LIST(graph_known, {PLAN_GRAPH_NO_RANK, "nothing"}, {PLAN_GRAPH_DIMS, "dims"}, {PLAN_GRAPH_CONTENTS, "contents"})

#define TO(section) PLAN_SECTION_##section, 0, NULL
#define MAYBE(section) PLAN_SECTION_##section, 1, NULL
#define NAMED(list) 0, 0, &list##_enum

#define T_model_token_binding MAYBE(BINDINGS)
#define T_model_logits_binding MAYBE(BINDINGS)
#define T_symbol_symbol_class NAMED(symbol_class)
#define T_symbol_slot PLAN_TARGET_SLOTS, 1, NULL
#define T_symbol_proof MAYBE(PROOFS)
#define T_symbol_expr TO(EXPRS)
#define T_signature_kind NAMED(signature_kind)
#define T_signature_box TO(BOXES)
#define T_signature_binding TO(BINDINGS)
#define T_signature_launch TO(LAUNCHES)
#define T_signature_segment TO(SEGMENTS)
#define T_signature_seam TO(SEAMS)
#define T_signature_block TO(BLOCKS)
#define T_signature_edge TO(EDGES)
#define T_signature_step TO(STEPS)
#define T_signature_node TO(NODES)
#define T_signature_value TO(VALUES)
#define T_box_symbol TO(SYMBOLS)
#define T_region_kind NAMED(region)
#define T_binding_kind NAMED(binding_kind)
#define T_binding_dtype NAMED(dtype)
#define T_binding_feed NAMED(feed)
#define T_binding_dim TO(DIMS)
#define T_binding_region NAMED(region)
#define T_dim_expr TO(EXPRS)
#define T_expr_op NAMED(expr_op)
#define T_state_dtype NAMED(dtype)
#define T_state_growing_axis PLAN_TARGET_AXES, 1, NULL
#define T_state_update NAMED(update)
#define T_state_dim TO(DIMS)
#define T_state_proof MAYBE(PROOFS)
#define T_step_expr TO(EXPRS)
#define T_launch_kernel TO(KERNELS)
#define T_launch_arg TO(ARGS)
#define T_launch_access TO(ACCESSES)
#define T_arg_kind NAMED(arg_kind)
#define T_arg_region NAMED(region)
#define T_access_mode NAMED(access_mode)
#define T_access_region NAMED(region)
#define T_seam_reason NAMED(seam_reason)
#define T_block_kind NAMED(block_kind)
#define T_block_seam MAYBE(SEAMS)
#define T_proof_because MAYBE(PROOFS)
#define T_node_realised NAMED(realised)
#define T_node_launch PLAN_TARGET_LAUNCH, 1, NULL
#define T_value_dtype NAMED(dtype)
#define T_value_symbol_class NAMED(symbol_class)
#define T_value_buffer MAYBE(BUFFERS)
#define T_value_proof MAYBE(PROOFS)
#define T_weight_ref_region NAMED(region)
#define T_graph_node_input TO(GRAPH_LINKS)
#define T_graph_node_output TO(GRAPH_LINKS)
#define T_graph_value_dtype NAMED(dtype)
#define T_graph_value_kind NAMED(graph_kind)
#define T_graph_value_known NAMED(graph_known)
#define T_graph_value_dim TO(GRAPH_TERMS)
#define T_graph_value_content TO(GRAPH_TERMS)
#define T_graph_link_value MAYBE(GRAPH_VALUES)
#define T_graph_term_expr TO(EXPRS)
#define T_buffer_region NAMED(region)
#define T_buffer_signature MAYBE(SIGNATURES)

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define EXTRA_INT(field) 0, 0, NULL
#define EXTRA_STR(field) 0, 0, NULL
#define EXTRA_COUNT(field) 0, 0, NULL
#define EXTRA_HEX(field) 0, 0, NULL
#define EXTRA_ENUM(field) JOIN(T_, RECORD, _##field)
#define EXTRA_FIRST(field) JOIN(T_, RECORD, _##field)
#define EXTRA_INDEX(field) JOIN(T_, RECORD, _##field)
#define FIELD(type, kind, field) \
    {#field, PLAN_KIND_##kind, sizeof(type), (type)-1 < (type)1, offsetof(JOIN(plan_, RECORD, _record), field), \
     EXTRA_##kind(field)},
#define FIELDS(UPPER) static const plan_field JOIN(RECORD, _, fields)[] = {PLAN_RECORD_##UPPER(FIELD)};

#define RECORD model
FIELDS(MODEL)
#undef RECORD
#define RECORD symbol
FIELDS(SYMBOL)
#undef RECORD
#define RECORD signature
FIELDS(SIGNATURE)
#undef RECORD
#define RECORD box
FIELDS(BOX)
#undef RECORD
#define RECORD region
FIELDS(REGION)
#undef RECORD
#define RECORD binding
FIELDS(BINDING)
#undef RECORD
#define RECORD dim
FIELDS(DIM)
#undef RECORD
#define RECORD expr
FIELDS(EXPR)
#undef RECORD
#define RECORD state
FIELDS(STATE)
#undef RECORD
#define RECORD step
FIELDS(STEP)
#undef RECORD
#define RECORD kernel
FIELDS(KERNEL)
#undef RECORD
#define RECORD module
FIELDS(MODULE)
#undef RECORD
#define RECORD launch
FIELDS(LAUNCH)
#undef RECORD
#define RECORD arg
FIELDS(ARG)
#undef RECORD
#define RECORD access
FIELDS(ACCESS)
#undef RECORD
#define RECORD edge
FIELDS(EDGE)
#undef RECORD
#define RECORD segment
FIELDS(SEGMENT)
#undef RECORD
#define RECORD seam
FIELDS(SEAM)
#undef RECORD
#define RECORD proof
FIELDS(PROOF)
#undef RECORD
#define RECORD node
FIELDS(NODE)
#undef RECORD
#define RECORD value
FIELDS(VALUE)
#undef RECORD
#define RECORD weight_ref
FIELDS(WEIGHT_REF)
#undef RECORD
#define RECORD buffer
FIELDS(BUFFER)
#undef RECORD
#define RECORD graph_node
FIELDS(GRAPH_NODE)
#undef RECORD
#define RECORD graph_value
FIELDS(GRAPH_VALUE)
#undef RECORD
#define RECORD graph_link
FIELDS(GRAPH_LINK)
#undef RECORD
#define RECORD graph_term
FIELDS(GRAPH_TERM)
#undef RECORD
#define RECORD block
FIELDS(BLOCK)
#undef RECORD

#define RECORDS(ID, section, UPPER, lower) \
    [PLAN_SECTION_##ID] = {#section, sizeof(plan_##lower##_record), sizeof lower##_fields / sizeof *lower##_fields, \
                           lower##_fields},
#define BYTES(ID, section) [PLAN_SECTION_##ID] = {#section, 0, 0, NULL},
const plan_schema plan_schemas[PLAN_SECTION_END] = {PLAN_SECTIONS(RECORDS, BYTES)};

const char *plan_enum_text(const plan_enum *e, uint32_t value) {
    for (uint32_t i = 0; i < e->count; i++)
        if (e->names[i].value == value) return e->names[i].name;
    return NULL;
}

const char *plan_dtype_text(uint32_t dtype) { return plan_enum_text(&dtype_enum, dtype); }
const char *plan_region_text(uint32_t region) { return plan_enum_text(&region_enum, region); }
const char *plan_symbol_class_text(uint32_t symbol_class) { return plan_enum_text(&symbol_class_enum, symbol_class); }
const char *plan_block_kind_text(uint32_t kind) { return plan_enum_text(&block_kind_enum, kind); }
const char *plan_seam_reason_text(uint32_t reason) { return plan_enum_text(&seam_reason_enum, reason); }

uint32_t plan_dtype_bits(uint32_t dtype) {
    switch (dtype) {
    case PLAN_U4: case PLAN_I4: case PLAN_U2: case PLAN_I2: case PLAN_F4E2M1: /* buffers are byte-wide */
    case PLAN_F8E4M3FN: case PLAN_F8E4M3FNUZ: case PLAN_F8E5M2: case PLAN_F8E5M2FNUZ: case PLAN_F8E8M0:
    case PLAN_U8: case PLAN_I8: case PLAN_BOOL: return 8;
    case PLAN_U16: case PLAN_I16: case PLAN_F16: case PLAN_BF16: return 16;
    case PLAN_F32: case PLAN_I32: case PLAN_U32: return 32;
    case PLAN_I64: case PLAN_U64: case PLAN_F64: return 64;
    default: return 0;
    }
}

uint64_t plan_field_get(const plan_field *field, const void *record) {
    const unsigned char *at = (const unsigned char *)record + field->offset;
    if (field->width == 8) {
        uint64_t wide;
        memcpy(&wide, at, 8);
        return wide;
    }
    uint32_t narrow;
    memcpy(&narrow, at, 4);
    return narrow;
}
