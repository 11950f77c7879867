/* dim.c - dims: canonical polynomials over atoms, hash-consed, with their arithmetic.
 *
 * A dim is a sum of terms, each an integer coefficient times a sorted product of atoms. Terms are sorted by degree
 * (highest first), then by their atoms; coefficients are never zero. So equal polynomials are equal indices. Arithmetic
 * that would overflow, or grow past MAX_TERMS, gives 0: absent, which every caller must treat as unknown. */
#include "dim.h"

#include <string.h>

static uint64_t hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

bool checked_add(int64_t a, int64_t b, int64_t *out)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) return false;
    *out = a + b;
    return true;
}

bool checked_mul(int64_t a, int64_t b, int64_t *out)
{
    if (a == 0 || b == 0) { *out = 0; return true; }
    if (a == -1 || b == -1) {
        int64_t other = a == -1 ? b : a;
        if (other == INT64_MIN) return false;
        *out = -other;
        return true;
    }
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a) : (b > 0 ? a < INT64_MIN / b : a < INT64_MAX / b)) return false;
    *out = a * b;
    return true;
}

int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

/* ---- tables */

Dims *dims_of(Compilation *c)
{
    if (!c->dims) {
        Dims *d = NEW(c, Dims);
        d->poly_room = 256;
        d->polys = NEW_ARRAY(c, Poly, d->poly_room);
        d->poly_count = 1;
        d->atom_room = 64;
        d->atoms = NEW_ARRAY(c, Atom, d->atom_room);
        d->atom_count = 1;
        d->bucket_count = 1024;
        d->buckets = NEW_ARRAY(c, uint32_t, d->bucket_count);
        d->epoch = 1;
        c->dims = d;
    }
    return c->dims;
}

static uint64_t poly_hash(const Term *t, uint32_t n)
{
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) {
        h = hash_mix(h, (uint64_t)t[i].coef);
        for (uint32_t k = 0; k < t[i].degree; k++) h = hash_mix(h, t[i].atoms[k]);
    }
    return h;
}

static int term_order(const Term *a, const Term *b)
{
    if (a->degree != b->degree) return a->degree > b->degree ? -1 : 1;
    for (uint32_t k = 0; k < a->degree; k++)
        if (a->atoms[k] != b->atoms[k]) return a->atoms[k] < b->atoms[k] ? -1 : 1;
    return 0;
}

static bool poly_same(const Poly *p, const Term *t, uint32_t n)
{
    if (p->count != n) return false;
    for (uint32_t i = 0; i < n; i++)
        if (p->terms[i].coef != t[i].coef || term_order(&p->terms[i], &t[i])) return false;
    return true;
}

static void rehash(Compilation *c, Dims *d)
{
    uint32_t count = d->bucket_count * 4;
    uint32_t *buckets = NEW_ARRAY(c, uint32_t, count);
    for (uint32_t i = 1; i < d->poly_count; i++) {
        Poly *p = &d->polys[i];
        uint32_t b = (uint32_t)(p->hash & (count - 1));
        p->next = buckets[b];
        buckets[b] = i;
    }
    d->buckets = buckets;
    d->bucket_count = count;
}

/* Terms must be sorted, merged and without zeros. */
static Dim poly_intern(Compilation *c, const Term *t, uint32_t n)
{
    Dims *d = dims_of(c);
    uint64_t h = poly_hash(t, n);
    for (uint32_t i = d->buckets[h & (d->bucket_count - 1)]; i; i = d->polys[i].next)
        if (d->polys[i].hash == h && poly_same(&d->polys[i], t, n)) return i;
    if (d->poly_count == d->poly_room) {
        Poly *bigger = NEW_ARRAY(c, Poly, d->poly_room * 2);
        memcpy(bigger, d->polys, sizeof(Poly) * d->poly_count);
        d->polys = bigger;
        d->poly_room *= 2;
    }
    if (d->poly_count > d->bucket_count * 2) rehash(c, d);
    Poly *p = &d->polys[d->poly_count];
    p->count = n;
    p->terms = NEW_ARRAY(c, Term, n ? n : 1);
    if (n) memcpy(p->terms, t, sizeof(Term) * n);
    p->hash = h;
    uint32_t b = (uint32_t)(h & (d->bucket_count - 1));
    p->next = d->buckets[b];
    d->buckets[b] = d->poly_count;
    return d->poly_count++;
}

