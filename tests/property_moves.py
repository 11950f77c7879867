"""property_moves.py - random nodes of the operators that move data, and of those with windows; see property_cases.py."""
import numpy as np

from property_cases import ANY, FLOATS, MS, NUMBERS, Drawn, const


# ---- moving

def transpose(d):
    x = d.values(d.shape(0, 6), d.pick(ANY))
    return Drawn("Transpose", [x], {"perm": [int(p) for p in d.rng.permutation(x.ndim)]} if d.chance(0.8) else {})


def concat(d):
    shape = d.shape(1, 5)
    axis, dtype = d.axis(len(shape)), d.pick(ANY)
    parts = []
    for _ in range(1 + d.below(4)):
        dims = list(shape)
        dims[axis] = d.dim()
        parts.append(d.values(dims, dtype))
    return Drawn("Concat", parts, {"axis": axis})


def split(d):
    shape = list(d.shape(1, 5))
    axis, parts = d.axis(len(shape)), 1 + d.below(3)
    if d.chance(0.5):
        sizes = [d.below(4) for _ in range(parts)]
        shape[axis] = sum(sizes)
        return Drawn("Split", [d.values(shape, d.pick(ANY)), const(sizes)], {"axis": axis}, parts, fixed=(0,))
    shape[axis] = max(parts, shape[axis])
    return Drawn("Split", [d.values(shape, d.pick(ANY))], {"axis": axis, "num_outputs": parts}, parts, fixed=(0,))


def slice_(d):
    shape = d.shape(1, 5)
    axes = d.axes(len(shape), 1)
    far = np.iinfo(np.int64)
    bound = lambda: d.pick((far.min, -100, -3, -2, -1, 0, 1, 2, 3, 100, far.max))
    steps = [d.pick((1, 1, 2, 3, -1, -2)) for _ in axes] if d.chance(0.7) else None
    starts, ends = [bound() for _ in axes], [bound() for _ in axes]
    if steps:  # onnxruntime takes the largest end of a slice backwards for "to the front"
        ends = [100 if step < 0 and end == far.max else end for step, end in zip(steps, ends)]
    return Drawn("Slice", [d.values(shape, d.pick(ANY)), const(starts), const(ends), const(axes)] + ([const(steps)] if steps else []))


def pad(d):
    mode = d.pick(("constant", "reflect", "edge", "wrap"))
    shape = d.shape(1, 4, 0 if mode == "constant" else 2)
    low = -1 if mode == "constant" else 0
    axes = d.axes(len(shape), 1) if d.chance(0.5) else list(range(len(shape)))
    amounts = [low + d.below(3 if mode == "constant" else 2) for _ in range(2 * len(axes))]
    value = const(1.5, np.float32) if d.chance(0.5) and mode == "constant" else None
    inputs = [d.values(shape), const(amounts), value] + ([const(axes)] if len(axes) != len(shape) or d.chance(0.3) or axes[0] < 0 else [])
    return Drawn("Pad", inputs, {"mode": mode})


def tile(d):
    shape = d.shape(1, 4)
    return Drawn("Tile", [d.values(shape, d.pick(ANY)), const([d.below(4) for _ in shape])])


def indices(d, shape, extent, dtype=None):
    return d.rng.integers(-extent, extent, shape).astype(dtype or d.pick((np.int64, np.int32)))


def gather(d):
    shape = list(d.shape(1, 4))
    axis = d.axis(len(shape))
    shape[axis] = max(1, shape[axis])
    return Drawn("Gather", [d.values(shape, d.pick(ANY)), indices(d, d.shape(0, 3), shape[axis])], {"axis": axis})


def gather_elements(d):
    shape = list(d.shape(1, 4))
    axis = d.axis(len(shape))
    shape[axis] = max(1, shape[axis])
    wanted = [max(0, s - d.below(2)) for s in shape]
    wanted[axis] = d.dim()
    return Drawn("GatherElements", [d.values(shape, d.pick(ANY)), indices(d, wanted, shape[axis])], {"axis": axis}, fixed=(0, 1))


def tuples(d, batch=0):
    """Dims of data, and indices of entries in it behind BATCH axes."""
    shape = d.shape(batch + 1, batch + 3, 1)
    count = 1 + d.below(len(shape) - batch)
    lead = shape[:batch] + d.shape(0 if batch else 1, 2)
    columns = [d.rng.integers(-s, s, lead) for s in shape[batch:batch + count]]
    return shape, np.stack(columns, -1).astype(np.int64), count


