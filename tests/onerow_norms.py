"""onerow_norms.py - the norm that the kernel for products of one row begins with, and when it stays a launch (compiler/ops/gemv.c,
passes/fuse.c). Expected values by onnxruntime in float32 from the same rounded inputs and weights."""
import numpy as np

from op_models import Graph, random
from onerow_products import gated, kinds_of, product

MS = "com.microsoft"
JOINED, APART = {"norm": 0, "gemv": 1, "launches": 1}, {"norm": 1, "gemv": 1, "launches": 2}
K = 160


class Norm(Graph):
    """The norm's input is x, its result y."""

    def __init__(self, name, dtype, kernels, kind="rms", shape=(1, 1, K), k=K, **attrs):
        super().__init__("%s_%s" % (name, dtype), dtype, kernels, tolerance=None if dtype == "f16" else (2e-2, 2e-2))
        self.kind, self.k = kinds_of(dtype)[0], k
        self.input("x", random(1, shape, dtype))
        self.scale = self.weight((k,))
        attrs.setdefault("epsilon", 1e-5)
        if kind == "rms":
            self.y = self.node("RMSNormalization", ["x", self.scale], **attrs)
        elif kind == "simplified":
            self.y = self.node("SimplifiedLayerNormalization", ["x", self.scale], **attrs)
        elif kind == "layer":
            self.y = self.node("LayerNormalization", ["x", self.scale, self.weight((k,))], **attrs)

    def skip(self, outputs, op="SkipSimplifiedLayerNormalization", shape=None, more=(), x="x"):
        """A norm of X + skip; its sum is named "sum"."""
        self.input("skip", random(2, shape or (1, 1, self.k), self.dtype))
        made = self.node(op, [x, "skip", self.scale, *more], outputs, MS, epsilon=1e-5)
        self.y = made[0] if isinstance(made, list) else made
        return self

    def product(self, n, kind=None, x=None, k=None):
        return product(self, kind or self.kind, x or self.y, k or self.k, n)


SUM = ["normed", "", "", "sum"]


def taken(dtype):
    for kind in ("rms", "simplified"):
        g = Norm("one_" + kind, dtype, JOINED, kind)
        yield g.output(g.product(33))
        g = Norm("three_" + kind, dtype, JOINED, kind)
        yield g.output(g.product(33), g.product(16), g.product(7))
    for k in (32, 96, 288, 2688, 4864):
        g = Norm("columns_%d" % k, dtype, JOINED, shape=(1, 1, k), k=k)
        yield g.output(g.product(40), g.product(9))
    g = Norm("many_units", dtype, JOINED, shape=(1, 1, 64), k=64)
    yield g.output(g.product(6433), g.product(33))
    for shape in ((K,), (1, K), (1, 1, 1, K)):
        g = Norm("rank_%d" % len(shape), dtype, JOINED, shape=shape)
        yield g.output(product(g, "nbits32", g.y, K, 33))
    g = Norm("six", dtype, JOINED)
    yield g.output(*[g.product(n) for n in (1, 15, 17, 33, 40, 5)])
    g = Norm("positive_axis", dtype, JOINED, axis=2)
    yield g.output(g.product(33))
    g = Norm("epsilon", dtype, JOINED, epsilon=0.5)
    yield g.output(g.product(33))
    g = Norm("gate", dtype, JOINED)
    gate = g.product(33)
    yield g.output(g.node("Mul", [g.node("Mul", [gate, g.node("Sigmoid", [gate])]), g.product(33)]))
    g = Norm("residual", dtype, JOINED)  # the epilogue reads the norm's input
    yield g.output(g.node("Add", ["x", g.product(K)]))
    g = Norm("skip", dtype, JOINED, None).skip(1)
    yield g.output(g.product(33), g.product(20))
    g = Norm("skip_shown", dtype, JOINED, None).skip(SUM)
    yield g.output(g.product(33), "sum")
    g = Norm("skip_later", dtype, {"norm": 0, "gemv": 2, "launches": 2}, None).skip(SUM)  # added to what the next product makes
    gate = g.product(96)
    hidden = g.node("Mul", [g.node("Mul", [gate, g.node("Sigmoid", [gate])]), g.product(96)])
    yield g.output(g.node("Add", [g.product(K, None, hidden, 96), "sum"]))
    g = Norm("skip_chain", dtype, {"norm": 0, "gemv": 2, "launches": 2}, None).skip(SUM)  # two layers
    made = g.product(K)
    other = g.node("SkipSimplifiedLayerNormalization", ["sum", made, g.weight((K,))], ["again", "", "", "sum_2"], MS, epsilon=1e-5)[0]
    yield g.output(g.product(33, None, other), "sum_2")
    g = Norm("skip_many_units", dtype, JOINED, None, (1, 1, 64), 64).skip(SUM)
    yield g.output(g.product(6433), "sum")


