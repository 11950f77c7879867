/* test_container.c - the plan file: writer, reader and text form.
 *
 * A small complete plan is built in memory. Every flipped byte and every cut must be refused; each bad record, made by
 * editing the text form so that all checksums are right, must be refused with its exact message; the text form must
 * assemble to the same bytes. `test_container FILE` writes the plan to FILE instead.
 */
#include "../../plans/text.h"
#include "../../runtime/checksum.h"
#include "../../runtime/container.h"
#include "example_plan.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int passed, failed, skipped;

static void check(int good, const char *name, const char *detail) {
    printf("%s %s%s%s\n", good ? "ok" : "not ok", name, good || !detail[0] ? "" : ": ", good ? "" : detail);
    if (good) passed++;
    else failed++;
}

static void check_text(const char *found, const char *expected, const char *name) {
    char detail[1200];
    snprintf(detail, sizeof detail, "expected <%s>, found <%s>", expected, found);
    check(strcmp(found, expected) == 0, name, detail);
}

/* --- helpers --- */

static uint8_t *good;
static uint64_t good_size;
static char *good_text;

static char *print_text(const void *bytes, uint64_t size) {
    plan_view view;
    char message[512], *text = NULL;
    size_t text_size;
    if (plan_view_open(bytes, size, &view, message, sizeof message)) {
        printf("# %s\n", message);
        return NULL;
    }
    FILE *out = open_memstream(&text, &text_size);
    if (!out || plan_text_print(&view, out)) abort();
    fclose(out);
    return text;
}

/* Assembles TEXT and opens the result. MESSAGE is the first error of the two, or "". */
static plan_status open_text(const char *text, char *message, size_t message_size) {
    plan_view view;
    void *bytes;
    uint64_t size;
    plan_writer *w = plan_writer_new();
    message[0] = '\0';
    if (!w) abort();
    plan_status status = PLAN_ERROR_ARGUMENT;
    if (!plan_text_assemble(text, strlen(text), w, message, message_size) &&
        !plan_writer_write_memory(w, &bytes, &size, message, message_size)) {
        status = plan_view_open(bytes, size, &view, message, message_size);
        free(bytes);
    }
    plan_writer_free(w);
    return status;
}

/* The good text with the value of FIELD in the line that starts with RECORD replaced; FIELD NULL: the whole line is. */
static char *edited(const char *record, const char *field, const char *value) {
    char key[96];
    size_t room = strlen(good_text) + strlen(value) + 2;
    char *out = malloc(room);
    snprintf(key, sizeof key, "\n%s ", record);
    char *line = strstr(good_text, key);
    if (!out || !line) abort();
    char *from = line + 1, *end = strchr(from, '\n');
    if (field) {
        snprintf(key, sizeof key, " %s=", field);
        from = strstr(line, key);
        if (!from || from > end) abort();
        from += strlen(key);
        end = from + strcspn(from, " \n");
    }
    snprintf(out, room, "%.*s%s%s", (int)(from - good_text), good_text, value, end);
    return out;
}

/* --- tests --- */

static void test_good(void) {
    plan_view view;
    char message[512];
    plan_status status = plan_view_open(good, good_size, &view, message, sizeof message);
    check(status == PLAN_OK && !message[0], "a good plan opens", message);
    if (status) return;
    check(view.symbol_count == 4 && view.signature_count == 2 && view.weights_size == 1224, "counts of the view", "");
    check_text(plan_view_string(&view, view.signatures[1].name), "prefill", "strings of the view");
    check(view.weights[999] == 7 && view.weights[1000] == 0, "weights of the view", "");
    int64_t values[] = {1, 9, 4, 0}, total = 0;
    check(plan_expr_eval(view.exprs + 1, 3, values, &total) == PLAN_OK && total == 13, "an expression is evaluated", "");
    void *again;
    uint64_t size;
    plan_writer *w = build();
    check(!plan_writer_write_memory(w, &again, &size, message, sizeof message) && size == good_size &&
          memcmp(again, good, size) == 0, "the same calls give the same bytes", "");
    free(again);
    plan_writer_free(w);
}

/* What the reader relies on in the field lists. */
static void test_schema(void) {
    int runs = 1, widths = 1;
    for (uint32_t id = 1; id < PLAN_SECTION_END; id++) {
        const plan_schema *schema = &plan_schemas[id];
        uint32_t end = 0;
        for (uint32_t k = 0; k < schema->field_count; k++) {
            const plan_field *f = &schema->fields[k];
            if (f->kind == PLAN_KIND_FIRST) runs &= k + 1 < schema->field_count && f[1].kind == PLAN_KIND_COUNT;
            widths &= f->offset == end && (f->width == 8 || (f->width == 4 && !f->is_signed));
            end += f->width;
        }
        widths &= end == schema->record;
    }
    check(runs, "each FIRST is followed by its COUNT", "");
    check(widths, "records have no padding, and signed fields are 8 bytes", "");
}

static void test_flips(void) {
    static const uint8_t masks[] = {0x01, 0x80, 0xff};
    plan_view view;
    char message[512], detail[64] = "";
    uint64_t missed = 0;
    for (uint64_t i = 0; i < good_size; i++)
        for (size_t k = 0; k < sizeof masks; k++) {
            good[i] ^= masks[k];
            if (plan_view_open(good, good_size, &view, message, sizeof message) == PLAN_OK || !message[0]) {
                snprintf(detail, sizeof detail, "byte %" PRIu64, i);
                missed++;
            }
            good[i] ^= masks[k];
        }
    check(missed == 0, "every flipped byte is refused", detail);
}

