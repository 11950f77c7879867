/* small_plan.h - a complete small decoder plan for tests of the runtime, and a model of it in plain C.
 *
 * Vocabulary 16, capacity 40, prefill of 1 to 8 tokens, and one of 5 to 16 where it is asked for. State: the tokens (int64, one a row), which grows. The score of
 * column v is (7 * sum of (row + 1) * token + v * (5 + w)) mod 31, where w = 3 is made by the load signature from region
 * load. Greedy: the first column of the largest score. Each step is four launches:
 *   append (plain), score (two blocks of 64 threads with barriers and warp exchanges), sample, advance.
 */
#ifndef SMALL_PLAN_H
#define SMALL_PLAN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../plans/writer.h"
#include "../../runtime/plan.h"

#define SMALL_VOCABULARY 16
#define SMALL_CAPACITY 40
#define SMALL_PREFILL 8
#define SMALL_LONG 16
#define SMALL_STATE 256 /* offset of the rows in region state */

static const char small_module[] =
    "typedef struct { int first, count, bx, by, bz, gx, gy, gz, block; } ix;\n"
    "typedef unsigned long long u64; typedef long long i64;\n"
    "typedef struct { void (*sync)(void); float (*sum)(float); float (*max)(float); u64 (*shuffle)(u64, int);\n"
    "  void (*arrive)(void), (*wait)(void), (*put)(void *, int, const float *); } services;\n"
    "const services *plan_host;\n"
    "void prepare(const ix *x, const u64 *a) { if (x->first == 0) *(float *)a[1] = *(const float *)a[0] + 1; }\n"
    "/* extents, tokens, rows, count (0: from the table) */\n"
    "void append(const ix *x, const u64 *a) {\n"
    "  i64 *e = (i64 *)a[0], *t = (i64 *)a[1], *r = (i64 *)a[2], n = a[3] ? (i64)a[3] : e[1];\n"
    "  for (int i = x->first; i < x->first + x->count; i++) if (i < n) r[e[0] + i] = t[i]; }\n"
    "/* extents, rows, logits, weight, count */\n"
    "static __thread float part[2];\n"
    "void score(const ix *x, const u64 *a) {\n"
    "  i64 *e = (i64 *)a[0], *r = (i64 *)a[1], n = a[4] ? (i64)a[4] : e[1]; float *o = (float *)a[2], w = *(float *)a[3], s = 0;\n"
    "  for (int t = 0; t < n; t++) { s = 0;\n"
    "    for (i64 i = x->first; i < e[0] + t + 1; i += 64) s += (float)((i + 1) * r[i]);\n"
    "    s = plan_host->sum(s); if (x->first % 32 == 0) part[x->first / 32] = s;\n"
    "    plan_host->sync();\n"
    "    i64 all = 7 * (i64)(part[0] + part[1]);\n"
    "    if (x->first < 8) { int v = x->bx * 8 + x->first; o[t * 16 + v] = (float)((all + v * (5 + (i64)w)) % 31); }\n"
    "    plan_host->sync(); } }\n"
    "/* extents, logits, token, ring, count */\n"
    "void sample(const ix *x, const u64 *a) {\n"
    "  if (x->first) return;\n"
    "  i64 *e = (i64 *)a[0], n = a[4] ? (i64)a[4] : e[1]; const float *o = (const float *)a[1] + (n - 1) * 16; int b = 0;\n"
    "  for (int v = 1; v < 16; v++) if (o[v] > o[b]) b = v;\n"
    "  *(i64 *)a[2] = b; ((i64 *)a[3])[e[2] % 65536] = b; e[2]++; }\n"
    "void advance(const ix *x, const u64 *a) { i64 *e = (i64 *)a[0]; if (x->first == 0) e[0] += a[1] ? (i64)a[1] : e[1]; }\n"
    "/* the number := how many of the eight numbers that a cluster of two blocks has put into its first block are right */\n"
    "static __thread __attribute__((aligned(16))) float met[8];\n"
    "void *meet_cluster(int *count) { *count = 2; return met; }\n"
    "void meet(const ix *x, const u64 *a) {\n"
    "  float v[4]; int n = 0, rank = x->bx % 2; for (int i = 0; i < 4; i++) v[i] = (float)(a[1] + rank * 4 + i);\n"
    "  plan_host->arrive(); plan_host->wait(); if (x->first == 0) plan_host->put(met + 4 * rank, 0, v);\n"
    "  plan_host->arrive(); plan_host->wait(); for (int i = 0; i < 8; i++) n += met[i] == (float)(a[1] + i);\n"
    "  if (rank == 0 && x->first == 0) ((i64 *)a[0])[x->bx / 2 + 2 * x->by] = n; }\n"
    "void *crowd_cluster(int *count) { *count = 17; return met; }\n"
    "void crowd(const ix *x, const u64 *a) { }\n"
    "void *stray_cluster(int *count) { *count = 2; return met; }\n"
    "void stray(const ix *x, const u64 *a) { plan_host->arrive(); plan_host->put(met, 0, met); }\n"
    "/* a condition's handle := whether the number is below 3 */\n"
    "void decide(const ix *x, const u64 *a) { if (x->first == 0) *(unsigned *)a[1] = *(i64 *)a[0] < 3; }\n";

