/* writer.c - plan_writer: growable tables, interned strings, raw pieces, and the file from them. */
#include "writer.h"
#include "../runtime/checksum.h"
#include "../runtime/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct piece {
    const uint8_t *bytes; /* NULL: zeros */
    uint64_t size;
    void *owned;          /* freed with the writer, or NULL */
} piece;

typedef struct table {
    uint32_t id;
    uint8_t *records; /* sections of records, and strings */
    uint64_t size, capacity;
    uint32_t count;
    piece *pieces;    /* sections of bytes */
    uint32_t piece_count, piece_capacity;
} table;

struct plan_writer {
    table known[PLAN_SECTION_END];
    table *extra; /* optional sections with ids that this version does not know, ascending */
    uint32_t extra_count;
    uint32_t *slots; /* hash table of string offsets, 0 = empty; "" is not in it */
    uint32_t slot_count, slot_used;
    char failure[160]; /* the first thing that went wrong, or "" */
};

static void fail(plan_writer *w, const char *section, const char *what) {
    if (!w->failure[0]) (void)snprintf(w->failure, sizeof w->failure, "%s: %s", section, what);
}

plan_writer *plan_writer_new(void) {
    plan_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    for (uint32_t id = 0; id < PLAN_SECTION_END; id++) w->known[id].id = id;
    (void)plan_writer_string_append(w, "");
    return w;
}

static void free_table(table *t) {
    for (uint32_t i = 0; i < t->piece_count; i++) free(t->pieces[i].owned);
    free(t->pieces);
    free(t->records);
}

void plan_writer_free(plan_writer *w) {
    if (!w) return;
    for (uint32_t id = 0; id < PLAN_SECTION_END; id++) free_table(&w->known[id]);
    for (uint32_t i = 0; i < w->extra_count; i++) free_table(&w->extra[i]);
    free(w->extra);
    free(w->slots);
    free(w);
}

/* Room for SIZE more bytes of records; NULL and a failure without memory. */
static uint8_t *reserve(plan_writer *w, table *t, uint64_t size) {
    if (t->capacity - t->size < size) {
        uint64_t capacity = t->capacity ? t->capacity : 1024;
        while (capacity - t->size < size) capacity *= 2;
        uint8_t *grown = capacity > SIZE_MAX / 2 ? NULL : realloc(t->records, (size_t)capacity);
        if (!grown) {
            fail(w, plan_schemas[t->id].name, "no memory");
            return NULL;
        }
        t->records = grown;
        t->capacity = capacity;
    }
    return t->records + t->size;
}

/* --- strings --- */

static uint64_t hash_text(const char *text, size_t length) {
    return plan_checksum(text, length);
}

static uint32_t append_text(plan_writer *w, const char *text, size_t length) {
    table *t = &w->known[PLAN_SECTION_STRINGS];
    if (t->size + length + 1 > UINT32_MAX) {
        fail(w, "strings", "more than 4 GB");
        return 0;
    }
    uint8_t *at = reserve(w, t, length + 1);
    if (!at) return 0;
    uint32_t offset = (uint32_t)t->size;
    if (length) memcpy(at, text, length);
    at[length] = 0;
    t->size += length + 1;
    return offset;
}

static const char *text_at(const plan_writer *w, uint32_t offset) {
    return (const char *)w->known[PLAN_SECTION_STRINGS].records + offset;
}

static int grow_slots(plan_writer *w) {
    uint32_t count = w->slot_count ? w->slot_count * 2 : 1024;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots) return 1;
    for (uint32_t i = 0; i < w->slot_count; i++) {
        if (!w->slots[i]) continue;
        const char *text = text_at(w, w->slots[i]);
        uint32_t at = (uint32_t)hash_text(text, strlen(text)) & (count - 1);
        while (slots[at]) at = (at + 1) & (count - 1);
        slots[at] = w->slots[i];
    }
    free(w->slots);
    w->slots = slots;
    w->slot_count = count;
    return 0;
}

/* The slot where TEXT is or would be; PLAN_NONE without memory. */
static uint32_t find_slot(plan_writer *w, const char *text, size_t length) {
    if (w->slot_used >= w->slot_count / 2 && grow_slots(w)) {
        fail(w, "strings", "no memory");
        return PLAN_NONE;
    }
    uint32_t at = (uint32_t)hash_text(text, length) & (w->slot_count - 1);
    while (w->slots[at] && strcmp(text_at(w, w->slots[at]), text) != 0) at = (at + 1) & (w->slot_count - 1);
    return at;
}

