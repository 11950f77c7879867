/* onnx_graph.c - GraphProto to Graph: scopes of names, inputs, initializers, nodes, outputs.
 *
 * A scope is read in two rounds: all values that its nodes make exist before the first input is looked up, so nodes
 * may stand in any order. */
#include <ctype.h>
#include <string.h>

#include "reader.h"

#define MAX_OPERANDS 65536u /* inputs, or outputs, of one node */

bool work_add(Reader *r, const char *place, uint64_t work)
{
    r->work += work;
    if (r->work <= READER_MAX_WORK)
        return true;
    if (r->work - work <= READER_MAX_WORK)
        diag_error(r->c, place, "functions make the graph too large; expected at most %u nodes, inputs, outputs and "
                   "attributes from them", READER_MAX_WORK);
    return false;
}

/* ---- values and their scopes */

/* In the main graph all values have different names, also those of inlined functions. */
static const char *unique_name(Reader *r, const Scope *s, const char *name)
{
    const char *base = s->call ? arena_text(&r->c->arena, "%s/%s", s->call->prefix, name) : name;
    const char *unique = base;
    if (s->graph == &r->c->graph)
        for (int k = 2; !names_add(r->c, &r->value_names, unique, 1); k++)
            unique = arena_text(&r->c->arena, "%s#%d", base, k);
    return unique;
}

/* A new value of the scope; 0 when it has that name already. */
static uint32_t scope_value(Reader *r, Scope *s, const char *name)
{
    if (names_find(&s->names, name) || names_find(&s->absent, name))
        return 0;
    uint32_t value = names_find(&s->promised, name);
    if (!value)
        value = graph_value(r->c, s->graph, unique_name(r, s, name));
    names_add(r->c, &s->names, name, value);
    return value;
}

/* A value of a graph around this one stands in this one too, by the same name, without a producer. */
static uint32_t capture(Reader *r, Scope *s, const char *name, const Graph *from, uint32_t outer)
{
    uint32_t value = graph_value(r->c, s->graph, from->values[outer].name);
    Value *v = &s->graph->values[value];
    const char *own = v->name;
    *v = from->values[outer];
    v->name = own;
    v->producer = v->output_index = v->uses = v->state = 0;
    v->is_input = v->is_output = false;
    v->list = NULL;
    names_add(r->c, &s->names, name, value);
    return value;
}

bool scope_find(Reader *r, Scope *s, const char *name, uint32_t *value)
{
    *value = names_find(&s->names, name);
    if (*value || names_find(&s->absent, name))
        return true;
    if (!s->outer || !scope_find(r, s->outer, name, value)) /* as deep as subgraphs are nested */
        return false;
    if (*value && s->outer->graph != s->graph)
        *value = capture(r, s, name, s->outer->graph, *value);
    return true;
}

/* ---- types */

static bool plain_symbol(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_' && *s != '.')
            return false;
    return true;
}

/* A name is a symbol; a text that is more than a name only a hint: its dim has a symbol of its own. */
static Dim read_dim(Reader *r, const Onnx__TensorShapeProto__Dimension *d, const char *place, size_t axis)
{
    Compilation *c = r->c;
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        if (d->dim_value < 0)
            diag_error(c, place, "dim %zu is %lld, which is negative", axis, (long long)d->dim_value);
        return dim_const(c, d->dim_value < 0 ? 1 : d->dim_value);
    }
    const char *name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? d->dim_param : "";
    Sym symbol = plain_symbol(name) ? sym_find(c, name) : 0;
    return dim_symbol(c, symbol ? symbol : sym_new(c, *name ? name : NULL, true));
}

static const char *other_type(const Onnx__TypeProto *t)
{
    switch (t->value_case) {
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return "a map";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE: return "a sparse tensor";
    default: return NULL;
    }
}

/* What a sequence or an optional holds; NULL: it is neither, or does not say. */
static const Onnx__TypeProto *held_type(const Onnx__TypeProto *t)
{
    if (t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) return t->sequence_type->elem_type;
    return t->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE ? t->optional_type->elem_type : NULL;
}

static bool is_list(const Onnx__TypeProto *t)
{
    return t && (t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE || t->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE);
}

