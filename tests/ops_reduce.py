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


BIG = np.array([[5, 2 ** 63 + 9, 7, 2 ** 63 + 4], [2 ** 64 - 1, 3, 2 ** 63, 1]], np.uint64)


def limits():
    """Nothing is folded: the type's least or greatest value. Values of u64 above those of i64."""
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        for op, value in (("ReduceMax", least), ("ReduceMin", most)):
            yield Case("%s_empty_%s" % (op, np.dtype(kind).name), op, [("x", np.zeros((2, 0, 3), kind)), axes_of((1,))], ["y"], opset=20,
                       expected=[np.full((2, 1, 3), value, kind)])
    for op, value in (("ReduceMax", -np.inf), ("ReduceMin", np.inf)):
        yield Case(op + "_empty_f32", op, [("x", np.zeros((2, 0), np.float32)), axes_of((1,))], ["y"], opset=20, expected=[np.full((2, 1), value, np.float32)])
    for op, fold in (("ReduceMax", np.max), ("ReduceMin", np.min), ("ReduceL1", np.sum), ("ReduceSum", np.sum)):
        yield Case(op + "_above_i64", op, [("x", BIG), axes_of((1,))], ["y"], opset=20, expected=[fold(BIG, axis=1, keepdims=True, dtype=np.uint64)
                   if fold is np.sum else fold(BIG, axis=1, keepdims=True)])
    for op, place in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        yield Case(op + "_above_i64", op, [("x", BIG)], ["y"], {"axis": 1}, opset=13, expected=[place(BIG, axis=1)[:, None]])


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
    yield from limits()
    yield from options()
    yield from extremes()
