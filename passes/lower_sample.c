/* lower_sample.c - the sampling tail: what ends a step of a decoder when gcc-plan is asked for --sample. Two launches: the logits
 * split over blocks, then one block that picks the token, tests it against the stop tokens, and advances the position.
 *
 * Its parameters are words of the extents table (enum plan_sampler_word), so that a session sets them without another plan.
 * A repetition penalty needs the tokens fed so far; they are kept by position, where the plan has one. */
#include "lower.h"
#include "format.h"

#include <string.h>

enum { MAX_GROUPS = 1024 /* threads of sample_pick, also of its list of candidates: with fewer tokens fewer do */, WARPS = 8 /* groups of a block of sample_scan */ };

uint32_t logits_output(Compilation *c)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < c->graph.output_count; i++) {
        const Value *v = &c->graph.values[c->graph.outputs[i]];
        if (v->state || !dtype_is_float(v->dtype) || v->rank < 1) continue;
        if (!strcmp(v->name, "logits")) return c->graph.outputs[i];
        if (!found) found = c->graph.outputs[i];
    }
    return found;
}

static uint32_t shared_buffer(Compilation *c, const char *name, Region region, int64_t bytes)
{
    for (uint32_t b = 1; b <= c->buffer_count; b++)
        if (c->buffers[b].region == region && !strcmp(c->buffers[b].name, name)) return b;
    return buffer_new(c, name, region, bytes, 0);
}

static bool possible(Lower *l)
{
    Compilation *c = l->c;
    uint32_t logits = logits_output(c), token = token_input(c);
    int64_t columns;
    if (!logits || !token) {
        diag_error(c, NULL, "--sample needs a token input and a float output of logits; found %s", !token ? "no token input" : "no such output");
        return false;
    }
    const Value *v = &c->graph.values[logits], *t = &c->graph.values[token];
    const char *output = arena_text(&c->arena, "output '%s'", v->name);
    for (int k = 0; k + 2 < v->rank; k++)
        if (lower_upper(l, v->dims[k]) != 1) {
            diag_error(c, output, "--sample needs batch 1, found dim %d = %s", k, dim_text(c, lower_dim(l, v->dims[k])));
            return false;
        }
    Dim last = lower_dim(l, v->dims[v->rank - 1]);
    if (!dim_is_const(c, last, &columns) || columns < 1 || columns > 1 << 20) {
        diag_error(c, output, "--sample needs a vocabulary of 1 to 1048576, found %s", dim_text(c, last));
        return false;
    }
    if (t->dtype == DT_I64) return true;
    diag_error(c, arena_text(&c->arena, "input '%s'", t->name), "--sample writes int64 tokens, found %s", dtype_name(t->dtype));
    return false;
}

/* Row ROW along the axis before the last, as a view of rank 1. */
static View row_of(Compilation *c, View x, Dim row)
{
    if (x.rank >= 2) x.offset = dim_add(c, x.offset, dim_scale(c, row, x.stride[x.rank - 2]));
    x.dims[0] = x.dims[x.rank - 1];
    x.stride[0] = x.stride[x.rank - 1];
    x.rank = 1;
    return x;
}

static View word_view(Lower *l, uint32_t buffer, int64_t index, int64_t count)
{
    const Dim words = dim_const(l->c, count);
    View v = view_dense_new(l, buffer, DT_I64, 1, &words);
    v.offset = dim_const(l->c, index);
    return v;
}

typedef struct Tail {
    View logits;          /* of the last token, rank 1 */
    int64_t group, groups;
    bool draw;
    View maxes, places, exponents, masses; /* the last two with draw */
} Tail;

static View scratch(Lower *l, const char *name, DType t, int64_t count)
{
    const Dim dim = dim_const(l->c, count);
    return lower_temporary(l, name, t, 1, &dim);
}

static Tail tail_new(Lower *l)
{
    Compilation *c = l->c;
    View x = l->views[logits_output(c)];
    Tail t = { .draw = c->options.sample == SAMPLE_DRAW };
    t.logits = row_of(c, x, x.rank >= 2 ? dim_sub(c, x.dims[x.rank - 2], dim_const(c, 1)) : dim_const(c, 0));
    const int64_t columns = lower_upper(l, t.logits.dims[0]);
    t.group = (columns + MAX_GROUPS * 32 - 1) / (MAX_GROUPS * 32) * 32;
    t.groups = (columns + t.group - 1) / t.group;
    t.maxes = scratch(l, "largest logits", DT_F32, t.groups);
    t.places = scratch(l, "their places", DT_I32, t.groups);
    if (!t.draw) return t;
    t.exponents = scratch(l, "exponents", DT_F32, columns);
    t.masses = scratch(l, "masses", DT_I64, t.groups);
    return t;
}

