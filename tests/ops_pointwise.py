"""ops_pointwise.py - cases for compiler/ops/pointwise.c and logic.c."""
import ml_dtypes
import numpy as np

from op_models import BF16, TYPES, Case, Const, random

DTYPES = ("f32", "f16", "bf16")
INTS = (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8)
SHAPES = (((2, 3, 5), (2, 3, 5)), ((2, 3, 5), (5,)), ((2, 1, 5), (3, 1)), ((4,), ()), ((1,), (2, 1, 70)))


def integers(seed, shape, dtype, low=-50, high=50):
    low = max(low, np.iinfo(dtype).min) if np.iinfo(dtype).min < 0 else 0
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def bools(seed, shape):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def binary(dtype):
    for op in ("Add", "Sub", "Mul", "Div"):
        for i, (a, b) in enumerate(SHAPES if op == "Add" or dtype == "f32" else SHAPES[1:3]):
            yield Case("%s_%d_%s" % (op.lower(), i, dtype), op, [("a", random(1, a, dtype)), ("b", random(2, b, dtype))], ["y"], dtype=dtype)
    x = np.abs(random(3, (3, 7), dtype)) + TYPES[dtype].type(0.1)
    for e in (0.5, 1, 2, 3, -1.5):
        exponent = np.array(e, np.float32).astype(TYPES[dtype])
        yield Case("pow_const_%g_%s" % (e, dtype), "Pow", [("x", x), Const(exponent)], ["y"], dtype=dtype)
    yield Case("pow_%s" % dtype, "Pow", [("x", x), ("e", random(4, (7,), dtype))], ["y"], dtype=dtype)


