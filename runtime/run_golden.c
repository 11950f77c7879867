/* run_golden.c - reads reference answers: text files of numbers, TensorProto files, and the one-file form. */
#include "run_golden.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    unsigned char *data; /* with a NUL behind */
    size_t size;
} bytes;

static int read_file(const char *path, bytes *out) {
    FILE *f = fopen(path, "rb");
    size_t capacity = 0, got;
    out->data = NULL;
    out->size = 0;
    if (!f)
        return run_message("%s: cannot be opened: %s", path, strerror(errno));
    do {
        if (out->size + 1 >= capacity) {
            capacity = capacity ? capacity * 2 : 65536;
            unsigned char *more = realloc(out->data, capacity);
            if (!more) {
                run_message("plan-run: out of memory");
                exit(1);
            }
            out->data = more;
        }
        got = fread(out->data + out->size, 1, capacity - out->size - 1, f);
        out->size += got;
    } while (got > 0);
    int bad = ferror(f);
    fclose(f);
    out->data[out->size] = 0;
    if (!bad)
        return 0;
    free(out->data);
    out->data = NULL;
    return run_message("%s: cannot be read", path);
}

/* Numbers of one line, up to its end; NULL when it holds something else. The line is cut at its end. */
static double *read_line(char **text, size_t *count) {
    char *line = *text, *end = strchr(line, '\n');
    if (end) {
        *end = 0;
        *text = end + 1;
    } else
        *text = line + strlen(line);
    double *numbers = run_allocate(strlen(line) / 2 + 1, sizeof *numbers);
    *count = 0;
    for (;;) {
        char *next;
        double value = strtod(line, &next);
        if (next == line)
            break;
        numbers[(*count)++] = value;
        line = next;
    }
    if (line[strspn(line, " \t\r")] == 0)
        return numbers;
    free(numbers);
    return NULL;
}

/* Lines of numbers; *ROWS lines are kept. */
static int read_table(const char *folder, const char *name, double ***out, size_t **counts, size_t *rows) {
    char path[4096];
    bytes file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *rows = 0;
    *out = NULL;
    *counts = NULL;
    if (read_file(path, &file))
        return 1;
    size_t lines = 1;
    for (size_t i = 0; i < file.size; i++)
        lines += file.data[i] == '\n';
    *out = run_allocate(lines, sizeof **out);
    *counts = run_allocate(lines, sizeof **counts);
    int bad = 0;
    for (char *text = (char *)file.data; *text && !bad;) {
        size_t count;
        double *numbers = read_line(&text, &count);
        if (!numbers) {
            bad = run_message("%s: line %zu: expected numbers", path, *rows + 1);
        } else if (count == 0)
            free(numbers); /* an empty line */
        else {
            (*out)[*rows] = numbers;
            (*counts)[(*rows)++] = count;
        }
    }
    free(file.data);
    return bad;
}

static void free_table(double **table, size_t *counts, size_t rows) {
    for (size_t i = 0; i < rows; i++)
        free(table[i]);
    free(table);
    free(counts);
}

static int read_ids(const char *folder, const char *name, run_ids **out, size_t *rows) {
    double **table;
    size_t *counts;
    int bad = read_table(folder, name, &table, &counts, rows);
    *out = run_allocate(*rows, sizeof **out);
    for (size_t i = 0; i < *rows && !bad; i++) {
        (*out)[i].ids = run_allocate(counts[i], sizeof(int64_t));
        (*out)[i].count = counts[i];
        for (size_t k = 0; k < counts[i]; k++)
            (*out)[i].ids[k] = (int64_t)table[i][k];
    }
    free_table(table, counts, *rows);
    return bad;
}

/* ---- a TensorProto: fields 1 dims, 2 data_type, 4 float_data, 9 raw_data; the rest is skipped */
typedef struct wire {
    const unsigned char *at, *end;
} wire;

static int read_varint(wire *w, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        unsigned char byte = *w->at++;
        *out |= (uint64_t)(byte & 127u) << shift;
        if (byte < 128)
            return 0;
    }
    return 1;
}

