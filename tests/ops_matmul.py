"""ops_matmul.py - cases for compiler/ops/matmul.c: every kernel (B along k, along n, neither), tails, batches, epilogues."""
import numpy as np

from op_models import TYPES, Case, Const, Graph, random

SHAPES = (
    ((1, 64), (64, 48)), ((1, 896), (896, 1152)), ((1, 577), (577, 1003)), ((5, 33), (33, 7)), ((1, 1, 576), (576, 1536)),
    ((2, 3, 40), (40, 24)), ((64, 256), (256, 136)), ((2, 4, 6, 32), (2, 4, 32, 10)), ((1, 9, 1, 64), (1, 9, 64, 33)),
    ((2, 1, 5, 16), (3, 16, 8)), ((3, 5, 16), (16, 8)), ((16,), (16, 9)), ((7, 16), (16,)), ((16,), (16,)), ((2, 7, 16), (16,)),
    ((16,), (3, 16, 5)), ((1, 2048), (2048, 16)), ((4, 1), (1, 6)),
)


def label(*shapes):
    return "_by_".join("x".join(map(str, s)) for s in shapes)


def scaled(seed, shape, dtype, inner):
    return random(seed, shape, dtype, float(inner) ** -0.25)


def matmuls(dtype):
    for a_shape, b_shape in SHAPES:
        inner = a_shape[-1]
        a, b = scaled(1, a_shape, dtype, inner), scaled(2, b_shape, dtype, inner)
        yield Case("matmul_%s_%s" % (label(a_shape, b_shape), dtype), "MatMul", [("a", a), Const(b)], ["y"], dtype=dtype, opset=13)
    a, b = scaled(3, (2, 5, 24), dtype, 24), scaled(4, (2, 24, 6), dtype, 24)
    yield Case("matmul_inputs_" + dtype, "MatMul", [("a", a), ("b", b)], ["y"], dtype=dtype, opset=13)


def behind_vectors(dtype):
    """What the kernel counts as rows and columns is not what the result's axes are."""
    for a_shape, b_shape in (((3, 16), (16,)), ((2, 7, 16), (16,)), ((1, 5, 16), (16,)), ((16,), (1, 16, 5)), ((16,), (16, 5)), ((16,), (1, 2, 16, 5))):
        case = Graph("matmul_%s_add_%s" % (label(a_shape, b_shape), dtype), dtype, {})
        made = case.node("MatMul", [case.input("a", scaled(1, a_shape, dtype, 16)), case.input("b", scaled(2, b_shape, dtype, 16))])
        case.node("Mul", [case.node("Add", [made, case.weight(np.matmul(np.zeros(a_shape), np.zeros(b_shape)).shape)]), case.weight(())], ["y"])
        yield case.output("y")


def gemms(dtype):
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a = scaled(5, (40, 6) if trans_a else (6, 40), dtype, 40)
            b = scaled(6, (24, 40) if trans_b else (40, 24), dtype, 40)
            for name, c in (("none", None), ("scalar", ()), ("one", (1,)), ("row", (24,)), ("column", (6, 1)), ("full", (6, 24))):
                bias = None if c is None else Const(random(7, c, dtype))
                yield Case("gemm_%d%d_%s_%s" % (trans_a, trans_b, name, dtype), "Gemm", [("a", a), Const(b), bias], ["y"],
                           {"alpha": 0.5, "beta": 1.5, "transA": trans_a, "transB": trans_b}, dtype=dtype, opset=13)
    for m in (1, 2, 3, 9):
        for k in (576, 904, 4864):
            a, b = scaled(8, (m, k), dtype, k), scaled(9, (130, k), dtype, k)
            yield Case("gemm_nk_%dx%d_%s" % (m, k, dtype), "Gemm", [("a", a), Const(b), Const(random(10, (130,), dtype))], ["y"],
                       {"transB": 1}, dtype=dtype, opset=13)
    a, b = scaled(11, (1, 48), dtype, 48), scaled(12, (4099, 48), dtype, 48)
    yield Case("gemm_nk_wide_" + dtype, "Gemm", [("a", a), Const(b)], ["y"], {"transB": 1}, dtype=dtype, opset=13)


def fused():
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a = random(13, (2, 3, 16, 5) if trans_a else (2, 3, 5, 16))
            b = random(14, (2, 3, 7, 16) if trans_b else (2, 3, 16, 7))
            yield Case("fused_%d%d" % (trans_a, trans_b), "FusedMatMul", [("a", a), ("b", b)], ["y"],
                       {"alpha": 0.125, "transA": trans_a, "transB": trans_b}, "com.microsoft")
    a, b = random(15, (5, 2, 3, 16)), random(16, (16, 2, 3, 7))
    yield Case("fused_batch", "FusedMatMul", [("a", a), ("b", b)], ["y"], {"transBatchA": 1, "transBatchB": 1}, "com.microsoft",
               expected=[np.einsum("mbck,kbcn->bcmn", a, b)])
    # shared facts D: an answer of onnxruntime 1.30
    yield Case("fused_vector", "FusedMatMul", [("a", np.array([[1, 2]], np.float32)), ("b", np.array([[3, 4]], np.float32))], ["y"],
               {"alpha": 0.5, "transB": 1}, "com.microsoft", expected=[np.array([[5.5]], np.float32)])


