/* schema.c - reads the schema text of an operator row:
 *
 *   INPUTS -> OUTPUTS ; ATTRIBUTES | CLASSES
 *   value      name:type, then `?` optional or `*` variadic (last); type: a class, a dtype, or `any`
 *   attribute  name:kind, then `=default`, or `?` optional without default, or nothing: required
 *              a list default is `=[1 2]`, a text default may stand in quotes
 *   class      name=member member ...; a member is a dtype or an earlier class
 *
 * A row with a wrong schema is a mistake of ours. */
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SCHEMAS 2048

static Arena memory; /* of all schemas; they live as long as the process */

typedef struct Words { /* a cursor over owned text; words are cut in place */
    char *at;
    const char *wrong;
} Words;

static void skip(Words *w)
{
    while (*w->at == ' ' || *w->at == '\n' || *w->at == '\t')
        w->at++;
}

static bool is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '.';
}

static const char *word(Words *w)
{
    skip(w);
    size_t size = 0;
    while (is_word(w->at[size]))
        size++;
    if (!size) {
        w->wrong = w->wrong ? w->wrong : "a name is missing";
        return "";
    }
    char *copy = arena_alloc(&memory, size + 1);
    memcpy(copy, w->at, size);
    w->at += size;
    return copy;
}

static bool take(Words *w, char ch)
{
    skip(w);
    if (*w->at != ch)
        return false;
    w->at++;
    return true;
}

static void read_class(Words *w, Schema *s)
{
    if (s->class_count == SCHEMA_CLASSES) {
        w->wrong = "too many classes";
        return;
    }
    SchemaClass *k = &s->classes[s->class_count];
    k->name = word(w);
    if (!take(w, '='))
        w->wrong = "a class has no members";
    while (!w->wrong && (skip(w), is_word(*w->at))) {
        const char *member = word(w);
        DType t = dtype_from_name(member);
        uint32_t bits = t ? 1u << t : 0;
        for (int i = 0; i < s->class_count && !bits; i++)
            if (!strcmp(s->classes[i].name, member))
                bits = s->classes[i].dtypes;
        if (!bits)
            w->wrong = "a class has an unknown member";
        k->dtypes |= bits;
    }
    if (!k->dtypes && !w->wrong)
        w->wrong = "a class has no members";
    s->class_count++;
}

static void read_value(Words *w, Schema *s, SchemaValue *v)
{
    v->name = word(w);
    if (!take(w, ':'))
        w->wrong = "a value has no type";
    if (w->wrong)
        return;
    const char *type = word(w);
    v->class = -1;
    v->fixed = dtype_from_name(type);
    for (int i = 0; i < s->class_count; i++)
        if (!strcmp(s->classes[i].name, type)) {
            v->class = i;
            v->fixed = DT_NONE;
        }
    if (v->class < 0 && !v->fixed && strcmp(type, "any") != 0 && !w->wrong)
        w->wrong = "a value's type is neither class nor dtype";
    for (;;) {
        if (take(w, '?'))
            v->optional = true;
        else if (take(w, '*'))
            v->variadic = true;
        else
            return;
    }
}

static int read_values(Words *w, Schema *s, SchemaValue *list, char end)
{
    int count = 0;
    skip(w);
    while (!w->wrong && *w->at && *w->at != end && *w->at != ';' && *w->at != '|') {
        if (count == SCHEMA_VALUES) {
            w->wrong = "too many values";
            break;
        }
        if (count && list[count - 1].variadic) {
            w->wrong = "a variadic value is not the last";
            break;
        }
        read_value(w, s, &list[count++]);
        if (!take(w, ','))
            break;
        skip(w);
    }
    return count;
}

