/* classify - the step map, and what each symbol does: growing, fixed, derived or unknown, with the derivation.
 *
 * A state pair says what one step does to the dims of a state: the dims of the output are, at the next step, the dims of
 * the input. A symbol that this changes is growing. Growing symbols that start equal and step equally are equal. */
#include "compiler.h"
#include "dim.h"

static const char *pair_rule(Compilation *c, const StatePair *p)
{
    return arena_text(&c->arena, "state pair %s -> %s", p->input_name, p->output_name);
}

static Dim value_dim(Compilation *c, uint32_t v, int axis) { return dim_resolve(c, c->graph.values[v].dims[axis]); }

static bool single_symbol(Compilation *c, Dim d, Sym *s)
{
    const Poly *p = dim_poly(c, d);
    if (p->count != 1 || p->terms[0].degree != 1 || p->terms[0].coef != 1) return false;
    const Atom a = dims_of(c)->atoms[p->terms[0].atoms[0]];
    *s = a.a;
    return a.op == DIM_SYMBOL;
}

/* ---- chains: where a dim of a value comes from, walking up while the dim stays the same */

static const Value *origin_step(Compilation *c, const Value *v, Dim d, int *axis)
{
    const Node *n = &c->graph.nodes[v->producer];
    for (int i = 0; i < n->input_count && v->state; i++) { /* the node that makes a state from itself is an origin */
        const Value *in = node_input(c, n, i);
        if (in && in->state == v->state) return NULL;
    }
    for (int i = 0; i < n->input_count; i++) {
        const Value *in = node_input(c, n, i);
        if (!in || in->data) continue;
        for (int k = 0; k < in->rank; k++)
            if (dim_resolve(c, in->dims[k]) == d) { *axis = k; return in; }
    }
    return NULL;
}

/* Proofs from the origin of dim `axis` of V down to V; returns the last. */
static uint32_t chain(Compilation *c, const Value *v, int axis, uint32_t because)
{
    struct { const Value *value; int axis; } path[16];
    int length = 0;
    Dim d = dim_resolve(c, v->dims[axis]);
    while (v && length < 16) {
        path[length].value = v;
        path[length++].axis = axis;
        v = v->producer ? origin_step(c, v, d, &axis) : NULL;
    }
    while (length--) {
        const Value *at = path[length].value;
        const Node *n = at->producer ? &c->graph.nodes[at->producer] : NULL;
        const char *rule = n ? n->op_type : "input";
        because = proof_add(c, rule, n, because, "%s dim %d = %s", at->name, path[length].axis, dim_text(c, d));
    }
    return because;
}

/* ---- the step map */

/* The symbols of the axes that a step changes, all written as the first of them. */
static Dim as_first(Compilation *c, const Sym *grown, int count, Dim d)
{
    for (int i = 1; i < count && d; i++) d = dim_substitute(c, d, grown[i], dim_symbol(c, grown[0]));
    return dim_resolve(c, d);
}

/* States that start empty and feed each other: if all are equally long before a step and the step adds the same to each, they
 * always are. False only after an error. */
static bool join_crossed(Compilation *c)
{
    Sym *grown = NEW_ARRAY(c, Sym, c->pair_count * MAX_RANK + 1);
    Dim *after = NEW_ARRAY(c, Dim, c->pair_count * MAX_RANK + 1);
    int count = 0;
    bool crossed = false, good = true;
    for (int i = 0; i < c->pair_count; i++) {
        const Value *in = &c->graph.values[c->pairs[i].input], *out = &c->graph.values[c->pairs[i].output];
        for (int k = 0; k < in->rank && in->rank == out->rank; k++) {
            Dim before = value_dim(c, c->pairs[i].input, k);
            after[count] = value_dim(c, c->pairs[i].output, k);
            if (before != after[count] && before && after[count] && single_symbol(c, before, &grown[count])) count++;
        }
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) crossed |= grown[i] != grown[j] && dim_mentions(c, after[i], grown[j]);
    Dim step = crossed ? dim_sub(c, as_first(c, grown, count, after[0]), dim_symbol(c, grown[0])) : 0;
    if (!step || dim_mentions(c, step, grown[0])) return true;
    for (int i = 1; i < count; i++)
        if (!dim_equal(c, dim_sub(c, as_first(c, grown, count, after[i]), dim_symbol(c, grown[0])), step)) return true;
    for (int i = 1; i < count && good; i++)
        good = dim_equate(c, NULL, "states that start empty and feed each other grow alike", dim_symbol(c, grown[i]), dim_symbol(c, grown[0]));
    return good;
}

/* A step that may take rows away is none. */
static bool adds_rows(Compilation *c, Dim step)
{
    int64_t lo, hi;
    dim_bounds(c, step, &lo, &hi);
    return lo >= 0;
}

