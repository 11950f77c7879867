"""ops_sample.py - cases for compiler/ops/sample.c."""
import numpy as np

from op_models import Case, Const, random

MODES = {16: ("nearest", "bilinear", "bicubic"), 20: ("nearest", "linear", "cubic"), 22: ("nearest", "linear", "cubic")}


def grid(seed, shape, dtype="f32"):
    return np.random.default_rng(seed).uniform(-1.6, 1.6, shape).astype(np.float32).astype(random(0, (1,), dtype).dtype)


def grids():
    x, places = random(1, (2, 3, 6, 5)), grid(2, (2, 4, 7, 2))
    for opset in (16, 20):
        for mode in MODES[opset]:
            for padding in ("zeros", "border", "reflection"):
                for align in (0, 1):
                    # the evaluator differs where cubic meets the border: it moves the place itself there, PyTorch only the elements
                    yield Case("grid%d_%s_%s_align%d" % (opset, mode, padding, align), "GridSample", [("x", x), ("grid", places)], ["y"],
                               {"mode": mode, "padding_mode": padding, "align_corners": align}, opset=opset, tolerance=(1e-4, 1e-5))
    for dtype in ("f16", "bf16"):
        for mode in MODES[22]:
            yield Case("grid_%s_%s" % (mode, dtype), "GridSample", [("x", random(1, (2, 3, 6, 5), dtype)), ("grid", grid(2, (2, 4, 7, 2), dtype))], ["y"], {"mode": mode},
                       opset=22, dtype=dtype, oracle="reference")
    for padding in ("zeros", "border", "reflection"):
        yield Case("grid_3d_" + padding, "GridSample", [("x", random(3, (1, 2, 3, 4, 5))), ("grid", grid(4, (1, 2, 3, 2, 3)))], ["y"], {"padding_mode": padding}, opset=20,
                   oracle="reference", tolerance=(1e-4, 1e-5))
    yield Case("grid_1d", "GridSample", [("x", random(5, (2, 2, 9))), ("grid", grid(6, (2, 5, 1)))], ["y"], {"mode": "cubic"}, opset=20, oracle="reference",
               tolerance=(1e-4, 1e-5))
    for dtype in (np.int64, np.uint8, np.bool_):
        v = (np.arange(60).reshape(1, 2, 6, 5) * 1234567891234 if dtype is np.int64 else np.arange(60).reshape(1, 2, 6, 5) % 2).astype(dtype)
        yield Case("grid_" + np.dtype(dtype).name, "GridSample", [("x", v), ("grid", places[:1])], ["y"], {"mode": "nearest"}, opset=20, oracle="reference")
    one = np.array([[[[-1, 1], [np.nan, 0]]]], np.float32)
    yield Case("grid_one_element", "GridSample", [("x", np.full((1, 1, 1, 1), 5, np.float32)), ("grid", one)], ["y"],
               {"padding_mode": "reflection", "align_corners": 1, "mode": "nearest"}, opset=20, expected=[np.full((1, 1, 1, 2), 5, np.float32)])


def affines():
    for dtype in ("f32", "f16", "bf16"):
        for align in (0, 1):
            yield Case("affine_2d_align%d_%s" % (align, dtype), "AffineGrid", [("theta", random(7, (2, 2, 3), dtype)), Const(np.array([2, 3, 4, 5], np.int64))], ["y"],
                       {"align_corners": align}, opset=20, dtype=dtype, oracle="reference")
            yield Case("affine_3d_align%d_%s" % (align, dtype), "AffineGrid", [("theta", random(8, (2, 3, 4), dtype)), Const(np.array([2, 1, 3, 4, 5], np.int64))], ["y"],
                       {"align_corners": align}, opset=20, dtype=dtype, oracle="reference")


def regions():
    rois = np.array([[0, 0, 7, 6], [1.5, 2.25, 6, 5], [3, 3, 3, 3], [-4, -4, 20, 20], [0.3, 5, 9.7, 6.1]], np.float32)
    batch = ("b", np.array([0, 1, 1, 0, 1], np.int64))
    for dtype in ("f32", "f16"):
        x = random(9, (2, 3, 8, 9), dtype)
        r = ("rois", rois.astype(x.dtype))
        for mode in ("avg", "max"):
            for opset, where in ((10, None), (16, "half_pixel"), (16, "output_half_pixel")):
                for samples in (0, 2):
                    attrs = {"mode": mode, "output_height": 3, "output_width": 4, "sampling_ratio": samples, "spatial_scale": 0.75}
                    if where:
                        attrs["coordinate_transformation_mode"] = where
                    yield Case("align_%s_%d_%s_%d_%s" % (mode, opset, where, samples, dtype), "RoiAlign", [("x", x), r, batch], ["y"], attrs, opset=opset, dtype=dtype,
                               tolerance=(1e-4, 1e-5) if dtype == "f32" else (2e-2, 5e-3), oracle="reference" if opset > 10 and (mode == "max" or dtype == "f16") else "ort")
    whole = np.array([[0, 0, 0, 7, 6], [1, 1, 2, 6, 5], [1, 3, 3, 3, 3], [0, 2, 2, 30, 30], [0, 5, 5, 1, 1]], np.float32)
    for dtype in ("f32", "f16"):
        for scale in (1.0, 0.5):
            x = random(10, (2, 3, 8, 9), dtype)
            yield Case("max_roi_%g_%s" % (scale, dtype), "MaxRoiPool", [("x", x), ("rois", whole.astype(x.dtype))], ["y"], {"pooled_shape": [3, 2], "spatial_scale": scale},
                       opset=13, dtype=dtype)
    lost = np.array([[7, 0, 0, 3, 3]], np.float32)
    yield Case("max_roi_lost_batch", "MaxRoiPool", [("x", random(10, (2, 1, 4, 4))), ("rois", lost)], ["y"], {"pooled_shape": [1, 1]}, opset=22,
               expected=[np.zeros((1, 1, 1, 1), np.float32)])
    yield Case("align_bf16", "RoiAlign", [("x", random(11, (1, 2, 8, 8), "bf16")), ("rois", np.array([[1, 1, 5, 5]]).astype(random(0, (), "bf16").dtype)), ("b", np.array([0]))],
               ["y"], {"output_height": 2, "output_width": 2, "sampling_ratio": 2}, opset=22, dtype="bf16", oracle="reference")


def cases():
    yield from grids()
    yield from affines()
    yield from regions()
