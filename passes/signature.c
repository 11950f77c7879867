/* signature - the boxes of symbol space to compile: from the recipe, or the default ladder (decode: one token; prefill: 1
 * to 64 tokens; for GPUs prefill_long: more, whose products have kernels of their own; main for networks without state). Every
 * dim must be bounded in every box. */
#include "compiler.h"
#include "dim.h"
#include "ops/product.h"

#include <string.h>

enum { DEFAULT_CAPACITY = 1024, DEFAULT_PREFILL = 64, UNFILLED_LENGTHS = 128, NO_LIMIT = 1 << 30 };
enum {
    LONG_ROWS = 512,         /* of a default prefill_long, in all sequences together */
    LARGE_ELEMENTS = 1 << 26 /* memory that a default is not to take: of a tensor that grows with the step */
};

static Signature *signature_add(Compilation *c, const char *name, int kind)
{
    Signature *s = &c->signatures[c->signature_count++];
    *s = (Signature){ .name = name, .kind = kind };
    s->lo = NEW_ARRAY(c, int64_t, c->symbol_count + 1);
    s->hi = NEW_ARRAY(c, int64_t, c->symbol_count + 1);
    for (Sym y = 1; y <= c->symbol_count; y++) {
        s->lo[y] = c->symbols[y].lo;
        s->hi[y] = c->symbols[y].hi;
    }
    return s;
}

static void set_range(Signature *s, Sym y, int64_t lo, int64_t hi)
{
    if (!y) return;
    s->lo[y] = lo;
    s->hi[y] = hi;
}

/* A range by name: for a symbol that equations eliminated, only the value that it has anyway. */
static bool apply_range(Compilation *c, Signature *s, const Range *r)
{
    const char *place = r->line ? arena_text(&c->arena, "%s:%d:%d", c->recipe.file, r->line, r->column) : NULL;
    Sym y = sym_find(c, r->symbol);
    if (!y) {
        diag_error(c, place, "no symbol is named '%s'", r->symbol);
        return false;
    }
    int64_t known;
    Dim d = dim_resolve(c, dim_symbol(c, y));
    if (dim_is_const(c, d, &known) && r->lo <= known && known <= r->hi) return true;
    if (c->symbols[y].equals) {
        diag_error(c, place, "symbol '%s' is %s in this model; expected a symbol that is free", r->symbol, dim_text(c, d));
        return false;
    }
    if (y == c->position) {
        diag_error(c, place, "symbol '%s' grows; give the capacity instead", r->symbol);
        return false;
    }
    if (r->lo < 1 || r->hi < r->lo) {
        diag_error(c, place, "symbol '%s': %lld to %lld; expected 1 or more", r->symbol, (long long)r->lo, (long long)r->hi);
        return false;
    }
    set_range(s, y, r->lo, r->hi);
    return true;
}

/* Ranges for all signatures, then those of this one. A decode step stays one token, whatever the prompts may be. */
static bool apply_ranges(Compilation *c, Signature *s, const SignatureSpec *spec)
{
    bool good = true;
    for (int i = 0; i < c->recipe.range_count; i++) good &= apply_range(c, s, &c->recipe.ranges[i]);
    for (int i = 0; i < c->options.max_count; i++) good &= apply_range(c, s, &c->options.max[i]);
    if (s->kind == SIG_DECODE) set_range(s, c->sequence, 1, 1);
    for (int i = 0; spec && i < spec->range_count; i++) good &= apply_range(c, s, &spec->ranges[i]);
    return good;
}

/* Whether V holds the positions of the tokens: the fed input, or a view or cast of it. */
static bool holds_positions(Compilation *c, const Value *v)
{
    for (int hops = 0; v && hops < 16; hops++) {
        if (v->is_input) return v->feed == FEED_POSITION;
        if (!v->producer) return false;
        const Node *n = &c->graph.nodes[v->producer];
        bool passes = (n->op->facts & OP_VIEW) || ((n->op->facts & OP_POINTWISE) && n->input_count == 1);
        if (!passes) return false;
        v = node_input(c, n, 0);
    }
    return false;
}