static void scan(Lower *l, const Tail *t)
{
    Compilation *c = l->c;
    const bool remembers = t->draw && c->position && c->capacity > 0;
    Kernel *k = kernel_begin(l, NULL, "sample_scan");
    kernel_in(k, "X", t->logits);
    kernel_out(k, "MAXES", t->maxes);
    kernel_out(k, "PLACES", t->places);
    kernel_int(k, "GROUP", t->group);
    kernel_int(k, "DRAW", t->draw);
    if (t->draw) {
        kernel_in(k, "WORDS", word_view(l, extents_buffer(c), sampler_slot(c), PLAN_SAMPLER_WORDS));
        kernel_out(k, "Y", t->exponents);
        kernel_out(k, "MASSES", t->masses);
        kernel_int(k, "SCALE", PLAN_SAMPLER_SCALE);
        kernel_int(k, "PENALTY", PLAN_SAMPLER_PENALTY);
        kernel_int(k, "REMEMBERS", remembers);
    }
    if (remembers) {
        const Dim rows = dim_const(c, c->capacity);
        const uint32_t history = shared_buffer(c, "token history", REGION_STATE, 4 * c->capacity);
        kernel_inout(k, "HISTORY", view_dense_new(l, history, DT_I32, 1, &rows));
        kernel_in(k, "IDS", row_of(c, lower_value(l, token_input(c)), dim_const(c, 0)));
        kernel_dim(k, "POSITION", lower_dim(l, dim_symbol(c, c->position)));
    }
    kernel_bytes(k, lower_upper(l, t->logits.dims[0]) * (dtype_bits(t->logits.store) / 8 + (t->draw ? 4 : 0)), 0);
    kernel_label(k, "sample");
    kernel_launch(k, (t->groups + WARPS - 1) / WARPS, 1, 1, 32 * WARPS);
}

/* DRAW: the number of the draw is how many tokens the state holds after the step, or how many were sampled since the seed. */
static void pick_draw(Lower *l, Kernel *k, const Tail *t)
{
    static const struct { const char *name; int word; } words[] = {
        { "SCALE", PLAN_SAMPLER_SCALE }, { "TOP_K", PLAN_SAMPLER_TOP_K }, { "TOP_P", PLAN_SAMPLER_TOP_P },
        { "MIN_P", PLAN_SAMPLER_MIN_P }, { "SEED", PLAN_SAMPLER_SEED },
    };
    Compilation *c = l->c;
    kernel_in(k, "Y", t->exponents);
    kernel_in(k, "MASSES", t->masses);
    kernel_int(k, "GROUP", t->group);
    kernel_int(k, "TOKENS", lower_upper(l, t->logits.dims[0]));
    for (size_t i = 0; i < COUNT_OF(words); i++) kernel_int(k, words[i].name, words[i].word);
    if (c->position) kernel_dim(k, "NUMBER", lower_dim(l, dim_add(c, dim_symbol(c, c->position), c->position_step)));
    else kernel_text(k, "NUMBER", arena_text(&c->arena, "COUNT_LD(COUNT_OFF) - WORDS_LD(WORDS_OFF + %d)", PLAN_SAMPLER_BASE));
}

static void pick(Lower *l, const Lower *decode, const Tail *t)
{
    Compilation *c = l->c;
    const int64_t slot = sampler_slot(c), ring = PLAN_RING_TOKENS + 1, columns = lower_upper(l, t->logits.dims[0]);
    const uint32_t extents = extents_buffer(c);
    Kernel *k = kernel_begin(l, NULL, "sample_pick");
    kernel_in(k, "MAXES", t->maxes);
    kernel_in(k, "PLACES", t->places);
    kernel_in(k, "WORDS", word_view(l, extents, slot, PLAN_SAMPLER_WORDS));
    kernel_inout(k, "STOP", word_view(l, extents, slot + PLAN_SAMPLER_STOPPED, 1));
    kernel_out(k, "TOKEN", word_view(l, io_buffer((Lower *)decode, token_input(c)), 0, 1));
    kernel_out(k, "RING", word_view(l, shared_buffer(c, "token ring", REGION_RING, 8 * ring), 0, ring));
    kernel_inout(k, "COUNT", word_view(l, extents, SAMPLED_SLOT, 1));
    kernel_int(k, "GROUPS", t->groups);
    kernel_int(k, "DRAW", t->draw);
    kernel_int(k, "GATED", l->signature->kind == SIG_DECODE);
    kernel_int(k, "STOP_TOKENS", PLAN_SAMPLER_STOP_LIMIT);
    kernel_int(k, "STOP_COUNT", PLAN_SAMPLER_STOP_COUNT);
    kernel_int(k, "STOP_IDS", PLAN_SAMPLER_STOP_IDS);
    if (t->draw) pick_draw(l, k, t);
    kernel_int(k, "MOVES", c->position != 0);
    if (c->position) {
        kernel_inout(k, "W", word_view(l, extents, POSITION_SLOT, 1));
        kernel_dim(k, "STEP", c->position_step);
    }
    kernel_bytes(k, t->groups * (t->draw ? 16 : 8), 0);
    kernel_label(k, "sample");
    kernel_launch(k, 1, 1, 1, columns <= 256 ? 256 : columns <= 512 ? 512 : MAX_GROUPS);
}

void lower_sample(Lower *l, const Lower *decode)
{
    if (!possible(l)) return;
    const Tail t = tail_new(l);
    scan(l, &t);
    pick(l, decode, &t);
}
