"""onerow_gates.py - rows that elementwise nodes make of other values, a gate behind an attention say, in the kernel of the products that alone read
them (compiler/ops/gemv_row.c), and what elementwise nodes read where it lies although no view can say so (lower_set_apart). Expected values by
onnxruntime in float32 from the same rounded inputs and weights, or by numpy, rounded behind each node."""
import functools

import numpy as np

from op_models import TYPES, Graph, random
from onerow_products import product

JOINED, APART = {"gemv": 1, "launches": 1}, {"gemv": 1, "pointwise": 1, "launches": 2}
SHORT = {"f16": 10, "bf16": 16}


def model(name, dtype, kernels, **more):
    return Graph("%s_%s" % (name, dtype), dtype, kernels, tolerance=None if dtype == "f16" else (2e-2, 2e-2), **more)


def reshaped(g, x, *shape):
    return g.node("Reshape", [x, g.constant(np.array(shape))])


def halves(g, form, heads, head, rows=1):
    """What is gated, and the gate, of one input: each head's side by side (interleaved), or all of one before all of the other. As rows."""
    both = g.input("both", random(2, (1, rows, 2 * heads * head), g.dtype))
    if form == "interleaved":
        parts = g.node("Split", [reshaped(g, both, 0, 0, heads, 2 * head)], 2, axis=-1, num_outputs=2)
        return [reshaped(g, part, 0, 0, heads * head) for part in parts]
    if form == "sliced":
        apart = reshaped(g, both, 0, 0, heads, 2 * head)
        parts = [g.node("Slice", [apart, *[g.constant(np.array([v])) for v in (i * head, (i + 1) * head, 3)]]) for i in range(2)]
        return [reshaped(g, part, 0, 0, heads * head) for part in parts]
    return g.node("Split", [both], 2, axis=-1, num_outputs=2)


def sigmoid(g, x):
    return g.node("Sigmoid", [x])


ACTIVATIONS = {
    "relu": lambda g, x: g.node("Relu", [x]), "tanh": lambda g, x: g.node("Tanh", [x]), "silu": lambda g, x: g.node("Mul", [x, sigmoid(g, x)]),
    "gelu": lambda g, x: g.node("Gelu", [x]), "none": lambda g, x: x,
    "scaled": lambda g, x: g.node("Mul", [sigmoid(g, g.node("Add", [x, g.constant(np.asarray(0.5).astype(TYPES[g.dtype]))])), g.weight((1,))]),
}


def gate(name, dtype, kernels, heads, head, kind="nbits32z", form="interleaved", act=sigmoid, rows=1, products=(40,)):
    """x * act(the second half); the first half is of no use."""
    g = model(name, dtype, kernels)
    x = g.input("x", random(1, (1, rows, heads * head), dtype))
    g.row = g.node("Mul", [x, act(g, halves(g, form, heads, head, rows)[1])])
    kinds = kind.split()
    return g.output(*[product(g, kinds[i % len(kinds)], g.row, heads * head, n) for i, n in enumerate(products)])


def gates(dtype):
    for form in ("interleaved", "sliced", "contiguous"):
        for kind in ("plain", "nbits32z"):
            yield gate("%s_%s" % (form, kind), dtype, JOINED, 5, 32, kind, form)
    for heads, head in ((16, 256), (3, 64), (8, 20), (32, 5), (24, 12), (4, 136), (1, 160)):
        yield gate("size_%d_%d" % (heads, head), dtype, JOINED, heads, head)
    for name, act in ACTIVATIONS.items():
        yield gate("act_" + name, dtype, JOINED, 5, 32, act=act)
    yield gate("long", dtype, JOINED, 48, 256)
    yield gate("too_long", dtype, APART, 49, 256)  # a launch costs less than to make the row in every block
    yield gate("too_many", dtype, APART, 48, 256, act=ACTIVATIONS["silu"])
    yield gate("many_units", dtype, JOINED, 2, 32, products=(6433,))
    yield gate("three", dtype, JOINED, 5, 32, products=(33, 16, 7))
    yield gate("side", dtype, JOINED, 5, 32, "nbits32z plain", products=(64, 1))
    yield gate("two_kinds", dtype, {"gemv": 2, "pointwise": 1, "launches": 3}, 5, 32, "nbits32z plain", products=(33, 33))  # each kernel would make the row
    yield gate("rows", dtype, {"gemv": 0, "pointwise": 1, "copy": 0}, 5, 32, rows=3)  # the gate is read where it lies all the same


