"""property_cases.py - random nodes for tests/run_properties.py: for each operator a function that draws one.

Each function gets a Draw (a seeded generator with habits: zero-size and size-one dims, rank 0 to 6, negative axes) and returns a
Drawn: inputs, attributes, outputs. DRAWS lists them by operator; EXEMPT says of every other operator of the support table
why it has none and what tests its shapes instead."""
import numpy as np

FLOATS = (np.float32, np.float64)
NUMBERS = (np.float32, np.float64, np.int64, np.int32, np.uint8, np.int8)
ANY = NUMBERS + (np.bool_, np.float16, np.uint16)
MS = "com.microsoft"


class Const(np.ndarray):
    """An input that stands in the model as an initializer."""


def const(values, dtype=np.int64):
    return np.asarray(values, dtype).view(Const)


class Drawn:
    """One node. INPUTS: arrays, Const ones are initializers, None is absent. FIXED: numbers of inputs whose dims stand in the model
    as numbers also where the other inputs have symbols. OPSET: of the domain."""

    def __init__(self, op, inputs, attrs=None, outputs=1, opset=21, domain="", fixed=(), oracle="ort", equal=None, exact=True):
        self.op, self.inputs, self.attrs, self.outputs = op, inputs, attrs or {}, outputs
        self.opset, self.domain, self.fixed, self.oracle = opset, domain, fixed, oracle
        self.equal, self.exact = equal, exact


class Draw:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def below(self, n):
        return int(self.rng.integers(0, n))

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def chance(self, p):
        return self.rng.random() < p

    def dim(self, low=0):
        """0 and 1 more often than chance would have it; at most 5."""
        if low == 0 and self.chance(0.08):
            return 0
        return max(low, 1) if self.chance(0.2) else max(low, 2 + self.below(4))

    def shape(self, low=0, high=6, least=0):
        """A rank in LOW..HIGH, dims of at least LEAST."""
        rank = low + self.below(high - low + 1)
        return tuple(self.dim(least) for _ in range(rank))

    def axis(self, rank):
        return self.below(2 * rank) - rank

    def axes(self, rank, least=0):
        """Some different axes, each from the front or from the back."""
        count = least + self.below(rank - least + 1)
        chosen = self.rng.permutation(rank)[:count]
        return [int(a) - (rank if self.chance(0.5) else 0) for a in chosen]

    def values(self, shape, dtype=np.float32, low=-9, high=9):
        """Small integers, or floats around zero."""
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.integers(0, 2, shape).astype(np.bool_)
        if dtype.kind == "f":
            return (np.round(self.rng.standard_normal(shape) * 32) / 16).astype(dtype).reshape(shape)  # sums of these are exact
        return np.asarray(self.rng.integers(max(low, 0) if dtype.kind == "u" else low, high, shape)).astype(dtype).reshape(shape)

    def narrowed(self, shape, p=0.35):
        """A shape that broadcasts to SHAPE: some dims one, leading ones left out."""
        dims = [1 if self.chance(p) else d for d in shape]
        return tuple(dims[self.below(len(dims) + 1):] if self.chance(0.4) else dims)

    def broadcast(self, count, dtype, high=6, low=-9):
        """COUNT arrays that broadcast to one shape."""
        shape = self.shape(0, high)
        return [self.values(self.narrowed(shape), dtype, low) for _ in range(count)]


# ---- element by element

def unary(op, low=None, high=None, dtypes=FLOATS[:1], opset=21, attrs=lambda d: {}):
    def draw(d):
        x = d.values(d.shape(), d.pick(dtypes))
        if low is not None:
            x = np.clip(np.abs(x) if low >= 0 else x, low, high).astype(x.dtype)
        return Drawn(op, [x], attrs(d), opset=opset)
    return draw


def binary(op, dtypes, opset=21, low=-9, attrs=lambda d: {}):
    def draw(d):
        return Drawn(op, d.broadcast(2, d.pick(dtypes), low=low), attrs(d), opset=opset)
    return draw


def variadic(op):
    def draw(d):
        return Drawn(op, d.broadcast(1 + d.below(4), np.float32, 4))
    return draw


def divided(op, attrs=lambda d: {}):
    """The second operand is no zero."""
    def draw(d):
        a, b = d.broadcast(2, d.pick((np.float32, np.int64, np.int32)))
        return Drawn(op, [a, np.where(b == 0, 3, b).astype(b.dtype)], attrs(d))
    return draw


