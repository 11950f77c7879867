/* test_weights.c - weights by reference: where the files may lie, and that size and checksum are checked; inputs and outputs. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdatomic.h>
#include <sys/stat.h>

#include "../../runtime/upload.h"
#include "small_plan.h"

static int passed, failed;

static void check(int good, const char *name) {
    printf("%s %s\n", good ? "ok -" : "not ok -", name);
    if (!good)
        printf("# %s\n", plan_error_message());
    if (good)
        passed++;
    else
        failed++;
}

static int says(const char *part) { return strstr(plan_error_message(), part) != NULL; }

static void *module_bytes;
static size_t module_size;

static const char *in_folder(const char *name) {
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", small_folder(), name);
    return path[turn];
}

/* Loads a plan whose weights come from FILE, with the folder of the test as the weights' folder. */
static plan_status load_from(const char *file, plan **out) {
    const small_options o = {.sampling = 1, .file = file};
    plan_options options = PLAN_OPTIONS_INIT;
    uint64_t size;
    void *bytes = small_plan(&o, module_bytes, module_size, &size);
    small_write("small.plan", bytes, size);
    free(bytes);
    options.target = "host";
    return plan_load(in_folder("small.plan"), &options, out); /* the plan's own folder is the default */
}

/* 1 when the plan computes what it should, so its weights are the right ones. */
static int computes(plan *p) {
    const int64_t ids[] = {3, 1, 4};
    float logits[SMALL_VOCABULARY], model[SMALL_VOCABULARY];
    plan_session *s = NULL;
    small_model(ids, 3, model);
    int good = !plan_session_open(p, NULL, &s) && !plan_session_warm(s) && !plan_session_capture(s) && !plan_session_prefill(s, ids, 3) &&
               !plan_session_logits(s, logits, SMALL_VOCABULARY) && !memcmp(logits, model, sizeof model);
    return !plan_session_close(s) && good;
}

static void refused(const char *file, plan_status status, const char *part, const char *name) {
    plan *p = NULL;
    check(load_from(file, &p) == status && !p && says(part), name);
    plan_free(p);
}

static void test_references(void) {
    const float weights[] = {0, 0, 2}, wrong[] = {0, 0, 3};
    plan *p = NULL;
    mkdir(in_folder("sub"), 0700);
    small_write("w.bin", weights, sizeof weights);
    small_write("sub/w.bin", weights, sizeof weights);
    small_write("wrong.bin", wrong, sizeof wrong);
    small_write("short.bin", weights, 11);
    check(symlink("w.bin", in_folder("link.bin")) == 0 && symlink("sub", in_folder("away")) == 0, "links are made");
    check(!load_from("w.bin", &p) && computes(p) && !plan_free(p), "a file beside the plan");
    check(!load_from("sub/w.bin", &p) && computes(p) && !plan_free(p), "a file in a folder below");
    check(!load_from("", &p) && computes(p) && !plan_free(p), "bytes in the plan itself");
    refused("missing.bin", PLAN_ERROR_FILE, "weights 'missing.bin': cannot be opened", "a missing file");
    refused("wrong.bin", PLAN_ERROR_FILE, "expected checksum 0x", "other bytes");
    refused("short.bin", PLAN_ERROR_FILE, "expected 4 bytes at 8, found a file of 11", "a short file");
    refused("link.bin", PLAN_ERROR_FILE, "links are refused", "a link");
    refused("away/w.bin", PLAN_ERROR_FILE, "weights 'away/w.bin': cannot be opened", "a linked folder");
    refused("sub", PLAN_ERROR_FILE, "expected a file", "a folder");
    refused("sub/../w.bin", PLAN_ERROR_FORMAT, "inside the model's folder", "a way up");
    refused("/etc/passwd", PLAN_ERROR_FORMAT, "inside the model's folder", "an absolute path");
    plan_options options = PLAN_OPTIONS_INIT;
    options.target = "host";
    options.weights_folder = in_folder("nowhere");
    const small_options o = {.sampling = 1, .file = "w.bin"};
    uint64_t size;
    void *bytes = small_plan(&o, module_bytes, module_size, &size);
    check(plan_load_memory(bytes, size, &options, &p) == PLAN_ERROR_FILE && says("nowhere"), "a folder that is not there");
    options.weights_folder = NULL;
    check(plan_load_memory(bytes, size, &options, &p) == PLAN_ERROR_FILE && says("weights_folder"), "no folder for a plan in memory");
    options.weights_folder = small_folder();
    check(!plan_load_memory(bytes, size, &options, &p) && computes(p) && !plan_free(p), "a folder that is given");
    free(bytes);
}

