/* onnx_bind.c - inputs that are constants: --bind INPUT=FILE.pb and the recipe's `bind`. The file holds one TensorProto, or for
 * an input of such a type a SequenceProto or OptionalProto, as ONNX's test data do. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "reader.h"
#include "recipe.h"
#include "wire.h"

static void *unpack_alloc(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void unpack_free(void *arena, void *bytes)
{
    (void)arena;
    (void)bytes; /* lives as long as the compilation */
}

ProtobufCAllocator reader_allocator(Compilation *c)
{
    return (ProtobufCAllocator){unpack_alloc, unpack_free, &c->arena};
}

static bool map_file(Reader *r, const Bind *b)
{
    int file = open(b->path, O_RDONLY | O_NONBLOCK);
    const char *reason = file < 0 ? strerror(errno) : map_whole(file, &r->bytes, &r->size);
    if (!reason && !r->size)
        reason = "it is empty; expected an ONNX tensor";
    if (reason)
        diag_error(r->c, b->place, "'%s' cannot be read: %s", b->path, reason);
    return !reason;
}

/* The file's message, of type ROOT; WHAT: its name for people. NULL after an error. */
static void *read_message(Reader *r, const Bind *b, const ProtobufCMessageDescriptor *root, const char *what)
{
    Compilation *c = r->c;
    uint8_t *skeleton;
    size_t size;
    if (!map_file(r, b))
        return NULL;
    ProtobufCAllocator allocator = reader_allocator(c);
    WireFile file = {.root = root, .place = b->place, .bytes = r->bytes, .size = (size_t)r->size};
    if (!wire_skeleton(c, &file, &skeleton, &size))
        return NULL;
    void *message = protobuf_c_message_unpack(root, &allocator, size, skeleton);
    if (!message)
        diag_error(c, b->place, "'%s' cannot be unpacked; it is no ONNX %s", b->path, what);
    return message;
}

/* The tensor as a constant of graph G; 0 after an error. */
static uint32_t add_tensor(Reader *r, Graph *g, const char *name, const TensorProto *t, const char *place)
{
    if (t->data_location) { /* whose folder would that be in? */
        diag_error(r->c, place, "the tensor's data are external; expected them in the file");
        return 0;
    }
    uint32_t value = graph_value(r->c, g, name);
    if (!tensor_read(r, g, value, t, place))
        return 0;
    g->values[value].data->file_offset = 0; /* of the bound file: the plan keeps a copy of its own */
    return value;
}

static const char *shape_text(Compilation *c, const Value *v)
{
    Text t = {0};
    text_add(&t, "%s [", dtype_name(v->dtype));
    for (int i = 0; i < v->rank; i++)
        text_add(&t, "%s%s", i ? ", " : "", dim_text(c, dim_resolve(c, v->dims[i])));
    text_add(&t, "]");
    const char *copy = arena_copy(&c->arena, t.data);
    text_free(&t);
    return copy;
}

static bool fits(Compilation *c, const Value *input, const Value *tensor)
{
    bool same = input->dtype == tensor->dtype && input->rank == tensor->rank;
    for (int i = 0; same && i < input->rank; i++)
        same = dim_equal(c, input->dims[i], tensor->dims[i]) || !dim_is_const(c, dim_resolve(c, input->dims[i]), NULL);
    return same;
}

/* ---- sequences and optionals */

/* A tensor in the list as a value of the main graph, NAME; TYPE: the declared one, or DT_NONE. 0 after an error. */
static uint32_t add_item(Reader *r, const Bind *b, const char *name, DType type, const TensorProto *t)
{
    Compilation *c = r->c;
    const uint32_t item = add_tensor(r, &c->graph, name, t, b->place);
    if (!item || !type || c->graph.values[item].dtype == type)
        return item;
    diag_error(c, b->place, "'%s' is not of the input's type; expected %s, found %s", name, dtype_name(type),
               dtype_name(c->graph.values[item].dtype));
    return 0;
}

/* The sequence's tensors, in the input's list. */
static bool bind_sequence(Reader *r, const Bind *b, List *list, DType type, const Onnx__SequenceProto *p)
{
    Compilation *c = r->c;
    if (p->n_sequence_values || p->n_tensor_values > MAX_LIST) {
        diag_error(c, b->place, p->n_sequence_values ? "a sequence of sequences is not supported"
                                                     : "the sequence holds more than %d tensors", MAX_LIST);
        return false;
    }
    list->count = (int)p->n_tensor_values;
    list->items = NEW_ARRAY(c, uint32_t, list->count + 1);
    for (int i = 0; i < list->count; i++) {
        list->items[i] = add_item(r, b, arena_text(&c->arena, "%s[%d]", b->input, i), type, p->tensor_values[i]);
        if (!list->items[i])
            return false;
    }
    return true;
}

