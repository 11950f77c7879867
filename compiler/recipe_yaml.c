/* recipe_yaml.c - a recipe's text to c->recipe. Every error has its line and column; all are reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "external.h"
#include "names.h"
#include "recipe.h"

#define MAX_RECIPE_BYTES ((uint64_t)16 << 20)

typedef struct Reading {
    Compilation *c;
    Recipe *r;
    const char *path;
    yaml_document_t document;
} Reading;

typedef bool Entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into);

static int line_of(const yaml_node_t *n) { return (int)n->start_mark.line + 1; }
static int column_of(const yaml_node_t *n) { return (int)n->start_mark.column + 1; }

static bool wrong(Reading *y, const yaml_node_t *at, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    diag_error(y->c, arena_text(&y->c->arena, "%s:%d:%d", y->r->file, line_of(at), column_of(at)), "%s", text);
    return false;
}

static const char *kind_text(const yaml_node_t *n)
{
    switch (n->type) {
    case YAML_SEQUENCE_NODE: return "a list";
    case YAML_MAPPING_NODE: return "a map";
    default: return n->data.scalar.length ? "a value" : "nothing";
    }
}

static yaml_node_t *node_at(Reading *y, int index) { return yaml_document_get_node(&y->document, index); }

static const char *text_of(Reading *y, const yaml_node_t *n, const char *what)
{
    if (n->type != YAML_SCALAR_NODE || !n->data.scalar.length ||
        memchr(n->data.scalar.value, 0, n->data.scalar.length)) {
        wrong(y, n, "expected %s, found %s", what, kind_text(n));
        return NULL;
    }
    return arena_copy(&y->c->arena, (const char *)n->data.scalar.value);
}

static bool integer_of(Reading *y, const yaml_node_t *n, int64_t *out)
{
    if (n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && n->data.scalar.length < 20) {
        const char *text = (const char *)n->data.scalar.value, *digits = text + (*text == '-');
        char *end;
        errno = 0;
        long long v = strtoll(text, &end, 10);
        if (*digits >= '0' && *digits <= '9' && !*end && !errno) {
            *out = v;
            return true;
        }
    }
    if (n->type == YAML_SCALAR_NODE && n->data.scalar.length)
        return wrong(y, n, "expected an integer, found %s'%.40s'",
                     n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? "" : "the quoted text ", (const char *)n->data.scalar.value);
    return wrong(y, n, "expected an integer, found %s", kind_text(n));
}

static bool positive_of(Reading *y, const yaml_node_t *n, int64_t *out)
{
    int64_t v;
    if (!integer_of(y, n, &v))
        return false;
    if (v < 1 || v > INT32_MAX)
        return wrong(y, n, "expected an integer from 1 to %d, found %lld", INT32_MAX, (long long)v);
    *out = v;
    return true;
}

static int list_count(const yaml_node_t *n)
{
    return (int)(n->data.sequence.items.top - n->data.sequence.items.start);
}

static yaml_node_t *list_item(Reading *y, const yaml_node_t *n, int i) { return node_at(y, n->data.sequence.items.start[i]); }

static int map_count(const yaml_node_t *n)
{
    return (int)(n->data.mapping.pairs.top - n->data.mapping.pairs.start);
}

/* Every entry of a map, each key once. */
static bool each_entry(Reading *y, const yaml_node_t *map, const char *what, Entry *entry, void *into)
{
    bool good = true;
    Names seen = {0};
    if (map->type != YAML_MAPPING_NODE)
        return wrong(y, map, "expected %s, found %s", what, kind_text(map));
    for (int i = 0; i < map_count(map); i++) {
        yaml_node_t *at = node_at(y, map->data.mapping.pairs.start[i].key);
        const char *key = text_of(y, at, "a name");
        if (key && !names_add(y->c, &seen, key, 1))
            good = wrong(y, at, "key '%s' occurs twice", key);
        else if (!key || !entry(y, key, at, node_at(y, map->data.mapping.pairs.start[i].value), into))
            good = false;
    }
    return good;
}