def gather_nd(d):
    batch = d.below(2)
    shape, at, _ = tuples(d, batch)
    return Drawn("GatherND", [d.values(shape, d.pick(ANY)), at], {"batch_dims": batch}, fixed=(1,))


def scatter_nd(d):
    shape, at, count = tuples(d)
    return Drawn("ScatterND", [d.values(shape), at, d.values(at.shape[:-1] + shape[count:])], {"reduction": d.pick(("add", "mul", "max", "min"))},
                 fixed=(0, 1, 2))


def scatter_elements(op):
    def draw(d):
        shape = list(d.shape(1, 4, 1))
        axis = d.axis(len(shape))
        wanted = [max(1, s - d.below(2)) for s in shape]
        wanted[axis] = shape[axis] if d.chance(0.5) else 1
        order = np.argsort(d.rng.random(wanted), axis)[tuple(slice(0, w) for w in wanted)]  # no index twice
        attrs = {"axis": axis} if op == "Scatter" else {"axis": axis, "reduction": d.pick(("none", "add", "mul", "max", "min"))}
        return Drawn(op, [d.values(shape), order.astype(np.int64), d.values(wanted)], attrs, opset=10 if op == "Scatter" else 18, fixed=(0, 1, 2))
    return draw


def tensor_scatter(d):
    rows, new = 3 + d.below(3), 1 + d.below(2)
    shape = (1 + d.below(3), rows) + d.shape(1, 2, 1)
    at = d.rng.integers(0, rows - new + 1, shape[0])
    update = d.values((shape[0], new) + shape[2:])
    return Drawn("TensorScatter", [d.values(shape), update, at.astype(np.int64)], {"axis": 1}, opset=24, oracle="reference", fixed=(0, 1, 2))


def trilu(d):
    inputs = [d.values(d.shape(2, 5), d.pick(NUMBERS))] + ([const(d.below(9) - 4)] if d.chance(0.7) else [])
    return Drawn("Trilu", inputs, {"upper": d.below(2)})


def depth_to_space(d):
    block = 1 + d.below(3)
    shape = (d.dim(), block * block * (1 + d.below(3)), d.dim(), d.dim())
    return Drawn("DepthToSpace", [d.values(shape)], {"blocksize": block, "mode": d.pick(("DCR", "CRD"))}, fixed=(0,))


def space_to_depth(d):
    block = 1 + d.below(3)
    return Drawn("SpaceToDepth", [d.values((d.dim(), d.dim(), block * d.dim(), block * d.dim()))], {"blocksize": block}, fixed=(0,))


def reverse_sequence(d):
    shape = d.shape(2, 4, 1)
    batch = d.below(2)
    lengths = d.rng.integers(1, shape[1 - batch] + 1, shape[batch]).astype(np.int64)
    return Drawn("ReverseSequence", [d.values(shape), lengths], {"batch_axis": batch, "time_axis": 1 - batch}, fixed=(0, 1))


def one_hot(d):
    depth = 2 + d.below(4)
    shape = d.shape(0, 4)
    return Drawn("OneHot", [d.rng.integers(-depth, depth, shape).astype(np.int64), const([depth]), const([-1, 2], np.float32)],
                 {"axis": d.axis(len(shape) + 1)})


def top_k(d):
    shape = list(d.shape(1, 4))
    axis = d.axis(len(shape))
    count = d.below(shape[axis] + 1)
    x = d.rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    return Drawn("TopK", [x, const([count])], {"axis": axis, "largest": d.below(2)}, 2, fixed=(0,))


def compress(d):
    x = d.values(d.shape(1, 4), d.pick(NUMBERS))
    if d.chance(0.3):
        return Drawn("Compress", [x, d.values((d.below(x.size + 1),), np.bool_)], fixed=(0, 1))
    axis = d.axis(x.ndim)
    return Drawn("Compress", [x, d.values((d.below(x.shape[axis] + 1),), np.bool_)], {"axis": axis}, fixed=(0, 1))


def non_zero(d):
    return Drawn("NonZero", [d.values(d.shape(1, 4), d.pick((np.float32, np.int64, np.bool_)), -1, 2)])


