/* equations.c - the equations that a graph implies between dims, solved as they come.
 *
 * An equation a = b is kept as a - b = 0. A symbol that occurs in it once, alone, with coefficient 1 or -1 is eliminated:
 * replaced everywhere by the rest. What has no such symbol waits, and is tried again after each elimination. */
#include "dim.h"

#include <string.h>

typedef struct Pending { Dim zero; uint32_t node; const char *rule; } Pending;
typedef struct Equations { int count, room; Pending *pending; } Equations;

static Equations *equations_of(Compilation *c)
{
    if (!c->equations) c->equations = NEW(c, Equations);
    return c->equations;
}

void pending_add(Compilation *c, Dim zero, uint32_t node, const char *rule)
{
    Equations *e = equations_of(c);
    for (int i = 0; i < e->count; i++)
        if (e->pending[i].zero == zero) return;
    if (e->count == e->room) {
        int room = e->room ? e->room * 2 : 16;
        Pending *bigger = NEW_ARRAY(c, Pending, room);
        if (e->count) memcpy(bigger, e->pending, sizeof(Pending) * (size_t)e->count);
        e->pending = bigger;
        e->room = room;
    }
    e->pending[e->count++] = (Pending){ zero, node, rule };
}

static uint64_t gcd(uint64_t a, uint64_t b) { return b ? gcd(b, a % b) : a; }

/* Divides all terms by what they share. A shared symbol counts tokens, rows or the like; the equation holds for all its
 * values, so also for those that are not zero. */
static Dim primitive_part(Compilation *c, Dim zero)
{
    const Poly p = *dim_poly(c, zero);
    if (!p.count || (p.count == 1 && p.terms[0].degree == 1)) return zero; /* here it is what the equation says of the symbol */
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < p.count; i++)
        divisor = gcd(divisor, p.terms[i].coef < 0 ? 0 - (uint64_t)p.terms[i].coef : (uint64_t)p.terms[i].coef);
    if (divisor > INT64_MAX) return zero;
    Dim common = dim_const(c, (int64_t)divisor);
    const Term first = p.terms[0];
    for (uint32_t k = 0; k < first.degree; k++) {
        const Atom a = dims_of(c)->atoms[first.atoms[k]];
        if (a.op != DIM_SYMBOL) continue;
        Dim candidate = dim_mul(c, common, dim_symbol(c, a.a));
        if (candidate && dim_div_exact(c, zero, candidate)) common = candidate;
    }
    Dim part = dim_div_exact(c, zero, common);
    return part ? part : zero;
}

/* The symbol to eliminate from zero: the least worth keeping, of those, the youngest. */
static Sym choose_symbol(Compilation *c, Dim zero, int64_t *coef)
{
    const Poly p = *dim_poly(c, zero);
    Sym best = 0;
    for (uint32_t i = 0; i < p.count; i++) {
        const Term t = p.terms[i];
        if (t.degree != 1 || (t.coef != 1 && t.coef != -1)) continue;
        const Atom a = dims_of(c)->atoms[t.atoms[0]];
        if (a.op != DIM_SYMBOL) continue;
        if (best && c->symbols[a.a].keep > c->symbols[best].keep) continue;
        if (best && c->symbols[a.a].keep == c->symbols[best].keep && a.a < best) continue;
        Dim rest = dim_sub(c, zero, dim_scale(c, dim_symbol(c, a.a), t.coef));
        if (!rest || dim_mentions(c, rest, a.a)) continue;
        best = a.a;
        *coef = t.coef;
    }
    return best;
}

static bool never_zero(Compilation *c, Dim d)
{
    int64_t lo, hi;
    if (!d) return false;
    dim_bounds(c, d, &lo, &hi);
    return lo > 0 || hi < 0;
}

/* zero with each min and max replaced by the operand that it must be, where the other would never give zero: what
 * max(0, n - min(1, n)) = t says of n when t is at least 1. */
