/* json.c - plan-inspect --json: one object, a member for each section. Records are objects of their fields, strings and
 * enumerations by text, expressions also as text, bit patterns as hexadecimal strings, absent indices as null. */
#include "report.h"

#include <inttypes.h>
#include <string.h>

/* Length of the UTF-8 sequence at TEXT, 0 when it is none (RFC 3629: no overlong forms, no surrogates). */
static size_t utf8_length(const unsigned char *text) {
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (length == 3 && ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f))) return 0;
    if (length == 4 && ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))) return 0;
    return length;
}

static void show_string(const char *text, FILE *out) {
    putc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t length = utf8_length(at);
        if (length == 0) {
            fputs("\\ufffd", out); /* not UTF-8 */
            length = 1;
        } else if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at);
        } else if (*at < 0x20 || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at);
        } else {
            (void)fwrite(at, 1, length, out);
        }
        at += length;
    }
    putc('"', out);
}

/* An expression as text; left out when it is longer than a few thousand characters. */
static void show_expr(const plan_view *v, uint32_t first, uint32_t count, FILE *out) {
    char text[4096];
    FILE *memory = fmemopen(text, sizeof text, "w");
    if (!memory) return;
    plan_show_expr(v, first, count, memory);
    int lost = ferror(memory) || fflush(memory) || ftell(memory) >= (long)sizeof text;
    (void)fclose(memory);
    if (lost) return;
    fputs(",\"text\":", out);
    show_string(text, out);
}

static void show_field(const plan_view *v, const plan_field *field, const void *record, FILE *out) {
    uint64_t value = plan_field_get(field, record);
    fprintf(out, "\"%s\":", field->name);
    switch (field->kind) {
    case PLAN_KIND_STR: show_string(plan_view_string(v, (uint32_t)value), out); return;
    case PLAN_KIND_ENUM: fprintf(out, "\"%s\"", plan_enum_text(field->names, (uint32_t)value)); return;
    case PLAN_KIND_HEX: fprintf(out, "\"0x%" PRIx64 "\"", value); return;
    case PLAN_KIND_INDEX:
        if (value == PLAN_NONE) fputs("null", out);
        else fprintf(out, "%" PRIu64, value);
        return;
    case PLAN_KIND_INT: case PLAN_KIND_FIRST: case PLAN_KIND_COUNT: break;
    }
    if (field->is_signed) fprintf(out, "%" PRId64, (int64_t)value);
    else fprintf(out, "%" PRIu64, value);
}

static void show_record(const plan_view *v, const plan_schema *schema, const void *record, FILE *out) {
    int some = 0;
    putc('{', out);
    for (uint32_t k = 0; k < schema->field_count; k++) {
        const plan_field *field = &schema->fields[k];
        if (strcmp(field->name, "reserved") == 0) continue;
        if (some++) putc(',', out);
        show_field(v, field, record, out);
    }
    for (uint32_t k = 0; k < schema->field_count; k++) {
        const plan_field *field = &schema->fields[k];
        uint32_t count = field->target == PLAN_SECTION_EXPRS ? (uint32_t)plan_field_get(field + 1, record) : 0;
        if (count) show_expr(v, (uint32_t)plan_field_get(field, record), count, out);
    }
    putc('}', out);
}

static void show_section(const plan_view *v, uint32_t id, FILE *out) {
    const plan_schema *schema = &plan_schemas[id];
    const uint8_t *record = v->sections[id].data;
    fprintf(out, ",\n\"%s\":[", schema->name);
    for (uint32_t i = 0; i < v->sections[id].count; i++, record += schema->record) {
        fputs(i ? ",\n " : "\n ", out);
        show_record(v, schema, record, out);
    }
    putc(']', out);
}

void plan_report_json(const plan_view *v, const char *file_name, FILE *out) {
    fputs("{\"file\":", out);
    show_string(file_name, out);
    fprintf(out, ",\"version\":%u,\"bytes\":%" PRIu64 ",\n\"sections\":[", PLAN_FORMAT_VERSION, v->size);
    for (uint32_t i = 0; i < v->table_count; i++) {
        const plan_section *s = &v->table[i];
        fprintf(out, "%s\n {\"id\":%" PRIu32, i ? "," : "", s->id);
        if (s->id < PLAN_SECTION_END) fprintf(out, ",\"name\":\"%s\"", plan_schemas[s->id].name);
        fprintf(out, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"records\":%" PRIu32 ",\"checksum\":\"0x%016" PRIx64 "\"}",
                s->offset, s->size, s->count, s->checksum);
    }
    putc(']', out);
    for (uint32_t id = 1; id < PLAN_SECTION_END; id++)
        if (plan_schemas[id].record) show_section(v, id, out);
    fputs("}\n", out);
}
