/* driver.c - main of gcc-plan: the pass table, the order of work, exit codes. The command line is in command.c. */
#include "command.h"
#include "lower.h"
#include "compiler.h"
#include "graph.h"
#include "ops/ops.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* What passes need, make and break. */
enum Fact {
    FACT_GRAPH = 1,      /* nodes resolved, in topological order; states and feeds known */
    FACT_DIMS = 2,       /* every live value has dtype, rank, dims; equations collected */
    FACT_CLASSES = 4,    /* step map, classes of symbols */
    FACT_BOXES = 8,      /* signatures; every dim bounded in each */
    FACT_FUSED = 16,
    FACT_PLACES = 32,    /* in-place updates decided */
    FACT_LAUNCHES = 64,
    FACT_METADATA = 128,
    FACT_MEMORY = 256,   /* every buffer has its offset */
    FACT_SEGMENTS = 512,
    FACT_PLAN = 1024,
    FACT_ROWS = 2048,    /* with --rows: proven that each row keeps to its own length */
    FACT_LOGITS = 4096   /* the rows that the logits are of are chosen */
};

/* All faults of all nodes are found, also what shape rules refuse behind them, then it fails. */
static bool resolve_nodes(Compilation *c)
{
    bool *good = NEW_ARRAY(c, bool, c->graph.node_count + 1);
    for (uint32_t n = 1; n <= c->graph.node_count; n++)
        good[n] = node_resolve(c, &c->graph.nodes[n]);
    if (!diag_failed(c))
        return true;
    infer_survey(c, good);
    return false;
}

/* Reading, the operator of every node, and what the recipe or the conventions say: after it the graph is whole. */
/* Whether PATH and OTHER are one file; writing the plan would destroy it. */
static bool same_file(const char *path, const char *other)
{
    struct stat a, b;
    return path && other && stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* What the command line names besides the model. */
static bool read_beside(Compilation *c)
{
    const Options *o = &c->options;
    return (!o->recipe_path || recipe_read(c, o->recipe_path)) && (!o->tuning_path || tuning_read(c, o->tuning_path));
}

static const char *overwritten(Compilation *c)
{
    const char *out = c->options.output_path;
    if (same_file(out, c->options.model_path)) return "the model";
    if (same_file(out, c->options.recipe_path)) return "the recipe";
    if (same_file(out, c->options.tuning_path)) return "the tuning file";
    for (uint32_t v = 1; v <= c->graph.value_count; v++) {
        const Data *d = c->graph.values[v].data;
        if (d && d->file && same_file(out, arena_text(&c->arena, "%s/%s", c->folder ? c->folder : ".", d->file))) return "the model's weights";
    }
    return NULL;
}

static bool run_import(Compilation *c)
{
    if (!pass_import(c) || !resolve_nodes(c))
        return false;
    const char *lost = overwritten(c);
    if (lost) {
        diag_error(c, NULL, "-o '%s' would overwrite %s; expected another file", c->options.output_path, lost);
        return false;
    }
    if (!read_beside(c))
        return false;
    return recipe_apply(c);
}

static void print_graph(Compilation *c, FILE *out)
{
    graph_print(c, &c->graph, out);
}

typedef struct Pass {
    const char *name;
    bool (*run)(Compilation *c);
    unsigned needs, breaks, makes;
    void (*print)(Compilation *c, FILE *out); /* --dump; NULL: the pass has no text form */
} Pass;

static const Pass passes[] = {
    {"import", run_import, 0, 0, FACT_GRAPH, print_graph},
    {"infer", pass_infer, FACT_GRAPH, 0, FACT_DIMS, print_graph},
    {"logits", pass_logits, FACT_DIMS, 0, FACT_LOGITS, print_graph},
    {"classify", pass_classify, FACT_DIMS | FACT_LOGITS, 0, FACT_CLASSES, print_graph},
    {"signature", pass_signature, FACT_DIMS | FACT_CLASSES, 0, FACT_BOXES, print_graph},
    {"fuse", pass_fuse, FACT_DIMS | FACT_CLASSES, 0, FACT_FUSED, print_graph},
    {"alias", pass_alias, FACT_BOXES | FACT_FUSED, 0, FACT_PLACES, print_graph},
    {"rows", pass_rows, FACT_CLASSES | FACT_PLACES, 0, FACT_ROWS, print_graph},
    {"lower", pass_lower, FACT_BOXES | FACT_PLACES | FACT_ROWS, 0, FACT_LAUNCHES, dump_launches},
    {"metadata", pass_metadata, FACT_LAUNCHES, 0, FACT_METADATA, dump_metadata},
    {"memory", pass_memory, FACT_LAUNCHES | FACT_METADATA, 0, FACT_MEMORY, dump_memory},
    {"segment", pass_segment, FACT_LAUNCHES | FACT_MEMORY, 0, FACT_SEGMENTS, dump_segments},
    {"emit", pass_emit, FACT_MEMORY | FACT_SEGMENTS, 0, FACT_PLAN, NULL},
};

static int pass_index(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(passes); i++)
        if (!strcmp(passes[i].name, name))
            return (int)i;
    return -1;
}

