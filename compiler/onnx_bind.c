/* onnx_bind.c - inputs that are constants: --bind INPUT=FILE.pb and the recipe's `bind`. The file holds one TensorProto, as
 * ONNX's test data do. */
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

/* The file's tensor as a constant of the scratch graph; NULL after an error. */
static const Value *read_tensor(Reader *r, Graph *scratch, const Bind *b)
{
    Compilation *c = r->c;
    uint8_t *skeleton;
    size_t size;
    if (!map_file(r, b))
        return NULL;
    ProtobufCAllocator allocator = reader_allocator(c);
    WireFile file = {.root = &onnx__tensor_proto__descriptor, .place = b->place, .bytes = r->bytes, .size = (size_t)r->size};
    if (!wire_skeleton(c, &file, &skeleton, &size))
        return NULL;
    const TensorProto *t = onnx__tensor_proto__unpack(&allocator, size, skeleton);
    if (!t) {
        diag_error(c, b->place, "'%s' cannot be unpacked; it is no ONNX tensor", b->path);
        return NULL;
    }
    if (t->data_location) { /* whose folder would that be in? */
        diag_error(c, b->place, "the tensor's data are external; expected them in the file");
        return NULL;
    }
    uint32_t value = graph_value(c, scratch, b->input);
    return tensor_read(r, scratch, value, t, b->place) ? &scratch->values[value] : NULL;
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

static bool bind_input(Compilation *c, const Bind *b)
{
    Graph *g = &c->graph, scratch = {0};
    Reader r = {.c = c};
    uint32_t input = graph_input_named(g, b->input);
    if (!input) {
        diag_error(c, b->place, "the model has no input '%s'", b->input);
        return false;
    }
    const Value *tensor = read_tensor(&r, &scratch, b);
    if (!tensor)
        return false;
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
    v->data->file_offset = 0; /* of the bound file: the plan keeps a copy of its own */
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
    return !diag_failed(c);
}