static void test_cuts(void) {
    plan_view view;
    char message[512];
    uint64_t missed = 0;
    for (uint64_t size = 0; size < good_size; size++) {
        uint8_t *cut = malloc(size ? size : 1); /* its own block, so that a read past the end is found */
        if (!cut) abort();
        memcpy(cut, good, size);
        missed += plan_view_open(cut, size, &view, message, sizeof message) != PLAN_ERROR_FORMAT || !message[0];
        free(cut);
    }
    check(missed == 0, "every cut is refused", "");
    uint8_t *longer = calloc(1, good_size + 1);
    if (!longer) abort();
    memcpy(longer, good, good_size);
    check(plan_view_open(longer, good_size + 1, &view, message, sizeof message) == PLAN_ERROR_FORMAT,
          "a byte too many is refused", "");
    free(longer);
}

static void repair_prefix(uint8_t *bytes) {
    plan_prefix prefix;
    memcpy(&prefix, bytes, sizeof prefix);
    prefix.table_checksum = plan_checksum(bytes + 64, prefix.section_count * sizeof(plan_section));
    prefix.prefix_checksum = plan_checksum(&prefix, 40);
    memcpy(bytes, &prefix, sizeof prefix);
}

/* Writes VALUE (4 or 8 bytes) at OFFSET of a copy, repairs prefix and table checksums, and opens it. */
static void expect_patched(const char *name, uint64_t offset, uint64_t value, size_t width, const char *expected) {
    plan_view view;
    char message[512];
    uint8_t *copy = malloc(good_size);
    if (!copy) abort();
    memcpy(copy, good, good_size);
    memcpy(copy + offset, &value, width);
    repair_prefix(copy);
    (void)plan_view_open(copy, good_size, &view, message, sizeof message);
    check_text(message, expected, name);
    free(copy);
}

static void test_structure(void) {
    const uint64_t models = 64 + 40; /* table entry of `model`; its fields: id, flags, offset, size, count, record */
    expect_patched("version", 8, 1, 4, "plan version 1, this library reads 2");
    expect_patched("magic", 0, 0, 8, "prefix.magic: not a plan; expected \"gccplan\" at the start");
    expect_patched("table offset", 24, 128, 8, "prefix.table_offset: expected 64, found 128");
    expect_patched("reserved words", 48, 1, 8, "prefix.reserved: expected 0, found another value");
    expect_patched("unknown required section", 64 + 30 * 40, 99, 4,
                   "section 99: a required section that this library does not know");
    expect_patched("sections out of order", models, 1, 4, "table[1].id: expected above 1, found 1");
    expect_patched("flags of a known section", models + 4, 3, 4, "model.flags: expected 1, found 3");
    expect_patched("record size", models + 28, 48, 4, "model.record: expected 64 bytes, found 48");
    expect_patched("record count", models + 24, 2, 4, "model.size: expected 2 records of 64 bytes, found 64 bytes");
    plan_section entry;
    memcpy(&entry, good + models, sizeof entry);
    char expected[160];
    snprintf(expected, sizeof expected,
             "model.offset: expected %" PRIu64 " (after the section before, aligned to 256), found 256", entry.offset);
    expect_patched("overlapping sections", models + 8, 256, 8, expected);
    snprintf(expected, sizeof expected, "model.size: expected at most %" PRIu64 " bytes, found 18446744073709551615",
             good_size - entry.offset);
    expect_patched("section beyond the file", models + 16, UINT64_MAX, 8, expected);
    snprintf(expected, sizeof expected, "padding at byte %" PRIu64 ": expected 0, found 1", entry.offset + entry.size);
    expect_patched("padding", entry.offset + entry.size, 1, 1, expected);
    plan_view view;
    char message[512];
    check(plan_view_open(NULL, 0, &view, message, sizeof message) == PLAN_ERROR_ARGUMENT, "NULL is an argument error", "");
    check(plan_view_open(good + 1, 64, &view, message, sizeof message) == PLAN_ERROR_ARGUMENT,
          "unaligned bytes are an argument error", "");
    check(plan_view_open(good, good_size, &view, NULL, 0) == PLAN_OK, "no message buffer is needed", "");
    check(plan_view_open(good, 20, &view, NULL, 0) == PLAN_ERROR_FORMAT, "nor for an error", "");
}

/* One field each, by editing the text form; all checksums are right. The numbers are those of build(). The last ones,
 * with an empty message, are good. */
