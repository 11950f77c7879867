"""ops_normalise.py - cases for compiler/ops/normalise.c."""
import numpy as np

from op_models import TYPES, Case, Const, random


def channel(dtype, count, seed, positive=False):
    v = random(seed, (count,), dtype)
    return np.abs(v.astype(np.float32)).astype(v.dtype) if positive else v


def batches():
    for dtype in ("f32", "f16", "bf16"):
        for shape in ((3, 5), (2, 5, 9), (2, 5, 6, 7), (1, 5, 3, 4, 2)):
            weights = [Const(channel(dtype, 5, seed, seed == 4)) for seed in (1, 2, 3, 4)]
            yield Case("batch_%s_%s" % ("x".join(map(str, shape)), dtype), "BatchNormalization", [("x", random(5, shape, dtype)), *weights], ["y"], {"epsilon": 1e-3},
                       opset=15, dtype=dtype)
    x = random(6, (2, 5, 6))
    weights = [("s", channel("f32", 5, 1)), ("b", channel("f32", 5, 2)), ("m", channel("f32", 5, 3)), ("v", channel("f32", 5, 4, True))]
    for opset in (7, 8, 9, 14, 15):
        yield Case("batch_opset%d" % opset, "BatchNormalization", [("x", x), *weights], ["y"], opset=opset)
    for opset in (14, 15):
        yield Case("batch_training%d" % opset, "BatchNormalization", [("x", x), *weights], ["y", "mean", "var"], {"training_mode": 1, "momentum": 0.7}, opset=opset,
                   oracle="reference")
    yield Case("batch_training_y", "BatchNormalization", [("x", random(7, (3, 5, 40, 41))), *weights], ["y"], {"training_mode": 1}, opset=15,
               expected=[trained(random(7, (3, 5, 40, 41)), weights)])
    s, b, m, v = (random(seed, (5, 6)) for seed in (1, 2, 3, 4))
    expected = s * (x - m) / np.sqrt(np.abs(v) + 1e-5) + b
    yield Case("batch_by_element", "BatchNormalization", [("x", x), Const(s), Const(b), Const(m), Const(np.abs(v))], ["y"], {"spatial": 0}, opset=7, expected=[expected])
    half = random(8, (2, 5, 6), "f16")
    wide = half.astype(np.float32)
    y = weights[0][1][:, None] * (wide - weights[2][1][:, None]) / np.sqrt(weights[3][1][:, None] + 1e-5) + weights[1][1][:, None]
    yield Case("batch_mixed", "BatchNormalization", [("x", half), *weights], ["y"], opset=15, dtype="f16", expected=[y.astype(np.float16)])
    yield Case("batch_f64", "BatchNormalization", [(n, a.astype(np.float64)) for n, a in [("x", x), *weights]], ["y"], opset=15, oracle="reference", tolerance=(1e-6, 1e-7))


def trained(x, weights):
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * weights[0][1].reshape(-1, 1, 1) + weights[1][1].reshape(-1, 1, 1)


def groups(dtype):
    for shape in ((2, 6, 50), (1, 6, 9, 11), (2, 6, 3, 2, 4), (1, 6, 70, 61)):
        x, name = random(9, shape, dtype, 2.0), "x".join(map(str, shape)) + "_" + dtype
        wide = x.astype(np.float32)
        weights = [Const(channel(dtype, 6, 1)), Const(channel(dtype, 6, 2))]
        yield Case("instance_" + name, "InstanceNormalization", [("x", x), *weights], ["y"], {"epsilon": 1e-4}, opset=22, dtype=dtype)
        scale, bias = (w.array.astype(np.float32) for w in weights)
        flat = wide.reshape(shape[0], 3, -1)
        normal = (flat - flat.mean(-1, keepdims=True)) / np.sqrt(flat.var(-1, keepdims=True) + 1e-5)
        each = [1, 6] + [1] * (len(shape) - 2)
        y = normal.reshape(shape) * scale.reshape(each) + bias.reshape(each)
        yield Case("group21_" + name, "GroupNormalization", [("x", x), *weights], ["y"], {"num_groups": 3}, opset=21, dtype=dtype, expected=[y.astype(TYPES[dtype])])
        y = (normal * scale[:3].reshape(1, 3, 1) + bias[:3].reshape(1, 3, 1)).reshape(shape)
        short = [Const(w.array[:3]) for w in weights]
        yield Case("group18_" + name, "GroupNormalization", [("x", x), *short], ["y"], {"num_groups": 3}, opset=18, dtype=dtype, expected=[y.astype(TYPES[dtype])])


def others(dtype):
    new = dtype == "bf16"
    x = random(10, (2, 5, 6, 7), dtype, 3.0)
    for axes in ([0, 2, 3], [1], [-1, 0], [0, 1, 2, 3]):
        yield Case("mvn_%s_%s" % ("_".join(map(str, axes)), dtype), "MeanVarianceNormalization", [("x", x)], ["y"], {"axes": axes}, opset=13, dtype=dtype)
    for p in (1, 2):
        for axis in (-1, 0, 1):
            yield Case("lp%d_axis%d_%s" % (p, axis, dtype), "LpNormalization", [("x", x)], ["y"], {"p": p, "axis": axis}, opset=22 if new else 13, dtype=dtype)
    for size in (1, 2, 3, 4, 9):  # no oracle has even sizes
        wide = x.astype(np.float32)
        total = np.stack([(wide[:, max(0, i - (size - 1) // 2):i + size // 2 + 1] ** 2).sum(1) for i in range(5)], 1)
        y = wide / (1.5 + 0.1 / size * total) ** 0.6
        yield Case("lrn%d_%s" % (size, dtype), "LRN", [("x", x)], ["y"], {"size": size, "alpha": 0.1, "beta": 0.6, "bias": 1.5}, opset=13, dtype=dtype,
                   expected=None if size % 2 else [y.astype(TYPES[dtype])])


def cases():
    yield from batches()
    for dtype in ("f32", "f16", "bf16"):
        yield from groups(dtype)
        yield from others(dtype)
    x = random(11, (2, 3, 4, 5))
    yield Case("mvn_opset9", "MeanVarianceNormalization", [("x", x)], ["y"], opset=9)
    yield Case("instance_opset7", "InstanceNormalization", [("x", x), Const(channel("f32", 3, 1)), Const(channel("f32", 3, 2))], ["y"], opset=7)
    yield Case("lrn_opset7", "LRN", [("x", x)], ["y"], {"size": 3}, opset=7)
    yield Case("lp_zeros", "LpNormalization", [("x", np.array([[0, 0], [3, -4]], np.float32))], ["y"], opset=13,
               expected=[np.array([[0, 0], [0.6, -0.8]], np.float32)])
    wide = random(12, (2, 3, 50)).astype(np.float64)
    y = wide / np.abs(wide).sum(1, keepdims=True)
    yield Case("lp_f64", "LpNormalization", [("x", wide)], ["y"], {"p": 1, "axis": 1}, opset=22, expected=[y], tolerance=(1e-13, 1e-14))
