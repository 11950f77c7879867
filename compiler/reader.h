/* reader.h - what the files of the ONNX reader share: onnx_tensor.c, onnx_attr.c, onnx_graph.c, functions.c,
 * passes/import.c. */
#ifndef GCC_PLAN_READER_H
#define GCC_PLAN_READER_H

#include "compiler.h"
#include <string.h>

#include "external.h"
#include "names.h"
#include "onnx.pb-c.h"

#define READER_MAX_DEPTH 64       /* subgraphs and function calls within each other */
#define READER_MAX_WORK 1000000u /* nodes from functions, with their inputs, outputs and attributes */
#define READER_MAX_IMPORTS 1000u  /* domains */
#define READER_MAX_OPSET 27       /* newest version of ai.onnx that is known */
#define READER_MIN_OPSET 1

typedef Onnx__TensorProto TensorProto;
typedef Onnx__AttributeProto AttributeProto;
typedef Onnx__NodeProto NodeProto;
typedef Onnx__GraphProto GraphProto;
typedef Onnx__FunctionProto FunctionProto;
typedef Onnx__ValueInfoProto ValueInfoProto;

/* Values of AttributeProto.type. */
enum { AT_UNDEFINED, AT_FLOAT, AT_INT, AT_STRING, AT_TENSOR, AT_GRAPH, AT_FLOATS, AT_INTS, AT_STRINGS, AT_TENSORS,
       AT_GRAPHS, AT_SPARSE_TENSOR, AT_SPARSE_TENSORS, AT_TYPE_PROTO, AT_TYPE_PROTOS };

typedef struct Opset { const char *domain; int version; } Opset;
typedef struct Opsets { uint32_t count; Opset *list; } Opsets; /* domain "ai.onnx" is "" */

typedef struct Reader {
    Compilation *c;
    const uint8_t *bytes; /* the model file */
    uint64_t size;
    const Onnx__ModelProto *model;
    Opsets opsets;        /* the model's */
    Names functions;      /* function_key -> index in model->functions + 1 */
    Names value_names;    /* names of the main graph's values, to keep them different */
    Names unknown_domains; /* reported */
    ExternalFiles files;
    Opsets *function_opsets; /* by index in model->functions; count 0: not read yet */
    uint64_t work;        /* see READER_MAX_WORK */
    int depth;
    uint32_t default_count; /* inputs that have an initializer */
    const char *first_default;
} Reader;

typedef struct GivenAttr { const char *name; const AttributeProto *attr; } GivenAttr; /* references resolved */

/* One call of a function that is being inlined. */
typedef struct Call {
    const struct Call *outer;
    const FunctionProto *function;
    const char *prefix;   /* name of the calling node */
    Opsets opsets;
    int attr_count;
    GivenAttr *attrs;     /* what the call gives */
} Call;

/* Where names mean something: a graph, or the body of one call (its graph is then the caller's). */
typedef struct Scope {
    struct Scope *outer;  /* NULL for a function body: it sees its inputs only */
    Graph *graph;
    const Call *call;     /* NULL outside of functions */
    Names names;          /* -> value of graph */
    Names promised;       /* outputs of the function -> value of graph, until a node of the body makes them */
    Names absent;         /* inputs of the function that the call leaves out */
} Scope;

static inline const char *text_or_empty(const char *s) { return s ? s : ""; }
static inline const char *domain_of(const char *s) { return s && strcmp(s, "ai.onnx") ? s : ""; }

/* onnx_tensor.c: dtype, dims, data and contents of constant `value`; errors at `place`. */
bool tensor_read(Reader *r, Graph *g, uint32_t value, const TensorProto *t, const char *place);
/* A constant of our own: `count` elements of `size` bytes, rank 0 or 1. */
void constant_set(Reader *r, Graph *g, uint32_t value, DType type, int rank, int64_t count, const void *bytes);
/* Follows the elements of a small integer constant. */
void constant_contents(Compilation *c, Value *v);

/* onnx_bind.c: unpacks into the arena. */
ProtobufCAllocator reader_allocator(Compilation *c);

/* onnx_attr.c */
int attr_type(const AttributeProto *a); /* AT_..., also of files that do not say it */
/* The attributes that a node has once references into the call are resolved. */
GivenAttr *attrs_given(Reader *r, const Scope *s, const NodeProto *n, const char *place, int *count);
bool attr_read(Reader *r, Scope *s, const GivenAttr *given, const char *node, const char *place, Attr *out);
/* The `Constant` operator: its value. */
bool constant_read(Reader *r, Graph *g, uint32_t value, const GivenAttr *attrs, int count, const char *place);

/* onnx_graph.c */
/* Also in scopes around it; *value is 0 when it is an input that the call leaves out. False: no such name. */
bool scope_find(Reader *r, Scope *s, const char *name, uint32_t *value);
bool graph_read(Reader *r, Scope *s, const GraphProto *p, const char *name, const char *place); /* into s->graph */
bool nodes_read(Reader *r, Scope *s, NodeProto *const *nodes, size_t count);
/* Adds to the work done; false, and an error, when a small file makes too much of it. */
bool work_add(Reader *r, const char *place, uint64_t work);

/* opsets.c */
Opsets opsets_read(Reader *r, Onnx__OperatorSetIdProto *const *list, size_t count, const char *place);
int opset_version(const Reader *r, const Scope *s, const char *domain); /* 0: not imported */

/* legacy.c: a node of ai.onnx 1 to 6 becomes one of version 7, where it can. False after an error. */
bool legacy_raise(Reader *r, Graph *g, uint32_t node, const char *place);

/* functions.c */
bool functions_index(Reader *r);
/* Index in model->functions + 1; 0: no function. */
uint32_t function_find(const Reader *r, const NodeProto *n);
/* The body, in place of the call. Its outputs are values of `s` already. */
bool function_inline(Reader *r, Scope *s, uint32_t function, const NodeProto *n, const char *name, const char *place);

#endif
