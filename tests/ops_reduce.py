"""ops_reduce.py - cases for compiler/ops/reduce.c."""
import numpy as np

from op_models import Case, Const, random

FOLDS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL2", "ReduceL1", "ReduceLogSum",
         "ReduceLogSumExp")


def axes_of(axes):
    return None if axes is None else Const(np.array(axes, np.int64))


def folds(op):
    since = 13 if op == "ReduceSum" else 18
    positive = op == "ReduceLogSum"
    for axes in ((-1,), (0,), (1,), (0, 2), (1, 2), None):
        for keep in (0, 1):
            x = random(1, (3, 4, 300 if axes == (-1,) else 6))
            x = np.abs(x) if positive else x
            x = x[..., :20] if op == "ReduceProd" else x
            label = "%s_%s_%d" % (op, "all" if axes is None else "_".join(map(str, axes)), keep)
            yield Case(label, op, [("x", x), axes_of(axes)], ["y"], {"keepdims": keep}, opset=since, tolerance=(5e-5, 1e-5))
            old = {"keepdims": keep} if axes is None else {"keepdims": keep, "axes": list(axes)}
            yield Case(label + "_old", op, [("x", x)], ["y"], old, opset=11, tolerance=(5e-5, 1e-5))
    for dtype in ("f16", "bf16"):
        x = np.abs(random(2, (2, 3, 64), dtype)) if positive else random(2, (2, 3, 64), dtype, 0.5 if op == "ReduceProd" else 1.0)
        yield Case("%s_%s" % (op, dtype), op, [("x", x), axes_of((-1,))], ["y"], opset=since, dtype=dtype)


def integers():
    rng = np.random.default_rng(3)
    for dtype in (np.int64, np.int32):
        for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"):
            x = rng.integers(-9, 9, (2, 5, 7)).astype(dtype)
            since = 13 if op == "ReduceSum" else 18
            yield Case("%s_%s" % (op, np.dtype(dtype).name), op, [("x", x), axes_of((1,))], ["y"], opset=since,
                       expected=[integer_mean(x)] if op == "ReduceMean" else None)
    mask = np.ones((1, 700), np.int64)
    mask[0, :13] = 0
    yield Case("mask", "ReduceSum", [("x", mask), axes_of((1,))], ["y"], {"keepdims": 0}, opset=13)


def integer_mean(x):
    total = x.sum(1, keepdims=True)
    return (np.sign(total) * (np.abs(total) // x.shape[1])).astype(x.dtype)


def options():
    x = random(4, (2, 3, 4))
    empty = Const(np.zeros((0,), np.int64))
    yield Case("noop", "ReduceSum", [("x", x), empty], ["y"], {"noop_with_empty_axes": 1}, opset=13)
    yield Case("empty_all", "ReduceSum", [("x", x), empty], ["y"], opset=13)


def extremes():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 6, (3, 40, 5)).astype(np.float32)
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            for last in (0, 1):
                yield Case("%s_%d_%d" % (op, axis, last), op, [("x", x)], ["y"], {"axis": axis, "select_last_index": last, "keepdims": last}, opset=13)
        yield Case(op + "_old", op, [("x", x)], ["y"], {"axis": 1}, opset=11)
        yield Case(op + "_i64", op, [("x", x.astype(np.int64))], ["y"], {"axis": 1}, opset=13, oracle="onnx")


def cases():
    for op in FOLDS:
        yield from folds(op)
    yield from integers()
    yield from options()
    yield from extremes()