/* The fewest rows of a table that is looked up by position (rotary tables, learned positions); *node is its reader. */
static int64_t position_rows(Compilation *c, uint32_t *node)
{
    int64_t least = 0, rows;
    for (uint32_t i = 1; i <= c->graph.node_count; i++) {
        const Node *n = &c->graph.nodes[i];
        int index = -1, table = n->op->lookup ? n->op->lookup(c, n, &index) : -1;
        const Value *t = table >= 0 ? node_input(c, n, table) : NULL;
        if (!t || t->rank < 1 || !dim_is_const(c, dim_resolve(c, t->dims[0]), &rows)) continue;
        if (index >= 0 && !holds_positions(c, node_input(c, n, index))) continue;
        if (least && rows >= least) continue;
        least = rows;
        *node = i;
    }
    return least;
}

static bool fits(Compilation *c, int64_t rows, const char *place, const char *what)
{
    if (!rows || c->capacity <= rows) return true;
    diag_error(c, place, "capacity %lld is larger than %s; expected at most %lld rows", (long long)c->capacity, what, (long long)rows);
    return false;
}

static bool choose_capacity(Compilation *c)
{
    uint32_t node = 0;
    int64_t rows = state_rows(c), table = position_rows(c, &node), asked = c->options.capacity ? c->options.capacity : c->recipe.capacity;
    bool grows = false;
    for (int i = 0; i < c->pair_count; i++) grows |= c->pairs[i].growing_axis >= 0;
    if (!grows && !rows) return true; /* nothing to fill: no capacity */
    c->capacity = asked ? asked : rows ? rows : table && table < DEFAULT_CAPACITY ? table : DEFAULT_CAPACITY;
    if (!asked && table && c->capacity > table) c->capacity = table;
    if (c->capacity >= NO_LIMIT) {
        diag_error(c, NULL, "capacity %lld; expected below %d", (long long)c->capacity, NO_LIMIT);
        return false;
    }
    const char *place = node ? arena_text(&c->arena, "node '%s'", c->graph.nodes[node].name) : NULL;
    return fits(c, rows, NULL, "the model's static caches") && fits(c, table, place, "the table that it looks up by position");
}

static const SignatureSpec *spec_named(Compilation *c, const char *name)
{
    for (int i = 0; i < c->recipe.signature_count; i++)
        if (!strcmp(c->recipe.signatures[i].name, name)) return &c->recipe.signatures[i];
    return NULL;
}

static bool set_rows(Compilation *c, Signature *s)
{
    const int64_t rows = c->options.rows, lo = c->batch ? s->lo[c->batch] : 1, hi = c->batch ? s->hi[c->batch] : 1;
    set_range(s, c->batch, rows, rows);
    if (lo == hi && (lo == 1 || lo == rows)) return true; /* 1: nothing was said of it */
    diag_error(c, arena_text(&c->arena, "signature '%s'", s->name), "--rows %lld, but symbol '%s' is %lld..%lld; expected the same number",
               (long long)rows, c->symbols[c->batch].name, (long long)lo, (long long)hi);
    return false;
}

static bool add_box(Compilation *c, const char *name, int kind, int64_t lo, int64_t hi)
{
    Signature *s = signature_add(c, name, kind);
    set_range(s, c->batch, 1, 1);
    set_range(s, c->sequence, lo, hi);
    if (!apply_ranges(c, s, spec_named(c, name))) return false;
    if (c->options.rows && !set_rows(c, s)) return false;
    if (c->sequence) { lo = s->lo[c->sequence]; hi = s->hi[c->sequence]; }
    int64_t capacity = c->capacity ? c->capacity : NO_LIMIT;
    if (kind != SIG_MAIN && (lo < 1 || hi > capacity || lo > hi)) {
        diag_error(c, arena_text(&c->arena, "signature '%s'", name), "tokens %lld..%lld; expected 1 to the capacity %lld", (long long)lo,
                   (long long)hi, (long long)capacity);
        return false;
    }
    if (kind == SIG_DECODE && hi != 1) {
        diag_error(c, arena_text(&c->arena, "signature '%s'", name), "tokens %lld..%lld; expected one token a step", (long long)lo,
                   (long long)hi);
        return false;
    }
    set_range(s, c->position, 0, capacity - lo);
    return true;
}