/* The declared element type, of the tensors in it when it is a list; DT_NONE when none is; false after an error. */
static bool read_elem_type(Reader *r, const ValueInfoProto *p, const char *place, DType *out)
{
    *out = DT_NONE;
    const Onnx__TypeProto *t = p->type;
    while (t && held_type(t)) /* as deep as messages may be nested */
        t = held_type(t);
    if (t && other_type(t)) {
        diag_error(r->c, place, "%s is not supported; expected a tensor", other_type(t));
        return false;
    }
    if (!t || !t->tensor_type || t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return true;
    int type = t->tensor_type->elem_type;
    if (type == DT_STRING || type < 0 || type > DT_I2) {
        if (type == DT_STRING)
            diag_error(r->c, place, "strings are not supported");
        else
            diag_error(r->c, place, "data type %d is not known; expected 1 to %d", type, DT_I2);
        return false;
    }
    *out = (DType)type;
    return true;
}

/* Inputs of subgraphs may be without a type. */
static void read_input_type(Reader *r, Scope *s, uint32_t value, const ValueInfoProto *p, const char *place)
{
    Value *v = &s->graph->values[value];
    if (!read_elem_type(r, p, place, &v->dtype))
        return;
    if (is_list(p->type)) { /* in a subgraph it gets what the node gives */
        if (s->graph != &r->c->graph)
            return;
        v->list = NEW(r->c, List);
        *v->list = (List){.optional = p->type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE, .count = -1};
        return;
    }
    const Onnx__TensorShapeProto *shape = v->dtype ? p->type->tensor_type->shape : NULL;
    if (!shape) {
        if (s->graph == &r->c->graph)
            diag_error(r->c, place, v->dtype ? "it has no shape; expected a tensor with a rank"
                                             : "it has no type; expected a tensor");
        return;
    }
    if (shape->n_dim > MAX_RANK) {
        diag_error(r->c, place, "rank %zu is too large; expected at most %d", shape->n_dim, MAX_RANK);
        return;
    }
    v->rank = (int)shape->n_dim;
    for (size_t i = 0; i < shape->n_dim; i++)
        v->dims[i] = read_dim(r, shape->dim[i], place, i);
}

/* ---- nodes */

static const char *node_name(Reader *r, const Scope *s, const NodeProto *n)
{
    const char *name = text_or_empty(n->name);
    for (size_t i = 0; !*name && i < n->n_output; i++)
        name = n->output[i];
    if (!*name)
        name = text_or_empty(n->op_type);
    return s->call ? arena_text(&r->c->arena, "%s/%s", s->call->prefix, name) : name;
}

static const char *place_of(Reader *r, const Scope *s, const NodeProto *n)
{
    const char *domain = domain_of(n->domain);
    int version = opset_version(r, s, domain);
    const char *suffix = version ? arena_text(&r->c->arena, "-%d", version) : "";
    const char *op = *text_or_empty(n->op_type) ? n->op_type : "?";
    return arena_text(&r->c->arena, "node '%s' (%s%s%s%s)", node_name(r, s, n), domain, *domain ? "::" : "", op, suffix);
}

static void define_outputs(Reader *r, Scope *s, const NodeProto *n)
{
    if (n->n_input > MAX_OPERANDS || n->n_output > MAX_OPERANDS)
        return; /* reported by node_read */
    for (size_t i = 0; i < n->n_output; i++)
        if (*n->output[i] && !scope_value(r, s, n->output[i]))
            diag_error(r->c, place_of(r, s, n), "output %zu '%s' is defined before; each name has one definition", i,
                       n->output[i]);
}

static bool is_constant(const NodeProto *n)
{
    return !strcmp(text_or_empty(n->op_type), "Constant") && !*domain_of(n->domain);
}

static void read_constant(Reader *r, Scope *s, const NodeProto *n)
{
    const char *place = place_of(r, s, n);
    int count;
    if (s->call && !work_add(r, place, 1 + n->n_attribute))
        return;
    if (n->n_input || n->n_output != 1 || !*n->output[0]) {
        diag_error(r->c, place, "a Constant has no input and one output; found %zu and %zu", n->n_input, n->n_output);
        return;
    }
    const GivenAttr *attrs = attrs_given(r, s, n, place, &count);
    constant_read(r, s->graph, names_find(&s->names, n->output[0]), attrs, count, place);
}

static void link_node(Reader *r, Scope *s, const NodeProto *n, uint32_t node, const char *place)
{
    for (size_t i = 0; i < n->n_input; i++) {
        uint32_t value = 0;
        if (*n->input[i] && !scope_find(r, s, n->input[i], &value))
            diag_error(r->c, place, "input %zu '%s' does not exist; no node, input or initializer has this name", i,
                       n->input[i]);
        s->graph->nodes[node].inputs[i] = value;
    }
    for (size_t i = 0; i < n->n_output; i++)
        s->graph->nodes[node].outputs[i] = *n->output[i] ? names_find(&s->names, n->output[i]) : 0;
}

/* An operator stays a node; its attributes are read before, which may add values and subgraphs. */
static void read_operator(Reader *r, Scope *s, const NodeProto *n, int version, const char *name, const char *place)
{
    int count, read = 0;
    const GivenAttr *given = attrs_given(r, s, n, place, &count);
    Attr *attrs = NEW_ARRAY(r->c, Attr, count);
    for (int i = 0; i < count; i++)
        read += attr_read(r, s, &given[i], name, place, &attrs[read]);
    uint32_t node = graph_node(r->c, s->graph, domain_of(n->domain), n->op_type, name, (int)n->n_input, (int)n->n_output);
    s->graph->nodes[node].opset = version;
    s->graph->nodes[node].attrs = attrs;
    s->graph->nodes[node].attr_count = read;
    link_node(r, s, n, node, place);
    (void)legacy_raise(r, s->graph, node, place);
}

static bool node_read(Reader *r, Scope *s, const NodeProto *n)
{
    const char *domain = domain_of(n->domain), *place = place_of(r, s, n), *op = text_or_empty(n->op_type);
    int version = opset_version(r, s, domain);
    if (s->call && !work_add(r, place, 1 + n->n_input + n->n_output + n->n_attribute))
        return false;
    if (n->n_input > MAX_OPERANDS || n->n_output > MAX_OPERANDS) {
        diag_error(r->c, place, "%zu inputs and %zu outputs are too many; expected at most %u", n->n_input, n->n_output,
                   MAX_OPERANDS);
        return true;
    }
    if (!*op) {
        diag_error(r->c, place, "it has no operator; expected an op_type");
        return true;
    }
    if (!version) {
        if (names_add(r->c, &r->unknown_domains, domain, 1))
            diag_error(r->c, place, "domain '%s' is not imported; expected an entry in the model's opset_import",
                       *domain ? domain : "ai.onnx");
        return true;
    }
    const OpRow *row = *text_or_empty(n->overload) ? NULL : op_find(domain, op, version);
    uint32_t function = row ? 0 : function_find(r, n);
    if (function)
        return function_inline(r, s, function, n, node_name(r, s, n), place);
    read_operator(r, s, n, version, node_name(r, s, n), place);
    return true;
}

bool nodes_read(Reader *r, Scope *s, NodeProto *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        define_outputs(r, s, nodes[i]);
    for (size_t i = 0; i < count; i++) /* before the nodes: a subgraph copies what it sees of them */
        if (is_constant(nodes[i]))
            read_constant(r, s, nodes[i]);
    for (size_t i = 0; i < count; i++)
        if (!is_constant(nodes[i]) && !node_read(r, s, nodes[i]))
            return false;
    return true;
}

/* ---- graphs */

static void read_initializers(Reader *r, Scope *s, const GraphProto *p, const char *where)
{
    for (size_t i = 0; i < p->n_initializer; i++) {
        const TensorProto *t = p->initializer[i];
        const char *name = text_or_empty(t->name);
        const char *place = arena_text(&r->c->arena, "%sinitializer '%s'", where, name);
        uint32_t value = *name ? scope_value(r, s, name) : 0;
        if (value)
            tensor_read(r, s->graph, value, t, place);
        else
            diag_error(r->c, place, *name ? "the name is defined before; each name has one definition" : "it has no name");
    }
}

static void read_inputs(Reader *r, Scope *s, const GraphProto *p, const char *where)
{
    Graph *g = s->graph;
    Names seen = {0};
    g->inputs = NEW_ARRAY(r->c, uint32_t, p->n_input);
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = text_or_empty(p->input[i]->name);
        const char *place = arena_text(&r->c->arena, "%sinput '%s'", where, name);
        if (!*name || !names_add(r->c, &seen, name, 1)) {
            diag_error(r->c, place, *name ? "it occurs twice" : "it has no name");
            continue;
        }
        uint32_t value = scope_value(r, s, name);
        if (!value) { /* an initializer: a constant, or (IR 4 and later) a default that nothing overrides here */
            if (!r->default_count++)
                r->first_default = name;
            continue;
        }
        g->inputs[g->input_count++] = value;
        g->values[value].is_input = true;
        read_input_type(r, s, value, p->input[i], place);
    }
}

