/* driver_host.c - the strict emulated driver: memory and bookkeeping.
 *
 * Modules and launches are in driver_host_code.c, graphs in driver_host_graph.c; this file has allocations with guard bytes, copies, streams,
 * events, the failure on request, and the table. Everything is done when a call returns, so a stream has nothing to wait
 * for; a synchronisation still counts. What the real driver leaves to luck is an error here: see plan_host_enter.
 */
#include "driver_host.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GUARD_BYTES 256u /* also the alignment of what lies between */
#define GUARD_VALUE 0xfb
#define FRESH_VALUE 0xa5 /* nobody may rely on fresh memory being zero */
#define FREED_VALUE 0xdd

struct plan_host_range {
    plan_host_range *next;
    plan_address address;
    uint64_t bytes;
    unsigned char *block; /* guard, bytes, guard; NULL for memory that the caller owns */
    char purpose[48];
};

struct plan_driver_stream {
    void *given;
};
struct plan_driver_event {
    double microseconds;
    bool recorded;
};

/* True while a graph that this thread opened has not been instantiated or closed. */
static bool is_capturing(plan_host_driver *h) {
    if (atomic_load_explicit(&h->open_graphs, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&h->lock);
    bool found = false;
    for (plan_driver_graph *g = h->graphs; g && !found; g = plan_host_graph_next(g))
        found = pthread_equal(*plan_host_graph_owner(g), pthread_self()) != 0;
    pthread_mutex_unlock(&h->lock);
    return found;
}

plan_status plan_host_enter(plan_driver *d, const char *call, bool in_capture) {
    plan_host_driver *h = (plan_host_driver *)d;
    if (atomic_load_explicit(&h->fail_call, memory_order_relaxed) != 0 && atomic_fetch_sub(&h->fail_call, 1) == 1)
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: %s: failed on request", call);
    if (!in_capture && is_capturing(h))
        return plan_fail(PLAN_ERROR_DRIVER, "host driver: %s while a graph is being captured", call);
    return PLAN_OK;
}

plan_status plan_host_find(plan_host_driver *h, plan_address address, uint64_t bytes, const char *what) {
    pthread_mutex_lock(&h->lock);
    plan_host_range *r = h->ranges;
    while (r && !(address >= r->address && address - r->address <= r->bytes && bytes <= r->bytes - (address - r->address)))
        r = r->next;
    pthread_mutex_unlock(&h->lock);
    if (r)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_DRIVER, "host driver: %s: %" PRIu64 " bytes at 0x%" PRIx64 " are in no live allocation", what,
                     bytes, address);
}

static plan_host_range *add_range(plan_host_driver *h, unsigned char *block, plan_address address, uint64_t bytes,
                                  const char *purpose) {
    plan_host_range *r = plan_host_allocate(&h->base.allocator, 1, sizeof *r);
    if (!r)
        return NULL;
    r->block = block;
    r->address = address;
    r->bytes = bytes;
    size_t length = strlen(purpose);
    memcpy(r->purpose, purpose, length < sizeof r->purpose ? length : sizeof r->purpose - 1);
    pthread_mutex_lock(&h->lock);
    r->next = h->ranges;
    h->ranges = r;
    pthread_mutex_unlock(&h->lock);
    return r;
}

static plan_host_range *take_range(plan_host_driver *h, plan_address address, bool owned) {
    pthread_mutex_lock(&h->lock);
    plan_host_range **link = &h->ranges;
    while (*link && !((*link)->address == address && ((*link)->block != NULL) == owned))
        link = &(*link)->next;
    plan_host_range *r = *link;
    if (r)
        *link = r->next;
    pthread_mutex_unlock(&h->lock);
    return r;
}

static plan_status host_allocate(plan_driver *d, uint64_t bytes, const char *purpose, plan_address *out) {
    plan_host_driver *h = (plan_host_driver *)d;
    plan_status status = plan_host_enter(d, "allocate", false);
    if (status)
        return status;
    void *block = NULL;
    uint64_t total;
    if (!plan_add_u64(bytes, 2 * GUARD_BYTES, &total) || total > SIZE_MAX ||
        posix_memalign(&block, GUARD_BYTES, (size_t)total) != 0)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: %s: no memory for %" PRIu64 " bytes", purpose, bytes);
    unsigned char *start = block;
    memset(start, GUARD_VALUE, GUARD_BYTES);
    memset(start + GUARD_BYTES, FRESH_VALUE, (size_t)bytes);
    memset(start + GUARD_BYTES + bytes, GUARD_VALUE, GUARD_BYTES);
    if (!add_range(h, block, (plan_address)(uintptr_t)(start + GUARD_BYTES), bytes, purpose)) {
        free(block);
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: %s: no memory for its record", purpose);
    }
    atomic_fetch_add(&d->allocations, 1);
    *out = (plan_address)(uintptr_t)(start + GUARD_BYTES);
    return PLAN_OK;
}

