"""ops_rearrange.py - cases for compiler/ops/rearrange.c."""
import numpy as np

from op_models import Case, Const, random


def blocks():
    for dtype in ("f32", "f16", "bf16"):
        x = random(1, (2, 18, 4, 5), dtype)
        for mode in ("DCR", "CRD"):
            for opset in (11, 13):
                yield Case("depth_%s_%d_%s" % (mode.lower(), opset, dtype), "DepthToSpace", [("x", x)], ["y"], {"blocksize": 3, "mode": mode}, dtype=dtype, opset=opset) \
                    if dtype != "bf16" or opset == 13 else Case("depth_%s_bf16_block1" % mode.lower(), "DepthToSpace", [("x", x)], ["y"], {"blocksize": 1, "mode": mode}, dtype=dtype, opset=13)
        yield Case("space_" + dtype, "SpaceToDepth", [("x", random(2, (2, 3, 6, 4), dtype))], ["y"], {"blocksize": 2}, dtype=dtype, opset=13)
    yield Case("depth_opset7", "DepthToSpace", [("x", random(3, (1, 8, 2, 3)))], ["y"], {"blocksize": 2}, opset=7)
    yield Case("space_opset7", "SpaceToDepth", [("x", random(3, (1, 2, 4, 6)))], ["y"], {"blocksize": 2}, opset=7)
    whole = np.arange(2 * 8 * 2 * 3).reshape(2, 8, 2, 3)
    for dtype in (np.int64, np.uint8, np.bool_, np.float64):
        yield Case("depth_" + np.dtype(dtype).name, "DepthToSpace", [("x", (whole % 2 == 0) if dtype is np.bool_ else whole.astype(dtype))], ["y"], {"blocksize": 2},
                   opset=13, oracle="reference")


def crops():
    for dtype in ("f32", "f16", "bf16"):
        x = random(4, (5, 8, 7), dtype)
        for name, target, axes in (("mixed", [8, 3, 7], None), ("odd", [2, 11, 4], None), ("axes", [10, 2], [-1, 0]), ("one", [3], [1]), ("same", [5, 8, 7], None),
                                   ("none", [0, 8, 2], None)):
            yield Case("crop_%s_%s" % (name, dtype), "CenterCropPad", [("x", x), Const(np.array(target, np.int64))], ["y"], {"axes": axes} if axes else {}, dtype=dtype,
                       opset=18, oracle="reference")
    for dtype in (np.int32, np.bool_):
        x = np.arange(24).reshape(4, 6) % 3
        yield Case("crop_" + np.dtype(dtype).name, "CenterCropPad", [("x", x.astype(dtype)), Const(np.array([6, 3], np.int32))], ["y"], opset=18, oracle="reference")
    yield Case("crop_data", "CenterCropPad", [("x", random(5, (4, 6))), ("shape", np.array([7, 3]))], ["y"], opset=18, oracle="reference")


def cases():
    yield from blocks()
    yield from crops()
