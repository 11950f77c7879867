"""ops_rows.py - chains of nodes that one kernel of rows computes (passes/fuse_rows.c): folds and norms of the last axis with
elementwise nodes before and behind. tests/passes/fuse.txt says how many launches they are."""
import numpy as np
from onnx import TensorProto

from op_models import Case, Const, random

LAST = Const(np.array([-1]))
TINY = Const(np.float32(1e-3))


def l2(name, fold, shape, keep=("y",)):
    """x / sqrt(fold(x) + small)"""
    tail = [("Add", ["first", "const_2"], "s", {}), ("Sqrt", ["s"], "root", {}), ("Div", ["x", "root"], "y", {})]
    return Case(name, fold, [("x", random(1, shape)), LAST, TINY], list(keep), opset=18, tail=tail, own=2)


def softmax(shape):
    tail = [("Sub", ["x", "first"], "d", {}), ("Exp", ["d"], "e", {}), ("ReduceSum", ["e", "const_1"], "s", {}), ("Div", ["e", "s"], "y", {})]
    return Case("softmax_%d" % shape[-1], "ReduceMax", [("x", random(2, shape)), LAST], ["y"], tail=tail, opset=18)


def layer(shape, keep=("y",)):
    tail = [("Sub", ["x", "first"], "d", {}), ("Mul", ["d", "d"], "q", {}), ("ReduceMean", ["q", "const_1"], "v", {}),
            ("Add", ["v", "const_2"], "w", {}), ("Sqrt", ["w"], "r", {}), ("Div", ["d", "r"], "n", {}), ("Mul", ["n", "const_3"], "y", {})]
    return Case("layer_%s" % "_".join(keep), "ReduceMean", [("x", random(3, shape)), LAST, TINY, Const(random(4, shape[-1:]))], list(keep),
                opset=18, tail=tail, own=2)


def gated(shape, norm, **attrs):
    """norm(x) * silu(cast(z)), the statistics behind a double too."""
    tail = [("Cast", ["z"], "zc", {"to": TensorProto.FLOAT}), ("Sigmoid", ["zc"], "g", {}), ("Mul", ["zc", "g"], "silu", {}),
            ("Cast", ["first"], "nc", {"to": TensorProto.DOUBLE}), ("Cast", ["silu"], "sc", {"to": TensorProto.DOUBLE}), ("Mul", ["nc", "sc"], "p", {}),
            ("Cast", ["p"], "y", {"to": TensorProto.FLOAT})]
    label = "gated_%s_%s" % (norm, "_".join(map(str, shape)))
    return Case(label, norm, [("x", random(5, shape)), Const(random(6, shape[-1:])), ("z", random(7, shape))], ["y"], attrs,
                opset=23 if norm == "RMSNormalization" else 17, tail=tail, own=2)


def wide_axis():
    """A norm over two axes, whose own result is asked for too."""
    return Case("two_axes", "LayerNormalization", [("x", random(8, (4, 3, 65))), Const(random(9, (3, 65))), ("z", random(10, (4, 1, 65)))],
                ["first", "y"], {"axis": 1}, opset=17, tail=[("Add", ["z", "first"], "y", {})], own=2)


def before():
    """-sum(exp(x) * z), and the sum itself."""
    tail = [("Mul", ["first", "z"], "m", {}), ("ReduceSum", ["m", "const_2"], "s", {}), ("Neg", ["s"], "w", {})]
    return Case("before", "Exp", [("x", random(11, (2, 5, 33))), ("z", random(12, (2, 1, 33))), LAST], ["s", "w"], opset=13,
                tail=tail, own=1)


def cases():
    yield l2("l2", "ReduceSumSquare", (4, 3, 70))
    yield l2("l2_root_too", "ReduceSumSquare", (4, 3, 70), ("y", "root"))
    yield l2("l2_all", "ReduceL2", (2, 300), ("first", "root", "y"))
    yield l2("l1", "ReduceL1", (2, 1, 5000))
    yield softmax((3, 2, 300))
    yield softmax((3, 2, 9000))
    yield layer((3, 2, 40))
    yield layer((3, 2, 40), ("y", "first", "d"))
    yield gated((4, 3, 64), "RMSNormalization")
    yield gated((4, 2048), "RMSNormalization")
    yield gated((4, 3, 66), "LayerNormalization")
    yield wide_axis()
    yield before()
