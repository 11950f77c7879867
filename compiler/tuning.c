/* tuning.c - choices that only a measurement can make: how many blocks share a row, which variant of a kernel.
 *
 * Lowering asks at each such point, with a key that names the point and its shapes (no blanks) and with the values that are
 * possible. A tuning file answers, lines `KEY VALUE` with comments behind #; without one the standard value holds. With
 * --tune-candidates the plan has, besides decode, a step "decode#KEY=VALUE" for each value of each key that decode asked for:
 * what plan-run --tune times to write such a file. */
#include "lower.h"
#include "external.h"
#include "format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TUNING_BYTES ((uint64_t)1 << 20)

typedef struct Answer { const char *key; int64_t value; int line; bool used; } Answer;
typedef struct Point { const char *key; int count; int64_t *candidates; } Point;

struct Tuning {
    const char *file; /* for messages */
    uint64_t sum;     /* of its bytes */
    int answer_count, answer_room;
    Answer *answers;
    int point_count, point_room;
    Point *points;    /* that decode asked for, each key once */
};

static const char *place_of(Compilation *c, int line) { return arena_text(&c->arena, "%s:%d", c->tuning->file, line); }

static struct Tuning *tuning_of(Compilation *c)
{
    if (!c->tuning) c->tuning = NEW(c, struct Tuning);
    return c->tuning;
}

static Answer *answer_to(struct Tuning *t, const char *key)
{
    for (int i = 0; i < t->answer_count; i++)
        if (!strcmp(t->answers[i].key, key)) return &t->answers[i];
    return NULL;
}

#define APPEND(c, list, count, room, ...) \
    do { \
        if ((count) == (room)) { \
            const int more_ = (room) ? (room) * 2 : 16; \
            void *bigger_ = arena_alloc(&(c)->arena, sizeof *(list) * (size_t)more_); \
            if (count) memcpy(bigger_, (list), sizeof *(list) * (size_t)(count)); \
            (list) = bigger_; \
            (room) = more_; \
        } \
        (list)[(count)++] = __VA_ARGS__; \
    } while (0)

/* One line without its comment and end; blank ones say nothing. */
static void read_line(Compilation *c, const char *text, int line)
{
    struct Tuning *t = c->tuning;
    const char *blanks = " \t\r";
    const char *key = text + strspn(text, blanks);
    const size_t size = strcspn(key, blanks);
    const char *number = key + size + strspn(key + size, blanks);
    char *end;
    if (!size) return;
    errno = 0;
    const long long value = strtoll(number, &end, 10);
    if (end == number || errno || end[strspn(end, blanks)]) {
        diag_error(c, place_of(c, line), "expected a key, a blank and an integer, found '%.80s'", text);
        return;
    }
    const char *copy = arena_text(&c->arena, "%.*s", (int)size, key);
    const Answer *before = answer_to(t, copy);
    if (before) diag_error(c, place_of(c, line), "key '%s' stands in line %d already", copy, before->line);
    else APPEND(c, t->answers, t->answer_count, t->answer_room, (Answer){ .key = copy, .value = value, .line = line });
}

bool tuning_read(Compilation *c, const char *path)
{
    struct Tuning *t = tuning_of(c);
    const char *slash = strrchr(path, '/');
    const uint8_t *bytes = NULL;
    uint64_t size = 0;
    t->file = slash ? slash + 1 : path;
    const int file = open(path, O_RDONLY | O_NONBLOCK);
    const char *reason = file < 0 ? strerror(errno) : map_whole(file, &bytes, &size);
    if (!reason && size > MAX_TUNING_BYTES) reason = "it is larger than 1 MiB";
    if (!reason && size && memchr(bytes, 0, (size_t)size)) reason = "it is no text";
    if (reason) {
        diag_error(c, t->file, "the tuning file cannot be read: %s", reason);
        return false;
    }
    t->sum = plan_checksum(bytes, size);
    for (uint64_t at = 0, line = 1; at < size; line++) {
        const uint8_t *newline = memchr(bytes + at, '\n', (size_t)(size - at));
        const uint64_t end = newline ? (uint64_t)(newline - bytes) : size;
        char *text = arena_text(&c->arena, "%.*s", (int)(end - at), (const char *)bytes + at);
        text[strcspn(text, "#")] = 0;
        read_line(c, text, (int)line);
        at = end + 1;
    }
    return !diag_failed(c);
}

const char *tuning_option(Compilation *c)
{
    const struct Tuning *t = c->tuning;
    return t && t->file ? arena_text(&c->arena, " tuning=%016llx", (unsigned long long)t->sum) : "";
}

static bool is_candidate(int64_t value, const int64_t *candidates, int count)
{
    for (int i = 0; i < count; i++)
        if (candidates[i] == value) return true;
    return false;
}

static const char *candidates_text(Compilation *c, const int64_t *candidates, int count)
{
    const char *text = "";
    for (int i = 0; i < count; i++) text = arena_text(&c->arena, "%s%s%lld", text, i ? ", " : "", (long long)candidates[i]);
    return text;
}

static void note_point(Compilation *c, const char *key, const int64_t *candidates, int count)
{
    struct Tuning *t = tuning_of(c);
    for (int i = 0; i < t->point_count; i++)
        if (!strcmp(t->points[i].key, key)) return;
    int64_t *copy = NEW_ARRAY(c, int64_t, count);
    memcpy(copy, candidates, sizeof *copy * (size_t)count);
    APPEND(c, t->points, t->point_count, t->point_room, (Point){ key, count, copy });
}

int64_t tuning_choice(Lower *l, const char *key, const int64_t *candidates, int count, int64_t standard)
{
    Compilation *c = l->c;
    if (c->options.tune_candidates && l->signature->kind == SIG_DECODE && !l->trial_key) note_point(c, key, candidates, count);
    if (l->trial_key && !strcmp(l->trial_key, key)) return l->trial_value;
    Answer *answer = c->tuning ? answer_to(c->tuning, key) : NULL;
    if (!answer) return standard;
    if (!is_candidate(answer->value, candidates, count)) {
        if (!answer->used)
            diag_error(c, place_of(c, answer->line), "key '%s': expected one of %s, found %lld", key, candidates_text(c, candidates, count),
                       (long long)answer->value);
        answer->used = true;
        return standard;
    }
    answer->used = true;
    return answer->value;
}

int tuning_trials(Compilation *c)
{
    int count = 0;
    for (int i = 0; c->tuning && i < c->tuning->point_count; i++) count += c->tuning->points[i].count;
    return count;
}

void tuning_trial(Compilation *c, int trial, const char **key, int64_t *value)
{
    const Point *p = c->tuning->points;
    for (; trial >= p->count; p++) trial -= p->count;
    *key = p->key;
    *value = p->candidates[trial];
}

void tuning_unused(Compilation *c)
{
    for (int i = 0; c->tuning && i < c->tuning->answer_count; i++)
        if (!c->tuning->answers[i].used)
            diag_note(c, "%s: this model has no choice named '%s'", place_of(c, c->tuning->answers[i].line), c->tuning->answers[i].key);
}
