/* onnx_tensor.c - TensorProto to constants: dtype, dims, bytes that stay mapped or are made from typed fields. */
#include <string.h>

#include "reader.h"

static bool fail(Reader *r, const char *place, const TensorProto *t, const char *what, int64_t expected, int64_t found)
{
    const char *name = t->name && *t->name ? arena_text(&r->c->arena, "tensor '%s': ", t->name) : "";
    if (strstr(place, "initializer"))
        name = "";
    diag_error(r->c, place, "%s%s; expected %lld, found %lld", name, what, (long long)expected, (long long)found);
    return false;
}

/* Elements, or -1 after an error. */
static int64_t read_dims(Reader *r, Value *v, const TensorProto *t, const char *place)
{
    int64_t elements = 1;
    if (t->n_dims > MAX_RANK) {
        diag_error(r->c, place, "rank %zu is too large; expected at most %d", t->n_dims, MAX_RANK);
        return -1;
    }
    for (size_t i = 0; i < t->n_dims; i++) {
        int64_t d = t->dims[i];
        if (d < 0 || (d > 0 && elements > INT64_MAX / 16 / d)) {
            diag_error(r->c, place, "dim %zu is %lld, which is out of range", i, (long long)d);
            return -1;
        }
        elements *= d;
        v->dims[i] = dim_const(r->c, d);
    }
    v->rank = (int)t->n_dims;
    return elements;
}

static bool read_dtype(Reader *r, Value *v, const TensorProto *t, const char *place)
{
    int type = t->has_data_type ? t->data_type : 0;
    if (type == DT_STRING) {
        diag_error(r->c, place, "strings are not supported");
        return false;
    }
    if (type <= 0 || type > DT_I2) {
        diag_error(r->c, place, "data type %d is not known; expected 1 to %d", type, DT_I2);
        return false;
    }
    v->dtype = (DType)type;
    return true;
}

static const char *external_text(const TensorProto *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++)
        if (!strcmp(text_or_empty(t->external_data[i]->key), key))
            return text_or_empty(t->external_data[i]->value);
    return NULL;
}

/* int32_data holds all types of up to 32 bits, one an element; those below 8 bits a byte an element, as in raw_data. */
static bool from_int32(Reader *r, Value *v, const TensorProto *t, const char *place, uint8_t *out, size_t width)
{
    int64_t low = width == 4 ? INT32_MIN : width == 2 ? INT16_MIN : INT8_MIN;
    int64_t high = width == 4 ? INT32_MAX : width == 2 ? UINT16_MAX : UINT8_MAX;
    if (v->dtype == DT_BOOL) {
        low = 0;
        high = 1;
    }
    for (size_t i = 0; i < t->n_int32_data; i++) {
        int64_t x = t->int32_data[i];
        if (x < low || x > high) {
            diag_error(r->c, place, "element %zu is %lld, which is out of range for %s", i, (long long)x,
                       dtype_name(v->dtype));
            return false;
        }
        uint32_t bits = (uint32_t)t->int32_data[i];
        memcpy(out + i * width, &bits, width); /* little endian, as all of our targets */
    }
    return true;
}

/* The typed fields; which one, is decided by the dtype. */
static bool read_typed(Reader *r, Value *v, const TensorProto *t, const char *place, uint64_t bytes)
{
    size_t all = t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data + t->n_uint64_data, count;
    size_t width = dtype_bits(v->dtype) < 8 ? 1 : (size_t)dtype_bits(v->dtype) / 8;
    const void *from = NULL;
    switch (v->dtype) {
    case DT_F32: count = t->n_float_data; from = t->float_data; break;
    case DT_F64: count = t->n_double_data; from = t->double_data; break;
    case DT_I64: count = t->n_int64_data; from = t->int64_data; break;
    case DT_U32: case DT_U64: count = t->n_uint64_data; break;
    case DT_C64: case DT_C128:
        diag_error(r->c, place, "complex numbers are not supported");
        return false;
    default: count = t->n_int32_data; break;
    }
    if (all != count) {
        diag_error(r->c, place, "the elements stand in a field that is not for dtype %s", dtype_name(v->dtype));
        return false;
    }
    if (count != bytes / width)
        return fail(r, place, t, "the number of elements does not fit its dims", (int64_t)(bytes / width), (int64_t)count);
    uint8_t *out = arena_alloc(&r->c->arena, (size_t)bytes);
    *v->data = (Data){.bytes = out, .size = bytes};
    if (from)
        memcpy(out, from, (size_t)bytes);
    else if (v->dtype == DT_U32 || v->dtype == DT_U64)
        for (size_t i = 0; i < count; i++)
            memcpy(out + i * width, &t->uint64_data[i], width);
    else if (bytes)
        return from_int32(r, v, t, place, out, width);
    return true;
}