static void test_tensors(void) {
    plan *p = NULL;
    plan_session *s = NULL;
    plan_tensor t;
    const int64_t ids[] = {3, 1, 4, 9}, length = 3;
    const char *const names[] = {"sequence"};
    float rows[3 * SMALL_VOCABULARY], model[SMALL_VOCABULARY];
    size_t written = 0;
    if (load_from("w.bin", &p) || plan_session_open(p, NULL, &s) || plan_session_warm(s) || plan_session_capture(s)) {
        printf("# %s\n", plan_error_message());
        exit(1);
    }
    check(plan_input_count(p, "prefill") == 1 && plan_output_count(p, "decode") == 1 && plan_input_count(p, "nothing") == -1 &&
          plan_state_count(p) == 1, "counts");
    check(!plan_output(p, "prefill", 0, &t) && !strcmp(t.name, "logits") && t.rank == 3 && t.dims[1] == SMALL_PREFILL &&
          t.strides[1] == SMALL_VOCABULARY && t.dtype == PLAN_F32, "an output is described");
    check(!plan_input(p, "decode", 0, &t) && t.feed == PLAN_FEED_TOKEN && t.bytes == 8, "an input is described");
    check(plan_input(p, "decode", 1, &t) == PLAN_ERROR_RANGE, "an input too many");
    check(!plan_state(p, 0, &t) && !strcmp(t.name, "past_tokens") && t.bytes == 8 * SMALL_CAPACITY, "a state is described");
    check(!plan_session_write_input(s, "prefill", "input_ids", ids, 24) && !plan_session_run(s, "prefill", names, &length, 1),
          "a signature is run with inputs and symbols of the caller");
    check(!plan_session_read_output(s, "prefill", "logits", rows, sizeof rows, &written) && written == sizeof rows, "an output is read");
    int good = 1;
    for (size_t i = 0; i < 3; i++) {
        small_model(ids, i + 1, model);
        good &= !memcmp(rows + i * SMALL_VOCABULARY, model, sizeof model);
    }
    check(good, "and each of its rows is right");
    check(plan_session_read_output(s, "prefill", "logits", rows, 8, &written) == PLAN_ERROR_RANGE, "a place too small is refused");
    check(plan_session_write_input(s, "prefill", "input_ids", ids, 20) == PLAN_ERROR_RANGE, "bytes of no whole extent are refused");
    check(plan_session_write_input(s, "decode", "nothing", ids, 8) == PLAN_ERROR_NAME, "an unknown input is refused");
    const int64_t nine = 9;
    check(plan_session_run(s, "prefill", names, &nine, 1) == PLAN_ERROR_RANGE && says("1 to 8, found 9"), "a symbol outside its box is refused");
    const char *const unknown[] = {"width"};
    check(plan_session_run(s, "prefill", unknown, &length, 1) == PLAN_ERROR_NAME, "an unknown symbol is refused");
    check(!plan_session_write_input(s, "decode", "input_ids", &ids[3], 8) && !plan_session_replay(s, 1) &&
          !plan_session_logits(s, rows, SMALL_VOCABULARY), "a token that was written as an input is fed");
    small_model(ids, 4, model);
    check(!memcmp(rows, model, sizeof model), "and its logits are right");
    check(!plan_session_close(s) && !plan_free(p), "closed");
}

/* ---- the upload itself, on the host driver */

