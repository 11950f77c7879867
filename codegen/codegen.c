/* codegen.c - from kernel texts to modules: puts the instances of templates together into sources of a fixed number
 * of kernels, and compiles them for each target with a few threads. Neither the partition nor the order of what comes
 * out depends on the number of threads. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "codegen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Few enough that a module compiles in about a second, many enough that a compiler's start does not count. */
enum { KERNELS_PER_MODULE = 12, MAX_TARGETS = 32, MAX_THREADS = 64 };

typedef struct Job {
    const char *target;
    int module;
    bool linked;
    const Text *source;
    CodeResult result;
} Job;

typedef struct Queue {
    pthread_mutex_t lock;
    int next, count;
    Job *jobs;
} Queue;

const char *kernel_template(const char *name)
{
    for (const KernelTemplate *t = kernel_templates; t->name; t++)
        if (strcmp(t->name, name) == 0) return t->text;
    return NULL;
}

const char *codegen_default_targets(void)
{
#ifdef HAVE_NVRTC
    return "host,ptx";
#else
    return "host";
#endif
}

void code_error(CodeResult *r, const char *remedy, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->remedy = remedy;
    r->error = malloc(sizeof text);
    if (!r->error || length < 0) abort();
    memcpy(r->error, text, sizeof text);
}

static const char *template_text(const char *name)
{
    const char *text = kernel_template(name);
    if (!text) fault("codegen", "there is no kernel template '%s'", name);
    return text;
}

/* Length of the name that a "#define" line at LINE defines, from *NAME on; 0 when it is another line. */
static size_t defined_name(const char *line, const char **name)
{
    while (*line == ' ') line++;
    if (*line != '#') return 0;
    line++;
    while (*line == ' ') line++;
    if (strncmp(line, "define ", 7) != 0) return 0;
    line += 7;
    while (*line == ' ') line++;
    *name = line;
    return strcspn(line, " (\n\t");
}

/* Instances of one module share a translation unit: what one defined must not reach the next. */
static void add_undefines(Text *source, const char *text)
{
    while (*text) {
        const char *name = NULL;
        const size_t length = defined_name(text, &name);
        if (length > 0) text_add(source, "#undef %.*s\n", (int)length, name);
        text += strcspn(text, "\n");
        if (*text) text++;
    }
}

static void add_kernel(Text *source, const KernelText *k)
{
    const char *body = template_text(k->template);
    text_add(source, "\n/* %s */\n", k->name);
    text_add_bytes(source, k->text, strlen(k->text));
    text_add(source, "\n");
    text_add_bytes(source, body, strlen(body));
    text_add(source, "\nKERNEL_END\n");
    add_undefines(source, k->text);
    add_undefines(source, body);
}

/* Whether kernels that do not say so themselves (kernel_early) let others be put in place before they wait. Numbers of 4 bits take issue slots to
 * come apart, which such kernels would share; elsewhere those slots are free. (Measured: tests/bench/RESULTS.md.) */
static bool starts_early(const Compilation *c) { return c->products_of_4_bits <= c->products_of_16_bits; }

static void add_prelude(Text *source, const Compilation *c, bool host)
{
    const char *prelude = template_text("prelude"), *tiles = template_text("tiles"), *wgmma = template_text("wgmma"), *experts = template_text("experts");
    if (host) {
        const char *abi = template_text("host_abi");
        text_add_bytes(source, abi, strlen(abi));
        if (c->options.emulate_gpu) text_add(source, "#define GP_EMULATE 1\n");
    } else text_add(source, "#define STARTS_EARLY %d\n", starts_early(c));
    if (c->options.timers) text_add(source, "#define TIMERS 1\n");
    text_add_bytes(source, prelude, strlen(prelude));
    if (c->options.timers) text_add(source, "%s", template_text("timers"));
    text_add_bytes(source, tiles, strlen(tiles));
    text_add_bytes(source, wgmma, strlen(wgmma));
    text_add_bytes(source, experts, strlen(experts));
}

static bool is_host(const char *target) { return strncmp(target, "host", 4) == 0; }

/* Sets conditions of graph nodes: linking makes its module large and slow to load, so it has one of its own. */
static bool is_linked(const KernelText *k) { return strcmp(k->template, "set_condition") == 0; }