def integer_binary():
    for t in INTS:
        name = np.dtype(t).name
        a, b = integers(5, (4, 6), t), integers(6, (6,), t, 1, 20)
        for op, y in (("Add", a + b), ("Sub", a - b), ("Mul", a * b)):
            yield Case("%s_%s" % (op.lower(), name), op, [("a", a), ("b", b)], ["y"], expected=[y])
        quotient = np.where(a < 0, -(np.abs(a.astype(np.int64)) // b.astype(np.int64)), a.astype(np.int64) // b.astype(np.int64)).astype(t)
        yield Case("div_" + name, "Div", [("a", a), ("b", b)], ["y"], expected=[quotient])
        yield Case("mod_" + name, "Mod", [("a", a), ("b", b)], ["y"], expected=[np.mod(a, b)])
        yield Case("fmod_" + name, "Mod", [("a", a), ("b", b)], ["y"], {"fmod": 1}, expected=[np.fmod(a, b)])
        yield Case("max_" + name, "Max", [("a", a), ("b", b)], ["y"], expected=[np.maximum(a, b)])
        yield Case("min_" + name, "Min", [("a", a), ("b", b), ("c", b)], ["y"], expected=[np.minimum(a, b)])
        yield Case("less_broadcast_" + name, "Less", [("a", a), ("b", b)], ["y"], expected=[a < b])
        yield Case("and_" + name, "BitwiseAnd", [("a", a), ("b", b)], ["y"], expected=[a & b])
        yield Case("or_" + name, "BitwiseOr", [("a", a), ("b", b)], ["y"], expected=[a | b])
        yield Case("xor_" + name, "BitwiseXor", [("a", a), ("b", b)], ["y"], expected=[a ^ b])
        yield Case("not_" + name, "BitwiseNot", [("a", a)], ["y"], expected=[~a])
        if np.iinfo(t).min < 0:
            yield Case("neg_" + name, "Neg", [("a", a)], ["y"], expected=[-a])
            yield Case("abs_" + name, "Abs", [("a", a)], ["y"], expected=[np.abs(a)])
            yield Case("mod_negative_" + name, "Mod", [("a", a), ("b", -b)], ["y"], expected=[np.mod(a, -b)])
    big = np.array([2 ** 63 + 5, 7, 2 ** 64 - 1], np.uint64)
    small = np.array([3, 2 ** 63, 10], np.uint64)
    for op, y in (("Div", big // small), ("Mod", big % small), ("Max", np.maximum(big, small)), ("Greater", big > small)):
        yield Case("u64_above_i64_" + op.lower(), op, [("a", big), ("b", small)], ["y"], expected=[y])
    lowest = np.array([-2 ** 63, -2 ** 63, 5], np.int64)
    yield Case("div_wraps", "Div", [("a", lowest), ("b", np.array([-1, 2, -1], np.int64))], ["y"],
               expected=[np.array([-2 ** 63, -2 ** 62, -5], np.int64)])
    bases, powers = np.array([3, -7, 2147483647, 10, -1, 2], np.int64), np.array([39, 21, 2, 18, 63, 62], np.int64)
    yield Case("pow_exact", "Pow", [("a", bases), ("b", powers)], ["y"], expected=[bases ** powers])
    yield Case("pow_wraps", "Pow", [("a", bases.astype(np.int32)), ("b", np.array(2, np.int32))], ["y"], expected=[bases.astype(np.int32) ** np.int32(2)])
    yield Case("add_wraps", "Add", [("a", np.array([127, -128], np.int8)), ("b", np.array([1, -1], np.int8))], ["y"],
               expected=[np.array([-128, 127], np.int8)])
    for t in INTS[4:]:
        name, bits = np.dtype(t).name, np.dtype(t).itemsize * 8
        a, b = integers(7, (5, 4), t, 0, 250), integers(8, (4,), t, 0, bits)
        yield Case("shift_right_" + name, "BitShift", [("a", a), ("b", b)], ["y"], {"direction": "RIGHT"}, expected=[a >> b])
        yield Case("shift_left_" + name, "BitShift", [("a", a), ("b", b)], ["y"], {"direction": "LEFT"}, expected=[a << b])


UNARY = {"Neg": {}, "Abs": {}, "Sign": {}, "Reciprocal": {}, "Exp": {}, "Erf": {}, "Sin": {}, "Cos": {}, "Tanh": {}, "Atan": {},
         "Sinh": {}, "Cosh": {}, "Floor": {}, "Ceil": {}, "Round": {}, "Sigmoid": {}, "Relu": {}, "LeakyRelu": {"alpha": 0.2},
         "ThresholdedRelu": {"alpha": 0.5}, "Elu": {"alpha": 1.5}, "Celu": {"alpha": 1.5}, "Selu": {}, "HardSigmoid": {"alpha": 0.3},
         "HardSwish": {}, "Softplus": {}, "Softsign": {}, "Mish": {}}


def unary(dtype):
    x = random(10, (3, 41), dtype, 2.0)
    for op, attrs in UNARY.items():
        reference = op in ("Mish",)
        yield Case("%s_%s" % (op.lower(), dtype), op, [("x", x)], ["y"], attrs, dtype=dtype, oracle="reference" if reference else "ort",
                   opset=22 if op == "ThresholdedRelu" else None)
    for op in ("Sqrt", "Log"):
        yield Case("%s_%s" % (op.lower(), dtype), op, [("x", np.abs(x))], ["y"], dtype=dtype)
    small = random(11, (33,), dtype, 0.3).clip(-0.9, 0.9).astype(TYPES[dtype])
    for op in ("Tan", "Asin", "Acos"):
        yield Case("%s_%s" % (op.lower(), dtype), op, [("x", small)], ["y"], dtype=dtype)
    yield Case("swish_" + dtype, "Swish", [("x", x)], ["y"], {"alpha": 1.3}, dtype=dtype, oracle="reference")
    for form in ("none", "tanh"):
        yield Case("gelu_%s_%s" % (form, dtype), "Gelu", [("x", x)], ["y"], {"approximate": form}, dtype=dtype)
    yield Case("ms_gelu_" + dtype, "Gelu", [("x", x)], ["y"], domain="com.microsoft", dtype=dtype)
    yield Case("quick_gelu_" + dtype, "QuickGelu", [("x", x)], ["y"], {"alpha": 1.5}, "com.microsoft", dtype=dtype)
    bias = Const(random(12, (41,), dtype))
    yield Case("bias_gelu_" + dtype, "BiasGelu", [("x", x), bias], ["y"], domain="com.microsoft", dtype=dtype)
    yield Case("fast_gelu_" + dtype, "FastGelu", [("x", x)], ["y"], domain="com.microsoft", dtype=dtype)
    yield Case("fast_gelu_bias_" + dtype, "FastGelu", [("x", x), bias], ["y"], domain="com.microsoft", dtype=dtype)
    yield Case("prelu_" + dtype, "PRelu", [("x", x), bias], ["y"], dtype=dtype)
    for op in ("Max", "Min", "Sum", "Mean"):
        parts = [(n, random(13 + i, s, dtype)) for i, (n, s) in enumerate((("a", (2, 6)), ("b", (6,)), ("c", (2, 1))))]
        yield Case("%s_three_%s" % (op.lower(), dtype), op, parts, ["y"], dtype=dtype)
        yield Case("%s_one_%s" % (op.lower(), dtype), op, parts[:1], ["y"], dtype=dtype)


def clips():
    x = random(20, (5, 9), "f32", 3.0)
    low, high = Const(np.float32(-1)), Const(np.float32(0.5))
    yield Case("clip_both", "Clip", [("x", x), low, high], ["y"])
    yield Case("clip_low", "Clip", [("x", x), low], ["y"])
    yield Case("clip_high", "Clip", [("x", x), None, high], ["y"])
    yield Case("clip_none", "Clip", [("x", x)], ["y"])
    yield Case("clip_crossed", "Clip", [("x", x), high, low], ["y"])
    yield Case("clip_6", "Clip", [("x", x)], ["y"], {"min": -0.5, "max": 1.25}, opset=10)
    yield Case("clip_6_default", "Clip", [("x", x)], ["y"], opset=10)
    for t in (np.int64, np.int8, np.uint8):
        yield Case("clip_" + np.dtype(t).name, "Clip", [("x", integers(21, (30,), t)), Const(t(3)), Const(t(20))], ["y"])


def special():
    x = np.array([1, np.nan, -np.inf, np.inf, -0.0, -3], np.float32)
    other = np.array([np.nan, 1, 2, np.nan, 0, np.nan], np.float32)
    yield Case("isnan", "IsNaN", [("x", x)], ["y"])
    yield Case("isnan_f16", "IsNaN", [("x", x.astype(np.float16))], ["y"], dtype="f16")
    for down in (0, 1):
        for up in (0, 1):
            yield Case("isinf_%d%d" % (down, up), "IsInf", [("x", x)], ["y"], {"detect_negative": down, "detect_positive": up})
    yield Case("max_nan", "Max", [("a", x), ("b", other)], ["y"], expected=[np.maximum(x, other)])
    yield Case("min_nan", "Min", [("a", x), ("b", other)], ["y"], expected=[np.minimum(x, other)])
    for op, opset in (("HardSigmoid", 22), ("HardSwish", 22), ("Softplus", 22), ("Relu", 14), ("LeakyRelu", 16), ("Elu", 22), ("Selu", 22), ("Celu", 12),
                      ("Sigmoid", 13), ("Tanh", 13), ("Softsign", 22), ("Exp", 13), ("Mish", 22)):
        yield Case("special_" + op.lower(), op, [("x", x)], ["y"], opset=opset)
    yield Case("equal_nan", "Equal", [("a", x), ("b", x)], ["y"])
    yield Case("where_nan", "Where", [("c", ~np.isnan(x)), ("a", x), ("b", np.zeros(6, np.float32))], ["y"])


def logic():
    a, b = bools(30, (3, 5)), bools(31, (5,))
    for op in ("And", "Or", "Xor", "Equal"):
        yield Case("%s_bool" % op.lower(), op, [("a", a), ("b", b)], ["y"])
    yield Case("not_bool", "Not", [("a", a)], ["y"])
    for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        for t in (np.int64, np.int32):
            yield Case("%s_%s" % (op.lower(), np.dtype(t).name), op, [("a", integers(32, (4, 5), t, -3, 3)), ("b", integers(33, (5,), t, -3, 3))], ["y"])
        for dtype in DTYPES:
            yield Case("%s_%s" % (op.lower(), dtype), op, [("a", random(34, (4, 5), dtype).round(0)), ("b", random(35, (5,), dtype).round(0))],
                       ["y"], dtype=dtype)
    for dtype in DTYPES:
        yield Case("where_" + dtype, "Where", [("c", bools(36, (2, 1, 4))), ("a", random(37, (3, 1), dtype)), ("b", random(38, (4,), dtype))],
                   ["y"], dtype=dtype)
    for t in (np.int64, np.int32, np.uint8, bool):
        x, y = (integers(39, (6,), t), integers(40, (6,), t)) if t is not bool else (bools(39, 6), bools(40, 6))
        yield Case("where_" + np.dtype(t).name, "Where", [("c", bools(41, (2, 6))), ("a", x), ("b", y)], ["y"], oracle="reference")


CASTS = {1: np.float32, 10: np.float16, 16: BF16, 11: np.float64, 6: np.int32, 7: np.int64, 5: np.int16, 3: np.int8, 2: np.uint8,
         4: np.uint16, 12: np.uint32, 13: np.uint64, 9: bool}


def casts():
    """Values that every type can hold, so that the expectation is beyond dispute; fractions are cut toward zero."""
    for source in CASTS.values():
        for number, target in CASTS.items():
            x = np.array([0, 1, 2, 7, 100, 120.75, 3.5, 0.25], np.float32).astype(source)
            if np.dtype(target).kind in "iu" and np.dtype(source).kind not in "iub":
                y = np.trunc(x.astype(np.float64)).astype(target)
            else:
                y = (x != 0) if target is bool else x.astype(np.float32).astype(target)
            yield Case("cast_%s_%s" % (np.dtype(source).name, np.dtype(target).name), "Cast", [("x", x)], ["y"], {"to": number}, expected=[y])
    negative = np.array([-1.5, -100, 0.5, -0.5], np.float32)
    yield Case("cast_negative", "Cast", [("x", negative)], ["y"], {"to": 6})
    yield Case("cast_narrows", "Cast", [("x", np.array([300, -200, 65537, 255], np.int64))], ["y"], {"to": 2})
    yield Case("cast_like", "CastLike", [("x", negative), ("t", integers(50, (2, 3, 2, 2), np.int32))], ["y"], expected=[np.trunc(negative).astype(np.int32)])
    for number, t in ((21, ml_dtypes.uint4), (22, ml_dtypes.int4)):
        x = np.array([0, 1, 7, 5, 3], np.uint8)
        yield Case("cast_from_" + np.dtype(t).name, "Cast", [Const(x.astype(t))], ["y"], {"to": 1}, expected=[x.astype(np.float32)])


def contents():
    """Constants alone: the values are computed when compiling."""
    a, b = np.array([[7, -3, 12]], np.int64), np.array([[2], [5]], np.int64)
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        yield Case("contents_" + op.lower(), op, [Const(a), Const(b)], ["y"])
    for fmod in (0, 1):
        yield Case("contents_mod_%d" % fmod, "Mod", [Const(a), Const(b)], ["y"], {"fmod": fmod})
    for op in ("Neg", "Abs"):
        yield Case("contents_" + op.lower(), op, [Const(a)], ["y"])
    t, f = np.array([True, False, True]), np.array([True])
    for op in ("And", "Or"):
        yield Case("contents_" + op.lower(), op, [Const(t), Const(f)], ["y"])
    yield Case("contents_not", "Not", [Const(t)], ["y"])
    yield Case("contents_where", "Where", [Const(t), Const(a), Const(b)], ["y"])
    yield Case("contents_cast_bool", "Cast", [Const(np.array([0, 5, -1], np.int64))], ["y"], {"to": 9})
    yield Case("contents_cast_int", "Cast", [Const(np.array([0, 5, -1], np.int64))], ["y"], {"to": 6})
    u = np.array([200, 3], np.uint8)
    for way in ("LEFT", "RIGHT"):
        yield Case("contents_shift_" + way.lower(), "BitShift", [Const(u), Const(np.array([2], np.uint8))], ["y"], {"direction": way})
    yield Case("contents_bitwise_and", "BitwiseAnd", [Const(u), Const(np.array([11], np.uint8))], ["y"], expected=[u & np.uint8(11)])


def cases():
    for dtype in DTYPES:
        yield from binary(dtype)
        yield from unary(dtype)
    yield from integer_binary()
    yield from clips()
    yield from special()
    yield from logic()
    yield from casts()
    yield from contents()
