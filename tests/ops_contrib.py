"""ops_contrib.py - more cases of the com.microsoft operators: every one of them has ten or more with those of the other files. Expected
values are onnxruntime's; where its CPU provider has no kernel, or takes less than the schema, they are computed here in float64."""
import math

import numpy as np

from op_models import TYPES, Case, Const, random
from ops_quant import nbits, pack

MS = "com.microsoft"
SHAPES = ((1,), (3, 1, 33), (1, 1, 5), (3, 0, 7), (2, 1, 130))  # one row, batch 3, nothing, an odd width


def wide(x):
    return np.asarray(x).astype(np.float64)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def activations():
    for dtype in TYPES:
        for i, shape in enumerate(SHAPES):
            x, bias = random(1 + i, shape, dtype, 3.0), random(20 + i, shape[-1:], dtype)
            label = "%d_%s" % (i, dtype)
            yield Case("gelu_" + label, "Gelu", [("x", x)], ["y"], domain=MS, dtype=dtype)
            yield Case("quick_gelu_" + label, "QuickGelu", [("x", x)], ["y"], {"alpha": (1.702, 1.0, 0.3, 1.0, -2.0)[i]}, MS, dtype=dtype)
            yield Case("bias_gelu_" + label, "BiasGelu", [("x", x), ("b", bias)], ["y"], domain=MS, dtype=dtype)
            yield Case("fast_gelu_" + label, "FastGelu", [("x", x), ("b", bias) if i % 2 else None], ["y"], domain=MS, dtype=dtype)
    x = np.array([-np.inf, -30, -1, -0.0, 0, 1, 30, np.inf], np.float32)
    yield Case("gelu_far", "Gelu", [("x", x[1:])], ["y"], domain=MS)
    yield Case("fast_gelu_far", "FastGelu", [("x", x[1:-1])], ["y"], domain=MS)
    yield Case("quick_gelu_far", "QuickGelu", [("x", x[1:])], ["y"], {"alpha": 1.702}, MS)


def gates():
    """LinearAttentionGate, and GatedRMSNorm of whole rows and of heads in them."""
    for dtype in TYPES:
        for i, shape in enumerate(((1, 1, 4), (2, 3, 5), (1, 130, 2))):
            a, b = random(110 + i, shape, dtype, 8.0), random(120 + i, shape, dtype, 3.0)
            bias, scale = random(130, shape[-1:]), -np.exp(random(131, shape[-1:]))
            decay = wide(scale) * np.log1p(np.exp(wide(a) + wide(bias)))
            expected = [t.astype(np.float32).astype(TYPES[dtype]) for t in (decay, 1 / (1 + np.exp(-wide(b))))]
            if dtype == "f32":
                expected = None
            label = "%d_%s" % (i, dtype)
            yield Case("lineargate_" + label, "LinearAttentionGate", [("a", a), Const(bias), Const(scale), ("b", b)], ["decay", "beta"], {}, MS, dtype=dtype,
                       expected=expected)
            yield Case("lineargate_alone_" + label, "LinearAttentionGate", [("a", a), Const(bias), Const(scale)], ["decay"], {}, MS, dtype=dtype,
                       expected=expected and expected[:1])
        for i, (shape, group) in enumerate((((1, 1, 16), 16), ((2, 3, 48), 16), ((5, 33), 33), ((1, 2, 3, 10), 5))):
            x, gate, scale = random(140 + i, shape, dtype), random(150 + i, shape, dtype, 3.0), random(160 + i, (group,), dtype)
            rows = wide(x).reshape(-1, group)
            for j, activation in enumerate((None, "silu", "swish", "sigmoid")):
                epsilon = (1e-5, 1e-6, 1e-2, 1e-5)[j]
                opened = 1 / (1 + np.exp(-wide(gate)))
                y = (rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + epsilon) * wide(scale)).reshape(shape) * opened
                y = y if activation == "sigmoid" else y * wide(gate)
                attrs = {} if activation is None else {"activation": activation, "epsilon": epsilon}
                yield Case("gatednorm_%d_%s_%s" % (i, activation, dtype), "GatedRMSNorm", [("x", x), Const(scale), ("g", gate)], ["y"], attrs, MS,
                           dtype=dtype, expected=None if dtype == "f32" else [y.astype(np.float32).astype(TYPES[dtype])])


