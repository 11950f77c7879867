"""ops_rnn.py - cases for compiler/ops/rnn.c. onnxruntime computes what it takes (f32, layout 0); the reference evaluator lacks most."""
import numpy as np

from op_models import Case, Const, random

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def cell(name, op, seed=0, steps=5, batch=3, width=4, hidden=6, direction="forward", bias=True, lengths=None, first=False, peephole=False,
         dtype="f32", opset=14, outputs=None, tolerance=None, **attrs):
    count, rows = 2 if direction == "bidirectional" else 1, GATES[op] * hidden
    make = lambda k, shape: random(seed + k, shape, dtype, 0.5)
    inputs = [("x", make(0, (steps, batch, width))), Const(make(1, (count, rows, width))), Const(make(2, (count, rows, hidden))),
              Const(make(3, (count, 2 * rows))) if bias else None, ("lengths", np.asarray(lengths, np.int32)) if lengths else None,
              ("h", make(4, (count, batch, hidden))) if first else None]
    if op == "LSTM":
        inputs += [("c", make(5, (count, batch, hidden))) if first else None, Const(make(6, (count, 3 * hidden))) if peephole else None]
    outputs = outputs or (["y", "y_h", "y_c"] if op == "LSTM" else ["y", "y_h"])
    return Case(name, op, inputs, outputs, {"hidden_size": hidden, "direction": direction, **attrs}, opset=opset, dtype=dtype,
                tolerance=tolerance or ((1e-4, 1e-5) if dtype == "f32" else None))


def cases():
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            name = "%s_%s" % (op.lower(), direction)
            yield cell(name, op, direction=direction)
            yield cell(name + "_first", op, seed=10, direction=direction, first=True, bias=False)
            yield cell(name + "_lengths", op, seed=20, direction=direction, lengths=[5, 2, 3], first=True)
        yield cell(op.lower() + "_one", op, steps=1, batch=1, width=1, hidden=1)
        yield cell(op.lower() + "_wide", op, seed=30, batch=2, width=70, hidden=150)
        yield cell(op.lower() + "_clip", op, seed=40, clip=0.3)
        yield cell(op.lower() + "_last", op, seed=50, outputs=["", "y_h"], opset=7)
        for dtype in ("f16", "bf16"):
            yield cell("%s_%s" % (op.lower(), dtype), op, seed=60, dtype=dtype, opset=22)
    for number, names in enumerate((["Relu"], ["Sigmoid"], ["Affine"], ["LeakyRelu"], ["ThresholdedRelu"], ["ScaledTanh"], ["HardSigmoid"],
                                    ["Elu"], ["Softsign"], ["Softplus"])):
        extra = {"activation_alpha": [0.7]} if names[0] in ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu") else {}
        if names[0] in ("Affine", "ScaledTanh", "HardSigmoid"):
            extra["activation_beta"] = [0.4]
        yield cell("rnn_" + names[0].lower(), "RNN", seed=70 + number, activations=names, **extra)
    yield cell("rnn_two", "RNN", seed=90, direction="bidirectional", activations=["Relu", "Tanh"])
    yield cell("gru_after", "GRU", seed=91, linear_before_reset=1)
    yield cell("gru_after_two", "GRU", seed=92, linear_before_reset=1, direction="bidirectional", lengths=[1, 5, 4])
    yield cell("gru_words", "GRU", seed=93, activations=["HardSigmoid", "Softsign"])
    yield cell("lstm_peephole", "LSTM", seed=94, peephole=True, first=True)
    yield cell("lstm_peephole_two", "LSTM", seed=95, peephole=True, direction="bidirectional")
    yield cell("lstm_coupled", "LSTM", seed=96, input_forget=1)
    yield cell("lstm_words", "LSTM", seed=97, activations=["Sigmoid", "Relu", "Tanh"])
