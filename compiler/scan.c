/* scan.c - the words of the text form: names, numbers, dims, with errors that name line and column. */
#include "scan.h"
#include "graph.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void scan_begin(Scan *s, Compilation *c, char *text, const char *file)
{
    *s = (Scan){.c = c, .file = file, .next = text};
}

bool scan_line(Scan *s)
{
    while (s->next && !s->failed) {
        char *line = s->next, *end = strchr(line, '\n');
        s->passed++;
        s->next = end && end[1] ? end + 1 : NULL;
        if (end)
            *end = 0;
        if (!line[strspn(line, " \t\r")] || *line == '#')
            continue;
        s->line = s->at = line;
        s->number = s->passed;
        (void)scan_at_end(s);
        return true;
    }
    return false;
}

void scan_error(Scan *s, const char *format, ...)
{
    va_list list;
    char message[512];
    if (s->failed)
        return;
    s->failed = true;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    const char *place = arena_text(&s->c->arena, "line %d, column %d", s->number, s->line ? (int)(s->at - s->line) + 1 : 1);
    diag_error(s->c, place, "%s", message);
}

static void skip(Scan *s)
{
    while (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')
        s->at++;
}

bool scan_take(Scan *s, const char *text)
{
    if (s->failed)
        return false;
    skip(s);
    size_t size = strlen(text);
    if (strncmp(s->at, text, size) != 0)
        return false;
    s->at += size;
    return true;
}

void scan_want(Scan *s, const char *text)
{
    if (!scan_take(s, text))
        scan_error(s, "expected '%s', found '%.20s'", text, s->at);
}

bool scan_at_end(Scan *s)
{
    skip(s);
    return !*s->at;
}

void scan_want_end(Scan *s)
{
    if (!s->failed && !scan_at_end(s))
        scan_error(s, "expected the end of the line, found '%.20s'", s->at);
}

static const char *quoted(Scan *s)
{
    char *out = arena_alloc(&s->c->arena, strlen(s->at) + 1), *to = out;
    for (s->at++; *s->at && *s->at != '"'; s->at++) {
        if (*s->at != '\\') {
            *to++ = *s->at;
            continue;
        }
        s->at++;
        char pair[3] = {0};
        if (*s->at == 'x' && isxdigit((unsigned char)s->at[1]) && isxdigit((unsigned char)s->at[2])) {
            memcpy(pair, s->at + 1, 2);
            s->at += 2;
            *to = (char)strtol(pair, NULL, 16);
            if (!*to)
                scan_error(s, "a name holds a zero byte");
            to++;
        } else if (*s->at == '"' || *s->at == '\\') {
            *to++ = *s->at;
        } else {
            scan_error(s, "expected \\\", \\\\ or \\xHH in a name");
            return "";
        }
    }
    if (!*s->at)
        scan_error(s, "a quoted name does not end in its line");
    else
        s->at++;
    return out;
}

const char *scan_name(Scan *s)
{
    if (s->failed)
        return "";
    skip(s);
    if (*s->at == '"')
        return quoted(s);
    size_t size = 0;
    while (isalnum((unsigned char)s->at[size]) || (s->at[size] && strchr("_./", s->at[size])))
        size++;
    char *word = arena_alloc(&s->c->arena, size + 1);
    memcpy(word, s->at, size);
    if (!text_is_word(word)) {
        scan_error(s, "expected a name, found '%.20s'", s->at);
        return "";
    }
    s->at += size;
    return word;
}

int64_t scan_int(Scan *s, int64_t lo, int64_t hi)
{
    char *end;
    if (s->failed)
        return lo;
    skip(s);
    errno = 0;
    long long v = strtoll(s->at, &end, 10);
    if (end == s->at || errno || v < lo || v > hi) {
        scan_error(s, "expected a number from %lld to %lld, found '%.20s'", (long long)lo, (long long)hi, s->at);
        return lo;
    }
    s->at = end;
    return v;
}

uint32_t scan_index(Scan *s, uint32_t highest)
{
    return (uint32_t)scan_int(s, 0, highest);
}

uint64_t scan_hex(Scan *s)
{
    char *end;
    if (s->failed)
        return 0;
    skip(s);
    unsigned long long v = strtoull(s->at, &end, 16);
    if (end == s->at || end - s->at > 16 || !isxdigit((unsigned char)*s->at)) {
        scan_error(s, "expected hexadecimal digits, found '%.20s'", s->at);
        return 0;
    }
    s->at = end;
    return v;
}

int64_t scan_field(Scan *s, const char *name, int64_t lo, int64_t hi)
{
    scan_want(s, name);
    scan_want(s, "=");
    return scan_int(s, lo, hi);
}

/* The end of a dim that begins at P: outside of brackets and quotes, a closing mark, or " node=" and " rule=". */
static char *dim_end(char *p)
{
    int depth = 0;
    for (bool quote = false; *p; p++) {
        if (quote) {
            if (*p == '\\' && p[1])
                p++;
            else if (*p == '"')
                quote = false;
        } else if (*p == '"') {
            quote = true;
        } else if (*p == '(') {
            depth++;
        } else if (*p == ')') {
            depth--;
        } else if (depth == 0 && (strchr(",]>", *p) || !strncmp(p, " node=", 6) || !strncmp(p, " rule=", 6))) {
            break;
        }
    }
    return p;
}

Dim scan_dim(Scan *s)
{
    if (s->failed)
        return 0;
    skip(s);
    char *end = dim_end(s->at), stop = *end;
    const char *error = NULL;
    *end = 0;
    const char *text = arena_copy(&s->c->arena, s->at);
    uint32_t symbols = s->c->symbol_count;
    Dim d = 0;
    if (!strcmp(text, "-9223372036854775808")) { /* dim_parse negates what it read, and this has no positive */
        d = dim_const(s->c, INT64_MIN);
    } else if (strcmp(text, "?") != 0) {
        d = dim_parse(s->c, text, &error);
        if (!d)
            scan_error(s, "dim '%s': %s", text, error ? error : "it is too large");
        else if (s->c->symbol_count != symbols)
            scan_error(s, "dim '%s': no symbol line names '%s'", text, s->c->symbols[s->c->symbol_count].name);
    }
    *end = stop;
    s->at = end;
    return d;
}

Dim *scan_dims(Scan *s, char open, char close, int highest, int *count)
{
    char mark[2] = {open, 0};
    scan_want(s, mark);
    mark[0] = close;
    *count = 0;
    if (s->failed || scan_take(s, mark))
        return NULL;
    int room = 1;
    char *end;
    for (char *p = s->at; *(end = dim_end(p)) == ','; p = end + 1)
        room++;
    Dim *list = NEW_ARRAY(s->c, Dim, room);
    do {
        if (*count == highest) {
            scan_error(s, "more than %d dims", highest);
            break;
        }
        list[(*count)++] = scan_dim(s);
    } while (scan_take(s, ","));
    scan_want(s, mark);
    return list;
}
