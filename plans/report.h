/* report.h - what plan-inspect prints about a plan. All functions take a checked view and print to OUT; the caller
 * looks at ferror(OUT). */
#ifndef PLAN_REPORT_H
#define PLAN_REPORT_H

#include "../runtime/container.h"

#include <stdio.h>

/* report.c: the summary, then a table for each signature. FILE_NAME is what the user typed. */
void plan_report_summary(const plan_view *view, const char *file_name, FILE *out);
/* memory.c: every region and buffer, with the peak and its lower bound. 1 without memory. */
int plan_report_memory(const plan_view *view, FILE *out);
/* why.c: the chain of facts behind NAME: a symbol, value, input, output, state or node. 1 when there is no such name. */
int plan_report_why(const plan_view *view, const char *name, FILE *out);
/* json.c: every fact. */
void plan_report_json(const plan_view *view, const char *file_name, FILE *out);

/* proofs.c: that the claimed dims, contents, classes and state pairs fit the graph. 0: they do, 1: they do not, or an operator
 * without a rule stands in the way of a growing dim, 2 without memory. */
int plan_report_proofs(const plan_view *view, FILE *out);
/* audit.c: each launch's contract and how each clause of it was established. 0: all are, 1: one is assumed or fails, 2
 * without memory. */
int plan_report_audit(const plan_view *view, FILE *out);

/* show.c: pieces that these share. */
const char *plan_show_bytes(uint64_t bytes, char text[static 24]);  /* "4.1 MB" */
void plan_show_expr(const plan_view *view, uint32_t first, uint32_t count, FILE *out); /* "past + seq" */
void plan_show_box(const plan_view *view, const plan_signature_record *s, FILE *out);  /* "batch = 1, past 0..15" */
void plan_show_chain(const plan_view *view, uint32_t proof, FILE *out);  /* one line a fact, indented */
void plan_show_seams(const plan_view *view, const plan_signature_record *s, FILE *out);
void plan_show_conditional(const plan_view *view, const plan_signature_record *s, FILE *out); /* how many nodes of each kind */
void plan_show_blocks_at(const plan_view *view, const plan_signature_record *s, uint32_t launch, FILE *out);
const char *plan_show_plural(uint64_t count); /* "s", or "" for 1 */

#endif
