/* symbol.c - symbols, and the proofs that say how each was decided. */
#include "compiler.h"

#include <string.h>

Sym sym_find(Compilation *c, const char *name)
{
    for (Sym s = 1; s <= c->symbol_count; s++)
        if (!strcmp(c->symbols[s].name, name)) return s;
    return 0;
}

/* A text that two dims carry need not mean one symbol: the second gets a number. */
static const char *unique_name(Compilation *c, const char *name)
{
    if (!name) name = arena_text(&c->arena, "?%u", c->symbol_count + 1);
    const char *candidate = name;
    for (int n = 2; sym_find(c, candidate); n++) candidate = arena_text(&c->arena, "%s#%d", name, n);
    return candidate;
}

Sym sym_new(Compilation *c, const char *name, bool declared)
{
    if (c->symbol_count + 2 > c->symbol_room) {
        uint32_t room = c->symbol_room ? c->symbol_room * 2 : 64;
        Symbol *bigger = NEW_ARRAY(c, Symbol, room);
        if (c->symbol_count) memcpy(bigger, c->symbols, sizeof(Symbol) * (c->symbol_count + 1));
        c->symbols = bigger;
        c->symbol_room = room;
    }
    const char *unique = unique_name(c, name);
    Symbol *s = &c->symbols[++c->symbol_count];
    *s = (Symbol){ .name = arena_copy(&c->arena, unique), .class = SYM_UNKNOWN, .declared = declared,
                   .hi = INT64_MAX, .slot = -1, .keep = declared };
    return c->symbol_count;
}

uint32_t proof_add(Compilation *c, const char *rule, const Node *n, uint32_t because, const char *format, ...)
{
    if (c->proof_count + 2 > c->proof_room) {
        uint32_t room = c->proof_room ? c->proof_room * 2 : 64;
        Proof *bigger = NEW_ARRAY(c, Proof, room);
        if (c->proof_count) memcpy(bigger, c->proofs, sizeof(Proof) * (c->proof_count + 1));
        c->proofs = bigger;
        c->proof_room = room;
    }
    Text t = { 0 };
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_add(&t, "%s", line);
    c->proofs[++c->proof_count] = (Proof){ arena_copy(&c->arena, t.data), rule,
                                           n ? (uint32_t)(n - c->graph.nodes) : 0, because };
    text_free(&t);
    return c->proof_count;
}
