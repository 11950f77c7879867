/* format.h - the plan file, as plans/FORMAT.md specifies it.
 *
 * A file is a prefix, a section table, then aligned sections. Sections of records are arrays of one fixed-size
 * little-endian record; sections of bytes are raw. Each record is listed once, as F(type, kind, name), and that list
 * makes the struct, the field table that validation, the text form and JSON use, and the size assertion.
 *
 * Field kinds: what the number means, and so what validation requires of it.
 *   INT    any value
 *   STR    offset of a NUL-terminated string in section `strings`; 0 is ""
 *   ENUM   one of the names listed for the field in schema.c
 *   FIRST  first index of a run in another section (named in schema.c); the next field, of kind COUNT, is its length
 *   COUNT  length of the run that the field before begins
 *   INDEX  an index in another section; NONE (0xffffffff) where the record allows it
 *   HEX    any value, printed in hexadecimal
 */
#ifndef PLAN_FORMAT_H
#define PLAN_FORMAT_H

#include <assert.h>
#include <stdint.h>

#define PLAN_MAGIC "gccplan" /* 8 bytes with its NUL */
#define PLAN_FORMAT_VERSION 2u
#define PLAN_ALIGN 256u /* of sections and of buffers inside regions */
#define PLAN_NONE 0xffffffffu
#define PLAN_RING_TOKENS 65536u /* token ring, int64 each */

typedef struct plan_prefix { /* never changes */
    char magic[8];
    uint32_t version;
    uint32_t section_count;
    uint64_t file_size;      /* bytes, all of the file */
    uint64_t table_offset;   /* 64 */
    uint64_t table_checksum; /* plan_checksum of the section table */
    uint64_t prefix_checksum; /* plan_checksum of the 40 bytes before */
    uint64_t reserved[2];    /* zero */
} plan_prefix;
static_assert(sizeof(plan_prefix) == 64, "prefix");

typedef struct plan_section {
    uint32_t id;       /* enum plan_section_id */
    uint32_t flags;    /* bit 0: required; a reader refuses an unknown required section and skips an unknown optional one */
    uint64_t offset;   /* multiple of PLAN_ALIGN; bytes between sections are zero */
    uint64_t size;     /* bytes */
    uint32_t count;    /* records, or 0 for raw bytes */
    uint32_t record;   /* bytes of a record, or 0 */
    uint64_t checksum; /* plan_checksum of the section's bytes */
} plan_section;
static_assert(sizeof(plan_section) == 40, "section");

enum plan_section_id {
    PLAN_SECTION_STRINGS = 1, PLAN_SECTION_MODEL = 2, PLAN_SECTION_SYMBOLS = 3, PLAN_SECTION_SIGNATURES = 4,
    PLAN_SECTION_BOXES = 5, PLAN_SECTION_REGIONS = 6, PLAN_SECTION_BINDINGS = 7, PLAN_SECTION_DIMS = 8,
    PLAN_SECTION_EXPRS = 9, PLAN_SECTION_STATES = 10, PLAN_SECTION_STEPS = 11, PLAN_SECTION_KERNELS = 12,
    PLAN_SECTION_MODULES = 13, PLAN_SECTION_LAUNCHES = 14, PLAN_SECTION_ARGS = 15, PLAN_SECTION_ACCESSES = 16,
    PLAN_SECTION_EDGES = 17, PLAN_SECTION_SEGMENTS = 18, PLAN_SECTION_SEAMS = 19, PLAN_SECTION_PROOFS = 20,
    PLAN_SECTION_NODES = 21, PLAN_SECTION_VALUES = 22, PLAN_SECTION_WEIGHT_REFS = 23, PLAN_SECTION_BUFFERS = 24,
    PLAN_SECTION_GRAPH_NODES = 25, PLAN_SECTION_GRAPH_VALUES = 26, PLAN_SECTION_GRAPH_LINKS = 27,
    PLAN_SECTION_GRAPH_TERMS = 28,
    PLAN_SECTION_BLOCKS = 29,
    PLAN_SECTION_METADATA = 30, PLAN_SECTION_CODE = 31, PLAN_SECTION_WEIGHTS = 32, PLAN_SECTION_END = 33
};