static const char *small_folder(void) {
    static char folder[] = "/tmp/test_runtime.XXXXXX";
    static int made;
    if (!made && !mkdtemp(folder))
        abort();
    made = 1;
    return folder;
}

/* Writes a file in the folder. */
static void small_write(const char *name, const void *bytes, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", small_folder(), name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0)
        abort();
}

/* The compiled module; the caller frees it. */
static void *small_compile(size_t *size) {
    char path[256], command[1024];
    const char *cc = getenv("CC");
    snprintf(path, sizeof path, "%s/module.c", small_folder());
    small_write("module.c", small_module, sizeof small_module - 1);
    snprintf(command, sizeof command, "%.200s -O1 -shared -fPIC -w -o %s/module.so %s", cc && *cc ? cc : "cc", small_folder(), path);
    if (system(command) != 0) {
        printf("# %s failed\n", command);
        exit(1);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/module.so", small_folder());
    FILE *f = fopen(path, "rb");
    if (!f)
        abort();
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    void *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, f) != *size)
        abort();
    fclose(f);
    unlink(path);
    return bytes;
}

typedef struct small_options {
    int sampling;
    int no_edges;       /* leaves the edges out: a plan that is wrong */
    int two_segments;   /* decode in two segments */
    int stray;          /* sample writes beyond the ring */
    int echo;           /* the input is an output too, as it is */
    int ladder;         /* a second prefill signature, for longer parts */
    const char *file;   /* not NULL: region load comes by reference from 4 bytes at 8 of this file; "" is the plan itself */
} small_options;

static uint32_t small_text(plan_writer *w, const char *text) { return plan_writer_string(w, text); }

static uint32_t small_constant(plan_writer *w, int64_t value) {
    plan_expr_record e = {PLAN_EXPR_CONST, 0, value};
    return plan_writer_add(w, PLAN_SECTION_EXPRS, &e);
}
static uint32_t small_symbol(plan_writer *w, int64_t symbol) {
    plan_expr_record e = {PLAN_EXPR_SYMBOL, 0, symbol};
    return plan_writer_add(w, PLAN_SECTION_EXPRS, &e);
}
static uint32_t small_dim(plan_writer *w, uint32_t expr, int64_t upper, int64_t stride) {
    plan_dim_record d = {expr, 1, upper, stride};
    return plan_writer_add(w, PLAN_SECTION_DIMS, &d);
}

static uint32_t small_arg(plan_writer *w, uint32_t region, uint64_t value) {
    plan_arg_record a = {PLAN_ARG_POINTER, region, value};
    return plan_writer_add(w, PLAN_SECTION_ARGS, &a);
}
static uint32_t small_literal(plan_writer *w, uint64_t value) {
    plan_arg_record a = {PLAN_ARG_I64, 0, value};
    return plan_writer_add(w, PLAN_SECTION_ARGS, &a);
}
static void small_launch(plan_writer *w, uint32_t kernel, uint32_t blocks, const char *label, uint32_t arg, uint32_t count) {
    plan_launch_record l = {.kernel = kernel, .grid_x = blocks, .grid_y = 1, .grid_z = 1, .label = small_text(w, label), .arg = arg,
                            .arg_count = count, .bytes_fixed = 10, .bytes_row = kernel == 2 ? 8 : 0};
    plan_writer_add(w, PLAN_SECTION_LAUNCHES, &l);
}

