/* recipe.c - state pairs, feeds and constants of the graph: from the recipe, or from the conventions of the common
 * exporters. A guess that does not fit is no pair and no feed; what a recipe says must fit. */
#include "recipe.h"

#include <string.h>

/* Inputs of states and the outputs that they become; {*} is the layer's number and what else names a state of it. Without a number
 * such names are those of a node, not of a decoder. */
static const struct { const char *input, *output; } pair_conventions[] = {
    {"past_key_values{*}", "present{*}"},
    {"past_states{*}", "present{*}"},
    {"past{*}", "present{*}"},
    {"{*}", "updated_{*}"},
};

static const struct { const char *input; Feed feed; int max_rank; } feed_conventions[] = {
    {"input_ids", FEED_TOKEN, 2},
    {"attention_mask", FEED_ONES, 2},
    {"position_ids", FEED_POSITION, 3},
    {"write_indices", FEED_WRITE_INDEX, 1},
    {"nonpad_kv_seqlen", FEED_LENGTH, 1},
};

static const char *const feed_names[] = {[FEED_CALLER] = "caller", [FEED_TOKEN] = "token", [FEED_ONES] = "ones",
                                         [FEED_POSITION] = "position", [FEED_LENGTH] = "length",
                                         [FEED_WRITE_INDEX] = "write_index"};

const char *feed_name(Feed f)
{
    return (size_t)f < COUNT_OF(feed_names) ? feed_names[f] : "?";
}

bool feed_from_name(const char *name, Feed *out)
{
    for (size_t i = 0; i < COUNT_OF(feed_names); i++)
        if (!strcmp(feed_names[i], name)) {
            *out = (Feed)i;
            return true;
        }
    return false;
}

static const char *const sample_names[] = {[SAMPLE_UNSET] = "none", [SAMPLE_NONE] = "none", [SAMPLE_GREEDY] = "greedy", [SAMPLE_DRAW] = "draw"};

const char *sample_name(SampleTail s) { return sample_names[s]; }

bool sample_from_name(const char *name, SampleTail *out)
{
    for (SampleTail s = SAMPLE_NONE; s <= SAMPLE_DRAW; s++)
        if (!strcmp(sample_names[s], name)) {
            *out = s;
            return true;
        }
    return false;
}

/* ---- patterns */

Pattern pattern_of(const char *text)
{
    const char *number = strstr(text, "{N}"), *at = number ? number : strstr(text, "{*}");
    if (!at)
        return (Pattern){text, strlen(text), 0, PATTERN_PLAIN};
    return (Pattern){text, (size_t)(at - text), strlen(at + 3), number ? PATTERN_NUMBER : PATTERN_ANY};
}

const char *pattern_match(Compilation *c, const Pattern *p, const char *name)
{
    size_t size = strlen(name);
    if (p->kind == PATTERN_PLAIN)
        return strcmp(p->text, name) ? NULL : "";
    if (size <= p->before + p->after || strncmp(name, p->text, p->before) ||
        strcmp(name + size - p->after, p->text + p->before + 3))
        return NULL;
    size_t held = size - p->before - p->after;
    size_t digits = strspn(name + p->before, "0123456789"), first = strcspn(name + p->before, "0123456789");
    if (p->kind == PATTERN_NUMBER ? digits < held : first >= held)
        return NULL;
    return arena_text(&c->arena, "%.*s", (int)held, name + p->before);
}

const char *pattern_fill(Compilation *c, const Pattern *p, const char *held)
{
    if (p->kind == PATTERN_PLAIN)
        return p->text;
    return arena_text(&c->arena, "%.*s%s%s", (int)p->before, p->text, held, p->text + p->before + 3);
}

/* ---- the graph's inputs and outputs */

static uint32_t named(const Graph *g, const uint32_t *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(g->values[list[i]].name, name))
            return list[i];
    return 0;
}

uint32_t graph_input_named(const Graph *g, const char *name) { return named(g, g->inputs, g->input_count, name); }
uint32_t graph_output_named(const Graph *g, const char *name) { return named(g, g->outputs, g->output_count, name); }

