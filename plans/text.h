/* text.h - the text form of a plan: assemble(print(plan)) is the same bytes. FORMAT.md has its grammar. */
#ifndef PLAN_TEXT_H
#define PLAN_TEXT_H

#include "../runtime/container.h"
#include "writer.h"

#include <stdio.h>

/* Prints every section and record of VIEW to OUT. 0, or 1 when there is no memory or OUT refuses a write. */
int plan_text_print(const plan_view *view, FILE *out);

/* Prints TEXT in double quotes with escapes, as the text form does. */
void plan_text_quote(FILE *out, const char *text);

/* Adds what TEXT of SIZE bytes says to the new writer W. It is not validated: a bad plan can be made for tests.
 * 0, or 1 and ERROR holds "LINE:COLUMN: what; expected, found". */
int plan_text_assemble(const char *text, size_t size, plan_writer *w, char *error, size_t error_size);

#endif
