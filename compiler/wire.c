/* wire.c - the scan of a model's protobuf wire: bounds, depth, counts, field types; makes the skeleton.
 *
 * Two walks over the same fields: the first checks everything and computes the size of each message in the skeleton
 * (a message's size is known when it closes, its children before it); the second writes. */
#include "wire.h"

#include <string.h>

#include "onnx.pb-c.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { TENSOR_RAW_DATA = 9, TENSOR_RAW_OFFSET = 1000, TENSOR_RAW_SIZE = 1001 };

typedef struct Message {
    const ProtobufCMessageDescriptor *type;
    size_t tag, end;    /* offset of its tag, and of the byte after it */
    size_t kept;        /* bytes of its contents in the skeleton */
    uint64_t seen;      /* bit i: field i of its descriptor occurred */
} Message;

typedef struct Field {
    uint32_t number;
    unsigned wire;
    size_t tag, payload, end; /* offsets; payload: after tag and length */
    const ProtobufCFieldDescriptor *known; /* NULL: dropped */
    bool raw;                 /* it is TensorProto.raw_data */
} Field;

typedef struct Walk {
    Compilation *c;
    const WireFile *file;
    const uint8_t *bytes;
    size_t size;
    uint32_t count, room, limit; /* messages, in the order of their tags */
    Message *messages;
    uint32_t stack[WIRE_MAX_DEPTH];
    int depth;
} Walk;

static bool wrong(Walk *w, size_t at, const char *what, const char *expected, const char *found)
{
    const char *place = w->file->place;
    diag_error(w->c, arena_text(&w->c->arena, "%s%soffset %zu", place ? place : "", place ? ": " : "", at),
               "%s; expected %s, found %s", what, expected, found);
    return false;
}

static const char *number_text(Walk *w, const char *format, uint64_t v)
{
    return arena_text(&w->c->arena, format, (unsigned long long)v);
}

static bool read_varint(Walk *w, size_t *at, size_t limit, uint64_t *out, const char *what)
{
    uint64_t v = 0;
    size_t p = *at;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p >= limit)
            return wrong(w, *at, what, "a number that ends within its message", "the end");
        uint8_t b = w->bytes[p++];
        if (shift < 63 || b <= 1)
            v |= (uint64_t)(b & 127) << shift;
        else
            break;
        if (!(b & 128)) {
            *at = p;
            *out = v;
            return true;
        }
    }
    return wrong(w, *at, what, "a number of at most 64 bits", "a longer one");
}

/* How a field of this type is written; packed: many in one length-delimited field. */
static unsigned wire_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_FLOAT: return WIRE_32;
    case PROTOBUF_C_TYPE_DOUBLE: return WIRE_64;
    case PROTOBUF_C_TYPE_STRING: case PROTOBUF_C_TYPE_BYTES: case PROTOBUF_C_TYPE_MESSAGE: return WIRE_BYTES;
    default: return WIRE_VARINT;
    }
}

static bool read_length(Walk *w, Field *f, size_t limit)
{
    uint64_t length;
    size_t at = f->payload;
    if (!read_varint(w, &f->payload, limit, &length, "the length of a field is broken off"))
        return false;
    if (length > limit - f->payload)
        return wrong(w, at, "a field is longer than the message around it",
                     number_text(w, "at most %llu bytes", limit - f->payload), number_text(w, "%llu", length));
    f->end = f->payload + (size_t)length;
    return true;
}

