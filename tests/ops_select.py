"""ops_select.py - cases for compiler/ops/select.c."""
import numpy as np

from op_models import TYPES, Case, Const, random


def top(x, k, axis, largest):
    """Stable; numpy's own sort of the widened numbers."""
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x.astype(object)
    order = np.argsort(-wide if largest else wide, axis=axis, kind="stable")
    order = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int64)]


def top_case(name, x, k, axis=-1, largest=1, opset=24, ort=False, dtype="f32"):
    attrs = {"axis": axis}
    if opset >= 11:
        attrs["largest"] = largest
    if opset < 10:
        attrs["k"] = k
    inputs = [("x", x)] + ([Const(np.array([k], np.int64))] if opset >= 10 else [])
    return Case(name, "TopK", inputs, ["values", "indices"], attrs, opset=opset, dtype=dtype,
                expected=None if ort else top(x, k, axis, largest))


def tops():
    ties = np.random.default_rng(1).integers(-4, 5, (3, 5, 40))
    for largest in (0, 1):
        for axis in (-1, 0, 1):
            for opset in (11, 24):
                yield top_case("top_ort_%d_axis%d_%d" % (largest, axis, opset), random(2, (3, 5, 40)), 2, axis, largest, opset, ort=opset < 24)
            yield top_case("top_ties_%d_axis%d" % (largest, axis), ties.astype(np.float32), 3, axis, largest)
        for dtype in (np.int64, np.int32, np.int8):
            yield top_case("top_%s_%d" % (np.dtype(dtype).name, largest), ties.astype(dtype), 7, -1, largest)
        big = np.array([[2**63 + 5, 7, 2**64 - 1, 0]], np.uint64)
        yield top_case("top_uint64_%d" % largest, big, 3, -1, largest)
        for dtype in ("f16", "bf16"):
            yield top_case("top_%s_%d" % (dtype, largest), random(3, (4, 33), dtype), 5, -1, largest, dtype=dtype)
        yield top_case("top_long_%d" % largest, np.round(random(4, (2, 3000)), 1), 50, -1, largest)
        yield top_case("top_long_axis0_%d" % largest, np.round(random(5, (1100, 3)), 1), 4, 0, largest)
    yield top_case("top_all", random(6, (2, 17)), 17)
    yield top_case("top_1", random(7, (2, 17)), 3, opset=9, ort=True)
    yield top_case("top_10", random(7, (2, 17)), 3, opset=10, ort=True)
    x = np.array([[1, np.nan, 3, np.nan, 2]], np.float32)
    yield Case("top_nan", "TopK", [("x", x), Const(np.array([3], np.int64))], ["values", "indices"],
               expected=[np.array([[np.nan, np.nan, 3]], np.float32), np.array([[1, 3, 2]], np.int64)])


def one_hots():
    values = np.array([-1.5, 2.5], np.float32)
    places = np.array([[0, 3, -1], [5, -6, 9]], np.int64)
    for axis in (-1, 0, 1):
        for opset in (9, 11):
            yield Case("one_hot_axis%d_%d" % (axis, opset), "OneHot", [("x", places), Const(np.array([6], np.int64)), Const(values)], ["y"],
                       {"axis": axis}, opset=opset)
    yield Case("one_hot_scalar", "OneHot", [("x", places), Const(np.array(4, np.int64)), ("v", values)], ["y"], opset=11)
    yield Case("one_hot_float", "OneHot", [("x", np.array([1, 0, 2], np.float32)), Const(np.array(3, np.float32)), Const(values)], ["y"],
               opset=11)
    yield Case("one_hot_integers", "OneHot", [("x", places), Const(np.array(6, np.int64)), Const(np.array([0, 1], np.int64))], ["y"], opset=11)
    yield Case("one_hot_half", "OneHot", [("x", np.array([1, 0], np.int32)), Const(np.array(3, np.int32)), Const(values.astype(TYPES["f16"]))],
               ["y"], opset=11, dtype="f16", expected=[np.array([[-1.5, 2.5, -1.5], [2.5, -1.5, -1.5]], np.float16)])


def cases():
    yield from tops()
    yield from one_hots()
