/* proofs.h - the proof checker from inside: what proofs.c gives to the rules of operators (proof_rules*.c). */
#ifndef PLAN_PROOFS_H
#define PLAN_PROOFS_H

#include "poly.h"

/* What the plan claims of a value, over the symbols that are not derived. */
typedef struct proof_value {
    int ranked, made;    /* ranked: dims are known; made: a node before this one makes it, or it is given */
    uint32_t rank;
    poly dims[PLAN_RANK_LIMIT];
    int has_contents;
    uint32_t count;
    poly *contents;
} proof_value;

typedef struct proof_checker proof_checker;

/* One node while its rule runs. */
typedef struct proof_node {
    proof_checker *c;
    poly_table *t;
    const plan_graph_node_record *record;
    const char *name, *op; /* op: "Concat", "com.microsoft::MatMulNBits" */
    int version;
    const char *attributes;
    const char *rule;      /* for messages */
    int failed, unknown;   /* unknown: something that the rule needs is not known */
    uint32_t dims_given, contents_given; /* bit by output */
} proof_node;

typedef void (*proof_rule)(proof_node *n);
typedef struct proof_row { const char *op; proof_rule rule; const char *text; } proof_row;
/* Tables of rules; each ends with an op of NULL. */
extern const proof_row proof_rules_shape[], proof_rules_math[], proof_rules_model[], proof_rules_control[];

/* Inputs and outputs count from 0; NULL: absent, or its dims are not known (then `unknown` is set for inputs). */
const proof_value *proof_in(proof_node *n, uint32_t i);
const proof_value *proof_out(proof_node *n, uint32_t i);
int proof_has_in(const proof_node *n, uint32_t i);  /* given, known or not */
uint32_t proof_inputs(const proof_node *n);
uint32_t proof_outputs(const proof_node *n);

/* Attributes. Lists hold at most PROOF_LIST numbers. */
enum { PROOF_LIST = 16 };
int64_t proof_int(const proof_node *n, const char *name, int64_t otherwise);
int proof_ints(const proof_node *n, const char *name, int64_t *out); /* how many; -1: not given */
int proof_text(const proof_node *n, const char *name, const char *expected); /* 1: it is this */
const char *proof_attribute(const proof_node *n, const char *name, size_t *length); /* NULL: not given */

/* Requires a == b; the message says where they differ. */
void proof_equal(proof_node *n, poly expected, poly found, const char *what, uint32_t at);
void proof_fail(proof_node *n, const char *expected, const char *found);
void proof_rank(proof_node *n, const proof_value *v, uint32_t rank, const char *what);
/* The rule's result for output I. A dim of 0 is one that the rule does not know. */
void proof_give(proof_node *n, uint32_t i, uint32_t rank, const poly *dims);
void proof_give_like(proof_node *n, uint32_t i, const proof_value *v);
void proof_give_contents(proof_node *n, uint32_t i, uint32_t count, const poly *contents);

int proof_axis(proof_node *n, int64_t axis, uint32_t rank, uint32_t *out); /* 1 after a failure */
/* One contents element that is a number. */
int proof_number(proof_node *n, const proof_value *v, uint32_t i, int64_t *out);
/* Broadcasts V into RANK dims that begin as 1s (numpy's rule); 1 after a failure. */
int proof_broadcast(proof_node *n, const proof_value *v, uint32_t rank, poly *dims);
poly proof_product(proof_node *n, const proof_value *v, uint32_t from, uint32_t to);
poly proof_const(proof_node *n, int64_t value);
/* Room for COUNT polynomials until the checker ends. */
poly *proof_room(proof_node *n, uint32_t count);
/* States that belong to the loop of number LOOP: what its LoopEnter said. NULL when there was none. */
const plan_graph_node_record *proof_loop(proof_node *n, int64_t loop);
const proof_value *proof_value_of(proof_node *n, uint32_t link);
/* How two polynomials compare: -1, 0 and 1 when that is certain, 2 when not. */
int proof_compare(proof_node *n, poly a, poly b);

/* proof_facts.c: symbols, step map, states, values, buffers. BY_NAME gives graph value + 1 by string, or 0. */
typedef struct proof_facts {
    const plan_view *v;
    poly_table *t;
    FILE *out;
    const proof_value *values;
    const poly *symbols;
    const uint32_t *by_name;
    uint32_t failures, *now; /* now: also counted here */
} proof_facts;
void plan_check_facts(proof_facts *f);
/* proof_rows.c: rows with lengths of their own. Nothing where the plan has none. */
void plan_check_rows(proof_facts *f);

#endif
