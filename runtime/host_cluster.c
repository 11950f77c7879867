/* host_cluster.c - clusters of blocks on the host target.
 *
 * Shared memory of a block is memory of its system thread, so each block of a cluster has one, where its threads are fibres as usual. But only the
 * block whose turn it is runs, until all its threads wait for the others, or have ended; so a fault is the same in each run, and what stands
 * here, but for the turn itself, is touched by one system thread at a time. Turns go round from block 0 on.
 *
 * A thread's n-th arrival is for the n-th phase of the cluster's barrier, which ends when no thread of the cluster is left that has neither arrived nor
 * ended. Since a thread waits for each of its arrivals before the next one, there is one phase at a time. When a block's turn ends with threads
 * that wait, those have arrived: so with the last such turn the phase is at its end, and one of the blocks can always go on.
 *
 * What is put is NaN at once, as early as the writer could, and there when the first thread of the reader's block has waited for the phase of the writer's next
 * arrival, as late as the reader may rely on it. A block that ends before it waited for what was put into it might have ended before the put: a
 * fault, found at whichever of both comes last.
 */
#include "host_cluster.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fibre.h"

#define NOBODY PLAN_CLUSTER_MAX_BLOCKS

typedef struct cluster_put {
    void *to;
    unsigned phase; /* after which it is there */
    float values[4];
} cluster_put;

enum block_state { BLOCK_ENDED, BLOCK_STARTS, BLOCK_RUNS, BLOCK_WAITS };

typedef struct cluster_block {
    plan_host_cluster *cluster;
    plan_fibres *fibres;
    pthread_t thread;
    pthread_cond_t turn;
    unsigned rank;
    enum block_state state;
    plan_host_index index;
    unsigned char *place;  /* in its shared memory, the same in each block's; set when it has started */
    unsigned live, parked; /* threads that have not ended, of which so many wait */
    cluster_put *puts;     /* into its shared memory, not yet there, in their order */
    size_t put_count, put_room;
    unsigned arrivals[PLAN_FIBRE_MAX_THREADS], waits[PLAN_FIBRE_MAX_THREADS]; /* of each thread; as many, or one arrival more */
    bool has_put[PLAN_FIBRE_MAX_THREADS];                                     /* since its last arrival */
} cluster_block;

struct plan_host_cluster {
    plan_allocator allocator;
    pthread_mutex_t lock; /* turn, stopping */
    pthread_cond_t done;
    unsigned turn;        /* the block that runs, or NOBODY */
    bool stopping;
    unsigned threads;     /* blocks with a system thread */
    unsigned count;       /* of blocks in the present cluster, and so on */
    plan_host_kernel *kernel;
    plan_host_cluster_kernel *kernel_place;
    const unsigned long long *args;
    unsigned phases;      /* that have ended */
    unsigned missing;     /* threads that have neither arrived in the present one nor ended */
    unsigned failed;      /* the block with the first fault, or NOBODY */
    char fault[128];
    cluster_block blocks[PLAN_CLUSTER_MAX_BLOCKS];
};

static _Thread_local cluster_block *present; /* the block that this system thread runs, or NULL */

/* ---- turns */

/* False when there will be none. */
static bool await_turn(cluster_block *b) {
    plan_host_cluster *c = b->cluster;
    pthread_mutex_lock(&c->lock);
    while (c->turn != b->rank && !c->stopping)
        pthread_cond_wait(&b->turn, &c->lock);
    bool stopping = c->stopping;
    pthread_mutex_unlock(&c->lock);
    return !stopping;
}

static void give_turn(plan_host_cluster *c, unsigned rank) {
    pthread_mutex_lock(&c->lock);
    c->turn = rank;
    pthread_cond_signal(rank == NOBODY ? &c->done : &c->blocks[rank].turn);
    pthread_mutex_unlock(&c->lock);
}

/* After a fault those that stand inside the kernel have a turn more, to leave it; the others do not start. */
static bool can_run(const plan_host_cluster *c, const cluster_block *b) {
    if (c->failed != NOBODY)
        return b->state == BLOCK_WAITS;
    return b->state == BLOCK_STARTS || (b->state == BLOCK_WAITS && !b->parked);
}

static void pass_turn(const cluster_block *b) {
    plan_host_cluster *c = b->cluster;
    for (unsigned i = 1; i <= c->count; i++) {
        unsigned next = (b->rank + i) % c->count;
        if (can_run(c, &c->blocks[next])) {
            give_turn(c, next);
            return;
        }
    }
    give_turn(c, NOBODY);
}