def unique(d):
    x = d.values(d.shape(1, 3), np.float32).round()
    return Drawn("Unique", [x], {"sorted": 1, **({"axis": d.axis(x.ndim)} if d.chance(0.5) else {})}, 4)


def center_crop_pad(d):
    x = d.values(d.shape(1, 4, 1))
    axes = d.axes(x.ndim, 1)
    return Drawn("CenterCropPad", [x, const([1 + d.below(6) for _ in axes])], {"axes": axes}, oracle="reference")


def col2im(d):
    block, image = (1 + d.below(2), 1 + d.below(3)), (3 + d.below(3), 3 + d.below(3))
    count = (image[0] - block[0] + 1) * (image[1] - block[1] + 1)
    x = d.values((1 + d.below(2), block[0] * block[1] * (1 + d.below(2)), count))
    return Drawn("Col2Im", [x, const(image), const(block)], fixed=(0,))


# ---- windows

def window(d, axes, kernel, auto=True):
    """Attributes of a window over AXES spatial axes."""
    attrs = {"kernel_shape": list(kernel)}
    if d.chance(0.5):
        attrs["strides"] = [1 + d.below(2) for _ in range(axes)]
    if d.chance(0.4):
        attrs["dilations"] = [1 + d.below(2) for _ in range(axes)]
    if auto and d.chance(0.25) and "dilations" not in attrs:
        attrs["auto_pad"] = d.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif d.chance(0.6):
        attrs["pads"] = [d.below(min(kernel)) for _ in range(2 * axes)]
    return attrs


