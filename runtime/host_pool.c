/* host_pool.c - worker threads of the host target.
 *
 * The launching thread works too. Blocks are claimed from one 64-bit ticket: the launch's number in the high half, the
 * blocks that are left in the low half. A worker reads the job only after a claim succeeded; since the launch cannot end
 * before the claimed blocks are done, the job is stable by then, and a worker that comes late finds another number or
 * nothing left. Idle workers spin for a short while, then sleep on a condition variable. Clusters of blocks, which only tests of what is written
 * for GPUs have, run one after the other on threads of their own (host_cluster.c).
 */
#include "host_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "fibre.h"
#include "host_cluster.h"

#define SPINS 4000      /* about 20 us: longer than the gap between two kernels of a step */
#define MAX_THREADS 256

typedef struct worker {
    plan_host_pool *pool;
    plan_fibres *fibres;
    pthread_t thread;
} worker;

struct plan_host_pool {
    plan_allocator allocator;
    pthread_mutex_t launch; /* one launch at a time */
    _Atomic uint64_t ticket;
    _Atomic uint32_t done, failed;
    _Atomic int stopping, sleepers;
    pthread_mutex_t sleep;
    pthread_cond_t wake;
    plan_host_job job;
    uint32_t blocks;
    uint32_t number; /* of the launch; only the launching thread writes it */
    char fault[320]; /* of the worker that set `failed` first */
    plan_host_cluster *cluster; /* NULL before the first launch of one */
    unsigned count;  /* workers, the launching thread's (0) included */
    worker workers[MAX_THREADS];
};

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Claims a share of what is left of launch NUMBER: 0 when nothing is. Blocks are *FIRST .. *FIRST + result - 1,
 * counted from the end of the grid. */
static uint32_t claim(plan_host_pool *p, uint32_t number, uint32_t *left) {
    uint64_t seen = atomic_load_explicit(&p->ticket, memory_order_acquire);
    for (;;) {
        uint32_t rest = (uint32_t)seen;
        if ((uint32_t)(seen >> 32) != number || rest == 0)
            return 0;
        uint32_t share = rest / (4u * p->count);
        if (share == 0)
            share = 1;
        if (atomic_compare_exchange_weak(&p->ticket, &seen, seen - share)) {
            *left = rest;
            return share;
        }
    }
}

static void report(plan_host_pool *p, const char *text, const plan_host_index *index) {
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&p->failed, &none, 1))
        return;
    snprintf(p->fault, sizeof p->fault, "launch '%.80s': kernel '%.80s', block (%d, %d, %d): %.120s", p->job.label,
             p->job.name, index->block_x, index->block_y, index->block_z, text);
}

static plan_host_index index_of(const plan_host_job *job, uint32_t block) {
    uint32_t plane = block / job->grid[0];
    plan_host_index index = {0, (int)job->block, (int)(block % job->grid[0]), (int)(plane % job->grid[1]),
                             (int)(plane / job->grid[1]), (int)job->grid[0], (int)job->grid[1], (int)job->grid[2],
                             (int)job->block};
    return index;
}

static void run_block(plan_host_pool *p, worker *w, uint32_t block) {
    const plan_host_job *job = &p->job;
    plan_host_index index = index_of(job, block);
    const char *text = job->fibres ? plan_fibres_run(w->fibres, job->kernel, &index, job->args)
                                   : plan_fibres_plain(w->fibres, job->kernel, &index, job->args);
    if (text)
        report(p, text, &index);
}

/* The last cluster first: what one writes behind its own part then spoils results that are there, and does not wait to be written over. */
static void run_clusters(plan_host_pool *p) {
    const plan_host_job *job = &p->job;
    for (uint32_t left = p->blocks; left > 0 && !atomic_load(&p->failed); left -= job->cluster) {
        plan_host_index first = index_of(job, left - job->cluster), at;
        const char *text = plan_host_cluster_run(p->cluster, job->kernel, job->place, job->cluster, &first, job->args, &at);
        if (text)
            report(p, text, &at);
    }
}

static void work(plan_host_pool *p, worker *w, uint32_t number) {
    uint32_t left, share;
    while ((share = claim(p, number, &left)) != 0) {
        uint32_t first = p->blocks - left;
        /* After a fault the rest of the grid is skipped, but counted. */
        for (uint32_t i = 0; i < share && !atomic_load_explicit(&p->failed, memory_order_relaxed); i++)
            run_block(p, w, first + i);
        atomic_fetch_add(&p->done, share);
    }
}

/* Returns when the ticket no longer is SEEN's launch, or the pool stops. */
static void await_launch(plan_host_pool *p, uint32_t number) {
    for (int i = 0; i < SPINS; i++) {
        if ((uint32_t)(atomic_load(&p->ticket) >> 32) != number || atomic_load(&p->stopping))
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&p->sleep);
    atomic_fetch_add(&p->sleepers, 1);
    while ((uint32_t)(atomic_load(&p->ticket) >> 32) == number && !atomic_load(&p->stopping))
        pthread_cond_wait(&p->wake, &p->sleep);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->sleep);
}