static uint32_t atom_intern(Compilation *c, DimOp op, uint32_t a, uint32_t b)
{
    Dims *d = dims_of(c);
    for (uint32_t i = 1; i < d->atom_count; i++)
        if (d->atoms[i].op == op && d->atoms[i].a == a && d->atoms[i].b == b) return i;
    if (d->atom_count == d->atom_room) {
        Atom *bigger = NEW_ARRAY(c, Atom, d->atom_room * 2);
        memcpy(bigger, d->atoms, sizeof(Atom) * d->atom_count);
        d->atoms = bigger;
        d->atom_room *= 2;
    }
    d->atoms[d->atom_count] = (Atom){ op, a, b };
    return d->atom_count++;
}

const Poly *dim_poly(Compilation *c, Dim d) { return &dims_of(c)->polys[d]; }

/* ---- makers */

Dim dim_const(Compilation *c, int64_t v)
{
    Term t = { v, 0, { 0 } };
    return poly_intern(c, &t, v != 0);
}

static Dim dim_atom(Compilation *c, uint32_t atom)
{
    Term t = { 1, 1, { atom } };
    return poly_intern(c, &t, 1);
}

Dim dim_symbol(Compilation *c, Sym s) { return dim_atom(c, atom_intern(c, DIM_SYMBOL, s, 0)); }

bool dim_is_const(Compilation *c, Dim d, int64_t *v)
{
    if (!d) return false;
    const Poly *p = dim_poly(c, d);
    if (p->count > 1 || (p->count == 1 && p->terms[0].degree)) return false;
    if (v) *v = p->count ? p->terms[0].coef : 0;
    return true;
}

bool dim_is(Compilation *c, Dim d, int64_t v)
{
    int64_t have;
    return dim_is_const(c, d, &have) && have == v;
}

/* a + k * b, merging two sorted lists. */
static Dim add_scaled(Compilation *c, Dim a, Dim b, int64_t k)
{
    if (!a || !b) return 0;
    const Poly p = *dim_poly(c, a), q = *dim_poly(c, b);
    Term out[MAX_TERMS];
    uint32_t n = 0, i = 0, j = 0;
    while (i < p.count || j < q.count) {
        if (n == MAX_TERMS) return 0;
        int order = i == p.count ? 1 : j == q.count ? -1 : term_order(&p.terms[i], &q.terms[j]);
        if (order < 0) { out[n++] = p.terms[i++]; continue; }
        Term t = q.terms[j++];
        if (!checked_mul(t.coef, k, &t.coef)) return 0;
        if (order == 0 && !checked_add(t.coef, p.terms[i++].coef, &t.coef)) return 0;
        if (t.coef) out[n++] = t;
    }
    return poly_intern(c, out, n);
}

Dim dim_add(Compilation *c, Dim a, Dim b) { return add_scaled(c, a, b, 1); }
Dim dim_sub(Compilation *c, Dim a, Dim b) { return add_scaled(c, a, b, -1); }

Dim dim_scale(Compilation *c, Dim a, int64_t k) { return a ? add_scaled(c, dim_const(c, 0), a, k) : 0; }

/* d times one term. */
static Dim mul_term(Compilation *c, Dim d, const Term *t)
{
    const Poly p = *dim_poly(c, d);
    Dim sum = dim_const(c, 0);
    for (uint32_t i = 0; i < p.count && sum; i++) {
        Term r;
        if (p.terms[i].degree + t->degree > MAX_DEGREE || !checked_mul(p.terms[i].coef, t->coef, &r.coef)) return 0;
        uint32_t a = 0, b = 0;
        r.degree = p.terms[i].degree + t->degree;
        for (uint32_t k = 0; k < r.degree; k++) {
            bool first = b == t->degree || (a < p.terms[i].degree && p.terms[i].atoms[a] <= t->atoms[b]);
            r.atoms[k] = first ? p.terms[i].atoms[a++] : t->atoms[b++];
        }
        sum = dim_add(c, sum, poly_intern(c, &r, r.coef != 0));
    }
    return sum;
}

