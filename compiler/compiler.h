/* compiler.h - the compiler's one shared header: arena, diagnostics, dims, graph, operator rows, passes, lowering.
 *
 * Plain data, 32-bit indices, 0 is absent. One arena a compilation; nothing is freed before its end. */
#ifndef GCC_PLAN_COMPILER_H
#define GCC_PLAN_COMPILER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_RANK 8
#define MAX_LOOP_SCANS 16
#define MAX_LIST 1024 /* values in a sequence */
#define MAX_ROWS 1024 /* of --rows */
#define MAX_CONTENTS 1024 /* integer contents are followed up to this many elements */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct Compilation Compilation;
typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
typedef struct OpRow OpRow;
struct Expansion;

/* ---- arena.c: memory that lives as long as the compilation; zeroed; aborts the process never: exits through
 * fault() when the machine has no memory left. */
typedef struct Arena { struct ArenaBlock *head; size_t used; } Arena;
void *arena_alloc(Arena *a, size_t bytes);
char *arena_text(Arena *a, const char *format, ...);
char *arena_copy(Arena *a, const char *text);
void arena_free(Arena *a);
#define NEW(c, type) ((type *)arena_alloc(&(c)->arena, sizeof(type)))
#define NEW_ARRAY(c, type, count) ((type *)arena_alloc(&(c)->arena, sizeof(type) * (size_t)(count)))

/* A growing text. */
typedef struct Text { char *data; size_t size, room; } Text;
void text_add(Text *t, const char *format, ...);
void text_add_bytes(Text *t, const char *bytes, size_t size);
void text_free(Text *t);

/* ---- diagnostics.c: faults of the input are collected, and reported together, in order of their place. */
void diag_error(Compilation *c, const char *place, const char *format, ...); /* place: "node 'x' (Softmax-13)" or NULL */
void diag_remedy(Compilation *c, const char *format, ...); /* second line of the last error */
void diag_note(Compilation *c, const char *format, ...);
void node_error(Compilation *c, const Node *n, const char *format, ...);
bool diag_failed(const Compilation *c); /* an error was recorded */
_Noreturn void fault(const char *pass, const char *format, ...); /* our own mistake: says so and aborts */

/* ---- dtypes.c: element types have ONNX's numbers. */
typedef enum DType {
    DT_NONE = 0, DT_F32 = 1, DT_U8 = 2, DT_I8 = 3, DT_U16 = 4, DT_I16 = 5, DT_I32 = 6, DT_I64 = 7, DT_STRING = 8,
    DT_BOOL = 9, DT_F16 = 10, DT_F64 = 11, DT_U32 = 12, DT_U64 = 13, DT_C64 = 14, DT_C128 = 15, DT_BF16 = 16,
    DT_F8E4M3FN = 17, DT_F8E4M3FNUZ = 18, DT_F8E5M2 = 19, DT_F8E5M2FNUZ = 20, DT_U4 = 21, DT_I4 = 22, DT_F4E2M1 = 23,
    DT_F8E8M0 = 24, DT_U2 = 25, DT_I2 = 26, DT_UNKNOWN = 28 /* a number that no type has */,
    DT_I2_BYTE = 29, DT_I4_BYTE = 30, DT_F4_BYTE = 31 /* storage alone: the low bits of a byte; no value has these */
} DType;
const char *dtype_name(DType t);      /* "f32" ... */
DType dtype_from_name(const char *s); /* DT_NONE when there is none */
int dtype_bits(DType t);
bool dtype_is_computed(DType t); /* kernels can hold it: no string, no complex number */
bool dtype_is_float(DType t);
bool dtype_is_integer(DType t); /* not bool */
int64_t dtype_bytes(DType t, int64_t elements); /* packed types round up */

/* ---- dim.c: dims. A dim is a canonical, hash-consed polynomial with integer coefficients over atoms; an atom is a
 * symbol or one of floordiv, ceildiv, mod, min, max of dims. Equal dims have equal indices. Dim 0 is "absent". */
typedef uint32_t Dim;
typedef uint32_t Sym; /* index of a symbol, 0 absent */
typedef enum DimOp { DIM_SYMBOL, DIM_FLOORDIV, DIM_CEILDIV, DIM_MOD, DIM_MIN, DIM_MAX } DimOp;
Dim dim_const(Compilation *c, int64_t v);
Dim dim_symbol(Compilation *c, Sym s);
bool dim_is_const(Compilation *c, Dim d, int64_t *v); /* false for absent; v may be NULL */
bool dim_is(Compilation *c, Dim d, int64_t v);
Dim dim_add(Compilation *c, Dim a, Dim b);
Dim dim_sub(Compilation *c, Dim a, Dim b);
Dim dim_mul(Compilation *c, Dim a, Dim b);
Dim dim_scale(Compilation *c, Dim a, int64_t k);
Dim dim_op(Compilation *c, DimOp op, Dim a, Dim b); /* floordiv ... max; exact quotients of polynomials are found */
Dim dim_div_exact(Compilation *c, Dim a, Dim b);    /* 0 when b does not divide a as polynomials */
Dim dim_substitute(Compilation *c, Dim d, Sym s, Dim by);
bool dim_mentions(Compilation *c, Dim d, Sym s);
bool dim_equal(Compilation *c, Dim a, Dim b); /* after the equations known so far */
Dim dim_resolve(Compilation *c, Dim d);       /* rewritten by the equations known so far */
const char *dim_text(Compilation *c, Dim d);  /* "past + 1"; exact: dim_parse reads it back */
Dim dim_parse(Compilation *c, const char *text, const char **error); /* creates symbols as needed */
/* Bounds by interval arithmetic; symbol ranges in c->symbols. INT64_MIN / INT64_MAX when unbounded. */
void dim_bounds(Compilation *c, Dim d, int64_t *lo, int64_t *hi);

