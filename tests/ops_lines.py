"""ops_lines.py - cases for compiler/ops/lines.c; numpy, by hand or onnxruntime."""
import numpy as np

from op_models import TYPES, Case, Const, random


def hardmaxes():
    for dtype in TYPES:
        for opset, axis, shape in ((13, -1, (3, 7)), (13, 0, (5, 4)), (13, 1, (2, 600, 3)), (11, 1, (2, 3, 5)), (11, 2, (2, 3, 5))):
            x = random(1, shape, dtype)
            flat = x.reshape(int(np.prod(shape[:axis])), -1) if opset < 13 else x
            at = np.argmax(flat.astype(np.float32), axis if opset >= 13 else 1)
            y = np.zeros_like(flat)
            np.put_along_axis(y, np.expand_dims(at, axis if opset >= 13 else 1), 1, axis if opset >= 13 else 1)
            yield Case("hardmax_%d_%d_%d_%s" % (opset, axis, len(shape), dtype), "Hardmax", [("x", x)], ["y"], {"axis": axis}, opset=opset,
                       dtype=dtype, expected=[y.reshape(shape)])


def sums():
    for t in (np.float32, np.int64, np.int32):
        x = (random(24, (3, 4, 5), "f32", 4)).astype(t)
        for axis in (0, 1, -1):
            for exclusive in (0, 1):
                for reverse in (0, 1):
                    yield Case("cumsum_%s_%d_%d%d" % (np.dtype(t).name, axis, exclusive, reverse), "CumSum", [("x", x), Const(np.int64(axis))], ["y"],
                               {"exclusive": exclusive, "reverse": reverse})


def products():
    x = random(2, (3, 4, 5))
    for axis in (0, 1, -1):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                y = np.flip(x, axis) if reverse else x
                y = np.cumprod(y, axis)
                if exclusive:
                    y = np.roll(y, 1, axis)
                    first = [slice(None)] * 3
                    first[axis] = 0
                    y[tuple(first)] = 1
                yield Case("cumprod_%d_%d_%d" % (axis, exclusive, reverse), "CumProd", [("x", x), Const(np.int64(axis))], ["y"],
                           {"exclusive": exclusive, "reverse": reverse}, opset=26, expected=[np.flip(y, axis) if reverse else y])


def matrices():
    for size in (1, 2, 3, 5, 20):
        for kind in (np.float32, np.float64):
            x = random(size, (2, 3, size, size)).astype(kind)
            yield Case("det_%d_%s" % (size, np.dtype(kind).name), "Det", [("x", x)], ["y"], opset=22, expected=[np.linalg.det(x).astype(kind)],
                       tolerance=(1e-3, 1e-3))
    yield Case("det_swap", "Det", [("x", np.array([[0, 2], [3, 4]], np.float32))], ["y"], opset=11, expected=[np.float32(-6)])
    yield Case("det_singular", "Det", [("x", np.array([[1, 2], [2, 4]], np.float32))], ["y"], opset=11, expected=[np.float32(0)])


def others():
    x = random(3, (5, 3, 2))
    for time, batch in ((0, 1), (1, 0)):
        yield Case("reverse_%d" % time, "ReverseSequence", [("x", x), ("l", np.array([1, 3, 2, 0, 3][:x.shape[batch]]))], ["y"],
                   {"time_axis": time, "batch_axis": batch}, opset=10)
    for k in (-2, 0, 1, 9):
        for dtype in (1, 6, 7, 9, 11):
            yield Case("eye_%d_%d" % (k, dtype), "EyeLike", [("x", np.zeros((3, 5), np.float32))], ["y"], {"k": k, "dtype": dtype}, opset=9,
                       expected=[np.eye(3, 5, k).astype({1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}[dtype])])
    for dtype in TYPES:
        x = random(4, (50,), dtype)
        w = x.astype(np.float32)
        yield Case("shrink_" + dtype, "Shrink", [("x", x)], ["y"], {"lambd": 0.5, "bias": 0.25}, opset=9, dtype=dtype,
                   expected=[np.where(w < -0.5, w + 0.25, np.where(w > 0.5, w - 0.25, 0)).astype(TYPES[dtype])])
    yield Case("shrink_int", "Shrink", [("x", np.arange(-4, 5, dtype=np.int32))], ["y"], {"lambd": 1.5, "bias": 1.5}, opset=9,
               expected=[np.array([-2, -1, 0, 0, 0, 0, 0, 1, 2], np.int32)])


def words():
    x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)
    common = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7], "min_gram_length": 1,
              "max_gram_length": 2}
    for mode in ("TF", "IDF", "TFIDF"):
        for skips in (0, 5):
            for weights in (False, True):
                attrs = {"mode": mode, "max_skip_count": skips, **common}
                if weights:
                    attrs["weights"] = [0.5, 2.0, 1.5, 3.0, 0.25, 4.0, 1.25]
                yield Case("tfidf_%s_%d_%d" % (mode.lower(), skips, weights), "TfIdfVectorizer", [("x", x)], ["y"], attrs, opset=9)
    yield Case("tfidf_line", "TfIdfVectorizer", [("x", x[0].astype(np.int64))], ["y"], {"mode": "TF", "max_skip_count": 1, **common}, opset=9)


def cases():
    yield from hardmaxes()
    yield from sums()
    yield from products()
    yield from matrices()
    yield from others()
    yield from words()
