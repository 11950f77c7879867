/* inspect.c - the program plan-inspect: options, the file, and which report to print. */
#include "report.h"
#include "text.h"
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: plan-inspect MODEL.plan [OPTION]...        (\"-\": standard input)\n"
    "       plan-inspect --assemble FILE -o OUT.plan\n"
    "Shows what a plan holds, and why. Without an option: a summary, then the launches of each signature.\n"
    "\n"
    "  --memory              every region and buffer: offset, size, lifetime; peak and lower bound\n"
    "  --why NAME            the chain of facts behind a symbol, input, output, state, value or node, and how\n"
    "                        it is realised; NAME[AXIS] for one dim; may be repeated\n"
    "  --check-proofs        check what is claimed of values, symbols and states against every node, anew\n"
    "  --audit               every launch with its contract, and how each clause was established\n"
    "  --json                every fact, for programs\n"
    "  --text                the plan as text that --assemble turns back into the same bytes\n"
    "  --assemble FILE       make a plan from text (\"-\": standard input); it is not validated\n"
    "  -o OUT                where --assemble writes\n"
    "  --require-single-segment[=SIGNATURE]\n"
    "                        exit with 1 and list the seams unless all signatures, or this one, are one segment\n"
    "  --help                this text\n"
    "  --version             the version\n"
    "\n"
    "Exit status: 0, 1 when the file or the answer is bad, 2 when the command line is.\n";

enum mode { MODE_SUMMARY, MODE_MEMORY, MODE_WHY, MODE_JSON, MODE_TEXT, MODE_ASSEMBLE, MODE_REQUIRE, MODE_PROOFS, MODE_AUDIT };

typedef struct options {
    enum mode mode;
    const char *file, *output, *signature; /* signature: NULL = all */
    const char **names; /* of --why */
    int name_count;
} options;

/* --- command line --- */

static int usage(const char *what, const char *where) {
    fprintf(stderr, "plan-inspect: %s%s%s%s; see plan-inspect --help\n", what, where ? " '" : "", where ? where : "",
            where ? "'" : "");
    return 2;
}

static int set_mode(options *o, enum mode mode) {
    if (o->mode != MODE_SUMMARY && o->mode != mode) return usage("expected one of the options that print, found two", NULL);
    o->mode = mode;
    return 0;
}

/* Options that take a value: "--why NAME" or "--why=NAME". NULL when ARGUMENT is not OPTION; *I moves on. */
static const char *value_of(const char *option, int argc, char **argv, int *i, int *missing) {
    size_t length = strlen(option);
    if (strncmp(argv[*i], option, length) != 0) return NULL;
    if (argv[*i][length] == '=') return argv[*i] + length + 1;
    if (argv[*i][length] != '\0') return NULL;
    if (*i + 1 == argc) {
        *missing = 1;
        return NULL;
    }
    return argv[++*i];
}

static int parse_flag(options *o, const char *argument) {
    static const char single[] = "--require-single-segment";
    if (strcmp(argument, "--memory") == 0) return set_mode(o, MODE_MEMORY);
    if (strcmp(argument, "--check-proofs") == 0) return set_mode(o, MODE_PROOFS);
    if (strcmp(argument, "--audit") == 0) return set_mode(o, MODE_AUDIT);
    if (strcmp(argument, "--json") == 0) return set_mode(o, MODE_JSON);
    if (strcmp(argument, "--text") == 0) return set_mode(o, MODE_TEXT);
    if (strncmp(argument, single, strlen(single)) == 0) {
        const char *rest = argument + strlen(single);
        if (rest[0] == '=' && rest[1]) o->signature = rest + 1;
        else if (rest[0]) return usage("unknown option", argument);
        return set_mode(o, MODE_REQUIRE);
    }
    return usage("unknown option", argument);
}

static int parse(options *o, int argc, char **argv) {
    int only_files = 0;
    for (int i = 1; i < argc; i++) {
        const char *value;
        int missing = 0, status = 0;
        if (only_files || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (o->file) return usage("expected one file, found another", argv[i]);
            o->file = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_files = 1;
        } else if ((value = value_of("--why", argc, argv, &i, &missing)) != NULL) {
            o->names[o->name_count++] = value;
            status = set_mode(o, MODE_WHY);
        } else if (!missing && (value = value_of("--assemble", argc, argv, &i, &missing)) != NULL) {
            if (o->file) return usage("expected one file, found another", value);
            o->file = value;
            status = set_mode(o, MODE_ASSEMBLE);
        } else if (!missing && (value = value_of("-o", argc, argv, &i, &missing)) != NULL) {
            o->output = value;
        } else if (missing) {
            return usage("expected a value after", argv[i]);
        } else {
            status = parse_flag(o, argv[i]);
        }
        if (status) return status;
    }
    if (!o->file) return usage("expected a file", NULL);
    if (o->mode == MODE_ASSEMBLE && !o->output) return usage("expected -o OUT with --assemble", NULL);
    if (o->mode != MODE_ASSEMBLE && o->output) return usage("expected -o only with --assemble", NULL);
    return 0;
}

/* --- files --- */

typedef struct contents {
    void *bytes;
    size_t size;
    int mapped;
} contents;

static int complain(const char *file, const char *what) {
    fprintf(stderr, "%s: %s\n", file, what);
    return 1;
}

/* All that can be read from FILE: pipes, and files without a size. */
static int read_stream(int file, contents *out) {
    size_t capacity = 0;
    for (;;) {
        if (out->size == capacity) {
            capacity = capacity ? capacity * 2 : 65536;
            void *grown = realloc(out->bytes, capacity);
            if (!grown) {
                errno = ENOMEM;
                return 1;
            }
            out->bytes = grown;
        }
        ssize_t got = read(file, (char *)out->bytes + out->size, capacity - out->size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0;
        out->size += (size_t)got;
    }
}

static int load(const char *path, contents *out) {
    struct stat found;
    *out = (contents){NULL, 0, 0};
    int file = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY);
    if (file < 0) return complain(path, strerror(errno));
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0 && lseek(file, 0, SEEK_CUR) == 0) {
        out->size = (size_t)found.st_size;
        out->bytes = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, file, 0);
        out->mapped = out->bytes != MAP_FAILED;
        if (!out->mapped) *out = (contents){NULL, 0, 0};
    }
    int failed = !out->mapped && read_stream(file, out), error = errno;
    (void)close(file);
    if (!failed) return 0;
    free(out->bytes);
    return complain(path, strerror(error));
}

