/* expand.h - for rows that are no kernels but stand for other nodes (OpRow.expand): control flow, sequences, functions.
 *
 * The nodes that take a node's place are collected in an Expansion, and put into the main graph together. */
#ifndef GCC_PLAN_EXPAND_H
#define GCC_PLAN_EXPAND_H

#include "compiler.h"

enum {
    MAX_UNROLL = 1024,  /* copies of a body */
    EXPAND_OPSET = 24   /* of the nodes of ai.onnx that stand for one of another domain */
};

/* What names mean inside a cloned subgraph: its own values, then those of the subgraphs around it, then the main graph. */
typedef struct ScopeNames {
    const struct ScopeNames *outer;
    uint32_t count;
    const char **names;
    uint32_t *values;
} ScopeNames;

typedef struct Expansion {
    Compilation *c;
    uint32_t at;             /* the node that is expanded */
    Node node;               /* a copy of it */
    uint32_t count, room;
    Node *nodes;             /* that take its place; they move when one is added */
    uint32_t loop;           /* that new nodes become part of; 0: that of the node */
} Expansion;

/* Error at the node; false. */
bool expand_refuse(Expansion *e, const char *format, ...);
/* A new node of ours, in the opset of the expanded one; valid until the next is made. */
Node *expand_node(Expansion *e, const char *domain, const char *op, int inputs, int outputs);
void expand_attr(Expansion *e, Node *n, const Attr *a); /* one attribute more */
void expand_int(Expansion *e, Node *n, const char *name, int64_t v);
uint32_t expand_value(Expansion *e, const char *what); /* fresh, in the main graph */
/* An integer or bool constant as contents; rank 0 (one element) or 1. */
uint32_t expand_constant(Expansion *e, DType t, int rank, int count, const int64_t *v);
uint32_t expand_number(Expansion *e, DType t, int rank, int64_t v); /* of one element */
uint32_t expand_float(Expansion *e, float v); /* f32, rank 0 */
/* A node of the usual form: one or two inputs (0: no second), one fresh output, which is returned. */
uint32_t expand_made(Expansion *e, const char *op, uint32_t a, uint32_t b);
uint32_t expand_cast(Expansion *e, uint32_t x, DType from, DType to); /* X itself when the types are one */
void expand_identity(Expansion *e, uint32_t from, uint32_t to);
/* Index K of FROM along AXIS, which goes. */
uint32_t expand_element(Expansion *e, uint32_t from, int axis, int64_t k);
/* PARTS, each one slice along a new axis AXIS, together as TO. */
void expand_stack(Expansion *e, const uint32_t *parts, int64_t count, int axis, uint32_t to);
/* The new nodes stand before the node, which stays. False: one is none of our operators. */
bool expand_before(Expansion *e);
/* The subgraph of attribute ATTR. */
const Graph *expand_subgraph(const Expansion *e, const char *attr);
/* A clone of the subgraph's nodes with its inputs bound to INPUTS; the values of its outputs. NULL after an error. */
uint32_t *expand_clone(Expansion *e, const Graph *g, const uint32_t *inputs);
/* Output I of the node is a sequence, or an optional of 0 or 1 values. False after an error: too many. */
bool expand_list(Expansion *e, int i, bool optional, int count, const uint32_t *items);
/* Input I: a sequence or an optional, NULL: it is none, or left out. */
const List *expand_input_list(const Expansion *e, int i);

#endif
