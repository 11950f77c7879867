"""ops_pool.py - cases for compiler/ops/pool.c."""
import numpy as np

from op_models import TYPES, Case, Const, random

WINDOWS = {
    "1d": ((2, 3, 17), {"kernel_shape": [4], "strides": [3], "pads": [1, 2]}),
    "2d": ((2, 3, 9, 14), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    "3d": ((1, 2, 6, 7, 8), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 3], "pads": [0, 1, 1, 1, 0, 0]}),
}


def windows(dtype):
    for name, (shape, attrs) in WINDOWS.items():
        x = random(1, shape, dtype)
        label = name + "_" + dtype
        yield Case("max_" + label, "MaxPool", [("x", x)], ["y", "indices"], attrs, opset=22 if dtype == "bf16" else 12, dtype=dtype)
        # onnxruntime has no bf16 pools, but computes them in float
        for include in (0, 1):
            yield Case("mean_%s_include%d" % (label, include), "AveragePool", [("x", x)], ["y"], {**attrs, "count_include_pad": include},
                       opset=22 if dtype == "bf16" else 19, dtype=dtype)
        for p in (1, 2, 3):
            yield Case("lp%d_%s" % (p, label), "LpPool", [("x", x)], ["y"], {**attrs, "p": p}, opset=22 if dtype == "bf16" else 18, dtype=dtype)


def opsets():
    x = random(2, (2, 3, 10, 11))
    for opset in (7, 8, 10, 11, 12, 22):
        yield Case("max_opset%d" % opset, "MaxPool", [("x", x)], ["y"], {"kernel_shape": [3, 3], "strides": [2, 2]}, opset=opset)
    for opset in (7, 10, 11, 19, 22):
        yield Case("mean_opset%d" % opset, "AveragePool", [("x", x)], ["y"], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, opset=opset)
    for opset in (7, 11, 18, 22):
        yield Case("lp_opset%d" % opset, "LpPool", [("x", x)], ["y"], {"kernel_shape": [3, 3], "strides": [2, 2]}, opset=opset)
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield Case("%s_opset7" % op.lower(), op, [("x", x)], ["y"], opset=7)