static const struct {
    const char *record, *field, *value, *message;
} bad_records[] = {
    {"model[0]", "capacity", "-1", "model[0].capacity: expected 0 or more, found -1"},
    {"model[0]", "sampling", "3", "model[0].sampling: expected 0 to 2, found 3"},
    {"model[0]", "sampling", "2", "model[0].sampler: expected a word for sampling 2, found 0"},
    {"model[0]", "rewindable", "2", "model[0].rewindable: expected 0 or 1, found 2"},
    {"model[0]", "slot_count", "2", "symbols[3].slot: expected an index below 2 in the extents table, found 3"},
    {"model[0]", "slot_count", "1025", "model[0].slot_count: expected inside the 8192 bytes of region state, found 8200 bytes at 0"},
    {"model[0]", "token_binding", "2", "model[0].token_binding: expected an input, found output 'logits'"},
    {"model[0]", "logits_binding", "0", "model[0].logits_binding: expected an output, found input 'input_ids'"},
    {"model[0]", "logits_binding", "3", "model[0].logits_binding: expected an index below 3 in bindings, found 3"},
    {"model[0]", "sampler", "3", "model[0].sampler: expected 25 words of the extents table from 3 on, and sampling, found word 3 of 4"},
    {"bindings[0]", "region", "io reserved=1", "bindings[0].reserved: expected 0, found 1"},
    {"model[0]", "rows", "40", "model[0].rows: expected a capacity and two words of the extents table for each, found 40 and 4 words"},
    {"model[0]", "rows", "1 reserved=1", "model[0].reserved: expected 0, found 1"},
    {"model[0]", NULL, "model[0] capacity=16 slot_count=6 sampling=1 rows=1", "model[0].sampling: expected 0 with rows, found 1"},
    {"model[0]", NULL, "model[0] capacity=0 slot_count=6 rows=1", "model[0].rows: expected a capacity and two words of the extents table for each, found 1 and 6 words"},
    {"symbols[1]", "symbol_class", "6", "symbols[1].symbol_class: expected a known symbol_class, found 6"},
    {"symbols[1]", "slot", "4", "symbols[1].slot: expected an index below 4 in the extents table, found 4"},
    {"symbols[1]", "proof", "3", "symbols[1].proof: expected an index below 3 in proofs, found 3"},
    {"symbols[3]", "expr_count", "5", "symbols[3].expr: expected a run inside the 5 records of exprs, found 5 from 1"},
    {"symbols[3]", "expr_count", "0", "symbols[3].expr: expected a postfix expression, found that it is empty"},
    {"symbols[3]", "expr_count", "2", "symbols[3].expr: expected a postfix expression, found that it leaves more than one value"},
    {"symbols[3]", "expr", "2", "symbols[3].expr: expected a postfix expression, found that an operation lacks operands"},
    {"exprs[2]", "value", "3", "symbols[3].expr: expected symbols that are known before it, found symbol 3"},
    {"exprs[2]", "value", "4", "symbols[3].expr: expected a postfix expression, found that it names a symbol that does not exist"},
    {"exprs[2]", "value", "-1", "symbols[3].expr: expected a postfix expression, found that it names a symbol that does not exist"},
    {"exprs[3]", "op", "9", "exprs[3].op: expected a known expr_op, found 9"},
    {"signatures[0]", "kind", "4", "signatures[0].kind: expected a known signature_kind, found 4"},
    {"signatures[1]", "box", "4", "signatures[1].box: expected a run inside the 6 records of boxes, found 3 from 4"},
    {"signatures[1]", "launch", "4294967295", "signatures[1].launch: expected a run inside the 6 records of launches, found 3 from 4294967295"},
    {"signatures[1]", "launch", "2", "signatures[1].launch: expected a run from 3 on (signatures share none), found 2"},
    {"signatures[1]", "segment_count", "1", "signatures[1].segment: expected segments over 3 launches, found 1"},
    {"signatures[1]", "seam_count", "0", "blocks[2].seam: expected one of its signature's 0 seams, found 0"},
    {"signatures[0]", "kind", "load", "signatures[0].block_count: expected 0 for a load signature, found 2"},
    {"signatures[1]", "block", "1", "signatures[1].block: expected a run from 2 on (signatures share none), found 1"},
    {"signatures[1]", "block", "3", "signatures[1].block: expected a run inside the 4 records of blocks, found 2 from 3"},
    {"blocks[0]", "kind", "3", "blocks[0].kind: expected a known block_kind, found 3"},
    {"blocks[0]", "launch", "3", "blocks[0].launch_count: expected 1 or more inside 3 launches, found 2 from 3"},
    {"blocks[0]", "launch_count", "3", "blocks[0].launch_count: expected 1 or more inside 3 launches, found 3 from 1"},
    {"blocks[0]", "launch_count", "0", "blocks[0].launch_count: expected 1 or more inside 3 launches, found 0 from 1"},
    {"blocks[0]", NULL, "blocks[0] kind=while launch=2 launch_count=1 seam=none offset=256", "blocks[1].launch: expected blocks in order of their begin, outer first, found 1 after 2"},
    {"blocks[0]", "launch_count", "1", ""},
    {"blocks[1]", "launch_count", "2", ""},
    {"blocks[0]", NULL, "blocks[0] kind=if launch=0 launch_count=2 seam=none offset=256", ""},
    {"blocks[1]", NULL, "blocks[1] kind=if launch=0 launch_count=2 seam=none offset=256", "blocks[1].launch: expected blocks in order of their begin, outer first, found 0 after 1"},
    {"blocks[1]", "launch_count", "3", "blocks[1].launch_count: expected 1 or more inside 3 launches, found 3 from 1"},
    {"blocks[0]", "offset", "2048", "blocks[0].offset: expected inside the 2048 bytes of region arena, found 1 bytes at 2048"},
    {"blocks[0]", "seam", "0", "blocks[0].seam: expected one of its signature's 0 seams, found 0"},
    {"blocks[2]", "seam", "none", ""},
    {"blocks[2]", "launch", "0", "blocks[2].seam: expected a block that begins and ends with segments, found one within a segment"},
    {"blocks[2]", "launch_count", "1", "blocks[2].seam: expected a block that begins and ends with segments, found one within a segment"},
    {"blocks[3]", "seam", "0", "blocks[3].seam: expected a block that begins and ends with segments, found one within a segment"},
    {"blocks[2]", NULL, "blocks[2] kind=while launch=0 launch_count=3 seam=none offset=256", "blocks[2].seam: expected a seam, since segments end inside it, found none"},
    {"blocks[1]", NULL, "blocks[1] kind=if launch=2 launch_count=1 seam=none offset=256", ""},
    {"blocks[0]", "seam", "none reserved=1", "blocks[0].reserved: expected 0, found 1"},
    {"signatures[0]", "arena_bytes", "2049", "signatures[0].arena_bytes: expected inside the 2048 bytes of region arena, found 2049 bytes at 0"},
    {"signatures[0]", "metadata_offset", "41", "signatures[0].metadata_offset: expected inside the 80 bytes of section metadata, found 40 bytes at 41"},
    {"signatures[0]", "metadata_bytes", "7", "signatures[0].metadata_bytes: expected 0 or at least 8, found 7"},
    {"signatures[0]", "metadata_offset", "40", "signatures[0] 'decode': the metadata was made for another signature; expected fingerprint 0x1111222233334444, found 0x5555666677778888"},
    {"boxes[1]", "symbol", "none", "boxes[1].symbol: expected an index below 4 in symbols, found none"},
    {"boxes[1]", "hi", "-1", "boxes[1].hi: expected at least 0, found -1"},
    {"regions[2]", "kind", "state", "regions[2].kind: expected load, found state"},
    {"regions[2]", "initialised", "300", "regions[2].initialised: expected at most 256, found 300"},
    {"regions[0]", "initialised", "1025", "weights: expected 1480 bytes (what the regions say is initialised), found 1224"},
    {"regions[1]", "bytes", "16", "regions[1].bytes: expected at least 80 (section metadata), found 16"},
    {"regions[3]", "bytes", "9223372036854775808", "regions[3].bytes: expected below 2^63, found 9223372036854775808"},
    {"regions[6]", "bytes", "8", "model[0].sampling: expected inside the 8 bytes of region ring, found 524288 bytes at 0"},
    {"regions[6]", NULL, "", "regions: expected 7 records, found 6"},
    {"bindings[1]", "dtype", "8", "bindings[1].dtype: expected a known dtype, found 8"},
    {"bindings[1]", "feed", "6", "bindings[1].feed: expected a known feed, found 6"},
    {"bindings[1]", "offset", "18446744073709551615", "bindings[1].offset: expected inside the 2048 bytes of region io, found 256 bytes at 18446744073709551615"},
    {"bindings[1]", "bytes", "100", "bindings[1].bytes: expected at least 128 for its dims and strides, found 100"},
    {"dims[1]", "upper", "9223372036854775807", "bindings[1].bytes: expected at least 18446744073709551615 for its dims and strides, found 256"},
    {"dims[1]", "upper", "-1", "dims[1].upper: expected 0 or more, found -1"},
    {"dims[1]", "stride", "-1", "dims[1].stride: expected 0 or more, found -1"},
    {"dims[0]", "expr_count", "0", "dims[0].expr: expected a postfix expression, found that it is empty"},
    {"states[0]", "growing_axis", "3", "states[0].growing_axis: expected below 3, found 3"},
    {"states[0]", "update", "3", "states[0].update: expected a known update, found 3"},
    {"states[0]", "offset", "4097", "states[0].offset: expected inside the 8192 bytes of region state, found 4096 bytes at 4097"},
    {"steps[0]", "slot", "4", "steps[0].slot: expected below 4, found 4"},
    {"kernels[0]", "block", "1025", "kernels[0].block: expected 1 to 1024, found 1025"},
    {"kernels[0]", "block", "0", "kernels[0].block: expected 1 to 1024, found 0"},
    {"kernels[0]", "fibres", "2", "kernels[0].fibres: expected 0 or 1, found 2"},
    {"kernels[0]", "module", "1", "kernels[0].module: expected below 1, found 1"},
    {"modules[0]", "bytes", "10", "modules[0].offset: expected inside the 9 bytes of section code, found 10 bytes at 0"},
    {"modules[0]", "module", "1", "modules[0].module: expected below 1, found 1"},
    {"launches[0]", "kernel", "2", "launches[0].kernel: expected an index below 2 in kernels, found 2"},
    {"launches[0]", "grid_y", "0", "launches[0].grid_y: expected 1 to 65535, found 0"},
    {"launches[0]", "grid_x", "2147483648", "launches[0].grid_x: expected 1 to 2147483647, found 2147483648"},
    {"launches[0]", "arg_count", "2", "launches[0].arg_count: expected 3 for kernel 'gemv_0', found 2"},
    {"launches[5]", "arg", "8", "launches[5].arg: expected a run inside the 8 records of args, found 1 from 8"},
    {"args[0]", "kind", "6", "args[0].kind: expected a known arg_kind, found 6"},
    {"args[0]", "region", "7", "args[0].region: expected a known region, found 7"},
    {"args[0]", "value", "0x1001", "args[0].value: expected inside the 4096 bytes of region weights, found 0 bytes at 4097"},
    {"args[2]", "value", "0x100000000", "args[2].value: expected 32 bits, found 0x100000000"},
    {"accesses[0]", "mode", "0", "accesses[0].mode: expected a known access_mode, found 0"},
    {"accesses[0]", "bytes", "4097", "accesses[0].offset: expected inside the 4096 bytes of region weights, found 4097 bytes at 0"},
    {"edges[0]", "to", "3", "edges[0].to: expected below 3, found 3"},
    {"edges[1]", "from", "2", "edges[1].from: expected below 2, found 2"},
    {"segments[0]", "launch_count", "4", "segments[0].launch_count: expected 1 to 3, found 4"},
    {"segments[2]", "launch", "0", "segments[2].launch: expected 1 (segments follow each other), found 0"},
    {"segments[1]", "launch_count", "2", "segments[2].launch: expected 2 (segments follow each other), found 1"},
    {"segments[2]", "launch_count", "0", "segments[2].launch_count: expected 1 to 2, found 0"},
    {"seams[0]", "reason", "7", "seams[0].reason: expected a known seam_reason, found 7"},
    {"proofs[1]", "because", "1", "proofs[1].because: expected below 1 or none, found 1"},
    {"proofs[0]", "because", "2", "proofs[0].because: expected below 0 or none, found 2"},
    {"nodes[2]", "launch", "3", "nodes[2].launch: expected below 3 or none, found 3"},
    {"nodes[0]", "realised", "6", "nodes[0].realised: expected a known realised, found 6"},
    {"values[0]", "buffer", "4", "values[0].buffer: expected an index below 4 in buffers, found 4"},
    {"values[0]", "offset", "257", "values[0].offset: expected inside the 256 bytes of buffer 'scores', found 257"},
    {"buffers[0]", "offset", "1793", "buffers[0].offset: expected inside the 2048 bytes of region arena, found 256 bytes at 1793"},
    {"buffers[1]", "first", "3", "buffers[1].last: expected at least 3, found 2"},
    {"buffers[1]", "last", "3", "buffers[1].last: expected below 3, found 3"},
    {"graph_nodes[0]", "input", "2", "graph_nodes[0].input: expected a run inside the 3 records of graph_links, found 2 from 2"},
    {"graph_nodes[0]", "output_count", "2", "graph_nodes[0].output: expected a run inside the 3 records of graph_links, found 2 from 2"},
    {"graph_nodes[0]", "output_count", "1 reserved=1", "graph_nodes[0].reserved: expected 0, found 1"},
    {"graph_values[0]", "kind", "4", "graph_values[0].kind: expected a known graph_kind, found 4"},
    {"graph_values[0]", "known", "3", "graph_values[0].known: expected a known graph_known, found 3"},
    {"graph_values[1]", "dtype", "8", "graph_values[1].dtype: expected a known dtype, found 8"},
    {"graph_values[1]", "content", "11", "graph_values[1].content: expected a run inside the 10 records of graph_terms, found 0 from 11"},
    {"graph_values[1]", "dim_count", "9", "graph_values[1].dim_count: expected at most 8, found 9"},
    {"graph_links[0]", "value", "2", "graph_links[0].value: expected an index below 2 in graph_values, found 2"},
    {"graph_links[1]", "value", "0", ""},
    {"graph_terms[1]", "expr_count", "0", "graph_terms[1].expr: expected a postfix expression, found that it is empty"},
    {"graph_terms[1]", "expr", "4", "graph_terms[1].expr: expected a run inside the 5 records of exprs, found 3 from 4"},
    {"args[1]", "kind", "iteration", ""},
    {"args[3]", "kind", "timers", ""},
    {"args[1]", "kind", "timers", ""},
    {"args[2]", "kind", "timers", "args[2].value: expected inside the 4096 bytes of region weights, found 128 bytes at 1065353216"},
    {"buffers[1]", "signature", "2", "buffers[1].signature: expected an index below 2 in signatures, found 2"},
    {"weights", NULL, "weight_refs[0] file=\"w.data\" region=arena\nweights 1224", "weight_refs[0].region: expected weights or load, found arena"},
    {"weights", NULL, "weight_refs[0] file=\"/etc/x\"\nweights 1224", "weight_refs[0].file: expected a file inside the model's folder, found '/etc/x'"},
    {"weights", NULL, "weight_refs[0] file=\"a/..\"\nweights 1224", "weight_refs[0].file: expected a file inside the model's folder, found 'a/..'"},
    {"weights", NULL, "weight_refs[0] file=\"w\" bytes=1001\nweights 1224", "weight_refs[0].region_offset: expected inside the 1000 initialised bytes of region weights, found 1001 bytes at 0"},
    {"weights", NULL, "weight_refs[0] file=\"w\" bytes=1 file_offset=9223372036854775807\nweights 1224", "weight_refs[0].file_offset: expected an end below 2^63, found 1 bytes at 9223372036854775807"},
    {"weights", NULL, "weight_refs[0] file=\"\" bytes=2 file_offset=1223\nweights 1224", "weight_refs[0].file_offset: expected inside the 1224 bytes of section weights, found 2 bytes at 1223"},
    {"weights", NULL, "section[33] 0\nweights 1224", ""},
    {"weights", NULL, "weight_refs[0] file=\"a..b/w\" bytes=1 file_offset=9999\nweight_refs[1] file=\"\" bytes=1 file_offset=1223\nweights 1224", ""},
};