/* One field: its number, wire type, and either a value or a run of bytes. */
static int read_field(wire *w, uint64_t *number, uint64_t *value, const unsigned char **run) {
    uint64_t key;
    *run = NULL;
    if (read_varint(w, &key))
        return 1;
    *number = key >> 3;
    switch (key & 7) {
    case 0: return read_varint(w, value);
    case 1: *value = 8; break;
    case 5: *value = 4; break;
    case 2:
        if (read_varint(w, value))
            return 1;
        break;
    default: return 1;
    }
    if (*value > (uint64_t)(w->end - w->at))
        return 1;
    *run = w->at;
    w->at += *value;
    return 0;
}

static int read_tensor(const char *path, run_reference *out) {
    bytes file;
    uint64_t number, value, type = 0, elements = 1, data_size = 0;
    const unsigned char *run, *data = NULL;
    if (read_file(path, &file))
        return 1;
    int bad = 0;
    for (wire w = {file.data, file.data + file.size}; w.at < w.end && !bad;) {
        bad = read_field(&w, &number, &value, &run);
        if (bad)
            break;
        if (number == 1 && !run)
            elements = value > (1u << 30) ? 0 : elements * value;
        else if (number == 1)
            for (wire dims = {run, run + value}; dims.at < dims.end && !bad;) {
                bad = read_varint(&dims, &number);
                elements = bad || number > (1u << 30) ? 0 : elements * number;
            }
        else if (number == 2 && !run)
            type = value;
        else if ((number == 9 || number == 4) && run) {
            data = run;
            data_size = value;
        }
    }
    if (bad || type != PLAN_F32 || !data || elements == 0 || elements > SIZE_MAX / 4 || data_size != elements * 4)
        bad = run_message("%s: expected a float32 tensor", path);
    else {
        out->count = (size_t)elements;
        out->values = run_allocate(out->count, sizeof *out->values);
        memcpy(out->values, data, (size_t)data_size);
    }
    free(file.data);
    return bad;
}

