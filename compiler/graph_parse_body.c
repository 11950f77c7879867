/* graph_parse_body.c - the lines of one graph in the text form: values with their constants, nodes with their attributes. */
#include "graph.h"
#include "ops/ops.h"
#include "parse.h"
#include "../runtime/checksum.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- constant bytes */

static void read_hex(Parser *p, Data *d)
{
    Scan *s = &p->s;
    size_t size = 0;
    while (isxdigit((unsigned char)s->at[size]))
        size++;
    if (size % 2) {
        scan_error(s, "an odd number of hexadecimal digits");
        return;
    }
    unsigned char *bytes = arena_alloc(&p->c->arena, size / 2 + 1);
    for (size_t i = 0; i < size / 2; i++) {
        char pair[3] = {s->at[2 * i], s->at[2 * i + 1], 0};
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    s->at += size;
    d->bytes = bytes;
    d->size = size / 2;
}

static void open_model(Parser *p)
{
    if (p->model.bytes || p->model.failed)
        return;
    const char *path = p->c->options.model_path, *reason = "it is empty";
    int file = path && *path ? open(path, O_RDONLY) : -1;
    if (file >= 0)
        reason = map_whole(file, &p->model.bytes, &p->model.size);
    else
        reason = path && *path ? strerror(errno) : "the text names none";
    if (reason) {
        scan_error(&p->s, "the model '%s': %s", path ? path : "", reason);
        p->model.failed = true;
    }
}

/* Maps what the reference names; the checksum tells another model apart. */
static void map_reference(Parser *p, Data *d, bool summed, uint64_t checksum)
{
    if (d->file) {
        ExternalPlace where = {.location = d->file,
                               .offset = arena_text(&p->c->arena, "%llu", (unsigned long long)d->file_offset),
                               .length = arena_text(&p->c->arena, "%llu", (unsigned long long)d->size)};
        if (!external_find(p->c, &p->files, arena_text(&p->c->arena, "line %d", p->s.number), &where, d->size, d))
            p->s.failed = true;
    } else {
        open_model(p);
        if (!p->s.failed && (d->file_offset > p->model.size || d->size > p->model.size - d->file_offset))
            scan_error(&p->s, "data at %llu+%llu is outside of the model, which has %llu bytes",
                       (unsigned long long)d->file_offset, (unsigned long long)d->size, (unsigned long long)p->model.size);
        else if (!p->s.failed)
            d->bytes = p->model.bytes + d->file_offset;
    }
    if (!summed || p->s.failed || !d->bytes)
        return;
    plan_checksum_state state;
    plan_checksum_begin(&state);
    plan_checksum_add(&state, d->bytes, d->size);
    if (plan_checksum_end(&state) != checksum)
        scan_error(&p->s, "the data's checksum is %016llx, the text says %016llx",
                   (unsigned long long)plan_checksum_end(&state), (unsigned long long)checksum);
}

static Data *read_data(Parser *p)
{
    Scan *s = &p->s;
    Data *d = NEW(p->c, Data);
    bool here = scan_take(s, "0x");
    if (here)
        read_hex(p, d);
    if (!scan_take(s, "@")) {
        if (!here)
            scan_error(s, "expected 0xHEX or @FILE:OFFSET+SIZE, found '%.20s'", s->at);
        return d;
    }
    const char *file = scan_name(s);
    scan_want(s, ":");
    d->file = *file ? file : NULL;
    d->file_offset = (uint64_t)scan_int(s, 0, INT64_MAX);
    scan_want(s, "+");
    uint64_t size = (uint64_t)scan_int(s, 0, INT64_MAX);
    if (here && size != d->size)
        scan_error(s, "%llu bytes are given, and %llu referred to", (unsigned long long)d->size, (unsigned long long)size);
    d->size = size;
    bool summed = scan_take(s, "#");
    uint64_t checksum = summed ? scan_hex(s) : 0;
    if (!here && !s->failed)
        map_reference(p, d, summed, checksum);
    return d;
}

/* ---- values */

static Feed read_feed(Scan *s)
{
    const char *name = scan_name(s);
    for (int f = FEED_CALLER; f <= FEED_WRITE_INDEX; f++)
        if (!strcmp(name, feed_name((Feed)f)))
            return (Feed)f;
    scan_error(s, "no feed is named '%s'", name);
    return FEED_CALLER;
}

static Dim read_each(Scan *s)
{
    int count;
    const Dim *each = scan_dims(s, '[', ']', 1, &count);
    if (count == 1 && each[0])
        return each[0];
    scan_error(s, "one dim is expected");
    return 0;
}

static uint32_t value_index(Parser *p)
{
    scan_want(&p->s, "%");
    uint32_t index = (uint32_t)scan_int(&p->s, 1, p->values ? p->values : 1);
    if (!p->values)
        scan_error(&p->s, "the graph has no values");
    return index;
}

/* Elements of a list of values: a count of commas is enough room. */
static uint32_t *list_room(Parser *p)
{
    size_t room = 1;
    for (const char *at = p->s.at; *at; at++)
        room += *at == ',';
    return NEW_ARRAY(p->c, uint32_t, room);
}

static void read_list_items(Parser *p, Value *v, bool optional)
{
    v->list = NEW(p->c, List);
    v->list->optional = optional;
    v->list->items = list_room(p);
    if (scan_take(&p->s, ")"))
        return;
    do
        v->list->items[v->list->count++] = value_index(p);
    while (scan_take(&p->s, ","));
    scan_want(&p->s, ")");
}

static void read_value_flags(Parser *p, Value *v)
{
    Scan *s = &p->s;
    while (scan_take(s, "!")) {
        if (scan_take(s, "seq("))
            read_list_items(p, v, false);
        else if (scan_take(s, "opt("))
            read_list_items(p, v, true);
        else if (scan_take(s, "const"))
            v->is_constant = true;
        else if (scan_take(s, "in"))
            v->is_input = true;
        else if (scan_take(s, "out"))
            v->is_output = true;
        else if (scan_take(s, "feed="))
            v->feed = read_feed(s);
        else if (scan_take(s, "each="))
            v->each = read_each(s);
        else if (scan_take(s, "state="))
            v->state = scan_index(s, (uint32_t)p->c->pair_count);
        else if (scan_take(s, "proof="))
            v->proof = scan_index(s, p->c->proof_count);
        else
            scan_error(s, "unknown flag '!%.20s'", s->at);
    }
}

static void check_size(Parser *p, const Value *v)
{
    int64_t count;
    if (v->data && !p->s.failed && value_count(p->c, v, &count) && (uint64_t)dtype_bytes(v->dtype, count) > v->data->size)
        scan_error(&p->s, "value '%s' has %llu bytes for %lld elements of %s", v->name, (unsigned long long)v->data->size,
                   (long long)count, dtype_name(v->dtype));
}

/* A value's text; its index. */
static uint32_t read_value(Parser *p)
{
    Scan *s = &p->s;
    int count;
    uint32_t index = value_index(p);
    if (s->failed)
        return 0;
    if (p->seen[index] & 2) {
        scan_error(s, "value %%%u stands here for the second time", index);
        return 0;
    }
    p->seen[index] |= 2;
    Value *v = &p->g->values[index];
    *v = (Value){.name = scan_name(s), .rank = -1, .contents_count = -1};
    if (!scan_take(s, "?")) {
        const char *dtype = scan_name(s);
        v->dtype = dtype_from_name(dtype);
        if (!v->dtype)
            scan_error(s, "no dtype is named '%s'", dtype);
    }
    if (!scan_take(s, "[*]")) {
        Dim *dims = scan_dims(s, '[', ']', MAX_RANK, &count);
        v->rank = count;
        if (count)
            memcpy(v->dims, dims, sizeof *dims * (size_t)count);
    }
    if (*s->at == '<') {
        v->contents = scan_dims(s, '<', '>', MAX_CONTENTS, &count);
        v->contents_count = count;
    }
    read_value_flags(p, v);
    if (scan_take(s, ":"))
        v->data = read_data(p);
    check_size(p, v);
    return index;
}

/* ---- nodes */

static void read_outputs(Parser *p, Node *n, uint32_t node)
{
    Scan *s = &p->s;
    n->outputs = list_room(p);
    if (scan_take(s, "="))
        return;
    do {
        uint32_t v = scan_take(s, "_") ? 0 : read_value(p);
        if (v) {
            p->g->values[v].producer = node;
            p->g->values[v].output_index = (uint32_t)n->output_count;
        }
        n->outputs[n->output_count++] = v;
    } while (scan_take(s, ","));
    scan_want(s, "=");
}

static void read_inputs(Parser *p, Node *n)
{
    Scan *s = &p->s;
    n->inputs = list_room(p);
    scan_want(s, "(");
    if (scan_take(s, ")"))
        return;
    do {
        uint32_t v = scan_take(s, "_") ? 0 : value_index(p);
        if (v && !s->failed && !(p->seen[v] & 2)) {
            scan_error(s, "%%%u is used before the line that makes it", v);
            return;
        }
        n->inputs[n->input_count++] = v;
    } while (scan_take(s, ","));
    scan_want(s, ")");
}

static bool number_is_float(const char *at)
{
    size_t size = strcspn(at, ",]} ");
    for (size_t i = 0; i < size; i++)
        if (strchr(".enaif", at[i]))
            return true;
    return false;
}

static double read_float(Scan *s)
{
    char *end;
    if (s->failed)
        return 0;
    (void)scan_at_end(s);
    double f = strtod(s->at, &end);
    if (end == s->at)
        scan_error(s, "expected a number, found '%.20s'", s->at);
    else if (*end == 'd')
        end++;
    else
        f = (double)strtof(s->at, &end);
    s->at = end;
    return f;
}

static void read_list(Parser *p, Attr *a)
{
    Scan *s = &p->s;
    size_t room = 1;
    for (const char *at = s->at; *at; at++)
        room += *at == ',';
    (void)scan_at_end(s);
    a->kind = *s->at == '"' ? ATTR_STRINGS : ATTR_INTS;
    for (const char *at = s->at; a->kind == ATTR_INTS && *at && *at != ']'; at += strcspn(at, ",]"), at += *at == ',')
        if (number_is_float(at + strspn(at, " ")))
            a->kind = ATTR_FLOATS;
    a->ints = NEW_ARRAY(p->c, int64_t, room);
    a->floats = NEW_ARRAY(p->c, double, room);
    a->strings = NEW_ARRAY(p->c, const char *, room);
    do {
        if (a->kind == ATTR_STRINGS)
            a->strings[a->count] = scan_name(s);
        else if (a->kind == ATTR_FLOATS)
            a->floats[a->count] = read_float(s);
        else
            a->ints[a->count] = scan_int(s, INT64_MIN, INT64_MAX);
        a->count++;
    } while (!s->failed && scan_take(s, ","));
    scan_want(s, "]");
}

static void read_attr(Parser *p, Attr *a)
{
    Scan *s = &p->s;
    *a = (Attr){.name = scan_name(s), .present = true};
    scan_want(s, "=");
    (void)scan_at_end(s);
    if (scan_take(s, "none"))
        a->kind = ATTR_NONE;
    else if (scan_take(s, "ints[]"))
        a->kind = ATTR_INTS;
    else if (scan_take(s, "floats[]"))
        a->kind = ATTR_FLOATS;
    else if (scan_take(s, "strings[]"))
        a->kind = ATTR_STRINGS;
    else if (scan_take(s, "["))
        read_list(p, a);
    else if (*s->at == '"') {
        a->kind = ATTR_STRING;
        a->s = scan_name(s);
    } else if (*s->at == '%') {
        a->kind = ATTR_TENSOR;
        a->tensor = value_index(p);
        p->seen[s->failed ? 0 : a->tensor] |= 1;
    } else if (scan_take(s, "type")) {
        a->kind = ATTR_TYPE;
    } else if (scan_take(s, "graph ")) {
        a->kind = ATTR_GRAPH;
        a->graph = scan_index(s, p->c->subgraph_count);
    } else if (number_is_float(s->at)) {
        a->kind = ATTR_FLOAT;
        a->f = read_float(s);
    } else {
        a->kind = ATTR_INT;
        a->i = scan_int(s, INT64_MIN, INT64_MAX);
    }
}

static void read_attrs(Parser *p, Node *n)
{
    uint32_t room = 0;
    if (!scan_take(&p->s, "{"))
        return;
    do {
        n->attrs = parse_grown(p->c, n->attrs, (uint32_t)n->attr_count, &room, sizeof *n->attrs);
        read_attr(p, &n->attrs[n->attr_count++]);
    } while (!p->s.failed && scan_take(&p->s, ","));
    scan_want(&p->s, "}");
}

static void read_node_flags(Parser *p, Node *n, bool *raw)
{
    Scan *s = &p->s;
    *raw = false;
    while (scan_take(s, "!")) {
        if (scan_take(s, "raw"))
            *raw = true;
        else if (scan_take(s, "constant"))
            n->constant = true;
        else if (scan_take(s, "dead"))
            n->dead = true;
        else if (scan_take(s, "fused="))
            n->fused_into = scan_index(s, p->nodes);
        else if (scan_take(s, "together="))
            n->together = scan_index(s, p->nodes);
        else if (scan_take(s, "gate="))
            n->gate = scan_index(s, p->nodes);
        else if (scan_take(s, "inplace="))
            n->inplace = scan_index(s, UINT32_MAX);
        else
            scan_error(s, "unknown flag '!%.20s'", s->at);
    }
}

static void read_node(Parser *p)
{
    Scan *s = &p->s;
    if (p->g->node_count == p->nodes) {
        scan_error(s, "the head of the graph promises %u nodes", p->nodes);
        return;
    }
    uint32_t index = p->g->node_count + 1;
    Node *n = &p->g->nodes[index];
    bool raw;
    read_outputs(p, n, index);
    const char *name = scan_name(s);
    n->domain = scan_take(s, "::") ? name : "";
    n->op_type = *n->domain ? scan_name(s) : name;
    scan_want(s, "-");
    n->opset = (int)scan_int(s, 0, INT32_MAX);
    read_inputs(p, n);
    read_attrs(p, n);
    n->name = scan_name(s);
    if (!*n->name)
        scan_error(s, "a node's name is empty");
    read_node_flags(p, n, &raw);
    scan_want_end(s);
    if (s->failed)
        return;
    p->g->node_count = index;
    if (n->fused_into && n->fused_into < index) /* behind it: an epilogue */
        p->g->nodes[n->fused_into].epilogue = index;
    if (n->fused_into == index)
        scan_error(s, "a node is fused into itself");
    if (!raw)
        (void)node_resolve(p->c, n); /* faults are collected: the text is read on, to find them all */
}

/* `%...` is a node's line when an output list is followed by '=' outside of quotes and brackets. */
static bool line_is_node(const char *at)
{
    int depth = 0;
    bool quote = false;
    for (; *at; at++) {
        if (quote) {
            if (*at == '\\' && at[1])
                at++;
            else if (*at == '"')
                quote = false;
        } else if (*at == '"') {
            quote = true;
        } else if (strchr("[(<", *at)) {
            depth++;
        } else if (strchr("])>", *at)) {
            depth--;
        } else if (*at == '=' && depth == 0 && (at[1] == ' ')) {
            return true;
        }
    }
    return false;
}

/* ---- graphs */

static uint32_t *read_value_list(Parser *p, uint32_t *count)
{
    Scan *s = &p->s;
    size_t room = 1;
    for (const char *at = s->at; *at; at++)
        room += *at == '%';
    uint32_t *list = NEW_ARRAY(p->c, uint32_t, room);
    *count = 0;
    while (!s->failed && !scan_at_end(s)) {
        list[*count] = value_index(p);
        p->seen[s->failed ? 0 : list[*count]] |= 1;
        ++*count;
    }
    return list;
}

void parse_graph_begin(Parser *p, Graph *g)
{
    Scan *s = &p->s;
    *g = (Graph){.name = scan_name(s)};
    int64_t most = p->size > 100000000 ? 100000000 : (int64_t)p->size;
    p->values = (uint32_t)scan_field(s, "values", 0, most);
    p->nodes = (uint32_t)scan_field(s, "nodes", 0, most);
    scan_want_end(s);
    g->value_count = p->values;
    g->value_room = p->values + 2;
    g->values = NEW_ARRAY(p->c, Value, g->value_room);
    g->node_room = p->nodes + 2;
    g->nodes = NEW_ARRAY(p->c, Node, g->node_room);
    p->seen = NEW_ARRAY(p->c, unsigned char, p->values + 1);
    p->g = g;
}

static void end_graph(Parser *p)
{
    Scan *s = &p->s;
    Graph *g = p->g;
    scan_want_end(s);
    if (g->node_count != p->nodes)
        scan_error(s, "the graph has %u nodes, its head promises %u", g->node_count, p->nodes);
    for (uint32_t v = 1; v <= p->values; v++)
        if (!(p->seen[v] & 2))
            scan_error(s, "value %%%u has no line", v);
    for (uint32_t i = 0; i < g->input_count; i++)
        if (!g->values[g->inputs[i]].is_input)
            scan_error(s, "graph input %%%u is not marked !in", g->inputs[i]);
    for (uint32_t i = 0; i < g->output_count; i++)
        if (!g->values[g->outputs[i]].is_output)
            scan_error(s, "graph output %%%u is not marked !out", g->outputs[i]);
    graph_count_uses(p->c, g);
    p->main_done |= g == &p->c->graph;
    p->g = NULL;
}

void parse_graph_line(Parser *p)
{
    Scan *s = &p->s;
    if (*s->at == '%' || *s->at == '=' || *s->at == '_') {
        if (line_is_node(s->at)) {
            read_node(p);
        } else {
            read_value(p);
            scan_want_end(s);
        }
    } else if (scan_take(s, "inputs"))
        p->g->inputs = read_value_list(p, &p->g->input_count);
    else if (scan_take(s, "outputs"))
        p->g->outputs = read_value_list(p, &p->g->output_count);
    else if (scan_take(s, "end"))
        end_graph(p);
    else
        scan_error(s, "expected a value, a node, or end; found '%.20s'", s->at);
}
