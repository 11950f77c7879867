/* recipe.h - what the files of the recipe share: recipe_yaml.c reads, recipe.c applies, recipe_print.c prints. */
#ifndef GCC_PLAN_RECIPE_H
#define GCC_PLAN_RECIPE_H

#include "compiler.h"

/* A name with at most one {N}, which stands for the digits of a layer's number, or {*}, which stands for text with a digit. */
typedef enum { PATTERN_PLAIN, PATTERN_NUMBER, PATTERN_ANY } PatternKind;
typedef struct Pattern { const char *text; size_t before, after; PatternKind kind; } Pattern; /* bytes before, after the braces */
Pattern pattern_of(const char *text);
/* What the braces stand for, in the arena ("" without any); NULL: no match. */
const char *pattern_match(Compilation *c, const Pattern *p, const char *name);
const char *pattern_fill(Compilation *c, const Pattern *p, const char *held);

/* FEED_CALLER for "caller"; false when the name is none. */
bool feed_from_name(const char *name, Feed *out);
/* The input or output of the main graph with this name; 0: none. */
uint32_t graph_input_named(const Graph *g, const char *name);
uint32_t graph_output_named(const Graph *g, const char *name);

/* The input holds data: it becomes a constant of the graph, and is none of its inputs any more. */
void input_to_constant(Compilation *c, uint32_t input);

/* onnx_bind.c: what --bind and the recipe's `bind` say. False after errors. */
bool binds_apply(Compilation *c);
/* Whether the command line binds that input, from its entry FROM on. */
bool bind_overridden(const Compilation *c, int from, const char *input);

#endif
