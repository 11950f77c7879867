/* run_model.c - the part of tests/conformance/run.py that needs the device: loads, warms, captures and replays many small plans,
 * and writes what they compute.
 *
 *   run_model TARGET LIST DUMP [SECONDS]
 *
 * LIST has a line `plan FILE` for each plan, then `in FILE NAME` for its inputs (raw bytes, dense) and `sym VALUE NAME` for its
 * ranged symbols, and `any 1 random` where its outputs may differ from run to run; files are relative to LIST's folder. DUMP gets for each plan `job INDEX`, then `failed STEP: TEXT`, or
 * `ok COUNT` and for each output a line `out DTYPE BYTES RANK DIMS... NAME` and its bytes.
 *
 * Each plan is replayed twice, and before each time its outputs are filled with a pattern (another one the second time), so
 * what no kernel writes is seen. Plans run in child processes: on the host target one each, on a GPU as many as go well; one
 * that crashes, or takes longer than SECONDS (60) of processor time, costs no other plan its result. */
#include "../read_file.h"

#include <plan.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PORTS = 256, TEXT = 4096, LINE = 4096, FRESH_PROCESS = 3 };

typedef struct Port { char *name, *file; long long value; } Port;
typedef struct Job { char *plan; bool random; int input_count, symbol_count; Port inputs[MAX_PORTS], symbols[MAX_PORTS]; } Job;
typedef struct Output { plan_tensor about, present /* after a run */; void *place; unsigned char *bytes[2]; size_t size[2]; } Output;
typedef struct Running { plan *p; plan_session *s; int output_count; Output outputs[MAX_PORTS]; const char *step; } Running;

static char folder[1024];
static bool on_host;

/* ---- memory where outputs are bound: the process's own, or the device's */

static int (*device_allocate)(unsigned long long *, size_t), (*device_fill)(unsigned long long, unsigned char, size_t), (*device_wait)(void);

static bool use_device(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return false;
    void *allocate = dlsym(library, "cuMemAlloc_v2"), *fill = dlsym(library, "cuMemsetD8_v2"), *wait = dlsym(library, "cuCtxSynchronize");
    memcpy(&device_allocate, &allocate, sizeof allocate);
    memcpy(&device_fill, &fill, sizeof fill);
    memcpy(&device_wait, &wait, sizeof wait);
    void *get = dlsym(library, "cuDevicePrimaryCtxRetain"), *set = dlsym(library, "cuCtxSetCurrent");
    int (*retain)(void **, int), (*current)(void *);
    memcpy(&retain, &get, sizeof get);
    memcpy(&current, &set, sizeof set);
    void *context = NULL;
    return allocate && fill && wait && get && set && retain(&context, 0) == 0 && current(context) == 0;
}

static void *place_new(size_t bytes)
{
    unsigned long long address = 0;
    const size_t size = (bytes + 63) / 64 * 64;
    if (on_host) return aligned_alloc(64, size);
    if (!device_allocate && !use_device()) return NULL;
    return device_allocate(&address, size) == 0 ? (void *)(size_t)address : NULL;
}

static bool place_fill(void *place, int pattern, size_t bytes)
{
    /* A session's stream does not wait for the one that fills. */
    if (!on_host) return device_fill((unsigned long long)(size_t)place, (unsigned char)pattern, bytes) == 0 && device_wait() == 0;
    memset(place, pattern, bytes);
    return true;
}

/* ---- one plan */

static bool plan_has_input(const plan *p, const char *name)
{
    plan_tensor t;
    for (int i = 0; i < plan_input_count(p, "main"); i++)
        if (plan_input(p, "main", i, &t) == PLAN_OK && strcmp(t.name, name) == 0) return true;
    return false;
}

/* An input that nothing reads may be absent from the plan. */
static plan_status feed(Running *r, const Job *j)
{
    for (int i = 0; i < j->input_count; i++) {
        size_t size = 0;
        if (!plan_has_input(r->p, j->inputs[i].name)) continue;
        void *data = read_file(folder, j->inputs[i].file, &size);
        if (!data) return PLAN_ERROR_FILE;
        const plan_status status = plan_session_write_input(r->s, "main", j->inputs[i].name, data, size);
        free(data);
        if (status) return status;
    }
    return PLAN_OK;
}

