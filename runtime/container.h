/* container.h - a plan file in memory, checked and typed.
 *
 * plan_view_open trusts nothing: after it has succeeded every offset, count, index, string, enumeration, run and
 * expression of the view may be used without further checks. A view owns nothing; it points into the caller's bytes,
 * which must stay valid and unchanged. A view is plain data and may be read by any number of threads.
 */
#ifndef PLAN_CONTAINER_H
#define PLAN_CONTAINER_H

#include "format.h"
#include "plan.h"
#include "schema.h"

typedef struct plan_view_section {
    const void *data; /* valid also when empty */
    uint64_t size;    /* bytes */
    uint32_t count;   /* records; 0 for a section of bytes */
} plan_view_section;

typedef struct plan_view {
    const uint8_t *bytes;
    uint64_t size;
    const plan_section *table;
    uint32_t table_count;
    plan_view_section sections[PLAN_SECTION_END]; /* by enum plan_section_id */
    /* The same, typed: `symbols` and `symbol_count`, ...; sections of bytes: `weights` and `weights_size`. */
#define PLAN_VIEW_RECORDS(ID, section, UPPER, lower) \
    const plan_##lower##_record *section; \
    uint32_t lower##_count;
#define PLAN_VIEW_BYTES(ID, section) \
    const uint8_t *section; \
    uint64_t section##_size;
    PLAN_SECTIONS(PLAN_VIEW_RECORDS, PLAN_VIEW_BYTES)
#undef PLAN_VIEW_RECORDS
#undef PLAN_VIEW_BYTES
} plan_view;

/* Checks SIZE bytes at BYTES, which must be aligned to 8, and fills *OUT. Linear time, no recursion, no allocation.
 * On failure *OUT is zero and MESSAGE (of MESSAGE_SIZE bytes, may be NULL) says where, expected, found.
 * Errors: ARGUMENT (null or unaligned), FORMAT, METADATA (a metadata block was made for another signature). */
plan_status plan_view_open(const void *bytes, uint64_t size, plan_view *out, char *message, size_t message_size);

/* The same, but for the checksum of section `weights`, whose bytes are not read: who reads them compares it with
 * *WEIGHTS_CHECKSUM, which is written on success. */
plan_status plan_view_open_unread(const void *bytes, uint64_t size, plan_view *out, uint64_t *weights_checksum, char *message,
                                  size_t message_size);

/* The string at OFFSET, which is the value of a field of kind STR. */
static inline const char *plan_view_string(const plan_view *view, uint32_t offset) {
    return (const char *)view->strings + offset;
}

/* Whether an argument is a place in a region. */
static inline int plan_arg_is_place(const plan_arg_record *a) { return a->kind == PLAN_ARG_POINTER || a->kind == PLAN_ARG_TIMERS; }
static inline uint64_t plan_launch_blocks(const plan_launch_record *l) { return (uint64_t)l->grid_x * l->grid_y * l->grid_z; } /* below 2^63 */
/* The argument that says where the launch's blocks stamp their times, or NULL. */
static inline const plan_arg_record *plan_launch_timers(const plan_view *view, const plan_launch_record *l) {
    const plan_arg_record *last = view->args + l->arg + l->arg_count - 1;
    return l->arg_count && last->kind == PLAN_ARG_TIMERS ? last : NULL;
}

/* Evaluates a checked postfix expression; SYMBOL_VALUES are by index in `symbols`.
 * Errors: RANGE (overflow, division by zero), FORMAT (not a well-formed expression). *OUT is then unchanged. */
plan_status plan_expr_eval(const plan_expr_record *expr, uint32_t count, const int64_t *symbol_values, int64_t *out);
/* NULL when the expression is well formed over SYMBOL_COUNT symbols, else what is wrong with it. */
const char *plan_expr_fault(const plan_expr_record *expr, uint32_t count, uint32_t symbol_count);

/* Checked arithmetic: 0 and *OUT is written, or 1 on overflow. */
int plan_add_i64(int64_t a, int64_t b, int64_t *out);
int plan_mul_i64(int64_t a, int64_t b, int64_t *out);

/* Internal to the reader: the checks that need more than one field (validate.c). */
typedef struct plan_report {
    char *message;
    size_t size;
} plan_report;
plan_status plan_view_validate(const plan_view *view, const plan_report *report);
plan_status plan_view_fail(const plan_report *report, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#endif
