"""ops_norm.py - cases for compiler/ops/norm.c."""
import numpy as np

from op_models import TYPES, Case, Const, Graph, random

MANY = 4229 # rows, more than get a block each; a prime, so that the last block is not full


def rms(x, scale, axis, epsilon):
    axes = tuple(range(axis % x.ndim, x.ndim))
    x = x.astype(np.float32)
    return x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + epsilon) * scale.astype(np.float32)


def simple(dtype):
    for shape in ((2, 3, 64), (1, 1, 896), (1, 5, 4, 48), (3, 5120)):
        x, scale = random(1, shape, dtype), random(2, shape[-1:], dtype)
        name = "%s_%s" % ("x".join(map(str, shape)), dtype)
        yield Case("rms_" + name, "RMSNormalization", [("x", x), Const(scale)], ["y"], {"epsilon": 1e-6}, dtype=dtype,
                   expected=[rms(x, scale, -1, 1e-6).astype(TYPES[dtype])])
        yield Case("simplified_" + name, "SimplifiedLayerNormalization", [("x", x), Const(scale)], ["y"], {"epsilon": 1e-6}, dtype=dtype)
        yield Case("layer_" + name, "LayerNormalization", [("x", x), Const(scale), Const(random(3, shape[-1:], dtype))], ["y"],
                   {"epsilon": 1e-5}, dtype=dtype, opset=17)
    x, scale = random(4, (2, 3, 4, 5), dtype), random(5, (4, 5), dtype)
    yield Case("rms_axis2_" + dtype, "RMSNormalization", [("x", x), Const(scale)], ["y"], {"axis": 2}, dtype=dtype,
               expected=[rms(x, scale, 2, 1e-5).astype(TYPES[dtype])])