static Dim decide_extremes(Compilation *c, Dim zero)
{
    for (uint32_t i = 0; i < dim_poly(c, zero)->count; i++) {
        const Term t = dim_poly(c, zero)->terms[i];
        if (t.degree != 1) continue;
        const Atom a = dims_of(c)->atoms[t.atoms[0]];
        if (a.op != DIM_MIN && a.op != DIM_MAX) continue;
        Dim rest = dim_sub(c, zero, dim_scale(c, dim_op(c, a.op, a.a, a.b), t.coef));
        if (!rest) continue;
        Dim first = dim_add(c, rest, dim_scale(c, a.a, t.coef)), second = dim_add(c, rest, dim_scale(c, a.b, t.coef));
        Dim chosen = never_zero(c, first) ? second : never_zero(c, second) ? first : 0;
        if (!chosen || dim_is_const(c, chosen, NULL)) continue;
        zero = chosen;
        i = UINT32_MAX; /* from the start again: there are fewer now */
    }
    return zero;
}

static void eliminate(Compilation *c, Sym s, Dim by, uint32_t node, const char *rule)
{
    Symbol *y = &c->symbols[s];
    y->equals = by;
    y->class = SYM_DERIVED;
    y->solved_by = node;
    y->solved_rule = rule;
    dims_of(c)->epoch++;
    for (Sym other = 1; other <= c->symbol_count; other++) /* what is eliminated stays in terms of what is free */
        if (c->symbols[other].equals && dim_mentions(c, c->symbols[other].equals, s))
            c->symbols[other].equals = dim_substitute(c, c->symbols[other].equals, s, by);
}

typedef enum Outcome { HOLDS, SOLVED, WAITS, FAILS } Outcome;

static Outcome solve(Compilation *c, Dim zero, uint32_t node, const char *rule)
{
    zero = dim_resolve(c, zero);
    if (!zero) return WAITS;
    if (dim_is(c, zero, 0)) return HOLDS;
    if (dim_is_const(c, zero, NULL)) return FAILS;
    zero = primitive_part(c, decide_extremes(c, zero));
    int64_t coef, value;
    Sym s = choose_symbol(c, zero, &coef);
    if (!s) return WAITS;
    Dim rest = dim_sub(c, zero, dim_scale(c, dim_symbol(c, s), coef));
    Dim by = dim_scale(c, rest, -coef);
    if (dim_is_const(c, by, &value) && (value < c->symbols[s].lo || value > c->symbols[s].hi)) return FAILS;
    eliminate(c, s, by, node, rule);
    return SOLVED;
}

static bool contradiction(Compilation *c, uint32_t node, const char *rule, Dim a, Dim b)
{
    const char *left = dim_text(c, a), *right = dim_text(c, b);
    if (node) node_error(c, &c->graph.nodes[node], "%s: expected equal dims, found %s and %s", rule, left, right);
    else diag_error(c, NULL, "%s: expected equal dims, found %s and %s", rule, left, right);
    return false;
}

static bool retry(Compilation *c)
{
    Equations *e = equations_of(c);
    bool again = true, good = true;
    while (again) {
        again = false;
        for (int i = 0; i < e->count; i++) {
            Pending p = e->pending[i];
            Outcome o = solve(c, p.zero, p.node, p.rule);
            if (o == WAITS) continue;
            e->pending[i--] = e->pending[--e->count];
            if (o == FAILS) good = contradiction(c, p.node, p.rule, dim_resolve(c, p.zero), dim_const(c, 0));
            if (o == SOLVED) again = true;
        }
    }
    return good;
}

bool dim_equate(Compilation *c, const Node *n, const char *rule, Dim a, Dim b)
{
    if (!a || !b) return true;
    uint32_t node = n ? (uint32_t)(n - c->graph.nodes) : 0;
    Dim left = dim_resolve(c, a), right = dim_resolve(c, b);
    if (left && left == right) return true;
    Dim zero = dim_sub(c, left ? left : a, right ? right : b);
    if (!zero) return true;
    switch (solve(c, zero, node, rule)) {
    case HOLDS: return true;
    case SOLVED: return retry(c);
    case WAITS: pending_add(c, zero, node, rule); return true;
    case FAILS: break;
    }
    return contradiction(c, node, rule, left, right);
}

/* Nodes after AT moved on by BY. */
void equations_shift(Compilation *c, uint32_t at, uint32_t by)
{
    Equations *e = equations_of(c);
    for (int i = 0; i < e->count; i++)
        if (e->pending[i].node > at) e->pending[i].node += by;
}

int equations_waiting(Compilation *c) { return equations_of(c)->count; }

Dim equation_waiting(Compilation *c, int i, uint32_t *node, const char **rule)
{
    const Pending *p = &equations_of(c)->pending[i];
    *node = p->node;
    *rule = p->rule;
    return p->zero;
}
