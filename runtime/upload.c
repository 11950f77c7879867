/* upload.c - host bytes to the device. The pieces are cut into chunks; workers take one after the other, each into the next of its
 * two pinned buffers, and start a copy on that buffer's stream: while it runs the worker fills the other buffer. The caller is
 * the first worker. Little goes straight from where it lies. */
#include "upload.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checksum.h"
#include "error.h"

#define CHUNK_BYTES (UINT64_C(2) << 20) /* a copy of this size is long against its start */
#define CHUNK_BLOCKS (CHUNK_BYTES / PLAN_CHECKSUM_BLOCK)
#define MOST_WORKERS 16u
#define DIRECT_BYTES (2 * CHUNK_BYTES) /* up to this, pinning memory takes longer than it saves */

typedef struct upload {
    plan_driver *d;
    plan_upload_piece *pieces;
    uint64_t *first;  /* by piece, and one behind: its first chunk */
    uint64_t *sums;   /* by block, CHUNK_BLOCKS a chunk */
    uint32_t count;
    unsigned workers;
    atomic_uint_fast64_t next;
    atomic_bool failed;
} upload;

typedef struct half {
    void *buffer; /* pinned; NULL: copies start where the bytes lie */
    plan_address unused;
    plan_driver_stream *stream;
} half;

typedef struct worker {
    upload *u;
    half halves[2];
    pthread_t thread;
    bool started;
    plan_status status;
    char text[1024]; /* the error of its thread */
} worker;

