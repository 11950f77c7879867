/* flow.c - the launches of a step in turn: graphs, or single kernels, and what the host decides between them.
 *
 * A signature is a list of launches with blocks around some runs of them, one inside another. A block that a conditional node
 * realises is part of its segment's graph. At a block with a seam, and at every block of an eager step, the host waits, reads
 * the block's condition and goes on behind the block, into it, or into it again. Without blocks that is one pass over the
 * segments. */
#include "internal.h"

/* Where a walk over the launches stands. Numbers are relative to the signature's first launch or block. */
typedef struct walk {
    const plan_signature_record *g;
    bool eager;
    uint32_t at;                           /* next launch */
    uint32_t next;                         /* next block that may begin there: blocks are in order of their begin, outer first */
    uint32_t inside[PLAN_NESTING_LIMIT];   /* blocks that were entered, the innermost last */
    uint32_t depth;
} walk;

static const plan_block_record *block_at(const plan_session *s, const walk *w, uint32_t i) {
    return &s->p->view.blocks[w->g->block + i];
}

/* Whether the block's launches run now, by its condition in the arena. */
static plan_status decide(plan_session *s, const plan_block_record *b, bool *runs) {
    plan_driver *d = s->p->driver;
    uint8_t word = 0;
    plan_status status = d->from_device(d, s->stream, &word, s->base[PLAN_REGION_ARENA] + b->offset, sizeof word);
    *runs = (word != 0) != (b->kind == PLAN_BLOCK_ELSE);
    s->decisions++;
    return status;
}

/* At the end of blocks: back to the begin of a loop that goes on; *AGAIN then is true. */
static plan_status leave_blocks(plan_session *s, walk *w, bool *again) {
    *again = false;
    while (w->depth) {
        uint32_t number = w->inside[w->depth - 1];
        const plan_block_record *b = block_at(s, w, number);
        if (w->at != b->launch + b->launch_count)
            return PLAN_OK;
        plan_status status = b->kind == PLAN_BLOCK_WHILE ? decide(s, b, again) : PLAN_OK;
        if (status)
            return status;
        if (*again) {
            w->at = b->launch;
            w->next = number + 1;
            return PLAN_OK;
        }
        w->depth--;
    }
    return PLAN_OK;
}

/* At the begin of blocks: into them, or behind the first that does not run; *SKIPPED then is true. */
static plan_status enter_blocks(plan_session *s, walk *w, bool *skipped) {
    *skipped = false;
    for (; w->next < w->g->block_count; w->next++) {
        const plan_block_record *b = block_at(s, w, w->next);
        bool runs;
        if (b->launch > w->at)
            return PLAN_OK;
        if (b->launch < w->at || (!w->eager && b->seam == PLAN_NONE))
            continue;
        plan_status status = decide(s, b, &runs);
        if (status)
            return status;
        if (!runs) {
            w->at = b->launch + b->launch_count;
            *skipped = true;
            return PLAN_OK;
        }
        w->inside[w->depth++] = w->next;
    }
    return PLAN_OK;
}

static uint32_t segment_at(const plan_session *s, const walk *w) {
    uint32_t low = w->g->segment, high = w->g->segment + w->g->segment_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->p->view.segments[middle].launch <= w->at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static plan_status launch_segment(plan_session *s, walk *w) {
    plan_driver *d = s->p->driver;
    uint32_t segment = segment_at(s, w);
    plan_status status = d->graph_launch(d, s->stream, s->execs[segment]);
    if (status)
        return status;
    s->graph_launches++;
    w->at += s->p->view.segments[segment].launch_count;
    return PLAN_OK;
}

bool plan_sets_condition(const plan_driver_launch *l) {
    for (uint32_t i = 0; i < l->arg_count; i++)
        if (l->pointers[i] == PLAN_WORD_CONDITION)
            return true;
    return false;
}

static plan_status launch_kernel(plan_session *s, walk *w) {
    plan_driver *d = s->p->driver;
    plan_driver_launch l;
    plan_describe_launch(s->p, w->g->launch + w->at++, s->args, &l);
    if (w->g->block_count && plan_sets_condition(&l))
        return PLAN_OK; /* the host reads the condition itself */
    plan_status status = d->launch(d, s->stream, &l);
    if (!status)
        s->eager_launches++;
    return status;
}

plan_status plan_session_launch(plan_session *s, uint32_t signature, bool eager) {
    walk w = {.g = &s->p->view.signatures[signature], .eager = eager};
    plan_status status = PLAN_OK;
    while (!status) {
        bool moved;
        status = leave_blocks(s, &w, &moved);
        if (!status && !moved && w.at == w.g->launch_count)
            break;
        if (!status && !moved)
            status = enter_blocks(s, &w, &moved);
        if (!status && !moved)
            status = eager ? launch_kernel(s, &w) : launch_segment(s, &w);
    }
    if (!status && !eager)
        s->replays++;
    return status;
}