/* Regions, in this order. `load` lives from plan_load until the load signature has run, then it is freed.
 * weights, metadata, load: one for a plan. state, arena, io, ring: one for a session. ring is pinned host memory
 * that the device can write. The extents table is the start of `state`: slot k is the int64 at offset 8 k. */
enum plan_region {
    PLAN_REGION_WEIGHTS = 0, PLAN_REGION_METADATA = 1, PLAN_REGION_LOAD = 2, PLAN_REGION_STATE = 3,
    PLAN_REGION_ARENA = 4, PLAN_REGION_IO = 5, PLAN_REGION_RING = 6, PLAN_REGION_COUNT = 7
};
/* Fixed slots of the extents table. */
enum plan_slot {
    PLAN_SLOT_POSITION = 0, /* the growing symbol: rows of state that are valid before the step */
    PLAN_SLOT_TOKENS = 1,   /* tokens fed in this step (written by the host for prefill; decode kernels use a literal) */
    PLAN_SLOT_SAMPLED = 2,  /* tokens sampled so far; the ring index is this modulo PLAN_RING_TOKENS */
    PLAN_SLOT_FIRST_FREE = 3 /* further ranged symbols */
};
/* Words of the extents table from model.sampler on: what a session sets of its sampling tail. All zero: greedy, no stop token.
 * The last ones only matter to sampling 2. */
enum plan_sampler_word {
    PLAN_SAMPLER_STOPPED = 0,    /* the last token was a stop token: decode's tail does nothing, and the position stands */
    PLAN_SAMPLER_STOP_COUNT = 1,
    PLAN_SAMPLER_STOP_IDS = 2,
    PLAN_SAMPLER_STOP_LIMIT = 16,
    PLAN_SAMPLER_SCALE = 18,     /* bits of the float log2(e) / temperature; 0 greedy */
    PLAN_SAMPLER_TOP_K = 19,     /* 0 off, at most 1024 */
    PLAN_SAMPLER_TOP_P = 20,     /* (1 - p) in units of 2^-32; 0 off */
    PLAN_SAMPLER_MIN_P = 21,     /* in units of 2^-32; 0 off */
    PLAN_SAMPLER_PENALTY = 22,   /* bits of a float; 0 off */
    PLAN_SAMPLER_SEED = 23,
    PLAN_SAMPLER_BASE = 24,      /* tokens sampled when the seed was set; for plans without a position */
    PLAN_SAMPLER_WORDS = 25
};
static_assert(PLAN_SAMPLER_SCALE == PLAN_SAMPLER_STOP_IDS + PLAN_SAMPLER_STOP_LIMIT, "sampler words");
enum plan_symbol_class { PLAN_SYMBOL_FIXED = 0, PLAN_SYMBOL_RANGED = 1, PLAN_SYMBOL_GROWING = 2, PLAN_SYMBOL_DATA = 3,
                         PLAN_SYMBOL_UNKNOWN = 4, PLAN_SYMBOL_DERIVED = 5 };
enum plan_signature_kind { PLAN_SIGNATURE_LOAD = 0, PLAN_SIGNATURE_DECODE = 1, PLAN_SIGNATURE_PREFILL = 2,
                           PLAN_SIGNATURE_MAIN = 3 };
enum plan_binding_kind { PLAN_BINDING_INPUT = 0, PLAN_BINDING_OUTPUT = 1 };
enum plan_arg_kind { PLAN_ARG_POINTER = 0, PLAN_ARG_I64 = 1, PLAN_ARG_F32 = 2,
                     PLAN_ARG_ITERATION = 3, /* an i64: which iteration of a launch loop this launch is; no length */
                     PLAN_ARG_CONDITION = 4, /* the handle of a block's conditional node; exists while a graph is built */
                     PLAN_ARG_TIMERS = 5 /* a pointer, the last argument: where each block of the launch stamps its times */ };