static void unload(contents *c) {
    if (c->mapped) (void)munmap(c->bytes, c->size);
    else free(c->bytes);
}

/* --- what is printed --- */

/* Whether both names lead to one file. */
static int same_file(const char *path, const char *other) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int assemble(const options *o, const contents *text) {
    char error[1024];
    if (same_file(o->file, o->output)) return complain(o->file, "-o would overwrite the text; expected another file");
    plan_writer *w = plan_writer_new();
    if (!w) return complain(o->file, "no memory");
    int failed = plan_text_assemble(text->bytes, text->size, w, error, sizeof error);
    if (failed) fprintf(stderr, "%s:%s\n", o->file, error);
    else if ((failed = plan_writer_write(w, o->output, NULL, error, sizeof error))) fprintf(stderr, "%s\n", error);
    plan_writer_free(w);
    return failed;
}

static int require_single(const options *o, const plan_view *v) {
    int status = 0, known = 0;
    for (uint32_t i = 0; i < v->signature_count; i++) {
        const plan_signature_record *s = &v->signatures[i];
        const char *name = plan_view_string(v, s->name);
        if (o->signature && strcmp(name, o->signature) != 0) continue;
        known = 1;
        if (s->segment_count <= 1 && s->seam_count == 0) continue;
        printf("%s: %s has %" PRIu32 " segment%s\n", o->file, name, s->segment_count, plan_show_plural(s->segment_count));
        plan_show_seams(v, s, stdout);
        status = 1;
    }
    if (known || !o->signature) return status;
    fprintf(stderr, "%s: signatures: expected one of", o->file);
    for (uint32_t i = 0; i < v->signature_count; i++)
        fprintf(stderr, "%s '%s'", i ? "," : "", plan_view_string(v, v->signatures[i].name));
    fprintf(stderr, ", found '%s'\n", o->signature);
    return 1;
}

