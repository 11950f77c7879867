"""ops_cast.py - cases for compiler/ops/cast.c and bitcast.c: casts between all element types over the codes and the ties of the narrow
ones, BitCast, and linear quantisation to and from them. Expected values come from ml_dtypes, or the reference's float8e8m0."""
import ml_dtypes
import numpy as np
import onnx

from op_models import Case, Const, random

F8 = {"f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2": ml_dtypes.float8_e5m2,
      "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz}
PACKED = {"u4": ml_dtypes.uint4, "i4": ml_dtypes.int4, "u2": ml_dtypes.uint2, "i2": ml_dtypes.int2}
F4, E8M0 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
DTYPE = onnx.helper.np_dtype_to_tensor_dtype


def number(dtype):
    return int(DTYPE(np.dtype(dtype)))


def codes(dtype):
    """Every element of a type of up to 8 bits."""
    bits = {F4: 4, ml_dtypes.uint4: 4, ml_dtypes.int4: 4, ml_dtypes.uint2: 2, ml_dtypes.int2: 2}.get(dtype, 8)
    return np.arange(1 << bits).astype(np.uint8).view(dtype)


def ties(dtype):
    """All finite numbers of DTYPE, what lies halfway between neighbours and just beside that, and beyond the range."""
    x = np.unique(codes(dtype).astype(np.float64))
    x = x[np.isfinite(x)]
    half = (x[1:] + x[:-1]) / 2
    top = float(x[-1])
    x = np.concatenate([x, half, half * (1 + 2.0 ** -20), half * (1 - 2.0 ** -20), [-0.0, top * 1.03, top * 1.07, -top * 1.1, top * 9, np.inf, -np.inf, np.nan]])
    return x.astype(np.float32)


def cast(name, x, to, expected, opset=25, **attrs):
    return Case("cast_" + name, "Cast", [("x", x)], ["y"], dict(attrs, to=number(to)), opset=opset, expected=[expected])


def narrow_floats():
    for name, dtype in F8.items():
        x = ties(dtype)
        limit = float(ml_dtypes.finfo(dtype).max)
        clipped = np.clip(x, -limit, limit)
        yield cast(name, x, dtype, clipped.astype(dtype))
        yield cast(name + "_free", x, dtype, x.astype(dtype), saturate=0)
        yield cast(name + "_old", x, dtype, clipped.astype(dtype), opset=19)
        yield cast("from_" + name, codes(dtype), np.float32, codes(dtype).astype(np.float32))
        yield cast("from_%s_half" % name, codes(dtype), np.float16, codes(dtype).astype(np.float32).astype(np.float16))
        yield cast("from_%s_same" % name, codes(dtype), dtype, np.clip(codes(dtype).astype(np.float32), -limit, limit).astype(dtype))
        yield Case("castlike_" + name, "CastLike", [("x", x), ("t", np.zeros(1, dtype))], ["y"], {"saturate": 0}, expected=[x.astype(dtype)])
        tie = np.array([1.0625, 1.125, 1.1875], np.float64) * (1 + np.array([2.0 ** -40, -(2.0 ** -40), 2.0 ** -45]))
        once = np.where(np.array([1, 0, 1]) > 0, np.nextafter(tie.astype(np.float32), np.float32(9)), np.nextafter(tie.astype(np.float32), np.float32(0)))
        yield cast(name + "_double", tie, dtype, once.astype(dtype))
    x = ties(F4)[:-1]  # what a NaN becomes is not defined
    yield cast("f4", x, F4, x.astype(F4))
    yield cast("from_f4", codes(F4), np.float32, codes(F4).astype(np.float32))
    tie = np.array([1 + 2.0 ** -11 + 2.0 ** -40, 1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11 - 2.0 ** -40, 65519.999999, 2.0 ** -25 * (1 + 2.0 ** -40), 1e300, np.nan])
    yield cast("double_half", tie, np.float16, tie.astype(np.float16))
    large = np.array([(1 << 24) + (1 << 16) + 1, (1 << 24) + (1 << 16), -(1 << 24) - (1 << 16) - 1, 7], np.int32)
    exact = np.array([(1 << 24) + (1 << 17), 1 << 24, -(1 << 24) - (1 << 17), 7], np.float32)
    yield cast("integer_bfloat16", large, ml_dtypes.bfloat16, exact.astype(ml_dtypes.bfloat16))


def exponents():
    x = np.array([1, 1.5, 1.75, 3, 0.3, 2.0 ** 127, 1.75 * 2.0 ** 127, 2.0 ** -126, 1.5 * 2.0 ** -126, 3e-39, 1.0000001, 1e-20], np.float32)
    for mode in ("up", "down", "nearest"):
        for saturate in (0, 1):
            y = onnx.numpy_helper.to_float8e8m0(x, bool(saturate), mode)
            yield cast("e8m0_%s_%d" % (mode, saturate), x, E8M0, y, saturate=saturate, round_mode=mode)
    yield cast("from_e8m0", codes(E8M0), np.float32, codes(E8M0).astype(np.float32))


def packed():
    for name, dtype in PACKED.items():
        x = codes(dtype)
        low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
        yield cast("from_" + name, x, np.int32, x.astype(np.int32))
        inside = np.arange(low, high + 1).astype(np.float32)
        yield cast(name, inside, dtype, inside.astype(dtype))
        wide = np.arange(-20, 30).astype(np.int16)
        yield cast(name + "_wraps", wide, dtype, wide.astype(dtype))
        odd = np.resize(x, (3, 5))  # fifteen elements do not fill their bytes
        yield Case("constant_" + name, "Cast", [Const(odd)], ["y"], {"to": 1}, opset=25, expected=[odd.astype(np.float32)])
        scale = np.array([0.5, 0.25, 2], np.float32)
        yield Case("dequantize_" + name, "DequantizeLinear", [Const(odd), Const(scale), Const(odd[:, 0].copy())], ["y"], {"axis": 0}, opset=25,
                   expected=[(odd.astype(np.float32) - odd[:, :1].astype(np.float32)) * scale[:, None]])
        f = random(1, (3, 7), scale=4)
        scale = (np.abs(random(2, (3, 3))) + 0.3).astype(np.float32)
        zero = np.resize(x, (3, 3))
        wide = np.repeat(scale, 3, 1)[:, :7]
        y = np.clip(np.rint(f / wide) + np.repeat(zero, 3, 1)[:, :7].astype(np.float32), low, high)
        yield Case("quantize_" + name, "QuantizeLinear", [("x", f), Const(scale), Const(zero)], ["y"], {"axis": 1, "block_size": 3}, opset=25,
                   expected=[y.astype(np.int8).astype(dtype)])
        yield Case("transpose_" + name, "Transpose", [("x", odd)], ["y"], opset=25, expected=[odd.T.copy()])
    f = np.resize(codes(F4), (3, 5))
    yield Case("dequantize_f4", "DequantizeLinear", [Const(f), Const(np.float32(0.75))], ["y"], opset=25, expected=[f.astype(np.float32) * np.float32(0.75)])
    yield Case("transpose_f4", "Transpose", [("x", f)], ["y"], opset=25, expected=[f.T.copy()])
    scale = np.array([2, 0.5, 8], np.float32).astype(E8M0)
    yield Case("dequantize_f4_e8m0", "DequantizeLinear", [("x", f), ("s", scale)], ["y"], {"axis": 0, "output_dtype": 1}, opset=25,
               expected=[f.astype(np.float32) * scale.astype(np.float32)[:, None]])


def quantised_floats():
    for name, dtype in F8.items():
        x = random(3, (4, 9), scale=300)
        scale = np.array([0.5, 1.5, 3, 0.01], np.float32)
        limit = float(ml_dtypes.finfo(dtype).max)
        y = x / scale[:, None]
        for saturate in (0, 1):
            yield Case("quantize_%s_%d" % (name, saturate), "QuantizeLinear", [("x", x), ("s", scale), ("z", np.zeros(4, dtype))], ["y"],
                       {"axis": 0, "saturate": saturate}, opset=25, expected=[(np.clip(y, -limit, limit) if saturate else y).astype(dtype)])
        yield Case("dequantize_" + name, "DequantizeLinear", [("x", codes(dtype)), Const(np.float32(0.3))], ["y"], opset=25,
                   expected=[codes(dtype).astype(np.float32) * np.float32(0.3)])
    x = np.array([0.3333, 1.2346, 7.77, 2.4996], np.float32)
    for precision, p in ((0, np.float32), (10, np.float16), (16, ml_dtypes.bfloat16)):
        y = (x / np.float32(0.01)).astype(p).astype(np.float32)
        yield Case("quantize_precision_%d" % precision, "QuantizeLinear", [("x", x), Const(np.float32(0.01))], ["y"],
                   {"precision": precision, "output_dtype": 4}, opset=25, expected=[np.rint(y).astype(np.uint16)])


def bitcasts():
    x = codes(ml_dtypes.int4)
    pairs = ((x, ml_dtypes.uint4), (codes(ml_dtypes.uint4), ml_dtypes.int4), (codes(ml_dtypes.int2), ml_dtypes.uint2), (x, F4), (codes(F4), ml_dtypes.int4),
             (codes(ml_dtypes.float8_e5m2), np.uint8), (np.arange(256).astype(np.uint8), ml_dtypes.float8_e4m3fn), (random(4, (5,), "f16"), np.int16))
    for i, (x, to) in enumerate(pairs):
        for constant in (0, 1):
            y = (x.view(np.uint8) & (15 if x.size == 16 else 3)).view(to) if x.size in (4, 16) and x.dtype.itemsize == 1 else x.view(to)
            yield Case("bitcast_%d_%d" % (i, constant), "BitCast", [Const(x) if constant else ("x", x)], ["y"], {"to": number(to)}, opset=26, expected=[y])


def cases():
    for family in (narrow_floats, exponents, packed, quantised_floats, bitcasts):
        yield from family()
