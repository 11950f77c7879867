/* poly.c - the polynomials of poly.h: sums of terms in graded order, hash-consed, over atoms that are a symbol or the
 * quotient, minimum or maximum of two polynomials. Shares nothing with the compiler's dims, on purpose. */
#include "poly.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = 128, DEGREE = 8, BUCKETS = 4096, DEPTH = 24 };

typedef struct term {
    int64_t coef;
    uint32_t degree, atoms[DEGREE]; /* ascending */
} term;

typedef struct entry {
    uint32_t first, count, next; /* in terms; next of its bucket */
} entry;

typedef struct atom {
    uint32_t op, a, b; /* SYMBOL: its index in a; FLOORDIV, MIN, MAX: two polynomials */
} atom;

struct poly_table {
    uint32_t symbol_count, term_count, term_room, entry_count, entry_room, atom_count, atom_room;
    int64_t *lo, *hi;
    term *terms;
    entry *entries; /* from 1 on */
    atom *atoms;
    uint32_t buckets[BUCKETS];
    int no_memory;
};

typedef struct sum { /* of terms, being made */
    uint32_t count;
    int failed;
    term terms[TERMS];
} sum;

static int grow(poly_table *t, void **array, uint32_t *room, uint32_t needed, size_t size) {
    if (needed <= *room) return 0;
    uint32_t wanted = *room ? *room * 2 : 256;
    while (wanted < needed) wanted *= 2;
    void *grown = realloc(*array, wanted * size);
    if (!grown) return t->no_memory = 1;
    *array = grown;
    *room = wanted;
    return 0;
}

poly_table *poly_table_new(uint32_t symbol_count, const int64_t *lo, const int64_t *hi) {
    poly_table *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->lo = calloc(symbol_count + 1, sizeof *t->lo);
    t->hi = calloc(symbol_count + 1, sizeof *t->hi);
    void *entries = NULL;
    if (!t->lo || !t->hi || grow(t, &entries, &t->entry_room, 256, sizeof *t->entries)) {
        poly_table_free(t);
        return NULL;
    }
    t->entries = entries;
    t->entries[0] = (entry){0, 0, 0};
    t->entry_count = 1;
    t->symbol_count = symbol_count;
    memcpy(t->lo, lo, symbol_count * sizeof *lo);
    memcpy(t->hi, hi, symbol_count * sizeof *hi);
    return t;
}

void poly_table_free(poly_table *t) {
    if (!t) return;
    free(t->lo);
    free(t->hi);
    free(t->terms);
    free(t->entries);
    free(t->atoms);
    free(t);
}

int poly_no_memory(const poly_table *t) { return t->no_memory; }

/* --- sums --- */

static int compare(const term *a, const term *b) {
    if (a->degree != b->degree) return a->degree < b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->atoms[i] != b->atoms[i]) return a->atoms[i] < b->atoms[i] ? -1 : 1;
    return 0;
}

static void add_term(sum *s, const term *x) {
    uint32_t at = 0;
    while (at < s->count && compare(&s->terms[at], x) < 0) at++;
    if (at < s->count && compare(&s->terms[at], x) == 0) {
        s->failed |= plan_add_i64(s->terms[at].coef, x->coef, &s->terms[at].coef);
        if (s->terms[at].coef == 0 && !s->failed) memmove(&s->terms[at], &s->terms[at + 1], (--s->count - at) * sizeof(term));
        return;
    }
    if (x->coef == 0) return;
    if (s->count == TERMS) {
        s->failed = 1;
        return;
    }
    memmove(&s->terms[at + 1], &s->terms[at], (s->count++ - at) * sizeof(term));
    s->terms[at] = *x;
}

static void add_scaled(const poly_table *t, sum *s, poly a, int64_t by) {
    for (uint32_t i = 0; i < t->entries[a].count; i++) {
        term x = t->terms[t->entries[a].first + i];
        s->failed |= plan_mul_i64(x.coef, by, &x.coef);
        add_term(s, &x);
    }
}

static int same(const term *a, const term *b) { return a->coef == b->coef && compare(a, b) == 0; }

