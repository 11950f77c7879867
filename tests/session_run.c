/* session_run.c - one session of a plan, driven by a list of commands: for tests that look at several runs of one session.
 *
 *   session_run TARGET PLAN LIST DUMP
 *
 * LIST has lines `in NAME FILE` (raw bytes), `run`, and `out NAME`: DUMP gets a line `NAME BYTES DIM...` with the present
 * dims, then the bytes. */
#include <plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static plan_status write_input(plan_session *s, const char *name, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return PLAN_ERROR_FILE;
    static unsigned char data[1 << 24];
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    return plan_session_write_input(s, "main", name, data, size);
}

static plan_status write_output(plan_session *s, const char *name, FILE *dump)
{
    plan_tensor t;
    plan_status status = plan_session_output(s, "main", name, &t);
    size_t written = 0;
    if (status) return status;
    unsigned char *data = malloc(t.bytes + 1);
    if (!data) return PLAN_ERROR_MEMORY;
    status = plan_session_read_output(s, "main", name, data, t.bytes, &written);
    if (!status) {
        fprintf(dump, "%s %zu", name, written);
        for (int i = 0; i < t.rank; i++) fprintf(dump, " %lld", (long long)t.dims[i]);
        fputc('\n', dump);
        fwrite(data, 1, written, dump);
    }
    free(data);
    return status;
}

static plan_status command(plan_session *s, const char *line, FILE *dump)
{
    char word[8] = "", name[256] = "", path[1024] = "";
    sscanf(line, "%7s %255s %1023s", word, name, path);
    if (!strcmp(word, "in")) return write_input(s, name, path);
    if (!strcmp(word, "run")) return plan_session_run(s, "main", NULL, NULL, 0);
    return strcmp(word, "out") ? PLAN_ERROR_ARGUMENT : write_output(s, name, dump);
}

int main(int argc, char **argv)
{
    plan_options options = PLAN_OPTIONS_INIT;
    plan *p = NULL;
    plan_session *s = NULL;
    char line[2048];
    if (argc != 5) {
        fprintf(stderr, "usage: session_run TARGET PLAN LIST DUMP\n");
        return 2;
    }
    options.target = argv[1];
    FILE *list = fopen(argv[3], "r"), *dump = fopen(argv[4], "wb");
    if (!list || !dump) return 1;
    plan_status status = plan_load(argv[2], &options, &p);
    if (!status) status = plan_session_open(p, NULL, &s);
    if (!status) status = plan_session_warm(s);
    if (!status) status = plan_session_capture(s);
    while (!status && fgets(line, sizeof line, list)) status = command(s, line, dump);
    if (status) fprintf(stderr, "%s: %s\n", plan_status_name(status), plan_error_message());
    plan_session_close(s);
    plan_free(p);
    fclose(list);
    return fclose(dump) || status ? 1 : 0;
}
