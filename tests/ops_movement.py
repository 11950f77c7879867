"""ops_movement.py - cases for compiler/ops/movement.c and gather.c."""
import numpy as np

from op_models import Case, Const, random

DTYPES = ("f32", "f16", "bf16")
LAST = 2 ** 63 - 1


def ints(*values):
    return np.array(values, np.int64)


def indices(seed, shape, count, dtype=np.int64):
    """From -count to count - 1."""
    return np.random.default_rng(seed).integers(-count, count, shape).astype(dtype)


def concats(dtype):
    parts = [("a", random(1, (2, 3, 4), dtype)), ("b", random(2, (2, 1, 4), dtype)), ("c", random(3, (2, 5, 4), dtype))]
    for axis in (1, -2):
        yield Case("concat_%d_%s" % (axis, dtype), "Concat", parts, ["y"], {"axis": axis}, dtype=dtype)
    same = [("a", random(4, (2, 3), dtype)), Const(random(5, (2, 3), dtype)), ("a", random(4, (2, 3), dtype))]
    for axis in (0, 1):
        yield Case("concat_same_%d_%s" % (axis, dtype), "Concat", same, ["y"], {"axis": axis}, dtype=dtype)
    yield Case("concat_one_" + dtype, "Concat", parts[:1], ["y"], {"axis": 0}, dtype=dtype)


SLICES = {"plain": ((1,), (3,), (0,), (1,)), "end": ((2,), (LAST,), (1,), None), "negative": ((-3,), (-1,), (-1,), (1,)),
          "clamped": ((-100,), (100,), (1,), (1,)), "step": ((1,), (100,), (1,), (3,)), "two": ((1, 0), (4, 2), (0, 2), (1, 1)),
          "reverse": ((LAST,), (-LAST,), (1,), (-1,)), "back_two": ((-2,), (-6,), (1,), (-2,)), "back_end": ((4,), (0,), (1,), (-1,)),
          "no_axes": ((1, 2), (3, 5), None, None), "last": ((-1,), (LAST,), (1,), (1,))}


def slices(dtype):
    x = random(6, (4, 7, 5), dtype)
    for name, (start, end, axes, steps) in SLICES.items():
        parts = [("x", x), Const(ints(*start)), Const(ints(*end)), Const(ints(*axes)) if axes else None, Const(ints(*steps)) if steps else None]
        yield Case("slice_%s_%s" % (name, dtype), "Slice", parts, ["y"], dtype=dtype)
    yield Case("slice_1_" + dtype, "Slice", [("x", x)], ["y"], {"starts": [1, -3], "ends": [3, LAST], "axes": [0, 1]}, dtype=dtype, opset=9)


def splits(dtype):
    x = random(7, (2, 6, 4), dtype)
    yield Case("split_sizes_" + dtype, "Split", [("x", x), Const(ints(1, 3, 2))], ["a", "b", "c"], {"axis": 1}, dtype=dtype)
    yield Case("split_equal_" + dtype, "Split", [("x", x)], ["a", "b"], {"axis": -1}, dtype=dtype, opset=13)
    yield Case("split_count_" + dtype, "Split", [("x", x)], ["a", "b", "c", "d"], {"axis": 1, "num_outputs": 4}, dtype=dtype)
    yield Case("split_2_" + dtype, "Split", [("x", x)], ["a", "b"], {"axis": 1, "split": [4, 2]}, dtype=dtype, opset=11)


def gathers(dtype):
    x = random(8, (4, 5, 6), dtype)
    for axis in (0, 1, -1):
        for name, shape in (("vector", (3,)), ("matrix", (2, 3))):
            i = indices(9, shape, x.shape[axis], np.int32 if axis else np.int64)
            yield Case("gather_%d_%s_%s" % (axis, name, dtype), "Gather", [("x", x), ("i", i)], ["y"], {"axis": axis}, dtype=dtype)
            yield Case("gather_const_%d_%s_%s" % (axis, name, dtype), "Gather", [("x", x), Const(i)], ["y"], {"axis": axis}, dtype=dtype)
        yield Case("gather_scalar_%d_%s" % (axis, dtype), "Gather", [("x", x), ("i", np.int64(-2))], ["y"], {"axis": axis}, dtype=dtype)
        for i in (2, -1):
            yield Case("gather_view_%d_%d_%s" % (axis, i, dtype), "Gather", [("x", x), Const(np.int64(i))], ["y"], {"axis": axis}, dtype=dtype)
            yield Case("gather_view_one_%d_%d_%s" % (axis, i, dtype), "Gather", [("x", x), Const(ints(i))], ["y"], {"axis": axis}, dtype=dtype)
        shape = [3, 2, 4]
        yield Case("gather_elements_%d_%s" % (axis, dtype), "GatherElements", [("x", x), ("i", indices(10, shape, x.shape[axis]))], ["y"],
                   {"axis": axis}, dtype=dtype)
    tuples = np.stack([indices(11, (3,), 4), indices(12, (3,), 5)], -1)
    yield Case("gather_nd_%s" % dtype, "GatherND", [("x", x), ("i", tuples)], ["y"], dtype=dtype)
    yield Case("gather_nd_11_%s" % dtype, "GatherND", [("x", x), ("i", tuples)], ["y"], dtype=dtype, opset=11)
    yield Case("gather_nd_full_%s" % dtype, "GatherND", [("x", x), ("i", np.concatenate([tuples, indices(13, (3, 1), 6)], -1))], ["y"], dtype=dtype)
    yield Case("gather_nd_batch_%s" % dtype, "GatherND", [("x", x), ("i", indices(14, (4, 2, 1), 5))], ["y"], {"batch_dims": 1}, dtype=dtype)
    yield Case("gather_nd_batch2_%s" % dtype, "GatherND", [("x", x), ("i", indices(15, (4, 5, 1), 6))], ["y"], {"batch_dims": 2}, dtype=dtype)