/* Offsets in region io: the token of decode, which every tail writes. */
enum { SMALL_IO_TOKEN = 1024, SMALL_IO_BYTES = 3072 };

/* A signature's tokens in a step, and where in region io its ids and logits are. */
typedef struct small_box {
    int64_t least, most;
    uint64_t ids, logits;
} small_box;
static const small_box small_decode = {1, 1, SMALL_IO_TOKEN, 1280}, small_prefill = {1, SMALL_PREFILL, 0, 256},
                       small_long = {5, SMALL_LONG, 1536, 1792};

/* The launches, edges and segments of one signature; N: tokens of a step, 0 when the table says it. */
static void small_step(plan_writer *w, const small_options *o, uint64_t ids, uint64_t logits, uint64_t n) {
    uint32_t a = small_arg(w, PLAN_REGION_STATE, 0);
    small_arg(w, PLAN_REGION_IO, ids), small_arg(w, PLAN_REGION_STATE, SMALL_STATE), small_literal(w, n);
    small_launch(w, 1, 1, "append", a, 4);
    a = small_arg(w, PLAN_REGION_STATE, 0);
    small_arg(w, PLAN_REGION_STATE, SMALL_STATE), small_arg(w, PLAN_REGION_IO, logits);
    small_arg(w, PLAN_REGION_WEIGHTS, 0), small_literal(w, n);
    small_launch(w, 2, 2, "score", a, 5);
    a = small_arg(w, PLAN_REGION_STATE, 0);
    small_arg(w, PLAN_REGION_IO, logits), small_arg(w, PLAN_REGION_IO, SMALL_IO_TOKEN);
    small_arg(w, o->sampling ? PLAN_REGION_RING : PLAN_REGION_ARENA, o->stray ? 8 * PLAN_RING_TOKENS : 0), small_literal(w, n);
    small_launch(w, 3, 1, "sample", a, 5);
    a = small_arg(w, PLAN_REGION_STATE, 0);
    small_literal(w, n);
    small_launch(w, 4, 1, "advance", a, 2);
    for (uint32_t i = 0; i < 3 && !o->no_edges; i++) {
        plan_edge_record e = {i, i + 1};
        plan_writer_add(w, PLAN_SECTION_EDGES, &e);
    }
}

static void small_binding(plan_writer *w, const char *name, uint32_t kind, uint32_t dtype, uint32_t feed, uint32_t dim,
                          uint32_t rank, uint64_t offset, uint64_t bytes) {
    plan_binding_record b = {.name = small_text(w, name), .kind = kind, .dtype = dtype, .feed = feed, .dim = dim, .dim_count = rank,
                             .region = PLAN_REGION_IO, .offset = offset, .bytes = bytes};
    plan_writer_add(w, PLAN_SECTION_BINDINGS, &b);
}

static void small_bindings(plan_writer *w, const small_box *box, int echo) {
    int64_t most = box->most;
    uint32_t length = most > 1 ? small_symbol(w, 1) : small_constant(w, 1), one = small_constant(w, 1),
             columns = small_constant(w, SMALL_VOCABULARY);
    uint32_t d = small_dim(w, one, 1, most);
    small_dim(w, length, most, 1);
    small_binding(w, "input_ids", PLAN_BINDING_INPUT, PLAN_I64, PLAN_FEED_TOKEN, d, 2, box->ids, 8 * (uint64_t)most);
    d = small_dim(w, one, 1, most * SMALL_VOCABULARY);
    small_dim(w, length, most, SMALL_VOCABULARY);
    small_dim(w, columns, SMALL_VOCABULARY, 1);
    small_binding(w, "logits", PLAN_BINDING_OUTPUT, PLAN_F32, 0, d, 3, box->logits, 4 * SMALL_VOCABULARY * (uint64_t)most);
    plan_binding_record ids = *(const plan_binding_record *)plan_writer_record(w, PLAN_SECTION_BINDINGS, plan_writer_count(w, PLAN_SECTION_BINDINGS) - 2);
    ids.kind = PLAN_BINDING_OUTPUT, ids.feed = PLAN_FEED_CALLER;
    if (echo)
        plan_writer_add(w, PLAN_SECTION_BINDINGS, &ids);
}

