"""onerow_shared.py - a shared expert's last product in one slot more of the experts' second launch (compiler/ops/moe_few.c: moe_defer), and where it keeps a
launch of its own. Expected values by numpy in float64, rounded where the graph rounds."""
import numpy as np
from onnx import helper

from onerow_experts import Mixture
from onerow_products import product, silu
from op_models import TYPES, random
from ops_moe import sigmoid, wide
from ops_quant import Weights

MS = "com.microsoft"
BESIDE = {"moe_up": 1, "moe_down": 1, "launches": 2}
APART = {"moe_up": 1, "moe_down": 1, "gemv": 1, "launches": 3}
APART_ROWS = {"moe_up": 1, "moe_down": 1, "matmul_nbits": 1, "launches": 3}


class Shared(Mixture):
    """`h` [1, rows, inner] is the shared product's row, `product` its result, `made` what that is."""

    def __init__(self, name, dtype, kernels=None, rows=1, hidden=64, inner=96, block=32, zeros=True, **more):
        super().__init__(name, dtype, kernels or BESIDE, rows, hidden, inner, block=block, zeros=zeros, **more)
        self.rows, self.hidden, self.inner, self.block, self.zeros = rows, hidden, inner, block, zeros
        self.h = random(4, (1, rows, inner), dtype)

    def rounded(self, values):
        return wide(np.asarray(values, np.float32).astype(TYPES[self.dtype]))

    def nbits(self, x, k, n, block, zeros, bits=4, bias=False):
        """A product of X, and its matrix."""
        w = Weights(self.made, k, n, bits, block, self.dtype, "packed" if zeros else "none")
        inputs = [x, self.constant(w.packed()), self.constant(w.scales), self.constant(w.zeros) if zeros else "", ""]
        return self.node("MatMulNBits", inputs + ([self.weight((n,))] if bias else []), 1, MS, **w.attrs()), w.dense().T

    def share(self, row=None, block=None, zeros=None, bits=4, bias=False):
        """The product, of the input h; ROW: of that value, which is h."""
        row = row or self.input("h", self.h)
        self.product, matrix = self.nbits(row, self.h.shape[-1], self.hidden, block or self.block, self.zeros if zeros is None else zeros, bits, bias)
        self.made_of = self.rounded(wide(self.h) @ matrix + (self.value(self.constants[-1][0]) if bias else 0))
        return self

    def gated(self):
        """The sum of the experts and the shared one times its gate, which is an input."""
        gate = random(6, (1, self.rows, 1), self.dtype)
        self.input("gate", gate)
        y = self.node("Add", [self.sum, self.node("Mul", [self.product, "gate"])])
        return self.output(y).expect(self.result + self.rounded(self.made_of * wide(gate)))

    def plain(self):
        return self.output(self.node("Add", [self.sum, self.product])).expect(self.result + self.made_of)


def sizes(dtype):
    """Tiles, slices and groups with tails; each type of the experts' scales; one expert of a row to sixteen."""
    for inner, block in ((96, 32), (160, 32), (224, 32), (320, 64), (384, 128), (512, 32)):
        for zeros in (False, True):
            yield Shared("size_%d_%d%s" % (inner, block, "z" * zeros), dtype, inner=inner, block=block, zeros=zeros, top=8,
                         scales="f32" if zeros else dtype).share().gated()
    for scales in ("f32", "f16", "bf16"):
        for inner, block in ((256, 32), (256, 64), (288, 32)):
            yield Shared("scales_%s_%d_%d" % (scales, inner, block), dtype, inner=inner, block=block, scales=scales).share().gated()
    for top in (1, 2, 4, 5, 8, 16):
        for inner in (96, 1056):
            yield Shared("top_%d_%d" % (top, inner), dtype, inner=inner, experts=16, top=top).share().gated()
    yield Shared("of_300", dtype, {"moe_route": 1, "moe_up": 1, "moe_down": 1, "launches": 3}, experts=300, top=4).share().gated()
    yield Shared("deep", dtype, inner=2592, experts=5).share().gated()
    yield Shared("deep_one", dtype, inner=2592, experts=3, top=1, zeros=False).share().gated()
    yield Shared("deep_eight", dtype, inner=2304, block=256, experts=9, top=8).share().gated()
    for hidden in (16, 40, 200):
        yield Shared("columns_%d" % hidden, dtype, hidden=hidden, top=4).share().gated()
    for rows in (2, 4):
        yield Shared("rows_%d" % rows, dtype, rows=rows, top=4, inner=160).share().gated()


def asked(dtype):
    """By a tuning file: a launch of its own, experts that are known when the kernel has waited, two tiles of a block, as many registers as it wants."""
    for choice, value in (("beside", 0), ("chooses", 0), ("tiles", 2)):
        for rows in (1, 3):
            kernels = BESIDE if choice != "beside" else APART if rows == 1 else APART_ROWS
            g = Shared("%s_%d_%d" % (choice, value, rows), dtype, kernels, rows=rows, hidden=40, inner=160).share().gated()
            g.tuning = "moe_down_%s/top=3,n=40,k=160 %d" % (choice, value)
            yield g
    for choice in ("tiles", "registers"):  # more warps than a block of experts has
        g = Shared("%s_of_many" % choice, dtype, inner=512, top=8).share().gated()
        g.tuning = "moe_down_%s/top=8,n=64,k=512 %d" % (choice, 2 if choice == "tiles" else 0)
        yield g


