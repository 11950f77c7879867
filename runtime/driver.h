/* driver.h - the one table of functions through which the runtime sees a device.
 *
 * driver_cuda.c fills it from libcuda.so.1; driver_host.c emulates it, and is stricter. Every function that returns a
 * status sets the thread's error text on failure. Functions that free never fail. All may be called from any thread;
 * one stream or graph by one thread at a time. Addresses are device addresses; on the host target they are pointers.
 */
#ifndef PLAN_DRIVER_H
#define PLAN_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "format.h"
#include "plan.h"

typedef struct plan_driver plan_driver;
typedef uint64_t plan_address;
typedef struct plan_driver_module plan_driver_module;
typedef struct plan_driver_function plan_driver_function;
typedef struct plan_driver_stream plan_driver_stream;
typedef struct plan_driver_graph plan_driver_graph;
typedef struct plan_driver_exec plan_driver_exec;
typedef struct plan_driver_event plan_driver_event;

/* What a kernel record says of its entry point. */
typedef struct plan_kernel_shape {
    const char *name;
    uint32_t arg_count, block;
    bool fibres;
} plan_kernel_shape;

/* What an 8-byte argument is: a literal's bits, an address, or the handle of a condition. */
enum { PLAN_WORD_LITERAL = 0, PLAN_WORD_ADDRESS = 1, PLAN_WORD_CONDITION = 2 };

/* One launch. POINTERS[i] says what args[i] is (PLAN_WORD_). */
typedef struct plan_driver_launch {
    const plan_driver_function *function;
    const char *label; /* for messages; lives as long as the plan */
    uint32_t grid[3], block, shared;
    uint32_t arg_count;
    const uint64_t *args;
    const uint8_t *pointers;
} plan_driver_launch;

typedef struct plan_driver_options {
    int device, threads;
    uint64_t fail_call;
    plan_allocator allocator;
} plan_driver_options;

struct plan_driver {
    char target[96];  /* "host", or "sm_90a (NVIDIA H200)" */
    plan_allocator allocator;
    atomic_uint_fast64_t allocations, synchronisations, copies, graph_launches, eager_launches;

    void (*close)(plan_driver *d);

    /* Which of the plan's module targets this device takes best: lower is better, negative never. */
    int (*rank_target)(plan_driver *d, const char *target);

    /* PURPOSE is for messages. Fresh device memory holds anything. */
    plan_status (*allocate)(plan_driver *d, uint64_t bytes, const char *purpose, plan_address *out);
    void (*release)(plan_driver *d, plan_address address);
    /* Host memory that the device can write, seen at *HOST and *DEVICE. */
    plan_status (*allocate_pinned)(plan_driver *d, uint64_t bytes, const char *purpose, void **host, plan_address *device);
    void (*release_pinned)(plan_driver *d, void *host);
    /* Declares caller memory as a place that launches may point to; undone by disown. */
    plan_status (*adopt)(plan_driver *d, plan_address address, uint64_t bytes);
    void (*disown)(plan_driver *d, plan_address address);
    /* Guard bytes of every allocation; a no-op where there are none. */
    plan_status (*check)(plan_driver *d);

    /* Bytes of the device that are in use, by whoever it is. */
    plan_status (*in_use)(plan_driver *d, uint64_t *out);

    /* Ordered on STREAM; host memory may be reused on return. STREAM NULL: complete on return, before any later work. */
    plan_status (*zero)(plan_driver *d, plan_driver_stream *stream, plan_address to, uint64_t bytes);
    plan_status (*to_device)(plan_driver *d, plan_driver_stream *stream, plan_address to, const void *from, uint64_t bytes);
    /* Complete on return; waits for STREAM first. */
    plan_status (*from_device)(plan_driver *d, plan_driver_stream *stream, void *to, plan_address from, uint64_t bytes);
    plan_status (*on_device)(plan_driver *d, plan_driver_stream *stream, plan_address to, plan_address from, uint64_t bytes);

    plan_status (*module_load)(plan_driver *d, const void *bytes, uint64_t size, const char *target, plan_driver_module **out);
    void (*module_unload)(plan_driver *d, plan_driver_module *m);
    /* Loads the function now, not at its first launch. */
    plan_status (*function_get)(plan_driver *d, plan_driver_module *m, const plan_kernel_shape *shape, plan_driver_function **out);
    void (*function_release)(plan_driver *d, plan_driver_function *f);

    /* GIVEN: the caller's stream (CUstream), or NULL for a stream of our own. */
    plan_status (*stream_open)(plan_driver *d, void *given, plan_driver_stream **out);
    void (*stream_close)(plan_driver *d, plan_driver_stream *s);
    plan_status (*synchronise)(plan_driver *d, plan_driver_stream *s);
    plan_status (*launch)(plan_driver *d, plan_driver_stream *s, const plan_driver_launch *l);

    /* A graph is built by one thread, from graph_open to instantiate. Nodes are numbered in the order of adding; DEPENDENCIES
     * are numbers of earlier nodes of the same graph, each once. The graph keeps its arguments by value. EXPECTED: the number of nodes of the plan,
     * without those of bodies. */
    plan_status (*graph_open)(plan_driver *d, plan_driver_graph **out);
    plan_status (*graph_add)(plan_driver *d, plan_driver_graph *g, const plan_driver_launch *l, const uint32_t *dependencies,
                             uint32_t count);
    /* The condition of a conditional node that will be added to G. A launch that gets *HANDLE as an argument sets it; it lives as
     * long as what is instantiated from G. Kernels set it in each run before the node is reached, and at the end of a loop's body. */
    plan_status (*condition_open)(plan_driver *d, plan_driver_graph *g, uint64_t *handle);
    /* Adds a node that runs *BODY once when the condition holds, or (LOOP) as long as it holds. *BODY is owned by G; nodes are added
     * to it before G is instantiated. TARGET when the driver has no conditional nodes. */
    plan_status (*graph_add_condition)(plan_driver *d, plan_driver_graph *g, bool loop, uint64_t handle, const char *label,
                                       const uint32_t *dependencies, uint32_t count, plan_driver_graph **body);
    plan_status (*graph_instantiate)(plan_driver *d, plan_driver_graph *g, uint32_t expected, plan_driver_exec **out);
    void (*graph_close)(plan_driver *d, plan_driver_graph *g); /* also when it was never instantiated */
    plan_status (*graph_launch)(plan_driver *d, plan_driver_stream *s, plan_driver_exec *e);
    void (*exec_close)(plan_driver *d, plan_driver_exec *e);

    plan_status (*event_open)(plan_driver *d, plan_driver_event **out);
    void (*event_close)(plan_driver *d, plan_driver_event *e);
    plan_status (*event_record)(plan_driver *d, plan_driver_stream *s, plan_driver_event *e);
    /* Both events must be complete. */
    plan_status (*event_elapsed)(plan_driver *d, plan_driver_event *from, plan_driver_event *to, double *microseconds);
};

plan_status plan_driver_host_open(const plan_driver_options *options, plan_driver **out);
/* TARGET (not DRIVER) when there is no driver or no such device. */
plan_status plan_driver_cuda_open(const plan_driver_options *options, plan_driver **out);

#endif
