/* host_cluster.h - runs the blocks of a cluster at once, each with its own shared memory. */
#ifndef PLAN_HOST_CLUSTER_H
#define PLAN_HOST_CLUSTER_H

#include "error.h"
#include "host_abi.h"

#define PLAN_CLUSTER_MAX_BLOCKS 16

/* System threads, one for each block. Used by one thread at a time. */
typedef struct plan_host_cluster plan_host_cluster;

plan_host_cluster *plan_host_cluster_open(const plan_allocator *allocator); /* NULL: out of memory */
void plan_host_cluster_close(plan_host_cluster *c);

/* Runs COUNT blocks, FIRST and those behind it along x, to their ends; PLACE is the kernel's KERNEL_cluster. Returns NULL, or the text of the first
 * fault, which lives in C until the next call, with *AT the block that had it. After a fault all of them were abandoned where they stood. */
const char *plan_host_cluster_run(plan_host_cluster *c, plan_host_kernel *kernel, plan_host_cluster_kernel *place, unsigned count,
                                  const plan_host_index *first, const unsigned long long *args, plan_host_index *at);
/* Text of a fault when a stack was overrun since the last check, else NULL. */
const char *plan_host_cluster_check(plan_host_cluster *c);

/* Services (host_abi.h); a fault in a kernel that is not run as a cluster. */
void plan_cluster_arrive(void);
void plan_cluster_wait(void);
void plan_cluster_put(void *place, int rank, const float *values);

#endif
