/* plan.h - load, warm, capture and replay a compiled plan.
 *
 * A plan is the file that gcc-plan writes. It is immutable and may be shared by
 * any number of sessions and threads. A session is one sequence (or batch): its
 * arena, state, inputs, outputs, extents and executable graphs. A session is used
 * by one thread at a time; a call on a session that is inside another call returns
 * PLAN_ERROR_BUSY.
 *
 * Every function returns a status and never prints, exits or aborts. On an error
 * the text is in plan_error_message() of the calling thread until its next call
 * into this library: where, what, expected, found.
 *
 * A plan holds executable code. plan_load verifies checksums, not authorship: load
 * only plans from a source that you would run a program from.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLAN_API __attribute__((visibility("default")))
#else
#define PLAN_API
#endif

#define PLAN_VERSION_MAJOR 0
#define PLAN_VERSION_MINOR 1

/* Statuses are pinned: a number is never reused. */
typedef enum plan_status {
    PLAN_OK = 0,
    PLAN_ERROR_ARGUMENT = 1,   /* a null or impossible argument */
    PLAN_ERROR_FILE = 2,       /* the file cannot be opened, read or mapped */
    PLAN_ERROR_FORMAT = 3,     /* not a plan, damaged, or of another version */
    PLAN_ERROR_TARGET = 4,     /* no code for this target, or no driver */
    PLAN_ERROR_MEMORY = 5,     /* host or device memory ran out */
    PLAN_ERROR_DRIVER = 6,     /* the driver refused a call */
    PLAN_ERROR_STATE = 7,      /* called in the wrong order (not warmed, not captured ...) */
    PLAN_ERROR_NAME = 8,       /* no such input, output, state or signature */
    PLAN_ERROR_RANGE = 9,      /* a length, position or size outside the signature */
    PLAN_ERROR_CAPACITY = 10,  /* the state is full */
    PLAN_ERROR_BUSY = 11,      /* the session is inside another call */
    PLAN_ERROR_METADATA = 12,  /* the metadata was made for another signature */
    PLAN_ERROR_BINDING = 13    /* a bound address changed or was never bound */
} plan_status;

/* Element types have ONNX's numbers (TensorProto.DataType). In inputs, outputs and states an element below 8 bits takes a
 * byte of its own (as in ml_dtypes and numpy): U4, U2 the number; I4, I2 with the sign extended (bits above
 * the sign are written, not read); F4E2M1 its code, 0 to 15. */
typedef enum plan_dtype {
    PLAN_F32 = 1, PLAN_U8 = 2, PLAN_I8 = 3, PLAN_U16 = 4, PLAN_I16 = 5, PLAN_I32 = 6,
    PLAN_I64 = 7, PLAN_BOOL = 9, PLAN_F16 = 10, PLAN_F64 = 11, PLAN_U32 = 12,
    PLAN_U64 = 13, PLAN_BF16 = 16, PLAN_F8E4M3FN = 17, PLAN_F8E4M3FNUZ = 18, PLAN_F8E5M2 = 19,
    PLAN_F8E5M2FNUZ = 20, PLAN_U4 = 21, PLAN_I4 = 22, PLAN_F4E2M1 = 23, PLAN_F8E8M0 = 24, PLAN_U2 = 25,
    PLAN_I2 = 26
} plan_dtype;

typedef struct plan plan;
typedef struct plan_session plan_session;

/* A caller's host allocator; the library's own host structures only. Both must be set or neither. */
typedef struct plan_allocator {
    void *(*allocate)(void *context, size_t bytes);
    void (*release)(void *context, void *pointer);
    void *context;
} plan_allocator;

/* Level: 0 error, 1 warning, 2 progress, 3 detail. Called on the thread that is inside the library. */
typedef void (*plan_log)(void *context, int level, const char *text);