typedef enum SymClass { SYM_FIXED, SYM_RANGED, SYM_GROWING, SYM_DATA, SYM_UNKNOWN, SYM_DERIVED } SymClass;
typedef struct Symbol {
    const char *name;
    SymClass class;
    bool declared;     /* named or minted for a graph input's dim; false: minted by inference */
    int64_t lo, hi;    /* known range; lo >= 0; hi INT64_MAX when unbounded */
    Dim bound;         /* class data: at most this too; 0 none */
    Dim equals;        /* eliminated: what it equals; 0 = free */
    uint32_t proof;    /* how that, or its class, was decided */
    int slot;          /* word of the extents table, -1 none */
    int keep;          /* equations eliminate the symbol with the least: 0 minted by inference, 1 declared, 2 of the token
                        * input (without one, of what the caller feeds), 3 of a state input */
    uint32_t solved_by; /* eliminated: the node whose rule did it, and the rule */
    const char *solved_rule;
} Symbol;
Sym sym_new(Compilation *c, const char *name, bool declared); /* NULL: minted, named "?1" ... */
Sym sym_find(Compilation *c, const char *name);

/* One derived fact. `because` < own index. */
typedef struct Proof { const char *fact, *rule; uint32_t node; uint32_t because; } Proof;
uint32_t proof_add(Compilation *c, const char *rule, const Node *n, uint32_t because, const char *format, ...);

/* ---- equations.c: what the graph implies. Solved at once where linear, else kept and tried again. False (and an
 * error naming N) when the equation cannot hold. */
bool dim_equate(Compilation *c, const Node *n, const char *rule, Dim a, Dim b);

/* ---- graph.c, graph_text.c */
typedef struct Data {      /* constant bytes, little endian, row major; types below 8 bits packed, low bits first */
    const void *bytes;     /* mapped or in the arena; NULL with --weights=reference when the file is absent */
    uint64_t size;
    const char *file;      /* external file (relative to the model) or NULL when inside the model */
    uint64_t file_offset;  /* in that file, or in the model file when `mapped` */
    uint32_t weights;      /* set by lower: its buffer; 0 none */
} Data;

typedef enum Feed { FEED_CALLER, FEED_TOKEN, FEED_ONES, FEED_POSITION, FEED_LENGTH, FEED_WRITE_INDEX } Feed;

/* What a sequence or an optional stands for when compiling: the values in it, which may be lists themselves. */
typedef struct List {
    bool optional;          /* an optional, of 0 or 1 items */
    int count;              /* -1: a graph input that is not bound */
    uint32_t *items;
} List;

struct Value {
    const char *name;
    List *list;             /* no tensor: then the value has no shape, and infer leaves no use of it */
    DType dtype;            /* of a list: that of its tensors, where it is declared */
    int rank;               /* -1 unknown */
    Dim dims[MAX_RANK];     /* 0 = unknown */
    int contents_count;     /* -1 = contents unknown; else number of elements in `contents` */
    Dim *contents;          /* integer (or bool: 0, 1) elements in row-major order */
    const double *floats;   /* infer alone: elements of a small f32 or f64 tensor that is known when compiling; NULL */
    Data *data;             /* constant */
    uint32_t producer;      /* node, 0 = none */
    uint32_t output_index;  /* which output of it */
    bool is_input, is_output, is_constant; /* is_constant: data, or computed from constants alone */
    Feed feed;              /* graph inputs */
    uint32_t state;         /* state pair index + 1 when it is a pair's input or output */
    uint32_t proof;         /* chain behind its dims, for --why */
    Dim each;               /* what every element is, see uniform.c; 0: not known */
    uint32_t uses;          /* count of node inputs (and graph outputs) that name it */
};

typedef enum AttrKind { ATTR_NONE, ATTR_INT, ATTR_FLOAT, ATTR_STRING, ATTR_INTS, ATTR_FLOATS, ATTR_STRINGS, ATTR_TENSOR,
                        ATTR_GRAPH, ATTR_TYPE /* present or not; its contents are not kept */ } AttrKind;
typedef struct Attr {
    const char *name;
    AttrKind kind;
    bool present;      /* false: the schema's default stands here */
    int64_t i;
    double f;
    const char *s;
    int count;         /* of ints, floats, strings */
    int64_t *ints;
    double *floats;
    const char **strings;
    uint32_t tensor;   /* value that holds it */
    uint32_t graph;    /* index in c->subgraphs */
} Attr;