def epilogues(dtype):
    for rows in (1, 4):
        experts, matrix, scales = min(3 * rows, 12), 64 * 96 // 2, 64 * 96 // 32  # that are chosen at most; bytes of a second one's; their number
        moved = experts * 3 * (matrix + 4 * scales) + matrix + 2 * scales
        yield Shared("plain_%d" % rows, dtype, {**BESIDE, "bytes": moved}, rows=rows).share().plain()
        g = Shared("residual_%d" % rows, dtype, rows=rows).share()
        r = random(5, (1, rows, 64), dtype)
        g.input("r", r)
        yield g.output(g.node("Add", ["r", g.node("Add", [g.sum, g.product])])).expect(wide(r) + g.rounded(g.result + g.made_of))
    g = Shared("twice", dtype).share()
    y = g.node("Add", [g.sum, g.node("Mul", [g.product, g.node("Neg", [g.product])])])
    yield g.output(y).expect(g.result - g.rounded(g.made_of ** 2))
    g = Shared("whole", dtype, {"gemv": 1, "moe_up": 1, "moe_down": 1, "launches": 3})  # one launch makes row and gate
    (a, wa), (b, wb) = [g.nbits("x", 64, 96, 32, True) for _ in range(2)]
    gate, wg = product(g, "plain", "x", 64, 1), g.value(g.constants[-1][0]).T
    a_made, b_made, gate_made = [g.rounded(wide(g.x) @ w) for w in (wa, wb, wg)]
    g.h = g.rounded(g.rounded(a_made * g.rounded(sigmoid(a_made))) * b_made)
    g.share(g.node("Mul", [silu(g, a), b]))
    y = g.node("Add", [g.sum, g.node("Mul", [g.product, g.node("Sigmoid", [gate])])])
    yield g.output(y).expect(g.result + g.rounded(g.made_of * g.rounded(sigmoid(gate_made))))


def rounded(dtype):
    """Exactly: experts make zeros, and the sum has more digits than the type, as has its product with a number of the epilogue."""
    for rows in (1, 4):
        g = Shared("rounded_%d" % rows, dtype, rows=rows, inner=160, times=0.0)
        g.tolerance = (0, 0)
        g.h = np.random.default_rng(8).integers(-9, 10, g.h.shape).astype(TYPES[dtype])
        w = Weights(9, 160, 64, 4, 32, dtype, "packed")
        w.scales = np.full_like(w.scales, 0.25)
        g.product = g.node("MatMulNBits", [g.input("h", g.h), g.constant(w.packed()), g.constant(w.scales), g.constant(w.zeros), ""], 1, MS, **w.attrs())
        by = np.asarray([1.171875], TYPES[dtype])
        y = g.node("Add", [g.sum, g.node("Mul", [g.product, g.constant(by)])])
        yield g.output(y).expect(g.rounded(wide(g.h) @ w.dense().T) * wide(by))