/* The table is checked whole, so a wrong order shows at the first run of anything. */
static void check_order(void)
{
    unsigned facts = 0;
    for (size_t i = 0; i < COUNT_OF(passes); i++) {
        if ((facts & passes[i].needs) != passes[i].needs)
            fault(passes[i].name, "its place in the pass table leaves out facts %#x", passes[i].needs & ~facts);
        facts = (facts & ~passes[i].breaks) | passes[i].makes;
    }
}

static bool run_pass(Compilation *c, const Pass *p)
{
    bool good = p->run(c);
    if (!good && !diag_failed(c))
        fault(p->name, "it failed without a message");
    if (diag_failed(c))
        return false;
    graph_count_uses(c, &c->graph);
    if (c->options.verify_passes)
        graph_verify(c, p->name);
    return true;
}

typedef enum Next { GO_ON, STOP, FAILED } Next;

/* What the command line wants between two passes. */
static Next after_pass(Compilation *c, const Pass *p)
{
    const Options *o = &c->options;
    if (o->dump && !strcmp(o->dump, p->name)) {
        p->print(c, stdout);
        return STOP;
    }
    if (o->print_recipe && p->makes & FACT_BOXES) {
        recipe_print(c, stdout);
        return STOP;
    }
    if (p->makes & FACT_SEGMENTS) {
        report_fill(c);
        if (o->require_single_segment && !report_single_segment(c, o->require_signature, stderr))
            return FAILED;
        if (o->check_only)
            return STOP;
    }
    return GO_ON;
}

static Next run_passes(Compilation *c, const char *from)
{
    for (size_t i = (size_t)pass_index(from); i < COUNT_OF(passes); i++) {
        if (!run_pass(c, &passes[i]))
            return FAILED;
        Next next = after_pass(c, &passes[i]);
        if (next != GO_ON)
            return next;
    }
    return GO_ON;
}

static bool read_text(Compilation *c, const char *path)
{
    size_t size = 0;
    char *text = command_read_file(c, path, &size);
    if (!text || !graph_parse(c, text, size, path))
        return false;
    if (!read_beside(c))
        return false;
    graph_count_uses(c, &c->graph);
    if (c->options.verify_passes)
        graph_verify(c, "text");
    return true;
}

static Next work(Compilation *c, const Command *command)
{
    const char *from = "import";
    if (command->from_text) {
        if (!read_text(c, command->from_text))
            return FAILED;
        if (!command->run) { /* the text itself is what is wanted: the form after reading */
            if (c->options.dump)
                print_graph(c, stdout);
            return STOP;
        }
        from = command->run;
        if (!resolve_nodes(c))
            return FAILED;
    }
    return run_passes(c, from);
}

/* Usage errors that need the pass table. NULL: fine. */
static const char *wrong_passes(Compilation *c, const Command *command)
{
    const char *dump = c->options.dump;
    bool text = command->from_text && !command->run;
    if (dump && strcmp(dump, "text") != 0 && pass_index(dump) < 0)
        return arena_text(&c->arena, "--dump: no pass is named '%s'", dump);
    if (dump && text != !strcmp(dump, "text"))
        return "--dump text goes with --from-text without --run";
    if (dump && !text && !passes[pass_index(dump)].print)
        return arena_text(&c->arena, "--dump: pass '%s' has no text form", dump);
    if (command->run && pass_index(command->run) < 1)
        return arena_text(&c->arena, "--run: no pass after import is named '%s'", command->run);
    if (dump && command->run && pass_index(dump) < pass_index(command->run))
        return arena_text(&c->arena, "--dump: pass '%s' comes before '%s'", dump, command->run);
    return NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define AGAIN -1 /* nothing is said yet: compile_one_token */

/* The exit status, or AGAIN. Standard input cannot be read twice. */
static int compile(Compilation *c, const Command *command)
{
    double start = now();
    Next end = work(c, command);
    if (end == FAILED)
        ops_report_missing(c);
    report.seconds = now() - start;
    if (c->state_stuck && !(command->from_text && !strcmp(command->from_text, "-")))
        return AGAIN;
    diag_print(c, stderr);
    if (end == FAILED)
        return 1;
    if (end == STOP && !c->options.check_only)
        return 0;
    if (command->json)
        report_json(c, stdout);
    else if (!c->options.quiet)
        report_print(c, stdout);
    return 0;
}

/* Everything anew, now for steps of one token: only the whole graph shows that no other step has a meaning. */
static int compile_one_token(Compilation *c, int argc, char **argv)
{
    Command command;
    arena_free(&c->arena);
    *c = (Compilation){0};
    if (command_read(c, argc, argv, &command) != COMMAND_GO)
        fault("driver", "a command line that was read once was refused");
    c->options.one_token = true;
    return compile(c, &command);
}

int main(int argc, char **argv)
{
    static Compilation c; /* static, so that a leak checker finds what hangs on it after a fault */
    Command command;
    check_order();
    int status = command_read(&c, argc, argv, &command);
    if (status == COMMAND_GO) {
        const char *wrong = wrong_passes(&c, &command);
        status = wrong ? command_usage(wrong) : compile(&c, &command);
        if (status == AGAIN)
            status = compile_one_token(&c, argc, argv);
    }
    arena_free(&c.arena);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "gcc-plan: writing to standard output failed\n");
        return 1;
    }
    return status;
}
