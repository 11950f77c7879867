/* import.c - the first pass: the ONNX file becomes the graph. The reader's parts are in compiler/: wire.c, external.c,
 * onnx_tensor.c, onnx_bind.c, onnx_attr.c, onnx_graph.c, functions.c, legacy.c, opsets.c. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "format.h"
#include "reader.h"
#include "wire.h"

#define MIN_IR 3
#define MAX_IR 13

static void set_names(Compilation *c)
{
    const char *path = c->options.model_path, *slash = strrchr(path, '/');
    c->file = slash ? slash + 1 : path;
    c->folder = !slash ? "." : slash == path ? "/" : arena_text(&c->arena, "%.*s", (int)(slash - path), path);
}

static bool map_model(Reader *r)
{
    int file = open(r->c->options.model_path, O_RDONLY | O_NONBLOCK);
    const char *reason = file < 0 ? strerror(errno) : map_whole(file, &r->bytes, &r->size);
    if (!reason && !r->size)
        reason = "it is empty; expected an ONNX model";
    if (reason)
        diag_error(r->c, NULL, "the model cannot be read: %s", reason);
    return !reason;
}

static bool unpack_model(Reader *r)
{
    uint8_t *skeleton;
    size_t size;
    ProtobufCAllocator allocator = reader_allocator(r->c);
    WireFile file = {.root = &onnx__model_proto__descriptor, .bytes = r->bytes, .size = (size_t)r->size};
    if (!wire_skeleton(r->c, &file, &skeleton, &size))
        return false;
    r->model = onnx__model_proto__unpack(&allocator, size, skeleton);
    if (!r->model)
        diag_error(r->c, NULL, "the model cannot be unpacked; it is no ONNX model");
    return r->model != NULL;
}

/* The version decides whether the rest can be read at all. */
static bool check_version(Reader *r)
{
    if (!r->model->has_ir_version && !r->model->graph) {
        diag_error(r->c, NULL, "it is no ONNX model: it has no ir_version and no graph");
        return false;
    }
    int64_t ir = r->model->ir_version;
    if (ir < MIN_IR || ir > MAX_IR) {
        diag_error(r->c, NULL, "IR version %lld is not supported; expected %d to %d", (long long)ir, MIN_IR, MAX_IR);
        return false;
    }
    r->c->ir_version = (int)ir;
    if (!r->model->graph)
        diag_error(r->c, NULL, "the model has no graph");
    return r->model->graph != NULL;
}

static void note_defaults(const Reader *r)
{
    if (r->default_count && r->c->ir_version >= 4)
        diag_note(r->c, "%u input%s with a default value: taken as constant%s, first '%s'", r->default_count,
                  r->default_count == 1 ? "" : "s", r->default_count == 1 ? "" : "s", r->first_default);
}

bool pass_import(Compilation *c)
{
    Reader r = {.c = c};
    set_names(c);
    if (!map_model(&r))
        return false;
    c->model_hash = plan_checksum(r.bytes, r.size);
    if (!unpack_model(&r) || !check_version(&r))
        return false;
    r.opsets = opsets_read(&r, r.model->opset_import, r.model->n_opset_import, "opset_import");
    if (diag_failed(c) || !functions_index(&r))
        return false;
    Scope top = {.graph = &c->graph};
    const char *name = text_or_empty(r.model->graph->name);
    graph_read(&r, &top, r.model->graph, *name ? name : "graph", "graph");
    note_defaults(&r);
    return !diag_failed(c);
}
