/* session_run.c - one session of a plan, driven by a list of commands: for tests that look at several runs of one session.
 *
 *   session_run TARGET PLAN LIST DUMP
 *
 * LIST has lines `in NAME FILE` (raw bytes), `eager 0` or `eager 1` (how the next runs are launched), `run`, and `out NAME`: DUMP gets a
 * line `NAME BYTES DIM...` with the present dims, then the bytes. `size SYMBOL N` sets a symbol from the next run on. `counters`
 * gives DUMP a line of the IF nodes, WHILE nodes, decisions of the host, and graphs launched. */
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

static plan_status write_counters(plan_session *s, FILE *dump)
{
    plan_counters c;
    plan_status status = plan_session_counters(s, &c);
    if (!status)
        fprintf(dump, "%llu %llu %llu %llu\n", (unsigned long long)c.if_nodes, (unsigned long long)c.while_nodes,
                (unsigned long long)c.decisions, (unsigned long long)c.graph_launches);
    return status;
}

static char symbol[256];
static int64_t symbol_value;

static plan_status run(plan_session *s)
{
    const char *const names[] = {symbol};
    return plan_session_run(s, "main", names, &symbol_value, symbol[0] != 0);
}

static plan_status command(plan_session *s, const char *line, FILE *dump)
{
    char word[16] = "", name[256] = "", path[1024] = "";
    sscanf(line, "%15s %255s %1023s", word, name, path);
    if (!strcmp(word, "in")) return write_input(s, name, path);
    if (!strcmp(word, "eager")) return plan_session_set_eager(s, !strcmp(name, "1"));
    if (!strcmp(word, "counters")) return write_counters(s, dump);
    if (!strcmp(word, "size")) {
        memcpy(symbol, name, sizeof symbol);
        symbol_value = strtoll(path, NULL, 10);
        return PLAN_OK;
    }
    if (!strcmp(word, "run")) return run(s);
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
