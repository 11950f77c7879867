"""onerow_products.py - products of one row with constant matrices: which of them one kernel makes, with which epilogues, and what comes
out (compiler/ops/gemv.c, passes/fuse.c). Expected values by onnxruntime in float32 from the same rounded inputs and weights."""
import itertools

import numpy as np

from op_models import Graph, random
from ops_quant import Weights

MS = "com.microsoft"


def product(g, kind, x, k, n, bias=False, out=1):
    """KIND: plain (a stored matrix of rows along k), gemm, or nbitsBLOCK, with z at its end for zero points."""
    if kind.startswith("nbits"):
        zero = "packed" if kind.endswith("z") else "none"
        w = Weights(2000 + g.made, k, n, 4, int(kind.strip("nbitsz")), g.dtype, zero)
        inputs = [x, g.constant(w.packed()), g.constant(w.scales), g.constant(w.zeros) if zero == "packed" else "", ""]
        return g.node("MatMulNBits", inputs + ([g.weight((n,))] if bias else []), out, MS, **w.attrs())
    matrix = g.weight((n, k), 1 / np.sqrt(k))
    if kind == "gemm":
        return g.node("Gemm", [x, matrix] + ([g.weight((n,))] if bias else []), out, transB=1)
    return g.node("MatMul", [x, g.node("Transpose", [matrix], perm=[1, 0])], out)


def row(name, dtype, k, kernels, shape=None, **more):
    g = Graph("%s_%s" % (name, dtype), dtype, kernels, **more)
    g.input("x", random(1, shape or (1, 1, k), dtype))
    return g


def silu(g, x):
    return g.node("Mul", [x, g.node("Sigmoid", [x])])


def relu(g, x):
    return g.node("Relu", [x])


def sizes(dtype):
    """Columns and elements of a row with tails of tiles, slices and groups."""
    for kind in ("plain", "nbits32", "nbits32z", "nbits64z", "nbits128", "nbits128z"):
        for k in (32, 96, 160, 288, 576):
            g = row("%s_%d" % (kind, k), dtype, k, {"gemv": 1, "launches": 1})
            yield g.output(*[product(g, kind, "x", k, n) for n in (1, 15, 17, 33)])
    for kind, k in (("plain", 4352), ("nbits32z", 2688), ("nbits64", 4896), ("nbits128z", 9728)):
        g = row("long_%s_%d" % (kind, k), dtype, k, {"gemv": 1, "launches": 1})
        yield g.output(*[product(g, kind, "x", k, n) for n in (33, 16)])
    for kind in ("plain", "nbits32", "nbits64z"):
        g = row("wide_%s" % kind, dtype, 64, {"gemv": 1, "launches": 1})
        yield g.output(product(g, kind, "x", 64, 6433), product(g, kind, "x", 64, 47))
        g = row("wide_gated_%s" % kind, dtype, 96, {"gemv": 1, "launches": 1})
        yield g.output(gated(g, kind, 96, 6433))


def blocks(kind, units, k, dtype, count):
    bits, block = (16, 0) if kind == "plain" else (4, int(kind.strip("nbitsz")))
    return "gemv_blocks/units=%s,k=%d,bits=%d,block=%d,zeros=%d,%s %d" % (units, k, bits, block, kind.endswith("z"), dtype, count)