enum { PLAN_STAMP_BYTES = 32 /* of a block: plan_stamp of plan.h */ };
/* When the launches of a block run. */
enum plan_block_kind { PLAN_BLOCK_IF = 0 /* once when its word is not 0 */, PLAN_BLOCK_ELSE = 1 /* once when it is 0 */,
                       PLAN_BLOCK_WHILE = 2 /* again and again while it is not 0 */ };
enum plan_access_mode { PLAN_ACCESS_READ = 1, PLAN_ACCESS_WRITE = 2, PLAN_ACCESS_BOTH = 3 };
enum plan_expr_op { PLAN_EXPR_CONST = 0, PLAN_EXPR_SYMBOL = 1, PLAN_EXPR_ADD = 2, PLAN_EXPR_MUL = 3,
                    PLAN_EXPR_FLOORDIV = 4, PLAN_EXPR_CEILDIV = 5, PLAN_EXPR_MOD = 6, PLAN_EXPR_MIN = 7, PLAN_EXPR_MAX = 8 };
enum plan_realised { PLAN_REALISED_LAUNCH = 0, PLAN_REALISED_VIEW = 1, PLAN_REALISED_FOLDED = 2, PLAN_REALISED_FUSED = 3,
                     PLAN_REALISED_LOAD = 4, PLAN_REALISED_UNUSED = 5 };

enum plan_graph_kind { PLAN_GRAPH_MADE = 0, PLAN_GRAPH_INPUT = 1, PLAN_GRAPH_STATE = 2, PLAN_GRAPH_CONSTANT = 3 };
enum plan_graph_known { PLAN_GRAPH_NO_RANK = 0, PLAN_GRAPH_DIMS = 1, PLAN_GRAPH_CONTENTS = 2 };
enum plan_state_update { PLAN_STATE_APPENDED = 0, PLAN_STATE_IN_PLACE = 1, PLAN_STATE_COPIED = 2 };
/* Why a segment ends: a closed list. */
enum plan_seam_reason {
    PLAN_SEAM_CONTROL_FLOW = 0,        /* an If, Loop or Scan whose body is not provably plain */
    PLAN_SEAM_DATA_EXTENT = 1,         /* an extent depends on data and has no bound */
    PLAN_SEAM_UNSUPPORTED_CAPTURE = 2, /* the launch cannot be captured */
    PLAN_SEAM_HOST_READ = 3,           /* the host must read a value before it can go on */
    PLAN_SEAM_NO_CONDITIONAL_NODES = 4, /* the target has no conditional graph nodes */
    PLAN_SEAM_LIBRARY_CALL = 5,        /* a library call that allocates or synchronises */
    PLAN_SEAM_REQUESTED = 6            /* asked for in the recipe */
};
/* Limits that a reader enforces. */
enum { PLAN_RANK_LIMIT = 8, PLAN_EXPR_LIMIT = 256 /* operations of one expression */,
       PLAN_EXPR_DEPTH = 64 /* operands on its stack */, PLAN_BLOCK_LIMIT = 1024 /* threads of a block */,
       PLAN_NESTING_LIMIT = 16 /* conditional blocks inside each other */ };

