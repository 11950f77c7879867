/* error.c - thread-local error text, status names, version, and the host allocator. */
#include "error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 2048

/* The text is not a thread-local array: fibre.c's initial-exec variable makes all thread-local storage of the library
 * static, and a large block would keep programs from loading the library while they run (dlopen). */
static pthread_key_t text_key;
static pthread_once_t text_once = PTHREAD_ONCE_INIT;
static int text_ready;

static void make_key(void) { text_ready = pthread_key_create(&text_key, free) == 0; }

/* This thread's text; NULL when there is no memory for one. */
static char *error_text(void) {
    if (pthread_once(&text_once, make_key) != 0 || !text_ready)
        return NULL;
    char *text = pthread_getspecific(text_key);
    if (!text && (text = calloc(1, TEXT_BYTES)) != NULL && pthread_setspecific(text_key, text) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

const char *plan_error_message(void) {
    const char *text = error_text();
    return text ? text : "out of memory, for the text of an error too";
}

void plan_error_clear(void) {
    char *text = error_text();
    if (text)
        text[0] = 0;
}

plan_status plan_fail(plan_status status, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list list;
    va_start(list, format);
    /* Formatted aside first: an argument may be the present text itself. */
    if (vsnprintf(text, sizeof text, format, list) < 0)
        text[0] = 0;
    va_end(list);
    char *kept = error_text();
    if (kept)
        memcpy(kept, text, sizeof text);
    return status;
}

plan_status plan_fail_prefix(plan_status status, const char *format, ...) {
    char where[512];
    va_list list;
    va_start(list, format);
    if (vsnprintf(where, sizeof where, format, list) < 0)
        where[0] = 0;
    va_end(list);
    return plan_fail(status, "%s: %.1500s", where, plan_error_message());
}

const char *plan_status_name(plan_status status) {
    static const char *const names[] = {"OK",    "ARGUMENT", "FILE",  "FORMAT",   "TARGET", "MEMORY",   "DRIVER",
                                        "STATE", "NAME",     "RANGE", "CAPACITY", "BUSY",   "METADATA", "BINDING"};
    unsigned number = (unsigned)status;
    return number < sizeof names / sizeof names[0] ? names[number] : "UNKNOWN";
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor) TEXT_OF(major) "." TEXT_OF(minor) ".0"
const char *plan_version(void) { return VERSION_TEXT(PLAN_VERSION_MAJOR, PLAN_VERSION_MINOR); }

void *plan_host_allocate(const plan_allocator *a, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size)
        return NULL;
    size_t bytes = count * size;
    if (bytes == 0)
        bytes = 1;
    void *p = a->allocate ? a->allocate(a->context, bytes) : malloc(bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void plan_host_release(const plan_allocator *a, void *pointer) {
    if (!pointer)
        return;
    if (a->release)
        a->release(a->context, pointer);
    else
        free(pointer);
}