PRODUCTS = (((1, 48), (48, 1)), ((3, 1, 7), (3, 7, 5)), ((3, 5, 9), (9, 4)), ((1, 3), (3, 33)), ((2, 3, 4, 6), (2, 3, 6, 2)))


def products():
    """FusedMatMul, and TransposeMatMul, its former name."""
    for dtype in TYPES:
        for i, (a_shape, b_shape) in enumerate(PRODUCTS):
            a, b = random(30 + i, a_shape, dtype, 0.3), random(40 + i, b_shape, dtype, 0.3)
            flip_a, flip_b = i % 2, (i // 2) % 2
            inputs = [("a", np.swapaxes(a, -1, -2) if flip_a else a), ("b", np.swapaxes(b, -1, -2) if flip_b else b)]
            attrs = {"transA": flip_a, "transB": flip_b, "alpha": (1.0, 0.5, -2.0, 0.125, 1.0)[i]}
            y = (attrs["alpha"] * (wide(a) @ wide(b))).astype(np.float32).astype(TYPES[dtype])
            for op in ("FusedMatMul", "TransposeMatMul"):
                yield Case("%s_%d_%s" % (op.lower(), i, dtype), op, inputs, ["y"], attrs, MS, dtype=dtype, expected=[y])


def gemms():
    for dtype in TYPES:
        for i, (m, k, n) in enumerate(((1, 48, 1), (3, 7, 33), (5, 130, 2))):
            a, b, c = random(50 + i, (m, k), dtype, 0.3), random(60 + i, (n, k), dtype, 0.3), random(70, (n,), dtype)
            y = np.maximum(0.5 * (wide(a) @ wide(b).T) + 2 * wide(c), 0).astype(np.float32).astype(TYPES[dtype])
            yield Case("fusedgemm_%d_%s" % (i, dtype), "FusedGemm", [("a", a), Const(b), Const(c)], ["y"],
                       {"activation": "Relu", "transB": 1, "alpha": 0.5, "beta": 2.0}, MS, dtype=dtype, expected=[y])


def norms():
    for dtype in TYPES:
        for i, shape in enumerate(((1, 1), (3, 1, 48), (1, 5, 33), (2, 130))):
            x, scale = random(80 + i, shape, dtype), random(90 + i, shape[-1:], dtype)
            v = wide(x)
            y = v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-5) * wide(scale)
            yield Case("simplified_%d_%s" % (i, dtype), "SimplifiedLayerNormalization", [("x", x), Const(scale)], ["y"], {}, MS, dtype=dtype,
                       expected=[y.astype(np.float32).astype(TYPES[dtype])])


def linears():
    """QuantizeLinear and DequantizeLinear of this domain."""
    rng = np.random.default_rng(100)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        name, info = np.dtype(dtype).name, np.iinfo(dtype)
        for axis, shape in ((None, (3, 1, 7)), (1, (3, 5, 2)), (-1, (1, 33))):
            length = () if axis is None else (shape[axis],)
            attrs = {} if axis is None else {"axis": axis}
            scale, zero = (rng.random(length) * 0.1 + 0.02).astype(np.float32), rng.integers(0, 50, length).astype(dtype)
            q = rng.integers(info.min, info.max, shape).astype(dtype)
            label = "%s_%s" % ("all" if axis is None else axis, name)
            yield Case("dequantize_" + label, "DequantizeLinear", [("x", q), Const(scale), Const(zero)], ["y"], attrs, MS)
            yield Case("quantize_" + label, "QuantizeLinear", [("x", random(101, shape, scale=3.0)), Const(scale), Const(zero)], ["y"], attrs, MS)


def byte_point(scale, zero, dtype):
    return [Const(np.float32(scale)), Const(np.asarray(zero, dtype))]