Dim dim_mul(Compilation *c, Dim a, Dim b)
{
    if (!a || !b) return 0;
    const Poly q = *dim_poly(c, b);
    Dim sum = dim_const(c, 0);
    for (uint32_t j = 0; j < q.count && sum; j++) {
        Dim part = mul_term(c, a, &q.terms[j]);
        sum = part ? dim_add(c, sum, part) : 0;
    }
    return sum;
}

/* ---- division */

/* *q = a / b as terms, when b's atoms are among a's and its coefficient divides. */
static bool term_div(const Term *a, const Term *b, Term *q)
{
    if (b->coef == 0 || (b->coef == -1 && a->coef == INT64_MIN) || a->coef % b->coef) return false;
    q->coef = a->coef / b->coef;
    q->degree = 0;
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->degree; i++) {
        if (j < b->degree && a->atoms[i] == b->atoms[j]) j++;
        else q->atoms[q->degree++] = a->atoms[i];
    }
    return j == b->degree;
}

/* Long division by the leading term; exact or nothing. */
Dim dim_div_exact(Compilation *c, Dim a, Dim b)
{
    if (!a || !b || dim_is(c, b, 0)) return 0;
    const Term lead = dim_poly(c, b)->terms[0];
    Dim quotient = dim_const(c, 0);
    for (int step = 0; step < MAX_TERMS && !dim_is(c, a, 0); step++) {
        Term q;
        if (!term_div(&dim_poly(c, a)->terms[0], &lead, &q)) return 0;
        Dim part = mul_term(c, b, &q);
        quotient = dim_add(c, quotient, poly_intern(c, &q, 1));
        if (!part || !quotient) return 0;
        a = dim_sub(c, a, part);
        if (!a) return 0;
    }
    return dim_is(c, a, 0) ? quotient : 0;
}

/* Splits a into b * *whole + *rest, term by term (b a single term). */
static bool split_multiple(Compilation *c, Dim a, Dim b, Dim *whole, Dim *rest)
{
    const Poly p = *dim_poly(c, a);
    if (dim_poly(c, b)->count != 1) return false;
    const Term divisor = dim_poly(c, b)->terms[0];
    *whole = *rest = dim_const(c, 0);
    for (uint32_t i = 0; i < p.count && *whole && *rest; i++) {
        Term q;
        if (term_div(&p.terms[i], &divisor, &q)) *whole = dim_add(c, *whole, poly_intern(c, &q, 1));
        else *rest = dim_add(c, *rest, poly_intern(c, &p.terms[i], 1));
    }
    return *whole && *rest;
}

static Dim divide(Compilation *c, DimOp op, Dim a, Dim b)
{
    int64_t x, y, lo, hi;
    if (dim_is(c, b, 0)) return 0;
    Dim exact = dim_div_exact(c, a, b);
    if (exact) return op == DIM_MOD ? dim_const(c, 0) : exact;
    bool both = dim_is_const(c, b, &y);
    if (both && dim_is_const(c, a, &x)) {
        int64_t q = floor_div(x, y);
        return dim_const(c, op == DIM_MOD ? x - q * y : op == DIM_CEILDIV ? -floor_div(-x, y) : q);
    }
    dim_bounds(c, b, &lo, &hi);
    Dim whole, rest;
    if (lo <= 0 || !split_multiple(c, a, b, &whole, &rest)) return dim_atom(c, atom_intern(c, op, a, b));
    int64_t rest_lo, rest_hi;
    dim_bounds(c, rest, &rest_lo, &rest_hi);
    if (rest_lo >= 0 && rest_hi < lo && op != DIM_CEILDIV) return op == DIM_MOD ? rest : whole;
    if (dim_is_const(c, rest, &x) && both) return dim_add(c, whole, divide(c, op, rest, b));
    Dim atom = dim_atom(c, atom_intern(c, op, rest, b));
    return op == DIM_MOD ? atom : dim_add(c, whole, atom);
}