/* Outputs without elements have no memory to bind. */
static plan_status bind_outputs(Running *r)
{
    r->output_count = plan_output_count(r->p, "main");
    if (r->output_count > MAX_PORTS) return PLAN_ERROR_RANGE;
    for (int i = 0; i < r->output_count; i++) {
        Output *o = &r->outputs[i];
        plan_status status = plan_output(r->p, "main", i, &o->about);
        if (!status && o->about.bytes && !(o->place = place_new(o->about.bytes))) status = PLAN_ERROR_MEMORY;
        if (!status && o->place) status = plan_session_bind(r->s, "main", o->about.name, o->place, o->about.bytes);
        if (status) return status;
    }
    return PLAN_OK;
}

static plan_status run_once(Running *r, const Job *j)
{
    const char *names[MAX_PORTS];
    int64_t values[MAX_PORTS];
    for (int i = 0; i < j->symbol_count; i++) {
        names[i] = j->symbols[i].name;
        values[i] = j->symbols[i].value;
    }
    return plan_session_run(r->s, "main", names, values, j->symbol_count);
}

static plan_status replay(Running *r, const Job *j, int round)
{
    for (int i = 0; i < r->output_count; i++) {
        const Output *o = &r->outputs[i];
        if (o->place && !place_fill(o->place, round ? 0x5a : 0xc3, o->about.bytes)) return PLAN_ERROR_DRIVER;
    }
    plan_status status = run_once(r, j);
    for (int i = 0; i < r->output_count && !status; i++) {
        Output *o = &r->outputs[i];
        o->bytes[round] = malloc(o->about.bytes + 1);
        if (!o->bytes[round]) return PLAN_ERROR_MEMORY;
        status = plan_session_read_output(r->s, "main", o->about.name, o->bytes[round], o->about.bytes, &o->size[round]);
        if (!status) status = plan_session_output(r->s, "main", o->about.name, &o->present);
    }
    return status;
}

static plan_status steps(Running *r, const Job *j, const char *target)
{
    plan_options options = PLAN_OPTIONS_INIT;
    char path[LINE + 1100];
    options.target = target;
    options.threads = 1;
    snprintf(path, sizeof path, "%s/%s", folder, j->plan);
    r->step = "load";
    plan_status status = plan_load(path, &options, &r->p);
    if (!status) r->step = "open", status = plan_session_open(r->p, NULL, &r->s);
    if (!status) r->step = "bind", status = bind_outputs(r);
    if (!status) r->step = "warm", status = plan_session_warm(r->s);
    if (!status) r->step = "capture", status = plan_session_capture(r->s);
    if (!status && j->symbol_count) r->step = "extents", status = run_once(r, j); /* inputs are written at the present extents */
    if (!status) r->step = "input", status = feed(r, j);
    if (!status) r->step = "replay", status = replay(r, j, 0);
    if (!status) r->step = "second replay", status = replay(r, j, 1);
    return status;
}

static const char *difference(const Running *r)
{
    for (int i = 0; i < r->output_count; i++) {
        const Output *o = &r->outputs[i];
        if (o->size[0] != o->size[1] || memcmp(o->bytes[0], o->bytes[1], o->size[0]) != 0) return o->about.name;
    }
    return NULL;
}

static void write_outputs(const Running *r, FILE *dump)
{
    fprintf(dump, "ok %d\n", r->output_count);
    for (int i = 0; i < r->output_count; i++) {
        const Output *o = &r->outputs[i];
        fprintf(dump, "out %d %zu %d", (int)o->about.dtype, o->size[1], o->present.rank);
        for (int k = 0; k < o->present.rank; k++) fprintf(dump, " %lld", (long long)o->present.dims[k]);
        fprintf(dump, " %s\n", o->about.name);
        fwrite(o->bytes[1], 1, o->size[1], dump);
    }
}