static void *worker_main(void *argument) {
    worker *w = argument;
    plan_host_pool *p = w->pool;
    uint32_t number = 0;
    while (!atomic_load(&p->stopping)) {
        await_launch(p, number);
        number = (uint32_t)(atomic_load(&p->ticket) >> 32);
        work(p, w, number);
    }
    return NULL;
}

static void wake_all(plan_host_pool *p) {
    if (atomic_load(&p->sleepers) == 0)
        return;
    pthread_mutex_lock(&p->sleep);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->sleep);
}

plan_status plan_host_pool_run(plan_host_pool *p, const plan_host_job *job) {
    uint64_t blocks;
    if (!plan_mul_u64((uint64_t)job->grid[0] * job->grid[1], job->grid[2], &blocks) || blocks == 0 || blocks > UINT32_MAX)
        return plan_fail(PLAN_ERROR_DRIVER, "launch '%s': kernel '%s': grid %u x %u x %u has no blocks or too many", job->label,
                         job->name, job->grid[0], job->grid[1], job->grid[2]);
    pthread_mutex_lock(&p->launch);
    if (job->cluster && !p->cluster && (p->cluster = plan_host_cluster_open(&p->allocator)) == NULL) {
        pthread_mutex_unlock(&p->launch);
        return plan_fail(PLAN_ERROR_MEMORY, "launch '%s': no memory for a cluster of blocks", job->label);
    }
    p->job = *job;
    p->blocks = (uint32_t)blocks;
    atomic_store(&p->done, 0);
    atomic_store(&p->failed, 0);
    if (++p->number == 0)
        p->number = 1;
    if (job->cluster) {
        run_clusters(p);
    } else if (blocks == 1 || p->count == 1) { /* not worth waking anybody */
        for (uint32_t i = 0; i < p->blocks && !atomic_load(&p->failed); i++)
            run_block(p, &p->workers[0], i);
    } else {
        atomic_store(&p->ticket, (uint64_t)p->number << 32 | p->blocks);
        wake_all(p);
        work(p, &p->workers[0], p->number);
        for (unsigned i = 0; atomic_load(&p->done) != p->blocks; i++)
            if (i < SPINS)
                pause_briefly();
            else
                sched_yield(); /* the machine has other work: the worker may not be running */
    }
    plan_status status = PLAN_OK;
    if (atomic_load(&p->failed))
        status = plan_fail(PLAN_ERROR_DRIVER, "%s", p->fault);
    pthread_mutex_unlock(&p->launch);
    return status;
}

plan_status plan_host_pool_check(plan_host_pool *p) {
    plan_status status = PLAN_OK;
    pthread_mutex_lock(&p->launch);
    for (unsigned i = 0; i < p->count && !status; i++) {
        const char *text = plan_fibres_check(p->workers[i].fibres);
        if (text)
            status = plan_fail(PLAN_ERROR_DRIVER, "host driver: since the last check a kernel's %s", text);
    }
    const char *text = !status && p->cluster ? plan_host_cluster_check(p->cluster) : NULL;
    if (text)
        status = plan_fail(PLAN_ERROR_DRIVER, "host driver: since the last check a kernel's %s", text);
    pthread_mutex_unlock(&p->launch);
    return status;
}

void plan_host_pool_close(plan_host_pool *p) {
    if (!p)
        return;
    atomic_store(&p->stopping, 1);
    pthread_mutex_lock(&p->sleep);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->sleep);
    for (unsigned i = 0; i < p->count; i++) {
        if (i > 0)
            pthread_join(p->workers[i].thread, NULL);
        plan_fibres_close(p->workers[i].fibres);
    }
    plan_host_cluster_close(p->cluster);
    pthread_mutex_destroy(&p->launch);
    pthread_mutex_destroy(&p->sleep);
    pthread_cond_destroy(&p->wake);
    plan_allocator allocator = p->allocator;
    plan_host_release(&allocator, p);
}

plan_status plan_host_pool_open(int threads, const plan_allocator *allocator, plan_host_pool **out) {
    *out = NULL;
    plan_host_pool *p = plan_host_allocate(allocator, 1, sizeof *p);
    if (!p)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for the worker pool");
    p->allocator = *allocator;
    long wanted = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = wanted < 1 ? 1u : wanted > MAX_THREADS ? (unsigned)MAX_THREADS : (unsigned)wanted;
    pthread_mutex_init(&p->launch, NULL);
    pthread_mutex_init(&p->sleep, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (unsigned i = 0; i < count; i++) {
        worker *w = &p->workers[i];
        w->pool = p;
        w->fibres = plan_fibres_open();
        if (!w->fibres)
            break;
        /* Fewer workers than asked are enough; none are not. */
        if (i > 0 && pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            plan_fibres_close(w->fibres);
            w->fibres = NULL;
            break;
        }
        p->count = i + 1;
    }
    if (p->count == 0) {
        plan_host_pool_close(p);
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for the stacks of a block");
    }
    *out = p;
    return PLAN_OK;
}