def power(d):
    a, b = d.broadcast(2, np.float32)
    return Drawn("Pow", [np.abs(a) + np.float32(0.5), b])


def modulo(d):
    a, b = d.broadcast(2, d.pick((np.float32, np.int64, np.int32)))
    return Drawn("Mod", [a, np.where(b == 0, 3, b).astype(b.dtype)], {"fmod": 1} if a.dtype.kind == "f" or d.chance(0.5) else {})


def shift(d):
    a, b = d.broadcast(2, d.pick((np.uint8, np.uint32)), low=0)
    return Drawn("BitShift", [a, np.minimum(b, 7)], {"direction": d.pick(("LEFT", "RIGHT"))})


def select(d):
    c, a, b = d.broadcast(3, d.pick(NUMBERS))
    return Drawn("Where", [c > 0, a, b])


def clip(d):
    dtype = d.pick((np.float32, np.int64, np.int32))
    bounds = [const(-2, dtype) if d.chance(0.7) else None, const(3, dtype) if d.chance(0.7) else None]
    return Drawn("Clip", [d.values(d.shape(), dtype)] + bounds)


def prelu(d):
    shape = d.shape(1, 5)
    return Drawn("PRelu", [d.values(shape), d.values(d.narrowed(shape))])


def cast(d):
    from onnx import helper
    to = np.dtype(d.pick((np.float32, np.float64, np.int64, np.int32, np.int8, np.uint8, np.bool_, np.float16)))
    x = d.values(d.shape(), d.pick(ANY), low=0)
    return Drawn("Cast", [np.abs(x) if x.dtype.kind == "f" else x], {"to": helper.np_dtype_to_tensor_dtype(to)})


def cast_like(d):
    x = d.values(d.shape(), d.pick(ANY), low=0)
    like = d.values(d.shape(), d.pick(NUMBERS))
    return Drawn("CastLike", [np.abs(x) if x.dtype.kind == "f" else x, like])


def is_inf(d):
    x = d.values(d.shape())
    x = np.where(x > 2, np.float32(np.inf), np.where(x < -2, np.float32(-np.inf), x)).astype(np.float32)
    return Drawn("IsInf", [x], {"detect_negative": d.below(2), "detect_positive": d.below(2)}, opset=20)


def is_nan(d):
    x = d.values(d.shape())
    return Drawn("IsNaN", [np.where(x > 1, np.float32(np.nan), x).astype(np.float32)], opset=20)


def bias_gelu(op):
    def draw(d):
        x = d.values(d.shape(1, 4))
        return Drawn(op, [x, d.values(x.shape[-1:])], opset=1, domain=MS)
    return draw


# ---- what only looks at shapes

def shape_of(d):
    attrs = {}
    if d.chance(0.6):
        attrs["start"] = d.below(9) - 4
    if d.chance(0.6):
        attrs["end"] = d.below(9) - 4
    return Drawn("Shape", [d.values(d.shape())], attrs)


def size_of(d):
    return Drawn("Size", [d.values(d.shape())])


def constant_of_shape(d):
    from onnx import numpy_helper
    value = d.values((1,), d.pick(NUMBERS))
    return Drawn("ConstantOfShape", [const(d.shape())], {"value": numpy_helper.from_array(value)})


def eye_like(d):
    return Drawn("EyeLike", [d.values(d.shape(2, 2))], {"k": d.below(7) - 3})


def ranged(d):
    dtype = d.pick((np.int64, np.int32, np.float32))
    step = d.pick((1, 2, 3, -1, -2))
    return Drawn("Range", [const(v, dtype) for v in (d.below(5), d.below(12) - 4, step)])


def expand(d):
    shape = d.shape(0, 5)
    x = d.values(d.narrowed(shape), d.pick(ANY))
    return Drawn("Expand", [x, const(d.narrowed(shape) if d.chance(0.4) else shape)])


def reshape(d):
    x = d.values(d.shape(0, 5), d.pick(ANY))
    parts = [int(p) for p in factors(d, x.size)] if x.size else list(x.shape)
    order = [int(i) for i in d.rng.permutation(len(parts))] if x.size else range(len(parts))
    target = [parts[i] for i in order]
    if target and x.size and d.chance(0.5):
        target[d.below(len(target))] = -1
    if x.size and x.ndim and target[:1] == list(x.shape[:1]) and d.chance(0.5):
        target[0] = 0
    # Where -1 is no quotient of the symbols, the result has no bound and is refused.
    return Drawn("Reshape", [x, const(target)], {"allowzero": 1} if not x.size else {}, fixed=(0,) if -1 in target else ())


