"""ops_flex_attention.py - cases for compiler/ops/flex_attention.c."""
import numpy as np
from onnx import TensorProto, helper

from op_models import Case, random

KINDS = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE}


def body(name, op, operand, kind=TensorProto.FLOAT):
    """A subgraph of one tensor: OP of it and a number."""
    shape = ["B", "H", "L", "S"]
    return helper.make_graph([helper.make_node(op, ["x", "number"], ["z"])], name, [helper.make_tensor_value_info("x", kind, shape)],
                             [helper.make_tensor_value_info("z", kind, shape)], [helper.make_tensor("number", kind, [], [operand])])


def flex(name, dtype="f32", batch=2, heads=4, kv_heads=4, rows=3, keys=5, head=16, vhead=8, **attrs):
    wide = dtype == "f64"
    inputs = [(n, random(seed, shape, "f32" if wide else dtype))
              for n, seed, shape in (("q", 1, (batch, heads, rows, head)), ("k", 2, (batch, kv_heads, keys, head)), ("v", 3, (batch, kv_heads, keys, vhead)))]
    inputs = [(n, x.astype(np.float64) if wide else x) for n, x in inputs]
    return Case("flex_" + name, "FlexAttention", inputs, ["y"], attrs, domain="ai.onnx.preview", opset=1, dtype="f32" if wide else dtype,
                tolerance=(1e-6, 1e-7) if wide else None, oracle="onnx")


def cases():
    for dtype in ("f32", "f16", "bf16", "f64"):
        yield flex("plain_" + dtype, dtype)
        yield flex("groups_" + dtype, dtype, heads=6, kv_heads=2)
    yield flex("one_row", rows=1, keys=70, batch=1, kv_heads=1)
    yield flex("scale", scale=0.3)
    yield flex("precision", "f16", softmax_precision=TensorProto.DOUBLE)
    yield flex("score", score_mod=body("s", "Mul", 0.5))
    yield flex("probability", prob_mod=body("p", "Add", 0.25))
    yield flex("both", heads=4, kv_heads=2, score_mod=body("s", "Max", 0.0), prob_mod=body("p", "Mul", 2.0))
