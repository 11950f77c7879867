/* graph_parse.c - reads the exact text form; graph_text.c has its grammar. Everything is checked: the text may come from
 * anywhere, and what is read must pass graph_verify. */
#include "dim.h"
#include "graph.h"
#include "parse.h"

#include <string.h>

void *parse_grown(Compilation *c, void *old, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return old;
    uint32_t wanted = *room ? *room * 2 : 64;
    void *fresh = arena_alloc(&c->arena, wanted * size);
    if (old)
        memcpy(fresh, old, count * size);
    *room = wanted;
    return fresh;
}

static void model_line(Parser *p)
{
    Scan *s = &p->s;
    const char *path = scan_name(s);
    if (!p->c->options.model_path && *path) {
        const char *slash = strrchr(path, '/');
        p->c->options.model_path = path;
        p->c->folder = !slash ? "." : slash == path ? "/" : arena_text(&p->c->arena, "%.*s", (int)(slash - path), path);
    }
    scan_want(s, "hash=");
    p->c->model_hash = scan_hex(s);
    p->c->ir_version = (int)scan_field(s, "ir", 0, INT32_MAX);
}

static SymClass read_class(Scan *s)
{
    const char *name = scan_name(s);
    for (int k = SYM_FIXED; k <= SYM_DERIVED; k++)
        if (!strcmp(symbol_class_names[k], name))
            return (SymClass)k;
    scan_error(s, "no class of symbols is named '%s'", name);
    return SYM_UNKNOWN;
}

static void symbol_line(Parser *p)
{
    Scan *s = &p->s;
    Compilation *c = p->c;
    uint32_t index = scan_index(s, UINT32_MAX - 2);
    const char *name = scan_name(s);
    if (!s->failed && (index != c->symbol_count + 1 || sym_find(c, name)))
        scan_error(s, "expected symbol %u with a name of its own, found %u '%s'", c->symbol_count + 1, index, name);
    if (s->failed)
        return;
    uint32_t room = p->symbol_room;
    p->lo = parse_grown(c, p->lo, index, &room, sizeof *p->lo);
    p->hi = parse_grown(c, p->hi, index, &p->symbol_room, sizeof *p->hi);
    SymClass class = read_class(s);
    p->lo[index] = scan_field(s, "lo", INT64_MIN, INT64_MAX);
    p->hi[index] = scan_field(s, "hi", p->lo[index], INT64_MAX);
    int keep = (int)scan_field(s, "keep", 0, INT32_MAX), slot = (int)scan_field(s, "slot", -1, INT32_MAX);
    uint32_t proof = (uint32_t)scan_field(s, "proof", 0, UINT32_MAX);
    Sym y = sym_new(c, name, scan_take(s, "declared"));
    c->symbols[y].class = class;
    c->symbols[y].keep = keep;
    c->symbols[y].slot = slot;
    c->symbols[y].proof = proof;
}

static void read_rule(Parser *p, uint32_t *node, const char **rule)
{
    *node = scan_take(&p->s, "node=") ? scan_index(&p->s, UINT32_MAX - 1) : 0;
    *rule = scan_take(&p->s, "rule=") ? scan_name(&p->s) : NULL;
}

static void solve_line(Parser *p)
{
    Scan *s = &p->s;
    Sym y = (Sym)scan_int(s, 1, p->c->symbol_count ? p->c->symbol_count : 1);
    scan_want(s, "=");
    Dim d = scan_dim(s);
    if (s->failed || !p->c->symbol_count)
        return;
    if (d && dim_mentions(p->c, d, y)) {
        scan_error(s, "symbol '%s' is solved by itself", p->c->symbols[y].name);
        return;
    }
    p->c->symbols[y].equals = d;
    read_rule(p, &p->c->symbols[y].solved_by, &p->c->symbols[y].solved_rule);
    dims_of(p->c)->epoch++;
}

static void equation_line(Parser *p)
{
    uint32_t node;
    const char *rule;
    Dim d = scan_dim(&p->s);
    read_rule(p, &node, &rule);
    if (!p->s.failed) pending_add(p->c, d, node, rule ? rule : "equation");
}

