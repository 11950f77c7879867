/* scan.h - a cursor over the lines of a text form, for graph_parse.c. The first error stops it: later calls do nothing
 * and give zeros, so statements are read straight through and asked once at their end. */
#ifndef GCC_PLAN_SCAN_H
#define GCC_PLAN_SCAN_H

#include "compiler.h"

typedef struct Scan {
    Compilation *c;
    const char *file;
    char *line, *at; /* the present line, zero-terminated, and the place in it */
    char *next;      /* the line after it; NULL at the end */
    int number;      /* of the present line, from 1; at the end of the text, of its last statement */
    int passed;      /* lines, comments too */
    bool failed;
} Scan;

/* TEXT is cut into lines in place; it must be zero-terminated. */
void scan_begin(Scan *s, Compilation *c, char *text, const char *file);
/* To the next line that is neither empty nor a comment (#); false at the end or after an error. */
bool scan_line(Scan *s);
void scan_error(Scan *s, const char *format, ...); /* "FILE: line 3, column 7: ..." */

bool scan_take(Scan *s, const char *text);   /* skips blanks; true and past it when TEXT is next */
void scan_want(Scan *s, const char *text);   /* the same, an error when it is not */
bool scan_at_end(Scan *s);                   /* of the line */
void scan_want_end(Scan *s);
const char *scan_name(Scan *s);              /* a plain word or a quoted text */
int64_t scan_int(Scan *s, int64_t lo, int64_t hi);
uint32_t scan_index(Scan *s, uint32_t highest);
uint64_t scan_hex(Scan *s);
/* "NAME=N" with a number in lo..hi */
int64_t scan_field(Scan *s, const char *name, int64_t lo, int64_t hi);
/* A dim up to a ',' ']' '>' outside of brackets, or the end, or a word that stands before '='; 0 for "?". */
Dim scan_dim(Scan *s);
/* "OPEN DIM, DIM, ... CLOSE"; the list in the arena. */
Dim *scan_dims(Scan *s, char open, char close, int highest, int *count);

#endif
