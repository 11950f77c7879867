/* graph.h - what the graph's own files share beyond compiler.h. */
#ifndef GCC_PLAN_GRAPH_H
#define GCC_PLAN_GRAPH_H

#include "compiler.h"

/* Counts the uses of every value anew: inputs of nodes that are not dead, and graph outputs. The driver calls it after
 * each pass, so passes need not keep the counts. */
void graph_count_uses(Compilation *c, Graph *g);
/* Elements of a constant, from its dims; false when a dim is not a known number. */
bool value_count(Compilation *c, const Value *v, int64_t *count);

/* ---- of the text form */
extern const char *const symbol_class_names[]; /* by SymClass */
bool text_is_word(const char *s);              /* may stand without quotes */

#endif
