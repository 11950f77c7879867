/* lower.h - inside of lowering, for lower.c, view.c, kernel.c, pointwise.c and the passes from fuse to emit. */
#ifndef GCC_PLAN_LOWER_H
#define GCC_PLAN_LOWER_H

#include "compiler.h"

enum { POSITION_SLOT = 0, TOKENS_SLOT = 1, SAMPLED_SLOT = 2, FIRST_FREE_SLOT = 3 };

typedef enum Realised { REAL_LAUNCH, REAL_VIEW, REAL_FOLDED, REAL_FUSED, REAL_LOAD, REAL_UNUSED } Realised;
typedef struct NodeFate { Realised how; int launch; const char *detail; } NodeFate;

typedef struct Edge { uint32_t from, to; } Edge;
typedef struct Segment { int first, count; } Segment; /* launches of one graph */
/* A run of launches that a condition decides on, in the order of their begin, outer first; see FORMAT.md. */
typedef enum BlockKind { BLOCK_IF, BLOCK_ELSE, BLOCK_WHILE } BlockKind;
typedef struct Block {
    BlockKind kind;
    uint32_t word;           /* buffer of the arena whose first byte is the condition */
    int first, count;        /* launches */
    int seam;                /* in seams; -1: a conditional node */
    uint32_t node;
} Block;
typedef struct Seam { uint32_t node; int reason; const char *detail, *remedy; } Seam; /* reason: enum plan_seam_reason */

/* A value whose elements lie in the order of its axes, but not by one stride for each: axis k of VIEW is part of the value's axis OF[k]. */
typedef struct Apart { View view; int of[MAX_RANK]; } Apart;

struct Lower {
    Compilation *c;
    Signature *signature;
    uint32_t index;          /* of the signature, 1-based, as in Buffer.signature */
    uint32_t *io;            /* by value: the buffer of a graph input or output; 0 none */
    View *views;             /* by value; buffer 0: not made yet */
    Apart **apart;           /* by value, while it has no view: where its elements lie meanwhile (lower_set_apart); NULL: nowhere */
    NodeFate *fates;         /* by node */
    int *made_by;            /* by node: 1 + the launch of another node that made its results; 0 none; -1 put off: a kernel behind makes them too */
    uint32_t node;           /* being lowered */
    bool guarded;            /* launches run only while guard_iteration < guard_trip: iterations of a loop over a ranged dim */
    Dim guard_trip;
    int64_t guard_iteration;
    const char *trial_key;   /* of a signature that tries a value for plan-run --tune; NULL in others */
    int64_t trial_value;
    int launch_count, launch_room;
    Launch *launches;
    int64_t stamps;          /* records of --timers that the launches so far have */
    uint32_t dim_room; Dim *dims; /* memo of lower_dim */
    int edge_count; Edge *edges;
    int segment_count; Segment *segments;
    int block_count, block_room; Block *blocks;
    int seam_count, seam_room; Seam *seams;
    int64_t arena_bytes, arena_lower_bound;
    int64_t metadata_offset, metadata_bytes;
    uint64_t fingerprint;
};

