"""onerow_experts.py - a mixture of experts for few rows: where routing goes into the first product, and what stands behind the experts into
the second one (compiler/ops/moe_few.c, passes/fuse.c), and what comes out. Expected values from the specification's formulas
(ops_moe.py), in float64."""
import numpy as np

from onerow_products import product
from op_models import TYPES, Graph, random
from ops_moe import mixture, packed_case, quantised, sigmoid, wide

MS = "com.microsoft"
ALONE = {"moe_route": 0, "moe_up": 1, "moe_down": 1, "launches": 2}
ROUTED_APART = {"moe_route": 1, "moe_up": 1, "moe_down": 1, "launches": 3}


def one(name, dtype, kernels=None, rows=1, **more):
    case = packed_case("%s_%s" % (name, dtype), rows=rows, dtype=dtype, **more)
    case.kernels = kernels or ALONE
    return case


def sizes(dtype):
    """Columns and elements of tiles, slices and groups with tails; both types of scales."""
    for hidden, inner, block in ((32, 32, 32), (96, 160, 32), (288, 96, 32), (576, 224, 32), (192, 320, 64), (256, 384, 128)):
        for zeros in (False, True):
            yield one("size_%d_%d_%d%s" % (hidden, inner, block, "z" * zeros), dtype, hidden=hidden, inner=inner, block=block, zeros=zeros,
                      scales="f32" if zeros else None, fusion=2, normalise=1, seed=hidden)
    yield one("long", dtype, hidden=4480, inner=64, zeros=True, experts=3, fusion=2, seed=1,
              loose=(2e-3, 2e-2) if dtype == "f16" else None)  # two slices a warp; the root of the mean square is 90
    yield one("deep", dtype, hidden=64, inner=2592, zeros=True, experts=3, top=3, fusion=2, seed=2)
    yield one("deeper", dtype, hidden=64, inner=2880, zeros=True, experts=5, top=4, fusion=2, seed=3)
    yield one("deepest", dtype, hidden=64, inner=2304, block=256, zeros=True, experts=9, top=9, fusion=2, seed=4)
    yield one("ragged", dtype, hidden=40, inner=96, zeros=True, bias=True)
    case = one("not_ahead", dtype, zeros=True)
    case.tuning = "moe_ahead/top=2,n=64,k=96 0"
    yield case
    yield one("block_16", dtype, block=16, inner=128, zeros=True)


def forms(dtype):
    """How the first product pairs its rows, biases, limits, other bits."""
    limits = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": .7}
    yield one("interleaved", dtype, bias=True, zeros=True, **limits)
    yield one("halves", dtype, bias=True, fusion=2, inner=104 - 8, top=4, **limits)
    yield one("third", dtype, act="silu", fusion=0, third=True, zeros=True, bias=True)
    yield one("alone", dtype, act="relu", fusion=0, inner=160, bias=True)
    yield one("bits_8", dtype, bits=8)
    yield one("column", dtype, block=0)


def tiles(dtype):
    """Several tiles of a block, as a tuning file asks for: whole ones and not, each way to pair rows; rows of no use to the warps' last one."""
    for count, inner in ((2, 32), (2, 160), (3, 96), (3, 224), (4, 256), (4, 288)):
        for name, more in (("plain", {"act": "relu", "fusion": 0}), ("interleaved", {"fusion": 1}), ("halves", {"fusion": 2}),
                           ("third", {"fusion": 0, "third": True})):
            if name in ("plain", "third") and count == 3:
                continue
            case = one("tiles_%d_%d_%s" % (count, inner, name), dtype, hidden=512, inner=inner, zeros=inner % 96 == 0, bias=count == 2, top=3, seed=inner,
                       **more)
            case.tuning = "moe_up_tiles/top=3,n=%d,k=512 %d" % (inner, count)
            yield case
    for hidden, inner, experts, top, block in ((40, 160, 4, 2, 32), (96, 640, 4, 3, 32), (64, 512, 8, 8, 64)):
        case = one("tiles_down_%d_%d" % (hidden, inner), dtype, hidden=hidden, inner=inner, experts=experts, top=top, block=block, zeros=block == 32,
                   bias=hidden == 40)
        case.tuning = "moe_down_tiles/top=%d,n=%d,k=%d 2" % (top, hidden, inner)
        yield case


def magnitudes(dtype):
    """The row is brought to a power of two and back: far from 1, and zero."""
    for name, times in (("small", 2.0 ** -40), ("large", 2.0 ** 40), ("tiny", 2.0 ** -120), ("zero", 0.0)):
        yield one(name, dtype, hidden=256, inner=96, fusion=0, act="identity", zeros=True, loose=(2e-2, 2e-1 * times), times=times)