def factors(d, n):
    """N as a product of a few numbers, ones among them."""
    parts = [1] * d.below(3)
    for p in (2, 3, 5):
        while n % p == 0:
            n //= p
            if parts and d.chance(0.5):
                parts[d.below(len(parts))] *= p
            else:
                parts.append(p)
    return parts + ([n] if n > 1 else [])


def flatten(d):
    shape = d.shape(0, 5)
    return Drawn("Flatten", [d.values(shape, d.pick(ANY))], {"axis": d.below(2 * len(shape) + 1) - len(shape)})


def squeeze(d):
    shape = list(d.shape(1, 6))
    ones = [i for i, s in enumerate(shape) if s == 1]
    if not ones or d.chance(0.3):
        return Drawn("Squeeze", [d.values(shape, d.pick(ANY))], fixed=(0,))
    chosen = [i - (len(shape) if d.chance(0.5) else 0) for i in ones if d.chance(0.7)] or ones
    return Drawn("Squeeze", [d.values(shape, d.pick(ANY)), const(chosen)])


def unsqueeze(d):
    shape = d.shape(0, 4)
    new = 1 + d.below(2)
    return Drawn("Unsqueeze", [d.values(shape, d.pick(ANY)), const((d.axes(len(shape) + new, new))[:new])])


# ---- reductions

def reduction(op, dtypes=(np.float32,), opset=18):
    def draw(d):
        shape = d.shape(0, 5, int(op == "ReduceMean"))  # the mean of nothing is not defined
        x = d.values(shape, d.pick(dtypes))
        attrs = {"keepdims": d.below(2)}
        if op == "ReduceLogSum":
            x = np.abs(x) + np.float32(0.1)
        inputs = [x]
        if d.chance(0.8):
            inputs.append(const(d.axes(len(shape), min(1, len(shape)))))
        if d.chance(0.3):
            attrs["noop_with_empty_axes"] = 1
        return Drawn(op, inputs, attrs, opset=opset)
    return draw


def arg(op):
    def draw(d):
        x = d.values(d.shape(1, 5), d.pick((np.float32, np.int32)), -2, 2)
        return Drawn(op, [x], {"axis": d.axis(x.ndim), "keepdims": d.below(2), "select_last_index": d.below(2)})
    return draw


def along_axis(op, low=1, opset=21, more=lambda d: {}):
    def draw(d):
        x = d.values(d.shape(low, 5))
        return Drawn(op, [x], {"axis": d.axis(x.ndim), **more(d)}, opset=opset)
    return draw


def running(op):
    def draw(d):
        x = d.values(d.shape(1, 5))
        return Drawn(op, [x, const(d.axis(x.ndim))], {"exclusive": d.below(2), "reverse": d.below(2)})
    return draw


def layer_norm(d):
    x = d.values(d.shape(1, 5))
    axis = d.axis(x.ndim)
    dims = x.shape[axis % x.ndim:]
    inputs = [x, d.values(dims)] + ([d.values(dims)] if d.chance(0.5) else [])
    return Drawn("LayerNormalization", inputs, {"axis": axis}, 1 + 2 * d.below(2))


def rms_norm(d):
    x = d.values(d.shape(1, 5))
    axis = d.axis(x.ndim)
    return Drawn("RMSNormalization", [x, d.values(x.shape[axis % x.ndim:])], {"axis": axis}, opset=23, oracle="reference")


def simplified_norm(d):
    x = d.values(d.shape(1, 5))
    return Drawn("SimplifiedLayerNormalization", [x, d.values(x.shape[-1:])], {"axis": -1})


def skip_norm(op):
    def draw(d):
        x = d.values(d.shape(3, 3))
        skip = d.pick((x.shape, (1,) + x.shape[1:], x.shape[1:]))
        inputs = [x, d.values(skip)] + [d.values(x.shape[-1:]) for _ in range(1 if "Simpl" in op else 2)]
        return Drawn(op, inputs, {"epsilon": 1e-5}, opset=1, domain=MS)
    return draw