/* Decode again, with the position a literal: what plan-run --check-growth compares the ranged step with. Where nothing
 * fills up, the lengths are those that it tries. */
static void add_lengths(Compilation *c)
{
    const Signature *decode = &c->signatures[1];
    const int64_t room = c->capacity ? c->capacity : UNFILLED_LENGTHS;
    const int64_t lengths[] = { 1, 2, room / 2, room - 1 };
    int64_t before = 0;
    for (size_t i = 0; c->position && i < COUNT_OF(lengths); i++) {
        if (lengths[i] <= before || lengths[i] >= room) continue;
        before = lengths[i];
        Signature *s = signature_add(c, arena_text(&c->arena, "decode@%lld", (long long)before), SIG_MAIN);
        for (Sym y = 1; y <= c->symbol_count; y++) set_range(s, y, decode->lo[y], decode->hi[y]);
        set_range(s, c->position, before, before);
    }
}

/* ---- bounds in a box */

/* Position and sequence are bound together by the capacity, so the largest value lies at a corner of that triangle or
 * trapezoid: linear dims, and quotients and extremes of linear dims, are monotone along its edges. */
static int64_t corner_bound(Compilation *c, const Signature *s, Dim d, bool upper)
{
    int64_t best = upper ? INT64_MIN : INT64_MAX;
    int64_t capacity = c->capacity ? c->capacity : NO_LIMIT;
    const Ranges ranges = { s->lo, s->hi };
    for (int corner = 0; corner < 4; corner++) {
        int64_t tokens = corner & 1 ? s->hi[c->sequence] : s->lo[c->sequence], lo, hi;
        Dim at = dim_substitute(c, d, c->sequence, dim_const(c, tokens));
        at = dim_substitute(c, at, c->position, dim_const(c, corner & 2 ? capacity - tokens : 0));
        dim_bounds_in(c, &ranges, at, 0, &lo, &hi);
        if (upper ? hi > best : lo < best) best = upper ? hi : lo;
    }
    return best;
}

static int64_t box_bound(Compilation *c, const Signature *s, Dim d, bool upper)
{
    d = dim_resolve(c, d);
    if (!d) return upper ? INT64_MAX : INT64_MIN;
    if (c->sequence && c->position && dim_mentions(c, d, c->sequence) && dim_mentions(c, d, c->position))
        return corner_bound(c, s, d, upper);
    const Ranges ranges = { s->lo, s->hi };
    int64_t lo, hi;
    dim_bounds_in(c, &ranges, d, 0, &lo, &hi);
    return upper ? hi : lo;
}

int64_t signature_upper(Compilation *c, const Signature *s, Dim d) { return box_bound(c, s, d, true); }
int64_t signature_lower(Compilation *c, const Signature *s, Dim d) { return box_bound(c, s, d, false); }

/* ---- equations that no symbol could be eliminated by: the box has only sizes for which they can hold */

enum { MOST_TRIED = 4096 };

static bool can_be_zero(Compilation *c, const Signature *s, Dim zero)
{
    const Ranges ranges = { s->lo, s->hi };
    int64_t lo, hi;
    dim_bounds_in(c, &ranges, zero, 0, &lo, &hi);
    return lo <= 0 && hi >= 0;
}