/* No thread of the block can go on before the phase ends. */
static void await_phase(cluster_block *b) {
    b->state = BLOCK_WAITS;
    pass_turn(b);
    (void)await_turn(b); /* nobody stops while a cluster runs */
    b->state = BLOCK_RUNS;
    if (b->cluster->failed != NOBODY)
        plan_fibres_fault(b->fibres, "abandoned, since another block of the cluster had a fault");
}

/* ---- the barrier */

static void PLAN_PRINTF(2, 3) fault(cluster_block *b, const char *format, ...) {
    char what[96], text[128];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(text, sizeof text, "cluster: thread %u %s", plan_fibres_thread(b->fibres), what);
    plan_fibres_fault(b->fibres, text);
}

/* A thread has arrived, or ended before it did. */
static void count_arrival(plan_host_cluster *c) {
    if (--c->missing)
        return;
    c->phases++;
    for (unsigned i = 0; i < c->count; i++) {
        cluster_block *b = &c->blocks[i];
        c->missing += b->live;
        if (b->parked)
            plan_fibres_unpark(b->fibres);
        b->parked = 0;
    }
}

/* What was put into the block before the end of PHASE is there. */
static void deliver(cluster_block *b, unsigned phase) {
    size_t left = 0;
    for (size_t i = 0; i < b->put_count; i++)
        if (b->puts[i].phase <= phase)
            memcpy(b->puts[i].to, b->puts[i].values, sizeof b->puts[i].values);
        else
            b->puts[left++] = b->puts[i];
    b->put_count = left;
}

/* The block of the thread that calls a service; NULL, with a fault, when it belongs to no cluster. */
static cluster_block *present_block(void) {
    if (!present)
        plan_fibres_fault(plan_fibres_running(), "a kernel that is not for clusters calls a service for them");
    return present;
}

void plan_cluster_arrive(void) {
    cluster_block *b = present_block();
    if (!b)
        return;
    unsigned t = plan_fibres_thread(b->fibres);
    if (b->arrivals[t] != b->waits[t])
        fault(b, "arrives again without having waited");
    b->arrivals[t]++;
    b->has_put[t] = false;
    count_arrival(b->cluster);
}

void plan_cluster_wait(void) {
    cluster_block *b = present_block();
    if (!b)
        return;
    unsigned t = plan_fibres_thread(b->fibres);
    if (b->arrivals[t] == b->waits[t])
        fault(b, "waits without having arrived");
    if (b->cluster->phases < b->arrivals[t]) {
        if (++b->parked == b->live)
            await_phase(b);
        else
            plan_fibres_park(b->fibres);
    }
    deliver(b, ++b->waits[t]);
}

void plan_cluster_put(void *place, int rank, const float *values) {
    cluster_block *b = present_block();
    if (!b)
        return;
    plan_host_cluster *c = b->cluster;
    unsigned t = plan_fibres_thread(b->fibres);
    if (rank < 0 || (unsigned)rank >= c->count)
        fault(b, "puts into block %d of a cluster of %u", rank, c->count);
    if (b->waits[t] == 0)
        fault(b, "puts into block %d without having waited for its start", rank);
    if ((uintptr_t)place % 16)
        fault(b, "puts at a place that is not aligned to 16 bytes");
    cluster_block *to = &c->blocks[rank];
    if (!to->live)
        fault(b, "puts into block %d, which has ended", rank);
    if (to->put_count == to->put_room) {
        size_t room = to->put_room ? 2 * to->put_room : 256;
        cluster_put *more = realloc(to->puts, room * sizeof *more);
        if (!more)
            fault(b, "puts, and there is no memory for that");
        to->puts = more;
        to->put_room = room;
    }
    cluster_put *p = &to->puts[to->put_count++];
    p->to = to->place + ((uintptr_t)place - (uintptr_t)b->place);
    p->phase = b->arrivals[t] + 1;
    memcpy(p->values, values, sizeof p->values);
    memset(p->to, 0xff, sizeof p->values);
    b->has_put[t] = true;
}

/* ---- blocks */

static void end_thread(cluster_block *b, unsigned t) {
    if (b->has_put[t])
        fault(b, "ends without having arrived since it put");
    b->live--;
    if (b->live == 0 && b->put_count)
        fault(b, "ends as the last of its block, which never waited for what others put");
    if (b->arrivals[t] == b->cluster->phases)
        count_arrival(b->cluster);
    if (b->live && b->parked == b->live)
        await_phase(b);
}