def attributes():
    x = random(3, (2, 3, 13, 12))
    for pad in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        for op in ("MaxPool", "AveragePool", "LpPool"):
            yield Case("%s_%s" % (op.lower(), pad.lower()), op, [("x", x)], ["y"], {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": pad}, opset=18)
    for op in ("MaxPool", "AveragePool"):
        yield Case("%s_ceil" % op.lower(), op, [("x", x)], ["y"], {"kernel_shape": [3, 3], "strides": [3, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}, opset=19)
        yield Case("%s_dilated_ceil" % op.lower(), op, [("x", x)], ["y"],
                   {"kernel_shape": [3, 3], "strides": [2, 3], "dilations": [2, 3], "pads": [1, 2, 2, 1], "ceil_mode": 1}, opset=19)
    for order in (0, 1):
        yield Case("max_storage_order%d" % order, "MaxPool", [("x", x)], ["y", "indices"],
                   {"kernel_shape": [3, 3], "strides": [2, 2], "storage_order": order}, opset=12)
        yield Case("max_storage_order%d_3d" % order, "MaxPool", [("x", random(4, (1, 2, 4, 5, 6)))], ["y", "indices"],
                   {"kernel_shape": [2, 2, 2], "dilations": [2, 1, 2], "storage_order": order}, opset=12)
    for dtype in (np.int8, np.uint8):
        v = np.random.default_rng(5).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (1, 2, 8, 8)).astype(dtype)
        yield Case("max_" + np.dtype(dtype).name, "MaxPool", [("x", v)], ["y"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, opset=12)
    yield Case("max_f64", "MaxPool", [("x", x.astype(np.float64))], ["y", "indices"], {"kernel_shape": [3, 3]}, opset=12)


def globals_():
    for dtype in ("f32", "f16", "bf16"):
        for shape in ((2, 3, 40), (2, 5, 33, 31), (1, 2, 3, 4, 5)):
            x = random(6, shape, dtype)
            name = "x".join(map(str, shape)) + "_" + dtype
            for op in ("GlobalAveragePool", "GlobalMaxPool"):
                yield Case("%s_%s" % (op.lower(), name), op, [("x", x)], ["y"], opset=22, dtype=dtype)
            for p in (1, 2, 3):  # no oracle has GlobalLpPool-22
                y = (np.abs(x.astype(np.float64)) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)
                yield Case("globallppool%d_%s" % (p, name), "GlobalLpPool", [("x", x)], ["y"], {"p": p}, opset=22, dtype=dtype,
                           expected=[y.astype(TYPES[dtype])])


def by_hand():
    x = np.array([[[np.nan, 1, np.nan, np.nan, 2, -np.inf]]], np.float32)
    yield Case("max_skips_nan", "MaxPool", [("x", x)], ["y", "indices"], {"kernel_shape": [2], "strides": [2]}, opset=12,
               expected=[np.array([[[1, np.nan, 2]]], np.float32), np.array([[[1, 3, 4]]])], check={1: "..., ::2"})
    yield Case("global_max_keeps_nan", "GlobalMaxPool", [("x", x)], ["y"], opset=22, expected=[np.full((1, 1, 1), np.nan, np.float32)])
    yield Case("mean_f64", "AveragePool", [("x", np.array([[[1, 2, 4, 1e-12]]], np.float64))], ["y"], {"kernel_shape": [2]}, opset=19,
               expected=[np.array([[[1.5, 3, 2 + 5e-13]]])], tolerance=(1e-15, 0))
    yield Case("lp_f64", "GlobalLpPool", [("x", np.array([[[3, 4.0]]]))], ["y"], opset=22, expected=[np.array([[[5.0]]])], tolerance=(1e-15, 0))


def unpools():
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    at = np.array([[[[5, 7], [13, 15]]]], np.int64)
    y = np.zeros(16, np.float32)
    y[[5, 7, 13, 15]] = [1, 2, 3, 4]
    y = y.reshape(1, 1, 4, 4)
    for opset in (9, 11, 22):
        yield Case("unpool_opset%d" % opset, "MaxUnpool", [("x", x), ("i", at)], ["y"], {"kernel_shape": [2, 2], "strides": [2, 2]}, opset=opset, expected=[y])
    for dtype in ("f16", "bf16"):
        yield Case("unpool_" + dtype, "MaxUnpool", [("x", x.astype(TYPES[dtype])), ("i", at)], ["y"], {"kernel_shape": [2, 2], "strides": [2, 2]},
                   opset=22, dtype=dtype, expected=[y.astype(TYPES[dtype])])
    wide = np.zeros((1, 1, 5, 6), np.float32)
    wide[..., :4, :4] = y
    yield Case("unpool_shape", "MaxUnpool", [("x", x), ("i", at), Const(np.array([1, 1, 5, 6], np.int64))], ["y"],
               {"kernel_shape": [2, 2], "strides": [2, 2]}, opset=11, expected=[wide])
    line = random(7, (2, 3, 4))
    places = np.arange(24, dtype=np.int64).reshape(2, 3, 4) * 3 + 1
    flat = np.zeros(72, np.float32)
    flat[places.ravel()] = line.ravel()
    yield Case("unpool_1d", "MaxUnpool", [("x", line), ("i", places)], ["y"], {"kernel_shape": [3], "strides": [3]}, opset=11,
               expected=[flat.reshape(2, 3, 12)])


def cases():
    for dtype in ("f32", "f16", "bf16"):
        yield from windows(dtype)
    yield from opsets()
    yield from attributes()
    yield from globals_()
    yield from by_hand()
    yield from unpools()
