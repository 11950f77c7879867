"""ops_extent.py - cases for compiler/ops/extent.c, unique.c and nms.c: outputs whose extent the kernel counts. op_run refuses an output
whose bytes are not those expected, so each case also proves the count that the host reads back."""
import numpy as np

from op_models import Case, Const, random


def nonzeros():
    rng = np.random.default_rng(1)
    for shape in ((), (7,), (3, 4), (2, 3, 4, 5), (100, 300), (0, 4), (3, 40000)):
        for density in (0, 0.3, 1):
            x = (rng.random(shape) < density).astype(np.float32)
            expected = np.array(np.nonzero(x), np.int64) if shape else np.zeros((0, int(x != 0)), np.int64)
            yield Case("nonzero_%s_%g" % ("x".join(map(str, shape)), density), "NonZero", [("x", x)], ["y"], expected=[expected.reshape(len(shape), -1)
                       if len(shape) else expected])
    for kind in (np.bool_, np.int64, np.uint8, np.float16):
        x = rng.integers(0, 2, (4, 5)).astype(kind)
        yield Case("nonzero_%s" % np.dtype(kind).name, "NonZero", [("x", x)], ["y"], expected=[np.array(np.nonzero(x), np.int64)])
    yield Case("nonzero_known", "NonZero", [Const(np.array([[1, 0], [1, 1]], np.int64))], ["y"], expected=[np.array([[0, 1, 1], [0, 0, 1]])])


def compresses():
    rng = np.random.default_rng(2)
    for axis in (None, 0, 1, -1):
        for short in (0, 1):
            x = random(3, (4, 5, 6))
            length = (120 if axis is None else x.shape[axis]) - short
            condition = rng.random(length) < 0.5
            expected = np.compress(condition, x, axis)
            yield Case("compress_%s_%d" % (axis, short), "Compress", [("x", x), ("c", condition)], ["y"], {} if axis is None else {"axis": axis},
                       expected=[expected])
    x, condition = np.arange(50000), rng.random(50000) < 0.1
    yield Case("compress_long", "Compress", [("x", x), ("c", condition)], ["y"], expected=[x[condition]])
    yield Case("compress_none", "Compress", [("x", x[:9]), ("c", condition[:9] & False)], ["y"], expected=[x[:0]])


def uniques():
    rng = np.random.default_rng(4)
    outputs = ["y", "first", "inverse", "counts"]
    for size, values in ((1, 2), (10, 4), (100, 30), (3000, 500), (5, 1)):
        for ordered in (0, 1):
            x = rng.integers(0, values, size).astype(np.float32)
            yield Case("unique_%d_%d" % (size, ordered), "Unique", [("x", x)], outputs, {"sorted": ordered}, opset=11, oracle="ort")
    for axis in (0, 1, 2):
        for ordered in (0, 1):
            x = rng.integers(0, 2, (4, 3, 2)).astype(np.int64)
            yield Case("unique_axis_%d_%d" % (axis, ordered), "Unique", [("x", x)], outputs, {"axis": axis, "sorted": ordered}, opset=11, oracle="ort")
    yield Case("unique_only", "Unique", [("x", rng.integers(0, 9, (5, 6)).astype(np.int8))], ["y"], opset=11, oracle="ort")


def suppressions():
    rng = np.random.default_rng(6)
    for number, (batch, classes, boxes, limit, centre) in enumerate(((1, 1, 6, 3, 0), (2, 3, 40, 10, 0), (1, 2, 400, 1000, 0), (2, 2, 30, 5, 1))):
        low, size = rng.random((batch, boxes, 2)), rng.random((batch, boxes, 2)) * 0.4
        box = np.concatenate([low, size if centre else low + size], 2).astype(np.float32)
        scores = rng.random((batch, classes, boxes)).astype(np.float32)
        for bound in (True, False):
            most = Const(np.int64(limit)) if bound else ("m", np.array([limit]))
            yield Case("nms_%d_%d" % (number, bound), "NonMaxSuppression", [("b", box), ("s", scores), most, Const(np.float32(0.4)), Const(np.float32(0.2))],
                       ["y"], {"center_point_box": centre}, opset=11, oracle="ort")


def above_i64():
    x = np.array([2 ** 63 + 1, 4, 2 ** 63 + 1, 2 ** 64 - 1, 4], np.uint64)
    yield Case("unique_above_i64", "Unique", [("x", x)], ["y"], expected=[np.array([4, 2 ** 63 + 1, 2 ** 64 - 1], np.uint64)])


def cases():
    yield from above_i64()
    yield from nonzeros()
    yield from compresses()
    yield from uniques()
    yield from suppressions()
