/* assemble.c - reads the text form of a plan into a writer. text.c prints it. */
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (1u << 20) /* raw bytes that are collected before they become a piece */

typedef struct reader {
    const char *at, *end, *line_start;
    uint64_t line;
    plan_writer *w;
    uint8_t *chunk; /* CHUNK bytes */
    uint32_t chunk_used;
    char *word; /* the last string, without escapes; as large as the longest so far */
    size_t word_size;
    char *error;
    size_t error_size;
} reader;

static int fail(reader *r, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
static int fail(reader *r, const char *format, ...) {
    if (!r->error || !r->error_size) return 1;
    int used = snprintf(r->error, r->error_size, "%" PRIu64 ":%td: ", r->line, r->at - r->line_start + 1);
    if (used < 0 || (size_t)used >= r->error_size) return 1;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(r->error + used, r->error_size - (size_t)used, format, arguments);
    va_end(arguments);
    return 1;
}

static void skip_blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static int at_line_end(reader *r) {
    skip_blanks(r);
    return r->at == r->end || *r->at == '\n' || *r->at == '#';
}

/* Past the rest of this line, blank lines and comments. 0 at the end of the text. */
static int next_line(reader *r) {
    while (r->at < r->end) {
        if (!at_line_end(r)) return 1;
        const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = newline ? newline + 1 : r->end;
        r->line_start = r->at;
        r->line += newline != NULL;
    }
    return 0;
}

static int expect_line_end(reader *r) {
    return at_line_end(r) ? 0 : fail(r, "expected the end of the line, found '%c'", *r->at);
}

static int expect_char(reader *r, char wanted) {
    if (r->at < r->end && *r->at == wanted) {
        r->at++;
        return 0;
    }
    if (r->at < r->end && *r->at != '\n') return fail(r, "expected '%c', found '%c'", wanted, *r->at);
    return fail(r, "expected '%c', found the end of the line", wanted);
}

static int is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A word of letters, digits and underscores; its length, 0 when there is none. */
static size_t name_length(const reader *r) {
    size_t length = 0;
    while ((size_t)(r->end - r->at) > length && is_name(r->at[length])) length++;
    return length;
}

static int is_word(const char *at, size_t length, const char *word) {
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* A number that fits LIMIT; a minus sign is allowed for the value of an int64 when IS_SIGNED. */
static int read_number(reader *r, uint64_t limit, int is_signed, uint64_t *out) {
    const char *start = r->at;
    int negative = is_signed && r->at < r->end && *r->at == '-';
    if (negative) r->at++;
    uint64_t base = 10, value = 0;
    if (r->end - r->at > 2 && r->at[0] == '0' && r->at[1] == 'x') base = 16, r->at += 2;
    const char *digits = r->at;
    if (negative) limit = UINT64_C(1) << 63;
    else if (is_signed) limit = INT64_MAX;
    for (; r->at < r->end; r->at++) {
        int digit = hex_digit(*r->at);
        if (digit < 0 || (uint64_t)digit >= base) break;
        if ((uint64_t)digit > limit || value > (limit - (uint64_t)digit) / base) {
            r->at = start;
            return fail(r, "expected a number of at most %" PRIu64 ", found a larger one", limit);
        }
        value = value * base + (uint64_t)digit;
    }
    if (r->at == digits) {
        r->at = start;
        return fail(r, "expected a number, found '%.*s'", (int)(r->at < r->end && *r->at != '\n'), r->at);
    }
    *out = negative ? 0 - value : value;
    return 0;
}

/* --- strings --- */

static int read_escape(reader *r, char *out) {
    if (r->at == r->end) return fail(r, "expected an escape, found the end of the text");
    char c = *r->at++;
    switch (c) {
    case 'n': *out = '\n'; return 0;
    case 't': *out = '\t'; return 0;
    case '"': case '\\': *out = c; return 0;
    case 'x': {
        int high = r->end - r->at >= 2 ? hex_digit(r->at[0]) : -1;
        int low = high >= 0 ? hex_digit(r->at[1]) : -1;
        if (low < 0 || (high | low) == 0) return fail(r, "expected two hexadecimal digits that are not 00");
        r->at += 2;
        *out = (char)(high * 16 + low);
        return 0;
    }
    default: r->at--; return fail(r, "expected an escape \\n \\t \\\" \\\\ or \\xHH, found '%c'", c);
    }
}

/* A quoted string into r->word. */
static int read_string(reader *r) {
    if (expect_char(r, '"')) return 1;
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    size_t limit = (size_t)((newline ? newline : r->end) - r->at) + 1;
    if (limit > r->word_size) {
        char *grown = realloc(r->word, limit * 2);
        if (!grown) return fail(r, "no memory");
        r->word = grown;
        r->word_size = limit * 2;
    }
    char *out = r->word;
    while (r->at < r->end && *r->at != '"' && *r->at != '\n') {
        if (*r->at == '\0') return fail(r, "expected text, found a NUL");
        if (*r->at != '\\') {
            *out++ = *r->at++;
            continue;
        }
        r->at++;
        if (read_escape(r, out++)) return 1;
    }
    *out = '\0';
    return expect_char(r, '"');
}

/* strings[OFFSET] "text": the list in order. The first is the empty one, which the writer has already. */
static int read_listed_string(reader *r, uint64_t offset) {
    uint64_t next = offset == 0 ? 0 : plan_writer_size(r->w, PLAN_SECTION_STRINGS);
    if (offset != next) return fail(r, "expected strings[%" PRIu64 "], found strings[%" PRIu64 "]", next, offset);
    skip_blanks(r);
    if (read_string(r)) return 1;
    if (offset == 0) return r->word[0] ? fail(r, "expected \"\" as strings[0], found another") : 0;
    (void)plan_writer_string_append(r->w, r->word);
    return 0;
}

/* --- records --- */

static int read_enum(reader *r, const plan_field *field, uint64_t *out) {
    if (r->at < r->end && *r->at >= '0' && *r->at <= '9') return read_number(r, UINT32_MAX, 0, out);
    size_t length = name_length(r);
    for (uint32_t i = 0; i < field->names->count; i++)
        if (is_word(r->at, length, field->names->names[i].name)) {
            r->at += length;
            *out = field->names->names[i].value;
            return 0;
        }
    return fail(r, "expected a %s, found '%.*s'", field->names->what, (int)(length < 40 ? length : 40), r->at);
}

static int read_value(reader *r, const plan_field *field, uint64_t *out) {
    if (field->kind == PLAN_KIND_STR) {
        if (r->at < r->end && *r->at == '@') {
            r->at++;
            return read_number(r, UINT32_MAX, 0, out);
        }
        if (read_string(r)) return 1;
        *out = plan_writer_string(r->w, r->word);
        return 0;
    }
    if (field->kind == PLAN_KIND_ENUM) return read_enum(r, field, out);
    if (field->kind == PLAN_KIND_INDEX && is_word(r->at, name_length(r), "none")) {
        r->at += 4;
        *out = PLAN_NONE;
        return 0;
    }
    return read_number(r, field->width == 4 ? UINT32_MAX : UINT64_MAX, field->is_signed, out);
}

/* The field that is named here; EXPECTED is tried first. */
static const plan_field *find_field(const reader *r, const plan_schema *schema, uint32_t expected, size_t length) {
    if (expected < schema->field_count && is_word(r->at, length, schema->fields[expected].name))
        return &schema->fields[expected];
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (is_word(r->at, length, schema->fields[i].name)) return &schema->fields[i];
    return NULL;
}

static void set_field(uint8_t *record, const plan_field *field, uint64_t value) {
    uint32_t narrow = (uint32_t)value;
    if (field->width == 8) memcpy(record + field->offset, &value, 8);
    else memcpy(record + field->offset, &narrow, 4);
}

/* Fields in any order, each at most once; those that are missing are 0. */
static_assert(sizeof(plan_signature_record) <= 256, "the largest record");
static int read_record(reader *r, uint32_t id, uint64_t index) {
    const plan_schema *schema = &plan_schemas[id];
    uint64_t record[256 / 8] = {0};
    uint64_t seen = 0;
    uint32_t next = 0;
    if (index != plan_writer_count(r->w, (enum plan_section_id)id))
        return fail(r, "expected %s[%" PRIu32 "], found %s[%" PRIu64 "]", schema->name,
                    plan_writer_count(r->w, (enum plan_section_id)id), schema->name, index);
    while (!at_line_end(r)) {
        uint64_t value;
        size_t length = name_length(r);
        const plan_field *field = find_field(r, schema, next, length);
        if (!field)
            return fail(r, "expected a field of %s, found '%.*s'", schema->name, (int)(length < 40 ? length : 40), r->at);
        next = (uint32_t)(field - schema->fields);
        if (seen >> next & 1) return fail(r, "expected '%s' once, found it again", field->name);
        seen |= UINT64_C(1) << next++;
        r->at += length;
        if (expect_char(r, '=') || read_value(r, field, &value)) return 1;
        set_field((uint8_t *)record, field, value);
        if (r->at < r->end && is_name(*r->at)) return fail(r, "expected a blank, found '%c'", *r->at);
    }
    (void)plan_writer_add(r->w, (enum plan_section_id)id, record);
    return 0;
}

/* --- raw bytes --- */

static void flush_chunk(reader *r, uint32_t id) {
    (void)plan_writer_bytes_copy(r->w, id, r->chunk, r->chunk_used);
    r->chunk_used = 0;
}

static int read_hex_line(reader *r, uint32_t id, uint64_t limit, uint64_t *done) {
    while (r->end - r->at >= 2) {
        int high = hex_digit(r->at[0]), low = hex_digit(r->at[1]);
        if ((high | low) < 0) break;
        if (*done == limit) return fail(r, "expected %" PRIu64 " bytes, found more", limit);
        if (r->chunk_used == CHUNK) flush_chunk(r, id);
        r->chunk[r->chunk_used++] = (uint8_t)(high << 4 | low);
        ++*done;
        r->at += 2;
    }
    return expect_line_end(r);
}

static int read_raw(reader *r, uint32_t id) {
    uint64_t size, done = 0, zeros;
    skip_blanks(r);
    if (plan_writer_size(r->w, id)) return fail(r, "expected each section once, found it again");
    if (read_number(r, UINT64_MAX / 4, 0, &size) || expect_line_end(r)) return 1;
    if (size == 0) (void)plan_writer_zeros(r->w, id, 0); /* makes an empty optional section */
    while (done < size) {
        if (!next_line(r)) return fail(r, "expected %" PRIu64 " bytes, found %" PRIu64, size, done);
        if (!is_word(r->at, name_length(r), "zeros")) {
            if (read_hex_line(r, id, size, &done)) return 1;
            continue;
        }
        r->at += strlen("zeros");
        skip_blanks(r);
        if (read_number(r, size - done, 0, &zeros) || expect_line_end(r)) return 1;
        flush_chunk(r, id);
        (void)plan_writer_zeros(r->w, id, zeros);
        done += zeros;
    }
    flush_chunk(r, id);
    return 0;
}

/* --- lines --- */

static int read_index(reader *r, uint64_t *index) {
    return expect_char(r, '[') || read_number(r, UINT32_MAX, 0, index) || expect_char(r, ']');
}

static int read_line(reader *r) {
    uint64_t index = 0;
    size_t length = name_length(r);
    const char *name = r->at;
    if (is_word(name, length, "section")) {
        r->at += length;
        if (read_index(r, &index)) return 1;
        if (index < PLAN_SECTION_END) return fail(r, "expected a section number from %d on", PLAN_SECTION_END);
        return read_raw(r, (uint32_t)index);
    }
    for (uint32_t id = 1; id < PLAN_SECTION_END; id++) {
        if (!is_word(name, length, plan_schemas[id].name)) continue;
        r->at += length;
        if (id >= PLAN_SECTION_METADATA) return read_raw(r, id);
        if (read_index(r, &index)) return 1;
        if (id == PLAN_SECTION_STRINGS) return read_listed_string(r, index) || expect_line_end(r);
        return read_record(r, id, index);
    }
    return fail(r, "expected the name of a section, found '%.*s'", (int)(length < 40 ? length : 40), name);
}

static int read_all(reader *r) {
    uint64_t version;
    if (!next_line(r) || !is_word(r->at, name_length(r), "plan"))
        return fail(r, "expected 'plan %u', found another line", PLAN_FORMAT_VERSION);
    r->at += strlen("plan");
    skip_blanks(r);
    if (read_number(r, UINT32_MAX, 0, &version)) return 1;
    if (version != PLAN_FORMAT_VERSION)
        return fail(r, "plan version %" PRIu64 ", this program reads %u", version, PLAN_FORMAT_VERSION);
    if (expect_line_end(r)) return 1;
    while (next_line(r))
        if (read_line(r) || expect_line_end(r)) return 1;
    return 0;
}

int plan_text_assemble(const char *text, size_t size, plan_writer *w, char *error, size_t error_size) {
    reader r = {.at = text, .end = text + size, .line_start = text, .line = 1, .w = w, .error = error,
                .error_size = error_size};
    r.chunk = malloc(CHUNK);
    int status = r.chunk ? read_all(&r) : fail(&r, "no memory");
    free(r.chunk);
    free(r.word);
    return status;
}