struct Node {
    const char *name;           /* for messages: never empty (made from its first output) */
    const char *domain;         /* "" is ai.onnx */
    const char *op_type;
    int opset;                  /* version of its domain that the model imports */
    const OpRow *op;            /* NULL until resolved */
    int input_count, output_count, attr_count;
    uint32_t *inputs, *outputs; /* values; 0 = absent */
    Attr *attrs;                /* in schema order once resolved */
    uint32_t fused_into;        /* set by fuse: its text becomes part of that node's kernel */
    uint32_t epilogue;          /* set by fuse, OP_EPILOGUE: the elementwise node behind it (fused_into this one) whose result
                                 * its kernel stores; OP_BESIDE: the last of those that its kernel computes of each row */
    uint32_t together;          /* set by fuse: a product of constants: the first product of the same row, whose kernel can make all of
                                 * them; a norm: the first of those that alone read its result, whose kernel can begin with it, or the attention
                                 * that does; a convolution, and what stands between it and the recurrence that alone reads it: the
                                 * recurrence */
    uint32_t gate;              /* set by fuse: the product before, of the same row, that only this one's epilogue reads; OP_LATE: of any row */
    uint32_t inplace;           /* set by alias: 1 + state pair that it writes in place, for each pair: bit mask by output */
    bool constant;              /* set by infer: all inputs are constant; runs in the load signature */
    bool dead;                  /* nothing needs it */
    uint32_t loop;              /* set by control: the loop or branches that it enters, leaves, or is part of (innermost); 0 none */
    const struct ScopeNames *scope; /* of a node that stood in a subgraph: what the outer names of its own subgraphs mean */
};

/* Control flow that stays after control, in the main graph.
 * LOOP_DIM: a LoopEnter node, its body, a LoopExit node, in this order. Enter: initial states, then scanned inputs -> iteration
 *   number, states, slices. Exit: new states, then one slice of each scan output -> final states, scan outputs.
 * LOOP_WHILE: the same; the first state is a bool that says whether there is another iteration. The
 *   iterations so far, and the extent of a state that grows, are symbols of class data, whose words the loop's launches keep.
 * LOOP_IF: IfEnter (condition), the nodes of the first branch, IfElse, those of the second, IfExit: the outputs of the first
 *   branch, then those of the second -> the outputs. */
typedef enum LoopKind { LOOP_DIM, LOOP_WHILE, LOOP_IF } LoopKind;
typedef struct LoopGrowth { Dim extent[MAX_RANK]; int axis; Dim step; } LoopGrowth;
typedef struct Loop {
    LoopKind kind;
    uint32_t outer;              /* the one that it stands in; 0 none */
    Dim trip;                    /* iterations; LOOP_WHILE: the symbol that counts them */
    Dim length;                  /* extent of what is scanned and stacked: all iterations */
    Dim most;                    /* LOOP_WHILE: iterations at most; 0 no bound is known */
    LoopGrowth **growth;         /* LOOP_WHILE, by state; NULL: keeps its shape. extent: symbols that stand for its dims before an
                                  * iteration; axis: which grows by `step` in each, -1 none. IF: by output, when not NULL the
                                  * symbols of dims that differ between the branches */
    int states, scan_inputs, scan_outputs;
    int input_axes[MAX_LOOP_SCANS], output_axes[MAX_LOOP_SCANS];
    bool input_reverse[MAX_LOOP_SCANS], output_reverse[MAX_LOOP_SCANS];
    bool needed;                 /* set by fuse */
} Loop;

struct Graph {
    const char *name;
    uint32_t value_count, value_room; Value *values; /* 1-based: values[0] is unused */
    uint32_t node_count, node_room; Node *nodes;     /* 1-based, in topological order after import */
    uint32_t input_count, output_count;
    uint32_t *inputs, *outputs;
};
uint32_t graph_value(Compilation *c, Graph *g, const char *name); /* new value, everything unknown */
uint32_t graph_node(Compilation *c, Graph *g, const char *domain, const char *op, const char *name, int inputs, int outputs);
void graph_print(Compilation *c, const Graph *g, FILE *out);      /* exact text form, with symbols, equations, states */
bool graph_parse(Compilation *c, const char *text, size_t size, const char *file);
void graph_verify(Compilation *c, const char *after);             /* fault()s when the graph is not sound */
bool graph_sort(Compilation *c, Graph *g);                        /* topological; error on a cycle */

/* Accessors for operator rows. i counts from 0; absent inputs give NULL. */
Value *node_input(Compilation *c, const Node *n, int i);
Value *node_output(Compilation *c, const Node *n, int i);
const Attr *node_attr(const Node *n, const char *name); /* never NULL after resolution: the schema's default */
int64_t attr_int(const Node *n, const char *name);
DType attr_dtype(const Node *n, const char *name); /* DT_UNKNOWN when its number is no dtype's */
double attr_float(const Node *n, const char *name);
const char *attr_string(const Node *n, const char *name);
bool attr_given(const Node *n, const char *name);
/* Constant integers of a value (initializer or contents); false when not all known. *out in the arena. */
bool value_ints(Compilation *c, const Value *v, int64_t **out, int *count);
bool value_dims(Compilation *c, const Value *v, Dim **out, int *count); /* contents as dims */
bool value_floats(Compilation *c, const Value *v, const double **out, int *count); /* the same of floats; all known, or false */
double data_float(const Value *v, int64_t i); /* element of a constant with mapped bytes, as a double */
int64_t data_int(const Value *v, int64_t i);
int axis_normal(Compilation *c, const Node *n, int64_t axis, int rank); /* -1 after an error */

