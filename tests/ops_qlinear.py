"""ops_qlinear.py - cases for compiler/ops/{requantize,qmatmul,qlinear,qconv,inverse}.c: onnxruntime's quantised operators, by
its own CPU provider; ONNX's, over shapes that ONNX's node tests lack; and what the CPU provider lacks, in float64."""
import numpy as np

from op_models import TYPES, Case, Const, random

MS = "com.microsoft"
U8, I8, F32 = np.uint8, np.int8, np.float32


def byte(seed, shape, dtype=U8, low=None, high=None):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min if low is None else low, (info.max if high is None else high) + 1, shape).astype(dtype)


def f(value):
    return Const(np.asarray(value, F32))


def z(value, dtype=U8):
    return Const(np.asarray(value, dtype))


ZERO = {U8: 131, I8: -7}
NAMES = ((U8, "u8"), (I8, "i8"))


def elementwise():
    shapes = (((3, 5), (3, 5)), ((2, 3, 4), (4,)), ((1, 7), (5, 1)), ((6,), ()), ((1, 1, 33), (1, 1, 33)))
    for dtype, t in NAMES:
        for op in ("QLinearAdd", "QLinearMul"):
            scale = 0.093 if op == "QLinearAdd" else 0.1137
            for i, (a, b) in enumerate(shapes):
                yield Case("%s_%s_%d" % (op[7:].lower(), t, i), op,
                           [("a", byte(1, a, dtype)), f(0.03), z(ZERO[dtype], dtype), ("b", byte(2, b, dtype)), f(0.05), z(5, dtype), f(scale),
                            z(ZERO[dtype] + 3, dtype)], ["y"], domain=MS)
            a, b = byte(3, (4, 6), dtype), byte(4, (4, 6), dtype)
            real = [a * np.float64(F32(0.03)), b * np.float64(F32(0.05))]
            y = (real[0] + real[1] if op == "QLinearAdd" else real[0] * real[1]) / np.float64(F32(scale))
            info = np.iinfo(dtype)
            yield Case("%s_%s_plain" % (op[7:].lower(), t), op, [("a", a), f(0.03), None, ("b", b), f(0.05), None, f(scale)], ["y"], domain=MS,
                       expected=[np.clip(np.rint(y), info.min, info.max).astype(dtype)])
        x = np.arange(256).astype(U8).view(dtype).reshape(8, 32)
        for op in ("QLinearSigmoid", "QLinearLeakyRelu"):
            for i, (scale, out) in enumerate(((0.05, 1 / 256), (0.013, 0.011), (0.4, 0.004))):
                attrs = {"alpha": 0.2} if op.endswith("Relu") and i else {}
                yield Case("%s_%s_%d" % (op[7:].lower(), t, i), op,
                           [("x", x), f(scale), z(ZERO[dtype], dtype), f(out), z(0 if i else ZERO[dtype], dtype)], ["y"], attrs, MS)
            yield Case("%s_%s_plain" % (op[7:].lower(), t), op, [("x", x), f(0.03), None, f(0.02), z(0, dtype)], ["y"], domain=MS)


def concats():
    for dtype, t in NAMES:
        for axis in (0, 1, -1):
            shapes = [(2, 3, 4)] * 3
            shapes[1] = tuple(5 if i == axis % 3 else d for i, d in enumerate(shapes[1]))
            inputs = [f(0.07), z(ZERO[dtype], dtype)]
            for i, shape in enumerate(shapes):
                inputs += [("x%d" % i, byte(10 + i, shape, dtype)), f(0.02 + 0.03 * i), z(3 * i, dtype)]
            yield Case("concat_%s_%d" % (t, axis), "QLinearConcat", inputs, ["y"], {"axis": axis}, MS)
    yield Case("concat_one", "QLinearConcat", [f(0.07), z(3), ("x", byte(1, (7,))), f(0.07), z(3)], ["y"], {"axis": 0}, MS)


def softmaxes():
    for dtype, t in NAMES:
        for opset, axis in ((13, -1), (13, 1), (13, 0), (12, 1), (12, 2)):
            yield Case("softmax_%s_%d_%d" % (t, opset, axis), "QLinearSoftmax",
                       [("x", byte(20, (3, 4, 9), dtype)), f(0.021), z(ZERO[dtype], dtype), f(1 / 256), z(0 if dtype == U8 else -128, dtype)], ["y"],
                       {"axis": axis, "opset": opset}, MS)