/* The field whose tag is at `at`; its end lies within `limit`. */
static bool read_field(Walk *w, const Message *m, size_t at, size_t limit, Field *f)
{
    uint64_t tag, ignored;
    *f = (Field){.tag = at, .payload = at};
    if (!read_varint(w, &f->payload, limit, &tag, "a field's tag is broken off"))
        return false;
    f->wire = (unsigned)(tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > 536870911)
        return wrong(w, at, "no field has this number", "1 to 536870911", number_text(w, "%llu", tag >> 3));
    f->number = (uint32_t)(tag >> 3);
    f->end = f->payload;
    if (f->wire == WIRE_VARINT) {
        if (!read_varint(w, &f->end, limit, &ignored, "a number is broken off"))
            return false;
    } else if (f->wire == WIRE_32 || f->wire == WIRE_64) {
        size_t size = f->wire == WIRE_32 ? 4 : 8;
        if (limit - f->payload < size)
            return wrong(w, at, "a field is longer than the message around it", number_text(w, "%llu bytes", size),
                         number_text(w, "%llu", limit - f->payload));
        f->end += size;
    } else if (f->wire == WIRE_BYTES) {
        if (!read_length(w, f, limit))
            return false;
    } else
        return wrong(w, at, "a field has an unknown kind", "0, 1, 2 or 5", number_text(w, "%llu", f->wire));
    bool tensor = m->type == &onnx__tensor_proto__descriptor;
    if (!tensor || (f->number != TENSOR_RAW_OFFSET && f->number != TENSOR_RAW_SIZE))
        f->known = protobuf_c_message_descriptor_get_field(m->type, f->number);
    f->raw = tensor && f->number == TENSOR_RAW_DATA;
    return true;
}

static bool check_packed(Walk *w, const Field *f, unsigned wire)
{
    uint64_t ignored;
    if (wire == WIRE_VARINT) {
        for (size_t at = f->payload; at < f->end;)
            if (!read_varint(w, &at, f->end, &ignored, "a packed number is broken off"))
                return false;
        return true;
    }
    size_t size = wire == WIRE_32 ? 4 : 8;
    if ((f->end - f->payload) % size)
        return wrong(w, f->tag, "a packed field is broken off", number_text(w, "a multiple of %llu bytes", size),
                     number_text(w, "%llu", f->end - f->payload));
    return true;
}

static const char *field_text(Walk *w, const Message *m, const ProtobufCFieldDescriptor *d, const char *what)
{
    return arena_text(&w->c->arena, "field '%s' of %s %s", d->name, m->type->short_name, what);
}

