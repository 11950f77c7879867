/* host_abi.h - what a host-target module and the host driver agree on. Embedded in every host module's source too, so
 * it includes nothing. */
#ifndef PLAN_HOST_ABI_H
#define PLAN_HOST_ABI_H

/* One call of a kernel entry runs threads first_thread .. first_thread + thread_count - 1 of one block, in order.
 * Kernels without barriers or warp exchanges get the whole block in one call; the others get one thread a call, each
 * on a fibre of its own. */
typedef struct plan_host_index {
    int first_thread, thread_count; /* threads of a block are one-dimensional */
    int block_x, block_y, block_z;
    int grid_x, grid_y, grid_z;
    int block_threads;
} plan_host_index;

/* args[i] is the i-th argument: a pointer, or the bits of a literal in the low bytes. */
typedef void plan_host_kernel(const plan_host_index *index, const unsigned long long *args);

/* Services that fibre kernels call. Every live thread of the block (sync) or of the warp (the others) must call the
 * same service; the driver reports a kernel in which one does not. */
typedef struct plan_host_services {
    void (*sync)(void);                                   /* block barrier */
    float (*warp_sum)(float value);                       /* butterfly order: offsets 16, 8, 4, 2, 1 */
    float (*warp_max)(float value);
    unsigned long long (*warp_shuffle)(unsigned long long value, int source_lane);
    /* Of a kernel for clusters. Each thread arrives, then waits; threads that have ended count as arrived. */
    void (*cluster_arrive)(void);
    void (*cluster_wait)(void);
    /* Four floats to where PLACE, in the block's shared memory, is in that of the cluster's block RANK: there when a thread of that block has waited
     * for the caller's next arrival, until then NaN. Only after the caller has waited once, and before that block ends. */
    void (*cluster_put)(void *place, int rank, const float *values);
    /* Of plans with timers, from any kernel: nanoseconds of a clock that never goes back, and the number of the calling system thread. */
    unsigned long long (*now)(void);
    unsigned long long (*worker)(void);
} plan_host_services;

/* A kernel KERNEL for clusters has this beside its entry, named KERNEL_cluster: puts at *COUNT how many blocks, neighbours along x, are a cluster, and
 * returns a place in the calling system thread's shared memory, the same in each. */
typedef void *plan_host_cluster_kernel(int *count);

/* Every host module defines:  const plan_host_services *plan_host;  the driver sets it after loading. */

#endif
