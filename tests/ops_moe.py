"""ops_moe.py - cases for compiler/ops/moe.c.

onnxruntime computes what its CPU kernels have; the rest is computed here, from the specification's formulas."""
import numpy as np

from op_models import TYPES, Case, Const, random


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def activate(name, gate, linear, alpha=1.0, beta=0.0, limit=np.inf):
    if linear is not None and name in ("silu", "swiglu"):
        gate = np.minimum(gate, limit)
        return gate * sigmoid(alpha * gate) * (np.clip(linear, -limit, limit) + beta)
    acted = {"relu": lambda g: np.maximum(g, 0), "gelu": lambda g: .5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + .044715 * g ** 3))),
             "silu": lambda g: g * sigmoid(g), "identity": lambda g: g, "relu2": lambda g: np.maximum(g, 0) ** 2}
    out = acted["gelu" if name == "geglu" else name](gate)
    return out if linear is None else out * linear


def mixture(x, router, w, b, top, act, fusion=0, normalise=False, shares=None, between=None, **numbers):
    """W, B: lists of fc1, fc2, fc3 (None: absent), as float64. BETWEEN: the type that lies between the products."""
    out = np.zeros(x.shape)
    for row in range(len(x)):
        chosen = np.argsort(-router[row], kind="stable")[:top]
        if shares is not None:
            share = shares[row, chosen]
            share = share / share.sum() if normalise and share.sum() else share
        else:
            e = np.exp(router[row] - router[row].max())
            share = e[chosen] / (e[chosen].sum() if normalise else e.sum())
        for s, expert in zip(share, chosen):
            h = w[0][expert] @ x[row] + (b[0][expert] if b[0] is not None else 0)
            linear = None
            if w[2] is not None:
                linear = w[2][expert] @ x[row] + (b[2][expert] if b[2] is not None else 0)
            elif fusion:
                h, linear = (h[0::2], h[1::2]) if fusion == 1 else np.split(h, 2)
            inner = activate(act, h, linear, **numbers)
            if between is not None:
                inner = wide(inner.astype(np.float32).astype(between))
            y = w[1][expert] @ inner + (b[1][expert] if b[1] is not None else 0)
            out[row] += s * y
    return out


def wide(array):
    return None if array is None else np.asarray(array, np.float32).astype(np.float64)


def tolerance(dtype):
    return (1e-4, 1e-5) if dtype == "f32" else None


def float_case(name, shape=(5, 16), experts=4, inner=24, top=2, act="relu", fusion=0, third=False, bias=True, dtype="f32", ort=False,
               normalise=0, seed=0, **attrs):
    hidden = shape[-1]
    x, router = random(seed, shape, dtype), random(seed + 1, (int(np.prod(shape[:-1])), experts), dtype)
    up = inner * 2 if fusion else inner
    w = [random(seed + 2, (experts, up, hidden), dtype, .3), random(seed + 3, (experts, hidden, inner), dtype, .3),
         random(seed + 4, (experts, inner, hidden), dtype, .3) if third else None]
    b = [random(seed + 5, (experts, up), dtype), random(seed + 6, (experts, hidden), dtype),
         random(seed + 7, (experts, inner), dtype) if third else None] if bias else [None] * 3
    constants = [Const(v) if v is not None else None for v in (w[0], b[0], w[1], b[1], w[2], b[2])]
    given = {"k": top, "activation_type": act, "swiglu_fusion": fusion, "normalize_routing_weights": normalise}
    numbers = {"alpha": attrs.get("activation_alpha", 1.0), "beta": attrs.get("activation_beta", 0.0),
               "limit": attrs.get("swiglu_limit", np.inf)}
    expected = None
    if not ort:
        y = mixture(wide(x).reshape(-1, hidden), wide(router), [wide(v) for v in w], [wide(v) for v in b], top, act, fusion, normalise,
                    **numbers)
        expected = [y.reshape(shape).astype(TYPES[dtype])]
    return Case(name, "MoE", [("x", x), ("router", router)] + constants, ["y"], {**given, **attrs}, "com.microsoft", expected=expected,
                dtype=dtype, tolerance=tolerance(dtype))


