/* recipe_print.c - what holds, as a recipe: read back, it gives the same plan. */
#include "recipe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool plain(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_./-", *s))
            return false;
    return true;
}

/* A YAML scalar; in double quotes unless it is a plain word. */
static const char *scalar(Compilation *c, const char *s)
{
    if (plain(s))
        return s;
    Text t = {0};
    text_add(&t, "\"");
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            text_add(&t, "\\%c", *s);
        else if ((unsigned char)*s < 32 || *s == 127)
            text_add(&t, "\\x%02X", (unsigned)(unsigned char)*s);
        else
            text_add(&t, "%c", *s);
    text_add(&t, "\"");
    const char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

/* Puts {N} for the digits at `from`; `to` gets it where the same digits stand first. NULL: they do not. */
static bool abstract(Compilation *c, const char *in, size_t from, size_t digits, const char *out, const char **in_pattern,
                     const char **out_pattern)
{
    for (const char *p = out; (p = strpbrk(p, "0123456789"));) {
        size_t n = strspn(p, "0123456789");
        if (n == digits && !strncmp(p, in + from, n)) {
            *in_pattern = arena_text(&c->arena, "%.*s{N}%s", (int)from, in, in + from + digits);
            *out_pattern = arena_text(&c->arena, "%.*s{N}%s", (int)(p - out), out, p + n);
            return true;
        }
        p += n;
    }
    return false;
}

/* The pattern says the same as the pairs: every input that matches is in a pair with the output that it then names. */
static bool pattern_holds(Compilation *c, const char *input, const char *output, int *matches)
{
    const Graph *g = &c->graph;
    Pattern in = pattern_of(input), out = pattern_of(output);
    *matches = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const Value *v = &g->values[g->inputs[i]];
        const char *number = pattern_match(c, &in, v->name);
        if (!number)
            continue;
        if (!v->state || strcmp(c->pairs[v->state - 1].output_name, pattern_fill(c, &out, number)))
            return false;
        ++*matches;
    }
    return true;
}

static void find_pattern(Compilation *c, const StatePair *p, const char **input, const char **output)
{
    const char *name = p->input_name;
    for (const char *at = name; (at = strpbrk(at, "0123456789"));) {
        size_t digits = strspn(at, "0123456789");
        const char *in, *out;
        int matches;
        if (abstract(c, name, (size_t)(at - name), digits, p->output_name, &in, &out) && pattern_holds(c, in, out, &matches) &&
            matches > 1) {
            *input = in;
            *output = out;
            return;
        }
        at += digits;
    }
    *input = name;
    *output = p->output_name;
}

static void print_states(Compilation *c, FILE *out)
{
    bool *done = NEW_ARRAY(c, bool, c->pair_count);
    fprintf(out, "states:%s\n", c->pair_count ? "" : " []");
    for (int i = 0; i < c->pair_count; i++) {
        const char *input, *output;
        if (done[i])
            continue;
        find_pattern(c, &c->pairs[i], &input, &output);
        Pattern in = pattern_of(input);
        for (int k = i; k < c->pair_count; k++)
            done[k] |= pattern_match(c, &in, c->pairs[k].input_name) != NULL;
        fprintf(out, "  - {input: %s, output: %s}\n", scalar(c, input), scalar(c, output));
    }
}

static void print_range(Compilation *c, FILE *out, const char *before, const Range *r)
{
    if (r->lo == r->hi)
        fprintf(out, "%s%s: %lld\n", before, scalar(c, r->symbol), (long long)r->lo);
    else
        fprintf(out, "%s%s: [%lld, %lld]\n", before, scalar(c, r->symbol), (long long)r->lo, (long long)r->hi);
}

static bool named_later(const Options *o, int from, const char *symbol)
{
    for (int i = from; i < o->max_count; i++)
        if (!strcmp(o->max[i].symbol, symbol))
            return true;
    return false;
}