/* A known field: its wire kind fits its type, texts hold no zero byte, single messages occur once. */
static bool check_field(Walk *w, Message *m, const Field *f)
{
    const ProtobufCFieldDescriptor *d = f->known;
    unsigned wire = wire_of(d);
    bool many = d->label == PROTOBUF_C_LABEL_REPEATED;
    if (many && wire != WIRE_BYTES && f->wire == WIRE_BYTES)
        return check_packed(w, f, wire);
    if (f->wire != wire)
        return wrong(w, f->tag, field_text(w, m, d, "is written as another kind"),
                     number_text(w, "kind %llu", wire), number_text(w, "%llu", f->wire));
    uint64_t bit = UINT64_C(1) << (unsigned)(d - m->type->fields);
    if (!many && (d->type == PROTOBUF_C_TYPE_MESSAGE || f->raw) && (m->seen & bit))
        return wrong(w, f->tag, field_text(w, m, d, "occurs again"), "once", "twice");
    m->seen |= bit;
    if (d->type == PROTOBUF_C_TYPE_STRING && memchr(w->bytes + f->payload, 0, f->end - f->payload))
        return wrong(w, f->tag, field_text(w, m, d, "is no text"), "UTF-8", "a zero byte");
    return true;
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static size_t raw_kept(const Field *f) /* what stands for raw_data: two tags of two bytes, two numbers */
{
    return 4 + varint_size(f->payload) + varint_size(f->end - f->payload);
}

static bool open_message(Walk *w, const ProtobufCMessageDescriptor *type, size_t tag, size_t end)
{
    if (w->depth == WIRE_MAX_DEPTH)
        return wrong(w, tag, "messages are nested too deeply", number_text(w, "at most %llu", WIRE_MAX_DEPTH), "more");
    if (w->count == w->limit)
        return wrong(w, tag, "the file holds too many messages for its size", number_text(w, "at most %llu", w->limit),
                     "more");
    if (w->count == w->room) {
        uint32_t room = w->room ? w->room * 2 : 256;
        Message *fresh = NEW_ARRAY(w->c, Message, room);
        if (w->count)
            memcpy(fresh, w->messages, w->count * sizeof *fresh);
        w->messages = fresh;
        w->room = room;
    }
    w->messages[w->count] = (Message){.type = type, .tag = tag, .end = end};
    w->stack[w->depth++] = w->count++;
    return true;
}

/* The message on top is complete: its tag, length and contents count for the one around it. */
static void close_message(Walk *w)
{
    const Message *m = &w->messages[w->stack[--w->depth]];
    if (!w->depth)
        return;
    uint64_t tag = 0;
    size_t at = m->tag;
    (void)read_varint(w, &at, m->end, &tag, "");
    w->messages[w->stack[w->depth - 1]].kept += varint_size(tag) + varint_size(m->kept) + m->kept;
}

static bool check_all(Walk *w)
{
    size_t at = 0;
    if (!open_message(w, w->file->root, 0, w->size))
        return false;
    while (w->depth) {
        Message *m = &w->messages[w->stack[w->depth - 1]];
        if (at == m->end) {
            close_message(w);
            continue;
        }
        Field f;
        if (!read_field(w, m, at, m->end, &f) || (f.known && !check_field(w, m, &f)))
            return false;
        at = f.end;
        if (!f.known)
            continue;
        if (f.known->type == PROTOBUF_C_TYPE_MESSAGE) {
            if (!open_message(w, f.known->descriptor, f.tag, f.end))
                return false;
            at = f.payload;
        } else
            m->kept += f.raw ? raw_kept(&f) : f.end - f.tag;
    }
    return true;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *p++ = (uint8_t)(v | 128);
    *p++ = (uint8_t)v;
    return p;
}

static uint8_t *put_raw(uint8_t *p, const Field *f)
{
    p = put_varint(p, TENSOR_RAW_OFFSET << 3 | WIRE_VARINT);
    p = put_varint(p, f->payload);
    p = put_varint(p, TENSOR_RAW_SIZE << 3 | WIRE_VARINT);
    return put_varint(p, f->end - f->payload);
}

/* The second walk, over what the first has found good. */
static uint8_t *write_all(Walk *w, uint8_t *p)
{
    uint32_t next = 1;
    w->depth = 0;
    w->stack[w->depth++] = 0;
    for (size_t at = 0; w->depth;) {
        const Message *m = &w->messages[w->stack[w->depth - 1]];
        if (at == m->end) {
            w->depth--;
            continue;
        }
        Field f;
        if (!read_field(w, m, at, m->end, &f))
            fault("import", "the second scan of the file differs from the first");
        at = f.end;
        if (!f.known)
            continue;
        if (f.known->type == PROTOBUF_C_TYPE_MESSAGE) {
            p = put_varint(p, (uint64_t)f.number << 3 | WIRE_BYTES);
            p = put_varint(p, w->messages[next].kept);
            w->stack[w->depth++] = next++;
            at = f.payload;
        } else if (f.raw) {
            p = put_raw(p, &f);
        } else {
            memcpy(p, w->bytes + f.tag, f.end - f.tag);
            p += f.end - f.tag;
        }
    }
    return p;
}

bool wire_skeleton(Compilation *c, const WireFile *file, uint8_t **out, size_t *out_size)
{
    size_t size = file->size;
    /* No honest message is shorter than four bytes; short files may have some. */
    Walk w = {.c = c, .file = file, .bytes = file->bytes, .size = size,
              .limit = (uint32_t)(size / 4 > 4000000000u ? 4000000000u : size / 4 + 64)};
    if (!check_all(&w))
        return false;
    *out_size = w.messages[0].kept;
    *out = arena_alloc(&c->arena, *out_size);
    uint8_t *end = write_all(&w, *out);
    if (end != *out + *out_size)
        fault("import", "the skeleton has %zu bytes, not %zu", (size_t)(end - *out), *out_size);
    return true;
}
