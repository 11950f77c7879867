/* expand_loop.h - what ops/control.c and expand_data.c share: an If, Loop or Scan on its way to nodes of the main graph. */
#ifndef GCC_PLAN_EXPAND_LOOP_H
#define GCC_PLAN_EXPAND_LOOP_H

#include "expand.h"

typedef struct Shape { /* of a Loop or Scan */
    const Graph *body;
    int states, scan_inputs, scan_outputs, first_state, first_output; /* first_*: in the body's inputs and outputs */
    int input_axes[MAX_LOOP_SCANS], output_axes[MAX_LOOP_SCANS];
    bool input_reverse[MAX_LOOP_SCANS], output_reverse[MAX_LOOP_SCANS];
    const uint32_t *initial;  /* of states, then scanned inputs */
    bool is_loop;             /* body inputs begin with the iteration number and a condition */
} Shape;

/* ops/control.c */
uint32_t expand_loop_new(Expansion *e, const Shape *s, LoopKind kind, Dim trip);
bool expand_inside_dim_loop(const Expansion *e);

/* expand_data.c */
bool expand_if_data(Expansion *e);
/* LIMIT: iterations at most, 0 when that is not known; EXACT: there are as many, whatever the data. */
bool expand_while(Expansion *e, const Shape *s, Dim limit, bool exact);

#endif
