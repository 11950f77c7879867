/* container.c - opens a plan: prefix, section table, checksums, padding, and the fields of each record by their kind.
 * Checks that need more than one field are in validate.c. */
#include "container.h"
#include "checksum.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

plan_status plan_view_fail(const plan_report *report, const char *format, ...) {
    if (report->message && report->size) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(report->message, report->size, format, arguments);
        va_end(arguments);
    }
    return PLAN_ERROR_FORMAT;
}

static int is_little_endian(void) {
    const uint32_t probe = 1;
    uint8_t first;
    memcpy(&first, &probe, 1);
    return first == 1;
}

static plan_status check_prefix(const uint8_t *bytes, uint64_t size, plan_prefix *prefix, const plan_report *report) {
    if (!is_little_endian()) return plan_view_fail(report, "prefix: plans need a little-endian machine");
    size_t shown = size < sizeof prefix->magic ? (size_t)size : sizeof prefix->magic;
    if (size == 0 || memcmp(bytes, PLAN_MAGIC, shown) != 0)
        return plan_view_fail(report, "prefix.magic: not a plan; expected \"gccplan\" at the start%s",
                              size == 0 ? ", found an empty file" : "");
    if (size < sizeof *prefix)
        return plan_view_fail(report, "prefix: expected %zu bytes, found %" PRIu64 " (the file is cut off)",
                              sizeof *prefix, size);
    memcpy(prefix, bytes, sizeof *prefix);
    if (prefix->version != PLAN_FORMAT_VERSION)
        return plan_view_fail(report, "plan version %" PRIu32 ", this library reads %u", prefix->version,
                              PLAN_FORMAT_VERSION);
    uint64_t checksum = plan_checksum(bytes, offsetof(plan_prefix, prefix_checksum));
    if (checksum != prefix->prefix_checksum)
        return plan_view_fail(report, "prefix.prefix_checksum: expected 0x%016" PRIx64 ", found 0x%016" PRIx64,
                              checksum, prefix->prefix_checksum);
    if (prefix->reserved[0] | prefix->reserved[1])
        return plan_view_fail(report, "prefix.reserved: expected 0, found another value");
    if (prefix->file_size != size)
        return plan_view_fail(report, "prefix.file_size: expected %" PRIu64 " bytes, found %" PRIu64 " (the file is %s)",
                              prefix->file_size, size, size < prefix->file_size ? "cut off" : "too long");
    if (prefix->table_offset != sizeof *prefix)
        return plan_view_fail(report, "prefix.table_offset: expected %zu, found %" PRIu64, sizeof *prefix,
                              prefix->table_offset);
    if (prefix->section_count > (size - sizeof *prefix) / sizeof(plan_section))
        return plan_view_fail(report, "prefix.section_count: expected at most %" PRIu64 ", found %" PRIu32,
                              (size - sizeof *prefix) / sizeof(plan_section), prefix->section_count);
    checksum = plan_checksum(bytes + sizeof *prefix, (uint64_t)prefix->section_count * sizeof(plan_section));
    if (checksum != prefix->table_checksum)
        return plan_view_fail(report, "prefix.table_checksum: expected 0x%016" PRIx64 ", found 0x%016" PRIx64,
                              checksum, prefix->table_checksum);
    return PLAN_OK;
}

/* The name for messages: of a known section, or "section 31". */
static const char *section_name(uint32_t id, char text[static 24]) {
    if (id > 0 && id < PLAN_SECTION_END) return plan_schemas[id].name;
    (void)snprintf(text, 24, "section %" PRIu32, id);
    return text;
}

/* Record size, count and flags of a known section. */
static plan_status check_known(const plan_section *section, const char *name, const plan_report *report) {
    const plan_schema *schema = &plan_schemas[section->id];
    if (section->flags != 1)
        return plan_view_fail(report, "%s.flags: expected 1, found %" PRIu32, name, section->flags);
    if (section->record != schema->record)
        return plan_view_fail(report, "%s.record: expected %" PRIu32 " bytes, found %" PRIu32, name, schema->record,
                              section->record);
    if (schema->record == 0 && section->count != 0)
        return plan_view_fail(report, "%s.count: expected 0, found %" PRIu32, name, section->count);
    if (schema->record != 0 && section->size != (uint64_t)section->count * section->record)
        return plan_view_fail(report, "%s.size: expected %" PRIu32 " records of %" PRIu32 " bytes, found %" PRIu64
                              " bytes", name, section->count, section->record, section->size);
    if (section->count == PLAN_NONE)
        return plan_view_fail(report, "%s.count: expected at most 4294967294, found 4294967295", name);
    return PLAN_OK;
}

static plan_status check_zero(const uint8_t *bytes, uint64_t from, uint64_t to, const plan_report *report) {
    for (uint64_t i = from; i < to; i++)
        if (bytes[i])
            return plan_view_fail(report, "padding at byte %" PRIu64 ": expected 0, found %d", i, bytes[i]);
    return PLAN_OK;
}

