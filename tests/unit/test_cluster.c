/* test_cluster.c - clusters of blocks on the host (runtime/host_cluster.c): the barrier, when what is put is there, and each fault. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/fibre.h"
#include "../../runtime/host_cluster.h"

enum { MOST_BLOCKS = PLAN_CLUSTER_MAX_BLOCKS, MOST_THREADS = PLAN_FIBRE_MAX_THREADS };

static int passed, failed;

static void check(bool good, const char *name) {
    printf("%s %s\n", good ? "ok -" : "not ok -", name);
    if (good)
        passed++;
    else
        failed++;
}

static const plan_host_services *const S = &plan_fibre_services;

/* Shared memory of a block, and the place in it that a module would give. */
static _Thread_local _Alignas(16) float cells[MOST_THREADS][4], other[4];
static void *place(int *count) {
    *count = 0; /* not asked here */
    return other;
}

static float results[MOST_BLOCKS][MOST_THREADS];
static plan_host_cluster *cluster;
static plan_host_index at;

/* A row of three clusters, of which the second runs. */
static const char *run(plan_host_kernel *kernel, unsigned blocks, int threads, const unsigned long long *args) {
    const plan_host_index first = {0, threads, (int)blocks, 2, 0, 3 * (int)blocks, 3, 1, threads};
    return plan_host_cluster_run(cluster, kernel, place, blocks, &first, args, &at);
}

static int blocks_of(const plan_host_index *x) { return x->grid_x / 3; }
static int rank_of(const plan_host_index *x) { return x->block_x % blocks_of(x); }

static void begin(void) {
    S->cluster_arrive();
    S->cluster_wait();
}
static void put(float *to, int rank, float value) {
    const float values[4] = {value, value + 0.25f, value + 0.5f, value + 0.75f};
    S->cluster_put(to, rank, values);
}
static bool holds(const float *cell, float value) {
    return cell[0] == value && cell[1] == value + 0.25f && cell[2] == value + 0.5f && cell[3] == value + 0.75f;
}

/* ---- what is allowed */

/* Each thread puts into the next block, args[0] times; sums what came. */
static void ring(const plan_host_index *x, const unsigned long long *args) {
    const int t = x->first_thread, rank = rank_of(x), next = (rank + 1) % blocks_of(x);
    float total = 0;
    begin();
    for (unsigned long long i = 0; i < args[0]; i++) {
        const float sent = (float)(rank * 1000 + t + (int)i), due = (float)((rank + blocks_of(x) - 1) % blocks_of(x) * 1000 + t + (int)i);
        put(cells[t], next, sent);
        begin();
        total += holds(cells[t], due) ? 1.0f : 0.0f;
        begin(); /* all have read */
    }
    results[rank][t] = total;
}

/* Block 0 puts into block 1, and block 1, which goes on first since it began last, into block 0. */
static void late(const plan_host_index *x, const unsigned long long *args) {
    const int rank = rank_of(x);
    float *const seen = results[rank];
    (void)args;
    cells[0][0] = 5; /* old */
    begin();
    put(cells[0], 1 - rank, 7);
    S->cluster_arrive();
    seen[0] = cells[0][0]; /* too early, and not there, whether the put has been or has not */
    S->cluster_wait();
    seen[1] = cells[0][0];
    begin();
    if (rank == 0)
        put(cells[0], 1, 9);
    S->cluster_arrive();
    S->cluster_wait();
    seen[2] = cells[0][0];
    begin();
}

/* What one thread puts another one of the reader's block sees, which waited as early; behind its arrival, a phase later. */
static void phases(const plan_host_index *x, const unsigned long long *args) {
    const int t = x->first_thread, rank = rank_of(x);
    (void)args;
    begin();
    S->cluster_arrive();
    if (rank == 0)
        put(cells[t], 1, (float)t);
    S->cluster_wait();
    if (rank == 1)
        results[0][t] = cells[t][0]; /* not yet: that arrival was before */
    begin();
    if (rank == 1)
        results[1][t] = cells[x->block_threads - 1 - t][0];
}

/* Blocks from args[0] on end, with (args[1]) or without having arrived; the others meet without them. */
static void fewer(const plan_host_index *x, const unsigned long long *args) {
    const int t = x->first_thread, rank = rank_of(x), left = (int)args[0];
    if (rank >= left) {
        if (args[1])
            S->cluster_arrive();
        return;
    }
    S->cluster_arrive();
    S->sync(); /* between both: all have arrived, none waits */
    S->cluster_wait();
    put(cells[t], left - 1 - rank, (float)(rank * 100 + t));
    begin();
    results[rank][t] = cells[t][0];
}

/* A block's last threads end one after the other: before they arrive, before they wait, and while the others wait. */
static void threads_end(const plan_host_index *x, const unsigned long long *args) {
    const int t = x->first_thread, rank = rank_of(x);
    (void)args;
    if (t >= 96)
        return;
    S->cluster_arrive();
    if (t >= 64)
        return;
    S->cluster_wait();
    begin();
    if (t >= 32 && rank == 1)
        return;
    put(cells[t], 1 - rank, (float)t);
    begin();
    results[rank][t] = cells[t][0];
}