/* model: one record */
#define PLAN_RECORD_MODEL(F) \
    F(uint32_t, STR, name)           /* file name of the model, without its folder */ \
    F(uint32_t, STR, compiler)       /* "gcc-plan 0.1.0" */ \
    F(uint32_t, STR, options)        /* options that decide the bytes, in canonical order */ \
    F(uint32_t, STR, architecture)   /* "decoder" or "network", then counts, for people */ \
    F(uint64_t, HEX, model_hash)     /* plan_checksum of the model file */ \
    F(int64_t, INT, capacity)        /* rows of growing state; 0 = nothing grows */ \
    F(uint32_t, INT, slot_count)     /* words of the extents table */ \
    F(uint32_t, INT, sampling)       /* 0 none, 1 greedy, 2 draw */ \
    F(uint32_t, INDEX, token_binding) /* binding of the decode token input that the tail writes; NONE without */ \
    F(uint32_t, INDEX, logits_binding) /* output that holds decode's logits; NONE when there is none */ \
    F(uint32_t, INT, rewindable)     /* 1 = all state grows, so the position may be set back */ \
    F(uint32_t, INT, sampler)        /* first word of the extents table that is the tail's; 0 without one */ \
    F(uint32_t, INT, rows)           /* rows with lengths of their own; 0: all have one. The last 2 * rows words of the extents table */ \
    F(uint32_t, INT, reserved)
/* symbols: what inference knows of each */
#define PLAN_RECORD_SYMBOL(F) \
    F(uint32_t, STR, name) \
    F(uint32_t, ENUM, symbol_class) /* enum plan_symbol_class */ \
    F(uint32_t, INDEX, slot)        /* word of the extents table, or NONE */ \
    F(uint32_t, INDEX, proof)       /* head of the chain in `proofs` that decided the class, or NONE */ \
    F(uint32_t, FIRST, expr)        /* derived symbols: the expression that it equals */ \
    F(uint32_t, COUNT, expr_count)
#define PLAN_RECORD_SIGNATURE(F) \
    F(uint32_t, STR, name) \
    F(uint32_t, ENUM, kind)     /* enum plan_signature_kind */ \
    F(uint32_t, FIRST, box) F(uint32_t, COUNT, box_count) \
    F(uint32_t, FIRST, binding) F(uint32_t, COUNT, binding_count) \
    F(uint32_t, FIRST, launch) F(uint32_t, COUNT, launch_count) \
    F(uint32_t, FIRST, segment) F(uint32_t, COUNT, segment_count) \
    F(uint32_t, FIRST, seam) F(uint32_t, COUNT, seam_count) \
    F(uint32_t, FIRST, block) F(uint32_t, COUNT, block_count) \
    F(uint32_t, FIRST, edge) F(uint32_t, COUNT, edge_count) \
    F(uint32_t, FIRST, step) F(uint32_t, COUNT, step_count) \
    F(uint32_t, FIRST, node) F(uint32_t, COUNT, node_count) \
    F(uint32_t, FIRST, value) F(uint32_t, COUNT, value_count) \
    F(uint64_t, INT, arena_bytes)       /* peak of this signature in the arena */ \
    F(uint64_t, INT, arena_lower_bound) /* largest sum of buffers alive at one launch, each rounded up to PLAN_ALIGN */ \
    F(uint64_t, INT, metadata_offset)   /* its block: begins with the 8-byte fingerprint */ \
    F(uint64_t, INT, metadata_bytes) \
    F(uint64_t, HEX, fingerprint)       /* of box and launch shapes; equals the block's first 8 bytes */
/* boxes: the range of one symbol in a signature; lo == hi is pinned */
#define PLAN_RECORD_BOX(F) \
    F(uint32_t, INDEX, symbol) F(uint32_t, INT, reserved) \
    F(int64_t, INT, lo) F(int64_t, INT, hi)
#define PLAN_RECORD_REGION(F) \
    F(uint32_t, ENUM, kind) F(uint32_t, INT, reserved) \
    F(uint64_t, INT, bytes)      /* size to allocate */ \
    F(uint64_t, INT, initialised) /* weights, load: leading bytes that come from the file; the rest is written by the load signature */
/* bindings: inputs and outputs of a signature that are no state */
#define PLAN_RECORD_BINDING(F) \
    F(uint32_t, STR, name) \
    F(uint32_t, ENUM, kind)  /* enum plan_binding_kind */ \
    F(uint32_t, ENUM, dtype) \
    F(uint32_t, ENUM, feed)  /* PLAN_FEED_* of plan.h */ \
    F(uint32_t, FIRST, dim) F(uint32_t, COUNT, dim_count) \
    F(uint32_t, ENUM, region) F(uint32_t, INT, reserved) \
    F(uint64_t, INT, offset) F(uint64_t, INT, bytes) /* bytes 0: no kernel reads it; writes are accepted and dropped */
