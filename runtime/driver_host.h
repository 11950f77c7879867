/* driver_host.h - what the three files of the host driver share. */
#ifndef PLAN_DRIVER_HOST_H
#define PLAN_DRIVER_HOST_H

#include <pthread.h>
#include <stdio.h>

#include "driver.h"
#include "error.h"
#include "host_pool.h"

typedef struct plan_host_range plan_host_range;

typedef struct plan_host_driver {
    plan_driver base; /* first: a plan_driver is a plan_host_driver */
    plan_host_pool *pool;
    _Atomic int64_t fail_call;  /* calls until one fails; 0 or less: none */
    _Atomic int open_graphs;    /* length of `graphs` */
    pthread_mutex_t lock;       /* ranges, graphs */
    plan_host_range *ranges;    /* live allocations and adopted memory */
    plan_driver_graph *graphs;  /* opened, not yet instantiated or closed */
    char overrun[160];          /* a fault that a release found; reported by the next check */
} plan_host_driver;

/* Every call that can fail starts here: fails on request; refuses what may not happen while this thread captures. */
plan_status plan_host_enter(plan_driver *d, const char *call, bool in_capture);
/* Driver error unless BYTES at ADDRESS lie in one live range; the end of a range counts as a place of no bytes. */
plan_status plan_host_find(plan_host_driver *h, plan_address address, uint64_t bytes, const char *what);

plan_driver_graph *plan_host_graph_next(plan_driver_graph *g);
const pthread_t *plan_host_graph_owner(const plan_driver_graph *g);
/* Checks a launch and describes it; ARGS is where its arguments will lie. */
plan_status plan_host_describe(plan_host_driver *h, const plan_driver_launch *l, const unsigned long long *args, plan_host_job *out);
void plan_host_fill_code(plan_driver *d);
void plan_host_fill_graphs(plan_driver *d);

#endif