/* Faults of the text form itself. */
static const struct {
    const char *text, *message;
} bad_texts[] = {
    {"", "1:1: expected 'plan 2', found another line"},
    {"plan 1\n", "1:7: plan version 1, this program reads 2"},
    {"plan 2\n\n# comment\n  nothing[0] a=1\n", "4:3: expected the name of a section, found 'nothing'"},
    {"plan 2\nkernels[1] block=1\n", "2:11: expected kernels[0], found kernels[1]"},
    {"plan 2\nkernels[0] block=1 block=2\n", "2:20: expected 'block' once, found it again"},
    {"plan 2\nkernels[0] blocks=1\n", "2:12: expected a field of kernels, found 'blocks'"},
    {"plan 2\nkernels[0] block=12x\n", "2:20: expected a blank, found 'x'"},
    {"plan 2\nkernels[0] block=4294967296\n", "2:18: expected a number of at most 4294967295, found a larger one"},
    {"plan 2\nkernels[0] block=-1\n", "2:18: expected a number, found '-'"},
    {"plan 2\nkernels[0] block", "2:17: expected '=', found the end of the line"},
    {"plan 2\nkernels[0] name=\"a\nb\"", "2:19: expected '\"', found the end of the line"},
    {"plan 2\nkernels[0] name=\"a\\q\"", "2:20: expected an escape \\n \\t \\\" \\\\ or \\xHH, found 'q'"},
    {"plan 2\nbindings[0] dtype=f33", "2:19: expected a dtype, found 'f33'"},
    {"plan 2\nstrings[1] \"\"\nstrings[3] \"a\"", "3:11: expected strings[2], found strings[3]"},
    {"plan 2\nmetadata 4\n  0011\n", "4:1: expected 4 bytes, found 2"},
    {"plan 2\nmetadata 1\n  0011\n", "3:5: expected 1 bytes, found more"},
    {"plan 2\nmetadata 2\n  00 11\n", "3:6: expected the end of the line, found '1'"},
    {"plan 2\nmetadata 2\n  zeros 3\n", "3:9: expected a number of at most 2, found a larger one"},
    {"plan 2\nsection[32] 0\n", "2:12: expected a section number from 33 on"},
};