static Dim extreme(Compilation *c, DimOp op, Dim a, Dim b)
{
    int64_t lo, hi;
    Dim difference = dim_sub(c, a, b);
    if (!difference) return 0;
    dim_bounds(c, difference, &lo, &hi);
    if (lo >= 0) return op == DIM_MAX ? a : b;
    if (hi <= 0) return op == DIM_MAX ? b : a;
    return dim_atom(c, atom_intern(c, op, a < b ? a : b, a < b ? b : a));
}

Dim dim_op(Compilation *c, DimOp op, Dim a, Dim b)
{
    if (!a || !b) return 0;
    return op == DIM_MIN || op == DIM_MAX ? extreme(c, op, a, b) : divide(c, op, a, b);
}

/* ---- bounds: intervals, saturating at the ends of int64 */

static int64_t saturate(bool fits, int64_t v, bool negative) { return fits ? v : negative ? INT64_MIN : INT64_MAX; }

static int64_t sat_add(int64_t a, int64_t b)
{
    if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
    if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
    int64_t v;
    bool fits = checked_add(a, b, &v);
    return saturate(fits, v, a < 0);
}

static int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t v;
    if (a == 0 || b == 0) return 0;
    bool infinite = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
    bool fits = !infinite && checked_mul(a, b, &v);
    return saturate(fits, fits ? v : 0, (a < 0) != (b < 0));
}

static void interval_mul(int64_t *lo, int64_t *hi, int64_t l, int64_t h)
{
    int64_t p[4] = { sat_mul(*lo, l), sat_mul(*lo, h), sat_mul(*hi, l), sat_mul(*hi, h) };
    *lo = *hi = p[0];
    for (int i = 1; i < 4; i++) {
        if (p[i] < *lo) *lo = p[i];
        if (p[i] > *hi) *hi = p[i];
    }
}

static void quotient_bounds(const Atom *a, int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    if (blo <= 0) return;
    if (a->op == DIM_MOD) {
        *lo = 0;
        *hi = bhi == INT64_MAX ? INT64_MAX : bhi - 1;
        if (alo >= 0 && ahi < *hi) *hi = ahi;
        return;
    }
    int64_t up = a->op == DIM_CEILDIV;
    if (alo != INT64_MIN) *lo = alo >= 0 ? (bhi == INT64_MAX ? 0 : (up ? -floor_div(-alo, bhi) : alo / bhi)) : floor_div(alo, blo);
    if (ahi != INT64_MAX) *hi = ahi >= 0 ? (up ? -floor_div(-ahi, blo) : ahi / blo) : 0;
}

static void atom_bounds(Compilation *c, const Ranges *r, const Atom *a, int depth, int64_t *lo, int64_t *hi)
{
    if (a->op == DIM_SYMBOL) {
        *lo = r->lo ? r->lo[a->a] : c->symbols[a->a].lo;
        *hi = r->hi ? r->hi[a->a] : c->symbols[a->a].hi;
        return;
    }
    int64_t alo, ahi, blo, bhi;
    dim_bounds_in(c, r, a->a, depth + 1, &alo, &ahi);
    dim_bounds_in(c, r, a->b, depth + 1, &blo, &bhi);
    if (a->op == DIM_MIN || a->op == DIM_MAX) {
        bool low = a->op == DIM_MIN;
        *lo = (alo < blo) == low ? alo : blo;
        *hi = (ahi < bhi) == low ? ahi : bhi;
    } else quotient_bounds(a, alo, ahi, blo, bhi, lo, hi);
}

void dim_bounds_in(Compilation *c, const Ranges *r, Dim d, int depth, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    if (!d || depth > MAX_DEPTH) return;
    const Poly p = *dim_poly(c, d);
    int64_t sum_lo = 0, sum_hi = 0;
    for (uint32_t i = 0; i < p.count; i++) {
        int64_t l = p.terms[i].coef, h = l;
        for (uint32_t k = 0; k < p.terms[i].degree; k++) {
            int64_t al, ah;
            const Atom atom = dims_of(c)->atoms[p.terms[i].atoms[k]];
            atom_bounds(c, r, &atom, depth, &al, &ah);
            interval_mul(&l, &h, al, ah);
        }
        sum_lo = sat_add(sum_lo, l);
        sum_hi = sum_hi == INT64_MAX || h == INT64_MAX ? INT64_MAX : sat_add(sum_hi, h);
    }
    *lo = sum_lo;
    *hi = sum_hi;
}

