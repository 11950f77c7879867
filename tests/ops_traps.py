"""ops_traps.py - one node at several opsets, where the same words mean another thing. A pair whose answers must differ is compared
here, so that no trap goes blunt; where the form changed (an attribute became an input) each form is there.

Expected values: onnxruntime's, or by hand where it has no kernel for an old opset."""
import ml_dtypes
import numpy as np

from op_models import Case, Const, compute, random

F8 = np.dtype(ml_dtypes.float8_e4m3fn)


def ints(*values):
    return Const(np.array(values, np.int64))


def floats(*values):
    return Const(np.array(values, np.float32))


def differing(*cases):
    """Cases of one node whose answers differ: each from all others."""
    answers = [compute(case)[0][0] for case in cases]
    for i, a in enumerate(answers):
        for k in range(i):
            b = answers[k]
            if a.shape == b.shape and np.array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64), equal_nan=True):
                raise AssertionError("%s and %s have one answer" % (cases[i].name, cases[k].name))
    yield from cases


def softmaxes():
    x = random(1, (2, 3, 4))
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield from differing(*(Case("%s_%d" % (op.lower(), opset), op, [("x", x)], ["y"], opset=opset) for opset in (12, 13)))
        yield from differing(*(Case("%s_axis0_%d" % (op.lower(), opset), op, [("x", x)], ["y"], {"axis": 0}, opset=opset) for opset in (11, 13)))


def resizes():
    x = random(2, (1, 1, 3, 4))
    for mode in ("nearest", "linear"):
        scales = (1, 1, 2.6, 1.5)
        yield from differing(Case("resize_10_" + mode, "Resize", [("x", x), floats(*scales)], ["y"], {"mode": mode}, opset=10),
                             Case("resize_11_" + mode, "Resize", [("x", x), floats(), floats(*scales)], ["y"], {"mode": mode}, opset=11))
        yield Case("resize_13_" + mode, "Resize", [("x", x), None, floats(*scales)], ["y"], {"mode": mode}, opset=13)
        yield Case("resize_18_" + mode, "Resize", [("x", x), None, floats(2.6, 1.5)], ["y"], {"mode": mode, "axes": [2, 3]}, opset=18)
        yield Case("upsample_7_" + mode, "Upsample", [("x", x)], ["y"], {"mode": mode, "scales": [1.0, 1.0, 2.0, 3.0]}, opset=7)
        yield Case("upsample_9_" + mode, "Upsample", [("x", x), floats(1, 1, 2, 3)], ["y"], {"mode": mode}, opset=9)
    small = random(3, (1, 1, 8, 8))
    yield from differing(*(Case("resize_18_antialias_%d" % on, "Resize", [("x", small), None, floats(1, 1, 0.4, 0.6)], ["y"],
                                {"mode": "linear", "antialias": on}, opset=18) for on in (0, 1)))


def regions():
    x, rois, batch = random(4, (1, 2, 6, 6)), np.array([[0, 0, 3, 3], [1, 2, 5, 4]], np.float32), np.zeros(2, np.int64)
    attrs = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    yield from differing(*(Case("roi_align_%d" % opset, "RoiAlign", [("x", x), ("r", rois), ("b", batch)], ["y"], attrs, opset=opset) for opset in (10, 16)))
    grid = random(5, (1, 3, 2, 2), scale=0.5)
    yield Case("grid_sample_16", "GridSample", [("x", x), ("g", grid)], ["y"], {"mode": "bilinear"}, opset=16)
    yield Case("grid_sample_20", "GridSample", [("x", x), ("g", grid)], ["y"], {"mode": "linear"}, opset=20)


def norms():
    x, scale, bias = random(6, (2, 4, 3)), np.array([1, 2, 3, 4], np.float32), np.array([0.5, -1, 2, 0], np.float32)
    v = x.reshape(2, 2, 6).astype(np.float64)
    v = ((v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5)).reshape(2, 4, 3)
    by_group = v * scale[:2].repeat(2)[:, None] + bias[:2].repeat(2)[:, None]  # 18: a weight for each group
    by_channel = v * scale[:, None] + bias[:, None]                           # 21: one for each channel
    yield from differing(
        Case("group_norm_18", "GroupNormalization", [("x", x), ("s", scale[:2]), ("b", bias[:2])], ["y"], {"num_groups": 2}, opset=18,
             expected=[by_group.astype(np.float32)]),
        Case("group_norm_21", "GroupNormalization", [("x", x), ("s", scale), ("b", bias)], ["y"], {"num_groups": 2}, opset=21,
             expected=[by_channel.astype(np.float32)]))
    mean, var = random(7, (4,)), np.array([0.5, 1, 2, 3], np.float32)
    inputs = [("x", x), ("s", scale), ("b", bias), ("m", mean), ("v", var)]
    for opset in (7, 9, 14, 15):
        yield Case("batch_norm_%d" % opset, "BatchNormalization", inputs, ["y"], opset=opset)
    wide = lambda seed: random(seed, (4, 3))
    each = [("x", x), ("s", wide(8)), ("b", wide(9)), ("m", wide(10)), ("v", np.abs(wide(11)) + 0.5)]
    s, b, m, d = (a.astype(np.float64) for _, a in each[1:])
    yield Case("batch_norm_7_by_element", "BatchNormalization", each, ["y"], {"spatial": 0}, opset=7,
               expected=[((x - m) / np.sqrt(d + 1e-5) * s + b).astype(np.float32)])
    yield from differing(Case("batch_norm_14_infers", "BatchNormalization", inputs, ["y"], opset=14),
                         Case("batch_norm_14_trains", "BatchNormalization", inputs, ["y", "m2", "v2"], {"training_mode": 1}, opset=14))


