"""ops_loss.py - cases for compiler/ops/loss.c; the ONNX reference evaluator computes them."""
import numpy as np

from op_models import TYPES, Case, Const, random


def loss(x, target, weight, reduction, ignored, dtype):
    """Per target, then reduced; in float64."""
    classes = x.shape[1]
    at = np.where(target == ignored, 0, target)
    weights = np.ones(classes) if weight is None else weight.astype(np.float64)
    w = np.where(target == ignored, 0, weights[at])
    each = -np.take_along_axis(x.astype(np.float64), at[:, None], 1)[:, 0] * w
    value = each if reduction == "none" else each.sum() if reduction == "sum" else each.sum() / w.sum()
    return np.asarray(value).astype(TYPES[dtype])


def cases():
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for shape in ((5, 4), (3, 7, 6), (2, 300, 3, 4)):
            for reduction in ("none", "sum", "mean"):
                for dtype in ("f32", "f16", "bf16"):
                    weighted, ignored = len(shape) > 2, 1 if len(shape) == 3 else None
                    x, weight = random(1, shape, dtype), np.abs(random(2, (shape[1],), dtype)) if weighted else None
                    target = np.random.default_rng(3).integers(0, shape[1], (shape[0], *shape[2:]))
                    scores = x.astype(np.float64)
                    if op[0] == "S":
                        scores = scores - np.log(np.exp(scores).sum(1, keepdims=True))
                    attrs = {"reduction": reduction, **({"ignore_index": ignored} if ignored is not None else {})}
                    name = "%s_%d_%s_%s" % (op[0].lower(), len(shape), reduction, dtype)
                    expected = [loss(scores, target, weight, reduction, ignored, dtype)]
                    outputs = ["loss"]
                    if op[0] == "S" and reduction == "mean":
                        outputs.append("log_prob")
                        expected.append(scores.astype(TYPES[dtype]))
                    yield Case(name, op, [("x", x), ("t", target)] + ([Const(weight)] if weighted else []), outputs, attrs, opset=22 if op[0] == "N" else 13,
                               dtype=dtype, expected=expected, tolerance=(1e-4, 1e-5) if dtype == "f32" else None)