/* Declared dims of an output are a hint for infer, where no rule determines them; symbols in them say nothing. */
static void read_output_dims(Compilation *c, Value *v, const ValueInfoProto *p)
{
    const Onnx__TensorShapeProto *shape = p->type->tensor_type->shape;
    if (v->rank >= 0 || !shape || shape->n_dim > MAX_RANK)
        return;
    v->rank = (int)shape->n_dim;
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0;
        v->dims[i] = fixed ? dim_const(c, d->dim_value) : 0;
    }
}

/* The declared element type of an output must hold. */
static void read_outputs(Reader *r, Scope *s, const GraphProto *p, const char *where)
{
    Graph *g = s->graph;
    Names seen = {0};
    g->outputs = NEW_ARRAY(r->c, uint32_t, p->n_output);
    for (size_t i = 0; i < p->n_output; i++) {
        const char *name = text_or_empty(p->output[i]->name);
        const char *place = arena_text(&r->c->arena, "%soutput '%s'", where, name);
        uint32_t value = 0;
        DType type;
        if (!*name || !names_add(r->c, &seen, name, 1)) {
            diag_error(r->c, place, *name ? "it occurs twice" : "it has no name");
            continue;
        }
        if (!scope_find(r, s, name, &value) || !value) {
            diag_error(r->c, place, "it does not exist; no node, input or initializer has this name");
            continue;
        }
        g->outputs[g->output_count++] = value;
        Value *v = &g->values[value];
        v->is_output = true;
        if (!read_elem_type(r, p->output[i], place, &type) || !type || is_list(p->output[i]->type))
            continue;
        if (v->dtype && v->dtype != type)
            diag_error(r->c, place, "its declared type does not hold; expected %s, found %s", dtype_name(type),
                       dtype_name(v->dtype));
        v->dtype = type;
        if (s->graph == &r->c->graph)
            read_output_dims(r->c, v, p->output[i]);
    }
}

