/* dtypes.c - element types: names, widths, classes. */
#include "compiler.h"

#include <string.h>

static const struct { const char *name; int bits; } dtypes[] = {
    [DT_NONE] = {"?", 0},         [DT_F32] = {"f32", 32},       [DT_U8] = {"u8", 8},
    [DT_I8] = {"i8", 8},          [DT_U16] = {"u16", 16},       [DT_I16] = {"i16", 16},
    [DT_I32] = {"i32", 32},       [DT_I64] = {"i64", 64},       [DT_STRING] = {"string", 0},
    [DT_BOOL] = {"bool", 8},      [DT_F16] = {"f16", 16},       [DT_F64] = {"f64", 64},
    [DT_U32] = {"u32", 32},       [DT_U64] = {"u64", 64},       [DT_C64] = {"c64", 64},
    [DT_C128] = {"c128", 128},    [DT_BF16] = {"bf16", 16},     [DT_F8E4M3FN] = {"f8e4m3fn", 8},
    [DT_F8E4M3FNUZ] = {"f8e4m3fnuz", 8}, [DT_F8E5M2] = {"f8e5m2", 8}, [DT_F8E5M2FNUZ] = {"f8e5m2fnuz", 8},
    [DT_U4] = {"u4", 4},          [DT_I4] = {"i4", 4},          [DT_F4E2M1] = {"f4e2m1", 4},
    [DT_F8E8M0] = {"f8e8m0", 8},  [DT_U2] = {"u2", 2},          [DT_I2] = {"i2", 2},
    [DT_I2_BYTE] = {"i2 byte", 8}, [DT_I4_BYTE] = {"i4 byte", 8}, [DT_F4_BYTE] = {"f4e2m1 byte", 8},
};

static bool known(DType t)
{
    return (size_t)t < COUNT_OF(dtypes) && dtypes[t].name;
}

const char *dtype_name(DType t)
{
    return known(t) ? dtypes[t].name : "?";
}

DType dtype_from_name(const char *s)
{
    for (size_t i = 1; i < COUNT_OF(dtypes); i++)
        if (dtypes[i].name && !strcmp(dtypes[i].name, s))
            return (DType)i;
    return DT_NONE;
}

int dtype_bits(DType t)
{
    return known(t) ? dtypes[t].bits : 0;
}

bool dtype_is_computed(DType t) { return dtype_bits(t) > 0 && t != DT_C64 && t != DT_C128; }

bool dtype_is_float(DType t)
{
    switch (t) {
    case DT_F32: case DT_F16: case DT_F64: case DT_BF16: case DT_F8E4M3FN: case DT_F8E4M3FNUZ: case DT_F8E5M2:
    case DT_F8E5M2FNUZ: case DT_F4E2M1: case DT_F8E8M0: case DT_F4_BYTE:
        return true;
    default:
        return false;
    }
}

bool dtype_is_integer(DType t)
{
    switch (t) {
    case DT_U8: case DT_I8: case DT_U16: case DT_I16: case DT_I32: case DT_I64: case DT_U32: case DT_U64: case DT_U4:
    case DT_I4: case DT_U2: case DT_I2:
    case DT_I2_BYTE: case DT_I4_BYTE:
        return true;
    default:
        return false;
    }
}

/* Saturates, so that a size that does not fit is larger than any file. */
int64_t dtype_bytes(DType t, int64_t elements)
{
    int bits = dtype_bits(t);
    if (bits < 8)
        return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
    return elements > INT64_MAX / (bits / 8) ? INT64_MAX : elements * (bits / 8);
}
