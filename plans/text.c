/* text.c - prints a plan in its text form. assemble.c reads it back. */
#include "text.h"

#include <inttypes.h>
#include <string.h>

#define LINE 64 /* raw bytes of a line */

void plan_text_quote(FILE *out, const char *text) {
    putc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\') {
            putc('\\', out);
            putc(*at, out);
        } else if (*at == '\n') {
            fputs("\\n", out);
        } else if (*at == '\t') {
            fputs("\\t", out);
        } else if (*at < 0x20 || *at == 0x7f) {
            fprintf(out, "\\x%02x", *at);
        } else {
            putc(*at, out);
        }
    }
    putc('"', out);
}

/* The strings in order; afterwards STRINGS finds the first offset of each. */
static void print_strings(const plan_view *view, plan_writer *strings, FILE *out) {
    for (uint64_t at = 0; at < view->strings_size;) {
        const char *text = plan_view_string(view, (uint32_t)at);
        fprintf(out, "strings[%" PRIu64 "] ", at);
        plan_text_quote(out, text);
        putc('\n', out);
        if (at) (void)plan_writer_string_append(strings, text);
        at += strlen(text) + 1;
    }
}

static void print_field(const plan_view *view, plan_writer *strings, const plan_field *field, const void *record,
                        FILE *out) {
    uint64_t value = plan_field_get(field, record);
    fprintf(out, " %s=", field->name);
    switch (field->kind) {
    case PLAN_KIND_STR: {
        const char *text = plan_view_string(view, (uint32_t)value);
        if (plan_writer_string(strings, text) == value) plan_text_quote(out, text);
        else fprintf(out, "@%" PRIu64, value); /* a second copy, or the tail of a string */
        break;
    }
    case PLAN_KIND_ENUM: fputs(plan_enum_text(field->names, (uint32_t)value), out); break;
    case PLAN_KIND_HEX: fprintf(out, "0x%" PRIx64, value); break;
    case PLAN_KIND_INDEX:
        if (value == PLAN_NONE) fputs("none", out);
        else fprintf(out, "%" PRIu64, value);
        break;
    case PLAN_KIND_INT: case PLAN_KIND_FIRST: case PLAN_KIND_COUNT:
        if (field->is_signed) fprintf(out, "%" PRId64, (int64_t)value);
        else fprintf(out, "%" PRIu64, value);
        break;
    }
}

static void print_records(const plan_view *view, plan_writer *strings, uint32_t id, FILE *out) {
    const plan_schema *schema = &plan_schemas[id];
    const uint8_t *record = view->sections[id].data;
    for (uint32_t i = 0; i < view->sections[id].count; i++, record += schema->record) {
        fprintf(out, "%s[%" PRIu32 "]", schema->name, i);
        for (uint32_t k = 0; k < schema->field_count; k++)
            if (strcmp(schema->fields[k].name, "reserved") != 0)
                print_field(view, strings, &schema->fields[k], record, out);
        putc('\n', out);
    }
}

/* Bytes from AT on that are zero in whole lines, or up to the end. */
static uint64_t zero_run(const uint8_t *bytes, uint64_t at, uint64_t size) {
    static const uint8_t zeros[LINE];
    uint64_t start = at;
    while (at < size) {
        uint64_t take = size - at < LINE ? size - at : LINE;
        if (memcmp(bytes + at, zeros, (size_t)take) != 0) break;
        at += take;
    }
    return at - start;
}

static void print_bytes(const uint8_t *bytes, uint64_t size, FILE *out) {
    static const char digits[] = "0123456789abcdef";
    char line[2 * LINE + 3] = "  ";
    for (uint64_t at = 0; at < size;) {
        uint64_t zeros = zero_run(bytes, at, size);
        if (zeros) {
            fprintf(out, "  zeros %" PRIu64 "\n", zeros);
            at += zeros;
            continue;
        }
        size_t take = size - at < LINE ? (size_t)(size - at) : LINE;
        for (size_t i = 0; i < take; i++) {
            line[2 + 2 * i] = digits[bytes[at + i] >> 4];
            line[3 + 2 * i] = digits[bytes[at + i] & 15];
        }
        line[2 + 2 * take] = '\n';
        (void)fwrite(line, 1, 3 + 2 * take, out);
        at += take;
    }
}

int plan_text_print(const plan_view *view, FILE *out) {
    plan_writer *strings = plan_writer_new();
    if (!strings) return 1;
    fprintf(out, "plan %u\n", PLAN_FORMAT_VERSION);
    for (uint32_t i = 0; i < view->table_count; i++) {
        const plan_section *section = &view->table[i];
        if (section->id == PLAN_SECTION_STRINGS) {
            print_strings(view, strings, out);
        } else if (section->id < PLAN_SECTION_END && section->record) {
            print_records(view, strings, section->id, out);
        } else {
            if (section->id < PLAN_SECTION_END) fprintf(out, "%s", plan_schemas[section->id].name);
            else fprintf(out, "section[%" PRIu32 "]", section->id);
            fprintf(out, " %" PRIu64 "\n", section->size);
            print_bytes(view->bytes + section->offset, section->size, out);
        }
    }
    plan_writer_free(strings);
    return fflush(out) != 0 || ferror(out);
}
