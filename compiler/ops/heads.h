/* heads.h - what the attention families share: heads as an axis, caches that grow in place, and the attention launch. */
#ifndef GCC_PLAN_HEADS_H
#define GCC_PLAN_HEADS_H

#include "compiler.h"

/* V [B, S, heads * D] seen as [B, HEADS, S, D], from head FIRST on. */
View heads_split(Compilation *c, const View *v, int64_t first, int64_t heads, int64_t d);
/* V [B, heads, S, D] or [B, S, heads * D], whichever it is, as [B, heads, S, D]. */
View heads_view(Compilation *c, const View *v, int64_t heads, int64_t d);

/* A cache of new rows behind old ones. */
typedef struct Cache {
    View present;      /* [B, heads, P + S, D] */
    int64_t capacity;  /* rows that its buffer has room for */
} Cache;
/* The cache of OUTPUT, [B, heads, P + S, D] = DIMS: the buffer of past input INPUT when alias decided so, else memory of its own,
 * into which the old rows are copied here. INPUT < 0 or absent: no old rows. OUTPUT absent: scratch. */
Cache cache_open(Lower *l, const Node *n, int input, int output, const Dim *dims, DType t);

/* Writes the new rows K and V [B, heads, S, D] as rows PAST.. of KEYS and VALUES, where rows of the batch have lengths of their own
 * (rows_differ) behind each row's; *k and *v become these. One launch. */
void cache_append(Lower *l, const Node *n, const View *keys, const View *values, Dim past, View *k, View *v);

typedef enum LengthKind { LENGTH_EXTENT, LENGTH_LESS_ONE, LENGTH_TOTAL, LENGTH_ROWS /* PAST beyond each row's own length */ } LengthKind;
typedef struct Attend {
    View q, k, v, y;       /* [B, heads, rows, D] */
    View mask;             /* [B, Hq, S, keys]; buffer 0: none */
    View length, sinks;    /* rank 1; buffer 0: none */
    Dim known;             /* what each element of length is, which then has no memory; 0: not known */
    Dim past;              /* rows before the query's, with LENGTH_EXTENT; with LENGTH_ROWS beyond the row's length */
    LengthKind lengths;
    Dim fresh;             /* new keys, with LENGTH_ROWS */
    bool causal, smooth;
    int64_t window;        /* <= 0: none */
    double scale, softcap; /* softcap 0: none */
} Attend;
void attend(Lower *l, const Node *n, const Attend *a);
/* The lengths that input INPUT of N holds: a.length, or a.known. */
void attend_lengths(Lower *l, const Node *n, int input, Attend *a);
/* The operand LEN of a kernel, or what stands for it. */
void attend_length_operand(Kernel *k, const Attend *a);
/* Sets SINK, and the operand SINKS, of a kernel that ends a softmax. */
void attend_sinks(Kernel *k, const Attend *a);
/* What attention computes on its way, into TO [B, Hq, S, keys]: STAGE 0 the scaled product of queries and keys, 1 that capped, 2 with
 * the mask, 3 its softmax. */
void attend_scores(Lower *l, const Node *n, const Attend *a, View to, int stage);

/* Inputs of RotaryEmbedding, which the two domains order differently. */
typedef struct RotaryPorts { int positions, cosine, sine; } RotaryPorts;
RotaryPorts rotary_ports(const Node *n);

/* Whether PAST, old rows of a cache, is another number for each row of the batch. */
bool rows_differ(Compilation *c, Dim past);
/* Old rows PAST of a cache, as a number that is the same for all rows: with rows of their own length, what PAST is beyond such a
 * length; else PAST. 0: it is no such number. */
Dim rows_beyond(Compilation *c, Dim past);
/* NULL, or why input I is no vector with a number for each row of the batch. */
const char *rows_vector(Compilation *c, const Node *n, int i);
/* Whether the rank of an input is not known yet. */
bool heads_unranked(Compilation *c, const Node *n);
/* Constant value of D, or -1 with an error that calls it WHAT. */
int64_t heads_constant(Compilation *c, const Node *n, Dim d, const char *what);
/* A vector by batch: rank 0, [1], [B] or [B, 1] as rank 1, stride 0 where one serves all. */
View batch_vector(Compilation *c, const View *v);
/* MASK broadcast to [B, heads, S, its last dim]. */
View mask_view(Compilation *c, const View *mask, const View *q);
/* Posts what a mask's dims say: its last is TOTAL when it is a symbol, the others broadcast. */
bool mask_fits(Compilation *c, const Node *n, const Value *mask, Dim batch, Dim heads, Dim rows, Dim total);

#endif
