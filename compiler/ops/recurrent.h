/* recurrent.h - what the rows of recurrent.c share with the kernel of a decode step (linear_step.c). */
#ifndef GCC_PLAN_RECURRENT_H
#define GCC_PLAN_RECURRENT_H

#include "compiler.h"

enum { LA_QUERY, LA_KEY, LA_VALUE, LA_PAST, LA_DECAY, LA_BETA }; /* inputs of LinearAttention */
enum { CC_INPUT, CC_WEIGHT, CC_BIAS, CC_PAST };                  /* of CausalConvWithState */

typedef struct Linear {
    int64_t q_heads, kv_heads;
    int64_t k_heads; /* keys may have fewer heads than values; 0 not known yet */
    bool gated, delta;
    Dim batch, tokens, key, value; /* key, value: sizes of a head */
} Linear;
/* False after an error; all that the dims of N's inputs say so far. */
bool linear_sizes(Compilation *c, const Node *n, Linear *z);
/* The operands and numbers of LinearAttention's kernels, but query, key, value and the state; KEY and VALUE: z->key, z->value. */
void linear_operands(Lower *l, Kernel *k, const Node *n, const Linear *z, int64_t key, int64_t value);
/* The new state: the old one's buffer where alias decided so, else memory of its own; the operands (behind PREFIX) OLD and NEW, and
 * HAS_OLD: 0 none, 1 a state apart, 2 it is in NEW. Returns the new one. */
View state_operands(Lower *l, Kernel *k, const Node *n, const char *prefix, int input, int output, DType t, int rank, const Dim *dims);
bool recurrent_has(const Node *n, int output);

/* A convolution's positions from tap to tap, and whether it is followed by SiLU. */
int64_t conv_dilation(const Node *n);
bool conv_silu(const Node *n);

/* linear_step.c: true when linear_step.cu makes the node in this signature, and was launched. */
bool linear_step(Lower *l, const Node *n, const Linear *z, int64_t key, int64_t value);

#endif