/* ---- ranges */

static bool max_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    if (strcmp(key, "max"))
        return wrong(y, at, "key '%s' is not known; expected max", key);
    return positive_of(y, value, into);
}

/* 4, [1, 64] or {max: 64} */
static bool range_of(Reading *y, const yaml_node_t *n, Range *r)
{
    bool good;
    if (n->type == YAML_SCALAR_NODE) {
        good = integer_of(y, n, &r->lo);
        r->hi = r->lo;
    } else if (n->type == YAML_SEQUENCE_NODE) {
        if (list_count(n) != 2)
            return wrong(y, n, "expected [low, high], found a list of %d", list_count(n));
        good = integer_of(y, list_item(y, n, 0), &r->lo) && integer_of(y, list_item(y, n, 1), &r->hi);
    } else {
        r->lo = 1;
        r->hi = 0;
        good = each_entry(y, n, "a map", max_entry, &r->hi);
        if (good && !r->hi)
            return wrong(y, n, "expected a value, [low, high] or {max: n}, found an empty map");
    }
    if (good && (r->lo < 0 || r->hi < r->lo || r->hi > INT32_MAX))
        return wrong(y, n, "the range %lld to %lld is none; expected 0 <= low <= high <= %d", (long long)r->lo,
                     (long long)r->hi, INT32_MAX);
    return good;
}

typedef struct RangeList { int count; Range *list; } RangeList;

static bool range_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    RangeList *l = into;
    Range r = {.symbol = key, .line = line_of(at), .column = column_of(at)};
    if (!range_of(y, value, &r))
        return false;
    l->list[l->count++] = r;
    return true;
}

static bool ranges_of(Reading *y, const yaml_node_t *map, int *count, Range **list)
{
    RangeList l = {0, NULL};
    if (map->type == YAML_MAPPING_NODE)
        l.list = NEW_ARRAY(y->c, Range, map_count(map));
    bool good = each_entry(y, map, "a map from symbols to ranges", range_entry, &l);
    *count = l.count;
    *list = l.list;
    return good;
}

/* ---- the keys of the recipe */

typedef struct PairText { const char *input, *output; } PairText;

static bool pair_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    PairText *p = into;
    const char **to = !strcmp(key, "input") ? &p->input : !strcmp(key, "output") ? &p->output : NULL;
    if (!to)
        return wrong(y, at, "key '%s' is not known; expected input or output", key);
    *to = text_of(y, value, "a name");
    return *to != NULL;
}

/* Both names have the same braces, or none; else *ALONE has some that the other lacks. */
static bool same_braces(const PairText *p, Pattern *alone)
{
    const Pattern in = pattern_of(p->input), out = pattern_of(p->output);
    *alone = in.kind > out.kind ? in : out;
    return in.kind == out.kind;
}

static bool states_of(Reading *y, const yaml_node_t *n)
{
    bool good = true;
    if (n->type != YAML_SEQUENCE_NODE)
        return wrong(y, n, "expected a list of {input, output}, found %s", kind_text(n));
    y->r->pairs = arena_alloc(&y->c->arena, sizeof *y->r->pairs * (size_t)list_count(n));
    for (int i = 0; i < list_count(n); i++) {
        yaml_node_t *item = list_item(y, n, i);
        PairText p = {NULL, NULL};
        Pattern alone;
        if (!each_entry(y, item, "{input, output}", pair_entry, &p))
            good = false;
        else if (!p.input || !p.output)
            good = wrong(y, item, "a state needs input and output; found no %s", p.input ? "output" : "input");
        else if (!same_braces(&p, &alone))
            good = wrong(y, item, "%.3s occurs in '%s' alone; expected it in input and output", alone.text + alone.before, alone.text);
        if (!good)
            continue;
        int k = y->r->pair_count++;
        y->r->pairs[k].input = p.input;
        y->r->pairs[k].output = p.output;
        y->r->pairs[k].line = line_of(item);
        y->r->pairs[k].column = column_of(item);
    }
    return good;
}