static void test_bad_records(void) {
    char message[512], name[128];
    for (size_t i = 0; i < sizeof bad_records / sizeof *bad_records; i++) {
        char *text = edited(bad_records[i].record, bad_records[i].field, bad_records[i].value);
        plan_status status = open_text(text, message, sizeof message);
        snprintf(name, sizeof name, "bad %s %s=%.60s", bad_records[i].record,
                 bad_records[i].field ? bad_records[i].field : "line", bad_records[i].value);
        for (char *at = name; *at; at++)
            if (*at == '\n') *at = ' ';
        check_text(message, bad_records[i].message, name);
        if (bad_records[i].message[0] && status != PLAN_ERROR_FORMAT && status != PLAN_ERROR_METADATA) check(0, name, "the status is another");
        free(text);
    }
}

/* Rules between blocks that need more than one of them changed. */
static void test_blocks(void) {
    char message[512] = "";
    plan_view view;
    void *bytes = NULL;
    uint64_t size;
    plan_writer *w = build();
    plan_block_record *outer = plan_writer_record(w, PLAN_SECTION_BLOCKS, 2), *inner = plan_writer_record(w, PLAN_SECTION_BLOCKS, 3);
    outer->seam = PLAN_NONE;
    inner->launch_count = 2;
    inner->seam = 0;
    if (plan_writer_write_memory(w, &bytes, &size, message, sizeof message)) abort();
    (void)plan_view_open(bytes, size, &view, message, sizeof message);
    check_text(message, "blocks[3].seam: expected none inside the node of block 2, found 0", "a seam inside a node");
    free(bytes);
    plan_writer_free(w);

    w = build();
    plan_block_record deep = *(plan_block_record *)plan_writer_record(w, PLAN_SECTION_BLOCKS, 3);
    for (int i = 0; i < PLAN_NESTING_LIMIT; i++) plan_writer_add(w, PLAN_SECTION_BLOCKS, &deep);
    ((plan_signature_record *)plan_writer_record(w, PLAN_SECTION_SIGNATURES, 1))->block_count += PLAN_NESTING_LIMIT - 2;
    if (plan_writer_write_memory(w, &bytes, &size, message, sizeof message)) abort();
    check(plan_view_open(bytes, size, &view, message, sizeof message) == PLAN_OK, "blocks as deep as the limit", message);
    free(bytes);
    ((plan_signature_record *)plan_writer_record(w, PLAN_SECTION_SIGNATURES, 1))->block_count++;
    if (plan_writer_write_memory(w, &bytes, &size, message, sizeof message)) abort();
    (void)plan_view_open(bytes, size, &view, message, sizeof message);
    check_text(message, "blocks[18]: expected at most 16 blocks inside each other, found more", "blocks deeper than the limit");
    free(bytes);
    plan_writer_free(w);
}