/* ---- operator rows: compiler/ops/. */
enum OpFact {
    OP_POINTWISE = 1 << 0,   /* output element i depends on input elements i (broadcast); `expr` is its text */
    OP_VIEW = 1 << 1,        /* may become a view of its first input */
    OP_SHAPE = 1 << 2,       /* integer contents follow from dims */
    OP_CONTROL = 1 << 3,     /* stands for other nodes: `expand` */
    OP_RANDOM = 1 << 4,     /* never folded */
    OP_EPILOGUE = 1 << 5,   /* its kernel can go on with an elementwise node: it stores through kernel_epilogue */
    OP_LATE = 1 << 6,     /* with OP_EPILOGUE, and several launches one after another: launched where its epilogue stands, so that
                         * what that reads besides is made beside them */
    OP_BESIDE = 1 << 7,   /* its kernel makes a row of output 0, or folds a row of input 0 into it, and can go on with elementwise
                         * nodes: see kernel_beside (lower.h) */
    OP_HEAD_NORM = 1 << 8, /* inputs 0 and 1 may come from such a norm over each head, and from OP_ROTARY: its kernel can do that (ops/gqa.c) */
    OP_ROTARY = 1 << 9,  /* turns pairs of input 0 by its position, see rotary_ports (ops/heads.h) */
    OP_NORM_ROW = 1 << 10,  /* a norm by the mean of squares along the last axis: see norm_row (ops/gemv.h) */
    OP_APPEND = 1 << 11,     /* appends to or writes into a state given as input (see `inplace`) */
    OP_ZEROS = 1 << 12,     /* zeros at the end of its first input change nothing in front of them, and stay zeros ... */
    OP_TAIL = 1 << 13,     /* ... but for those behind them in the result, with OP_ZEROS */
    OP_SAME_ORDER = 1 << 14, /* output 0 holds the elements of input 0, in their order: only the axes differ */
    OP_FILTER = 1 << 15,  /* a causal convolution: output 0, of channels along axis 1, may be part of the kernel of an ... */
    OP_FILTERED = 1 << 16, /* ... OP_FILTERED, whose inputs 0, 1 and 2 are channels of it: see passes/fuse_filter.c */
    OP_ACROSS = 1 << 17    /* takes or writes elements anywhere, where its indices say */
};
typedef struct Lower Lower;
struct OpRow {
    const char *domain, *name;
    int since;            /* first opset of this row */
    /* "X:T, scale:T, bias:T?, rest:T* -> Y:T, mask:bool? ; axis:int=-1, epsilon:float=1e-5, to:int, perm:ints? | T=f32 f16 bf16, I=i32 i64"
     * `?` optional, `*` variadic (last), a name after ':' is a type class or a dtype. Attributes: int float string ints floats
     * strings tensor graph; `=value` default, `?` optional without default, nothing: required. */
    const char *schema;
    unsigned facts;
    /* Dims, rank and dtype of every output; posts equations. False after an error. */
    bool (*shape)(Compilation *c, Node *n);
    /* Optional: integer contents of outputs from those of inputs. Called after shape; may leave them unknown. */
    void (*contents)(Compilation *c, Node *n);
    /* Rows with OP_CONTROL: the nodes that the node stands for, instead of all that follows. Others: the same, when an input
     * is a list (which rows without it refuse). False after an error. */
    bool (*expand)(struct Expansion *e);
    /* Launches, or views, for one signature. NULL with OP_POINTWISE: generated from expr. */
    void (*lower)(Lower *l, Node *n);
    /* Pointwise rows: C expression over operands a, b, c, d (their compute type), index i0.. of the output, dims D0..
     * and attributes through expr_fn. NULL expr with expr_fn set: text made by it (in the arena). */
    const char *expr;
    const char *(*expr_fn)(Compilation *c, const Node *n);
    /* Rows with OP_APPEND: -1, or the input that output `output` may share its buffer with, and whether that is by
     * appending rows at the extent along *axis (old rows are never written) or by writing anywhere (*append false; *axis
     * then is the axis of the rows that it writes at the position, or -1 when it replaces the whole). */
    int (*inplace)(Compilation *c, const Node *n, int output, int *axis, bool *append);
    /* Rows that look up a table: the input that is the table (rows along axis 0), and in *index the input that holds the
     * row numbers, or -1 when they are the positions of the tokens. -1: no table. */
    int (*lookup)(Compilation *c, const Node *n, int *index);
    /* 1 + the input, integers that are lengths of sequences, of which the kernels take the dim where it is known to be one for all
     * (uniform_length): nothing has to compute the input then. 0: none. */
    int length_input;
    /* Rows that can keep to a length of each row of the batch: NULL, or why this node cannot. */
    const char *(*row_lengths)(Compilation *c, const Node *n);
    /* Rows whose row i of all outputs, along the axis before the last, is made of row i of the inputs, those aside that have one row for
     * all: whether this node is such, its shapes being known. NULL: as OP_POINTWISE says. */
    bool (*by_row)(Compilation *c, const Node *n);
    const char *note;     /* for --ops: what of the operator is refused; NULL: nothing */
};
/* Each family file exports one table; table.c lists them, and is the only other place that names a family. */
typedef struct OpFamily { const OpRow *rows; int count; const char *file; } OpFamily;
const OpRow *op_find(const char *domain, const char *name, int opset); /* newest row not newer than opset */
bool node_resolve(Compilation *c, Node *n); /* sets op, puts attributes in schema order, checks counts and dtypes of known inputs */
bool node_check_types(Compilation *c, Node *n);
void ops_print(FILE *out); /* --ops: the support table, a line a row, then the operators that are refused */

