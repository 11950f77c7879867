/* extent.h - extents that a kernel counts (NonZero, Compress, Unique, NonMaxSuppression): a symbol of class data, made once for
 * a node and found again in its output's dims, and the word of the extents table into which the kernel writes the count. */
#ifndef GCC_PLAN_EXTENT_H
#define GCC_PLAN_EXTENT_H

#include "lower.h"

/* The counted symbol that D is made of; 0: none. */
static inline Sym extent_symbol(Compilation *c, Dim d)
{
    for (Sym s = c->symbol_count; d && s >= 1; s--) /* a bound may mention counts of earlier nodes */
        if (c->symbols[s].class == SYM_DATA && dim_mentions(c, d, s)) return s;
    return 0;
}

/* The dim that node N counts along AXIS of its output I, at most BOUND; 0 while the bound is not known. */
static inline Dim extent_counted(Compilation *c, const Node *n, int i, int axis, Dim bound)
{
    const Value *v = node_output(c, n, i);
    int64_t most = INT64_MAX;
    if (v && v->rank > axis && extent_symbol(c, v->dims[axis])) return v->dims[axis];
    if (!bound) return 0;
    const Sym s = sym_new(c, arena_text(&c->arena, "%s.count", n->name), false);
    dim_is_const(c, bound, &most);
    const uint32_t proof = proof_add(c, "data", n, 0, "%s is counted by the node, at most %s", c->symbols[s].name, dim_text(c, bound));
    c->symbols[s].class = SYM_DATA;
    c->symbols[s].hi = most;
    c->symbols[s].proof = proof;
    return most < INT64_MAX ? dim_symbol(c, s) : dim_op(c, DIM_MIN, dim_symbol(c, s), bound);
}

/* The word for the count in dim D of an output. Where equations know the count already, or it can only be one value, nobody
 * reads the word, and it is a temporary. */
static inline View extent_word(Lower *l, const Node *n, Dim d)
{
    const Sym s = extent_symbol(l->c, d);
    const Dim one = dim_const(l->c, 1);
    if (!s || l->c->symbols[s].slot < 0)
        return lower_temporary(l, arena_text(&l->c->arena, "%s count", n->name), DT_I64, 1, &one);
    View v = view_dense_new(l, extents_buffer(l->c), DT_I64, 1, &one);
    v.offset = dim_const(l->c, l->c->symbols[s].slot);
    return v;
}

#endif