static uint32_t hash_sum(const sum *s) {
    uint64_t h = s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        h = (h ^ (uint64_t)s->terms[i].coef) * UINT64_C(0x9e3779b97f4a7c15);
        for (uint32_t k = 0; k < s->terms[i].degree; k++) h = (h ^ s->terms[i].atoms[k]) * UINT64_C(0xc2b2ae3d27d4eb4f);
    }
    return (uint32_t)(h >> 40) % BUCKETS;
}

static poly intern(poly_table *t, const sum *s) {
    if (s->failed) return 0;
    uint32_t bucket = hash_sum(s);
    for (uint32_t e = t->buckets[bucket]; e; e = t->entries[e].next) {
        uint32_t i = 0;
        if (t->entries[e].count != s->count) continue;
        while (i < s->count && same(&s->terms[i], &t->terms[t->entries[e].first + i])) i++;
        if (i == s->count) return e;
    }
    void *terms = t->terms, *entries = t->entries;
    int failed = grow(t, &terms, &t->term_room, t->term_count + s->count + 1, sizeof(term)) ||
                 grow(t, &entries, &t->entry_room, t->entry_count + 1, sizeof(entry));
    t->terms = terms;
    t->entries = entries;
    if (failed) return 0;
    memcpy(&t->terms[t->term_count], s->terms, s->count * sizeof(term));
    t->entries[t->entry_count] = (entry){t->term_count, s->count, t->buckets[bucket]};
    t->term_count += s->count;
    t->buckets[bucket] = t->entry_count;
    return t->entry_count++;
}

static poly from_atom(poly_table *t, uint32_t op, uint32_t a, uint32_t b) {
    sum s = {.count = 1};
    uint32_t i = 0;
    while (i < t->atom_count && !(t->atoms[i].op == op && t->atoms[i].a == a && t->atoms[i].b == b)) i++;
    if (i == t->atom_count) {
        void *atoms = t->atoms;
        int failed = grow(t, &atoms, &t->atom_room, i + 1, sizeof(atom));
        t->atoms = atoms;
        if (failed) return 0;
        t->atoms[t->atom_count++] = (atom){op, a, b};
    }
    s.terms[0] = (term){.coef = 1, .degree = 1, .atoms = {i}};
    return intern(t, &s);
}

poly poly_const(poly_table *t, int64_t value) {
    sum s = {.count = value != 0};
    s.terms[0] = (term){.coef = value};
    return intern(t, &s);
}

poly poly_symbol(poly_table *t, uint32_t symbol) { return from_atom(t, PLAN_EXPR_SYMBOL, symbol, 0); }

static poly combine(poly_table *t, poly a, poly b, int64_t by) {
    sum s = {.count = 0};
    if (!a || !b) return 0;
    add_scaled(t, &s, a, 1);
    add_scaled(t, &s, b, by);
    return intern(t, &s);
}

poly poly_add(poly_table *t, poly a, poly b) { return combine(t, a, b, 1); }
poly poly_sub(poly_table *t, poly a, poly b) { return combine(t, a, b, -1); }

static int multiply(const term *a, const term *b, term *out) {
    uint32_t i = 0, k = 0;
    *out = (term){.degree = a->degree + b->degree};
    if (out->degree > DEGREE || plan_mul_i64(a->coef, b->coef, &out->coef)) return 1;
    for (uint32_t n = 0; n < out->degree; n++)
        out->atoms[n] = k == b->degree || (i < a->degree && a->atoms[i] <= b->atoms[k]) ? a->atoms[i++] : b->atoms[k++];
    return 0;
}

poly poly_mul(poly_table *t, poly a, poly b) {
    sum s = {.count = 0};
    if (!a || !b) return 0;
    for (uint32_t i = 0; i < t->entries[a].count; i++)
        for (uint32_t k = 0; k < t->entries[b].count; k++) {
            term x;
            if (multiply(&t->terms[t->entries[a].first + i], &t->terms[t->entries[b].first + k], &x)) return 0;
            add_term(&s, &x);
        }
    return intern(t, &s);
}

