/* tuples.h - index texts for gathers and scatters: places in an operand that indices name. */
#ifndef GCC_PLAN_TUPLES_H
#define GCC_PLAN_TUPLES_H

#include "compiler.h"

static inline const char *text_add_term(Compilation *c, const char *text, const char *index, const char *operand, int axis)
{
    return arena_text(&c->arena, "%s + %s * %s_S%d", text, index, operand, axis);
}

static inline const char *index_name(Compilation *c, int i)
{
    return arena_text(&c->arena, "i%d", i);
}

/* Statements that read a tuple of `size` indices at `base` into k0.., for the axes of `operand` from `first` on. */
static inline const char *tuple_picks(Compilation *c, const char *base, int last, const char *operand, int first, int size)
{
    const char *text = "";
    for (int j = 0; j < size; j++)
        text = arena_text(&c->arena, "%s idx k%d = I_LD(%s + %d * I_S%d); if (k%d < 0) k%d += (%s_D%d);"
                          " inside = inside && k%d >= 0 && k%d < (%s_D%d);", text, j, base, j, last, j, j, operand,
                          first + j, j, j, operand, first + j);
    return text;
}

/* Place in `operand`: batch axes, then the tuple, then the rest, whose first index is i`rest`. */
static inline const char *tuple_place(Compilation *c, const char *operand, int rank, int batch, int size, int rest)
{
    const char *text = arena_text(&c->arena, "%s_OFF", operand);
    for (int i = 0; i < rank; i++) {
        const char *name = i < batch ? index_name(c, i)
                         : i < batch + size ? arena_text(&c->arena, "k%d", i - batch) : index_name(c, rest + i - batch - size);
        text = text_add_term(c, text, name, operand, i);
    }
    return text;
}

static inline const char *tuple_base(Compilation *c, int axes)
{
    const char *base = "I_OFF";
    for (int i = 0; i < axes; i++) base = text_add_term(c, base, index_name(c, i), "I", i);
    return base;
}

#endif
