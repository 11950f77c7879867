/* fuse.h - what the parts of the pass fuse ask of nodes. */
#ifndef GCC_PLAN_FUSE_H
#define GCC_PLAN_FUSE_H

#include "lower.h"

enum { MAX_LEAVES = 16 }; /* operands of one elementwise group */

bool fuse_pointwise(const Node *n); /* its text is all there is to it */
bool fuse_same_dims(Compilation *c, const Value *a, const Value *b);
bool fuse_reads_state(Compilation *c, const Node *n);
uint32_t fuse_group(Compilation *c, uint32_t node); /* the node whose kernel computes it, when each is fused as decided so far */

/* fuse_rows.c: sets fused_into and epilogue of what kernels of rows (OP_BESIDE) compute besides. LEAVES: operands of the group
 * that ends in a node, by node. */
void fuse_row_kernels(Compilation *c, const int *leaves);
/* fuse_filter.c: sets together of all that stands between a convolution and the recurrence that alone reads it. */
void fuse_filters(Compilation *c);

#endif