static const char *recipe_place(Compilation *c, int line, int column)
{
    return arena_text(&c->arena, "%s:%d:%d", c->recipe.file, line, column);
}

/* ---- state pairs */

/* The rank of what a node makes is only declared as yet. */
static const char *kind_text(Compilation *c, const Value *v)
{
    if (v->rank < 0 || v->producer)
        return dtype_name(v->dtype);
    return arena_text(&c->arena, "%s of rank %d", dtype_name(v->dtype), v->rank);
}

/* NULL, or why these are no pair. Their dims are compared by classify, once the output's are known. */
static const char *pair_refused(Compilation *c, const Value *in, const Value *out)
{
    bool ranks = in->rank >= 0 && out->rank >= 0 && !out->producer && in->rank != out->rank;
    if ((in->dtype && out->dtype && in->dtype != out->dtype) || ranks)
        return arena_text(&c->arena, "the input is %s, the output %s; expected the same", kind_text(c, in), kind_text(c, out));
    if (in->state || out->state)
        return arena_text(&c->arena, "'%s' is in another pair already", in->state ? in->name : out->name);
    return NULL;
}

static void add_pair(Compilation *c, uint32_t input, uint32_t output)
{
    StatePair *p = &c->pairs[c->pair_count++];
    *p = (StatePair){.input = input, .output = output, .input_name = c->graph.values[input].name,
                     .output_name = c->graph.values[output].name, .growing_axis = -1, .update = 2};
    c->graph.values[input].state = c->graph.values[output].state = (uint32_t)c->pair_count;
}

/* All pairs that a pattern means; `line` 0: a convention. The number of inputs that match. */
static int add_pairs(Compilation *c, const char *input, const char *output, int line, int column)
{
    Graph *g = &c->graph;
    Pattern in = pattern_of(input), out = pattern_of(output);
    int matches = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const char *number = pattern_match(c, &in, g->values[g->inputs[i]].name);
        if (!number)
            continue;
        matches++;
        const char *name = pattern_fill(c, &out, number);
        uint32_t made = graph_output_named(g, name);
        const char *reason = made ? pair_refused(c, &g->values[g->inputs[i]], &g->values[made]) : NULL;
        if (made && !reason)
            add_pair(c, g->inputs[i], made);
        else if (line)
            diag_error(c, recipe_place(c, line, column), "state '%s' -> '%s': %s", g->values[g->inputs[i]].name, name,
                       made ? reason : "the model has no such output");
        else if (made && !g->values[g->inputs[i]].state)
            diag_note(c, "input '%s' and output '%s' are no state: %s", g->values[g->inputs[i]].name, name, reason);
    }
    return matches;
}

/* In the order of the graph's inputs, whatever order found them: the plan must not depend on it. */
static void sort_pairs(Compilation *c)
{
    Graph *g = &c->graph;
    StatePair *sorted = NEW_ARRAY(c, StatePair, c->pair_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        uint32_t state = g->values[g->inputs[i]].state;
        if (!state)
            continue;
        sorted[count++] = c->pairs[state - 1];
    }
    for (uint32_t i = 0; i < count; i++)
        g->values[sorted[i].input].state = g->values[sorted[i].output].state = i + 1;
    c->pairs = sorted;
}

static void apply_pairs(Compilation *c)
{
    c->pairs = NEW_ARRAY(c, StatePair, c->graph.input_count);
    if (!c->recipe.pairs) {
        for (size_t i = 0; i < COUNT_OF(pair_conventions); i++)
            add_pairs(c, pair_conventions[i].input, pair_conventions[i].output, 0, 0);
    } else {
        for (int i = 0; i < c->recipe.pair_count; i++) {
            int line = c->recipe.pairs[i].line, column = c->recipe.pairs[i].column;
            if (!add_pairs(c, c->recipe.pairs[i].input, c->recipe.pairs[i].output, line, column))
                diag_error(c, recipe_place(c, line, column), "the model has no input '%s'", c->recipe.pairs[i].input);
        }
    }
    sort_pairs(c);
}

/* ---- feeds */