/* The module of each kernel; how many there are. The one that is linked, if any, is the last: *LINKED, otherwise -1. */
static int place_kernels(const Compilation *c, int *module_of_kernel, int *linked)
{
    int plain = 0;
    *linked = -1;
    for (uint32_t k = 1; k <= c->kernel_count; k++)
        if (!is_linked(&c->kernels[k])) module_of_kernel[k] = plain++ / KERNELS_PER_MODULE;
    const int modules = (plain + KERNELS_PER_MODULE - 1) / KERNELS_PER_MODULE;
    for (uint32_t k = 1; k <= c->kernel_count; k++)
        if (is_linked(&c->kernels[k])) *linked = module_of_kernel[k] = modules;
    return modules + (*linked >= 0);
}

static Text *make_sources(Compilation *c, bool host, int modules, const int *module_of_kernel)
{
    Text *sources = NEW_ARRAY(c, Text, modules + 1);
    for (uint32_t k = 1; k <= c->kernel_count; k++) {
        Text *source = &sources[module_of_kernel[k]];
        if (source->size == 0) add_prelude(source, c, host);
        add_kernel(source, &c->kernels[k]);
    }
    return sources;
}

static void *work(void *argument)
{
    Queue *q = argument;
    for (;;) {
        pthread_mutex_lock(&q->lock);
        Job *job = q->next < q->count ? &q->jobs[q->next++] : NULL;
        pthread_mutex_unlock(&q->lock);
        if (!job) return NULL;
        if (is_host(job->target)) host_compile(job->source->data, job->source->size, &job->result);
        else nvrtc_compile(job->target, job->source->data, job->linked, &job->result);
    }
}

/* This thread works too: it is what is left when no thread can be had. */
static void run_jobs(Job *jobs, int count, int threads)
{
    Queue q = {.count = count, .jobs = jobs};
    pthread_t workers[MAX_THREADS];
    int started = 0;
    if (threads <= 0) threads = 2;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads > count) threads = count;
    pthread_mutex_init(&q.lock, NULL);
    while (started < threads - 1 && pthread_create(&workers[started], NULL, work, &q) == 0) started++;
    work(&q);
    for (int i = 0; i < started; i++) pthread_join(workers[i], NULL);
    pthread_mutex_destroy(&q.lock);
}

/* Reports the first failed job; false when there is one. */
static bool check_jobs(Compilation *c, const Job *jobs, int count)
{
    for (int i = 0; i < count; i++) {
        const CodeResult *r = &jobs[i].result;
        if (!r->error) continue;
        if (!r->remedy) fault("codegen", "module %d for %s does not compile:\n%s", jobs[i].module, jobs[i].target, r->error);
        diag_error(c, NULL, "%s", r->error);
        diag_remedy(c, "%s", r->remedy);
        return false;
    }
    return true;
}

static ModuleCode *take_results(Compilation *c, Job *jobs, int count)
{
    ModuleCode *modules = NEW_ARRAY(c, ModuleCode, count + 1);
    for (int i = 0; i < count; i++) {
        CodeResult *r = &jobs[i].result;
        if (r->bytes) {
            void *copy = arena_alloc(&c->arena, r->size);
            memcpy(copy, r->bytes, r->size);
            modules[i] = (ModuleCode){jobs[i].target, jobs[i].module, copy, r->size};
        }
        free(r->bytes);
        free(r->error);
    }
    return modules;
}

static bool add_target(Compilation *c, const char **targets, int *count, const char *name)
{
    if (strcmp(name, "host") == 0) name = host_target();
    for (int i = 0; i < *count; i++)
        if (strcmp(targets[i], name) == 0) return true;
    if (is_host(name) ? strcmp(name, host_target()) != 0 : !nvrtc_knows(name)) {
        diag_error(c, NULL, "target '%s' is not known to this build", name);
        diag_remedy(c, "possible here: host, %s%s", host_target(), nvrtc_known());
        return false;
    }
    if (*count == MAX_TARGETS) {
        diag_error(c, NULL, "more than %d targets", MAX_TARGETS);
        return false;
    }
    targets[(*count)++] = name;
    return true;
}

/* "host,sm_90a" -> names, each once; all unknown ones are reported. */
static bool parse_targets(Compilation *c, const char *text, const char **targets, int *count)
{
    bool good = true;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, ",");
        if (length > 0 && !add_target(c, targets, count, arena_text(&c->arena, "%.*s", (int)length, at))) good = false;
        at += length;
        if (*at == ',') at++;
    }
    if (good && *count == 0) {
        diag_error(c, NULL, "no target is named in '%s'", text);
        return false;
    }
    return good;
}