/* dims: extent as an expression over the symbols, its upper bound in the signature, the stride in elements */
#define PLAN_RECORD_DIM(F) \
    F(uint32_t, FIRST, expr) F(uint32_t, COUNT, expr_count) \
    F(int64_t, INT, upper) F(int64_t, INT, stride)
/* exprs: postfix; symbols by index in `symbols` */
#define PLAN_RECORD_EXPR(F) \
    F(uint32_t, ENUM, op) F(uint32_t, INT, reserved) \
    F(int64_t, INT, value)
/* states: one for each state pair; past and present are the same buffer unless copied */
#define PLAN_RECORD_STATE(F) \
    F(uint32_t, STR, input) F(uint32_t, STR, output) \
    F(uint32_t, ENUM, dtype) \
    F(uint32_t, INDEX, growing_axis) /* axis that the position counts, or NONE */ \
    F(uint32_t, ENUM, update)        /* how: 0 appended in place, 1 written in place, 2 copied at the end of the step */ \
    F(uint32_t, FIRST, dim) F(uint32_t, COUNT, dim_count) \
    F(uint32_t, INDEX, proof) \
    F(uint64_t, INT, offset) F(uint64_t, INT, bytes) /* in region state */
/* steps: the step map; after a step the slot holds expr of the values before it */
#define PLAN_RECORD_STEP(F) \
    F(uint32_t, INT, slot) F(uint32_t, INT, reserved) \
    F(uint32_t, FIRST, expr) F(uint32_t, COUNT, expr_count)
#define PLAN_RECORD_KERNEL(F) \
    F(uint32_t, STR, name)      /* entry point: the same in every target's module */ \
    F(uint32_t, STR, source)    /* template that it was made from */ \
    F(uint32_t, INT, module)    /* which of a target's modules */ \
    F(uint32_t, INT, arg_count) \
    F(uint32_t, INT, block)     /* threads of a block */ \
    F(uint32_t, INT, fibres)    /* 1 = has barriers or warp exchanges: the host target needs a fibre a thread */
#define PLAN_RECORD_MODULE(F) \
    F(uint32_t, STR, target)    /* "host-x86_64", "sm_90a", "ptx" */ \
    F(uint32_t, INT, module)    /* number that kernels name */ \
    F(uint64_t, INT, offset) F(uint64_t, INT, bytes) /* in section `code` */
#define PLAN_RECORD_LAUNCH(F) \
    F(uint32_t, INDEX, kernel) \
    F(uint32_t, INT, grid_x) F(uint32_t, INT, grid_y) F(uint32_t, INT, grid_z) \
    F(uint32_t, INT, shared)    /* dynamic shared memory, bytes */ \
    F(uint32_t, STR, label)     /* "layers.0/attention", for profiles and messages */ \
    F(uint32_t, FIRST, arg) F(uint32_t, COUNT, arg_count) \
    F(uint32_t, FIRST, access) F(uint32_t, COUNT, access_count) \
    F(uint64_t, INT, bytes_fixed) /* bytes moved whatever the position (weights, activations) */ \
    F(uint64_t, INT, bytes_row)   /* further bytes for each row of growing state that is read */
#define PLAN_RECORD_ARG(F) \
    F(uint32_t, ENUM, kind) F(uint32_t, ENUM, region) \
    F(uint64_t, HEX, value)     /* offset in the region, or the literal's bits */
#define PLAN_RECORD_ACCESS(F) \
    F(uint32_t, ENUM, mode) F(uint32_t, ENUM, region) \
    F(uint64_t, INT, offset) F(uint64_t, INT, bytes)