def conv(op):
    def draw(d):
        axes, groups = 1 + d.below(3), 1 + d.below(2)
        kernel = [1 + d.below(3) for _ in range(axes)]
        channels, filters = groups * (1 + d.below(2)), groups * (1 + d.below(2))
        space = [5 + d.below(3) for _ in range(axes)]
        attrs = {"group": groups, **window(d, axes, kernel)}
        if op == "ConvTranspose" and "SAME" in attrs.get("auto_pad", "") and any(s > k for s, k in zip(attrs.get("strides", kernel), kernel)):
            attrs["auto_pad"] = "VALID"  # onnxruntime makes fewer than the stride times the input, which ONNX asks for
        if op == "ConvInteger":
            x, w = d.values([d.dim()] + [channels] + space, np.uint8), d.values([filters, channels // groups] + kernel, np.uint8)
            return Drawn(op, [x, w] + ([const(2, np.uint8), const(1, np.uint8)] if d.chance(0.5) else []), attrs, fixed=(0, 1))
        shape = [channels, filters // groups] if op == "ConvTranspose" else [filters, channels // groups]
        inputs = [d.values([d.dim(), channels] + space), d.values(shape + kernel)] + ([d.values((filters,))] if d.chance(0.5) else [])
        return Drawn(op, inputs, attrs, fixed=(0, 1, 2))
    return draw


def pool(op):
    def draw(d):
        axes = 1 + d.below(3)
        kernel = [1 + d.below(3) for _ in range(axes)]
        attrs = window(d, axes, kernel)
        if "auto_pad" not in attrs and d.chance(0.5):
            attrs["ceil_mode"] = 1
        if op == "AveragePool":
            attrs["count_include_pad"] = d.below(2)
        if op == "LpPool":
            attrs["p"] = 1 + d.below(3)
        x = d.values([d.dim(), d.dim()] + [5 + d.below(3) for _ in range(axes)])
        return Drawn(op, [x], attrs, opset=22 if op != "LpPool" else 22, fixed=(0,))
    return draw


def global_pool(op):
    def draw(d):
        x = d.values(d.shape(2, 2) + d.shape(1, 3, 1))
        return Drawn(op, [x], {"p": 1 + d.below(3)} if op == "GlobalLpPool" else {})
    return draw


def resize(d):
    x = d.values((d.dim(1), 1 + d.below(2), 2 + d.below(4), 2 + d.below(4)))
    mode = d.pick(("nearest", "linear", "cubic"))
    scaled = d.chance(0.5)  # with align_corners, ONNX's own tests divide by the scaled length, onnxruntime by its whole part
    places = ("half_pixel", "asymmetric", "pytorch_half_pixel") + (() if scaled else ("align_corners",))
    attrs = {"mode": mode, "coordinate_transformation_mode": d.pick(places)}
    if mode == "nearest":
        attrs["nearest_mode"] = d.pick(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if scaled:
        return Drawn("Resize", [x, None, const([1, 1, d.pick((0.5, 2, 1.5)), d.pick((0.75, 2, 3))], np.float32)], attrs, opset=19, fixed=(0,))
    return Drawn("Resize", [x, None, None, const(list(x.shape[:2]) + [1 + d.below(8), 1 + d.below(8)])], attrs, opset=19, fixed=(0,))


def upsample(d):
    x = d.values((d.dim(1), 1 + d.below(2), 1 + d.below(4), 1 + d.below(4)))
    return Drawn("Upsample", [x, const([1, 1, 1 + d.below(3), d.pick((1, 1.5, 2))], np.float32)], {"mode": d.pick(("nearest", "linear"))}, opset=9, fixed=(0,))


def grid_sample(d):
    n = d.dim(1)
    x, grid = d.values((n, 1 + d.below(2), 2 + d.below(3), 2 + d.below(3))), d.values((n, d.dim(1), d.dim(1), 2)) * np.float32(0.5)
    return Drawn("GridSample", [x, grid], {"mode": d.pick(("linear", "nearest")), "padding_mode": d.pick(("zeros", "border", "reflection")),
                                           "align_corners": d.below(2)}, opset=20, fixed=(0, 1))


def affine_grid(d):
    n, align = 1 + d.below(2), d.below(2)
    size = [n, 2] + [1 + align + d.below(4) for _ in range(2)]  # where one place is aligned, onnxruntime's is not that of the specification
    return Drawn("AffineGrid", [d.values((n, 2, 3)), const(size)], {"align_corners": align}, opset=20, fixed=(0,))


# ---- recurrent, quantised

def recurrent(op, gates):
    def draw(d):
        length, batch, size, hidden, both = d.dim(1), d.dim(1), 1 + d.below(4), 1 + d.below(4), d.below(2)
        ways = 1 + both
        inputs = [d.values((length, batch, size)), d.values((ways, gates * hidden, size)), d.values((ways, gates * hidden, hidden))]
        inputs += [d.values((ways, 2 * gates * hidden)) if d.chance(0.6) else None]
        if d.chance(0.4):
            inputs += [None, d.values((ways, batch, hidden))] + ([d.values((ways, batch, hidden))] if op == "LSTM" else [])
        attrs = {"hidden_size": hidden, "direction": "bidirectional" if both else d.pick(("forward", "reverse"))}
        return Drawn(op, inputs, attrs, 3 if op == "LSTM" else 2, fixed=(1, 2, 3, 5, 6))
    return draw


def quantize(d):
    x, dtype = d.values(d.shape(1, 4)), d.pick((np.uint8, np.int8))
    return Drawn("QuantizeLinear", [x, const(0.25, np.float32), const(3, dtype)])


def dequantize(d):
    dtype = d.pick((np.uint8, np.int8))
    shape = d.shape(1, 4, 1)
    axis = d.axis(len(shape))
    length = () if d.chance(0.5) else shape[axis]
    scale, zero = np.abs(d.values(length)) + np.float32(0.1), d.values(length, dtype)
    return Drawn("DequantizeLinear", [d.values(shape, dtype), scale.astype(np.float32), zero], {"axis": axis}, fixed=(0, 1, 2))


def dynamic_quantize(d):
    return Drawn("DynamicQuantizeLinear", [d.values(d.shape(1, 4, 1))], outputs=3)


def qlinear_binary(op):
    def draw(d):
        a, b = d.broadcast(2, d.pick((np.uint8, np.int8)), 4)
        point = lambda s: [const(s, np.float32), const(2, a.dtype)]
        return Drawn(op, [a] + point(0.3) + [b] + point(0.7) + point(0.37), opset=1, domain=MS)  # no sum lies between two integers
    return draw


def qlinear_matmul(d):
    batch, k = d.shape(0, 2), d.dim(1)  # onnxruntime writes nothing where k is 0
    a, b = d.values(batch + (d.dim(), k), np.uint8), d.values(batch + (k, d.dim()), np.uint8)
    point = lambda s: [const(s, np.float32), const(2, np.uint8)]
    return Drawn("QLinearMatMul", [a] + point(0.25) + [b] + point(0.5) + point(1.5))
