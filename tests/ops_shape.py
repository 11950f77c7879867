"""ops_shape.py - cases for compiler/ops/shape.c and fill.c."""
import numpy as np

from op_models import Case, Const, random

DTYPES = ("f32", "f16", "bf16")


def ints(*values):
    return np.array(values, np.int64)


def counted(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


def shapes():
    x = random(1, (2, 3, 5))
    yield Case("shape", "Shape", [("x", x)], ["y"])
    yield Case("shape_1", "Shape", [("x", x)], ["y"], opset=13)
    for start, end in ((0, 2), (1, None), (-2, None), (-5, -1), (2, 1), (0, 9)):
        attrs = {"start": start} if end is None else {"start": start, "end": end}
        yield Case("shape_%d_%s" % (start, end), "Shape", [("x", x)], ["y"], attrs)
    yield Case("size", "Size", [("x", x)], ["y"])


def reshapes(dtype):
    x = random(2, (2, 3, 4), dtype)
    for target in ((6, 4), (-1,), (0, -1), (2, -1, 2, 1), (0, 0, 2, 2), (24, 1), (4, 3, 2)):
        yield Case("reshape_%s_%s" % ("_".join(map(str, target)), dtype), "Reshape", [("x", x), Const(ints(*target))], ["y"], dtype=dtype)
    yield Case("reshape_5_" + dtype, "Reshape", [("x", x), Const(ints(0, -1))], ["y"], dtype=dtype, opset=9)
    for source, target in (((2, 4, 0), (1, 2, 0)), ((0, 3), (5, 0)), ((2, 0, 3), (0, 7))):  # of nothing, other extents need not agree
        yield Case("reshape_none_%s_%s" % ("_".join(map(str, target)), dtype), "Reshape", [("x", random(2, source, dtype)), Const(ints(*target))], ["y"],
                   {"allowzero": 1}, dtype=dtype)
    for axis in (0, 1, 2, 3, -1):
        yield Case("flatten_%d_%s" % (axis, dtype), "Flatten", [("x", x)], ["y"], {"axis": axis}, dtype=dtype)


def axes():
    x = random(3, (1, 3, 1, 5))
    yield Case("squeeze_all", "Squeeze", [("x", x)], ["y"])
    yield Case("squeeze_two", "Squeeze", [("x", x), Const(ints(0, -2))], ["y"])
    yield Case("squeeze_11", "Squeeze", [("x", x)], ["y"], {"axes": [2]}, opset=11)
    yield Case("unsqueeze", "Unsqueeze", [("x", x), Const(ints(0, -1, 3))], ["y"])
    yield Case("unsqueeze_11", "Unsqueeze", [("x", x)], ["y"], {"axes": [1]}, opset=11)
    yield Case("unsqueeze_scalar", "Unsqueeze", [("x", np.float32(4)), Const(ints(0))], ["y"])
    yield Case("identity", "Identity", [("x", x)], ["y"])
    yield Case("dropout", "Dropout", [("x", x)], ["y"])
    yield Case("dropout_10", "Dropout", [("x", x)], ["y"], {"ratio": 0.3}, opset=10)
    for opset, kind in ((7, np.float32), (10, bool), (13, bool)):
        yield Case("dropout_mask_%d" % opset, "Dropout", [("x", x)], ["y", "mask"], opset=opset, expected=[x, np.ones(x.shape, kind)])
    nothing = [Const(np.float32(0)), Const(np.array(True))]
    yield Case("dropout_training_ratio_0", "Dropout", [("x", x)] + nothing, ["y", "mask"], opset=13, expected=[x, np.ones(x.shape, bool)])


def transposes(dtype):
    x = random(4, (2, 3, 4, 5), dtype)
    yield Case("transpose_default_" + dtype, "Transpose", [("x", x)], ["y"], dtype=dtype)
    for perm in ((0, 2, 1, 3), (0, 1, 3, 2), (3, 0, 2, 1)):
        yield Case("transpose_%s_%s" % ("".join(map(str, perm)), dtype), "Transpose", [("x", x)], ["y"], {"perm": perm}, dtype=dtype)


def expands(dtype):
    x = random(5, (3, 1), dtype)
    for target in ((3, 4), (2, 3, 6), (3, 1), (1,), (2, 1, 1), (1, 1, 4)):
        yield Case("expand_%s_%s" % ("_".join(map(str, target)), dtype), "Expand", [("x", x), Const(ints(*target))], ["y"], dtype=dtype)
    yield Case("expand_scalar_" + dtype, "Expand", [("x", random(6, (), dtype)), Const(ints(2, 3))], ["y"], dtype=dtype)


def fills():
    from onnx import TensorProto, helper
    for number, value in ((1, 2.5), (7, -3), (9, 1), (10, 0.5), (6, 7), (2, 200)):
        tensor = helper.make_tensor("v", number, [1], [value])
        yield Case("fill_%d" % number, "ConstantOfShape", [Const(ints(2, 3))], ["y"], {"value": tensor},
                   expected=[np.full((2, 3), value, helper.tensor_dtype_to_np_dtype(number))])
    yield Case("fill_default", "ConstantOfShape", [Const(ints(3, 700))], ["y"])
    yield Case("fill_scalar", "ConstantOfShape", [Const(np.zeros(0, np.int64))], ["y"], expected=[np.float32(0)])
    big = helper.make_tensor("v", TensorProto.INT64, [1], [9])
    yield Case("fill_big", "ConstantOfShape", [Const(ints(50, 60))], ["y"], {"value": big})


def ranges():
    for start, limit, delta in ((0, 5, 1), (3, 20, 4), (10, 2, -3), (5, 5, 1), (0, 3000, 1), (2, 3005, 2)):
        if start == limit:
            continue
        parts = [Const(np.int64(v)) for v in (start, limit, delta)]
        yield Case("range_%d_%d_%d" % (start, limit, delta), "Range", parts, ["y"])
        parts = [Const(np.float32(v)) for v in (start, limit, delta)]
        yield Case("range_float_%d_%d_%d" % (start, limit, delta), "Range", parts, ["y"])
    yield Case("range_half_steps", "Range", [Const(np.float32(v)) for v in (0.5, 3.1, 0.5)], ["y"])


def contents():
    """Constants alone: computed when compiling."""
    x = counted(1, 2, 1, 3)
    yield Case("contents_reshape", "Reshape", [Const(x), Const(ints(3, -1))], ["y"])
    yield Case("contents_flatten", "Flatten", [Const(x)], ["y"], {"axis": 2})
    yield Case("contents_squeeze", "Squeeze", [Const(x)], ["y"])
    yield Case("contents_unsqueeze", "Unsqueeze", [Const(x), Const(ints(0))], ["y"])
    yield Case("contents_transpose", "Transpose", [Const(x)], ["y"], {"perm": [3, 0, 1, 2]})
    yield Case("contents_identity", "Identity", [Const(x)], ["y"])
    yield Case("contents_expand", "Expand", [Const(x), Const(ints(2, 1, 4, 1))], ["y"])


def cases():
    for dtype in DTYPES:
        yield from reshapes(dtype)
        yield from transposes(dtype)
        yield from expands(dtype)
    yield from shapes()
    yield from axes()
    yield from fills()
    yield from ranges()
    yield from contents()
