/* driver_cuda.h - the few types, constants and entry points of the CUDA driver API that the CUDA driver uses, declared
 * here so that a build needs no CUDA headers (names, versions and values are those of cuda.h), and what its two files share. */
#ifndef PLAN_DRIVER_CUDA_H
#define PLAN_DRIVER_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "driver.h"

typedef int cu_result; /* CUDA_SUCCESS = 0 */
typedef int cu_device;
typedef unsigned long long cu_deviceptr;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphNode_st *cu_node;
typedef struct CUgraphExec_st *cu_exec;

typedef struct cu_kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2 */
    cu_function function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    void **arguments;
    void **extra;
    void *kernel;
    cu_context context;
} cu_kernel_node;

typedef struct cu_edge { /* CUgraphEdgeData */
    unsigned char from_port, to_port, type, reserved[5];
} cu_edge;

typedef struct cu_condition_node { /* CUDA_CONDITIONAL_NODE_PARAMS */
    unsigned long long handle;
    int type;
    unsigned size;
    cu_graph *bodies; /* the driver's, set by it */
    cu_context context;
} cu_condition_node;

typedef struct cu_node_params { /* CUgraphNodeParams */
    int type, reserved[3];
    union {
        long long room[29];
        cu_condition_node condition;
    } of;
    long long reserved2;
} cu_node_params;
static_assert(sizeof(cu_node_params) == 256, "CUgraphNodeParams");

enum {
    CU_NODE_CONDITIONAL = 13,                          /* CU_GRAPH_NODE_TYPE_CONDITIONAL */
    CU_CONDITION_IF = 0, CU_CONDITION_WHILE = 1,       /* CU_GRAPH_COND_TYPE_ */
    CU_CONDITION_ASSIGN_DEFAULT = 1,                   /* CU_GRAPH_COND_ASSIGN_DEFAULT */
    CU_PORT_PROGRAMMATIC = 1, /* CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC */
    CU_EDGE_PROGRAMMATIC = 1, /* CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC */
    CU_OUT_OF_MEMORY = 2,
    CU_COMPUTE_MAJOR = 75, CU_COMPUTE_MINOR = 76, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_ */
    CU_STREAM_NONBLOCKING = 1,
    CU_HOST_PORTABLE = 1, CU_HOST_DEVICEMAP = 2,
    CU_JIT_LOG_BUFFER = 5, CU_JIT_LOG_BYTES = 6, /* CU_JIT_ERROR_LOG_BUFFER, ..._SIZE_BYTES */
    CU_FUNCTION_REGISTERS = 4, CU_FUNCTION_MAX_DYNAMIC_SHARED = 8, CU_FUNCTION_SHARED_CARVEOUT = 9, CU_FUNCTION_ANY_CLUSTER = 14
};

