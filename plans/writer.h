/* writer.h - builds a plan file: records are added to sections, strings are interned, raw bytes are given as pieces.
 *
 * The same calls in the same order give the same bytes. A writer is used by one thread at a time. A failure inside
 * (no memory, a section too large, a misused section) is kept and reported by plan_writer_write.
 */
#ifndef PLAN_WRITER_H
#define PLAN_WRITER_H

#include "../runtime/format.h"

#include <stddef.h>

typedef struct plan_writer plan_writer;

/* NULL when there is no memory. */
plan_writer *plan_writer_new(void);
void plan_writer_free(plan_writer *w); /* NULL is allowed */

/* The offset of TEXT in section `strings`: the one it had before, or a new one. "" and NULL are 0. */
uint32_t plan_writer_string(plan_writer *w, const char *text);
/* Appends TEXT to the strings even when an equal one is there, which plan_writer_string goes on finding first. A new
 * writer holds "" at 0. For the text form, whose strings come as a list. */
uint32_t plan_writer_string_append(plan_writer *w, const char *text);

/* Copies RECORD (of the section's record size) to the end of SECTION; its index. */
uint32_t plan_writer_add(plan_writer *w, enum plan_section_id section, const void *record);
/* Records of SECTION so far: what the next one's index will be. */
uint32_t plan_writer_count(const plan_writer *w, enum plan_section_id section);
/* A record that was added, to be patched; valid until the next add to that section. NULL when there is none. */
void *plan_writer_record(plan_writer *w, enum plan_section_id section, uint32_t index);

/* Appends bytes to a raw section (metadata, code, weights, or an optional one above PLAN_SECTION_END).
 * BYTES are not copied: they must stay valid until the writer is freed. Returns the offset they got. */
uint64_t plan_writer_bytes(plan_writer *w, uint32_t section, const void *bytes, uint64_t size);
/* The same, but the bytes are copied at once. */
uint64_t plan_writer_bytes_copy(plan_writer *w, uint32_t section, const void *bytes, uint64_t size);
/* Appends SIZE zero bytes; they take no memory. Returns the offset. */
uint64_t plan_writer_zeros(plan_writer *w, uint32_t section, uint64_t size);
/* Appends zeros up to the next multiple of PLAN_ALIGN; the section's size then. */
uint64_t plan_writer_align(plan_writer *w, uint32_t section);
uint64_t plan_writer_size(const plan_writer *w, uint32_t section);

/* Writes PATH: a temporary file in the same folder, renamed at the end, removed on failure. 0, or 1 and ERROR holds
 * "PATH: what". *WRITTEN (may be NULL) is the size of the file. */
int plan_writer_write(plan_writer *w, const char *path, uint64_t *written, char *error, size_t error_size);
/* Writes to memory that the caller frees with free(). On failure *OUT is NULL. */
int plan_writer_write_memory(plan_writer *w, void **out, uint64_t *size, char *error, size_t error_size);

#endif
