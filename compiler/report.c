/* report.c - the report of a compilation, for people and as JSON: from the compilation itself and from `report`, where
 * late passes leave the figures that only they know. */
#include "report.h"
#include "lower.h"
#include "schema.h"

#include <ctype.h>
#include <string.h>

#define WIDTH 100 /* columns before a list goes on in the next line */

Report report = {.weights = -1, .state = -1, .arena = -1, .arena_lower = -1, .metadata = -1, .io = -1, .plan_bytes = -1};

static const char *human(Compilation *c, int64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double n = (double)bytes;
    size_t unit = 0;
    while (n >= 1000 && unit + 1 < COUNT_OF(units)) {
        n /= 1000;
        unit++;
    }
    return arena_text(&c->arena, "%.*f %s", unit && n < 9.95 ? 1 : 0, n, units[unit]);
}

static int live_nodes(const Compilation *c)
{
    int count = 0;
    for (uint32_t i = 1; i <= c->graph.node_count; i++)
        count += !c->graph.nodes[i].dead;
    return count;
}

static int64_t weight_bytes(const Compilation *c)
{
    int64_t sum = 0;
    for (uint32_t i = 1; i <= c->graph.value_count && report.weights < 0; i++)
        if (c->graph.values[i].data)
            sum += (int64_t)c->graph.values[i].data->size;
    return report.weights < 0 ? sum : report.weights;
}

static const char *weight_file(const Compilation *c)
{
    for (uint32_t i = 1; i <= c->graph.value_count && !report.weights_in; i++)
        if (c->graph.values[i].data && c->graph.values[i].data->file)
            return c->graph.values[i].data->file;
    return report.weights_in;
}

static void print_model(Compilation *c, FILE *out)
{
    const char *title = report.title ? report.title : c->graph.name && *c->graph.name ? c->graph.name : "model";
    const char *file = weight_file(c);
    fprintf(out, "%s: %s%s, %d nodes, %s weights", c->file, title, !report.title && c->pair_count ? " (decoder)" : "",
            live_nodes(c), human(c, weight_bytes(c)));
    if (file)
        fprintf(out, " (%s)", file);
    fputc('\n', out);
}

/* ---- states */

/* The name with each number in it replaced by N. */
static const char *pattern(Compilation *c, const char *name)
{
    Text t = {0};
    text_add(&t, "%s", "");
    while (*name)
        if (isdigit((unsigned char)*name)) {
            text_add(&t, "N");
            while (isdigit((unsigned char)*name))
                name++;
        } else {
            text_add_bytes(&t, name++, 1);
        }
    const char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

static const char *pair_pattern(Compilation *c, const StatePair *p)
{
    return arena_text(&c->arena, "%s -> %s", pattern(c, p->input_name), pattern(c, p->output_name));
}

static const char *update_text(Compilation *c)
{
    static const char *const words[] = {"appended in place", "written in place", "copied"};
    int counts[3] = {0};
    for (int i = 0; i < c->pair_count; i++)
        counts[c->pairs[i].update]++;
    const char *text = "";
    for (int k = 0; k < 3; k++)
        if (counts[k] == c->pair_count)
            return words[k];
        else if (counts[k])
            text = arena_text(&c->arena, "%s%s%d %s", text, *text ? ", " : "", counts[k], words[k]);
    return text;
}

static void print_states(Compilation *c, FILE *out)
{
    if (!c->pair_count)
        return;
    fprintf(out, "states      %d pair%s %s (", c->pair_count, c->pair_count == 1 ? "" : "s",
            c->recipe.file && c->recipe.pair_count ? "by recipe" : "by name");
    for (int i = 0, shown = 0; i < c->pair_count; i++) {
        const char *text = pair_pattern(c, &c->pairs[i]);
        bool seen = false;
        for (int k = 0; k < i && !seen; k++)
            seen = !strcmp(text, pair_pattern(c, &c->pairs[k]));
        if (!seen && shown++ < 6)
            fprintf(out, "%s%s", shown > 1 ? ", " : "", text);
    }
    fprintf(out, "), %s\n", update_text(c));
}

/* ---- symbols */

typedef struct Line { FILE *out; int column; } Line; /* items in columns after "symbols     " */

static void line_item(Line *l, const char *text)
{
    int size = (int)strlen(text);
    if (l->column + size > WIDTH && l->column > 12) {
        fprintf(l->out, "\n%12s", "");
        l->column = 12;
    } else if (l->column > 12) {
        fputs("   ", l->out);
        l->column += 3;
    }
    fputs(text, l->out);
    l->column += size;
}

static const char *range_text(Compilation *c, int64_t lo, int64_t hi)
{
    if (lo == hi)
        return arena_text(&c->arena, "%lld", (long long)lo);
    if (hi == INT64_MAX)
        return arena_text(&c->arena, "%lld..", (long long)lo);
    return arena_text(&c->arena, "%lld..%lld", (long long)lo, (long long)hi);
}

static const char *symbol_text(Compilation *c, Sym y)
{
    const Symbol *s = &c->symbols[y];
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    const char *each = "";
    bool same = true;
    const Signature *first = NULL;
    for (int i = 0; i < c->signature_count; i++) {
        const Signature *g = &c->signatures[i];
        if (g->kind == SIG_LOAD)
            continue;
        first = first ? first : g;
        same &= g->lo[y] == first->lo[y] && g->hi[y] == first->hi[y];
        lo = g->lo[y] < lo ? g->lo[y] : lo;
        hi = g->hi[y] > hi ? g->hi[y] : hi;
        each = arena_text(&c->arena, "%s%s%s %s", each, *each ? ", " : "", g->name, range_text(c, g->lo[y], g->hi[y]));
    }
    if (!first) {
        lo = s->lo;
        hi = s->hi;
    }
    if (s->class == SYM_GROWING)
        return arena_text(&c->arena, "%s: growing, %s", s->name, range_text(c, lo, hi));
    if (same)
        return arena_text(&c->arena, "%s%s%s", s->name, lo == hi ? " = " : ": ", range_text(c, lo, hi));
    return arena_text(&c->arena, "%s: %s", s->name, each);
}

static bool symbol_in_input(Compilation *c, Sym y)
{
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        for (int k = 0; k < v->rank; k++)
            if (v->dims[k] && dim_mentions(c, dim_resolve(c, v->dims[k]), y))
                return true;
    }
    return false;
}