/* END is where the section before ends; moved to the end of this one. WEIGHTS_CHECKSUM: see plan_view_open_unread, or NULL. */
static plan_status check_section(plan_view *view, const plan_section *section, uint64_t *end, uint64_t *weights_checksum,
                                 const plan_report *report) {
    char text[24];
    const char *name = section_name(section->id, text);
    uint64_t start = *end + (PLAN_ALIGN - *end % PLAN_ALIGN) % PLAN_ALIGN;
    if (section->offset != start)
        return plan_view_fail(report, "%s.offset: expected %" PRIu64 " (after the section before, aligned to %u), found %"
                              PRIu64, name, start, PLAN_ALIGN, section->offset);
    if (start > view->size || section->size > view->size - start)
        return plan_view_fail(report, "%s.size: expected at most %" PRIu64 " bytes, found %" PRIu64, name,
                              start > view->size ? 0 : view->size - start, section->size);
    plan_status status = check_zero(view->bytes, *end, start, report);
    if (status) return status;
    *end = start + section->size;
    int known = section->id > 0 && section->id < PLAN_SECTION_END;
    if (!known && section->flags & 1)
        return plan_view_fail(report, "%s: a required section that this library does not know", name);
    if (!known && section->flags != 0)
        return plan_view_fail(report, "%s.flags: expected 0, found %" PRIu32, name, section->flags);
    if (known && (status = check_known(section, name, report))) return status;
    const int unread = weights_checksum && section->id == PLAN_SECTION_WEIGHTS;
    if (unread) *weights_checksum = section->checksum;
    uint64_t checksum = unread ? section->checksum : plan_checksum(view->bytes + start, section->size);
    if (checksum != section->checksum)
        return plan_view_fail(report, "%s.checksum: expected 0x%016" PRIx64 ", found 0x%016" PRIx64 " (damaged)", name,
                              section->checksum, checksum);
    if (known)
        view->sections[section->id] = (plan_view_section){view->bytes + start, section->size, section->count};
    return PLAN_OK;
}

static plan_status check_table(plan_view *view, uint64_t *weights_checksum, const plan_report *report) {
    char text[24];
    uint64_t end = sizeof(plan_prefix) + (uint64_t)view->table_count * sizeof(plan_section);
    for (uint32_t i = 0; i < view->table_count; i++) {
        const plan_section *section = &view->table[i];
        uint32_t before = i ? section[-1].id : 0;
        if (section->id <= before)
            return plan_view_fail(report, "table[%" PRIu32 "].id: expected above %" PRIu32 ", found %" PRIu32, i, before,
                                  section->id);
        plan_status status = check_section(view, section, &end, weights_checksum, report);
        if (status) return status;
    }
    if (end != view->size)
        return plan_view_fail(report, "prefix.file_size: expected %" PRIu64 " (the end of the last section), found %"
                              PRIu64, end, view->size);
    for (uint32_t id = 1; id < PLAN_SECTION_END; id++)
        if (!view->sections[id].data)
            return plan_view_fail(report, "%s: expected a section of this name, found none", section_name(id, text));
    return PLAN_OK;
}

