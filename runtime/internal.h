/* internal.h - a plan and a session from inside: the structures, and what the files of the runtime call of each other.
 *
 * plan.c      load and free: target, modules, functions, the load signature
 * weights.c   bytes of region weights and load, from the plan or from the model's own files
 * upload.c    host bytes to the device
 * query.c     what a plan says of itself
 * session.c   open, warm, bind, recapture, close
 * capture.c   launches and conditional blocks of a signature as graphs
 * flow.c      the launches or graphs of a step in turn, with what the host decides between them
 * sampling.c  parameters of the tail, stop tokens
 * step.c      replay, eager, prefill, run, rewind, tokens, time
 * rows.c      rows of a batch with lengths of their own
 * stamps.c    what the blocks of plans with timers say of a step
 * tensor.c    inputs, outputs, states, logits
 */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "container.h"
#include "driver.h"
#include "error.h"
#include "upload.h"

struct plan {
    plan_view view;
    plan_allocator allocator;
    plan_log log;
    void *log_context;
    void *mapping; /* NULL: the bytes are the caller's */
    size_t mapping_bytes;
    uint64_t weights_checksum; /* of section weights, which is read once: by the upload */
    char *folder;  /* of the model's own weight files; NULL: none known */
    plan_driver *driver;
    plan_address base[PLAN_REGION_COUNT]; /* weights and metadata; load while loading; the others 0 */
    plan_driver_module **modules;         /* by module number; view.module_count entries */
    plan_driver_function **functions;     /* by kernel; NULL until it is needed */
    pthread_mutex_t lock;                 /* functions */
    uint8_t *pointers;                    /* by arg: PLAN_WORD_ of driver.h */
    uint32_t decode;                      /* signature, or NONE */
    uint32_t token_binding;               /* decode's token input, or NONE */
    int64_t prefill_limit;
    bool timers;                          /* launches stamp times */
    atomic_int sessions;                  /* open ones */
};

typedef struct plan_bound {
    plan_address address; /* 0: the plan's own buffer */
    plan_address pending; /* given after capture, for the next one; 0: none */
    uint64_t bytes, pending_bytes;
} plan_bound;

struct plan_session {
    plan *p;
    atomic_int busy;
    plan_driver_stream *stream;
    plan_address base[PLAN_REGION_COUNT];
    int64_t *ring;              /* host view of region ring; NULL without one */
    uint64_t *args;             /* by arg of the plan: resolved */
    plan_driver_exec **execs;   /* by segment of the plan */
    plan_bound *bound;          /* by binding */
    int64_t *mirror;            /* the extents table as the host knows it, for checks and for reading outputs */
    int64_t *values;            /* by signature and symbol: of the signature's last step, before it */
    int64_t *step_values;       /* scratch: one for each step record of a signature */
    bool *row_fed;              /* by row: it was fed in the last step */
    uint64_t sampled;           /* tokens in the ring, ever */
    uint32_t last;              /* signature that ran last, or NONE */
    uint32_t stop_count;        /* stop tokens; 0: replays do not wait */
    bool warmed, captured, eager_prefill, token_known, any_bound;
    plan_driver_event *from, *to;
    bool timing;                /* replays record events; from the first plan_session_time on */
    int64_t timed_steps;        /* of the last replay that was timed; 0: none */
    uint64_t device_bytes;
    uint64_t captures, replays, graph_launches, eager_launches, invalidations;
    uint64_t if_nodes, while_nodes; /* conditional nodes in the graphs captured, ever */
    uint64_t decisions;             /* conditions that the host read between launches */
};

#define PLAN_TEXT(p, offset) plan_view_string(&(p)->view, (offset))

