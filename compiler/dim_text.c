/* dim_text.c - dims as text, exact both ways: "past + 4*seq - 1", "floordiv(a + 1, 2)". Names that are no plain words
 * stand in double quotes. */
#include "dim.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[] = { "", "floordiv", "ceildiv", "mod", "min", "max" };

static bool plain_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_' && *s != '?') return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_.?", *s)) return false;
    return true;
}

static void print_name(Text *t, const char *name)
{
    if (plain_name(name)) { text_add(t, "%s", name); return; }
    text_add(t, "\"");
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') text_add(t, "\\");
        text_add(t, "%c", *name);
    }
    text_add(t, "\"");
}

static void print_dim(Compilation *c, Text *t, Dim d, int depth);

static void print_atom(Compilation *c, Text *t, const Atom *a, int depth)
{
    if (a->op == DIM_SYMBOL) { print_name(t, c->symbols[a->a].name); return; }
    text_add(t, "%s(", op_names[a->op]);
    print_dim(c, t, a->a, depth + 1);
    text_add(t, ", ");
    print_dim(c, t, a->b, depth + 1);
    text_add(t, ")");
}

static void print_dim(Compilation *c, Text *t, Dim d, int depth)
{
    if (!d || depth > MAX_DEPTH) { text_add(t, "?"); return; }
    const Poly *p = dim_poly(c, d);
    if (!p->count) text_add(t, "0");
    for (uint32_t i = 0; i < p->count; i++) {
        const Term *term = &p->terms[i];
        bool negative = term->coef < 0;
        text_add(t, "%s", i ? negative ? " - " : " + " : negative ? "-" : "");
        uint64_t size = negative ? 0 - (uint64_t)term->coef : (uint64_t)term->coef;
        if (size != 1 || !term->degree) text_add(t, "%llu%s", (unsigned long long)size, term->degree ? "*" : "");
        for (uint32_t k = 0; k < term->degree; k++) {
            if (k) text_add(t, "*");
            print_atom(c, t, &dims_of(c)->atoms[term->atoms[k]], depth);
        }
    }
}

const char *dim_text(Compilation *c, Dim d)
{
    Text t = { 0 };
    print_dim(c, &t, d, 0);
    char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

/* ---- parsing */

typedef struct Scan { Compilation *c; const char *at; const char *error; int depth; } Scan;

static Dim scan_sum(Scan *s);

static void skip_space(Scan *s) { while (*s->at == ' ' || *s->at == '\t') s->at++; }

static bool take(Scan *s, char ch)
{
    skip_space(s);
    if (*s->at != ch) return false;
    s->at++;
    return true;
}

static Dim fail(Scan *s, const char *error)
{
    if (!s->error) s->error = error;
    return 0;
}

static Dim scan_number(Scan *s)
{
    int64_t v = 0;
    for (; isdigit((unsigned char)*s->at); s->at++)
        if (!checked_mul(v, 10, &v) || !checked_add(v, *s->at - '0', &v)) return fail(s, "a number is too large");
    return dim_const(s->c, v);
}

static const char *scan_name(Scan *s)
{
    Text t = { 0 };
    text_add(&t, "%s", "");
    if (*s->at == '"') {
        for (s->at++; *s->at && *s->at != '"'; s->at++) {
            if (*s->at == '\\' && s->at[1]) s->at++;
            text_add(&t, "%c", *s->at);
        }
        if (*s->at) s->at++;
        else fail(s, "a quoted name does not end");
    } else
        while (isalnum((unsigned char)*s->at) || (*s->at && strchr("_.?", *s->at))) text_add(&t, "%c", *s->at++);
    const char *name = arena_copy(&s->c->arena, t.data);
    text_free(&t);
    return name;
}

static Dim scan_call(Scan *s, DimOp op)
{
    Dim a = scan_sum(s);
    if (!take(s, ',')) return fail(s, "expected ','");
    Dim b = scan_sum(s);
    if (!take(s, ')')) return fail(s, "expected ')'");
    return dim_op(s->c, op, a, b);
}

static Dim scan_factor(Scan *s)
{
    skip_space(s);
    if (++s->depth > MAX_DEPTH) return fail(s, "nested too deeply");
    Dim d = 0;
    if (take(s, '-')) d = dim_scale(s->c, scan_factor(s), -1);
    else if (take(s, '(')) {
        d = scan_sum(s);
        if (!take(s, ')')) d = fail(s, "expected ')'");
    } else if (isdigit((unsigned char)*s->at)) d = scan_number(s);
    else if (isalpha((unsigned char)*s->at) || (*s->at && strchr("_?\"", *s->at))) {
        bool quoted = *s->at == '"';
        const char *name = scan_name(s);
        int op = 0;
        for (int i = DIM_FLOORDIV; i <= DIM_MAX; i++)
            if (!quoted && !strcmp(name, op_names[i])) op = i;
        if (op && take(s, '(')) d = scan_call(s, (DimOp)op);
        else {
            Sym sym = sym_find(s->c, name);
            d = dim_symbol(s->c, sym ? sym : sym_new(s->c, name, true));
        }
    } else d = fail(s, "expected a number, a name or '('");
    s->depth--;
    return d;
}

static Dim scan_product(Scan *s)
{
    Dim d = scan_factor(s);
    while (!s->error && take(s, '*')) d = dim_mul(s->c, d, scan_factor(s));
    return d;
}

static Dim scan_sum(Scan *s)
{
    Dim d = scan_product(s);
    while (!s->error) {
        if (take(s, '+')) d = dim_add(s->c, d, scan_product(s));
        else if (take(s, '-')) d = dim_sub(s->c, d, scan_product(s));
        else break;
    }
    return d;
}

Dim dim_parse(Compilation *c, const char *text, const char **error)
{
    Scan s = { c, text, NULL, 0 };
    Dim d = scan_sum(&s);
    skip_space(&s);
    if (!s.error && *s.at) fail(&s, "text follows the dim");
    if (error) *error = s.error;
    return s.error ? 0 : d;
}