/* Shape helpers (compiler/ops/rules.c) */
bool shape_same(Compilation *c, Node *n);       /* output 0 like input 0, all */
bool shape_broadcast(Compilation *c, Node *n);  /* output 0 = broadcast of all inputs; dtype of the schema's class */
bool shape_broadcast_bool(Compilation *c, Node *n); /* the same, output bool */
Dim shape_broadcast_dim(Compilation *c, const Node *n, Dim a, Dim b); /* posts a = b unless one is 1 */
bool output_set(Compilation *c, Node *n, int i, DType t, int rank, const Dim *dims);
Dim value_elements(Compilation *c, const Value *v); /* product of dims */

/* ---- expand.c: a node that stands for others (none, or some) makes room for them. False after an error. Indices of nodes
 * behind it move. */
bool node_expands(Compilation *c, const Node *n); /* by its row, or because an input is a list */
bool node_expand(Compilation *c, uint32_t node);
/* A graph output that is a list becomes one for each value in it, NAME[0], NAME[1] ...; what is in an optional keeps its name.
 * After it no value is a list. False after an error. */
bool lists_end(Compilation *c);

/* ---- recipe.c */
typedef struct StatePair {
    uint32_t input, output;   /* values of the main graph */
    const char *input_name, *output_name;
    int growing_axis;         /* axis that grows with the position, -1 none; set by classify */
    int update;               /* 0 append in place, 1 written in place, 2 copied; set by alias */
    bool rows;                /* old rows keep their meaning when the position goes back; set by alias */
    uint32_t proof;
    uint32_t buffer;          /* set by lower */
    Dim upper[MAX_RANK];      /* buffer dims (capacity); set by signature */
} StatePair;
typedef struct Range { const char *symbol; int64_t lo, hi; int line, column; } Range;
typedef struct SignatureSpec { const char *name; int range_count; Range *ranges; int line; } SignatureSpec;
typedef struct Bind { const char *input, *path, *place; } Bind; /* an input becomes the tensor of a file; place: for messages */
typedef struct Recipe {
    const char *file;          /* NULL: deduced */
    int64_t capacity;          /* 0 = default */
    int pair_count; struct { const char *input, *output; int line, column; } *pairs; /* patterns may hold {N} */
    int range_count; Range *ranges;      /* values (lo == hi) or ranges of symbols, by name */
    int signature_count; SignatureSpec *signatures;
    int feed_count; struct { const char *input; Feed feed; int line, column; } *feeds;
    int constant_count; struct { const char *input; int count; int64_t *values; int line, column; } *constants;
    int bind_count; Bind *binds;
} Recipe;
bool recipe_read(Compilation *c, const char *path);   /* YAML; errors name line and column */
uint32_t token_input(Compilation *c); /* the value that takes tokens; 0 none */
bool recipe_apply(Compilation *c);  /* after import: pairs, feeds, constants from the recipe or the common conventions; checked */
void recipe_print(Compilation *c, FILE *out);         /* what holds, as a recipe that gives the same plan */
const char *feed_name(Feed f);

/* ---- states.c: what updates a state */
typedef struct StateUpdate {
    uint32_t node;
    int input, output;
    int axis;    /* of the state: see OpRow.inplace */
    bool append;
    bool alone;  /* no other node reads the old state */
    bool viewed; /* between the node and the state lie nodes that only name the axes anew */
} StateUpdate;
bool state_update(Compilation *c, const StatePair *p, StateUpdate *u); /* false: no node writes it in place */
int state_written_by(Compilation *c, const Node *n, int input, int output); /* the pair that this is the update of; -1 none */
/* Whether INPUT is a state as the step found it, which N alone writes during the step, in place, as OUTPUT: so it may be read as early as constants. */
bool state_only_of(Compilation *c, const Node *n, int input, int output);
int64_t state_rows(Compilation *c); /* rows of static caches; 0 when there are none */

/* ---- signatures: boxes of symbol space, each lowered apart. */
enum SignatureKind { SIG_LOAD, SIG_DECODE, SIG_PREFILL, SIG_MAIN };
typedef struct Signature {
    const char *name;
    int kind;
    int64_t *lo, *hi;   /* by symbol index; lo == hi pinned. Position + sequence <= capacity holds besides. */
    struct Lower *lower;
} Signature;