static bool read_bytes(Reader *r, Value *v, const TensorProto *t, const char *place, int64_t elements)
{
    uint64_t bytes = (uint64_t)dtype_bytes(v->dtype, elements);
    bool typed = t->n_float_data || t->n_int32_data || t->n_int64_data || t->n_double_data || t->n_uint64_data;
    if (t->n_string_data || t->segment) {
        diag_error(r->c, place, "%s are not supported", t->segment ? "segments" : "strings");
        return false;
    }
    v->data = NEW(r->c, Data);
    if (t->data_location == 1) {
        if (typed || t->has_raw_offset) {
            diag_error(r->c, place, "the tensor is external, but holds data too");
            return false;
        }
        ExternalPlace where = {external_text(t, "location"), external_text(t, "offset"), external_text(t, "length")};
        return external_find(r->c, &r->files, place, &where, bytes, v->data);
    }
    if (t->data_location) {
        diag_error(r->c, place, "data location %d is not known; expected 0 or 1", t->data_location);
        return false;
    }
    if (!t->has_raw_offset)
        return read_typed(r, v, t, place, bytes);
    if (typed && t->raw_size) {
        diag_error(r->c, place, "the tensor holds raw_data and typed data");
        return false;
    }
    if (t->raw_size != bytes) {
        if (t->raw_size == 0 && typed)
            return read_typed(r, v, t, place, bytes);
        return fail(r, place, t, arena_text(&r->c->arena, "the size of raw_data does not fit its dtype %s and dims",
                                            dtype_name(v->dtype)), (int64_t)bytes, (int64_t)t->raw_size);
    }
    *v->data = (Data){.bytes = r->bytes + t->raw_offset, .size = bytes, .file_offset = t->raw_offset};
    return true;
}

void constant_contents(Compilation *c, Value *v)
{
    int64_t count = 1, d;
    if ((!dtype_is_integer(v->dtype) && v->dtype != DT_BOOL) || !v->data || !v->data->bytes)
        return;
    for (int i = 0; i < v->rank; i++) {
        if (!dim_is_const(c, v->dims[i], &d))
            return;
        count *= d;
    }
    if (count > MAX_CONTENTS)
        return;
    Dim *contents = NEW_ARRAY(c, Dim, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t x = data_int(v, i);
        if (v->dtype == DT_U64 && x < 0)
            return;
        contents[i] = dim_const(c, x);
    }
    v->contents = contents;
    v->contents_count = (int)count;
}

bool tensor_read(Reader *r, Graph *g, uint32_t value, const TensorProto *t, const char *place)
{
    Value *v = &g->values[value];
    v->is_constant = true;
    if (!read_dtype(r, v, t, place))
        return false;
    int64_t elements = read_dims(r, v, t, place);
    if (elements < 0 || !read_bytes(r, v, t, place, elements))
        return false;
    if (v->data->size == 0 && !v->data->bytes)
        v->data->bytes = ""; /* nothing to read, but present */
    constant_contents(r->c, v);
    return true;
}

void constant_set(Reader *r, Graph *g, uint32_t value, DType type, int rank, int64_t count, const void *bytes)
{
    Value *v = &g->values[value];
    size_t size = (size_t)dtype_bytes(type, count);
    uint8_t *copy = arena_alloc(&r->c->arena, size);
    if (size)
        memcpy(copy, bytes, size);
    v->dtype = type;
    v->rank = rank;
    if (rank)
        v->dims[0] = dim_const(r->c, count);
    v->is_constant = true;
    v->data = NEW(r->c, Data);
    *v->data = (Data){.bytes = copy, .size = size};
    constant_contents(r->c, v);
}
