/* report.h - what the driver tells people: the collected diagnostics and the report of a compilation. */
#ifndef GCC_PLAN_REPORT_H
#define GCC_PLAN_REPORT_H

#include "compiler.h"

/* ---- diagnostics.c */
/* One more line under the last error: "  com.example::Mystery-1   3 nodes, ..." */
void diag_detail(Compilation *c, const char *format, ...);
/* Errors in order of their place, then notes unless --quiet: "FILE: PLACE: message". */
void diag_print(Compilation *c, FILE *out);
int diag_count(const Compilation *c);
/* An operator that no row describes; collected, and reported by ops_report_missing. */
typedef struct MissingOp {
    const char *domain, *op_type, *reason, *first; /* first: name of the first node */
    int opset, count;
} MissingOp;
int diag_missing(Compilation *c, MissingOp **out);
void diag_missing_add(Compilation *c, const Node *n, const char *reason);
void diag_missing_clear(Compilation *c);
/* "node 'layers.3/Softmax' (Softmax-13)" */
const char *node_place(Compilation *c, const Node *n);

/* ---- report.c: figures that only the late passes know; they fill them in, -1 is unknown. */
typedef struct SignatureReport {
    const char *name;
    int segments, launches;
    int if_nodes, while_nodes; /* of its graphs */
    const char *seams; /* whole lines, indented; NULL: none */
    int seam_count;
} SignatureReport;
typedef struct Report {
    const char *title;      /* "qwen3 decoder"; NULL: the graph's name */
    const char *weights_in; /* external file, or NULL */
    int64_t weights, state, arena, arena_lower, metadata, io; /* bytes by region */
    int signature_count;
    SignatureReport *signatures; /* in the order of c->signatures that are lowered */
    const char *targets;    /* what was compiled for */
    int64_t plan_bytes;
    double seconds;
} Report;
extern Report report; /* of this process's one compilation */
/* The figures that lowering and memory know; the driver calls it after segment. */
void report_fill(Compilation *c);
void report_print(Compilation *c, FILE *out);
void report_json(Compilation *c, FILE *out);
/* --require-single-segment: false, and the seams printed, when a signature (all, when NAME is NULL) has more than one. */
bool report_single_segment(Compilation *c, const char *name, FILE *out);

#endif