/* False: the device is in doubt, and a fresh process should go on. */
static bool run_job(const Job *j, int index, const char *target, FILE *dump)
{
    static Running r;
    memset(&r, 0, sizeof r);
    const plan_status status = steps(&r, j, target);
    char text[TEXT];
    snprintf(text, sizeof text, "%s: %.3000s", plan_status_name(status), plan_error_message());
    for (char *t = text; *t; t++)
        if (*t == '\n') *t = ' ';
    const char *differs = status || j->random ? NULL : difference(&r);
    fprintf(dump, "job %d\n", index);
    if (status) fprintf(dump, "failed %s: %s\n", r.step, text);
    else if (differs) fprintf(dump, "failed second replay: output '%s' differs from the first\n", differs);
    else write_outputs(&r, dump);
    fflush(dump);
    for (int i = 0; i < r.output_count; i++) {
        if (on_host) free(r.outputs[i].place); /* device memory goes with the process */
        free(r.outputs[i].bytes[0]);
        free(r.outputs[i].bytes[1]);
    }
    plan_session_close(r.s);
    plan_free(r.p);
    return status != PLAN_ERROR_DRIVER && status != PLAN_ERROR_MEMORY;
}

/* ---- all plans */

/* Seconds of processor time, so that a busy machine fails no test; ten times that in all. */
static void limit_time(unsigned seconds)
{
    const struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    setitimer(ITIMER_PROF, &timer, NULL);
    alarm(10 * seconds);
}

/* In the child: from job FIRST on. *AT says the parent where it is. */
static void run_some(const Job *jobs, int first, int count, const char *target, FILE *dump, unsigned seconds, volatile int *at)
{
    for (int i = first; i < count; i++) {
        *at = i;
        limit_time(seconds);
        const bool good = run_job(&jobs[i], i, target, dump);
        *at = i + 1;
        if (on_host || !good) _exit(FRESH_PROCESS);
    }
    _exit(0);
}

static void report_death(int job, int status, FILE *dump)
{
    fprintf(dump, "job %d\n", job);
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF)) fprintf(dump, "failed time: it took too long\n");
    else if (WIFSIGNALED(status)) fprintf(dump, "failed crash: signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else fprintf(dump, "failed crash: exit status %d\n", WEXITSTATUS(status));
    fflush(dump);
}

static int run_all(const Job *jobs, int count, const char *target, FILE *dump, unsigned seconds)
{
    volatile int *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 1;
    for (int next = 0; next < count;) {
        int status = 0;
        *at = next;
        const pid_t child = fork();
        if (child == 0) run_some(jobs, next, count, target, dump, seconds, at);
        if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
        const bool fine = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FRESH_PROCESS);
        next = *at;
        if (!fine && next == *at && next < count) report_death(next++, status, dump);
    }
    return 0;
}

static void read_line(Job *j, char *line)
{
    char *space = strchr(line, ' '), *name = space ? strchr(space + 1, ' ') : NULL;
    if (!name || j->input_count == MAX_PORTS || j->symbol_count == MAX_PORTS) abort();
    *space = *name = 0;
    if (strcmp(line, "any") == 0) {
        j->random = true;
        return;
    }
    Port *p = strcmp(line, "in") == 0 ? &j->inputs[j->input_count++] : &j->symbols[j->symbol_count++];
    *p = (Port){strdup(name + 1), strdup(space + 1), strtoll(space + 1, NULL, 10)};
}

static int read_list(FILE *list, Job **jobs)
{
    static char line[LINE];
    int count = 0, room = 0;
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "plan ", 5) != 0) {
            if (count) read_line(&(*jobs)[count - 1], line);
            continue;
        }
        if (count == room) {
            room = room ? 2 * room : 64;
            *jobs = realloc(*jobs, (size_t)room * sizeof **jobs);
            if (!*jobs) abort();
        }
        (*jobs)[count++] = (Job){.plan = strdup(line + 5)};
    }
    return count;
}

int main(int argc, char **argv)
{
    Job *jobs = NULL;
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: run_model TARGET LIST DUMP [SECONDS]\n");
        return 2;
    }
    snprintf(folder, sizeof folder, "%s", argv[2]);
    if (strrchr(folder, '/')) *strrchr(folder, '/') = 0;
    else memcpy(folder, ".", 2);
    on_host = strcmp(argv[1], "host") == 0;
    FILE *list = fopen(argv[2], "r"), *dump = fopen(argv[3], "ab"); /* appends: parent and children write in turn */
    if (!list || !dump) return 1;
    const int count = read_list(list, &jobs);
    fclose(list);
    const int status = run_all(jobs, count, argv[1], dump, argc == 5 ? (unsigned)atoi(argv[4]) : 60);
    return fclose(dump) || status ? 1 : 0;
}