def dropouts():
    x = random(12, (3, 4))
    for opset in (7, 10):
        yield Case("dropout_%d" % opset, "Dropout", [("x", x)], ["y"], {"ratio": 0.5}, opset=opset)
    for opset in (12, 13, 22):
        yield Case("dropout_%d" % opset, "Dropout", [("x", x), Const(np.float32(0.5))], ["y"], opset=opset, expected=[x])


def forms():
    """An attribute that became an input, or the other way round."""
    x = random(13, (3, 4, 5))
    yield Case("slice_9", "Slice", [("x", x)], ["y"], {"starts": [1, -3], "ends": [1000, -1], "axes": [0, 2]}, opset=9)
    yield Case("slice_10", "Slice", [("x", x), ints(1, -1), ints(1000, -4), ints(0, 2), ints(1, -2)], ["y"], opset=10)
    yield Case("slice_13", "Slice", [("x", x), ints(1, -3), ints(1000, -1), ints(0, -1)], ["y"], opset=13)
    yield Case("clip_6", "Clip", [("x", x)], ["y"], {"min": -0.5, "max": 0.25}, opset=7)
    for opset in (11, 12, 13):
        yield Case("clip_%d" % opset, "Clip", [("x", x), Const(np.float32(-0.5)), Const(np.float32(0.25))], ["y"], opset=opset)
    yield Case("pad_2", "Pad", [("x", x)], ["y"], {"pads": [1, 0, 2, 0, 1, 0], "value": 2.5}, opset=10)
    for opset in (11, 13):
        yield Case("pad_%d" % opset, "Pad", [("x", x), ints(1, 0, 2, 0, 1, 0), Const(np.float32(2.5))], ["y"], opset=opset)
    yield Case("pad_18", "Pad", [("x", x), ints(2, 1), Const(np.float32(2.5)), ints(-1)], ["y"], opset=18)
    yield Case("squeeze_11", "Squeeze", [("x", x[:1, :, :1])], ["y"], {"axes": [0, -1]}, opset=11)
    yield Case("squeeze_13", "Squeeze", [("x", x[:1, :, :1]), ints(0, -1)], ["y"], opset=13)
    yield Case("unsqueeze_11", "Unsqueeze", [("x", x)], ["y"], {"axes": [0, -1]}, opset=11)
    yield Case("unsqueeze_13", "Unsqueeze", [("x", x), ints(0, -1)], ["y"], opset=13)
    yield Case("split_11", "Split", [("x", x)], ["y", "z"], {"axis": 1, "split": [1, 3]}, opset=11)
    yield Case("split_13", "Split", [("x", x), ints(1, 3)], ["y", "z"], {"axis": 1}, opset=13)
    yield Case("split_18", "Split", [("x", x)], ["y", "z"], {"axis": 2, "num_outputs": 2}, opset=18)  # five: three and two
    yield Case("top_k_9", "TopK", [("x", x)], ["y", "i"], {"k": 2, "axis": 1}, opset=9)
    yield Case("top_k_10", "TopK", [("x", x), ints(2)], ["y", "i"], {"axis": 1}, opset=10)
    yield from differing(*(Case("top_k_11_%d" % largest, "TopK", [("x", x), ints(2)], ["y", "i"], {"axis": 1, "largest": largest}, opset=11)
                           for largest in (0, 1)))


def reductions():
    x = random(14, (3, 4, 5))
    for op, since in (("ReduceSum", 13), ("ReduceMax", 18), ("ReduceMean", 18), ("ReduceL2", 18)):
        yield Case("%s_attribute" % op, op, [("x", x)], ["y"], {"axes": [-1], "keepdims": 0}, opset=since - 1)
        yield Case("%s_input" % op, op, [("x", x), ints(-1)], ["y"], {"keepdims": 0}, opset=since)
        yield from differing(*(Case("%s_no_axes_%d" % (op, noop), op, [("x", x), ints()], ["y"], {"keepdims": 0, "noop_with_empty_axes": noop}, opset=since)
                               for noop in (0, 1)))
    same = np.array([[1, 3, 3, 2]], np.float32)
    yield from differing(Case("arg_max_11", "ArgMax", [("x", same)], ["y"], {"axis": 1}, opset=11),
                         Case("arg_max_12_last", "ArgMax", [("x", same)], ["y"], {"axis": 1, "select_last_index": 1}, opset=12))