uint32_t buffer_new(Compilation *c, const char *name, Region region, int64_t bytes, uint32_t signature);
View view_dense_new(Lower *l, uint32_t buffer, DType store, int rank, const Dim *dims);
Launch *launch_new(Lower *l);
bool value_folded(const Value *v);          /* contents known: needs no launch unless a kernel wants memory */
DType storage_type(DType t);                /* of buffers that kernels write: an element below 8 bits takes a byte */
/* view.c: where the elements of V lie as axes of such a shape, each made of one axis of V or several; false: they do not, or not in runs. */
bool view_apart(Lower *l, const View *v, int rank, const Dim *dims, Apart *out);
uint32_t state_buffer(Compilation *c, int pair);
uint32_t extents_buffer(Compilation *c);
int slot_count(Compilation *c);
bool samples(const Compilation *c);         /* a sampling tail is asked for */
int sampler_slot(Compilation *c);           /* first word of the tail's parameters in the extents table; 0 none */
/* Words of the extents table, of all rows: the lengths, or the tokens fed in the step (kernel_rows). */
View row_words(Lower *l, bool tokens);
View state_view(Lower *l, int pair, bool whole);
enum { MAX_TICKETS = 1024 };
View tickets_view(Lower *l, int rank, const Dim *dims); /* so many of the words by which blocks of a launch meet, at most MAX_TICKETS */
uint32_t io_buffer(Lower *l, uint32_t value);
uint32_t logits_output(Compilation *c);     /* passes/lower_sample.c: the value that a sampling tail reads; 0 none */
int row_axis(Compilation *c, const Value *v); /* passes/rows.c: the axis of a fed input that counts the rows; -1 none */
const char *index_sum(Compilation *c, const View *v, int rank, const char *offset); /* offset + i0*stride + ... for out rank */
void lower_materialise(Lower *l, uint32_t value); /* pointwise.c: contents, feed, fused producer or elements apart -> launch */
void lower_node(Lower *l, uint32_t node);             /* passes/lower.c */
void lower_range(Lower *l, uint32_t first, uint32_t end); /* nodes first to end - 1, and what they enter */
uint32_t lower_control(Lower *l, uint32_t enter);     /* all from a LoopEnter or IfEnter to its exit, whose index it gives */
uint32_t control_exit(Compilation *c, uint32_t enter);
/* passes/lower_loop.c, lower_while.c, lower_if.c: the same, by kind of Loop. */
void lower_loop(Lower *l, uint32_t enter, uint32_t leave);
void lower_while(Lower *l, uint32_t enter, uint32_t leave);
void lower_if(Lower *l, uint32_t enter, uint32_t leave);
/* passes/lower_block.c. */
void conditions_choose(Compilation *c);               /* nodes or seams; notes why */
View block_word(Lower *l, const char *name);          /* a byte for a condition */
/* The launches until block_end run on the condition in WORD. NODE: whose they are. How deep blocks may be nested is a limit. */
int block_begin(Lower *l, BlockKind kind, View word, uint32_t node);
void block_end(Lower *l, int block);                  /* WHILE: after the launches that set WORD anew */
/* The word of the symbol of class data that a dim is made of; false: it has none, since it can only be one value. */
bool extent_view(Lower *l, Dim counted, int rank, View *word);
/* A launch that writes that word; COUNTS: the buffer whose rows it counts, of which not all are written, or NULL. */
void set_extent(Lower *l, Dim counted, Dim value, const View *counts);
View view_slice(Lower *l, const View *whole, int axis, Dim index); /* one index along an axis: the view without that axis */
void carry_states(Lower *l, const Node *leave, int states, const View *places); /* inputs of LEAVE become what lies in PLACES */
bool made_between(Compilation *c, uint32_t value, uint32_t first, uint32_t end); /* by nodes first to end - 1, in each run */
/* What a block materialises holds inside it only: the views of before are kept, and restored (and freed) behind it. */
View *views_keep(Lower *l);
void views_restore(Lower *l, View *kept);
void lower_sample(Lower *l, const Lower *decode);     /* passes/lower_sample.c; DECODE: whose token input takes the token */

/* Initial bytes of table buffers in region metadata; weights have Buffer.data. */
typedef struct Table { uint32_t buffer; const void *bytes; } Table;


/* Constants that a kernel reads apart from what it makes of them, before it waits for the kernels before it: `read`, statements, sets CONSTANT(i),
 * a word that the kernel has, for each i < count. */
enum { MAX_CONSTANTS = 4 };
typedef struct Constants { Text read; int count; } Constants;
/* Adds the element of operand NAME, which lies as VIEW, with index AT to those and gives the expression of it; NULL: it is none of them. */
const char *kernel_constant(Lower *l, Constants *constants, const char *name, const View *view, const char *at);
/* A value that a kernel has in the variable `name`. */
typedef struct Given { uint32_t value; const char *name; } Given;
/* pointwise.c: what elementwise node NODE, and those fused into it, make of element (m, n) of its output's last two axes:
 * statements in *body, and the expression of the result, rounded. Operands are named PREFIX0, PREFIX1 ...; the kernel defines
 * COUNTER as idx. CONSTANTS: NULL, or takes those that the statements would read. */