static void take_slot(plan_writer *w, uint32_t at, uint32_t offset) {
    if (!offset) return;
    w->slots[at] = offset;
    w->slot_used++;
}

uint32_t plan_writer_string(plan_writer *w, const char *text) {
    if (!text || !text[0]) return 0;
    size_t length = strlen(text);
    uint32_t at = find_slot(w, text, length);
    if (at == PLAN_NONE) return 0;
    if (!w->slots[at]) take_slot(w, at, append_text(w, text, length));
    return w->slots[at];
}

uint32_t plan_writer_string_append(plan_writer *w, const char *text) {
    size_t length = strlen(text);
    uint32_t offset = append_text(w, text, length);
    uint32_t at = length ? find_slot(w, text, length) : PLAN_NONE;
    if (at != PLAN_NONE && !w->slots[at]) take_slot(w, at, offset);
    return offset;
}

/* --- records --- */

static int is_records(uint32_t id) {
    return id > 0 && id < PLAN_SECTION_END && plan_schemas[id].record != 0;
}

uint32_t plan_writer_add(plan_writer *w, enum plan_section_id section, const void *record) {
    uint32_t id = (uint32_t)section;
    if (!is_records(id)) {
        fail(w, "writer", "a record was added to a section that has none");
        return PLAN_NONE;
    }
    table *t = &w->known[id];
    if (t->count == PLAN_NONE - 1) {
        fail(w, plan_schemas[id].name, "more than 4294967294 records");
        return PLAN_NONE;
    }
    uint32_t size = plan_schemas[id].record;
    uint8_t *at = reserve(w, t, size);
    if (!at) return PLAN_NONE;
    memcpy(at, record, size);
    t->size += size;
    return t->count++;
}

uint32_t plan_writer_count(const plan_writer *w, enum plan_section_id section) {
    return is_records((uint32_t)section) ? w->known[section].count : 0;
}

void *plan_writer_record(plan_writer *w, enum plan_section_id section, uint32_t index) {
    if (index >= plan_writer_count(w, section)) return NULL;
    return w->known[section].records + (size_t)index * plan_schemas[section].record;
}

/* --- raw bytes --- */

/* The table of a raw section; unknown ids get one, in ascending order. NULL and a failure otherwise. */
static table *raw_table(plan_writer *w, uint32_t id) {
    if (id >= PLAN_SECTION_METADATA && id <= PLAN_SECTION_WEIGHTS) return &w->known[id];
    if (id < PLAN_SECTION_END) {
        fail(w, "writer", "bytes were added to a section of records");
        return NULL;
    }
    for (uint32_t i = 0; i < w->extra_count; i++)
        if (w->extra[i].id == id) return &w->extra[i];
    table *grown = realloc(w->extra, (w->extra_count + 1) * sizeof *grown);
    if (!grown) {
        fail(w, "writer", "no memory");
        return NULL;
    }
    w->extra = grown;
    uint32_t at = w->extra_count++;
    for (; at > 0 && grown[at - 1].id > id; at--) grown[at] = grown[at - 1];
    grown[at] = (table){.id = id};
    return &grown[at];
}

static uint64_t add_piece(plan_writer *w, uint32_t section, piece added) {
    table *t = raw_table(w, section);
    if (!t || added.size > UINT64_MAX / 4 - t->size) {
        free(added.owned);
        fail(w, "writer", "a section of more than 2^62 bytes");
        return 0;
    }
    uint64_t offset = t->size;
    if (added.size == 0) {
        free(added.owned);
        return offset;
    }
    if (t->piece_count == t->piece_capacity) {
        uint32_t capacity = t->piece_capacity ? t->piece_capacity * 2 : 64;
        piece *grown = realloc(t->pieces, capacity * sizeof *grown);
        if (!grown) {
            free(added.owned);
            fail(w, "writer", "no memory");
            return 0;
        }
        t->pieces = grown;
        t->piece_capacity = capacity;
    }
    t->pieces[t->piece_count++] = added;
    t->size += added.size;
    return offset;
}

uint64_t plan_writer_bytes(plan_writer *w, uint32_t section, const void *bytes, uint64_t size) {
    return add_piece(w, section, (piece){bytes, size, NULL});
}