def shapes():
    empty = np.zeros((2, 0, 3), np.float32)
    yield from differing(Case("reshape_13_copies", "Reshape", [("x", empty), ints(0, 0, -1)], ["y"], opset=13, expected=[empty]),
                         Case("reshape_14_allows", "Reshape", [("x", empty), ints(3, 0, 2)], ["y"], {"allowzero": 1}, opset=14,
                              expected=[np.zeros((3, 0, 2), np.float32)]))
    x = random(15, (1, 8, 2, 3))
    yield from differing(Case("depth_to_space_1", "DepthToSpace", [("x", x)], ["y"], {"blocksize": 2}, opset=10),
                         Case("depth_to_space_11", "DepthToSpace", [("x", x)], ["y"], {"blocksize": 2, "mode": "CRD"}, opset=11))
    yield from differing(Case("shape_13", "Shape", [("x", x)], ["y"], opset=13), Case("shape_15", "Shape", [("x", x)], ["y"], {"start": 1, "end": -1}, opset=15))


def scatters():
    data, at, update = random(16, (4, 3)), np.array([[1, 0, 1], [1, 3, 2]]), random(17, (2, 3))
    plain, added = data.copy(), data.copy()
    for i in range(2):
        for k in range(3):
            added[at[i, k], k] += update[i, k]
            plain[at[i, k], k] = update[i, k]
    inputs = [("x", data), ("i", at), ("u", update)]
    yield Case("scatter_10", "Scatter", inputs[:1] + [("i", np.array([[1, 0, 1]])), ("u", update[:1])], ["y"], opset=10)
    yield Case("scatter_elements_16_add", "ScatterElements", inputs, ["y"], {"reduction": "add"}, opset=16, expected=[added])
    rows = [("x", data), ("i", np.array([[1], [-1]])), ("u", update)]
    replaced, joined = data.copy(), data.copy()
    replaced[[1, -1]] = update
    joined[[1, -1]] *= update
    yield from differing(Case("scatter_nd_11", "ScatterND", rows, ["y"], opset=11, expected=[replaced]),
                         Case("scatter_nd_16_mul", "ScatterND", rows, ["y"], {"reduction": "mul"}, opset=16, expected=[joined]))


def quantised():
    x = np.array([[-300, -1.5, 0.5], [1.5, 2.5, 300]], np.float32)
    scale, zero = Const(np.float32(0.5)), Const(np.uint8(100))
    for opset in (10, 13, 19, 21):
        yield Case("quantize_%d" % opset, "QuantizeLinear", [("x", x), scale, zero], ["y"], opset=opset)
        yield Case("dequantize_%d" % opset, "DequantizeLinear", [("x", np.array([[0, 7, 255]], np.uint8)), scale, zero], ["y"], opset=opset)
    rows = [("x", x), floats(0.5, 2), Const(np.array([0, 10], np.uint8))]
    yield Case("quantize_13_axis", "QuantizeLinear", rows, ["y"], {"axis": 0}, opset=13)
    a, b = np.array([[3, 200], [7, 0]], np.uint8), np.array([[1, 255], [4, 9]], np.uint8)
    point = lambda s, z: [Const(np.float32(s)), Const(np.uint8(z))]
    for opset in (10, 21):
        yield Case("qlinear_matmul_%d" % opset, "QLinearMatMul", [("a", a)] + point(0.02, 100) + [("b", b)] + point(0.03, 50) + point(0.5, 120), ["y"], opset=opset)


def casts():
    x = np.array([1000, -500, 448, 1.0625], np.float32)
    bounded, free = np.array([448, -448, 448, 1], np.float32).astype(F8), np.array([np.nan, np.nan, 448, 1], np.float32).astype(F8)
    for opset in (19, 21):
        yield from differing(Case("cast_%d_saturates" % opset, "Cast", [("x", x)], ["y"], {"to": 17}, opset=opset, expected=[bounded]),
                             Case("cast_%d_overflows" % opset, "Cast", [("x", x)], ["y"], {"to": 17, "saturate": 0}, opset=opset, expected=[free]))
    for opset in (9, 13):
        yield Case("cast_%d" % opset, "Cast", [("x", np.array([-1.9, 0, 2.9], np.float32))], ["y"], {"to": 6}, opset=opset)


def cases():
    for family in (softmaxes, resizes, regions, norms, dropouts, forms, reductions, shapes, scatters, quantised, casts):
        yield from family()