/* The kernel that the fibres of a block run. */
static void run_thread(const plan_host_index *index, const unsigned long long *args) {
    cluster_block *b = present;
    b->cluster->kernel(index, args);
    end_thread(b, (unsigned)index->first_thread);
}

static void run_block(cluster_block *b) {
    plan_host_cluster *c = b->cluster;
    int count;
    b->state = BLOCK_RUNS;
    b->place = c->kernel_place(&count);
    present = b;
    const char *text = plan_fibres_run(b->fibres, run_thread, &b->index, c->args);
    present = NULL;
    b->state = BLOCK_ENDED;
    if (text && c->failed == NOBODY) {
        c->failed = b->rank;
        snprintf(c->fault, sizeof c->fault, "%s", text);
    }
}

static void *block_main(void *argument) {
    cluster_block *b = argument;
    while (await_turn(b)) {
        run_block(b);
        pass_turn(b);
    }
    return NULL;
}

/* False: out of memory. */
static bool start_thread(plan_host_cluster *c) {
    cluster_block *b = &c->blocks[c->threads];
    b->cluster = c;
    b->rank = c->threads;
    b->fibres = plan_fibres_open();
    if (!b->fibres)
        return false;
    pthread_cond_init(&b->turn, NULL);
    if (pthread_create(&b->thread, NULL, block_main, b) != 0) {
        pthread_cond_destroy(&b->turn);
        plan_fibres_close(b->fibres);
        return false;
    }
    c->threads++;
    return true;
}

static void prepare_block(cluster_block *b, const plan_host_index *first) {
    size_t threads = (size_t)first->block_threads;
    b->state = BLOCK_STARTS;
    b->index = *first;
    b->index.block_x += (int)b->rank;
    b->live = (unsigned)threads;
    b->parked = 0;
    b->put_count = 0;
    memset(b->arrivals, 0, threads * sizeof *b->arrivals);
    memset(b->waits, 0, threads * sizeof *b->waits);
    memset(b->has_put, 0, threads * sizeof *b->has_put);
}

const char *plan_host_cluster_run(plan_host_cluster *c, plan_host_kernel *kernel, plan_host_cluster_kernel *place, unsigned count,
                                  const plan_host_index *first, const unsigned long long *args, plan_host_index *at) {
    *at = *first;
    if (count < 1 || count > PLAN_CLUSTER_MAX_BLOCKS || first->block_threads < 1 || first->block_threads > PLAN_FIBRE_MAX_THREADS)
        return "a cluster has 1 to 16 blocks of 1 to 1024 threads";
    while (c->threads < count)
        if (!start_thread(c))
            return "no memory for the blocks of a cluster";
    c->count = count;
    c->kernel = kernel;
    c->kernel_place = place;
    c->args = args;
    c->phases = 0;
    c->missing = count * (unsigned)first->block_threads;
    c->failed = NOBODY;
    for (unsigned i = 0; i < count; i++)
        prepare_block(&c->blocks[i], first);
    give_turn(c, 0);
    pthread_mutex_lock(&c->lock);
    while (c->turn != NOBODY)
        pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->failed == NOBODY)
        return NULL;
    *at = c->blocks[c->failed].index;
    return c->fault;
}

const char *plan_host_cluster_check(plan_host_cluster *c) {
    const char *text = NULL;
    for (unsigned i = 0; i < c->threads && !text; i++)
        text = plan_fibres_check(c->blocks[i].fibres);
    return text;
}

plan_host_cluster *plan_host_cluster_open(const plan_allocator *allocator) {
    plan_host_cluster *c = plan_host_allocate(allocator, 1, sizeof *c);
    if (!c)
        return NULL;
    c->allocator = *allocator;
    c->turn = NOBODY;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->done, NULL);
    return c;
}

void plan_host_cluster_close(plan_host_cluster *c) {
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    for (unsigned i = 0; i < c->threads; i++)
        pthread_cond_signal(&c->blocks[i].turn);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->threads; i++) {
        cluster_block *b = &c->blocks[i];
        pthread_join(b->thread, NULL);
        pthread_cond_destroy(&b->turn);
        plan_fibres_close(b->fibres);
        free(b->puts);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->done);
    plan_allocator allocator = c->allocator;
    plan_host_release(&allocator, c);
}