/* Sizes from the end of Y's range on by STEP for which ZERO is never zero go. False: there is none left, or too many were tried. */
static bool trim(Compilation *c, Signature *s, Dim zero, Sym y, int step)
{
    const int64_t lo = s->lo[y], hi = s->hi[y];
    int64_t at = step > 0 ? lo : hi;
    for (int tried = 0; tried < MOST_TRIED && at >= lo && at <= hi; tried++, at += step) {
        s->lo[y] = s->hi[y] = at;
        const bool holds = can_be_zero(c, s, zero);
        s->lo[y] = step > 0 && holds ? at : lo;
        s->hi[y] = step < 0 && holds ? at : hi;
        if (holds) return true;
    }
    return false;
}

/* The number of the first equation that holds for no size in the box; -1: none. */
static int trim_box(Compilation *c, Signature *s)
{
    for (int i = 0; i < equations_waiting(c); i++) {
        uint32_t node;
        const char *rule;
        const Dim zero = dim_resolve(c, equation_waiting(c, i, &node, &rule));
        for (Sym y = 1; zero && y <= c->symbol_count; y++)
            if (y != c->position && s->lo[y] < s->hi[y] && s->hi[y] < NO_LIMIT && dim_mentions(c, zero, y) && trim(c, s, zero, y, 1))
                trim(c, s, zero, y, -1);
        if (zero && !can_be_zero(c, s, zero)) return i;
    }
    return -1;
}

static bool check_equations(Compilation *c, Signature *s)
{
    const int i = trim_box(c, s);
    if (i < 0) return true;
    uint32_t node;
    const char *rule;
    const Dim zero = dim_resolve(c, equation_waiting(c, i, &node, &rule));
    const char *text = arena_text(&c->arena, "%s: in signature '%s', %s is never 0; expected equal dims, or an extent that is 1 in the model", rule,
                                  s->name, dim_text(c, zero));
    if (node) node_error(c, &c->graph.nodes[node], "%s", text);
    else diag_error(c, NULL, "%s", text);
    return false;
}

/* ---- every dim bounded */