/* ---- lowering: lower.c and kernel.c. Dims become C text; kernels are made from templates in codegen/kernels/. */
typedef enum Region { REGION_WEIGHTS, REGION_METADATA, REGION_LOAD, REGION_STATE, REGION_ARENA, REGION_IO, REGION_RING } Region;
typedef struct Buffer {
    const char *name;
    Region region;
    int64_t bytes;
    int64_t offset;        /* set by memory; state and io buffers by signature */
    int first, last;       /* launches of its lifetime in its signature; -1 none */
    const Data *data;      /* weights */
    uint32_t signature;    /* 1-based; 0 = shared */
} Buffer;
/* A view: how a value lies in a buffer. Strides are literal, in elements, made for the upper bounds of the dims; the
 * extents may be expressions. Element (i0, i1, ...) is at offset + i0*stride[0] + ... */
typedef struct View {
    uint32_t buffer;       /* in c->buffers, 1-based; 0 = no view */
    DType store;           /* storage type; U4 I4 U2 I2 F4E2M1 only for packed constants, else byte-wide */
    int rank;
    Dim dims[MAX_RANK];    /* with pinned symbols replaced by their values */
    int64_t stride[MAX_RANK];
    Dim offset;            /* elements */
} View;

/* For operator rows. All dims given and returned are of the signature being lowered (pinned symbols are constants). */
Compilation *lower_compilation(Lower *l);
int64_t signature_upper(Compilation *c, const Signature *s, Dim d); /* INT64_MAX: unbounded */
int64_t signature_lower(Compilation *c, const Signature *s, Dim d);
Dim lower_dim(Lower *l, Dim d);              /* resolves, and replaces pinned symbols */
int64_t lower_upper(Lower *l, Dim d);        /* upper bound in the signature; fault() when unbounded (signature checked it) */
int64_t lower_lower(Lower *l, Dim d);        /* lower bound */
const char *lower_c(Lower *l, Dim d);        /* C expression: a literal, or over the extents words ("(e0 + 1)") */
View lower_input(Lower *l, const Node *n, int i);   /* memory of input i: materialises what is folded, fed or fused */
View lower_value(Lower *l, uint32_t value);
View lower_output(Lower *l, const Node *n, int i);  /* memory for output i, dense for its upper bounds; the state's or io buffer where it is one */
void lower_set_view(Lower *l, const Node *n, int i, View v); /* output i is that view: no launch */
View lower_temporary(Lower *l, const char *name, DType t, int rank, const Dim *dims); /* arena scratch */
bool view_dense(Lower *l, const View *v, int from, int to);  /* axes from..to-1 lie without gaps, whatever the extents */
/* Elements that 16 bytes hold, when every such run along the last axis is aligned; 1 otherwise, or for other types than f32,
 * f16, bf16. Buffers begin aligned. */
int view_vector(Lower *l, const View *v);
bool view_reshape(Lower *l, const View *v, int rank, const Dim *dims, View *out); /* false: needs a copy */
/* Whether elementwise nodes alone read output 0 of N, which has IN's elements in their order: they read these where they lie, and nothing is
 * launched, although no view can say so. */
bool lower_set_apart(Lower *l, const Node *n, const View *in);
void lower_copy(Lower *l, const Node *n, View from, View to, const char *label); /* element by element in row-major order; shapes may differ */
/* State written in place: the view of pair-input `input` over its whole buffer (dims = capacity), and true, when alias
 * decided that output `output` shares it. */
bool lower_inplace(Lower *l, const Node *n, int input, int output, View *whole);

/* A kernel instance: template file NAME.cu with macros. Operand X gives the template
 *   X            pointer (parameter)           X_T      storage C type
 *   X_LD(i)      element i (offset in elements, from X; already includes nothing of X_OFF) as its compute type
 *   X_ST(i, v)   stores v, rounded to the storage type
 *   X_OFF        offset expression             X_D0..   extents, C expressions    X_S0..  strides, literals   X_RANK
 *   X_AT(i0, i1, ...)  X_OFF + i0*X_S0 + ...   X_C      compute type (float, long long, int, double)
 *   X_RND(v)     v rounded to the storage type, as compute type;  X_DT  ONNX number of the dtype
 * The template begins its function with KERNEL(threads), uses EXTENTS to load the extents words that the launch needs,
 * and the macros of prelude.h (TID, BID_X, SYNC(), WARP_SUM(v), SHARED(type, name, count) ...). */
typedef struct Kernel Kernel;
Kernel *kernel_begin(Lower *l, const Node *n, const char *template);
void kernel_in(Kernel *k, const char *name, View v);
/* For rows with OP_EPILOGUE, whose kernel makes element (m, n) of its output's last two axes (fuse sees to it that the others
 * are 1): sets EPILOGUE_BODY (statements) and EPILOGUE (an expression), what the kernel stores for its result RESULT. */
void kernel_epilogue(Kernel *k, const Node *n, const char *result);
/* The same; but what it reads of other operands becomes EPILOGUE_READS, which may stand before RESULT is there, in the same block. OTHER: 0, or a value
 * that the kernel makes too, as the expression OTHER_RESULT. */