/* The piece of chunk NUMBER: the last whose first chunk is not beyond it. */
static uint32_t piece_of(const upload *u, uint64_t number) {
    uint32_t low = 0, high = u->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (u->first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void sum_blocks(const unsigned char *bytes, uint64_t size, uint64_t *sums) {
    for (uint64_t at = 0; at < size; at += PLAN_CHECKSUM_BLOCK)
        *sums++ = plan_checksum(bytes + at, size - at < PLAN_CHECKSUM_BLOCK ? size - at : PLAN_CHECKSUM_BLOCK);
}

/* Asks for a chunk that will be read soon; only a hint, so nothing is wrong where it fails. */
static void read_ahead(const upload *u, const plan_upload_piece *p, uint64_t at) {
    const uint64_t later = at + 2 * u->workers * CHUNK_BYTES;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (later >= p->bytes || !u->workers)
        return;
    const uintptr_t start = ((uintptr_t)p->from + (uintptr_t)later) / page * page;
    void *address;
    memcpy(&address, &start, sizeof address);
    (void)posix_madvise(address, (size_t)(p->bytes - later < CHUNK_BYTES ? p->bytes - later : CHUNK_BYTES), POSIX_MADV_WILLNEED);
}

/* The part of TARGET in bytes AT to AT + SIZE of its piece, which lie at BYTES now. */
static plan_status copy_part(upload *u, const plan_upload_target *t, uint64_t at, const unsigned char *bytes, uint64_t size,
                             plan_driver_stream *stream) {
    const uint64_t from = t->offset > at ? t->offset : at;
    const uint64_t to = t->offset + t->bytes < at + size ? t->offset + t->bytes : at + size;
    return from < to ? u->d->to_device(u->d, stream, t->to + (from - t->offset), bytes + (from - at), to - from) : PLAN_OK;
}

static plan_status copy_chunk(upload *u, uint64_t number, half *h) {
    const uint32_t piece = piece_of(u, number);
    const plan_upload_piece *p = &u->pieces[piece];
    const uint64_t at = (number - u->first[piece]) * CHUNK_BYTES, size = p->bytes - at < CHUNK_BYTES ? p->bytes - at : CHUNK_BYTES;
    const unsigned char *bytes = p->from + at;
    plan_status status = PLAN_OK;
    if (h->buffer) {
        read_ahead(u, p, at);
        status = u->d->synchronise(u->d, h->stream); /* the copy that this buffer was used for */
        if (status)
            return status;
        memcpy(h->buffer, bytes, (size_t)size);
        bytes = h->buffer;
    }
    sum_blocks(bytes, size, u->sums + number * CHUNK_BLOCKS);
    for (unsigned i = 0; i < 2 && !status; i++)
        status = copy_part(u, &p->targets[i], at, bytes, size, h->stream);
    return status;
}

static void *work(void *given) {
    worker *w = given;
    upload *u = w->u;
    unsigned turn = 0;
    uint64_t number;
    while (!w->status && !atomic_load(&u->failed) && (number = atomic_fetch_add(&u->next, 1)) < u->first[u->count])
        w->status = copy_chunk(u, number, &w->halves[turn++ % 2]);
    for (unsigned i = 0; i < 2 && w->halves[i].stream; i++) { /* also after an error: the buffers are freed next */
        plan_status status = u->d->synchronise(u->d, w->halves[i].stream);
        w->status = w->status ? w->status : status;
    }
    if (w->status) {
        snprintf(w->text, sizeof w->text, "%s", plan_error_message());
        atomic_store(&u->failed, true);
    }
    return NULL;
}

static plan_status open_worker(upload *u, worker *w) {
    plan_status status = PLAN_OK;
    w->u = u;
    for (unsigned i = 0; i < 2 && !status; i++) {
        status = u->d->allocate_pinned(u->d, CHUNK_BYTES, "staging", &w->halves[i].buffer, &w->halves[i].unused);
        if (!status)
            status = u->d->stream_open(u->d, NULL, &w->halves[i].stream);
    }
    return status;
}

static void close_worker(upload *u, worker *w) {
    for (unsigned i = 0; i < 2; i++) {
        if (w->halves[i].stream)
            u->d->stream_close(u->d, w->halves[i].stream);
        if (w->halves[i].buffer)
            u->d->release_pinned(u->d, w->halves[i].buffer);
    }
}

static unsigned count_workers(uint64_t chunks) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = cores < 1 ? 1 : cores > (long)MOST_WORKERS ? MOST_WORKERS : (unsigned)cores;
    return chunks < workers ? (unsigned)chunks : workers;
}

static plan_status run_workers(upload *u) {
    worker workers[MOST_WORKERS];
    plan_status status = PLAN_OK;
    memset(workers, 0, sizeof workers);
    workers[0].u = u;
    for (unsigned i = 0; i < u->workers && !status; i++)
        status = open_worker(u, &workers[i]);
    for (unsigned i = 1; i < u->workers && !status; i++) /* one that cannot start leaves its share to the others */
        workers[i].started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    if (!status)
        work(&workers[0]);
    for (unsigned i = 1; i < u->workers; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < MOST_WORKERS && !status; i++)
        if (workers[i].status)
            status = plan_fail(workers[i].status, "%s", workers[i].text);
    for (unsigned i = 0; i < u->workers; i++)
        close_worker(u, &workers[i]);
    return status;
}

static void join_sums(const upload *u) {
    for (uint32_t i = 0; i < u->count; i++) {
        const uint64_t blocks = (u->pieces[i].bytes + PLAN_CHECKSUM_BLOCK - 1) / PLAN_CHECKSUM_BLOCK;
        u->pieces[i].sum = plan_checksum_join(u->sums + u->first[i] * CHUNK_BLOCKS, blocks);
    }
}

plan_status plan_upload(plan_driver *d, plan_upload_piece *pieces, uint32_t count) {
    upload u = {.d = d, .pieces = pieces, .count = count};
    uint64_t bytes = 0, chunks = 0;
    u.first = plan_host_allocate(&d->allocator, (size_t)count + 1, sizeof *u.first);
    for (uint32_t i = 0; i < count && u.first; i++) {
        u.first[i] = chunks;
        chunks += (pieces[i].bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
        bytes += pieces[i].bytes;
    }
    if (u.first)
        u.first[count] = chunks;
    u.sums = plan_host_allocate(&d->allocator, (size_t)chunks, CHUNK_BLOCKS * sizeof *u.sums);
    plan_status status = PLAN_OK;
    if (!u.first || !u.sums)
        status = plan_fail(PLAN_ERROR_MEMORY, "upload: no memory for %" PRIu64 " chunks", chunks);
    u.workers = bytes > DIRECT_BYTES ? count_workers(chunks) : 0;
    if (!status)
        status = run_workers(&u);
    if (!status)
        join_sums(&u);
    plan_host_release(&d->allocator, u.first);
    plan_host_release(&d->allocator, u.sums);
    return status;
}