def kept(dtype):
    g = Norm("layer", dtype, APART, "layer")
    yield g.output(g.product(33))
    g = Norm("skip_layer", dtype, APART, None)
    g.skip(1, "SkipLayerNormalization", more=[g.weight((K,))])
    yield g.output(g.product(33))
    g = Norm("skip_bias", dtype, APART, None)
    g.skip(SUM, more=[g.weight((K,))])
    yield g.output(g.product(33), "sum")
    g = Norm("shown", dtype, APART)
    yield g.output(g.product(33), g.y)
    g = Norm("read_after", dtype, {"norm": 0, "gemv": 1, "launches": 2})  # it stores the row too
    made = g.product(33)
    yield g.output(made, g.node("Softmax", [g.y]))
    g = Norm("read_in_epilogue", dtype, APART)
    yield g.output(g.node("Add", [g.product(K), g.y]))
    g = Norm("sum_between", dtype, {"norm": 1, "gemv": 1}, None).skip(SUM)  # the sum is needed before the first product
    other = g.node("Softmax", ["sum"])
    yield g.output(g.product(33), other)
    g = Norm("sum_in_epilogue", dtype, {"norm": 1, "gemv": 1}, None).skip(SUM)  # no block may read what another one stores
    yield g.output(g.node("Add", [g.product(K), "sum"]))
    g = Norm("sum_in_second_epilogue", dtype, {"norm": 1, "gemv": 1}, None).skip(SUM)
    made = g.product(33)
    yield g.output(made, g.node("Mul", [g.node("Relu", [g.product(K)]), "sum"]))
    g = Norm("seven", dtype, {"norm": 0, "gemv": 2, "launches": 2})
    yield g.output(*[g.product(n) for n in (1, 15, 17, 33, 40, 5, 6)])
    g = Norm("two_kinds", dtype, {"norm": 0, "gemv": 2, "launches": 2})
    yield g.output(g.product(33, "nbits32"), g.product(33, "plain"))
    g = Norm("two_kinds_skip", dtype, {"norm": 0, "gemv": 2, "launches": 4}, None).skip(SUM)  # one of them stores the row and the sum
    yield g.output(g.product(33, "nbits32"), g.product(33, "plain"), g.node("Softmax", [g.y]), g.node("Softmax", ["sum"]))
    g = Norm("other_axis", dtype, {"norm": 1, "gemv": 1}, None, (1, 4, 40))  # over two axes: its row is longer than the last one
    y = g.node("RMSNormalization", ["x", g.weight((4, 40))], axis=1)
    yield g.output(g.product(33, None, g.node("Reshape", [y, g.constant(np.array([1, 1, K]))])))
    g = Norm("shared_scale", dtype, {"norm": 1, "gemv": 1}, None)
    yield g.output(g.product(33, None, g.node("RMSNormalization", ["x", g.weight((1,))])))
    g = Norm("scale_is_input", dtype, APART, None)  # the kernel would read it before it has waited
    g.input("scale", random(3, (K,), dtype))
    yield g.output(g.product(33, None, g.node("RMSNormalization", ["x", "scale"], epsilon=1e-5)))
    yield wide_scale(dtype, True)
    yield wide_scale(dtype, False)
    for shape in ((1, 3, K), (3, 1, K)):
        g = Norm("rows_%d_%d" % shape[:2], dtype, {"norm": 1, "gemv": 0}, shape=shape)
        yield g.output(g.product(33), g.product(17))
        g = Norm("skip_rows_%d_%d" % shape[:2], dtype, {"norm": 1, "gemv": 0}, None, shape).skip(SUM, shape=shape)
        yield g.output(gated(g, g.kind, K, 33, x=g.y), "sum")
    g = Norm("skip_shared", dtype, JOINED, None).skip(SUM, shape=(1, K))  # of lower rank: broadcast
    yield g.output(g.product(33), "sum")