/* A record for each block: launches 0 and 1, of 4 and of 16 blocks, have the same arguments. */
static void test_timers(void) {
    static const struct { uint64_t value; const char *message; } cases[] = {
        {4096 - 16 * 32, ""},
        {4096 - 16 * 32 + 1, "args[2].value: expected inside the 4096 bytes of region weights, found 512 bytes at 3585"},
        {4096 - 4 * 32 + 1, "args[2].value: expected inside the 4096 bytes of region weights, found 128 bytes at 3969"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[512] = "";
        plan_view view;
        void *bytes = NULL;
        uint64_t size;
        plan_writer *w = build();
        *(plan_arg_record *)plan_writer_record(w, PLAN_SECTION_ARGS, 2) = (plan_arg_record){PLAN_ARG_TIMERS, PLAN_REGION_WEIGHTS, cases[i].value};
        if (plan_writer_write_memory(w, &bytes, &size, message, sizeof message)) abort();
        (void)plan_view_open(bytes, size, &view, message, sizeof message);
        check_text(message, cases[i].message, "records of timers lie in their region");
        free(bytes);
        plan_writer_free(w);
    }
}

static void test_bad_texts(void) {
    char message[512], name[64];
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        (void)open_text(bad_texts[i].text, message, sizeof message);
        snprintf(name, sizeof name, "bad text %zu", i);
        check_text(message, bad_texts[i].message, name);
    }
}