/* --- what is known of a polynomial --- */

int poly_value(const poly_table *t, poly a, int64_t *out) {
    if (!a || t->entries[a].count > 1) return 0;
    const term *x = &t->terms[t->entries[a].first];
    if (t->entries[a].count && x->degree) return 0;
    *out = t->entries[a].count ? x->coef : 0;
    return 1;
}

int poly_is(const poly_table *t, poly a, int64_t value) {
    int64_t found;
    return poly_value(t, a, &found) && found == value;
}

static int mentions(const poly_table *t, poly a, uint32_t symbol, int depth) {
    for (uint32_t i = 0; depth < DEPTH && i < t->entries[a].count; i++)
        for (uint32_t k = 0; k < t->terms[t->entries[a].first + i].degree; k++) {
            const atom *x = &t->atoms[t->terms[t->entries[a].first + i].atoms[k]];
            if (x->op == PLAN_EXPR_SYMBOL ? x->a == symbol : mentions(t, x->a, symbol, depth + 1) || mentions(t, x->b, symbol, depth + 1))
                return 1;
        }
    return 0;
}

int poly_mentions(const poly_table *t, poly a, uint32_t symbol) { return a && mentions(t, a, symbol, 0); }

typedef struct interval { int64_t lo, hi; } interval;

static int infinite(int64_t x) { return x == INT64_MIN || x == INT64_MAX; }