def others(dtype):
    for form, heads, head in (("interleaved", 5, 32), ("contiguous", 5, 32), ("interleaved", 8, 20)):  # both operands
        g = model("both_%s_%d" % (form, head), dtype, JOINED)
        x, z = halves(g, form, heads, head)
        yield g.output(product(g, "nbits32z", g.node("Mul", [x, sigmoid(g, z)]), 160, 33))
    g = model("by_heads", dtype, JOINED)  # the node has an axis for the heads, with a number for each, and one for each element of all
    z = g.node("Split", [g.input("z", random(2, (1, 1, 5, 64), dtype))], 2, axis=-1, num_outputs=2)[1]
    y = g.node("Mul", [reshaped(g, g.input("x", random(1, (1, 1, 160), dtype)), 0, 0, 5, 32), sigmoid(g, z)])
    y = g.node("Add", [g.node("Mul", [y, g.input("h", random(3, (1, 1, 5, 1), dtype))]), g.weight((32,))])
    yield g.output(product(g, "nbits32z", reshaped(g, y, 0, 0, -1), 160, 33))
    g = model("transposed", dtype, JOINED)  # as behind an attention whose axis of heads stands before that of tokens
    y = g.node("Transpose", [g.input("x", random(1, (1, 5, 1, 32), dtype))], perm=[0, 2, 1, 3])
    yield g.output(product(g, "plain", g.node("Mul", [reshaped(g, y, 0, 0, -1), g.input("z", random(2, (1, 1, 160), dtype))]), 160, 33))
    for rank in (1, 2, 4):
        g = model("rank_%d" % rank, dtype, JOINED)
        shape = (1,) * (rank - 1) + (160,)
        yield g.output(product(g, "nbits32", g.node("Mul", [g.input("x", random(1, shape, dtype)), g.input("z", random(2, shape, dtype))]), 160, 33))
    g = model("unaligned", dtype, JOINED)
    parts = g.node("Split", [g.input("both", random(2, (1, 1, 324), dtype)), g.constant(np.array([4, 160, 160]))], 3, axis=-1)
    yield g.output(product(g, "nbits32z", g.node("Mul", [parts[1], sigmoid(g, parts[2])]), 160, 33))
    g = model("six_operands", dtype, JOINED)  # more than are held in vectors
    g.tolerance = (2e-2, 2e-2)
    y = g.input("x0", random(10, (1, 1, 160), dtype))
    for i in range(1, 6):
        y = g.node("Add" if i % 2 else "Mul", [y, g.input("x%d" % i, random(10 + i, (1, 1, 160), dtype))])
    yield g.output(product(g, "nbits32z", y, 160, 33))
    g = model("nine_operands", dtype, APART)
    g.tolerance = (2e-2, 2e-2)
    x = [g.input("x%d" % i, random(10 + i, (1, 1, 160), dtype, 0.5)) for i in range(9)]
    yield g.output(product(g, "nbits32z", functools.reduce(lambda a, b: g.node("Add", [a, b]), x), 160, 33))
    g = model("state", dtype, {"gemv": 1, "pointwise": 2})  # the step may write it before the product is made
    x, past = g.input("x", random(1, (1, 1, 160), dtype)), g.input("past_key_values.0.conv_state", random(2, (1, 1, 160), dtype))
    g.node("Add", [x, past], ["present.0.conv_state"])
    yield g.output(product(g, "nbits32z", g.node("Mul", [x, past]), 160, 33), "present.0.conv_state")
    g = model("residual", dtype, JOINED)  # the epilogue reads what the row is made of
    x = g.input("x", random(1, (1, 1, 160), dtype))
    yield g.output(g.node("Add", [product(g, "nbits32z", g.node("Mul", [x, g.input("z", random(2, (1, 1, 160), dtype))]), 160, 160), x]))