/* NULL, or what the feed would need. Positions, lengths and masks follow from a state; in another network the caller has them. */
static const char *feed_refused(Compilation *c, const Value *v, Feed feed)
{
    bool integer = v->dtype == DT_I64 || v->dtype == DT_I32;
    if (!c->pair_count && feed != FEED_CALLER && feed != FEED_TOKEN) return "a model with states, by which steps are counted";
    switch (feed) {
    case FEED_CALLER: return NULL;
    case FEED_TOKEN: return integer && (v->rank == 1 || v->rank == 2) ? NULL : "i64 or i32 of rank 1 or 2";
    case FEED_ONES: return v->rank >= 1 && v->rank <= 4 && v->dtype ? NULL : "a tensor of rank 1 to 4";
    case FEED_POSITION: return integer && v->rank >= 1 && v->rank <= 3 ? NULL : "i64 or i32 of rank 1 to 3";
    default: return integer && v->rank >= 0 && (v->rank < 2 || (v->rank == 2 && dim_is(c, v->dims[1], 1))) ? NULL : "i64 or i32 of rank 0 or 1, or [batch, 1]";
    }
}

static void guess_feeds(Compilation *c)
{
    Graph *g = &c->graph;
    for (size_t i = 0; i < COUNT_OF(feed_conventions); i++) {
        uint32_t input = graph_input_named(g, feed_conventions[i].input);
        if (!input || g->values[input].state)
            continue;
        Value *v = &g->values[input];
        if (!c->pair_count && feed_conventions[i].feed != FEED_TOKEN)
            continue;
        const char *reason = feed_refused(c, v, feed_conventions[i].feed);
        if (!reason && (v->rank > feed_conventions[i].max_rank || dtype_is_float(v->dtype)))
            reason = "integers of a smaller rank";
        if (!reason)
            v->feed = feed_conventions[i].feed;
        else
            diag_note(c, "input '%s' is written by the caller: %s; for '%s' expected %s", v->name, kind_text(c, v),
                      feed_name(feed_conventions[i].feed), reason);
    }
}

static void apply_feeds(Compilation *c)
{
    Graph *g = &c->graph;
    guess_feeds(c);
    for (int i = 0; i < c->recipe.feed_count; i++) {
        const char *name = c->recipe.feeds[i].input, *place = recipe_place(c, c->recipe.feeds[i].line, c->recipe.feeds[i].column);
        Feed feed = c->recipe.feeds[i].feed;
        uint32_t input = graph_input_named(g, name);
        const char *reason = input ? feed_refused(c, &g->values[input], feed) : NULL;
        if (!input)
            diag_error(c, place, "the model has no input '%s'", name);
        else if (g->values[input].state)
            diag_error(c, place, "input '%s' is a state; expected an input that is none", name);
        else if (reason)
            diag_error(c, place, "input '%s' cannot be fed by '%s'; expected %s, found %s", name, feed_name(feed), reason,
                       kind_text(c, &g->values[input]));
        else
            g->values[input].feed = feed;
    }
    int tokens = 0;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (g->values[g->inputs[i]].feed == FEED_TOKEN && ++tokens == 2)
            diag_error(c, c->recipe.file, "two inputs are fed by 'token'; expected one, the second is '%s'",
                       g->values[g->inputs[i]].name);
}

uint32_t token_input(Compilation *c)
{
    for (uint32_t i = 0; i < c->graph.input_count; i++)
        if (c->graph.values[c->graph.inputs[i]].feed == FEED_TOKEN) return c->graph.inputs[i];
    return 0;
}

/* ---- constants */

static const char *constant_range(DType t, int64_t v)
{
    int bits = dtype_bits(t);
    bool low = t == DT_U8 || t == DT_U16 || t == DT_U32 || t == DT_U64 || t == DT_BOOL;
    if (low && v < 0)
        return "a value that is not negative";
    if (t == DT_BOOL && v > 1)
        return "0 or 1";
    if (bits < 64 && (v > (INT64_C(1) << (low ? bits : bits - 1)) - 1 || v < -(INT64_C(1) << (bits - 1))))
        return "a value in the range of its type";
    return NULL;
}

