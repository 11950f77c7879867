/* command.c - the command line of gcc-plan: one table of options. */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1"
#endif

enum OptionId {
    OPT_OUTPUT, OPT_RECIPE, OPT_PRINT_RECIPE, OPT_TARGET, OPT_CAPACITY, OPT_PREFILL, OPT_ROWS, OPT_MAX, OPT_PIN, OPT_BIND, OPT_WEIGHTS, OPT_SAMPLE, OPT_LOGITS,
    OPT_CONDITIONS, OPT_DUMP, OPT_FROM_TEXT, OPT_RUN, OPT_VERIFY, OPT_EMULATE, OPT_TIMERS, OPT_CHECK, OPT_OPS, OPT_SINGLE, OPT_LENGTHS, OPT_TUNING, OPT_CANDIDATES, OPT_THREADS, OPT_QUIET, OPT_JSON, OPT_HELP,
    OPT_VERSION
};
typedef enum Takes { NOTHING, A_VALUE, MAYBE_A_VALUE } Takes; /* MAYBE: only as --name=VALUE */

static const struct OptionRow { const char *name; enum OptionId id; Takes takes; const char *value, *help; } rows[] = {
    {"-o", OPT_OUTPUT, A_VALUE, "FILE", "the plan to write (also --output)"},
    {"--output", OPT_OUTPUT, A_VALUE, NULL, NULL},
    {"--recipe", OPT_RECIPE, A_VALUE, "FILE", "states, ranges, feeds; without one they are deduced"},
    {"--print-recipe", OPT_PRINT_RECIPE, NOTHING, NULL, "print what holds as a recipe, and stop"},
    {"--target", OPT_TARGET, A_VALUE, "LIST", "host, sm_NN, ptx; with commas"},
    {"--capacity", OPT_CAPACITY, A_VALUE, "N", "positions that the states have room for"},
    {"--prefill", OPT_PREFILL, A_VALUE, "N", "longest prompt part of one prefill step (default 64; for a GPU 512)"},
    {"--rows", OPT_ROWS, A_VALUE, "N", "sequences of a step, each with a length of its own"},
    {"--max", OPT_MAX, A_VALUE, "SYMBOL=N", "upper bound of a symbol"},
    {"--pin", OPT_PIN, A_VALUE, "SYMBOL=N", "value of a symbol"},
    {"--bind", OPT_BIND, A_VALUE, "INPUT=FILE.pb", "the input is a constant: the tensor of that file"},
    {"--weights", OPT_WEIGHTS, A_VALUE, "embed|reference", "weights in the plan, or in the model's files"},
    {"--sample", OPT_SAMPLE, A_VALUE, "greedy|draw|none", "choose the next token on the device"},
    {"--logits", OPT_LOGITS, A_VALUE, "last|all", "of which rows of a step; without it last with --sample, else all"},
    {"--conditions", OPT_CONDITIONS, A_VALUE, "node|seam", "how If and Loop on data are decided: in the graph, or by the host"},
    {"--require-single-segment", OPT_SINGLE, MAYBE_A_VALUE, "SIGNATURE", "fail when a signature has a seam"},
    {"--check-lengths", OPT_LENGTHS, NOTHING, NULL, "add decode steps of pinned length, for plan-run --check-growth"},
    {"--tuning", OPT_TUNING, A_VALUE, "FILE", "choices that plan-run --tune measured; without one a table serves"},
    {"--tune-candidates", OPT_CANDIDATES, NOTHING, NULL, "add a decode step for each value of each choice, for plan-run --tune"},
    {"--threads", OPT_THREADS, A_VALUE, "N", "threads that compile kernels"},
    {"--check", OPT_CHECK, NOTHING, NULL, "do everything but compiling kernels; list what is not supported"},
    {"--ops", OPT_OPS, NOTHING, NULL, "print the operators that are supported"},
    {"--dump", OPT_DUMP, A_VALUE, "PASS", "print the graph after a pass, and stop"},
    {"--from-text", OPT_FROM_TEXT, A_VALUE, "FILE", "read such a text instead of a model"},
    {"--run", OPT_RUN, A_VALUE, "PASS", "with --from-text: the first pass to run"},
    {"--verify-passes", OPT_VERIFY, NOTHING, NULL, "check the graph after each pass"},
    {"--emulate-gpu", OPT_EMULATE, NOTHING, NULL, "host code computes as a GPU's tensor cores and clusters of blocks do: for tests, slow"},
    {"--timers", OPT_TIMERS, NOTHING, NULL, "kernels say when each of their blocks began, had waited and ended, for plan-run --bench --timers"},
    {"--json", OPT_JSON, NOTHING, NULL, "print the report as JSON"},
    {"--quiet", OPT_QUIET, NOTHING, NULL, "print no report and no notes"},
    {"--help", OPT_HELP, NOTHING, NULL, "print this"},
    {"--version", OPT_VERSION, NOTHING, NULL, "print the version"},
};

int command_usage(const char *wrong)
{
    fprintf(stderr, "gcc-plan: %s\nTry 'gcc-plan --help'.\n", wrong);
    return 2;
}