/* Constants that nothing reads keep no data. Tensors of attributes have no uses, but are read. */
static void drop_unused(Compilation *c, Graph *g)
{
    bool *keep = NEW_ARRAY(c, bool, g->value_count + 1);
    for (uint32_t n = 1; n <= g->node_count; n++)
        for (int i = 0; i < g->nodes[n].attr_count; i++)
            if (g->nodes[n].attrs[i].kind == ATTR_TENSOR)
                keep[g->nodes[n].attrs[i].tensor] = true;
    for (uint32_t i = 1; i <= g->value_count; i++)
        if (g->values[i].data && !g->values[i].uses && !keep[i]) {
            g->values[i].data = NULL;
            g->values[i].contents = NULL;
            g->values[i].contents_count = -1;
        }
}

bool graph_read(Reader *r, Scope *s, const GraphProto *p, const char *name, const char *place)
{
    const char *where = s->graph == &r->c->graph ? "" : arena_text(&r->c->arena, "%s: ", place);
    s->graph->name = name;
    if (p->n_sparse_initializer)
        diag_error(r->c, place, "sparse initializers are not supported; found %zu", p->n_sparse_initializer);
    read_initializers(r, s, p, where);
    read_inputs(r, s, p, where);
    if (!nodes_read(r, s, p->node, p->n_node))
        return false;
    read_outputs(r, s, p, where);
    if (!graph_sort(r->c, s->graph))
        return false;
    if (s->graph == &r->c->graph)
        drop_unused(r->c, s->graph);
    return true;
}