/* assemble(print(plan)) == plan, also with an optional section, equal strings and offsets inside strings. */
static void test_round_trip(void) {
    char message[512] = "";
    void *bytes = NULL;
    uint64_t size = 0;
    plan_writer *w = plan_writer_new();
    check(!plan_text_assemble(good_text, strlen(good_text), w, message, sizeof message) &&
          !plan_writer_write_memory(w, &bytes, &size, message, sizeof message) && size == good_size &&
          memcmp(bytes, good, size) == 0, "the text form assembles to the same bytes", message);
    free(bytes);
    plan_writer_free(w);

    w = build();
    uint32_t copy = plan_writer_string_append(w, "decode"), tail = plan_writer_string(w, "prefill") + 3;
    ((plan_signature_record *)plan_writer_record(w, PLAN_SECTION_SIGNATURES, 0))->name = copy;
    ((plan_signature_record *)plan_writer_record(w, PLAN_SECTION_SIGNATURES, 1))->name = tail;
    plan_writer_bytes(w, 40, "later", 5);
    plan_writer_zeros(w, 34, 0);
    void *odd = NULL;
    uint64_t odd_size;
    check(!plan_writer_write_memory(w, &odd, &odd_size, message, sizeof message), "an optional section is written", message);
    plan_writer_free(w);
    char *text = print_text(odd, odd_size);
    w = plan_writer_new();
    check(text && !plan_text_assemble(text, strlen(text), w, message, sizeof message) &&
          !plan_writer_write_memory(w, &bytes, &size, message, sizeof message) && size == odd_size &&
          memcmp(bytes, odd, size) == 0, "so does that of a plan with odd strings and sections", message);
    plan_writer_free(w);
    free(bytes);
    free(odd);
    free(text);
}

static void expect_expr(const char *name, const plan_expr_record *expr, uint32_t count, plan_status status, int64_t value) {
    int64_t out = 77;
    plan_status found = plan_expr_eval(expr, count, NULL, &out);
    check(found == status && out == (status ? 77 : value), name, "");
}

static void test_exprs(void) {
    static const struct { const char *name; uint32_t op; int64_t a, b; plan_status status; int64_t value; } cases[] = {
        {"add", PLAN_EXPR_ADD, 2, 3, PLAN_OK, 5},
        {"add overflows", PLAN_EXPR_ADD, INT64_MAX, 1, PLAN_ERROR_RANGE, 0},
        {"add underflows", PLAN_EXPR_ADD, INT64_MIN, -1, PLAN_ERROR_RANGE, 0},
        {"mul overflows", PLAN_EXPR_MUL, INT64_MIN, -1, PLAN_ERROR_RANGE, 0},
        {"mul of two negatives overflows", PLAN_EXPR_MUL, -1, INT64_MIN, PLAN_ERROR_RANGE, 0},
        {"mul reaches the least", PLAN_EXPR_MUL, INT64_MIN / 2, 2, PLAN_OK, INT64_MIN},
        {"floor division", PLAN_EXPR_FLOORDIV, -7, 2, PLAN_OK, -4},
        {"ceiling division", PLAN_EXPR_CEILDIV, 7, 2, PLAN_OK, 4},
        {"ceiling division of a negative", PLAN_EXPR_CEILDIV, -7, 2, PLAN_OK, -3},
        {"division by zero", PLAN_EXPR_FLOORDIV, 1, 0, PLAN_ERROR_RANGE, 0},
        {"division overflows", PLAN_EXPR_CEILDIV, INT64_MIN, -1, PLAN_ERROR_RANGE, 0},
        {"mod has the divisor's sign", PLAN_EXPR_MOD, -7, 3, PLAN_OK, 2},
        {"mod by minus one", PLAN_EXPR_MOD, INT64_MIN, -1, PLAN_OK, 0},
        {"mod by zero", PLAN_EXPR_MOD, 1, 0, PLAN_ERROR_RANGE, 0},
        {"min", PLAN_EXPR_MIN, 4, -2, PLAN_OK, -2},
        {"max", PLAN_EXPR_MAX, 4, -2, PLAN_OK, 4},
        {"an unknown operation", 9, 4, -2, PLAN_ERROR_FORMAT, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_expr_record e[3] = {{PLAN_EXPR_CONST, 0, cases[i].a}, {PLAN_EXPR_CONST, 0, cases[i].b}, {cases[i].op, 0, 0}};
        expect_expr(cases[i].name, e, 3, cases[i].status, cases[i].value);
    }
    plan_expr_record deep[2 * PLAN_EXPR_DEPTH + 1];
    for (size_t i = 0; i < 2 * PLAN_EXPR_DEPTH + 1; i++)
        deep[i] = (plan_expr_record){i <= PLAN_EXPR_DEPTH ? PLAN_EXPR_CONST : PLAN_EXPR_ADD, 0, 1};
    expect_expr("a stack of 65", deep, 2 * PLAN_EXPR_DEPTH + 1, PLAN_ERROR_FORMAT, 0);
    expect_expr("a stack of 64", deep + 1, 2 * PLAN_EXPR_DEPTH - 1, PLAN_OK, 64);
}

/* The checksum in pieces equals the checksum at once, around stripes and blocks; every changed byte changes it. */
static void test_checksum(void) {
    static uint8_t bytes[2 * PLAN_CHECKSUM_BLOCK + 77];
    static const uint64_t sizes[] = {0, 1, 8, 31, 32, 33, 1000, PLAN_CHECKSUM_BLOCK - 1, PLAN_CHECKSUM_BLOCK,
                                     PLAN_CHECKSUM_BLOCK + 1, 2 * PLAN_CHECKSUM_BLOCK, 2 * PLAN_CHECKSUM_BLOCK + 77};
    int pieces_equal = 1, flips_found = 1;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t whole = plan_checksum(bytes, sizes[k]), at = 0;
        plan_checksum_state state;
        plan_checksum_begin(&state);
        for (uint64_t step = 1; at < sizes[k]; step = step * 3 % 70001) {
            uint64_t take = sizes[k] - at < step ? sizes[k] - at : step;
            plan_checksum_add(&state, bytes + at, take);
            at += take;
        }
        pieces_equal &= plan_checksum_end(&state) == whole;
        for (uint64_t i = 0; i < sizes[k]; i += sizes[k] > 2000 ? 104729 : 1) {
            bytes[i] ^= 0x40;
            flips_found &= plan_checksum(bytes, sizes[k]) != whole;
            bytes[i] ^= 0x40;
        }
    }
    check(pieces_equal, "the checksum of pieces is that of the whole", "");
    check(flips_found, "a flipped byte changes the checksum", "");
    char found[20];
    snprintf(found, sizeof found, "%016" PRIx64, plan_checksum("123456789", 9));
    check_text(found, "5c1f6c651cdc7d98", "the checksum of \"123456789\", as FORMAT.md gives it");
}

