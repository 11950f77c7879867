/* fibre.h - runs the threads of one block of a host kernel as fibres, so that barriers and warp exchanges work. */
#ifndef PLAN_FIBRE_H
#define PLAN_FIBRE_H

#include <stddef.h>

#include "host_abi.h"

#define PLAN_FIBRE_MAX_THREADS 1024

/* The stacks and the scheduler of one worker. Not shared between OS threads while a block runs. */
typedef struct plan_fibres plan_fibres;

plan_fibres *plan_fibres_open(void); /* NULL: out of memory */
void plan_fibres_close(plan_fibres *f);

/* Runs one block to its end. Returns NULL, or the text of a fault (divergent barrier and the like), which lives in F
 * until the next call. After a fault the block was abandoned where it stood. */
const char *plan_fibres_run(plan_fibres *f, plan_host_kernel *kernel, const plan_host_index *block,
                            const unsigned long long *args);
/* Text of a fault when a stack was overrun since the last check, else NULL. */
const char *plan_fibres_check(plan_fibres *f);

/* The same for a kernel without barriers: one call for the block; a service called from it is a fault. */
const char *plan_fibres_plain(plan_fibres *f, plan_host_kernel *kernel, const plan_host_index *block,
                              const unsigned long long *args);

/* For services of other files (host_cluster.c): called by a thread of the block that this system thread runs. */
plan_fibres *plan_fibres_running(void);
unsigned plan_fibres_thread(const plan_fibres *f); /* which one */
/* Ends the block, as a fault of its own would: returns only in a kernel without barriers. */
void plan_fibres_fault(plan_fibres *f, const char *text);
/* The thread waits, and others of its block go on, of which one must be able to, until one of them or another system thread unparks all. A fault
 * when others wait elsewhere: at the block barrier, or in its warp at an exchange. */
void plan_fibres_park(plan_fibres *f);
/* Only while no thread of the block waits at the block barrier. */
void plan_fibres_unpark(plan_fibres *f);

/* What modules call through their variable plan_host. */
extern const plan_host_services plan_fibre_services;

#endif