def shown(dtype):
    """Somebody else reads the row, or what is read apart."""
    g = gate("shown", dtype, APART, 5, 32)
    yield g.output(g.row)
    g = gate("read", dtype, {"gemv": 1, "pointwise": 1, "launches": 3}, 5, 32)
    yield g.output(g.node("Softmax", [g.row]))
    g = gate("in_epilogue", dtype, APART, 5, 32, products=())
    yield g.output(g.node("Add", [product(g, "nbits32z", g.row, 160, 160), g.row]))
    g = model("copied", dtype, {"copy": 1, "gemv": 1, "launches": 3})  # not only by elementwise nodes
    x = g.input("x", random(1, (1, 1, 160), dtype))
    z = halves(g, "interleaved", 5, 32)[1]
    yield g.output(product(g, "nbits32z", g.node("Mul", [x, sigmoid(g, z)]), 160, 33), g.node("Softmax", [z]))
    g = model("scattered", dtype, {"copy": 1, "gemv": 1, "launches": 2})  # its runs are of one element
    y = g.node("Transpose", [g.input("x", random(1, (1, 32, 1, 5), dtype))], perm=[0, 2, 3, 1])
    yield g.output(product(g, "nbits32z", g.node("Mul", [reshaped(g, y, 0, 0, -1), g.input("z", random(2, (1, 1, 160), dtype))]), 160, 33))
    g = model("copied_state", dtype, {"copy": 2, "gemv": 1})  # the step may write it; one copy is that of the new state
    x, past = g.input("x", random(1, (1, 1, 160), dtype)), g.input("past_key_values.0.conv_state", random(2, (1, 1, 5, 64), dtype))
    z = reshaped(g, g.node("Split", [past], 2, axis=-1, num_outputs=2)[1], 0, 0, -1)
    g.node("Add", [past, past], ["present.0.conv_state"])
    yield g.output(product(g, "nbits32z", g.node("Mul", [x, z]), 160, 33), "present.0.conv_state")
    g = model("copied_row", dtype, {"copy": 1, "gemv": 1, "launches": 2})  # the product reads it itself
    yield g.output(product(g, "nbits32z", halves(g, "interleaved", 5, 32)[1], 160, 33))
    g = model("in_a_sum", dtype, {"copy": 0, "gemv": 1, "launches": 1})  # it is the epilogue's
    z = halves(g, "interleaved", 5, 32)[1]
    yield g.output(g.node("Add", [product(g, "nbits32z", g.input("x", random(1, (1, 1, 96), dtype)), 96, 160), z]))


def wide(dtype):
    """A gate, and a row, of float32. The oracle's is float32 anyway."""
    def graph(whole, cast):
        g = model("wide_%s" % ("row" if whole else "gate"), dtype, JOINED)
        narrow = (lambda x: g.node("Cast", [x], to=SHORT[dtype])) if cast else lambda x: g.node("Identity", [x])
        z = g.node("Split", [g.input("z", random(2, (1, 1, 5, 64)))], 2, axis=-1, num_outputs=2)[1]
        z = sigmoid(g, reshaped(g, z, 0, 0, 160))
        if whole:
            row = narrow(g.node("Mul", [g.input("x", random(1, (1, 1, 160))), z]))
        else:
            row = g.node("Mul", [g.input("x", random(1, (1, 1, 160), dtype)), narrow(z)])
        return g.output(product(g, "nbits32z", row, 160, 33))
    for whole in (False, True):
        g = graph(whole, True)
        g.oracle_graph = graph(whole, False)
        yield g


def rounded(dtype):
    """Exactly: the matrix is that of identity, and each node's result is rounded."""
    t, k = TYPES[dtype], 160
    for form in ("interleaved", "contiguous"):
        g = model("rounded_" + form, dtype, JOINED)
        g.tolerance = (0, 0)
        x, z = halves(g, form, 5, 32)
        identity = g.node("Transpose", [g.constant(np.eye(k).astype(t))], perm=[1, 0])
        g.node("MatMul", [g.node("Add", [g.node("Mul", [g.node("Mul", [x, z]), z]), x]), identity], ["y"])
        both = random(2, (1, 1, 2 * k), dtype)
        a, b = (part.reshape(1, 1, k) for part in np.split(both.reshape(1, 1, *((5, 64) if form == "interleaved" else (2 * k,))), 2, axis=-1))
        g.expected = [((a * b).astype(t) * b).astype(t) + a]
        yield g.output("y")


def cases():
    for dtype in ("f16", "bf16"):
        yield from gates(dtype)
        yield from others(dtype)
        yield from shown(dtype)
        yield from wide(dtype)
        yield from rounded(dtype)