/* A write that fails half way names the file and leaves nothing behind. The limit stands for a full disk. */
static void test_full_disk(plan_writer *w, const char *path) {
    struct rlimit before, small;
    char message[512], expected[200];
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 5000;
    setrlimit(RLIMIT_FSIZE, &small);
    int status = plan_writer_write(w, path, NULL, message, sizeof message);
    setrlimit(RLIMIT_FSIZE, &before);
    snprintf(expected, sizeof expected, "%s: File too large", path);
    check(status != 0, "a full disk is an error", "");
    check_text(message, expected, "a full disk names the file");
}

static void test_files(void) {
    char folder[] = "/tmp/test_container_XXXXXX", path[64], missing[80], message[512] = "", expected[200];
    if (!mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/a.plan", folder);
    snprintf(missing, sizeof missing, "%s/none/x.plan", folder);
    plan_writer *w = build();
    uint64_t written = 0;
    check(!plan_writer_write(w, path, &written, message, sizeof message) && written == good_size, "a file is written", message);
    uint8_t *bytes = calloc(1, good_size + 1);
    FILE *file = fopen(path, "rb");
    if (!bytes || !file) abort();
    check(fread(bytes, 1, good_size + 1, file) == good_size && memcmp(bytes, good, good_size) == 0,
          "the file has the bytes of the memory form", "");
    fclose(file);
    remove(path);
    free(bytes);
    test_full_disk(w, path);
    (void)plan_writer_write(w, missing, NULL, message, sizeof message);
    snprintf(expected, sizeof expected, "%s: No such file or directory", missing);
    check_text(message, expected, "a folder that does not exist");
    (void)plan_writer_write(w, "/dev/full", NULL, message, sizeof message);
    check_text(message, "/dev/full: cannot write; expected a regular file or none, found something else", "a device");
    plan_writer_add(w, PLAN_SECTION_CODE, "x");
    (void)plan_writer_write(w, path, NULL, message, sizeof message);
    snprintf(expected, sizeof expected, "%s: writer: a record was added to a section that has none", path);
    check_text(message, expected, "a misuse is reported when writing");
    plan_writer_free(w);
    check(rmdir(folder) == 0, "failed writes leave no temporary file", "");
}

/* Each field of each section has its line, in order, in FORMAT.md. Skipped where the sources are not at hand. */
static void test_specification(void) {
    const char *source = getenv("srcdir");
    char path[512], line[1024], wanted[128];
    snprintf(path, sizeof path, "%s/plans/FORMAT.md", source ? source : ".");
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("ok the specification has every field # skipped: no %s\n", path);
        skipped++;
        return;
    }
    uint32_t missing = 0;
    for (uint32_t id = 2; id < PLAN_SECTION_METADATA; id++) {
        const plan_schema *schema = &plan_schemas[id];
        for (uint32_t k = 0; k <= schema->field_count; k++) {
            const plan_field *f = k ? &schema->fields[k - 1] : NULL;
            if (f) snprintf(wanted, sizeof wanted, "| %u | %u | `%s` | %c%u ", f->offset, f->width, f->name,
                            f->is_signed ? 'i' : 'u', 8u * f->width);
            else snprintf(wanted, sizeof wanted, "### %" PRIu32 " `%s`: %" PRIu32 " bytes\n", id, schema->name, schema->record);
            int found = 0;
            while (!found && fgets(line, sizeof line, file)) found = strncmp(line, wanted, strlen(wanted)) == 0;
            missing += !found;
        }
    }
    fclose(file);
    check(missing == 0, "the specification has every field", wanted);
}

int main(int argc, char **argv) {
    char message[512];
    void *bytes;
    plan_writer *w = build();
    if (argc == 2) {
        int status = plan_writer_write(w, argv[1], NULL, message, sizeof message);
        if (status) fprintf(stderr, "%s\n", message);
        plan_writer_free(w);
        return status;
    }
    if (plan_writer_write_memory(w, &bytes, &good_size, message, sizeof message)) abort();
    plan_writer_free(w);
    good = bytes;
    good_text = print_text(good, good_size);
    test_good();
    test_schema();
    if (good_text) {
        test_round_trip();
        test_bad_records();
    }
    test_blocks();
    test_timers();
    test_bad_texts();
    test_structure();
    test_exprs();
    test_checksum();
    test_files();
    test_specification();
    test_cuts();
    test_flips();
    free(good);
    free(good_text);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0 || passed == 0;
}