static bool signature_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    (void)into;
    SignatureSpec s = {.name = key, .line = line_of(at)};
    if (strcmp(key, "decode") && strcmp(key, "prefill") && strcmp(key, "prefill_long") && strcmp(key, "main"))
        return wrong(y, at, "no signature is named '%s'; expected decode, prefill, prefill_long or main", key);
    if (!ranges_of(y, value, &s.range_count, &s.ranges))
        return false;
    y->r->signatures[y->r->signature_count++] = s;
    return true;
}

static bool constant_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    (void)into;
    bool list = value->type == YAML_SEQUENCE_NODE, good = true;
    int count = list ? list_count(value) : 1;
    int64_t *values = NEW_ARRAY(y->c, int64_t, count);
    for (int i = 0; i < count; i++)
        good &= integer_of(y, list ? list_item(y, value, i) : value, &values[i]);
    if (!good)
        return false;
    int k = y->r->constant_count++;
    y->r->constants[k].input = key;
    y->r->constants[k].count = count;
    y->r->constants[k].values = values;
    y->r->constants[k].line = line_of(at);
    y->r->constants[k].column = column_of(at);
    return true;
}

/* A file's name is relative to the recipe's folder. */
static const char *beside_recipe(Reading *y, const char *path)
{
    const char *slash = strrchr(y->path, '/');
    if (*path == '/' || !slash)
        return path;
    return arena_text(&y->c->arena, "%.*s/%s", (int)(slash - y->path), y->path, path);
}

static bool bind_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    (void)into;
    const char *path = text_of(y, value, "a file's name");
    if (!path)
        return false;
    const char *place = arena_text(&y->c->arena, "%s:%d:%d", y->r->file, line_of(at), column_of(at));
    y->r->binds[y->r->bind_count++] = (Bind){.input = key, .path = beside_recipe(y, path), .place = place};
    return true;
}

static bool feed_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    (void)into;
    Feed feed;
    const char *name = text_of(y, value, "a feed");
    if (!name)
        return false;
    if (!feed_from_name(name, &feed))
        return wrong(y, value, "feed '%s' is not known; expected caller, token, ones, position, length or write_index", name);
    int k = y->r->feed_count++;
    y->r->feeds[k].input = key;
    y->r->feeds[k].feed = feed;
    y->r->feeds[k].line = line_of(at);
    y->r->feeds[k].column = column_of(at);
    return true;
}