void kernel_epilogue_apart(Kernel *k, const Node *n, const char *result, uint32_t other, const char *other_result);
/* The same for a table of which a launch reads ROWS rows along its first axis at most: only these count as traffic. */
void kernel_in_rows(Kernel *k, const char *name, View v, int64_t rows);
void kernel_out(Kernel *k, const char *name, View v);
void kernel_inout(Kernel *k, const char *name, View v);
/* With rows of their own length: sets ROWED 1 and gives operands RL, the length of each row before the step, and RT, the tokens that
 * it is fed in the step (0: the row rests; nothing of it may be written), both i64 [batch]. Without: ROWED 0. Again: nothing. */
void kernel_rows(Kernel *k);
void kernel_int(Kernel *k, const char *name, int64_t v);
void kernel_float(Kernel *k, const char *name, double v); /* exact: hexadecimal literal */
void kernel_dim(Kernel *k, const char *name, Dim d);
void kernel_text(Kernel *k, const char *name, const char *text);
/* KEY: a C type in whose order values of T compare, when read in their compute type. */
void kernel_key(Kernel *k, DType t);
void kernel_bytes(Kernel *k, int64_t fixed, int64_t per_row); /* traffic, when not the sum of the operands */
void kernel_label(Kernel *k, const char *label);              /* default: the node's name */
void kernel_condition(Kernel *k, int block);                  /* the launch gets the handle of that block's condition, gp_condition */
void kernel_early(Kernel *k);                                /* kernels after it may be put in place before it waits for those before it */
void kernel_late(Kernel *k);                                 /* only when it has waited: they may read then what it may */
void kernel_shared(Kernel *k, int64_t bytes);                /* of SHARED_MORE; codegen_shared_limit bounds it */
void kernel_launch(Kernel *k, int64_t grid_x, int64_t grid_y, int64_t grid_z, int block);
/* Grid for n elements at `block` threads with grid-stride loops: at most 4 blocks for each of 132 SMs. */
int64_t grid_for(int64_t elements, int block);

/* Emits a pointwise kernel out[i...] = expr for operands with broadcast; used by pointwise rows and by other rows that
 * need glue. */
void lower_pointwise(Lower *l, Node *n);

/* tuning.c: the value for a choice that only a measurement can make: from the tuning file, else STANDARD. KEY, in the arena, names
 * the point and its shapes without blanks; CANDIDATES are all values that lowering can take, STANDARD among them. */
int64_t tuning_choice(Lower *l, const char *key, const int64_t *candidates, int count, int64_t standard);

/* ---- the compilation */
/* offset in bytes; value: an iteration (literal), or a block whose condition the launch sets (condition) */
typedef struct LaunchArg { bool literal, condition, timers; uint32_t buffer; int64_t offset; int64_t value; } LaunchArg;
typedef struct Access { uint32_t buffer; int mode; int64_t offset, bytes; } Access; /* mode 1 read, 2 write, 3 both */
typedef struct Launch {
    uint32_t kernel;       /* in c->kernels */
    int64_t grid[3];
    int64_t shared;        /* bytes of shared memory besides what the kernel declares */
    int arg_count, access_count;
    LaunchArg *args;
    Access *accesses;
    const char *label;
    uint32_t node;
    int64_t bytes_fixed, bytes_row;
} Launch;
typedef struct KernelText {
    const char *name;      /* entry: "matmul_3" */
    const char *template;
    const char *text;      /* macros; with the template's body this is the key */
    int arg_count, block;
    bool fibres;           /* its template has barriers or warp exchanges */
} KernelText;

typedef enum SampleTail { SAMPLE_UNSET, SAMPLE_NONE, SAMPLE_GREEDY, SAMPLE_DRAW } SampleTail;
bool sample_from_name(const char *name, SampleTail *out); /* recipe.c; none, greedy, draw */
const char *sample_name(SampleTail s);

typedef struct Options {
    const char *model_path, *output_path, *recipe_path;
    const char *targets;        /* "host,sm_90a,ptx" */
    const char *dump;           /* pass name, or NULL */
    int64_t capacity, prefill;  /* 0 = default */
    int64_t rows;               /* sequences of a step, each with a length of its own; 0 = all have one length */
    SampleTail sample;          /* UNSET: the recipe decides */
    enum { LOGITS_UNSET, LOGITS_ALL, LOGITS_LAST } logits; /* UNSET: last with a sampling tail, where that saves something; else all */
    bool weights_reference, verify_passes, check_only, print_recipe, quiet, require_single_segment;
    bool emulate_gpu;           /* host code takes the variants written for a GPU's tensor cores */
    bool timers;                /* each block of a launch stamps when it began, had waited, and ended */
    const char *tuning_path;    /* answers of plan-run --tune */
    bool tune_candidates;       /* add signatures "decode#KEY=VALUE" for it */
    bool check_lengths;         /* add signatures "decode@L": decode with the position pinned to L */
    const char *require_signature;
    int threads;                /* compile threads */
    enum { CONDITIONS_AUTO, CONDITIONS_NODE, CONDITIONS_SEAM } conditions; /* how blocks that run on a condition are realised */
    int max_count; Range *max;  /* --max, --pin */
    int bind_count; Bind *binds; /* --bind */
    bool one_token;             /* not an option: a first attempt found that the graph holds for steps of one token only */
} Options;

/* Bytes of each region, set by memory. The initialised part of weights and load comes from the file. */
typedef struct RegionSizes { int64_t bytes[REGION_RING + 1], weights_initialised, load_initialised; } RegionSizes;