void plan_log_text(const plan *p, int level, const char *format, ...) PLAN_PRINTF(3, 4);
/* NAME error, or the number of the signature. */
plan_status plan_find_signature(const plan *p, const char *name, uint32_t *out);
/* Loads the functions of the signature's kernels (all signatures for NONE). Thread-safe. */
plan_status plan_load_functions(plan *p, uint32_t signature);
/* Fills in launch number LAUNCH (of the plan) with ARGS, which is indexed by arg of the plan. */
void plan_describe_launch(const plan *p, uint32_t launch, const uint64_t *args, plan_driver_launch *out);
/* The metadata on the device came from the plan's bytes: refuses unless they carry the signature's fingerprint. */
plan_status plan_check_metadata(const plan *p, uint32_t signature);
plan_status plan_upload_weights(plan *p);
/* The box of SYMBOL-with-SLOT in a signature, or NULL. */
const plan_box_record *plan_find_box(const plan *p, const plan_signature_record *s, uint32_t slot);

/* Every public function of a session is between these. enter: ARGUMENT, BUSY. */
plan_status plan_session_enter(plan_session *s);
plan_status plan_session_leave(plan_session *s, plan_status status);
/* The values of all symbols before a step of SIGNATURE, into the session's table. */
plan_status plan_session_fill_values(plan_session *s, uint32_t signature);
int64_t *plan_session_values(plan_session *s, uint32_t signature);
plan_status plan_session_write_slot(plan_session *s, uint32_t slot, int64_t value);
/* COUNT words of the extents table from SLOT on, and the host's mirror of them. */
plan_status plan_session_write_slots(plan_session *s, uint32_t slot, const int64_t *values, uint32_t count);
/* After a wait: whether the tail met a stop token. */
bool plan_session_is_stopped(const plan_session *s);
/* Lets decode go on behind a stop token; waits when there are stop tokens. */
plan_status plan_session_clear_stop(plan_session *s);
/* What the tail was told, again, after the state was cleared. */
plan_status plan_session_restore_sampler(plan_session *s);
plan_status plan_session_finish(plan_session *s); /* synchronise and check */
/* capture.c: the graphs of all segments of a signature, into the session's table. Drops nothing on failure. */
plan_status plan_session_capture_signature(plan_session *s, uint32_t signature);
/* flow.c: whether a launch does nothing but set the condition of a node; all launches of one step, as graphs or one by one. */
bool plan_sets_condition(const plan_driver_launch *l);
plan_status plan_session_launch(plan_session *s, uint32_t signature, bool eager);
/* stamps.c: before a step of a plan with timers, those of launches that may not run in it; else nothing. */
plan_status plan_session_clear_stamps(plan_session *s, uint32_t signature);
/* Where a binding's bytes are: the plan's buffer or the caller's. */
plan_address plan_session_address(const plan_session *s, uint32_t binding);
plan_status plan_find_binding(const plan *p, uint32_t signature, const char *name, int kind, uint32_t *out);
/* COUNT ids into row ROW of an input that takes tokens. */
plan_status plan_session_put_token(plan_session *s, uint32_t binding, size_t row, const int64_t *ids, size_t count);
plan_status plan_session_check_token(const plan_session *s, const char *what, size_t place, int64_t id);
/* A checked prompt, in chunks: into ROW alone, where rows have lengths of their own. */
plan_status plan_session_feed_prompt(plan_session *s, uint32_t row, const int64_t *ids, size_t n);

/* rows.c; each does nothing where rows have one length. */
int64_t plan_session_longest_row(const plan_session *s);
plan_status plan_session_feed_row(plan_session *s, uint32_t row, int64_t count);
/* Before a step in which no row is fed more than MOST tokens. Errors: STATE. */
plan_status plan_session_prepare_rows(plan_session *s, int64_t most);
void plan_session_advance_rows(plan_session *s); /* in the mirror, as the device does */
/* Rows beyond POSITION, or ALL, get that length. */
plan_status plan_session_set_back_rows(plan_session *s, int64_t position, bool all);
plan_status plan_session_restore_rows(plan_session *s); /* the device's words become those of the mirror */
plan_status plan_session_row_fed(const plan_session *s, int64_t row); /* RANGE, STATE: it has no logits of the last step */

#endif