def pools():
    for dtype, t in NAMES:
        for i, attrs in enumerate((dict(kernel_shape=[2, 2]), dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
                                   dict(kernel_shape=[3, 2], strides=[2, 1], pads=[0, 1, 1, 0], count_include_pad=1),
                                   dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), dict(kernel_shape=[3, 3], auto_pad="SAME_UPPER"))):
            yield Case("averagepool_%s_%d" % (t, i), "QLinearAveragePool",
                       [("x", byte(30, (2, 3, 8, 7), dtype)), f(0.05), z(ZERO[dtype], dtype), f(0.03717), z(9, dtype)], ["y"], attrs, MS)
        yield Case("averagepool_%s_line" % t, "QLinearAveragePool",
                   [("x", byte(31, (1, 2, 17), dtype)), f(0.05), z(ZERO[dtype], dtype), f(0.03717), z(9, dtype)], ["y"], {"kernel_shape": [3]}, MS)
        for last in (0, 1):
            yield Case("globalaveragepool_%s_%d" % (t, last), "QLinearGlobalAveragePool",
                       [("x", byte(32, (2, 5, 6, 7), dtype)), f(0.05), z(ZERO[dtype], dtype), f(0.00613), z(9, dtype)], ["y"],
                       {"channels_last": last}, MS)
        x = byte(33, (2, 8, 7, 3), dtype)
        yield Case("averagepool_%s_last" % t, "QLinearAveragePool", [("x", x), f(0.05), z(ZERO[dtype], dtype), f(0.03717), z(9, dtype)], ["y"],
                   {"kernel_shape": [2, 2], "channels_last": 1}, MS)


MATRICES = (((1, 64), (64, 33)), ((7, 48), (48, 5)), ((2, 3, 16), (16, 8)), ((2, 2, 3, 16), (2, 2, 16, 4)), ((5, 1), (1, 9)), ((3, 300), (300, 70)))


def integer_products():
    for i, (a_shape, b_shape) in enumerate(MATRICES):
        for a_type, b_type in ((U8, I8), (U8, U8), (I8, I8)):
            a, b = byte(40 + i, a_shape, a_type), byte(50 + i, b_shape, b_type)
            name = "%d_%s_%s" % (i, dict(NAMES)[a_type], dict(NAMES)[b_type])
            n = b_shape[-1]
            yield Case("matmulinteger_" + name, "MatMulInteger", [("a", a), Const(b), z(ZERO[a_type], a_type), z(ZERO[b_type], b_type)], ["y"], opset=10)
            yield Case("qlinearmatmul_" + name, "QLinearMatMul", [("a", a), f(0.01), z(ZERO[a_type], a_type), Const(b), f(0.02), z(3, b_type), f(0.7),
                                                                 z(11, a_type)], ["y"], opset=21)
            if len(b_shape) > 2:
                continue
            yield Case("matmulinteger_columns_" + name, "MatMulInteger",
                       [("a", a), Const(b), z(ZERO[a_type], a_type), Const(byte(60, (n,), b_type))], ["y"], opset=10)
            yield Case("tofloat_" + name, "MatMulIntegerToFloat",
                       [("a", a), ("b", b), f(0.013), f(0.02), z(ZERO[a_type], a_type), z(ZERO[b_type], b_type), Const(random(61, (n,)))], ["y"], domain=MS)
            scales = np.abs(random(62, (n,))) * 0.02 + 0.001
            yield Case("tofloat_columns_" + name, "MatMulIntegerToFloat",
                       [("a", a), ("b", b), f(0.013), f(scales), z(ZERO[a_type], a_type), Const(byte(63, (n,), b_type))], ["y"], domain=MS)
    a, b = byte(70, (2, 4, 8)), byte(71, (2, 8, 3))
    rows, columns = byte(72, (2, 4, 1)), byte(73, (2, 1, 3))
    yield Case("matmulinteger_batch_zeros", "MatMulInteger", [("a", a), ("b", b), Const(rows), Const(columns)], ["y"], opset=10,
               expected=[np.matmul(a.astype(np.int32) - rows, b.astype(np.int32) - columns)])
    a, rows = byte(74, (5, 8)), byte(75, (5,))
    yield Case("matmulinteger_rows", "MatMulInteger", [("a", a), Const(b[0]), Const(rows), None], ["y"], opset=10,
               expected=[np.matmul(a.astype(np.int32) - rows[:, None], b[0].astype(np.int32))])


def gemms():
    for i, (trans_a, trans_b) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        a, b = byte(80, (32, 6) if trans_a else (6, 32)), byte(81, (10, 32) if trans_b else (32, 10), I8)
        attrs = {"transA": trans_a, "transB": trans_b, "alpha": 1.0 if i else 0.5}
        c = np.random.default_rng(82).integers(-9000, 9000, (10,)).astype(np.int32)
        head = [("a", a), f(0.02), z(120), Const(b), f(0.01), z(4, I8)]
        yield Case("qgemm_float_%d" % i, "QGemm", head + [Const(c)], ["y"], attrs, MS)
        yield Case("qgemm_byte_%d" % i, "QGemm", head + [Const(c), f(0.9), z(100)], ["y"], attrs, MS)
        yield Case("qgemm_plain_%d" % i, "QGemm", head + [None, f(0.9), z(100)], ["y"], attrs, MS)
        scales = np.abs(random(83, (10,))) * 0.02 + 0.001
        yield Case("qgemm_columns_%d" % i, "QGemm", [("a", a), f(0.02), z(120), Const(b), f(scales), Const(byte(84, (10,), I8))], ["y"], attrs, MS)
    a, b = random(85, (6, 40)), random(86, (40, 9))
    for name, attrs in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
                        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})):
        for bias in (None, Const(random(87, (9,)))):
            yield Case("fusedgemm_%s_%d" % (name.lower(), bias is not None), "FusedGemm", [("a", a), Const(b), bias], ["y"],
                       dict(attrs, activation=name, alpha=0.25), MS)


