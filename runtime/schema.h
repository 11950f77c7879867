/* schema.h - the plan file's sections and fields as tables, for validation, text and JSON.
 *
 * Built from the lists of format.h; schema.c adds what those lists cannot say: where an index points, whether it may
 * be NONE, and the names of an enumeration's values. All tables are constant: no set-up, any thread.
 */
#ifndef PLAN_SCHEMA_H
#define PLAN_SCHEMA_H

#include "format.h"

/* R(ID, records, RECORD, record) for sections of records, B(ID, bytes) for sections of bytes; in order of id. */
#define PLAN_SECTIONS(R, B) \
    B(STRINGS, strings) \
    R(MODEL, model, MODEL, model) \
    R(SYMBOLS, symbols, SYMBOL, symbol) \
    R(SIGNATURES, signatures, SIGNATURE, signature) \
    R(BOXES, boxes, BOX, box) \
    R(REGIONS, regions, REGION, region) \
    R(BINDINGS, bindings, BINDING, binding) \
    R(DIMS, dims, DIM, dim) \
    R(EXPRS, exprs, EXPR, expr) \
    R(STATES, states, STATE, state) \
    R(STEPS, steps, STEP, step) \
    R(KERNELS, kernels, KERNEL, kernel) \
    R(MODULES, modules, MODULE, module) \
    R(LAUNCHES, launches, LAUNCH, launch) \
    R(ARGS, args, ARG, arg) \
    R(ACCESSES, accesses, ACCESS, access) \
    R(EDGES, edges, EDGE, edge) \
    R(SEGMENTS, segments, SEGMENT, segment) \
    R(SEAMS, seams, SEAM, seam) \
    R(PROOFS, proofs, PROOF, proof) \
    R(NODES, nodes, NODE, node) \
    R(VALUES, values, VALUE, value) \
    R(WEIGHT_REFS, weight_refs, WEIGHT_REF, weight_ref) \
    R(BUFFERS, buffers, BUFFER, buffer) \
    R(GRAPH_NODES, graph_nodes, GRAPH_NODE, graph_node) \
    R(GRAPH_VALUES, graph_values, GRAPH_VALUE, graph_value) \
    R(GRAPH_LINKS, graph_links, GRAPH_LINK, graph_link) \
    R(GRAPH_TERMS, graph_terms, GRAPH_TERM, graph_term) \
    R(BLOCKS, blocks, BLOCK, block) \
    B(METADATA, metadata) \
    B(CODE, code) \
    B(WEIGHTS, weights)

typedef enum plan_kind {
    PLAN_KIND_INT, PLAN_KIND_STR, PLAN_KIND_ENUM, PLAN_KIND_FIRST, PLAN_KIND_COUNT, PLAN_KIND_INDEX, PLAN_KIND_HEX
} plan_kind;

/* What an index points into when it is not a section. */
enum plan_target {
    PLAN_TARGET_SLOTS = 64,  /* words of the extents table: below model.slot_count */
    PLAN_TARGET_AXES = 65,   /* the record's own dims: below its dim_count */
    PLAN_TARGET_LAUNCH = 66  /* launches of the signature that the record belongs to */
};

typedef struct plan_enum_name {
    uint32_t value;
    const char *name;
} plan_enum_name;

typedef struct plan_enum {
    const char *what; /* "dtype" */
    const plan_enum_name *names;
    uint32_t count;
} plan_enum;

typedef struct plan_field {
    const char *name;
    plan_kind kind;
    uint8_t width;     /* 4 or 8 bytes */
    uint8_t is_signed;
    uint16_t offset;   /* in the record */
    uint16_t target;   /* FIRST, INDEX: enum plan_section_id or enum plan_target; otherwise 0 */
    uint8_t none;      /* INDEX: PLAN_NONE is allowed */
    const plan_enum *names; /* ENUM; otherwise NULL */
} plan_field;

typedef struct plan_schema {
    const char *name;
    uint32_t record; /* bytes of a record; 0 for a section of bytes */
    uint32_t field_count;
    const plan_field *fields;
} plan_schema;

/* Indexed by enum plan_section_id; entry 0 is empty. */
extern const plan_schema plan_schemas[PLAN_SECTION_END];

/* The name of VALUE, or NULL when the enumeration has no such value. */
const char *plan_enum_text(const plan_enum *e, uint32_t value);
/* Names of the enumerations that reports use. NULL for a value that is not in the list. */
const char *plan_dtype_text(uint32_t dtype);
const char *plan_region_text(uint32_t region);
const char *plan_symbol_class_text(uint32_t symbol_class);
const char *plan_seam_reason_text(uint32_t reason);
const char *plan_block_kind_text(uint32_t kind);
/* Bits of one element in buffers of a plan: 8 for those packed elsewhere (u4 i4 u2 i2 f4e2m1); 0 when unknown. */
uint32_t plan_dtype_bits(uint32_t dtype);
/* The bits of FIELD in RECORD; a signed field is 8 bytes wide, so that a cast to int64_t is its value. */
uint64_t plan_field_get(const plan_field *field, const void *record);

#endif