static bool symbol_shown(Compilation *c, Sym y)
{
    return !c->symbols[y].equals && (y == c->position || symbol_in_input(c, y));
}

/* An input's dim that has a name of its own but is decided by equations. NULL: none. */
static const char *equation_text(Compilation *c, const Value *v, int axis)
{
    Dim d = v->dims[axis], solved = dim_resolve(c, d);
    if (!d || !solved || d == solved || v->state)
        return NULL;
    const char *text = dim_text(c, d), *quote = *text == '"' ? "" : "\"";
    return arena_text(&c->arena, "%s dim %d %s%s%s = %s (proved)", v->name, axis, quote, text, quote, dim_text(c, solved));
}

static void print_symbols(Compilation *c, FILE *out)
{
    Line l = {out, 12};
    fputs("symbols     ", out);
    for (Sym y = 1; y <= c->symbol_count; y++)
        if (symbol_shown(c, y))
            line_item(&l, symbol_text(c, y));
    fputs(l.column > 12 ? "\n" : "none\n", out);
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        for (int k = 0; k < v->rank; k++) {
            const char *text = equation_text(c, v, k);
            if (text)
                fprintf(out, "%12s%s\n", "", text);
        }
    }
}

/* ---- signatures, memory, output */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void print_logits(const Compilation *c, FILE *out)
{
    if (c->logits_rows == ROWS_LAST) fputs("logits      of a step's last row\n", out);
    if (c->logits_rows == ROWS_ALL) fputs("logits      of all rows of a step: their last row is made no faster alone\n", out);
}

static void print_signatures(FILE *out)
{
    for (int i = 0; i < report.signature_count; i++) {
        const SignatureReport *s = &report.signatures[i];
        if (!s->launches)
            continue;
        fprintf(out, "%-10s  %d segment%s, %d launch%s, %d seam%s\n", s->name, s->segments, plural(s->segments), s->launches,
                s->launches == 1 ? "" : "es", s->seam_count, plural(s->seam_count));
        if (s->if_nodes + s->while_nodes)
            fprintf(out, "%12s%d IF node%s, %d WHILE node%s\n", "", s->if_nodes, plural(s->if_nodes), s->while_nodes, plural(s->while_nodes));
        if (s->seams)
            fputs(s->seams, out);
    }
}

