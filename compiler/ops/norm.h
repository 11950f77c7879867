/* norm.h - the layer norm for rows of other families. */
#ifndef GCC_PLAN_NORM_H
#define GCC_PLAN_NORM_H

#include "compiler.h"

/* Output 0 = layer norm of X over its last axis, times input GAMMA, plus input BETA; the node's epsilon. One launch. */
void norm_layer(Lower *l, Node *n, const View *x, int gamma, int beta);

#endif
