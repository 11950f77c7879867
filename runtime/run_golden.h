/* run_golden.h - reference answers, as plan-run --verify reads them. */
#ifndef PLAN_RUN_GOLDEN_H
#define PLAN_RUN_GOLDEN_H

#include "run.h"

#define RUN_TOP 10

/* Reference logits of one step of the first prompt: all of them, or the best ones with their ids. */
typedef struct run_reference {
    size_t step;
    size_t count;
    float *values;
    int64_t *ids; /* NULL: values are columns 0 .. count - 1 */
} run_reference;

typedef struct run_golden {
    run_ids *prompts, *tokens; /* one for each prompt */
    size_t count;              /* of prompts; the next two equal it once all is read */
    size_t token_rows, margin_rows;
    double **margins;          /* by prompt and token */
    run_reference *references;
    size_t reference_count;
} run_golden;

/* PATH: a folder with prompts.txt, tokens.txt, margins.txt and logits_NNN.pb, or a file of lines
 * "prompt<TAB>ids" and "step N<TAB>id:logit ..." with the best logits in order. 0, or 1 after a message. */
int run_golden_read(const char *path, run_golden *out);
void run_golden_free(run_golden *g);

#endif