def resident(kind, k, dtype, count, rows):
    """Blocks that stay, of the cut COUNT (100 times those on a multiprocessor, plus their warps), as a tuning file asks for by the keys that gemv.c has. Matrices of whole tiles of 16 or
    32 ROWS, or (1) with tails."""
    for n in ((2224, 48) if rows > 1 else (2250, 17),):
        tile = 32 if rows == 32 else 16
        n = tuple(-(-m // tile) * tile if rows > 1 else m for m in n)
        g = row("resident_%s_%d_%d" % (kind, k, rows), dtype, k, {"gemv": 1, "launches": 1, "shared": 1})
        g.tuning = blocks(kind, "%dx1x%d" % (sum(-(-m // tile) for m in n), tile), k, dtype, count)
        yield g.output(*[product(g, kind, "x", k, m) for m in n])


def residents(dtype):
    for kind, k in itertools.product(("nbits32", "nbits32z", "plain"), (256, 320, 896, 1536, 5376)):
        four = kind != "plain" and k % 256 == 128
        yield from resident(kind, k, dtype, 120, 1)
        yield from resident(kind, k, dtype, 120, 32 if four else 16)
    for kind, k in (("nbits64", 1152), ("nbits64z", 1536), ("nbits128", 1280), ("nbits128z", 2048), ("nbits256", 1536), ("nbits128", 640), ("nbits64z", 640)):
        yield from resident(kind, k, dtype, 210, 32 if k % 256 == 128 else 16)
    for kind, k in itertools.product(("nbits32", "nbits32z", "plain"), (384, 512)):
        tile = 32 if kind != "plain" and k == 384 else 16
        g = row("resident_gated_%s_%d" % (kind, k), dtype, k, {"gemv": 1, "launches": 1, "shared": 1})
        g.tuning = blocks(kind, "%dx2x%d" % (6432 * 2 // tile + 96 // tile, tile), k, dtype, 120)
        yield g.output(gated(g, kind, k, 6432), product(g, kind, "x", k, 96))
        # more units of the matrix beside the pair than blocks: it goes on by other rows than the pair does
        g = row("resident_gated_beside_%s_%d" % (kind, k), dtype, k, {"gemv": 1, "launches": 1, "shared": 1})
        g.tuning = blocks(kind, "%dx2x%d" % (32 // tile + 4832 // tile, tile), k, dtype, 120)
        yield g.output(gated(g, kind, k, 16), product(g, kind, "x", k, 4832))
        g = row("resident_gate_alone_%s_%d" % (kind, k), dtype, k, {"gemv": 1, "launches": 1, "shared": 1})
        g.tuning = blocks(kind, "%dx2x%d" % (6432 * 2 // tile, tile), k, dtype, 310)
        yield g.output(gated(g, kind, k, 6432))


def kinds_of(dtype):
    """What is joined does not depend on the type: each kind of matrix with one of them."""
    return ("plain",) if dtype == "f16" else ("nbits32z",)


def groups(dtype):
    """How many products of one row come together."""
    for kind in kinds_of(dtype):
        for count in (1, 2, 3, 6, 7):
            g = row("count_%d_%s" % (count, kind), dtype, 160, {"gemv": 1 + count // 7, "launches": 1 + count // 7})
            yield g.output(*[product(g, kind, "x", 160, 16 * i + 9) for i in range(count)])
    for label, kinds in (("bits", ("nbits32", "plain")), ("zeros", ("nbits32", "nbits32z")), ("blocks", ("nbits32z", "nbits64z"))):
        g = row("kinds_" + label, dtype, 288, {"gemv": 2, "launches": 2})
        yield g.output(*[product(g, kinds[i % 2], "x", 288, 20 + i) for i in range(4)])
    g = row("bias", dtype, 96, {"gemv": 1, "launches": 1})
    yield g.output(*[product(g, "nbits32z", "x", 96, n, bias=n != 17) for n in (33, 17, 1)])
    g = row("gemm", dtype, 96, {"gemv": 1, "launches": 1}, (1, 96))
    yield g.output(*[product(g, kind, "x", 96, n, bias=n != 17) for kind in ("gemm", "plain") for n in (33, 17)])
    g = row("gemm_row", dtype, 96, {"gemv": 1, "launches": 1}, (1, 96))
    yield g.output(g.node("Gemm", ["x", g.weight((24, 96), 0.1), g.weight((1, 24))], transB=1))
    g = row("gemm_scaled", dtype, 96, {"gemv": 0}, (1, 96))
    yield g.output(g.node("Gemm", ["x", g.weight((24, 96), 0.1), g.weight((24,))], transB=1, alpha=0.5),
                   g.node("Gemm", ["x", g.weight((24, 96), 0.1), g.weight((24,))], transB=1, beta=0.5))
    g = row("vector", dtype, 96, {"gemv": 1, "launches": 1}, (96,))
    yield g.output(product(g, "nbits32", "x", 96, 33), product(g, "nbits32", "x", 96, 7))
    g = row("two_rows", dtype, 96, {"gemv": 0}, (1, 2, 96))
    yield g.output(product(g, "nbits32", "x", 96, 33), product(g, "plain", "x", 96, 33))
    g = row("batch", dtype, 96, {"gemv": 0}, (2, 1, 96))
    yield g.output(product(g, "nbits32", "x", 96, 33), product(g, "plain", "x", 96, 33))
    g = row("unaligned", dtype, 100, {"gemv": 0})
    yield g.output(product(g, "plain", "x", 100, 33))
    g = row("by_column", dtype, 96, {"gemv": 0})
    yield g.output(g.node("MatMul", ["x", g.weight((96, 40), 0.1)]))
    g = row("by_turns", dtype, 96, {"gemv": 2, "launches": 2})
    g.input("z", random(2, (1, 1, 96), dtype))
    yield g.output(*[product(g, "plain", x, 96, 33) for x in ("x", "z", "x", "z")])
    g = row("computed", dtype, 96, {"gemv": 0})  # its second matrix is no constant
    g.input("m", random(2, (96, 24), dtype, 0.1))
    yield g.output(g.node("MatMul", ["x", "m"]))


def gated(g, kind, k, n, order="before", act=silu, x="x"):
    """act(gate) * up. ORDER: the gate before the up product, after it, or its elementwise nodes before that."""
    up = product(g, kind, x, k, n) if order == "after" else None
    gate = product(g, kind, x, k, n)
    if order == "before":
        up = product(g, kind, x, k, n)
    gate = act(g, gate)
    return g.node("Mul", [gate, up or product(g, kind, x, k, n)])


def epilogues(dtype):
    for kind in kinds_of(dtype):
        def case(name, kernels, k=160):
            return row("%s_%s" % (name, kind), dtype, k, kernels)
        one, two = {"gemv": 1, "launches": 1}, {"gemv": 2}
        g = case("residual", one)
        g.input("r", random(3, (1, 1, 33), dtype))
        yield g.output(product(g, kind, "x", 160, 17), g.node("Add", [product(g, kind, "x", 160, 33), "r"]))
        g = case("scaled", one)
        sum_of = g.node("Add", [product(g, kind, "x", 160, 33, bias=kind != "plain"), g.weight((33,))])
        yield g.output(g.node("Mul", [relu(g, sum_of), g.weight((1, 1, 33))]), product(g, kind, "x", 160, 5))
        for order in ("before", "ahead"):
            g = case("gate_" + order, one)
            yield g.output(gated(g, kind, 160, 33, order))
        g = case("gate_after", one)
        yield g.output(gated(g, kind, 160, 33, "after", relu))
        g = case("gate_after_silu", {"gemv": 1})  # its own result is read twice: an elementwise launch behind it
        yield g.output(gated(g, kind, 160, 33, "after"))
        g = case("gates", one)
        yield g.output(gated(g, kind, 160, 33), gated(g, kind, 160, 20, "after", relu), gated(g, kind, 160, 47, "ahead"))
        g = case("gate_beside", one)
        q = product(g, kind, "x", 160, 65)
        yield g.output(gated(g, kind, 160, 33, "ahead"), q, product(g, kind, "x", 160, 7))
        g = case("gate_biased", one)
        gate = g.node("Add", [product(g, kind, "x", 160, 33), g.weight((33,))])
        up = g.node("Add", [product(g, kind, "x", 160, 33), g.weight((33,))])
        yield g.output(g.node("Mul", [relu(g, gate), up]))
        g = case("gate_shown", two)  # an output too: it is stored
        gate = product(g, kind, "x", 160, 33, out=["gate"])
        yield g.output(g.node("Mul", [silu(g, gate), product(g, kind, "x", 160, 33)]), gate)
        g = case("gate_shared", two)  # read by what is no part of the epilogue
        gate = product(g, kind, "x", 160, 33)
        other = g.node("Softmax", [gate])
        yield g.output(g.node("Mul", [silu(g, gate), product(g, kind, "x", 160, 33)]), other)
        g = case("gate_one", two)  # of one column: broadcast
        yield g.output(g.node("Mul", [product(g, kind, "x", 160, 1), product(g, kind, "x", 160, 33)]))
        g = case("gate_of_two", two)  # two products in the epilogue of a third
        a, b, c = [product(g, kind, "x", 160, 33) for _ in range(3)]
        yield g.output(g.node("Mul", [g.node("Mul", [a, b]), c]))
        g = case("gate_seventh", {"gemv": 2, "launches": 2})  # in another launch than what it gates
        gate = product(g, kind, "x", 160, 33)
        others = [product(g, kind, "x", 160, 9) for _ in range(5)]
        yield g.output(g.node("Mul", [silu(g, gate), product(g, kind, "x", 160, 33)]), *others)
        g = case("read_before", {"gemv": 1, "launches": 2})
        g.input("r", random(3, (1, 1, 33), dtype))
        made = g.node("Softmax", ["r"])
        first = product(g, kind, "x", 160, 17)
        yield g.output(first, g.node("Add", [g.node("Mul", [made, "r"]), product(g, kind, "x", 160, 33)]))
        g = case("read_between", {"gemv": 2, "launches": 3})  # is not there before the first product
        first = product(g, kind, "x", 160, 33)
        made = g.node("Softmax", [first])
        yield g.output(first, g.node("Add", [product(g, kind, "x", 160, 33), made]))
        g = case("read_between_apart", {"gemv": 2, "launches": 3})
        g.input("r", random(3, (1, 1, 33), dtype))
        first = product(g, kind, "x", 160, 17)
        made = g.node("Softmax", ["r"])
        yield g.output(first, g.node("Add", [product(g, kind, "x", 160, 33), made]), product(g, kind, "x", 160, 40))
        g = case("read_long_before", {"gemv": 1, "launches": 1})  # the elementwise node reads an input, between the products
        g.input("r", random(3, (1, 1, 33), dtype))
        first = product(g, kind, "x", 160, 17)
        sigmoid = g.node("Sigmoid", ["r"])
        yield g.output(first, g.node("Mul", [product(g, kind, "x", 160, 33), sigmoid]))
    g = row("gate_kinds", dtype, 160, {"gemv": 2, "launches": 2})  # the gate in another kernel than what it gates
    gate = product(g, "nbits32", "x", 160, 33)
    yield g.output(g.node("Mul", [silu(g, gate), product(g, "plain", "x", 160, 33)]))


def sides(dtype):
    """A few rows of 16 bits beside matrices of 4 of the same row: at most 128, and no more than there are tiles of 32 rows."""
    def case(name, gemvs, k=512, launches=None):
        return row("side_" + name, dtype, k, {"gemv": gemvs, "launches": launches or gemvs})
    for kind, k in (("nbits32z", 512), ("nbits64", 896), ("nbits32", 4896)):
        g = case("%s_%d" % (kind, k), 1, k)
        yield g.output(product(g, kind, "x", k, 1600), product(g, "plain", "x", k, 33), product(g, kind, "x", k, 17),
                       g.node("Add", [product(g, "plain", "x", k, 16), g.weight((16,))]))
    g = case("first", 1)
    one = g.node("Sigmoid", [product(g, "plain", "x", 512, 1)])
    yield g.output(one, product(g, "nbits32", "x", 512, 64))
    g = case("gated", 1)
    yield g.output(gated(g, "nbits32z", 512, 640), product(g, "plain", "x", 512, 20))
    g = case("normed", 1)
    x = g.node("SimplifiedLayerNormalization", ["x", g.weight((512,))], epsilon=1e-6, axis=-1)
    yield g.output(product(g, "nbits32", x, 512, 640), product(g, "plain", x, 512, 20))
    g = case("many", 2)
    yield g.output(product(g, "nbits32", "x", 512, 6400), product(g, "plain", "x", 512, 129))
    g = case("more", 2)
    yield g.output(product(g, "nbits32", "x", 512, 640), product(g, "plain", "x", 512, 21))
    g = case("a_gate", 2)  # of its own kind: with what it gates
    yield g.output(product(g, "nbits32", "x", 512, 6400), gated(g, "plain", 512, 20))


def added(g, kind, x, k, n):
    return g.node("Add", [product(g, kind, x, k, n), g.weight((n,))])


def constants(dtype):
    """What an epilogue reads of constants, before the kernel waits where a thread makes one row: of one unit a block, of several (a tuning file), of more
    than there are threads, and of more than the block keeps sums of."""
    for kind in ("gemm", "nbits32z"):
        g = row("constants_%s" % kind, dtype, 288, {"gemv": 1, "launches": 1}, (1, 288))
        yield g.output(*[product(g, kind, "x", 288, n, bias=True) for n in (300, 100, 17)])
        g = row("constants_gated_%s" % kind, dtype, 160, {"gemv": 1, "launches": 1}, (1, 160))
        gate, up = product(g, kind, "x", 160, 41, bias=True), product(g, kind, "x", 160, 41, bias=True)
        yield g.output(g.node("Mul", [relu(g, gate), up]), product(g, kind, "x", 160, 60, bias=True))
        g = row("constants_many_%s" % kind, dtype, 64, {"gemv": 1, "launches": 1}, (1, 64))
        yield g.output(product(g, kind, "x", 64, 17000, bias=True))
    for kind in kinds_of(dtype):
        g = row("constants_added_%s" % kind, dtype, 288, {"gemv": 1, "launches": 1})
        one = g.node("Mul", [added(g, kind, "x", 288, 47), g.weight((1, 1, 1))])
        yield g.output(*[added(g, kind, "x", 288, n) for n in (300, 100)], one)
        g = row("constants_five_%s" % kind, dtype, 96, {"gemv": 1, "launches": 1})  # more than are read before
        x = product(g, kind, "x", 96, 33)
        for _ in range(5):
            x = g.node("Add", [x, g.weight((33,))])
        yield g.output(x)
        g = row("operands_%s" % kind, dtype, 96, {"gemv": 2, "launches": 2}, (1, 96), tolerance=(2e-2, 2e-2))  # more than a kernel has
        outputs = []
        for _ in range(6):
            x = product(g, kind, "x", 96, 33, bias=kind != "plain")
            for _ in range(4 if kind != "plain" else 7):
                x = g.node("Add", [x, g.weight((33,))])
            outputs.append(x)
        yield g.output(*outputs)
        g = row("constants_each_%s" % kind, dtype, 896, {"gemv": 1, "launches": 1, "shared": 1})
        g.tuning = blocks(kind, "%dx1x16" % (141 + 2), 896, dtype, 120)
        yield g.output(*[added(g, kind, "x", 896, n) for n in (2250, 17)])
        g = row("constants_beside_%s" % kind, dtype, 512, {"gemv": 1, "launches": 1, "shared": 1})
        g.tuning = blocks(kind, "%dx2x16" % (6 + 282), 512, dtype, 120)
        gate, up = added(g, kind, "x", 512, 41), added(g, kind, "x", 512, 41)
        yield g.output(g.node("Mul", [relu(g, gate), up]), added(g, kind, "x", 512, 4500))
    if dtype == "f16":
        g = row("constants_kept", dtype, 2432, {"gemv": 1, "launches": 1, "shared": 1}, (1, 2432))
        g.tuning = blocks("nbits128", "%dx1x32" % (132 * 6 + 1), 2432, dtype, 120)
        yield g.output(product(g, "nbits128", "x", 2432, 32 * (132 * 6 + 1), bias=True))


def tiles(dtype):
    """Tiles of 8 rows of 16 bits, by the rule where each has a multiprocessor of 115 (of 132), else by a tuning file, whose keys gemv.c has; and what is as small in
    tiles of 16."""
    def case(name, k, n, tile=8, more=None, tuning=None):
        g = row("tiles_" + name, dtype, k, dict(more or {"gemv": 1, "launches": 1}, blocks=sum(-(-m // tile) for m in n)))
        if tuning:
            g.tuning = "gemv_rows/units=%dx8,k=%d,%s %d" % (sum(-(-m // 8) for m in n), k, dtype, tuning)
        return g
    for k, n in ((96, (512, 33, 8, 15, 7)), (1160, (896, 1)), (136, (920,)), (2048, (70, 64)), (4360, (24,))):
        for tile in (8, 16):
            g = case("%d_of_%d" % (k, tile), k, n, tile, tuning=0 if tile == 8 else 16)
            yield g.output(*[product(g, "plain", "x", k, m) for m in n])
    g = case("rule", 136, (913, 7), 16)
    yield g.output(*[product(g, "plain", "x", 136, m) for m in (913, 7)])
    g = case("biased", 448, (450, 130, 128))
    yield g.output(*[added(g, "plain", "x", 448, m) for m in (450, 130, 128)])
    g = case("normed", 456, (450, 130, 128))
    x = g.node("SimplifiedLayerNormalization", ["x", g.weight((456,))], epsilon=1e-6, axis=-1)
    yield g.output(*[added(g, "plain", x, 456, m) for m in (450, 130, 128)])
    g = case("residual", 1536, (901,))
    r = g.input("r", random(3, (1, 1, 901), dtype))
    yield g.output(g.node("Add", [r, product(g, "plain", "x", 1536, 901)]))
    for k, n in itertools.product((256, 320, 896, 1536, 5376), ((1200, 24), (1205, 13))):
        if k == 5376 and n[0] == 1200:
            n = (2400, 24)  # three tiles a block
        units = sum(-(-m // 8) for m in n)
        g = row("tiles_resident_%d_%d" % (k, n[0]), dtype, k, {"gemv": 1, "launches": 1, "shared": 1, "blocks": 132})
        g.tuning = "gemv_rows/units=%dx8,k=%d,%s 8\n" % (units, k, dtype) + blocks("plain", "%dx1x8" % units, k, dtype, 120)
        yield g.output(*[added(g, "plain", "x", k, m) for m in n])


def cases():
    for dtype in ("f16", "bf16"):
        yield from tiles(dtype)
        yield from constants(dtype)
        yield from sides(dtype)
        yield from sizes(dtype)
        yield from residents(dtype)
        yield from groups(dtype)
        yield from epilogues(dtype)
    g = row("wide_type", "f32", 96, {"gemv": 0})
    yield g.output(product(g, "plain", "x", 96, 33), product(g, "nbits32", "x", 96, 33))