static atomic_llong live; /* allocations of the driver's own structures: a stream or an allocation has one */
static void *count_allocate(void *context, size_t bytes) {
    (void)context;
    live++;
    return calloc(1, bytes);
}
static void count_release(void *context, void *pointer) {
    (void)context;
    live -= pointer != NULL;
    free(pointer);
}

enum { LARGE = (9 << 20) + 123, SMALL = 5 << 20 };

static plan_driver *open_driver(uint64_t fail_call) {
    const plan_driver_options options = {0, 1, fail_call, {count_allocate, count_release, NULL}};
    plan_driver *d = NULL;
    if (plan_driver_host_open(&options, &d)) {
        printf("# %s\n", plan_error_message());
        exit(1);
    }
    return d;
}

/* Three pieces: one with two targets, of which the second begins inside a chunk; one without bytes; one more. */
static plan_status upload(plan_driver *d, const unsigned char *bytes, plan_address to, plan_upload_piece *pieces) {
    const plan_upload_piece all[3] = {
        {.from = bytes, .bytes = LARGE, .targets = {{0, 3000000, to}, {3000064, LARGE - 3000064, to + 3000064}}},
        {.from = NULL, .bytes = 0},
        {.from = bytes + LARGE, .bytes = SMALL, .targets = {{0, SMALL, to + LARGE}}},
    };
    memcpy(pieces, all, sizeof all);
    return plan_upload(d, pieces, 3);
}

static void test_upload(void) {
    unsigned char *bytes = malloc(LARGE + SMALL), gap[64];
    plan_upload_piece pieces[3], direct;
    plan_address to = 0;
    plan_driver *d = open_driver(0);
    uint32_t random = 1;
    for (size_t i = 0; i < LARGE + SMALL; i++)
        bytes[i] = (unsigned char)((random = random * 1664525u + 1013904223u) >> 24);
    check(!d->allocate(d, LARGE + SMALL, "test", &to), "device memory");
    const unsigned char *there = (const unsigned char *)(uintptr_t)to;
    memset(gap, 0xa5, sizeof gap); /* fresh memory of the host driver */
    const long long before = live;
    check(!upload(d, bytes, to, pieces) && live == before, "an upload keeps nothing");
    check(!memcmp(there, bytes, 3000000) && !memcmp(there + 3000064, bytes + 3000064, LARGE + SMALL - 3000064), "every byte arrives");
    check(!memcmp(there + 3000000, gap, sizeof gap), "and none between the targets");
    check(pieces[0].sum == plan_checksum(bytes, LARGE) && pieces[1].sum == plan_checksum("", 0) &&
          pieces[2].sum == plan_checksum(bytes + LARGE, SMALL), "checksums of the pieces");
    direct = (plan_upload_piece){.from = bytes + 1, .bytes = 1000001, .targets = {{7, 999994, to}}};
    check(!plan_upload(d, &direct, 1) && !memcmp(there, bytes + 8, 999994) && direct.sum == plan_checksum(bytes + 1, 1000001), "a little goes directly");
    check(!d->check(d), "no guard byte was written");
    d->close(d);
    int good = 1, done = 0, calls = 0;
    for (uint64_t n = 2; n < 500 && !done; n++, calls++) { /* call 1 is the allocation */
        d = open_driver(n);
        good &= !d->allocate(d, LARGE + SMALL, "test", &to);
        const long long held = live;
        plan_status status = upload(d, bytes, to, pieces);
        done = status == PLAN_OK;
        good &= live == held && (done || (status == PLAN_ERROR_DRIVER && says("failed on request")));
        d->close(d);
    }
    check(good && done && calls > 20, "each driver call of an upload may fail: DRIVER, and nothing is left");
    check(live == 0, "nothing is left at all");
    free(bytes);
}

int main(void) {
    test_upload();
    module_bytes = small_compile(&module_size);
    test_references();
    test_tensors();
    static const char *const names[] = {"small.plan", "w.bin", "wrong.bin", "short.bin", "link.bin", "away", "sub/w.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("sub"));
    rmdir(small_folder());
    free(module_bytes);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
