/* emit.h - what emit.c and emit_tables.c share. */
#ifndef GCC_PLAN_EMIT_H
#define GCC_PLAN_EMIT_H

#include "lower.h"
#include "dim.h"
#include "../plans/writer.h"

typedef struct Emitter {
    Compilation *c;
    plan_writer *w;
    uint32_t *symbol_record;  /* by symbol; PLAN_NONE: not written */
    uint32_t *equation_record; /* by equation that waits: the derived symbol that is zero when it holds; PLAN_NONE: not written */
    uint32_t *buffer_record;  /* by buffer */
    int *module_of_kernel;    /* by kernel, 0-based */
} Emitter;

/* emit_tables.c: names and facts, for people and for sessions. */
void emit_symbols(Emitter *e);
void emit_equations(Emitter *e);
void emit_proofs(Emitter *e);
void emit_buffers(Emitter *e);
void emit_states(Emitter *e);
void emit_bindings(Emitter *e, const Signature *s, plan_signature_record *r);
void emit_nodes(Emitter *e, const Signature *s, plan_signature_record *r);
void emit_values(Emitter *e, const Signature *s, plan_signature_record *r);
void emit_expr(Emitter *e, Dim d, uint32_t *first, uint32_t *count);
/* emit_graph.c: the graph, for the proof checker. */
void emit_graph(Emitter *e);
uint32_t proof_record(uint32_t proof); /* 1-based -> record, NONE for 0 */

#endif