def floats():
    for act in ("relu", "gelu", "silu", "identity"):
        yield float_case("ort_" + act, act=act, ort=True)
        yield float_case("plain_" + act, act=act, bias=False)
    swiglu = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5}
    yield float_case("ort_interleaved", act="swiglu", fusion=1, ort=True, **swiglu)
    for fusion in (1, 2):
        yield float_case("fusion_%d" % fusion, act="swiglu", fusion=fusion, **swiglu)
        yield float_case("geglu_%d" % fusion, act="geglu", fusion=fusion)
    for act in ("silu", "swiglu", "gelu", "relu"):
        yield float_case("third_" + act, act=act, third=True)
    yield float_case("relu2", act="relu2")
    for dtype in ("f16", "bf16"):
        yield float_case("half_" + dtype, shape=(2, 3, 32), act="swiglu", fusion=2, dtype=dtype)
    yield float_case("ort_normalised", normalise=1, ort=True)
    yield float_case("normalised", shape=(2, 3, 16), normalise=1, top=3)
    yield float_case("odd_sizes", shape=(3, 13), inner=9)
    yield float_case("many", shape=(2, 64), experts=300, inner=32, top=9, normalise=1)
    yield float_case("all", experts=3, top=3)


def pack(q, bits):
    """Along the last axis, low bits first, rows padded to bytes."""
    per = 8 // bits
    pad = -q.shape[-1] % per
    q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, pad)]).astype(np.uint8).reshape(*q.shape[:-1], -1, per)
    return (q << (np.arange(per, dtype=np.uint8) * bits)).sum(-1).astype(np.uint8)