def skips(dtype):
    x, gamma, bias = random(6, (2, 3, 96), dtype), random(7, (96,), dtype), random(8, (96,), dtype)
    beta = random(9, (96,), dtype)
    for name, skip in (("full", random(10, (2, 3, 96), dtype)), ("shared", random(11, (1, 3, 96), dtype)), ("flat", random(12, (3, 96), dtype))):
        for given in (None, Const(bias)):
            label = "%s_%s_%s" % (name, "bias" if given else "plain", dtype)
            # In half types the residual is rounded before the norm: computed by hand, because float32 oracles do not.
            wide = x.astype(np.float32) + skip.astype(np.float32) + (bias.astype(np.float32) if given else 0)
            total = wide.astype(TYPES[dtype])
            t = total.astype(np.float32)
            expected = [rms(total, gamma, -1, 1e-6).astype(TYPES[dtype]), total]
            yield Case("skip_rms_" + label, "SkipSimplifiedLayerNormalization", [("x", x), ("skip", skip), Const(gamma), given],
                       ["y", "", "", "sum"], {"epsilon": 1e-6}, "com.microsoft", dtype=dtype, expected=expected)
            mean = t.mean(-1, keepdims=True)
            normed = (t - mean) / np.sqrt(((t - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * gamma.astype(np.float32)
            expected = [(normed + beta.astype(np.float32)).astype(TYPES[dtype]), total]
            yield Case("skip_layer_" + label, "SkipLayerNormalization",
                       [("x", x), ("skip", skip), Const(gamma), Const(beta), given], ["y", "", "", "sum"], {"epsilon": 1e-5},
                       "com.microsoft", dtype=dtype, expected=expected)
    if dtype == "f32":
        skip = random(10, (2, 3, 96))
        yield Case("skip_rms_ort", "SkipSimplifiedLayerNormalization", [("x", x), ("skip", skip), Const(gamma)], ["y", "", "", "sum"],
                   {"epsilon": 1e-6}, "com.microsoft")
        yield Case("skip_layer_ort", "SkipLayerNormalization", [("x", x), ("skip", skip), Const(gamma), Const(beta), Const(bias)],
                   ["y", "", "", "sum"], {"epsilon": 1e-6}, "com.microsoft")


def many(dtype):
    """Many rows: a warp takes one, or several where fewer lanes load a vector each; 256 threads a block."""
    vector = 4 if dtype == "f32" else 8

    def blocks(width, rows=MANY, aligned=True):
        lanes, at_once = 32, vector if aligned and width % vector == 0 else 1
        while lanes // 2 * at_once >= width:
            lanes //= 2
        return {"norm": 1, "launches": 1, "blocks": rows if width > 32 * at_once and at_once > 1 else -(-rows // (256 // lanes))}

    def case(name, kernels, *more, **attrs):
        made = Case("many_%s_%s" % (name, dtype), *more, dtype=dtype, **attrs)
        made.kernels = kernels
        return made

    def graph(name, kernels):
        return Graph("many_%s_%s" % (name, dtype), dtype, kernels)

    for width in (8, 10, 96, 256):
        x, scale = random(40, (MANY, width), dtype), random(41, (width,), dtype)
        yield case("rms_%d" % width, blocks(width), "RMSNormalization", [("x", x), Const(scale)], ["y"],
                   expected=[rms(x, scale, -1, 1e-5).astype(TYPES[dtype])])
    for width in (20, 64, 72, 128): # of 72, the statistics lie where lanes without a vector would store one
        inputs = [("x", random(40, (MANY, width), dtype)), Const(random(41, (width,), dtype)), Const(random(42, (width,), dtype))]
        yield case("layer_%d" % width, blocks(width), "LayerNormalization", inputs, ["y", "mean", "inverse"], opset=17,
                   output_types={1: np.float32, 2: np.float32})
    x, skip, gamma = random(43, (MANY, 64), dtype), random(44, (MANY, 64), dtype), random(45, (64,), dtype)
    total = (x.astype(np.float32) + skip.astype(np.float32)).astype(TYPES[dtype])
    yield case("skip", blocks(64), "SkipSimplifiedLayerNormalization", [("x", x), ("skip", skip), Const(gamma)], ["y", "", "", "sum"],
               {"epsilon": 1e-6}, "com.microsoft", expected=[rms(total, gamma, -1, 1e-6).astype(TYPES[dtype]), total])
    for name, kernels, axis, first, last in (("strided", blocks(40), 1, 1, 2), ("odd", blocks(32, 3 * MANY, False), 2, 3, 35)):
        g = graph(name, kernels)
        part = [g.constant(np.array([i])) for i in (first, last, axis)]
        x = g.node("Slice", [g.input("x", random(46, (MANY, 3, 40), dtype)), *part])
        g.node("RMSNormalization", [x, g.weight((last - first if axis == 2 else 40,))], ["y"])
        yield g.output("y")
    g = graph("axes", blocks(64, aligned=False))
    g.node("RMSNormalization", [g.input("x", random(47, (MANY, 4, 16), dtype)), g.weight((4, 16))], ["y"], axis=1)
    yield g.output("y")
    for name, outputs in (("beside", ["out"]), ("both", ["y", "out"])): # elementwise nodes in the norm's kernel
        g = graph(name, blocks(64))
        g.node("RMSNormalization", [g.input("x", random(48, (MANY, 64), dtype)), g.weight((64,))], ["y"])
        gate = g.input("gate", random(49, (MANY, 64), dtype))
        g.node("Mul", ["y", g.node("Mul", [gate, g.node("Sigmoid", [gate])])], ["out"])
        yield g.output(*outputs)


def softmaxes(dtype):
    for op in ("Softmax", "LogSoftmax"):
        for opset, axis, shape in ((13, -1, (2, 3, 50)), (13, 1, (2, 7, 5)), (13, 0, (4, 3)), (13, -1, (2, 1500)), (11, 1, (2, 3, 5)), (11, 2, (2, 3, 5))):
            yield Case("%s_%d_%s_axis%d_%s" % (op.lower(), opset, "x".join(map(str, shape)), axis, dtype), op,
                       [("x", random(20, shape, dtype, 3.0))], ["y"], {"axis": axis}, opset=opset, dtype=dtype)


def vectors():
    """small vectors with known answers."""
    x, ones = np.array([[[1, 2, 3, 4]]], np.float32), Const(np.ones(4, np.float32))
    skip = np.array([[[1, 0, -1, 0]]], np.float32)
    yield Case("vector_skip_rms", "SkipSimplifiedLayerNormalization", [("x", x), ("skip", skip), ones], ["y", "", "", "sum"], {"epsilon": 1e-5},
               "com.microsoft", expected=[np.array([[[.755928, .755928, .755928, 1.511857]]], np.float32), x + skip])
    yield Case("vector_simplified", "SimplifiedLayerNormalization", [("x", x), ones], ["y"], {"epsilon": 1e-5},
               expected=[np.array([[[.365148, .730296, 1.095444, 1.460593]]], np.float32)])


def cases():
    for dtype in ("f32", "f16", "bf16"):
        yield from simple(dtype)
        yield from skips(dtype)
        yield from many(dtype)
        yield from softmaxes(dtype)
    yield from vectors()
    x = random(30, (2, 3, 40))
    yield Case("layer_statistics", "LayerNormalization", [("x", x), Const(random(31, (40,)))], ["y", "mean", "inverse"], opset=17)
    yield Case("layer_axis1", "LayerNormalization", [("x", x), Const(random(31, (3, 40))), Const(random(32, (3, 40)))], ["y"], {"axis": 1}, opset=17)
    masked = random(33, (3, 8))
    masked[1, 4:] = -np.inf
    for op, size in (("Softmax", 7), ("LogSoftmax", 300), ("Softmax", 5000)):
        wide = random(31, (3, size)).astype(np.float64) * 1e-3
        e = np.exp(wide - wide.max(-1, keepdims=True))
        shares = e / e.sum(-1, keepdims=True)
        yield Case("%s_f64_%d" % (op.lower(), size), op, [("x", wide)], ["y"], opset=13, tolerance=(1e-12, 1e-14),
                   expected=[np.log(shares) if op == "LogSoftmax" else shares])
    yield Case("softmax_masked", "Softmax", [("x", masked)], ["y"], opset=13)