static int64_t times(int64_t a, int64_t b) {
    int64_t out;
    if (a == 0 || b == 0) return 0;
    if (infinite(a) || infinite(b) || plan_mul_i64(a, b, &out)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return out;
}

static int64_t plus(int64_t a, int64_t b, int64_t whole) { /* WHOLE: the infinity that wins */
    int64_t out;
    if (a == whole || b == whole) return whole;
    if (infinite(a) || infinite(b)) return infinite(a) ? a : b;
    return plan_add_i64(a, b, &out) ? whole : out;
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static interval product(interval a, interval b) {
    int64_t p = times(a.lo, b.lo), q = times(a.lo, b.hi), r = times(a.hi, b.lo), s = times(a.hi, b.hi);
    return (interval){least_of(least_of(p, q), least_of(r, s)), most_of(most_of(p, q), most_of(r, s))};
}

/* Quotients with a divisor that may be 0 or negative are not bounded. */
static interval quotient(interval a, interval b) {
    interval all = {INT64_MIN, INT64_MAX};
    if (b.lo < 1) return all;
    int64_t low = a.lo >= 0 ? b.hi : b.lo, high = a.hi >= 0 ? b.lo : b.hi;
    if (!infinite(a.lo)) all.lo = infinite(low) ? 0 : floor_div(a.lo, low);
    if (!infinite(a.hi)) all.hi = infinite(high) ? -1 : floor_div(a.hi, high);
    return all;
}

static interval range_of(const poly_table *t, poly a, const int64_t *lo, const int64_t *hi, int depth);

static interval range_of_atom(const poly_table *t, const atom *x, const int64_t *lo, const int64_t *hi, int depth) {
    if (x->op == PLAN_EXPR_SYMBOL) return (interval){lo[x->a], hi[x->a]};
    interval a = range_of(t, x->a, lo, hi, depth + 1), b = range_of(t, x->b, lo, hi, depth + 1);
    if (x->op == PLAN_EXPR_MIN) return (interval){least_of(a.lo, b.lo), least_of(a.hi, b.hi)};
    if (x->op == PLAN_EXPR_MAX) return (interval){most_of(a.lo, b.lo), most_of(a.hi, b.hi)};
    return quotient(a, b);
}

static interval range_of(const poly_table *t, poly a, const int64_t *lo, const int64_t *hi, int depth) {
    interval all = {INT64_MIN, INT64_MAX}, total = {0, 0};
    if (!a || depth > DEPTH) return all;
    for (uint32_t i = 0; i < t->entries[a].count; i++) {
        const term *x = &t->terms[t->entries[a].first + i];
        interval part = {x->coef, x->coef};
        for (uint32_t k = 0; k < x->degree; k++) part = product(part, range_of_atom(t, &t->atoms[x->atoms[k]], lo, hi, depth));
        total = (interval){plus(total.lo, part.lo, INT64_MIN), plus(total.hi, part.hi, INT64_MAX)};
    }
    return total;
}

void poly_bounds(const poly_table *t, poly a, const int64_t *lo, const int64_t *hi, int64_t *least, int64_t *most) {
    interval found = range_of(t, a, lo ? lo : t->lo, hi ? hi : t->hi, 0);
    *least = found.lo;
    *most = found.hi;
}

/* --- quotients, minimum, maximum --- */

static int divide_term(const term *a, const term *b, term *out) {
    uint32_t k = 0;
    *out = (term){.coef = 0};
    if ((b->coef == -1 && a->coef == INT64_MIN) || a->coef % b->coef != 0) return 1;
    out->coef = a->coef / b->coef;
    for (uint32_t i = 0; i < a->degree; i++) {
        if (k < b->degree && a->atoms[i] == b->atoms[k]) k++;
        else out->atoms[out->degree++] = a->atoms[i];
    }
    return k < b->degree;
}

/* By leading terms, as on paper. */
poly poly_div_exact(poly_table *t, poly a, poly b) {
    sum result = {.count = 0};
    if (!a || !b || !t->entries[b].count) return 0;
    while (t->entries[a].count) {
        term x;
        sum one = {.count = 1};
        const entry *ea = &t->entries[a], *eb = &t->entries[b];
        if (divide_term(&t->terms[ea->first + ea->count - 1], &t->terms[eb->first + eb->count - 1], &x)) return 0;
        add_term(&result, &x);
        one.terms[0] = x;
        a = poly_sub(t, a, poly_mul(t, intern(t, &one), b));
        if (!a || result.failed) return 0;
    }
    return intern(t, &result);
}

/* a = k q + r, with the coefficients of r in 0..k-1: a / k = q + r / k. */
static poly floor_by(poly_table *t, poly a, int64_t k) {
    sum q = {.count = 0}, r = {.count = 0};
    for (uint32_t i = 0; i < t->entries[a].count; i++) {
        term x = t->terms[t->entries[a].first + i], y = x;
        x.coef = floor_div(x.coef, k);
        y.coef -= x.coef * k;
        add_term(&q, &x);
        add_term(&r, &y);
    }
    poly whole = intern(t, &q), rest = intern(t, &r);
    int64_t least, most;
    poly_bounds(t, rest, NULL, NULL, &least, &most);
    if (least >= 0 && most < k) return whole;
    return poly_add(t, whole, from_atom(t, PLAN_EXPR_FLOORDIV, rest, poly_const(t, k)));
}

static poly floor_quotient(poly_table *t, poly a, poly b) {
    int64_t k;
    poly exact = poly_div_exact(t, a, b);
    if (exact) return exact;
    if (poly_value(t, b, &k)) return k > 0 ? floor_by(t, a, k) : k < -INT64_MAX ? 0 : k < 0 ? floor_by(t, poly_sub(t, poly_const(t, 0), a), -k) : 0;
    return from_atom(t, PLAN_EXPR_FLOORDIV, a, b);
}

static poly ceil_quotient(poly_table *t, poly a, poly b) {
    poly exact = poly_div_exact(t, a, b);
    if (exact) return exact;
    int64_t least, most;
    poly_bounds(t, b, NULL, NULL, &least, &most);
    if (least < 1) return 0;
    return floor_quotient(t, poly_sub(t, poly_add(t, a, b), poly_const(t, 1)), b);
}

static poly choose(poly_table *t, uint32_t op, poly a, poly b) {
    int64_t least, most;
    poly_bounds(t, poly_sub(t, a, b), NULL, NULL, &least, &most);
    if (least >= 0) return op == PLAN_EXPR_MIN ? b : a;
    if (most <= 0) return op == PLAN_EXPR_MIN ? a : b;
    return from_atom(t, op, a < b ? a : b, a < b ? b : a);
}

poly poly_op(poly_table *t, uint32_t op, poly a, poly b) {
    if (!a || !b) return 0;
    switch (op) {
    case PLAN_EXPR_ADD: return poly_add(t, a, b);
    case PLAN_EXPR_MUL: return poly_mul(t, a, b);
    case PLAN_EXPR_FLOORDIV: return floor_quotient(t, a, b);
    case PLAN_EXPR_CEILDIV: return ceil_quotient(t, a, b);
    case PLAN_EXPR_MOD: return poly_sub(t, a, poly_mul(t, b, floor_quotient(t, a, b)));
    case PLAN_EXPR_MIN: case PLAN_EXPR_MAX: return choose(t, op, a, b);
    default: return 0;
    }
}

poly poly_read(poly_table *t, const plan_expr_record *expr, uint32_t count, const poly *symbols) {
    poly stack[PLAN_EXPR_DEPTH + 1];
    uint32_t top = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (expr[i].op == PLAN_EXPR_CONST) stack[top++] = poly_const(t, expr[i].value);
        else if (expr[i].op == PLAN_EXPR_SYMBOL) stack[top++] = symbols[expr[i].value];
        else {
            top--;
            stack[top - 1] = poly_op(t, expr[i].op, stack[top - 1], stack[top]);
        }
    }
    return top ? stack[0] : 0;
}

static poly map(poly_table *t, poly a, const poly *symbols, int depth) {
    poly total = poly_const(t, 0);
    if (!a || depth > DEPTH) return 0;
    for (uint32_t i = 0; i < t->entries[a].count; i++) {
        const term x = t->terms[t->entries[a].first + i];
        poly part = poly_const(t, x.coef);
        for (uint32_t k = 0; k < x.degree; k++) {
            const atom y = t->atoms[x.atoms[k]];
            part = poly_mul(t, part, y.op == PLAN_EXPR_SYMBOL ? symbols[y.a] : poly_op(t, y.op, map(t, y.a, symbols, depth + 1), map(t, y.b, symbols, depth + 1)));
        }
        total = poly_add(t, total, part);
    }
    return total;
}

poly poly_map(poly_table *t, poly a, const poly *symbols) { return map(t, a, symbols, 0); }

/* --- text --- */

static void print_atom(const poly_table *t, const atom *x, const plan_view *names, FILE *out) {
    if (x->op == PLAN_EXPR_SYMBOL) {
        fputs(x->a < names->symbol_count ? plan_view_string(names, names->symbols[x->a].name) : "total", out);
        return;
    }
    fputs(x->op == PLAN_EXPR_MIN ? "min(" : x->op == PLAN_EXPR_MAX ? "max(" : "floor((", out);
    poly_print(t, x->a, names, out);
    fputs(x->op == PLAN_EXPR_FLOORDIV ? ") / (" : ", ", out);
    poly_print(t, x->b, names, out);
    fputs(x->op == PLAN_EXPR_FLOORDIV ? "))" : ")", out);
}

/* Recursion is bounded: an atom is made of older polynomials, and poly_read's stack bounds their nesting. */
void poly_print(const poly_table *t, poly a, const plan_view *names, FILE *out) {
    if (!a) fputs("something unknown", out);
    else if (!t->entries[a].count) putc('0', out);
    for (uint32_t i = t->entries[a].count; a && i-- > 0;) {
        const term *x = &t->terms[t->entries[a].first + i];
        int first = i + 1 == t->entries[a].count;
        int64_t coef = x->coef;
        if (!first) fputs(coef < 0 ? " - " : " + ", out);
        uint64_t size = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
        if (first && coef < 0) putc('-', out);
        if (size != 1 || !x->degree) fprintf(out, "%" PRIu64 "%s", size, x->degree ? " * " : "");
        for (uint32_t k = 0; k < x->degree; k++) {
            if (k) fputs(" * ", out);
            print_atom(t, &t->atoms[x->atoms[k]], names, out);
        }
    }
}