static void print_help(void)
{
    puts("usage: gcc-plan MODEL.onnx -o OUT.plan [options]\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char left[64];
        if (!rows[i].help)
            continue;
        const char *value = rows[i].value ? rows[i].value : "";
        const char *format = rows[i].takes == MAYBE_A_VALUE ? "%s[=%s]" : rows[i].value ? "%s %s" : "%s%s";
        snprintf(left, sizeof left, format, rows[i].name, value);
        printf("  %-38s %s\n", left, rows[i].help);
    }
    puts("\nExit status: 0 done, 1 the input is at fault, 2 the command line is.");
}

static bool read_number(const char *text, int64_t least, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < least)
        return false;
    *out = v;
    return true;
}

static const char *add_range(Compilation *c, const char *option, const char *text, bool pin)
{
    Options *o = &c->options;
    const char *equals = strrchr(text, '=');
    int64_t n;
    if (!equals || equals == text || !read_number(equals + 1, pin ? 0 : 1, &n))
        return arena_text(&c->arena, "%s: expected SYMBOL=N, found '%s'", option, text);
    Range *fresh = NEW_ARRAY(c, Range, o->max_count + 1);
    if (o->max_count)
        memcpy(fresh, o->max, sizeof *fresh * (size_t)o->max_count);
    char *name = arena_copy(&c->arena, text);
    name[equals - text] = 0;
    fresh[o->max_count++] = (Range){.symbol = name, .lo = pin ? n : 1, .hi = n};
    o->max = fresh;
    return NULL;
}

/* Names of inputs may hold '='; names of files seldom do. */
static const char *add_bind(Compilation *c, const char *text)
{
    Options *o = &c->options;
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return arena_text(&c->arena, "--bind: expected INPUT=FILE.pb, found '%s'", text);
    Bind *fresh = NEW_ARRAY(c, Bind, o->bind_count + 1);
    if (o->bind_count)
        memcpy(fresh, o->binds, sizeof *fresh * (size_t)o->bind_count);
    fresh[o->bind_count++] = (Bind){.input = arena_text(&c->arena, "%.*s", (int)(equals - text), text), .path = equals + 1,
                                    .place = arena_text(&c->arena, "--bind %s", text)};
    o->binds = fresh;
    return NULL;
}

/* *flag = whether VALUE is the second of two words. */
static const char *choose(Compilation *c, const char *option, const char *value, const char *no, const char *yes, bool *flag)
{
    *flag = !strcmp(value, yes);
    if (*flag || !strcmp(value, no))
        return NULL;
    return arena_text(&c->arena, "%s: expected %s or %s, found '%s'", option, yes, no, value);
}

static const char *positive(Compilation *c, const char *option, const char *value, int64_t *out)
{
    if (read_number(value, 1, out))
        return NULL;
    return arena_text(&c->arena, "%s: expected a number from 1, found '%s'", option, value);
}

static const char *apply(Compilation *c, Command *out, const struct OptionRow *row, const char *value)
{
    Options *o = &c->options;
    const char *wrong = NULL;
    int64_t n = 0;
    bool seam = false, last = false;
    switch (row->id) {
    case OPT_OUTPUT: o->output_path = value; break;
    case OPT_RECIPE: o->recipe_path = value; break;
    case OPT_PRINT_RECIPE: o->print_recipe = true; break;
    case OPT_TARGET: o->targets = value; break;
    case OPT_CAPACITY: return positive(c, row->name, value, &o->capacity);
    case OPT_PREFILL: return positive(c, row->name, value, &o->prefill);
    case OPT_ROWS:
        if (read_number(value, 1, &o->rows) && o->rows <= MAX_ROWS)
            return NULL;
        return arena_text(&c->arena, "%s: expected a number from 1 to %d, found '%s'", row->name, MAX_ROWS, value);
    case OPT_MAX: return add_range(c, row->name, value, false);
    case OPT_PIN: return add_range(c, row->name, value, true);
    case OPT_BIND: return add_bind(c, value);
    case OPT_WEIGHTS: return choose(c, row->name, value, "embed", "reference", &o->weights_reference);
    case OPT_SAMPLE: return sample_from_name(value, &o->sample) ? NULL : arena_text(&c->arena, "%s: expected none, greedy or draw, found '%s'", row->name, value);
    case OPT_LOGITS:
        wrong = choose(c, row->name, value, "all", "last", &last);
        o->logits = last ? LOGITS_LAST : LOGITS_ALL;
        return wrong;
    case OPT_CONDITIONS:
        wrong = choose(c, row->name, value, "node", "seam", &seam);
        o->conditions = seam ? CONDITIONS_SEAM : CONDITIONS_NODE;
        return wrong;
    case OPT_DUMP: o->dump = value; break;
    case OPT_FROM_TEXT: out->from_text = value; break;
    case OPT_RUN: out->run = value; break;
    case OPT_VERIFY: o->verify_passes = true; break;
    case OPT_EMULATE: o->emulate_gpu = true; break;
    case OPT_TIMERS: o->timers = true; break;
    case OPT_CHECK: o->check_only = true; break;
    case OPT_SINGLE: o->require_single_segment = true; o->require_signature = value; break;
    case OPT_LENGTHS: o->check_lengths = true; break;
    case OPT_TUNING: o->tuning_path = value; break;
    case OPT_CANDIDATES: o->tune_candidates = true; break;
    case OPT_THREADS:
        wrong = positive(c, row->name, value, &n);
        o->threads = n > 256 ? 256 : (int)n;
        return wrong;
    case OPT_QUIET: o->quiet = true; break;
    case OPT_JSON: out->json = true; break;
    case OPT_OPS: case OPT_HELP: case OPT_VERSION: break;
    }
    return NULL;
}

