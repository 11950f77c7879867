/* op_run.c - runs many small plans once each, and writes what they compute: the part of tests/run_op_models.py that needs the
 * device.
 *
 *   op_run TARGET LIST DUMP
 *
 * LIST has a line `plan PATH` for each plan, then `in NAME FILE` for its inputs and `out NAME BYTES` for its outputs (or a state's name); paths
 * are relative to LIST's folder. DUMP gets for each plan a line `ok` and the outputs' bytes, or a line `failed: TEXT`. Each plan runs
 * in a process of its own on the host target, where its code may crash; on a GPU all run in this one. */
#include "read_file.h"

#include <plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PORTS = 64, TEXT = 4096 };

typedef struct Port { char name[256], file[1024]; size_t bytes; } Port;
typedef struct Job { char plan[1024]; int input_count, output_count; Port inputs[MAX_PORTS], outputs[MAX_PORTS]; } Job;

static char folder[1024];

static plan_status feed(plan_session *s, const Job *j)
{
    for (int i = 0; i < j->input_count; i++) {
        size_t size = 0;
        void *data = read_file(folder, j->inputs[i].file, &size);
        if (!data) return PLAN_ERROR_FILE;
        plan_status status = plan_session_write_input(s, "main", j->inputs[i].name, data, size);
        if (status == PLAN_ERROR_NAME) status = plan_session_write_state(s, j->inputs[i].name, data, size);
        free(data);
        if (status) return status;
    }
    return PLAN_OK;
}

static plan_status fetch(plan_session *s, const Job *j, unsigned char *out)
{
    for (int i = 0; i < j->output_count; i++) {
        size_t written = 0;
        plan_status status = plan_session_read_output(s, "main", j->outputs[i].name, out, j->outputs[i].bytes, &written);
        if (status == PLAN_ERROR_NAME) {
            status = plan_session_read_state(s, j->outputs[i].name, out, j->outputs[i].bytes);
            written = j->outputs[i].bytes;
        }
        if (status) return status;
        if (written != j->outputs[i].bytes) return PLAN_ERROR_RANGE;
        out += written;
    }
    return PLAN_OK;
}

static plan_status run_session(plan_session *s, const Job *j, unsigned char *out)
{
    plan_status status = plan_session_warm(s);
    if (!status) status = plan_session_capture(s);
    if (!status) status = feed(s, j);
    if (!status) status = plan_session_run(s, "main", NULL, NULL, 0);
    if (!status) status = fetch(s, j, out);
    return status;
}

static size_t job_bytes(const Job *j)
{
    size_t bytes = 0;
    for (int i = 0; i < j->output_count; i++) bytes += j->outputs[i].bytes;
    return bytes;
}

static void run_job(const Job *j, const char *target, FILE *dump)
{
    plan_options options = PLAN_OPTIONS_INIT;
    char path[2100], text[TEXT];
    plan *p = NULL;
    plan_session *s = NULL;
    const size_t bytes = job_bytes(j);
    unsigned char *out = malloc(bytes + 1);
    if (!out) abort();
    options.target = target;
    options.threads = 1;
    snprintf(path, sizeof path, "%s/%s", folder, j->plan);
    plan_status status = plan_load(path, &options, &p);
    if (!status) status = plan_session_open(p, NULL, &s);
    if (!status) status = run_session(s, j, out);
    snprintf(text, sizeof text, "%s: %.3000s", plan_status_name(status), plan_error_message());
    for (char *t = text; *t; t++)
        if (*t == '\n') *t = ' ';
    if (status) fprintf(dump, "failed: %s\n", text);
    else fprintf(dump, "ok\n");
    if (!status) fwrite(out, 1, bytes, dump);
    plan_session_close(s);
    plan_free(p);
    free(out);
}

static void run_apart(const Job *j, const char *target, FILE *dump)
{
    int status = 0;
    fflush(dump);
    const pid_t child = fork();
    if (child == 0) {
        run_job(j, target, dump);
        fflush(dump);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status) {
        fseek(dump, 0, SEEK_END);
        fprintf(dump, "failed: the process ended with status %d\n", status);
    }
    fseek(dump, 0, SEEK_END);
}

static void run(const Job *j, const char *target, FILE *dump)
{
    if (!j->plan[0]) return;
    if (strcmp(target, "host") == 0) run_apart(j, target, dump);
    else run_job(j, target, dump);
}

static void read_line(Job *j, const char *line)
{
    char word[8], name[256], rest[1024];
    if (sscanf(line, "%7s %255s %1023s", word, name, rest) != 3) return;
    Port *p = strcmp(word, "in") == 0 ? &j->inputs[j->input_count++] : &j->outputs[j->output_count++];
    if (j->input_count >= MAX_PORTS || j->output_count >= MAX_PORTS) abort();
    memcpy(p->name, name, sizeof name);
    memcpy(p->file, rest, sizeof rest);
    p->bytes = (size_t)strtoull(rest, NULL, 10);
}

int main(int argc, char **argv)
{
    static Job job;
    char line[2048];
    if (argc != 4) {
        fprintf(stderr, "usage: op_run TARGET LIST DUMP\n");
        return 2;
    }
    snprintf(folder, sizeof folder, "%s", argv[2]);
    if (strrchr(folder, '/')) *strrchr(folder, '/') = 0;
    else memcpy(folder, ".", 2);
    FILE *list = fopen(argv[2], "r"), *dump = fopen(argv[3], "wb");
    if (!list || !dump) return 1;
    while (fgets(line, sizeof line, list)) {
        if (strncmp(line, "plan ", 5) != 0) {
            read_line(&job, line);
            continue;
        }
        run(&job, argv[1], dump);
        memset(&job, 0, sizeof job);
        sscanf(line, "plan %1023s", job.plan);
    }
    run(&job, argv[1], dump);
    fclose(list);
    return fclose(dump) ? 1 : 0;
}