typedef struct plan_options {
    size_t size;              /* sizeof(plan_options), set by PLAN_OPTIONS_INIT */
    const char *target;       /* "host", "cuda", or NULL: cuda where a driver, a device and code for it exist, else host */
    int device;               /* CUDA device ordinal */
    int threads;              /* host target: worker threads; 0 = one for each core */
    plan_log log;             /* NULL = silent */
    void *log_context;
    plan_allocator allocator; /* zero = malloc and free */
    const char *weights_folder; /* for plans with --weights=reference: where the model's files lie; NULL = the plan's own folder */
    uint64_t fail_call;       /* host target, tests: the n-th driver call from now fails (0 = none) */
} plan_options;
#define PLAN_OPTIONS_INIT { sizeof(plan_options), NULL, 0, 0, NULL, NULL, { NULL, NULL, NULL }, NULL, 0 }

/* Counters of a session, or of the driver; all monotonic, except the bytes. */
typedef struct plan_counters {
    uint64_t captures;            /* graphs instantiated */
    uint64_t replays;             /* steps run by a graph */
    uint64_t graph_launches;      /* graphs launched (one for each segment of a step) */
    uint64_t eager_launches;      /* kernels launched without a graph */
    uint64_t invalidations;       /* graphs dropped because an address or option changed */
    uint64_t driver_allocations;  /* device or pinned allocations by this plan's driver, since load */
    uint64_t driver_synchronisations;
    uint64_t driver_copies;       /* copies that the host issued */
    uint64_t device_bytes;        /* device bytes that this session holds now */
    uint64_t if_nodes;            /* IF nodes in the graphs that were captured */
    uint64_t while_nodes;         /* WHILE nodes in them */
    uint64_t decisions;           /* conditions that the host read at seams, and in eager steps */
} plan_counters;

/* What a plan's buffer looks like from outside. Strings live as long as the plan. */
typedef struct plan_tensor {
    const char *name;
    plan_dtype dtype;
    int rank;
    int64_t dims[8];     /* present extents in a session; upper bounds from plan_* queries */
    int64_t strides[8];  /* in elements: buffers are laid out for the capacity */
    size_t bytes;        /* size of the whole buffer */
    int feed;            /* inputs: 0 the caller writes it; else PLAN_FEED_*: the device writes it in the steady state */
} plan_tensor;
enum { PLAN_FEED_CALLER = 0, PLAN_FEED_TOKEN = 1, PLAN_FEED_ONES = 2, PLAN_FEED_POSITION = 3,
       PLAN_FEED_LENGTH = 4, PLAN_FEED_WRITE_INDEX = 5 };

/* The text of the last error on this thread; "" after a success. Valid until the thread's next call. */
PLAN_API const char *plan_error_message(void);
PLAN_API const char *plan_status_name(plan_status status);
PLAN_API const char *plan_version(void);

/* Maps and checks PATH, loads code and weights onto the device. On failure *OUT is NULL.
 * Errors: ARGUMENT, FILE, FORMAT, TARGET, MEMORY, DRIVER. Thread-safe. */
PLAN_API plan_status plan_load(const char *path, const plan_options *options, plan **out);
/* The same from memory; BYTES must stay valid and unchanged until plan_free. */
PLAN_API plan_status plan_load_memory(const void *bytes, size_t size, const plan_options *options, plan **out);
/* Frees the plan. NULL is allowed. All sessions must be closed before: otherwise STATE, and nothing is freed. */
PLAN_API plan_status plan_free(plan *p);

PLAN_API const char *plan_target(const plan *p);       /* "host", or "sm_90a (NVIDIA H200)" and the like */
PLAN_API int64_t plan_capacity(const plan *p);         /* rows of the growing state; 0 = nothing grows */
PLAN_API int64_t plan_prefill_limit(const plan *p);    /* longest prefill chunk, of any signature; 0 = no prefill signature */
PLAN_API int64_t plan_rows(const plan *p);             /* rows of the batch with lengths of their own; 0 = all have one */
PLAN_API int plan_has_sampling(const plan *p);         /* the sampling tail: 0 none, 1 greedy, 2 plan_session_set_sampling */
/* Names of the signatures, 0 to plan_signature_count - 1; NULL for another index. They live as long as the plan. Thread-safe. */
PLAN_API int plan_signature_count(const plan *p);
PLAN_API const char *plan_signature_name(const plan *p, int index);
PLAN_API plan_status plan_weight_bytes(const plan *p, uint64_t *out); /* device bytes shared by all sessions */
PLAN_API int plan_input_count(const plan *p, const char *signature);
PLAN_API plan_status plan_input(const plan *p, const char *signature, int index, plan_tensor *out);
PLAN_API int plan_output_count(const plan *p, const char *signature);
PLAN_API plan_status plan_output(const plan *p, const char *signature, int index, plan_tensor *out);
PLAN_API int plan_state_count(const plan *p);
PLAN_API plan_status plan_state(const plan *p, int index, plan_tensor *out);
/* The axis of a growing state that holds one row for each position, of which only those before the session's position
 * are valid; -1 for a state of fixed size, and where P or INDEX is wrong. Thread-safe. */