def wide_scale(dtype, narrow):
    """The scale, and so the result, in float32; NARROW: and back again before the product. The oracle's is float32 anyway."""
    def graph(cast):
        g = Norm("wide_scale_%s" % ("narrowed" if narrow else "kept"), dtype, {"norm": 1, "gemv": 1 if narrow else 0}, None)
        y = g.node("SimplifiedLayerNormalization", ["x", g.constant(random(5, (K,), "f32"))])
        if cast:
            y = g.node("Cast", [y], to=10 if dtype == "f16" else 16)
        matrix = g.constant(random(6, (33, K), dtype if narrow else "f32", 0.1))
        return g.output(g.node("MatMul", [y, g.node("Transpose", [matrix], perm=[1, 0])], ["z"]))
    g = graph(narrow)
    g.oracle_graph = graph(False)
    g.output_types = {} if narrow else {0: np.float32}
    return g


def heads(dtype):
    """A norm of each head with a gate behind it, between a recurrence and its output projection (compiler/ops/gemv_row.c)."""
    def graph(name, kernels, count, head, wide, kind="nbits32z", rows=1, products=1, shown=False):
        k = count * head
        g = Graph("heads_%s_%s" % (name, dtype), dtype, kernels, tolerance=None if dtype == "f16" else (2e-2, 2e-2))
        apart = g.constant(np.array([-1, head]))
        for i, operand in enumerate(("x", "z")):
            g.input(operand, random(1 + i, (1, rows, k), dtype))
        x, z = [g.node("Reshape", [operand, apart]) for operand in ("x", "z")]
        y = g.node("RMSNormalization", [x, g.weight((head,))], epsilon=1e-6)
        if wide:
            y, z = [g.node("Cast", [v], to=1) if wide == "cast" else g.node("Identity", [v]) for v in (y, z)]
        y = g.node("Mul", [y, g.node("Mul", [z, g.node("Sigmoid", [z])])])
        if wide:
            y = g.node("Cast", [y], to=10 if dtype == "f16" else 16) if wide == "cast" else g.node("Identity", [y])
        row_of = g.node("Reshape", [y, g.constant(np.array([1, rows, k]))])
        return g.output(*[product(g, kind, row_of, k, 40) for _ in range(products)], *([g.node("Neg", [y])] if shown else []))

    def case(name, kernels, count, head, wide=True, **more):
        g = graph(name, kernels, count, head, "cast" if wide else None, **more)
        g.oracle_graph = graph(name, kernels, count, head, "none" if wide else None, **more)  # all in float32
        return g
    for wide in (False, True):
        for count, head in ((3, 64), (5, 128), (2, 256), (20, 8), (10, 16)):
            yield case("%d_%d_%s" % (count, head, "wide" if wide else "narrow"), JOINED, count, head, wide)
    yield case("many", JOINED, 48, 128)
    yield case("plain", JOINED, 3, 64, kind="plain")
    yield case("no_power", APART, 4, 96)
    yield case("shown", {"norm": 1, "gemv": 1}, 3, 64, shown=True)  # read by another node too
    yield case("two", JOINED, 3, 64, products=2)
    yield case("rows", {"norm": 1, "gemv": 0}, 3, 64, rows=2)


def cases():
    for dtype in ("f16", "bf16"):
        yield from heads(dtype)
        yield from taken(dtype)
        yield from kept(dtype)