/* edges: launch numbers relative to the signature's first launch; from < to */
#define PLAN_RECORD_EDGE(F) \
    F(uint32_t, INT, from) F(uint32_t, INT, to)
/* segments: launch numbers relative to the signature's first launch */
#define PLAN_RECORD_SEGMENT(F) \
    F(uint32_t, INT, launch) F(uint32_t, INT, launch_count)
#define PLAN_RECORD_SEAM(F) \
    F(uint32_t, STR, node) F(uint32_t, ENUM, reason) \
    F(uint32_t, STR, detail) F(uint32_t, STR, remedy)
/* blocks: launches that run on a condition; relative to the signature's first launch. The condition is a byte of the arena */
#define PLAN_RECORD_BLOCK(F) \
    F(uint32_t, ENUM, kind)      /* enum plan_block_kind */ \
    F(uint32_t, STR, node) \
    F(uint32_t, INT, launch) F(uint32_t, INT, launch_count) \
    F(uint32_t, INDEX, seam)     /* the host decides, for the reason of this seam; NONE: a conditional node of the graph does */ \
    F(uint32_t, INT, reserved) \
    F(uint64_t, INT, offset)     /* of the condition, in the arena */
/* proofs: one derived fact; `because` leads to the fact that it rests on, NONE at the root */
#define PLAN_RECORD_PROOF(F) \
    F(uint32_t, STR, fact)      /* "past_sequence_length + sequence_length" and the like */ \
    F(uint32_t, STR, rule)      /* "Concat adds", "state pair" ... */ \
    F(uint32_t, STR, node)      /* node whose rule it is; "" when none */ \
    F(uint32_t, INDEX, because)
#define PLAN_RECORD_NODE(F) \
    F(uint32_t, STR, name) F(uint32_t, STR, op) /* "Softmax-13", "com.microsoft::MatMulNBits-1" */ \
    F(uint32_t, ENUM, realised)  /* enum plan_realised */ \
    F(uint32_t, INDEX, launch)   /* relative to the signature's first launch: where its result is made; NONE if nowhere */ \
    F(uint32_t, STR, detail)     /* "view of 'x', strides 24 8 1" ... */ \
    F(uint32_t, INT, reserved)
#define PLAN_RECORD_VALUE(F) \
    F(uint32_t, STR, name) F(uint32_t, ENUM, dtype) \
    F(uint32_t, STR, dims)       /* "[1, 2, past + 1, 64]" */ \
    F(uint32_t, ENUM, symbol_class) /* GROWING when the dims or contents mention a growing symbol */ \
    F(uint32_t, INDEX, buffer)   /* in `buffers`, or NONE (folded or never made) */ \
    F(uint32_t, INDEX, proof) \
    F(uint64_t, INT, offset)     /* bytes from the buffer's start */
/* buffers: every allocation inside a region; first and last are launch numbers of its lifetime, signature-relative */
#define PLAN_RECORD_BUFFER(F) \
    F(uint32_t, STR, name) F(uint32_t, ENUM, region) \
    F(uint32_t, INDEX, signature) /* NONE: shared by all */ \
    F(uint32_t, INT, first) F(uint32_t, INT, last) F(uint32_t, INT, reserved) \
    F(uint64_t, INT, offset) F(uint64_t, INT, bytes)
/* The graph itself, once for a plan: what is claimed of each value, for `plan-inspect --check-proofs`.
 * graph_nodes: in topological order, after control flow was expanded */
#define PLAN_RECORD_GRAPH_NODE(F) \
    F(uint32_t, STR, name) F(uint32_t, STR, op) /* as in nodes */ \
    F(uint32_t, STR, attributes) /* "axis=1 perm=0,2,1,3": all that have a value, defaults too */ \
    F(uint32_t, FIRST, input) F(uint32_t, COUNT, input_count) \
    F(uint32_t, FIRST, output) F(uint32_t, COUNT, output_count) \
    F(uint32_t, INT, reserved)
