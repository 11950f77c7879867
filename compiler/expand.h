/* expand.h - what expand.c and expand_data.c share: one control node on its way to plain nodes of the main graph. */
#ifndef GCC_PLAN_EXPAND_H
#define GCC_PLAN_EXPAND_H

#include "compiler.h"

/* What names mean inside a cloned subgraph: its own values, then those of the subgraphs around it, then the main graph. */
typedef struct ScopeNames {
    const struct ScopeNames *outer;
    uint32_t count;
    const char **names;
    uint32_t *values;
} ScopeNames;

typedef struct Expansion {
    Compilation *c;
    uint32_t at;             /* the control node */
    Node node;               /* a copy of it */
    uint32_t count, room;
    Node *nodes;             /* that take its place */
    const Graph *body;
    uint32_t loop;           /* that cloned nodes become part of */
} Expansion;

typedef struct Shape { /* of a Loop or Scan */
    const Graph *body;
    int states, scan_inputs, scan_outputs, first_state, first_output; /* first_*: in the body's inputs and outputs */
    int input_axes[MAX_LOOP_SCANS], output_axes[MAX_LOOP_SCANS];
    bool input_reverse[MAX_LOOP_SCANS], output_reverse[MAX_LOOP_SCANS];
    const uint32_t *initial;  /* of states, then scanned inputs */
    bool is_loop;             /* body inputs begin with the iteration number and a condition */
} Shape;

bool expand_refuse(Expansion *e, const char *why); /* false, and an error that names the control node */
/* A node, named after the control node; its inputs and outputs are to be filled in. Valid until the next one is made. */
Node *expand_node(Expansion *e, const char *domain, const char *op, int inputs, int outputs);
uint32_t expand_value(Expansion *e, const char *what);
uint32_t expand_known(Expansion *e, DType t, int rank, int64_t v); /* a constant of one element; rank 0 or 1 */
const Graph *expand_subgraph(Expansion *e, const char *attr);
/* The subgraph's nodes with its inputs bound to INPUTS; the values of its outputs. NULL after an error. */
uint32_t *expand_clone(Expansion *e, const Graph *g, const uint32_t *inputs);
uint32_t expand_loop_new(Expansion *e, const Shape *s, LoopKind kind, Dim trip);
bool expand_inside_dim_loop(const Expansion *e);

/* expand_data.c */
bool expand_if_data(Expansion *e);
/* LIMIT: iterations at most, 0 when that is not known; EXACT: there are as many, whatever the data. */
bool expand_while(Expansion *e, const Shape *s, Dim limit, bool exact);

#endif