/* The value in the optional becomes a value of its own. */
static bool bind_optional(Reader *r, const Bind *b, List *list, DType type, const Onnx__OptionalProto *p)
{
    Compilation *c = r->c;
    if (p->optional_value) {
        diag_error(c, b->place, "an optional in an optional is not supported");
        return false;
    }
    list->count = p->tensor_value || p->sequence_value;
    list->items = NEW(c, uint32_t);
    if (p->tensor_value)
        list->items[0] = add_item(r, b, arena_text(&c->arena, "%s[0]", b->input), type, p->tensor_value);
    if (!p->sequence_value)
        return !list->count || list->items[0];
    List *inner = NEW(c, List);
    if (!bind_sequence(r, b, inner, type, p->sequence_value))
        return false;
    list->items[0] = graph_value(c, &c->graph, arena_text(&c->arena, "%s: the sequence", b->input));
    c->graph.values[list->items[0]].list = inner;
    return true;
}

static bool bind_list(Reader *r, const Bind *b, uint32_t input)
{
    List *list = r->c->graph.values[input].list;
    const DType type = r->c->graph.values[input].dtype;
    const char *what = list->optional ? "optional" : "sequence";
    const void *p = read_message(r, b, list->optional ? &onnx__optional_proto__descriptor : &onnx__sequence_proto__descriptor, what);
    if (!p || !(list->optional ? bind_optional(r, b, list, type, p) : bind_sequence(r, b, list, type, p)))
        return false;
    input_to_constant(r->c, input);
    r->c->graph.values[input].is_constant = false; /* its tensors are */
    return true;
}

/* What is left would have a length that only the run knows. */
static void refuse_unbound(Compilation *c)
{
    for (uint32_t i = 0; i < c->graph.input_count; i++) {
        const Value *v = &c->graph.values[c->graph.inputs[i]];
        if (!v->list)
            continue;
        diag_error(c, arena_text(&c->arena, "input '%s'", v->name), "it is %s that is not known when compiling",
                   v->list->optional ? "an optional" : "a sequence");
        diag_remedy(c, "bind it to a file: --bind %s=FILE.pb", v->name);
    }
}

/* ---- */

static bool bind_input(Compilation *c, const Bind *b)
{
    Graph *g = &c->graph, scratch = {0};
    Reader r = {.c = c};
    uint32_t input = graph_input_named(g, b->input);
    if (!input) {
        diag_error(c, b->place, "the model has no input '%s'", b->input);
        return false;
    }
    if (g->values[input].list)
        return bind_list(&r, b, input);
    const TensorProto *t = read_message(&r, b, &onnx__tensor_proto__descriptor, "tensor");
    const uint32_t read = t ? add_tensor(&r, &scratch, b->input, t, b->place) : 0;
    if (!read)
        return false;
    const Value *tensor = &scratch.values[read];
    Value *v = &g->values[input];
    if (!fits(c, v, tensor)) {
        diag_error(c, b->place, "the tensor is not of the input's type; expected %s, found %s", shape_text(c, v),
                   shape_text(c, tensor));
        return false;
    }
    for (int i = 0; i < v->rank; i++) { /* a symbol of other inputs too has this value everywhere */
        if (!dim_equate(c, NULL, "bind", v->dims[i], tensor->dims[i]))
            return false;
        v->dims[i] = tensor->dims[i];
    }
    v->contents = tensor->contents;
    v->contents_count = tensor->contents_count;
    v->data = tensor->data;
    input_to_constant(c, input);
    return true;
}

bool bind_overridden(const Compilation *c, int from, const char *input)
{
    for (int i = from; i < c->options.bind_count; i++)
        if (!strcmp(c->options.binds[i].input, input))
            return true;
    return false;
}

bool binds_apply(Compilation *c)
{
    for (int i = 0; i < c->recipe.bind_count; i++)
        if (!bind_overridden(c, 0, c->recipe.binds[i].input))
            (void)bind_input(c, &c->recipe.binds[i]);
    for (int i = 0; i < c->options.bind_count; i++)
        if (!bind_overridden(c, i + 1, c->options.binds[i].input))
            (void)bind_input(c, &c->options.binds[i]);
    if (!diag_failed(c))
        refuse_unbound(c);
    return !diag_failed(c);
}