static bool pair_step(Compilation *c, StatePair *p)
{
    const Value *in = &c->graph.values[p->input], *out = &c->graph.values[p->output];
    if (in->rank != out->rank || in->dtype != out->dtype) {
        diag_error(c, p->input_name, "state pair with '%s': expected the same type, found %s rank %d and %s rank %d", p->output_name,
                   dtype_name(in->dtype), in->rank, dtype_name(out->dtype), out->rank);
        return false;
    }
    p->growing_axis = -1;
    for (int k = 0; k < in->rank; k++) {
        Dim before = value_dim(c, p->input, k), after = value_dim(c, p->output, k);
        if (before == after) continue;
        Sym s;
        Dim step = dim_sub(c, after, before);
        if (!single_symbol(c, before, &s) || !step || dim_mentions(c, step, s) || !adds_rows(c, step) ||
            p->growing_axis >= 0) {
            const Value *tokens = &c->graph.values[token_input(c)];
            c->state_stuck = dim_is(c, before, 0) && token_input(c) && tokens->rank >= 1 && !c->options.one_token;
            diag_error(c, p->input_name, "state pair with '%s': dim %d becomes %s after a step; expected %s plus what is fed", p->output_name,
                       k, dim_text(c, after), dim_text(c, before));
            return false;
        }
        p->growing_axis = k;
        if (!c->position) { c->position = s; c->position_step = step; continue; }
        if (s == c->position && dim_equal(c, step, c->position_step)) continue;
        if (!dim_equal(c, step, c->position_step)) {
            diag_error(c, p->input_name, "grows by %s a step, but '%s' grows by %s", dim_text(c, step),
                       c->symbols[c->position].name, dim_text(c, c->position_step));
            return false;
        }
        if (!dim_equate(c, NULL, "states that start empty and grow alike are equally long", before, dim_symbol(c, c->position))) return false;
        if (single_symbol(c, dim_resolve(c, dim_symbol(c, c->position)), &s)) c->position = s; /* either may be the one that stays */
    }
    return true;
}

static void prove_growth(Compilation *c)
{
    if (!c->position) return;
    for (int i = 0; i < c->pair_count; i++) {
        StatePair *p = &c->pairs[i];
        if (p->growing_axis < 0) continue;
        uint32_t because = chain(c, &c->graph.values[p->output], p->growing_axis, 0);
        p->proof = proof_add(c, pair_rule(c, p), NULL, because, "%s := %s each step", c->symbols[c->position].name,
                             dim_text(c, value_dim(c, p->output, p->growing_axis)));
        Symbol *s = &c->symbols[c->position];
        if (!s->proof) s->proof = p->proof;
    }
    c->symbols[c->position].class = SYM_GROWING;
}

static Sym token_symbol(Compilation *c, int axis_from_end)
{
    const Value *v = &c->graph.values[token_input(c)];
    Sym s;
    if (!token_input(c) || v->rank < axis_from_end) return 0;
    return single_symbol(c, dim_resolve(c, v->dims[v->rank - axis_from_end]), &s) ? s : 0;
}

/* Static caches have no dim that grows: their position is a symbol of the session, counted by the fed tokens. */
static void count_position(Compilation *c)
{
    if (c->position || !c->pair_count) return;
    c->position = sym_new(c, "position", true);
    c->symbols[c->position].class = SYM_GROWING;
    c->position_step = c->sequence ? dim_symbol(c, c->sequence) : dim_const(c, 1);
    c->symbols[c->position].proof = proof_add(c, "states of fixed size: rows are counted by the tokens fed", NULL, 0,
                                              "position := position + %s each step", dim_text(c, c->position_step));
}

static bool free_symbol(Compilation *c, Dim d)
{
    Sym s;
    return single_symbol(c, dim_resolve(c, d), &s) && s != c->sequence && s != c->position && s != c->batch;
}

/* Ones and positions that the device writes have as many rows as the tokens have, and a position for each token, unless the
 * graph says otherwise. */
static bool fed_rows(Compilation *c)
{
    const Value *t = &c->graph.values[token_input(c)];
    bool good = true;
    for (uint32_t i = 0; i < c->graph.input_count && token_input(c) && t->rank >= 2; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        if ((v->feed != FEED_ONES && v->feed != FEED_POSITION) || v->rank != t->rank) continue;
        if (free_symbol(c, v->dims[v->rank - 2]))
            good &= dim_equate(c, NULL, "the device writes a row for each row of tokens", v->dims[v->rank - 2], t->dims[t->rank - 2]);
        if (v->feed == FEED_POSITION && free_symbol(c, v->dims[v->rank - 1]))
            good &= dim_equate(c, NULL, "the device writes a position for each token", v->dims[v->rank - 1], t->dims[t->rank - 1]);
    }
    return good;
}