/* End of the last buffer of a region; what the pass itself said comes first. */
static int64_t region_bytes(const Compilation *c, Region r, int64_t said)
{
    int64_t end = 0;
    for (uint32_t i = 1; i <= c->buffer_count && said < 0; i++)
        if (c->buffers[i].region == r && c->buffers[i].offset + c->buffers[i].bytes > end)
            end = c->buffers[i].offset + c->buffers[i].bytes;
    return said < 0 ? end : said;
}

static void print_memory(Compilation *c, FILE *out)
{
    if (!c->buffer_count)
        return;
    fprintf(out, "memory      weights %s  state %s  arena %s", human(c, weight_bytes(c)),
            human(c, region_bytes(c, REGION_STATE, report.state)), human(c, region_bytes(c, REGION_ARENA, report.arena)));
    if (report.arena_lower >= 0)
        fprintf(out, " (lower bound %s)", human(c, report.arena_lower));
    fprintf(out, "  metadata %s  io %s\n", human(c, region_bytes(c, REGION_METADATA, report.metadata)),
            human(c, region_bytes(c, REGION_IO, report.io)));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *seams_text(Compilation *c, const Lower *l)
{
    Text t = {0};
    for (int i = 0; i < l->seam_count; i++) {
        const Seam *s = &l->seams[i];
        text_add(&t, "  seam %d at node '%s': %s: %s\n         remedy: %s\n", i + 1, c->graph.nodes[s->node].name,
                 plan_seam_reason_text((uint32_t)s->reason), s->detail, s->remedy);
    }
    const char *text = t.data ? arena_copy(&c->arena, t.data) : NULL;
    text_free(&t);
    return text;
}

static void count_blocks(const Lower *l, SignatureReport *r)
{
    for (int i = 0; l && i < l->block_count; i++)
        if (l->blocks[i].seam < 0) ++*(l->blocks[i].kind == BLOCK_WHILE ? &r->while_nodes : &r->if_nodes);
}

void report_fill(Compilation *c)
{
    const RegionSizes *r = &c->regions;
    report.weights = r->bytes[REGION_WEIGHTS];
    report.state = r->bytes[REGION_STATE];
    report.arena = r->bytes[REGION_ARENA];
    report.metadata = r->bytes[REGION_METADATA];
    report.io = r->bytes[REGION_IO];
    report.arena_lower = 0;
    report.signature_count = c->signature_count;
    report.signatures = NEW_ARRAY(c, SignatureReport, c->signature_count);
    for (int i = 0; i < c->signature_count; i++) {
        const Lower *l = c->signatures[i].lower;
        report.signatures[i].name = c->signatures[i].name;
        report.signatures[i].launches = l ? l->launch_count : 0;
        report.signatures[i].segments = l ? l->segment_count : 0;
        report.signatures[i].seam_count = l ? l->seam_count : 0;
        report.signatures[i].seams = l ? seams_text(c, l) : NULL;
        count_blocks(l, &report.signatures[i]);
        if (l && l->arena_lower_bound > report.arena_lower)
            report.arena_lower = l->arena_lower_bound;
    }
}

void report_print(Compilation *c, FILE *out)
{
    print_model(c, out);
    print_states(c, out);
    print_symbols(c, out);
    print_logits(c, out);
    print_signatures(out);
    print_memory(c, out);
    if (report.targets) {
        fputs("targets     ", out);
        for (const char *p = report.targets; *p; p++)
            fputs((char[]){*p, *p == ',' && p[1] != ' ' ? ' ' : 0, 0}, out);
        fputc('\n', out);
    }
    if (c->options.output_path && !c->options.check_only) {
        fprintf(out, "%-10s  ", base_name(c->options.output_path));
        if (report.plan_bytes >= 0)
            fprintf(out, "%s in ", human(c, report.plan_bytes));
        fprintf(out, "%.1f s\n", report.seconds);
    }
}

bool report_single_segment(Compilation *c, const char *name, FILE *out)
{
    bool good = true, found = false;
    for (int i = 0; i < report.signature_count; i++) {
        const SignatureReport *s = &report.signatures[i];
        if (name && strcmp(s->name, name) != 0)
            continue;
        found = true;
        if (s->segments <= 1 && !s->seam_count)
            continue;
        fprintf(out, "%s: %s has %d segment%s\n%s", c->file, s->name, s->segments, plural(s->segments), s->seams ? s->seams : "");
        good = false;
    }
    if (name && !found) {
        fprintf(out, "%s: no signature is named '%s'\n", c->file, name);
        return false;
    }
    return good;
}

/* ---- JSON */

static void json_string(FILE *out, const char *s)
{
    fputc('"', out);
    for (s = s ? s : ""; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            fprintf(out, "\\%c", ch);
        else if (ch < 32)
            fprintf(out, "\\u%04x", ch);
        else
            fputc(ch, out);
    }
    fputc('"', out);
}

static void json_symbols(Compilation *c, FILE *out)
{
    static const char *const classes[] = {"fixed", "ranged", "growing", "data", "unknown", "derived"};
    const char *before = "";
    fputs(",\n  \"symbols\": [", out);
    for (Sym y = 1; y <= c->symbol_count; y++) {
        if (!c->symbols[y].declared)
            continue;
        fprintf(out, "%s\n    {\"name\": ", before);
        json_string(out, c->symbols[y].name);
        fprintf(out, ", \"class\": \"%s\"", classes[c->symbols[y].class]);
        if (c->symbols[y].equals) {
            fputs(", \"equals\": ", out);
            json_string(out, dim_text(c, dim_resolve(c, c->symbols[y].equals)));
        }
        for (int i = 0; i < c->signature_count; i++)
            if (c->signatures[i].kind != SIG_LOAD && !c->symbols[y].equals) {
                fputs(", ", out);
                json_string(out, c->signatures[i].name);
                fprintf(out, ": [%lld, %lld]", (long long)c->signatures[i].lo[y], (long long)c->signatures[i].hi[y]);
            }
        fputs("}", out);
        before = ",";
    }
    fputs("]", out);
}

static void json_states(Compilation *c, FILE *out)
{
    static const char *const updates[] = {"append", "write", "copy"};
    fputs(",\n  \"states\": [", out);
    for (int i = 0; i < c->pair_count; i++) {
        fprintf(out, "%s\n    {\"input\": ", i ? "," : "");
        json_string(out, c->pairs[i].input_name);
        fputs(", \"output\": ", out);
        json_string(out, c->pairs[i].output_name);
        fprintf(out, ", \"growing_axis\": %d, \"update\": \"%s\"}", c->pairs[i].growing_axis, updates[c->pairs[i].update]);
    }
    fputs("]", out);
}

static void json_signatures(FILE *out)
{
    fputs(",\n  \"signatures\": [", out);
    for (int i = 0; i < report.signature_count; i++) {
        const SignatureReport *s = &report.signatures[i];
        fprintf(out, "%s\n    {\"name\": ", i ? "," : "");
        json_string(out, s->name);
        fprintf(out, ", \"segments\": %d, \"launches\": %d, \"seams\": %d, \"if_nodes\": %d, \"while_nodes\": %d}", s->segments, s->launches, s->seam_count,
                s->if_nodes, s->while_nodes);
    }
    fputs("]", out);
}

void report_json(Compilation *c, FILE *out)
{
    fputs("{\n  \"model\": ", out);
    json_string(out, c->file);
    fprintf(out, ",\n  \"nodes\": %d,\n  \"weights\": %lld", live_nodes(c), (long long)weight_bytes(c));
    json_states(c, out);
    json_symbols(c, out);
    json_signatures(out);
    fprintf(out, ",\n  \"memory\": {\"state\": %lld, \"arena\": %lld, \"arena_lower\": %lld, \"metadata\": %lld, \"io\": %lld}",
            (long long)region_bytes(c, REGION_STATE, report.state), (long long)region_bytes(c, REGION_ARENA, report.arena),
            (long long)report.arena_lower, (long long)region_bytes(c, REGION_METADATA, report.metadata),
            (long long)region_bytes(c, REGION_IO, report.io));
    fputs(",\n  \"targets\": ", out);
    json_string(out, report.targets);
    fprintf(out, ",\n  \"plan\": {\"file\": ");
    json_string(out, c->options.check_only ? "" : c->options.output_path);
    fprintf(out, ", \"bytes\": %lld},\n  \"seconds\": %.3f\n}\n", (long long)report.plan_bytes, report.seconds);
}
