"""ops_resize.py - cases for compiler/ops/resize.c."""
import numpy as np

from op_models import Case, Const, random

PLACES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize(name, x, scales=None, sizes=None, roi=None, opset=19, dtype="f32", **more):
    inputs = [("x", x), roi, None if scales is None else Const(np.array(scales, np.float32)), None if sizes is None else Const(np.array(sizes, np.int64))]
    attrs = more.pop("attrs", {})
    more.setdefault("oracle", "reference")
    more.setdefault("tolerance", (1e-4, 1e-5) if dtype == "f32" else None)
    return Case(name, "Resize", inputs, ["y"], attrs, opset=opset, dtype=dtype, **more)


def smooth():
    x = random(1, (2, 3, 7, 6))
    for mode in ("linear", "cubic"):
        for place in PLACES:
            attrs = {"mode": mode, "coordinate_transformation_mode": place}
            yield resize("%s_%s_up" % (mode, place), x, [1, 1, 2.3, 1.7], attrs=attrs)
            yield resize("%s_%s_down" % (mode, place), x, [1, 1, 0.6, 0.5], attrs=attrs)
            yield resize("%s_%s_sizes" % (mode, place), x, sizes=[2, 3, 5, 11], attrs=attrs)
        for exclude in (0, 1):
            for antialias in (0, 1):
                yield resize("%s_exclude%d_antialias%d" % (mode, exclude, antialias), x, [1, 1, 0.45, 1.6],
                             attrs={"mode": mode, "exclude_outside": exclude, "antialias": antialias, "cubic_coeff_a": -0.5})
        for dtype in ("f16", "bf16"):
            yield resize("%s_%s" % (mode, dtype), random(2, (1, 2, 5, 6), dtype), [1, 1, 2, 0.5], dtype=dtype, attrs={"mode": mode})
        yield resize("%s_all_axes" % mode, random(3, (2, 3, 4, 5)), [1.5, 2, 1.5, 0.5], attrs={"mode": mode})
        yield resize("%s_1d" % mode, random(3, (2, 3, 9)), [1, 1, 2.5], attrs={"mode": mode})
        yield resize("%s_3d" % mode, random(3, (1, 2, 3, 4, 5)), sizes=[1, 2, 5, 3, 7], attrs={"mode": mode})
        for kind in (np.uint8, np.int32, np.float64):
            v = (np.abs(random(4, (1, 1, 5, 6))) * 100).astype(kind)
            yield resize("%s_%s" % (mode, np.dtype(kind).name), v, [1, 1, 1.7, 2.2], attrs={"mode": mode, "antialias": 1},
                         tolerance=(1e-5, 1e-3) if mode == "cubic" else (1e-6, 1e-6))  # the evaluator's cubic weights are float32
    spike = np.zeros((1, 1, 1, 4), np.float32)
    spike[..., 1] = np.inf
    yield resize("linear_beside_infinity", spike, [1, 1, 1, 2], attrs={"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
                 expected=[np.array([[[[0, np.inf, np.inf, np.inf, 0, 0, 0, 0]]]], np.float32)])


def nearest():
    x = random(5, (2, 3, 7, 6))
    for place in PLACES:
        for round_ in ROUNDS:
            yield resize("nearest_%s_%s" % (place, round_), x, [1, 1, 2.3, 0.6], attrs={"coordinate_transformation_mode": place, "nearest_mode": round_})
    for kind in (np.uint8, np.int64, np.float64, np.uint16):
        yield resize("nearest_" + np.dtype(kind).name, (np.arange(60) * 3).reshape(1, 2, 5, 6).astype(kind), [1, 1, 2, 1.5])
    v = (np.arange(60) * 7 % 3 == 0).reshape(1, 2, 5, 6)
    yield resize("nearest_bool", v, [1, 1, 2, 2], expected=[np.repeat(np.repeat(v, 2, 2), 2, 3)])
    for dtype in ("f16", "bf16"):
        yield resize("nearest_" + dtype, random(6, (1, 2, 5, 6), dtype), [1, 1, 2, 1.5], dtype=dtype)
    yield resize("nearest_channels", x, [2, 2, 1, 1])
    yield resize("nearest_same", x, [1, 1, 1, 1])


def crops():
    x = random(7, (1, 2, 7, 6))
    for mode in ("nearest", "linear", "cubic"):
        attrs = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -7.0}
        for name, low, high in (("inside", 0.2, 0.8), ("outside", -0.3, 1.2), ("flipped", 0.87, 0.12)):
            roi = np.array([0, 0, low, low, 1, 1, high, high], np.float32)
            yield resize("crop_%s_%s" % (mode, name), x, sizes=[1, 2, 4, 5], roi=("roi", roi), attrs=attrs)
            yield resize("crop_axes_%s_%s" % (mode, name), x, sizes=[4, 5], roi=Const(roi[[2, 3, 6, 7]]), attrs={**attrs, "axes": [2, 3]}, opset=18)
    yield resize("crop_one", x, sizes=[1, 2, 1, 5], roi=("roi", np.array([0, 0, 0.2, 0.2, 1, 1, 0.8, 0.8], np.float32)),
                 attrs={"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}, oracle="ort")


def policies():
    x = random(8, (1, 2, 7, 6))
    for policy in ("stretch", "not_larger", "not_smaller"):
        for mode in ("nearest", "linear"):
            yield resize("%s_%s" % (policy, mode), x, sizes=[9, 5], attrs={"mode": mode, "axes": [3, 2], "keep_aspect_ratio_policy": policy}, opset=18)
    yield resize("axes_scales", x, [2, 0.5], attrs={"mode": "linear", "axes": [3, 1]}, opset=18)


def data():
    """Scales and sizes that are inputs of the graph: the declared output dims bound the extents."""
    x = random(10, (1, 2, 7, 6))
    scales = ("scales", np.array([1, 1, 0.6, 1.7], np.float32))
    for mode, attrs in (("nearest", {}), ("linear", {}), ("cubic", {}), ("linear", {"antialias": 1}), ("cubic", {"coordinate_transformation_mode": "align_corners"})):
        name = mode + "".join("_" + k for k in attrs)
        yield Case("data_scales_" + name, "Resize", [("x", x), None, scales], ["y"], {"mode": mode, **attrs}, opset=19, oracle="reference", tolerance=(1e-4, 1e-5))
        yield Case("data_sizes_" + name, "Resize", [("x", x), None, None, ("sizes", np.array([1, 2, 4, 11]))], ["y"], {"mode": mode, **attrs}, opset=19,
                   oracle="reference", tolerance=(1e-4, 1e-5))
    for policy in ("not_larger", "not_smaller"):
        yield Case("data_" + policy, "Resize", [("x", x), None, None, ("sizes", np.array([9, 5]))], ["y"],
                   {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": policy}, opset=18, oracle="reference", tolerance=(1e-4, 1e-5))
    yield Case("data_upsample9", "Upsample", [("x", x), ("scales", np.array([1, 1, 2, 3], np.float32))], ["y"], {"mode": "linear"}, opset=9)


def opsets():
    x = random(9, (1, 2, 5, 6))
    for mode in ("nearest", "linear"):
        for name, scales in (("up", [1, 1, 2, 3]), ("down", [1, 1, 0.6, 0.5]), ("mixed", [1, 1, 1.5, 0.7])):
            yield Case("resize10_%s_%s" % (mode, name), "Resize", [("x", x), Const(np.array(scales, np.float32))], ["y"], {"mode": mode}, opset=10)
        for opset in (11, 13):
            yield resize("resize%d_%s" % (opset, mode), x, [1, 1, 2, 0.5], roi=Const(np.zeros(0, np.float32)), attrs={"mode": mode}, opset=opset, oracle="ort")
            yield Case("resize%d_%s_sizes" % (opset, mode), "Resize", [("x", x), Const(np.zeros(0, np.float32)), Const(np.zeros(0, np.float32)), Const(np.array([1, 2, 7, 4]))],
                       ["y"], {"mode": mode}, opset=opset, oracle="ort")
        scales = [1, 1, 2, 3]
        yield Case("upsample7_" + mode, "Upsample", [("x", x)], ["y"], {"mode": mode, "scales": [float(s) for s in scales]}, opset=7)
        yield Case("upsample9_" + mode, "Upsample", [("x", x), Const(np.array([1, 1, 1.5, 2], np.float32))], ["y"], {"mode": mode}, opset=9)
    yield resize("resize11_cubic", x, [1, 1, 2, 0.5], roi=Const(np.zeros(0, np.float32)), attrs={"mode": "cubic"}, opset=11, oracle="ort")
    yield resize("resize11_nn", x, [1, 1, 2, 1.5], roi=Const(np.zeros(0, np.float32)), attrs={"coordinate_transformation_mode": "tf_half_pixel_for_nn"}, opset=11, oracle="ort")


def cases():
    yield from smooth()
    yield from nearest()
    yield from crops()
    yield from policies()
    yield from data()
    yield from opsets()