static AttrKind kind_from_name(const char *name)
{
    static const struct { const char *name; AttrKind kind; } kinds[] = {
        {"int", ATTR_INT}, {"float", ATTR_FLOAT}, {"string", ATTR_STRING}, {"ints", ATTR_INTS}, {"floats", ATTR_FLOATS},
        {"strings", ATTR_STRINGS}, {"tensor", ATTR_TENSOR}, {"graph", ATTR_GRAPH}, {"type", ATTR_TYPE},
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (!strcmp(kinds[i].name, name))
            return kinds[i].kind;
    return ATTR_NONE;
}

/* The default's text, up to the next comma outside of brackets and quotes. */
static char *default_text(Words *w)
{
    skip(w);
    char close = *w->at == '[' ? ']' : *w->at == '"' || *w->at == '\'' ? *w->at : 0;
    size_t size = close ? 1 : 0;
    while (w->at[size] && (close ? w->at[size] != close : w->at[size] != ',' && w->at[size] != ';' && w->at[size] != '|'))
        size++;
    if (close && !w->at[size])
        w->wrong = "a default does not end";
    char *text = arena_alloc(&memory, size + 1);
    size_t skipped = close ? 1 : 0, length = size - skipped;
    memcpy(text, w->at + skipped, length);
    while (!close && length && text[length - 1] == ' ')
        length--;
    text[length] = 0;
    w->at += size + (close && w->at[size] ? 1 : 0);
    return text;
}

static void read_list(Words *w, Attr *a, char *text)
{
    size_t room = strlen(text) / 2 + 1;
    a->ints = arena_alloc(&memory, room * sizeof *a->ints);
    a->floats = arena_alloc(&memory, room * sizeof *a->floats);
    for (char *at = text, *end; *at; at = end) {
        double f = strtod(at, &end);
        if (end == at) {
            w->wrong = "a list default has an element that is no number";
            return;
        }
        a->ints[a->count] = strtoll(at, NULL, 10);
        a->floats[a->count++] = f;
        while (*end == ' ' || *end == ',')
            end++;
    }
}

static void read_default(Words *w, Attr *a)
{
    char *text = default_text(w), *end = text;
    switch (a->kind) {
    case ATTR_INT: a->i = strtoll(text, &end, 0); break;
    case ATTR_FLOAT: a->f = (double)strtof(text, &end); break; /* attributes are 32-bit floats */
    case ATTR_STRING: a->s = text; return;
    case ATTR_INTS: case ATTR_FLOATS: read_list(w, a, text); return;
    default: w->wrong = "this kind of attribute cannot have a default"; break;
    }
    if ((end == text || *end) && !w->wrong)
        w->wrong = "a default is no number";
}

static void read_attrs(Words *w, Schema *s)
{
    skip(w);
    while (!w->wrong && *w->at && *w->at != '|') {
        if (s->attr_count == SCHEMA_ATTRS) {
            w->wrong = "too many attributes";
            return;
        }
        SchemaAttr *a = &s->attrs[s->attr_count++];
        a->value.name = word(w);
        if (!take(w, ':')) {
            w->wrong = "an attribute has no kind";
            return;
        }
        a->value.kind = kind_from_name(word(w));
        if (!a->value.kind)
            w->wrong = "an attribute's kind is unknown";
        else if (take(w, '='))
            read_default(w, &a->value);
        else
            a->required = !take(w, '?');
        if (!take(w, ','))
            return;
        skip(w);
    }
}

const char *schema_parse(Schema *s, const char *text)
{
    char *copy = arena_copy(&memory, text);
    *s = (Schema){0};
    Words w = {copy, NULL};
    char *bar = strchr(copy, '|');
    if (bar) { /* classes first: values refer to them */
        w.at = bar + 1;
        do
            read_class(&w, s);
        while (!w.wrong && take(&w, ','));
        skip(&w);
        if (*w.at && !w.wrong)
            w.wrong = "text after the classes";
        *bar = 0;
    }
    w.at = copy;
    s->input_count = read_values(&w, s, s->inputs, '-');
    if (!w.wrong && (!take(&w, '-') || !take(&w, '>')))
        w.wrong = "the arrow is missing";
    s->output_count = read_values(&w, s, s->outputs, ';');
    if (!w.wrong && take(&w, ';'))
        read_attrs(&w, s);
    skip(&w);
    if (!w.wrong && *w.at)
        w.wrong = "text after the schema";
    return w.wrong;
}

/* Rows are constant, so a schema is found again by its row's address. Only the compiler's main thread asks. */
static struct { const OpRow *op; Schema *schema; } cache[MAX_SCHEMAS];

const Schema *schema_of(const OpRow *op)
{
    size_t at = (uintptr_t)op / sizeof(OpRow) % MAX_SCHEMAS;
    for (size_t i = 0; i < MAX_SCHEMAS; i++, at = (at + 1) % MAX_SCHEMAS) {
        if (cache[at].op == op)
            return cache[at].schema;
        if (cache[at].op)
            continue;
        cache[at].schema = arena_alloc(&memory, sizeof(Schema));
        const char *wrong = schema_parse(cache[at].schema, op->schema);
        if (wrong)
            fault("ops", "schema of %s-%d in %s: %s", op->name, op->since, op_file(op), wrong);
        cache[at].op = op;
        return cache[at].schema;
    }
    fault("schema", "more than %d rows", MAX_SCHEMAS);
}