def apart(dtype):
    """A launch of its own: another matrix, somebody else who reads it, or no launch less."""
    for name, more in (("block", {"block": 64}), ("zeros", {"zeros": False}), ("bits", {"bits": 8}), ("bias", {"bias": True})):
        kernels = {**APART, "gemv": 0, "matmul_nbits": 1} if name == "bits" else APART
        yield Shared("other_" + name, dtype, kernels, inner=128).share(**more).gated()
    g = Shared("other_k", dtype, APART, inner=128)
    g.h = random(4, (1, 1, 96), dtype)
    yield g.share().gated()
    yield Shared("ragged", dtype, APART, inner=96, block=64).share().gated()
    yield Shared("experts_8", dtype, APART, bits=8).share().gated()
    yield Shared("experts_16", dtype, APART, block=16).share(block=32).gated()
    yield Shared("rows_5", dtype, {"moe_route": 1, "matmul_nbits": 1}, rows=5).share().gated()
    g = Shared("shown", dtype, APART).share()
    yield g.output(g.node("Add", [g.sum, g.product]), g.product).expect(g.result + g.made_of, g.made_of)
    g = Shared("read", dtype, {**APART, "softmax": 1, "launches": 4}).share()
    soft = np.exp(g.made_of - g.made_of.max())
    yield g.output(g.node("Add", [g.sum, g.product]), g.node("Softmax", [g.product])).expect(g.result + g.made_of, soft / soft.sum())
    g = Shared("wider", dtype, {"moe_up": 1, "moe_down": 1, "gemv": 1}).share()  # the epilogue is of another shape
    r = g.weight((3, 1, 64))
    yield g.output(g.node("Add", [g.node("Add", [g.sum, r]), g.product])).expect(g.rounded(g.result + g.value(r)) + g.made_of)
    g = Shared("row_made", dtype, APART)  # the product's kernel makes the row
    row = g.node("Relu", [g.input("h", g.h)])
    g.h = np.maximum(g.h, 0).astype(TYPES[dtype])
    yield g.share(row).gated()
    for name, times in (("row_normed", 1), ("row_norm", 0)):  # it begins with a norm, and what stands behind that
        g = Shared(name, dtype, APART, inner=128)
        row = g.node("RMSNormalization", [g.input("h", g.h), g.constant(np.ones(128, TYPES[dtype]))], axis=-1, epsilon=1e-5)
        g.h = g.rounded(wide(g.h) / np.sqrt((wide(g.h) ** 2).mean() + 1e-5))
        if times:
            z = random(7, (1, 1, 128), dtype)
            row, g.h = g.node("Mul", [row, g.input("z", z)]), g.rounded(g.h * wide(z))
        yield g.share(row).gated()
    g = Shared("row_made_rows", dtype, {"moe_up": 1, "moe_down": 1, "pointwise": 1, "launches": 3}, rows=3)  # it has a launch in any case
    row = g.node("Relu", [g.input("h", g.h)])
    g.h = np.maximum(g.h, 0).astype(TYPES[dtype])
    yield g.share(row).gated()
    g = Shared("side", dtype, APART)  # its few rows of 16 bits go with a large product of 4
    large, matrix = g.nbits("x", 64, 2048, 32, True)
    g.product, g.made_of = product(g, "plain", "x", 64, 64), g.rounded(wide(g.x) @ g.value(g.constants[-1][0]).T)
    experts_last(g)
    yield g.output(g.node("Add", [g.sum, g.product]), large).expect(g.result + g.made_of, wide(g.x) @ matrix)
    g = Shared("row_shared", dtype, {**APART, "blocks": 11}).share()  # another product of it: 7 blocks make both
    other, matrix = g.nbits("h", 96, 40, 32, True)
    yield g.output(g.node("Add", [g.sum, g.product]), other).expect(g.result + g.made_of, wide(g.h) @ matrix)


def order(dtype):
    """What the experts wait for."""
    g = Shared("router_of_row", dtype, {"gemv": 1, "moe_up": 1, "moe_down": 1, "launches": 3})
    logits, matrix = g.nbits("h", 96, 12, 32, True)
    yield routed(g, logits, wide(g.h) @ matrix).share().plain()
    g = Shared("router_of_product", dtype, {"gemv": 2, "moe_up": 1, "moe_down": 1, "launches": 4}).share()
    logits, matrix = g.nbits(g.product, 64, 12, 32, True)
    yield routed(g, logits, g.made_of @ matrix).plain()
    g = Shared("state", dtype, {"moe_up": 1, "moe_down": 1, "gemv": 1})  # the step may write the row before the experts run
    g.node("Neg", ["past_key_values.0.conv_state"], ["present.0.conv_state"])
    g.share(g.input("past_key_values.0.conv_state", g.h)).plain()
    g.expected.append((-wide(g.h)).astype(TYPES[dtype]))
    yield g.output("present.0.conv_state")


def experts_last(g):
    """Puts them behind all other nodes so far."""
    g.nodes.append(g.nodes.pop(next(i for i, n in enumerate(g.nodes) if n.op_type == "QMoE")))
    return g.nodes[-1]


def routed(g, logits, values):
    """G with a router that the graph makes, of such VALUES."""
    router = g.node("Reshape", [logits, g.constant(np.array([1, 12]))])
    experts_last(g).input[1] = router
    g.inputs = [i for i in g.inputs if i[0] != "router"]
    g.result = g.mixed(g.rounded(values).reshape(1, 12))
    return g


def branch(dtype):
    """In a branch that is chosen on data nothing is put off, nor into one."""
    def graph(nodes, name, output):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, {"f16": 10, "bf16": 16}[dtype], None)])
    for name, outside in (("branch", 0), ("into_branch", 1)):
        g = Shared(name, dtype, {"moe_up": 1, "moe_down": 1, "matmul_nbits": 1 - outside, "gemv": outside}).share()
        y = g.node("Add", [experts_last(g).output[0], g.product])
        g.nodes, nodes = g.nodes[:outside], g.nodes[outside:]
        other = graph([helper.make_node("Neg", ["x"], ["negative"])], "other", "negative")
        chosen = g.node("If", [g.input("condition", np.array(True))], then_branch=graph(nodes, "then", y), else_branch=other)
        g.op = "If"
        yield g.output(chosen).expect(g.result + g.made_of)


def cases():
    for dtype in ("f16", "bf16"):
        yield from sizes(dtype)
        yield from asked(dtype)
        yield from epilogues(dtype)
        yield from rounded(dtype)
        yield from apart(dtype)
        yield from order(dtype)
        yield from branch(dtype)