static void fill_typed(plan_view *view) {
#define RECORDS(ID, section, UPPER, lower) \
    view->section = view->sections[PLAN_SECTION_##ID].data; \
    view->lower##_count = view->sections[PLAN_SECTION_##ID].count;
#define BYTES(ID, section) \
    view->section = view->sections[PLAN_SECTION_##ID].data; \
    view->section##_size = view->sections[PLAN_SECTION_##ID].size;
    PLAN_SECTIONS(RECORDS, BYTES)
#undef RECORDS
#undef BYTES
}

/* Entries that an INDEX may name: *WHERE is their name. UINT32_MAX means that validate.c decides. */
static uint32_t index_limit(const plan_view *view, const plan_field *field, const char **where) {
    if (field->target == PLAN_TARGET_SLOTS) {
        *where = "the extents table";
        return view->model->slot_count;
    }
    if (field->target >= PLAN_SECTION_END) {
        *where = "";
        return UINT32_MAX;
    }
    *where = plan_schemas[field->target].name;
    return view->sections[field->target].count;
}

typedef struct place {
    const char *section;
    uint32_t record;
    const char *field;
} place;

static plan_status check_index(const plan_view *view, const plan_field *field, uint32_t value, const place *at,
                               const plan_report *report) {
    const char *where;
    uint32_t limit = index_limit(view, field, &where);
    if (value == PLAN_NONE) {
        if (field->none) return PLAN_OK;
        return plan_view_fail(report, "%s[%" PRIu32 "].%s: expected an index below %" PRIu32 " in %s, found none",
                              at->section, at->record, at->field, limit, where);
    }
    if (value >= limit)
        return plan_view_fail(report, "%s[%" PRIu32 "].%s: expected an index below %" PRIu32 " in %s, found %" PRIu32,
                              at->section, at->record, at->field, limit, where, value);
    return PLAN_OK;
}

static plan_status check_run(const plan_view *view, const plan_field *field, uint32_t first, uint32_t count,
                             const place *at, const plan_report *report) {
    uint32_t limit = view->sections[field->target].count;
    if (first > limit || count > limit - first)
        return plan_view_fail(report, "%s[%" PRIu32 "].%s: expected a run inside the %" PRIu32 " records of %s, found %"
                              PRIu32 " from %" PRIu32, at->section, at->record, at->field, limit,
                              plan_schemas[field->target].name, count, first);
    return PLAN_OK;
}

static plan_status check_string(const plan_view *view, uint32_t value, const place *at, const plan_report *report) {
    if (value >= view->strings_size)
        return plan_view_fail(report, "%s[%" PRIu32 "].%s: expected an offset below %" PRIu64 " in strings, found %"
                              PRIu32, at->section, at->record, at->field, view->strings_size, value);
    return PLAN_OK;
}

static plan_status check_field(const plan_view *view, const plan_schema *schema, const plan_field *field,
                               const uint8_t *record, uint32_t number, const plan_report *report) {
    place at = {schema->name, number, field->name};
    uint64_t value = plan_field_get(field, record);
    switch (field->kind) {
    case PLAN_KIND_STR: return check_string(view, (uint32_t)value, &at, report);
    case PLAN_KIND_INDEX: return check_index(view, field, (uint32_t)value, &at, report);
    case PLAN_KIND_FIRST: /* its COUNT is the next field */
        return check_run(view, field, (uint32_t)value, (uint32_t)plan_field_get(field + 1, record), &at, report);
    case PLAN_KIND_ENUM:
        if (!plan_enum_text(field->names, (uint32_t)value))
            return plan_view_fail(report, "%s[%" PRIu32 "].%s: expected a known %s, found %" PRIu64, at.section,
                                  number, at.field, field->names->what, value);
        return PLAN_OK;
    case PLAN_KIND_INT:
        if (value != 0 && strcmp(field->name, "reserved") == 0)
            return plan_view_fail(report, "%s[%" PRIu32 "].reserved: expected 0, found %" PRIu64, at.section, number,
                                  value);
        return PLAN_OK;
    case PLAN_KIND_COUNT: case PLAN_KIND_HEX: break;
    }
    return PLAN_OK;
}

static plan_status check_records(const plan_view *view, uint32_t id, const plan_report *report) {
    const plan_schema *schema = &plan_schemas[id];
    const uint8_t *record = view->sections[id].data;
    for (uint32_t i = 0; i < view->sections[id].count; i++, record += schema->record)
        for (uint32_t k = 0; k < schema->field_count; k++) {
            plan_status status = check_field(view, schema, &schema->fields[k], record, i, report);
            if (status) return status;
        }
    return PLAN_OK;
}

static plan_status check_all(const void *bytes, uint64_t size, plan_view *view, uint64_t *weights_checksum, const plan_report *report) {
    plan_prefix prefix;
    plan_status status = check_prefix(bytes, size, &prefix, report);
    if (status) return status;
    view->bytes = bytes;
    view->size = size;
    view->table = (const void *)((const uint8_t *)bytes + sizeof prefix);
    view->table_count = prefix.section_count;
    status = check_table(view, weights_checksum, report);
    if (status) return status;
    fill_typed(view);
    if (view->strings_size == 0 || view->strings[0] != 0)
        return plan_view_fail(report, "strings: expected \"\" at the start, found another string or none");
    if (view->strings[view->strings_size - 1] != 0)
        return plan_view_fail(report, "strings: expected a NUL at the end, found none");
    if (view->model_count != 1)
        return plan_view_fail(report, "model: expected one record, found %" PRIu32, view->model_count);
    for (uint32_t id = 1; id < PLAN_SECTION_END; id++)
        if ((status = check_records(view, id, report))) return status;
    return plan_view_validate(view, report);
}

plan_status plan_view_open_unread(const void *bytes, uint64_t size, plan_view *out, uint64_t *weights_checksum, char *message,
                                  size_t message_size) {
    plan_report report = {message, message_size};
    if (message && message_size) message[0] = '\0';
    if (!out) return PLAN_ERROR_ARGUMENT;
    memset(out, 0, sizeof *out);
    if (!bytes || (uintptr_t)bytes % 8) {
        (void)plan_view_fail(&report, "plan: expected bytes at an address aligned to 8, found %s",
                             bytes ? "another" : "NULL");
        return PLAN_ERROR_ARGUMENT;
    }
    plan_status status = check_all(bytes, size, out, weights_checksum, &report);
    if (status) memset(out, 0, sizeof *out);
    return status;
}

plan_status plan_view_open(const void *bytes, uint64_t size, plan_view *out, char *message, size_t message_size) {
    return plan_view_open_unread(bytes, size, out, NULL, message, message_size);
}