static const struct OptionRow *find_row(const char *text, size_t size)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strlen(rows[i].name) == size && !strncmp(rows[i].name, text, size))
            return &rows[i];
    return NULL;
}

/* NULL, or what is wrong. *status: as that of command_read. */
static const char *read_option(Compilation *c, char **argv, int argc, int *at, Command *out, int *status)
{
    const char *text = argv[*at], *value = NULL;
    size_t size = strcspn(text, "=");
    const struct OptionRow *row = find_row(text, size);
    if (!row)
        return arena_text(&c->arena, "unknown option '%.*s'", (int)size, text);
    if (text[size] == '=')
        value = text + size + 1;
    if (value && row->takes == NOTHING)
        return arena_text(&c->arena, "%s takes no value", row->name);
    if (!value && row->takes == A_VALUE) {
        if (*at + 1 >= argc)
            return arena_text(&c->arena, "%s needs a value", row->name);
        value = argv[++*at];
    }
    if (value && !*value)
        return arena_text(&c->arena, "%s needs a value", row->name);
    if (row->id == OPT_HELP)
        print_help();
    else if (row->id == OPT_VERSION)
        puts("gcc-plan " PACKAGE_VERSION);
    else if (row->id == OPT_OPS)
        ops_print(stdout);
    else
        return apply(c, out, row, value);
    *status = 0;
    return NULL;
}

static void set_file(Compilation *c, const char *path)
{
    const char *slash = strrchr(path, '/');
    c->options.model_path = path;
    c->file = slash ? slash + 1 : path;
    c->folder = !slash ? "." : slash == path ? "/" : arena_text(&c->arena, "%.*s", (int)(slash - path), path);
}

/* Whether code is made for the host; without a list it is. */
static bool targets_host(const char *targets) { return !targets || strncmp(targets, "host", 4) == 0 || strstr(targets, ",host"); }

/* What does not go together. */
static const char *wrong_whole(const Compilation *c, const Command *out)
{
    const Options *o = &c->options;
    bool ends_early = o->dump || o->check_only || o->print_recipe || (out->from_text && !out->run);
    if (!o->model_path && !out->from_text)
        return "no model is given";
    if (out->run && !out->from_text)
        return "--run needs --from-text";
    if (o->rows && o->check_lengths)
        return "--check-lengths has one length, --rows one for each row";
    if (o->rows && o->tune_candidates)
        return "--tune-candidates has one length, --rows one for each row";
    if (o->rows && o->sample > SAMPLE_NONE)
        return o->sample == SAMPLE_GREEDY ? "--sample greedy has one row, --rows several" : "--sample draw has one row, --rows several";
    if (out->from_text && o->bind_count)
        return "--bind needs a model";
    if (o->emulate_gpu && !targets_host(o->targets))
        return "--emulate-gpu is for the host, which is none of the targets";
    if (!o->output_path && !ends_early)
        return "no output is given: -o OUT.plan, or --check";
    return NULL;
}

int command_read(Compilation *c, int argc, char **argv, Command *out)
{
    const char *wrong = NULL;
    int status = COMMAND_GO;
    *out = (Command){0};
    for (int i = 1; i < argc && !wrong && status == COMMAND_GO; i++) {
        if (argv[i][0] == '-' && argv[i][1])
            wrong = read_option(c, argv, argc, &i, out, &status);
        else if (c->options.model_path)
            wrong = arena_text(&c->arena, "two models are given: '%s' and '%s'", c->options.model_path, argv[i]);
        else
            set_file(c, argv[i]);
    }
    if (status != COMMAND_GO)
        return status;
    if (!wrong)
        wrong = wrong_whole(c, out);
    return wrong ? command_usage(wrong) : COMMAND_GO;
}

char *command_read_file(Compilation *c, const char *path, size_t *size)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    Text t = {0};
    char part[65536];
    if (!f) {
        diag_error(c, NULL, "%s: %s", path, strerror(errno));
        return NULL;
    }
    text_add(&t, "%s", "");
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        text_add_bytes(&t, part, n);
    bool failed = ferror(f) != 0;
    if (f != stdin)
        fclose(f);
    char *copy = arena_alloc(&c->arena, t.size + 1);
    memcpy(copy, t.data, t.size);
    *size = t.size;
    text_free(&t);
    if (failed)
        diag_error(c, NULL, "%s: it cannot be read", path);
    return failed ? NULL : copy;
}