static bool reported(const char **names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static void unbounded(Compilation *c, const Value *v, int axis, Dim d)
{
    const char *text = dim_text(c, d);
    if (v->producer) {
        node_error(c, &c->graph.nodes[v->producer], "output '%s' dim %d = %s has no upper bound", v->name, axis, text);
        diag_remedy(c, "its extent depends on data and no bound is known");
    } else {
        diag_error(c, arena_text(&c->arena, "input '%s'", v->name), "dim %d \"%s\" has no upper bound", axis, text);
        diag_remedy(c, "give one with --max '%s=N' or in the recipe (symbols: {%s: [1, N]})", text, text);
    }
}

/* Counts of loops and branches are bounded by dims: in this box, by a number. */
static void bound_counts(Compilation *c, Signature *s)
{
    for (Sym y = 1; y <= c->symbol_count; y++) {
        if (!c->symbols[y].bound) continue;
        int64_t most = signature_upper(c, s, c->symbols[y].bound);
        if (most < s->hi[y]) s->hi[y] = most < 0 ? 0 : most;
    }
}

/* What follows from another unbounded dim is no fault of its own. */
static bool follows(Compilation *c, const Signature *s, const Value *v)
{
    const Node *n = v->producer ? &c->graph.nodes[v->producer] : NULL;
    for (int i = 0; n && i < n->input_count; i++) {
        const Value *x = node_input(c, n, i);
        for (int k = 0; x && k < x->rank; k++)
            if (signature_upper(c, s, x->dims[k]) >= NO_LIMIT) return true;
    }
    return false;
}

#define MOST_ELEMENTS (INT64_C(1) << 38) /* blocks of 128 threads then fit a launch, and sizes and strides 63 bits */

/* At most MOST_ELEMENTS + 1, for more; 0: without a bound, which is said elsewhere. */
static int64_t upper_elements(Compilation *c, const Signature *s, const Value *v)
{
    int64_t elements = 1; /* room for what has none, as for one: strides are made all the same */
    for (int k = 0; k < v->rank; k++) {
        const int64_t upper = signature_upper(c, s, v->dims[k]);
        if (upper >= NO_LIMIT) return 0;
        if (upper > 0) elements = elements > MOST_ELEMENTS / upper ? MOST_ELEMENTS + 1 : elements * upper;
    }
    return elements;
}

static bool too_large(Compilation *c, const Signature *s, const Value *v) { return upper_elements(c, s, v) > MOST_ELEMENTS; }

static void check_size(Compilation *c, const Signature *s, const Value *v)
{
    const Node *n = v->producer ? &c->graph.nodes[v->producer] : NULL;
    if (!too_large(c, s, v)) return;
    for (int i = 0; n && i < n->input_count; i++)
        if (node_input(c, n, i) && too_large(c, s, node_input(c, n, i))) return; /* it follows from that */
    const char *text = arena_text(&c->arena, "in signature '%s', '%s' would have more than %lld elements", s->name, v->name, (long long)MOST_ELEMENTS);
    if (n) node_error(c, n, "%s", text);
    else diag_error(c, arena_text(&c->arena, "%s '%s'", v->is_input ? "input" : "initializer", v->name), "%s", text);
}

static void check_bounded(Compilation *c, const Signature *s)
{
    const char *names[64];
    int count = 0;
    for (uint32_t i = 1; i <= c->graph.value_count && count < 64; i++) {
        const Value *v = &c->graph.values[i];
        if (v->rank < 0 || (!v->uses && !v->is_input) || follows(c, s, v)) continue;
        for (int k = 0; k < v->rank && count < 64; k++) {
            if (signature_upper(c, s, v->dims[k]) < NO_LIMIT) continue;
            Dim d = dim_resolve(c, v->dims[k]);
            if (reported(names, count, dim_text(c, d))) continue;
            names[count++] = dim_text(c, d);
            unbounded(c, v, k, d);
        }
        check_size(c, s, v);
    }
}

static bool state_buffers(Compilation *c)
{
    const Signature *s = &c->signatures[1];
    for (int i = 0; i < c->pair_count; i++) {
        StatePair *p = &c->pairs[i];
        const Value *v = &c->graph.values[p->input];
        for (int k = 0; k < v->rank; k++) {
            int64_t rows = k == p->growing_axis ? c->capacity : signature_upper(c, s, v->dims[k]);
            for (int j = 2; k != p->growing_axis && j < c->signature_count; j++)
                if (signature_upper(c, &c->signatures[j], v->dims[k]) != rows) {
                    diag_error(c, p->input_name, "dim %d differs between signatures; expected one value, since they share the state", k);
                    return false;
                }
            p->upper[k] = dim_const(c, rows);
        }
    }
    return true;
}

/* Words of the extents table: 0 position, 1 tokens, 2 sampled; then what else is ranged. */
static void assign_slots(Compilation *c)
{
    int next = 3;
    for (Sym y = 1; y <= c->symbol_count; y++) {
        Symbol *s = &c->symbols[y];
        bool ranged = false;
        for (int j = 1; j < c->signature_count; j++) /* inside a signature, or from one to the next */
            ranged |= c->signatures[j].lo[y] != c->signatures[j].hi[y] || c->signatures[j].lo[y] != c->signatures[1].lo[y];
        if (s->equals || !ranged || s->class == SYM_UNKNOWN) continue;
        if (s->class == SYM_FIXED) s->class = SYM_RANGED;
        s->slot = y == c->position ? 0 : y == c->sequence && c->position ? 1 : next++;
    }
}

/* ---- the boxes */

static bool ranged_by(Compilation *c, int count, const Range *list, Sym y)
{
    for (int i = 0; i < count; i++)
        if (sym_find(c, list[i].symbol) == y) return true;
    return false;
}

/* Whether a range says how many tokens a step of prefill has. */
static bool tokens_given(Compilation *c)
{
    const SignatureSpec *spec = spec_named(c, "prefill");
    return ranged_by(c, c->recipe.range_count, c->recipe.ranges, c->sequence) || ranged_by(c, c->options.max_count, c->options.max, c->sequence) ||
           (spec && ranged_by(c, spec->range_count, spec->ranges, c->sequence));
}

/* Tokens of the longest step of prefill, where nobody says; WIDE_ROWS or more only on the ladder. */
static int64_t default_tokens(Compilation *c, bool ladder)
{
    const int64_t rows = c->batch ? c->signatures[1].hi[c->batch] : 1, room = c->capacity ? c->capacity : NO_LIMIT;
    const int64_t most = ladder ? LONG_ROWS / rows : 0, tokens = most < room ? most : room;
    if (tokens >= WIDE_ROWS) return tokens;
    return DEFAULT_PREFILL < room ? DEFAULT_PREFILL : room;
}

/* Whether what box S has more tokens than box LESS has a price: a launch for each in a loop over them, or a tensor that is large. */
static bool outgrows(Compilation *c, const Signature *less, const Signature *s)
{
    for (uint32_t i = 1; i <= c->loop_count; i++)
        if (c->loops[i].kind == LOOP_DIM && signature_upper(c, s, c->loops[i].trip) > signature_upper(c, less, c->loops[i].trip)) return true;
    for (uint32_t i = 1; i <= c->graph.value_count; i++) {
        const Value *v = &c->graph.values[i];
        if (v->rank < 0 || (!v->uses && !v->is_output)) continue;
        const int64_t elements = upper_elements(c, s, v);
        if (elements > LARGE_ELEMENTS && elements > upper_elements(c, less, v)) return true;
    }
    return false;
}

/* Box S, behind that of fewer tokens, as far as it pays: false when it does not. What is asked for pays while there are such steps. */
static bool shrink(Compilation *c, Signature *s)
{
    int64_t *tokens = &s->hi[c->sequence];
    if (trim_box(c, s) >= 0) return false;
    while (!c->options.prefill && *tokens >= WIDE_ROWS && outgrows(c, s - 1, s)) *tokens /= 2;
    return c->options.prefill || *tokens >= WIDE_ROWS;
}

/* The ladder is what the recipe names, or for a GPU: its kernels are chosen by the most rows that a step may have, so that those
 * for many make a short prompt slower. */
static bool add_prefills(Compilation *c)
{
    static const char name[] = "prefill_long";
    const bool named = spec_named(c, name), ladder = named || (!tokens_given(c) && codegen_for_gpu(c, c->options.targets));
    const int64_t longest = c->options.prefill ? c->options.prefill : default_tokens(c, ladder), room = c->capacity ? c->capacity : NO_LIMIT;
    if (!named && (!ladder || longest < WIDE_ROWS || room <= DEFAULT_PREFILL)) return add_box(c, "prefill", SIG_PREFILL, 1, longest);
    if (!add_box(c, "prefill", SIG_PREFILL, 1, longest < DEFAULT_PREFILL ? longest : DEFAULT_PREFILL)) return false;
    if (!add_box(c, name, SIG_PREFILL, DEFAULT_PREFILL + 1, longest)) return false;
    if (!named && !shrink(c, &c->signatures[c->signature_count - 1])) c->signature_count--;
    return true;
}

static bool add_boxes(Compilation *c)
{
    c->signatures = NEW_ARRAY(c, Signature, 4 + 4);
    signature_add(c, "load", SIG_LOAD);
    if (!c->pair_count || !token_input(c)) return add_box(c, "main", SIG_MAIN, 1, DEFAULT_PREFILL);
    if (!add_box(c, "decode", SIG_DECODE, 1, 1)) return false;
    if (c->sequence && !add_prefills(c)) return false;
    if (c->options.check_lengths) add_lengths(c);
    return true;
}

bool pass_signature(Compilation *c)
{
    if (!choose_capacity(c) || !add_boxes(c)) return false;
    for (int j = 1; j < c->signature_count; j++) {
        if (!check_equations(c, &c->signatures[j])) return false;
        bound_counts(c, &c->signatures[j]);
        check_bounded(c, &c->signatures[j]);
        if (diag_failed(c)) return false;
    }
    assign_slots(c);
    return state_buffers(c) && !diag_failed(c);
}
