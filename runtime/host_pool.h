/* host_pool.h - the host target's worker threads: they share the blocks of one launch. */
#ifndef PLAN_HOST_POOL_H
#define PLAN_HOST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "host_abi.h"

typedef struct plan_host_pool plan_host_pool;

typedef struct plan_host_job {
    plan_host_kernel *kernel;
    const char *name, *label;
    const unsigned long long *args;
    uint32_t grid[3], block;
    bool fibres;
    plan_host_cluster_kernel *place; /* of a kernel for clusters of so many blocks; else NULL and 0 */
    uint32_t cluster;
} plan_host_job;

/* THREADS counts the launching thread; 0 = one for each core. */
plan_status plan_host_pool_open(int threads, const plan_allocator *allocator, plan_host_pool **out);
void plan_host_pool_close(plan_host_pool *p);
/* Runs all blocks and returns when they are done. Launches from several threads run one after the other. */
plan_status plan_host_pool_run(plan_host_pool *p, const plan_host_job *job);
/* Driver error when a thread of a block overran its stack since the last check. */
plan_status plan_host_pool_check(plan_host_pool *p);

#endif