uint64_t plan_writer_bytes_copy(plan_writer *w, uint32_t section, const void *bytes, uint64_t size) {
    if (size == 0) return add_piece(w, section, (piece){NULL, 0, NULL});
    void *copy = malloc((size_t)size);
    if (!copy) {
        fail(w, "writer", "no memory");
        return 0;
    }
    memcpy(copy, bytes, (size_t)size);
    return add_piece(w, section, (piece){copy, size, copy});
}

uint64_t plan_writer_zeros(plan_writer *w, uint32_t section, uint64_t size) {
    return add_piece(w, section, (piece){NULL, size, NULL});
}

uint64_t plan_writer_size(const plan_writer *w, uint32_t section) {
    if (section < PLAN_SECTION_END) return w->known[section].size;
    for (uint32_t i = 0; i < w->extra_count; i++)
        if (w->extra[i].id == section) return w->extra[i].size;
    return 0;
}

uint64_t plan_writer_align(plan_writer *w, uint32_t section) {
    uint64_t size = plan_writer_size(w, section);
    (void)plan_writer_zeros(w, section, (PLAN_ALIGN - size % PLAN_ALIGN) % PLAN_ALIGN);
    return plan_writer_size(w, section);
}

/* --- output --- */

/* Where bytes go: memory, or a file that is open. */
typedef struct sink {
    uint8_t *memory; /* NULL: file */
    int file;
    uint64_t at;
    int error; /* errno of the first write that failed */
} sink;

static const uint8_t zeros[65536];

static int put(sink *s, const void *bytes, uint64_t size) {
    const uint8_t *from = bytes;
    if (s->memory) {
        if (size) memcpy(s->memory + s->at, from, (size_t)size);
        s->at += size;
        return 0;
    }
    while (size) {
        ssize_t done = write(s->file, from, size < 1u << 20 ? (size_t)size : 1u << 20);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            s->error = done < 0 ? errno : EIO;
            return 1;
        }
        from += done;
        size -= (uint64_t)done;
        s->at += (uint64_t)done;
    }
    return 0;
}

/* Puts SIZE bytes (NULL: zeros) and takes them into the checksum, in pieces that stay in the cache. */
static int put_summed(sink *s, plan_checksum_state *sum, const uint8_t *bytes, uint64_t size) {
    while (size) {
        uint64_t limit = bytes ? 1u << 19 : sizeof zeros;
        uint64_t take = size < limit ? size : limit;
        const uint8_t *from = bytes ? bytes : zeros;
        plan_checksum_add(sum, from, take);
        if (put(s, from, take)) return 1;
        if (bytes) bytes += take;
        size -= take;
    }
    return 0;
}

static int put_section(sink *s, const table *t, plan_section *entry) {
    plan_checksum_state sum;
    plan_checksum_begin(&sum);
    if (put(s, zeros, (PLAN_ALIGN - s->at % PLAN_ALIGN) % PLAN_ALIGN)) return 1;
    uint32_t record = t->id < PLAN_SECTION_END ? plan_schemas[t->id].record : 0;
    *entry = (plan_section){t->id, t->id < PLAN_SECTION_END, s->at, t->size, t->count, record, 0};
    if (t->piece_count == 0 && t->size && put_summed(s, &sum, t->records, t->size)) return 1;
    for (uint32_t i = 0; i < t->piece_count; i++)
        if (put_summed(s, &sum, t->pieces[i].bytes, t->pieces[i].size)) return 1;
    entry->checksum = plan_checksum_end(&sum);
    return 0;
}

/* Prefix and table of a file whose sections are all known. */
static void fill_prefix(plan_prefix *prefix, const plan_section *entries, uint32_t count, uint64_t size) {
    memset(prefix, 0, sizeof *prefix);
    memcpy(prefix->magic, PLAN_MAGIC, sizeof prefix->magic);
    prefix->version = PLAN_FORMAT_VERSION;
    prefix->section_count = count;
    prefix->file_size = size;
    prefix->table_offset = sizeof *prefix;
    prefix->table_checksum = plan_checksum(entries, (uint64_t)count * sizeof *entries);
    prefix->prefix_checksum = plan_checksum(prefix, offsetof(plan_prefix, prefix_checksum));
}

static uint32_t section_total(const plan_writer *w) {
    return PLAN_SECTION_END - 1 + w->extra_count;
}