PLAN_API int plan_state_axis(const plan *p, int index);
/* Writes the launches and bytes read and written in one step at the given position; for reports. */
PLAN_API plan_status plan_step_cost(const plan *p, const char *signature, int64_t position, int64_t tokens,
                                    uint64_t *launches, uint64_t *bytes);

/* Opens a session: all its memory is allocated here and never again. State starts as zeros, position 0.
 * STREAM is a CUstream (NULL: the session makes its own); the host target ignores it. */
PLAN_API plan_status plan_session_open(plan *p, void *stream, plan_session **out);
/* Loads functions and touches what a first launch would load lazily. Executes nothing of the model; no state changes. */
PLAN_API plan_status plan_session_warm(plan_session *s);
/* Builds and instantiates one graph for each segment of each signature. Executes nothing. Requires warm. */
PLAN_API plan_status plan_session_capture(plan_session *s);
/* Waits for the session's work, then frees it. NULL is allowed. */
PLAN_API plan_status plan_session_close(plan_session *s);

/* Feeds N token ids and computes the logits of the last. N may exceed the prefill range: it is split into chunks, each for the prefill
 * signature that takes most of what is left, of several the one with the shorter range ("prefill", or "prefill_long" where the plan has it).
 * With a sampling tail, the token that follows is sampled on the device. Errors: RANGE (id below 0), CAPACITY, STATE. */
PLAN_API plan_status plan_session_prefill(plan_session *s, const int64_t *ids, size_t n);
/* Replays STEPS decode steps without the host in between. With a sampling tail each step takes the token of the one
 * before; without one only STEPS = 1 is allowed and the token is the one that plan_session_set_token wrote.
 * Asynchronous: returns when the launches are queued; with stop tokens (plan_session_set_stop) when the steps are done.
 * Errors: CAPACITY (nothing is launched), STATE, METADATA. */
PLAN_API plan_status plan_session_replay(plan_session *s, int64_t steps);
/* The same launches without graphs, one by one. */
PLAN_API plan_status plan_session_eager(plan_session *s, int64_t steps);
/* 1: prefill uses eager launches too (for comparison); 0: graphs. */
PLAN_API plan_status plan_session_set_eager(plan_session *s, int eager);
/* Runs SIGNATURE once; SYMBOLS are the values of its ranged symbols that the caller decides (name, value pairs).
 * For models that are no decoders. */
PLAN_API plan_status plan_session_run(plan_session *s, const char *signature, const char *const *names,
                                      const int64_t *values, int count);
/* Sets *OUT to the signature of the last step, NULL before the first. The name lives as long as the plan. */
PLAN_API plan_status plan_session_signature(plan_session *s, const char **out);
PLAN_API plan_status plan_session_wait(plan_session *s);

/* The next decode step's token. */
PLAN_API plan_status plan_session_set_token(plan_session *s, int64_t token);
/* Copies the last N sampled tokens, oldest first; waits for the session. N beyond what was sampled: RANGE.
 * The ring holds the last 65536. */
PLAN_API plan_status plan_session_tokens(plan_session *s, int64_t *out, size_t n);
PLAN_API plan_status plan_session_token_count(plan_session *s, uint64_t *out);

/* How the tail picks a token: the repetition penalty on every token fed so far, then the temperature, top-k, top-p over what
 * top-k keeps, min-p; then a draw. The draw is a function of the seed and of how many tokens the state holds (without growing
 * state: of how many were sampled since the seed was set or the state cleared), so the same seed repeats itself after a rewind.
 * All of it is done in integers: the same logits give the same token on every target. */
