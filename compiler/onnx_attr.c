/* onnx_attr.c - attributes of nodes: kinds, references into the call of a function, the Constant operator. */
#include <string.h>

#include "reader.h"

static const char *const type_names[] = {"undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings",
                                         "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"};

/* The types whose field is set, as bits. */
static unsigned types_set(const AttributeProto *a)
{
    return (a->has_f ? 1u << AT_FLOAT : 0) | (a->has_i ? 1u << AT_INT : 0) | (a->has_s ? 1u << AT_STRING : 0) |
           (a->t ? 1u << AT_TENSOR : 0) | (a->g ? 1u << AT_GRAPH : 0) | (a->n_floats ? 1u << AT_FLOATS : 0) |
           (a->n_ints ? 1u << AT_INTS : 0) | (a->n_strings ? 1u << AT_STRINGS : 0) | (a->n_tensors ? 1u << AT_TENSORS : 0) |
           (a->n_graphs ? 1u << AT_GRAPHS : 0) | (a->sparse_tensor ? 1u << AT_SPARSE_TENSOR : 0) |
           (a->n_sparse_tensors ? 1u << AT_SPARSE_TENSORS : 0) | (a->tp ? 1u << AT_TYPE_PROTO : 0) |
           (a->n_type_protos ? 1u << AT_TYPE_PROTOS : 0);
}

int attr_type(const AttributeProto *a)
{
    unsigned set = types_set(a);
    if (a->type)
        return a->type;
    for (int t = AT_FLOAT; t <= AT_TYPE_PROTOS; t++)
        if (set == 1u << t)
            return t;
    return AT_UNDEFINED;
}

static const AttributeProto *call_attr(const Call *call, const char *name)
{
    for (int i = 0; i < call->attr_count; i++)
        if (!strcmp(call->attrs[i].name, name))
            return call->attrs[i].attr;
    for (size_t i = 0; i < call->function->n_attribute_proto; i++)
        if (!strcmp(text_or_empty(call->function->attribute_proto[i]->name), name))
            return call->function->attribute_proto[i];
    return NULL;
}

static bool call_declares(const Call *call, const char *name)
{
    for (size_t i = 0; i < call->function->n_attribute; i++)
        if (!strcmp(call->function->attribute[i], name))
            return true;
    return false;
}

GivenAttr *attrs_given(Reader *r, const Scope *s, const NodeProto *n, const char *place, int *count)
{
    GivenAttr *list = NEW_ARRAY(r->c, GivenAttr, n->n_attribute);
    *count = 0;
    Names seen = {0};
    for (size_t i = 0; i < n->n_attribute; i++) {
        const AttributeProto *a = n->attribute[i];
        const char *name = text_or_empty(a->name), *reference = text_or_empty(a->ref_attr_name);
        if (!*name || (n->n_attribute > 1 && !names_add(r->c, &seen, name, 1))) {
            diag_error(r->c, place, *name ? "attribute '%s' occurs twice" : "an attribute has no name", name);
            continue;
        }
        if (*reference) {
            if (s->call && !work_add(r, place, (uint64_t)s->call->attr_count + s->call->function->n_attribute_proto))
                return list;
            const AttributeProto *given = s->call ? call_attr(s->call, reference) : NULL;
            if (!given && !(s->call && call_declares(s->call, reference)))
                diag_error(r->c, place, s->call ? "attribute '%s' refers to '%s', which the function does not have"
                                                : "attribute '%s' refers to '%s', but is in no function", name, reference);
            if (given && a->type && attr_type(given) != a->type)
                diag_error(r->c, place, "attribute '%s' refers to '%s', which has another type", name, reference);
            if (!given)
                continue; /* not given, no default: absent */
            a = given;
        }
        list[(*count)++] = (GivenAttr){name, a};
    }
    return list;
}

static const char *bytes_text(Reader *r, const ProtobufCBinaryData *b, const char *name, const char *place)
{
    if (b->len && memchr(b->data, 0, b->len))
        diag_error(r->c, place, "attribute '%s' holds a zero byte, which is no text", name);
    char *text = arena_alloc(&r->c->arena, b->len + 1);
    if (b->len)
        memcpy(text, b->data, b->len);
    return text;
}

static bool check_type(Reader *r, const GivenAttr *given, int type, const char *place)
{
    unsigned set = types_set(given->attr);
    if (type < AT_FLOAT || type > AT_TYPE_PROTOS) {
        if (given->attr->type)
            diag_error(r->c, place, "attribute '%s' has type %d, which is not known", given->name, given->attr->type);
        else
            diag_error(r->c, place, "attribute '%s' has no type", given->name);
        return false;
    }
    if (set & ~(1u << type)) {
        int other = AT_FLOAT;
        while (!(set & ~(1u << type) & 1u << other))
            other++;
        diag_error(r->c, place, "attribute '%s' has two types; expected %s alone, found %s", given->name, type_names[type],
                   type_names[other]);
        return false;
    }
    if ((type == AT_TENSOR || type == AT_GRAPH) && !set) {
        diag_error(r->c, place, "attribute '%s' of type %s is empty", given->name, type_names[type]);
        return false;
    }
    return true;
}

static bool read_tensor(Reader *r, Scope *s, const GivenAttr *given, const char *node, const char *place, Attr *out)
{
    const char *base = arena_text(&r->c->arena, "%s.%s", node, given->name), *name = base;
    if (s->graph == &r->c->graph)
        for (int k = 2; !names_add(r->c, &r->value_names, name, 1); k++)
            name = arena_text(&r->c->arena, "%s#%d", base, k);
    out->tensor = graph_value(r->c, s->graph, name);
    return tensor_read(r, s->graph, out->tensor, given->attr->t,
                       arena_text(&r->c->arena, "%s: attribute '%s'", place, given->name));
}