/* BOX is NULL for load. */
static void small_signature(plan_writer *w, const small_options *o, const char *name, uint32_t kind, const small_box *box, uint64_t fingerprint) {
    plan_signature_record s = {.name = small_text(w, name), .kind = kind, .fingerprint = fingerprint, .metadata_bytes = 8};
    s.box = plan_writer_count(w, PLAN_SECTION_BOXES);
    s.binding = plan_writer_count(w, PLAN_SECTION_BINDINGS);
    s.launch = plan_writer_count(w, PLAN_SECTION_LAUNCHES);
    s.segment = plan_writer_count(w, PLAN_SECTION_SEGMENTS);
    s.edge = plan_writer_count(w, PLAN_SECTION_EDGES);
    s.step = plan_writer_count(w, PLAN_SECTION_STEPS);
    s.seam = plan_writer_count(w, PLAN_SECTION_SEAMS);
    s.metadata_offset = plan_writer_bytes_copy(w, PLAN_SECTION_METADATA, &fingerprint, 8);
    plan_writer_align(w, PLAN_SECTION_METADATA);
    if (!box) {
        uint32_t a = small_arg(w, PLAN_REGION_LOAD, 0);
        small_arg(w, PLAN_REGION_WEIGHTS, 0);
        small_launch(w, 0, 1, "prepare", a, 2);
    } else {
        plan_box_record boxes[2] = {{0, 0, 0, SMALL_CAPACITY - box->least}, {1, 0, box->least, box->most}};
        plan_writer_add(w, PLAN_SECTION_BOXES, &boxes[0]);
        plan_writer_add(w, PLAN_SECTION_BOXES, &boxes[1]);
        small_bindings(w, box, o->echo);
        small_step(w, o, box->ids, box->logits, box->most > 1 ? 0 : 1);
        plan_step_record step = {PLAN_SLOT_POSITION, 0, small_symbol(w, 0), 3};
        small_symbol(w, 1);
        plan_expr_record add = {PLAN_EXPR_ADD, 0, 0};
        plan_writer_add(w, PLAN_SECTION_EXPRS, &add);
        plan_writer_add(w, PLAN_SECTION_STEPS, &step);
    }
    s.box_count = plan_writer_count(w, PLAN_SECTION_BOXES) - s.box;
    s.binding_count = plan_writer_count(w, PLAN_SECTION_BINDINGS) - s.binding;
    s.launch_count = plan_writer_count(w, PLAN_SECTION_LAUNCHES) - s.launch;
    s.edge_count = plan_writer_count(w, PLAN_SECTION_EDGES) - s.edge;
    s.step_count = plan_writer_count(w, PLAN_SECTION_STEPS) - s.step;
    uint32_t first = o->two_segments && kind == PLAN_SIGNATURE_DECODE ? 2 : s.launch_count;
    for (uint32_t at = 0; at < s.launch_count; at += first) {
        plan_segment_record g = {at, first};
        plan_writer_add(w, PLAN_SECTION_SEGMENTS, &g);
    }
    s.segment_count = plan_writer_count(w, PLAN_SECTION_SEGMENTS) - s.segment;
    if (s.segment_count > 1) {
        plan_seam_record seam = {small_text(w, "score"), 0, small_text(w, "a test"), 0};
        plan_writer_add(w, PLAN_SECTION_SEAMS, &seam);
    }
    s.seam_count = plan_writer_count(w, PLAN_SECTION_SEAMS) - s.seam;
    plan_writer_add(w, PLAN_SECTION_SIGNATURES, &s);
}

static void small_kernel(plan_writer *w, const char *name, uint32_t args, uint32_t block, uint32_t fibres) {
    plan_kernel_record k = {small_text(w, name), small_text(w, name), 0, args, block, fibres};
    plan_writer_add(w, PLAN_SECTION_KERNELS, &k);
}