static void test_allowed(void) {
    const unsigned long long rounds[1] = {3};
    static const struct { unsigned blocks; int threads; const char *name; } sizes[] = {
        {1, 32, "a cluster of one block puts into itself"}, {2, 96, "two blocks"}, {5, 40, "five blocks, the last warp partial"},
        {16, 1024, "16 blocks of 1024 threads"}, {3, 256, "fewer blocks after more"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(results, 0, sizeof results);
        const char *text = run(ring, sizes[i].blocks, sizes[i].threads, rounds);
        bool good = !text;
        for (unsigned b = 0; b < sizes[i].blocks; b++)
            for (int t = 0; t < sizes[i].threads; t++)
                good &= results[b][t] == 3.0f;
        check(good, sizes[i].name);
    }
    check(!run(late, 2, 1, NULL), "two blocks exchange");
    check(isnan(results[0][0]) && results[1][0] == 5, "what is put is old or no number before the reader has waited");
    check(results[0][1] == 7 && results[1][1] == 7, "and there when it has");
    check(results[0][2] == 7 && results[1][2] == 9, "a put does not touch the putting block");
    check(!run(phases, 2, 64, NULL), "puts between arrival and wait");
    bool good = true;
    for (int t = 0; t < 64; t++)
        good &= isnan(results[0][t]) && results[1][t] == (float)(63 - t);
    check(good, "are there after the next wait");
    for (unsigned long long arrived = 0; arrived < 2; arrived++) {
        const unsigned long long args[2] = {3, arrived};
        good = !run(fewer, 8, 64, args);
        for (int b = 0; b < 3; b++)
            for (int t = 0; t < 64; t++)
                good &= results[b][t] == (float)((2 - b) * 100 + t);
        check(good, arrived ? "blocks that ended after they arrived are not waited for" : "blocks that ended are not waited for");
    }
    good = !run(threads_end, 2, 128, NULL);
    for (int t = 0; t < 32; t++)
        good &= results[0][t] == (float)t && results[1][t] == (float)t;
    check(good, "threads that ended are not waited for");
}

/* ---- faults: each kernel has one, by block 1, thread 5 where it can be one thread's */

static bool is_it(const plan_host_index *x) { return rank_of(x) == 1 && x->first_thread == 5; }

static void put_early(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    S->cluster_arrive();
    if (is_it(x))
        put(cells[0], 0, 1);
    S->cluster_wait();
}
static void put_ended(const plan_host_index *x, const unsigned long long *args) {
    begin();
    if (rank_of(x) == (int)args[0])
        return;
    put(cells[0], (int)args[0], 1);
    begin();
}
static void put_unawaited(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    begin();
    put(cells[x->first_thread], 1 - rank_of(x), 1);
    S->cluster_arrive();
    if (rank_of(x) == 1)
        S->cluster_wait();
}
static void put_unarrived(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    begin();
    if (is_it(x))
        put(cells[0], 0, 1);
    else
        begin();
}
static void put_rank(const plan_host_index *x, const unsigned long long *args) {
    begin();
    if (is_it(x))
        put(cells[0], (int)(long long)args[0], 1);
    begin();
}
static void put_unaligned(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    begin();
    if (is_it(x))
        put(&cells[0][1], 0, 1);
    begin();
}
static void wait_first(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    if (!is_it(x))
        S->cluster_arrive();
    S->cluster_wait();
}
static void wait_twice(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    begin();
    if (is_it(x))
        S->cluster_wait();
}
static void arrive_twice(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    S->cluster_arrive();
    if (is_it(x))
        S->cluster_arrive();
    S->cluster_wait();
}
/* Some threads wait for the cluster, others at the block barrier, in the order of args[0]. */
static void wait_or_sync(const plan_host_index *x, const unsigned long long *args) {
    S->cluster_arrive();
    if ((x->first_thread < 32) == (args[0] != 0))
        S->cluster_wait();
    else
        S->sync();
}
static void wait_or_sync_in_warp(const plan_host_index *x, const unsigned long long *args) {
    S->cluster_arrive();
    if ((x->first_thread < 5) == (args[0] != 0))
        S->cluster_wait();
    else
        S->sync();
}
static void wait_or_exchange(const plan_host_index *x, const unsigned long long *args) {
    S->cluster_arrive();
    if ((x->first_thread < 5) == (args[0] != 0))
        S->cluster_wait();
    else
        (void)S->warp_sum(1);
}
/* Lane 0 waits, the last lane ends, which leaves the others at an exchange that cannot be complete. */
static void wait_exchange_end(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    S->cluster_arrive();
    if (x->first_thread == 0)
        S->cluster_wait();
    else if (x->first_thread < 31)
        (void)S->warp_sum(1);
}
static void end_or_sync(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    begin();
    if (!is_it(x))
        S->sync();
}
static void alone(const plan_host_index *x, const unsigned long long *args) {
    (void)x;
    if (args[0] == 0)
        S->cluster_arrive();
    else if (args[0] == 1)
        S->cluster_wait();
    else
        put(cells[0], 0, 1);
}

/* No put of an abandoned cluster comes into the next one. */
static void untouched(const plan_host_index *x, const unsigned long long *args) {
    (void)args;
    cells[x->first_thread][0] = 3;
    begin();
    begin();
    results[rank_of(x)][x->first_thread] = cells[x->first_thread][0];
}

static void expect(plan_host_kernel *kernel, unsigned long long argument, int block, const char *expected, const char *name) {
    const unsigned long long args[1] = {argument}, rounds[1] = {1};
    const char *text = run(kernel, 2, 64, args);
    const bool good = text && !strcmp(text, expected) && at.block_x == 2 + block && at.block_y == 2;
    check(good, name);
    if (!good)
        printf("# '%s', block %d\n", text ? text : "no fault", at.block_x - 2);
    const bool next = !run(untouched, 2, 64, NULL) && results[0][0] == 3 && !run(ring, 2, 64, rounds) && results[1][63] == 1;
    if (!next)
        check(false, "after a fault the next cluster runs");
}

static void test_faults(void) {
    expect(put_early, 0, 1, "cluster: thread 5 puts into block 0 without having waited for its start", "a put before the first wait");
    expect(put_ended, 1, 0, "cluster: thread 63 puts into block 1, which has ended", "a put into a block that has ended");
    expect(put_ended, 0, 0, "cluster: thread 31 ends as the last of its block, which never waited for what others put",
           "a put into a block that might have ended");
    expect(put_unawaited, 0, 0, "cluster: thread 31 ends as the last of its block, which never waited for what others put",
           "a block that ends before what is put into it comes");
    expect(put_unarrived, 0, 1, "cluster: thread 5 ends without having arrived since it put", "a put that nobody can wait for");
    expect(put_rank, 2, 1, "cluster: thread 5 puts into block 2 of a cluster of 2", "a put beyond the cluster");
    expect(put_rank, (unsigned long long)-1, 1, "cluster: thread 5 puts into block -1 of a cluster of 2", "a put before the cluster");
    expect(put_unaligned, 0, 1, "cluster: thread 5 puts at a place that is not aligned to 16 bytes", "a put across 16 bytes");
    expect(wait_first, 0, 1, "cluster: thread 5 waits without having arrived", "a wait without an arrival");
    expect(wait_twice, 0, 1, "cluster: thread 5 waits without having arrived", "two waits for one arrival");
    expect(arrive_twice, 0, 1, "cluster: thread 5 arrives again without having waited", "two arrivals");
    expect(wait_or_sync, 1, 0, "divergent barrier: thread 63 reached the block barrier while other threads wait for the cluster",
           "the block barrier while others wait");
    expect(wait_or_sync, 0, 0, "divergent barrier: thread 32 reached the cluster's barrier while other threads wait at the block barrier",
           "a wait while others are at the block barrier");
    expect(wait_or_sync_in_warp, 1, 0, "divergent barrier: thread 63 reached the block barrier while other threads wait for the cluster",
           "the block barrier while lanes wait");
    expect(wait_or_sync_in_warp, 0, 0,
           "divergent barrier: thread 5 reached the cluster's barrier while other threads wait at the block barrier",
           "a wait while lanes are at the block barrier");
    expect(wait_or_exchange, 1, 0, "divergent barrier: thread 31 reached warp_sum while other lanes of its warp wait for the cluster",
           "an exchange while lanes wait");
    expect(wait_or_exchange, 0, 0,
           "divergent barrier: thread 5 reached the cluster's barrier while other lanes of its warp wait at a warp exchange",
           "a wait while lanes are at an exchange");
    expect(wait_exchange_end, 0, 0,
           "divergent barrier: thread 31 reached its end while lanes of its warp wait at a warp exchange and for the cluster",
           "an end that leaves an exchange without a lane");
    expect(end_or_sync, 0, 1, "divergent barrier: thread 5 reached its end while other threads wait at the block barrier",
           "an end while others are at the block barrier");
    static const char foreign[] = "a kernel that is not for clusters calls a service for them";
    plan_fibres *f = plan_fibres_open();
    const plan_host_index x = {0, 32, 0, 0, 0, 1, 1, 1, 32};
    for (unsigned long long i = 0; i < 3; i++) {
        const char *text = plan_fibres_run(f, alone, &x, &i);
        bool good = text && !strcmp(text, foreign);
        text = plan_fibres_plain(f, alone, &x, &i);
        check(good && text && !strcmp(text, foreign), "a service for clusters elsewhere");
    }
    plan_fibres_close(f);
    check(run(ring, 17, 32, NULL) && run(ring, 2, 1025, NULL) && run(ring, 0, 32, NULL), "sizes beyond the limits");
    check(!plan_host_cluster_check(cluster), "stacks are intact");
}

int main(void) {
    const plan_allocator none = {NULL, NULL, NULL};
    cluster = plan_host_cluster_open(&none);
    if (!cluster)
        return 1;
    test_allowed();
    test_faults();
    plan_host_cluster_close(cluster);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