static bool read_graph(Reader *r, Scope *s, const GivenAttr *given, const char *node, const char *place, Attr *out)
{
    Compilation *c = r->c;
    Graph *g = NEW(c, Graph);
    Scope inner = {.outer = s, .graph = g, .call = s->call};
    const char *name = arena_text(&c->arena, "%s.%s", node, given->name);
    if (r->depth >= READER_MAX_DEPTH) {
        diag_error(c, place, "subgraphs and functions are nested too deeply; expected at most %d", READER_MAX_DEPTH);
        return false;
    }
    r->depth++;
    bool good = graph_read(r, &inner, given->attr->g, name, arena_text(&c->arena, "%s: graph '%s'", place, given->name));
    r->depth--;
    if (!(c->subgraph_count & (c->subgraph_count - 1))) { /* full at each power of two */
        Graph *all = NEW_ARRAY(c, Graph, c->subgraph_count ? c->subgraph_count * 2 : 1);
        if (c->subgraph_count)
            memcpy(all, c->subgraphs, c->subgraph_count * sizeof *all);
        c->subgraphs = all;
    }
    c->subgraphs[c->subgraph_count] = *g;
    out->graph = c->subgraph_count++;
    return good;
}

static void read_lists(Reader *r, const AttributeProto *a, const char *place, Attr *out)
{
    if (out->kind == ATTR_INTS) {
        out->count = (int)a->n_ints;
        out->ints = a->ints;
    } else if (out->kind == ATTR_FLOATS) {
        out->count = (int)a->n_floats;
        out->floats = NEW_ARRAY(r->c, double, a->n_floats);
        for (size_t i = 0; i < a->n_floats; i++)
            out->floats[i] = (double)a->floats[i];
    } else {
        out->count = (int)a->n_strings;
        out->strings = NEW_ARRAY(r->c, const char *, a->n_strings);
        for (size_t i = 0; i < a->n_strings; i++)
            out->strings[i] = bytes_text(r, &a->strings[i], out->name, place);
    }
}

bool attr_read(Reader *r, Scope *s, const GivenAttr *given, const char *node, const char *place, Attr *out)
{
    static const AttrKind kinds[] = {[AT_FLOAT] = ATTR_FLOAT, [AT_INT] = ATTR_INT, [AT_STRING] = ATTR_STRING,
                                     [AT_TENSOR] = ATTR_TENSOR, [AT_GRAPH] = ATTR_GRAPH, [AT_FLOATS] = ATTR_FLOATS,
                                     [AT_INTS] = ATTR_INTS, [AT_STRINGS] = ATTR_STRINGS, [AT_TYPE_PROTO] = ATTR_TYPE,
                                     [AT_TYPE_PROTOS] = ATTR_NONE};
    const AttributeProto *a = given->attr;
    int type = attr_type(a);
    if (!check_type(r, given, type, place))
        return false;
    *out = (Attr){.name = given->name, .kind = kinds[type], .present = true};
    switch (out->kind) {
    case ATTR_INT: out->i = a->i; return true;
    case ATTR_FLOAT: out->f = (double)a->f; return true;
    case ATTR_TYPE: return true;
    case ATTR_STRING: out->s = bytes_text(r, &a->s, out->name, place); return true;
    case ATTR_TENSOR: return read_tensor(r, s, given, node, place, out);
    case ATTR_GRAPH: return read_graph(r, s, given, node, place, out);
    case ATTR_INTS: case ATTR_FLOATS: case ATTR_STRINGS: read_lists(r, a, place, out); return true;
    default:
        diag_error(r->c, place, "attribute '%s' has type %s, which is not supported", given->name, type_names[type]);
        return false;
    }
}

bool constant_read(Reader *r, Graph *g, uint32_t value, const GivenAttr *attrs, int count, const char *place)
{
    if (count != 1) {
        diag_error(r->c, place, "a Constant has one attribute; found %d", count);
        return false;
    }
    static const struct { const char *name; int type; } forms[] = {
        {"value", AT_TENSOR}, {"value_int", AT_INT}, {"value_ints", AT_INTS}, {"value_float", AT_FLOAT},
        {"value_floats", AT_FLOATS}};
    const AttributeProto *a = attrs->attr;
    size_t form = 0;
    while (form < COUNT_OF(forms) && strcmp(forms[form].name, attrs->name))
        form++;
    if (form == COUNT_OF(forms)) {
        diag_error(r->c, place, "a Constant with attribute '%s' is not supported", attrs->name);
        return false;
    }
    if (!check_type(r, attrs, attr_type(a), place))
        return false;
    if (attr_type(a) != forms[form].type) {
        diag_error(r->c, place, "attribute '%s' has type %s; expected %s", attrs->name, type_names[attr_type(a)],
                   type_names[forms[form].type]);
        return false;
    }
    switch (forms[form].type) {
    case AT_TENSOR: return tensor_read(r, g, value, a->t, place);
    case AT_INT: constant_set(r, g, value, DT_I64, 0, 1, &a->i); break;
    case AT_INTS: constant_set(r, g, value, DT_I64, 1, (int64_t)a->n_ints, a->ints); break;
    case AT_FLOAT: constant_set(r, g, value, DT_F32, 0, 1, &a->f); break;
    default: constant_set(r, g, value, DT_F32, 1, (int64_t)a->n_floats, a->floats); break;
    }
    return true;
}