static bool recipe_entry(Reading *y, const char *key, yaml_node_t *at, yaml_node_t *value, void *into)
{
    (void)into;
    Recipe *r = y->r;
    size_t room = value->type == YAML_MAPPING_NODE ? (size_t)map_count(value) : 0;
    Arena *a = &y->c->arena;
    if (!strcmp(key, "states"))
        return states_of(y, value);
    if (!strcmp(key, "symbols"))
        return ranges_of(y, value, &r->range_count, &r->ranges);
    if (!strcmp(key, "capacity"))
        return positive_of(y, value, &r->capacity);
    if (!strcmp(key, "prefill")) {
        int64_t prefill = 0;
        bool good = positive_of(y, value, &prefill);
        if (!y->c->options.prefill)
            y->c->options.prefill = prefill;
        return good;
    }
    if (!strcmp(key, "sample")) {
        SampleTail tail = SAMPLE_UNSET;
        const char *name = text_of(y, value, "none, greedy or draw");
        if (name && !sample_from_name(name, &tail))
            return wrong(y, value, "sample '%s' is not known; expected none, greedy or draw", name);
        if (name && y->c->options.sample == SAMPLE_UNSET)
            y->c->options.sample = tail;
        return name != NULL;
    }
    if (!strcmp(key, "logits")) {
        const char *name = text_of(y, value, "last or all");
        if (name && strcmp(name, "last") && strcmp(name, "all"))
            return wrong(y, value, "logits '%s' is not known; expected last or all", name);
        if (name && y->c->options.logits == LOGITS_UNSET)
            y->c->options.logits = strcmp(name, "last") ? LOGITS_ALL : LOGITS_LAST;
        return name != NULL;
    }
    if (!strcmp(key, "signatures")) {
        r->signatures = arena_alloc(a, room * sizeof *r->signatures);
        return each_entry(y, value, "a map from signatures to ranges", signature_entry, NULL);
    }
    if (!strcmp(key, "constants")) {
        r->constants = arena_alloc(a, room * sizeof *r->constants);
        return each_entry(y, value, "a map from inputs to integers", constant_entry, NULL);
    }
    if (!strcmp(key, "bind")) {
        r->binds = arena_alloc(a, room * sizeof *r->binds);
        return each_entry(y, value, "a map from inputs to files", bind_entry, NULL);
    }
    if (!strcmp(key, "feeds")) {
        r->feeds = arena_alloc(a, room * sizeof *r->feeds);
        return each_entry(y, value, "a map from inputs to feeds", feed_entry, NULL);
    }
    return wrong(y, at, "key '%s' is not known; expected states, symbols, capacity, prefill, sample, logits, signatures, constants, bind or feeds",
                 key);
}

/* ---- the document */

static bool parse_failed(Reading *y, const yaml_parser_t *p)
{
    const char *problem = p->problem ? p->problem : "it is no YAML", *context = p->context ? p->context : "";
    const char *place = arena_text(&y->c->arena, "%s:%zu:%zu", y->r->file, p->problem_mark.line + 1, p->problem_mark.column + 1);
    if (p->error == YAML_READER_ERROR)
        place = arena_text(&y->c->arena, "%s: offset %zu", y->r->file, p->problem_offset);
    diag_error(y->c, place, "%s%s%s", context, *context ? ": " : "", problem);
    return false;
}

static bool read_document(Reading *y, yaml_parser_t *p)
{
    bool good = true;
    if (!yaml_parser_load(p, &y->document))
        return parse_failed(y, p);
    yaml_node_t *root = yaml_document_get_root_node(&y->document);
    if (root && !(root->type == YAML_SCALAR_NODE && !root->data.scalar.length))
        good = each_entry(y, root, "a map", recipe_entry, NULL);
    bool more = root != NULL;
    yaml_document_delete(&y->document);
    if (!good || !more)
        return good;
    if (!yaml_parser_load(p, &y->document))
        return parse_failed(y, p);
    root = yaml_document_get_root_node(&y->document);
    if (root)
        good = wrong(y, root, "a second document follows; expected one");
    yaml_document_delete(&y->document);
    return good;
}

bool recipe_read(Compilation *c, const char *path)
{
    Reading y = {.c = c, .r = &c->recipe, .path = path};
    const char *slash = strrchr(path, '/');
    const uint8_t *bytes = NULL;
    uint64_t size = 0;
    yaml_parser_t parser;
    c->recipe.file = slash ? slash + 1 : path;
    int file = open(path, O_RDONLY | O_NONBLOCK);
    const char *reason = file < 0 ? strerror(errno) : map_whole(file, &bytes, &size);
    if (!reason && size > MAX_RECIPE_BYTES)
        reason = "it is larger than 16 MiB";
    if (!reason && !yaml_parser_initialize(&parser))
        fault("recipe", "no memory left");
    if (reason) {
        diag_error(c, c->recipe.file, "the recipe cannot be read: %s", reason);
        return false;
    }
    yaml_parser_set_input_string(&parser, bytes ? bytes : (const uint8_t *)"", (size_t)size);
    bool good = read_document(&y, &parser);
    yaml_parser_delete(&parser);
    return good;
}