def quantised(rng, shape, bits, block, zeros):
    """Packed weights, scales, packed zero points (or None), and what they stand for."""
    experts, rows, columns = shape
    q = rng.integers(0, 2 ** bits, shape)
    count = -(-columns // block) if block else 1
    scale = (rng.random((experts, rows, count)) * .5 + .5).astype(np.float32) / 2 ** bits * .6
    zero = rng.integers(0, 2 ** bits, (experts, rows, count)) if zeros else np.full((experts, rows, count), 2 ** (bits - 1))
    packed_zero = (pack(zero, bits) if block else pack(zero[:, :, 0], bits)) if zeros else None
    spread = block or columns
    return pack(q, bits), scale if block else scale[:, :, 0], packed_zero, q, np.repeat(zero, spread, 2)[:, :, :columns], spread


def packed_case(name, bits=4, block=32, zeros=False, rows=3, hidden=64, inner=96, experts=4, top=2, act="swiglu", fusion=1, third=False,
                bias=False, shares=False, normalise=0, dtype="f32", ort=False, seed=0, shape=None, loose=None, between=None, scales=None,
                ties=False, logits=None, times=1.0, **attrs):
    """SCALES, LOGITS: their types, when not DTYPE. TIES: many of the router's logits are equal, "zeros": all are, of both signs. TIMES: what the input is multiplied with."""
    rng = np.random.default_rng(seed)
    up = inner * 2 if fusion else inner
    shapes = [(experts, up, hidden), (experts, hidden, inner), (experts, inner, hidden) if third else None]
    weights, inputs = [], []
    for s in shapes:
        if s is None:
            weights.append((None,) * 4)
            continue
        packed, scale, zero, q, z, spread = quantised(rng, s, bits, block, zeros)
        scale = scale.astype(TYPES[scales or dtype])
        full = np.repeat(np.asarray(scale, np.float32).reshape(*s[:2], -1), spread, 2)[:, :, :s[2]]
        weights.append((packed, scale, zero, (q - z) * full.astype(np.float64)))
    b = [random(seed + 9 + i, s[:2], dtype) if bias and s else None for i, s in enumerate(shapes)]
    x = random(seed + 1, shape or (rows, hidden), dtype, times)
    router = random(seed + 2, (x.size // hidden, experts), logits or dtype)
    if ties == "zeros":
        router = np.copysign(0.0, wide(router)).astype(TYPES[logits or dtype])
    elif ties:
        router = (np.ceil(wide(router)).clip(0, 1) + .25).astype(TYPES[logits or dtype])
    own = np.abs(random(seed + 3, (x.size // hidden, experts), dtype)) if shares else None
    for i in range(3):
        inputs += [weights[i][0], weights[i][1], b[i]]
    inputs += [w[2] for w in weights]
    given = [Const(v) if v is not None else None for v in inputs] + ([("shares", own)] if shares else [])
    given_attrs = {"k": top, "activation_type": act, "swiglu_fusion": fusion, "normalize_routing_weights": normalise,
                   "expert_weight_bits": bits, "weights_prepacked": 0, **({"block_size": block} if block else {}), **attrs}
    numbers = {"alpha": attrs.get("activation_alpha", 1.0), "beta": attrs.get("activation_beta", 0.0),
               "limit": attrs.get("swiglu_limit", np.inf)}
    expected = None
    if not ort:
        y = mixture(wide(x).reshape(-1, hidden), wide(router), [w[3] for w in weights], [wide(v) for v in b], top, act, fusion, normalise,
                    wide(own), between, **numbers)
        expected = [y.reshape(x.shape).astype(TYPES[dtype])]
    return Case(name, "QMoE", [("x", x), ("router", router)] + given, ["y"], given_attrs, "com.microsoft", expected=expected, dtype=dtype,
                tolerance=loose or tolerance(dtype))


def packed():
    for bits in (4, 8):
        for zeros in (False, True):
            label = "%d_%s" % (bits, "zeros" if zeros else "plain")
            # onnxruntime's CPU kernel normalises whatever the attribute says (its CUDA kernel does not), and computes 8-bit blocks
            # with activations in 8 bits
            yield packed_case("q_ort_" + label, bits, zeros=zeros, normalise=1, ort=True, loose=(1e-1, 1e-1) if bits == 8 else None)
            yield packed_case("q_" + label, bits, zeros=zeros, bias=True)
            yield packed_case("q_column_" + label, bits, 0, zeros=zeros)
            yield packed_case("q_halves_" + label, bits, zeros=zeros, fusion=2, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=.7)
        yield packed_case("q_ort_column_%d" % bits, bits, 0, normalise=1, ort=True, loose=(1e-1, 1e-1) if bits == 8 else None)
        for block in (16, 64):
            yield packed_case("q_block_%d_%d" % (bits, block), bits, block, zeros=True, inner=128)
    yield packed_case("q_2", 2, zeros=True)
    yield packed_case("q_third", act="silu", fusion=0, third=True, zeros=True, bias=True)
    yield packed_case("q_relu", act="relu", fusion=0)
    for normalise in (0, 1):
        yield packed_case("q_shares_%d" % normalise, shares=True, normalise=normalise)
        yield packed_case("q_ort_shares_%d" % normalise, shares=True, normalise=normalise, ort=True)
    for dtype in ("f16", "bf16"):
        yield packed_case("q_" + dtype, dtype=dtype, shape=(2, 2, 64), fusion=2, normalise=1, top=3, zeros=True)
    yield packed_case("q_bits_mixed", 4, fusion=2, fc2_expert_weight_bits=4)


def tensor(dtype):
    """Many rows: the experts' products on tensor cores (the suite `tensor` runs these under --emulate-gpu), with the activations'
    type between them, as onnxruntime's CUDA kernel has it."""
    def many(name, between=TYPES[dtype], **more):
        return packed_case("mma_%s_%s" % (name, dtype), dtype=dtype, between=between, **more)
    yield many("few_each", rows=20, experts=12, top=3, inner=64, fusion=2, normalise=1, zeros=True)
    yield many("many_each", rows=100, experts=3, zeros=True, bias=True)
    yield many("one_expert", rows=70, experts=40, top=1, hidden=96, fusion=2, normalise=1)
    yield many("third", shape=(3, 9, 64), act="silu", fusion=0, third=True, zeros=True, bias=True)
    yield many("relu", rows=17, act="relu", fusion=0, shares=True)
    yield many("block_64", rows=33, block=64, inner=128, hidden=192, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=.7)
    yield many("column", rows=17, block=0, between=None) # one scale a row: the kernels for few rows


def vectors():
    """facts/operators.md section D."""
    ones, unit = np.ones((2, 2, 2), np.float32), np.eye(2, dtype=np.float32)
    yield Case("vector_moe", "MoE", [("x", np.array([[1, 2]], np.float32)), ("router", np.array([[0, 1]], np.float32)), Const(ones), None,
                                     Const(np.stack([unit, 2 * unit]))], ["y"], {"k": 1, "activation_type": "relu"}, "com.microsoft",
               expected=[np.array([[4.386352, 4.386352]], np.float32)])


def cases():
    for dtype in ("f16", "bf16"):
        yield from tensor(dtype)
    yield from floats()
    yield from packed()
    yield from vectors()