/* F(member, symbol, parameters): all return CUresult. */
#define CU_REQUIRED(F) \
    F(init, "cuInit", (unsigned flags)) \
    F(get_error_name, "cuGetErrorName", (cu_result, const char **)) \
    F(get_error_string, "cuGetErrorString", (cu_result, const char **)) \
    F(device_get, "cuDeviceGet", (cu_device *, int ordinal)) \
    F(device_get_count, "cuDeviceGetCount", (int *)) \
    F(device_get_name, "cuDeviceGetName", (char *, int, cu_device)) \
    F(device_get_attribute, "cuDeviceGetAttribute", (int *, int attribute, cu_device)) \
    F(context_retain, "cuDevicePrimaryCtxRetain", (cu_context *, cu_device)) \
    F(context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device)) \
    F(context_current, "cuCtxGetCurrent", (cu_context *)) \
    F(context_push, "cuCtxPushCurrent_v2", (cu_context)) \
    F(context_pop, "cuCtxPopCurrent_v2", (cu_context *)) \
    F(mem_alloc, "cuMemAlloc_v2", (cu_deviceptr *, size_t)) \
    F(mem_free, "cuMemFree_v2", (cu_deviceptr)) \
    F(mem_info, "cuMemGetInfo_v2", (size_t *left, size_t *all)) \
    F(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned flags)) \
    F(host_free, "cuMemFreeHost", (void *)) \
    F(host_device_pointer, "cuMemHostGetDevicePointer_v2", (cu_deviceptr *, void *, unsigned flags)) \
    F(memset_async, "cuMemsetD8Async", (cu_deviceptr, unsigned char, size_t, cu_stream)) \
    F(copy_to, "cuMemcpyHtoDAsync_v2", (cu_deviceptr, const void *, size_t, cu_stream)) \
    F(copy_from, "cuMemcpyDtoHAsync_v2", (void *, cu_deviceptr, size_t, cu_stream)) \
    F(copy_on, "cuMemcpyDtoDAsync_v2", (cu_deviceptr, cu_deviceptr, size_t, cu_stream)) \
    F(stream_create, "cuStreamCreate", (cu_stream *, unsigned flags)) \
    F(stream_destroy, "cuStreamDestroy_v2", (cu_stream)) \
    F(stream_synchronize, "cuStreamSynchronize", (cu_stream)) \
    F(module_load, "cuModuleLoadDataEx", (cu_module *, const void *, unsigned count, int *options, void **values)) \
    F(module_unload, "cuModuleUnload", (cu_module)) \
    F(module_get_function, "cuModuleGetFunction", (cu_function *, cu_module, const char *)) \
    F(function_attribute, "cuFuncGetAttribute", (int *, int attribute, cu_function)) \
    F(function_set_attribute, "cuFuncSetAttribute", (cu_function, int attribute, int value)) \
    F(launch_kernel, "cuLaunchKernel", (cu_function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                                        unsigned bz, unsigned shared, cu_stream, void **arguments, void **extra)) \
    F(graph_create, "cuGraphCreate", (cu_graph *, unsigned flags)) \
    F(graph_destroy, "cuGraphDestroy", (cu_graph)) \
    F(graph_add_kernel, "cuGraphAddKernelNode_v2", (cu_node *, cu_graph, const cu_node *, size_t, const cu_kernel_node *)) \
    F(graph_get_nodes, "cuGraphGetNodes", (cu_graph, cu_node *, size_t *)) \
    F(graph_instantiate, "cuGraphInstantiateWithFlags", (cu_exec *, cu_graph, unsigned long long flags)) \
    F(graph_launch, "cuGraphLaunch", (cu_exec, cu_stream)) \
    F(exec_destroy, "cuGraphExecDestroy", (cu_exec)) \
    F(event_create, "cuEventCreate", (cu_event *, unsigned flags)) \
    F(event_destroy, "cuEventDestroy_v2", (cu_event)) \
    F(event_record, "cuEventRecord", (cu_event, cu_stream)) \
    F(event_elapsed, "cuEventElapsedTime", (float *, cu_event, cu_event))
/* Driver 12.3 (edges with data) and 12.4 and later (conditional nodes). */
#define CU_OPTIONAL(F) \
    F(graph_add_edges, "cuGraphAddDependencies_v2", (cu_graph, const cu_node *from, const cu_node *to, const cu_edge *, size_t)) \
    F(condition_create, "cuGraphConditionalHandleCreate", (unsigned long long *, cu_graph, cu_context, unsigned value, unsigned flags)) \
    F(graph_add_node, "cuGraphAddNode_v2", (cu_node *, cu_graph, const cu_node *, const cu_edge *, size_t, cu_node_params *)) \
    F(function_load, "cuFuncLoad", (cu_function))

#define CU_MEMBER(member, symbol, parameters) cu_result (*member) parameters;
typedef struct cu_api {
    CU_REQUIRED(CU_MEMBER)
    CU_OPTIONAL(CU_MEMBER)
} cu_api;

#define CUDA_MAX_ARGS 64u

typedef struct cuda_driver {
    plan_driver base; /* first: a plan_driver is a cuda_driver */
    void *library;
    cu_api api;
    cu_device device;
    cu_context context;
    bool retained;
    int major, minor;
} cuda_driver;

struct plan_driver_function {
    cu_function function;
    bool waits;
};
struct plan_driver_stream {
    cu_stream stream;
    bool own;
};

/* The text says which call failed, for what, and what the driver says of it. */
plan_status plan_cuda_fail(cuda_driver *c, cu_result result, const char *call, const char *purpose);
/* The calling thread's context is changed only while a call runs. */
bool plan_cuda_enter(cuda_driver *c, plan_status *status, const char *purpose);
void plan_cuda_leave(cuda_driver *c, bool pushed);

/* Runs EXPRESSION, a cu_result, inside the context; STATUS is a variable of the caller. */
#define CALL(c, status, call, purpose, expression) \
    do { \
        bool pushed_ = plan_cuda_enter(c, &(status), purpose); \
        if (!(status)) { \
            cu_result result_ = (expression); \
            if (result_) \
                (status) = plan_cuda_fail(c, result_, call, purpose); \
        } \
        plan_cuda_leave(c, pushed_); \
    } while (0)

static inline cu_stream plan_cuda_stream(const plan_driver_stream *s) { return s ? s->stream : NULL; }
/* One pointer for each of the launch's arguments, at most CUDA_MAX_ARGS, into OUT. */
plan_status plan_cuda_arguments(cuda_driver *c, const plan_driver_launch *l, void **out);
void plan_cuda_fill_graphs(plan_driver *d); /* driver_cuda_graph.c */

#endif