/* An input that the device fills with ones up to the present extent is as long as that extent, unless the graph says
 * otherwise. */
static bool fed_lengths(Compilation *c)
{
    if (!c->position) return true;
    Dim after = dim_add(c, dim_symbol(c, c->position), c->position_step);
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        Sym s;
        if (v->feed != FEED_ONES || v->rank < 1) continue;
        Dim length = dim_resolve(c, v->dims[v->rank - 1]);
        if (single_symbol(c, length, &s) && s != c->sequence && s != c->position && s != c->batch &&
            !dim_equate(c, NULL, "the device writes ones up to the present extent", length, after)) return false;
        length = dim_resolve(c, length);
        if (dim_is_const(c, length, NULL) || dim_equal(c, length, after)) continue;
        diag_error(c, arena_text(&c->arena, "input '%s'", v->name), "is fed with ones up to the present extent, %s, but it is %s long",
                   dim_text(c, dim_resolve(c, after)), dim_text(c, length));
        return false;
    }
    return true;
}

/* ---- symbols of inputs */

static bool input_dim(Compilation *c, Sym s, const Value **value, int *axis)
{
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        *value = &c->graph.values[c->graph.inputs[i]];
        for (*axis = 0; *axis < (*value)->rank; ++*axis)
            if ((*value)->dims[*axis] == dim_symbol(c, s)) return true;
    }
    return false;
}

/* The operand whose dim equals that of S at the node that decided it; its chain explains the equation. */
static uint32_t prove_derived(Compilation *c, Sym s)
{
    const Symbol *y = &c->symbols[s];
    Dim d = dim_resolve(c, dim_symbol(c, s));
    uint32_t because = c->position && dim_mentions(c, d, c->position) ? c->symbols[c->position].proof : 0;
    if (!y->solved_by) return proof_add(c, y->solved_rule, NULL, because, "%s = %s", y->name, dim_text(c, d));
    const Node *n = &c->graph.nodes[y->solved_by];
    for (int i = 0; i < n->input_count; i++) {
        const Value *v = node_input(c, n, i);
        for (int k = 0; v && k < v->rank; k++)
            if (!v->data && v->dims[k] != dim_symbol(c, s) && dim_resolve(c, v->dims[k]) == d) {
                because = chain(c, v, k, because);
                return proof_add(c, arena_text(&c->arena, "%s: %s", n->op_type, y->solved_rule), n, because,
                                 "%s = %s", y->name, dim_text(c, d));
            }
    }
    return proof_add(c, arena_text(&c->arena, "%s: %s", n->op_type, y->solved_rule), n, because, "%s = %s",
                     y->name, dim_text(c, d));
}

static void classify_symbols(Compilation *c)
{
    for (Sym s = 1; s <= c->symbol_count; s++) {
        Symbol *y = &c->symbols[s];
        const Value *v;
        int axis;
        if (y->equals) {
            uint32_t proof = y->declared ? prove_derived(c, s) : 0;
            c->symbols[s].proof = proof;
        } else if (s == c->position) continue;
        else if (input_dim(c, s, &v, &axis)) {
            y->class = SYM_FIXED;
            uint32_t proof = proof_add(c, "input", NULL, 0, "%s = %s dim %d; no step changes it", y->name, v->name, axis);
            c->symbols[s].proof = proof;
        }
    }
}

static void prove_inputs(Compilation *c)
{
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        Value *v = &c->graph.values[c->graph.inputs[i]];
        for (int k = v->rank - 1; k >= 0 && !v->proof; k--)
            for (Sym s = 1; s <= c->symbol_count; s++)
                if (v->dims[k] == dim_symbol(c, s) && c->symbols[s].proof) v->proof = c->symbols[s].proof;
    }
}

bool pass_classify(Compilation *c)
{
    if (!join_crossed(c)) return false;
    for (int i = 0; i < c->pair_count; i++)
        if (!pair_step(c, &c->pairs[i])) return false;
    prove_growth(c);
    c->sequence = token_symbol(c, 1);
    Sym first = token_symbol(c, 2);
    c->batch = first == c->sequence ? 0 : first;
    count_position(c);
    if (c->position && c->position_step) {
        Sym s;
        Dim step = dim_resolve(c, c->position_step);
        if (!c->sequence && single_symbol(c, step, &s)) c->sequence = s;
        c->symbols[c->position].slot = 0;
    }
    if (!fed_rows(c) || !fed_lengths(c)) return false;
    classify_symbols(c);
    prove_inputs(c);
    return !diag_failed(c);
}