def instance_norm(d):
    x = d.values(d.shape(3, 5))
    return Drawn("InstanceNormalization", [x, d.values(x.shape[1:2]), d.values(x.shape[1:2])])


def group_norm(d):
    groups, each = 1 + d.below(3), 1 + d.below(3)
    x = d.values((d.dim(), groups * each) + d.shape(0, 3, 1))
    weights = [d.values((groups * each,)) for _ in range(2)]
    return Drawn("GroupNormalization", [x] + weights, {"num_groups": groups}, oracle="reference", fixed=(0, 1, 2))


def batch_norm(d):
    x = d.values(d.shape(2, 5))
    c = x.shape[1:2]
    return Drawn("BatchNormalization", [x, d.values(c), d.values(c), d.values(c), np.abs(d.values(c)) + np.float32(0.5)])


def lrn(d):
    return Drawn("LRN", [d.values(d.shape(4, 4))], {"size": 1 + 2 * d.below(3), "alpha": 0.01, "bias": 1.5})


def variance_norm(d):
    shape = d.shape(2, 5, 2)  # equal elements have no deviation: onnxruntime says NaN, the operator's body 0
    x = d.rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    return Drawn("MeanVarianceNormalization", [x], {"axes": sorted(a % len(shape) for a in d.axes(len(shape), 1))})


# ---- products

def matmul(op="MatMul", dtypes=(np.float32, np.int32), opset=21):
    def draw(d):
        batch, k = d.shape(0, 3), d.dim()
        dtype = d.pick(dtypes)
        a = (k,) if d.chance(0.15) else d.narrowed(batch) + (d.dim(), k)
        b = (k,) if d.chance(0.15) else d.narrowed(batch) + (k, d.dim())
        return Drawn(op, [d.values(a, dtype), d.values(b, dtype)], opset=opset)
    return draw


def matmul_integer(d):
    batch, k = d.shape(0, 2), d.dim(1)  # onnxruntime writes nothing where k is 0
    types = [d.pick((np.uint8, np.int8)) for _ in range(2)]
    a, b = d.values(d.narrowed(batch) + (d.dim(), k), types[0]), d.values(d.narrowed(batch) + (k, d.dim()), types[1])
    return Drawn("MatMulInteger", [a, b] + ([const(3, types[0]), const(2, types[1])] if d.chance(0.6) else []))


def fused_matmul(d):
    """Both operands of one rank: onnxruntime's transposes of a batch are for these."""
    batch, m, k, n = d.shape(0, 2), d.dim(), d.dim(), d.dim()
    flip = [d.below(2), d.below(2)]
    a = batch + ((k, m) if flip[0] else (m, k))
    b = batch + ((n, k) if flip[1] else (k, n))
    return Drawn("FusedMatMul", [d.values(a), d.values(b)], {"transA": flip[0], "transB": flip[1], "alpha": 0.5}, opset=1, domain=MS)


def gemm(d):
    m, k, n = d.dim(), d.dim(), d.dim()
    flip = [d.below(2), d.below(2)]
    inputs = [d.values((k, m) if flip[0] else (m, k)), d.values((n, k) if flip[1] else (k, n))]
    if d.chance(0.7):
        inputs.append(d.values(d.narrowed((m, n))))
    return Drawn("Gemm", inputs, {"transA": flip[0], "transB": flip[1], "alpha": 0.5, "beta": 2.0})


def einsum(d):
    letters = list("abcd")
    extent = {letter: d.dim() for letter in letters}
    terms = ["".join(d.rng.permutation(letters)[:d.below(4)]) for _ in range(1 + d.below(2))]
    used = sorted(set("".join(terms)))
    result = "".join(str(l) for l in d.rng.permutation(used)[:d.below(len(used) + 1)]) if used else ""
    return Drawn("Einsum", [d.values(tuple(extent[l] for l in term)) for term in terms], {"equation": ",".join(terms) + "->" + result})


def det(d):
    n = 1 + d.below(4)
    return Drawn("Det", [d.values(d.shape(0, 3) + (n, n))], fixed=(0,))


def inverse(d):
    n = 1 + d.below(4)
    x = d.values(d.shape(0, 2) + (n, n)) * np.float32(0.1) + np.eye(n, dtype=np.float32) * 2
    return Drawn("Inverse", [x.astype(np.float32)], opset=1, domain=MS)