/* NULL, or what the constant would need. */
static const char *constant_refused(Compilation *c, const Value *v, int count, const int64_t *values, int64_t *elements)
{
    *elements = 1;
    if (v->state)
        return "an input that is no state";
    if ((!dtype_is_integer(v->dtype) && v->dtype != DT_BOOL && v->dtype != DT_F32) || dtype_bits(v->dtype) < 8)
        return "an input of integers, bool or f32";
    for (int i = 0; i < v->rank; i++) {
        int64_t d;
        if (!dim_is_const(c, v->dims[i], &d))
            return "an input whose dims are all fixed";
        if (d < 0 || (d && *elements > MAX_CONTENTS / d))
            return "an input of at most 1024 elements";
        *elements *= d;
    }
    if (count != 1 && count != *elements)
        return arena_text(&c->arena, "1 or %lld values", (long long)*elements);
    for (int i = 0; i < count; i++) {
        const char *reason = v->dtype == DT_F32 ? NULL : constant_range(v->dtype, values[i]);
        if (reason)
            return reason;
    }
    return NULL;
}

void input_to_constant(Compilation *c, uint32_t input)
{
    Graph *g = &c->graph;
    Value *v = &g->values[input];
    uint32_t kept = 0;
    v->is_constant = true;
    v->is_input = false;
    v->feed = FEED_CALLER;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (g->inputs[i] != input)
            g->inputs[kept++] = g->inputs[i];
    g->input_count = kept;
}

static void make_constant(Compilation *c, uint32_t input, int count, const int64_t *values, int64_t elements)
{
    Value *v = &c->graph.values[input];
    size_t width = (size_t)dtype_bits(v->dtype) / 8;
    unsigned char *bytes = arena_alloc(&c->arena, (size_t)elements * width);
    bool integer = v->dtype != DT_F32;
    v->contents = integer ? NEW_ARRAY(c, Dim, elements) : NULL;
    v->contents_count = integer ? (int)elements : -1;
    for (int64_t i = 0; i < elements; i++) {
        int64_t x = values[count == 1 ? 0 : i];
        float f = (float)x;
        memcpy(bytes + (size_t)i * width, integer ? (const void *)&x : &f, width);
        if (integer)
            v->contents[i] = dim_const(c, x);
    }
    v->data = NEW(c, Data);
    *v->data = (Data){.bytes = bytes, .size = (uint64_t)elements * width};
    input_to_constant(c, input);
}

static void apply_constants(Compilation *c)
{
    for (int i = 0; i < c->recipe.constant_count; i++) {
        const char *name = c->recipe.constants[i].input;
        const char *place = recipe_place(c, c->recipe.constants[i].line, c->recipe.constants[i].column);
        uint32_t input = graph_input_named(&c->graph, name);
        int count = c->recipe.constants[i].count;
        int64_t elements = 0, *values = c->recipe.constants[i].values;
        const char *reason = input ? constant_refused(c, &c->graph.values[input], count, values, &elements) : NULL;
        if (!input)
            diag_error(c, place, "the model has no input '%s'", name);
        else if (reason)
            diag_error(c, place, "input '%s' cannot be a constant of %d value%s; expected %s, found %s", name, count,
                       count == 1 ? "" : "s", reason, kind_text(c, &c->graph.values[input]));
        else
            make_constant(c, input, count, values, elements);
    }
}

/* ---- */

static void check_ranges(Compilation *c, int count, const Range *list)
{
    for (int i = 0; i < count; i++)
        if (!sym_find(c, list[i].symbol))
            diag_error(c, recipe_place(c, list[i].line, list[i].column), "no symbol is named '%s'", list[i].symbol);
}

bool recipe_apply(Compilation *c)
{
    if (!binds_apply(c)) /* first: what is bound is no state and has no feed */
        return false;
    apply_pairs(c);
    apply_feeds(c);
    apply_constants(c);
    check_ranges(c, c->recipe.range_count, c->recipe.ranges);
    for (int i = 0; i < c->recipe.signature_count; i++)
        check_ranges(c, c->recipe.signatures[i].range_count, c->recipe.signatures[i].ranges);
    return !diag_failed(c);
}