/* The plan's bytes; the caller frees them. */
static void *small_plan(const small_options *o, const void *module, size_t module_size, uint64_t *size) {
    plan_writer *w = plan_writer_new();
    char error[512];
    void *out;
    if (!w)
        abort();
    plan_symbol_record past = {small_text(w, "past"), PLAN_SYMBOL_GROWING, PLAN_SLOT_POSITION, PLAN_NONE, 0, 0};
    plan_symbol_record length = {small_text(w, "sequence"), PLAN_SYMBOL_RANGED, PLAN_SLOT_TOKENS, PLAN_NONE, 0, 0};
    plan_writer_add(w, PLAN_SECTION_SYMBOLS, &past);
    plan_writer_add(w, PLAN_SECTION_SYMBOLS, &length);
    small_kernel(w, "prepare", 2, 32, 0);
    small_kernel(w, "append", 4, 64, 0);
    small_kernel(w, "score", 5, 64, 1);
    small_kernel(w, "sample", 5, 32, 0);
    small_kernel(w, "advance", 2, 32, 0);
    small_signature(w, o, "load", PLAN_SIGNATURE_LOAD, NULL, 0x11);
    small_signature(w, o, "decode", PLAN_SIGNATURE_DECODE, &small_decode, 0x22);
    small_signature(w, o, "prefill", PLAN_SIGNATURE_PREFILL, &small_prefill, 0x33);
    if (o->ladder)
        small_signature(w, o, "prefill_long", PLAN_SIGNATURE_PREFILL, &small_long, 0x44);
    uint64_t code = plan_writer_bytes(w, PLAN_SECTION_CODE, module, module_size);
#if defined(__aarch64__)
    plan_module_record m = {small_text(w, "host-aarch64"), 0, code, module_size};
#else
    plan_module_record m = {small_text(w, "host-x86_64"), 0, code, module_size};
#endif
    plan_writer_add(w, PLAN_SECTION_MODULES, &m);
    const float two[] = {0, 0, 2};
    plan_weight_ref_record ref = {.file = small_text(w, o->file), .region = PLAN_REGION_LOAD, .file_offset = 8, .bytes = 4,
                                  .checksum = plan_checksum(&two[2], 4)};
    if (o->file)
        plan_writer_add(w, PLAN_SECTION_WEIGHT_REFS, &ref);
    if (!o->file || !*o->file)
        plan_writer_bytes_copy(w, PLAN_SECTION_WEIGHTS, o->file ? two : &two[2], o->file ? sizeof two : 4);
    const uint64_t bytes[PLAN_REGION_COUNT] = {16, plan_writer_size(w, PLAN_SECTION_METADATA), 16, SMALL_STATE + 8 * SMALL_CAPACITY,
                                               8 * PLAN_RING_TOKENS, SMALL_IO_BYTES, o->sampling ? 8 * PLAN_RING_TOKENS : 0};
    for (uint32_t i = 0; i < PLAN_REGION_COUNT; i++) {
        plan_region_record r = {i, 0, bytes[i], i == PLAN_REGION_LOAD ? 4 : 0};
        plan_writer_add(w, PLAN_SECTION_REGIONS, &r);
    }
    uint32_t d = small_dim(w, small_symbol(w, 0), SMALL_CAPACITY, 1);
    plan_state_record state = {.input = small_text(w, "past_tokens"), .output = small_text(w, "present_tokens"), .dtype = PLAN_I64,
                               .dim = d, .dim_count = 1, .proof = PLAN_NONE, .offset = SMALL_STATE, .bytes = 8 * SMALL_CAPACITY};
    plan_writer_add(w, PLAN_SECTION_STATES, &state);
    plan_model_record model = {.name = small_text(w, "small.onnx"), .compiler = small_text(w, "test"), .capacity = SMALL_CAPACITY,
                               .slot_count = 3, .sampling = (uint32_t)o->sampling, .token_binding = o->sampling ? 0 : PLAN_NONE,
                               .logits_binding = 1, .rewindable = 1};
    plan_writer_add(w, PLAN_SECTION_MODEL, &model);
    if (plan_writer_write_memory(w, &out, size, error, sizeof error)) {
        printf("# %s\n", error);
        exit(1);
    }
    plan_writer_free(w);
    return out;
}

/* What the plan must compute, for COUNT tokens so far. */
static int64_t small_model(const int64_t *tokens, size_t count, float *logits) {
    int64_t sum = 0, best = 0;
    float local[SMALL_VOCABULARY];
    for (size_t i = 0; i < count; i++)
        sum += (int64_t)(i + 1) * tokens[i];
    for (int64_t v = 0; v < SMALL_VOCABULARY; v++) {
        local[v] = (float)((7 * sum + v * 8) % 31);
        if (local[v] > local[best])
            best = v;
    }
    if (logits)
        memcpy(logits, local, sizeof local);
    return best;
}

#endif
