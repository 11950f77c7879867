/* error.h - the calling thread's error text, and the host allocator that the library's own structures come from. */
#ifndef PLAN_ERROR_H
#define PLAN_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

#if defined(__GNUC__)
#define PLAN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define PLAN_PRINTF(f, a)
#endif

/* Sets the thread's error text and returns STATUS, so that a caller can write `return plan_fail(...)`. */
plan_status plan_fail(plan_status status, const char *format, ...) PLAN_PRINTF(2, 3);
/* Puts "WHERE: " before the thread's error text; returns STATUS. */
plan_status plan_fail_prefix(plan_status status, const char *format, ...) PLAN_PRINTF(2, 3);
void plan_error_clear(void);

/* Zeroed memory; NULL when COUNT * SIZE overflows or memory ran out. COUNT 0 gives a pointer that may be released. */
void *plan_host_allocate(const plan_allocator *a, size_t count, size_t size);
void plan_host_release(const plan_allocator *a, void *pointer);

/* Checked arithmetic on sizes: false when the result does not fit. */
static inline bool plan_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    *out = a + b;
    return *out >= a;
}
static inline bool plan_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    *out = a * b;
    return a == 0 || *out / a == b;
}

#endif