/* Room for prefix and table, the sections, then the prefix and table at the start. ENTRIES has section_total. */
static int put_plan(const plan_writer *w, sink *s, plan_section *entries, uint64_t *written) {
    uint32_t count = section_total(w);
    plan_prefix prefix = {{0}, 0, 0, 0, 0, 0, 0, {0, 0}};
    memset(entries, 0, count * sizeof *entries);
    if (put(s, &prefix, sizeof prefix) || put(s, entries, count * sizeof *entries)) return 1;
    for (uint32_t i = 0; i < count; i++) {
        const table *t = i < PLAN_SECTION_END - 1 ? &w->known[i + 1] : &w->extra[i - (PLAN_SECTION_END - 1)];
        if (put_section(s, t, &entries[i])) return 1;
    }
    *written = s->at;
    fill_prefix(&prefix, entries, count, s->at);
    s->at = 0;
    if (!s->memory && lseek(s->file, 0, SEEK_SET) != 0) {
        s->error = errno;
        return 1;
    }
    return put(s, &prefix, sizeof prefix) || put(s, entries, count * sizeof *entries);
}

static int report(char *error, size_t error_size, const char *path, const char *what) {
    if (error && error_size) (void)snprintf(error, error_size, "%s: %s", path, what);
    return 1;
}

static int prepare(const plan_writer *w, plan_section **entries, const char *path, char *error, size_t error_size) {
    *entries = NULL;
    if (w->failure[0]) return report(error, error_size, path, w->failure);
    *entries = malloc(section_total(w) * sizeof **entries);
    return *entries ? 0 : report(error, error_size, path, "no memory");
}

int plan_writer_write_memory(plan_writer *w, void **out, uint64_t *size, char *error, size_t error_size) {
    plan_section *entries;
    *out = NULL;
    *size = 0;
    if (prepare(w, &entries, "plan", error, error_size)) return 1;
    uint64_t total = sizeof(plan_prefix) + section_total(w) * sizeof *entries;
    for (uint32_t i = 1; i <= section_total(w); i++) {
        const table *t = i < PLAN_SECTION_END ? &w->known[i] : &w->extra[i - PLAN_SECTION_END];
        total += (PLAN_ALIGN - total % PLAN_ALIGN) % PLAN_ALIGN + t->size;
    }
    sink s = {total > SIZE_MAX / 2 ? NULL : malloc((size_t)total), -1, 0, 0};
    if (!s.memory) {
        free(entries);
        return report(error, error_size, "plan", "no memory");
    }
    (void)put_plan(w, &s, entries, size);
    free(entries);
    *out = s.memory;
    return 0;
}

/* Creates a new file beside PATH; TEMPORARY has room for its name. */
static int create_temporary(const char *path, char *temporary, size_t size) {
    for (int attempt = 0; attempt < 100; attempt++) {
        (void)snprintf(temporary, size, "%s.tmp%ld.%d", path, (long)getpid(), attempt);
        int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

int plan_writer_write(plan_writer *w, const char *path, uint64_t *written, char *error, size_t error_size) {
    plan_section *entries = NULL;
    struct stat found;
    uint64_t total = 0;
    if (lstat(path, &found) == 0 && !S_ISREG(found.st_mode)) /* a link would be replaced, not followed */
        return report(error, error_size, path, "cannot write; expected a regular file or none, found something else");
    if (prepare(w, &entries, path, error, error_size)) return 1;
    size_t name_size = strlen(path) + 48;
    char *temporary = malloc(name_size);
    int status = 1;
    sink s = {NULL, -1, 0, 0};
    if (!temporary) {
        (void)report(error, error_size, path, "no memory");
        goto done;
    }
    s.file = create_temporary(path, temporary, name_size);
    if (s.file < 0) {
        (void)report(error, error_size, path, strerror(errno));
        goto done;
    }
    int failed = put_plan(w, &s, entries, &total);
    if (close(s.file) && !failed) {
        s.error = errno;
        failed = 1;
    }
    if (!failed && rename(temporary, path)) {
        s.error = errno;
        failed = 1;
    }
    if (failed) {
        (void)unlink(temporary);
        (void)report(error, error_size, path, strerror(s.error));
        goto done;
    }
    if (written) *written = total;
    status = 0;
done:
    free(temporary);
    free(entries);
    return status;
}