/* Offset from the start of the allocation of the first guard byte that was overwritten; 0 with *INTACT true. */
static int64_t guard_fault(const plan_host_range *r, bool *intact) {
    const unsigned char *after = r->block + GUARD_BYTES + r->bytes;
    *intact = false;
    for (int64_t i = 0; i < (int64_t)GUARD_BYTES; i++) {
        if (after[i] != GUARD_VALUE)
            return (int64_t)r->bytes + i;
        if (r->block[GUARD_BYTES - 1 - i] != GUARD_VALUE)
            return -1 - i;
    }
    *intact = true;
    return 0;
}

static plan_status check_range(const plan_host_range *r) {
    bool intact;
    int64_t at = guard_fault(r, &intact);
    if (intact)
        return PLAN_OK;
    return plan_fail(PLAN_ERROR_DRIVER, "host driver: region '%s' of %" PRIu64 " bytes was overrun: byte %" PRId64
                     " was written", r->purpose, r->bytes, at);
}

static plan_status host_check(plan_driver *d) {
    plan_host_driver *h = (plan_host_driver *)d;
    plan_status status = PLAN_OK;
    pthread_mutex_lock(&h->lock);
    if (h->overrun[0])
        status = plan_fail(PLAN_ERROR_DRIVER, "%s", h->overrun);
    for (plan_host_range *r = h->ranges; r && !status; r = r->next)
        if (r->block)
            status = check_range(r);
    pthread_mutex_unlock(&h->lock);
    return status ? status : plan_host_pool_check(h->pool);
}

static void host_release(plan_driver *d, plan_address address) {
    plan_host_driver *h = (plan_host_driver *)d;
    if (!address)
        return;
    plan_host_range *r = take_range(h, address, true);
    if (!r) { /* freed twice, or never ours: kept for the next check, since a release cannot fail */
        snprintf(h->overrun, sizeof h->overrun, "host driver: 0x%" PRIx64 " was released but is not allocated", address);
        return;
    }
    bool intact;
    int64_t at = guard_fault(r, &intact);
    if (!intact)
        snprintf(h->overrun, sizeof h->overrun, "host driver: region '%s' was overrun: byte %" PRId64 " was written",
                 r->purpose, at);
    memset(r->block, FREED_VALUE, (size_t)(r->bytes + 2 * GUARD_BYTES));
    free(r->block);
    plan_host_release(&h->base.allocator, r);
}

static plan_status host_allocate_pinned(plan_driver *d, uint64_t bytes, const char *purpose, void **host,
                                        plan_address *device) {
    plan_status status = host_allocate(d, bytes, purpose, device);
    if (!status)
        *host = (void *)(uintptr_t)*device;
    return status;
}

static void host_release_pinned(plan_driver *d, void *host) { host_release(d, (plan_address)(uintptr_t)host); }

static plan_status host_adopt(plan_driver *d, plan_address address, uint64_t bytes) {
    plan_host_driver *h = (plan_host_driver *)d;
    if (!add_range(h, NULL, address, bytes, "bound by the caller"))
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for the record of a bound address");
    return PLAN_OK;
}

static void host_disown(plan_driver *d, plan_address address) {
    plan_host_driver *h = (plan_host_driver *)d;
    plan_host_range *r = take_range(h, address, false);
    plan_host_release(&h->base.allocator, r);
}

static plan_status host_in_use(plan_driver *d, uint64_t *out) {
    plan_host_driver *h = (plan_host_driver *)d;
    plan_status status = plan_host_enter(d, "memory in use", false);
    if (status)
        return status;
    *out = 0;
    pthread_mutex_lock(&h->lock);
    for (const plan_host_range *r = h->ranges; r; r = r->next)
        *out += r->block ? r->bytes : 0;
    pthread_mutex_unlock(&h->lock);
    return PLAN_OK;
}

static plan_status host_zero(plan_driver *d, plan_driver_stream *stream, plan_address to, uint64_t bytes) {
    (void)stream;
    plan_status status = plan_host_enter(d, "zero", false);
    if (!status)
        status = plan_host_find((plan_host_driver *)d, to, bytes, "zero");
    if (!status && bytes)
        memset((void *)(uintptr_t)to, 0, (size_t)bytes);
    return status;
}

static plan_status copy(plan_driver *d, const char *call, void *to, const void *from, uint64_t bytes, plan_address device,
                        plan_address other) {
    plan_host_driver *h = (plan_host_driver *)d;
    plan_status status = plan_host_enter(d, call, false);
    if (!status)
        status = plan_host_find(h, device, bytes, call);
    if (!status && other)
        status = plan_host_find(h, other, bytes, call);
    if (status)
        return status;
    if (bytes)
        memmove(to, from, (size_t)bytes);
    atomic_fetch_add(&d->copies, 1);
    return PLAN_OK;
}