def integers():
    rng = np.random.default_rng(17)
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        a, b = rng.integers(0, 1000, (3, 5)).astype(dtype), rng.integers(0, 1000, (5, 4)).astype(dtype)
        yield Case("matmul_" + np.dtype(dtype).name, "MatMul", [("a", a), ("b", b)], ["y"], opset=13, expected=[a @ b])
    a, b = rng.standard_normal((3, 50)), rng.standard_normal((50, 4))
    yield Case("matmul_float64", "MatMul", [("a", a), ("b", b)], ["y"], opset=13, expected=[a @ b], tolerance=(1e-12, 1e-12))


# Batch, rows, columns: one for each tile of matmul_rows (32 x 64, 64 x 64, 64 x 128, 128 x 128), and what is no multiple of any.
TILES = ((1, 17, 64), (1, 70, 136), (1, 200, 72), (67, 100, 40), (200, 40, 24), (2, 33, 8))
# Batch, rows, columns, k: its wide form, with blocks of 128 rows and (the last: so many tiles that it pays) of 256; what fills them, and what does not; more steps than places.
WIDE = ((1, 128, 128, 64), (2, 200, 136, 104), (1, 300, 392, 72), (1, 130, 256, 520), (66, 250, 136, 296))


def tensor(dtype):
    """Many rows: the kernel for tensor cores, B along k and along n (the suite `tensor` runs these under --emulate-gpu)."""
    for batch, rows, columns in TILES:
        for inner in (32, 104) if batch < 3 else (40,):
            a, b = scaled(20, (batch, rows, inner), dtype, inner), scaled(21, (batch, inner, columns), dtype, inner)
            name = "%dx%dx%dx%d_%s" % (batch, rows, inner, columns, dtype)
            yield Case("mma_kn_" + name, "MatMul", [("a", a), Const(b)], ["y"], dtype=dtype, opset=13)
            yield Case("mma_nk_" + name, "FusedMatMul", [("a", a), Const(b.transpose(0, 2, 1))], ["y"], {"transB": 1, "alpha": 0.5},
                       "com.microsoft", dtype=dtype)
    for batch, rows, columns, inner in WIDE:
        a, b = scaled(27, (batch, rows, inner), dtype, inner), scaled(28, (batch, inner, columns), dtype, inner)
        name = "%dx%dx%dx%d_%s" % (batch, rows, inner, columns, dtype)
        yield Case("mma_broad_kn_" + name, "MatMul", [("a", a), Const(b)], ["y"], dtype=dtype, opset=13)
        yield Case("mma_broad_nk_" + name, "FusedMatMul", [("a", a), Const(b.transpose(0, 2, 1))], ["y"], {"transB": 1, "alpha": 0.5},
                   "com.microsoft", dtype=dtype)
    a, b = scaled(29, (140, 72), dtype, 72), scaled(30, (131, 72), dtype, 72)
    yield Case("mma_broad_gemm_" + dtype, "Gemm", [("a", a), Const(b), Const(random(31, (131,), dtype))], ["y"], {"transB": 1, "beta": 1.5}, dtype=dtype, opset=13)
    for columns in (1, 31, 130): # B along k takes any number of columns
        a, b = scaled(22, (40, 72), dtype, 72), scaled(23, (columns, 72), dtype, 72)
        yield Case("mma_gemm_%d_%s" % (columns, dtype), "Gemm", [("a", a), Const(b), Const(random(24, (columns,), dtype))], ["y"],
                   {"transB": 1, "beta": 1.5}, dtype=dtype, opset=13)
    # rows of 12 elements do not lie on 16 bytes; 520 k are more steps than places
    for inner in (12, 520):
        a, b = scaled(25, (18, inner), dtype, inner), scaled(26, (inner, 16), dtype, inner)
        yield Case("mma_inner_%d_%s" % (inner, dtype), "MatMul", [("a", a), Const(b)], ["y"], dtype=dtype, opset=13)


def cases():
    for dtype in ("f16", "bf16"):
        yield from tensor(dtype)
    for dtype in TYPES:
        yield from matmuls(dtype)
        yield from behind_vectors(dtype)
        yield from gemms(dtype)
    yield from fused()
    yield from integers()