void dim_bounds(Compilation *c, Dim d, int64_t *lo, int64_t *hi)
{
    const Ranges none = { NULL, NULL };
    dim_bounds_in(c, &none, d, 0, lo, hi);
}

/* ---- substitution */

/* Rebuilds d with each symbol replaced by map(symbol); 0 keeps it. */
static Dim rewrite(Compilation *c, Dim d, const SymbolMap *map, int depth);

static Dim rewrite_atom(Compilation *c, uint32_t index, const SymbolMap *map, int depth)
{
    const Atom a = dims_of(c)->atoms[index];
    if (a.op == DIM_SYMBOL) {
        Dim by = map->replace(c, map->context, a.a);
        return by ? by : dim_atom(c, index);
    }
    return dim_op(c, a.op, rewrite(c, a.a, map, depth + 1), rewrite(c, a.b, map, depth + 1));
}

static Dim rewrite(Compilation *c, Dim d, const SymbolMap *map, int depth)
{
    if (!d || depth > MAX_DEPTH) return 0;
    const Poly p = *dim_poly(c, d);
    Dim sum = dim_const(c, 0);
    for (uint32_t i = 0; i < p.count && sum; i++) {
        Dim product = dim_const(c, p.terms[i].coef);
        for (uint32_t k = 0; k < p.terms[i].degree && product; k++)
            product = dim_mul(c, product, rewrite_atom(c, p.terms[i].atoms[k], map, depth));
        sum = product ? dim_add(c, sum, product) : 0;
    }
    return sum;
}

Dim dim_map(Compilation *c, Dim d, const SymbolMap *map) { return rewrite(c, d, map, 0); }

typedef struct OneSymbol { Sym symbol; Dim by; } OneSymbol;

static Dim replace_one(Compilation *c, const void *context, Sym s)
{
    (void)c;
    const OneSymbol *one = context;
    return s == one->symbol ? one->by : 0;
}

Dim dim_substitute(Compilation *c, Dim d, Sym s, Dim by)
{
    OneSymbol one = { s, by };
    SymbolMap map = { replace_one, &one };
    return dim_map(c, d, &map);
}

static bool mentions(Compilation *c, Dim d, Sym s, int depth)
{
    if (!d || depth > MAX_DEPTH) return false;
    const Poly p = *dim_poly(c, d);
    for (uint32_t i = 0; i < p.count; i++)
        for (uint32_t k = 0; k < p.terms[i].degree; k++) {
            const Atom a = dims_of(c)->atoms[p.terms[i].atoms[k]];
            if (a.op == DIM_SYMBOL ? a.a == s : mentions(c, a.a, s, depth + 1) || mentions(c, a.b, s, depth + 1)) return true;
        }
    return false;
}

bool dim_mentions(Compilation *c, Dim d, Sym s) { return mentions(c, d, s, 0); }

static Dim replace_solved(Compilation *c, const void *context, Sym s)
{
    (void)context;
    return c->symbols[s].equals;
}

/* Eliminated symbols are replaced until none is left; the result is remembered until the next equation. */
Dim dim_resolve(Compilation *c, Dim d)
{
    if (!d) return 0;
    Dims *t = dims_of(c);
    if (t->polys[d].resolved_epoch == t->epoch) return t->polys[d].resolved;
    const SymbolMap map = { replace_solved, NULL };
    Dim now = d;
    for (int round = 0; round < MAX_DEPTH; round++) {
        Dim next = dim_map(c, now, &map);
        if (next == now || !next) { now = next; break; }
        now = next;
    }
    if (now) {
        t->polys[d].resolved = now;
        t->polys[d].resolved_epoch = t->epoch;
    }
    return now;
}

bool dim_equal(Compilation *c, Dim a, Dim b) { return a && b && dim_resolve(c, a) == dim_resolve(c, b); }