static int why(const options *o, const plan_view *v) {
    int status = 0;
    for (int i = 0; i < o->name_count; i++) {
        if (!plan_report_why(v, o->names[i], stdout)) continue;
        fprintf(stderr, "%s: --why: expected a symbol, input, output, state, value or node, found '%s'\n", o->file, o->names[i]);
        status = 1;
    }
    return status;
}

/* Text for people: control characters in names must not reach the terminal. NULL without memory. */
static uint8_t *plain_strings(plan_view *v) {
    uint8_t *copy = malloc((size_t)v->strings_size);
    if (!copy) return NULL;
    for (uint64_t i = 0; i < v->strings_size; i++) {
        uint8_t c = v->strings[i];
        copy[i] = (c != 0 && c < 0x20) || c == 0x7f ? '?' : c;
    }
    v->strings = copy;
    return copy;
}

static int print_for_people(const options *o, plan_view *v) {
    uint8_t *strings = plain_strings(v);
    int status = 0;
    if (!strings) return complain(o->file, "no memory");
    if (o->mode == MODE_MEMORY) status = plan_report_memory(v, stdout) ? complain(o->file, "no memory") : 0;
    else if (o->mode == MODE_PROOFS || o->mode == MODE_AUDIT) {
        status = o->mode == MODE_PROOFS ? plan_report_proofs(v, stdout) : plan_report_audit(v, stdout);
        if (status == 2) status = complain(o->file, "no memory");
    } else if (o->mode == MODE_WHY) status = why(o, v);
    else if (o->mode == MODE_REQUIRE) status = require_single(o, v);
    else plan_report_summary(v, o->file, stdout);
    free(strings);
    return status;
}

static int print(const options *o, const contents *input) {
    plan_view view;
    char message[1024];
    if (input->size == 0) return complain(o->file, "prefix.magic: not a plan; expected \"gccplan\" at the start, found an empty file");
    if (plan_view_open(input->bytes, input->size, &view, message, sizeof message)) return complain(o->file, message);
    if (o->mode == MODE_TEXT) return plan_text_print(&view, stdout) && !ferror(stdout) ? complain(o->file, "no memory") : 0;
    if (o->mode != MODE_JSON) return print_for_people(o, &view);
    plan_report_json(&view, o->file, stdout);
    return 0;
}

static int run(const options *o) {
    contents input;
    if (load(o->file, &input)) return 1;
    int status = o->mode == MODE_ASSEMBLE ? assemble(o, &input) : print(o, &input);
    unload(&input);
    if (fflush(stdout) != 0 || ferror(stdout)) return complain("standard output", strerror(errno));
    return status;
}

int main(int argc, char **argv) {
    options o = {MODE_SUMMARY, NULL, NULL, NULL, NULL, 0};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) return fputs(help, stdout) < 0 || fflush(stdout) != 0;
        if (strcmp(argv[i], "--version") == 0)
            return printf("plan-inspect %d.%d.0, plan version %u\n", PLAN_VERSION_MAJOR, PLAN_VERSION_MINOR,
                          PLAN_FORMAT_VERSION) < 0 || fflush(stdout) != 0;
    }
    o.names = calloc((size_t)argc + 1, sizeof *o.names);
    if (!o.names) return complain("plan-inspect", "no memory");
    int status = parse(&o, argc, argv);
    if (!status) status = run(&o);
    free(o.names);
    return status;
}