static void proof_line(Parser *p)
{
    Scan *s = &p->s;
    Compilation *c = p->c;
    if (scan_int(s, 0, UINT32_MAX) != c->proof_count + 1)
        scan_error(s, "expected proof %u", c->proof_count + 1);
    const char *fact = scan_name(s), *rule = scan_name(s);
    uint32_t node = (uint32_t)scan_field(s, "node", 0, UINT32_MAX);
    uint32_t because = (uint32_t)scan_field(s, "because", 0, c->proof_count);
    if (s->failed)
        return;
    uint32_t index = proof_add(c, rule, NULL, because, "%s", fact);
    c->proofs[index].fact = fact; /* proof_add may cut it */
    c->proofs[index].node = node;
}

static void roles_line(Parser *p)
{
    Scan *s = &p->s;
    Compilation *c = p->c;
    c->batch = (Sym)scan_field(s, "batch", 0, c->symbol_count);
    c->sequence = (Sym)scan_field(s, "sequence", 0, c->symbol_count);
    c->position = (Sym)scan_field(s, "position", 0, c->symbol_count);
    scan_want(s, "step");
    scan_want(s, "=");
    c->position_step = scan_dim(s);
}

static void state_line(Parser *p)
{
    Scan *s = &p->s;
    Compilation *c = p->c;
    int count;
    if (scan_int(s, 0, INT32_MAX) != c->pair_count + 1)
        scan_error(s, "expected state %d", c->pair_count + 1);
    StatePair *fresh = NEW_ARRAY(c, StatePair, c->pair_count + 1);
    if (c->pair_count)
        memcpy(fresh, c->pairs, sizeof *fresh * (size_t)c->pair_count);
    StatePair *pair = &fresh[c->pair_count];
    c->pairs = fresh;
    scan_want(s, "%");
    pair->input = (uint32_t)scan_int(s, 1, UINT32_MAX); /* checked when the graph is there */
    scan_want(s, "%");
    pair->output = (uint32_t)scan_int(s, 1, UINT32_MAX);
    pair->input_name = scan_name(s);
    pair->output_name = scan_name(s);
    pair->growing_axis = (int)scan_field(s, "axis", -1, MAX_RANK - 1);
    pair->update = (int)scan_field(s, "update", 0, 2);
    pair->proof = (uint32_t)scan_field(s, "proof", 0, c->proof_count);
    scan_want(s, "upper=");
    Dim *upper = scan_dims(s, '[', ']', MAX_RANK, &count);
    if (count)
        memcpy(pair->upper, upper, sizeof *upper * (size_t)count);
    c->pair_count++;
}

static void signature_line(Parser *p)
{
    Scan *s = &p->s;
    Compilation *c = p->c;
    Signature *fresh = NEW_ARRAY(c, Signature, c->signature_count + 1);
    if (c->signature_count)
        memcpy(fresh, c->signatures, sizeof *fresh * (size_t)c->signature_count);
    Signature *g = &fresh[c->signature_count];
    c->signatures = fresh;
    g->name = scan_name(s);
    g->kind = (int)scan_field(s, "kind", SIG_LOAD, SIG_MAIN);
    g->lo = NEW_ARRAY(c, int64_t, c->symbol_count + 1);
    g->hi = NEW_ARRAY(c, int64_t, c->symbol_count + 1);
    for (Sym y = 1; y <= c->symbol_count; y++) {
        g->lo[y] = p->lo[y];
        g->hi[y] = p->hi[y];
    }
    scan_want(s, "{");
    while (!s->failed && !scan_take(s, "}")) {
        Sym y = (Sym)scan_int(s, 1, c->symbol_count ? c->symbol_count : 1);
        scan_want(s, ":");
        int64_t lo = scan_int(s, INT64_MIN, INT64_MAX);
        scan_want(s, "..");
        int64_t hi = scan_int(s, lo, INT64_MAX);
        if (y <= c->symbol_count) {
            g->lo[y] = lo;
            g->hi[y] = hi;
        }
        if (!scan_take(s, ",") && *s->at != '}')
            scan_error(s, "expected ',' or '}', found '%.20s'", s->at);
    }
    c->signature_count++;
}