def routing(dtype):
    for experts, top in ((1, 1), (3, 3), (31, 8), (33, 2), (64, 6), (128, 8), (200, 5), (256, 16), (256, 8)):
        yield one("of_%d_%d" % (experts, top), dtype, experts=experts, top=top, hidden=32, inner=32, normalise=experts % 2, seed=experts)
    yield one("of_300", dtype, ROUTED_APART, experts=300, top=4, hidden=32, inner=32)
    yield one("of_many", dtype, ROUTED_APART, experts=40, top=17, hidden=32, inner=32)
    for rows in (2, 4, 5):
        yield one("rows_%d" % rows, dtype, ALONE if rows < 5 else ROUTED_APART, rows=rows, experts=64, top=8, zeros=True, normalise=1)
    for experts in (40, 256):
        yield one("ties_%d" % experts, dtype, experts=experts, top=8, hidden=32, inner=32, ties=True, rows=3, normalise=1)
    for experts, logits in ((40, None), (64, None), (40, "f32")):  # several loads of the router's row, or one by one
        yield one("zeros_%d_%s" % (experts, logits or "own"), dtype, experts=experts, top=8, hidden=32, inner=32, ties="zeros", rows=2, logits=logits)
    yield one("zeros_of_300", dtype, ROUTED_APART, experts=300, top=4, hidden=32, inner=32, ties="zeros")
    for experts in (31, 128, 256):
        yield one("logits_%d" % experts, dtype, experts=experts, top=8, hidden=32, inner=32, logits="f32", rows=2, ties=experts == 128)
    for normalise in (0, 1):
        yield one("shares_%d" % normalise, dtype, shares=True, experts=20, top=3, normalise=normalise)


class Mixture(Graph):
    """X [1, rows, hidden] goes through experts; `sum` is their sum, `result` what it is, and `mixed` that of other logits."""

    def __init__(self, name, dtype, kernels, rows=1, hidden=64, inner=96, experts=12, top=3, bits=4, block=32, zeros=True, scales="f32", times=1.0):
        super().__init__("%s_%s" % (name, dtype), dtype, kernels)
        self.x, self.router = random(1, (1, rows, hidden), dtype), random(2, (rows, experts), dtype)
        self.input("x", self.x)
        self.input("router", self.router)
        rng, inputs, weights = np.random.default_rng(3), [], []
        for shape in ((experts, 2 * inner, hidden), (experts, hidden, inner)):
            packed, scale, zero, q, z, spread = quantised(rng, shape, bits, block, zeros)
            scale = (scale * times).astype(TYPES[scales])
            inputs += [self.constant(packed), self.constant(scale), ""]
            weights.append(((q - z) * np.repeat(wide(scale), spread, 2)[:, :, :shape[2]], zero))
        inputs += ["", "", ""] + [self.constant(zero) for _, zero in weights if zeros]
        self.sum = self.node("QMoE", ["x", "router"] + inputs, 1, MS, k=top, activation_type="swiglu", swiglu_fusion=2, expert_weight_bits=bits,
                             block_size=block, normalize_routing_weights=1)
        self.mixed = lambda router: mixture(wide(self.x)[0], router, [w for w, _ in weights] + [None], [None] * 3, top, "swiglu", 2, True,
                                            between=TYPES[dtype] if rows > 16 else None)[None]
        self.result = self.mixed(wide(self.router))

    def expect(self, *values):
        self.expected = [v.astype(TYPES[self.dtype]) for v in values]
        return self

    def value(self, name):
        return wide(dict(self.constants)[name])


def epilogues(dtype):
    fused = {"moe_route": 0, "moe_up": 1, "moe_down": 1, "pointwise": 0}
    for rows in (1, 3, 20):  # many rows: the sum of the experts has it
        g = Mixture("residual_%d" % rows, dtype, {"pointwise": 0, "moe_combine": int(rows > 4), "moe_down": int(rows < 5)}, rows)
        r = g.input("r", random(5, (1, rows, 64), dtype)) and g.inputs[-1][1]
        yield g.output(g.node("Add", ["r", g.sum])).expect(wide(r) + g.result)
    # A shared expert and its gate, which the graph makes behind the experts.
    g = Mixture("shared", dtype, {**fused, "gemv": 1, "launches": 3})
    up, gate = g.weight((64, 64), .1), g.weight((1, 64), .1)
    shared, scale = g.node("MatMul", ["x", g.node("Transpose", [up], perm=[1, 0])]), g.node("MatMul", ["x", g.node("Transpose", [gate], perm=[1, 0])])
    shared = g.node("Relu", [shared])
    sum_of = g.node("Add", [g.sum, g.node("Mul", [shared, g.node("Sigmoid", [scale])])])
    x = wide(g.x)
    yield g.output(sum_of).expect(g.result + np.maximum(x @ g.value(up).T, 0) * sigmoid(x @ g.value(gate).T))
    # What else reads the sum, or has another shape, keeps its launch.
    g = Mixture("shown", dtype, {"moe_up": 1, "moe_down": 1, "pointwise": 1})
    yield g.output(g.node("Neg", [g.sum]), g.sum).expect(-g.result, g.result)
    g = Mixture("wider", dtype, {"moe_up": 1, "moe_down": 1, "pointwise": 1})
    r = g.weight((3, 1, 64))
    yield g.output(g.node("Add", [g.sum, r])).expect(g.result + g.value(r))
    # A constant router: still no product of a row with constants.
    g = Mixture("constant_router", dtype, {"moe_up": 1, "moe_down": 1})
    g.nodes[-1].input[1] = g.constant(g.router)
    g.inputs.pop()
    yield g.output(g.node("Relu", [g.sum]), product(g, "plain", "x", 64, 40)).expect(np.maximum(g.result, 0), wide(g.x) @ g.value(g.constants[-1][0]).T)


def cases():
    for dtype in ("f16", "bf16"):
        yield from sizes(dtype)
        yield from epilogues(dtype)
        yield from tiles(dtype)
    yield from magnitudes("bf16")
    yield from forms("bf16")
    yield from routing("f16")
    yield one("rows_f32", "f32", rows=2, experts=64, top=8, zeros=True)