/* The command line overrides the recipe, and its later options its earlier ones. */
static void print_symbols(Compilation *c, FILE *out)
{
    const Options *o = &c->options;
    if (c->recipe.range_count + o->max_count)
        fprintf(out, "symbols:\n");
    for (int i = 0; i < c->recipe.range_count; i++)
        if (!named_later(o, 0, c->recipe.ranges[i].symbol))
            print_range(c, out, "  ", &c->recipe.ranges[i]);
    for (int i = 0; i < o->max_count; i++)
        if (!named_later(o, i + 1, o->max[i].symbol))
            print_range(c, out, "  ", &o->max[i]);
}

static void print_sizes(Compilation *c, FILE *out)
{
    int64_t asked = c->options.capacity ? c->options.capacity : c->recipe.capacity;
    int64_t capacity = c->capacity ? c->capacity : asked;
    if (capacity)
        fprintf(out, "capacity: %lld\n", (long long)capacity);
    if (c->options.prefill) /* not the default, which the targets decide */
        fprintf(out, "prefill: %lld\n", (long long)c->options.prefill);
    if (c->options.sample != SAMPLE_UNSET)
        fprintf(out, "sample: %s\n", sample_name(c->options.sample));
    if (c->options.logits != LOGITS_UNSET)
        fprintf(out, "logits: %s\n", c->options.logits == LOGITS_LAST ? "last" : "all");
}

static void print_signatures(Compilation *c, FILE *out)
{
    if (c->recipe.signature_count)
        fprintf(out, "signatures:\n");
    for (int i = 0; i < c->recipe.signature_count; i++) {
        const SignatureSpec *s = &c->recipe.signatures[i];
        fprintf(out, "  %s:%s\n", scalar(c, s->name), s->range_count ? "" : " {}");
        for (int k = 0; k < s->range_count; k++)
            print_range(c, out, "    ", &s->ranges[k]);
    }
}

static void print_constants(Compilation *c, FILE *out)
{
    if (c->recipe.constant_count)
        fprintf(out, "constants:\n");
    for (int i = 0; i < c->recipe.constant_count; i++) {
        fprintf(out, "  %s: [", scalar(c, c->recipe.constants[i].input));
        for (int k = 0; k < c->recipe.constants[i].count; k++)
            fprintf(out, "%s%lld", k ? ", " : "", (long long)c->recipe.constants[i].values[k]);
        fprintf(out, "]\n");
    }
}

/* The printed recipe may lie anywhere: names of files are absolute. */
static void print_bind(Compilation *c, FILE *out, const Bind *b, bool *any)
{
    char *path = realpath(b->path, NULL);
    fprintf(out, "%s  %s: %s\n", *any ? "" : "bind:\n", scalar(c, b->input), scalar(c, path ? path : b->path));
    *any = true;
    free(path);
}

static void print_binds(Compilation *c, FILE *out)
{
    bool any = false;
    for (int i = 0; i < c->recipe.bind_count; i++)
        if (!bind_overridden(c, 0, c->recipe.binds[i].input))
            print_bind(c, out, &c->recipe.binds[i], &any);
    for (int i = 0; i < c->options.bind_count; i++)
        if (!bind_overridden(c, i + 1, c->options.binds[i].input))
            print_bind(c, out, &c->options.binds[i], &any);
}

static void print_feeds(Compilation *c, FILE *out)
{
    const Graph *g = &c->graph;
    bool any = false;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const Value *v = &g->values[g->inputs[i]];
        if (v->state)
            continue;
        fprintf(out, "%s  %s: %s\n", any ? "" : "feeds:\n", scalar(c, v->name), feed_name(v->feed));
        any = true;
    }
}

void recipe_print(Compilation *c, FILE *out)
{
    print_states(c, out);
    print_symbols(c, out);
    print_sizes(c, out);
    print_signatures(c, out);
    print_constants(c, out);
    print_binds(c, out);
    print_feeds(c, out);
}
