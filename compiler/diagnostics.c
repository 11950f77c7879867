/* diagnostics.c - faults of the input, collected with their place and printed together; faults of our own.
 *
 * An error of a node sorts by the node's index, one without a node comes before them; equal places keep the order in
 * which they were found. The same text at the same place is kept once. */
#include "compiler.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ERRORS 200 /* printed; more are counted */

typedef struct Entry {
    const char *place, *message;
    Text more;         /* details and remedy: whole lines */
    uint32_t order;    /* node index, 0 without */
    int serial;
} Entry;

typedef struct Diagnostics {
    int count, room, dropped, note_count, note_room, missing_count, missing_room;
    Entry *entries;
    const char **notes;
    MissingOp *missing;
    bool last_is_new; /* the last error was kept, so its details are too */
} Diagnostics;

static Diagnostics *diagnostics(Compilation *c)
{
    if (!c->diagnostics)
        c->diagnostics = (struct Diagnostics *)NEW(c, Diagnostics);
    return c->diagnostics;
}

/* Room for one more element in an arena array. */
static void *grown(Compilation *c, void *old, int count, int *room, size_t size)
{
    if (count < *room)
        return old;
    int wanted = *room ? *room * 2 : 16;
    void *fresh = arena_alloc(&c->arena, (size_t)wanted * size);
    if (count)
        memcpy(fresh, old, (size_t)count * size);
    *room = wanted;
    return fresh;
}

static char *format_text(Compilation *c, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (size < 0)
        fault("diagnostics", "bad format '%s'", format);
    char *text = arena_alloc(&c->arena, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, list);
    return text;
}

static bool same_place(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static void add_error(Compilation *c, const char *place, uint32_t order, const char *message)
{
    Diagnostics *d = diagnostics(c);
    d->last_is_new = false;
    for (int i = 0; i < d->count; i++)
        if (!strcmp(d->entries[i].message, message) && same_place(d->entries[i].place, place))
            return;
    if (d->count >= MAX_ERRORS) {
        d->dropped++;
        return;
    }
    d->entries = grown(c, d->entries, d->count, &d->room, sizeof *d->entries);
    d->entries[d->count] = (Entry){.place = place ? arena_copy(&c->arena, place) : NULL, .message = message,
                                   .order = order, .serial = d->count};
    d->count++;
    d->last_is_new = true;
}

void diag_error(Compilation *c, const char *place, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_error(c, place, 0, format_text(c, format, list));
    va_end(list);
}

static void add_line(Compilation *c, const char *before, const char *text)
{
    Diagnostics *d = diagnostics(c);
    if (!d->last_is_new)
        return;
    text_add(&d->entries[d->count - 1].more, "  %s%s\n", before, text);
}

void diag_remedy(Compilation *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_line(c, "remedy: ", format_text(c, format, list));
    va_end(list);
}

void diag_detail(Compilation *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_line(c, "", format_text(c, format, list));
    va_end(list);
}

void diag_note(Compilation *c, const char *format, ...)
{
    Diagnostics *d = diagnostics(c);
    va_list list;
    va_start(list, format);
    d->notes = grown(c, d->notes, d->note_count, &d->note_room, sizeof *d->notes);
    d->notes[d->note_count++] = format_text(c, format, list);
    va_end(list);
}

/* Index of a node of the main graph; nodes of subgraphs come after all of those. */
static uint32_t node_order(const Compilation *c, const Node *n)
{
    uintptr_t first = (uintptr_t)c->graph.nodes, at = (uintptr_t)n;
    if (first && at > first && at <= first + c->graph.node_count * sizeof *n)
        return (uint32_t)((at - first) / sizeof *n);
    return UINT32_MAX;
}

const char *node_place(Compilation *c, const Node *n)
{
    const char *domain = n->domain ? n->domain : "";
    return arena_text(&c->arena, "node '%s' (%s%s%s-%d)", n->name, domain, *domain ? "::" : "", n->op_type,
                      n->op ? n->op->since : n->opset);
}

void node_error(Compilation *c, const Node *n, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *message = format_text(c, format, list);
    va_end(list);
    if (n)
        add_error(c, node_place(c, n), node_order(c, n), message);
    else
        add_error(c, NULL, 0, message);
}

bool diag_failed(const Compilation *c)
{
    return c->diagnostics && (c->diagnostics->count > 0 || c->diagnostics->missing_count > 0);
}

int diag_count(const Compilation *c)
{
    return c->diagnostics ? c->diagnostics->count + c->diagnostics->dropped : 0;
}

static int by_place(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

void diag_print(Compilation *c, FILE *out)
{
    Diagnostics *d = diagnostics(c);
    const char *file = c->file ? c->file : "gcc-plan";
    if (d->count)
        qsort(d->entries, (size_t)d->count, sizeof *d->entries, by_place);
    for (int i = 0; i < d->count; i++) {
        Entry *e = &d->entries[i];
        /* A place in the recipe names its file itself. */
        size_t recipe = c->recipe.file ? strlen(c->recipe.file) : 0;
        bool elsewhere = recipe && e->place && !strncmp(e->place, c->recipe.file, recipe) && e->place[recipe] == ':';
        fprintf(out, "%s%s%s%s%s\n%s", elsewhere ? "" : file, elsewhere ? "" : ": ", e->place ? e->place : "",
                e->place ? ": " : "", e->message, e->more.data ? e->more.data : "");
        text_free(&e->more);
    }
    if (d->dropped)
        fprintf(out, "%s: %d more errors\n", file, d->dropped);
    for (int i = 0; i < d->note_count && !c->options.quiet; i++)
        fprintf(out, "%s: note: %s\n", file, d->notes[i]);
    d->count = d->note_count = d->dropped = 0;
    d->last_is_new = false;
}

static bool same_operator(const MissingOp *m, const Node *n, const char *domain)
{
    return m->opset == n->opset && !strcmp(m->op_type, n->op_type) && !strcmp(m->domain, domain);
}

void diag_missing_add(Compilation *c, const Node *n, const char *reason)
{
    Diagnostics *d = diagnostics(c);
    const char *domain = n->domain ? n->domain : "";
    for (int i = 0; i < d->missing_count; i++)
        if (same_operator(&d->missing[i], n, domain)) {
            d->missing[i].count++;
            return;
        }
    d->missing = grown(c, d->missing, d->missing_count, &d->missing_room, sizeof *d->missing);
    d->missing[d->missing_count++] = (MissingOp){.domain = domain, .op_type = n->op_type, .opset = n->opset, .reason = reason,
                                                 .first = n->name, .count = 1};
}

int diag_missing(Compilation *c, MissingOp **out)
{
    Diagnostics *d = diagnostics(c);
    *out = d->missing;
    return d->missing_count;
}

void diag_missing_clear(Compilation *c)
{
    diagnostics(c)->missing_count = 0;
}

_Noreturn void fault(const char *pass, const char *format, ...)
{
    va_list list;
    fflush(stdout);
    fprintf(stderr, "gcc-plan: internal fault in pass %s: ", pass);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "; please report\n");
    fflush(stderr);
    abort();
}