typedef struct plan_sampling {
    size_t size;               /* sizeof(plan_sampling), set by PLAN_SAMPLING_INIT */
    double temperature;        /* 0: the largest logit; else 0.001 to 1000 */
    int64_t top_k;             /* 0: all; at most 1024 */
    double top_p;              /* above 0, at most 1; 1: all */
    double min_p;              /* 0 to 1, of the largest probability; 0: all */
    double repetition_penalty; /* 0.001 to 1000; 1: none. Others need a plan with growing state */
    uint64_t seed;
} plan_sampling;
#define PLAN_SAMPLING_INIT { sizeof(plan_sampling), 0, 0, 1, 0, 1, 0 }
/* From the next step on, also of captured graphs. A new session is greedy. Errors: ARGUMENT, RANGE; STATE when the plan was
 * compiled without --sample draw and SAMPLING asks for more than the largest logit. */
PLAN_API plan_status plan_session_set_sampling(plan_session *s, const plan_sampling *sampling);
/* The step that samples one of these COUNT tokens (at most 16; 0: none) is the last of its replay: the token is in the ring
 * and counted, the state holds nothing beyond the token before it, and further replays do nothing until
 * plan_session_prefill, set_token, rewind or set_stop. With stop tokens a replay runs up to 8 steps (1, where the state cannot
 * be rewound) between two waits. Errors: ARGUMENT, RANGE, STATE (no sampling tail). */
PLAN_API plan_status plan_session_set_stop(plan_session *s, const int64_t *ids, size_t count);
/* 1 when the last token sampled was a stop token; waits. */
PLAN_API plan_status plan_session_stopped(plan_session *s, int *out);

/* The position: rows of state that are valid. Rewinding is one 8-byte write; a position beyond the present one is RANGE.
 * Refused with STATE when the plan has state that does not grow (it cannot be rewound), unless POSITION is 0: then
 * all state is zeroed. */
PLAN_API plan_status plan_session_position(plan_session *s, int64_t *out);
PLAN_API plan_status plan_session_rewind(plan_session *s, int64_t position);

/* Rows of a batch with lengths of their own (gcc-plan --rows; elsewhere each of these gives STATE). A row does what a session of one
 * row would do at its length. plan_session_prefill, set_token, run and logits give STATE; plan_session_position is the longest row's,
 * plan_session_rewind sets back those that are longer, plan_session_set_position sets all. */
#define PLAN_REST (-1)
/* Feeds N token ids to ROW alone, as plan_session_prefill does; the other rows rest. Errors: RANGE (row or id), CAPACITY, STATE. */
PLAN_API plan_status plan_session_prefill_row(plan_session *s, int64_t row, const int64_t *ids, size_t n);
/* The next decode step's tokens, one for each of COUNT = plan_rows rows; PLAN_REST: that row rests, nothing of it changes. When an id is
 * refused (RANGE) nothing was written. */
PLAN_API plan_status plan_session_set_tokens(plan_session *s, const int64_t *ids, size_t count);
/* The logits of the last token fed to ROW, as float32 [vocabulary]. Waits. Errors: RANGE; STATE when it rested in the last step. */
PLAN_API plan_status plan_session_row_logits(plan_session *s, int64_t row, float *out, size_t count);
/* The position of ROW: positions of its state that are valid. */
PLAN_API plan_status plan_session_row_position(plan_session *s, int64_t row, int64_t *out);
/* Sets ROW back, by one 8-byte write; the others stay. A position beyond its present one is RANGE. */
PLAN_API plan_status plan_session_rewind_row(plan_session *s, int64_t row, int64_t position);

/* Writes a caller-fed input (dense, row-major, present extents) into the plan's own buffer. */
PLAN_API plan_status plan_session_write_input(plan_session *s, const char *signature, const char *name,
                                              const void *data, size_t bytes);
/* Binds an input or output to the caller's device address (host address on the host target) for the next capture.
 * Must cover the buffer's bytes and be a multiple of 16. An input that the model gives as an output is one buffer. After capture
 * another address gives BINDING: the graphs go on with the old one, and plan_session_recapture takes the new one. */
PLAN_API plan_status plan_session_bind(plan_session *s, const char *signature, const char *name, void *address, size_t bytes);
/* Drops the graphs and captures again with the present bindings. */
PLAN_API plan_status plan_session_recapture(plan_session *s);
/* What an output is after the signature's last run: its present extents, also those that the run itself counted. Waits when a
 * kernel counts extents. Errors: ARGUMENT, NAME, RANGE, DRIVER. */