def scatters(dtype):
    x, updates = random(16, (4, 5, 6), dtype), random(17, (2, 6), dtype)
    yield Case("scatter_nd_" + dtype, "ScatterND", [("x", x), ("i", np.array([[1, 2], [-1, 0]], np.int64)), ("u", updates)], ["y"], dtype=dtype)
    for axis in (0, 2):
        i = np.stack([np.random.default_rng(18).permutation(x.shape[axis])[:2] for _ in range(3)]).astype(np.int64)
        i = i.T.reshape(2, 3, 1) if axis == 0 else i.reshape(1, 3, 2)
        yield Case("scatter_elements_%d_%s" % (axis, dtype), "ScatterElements", [("x", x), ("i", i), ("u", random(19, i.shape, dtype))], ["y"],
                   {"axis": axis}, dtype=dtype)


def others(dtype):
    x = random(20, (2, 1, 3), dtype)
    for repeats in ((1, 1, 1), (1, 4, 1), (2, 1, 2), (3, 2, 1)):
        yield Case("tile_%d%d%d_%s" % (*repeats, dtype), "Tile", [("x", x), Const(ints(*repeats))], ["y"], dtype=dtype)
    wide = random(21, (3, 6), dtype)
    pads = Const(ints(1, 2, 0, 3))
    yield Case("pad_" + dtype, "Pad", [("x", wide), pads], ["y"], dtype=dtype)
    yield Case("pad_value_" + dtype, "Pad", [("x", wide), pads, ("v", random(22, (), dtype))], ["y"], dtype=dtype)
    yield Case("pad_crop_" + dtype, "Pad", [("x", wide), Const(ints(-1, 2, 0, -1))], ["y"], dtype=dtype)
    yield Case("pad_axes_" + dtype, "Pad", [("x", wide), Const(ints(1, 1)), None, Const(ints(-1))], ["y"], dtype=dtype)
    for mode in ("edge", "reflect", "wrap"):
        yield Case("pad_%s_%s" % (mode, dtype), "Pad", [("x", wide), pads], ["y"], {"mode": mode}, dtype=dtype)
    yield Case("pad_2_" + dtype, "Pad", [("x", wide)], ["y"], {"pads": [0, 1, 2, 0], "value": 1.5}, dtype=dtype, opset=10)
    for upper in (0, 1):
        for k in (None, 0, 2, -1):
            yield Case("trilu_%d_%s_%s" % (upper, k, dtype), "Trilu", [("x", random(23, (2, 5, 4), dtype)), None if k is None else Const(np.int64(k))],
                       ["y"], {"upper": upper}, dtype=dtype, oracle="reference")


def integers():
    """Movement of other element types."""
    for t in (np.int64, np.int32, np.uint8, bool, np.int8, np.uint64, np.float64):
        name, x = np.dtype(t).name, np.arange(12).reshape(3, 4).astype(t)
        yield Case("concat_" + name, "Concat", [("a", x), ("b", x[:1])], ["y"], {"axis": 0}, expected=[np.concatenate([x, x[:1]])])
        yield Case("gather_" + name, "Gather", [("x", x), ("i", ints(2, -3))], ["y"], expected=[x[[2, -3]]])


def contents():
    """Constants alone: computed when compiling."""
    x = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    yield Case("contents_concat", "Concat", [Const(x), Const(x[:, :1])], ["y"], {"axis": 1})
    yield Case("contents_slice", "Slice", [Const(x), Const(ints(-1, 1)), Const(ints(-LAST, LAST)), Const(ints(2, 0)), Const(ints(-2, 1))], ["y"])
    yield Case("contents_split", "Split", [Const(x), Const(ints(1, 3))], ["a", "b"], {"axis": 2})
    for axis in (0, 1, 2):
        yield Case("contents_gather_%d" % axis, "Gather", [Const(x), Const(np.array([[1, -2]], np.int64))], ["y"], {"axis": axis})
    yield Case("contents_gather_scalar", "Gather", [Const(ints(4, 5, 6)), Const(np.int64(-1))], ["y"])


def cases():
    for dtype in DTYPES:
        yield from concats(dtype)
        yield from slices(dtype)
        yield from splits(dtype)
        yield from gathers(dtype)
        yield from scatters(dtype)
        yield from others(dtype)
    yield from integers()
    yield from contents()
