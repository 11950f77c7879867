"""ops_conv.py - cases for compiler/ops/conv.c; onnxruntime computes them."""
from op_models import Case, Const, random


def conv(name, shape, weight, bias=True, dtype="f32", opset=22, **attrs):
    w = random(2, weight, dtype, 0.3)
    return Case(name, "Conv", [("x", random(1, shape, dtype)), Const(w), Const(random(3, weight[:1], dtype)) if bias else None], ["y"], attrs,
                opset=opset, dtype=dtype, tolerance=(1e-4, 1e-5) if dtype == "f32" else None)


def cases():
    for dtype in ("f32", "f16", "bf16"):
        yield conv("line_" + dtype, (2, 6, 20), (4, 6, 3), dtype=dtype)
        yield conv("depthwise_" + dtype, (1, 24, 9), (24, 1, 4), False, dtype, group=24, pads=[0, 0], strides=[1], kernel_shape=[4])
        yield conv("plane_" + dtype, (1, 3, 10, 12), (8, 3, 3, 3), dtype=dtype, pads=[1, 1, 1, 1], strides=[2, 2])
    for opset in (7, 11, 22):
        yield conv("opset_%d" % opset, (1, 4, 9, 7), (6, 2, 3, 2), opset=opset, group=2, pads=[1, 0, 2, 1], dilations=[2, 1], strides=[1, 2])
    yield conv("space", (1, 2, 5, 6, 7), (3, 2, 2, 3, 2), pads=[0, 1, 0, 1, 1, 1], strides=[1, 2, 1])
    yield conv("causal", (1, 8, 11), (8, 1, 4), group=8, pads=[3, 0])
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        yield conv("line_" + pad, (1, 3, 11), (4, 3, 4), auto_pad=pad, strides=[2])
        yield conv("plane_" + pad, (1, 3, 8, 9), (4, 3, 3, 2), auto_pad=pad)
    yield conv("point", (1, 16, 4, 4), (8, 16, 1, 1), False)
    yield conv("patches", (1, 3, 16, 16), (10, 3, 4, 4), strides=[4, 4])