PLAN_API plan_status plan_session_output(plan_session *s, const char *signature, const char *name, plan_tensor *out);
/* Reads an output (dense, row-major, of the extents that plan_session_output gives) and sets *WRITTEN to its bytes. Logits of a prefill
 * have one row, or one for each token of its last step, as gcc-plan --logits says; plan_session_signature names the step's. Waits. */
PLAN_API plan_status plan_session_read_output(plan_session *s, const char *signature, const char *name,
                                              void *data, size_t bytes, size_t *written);
/* The logits of the last token fed, whichever signature computed them, as float32 [vocabulary]. Waits. */
PLAN_API plan_status plan_session_logits(plan_session *s, float *out, size_t count);
/* Copies a whole state buffer (capacity-strided, dims as plan_state) to or from the host; waits. */
PLAN_API plan_status plan_session_read_state(plan_session *s, const char *name, void *data, size_t bytes);
PLAN_API plan_status plan_session_write_state(plan_session *s, const char *name, const void *data, size_t bytes);
/* Sets the position after a state was written. */
PLAN_API plan_status plan_session_set_position(plan_session *s, int64_t position);

PLAN_API plan_status plan_session_counters(plan_session *s, plan_counters *out);
/* Device time in microseconds of the last replay, which must have had STEPS (events on cuda, wall clock on host); waits.
 * Replays are timed from the first call on, which gives STATE: before it a replay records no events. */
PLAN_API plan_status plan_session_time(plan_session *s, int64_t steps, double *microseconds);
/* Where a step's time goes: times each launch of SIGNATURE by itself, as a chain of REPEATS (1 to 1000) in a graph, into
 * MICROSECONDS[COUNT], COUNT being its number of launches (plan_step_cost). Requires warm. The state and the outputs hold
 * anything afterwards; the position is kept. Errors: ARGUMENT, NAME, STATE, DRIVER. */
PLAN_API plan_status plan_session_profile(plan_session *s, const char *signature, int repeats, double *microseconds, size_t count);
/* The kernel, the label and the bytes (without what depends on the position) of one launch; texts live as long as the plan. */
PLAN_API plan_status plan_launch_info(const plan *p, const char *signature, size_t index, const char **kernel, const char **label,
                                      uint64_t *bytes);
/* Where a step's time goes inside the step, for plans compiled with gcc-plan --timers: what one block of a launch stamped. Nanoseconds of the
 * device's clock (cuda: %globaltimer, as fine as the GPU counts; host: of the system), by the block's first thread. */
typedef struct plan_stamp {
    uint64_t begin;     /* 0, as the others are then: the launch did not run, since no condition led to it */
    uint64_t waited;    /* when its wait for the launches before it was over; 0: it ended without, having no work */
    uint64_t end;
    uint64_t processor; /* the multiprocessor that it ran on; host: a number of the system thread */
} plan_stamp;
/* The stamps of the blocks of launch LAUNCH (from 0) of SIGNATURE in the session's last step, captured or eager, which must have been one of that
 * signature: blocks of x first, then y, then z. In a loop, those of its last time. *COUNT is the number of blocks; OUT must have ROOM for them, or is
 * NULL with ROOM 0: then only *COUNT is written, and no step is needed. Waits for the step. plan_session_profile and a rewind to 0 leave none that mean
 * anything. Errors: ARGUMENT, NAME, RANGE (LAUNCH; ROOM below the count), STATE (a plan without timers; another last step), DRIVER. */
PLAN_API plan_status plan_session_stamps(plan_session *s, const char *signature, size_t launch, plan_stamp *out, size_t room, size_t *count);
/* Bytes of the device in use now, by this process and any other. Thread-safe. Errors: ARGUMENT, DRIVER. */
PLAN_API plan_status plan_device_bytes(plan *p, uint64_t *out);
/* Copy bandwidth of the device measured now, bytes a second (read + write), for reports. */
PLAN_API plan_status plan_measure_bandwidth(plan *p, double *bytes_per_second);

#ifdef __cplusplus
}
#endif
#endif