def dynamic():
    for name, x in (("plain", random(90, (3, 7))), ("positive", np.abs(random(91, (4, 5, 6))) + 1), ("negative", -np.abs(random(92, (33,)))),
                    ("large", random(93, (70, 1000), scale=30)), ("one", np.array([[2.5]], F32)), ("zeros", np.zeros((2, 3), F32))):
        yield Case("dynamic_" + name, "DynamicQuantizeLinear", [("x", x)], ["y", "s", "z"], opset=11)
    for i, (a_shape, b_shape) in enumerate(MATRICES[:3] + MATRICES[5:]):
        for b_type, t in NAMES:
            a, b, n = random(94, a_shape), byte(95, b_shape, b_type), b_shape[-1]
            scales = np.abs(random(96, (n,))) * 0.02 + 0.001
            yield Case("dynamicmatmul_%d_%s" % (i, t), "DynamicQuantizeMatMul", [("a", a), Const(b), f(0.02), z(ZERO[b_type], b_type)], ["y"], domain=MS)
            yield Case("dynamicmatmul_columns_%d_%s" % (i, t), "DynamicQuantizeMatMul",
                       [("a", a), Const(b), f(scales), Const(byte(97, (n,), b_type)), Const(random(98, (n,)))], ["y"], domain=MS)


def convs():
    for x_type, w_type in ((U8, U8), (U8, I8), (I8, I8)):
        for i, (x_shape, w_shape, attrs) in enumerate((
                ((1, 2, 9), (4, 2, 3), {}), ((2, 4, 7, 6), (6, 4, 3, 3), dict(pads=[1, 1, 1, 1], strides=[2, 2])),
                ((1, 4, 8, 8), (8, 1, 3, 3), dict(group=4, pads=[1, 0, 1, 2])), ((1, 3, 9, 9), (2, 3, 3, 3), dict(strides=[2, 1], auto_pad="SAME_UPPER")))):
            x, w = byte(100 + i, x_shape, x_type), byte(110 + i, w_shape, w_type)
            channels = w_shape[0]
            bias = np.random.default_rng(120).integers(-5000, 5000, (channels,)).astype(np.int32)
            scales = np.abs(random(121, (channels,))) * 0.02 + 0.004
            name = "%s_%s_%d" % (dict(NAMES)[x_type], dict(NAMES)[w_type], i)
            yield Case("qlinearconv_" + name, "QLinearConv",
                       [("x", x), f(0.02), z(ZERO[x_type], x_type), Const(w), f(scales), z(np.full(channels, 0 if w_type == I8 else 127), w_type), f(0.6),
                        z(20, x_type), Const(bias)], ["y"], attrs, opset=10)
            if x_type == U8:
                yield Case("convinteger_" + name, "ConvInteger", [("x", x), Const(w), z(ZERO[x_type], x_type), z(ZERO[w_type], w_type)], ["y"], attrs, opset=10)


def inverses():
    for dtype in ("f32", "f16"):
        for shape in ((1, 1), (3, 3), (2, 5, 5), (2, 3, 4, 4), (40, 40)):
            x = random(130, shape, dtype) + (np.eye(shape[-1]) * max(3, shape[-1])).astype(TYPES[dtype])
            y = np.linalg.inv(x.astype(np.float64))
            yield Case("inverse_%s_%s" % ("x".join(map(str, shape)), dtype), "Inverse", [("x", x)], ["y"], domain=MS, dtype=dtype,
                       expected=[y.astype(TYPES[dtype])])
    x = np.array([[0, 2, 1], [1, 0, 0], [3, 0, 1]], F32)
    yield Case("inverse_pivots", "Inverse", [("x", x)], ["y"], domain=MS, expected=[np.linalg.inv(x)])


def bias_softmaxes():
    for dtype in ("f32", "f16"):
        for i, (shape, bias, axis, inner) in enumerate((((2, 3, 4, 5), (2, 1, 1, 5), 3, 1), ((2, 3, 4, 5), (1, 1, 4, 5), 2, 0), ((6, 9), (9,), 1, 0),
                                                        ((2, 3, 300), (1, 3, 300), -1, 0))):
            x, b = random(140, shape, dtype), random(141, bias, dtype)
            v = x.astype(np.float64) + b.astype(np.float64)
            v = v.reshape(int(np.prod(shape[:axis % len(shape)])), -1)
            v = np.exp(v - v.max(1, keepdims=True))
            y = (v / v.sum(1, keepdims=True)).reshape(shape).astype(TYPES[dtype])
            yield Case("biassoftmax_%d_%s" % (i, dtype), "BiasSoftmax", [("x", x), ("b", b)], ["y"], {"axis": axis, "is_inner_broadcast": inner}, MS,
                       dtype=dtype, expected=[y])


def cases():
    for family in (elementwise, concats, softmaxes, pools, integer_products, gemms, dynamic, convs, inverses, bias_softmaxes):
        yield from family()