const char *codegen_without_conditions(Compilation *c, const char *targets)
{
    const char *names[MAX_TARGETS], *why = NULL;
    int count = 0;
    if (!parse_targets(c, targets ? targets : codegen_default_targets(), names, &count)) return NULL;
    for (int t = 0; t < count; t++)
        if (!is_host(names[t]) && !nvrtc_links(names[t], &why)) return arena_text(&c->arena, "target %s: %s", names[t], why);
    return NULL;
}

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": shared memory of a block, opted in. Of others, and for
 * PTX, what all of them have. */
static int64_t shared_of(const char *target)
{
    static const struct { int major_minor, kilobytes; } table[] = {{80, 163}, {86, 99}, {87, 163}, {89, 99}, {90, 227}, {100, 227}, {103, 227}, {110, 227}, {120, 99}, {121, 99}};
    if (is_host(target)) return INT64_MAX;
    const int number = strncmp(target, "sm_", 3) == 0 ? atoi(target + 3) : 0;
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (table[i].major_minor == number) return (int64_t)table[i].kilobytes * 1024;
    return 99 * 1024;
}

int64_t codegen_shared_limit(Compilation *c, const char *targets)
{
    const char *names[MAX_TARGETS];
    int count = 0;
    int64_t limit = INT64_MAX;
    if (!parse_targets(c, targets ? targets : codegen_default_targets(), names, &count)) return 0;
    for (int t = 0; t < count; t++)
        if (shared_of(names[t]) < limit) limit = shared_of(names[t]);
    return limit;
}

static bool has_wgmma(const Compilation *c, const char *target)
{
    (void)c;
    return is_host(target) || strcmp(target, "sm_90a") == 0;
}

/* CUDA C++ Programming Guide, "Thread Block Clusters". */
static bool has_clusters(const Compilation *c, const char *target)
{
    return is_host(target) ? c->options.emulate_gpu : strncmp(target, "sm_", 3) == 0 && atoi(target + 3) >= 90;
}

static bool all_have(Compilation *c, const char *targets, bool (*has)(const Compilation *c, const char *target))
{
    const char *names[MAX_TARGETS];
    int count = 0;
    if (!parse_targets(c, targets ? targets : codegen_default_targets(), names, &count)) return false;
    for (int t = 0; t < count; t++)
        if (!has(c, names[t])) return false;
    return true;
}

static bool is_plain_host(const Compilation *c, const char *target) { return is_host(target) && !c->options.emulate_gpu; }

bool codegen_for_gpu(Compilation *c, const char *targets) { return !all_have(c, targets, is_plain_host); }
bool codegen_has_wgmma(Compilation *c, const char *targets) { return all_have(c, targets, has_wgmma); }
bool codegen_has_clusters(Compilation *c, const char *targets) { return all_have(c, targets, has_clusters); }

static void free_sources(Text *sources, int count)
{
    for (int i = 0; sources && i < count; i++) text_free(&sources[i]);
}

bool codegen_compile(Compilation *c, const char *targets, ModuleCode **out, int *count, int *module_of_kernel)
{
    const char *names[MAX_TARGETS];
    int target_count = 0;
    *out = NULL;
    *count = 0;
    if (!parse_targets(c, targets ? targets : codegen_default_targets(), names, &target_count)) return false;
    int linked;
    const int modules = place_kernels(c, module_of_kernel, &linked), job_count = modules * target_count;
    Job *jobs = NEW_ARRAY(c, Job, job_count + 1);
    Text *sources[2] = {NULL, NULL};
    for (int t = 0; t < target_count; t++) {
        const bool host = is_host(names[t]);
        if (!sources[host]) sources[host] = make_sources(c, host, modules, module_of_kernel);
        for (int m = 0; m < modules; m++)
            jobs[t * modules + m] = (Job){.target = names[t], .module = m, .linked = m == linked, .source = &sources[host][m]};
    }
    run_jobs(jobs, job_count, c->options.threads);
    const bool good = check_jobs(c, jobs, job_count);
    ModuleCode *made = take_results(c, jobs, job_count);
    free_sources(sources[0], modules);
    free_sources(sources[1], modules);
    if (!good) return false;
    *out = made;
    *count = job_count;
    return true;
}