def quantised():
    rng = np.random.default_rng(110)
    for dtype in (np.uint8, np.int8):
        name, info = np.dtype(dtype).name, np.iinfo(dtype)
        draw = lambda shape: rng.integers(info.min, info.max + 1, shape).astype(dtype)
        for i, shape in enumerate(((1,), (3, 1, 33), (2, 5, 7))):
            head = [("x", draw(shape))] + byte_point(0.023, 5, dtype)
            yield Case("sigmoid_%d_%s" % (i, name), "QLinearSigmoid", head + byte_point(0.0039, info.min, dtype), ["y"], {}, MS)
            yield Case("leakyrelu_%d_%s" % (i, name), "QLinearLeakyRelu", head + byte_point(0.031, 9, dtype), ["y"], {"alpha": (0.01, 0.5, 1.5)[i]}, MS)
        for i, (axis, widths) in enumerate(((1, (1, 33)), (-1, (2, 5, 3)), (0, (1, 1, 2)))):
            inputs = byte_point(0.041, 7, dtype)
            for k, width in enumerate(widths):
                dims = [3, 2, 4]
                dims[axis] = width
                inputs += [("x%d" % k, draw(dims))] + byte_point(0.02 + 0.013 * k, k, dtype)
            yield Case("concat_%d_%s" % (i, name), "QLinearConcat", inputs, ["y"], {"axis": axis}, MS)
        for i, shape in enumerate(((1, 1, 5, 5), (3, 7, 1, 9), (2, 33, 4, 2))):
            yield Case("globalaverage_%d_%s" % (i, name), "QLinearGlobalAveragePool", [("x", draw(shape))] + byte_point(0.05, 3, dtype) +
                       byte_point(0.0171, 4, dtype), ["y"], {"channels_last": i % 2}, MS)


def softmaxes():
    for dtype in ("f32", "f16"):
        for i, (shape, axis) in enumerate((((1, 1), 1), ((3, 2, 33), 2))):
            x, b = random(120 + i, shape, dtype), random(130 + i, shape, dtype)
            v = np.exp(wide(x) + wide(b) - (wide(x) + wide(b)).max(axis, keepdims=True))
            yield Case("bias_softmax_%d_%s" % (i, dtype), "BiasSoftmax", [("x", x), ("b", b)], ["y"], {"axis": axis, "is_inner_broadcast": 0}, MS, dtype=dtype,
                       expected=[(v / v.sum(axis, keepdims=True)).astype(np.float32).astype(TYPES[dtype])])


def weights():
    """Odd sizes: a partial block (K 48, block 32), an odd count of blocks, one column, batch 3, one row."""
    for dtype in TYPES:
        for bits in (2, 4, 8):
            for zero in ("none", "packed", "values"):
                yield nbits("odd_%d_%s" % (bits, zero), 140, (1, 48), 5, bits, 32, dtype, zero)
                yield nbits("column_%d_%s" % (bits, zero), 141, (3, 2, 80), 1, bits, 16, dtype, zero, bias=zero != "none")
                yield nbits("one_%d_%s" % (bits, zero), 142, (1, 16), 1, bits, 16, dtype, zero)
    rng = np.random.default_rng(143)
    for bits in (2, 4, 8):
        for count in (1, 3):  # blocks a row: the zero points of a row do not fill their bytes
            q, z = (rng.integers(0, 1 << bits, s).astype(np.uint8) for s in ((5, 16 * count), (5, count)))
            scale, indices = random(144, (5, count)), np.array([[4], [-5], [0]], np.int64)
            y = ((q.reshape(5, count, 16).astype(np.float32) - z[:, :, None]) * scale[:, :, None]).reshape(5, -1)[indices]
            yield Case("gather_odd_%d_%d" % (bits, count), "GatherBlockQuantized", [Const(pack(q, bits)), ("i", indices), Const(scale), Const(pack(z, bits))],
                       ["y"], {"block_size": 16, "bits": bits}, MS, expected=[y])


def cases():
    for family in (activations, gates, products, gemms, norms, linears, quantised, softmaxes, weights):
        yield from family()