static int compare_references(const void *a, const void *b) {
    const run_reference *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

static int read_references(const char *folder, run_golden *g) {
    DIR *d = opendir(folder);
    int bad = 0, end = 0;
    size_t capacity = 0;
    if (!d)
        return run_message("%s: cannot be opened: %s", folder, strerror(errno));
    for (struct dirent *entry; !bad && (entry = readdir(d)) != NULL;) {
        unsigned step;
        char path[4096];
        if (sscanf(entry->d_name, "logits_%u.pb%n", &step, &end) != 1 || entry->d_name[end])
            continue;
        if (g->reference_count == capacity) {
            capacity = capacity * 2 + 8;
            run_reference *more = run_allocate(capacity, sizeof *more);
            if (g->reference_count)
                memcpy(more, g->references, g->reference_count * sizeof *more);
            free(g->references);
            g->references = more;
        }
        g->references[g->reference_count].step = step;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        bad = read_tensor(path, &g->references[g->reference_count]);
        if (!bad)
            g->reference_count++;
    }
    closedir(d);
    if (g->reference_count)
        qsort(g->references, g->reference_count, sizeof *g->references, compare_references);
    return bad;
}

static int read_folder(const char *folder, run_golden *g) {
    size_t *counts = NULL;
    int bad = read_ids(folder, "prompts.txt", &g->prompts, &g->count) ||
              read_ids(folder, "tokens.txt", &g->tokens, &g->token_rows) ||
              read_table(folder, "margins.txt", &g->margins, &counts, &g->margin_rows);
    if (!bad && (g->count == 0 || g->token_rows != g->count || g->margin_rows != g->count))
        bad = run_message("%s: expected as many lines of tokens and margins as prompts (%zu), found %zu and %zu", folder, g->count,
                          g->token_rows, g->margin_rows);
    for (size_t i = 0; i < g->count && !bad; i++)
        if (counts[i] != g->tokens[i].count)
            bad = run_message("%s: line %zu: expected as many margins as tokens (%zu), found %zu", folder, i + 1,
                              g->tokens[i].count, counts[i]);
    free(counts);
    return bad ? bad : read_references(folder, g);
}

/* "step N\tid:logit id:logit ..." */
static int read_step(const char *path, char *line, run_golden *g, size_t step) {
    run_reference *r = &g->references[step];
    r->step = step;
    r->values = run_allocate(RUN_TOP, sizeof *r->values);
    r->ids = run_allocate(RUN_TOP, sizeof *r->ids);
    g->reference_count = step + 1;
    for (char *at = line; *at && r->count < RUN_TOP;) {
        long long id;
        double value;
        int used = 0;
        if (sscanf(at, " %lld:%lf%n", &id, &value, &used) != 2)
            break;
        r->ids[r->count] = id;
        r->values[r->count++] = (float)value;
        at += used;
    }
    if (r->count < 2)
        return run_message("%s: step %zu: expected 'id:logit' pairs, best first", path, step);
    g->tokens[0].ids[step] = r->ids[0];
    g->margins[0][step] = (double)r->values[0] - (double)r->values[1];
    g->tokens[0].count = step + 1;
    return 0;
}

static int read_one_file(const char *path, run_golden *g) {
    bytes file;
    if (read_file(path, &file))
        return 1;
    size_t lines = 1;
    for (size_t i = 0; i < file.size; i++)
        lines += file.data[i] == '\n';
    g->count = g->token_rows = g->margin_rows = 1;
    g->prompts = run_allocate(1, sizeof *g->prompts);
    g->tokens = run_allocate(1, sizeof *g->tokens);
    g->margins = run_allocate(1, sizeof *g->margins);
    g->margins[0] = run_allocate(lines, sizeof **g->margins);
    g->tokens[0].ids = run_allocate(lines, sizeof(int64_t));
    g->references = run_allocate(lines, sizeof *g->references);
    int bad = 0;
    for (char *text = (char *)file.data; *text && !bad;) {
        char *line = text, *end = strchr(text, '\n');
        text = end ? end + 1 : text + strlen(text);
        if (end)
            *end = 0;
        size_t count;
        if (strncmp(line, "prompt\t", 7) == 0) {
            char *ids = line + 7;
            double *numbers = read_line(&ids, &count);
            for (size_t i = 0; numbers && i < count; i++) {
                if (i == 0)
                    g->prompts[0].ids = run_allocate(count, sizeof(int64_t));
                g->prompts[0].ids[i] = (int64_t)numbers[i];
                g->prompts[0].count = count;
            }
            free(numbers);
        } else if (strncmp(line, "step ", 5) == 0) {
            char *tab = strchr(line, '\t');
            bad = tab ? read_step(path, tab, g, g->tokens[0].count) : run_message("%s: expected a tab after 'step N'", path);
        }
    }
    free(file.data);
    if (!bad && (g->prompts[0].count == 0 || g->tokens[0].count == 0))
        bad = run_message("%s: expected a line 'prompt' and lines 'step N'", path);
    return bad;
}

int run_golden_read(const char *path, run_golden *out) {
    memset(out, 0, sizeof *out);
    DIR *d = opendir(path);
    if (d) {
        closedir(d);
        return read_folder(path, out);
    }
    return errno == ENOTDIR ? read_one_file(path, out) : run_message("%s: cannot be opened: %s", path, strerror(errno));
}

void run_golden_free(run_golden *g) {
    for (size_t i = 0; i < g->count; i++)
        free(g->prompts[i].ids);
    for (size_t i = 0; i < g->token_rows; i++)
        free(g->tokens[i].ids);
    for (size_t i = 0; i < g->margin_rows; i++)
        free(g->margins[i]);
    for (size_t i = 0; i < g->reference_count; i++) {
        free(g->references[i].values);
        free(g->references[i].ids);
    }
    free(g->prompts);
    free(g->tokens);
    free(g->margins);
    free(g->references);
}