/* graph_values: dims and integer contents over the symbols that are not derived; dims of inputs as declared */
#define PLAN_RECORD_GRAPH_VALUE(F) \
    F(uint32_t, STR, name) F(uint32_t, ENUM, dtype) \
    F(uint32_t, ENUM, kind)      /* enum plan_graph_kind */ \
    F(uint32_t, ENUM, known)     /* enum plan_graph_known: what is said of it */ \
    F(uint32_t, FIRST, dim) F(uint32_t, COUNT, dim_count) \
    F(uint32_t, FIRST, content) F(uint32_t, COUNT, content_count)
/* graph_links: the inputs and outputs of nodes */
#define PLAN_RECORD_GRAPH_LINK(F) \
    F(uint32_t, INDEX, value)    /* in graph_values; NONE: absent */
/* graph_terms: a dim, or an element of integer contents */
#define PLAN_RECORD_GRAPH_TERM(F) \
    F(uint32_t, FIRST, expr) F(uint32_t, COUNT, expr_count)
/* weight_refs: with --weights=reference, where the bytes of region weights come from */
#define PLAN_RECORD_WEIGHT_REF(F) \
    F(uint32_t, STR, file)       /* inside the model's folder; "": the bytes are in section `weights` at file_offset */ \
    F(uint32_t, ENUM, region)    /* weights or load */ \
    F(uint64_t, INT, file_offset) F(uint64_t, INT, region_offset) F(uint64_t, INT, bytes) \
    F(uint64_t, HEX, checksum)
/* Section `weights` holds the initialised bytes of region weights, then (aligned to PLAN_ALIGN) those of region load.
 * With --weights=reference, weight_refs say where the bytes come from; the section holds those with file "". */

#define PLAN_FIELD(type, kind, name) type name;
#define PLAN_STRUCT(upper, lower, size) \
    typedef struct plan_##lower##_record { PLAN_RECORD_##upper(PLAN_FIELD) } plan_##lower##_record; \
    static_assert(sizeof(plan_##lower##_record) == size, #lower);
PLAN_STRUCT(MODEL, model, 64)
PLAN_STRUCT(SYMBOL, symbol, 24)
PLAN_STRUCT(SIGNATURE, signature, 128)
PLAN_STRUCT(BOX, box, 24)
PLAN_STRUCT(REGION, region, 24)
PLAN_STRUCT(BINDING, binding, 48)
PLAN_STRUCT(DIM, dim, 24)
PLAN_STRUCT(EXPR, expr, 16)
PLAN_STRUCT(STATE, state, 48)
PLAN_STRUCT(STEP, step, 16)
PLAN_STRUCT(KERNEL, kernel, 24)
PLAN_STRUCT(MODULE, module, 24)
PLAN_STRUCT(LAUNCH, launch, 56)
PLAN_STRUCT(ARG, arg, 16)
PLAN_STRUCT(ACCESS, access, 24)
PLAN_STRUCT(EDGE, edge, 8)
PLAN_STRUCT(SEGMENT, segment, 8)
PLAN_STRUCT(SEAM, seam, 16)
PLAN_STRUCT(PROOF, proof, 16)
PLAN_STRUCT(NODE, node, 24)
PLAN_STRUCT(VALUE, value, 32)
PLAN_STRUCT(WEIGHT_REF, weight_ref, 40)
PLAN_STRUCT(BUFFER, buffer, 40)
PLAN_STRUCT(GRAPH_NODE, graph_node, 32)
PLAN_STRUCT(GRAPH_VALUE, graph_value, 32)
PLAN_STRUCT(GRAPH_LINK, graph_link, 4)
PLAN_STRUCT(GRAPH_TERM, graph_term, 8)
PLAN_STRUCT(BLOCK, block, 32)

/* 64-bit checksum of BYTES: see FORMAT.md. Any single flipped byte changes it. */
uint64_t plan_checksum(const void *bytes, uint64_t size);

#endif