static void subgraph_line(Parser *p)
{
    Compilation *c = p->c;
    if (scan_int(&p->s, 0, UINT32_MAX) != c->subgraph_count)
        scan_error(&p->s, "expected subgraph %u", c->subgraph_count);
    Graph *fresh = NEW_ARRAY(c, Graph, c->subgraph_count + 1);
    if (c->subgraph_count)
        memcpy(fresh, c->subgraphs, sizeof *fresh * c->subgraph_count);
    c->subgraphs = fresh;
    parse_graph_begin(p, &fresh[c->subgraph_count++]);
}

static void table_line(Parser *p)
{
    static const struct { const char *word; void (*read)(Parser *p); } lines[] = {
        {"model ", model_line}, {"symbol ", symbol_line}, {"solve ", solve_line}, {"equation ", equation_line},
        {"proof ", proof_line}, {"roles ", roles_line}, {"state ", state_line}, {"signature ", signature_line},
    };
    Scan *s = &p->s;
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        if (scan_take(s, lines[i].word)) {
            lines[i].read(p);
            scan_want_end(s);
            return;
        }
    if (scan_take(s, "dim ")) {
        scan_dim(s);
        scan_want_end(s);
    } else if (scan_take(s, "capacity ")) {
        p->c->capacity = scan_int(s, 0, INT64_MAX);
        scan_want_end(s);
    } else if (scan_take(s, "subgraph ")) {
        subgraph_line(p);
    } else if (!p->main_done && scan_take(s, "graph ")) {
        parse_graph_begin(p, &p->c->graph);
    } else {
        scan_error(s, "unknown statement '%.20s'", s->at);
    }
}

/* ---- the whole */

static void check_whole(Parser *p)
{
    Compilation *c = p->c;
    Scan *s = &p->s;
    if (p->g)
        scan_error(s, "a graph has no end");
    else if (!p->main_done)
        scan_error(s, "the text has no graph");
    for (Sym y = 1; y <= c->symbol_count && !s->failed; y++) {
        c->symbols[y].lo = p->lo[y];
        c->symbols[y].hi = p->hi[y];
        if (c->symbols[y].proof > c->proof_count || c->symbols[y].solved_by > c->graph.node_count)
            scan_error(s, "symbol '%s' names a proof or node that is not there", c->symbols[y].name);
    }
    for (int i = 0; i < c->pair_count; i++)
        if (c->pairs[i].input > c->graph.value_count || c->pairs[i].output > c->graph.value_count)
            scan_error(s, "state %d names a value that is not there", i + 1);
    for (uint32_t i = 1; i <= c->proof_count; i++)
        if (c->proofs[i].node > c->graph.node_count)
            scan_error(s, "proof %u names a node that is not there", i);
}

bool graph_parse(Compilation *c, const char *text, size_t size, const char *file)
{
    Parser p = {.c = c, .size = size};
    const char *slash = strrchr(file, '/');
    c->file = slash ? slash + 1 : file;
    if (!c->folder)
        c->folder = "."; /* until a model line says otherwise */
    char *copy = arena_alloc(&c->arena, size + 1);
    if (size)
        memcpy(copy, text, size);
    scan_begin(&p.s, c, copy, file);
    if (strlen(copy) != size || !scan_line(&p.s) || !scan_take(&p.s, "gcc-plan-graph 1") || !scan_at_end(&p.s)) {
        diag_error(c, "line 1, column 1", "expected 'gcc-plan-graph 1' and lines of text");
        return false;
    }
    while (scan_line(&p.s))
        if (p.g)
            parse_graph_line(&p);
        else
            table_line(&p);
    check_whole(&p);
    return !p.s.failed && !diag_failed(c);
}
