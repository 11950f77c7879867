/* gqa.h - what the lowerings of GroupQueryAttention share: for rows of any number, and for one. */
#ifndef GCC_PLAN_GQA_H
#define GCC_PLAN_GQA_H

#include "ops/heads.h"

enum { GQ_QUERY, GQ_KEY, GQ_VALUE, GQ_PAST_KEY, GQ_PAST_VALUE, GQ_LENGTHS, GQ_TOTAL, GQ_COS, GQ_SIN, GQ_POSITIONS, GQ_BIAS, GQ_SINKS,
       GQ_K_SCALE, GQ_V_SCALE, GQ_Q_NORM, GQ_K_NORM };

typedef struct Sizes {
    int64_t heads, kv_heads;
    Dim batch, rows, past, total, head;
    Dim fresh;      /* new keys: as many as rows, or none: then the past is another layer's present, complete already */
    bool packed;
} Sizes;
typedef struct Parts { View q, k, v; int64_t head; bool append; } Parts; /* [B, heads, S, D]; k, v: when they are appended */

/* gqa.c: sizes by the node's inputs and attributes; false, and an error, when they do not agree. */
bool gqa_sizes(Compilation *c, const Node *n, Sizes *z);
/* gqa_one_row.c: whether attention_one.cu takes the node in this signature; what only memory tells is given: buffers of states are aligned. */
bool gqa_one_row_fits(Lower *l, const Node *n);
void gqa_one_row(Lower *l, const Node *n, const Sizes *z, const Parts *p, const Cache *keys, const Cache *values, const Attend *a);

#endif