static plan_status host_to_device(plan_driver *d, plan_driver_stream *stream, plan_address to, const void *from,
                                  uint64_t bytes) {
    (void)stream;
    return copy(d, "copy to the device", (void *)(uintptr_t)to, from, bytes, to, 0);
}

static plan_status host_from_device(plan_driver *d, plan_driver_stream *stream, void *to, plan_address from, uint64_t bytes) {
    (void)stream;
    return copy(d, "copy from the device", to, (const void *)(uintptr_t)from, bytes, from, 0);
}

static plan_status host_on_device(plan_driver *d, plan_driver_stream *stream, plan_address to, plan_address from,
                                  uint64_t bytes) {
    (void)stream;
    return copy(d, "copy on the device", (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, to, from);
}

static plan_status host_stream_open(plan_driver *d, void *given, plan_driver_stream **out) {
    plan_status status = plan_host_enter(d, "create a stream", false);
    if (status)
        return status;
    *out = plan_host_allocate(&d->allocator, 1, sizeof **out);
    if (!*out)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for a stream");
    (*out)->given = given;
    return PLAN_OK;
}

static void host_stream_close(plan_driver *d, plan_driver_stream *s) { plan_host_release(&d->allocator, s); }

static plan_status host_synchronise(plan_driver *d, plan_driver_stream *s) {
    (void)s;
    plan_status status = plan_host_enter(d, "synchronise", false);
    if (!status)
        atomic_fetch_add(&d->synchronisations, 1);
    return status;
}

static plan_status host_event_open(plan_driver *d, plan_driver_event **out) {
    plan_status status = plan_host_enter(d, "create an event", false);
    if (status)
        return status;
    *out = plan_host_allocate(&d->allocator, 1, sizeof **out);
    return *out ? PLAN_OK : plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory for an event");
}

static void host_event_close(plan_driver *d, plan_driver_event *e) { plan_host_release(&d->allocator, e); }

static plan_status host_event_record(plan_driver *d, plan_driver_stream *s, plan_driver_event *e) {
    (void)s;
    plan_status status = plan_host_enter(d, "record an event", false);
    if (status)
        return status;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    e->microseconds = (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
    e->recorded = true;
    return PLAN_OK;
}

static plan_status host_event_elapsed(plan_driver *d, plan_driver_event *from, plan_driver_event *to, double *microseconds) {
    plan_status status = plan_host_enter(d, "time between events", false);
    if (!status && !(from->recorded && to->recorded))
        status = plan_fail(PLAN_ERROR_DRIVER, "host driver: time between events that were not recorded");
    if (!status)
        *microseconds = to->microseconds - from->microseconds;
    return status;
}

static void host_close(plan_driver *d) {
    plan_host_driver *h = (plan_host_driver *)d;
    plan_host_pool_close(h->pool);
    while (h->ranges) {
        plan_host_range *r = h->ranges;
        h->ranges = r->next;
        free(r->block);
        plan_host_release(&d->allocator, r);
    }
    pthread_mutex_destroy(&h->lock);
    plan_allocator allocator = d->allocator;
    plan_host_release(&allocator, h);
}

static void fill_table(plan_driver *d) {
    d->close = host_close;
    d->allocate = host_allocate;
    d->release = host_release;
    d->allocate_pinned = host_allocate_pinned;
    d->release_pinned = host_release_pinned;
    d->adopt = host_adopt;
    d->disown = host_disown;
    d->check = host_check;
    d->in_use = host_in_use;
    d->zero = host_zero;
    d->to_device = host_to_device;
    d->from_device = host_from_device;
    d->on_device = host_on_device;
    d->stream_open = host_stream_open;
    d->stream_close = host_stream_close;
    d->synchronise = host_synchronise;
    d->event_open = host_event_open;
    d->event_close = host_event_close;
    d->event_record = host_event_record;
    d->event_elapsed = host_event_elapsed;
    plan_host_fill_code(d);
    plan_host_fill_graphs(d);
}

plan_status plan_driver_host_open(const plan_driver_options *options, plan_driver **out) {
    *out = NULL;
    plan_host_driver *h = plan_host_allocate(&options->allocator, 1, sizeof *h);
    if (!h)
        return plan_fail(PLAN_ERROR_MEMORY, "host driver: no memory");
    plan_status status = plan_host_pool_open(options->threads, &options->allocator, &h->pool);
    if (status) {
        plan_host_release(&options->allocator, h);
        return status;
    }
    h->base.allocator = options->allocator;
    pthread_mutex_init(&h->lock, NULL);
    atomic_store(&h->fail_call, options->fail_call > INT64_MAX ? 0 : (int64_t)options->fail_call);
    snprintf(h->base.target, sizeof h->base.target, "host");
    fill_table(&h->base);
    *out = &h->base;
    return PLAN_OK;
}