const char *kernel_elementwise(Kernel *k, uint32_t node, const char *prefix, const Given *given, int count, Constants *constants, const char **body);
/* Declares the variable NAME: the expression RESULT rounded as VALUE is. */
const char *kernel_given(Lower *l, uint32_t value, const char *name, const char *result);
/* What stands between a causal convolution and the recurrence that alone reads it. */
enum { MAX_FILTER = 64, MAX_SCALES = 4 };
typedef struct FilterNorm {  /* of the heads of the query or key */
    uint32_t node;           /* the fold, whose kernel would make the others of the norm too, or LpNormalization; 0: there is no norm */
    bool squares, root;      /* it is a sum of squares; the root of the sum */
    uint32_t source, result; /* values */
    int scales;
    uint32_t scale[MAX_SCALES]; /* nodes behind it that multiply or divide by one number, in their order */
} FilterNorm;
typedef struct Filter {
    uint32_t conv;           /* node */
    int64_t first[3];        /* channels where query, key and value begin */
    FilterNorm norms[2];
    int count;
    uint32_t members[MAX_FILTER]; /* all these nodes, but the recurrence itself */
} Filter;
/* For rows with OP_BESIDE, in whose kernel `row` counts axes 0..AXIS-1 of input 0 and `col` the others: sets HAS_BESIDE, and for 1 ROW_INDEX
 * and ROW_ONCE (statements of a row, COLS 0 or more, behind RESULT where that is one a row), COLUMN_INDEX and ROW_EACH (of a column).
 * They compute and store what fuse_rows.c gave the kernel besides. */
void kernel_beside(Kernel *k, const Node *n, int axis, const char *result);
bool kernel_beside_stored(Lower *l, const Node *n); /* whether the kernel must store output 0 itself too */
/* For rows with OP_BESIDE that fold the last axis: sets TAKES, and for 1 (true) TAKE_BODY and TAKE: statements and the expression of
 * element `col` of `row` of input 0, which nobody makes memory for. Behind kernel_beside; the kernel begins with ROW_INDEX, and an
 * element with COLUMN_INDEX. */
bool kernel_takes(Kernel *k, const Node *n);
/* The same for a kernel that holds a row of what is normed itself, element `col` in the variable `element`, and has what the norm's node
 * folds in `total`: TAKE_BODY and TAKE are what is folded, RESULT is an expression behind ROW_EACH. Nothing is stored. */
typedef struct HeldRow { const char *row_index, *column_index, *once, *each, *take_body, *take, *result; } HeldRow;
HeldRow kernel_held(Kernel *k, const FilterNorm *norm, const char *prefix);
/* What elementwise node NODE, and those fused into it, make of a row, in a kernel that has vectors of eight elements of it: element n, the
 * j-th of its vector, is RESULT behind BODY. Operands that lie in such vectors too are RUNS runs of 16 bytes: READ, where n is the vector's first
 * element, brings them to HELD_RUN(0) ..., TAKE makes of them COUNT vectors of floats, held[i], by HELD_type(run, i, j of its first). GIVEN:
 * NULL, or a value that the kernel has for each element. */
typedef struct RowElements { int runs, count; const char *read, *take, *body, *result; } RowElements;
RowElements kernel_row(Kernel *k, uint32_t node, const Given *given, const char *prefix);
/* ops/gemv.c: true when the kernel of the products that read norm N's result will begin with it, so that it needs no launch of
 * its own; true when product N was launched, with all of its row that fit. */
bool gemv_defer_norm(Lower *l, const Node *n);
bool gemv_lower(Lower *l, const Node *n);
/* ops/gemv_row.c: true when the kernel of the products that alone read what N makes of a row will begin with it: an elementwise node with those fused
 * into it, or a norm of each head with the elementwise nodes behind it. */
bool gemv_defer_row(Lower *l, const Node *n);
/* ops/gqa_one_row.c: true when the attention that alone reads the result of N, a norm or a rotation of its heads, will do it; until then that has
 * the view of N's own input. */
bool gqa_defer(Lower *l, const Node *n);
/* ops/moe_few.c: true when the second product of the experts whose epilogue alone reads the result of product N will make N too. */
bool moe_defer(Lower *l, const Node *n);
/* passes/fuse_filter.c */
bool filter_find(Compilation *c, uint32_t recurrence, Filter *f); /* false: there is none */
/* ops/linear_step.c: true when the kernel of the recurrence that N's filter stands before will make N too. */
bool linear_defer(Lower *l, const Node *n);
/* tuning.c */
bool tuning_read(Compilation *c, const char *path);
const char *tuning_option(Compilation *c);  /* " tuning=..." for the plan's options; "" without a file */
int tuning_trials(Compilation *c);          /* values of all choices that decode asked for */
void tuning_trial(Compilation *c, int trial, const char **key, int64_t *value);
void tuning_unused(Compilation *c);         /* notes the answers that nobody asked for */

Lower *kernel_lower(Kernel *k);
const char *compute_c(DType t);   /* C type that kernels compute in */
const char *dtype_token(DType t); /* "F16": the suffix of prelude.h's macros */

#endif