struct Compilation {
    Arena arena;
    Options options;
    Recipe recipe;
    const char *file;          /* base name of the model, for messages */
    const char *folder;        /* its folder */
    uint64_t model_hash;
    int ir_version;
    struct Dims *dims;         /* tables of dim.c */
    uint32_t symbol_count, symbol_room; Symbol *symbols; /* 1-based */
    uint32_t proof_count, proof_room; Proof *proofs;     /* 1-based */
    struct Equations *equations;
    Graph graph;
    uint32_t subgraph_count; Graph *subgraphs;
    uint32_t loop_count, loop_room; Loop *loops; /* 1-based */
    int pair_count; StatePair *pairs;
    Sym batch, sequence, position; /* set by classify; position: the growing symbol, or one made for static caches; 0 none */
    Dim position_step;             /* position := position + this each step */
    bool state_stuck;              /* classify failed: the graph, read for any number of tokens, lets no state grow */
    int64_t capacity;
    enum { ROWS_GIVEN, ROWS_ALL, ROWS_LAST } logits_rows; /* set by logits: of those that the model gives; GIVEN: it was not to choose */
    uint32_t extents;              /* buffer of the extents table; set by lower */
    uint32_t tickets;              /* words by which blocks of a launch meet, all 0 between launches; a buffer, set by lower; 0 none */
    uint32_t timers[2];            /* buffers of the stamps: of steps, which share one, and of `load`; set by lower; 0 none */
    int64_t products_of_4_bits, products_of_16_bits; /* bytes of the matrices that rows alone are multiplied with; set by lower */
    uint32_t buffer_count, buffer_room; Buffer *buffers; /* 1-based */
    RegionSizes regions;
    uint32_t kernel_count, kernel_room; KernelText *kernels; /* 1-based */
    int signature_count; Signature *signatures;
    bool condition_nodes;          /* set by lower: blocks are conditional nodes of graphs; else seams, for this reason */
    int seam_reason; const char *seam_detail, *seam_remedy;
    struct Tuning *tuning;         /* NULL: nothing was read or asked */
    struct Diagnostics *diagnostics;
};

/* ---- passes/: one file each, run in the order of the table in compiler/driver.c. False after errors. */
bool pass_import(Compilation *c);    /* onnx bytes -> graph */
bool pass_infer(Compilation *c);
/* For a graph with faulty nodes (not GOOD, by index): also finds the faults of those that do not depend on them. */
void infer_survey(Compilation *c, const bool *good);
/* passes/uniform.c. Sets Value.each, before it is read. Whether node N takes its input INPUT as one dim. */
void find_uniform(Compilation *c);
bool uniform_length(Compilation *c, const Node *n, int input);
/* passes/rows.c: whether N is an elementwise node whose elements depend on where they are. */
bool node_by_place(Compilation *c, const Node *n);
bool pass_logits(Compilation *c);
bool pass_classify(Compilation *c);
bool pass_signature(Compilation *c);
bool pass_fuse(Compilation *c);
bool pass_alias(Compilation *c);
bool pass_rows(Compilation *c);
bool pass_lower(Compilation *c);
bool pass_metadata(Compilation *c);
bool pass_memory(Compilation *c);
bool pass_segment(Compilation *c);
bool pass_emit(Compilation *c);

/* ---- dump.c */
void dump_launches(Compilation *c, FILE *out);
void dump_metadata(Compilation *c, FILE *out);
void dump_memory(Compilation *c, FILE *out);
void dump_segments(Compilation *c, FILE *out);

/* ---- codegen/: template texts and compilation. */
typedef struct KernelTemplate { const char *name, *text; } KernelTemplate;
extern const KernelTemplate kernel_templates[]; /* made from codegen/kernels/ by the build; ends with NULL */
const char *kernel_template(const char *name);
typedef struct ModuleCode { const char *target; int module; const void *bytes; uint64_t size; } ModuleCode;
/* Compiles all kernels for the named targets; modules in deterministic order. */
bool codegen_compile(Compilation *c, const char *targets, ModuleCode **out, int *count, int *module_of_kernel);
const char *codegen_default_targets(void);
/* Whether kernels are for a GPU, on one at least of the devices that TARGETS (NULL: the default) names. The host emulates one under --emulate-gpu. */
bool codegen_for_gpu(Compilation *c, const char *targets);
/* Shared memory, in bytes, that a block may have on all the devices that TARGETS (NULL: the default) name: what a kernel declares and
 * kernel_shared together; 0 where code that must run on any device is among them, or one without copies in the background. */
int64_t codegen_shared_limit(Compilation *c, const char *targets);
/* Whether all devices that TARGETS names have the tensor cores of sm_90a (wgmma.h). The host has what stands in for them. */
bool codegen_has_wgmma(Compilation *c, const char *targets);
/* Whether blocks of a cluster reach each other's shared memory on all devices that TARGETS names. The host has them under --emulate-gpu. */
bool codegen_has_clusters(Compilation *c, const char *targets);
/* NULL when graphs of all these targets may have conditional nodes; else the first that may not, and why. */
const char *codegen_without_conditions(Compilation *c, const char *targets);

#endif
