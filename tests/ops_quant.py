"""ops_quant.py - cases for compiler/ops/quant.c. Where onnxruntime's CPU provider takes less than the schema, the expected
values are computed here from the definition, in float64."""
import numpy as np

from op_models import TOLERANCES, TYPES, Case, Const, random

MS = "com.microsoft"


def pack(values, bits):
    """Low bits first along the last axis, padded to whole bytes."""
    per = 8 // bits
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % per)])
    out = np.zeros(values.shape[:-1] + (values.shape[-1] // per,), np.uint8)
    for i in range(per):
        out |= (values[..., i::per] << (i * bits)).astype(np.uint8)
    return out


class Weights:
    def __init__(self, seed, k, n, bits, block, dtype, zero):
        rng = np.random.default_rng(seed)
        self.k, self.n, self.bits, self.block = k, n, bits, block
        self.blocks = -(-k // block)
        self.q = rng.integers(0, 1 << bits, (n, self.blocks * block)).astype(np.uint8)
        self.scales = (rng.random((n, self.blocks)) * (0.5 if bits == 8 else 4) / (1 << bits) / np.sqrt(k)).astype(np.float32).astype(TYPES[dtype])
        self.zeros = None
        z = np.full((n, self.blocks), 1 << (bits - 1), np.float64)
        if zero == "packed":
            z = rng.integers(0, 1 << bits, (n, self.blocks)).astype(np.uint8)
            self.zeros = pack(z, bits)
        elif zero == "values":
            self.zeros = (rng.random((n, self.blocks)) * (1 << bits)).astype(np.float32).astype(TYPES[dtype])
            z = self.zeros
        self.z = z.astype(np.float64)

    def packed(self):
        return pack(self.q.reshape(self.n, self.blocks, self.block), self.bits)

    def dense(self, groups=None):
        if groups is None:
            groups = np.arange(self.k) // self.block
        q = self.q[:, :self.k].astype(np.float64)
        return (q - self.z[:, groups]) * self.scales.astype(np.float64)[:, groups]

    def attrs(self, **more):
        return dict(K=self.k, N=self.n, bits=self.bits, block_size=self.block, **more)


def nbits(name, seed, a_shape, n, bits, block, dtype, zero, bias=False, groups=None, flat=False):
    w = Weights(seed, a_shape[-1], n, bits, block, dtype, zero)
    a = random(seed + 1, a_shape, dtype)
    b = random(seed + 2, (n,), dtype)
    y = a.astype(np.float64) @ w.dense(groups).T + (b.astype(np.float64) if bias else 0)
    inputs = [("a", a), Const(w.packed()), Const(w.scales.reshape(-1) if flat else w.scales),
              None if w.zeros is None else Const(w.zeros.reshape(-1) if flat and zero == "packed" else w.zeros),
              None if groups is None else Const(groups.astype(np.int32)), Const(b) if bias else None]
    return Case("nbits_%s_%s" % (name, dtype), "MatMulNBits", inputs, ["y"], w.attrs(), MS, dtype=dtype,
                expected=[y.astype(np.float32).astype(TYPES[dtype])])


def matmuls(dtype):
    for bits in (2, 4, 8):
        for block in (16, 32, 128):
            for zero in ("none", "packed", "values"):
                yield nbits("%d_%d_%s" % (bits, block, zero), 1, (1, 1, 288), 70, bits, block, dtype, zero)
    for bits in (4, 8):
        yield nbits("%d_rows" % bits, 2, (2, 7, 96), 33, bits, 32, dtype, "packed", bias=True)
        yield nbits("%d_tail" % bits, 3, (3, 45), 17, bits, 32, dtype, "packed", bias=True)
        yield nbits("%d_groups" % bits, 4, (2, 64), 9, bits, 16, dtype, "packed", groups=np.arange(64)[::-1] // 16)
    yield nbits("flat", 5, (1, 96), 40, 4, 32, dtype, "packed", flat=True)
    yield nbits("vector", 6, (64,), 40, 4, 32, dtype, "none")
    yield nbits("wide", 7, (1, 1, 64), 4100, 4, 32, dtype, "packed")
    yield nbits("many", 10, (1, 1, 160), 9001, 4, 32, dtype, "packed", bias=True) # blocks make several tiles
    yield nbits("long", 8, (1, 1, 4864), 64, 4, 32, dtype, "packed")
    yield nbits("groups_values", 9, (1, 64), 9, 4, 32, dtype, "values", groups=np.arange(64) % 2)


def tensor(dtype):
    """Many rows: the kernel for tensor cores, each of its tiles."""
    for shape, n, block, zero in (((17, 64), 64, 32, "none"), ((3, 30, 96), 33, 32, "packed"), ((70, 520), 130, 64, "packed"),
                                  ((67, 2, 100, 32), 40, 32, "none"), ((33, 45), 24, 32, "packed"), ((20, 256), 8, 128, "packed"),
                                  ((1600, 40), 2050, 32, "packed"), ((20, 64), 8, 16, "packed"), ((20, 64), 8, 32, "values")):
        yield nbits("mma_%s_%d_%d_%s" % ("x".join(map(str, shape)), n, block, zero), 30, shape, n, 4, block, dtype, zero, bias=True)


def wide(dtype):
    """Hundreds of rows, 128 columns or more: the kernel for the tensor cores of sm_90a. Rows, k, columns: of its tiles and no multiples of any, an odd
    half of 64 k, more steps than places, a block that is not whole; both heights (the last: so many tiles that 256 rows pay). Weights are
    rounded."""
    def with_kernel(case, times=2):
        case.kernels, case.tolerance = {"matmul_wide": 1, "launches": 1}, tuple(times * t for t in TOLERANCES[dtype])
        return case

    for shape, n, block, zero in (((130, 128), 136, 32, "packed"), ((257, 896), 264, 128, "packed"), ((128, 96), 129, 32, "none"),
                                  ((3, 86, 480), 384, 64, "packed"), ((128, 32), 128, 32, "packed"), ((140, 160), 250, 128, "none"),
                                  ((850, 352), 2309, 32, "packed")):
        name = "mma_wide_%s_%d_%d_%s" % ("x".join(map(str, shape)), n, block, zero)
        yield with_kernel(nbits(name, 40, shape, n, 4, block, dtype, zero, bias=n != 136))
    # the scale behind the end of a column, in the half of 64 k that is not there, is another column's: no number here, so that that column has none
    w = Weights(45, 96, 128, 4, 32, dtype, "packed")
    w.scales[1::2, 0] = np.nan
    a = random(46, (128, 96), dtype)
    with np.errstate(invalid="ignore"):
        y = (a.astype(np.float64) @ w.dense().T).astype(np.float32).astype(TYPES[dtype])
    yield with_kernel(Case("nbits_mma_wide_scale_" + dtype, "MatMulNBits", [("a", a), Const(w.packed()), Const(w.scales), Const(w.zeros)], ["y"],
                           w.attrs(), MS, dtype=dtype, expected=[y]))
    # what follows is computed in its kernel: a gate, and a residual
    case = nbits("mma_wide_residual", 41, (150, 96), 264, 4, 32, dtype, "packed")
    first, residual = case.expected[0].astype(np.float64), random(44, (150, 264), dtype)
    case.expected = [(first / (1 + np.exp(-residual.astype(np.float64))) + residual.astype(np.float64)).astype(np.float32).astype(TYPES[dtype])]
    case.own = len(case.inputs)
    case.inputs.append(("r", residual))
    case.tail = [("Sigmoid", ["r"], "g", {}), ("Mul", ["first", "g"], "u", {}), ("Add", ["u", "r"], "y", {})]
    yield with_kernel(case, 4) # the product is rounded too


def oracle():
    """The same answers from onnxruntime, where its CPU provider can."""
    for bits, block, zero in ((4, 32, "packed"), (4, 32, "values"), (4, 128, "none"), (4, 16, "packed"), (8, 32, "packed"), (8, 64, "none")):
        w = Weights(11, 192, 48, bits, block, "f32", zero)
        inputs = [("a", random(12, (3, 192))), Const(w.packed()), Const(w.scales), None if w.zeros is None else Const(w.zeros)]
        yield Case("nbits_ort_%d_%d_%s" % (bits, block, zero), "MatMulNBits", inputs, ["y"], w.attrs(), MS, tolerance=(1e-4, 1e-5))
    # shared facts D: answers of onnxruntime 1.30 (tail block, nibble order, odd number of blocks)
    inputs = [("a", np.ones((1, 48), np.float32)), Const(np.full((2, 2, 16), 0x99, np.uint8)), Const(np.array([[.5, .25], [1, 2]], np.float32))]
    attrs = dict(K=48, N=2, bits=4, block_size=32)
    yield Case("nbits_vector_symmetric", "MatMulNBits", inputs, ["y"], attrs, MS, expected=[np.array([[20, 64]], np.float32)])
    yield Case("nbits_vector_zeros", "MatMulNBits", inputs + [Const(np.array([[0x31], [0x72]], np.uint8))], ["y"], attrs, MS,
               expected=[np.array([[152, 288]], np.float32)])


def gathers():
    data = np.array([[0x98] * 8, [0x7a] * 8], np.uint8)
    rows = np.array([[4, -2] * 8, [4, -2] * 8, [0, 1] * 8], np.float32)
    yield Case("gather_vector", "GatherBlockQuantized", [Const(data), ("i", np.array([1, -1, 0])), Const(np.array([[1], [2]], np.float32))],
               ["y"], {"block_size": 16}, MS, expected=[rows])
    rng = np.random.default_rng(20)
    for dtype in ("f32", "f16", "bf16"):
        for bits in (2, 4, 8):
            for zero in (False, True):
                q = rng.integers(0, 1 << bits, (11, 80)).astype(np.uint8)
                scales = random(21, (11, 5), dtype)
                z = rng.integers(0, 1 << bits, (11, 5)).astype(np.uint8) if zero else np.full((11, 5), 1 << (bits - 1))
                indices = np.array([[3, -1, 0], [10, 5, -11]], np.int32 if bits == 2 else np.int64)
                w = (q.reshape(11, 5, 16).astype(np.float64) - z[:, :, None]) * scales.astype(np.float64)[:, :, None]
                y = w.reshape(11, 80)[indices].astype(np.float32).astype(TYPES[dtype])
                inputs = [Const(pack(q, bits)), ("i", indices), Const(scales)] + ([Const(pack(z, bits))] if zero else [])
                yield Case("gather_%d_%s_%s" % (bits, "zeros" if zero else "plain", dtype), "GatherBlockQuantized", inputs, ["y"],
                           {"block_size": 16, "bits": bits}, MS, dtype=dtype, expected=[y])


def linears():
    rng = np.random.default_rng(30)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        info = np.iinfo(dtype)
        x = rng.integers(max(info.min, -30000), min(info.max, 30000), (3, 6, 10)).astype(dtype)
        name = np.dtype(dtype).name
        zero = [] if dtype == np.int32 else [Const(np.asarray(7, dtype))]
        yield Case("dequantize_tensor_" + name, "DequantizeLinear", [("x", x), Const(np.float32(0.02))] + zero, ["y"], opset=21)
        for axis, length in ((0, 3), (1, 6), (-1, 10)):
            zero = [] if dtype == np.int32 else [Const(rng.integers(0, 100, length).astype(dtype))]
            yield Case("dequantize_axis%d_%s" % (axis, name), "DequantizeLinear",
                       [("x", x), Const(rng.random(length).astype(np.float32))] + zero, ["y"], {"axis": axis}, opset=21)
        if dtype != np.int32:
            for axis, shape in ((1, (3, 2, 10)), (2, (3, 6, 3))):
                scales, zeros = rng.random(shape).astype(np.float32), rng.integers(0, 100, shape).astype(dtype)
                block = 4 if axis == 2 else 3
                wide = [np.repeat(v, block, axis)[:, :6, :10].astype(np.float64) for v in (scales, zeros)]
                y = ((x - wide[1]) * wide[0]).astype(np.float32)
                yield Case("dequantize_block%d_%s" % (axis, name), "DequantizeLinear", [("x", x), Const(scales), Const(zeros)],
                           ["y"], {"axis": axis, "block_size": block}, opset=21, expected=[y])
    for dtype in (np.uint8, np.int8):
        x = random(31, (4, 50), "f32", 3.0)
        for axis, scales in ((1, np.float32(0.05)), (0, rng.random(4).astype(np.float32) + 0.1)):
            zero = np.full(np.shape(scales), 5, dtype)
            yield Case("quantize_%s_%d" % (np.dtype(dtype).name, axis), "QuantizeLinear", [("x", x), Const(scales), Const(zero)], ["y"],
                       {"axis": axis}, opset=13)


def cases():
    for dtype in ("f16", "bf16"):
        yield from tensor(dtype)
        yield from wide(dtype)
    for dtype in TYPES:
        yield from matmuls(dtype)
    yield from oracle()
    yield from gathers()
    yield from linears()
