/* wire.h - a scan of the model's protobuf wire before it is unpacked.
 *
 * protobuf-c's unpacker copies everything, and goes down without a limit. So the file is first walked once, in linear
 * time and without recursion; what comes out is a *skeleton*: the same message with only the fields of onnx.proto,
 * and with the bytes of every tensor's raw_data left where they are (raw_offset and raw_size stand in their place). */
#ifndef GCC_PLAN_WIRE_H
#define GCC_PLAN_WIRE_H

#include "compiler.h"

#define WIRE_MAX_DEPTH 64 /* messages within each other */

typedef struct WireFile {
    const struct ProtobufCMessageDescriptor *root; /* what the file holds: a ModelProto, a TensorProto */
    const char *place;                             /* for messages; NULL: the model */
    const uint8_t *bytes;
    size_t size;
} WireFile;

/* The file's skeleton, in the arena. False after an error that names the offset, the field, what was expected and what was
 * found. */
bool wire_skeleton(Compilation *c, const WireFile *file, uint8_t **out, size_t *out_size);

#endif
