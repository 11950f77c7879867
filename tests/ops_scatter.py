"""ops_scatter.py - cases for compiler/ops/scatter.c: reductions, repeated and negative indices; loops in numpy compute them."""
import numpy as np

from op_models import TYPES, Case, random

JOINS = {"none": lambda a, b: b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max}


def elements(data, index, update, axis, join):
    out = data.astype(np.float32) if data.dtype.kind not in "iu" else data.copy()
    for at in np.ndindex(index.shape):
        to = list(at)
        to[axis] = index[at]
        out[tuple(to)] = JOINS[join](out[tuple(to)], update[at])
    return out.astype(data.dtype)


def tuples(data, index, update, join):
    out = data.astype(np.float32) if data.dtype.kind not in "iu" else data.copy()
    for at in np.ndindex(index.shape[:-1]):
        rows, news = out[tuple(index[at])], update[at]
        out[tuple(index[at])] = np.vectorize(JOINS[join])(rows, news) if np.size(rows) else rows
    return out.astype(data.dtype)


def above_i64():
    data, update = np.array([2 ** 63 + 1, 5, 2 ** 63], np.uint64), np.array([7, 2 ** 64 - 2, 9], np.uint64)
    for reduction, join in (("max", np.maximum), ("min", np.minimum)):
        yield Case(reduction + "_above_i64", "ScatterElements", [("x", data), ("i", np.arange(3)), ("u", update)], ["y"], {"reduction": reduction}, opset=18,
                   expected=[join(data, update)])


def cases():
    yield from above_i64()
    rng = np.random.default_rng(5)
    for join in JOINS:
        for dtype in ("f32", "f16", "int32", "int64"):
            kind = TYPES[dtype] if dtype in TYPES else np.dtype(dtype)
            make = lambda shape: rng.integers(-4, 5, shape).astype(kind)
            repeated = join != "none"
            data, update = make((4, 5, 3)), make((4, 6 if repeated else 3, 3))
            index = rng.integers(-5, 5, update.shape) if repeated else np.argsort(rng.random((4, 5, 3)), 1)[:, :3]
            label, opset = "%s_%s" % (join, dtype), 18
            yield Case("elements_" + label, "ScatterElements", [("d", data), ("i", index), ("u", update)], ["y"], {"axis": 1, "reduction": join},
                       opset=opset, dtype=dtype if dtype in TYPES else "f32", expected=[elements(data, index, update, 1, join)])
            index = rng.integers(-4, 4, (7, 1)) if repeated else np.array([[2], [0]])
            update = make((len(index), 5, 3))
            yield Case("nd_" + label, "ScatterND", [("d", data), ("i", index), ("u", update)], ["y"], {"reduction": join}, opset=opset,
                       dtype=dtype if dtype in TYPES else "f32", expected=[tuples(data, index, update, join)])
            index = rng.integers(0, 3, (2, 6, 3)) if repeated else np.array([[[0, 1, 2], [3, 4, 0]]])
            update = make(index.shape[:-1])
            yield Case("nd_points_" + label, "ScatterND", [("d", data), ("i", index), ("u", update)], ["y"], {"reduction": join}, opset=opset,
                       dtype=dtype if dtype in TYPES else "f32", expected=[tuples(data, index, update, join)])
    data, index, update = random(1, (3, 4)), np.array([[1, 3], [0, 2], [3, 0]], np.int32), random(2, (3, 2))
    for op, opset in (("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11)):
        yield Case("old_%s_%d" % (op.lower(), opset), op, [("d", data), ("i", index), ("u", update)], ["y"], {"axis": 1}, opset=opset,
                   expected=[elements(data, index, update, 1, "none")])
