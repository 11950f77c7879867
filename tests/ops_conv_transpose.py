"""ops_conv_transpose.py - cases for compiler/ops/conv_transpose.c."""
import numpy as np

from op_models import Case, Const, random


def transposed(name, x, w, attrs, bias=None, dtype="f32", opset=11, wide=None, **more):
    arrays = [random(1, x, dtype), random(2, w, dtype), random(3, (bias,), dtype) if bias else None]
    if wide:
        arrays = [a if a is None else a.astype(wide) for a in arrays]
    inputs = [("x", arrays[0]), Const(arrays[1]), None if arrays[2] is None else Const(arrays[2])]
    return Case("transposed_" + name, "ConvTranspose", inputs, ["y"], attrs, dtype=dtype, opset=opset, **more)


def transposeds():
    for dtype in ("f32", "f16", "bf16"):
        opset = 22 if dtype == "bf16" else 11
        for name, x, w, attrs, bias in (
                ("1d", (2, 4, 9), (4, 9, 5), {"strides": [3], "pads": [1, 2]}, 9),
                ("2d", (2, 4, 5, 6), (4, 3, 3, 4), {"strides": [2, 2], "pads": [1, 1, 1, 2], "output_padding": [1, 0]}, 3),
                ("3d", (1, 2, 3, 4, 3), (2, 2, 2, 3, 2), {"strides": [2, 1, 3], "pads": [0, 1, 0, 1, 1, 0]}, None),
                ("groups", (1, 6, 7, 5), (6, 5, 3, 3), {"group": 3, "strides": [2, 3], "pads": [1, 1, 1, 1]}, 15),
                ("depthwise", (2, 8, 6, 6), (8, 1, 4, 4), {"group": 8, "strides": [2, 2], "pads": [1, 1, 1, 1]}, 8),
                ("dilated", (1, 3, 6, 6), (3, 17, 3, 2), {"dilations": [2, 3], "strides": [3, 2]}, None),
                ("dilated_common", (1, 2, 5, 5), (2, 2, 3, 3), {"dilations": [2, 4], "strides": [4, 2], "pads": [2, 1, 0, 3]}, 2)):
            yield transposed(name + "_" + dtype, x, w, attrs, bias, dtype, opset)
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        # onnxruntime pads SAME_* the other way round at these sizes; the specification's text is what the evaluator follows
        yield transposed(pad.lower(), (1, 2, 4, 5), (2, 3, 3, 4), {"strides": [2, 3], "auto_pad": pad}, oracle="ort" if pad == "VALID" else "reference")
    yield transposed("output_shape", (1, 2, 5, 5), (2, 3, 4, 4), {"strides": [2, 2], "output_shape": [10, 9]}, 3)
    yield transposed("output_shape_upper", (1, 2, 5, 5), (2, 3, 4, 4), {"strides": [2, 2], "output_shape": [10, 9], "auto_pad": "SAME_UPPER"}, 3)
    yield transposed("opset7", (1, 2, 5, 5), (2, 3, 3, 3), {"strides": [2, 2]}, opset=7)
    yield transposed("many", (1, 64, 12, 10), (64, 40, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, 40,
                     tolerance=(1e-4, 2e-5))  # sums of 256 terms
    yield transposed("f64", (1, 2, 4, 4), (2, 2, 3, 3), {"strides": [2, 1]}, wide=np.float64, oracle="reference", tolerance=(1e-12, 1e-12))


def deforms():
    for dtype in ("f32", "f16", "bf16"):
        for name, groups, offset_groups, mask, attrs in (("plain", 1, 1, False, {}), ("mask", 1, 2, True, {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
                                                         ("groups", 2, 2, True, {"dilations": [2, 1], "pads": [2, 1, 1, 0]}),
                                                         ("crossed", 4, 2, False, {"pads": [1, 0, 1, 0]}), ("across", 2, 4, True, {})):
            x, w = random(1, (2, 4, 7, 8), dtype), random(2, (4, 4 // groups, 3, 2), dtype)
            d, s, p = attrs.get("dilations", [1, 1]), attrs.get("strides", [1, 1]), attrs.get("pads", [0] * 4)
            out = [(x.shape[2 + i] + p[i] + p[2 + i] - (w.shape[2 + i] - 1) * d[i] - 1) // s[i] + 1 for i in range(2)]
            inputs = [("x", x), Const(w), ("offset", random(3, (2, offset_groups * 12, *out), dtype)), Const(random(4, (4,), dtype)),
                      ("mask", random(5, (2, offset_groups * 6, *out), dtype)) if mask else None]
            yield Case("deform_%s_%s" % (name, dtype), "DeformConv", inputs, ["y"], {**attrs, "group": groups, "offset_group": offset_groups}, dtype=dtype,
                       opset=22 if dtype == "bf16" else 19, oracle="reference", tolerance=(1e-4, 2e-5) if dtype == "f32" else None)
            # the evaluator rounds places to float32 after scaling them to -1..1


def columns():
    for name, image, block, attrs in (("1d", [9], [3], {"strides": [2]}), ("2d", [6, 7], [2, 3], {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
                                      ("dilated", [8, 7], [2, 3], {"dilations": [3, 2], "pads": [0, 1, 2, 0]}),
                                      ("3d", [4, 5, 3], [2, 2, 2], {"strides": [1, 2, 1]})):
        axes = len(image)
        d, s, p = attrs.get("dilations", [1] * axes), attrs.get("strides", [1] * axes), attrs.get("pads", [0] * 2 * axes)
        places = [(image[i] + p[i] + p[axes + i] - (block[i] - 1) * d[i] - 1) // s[i] + 1 for i in range(axes)]
        shape = (2, 3 * int(np.prod(block)), int(np.prod(places)))
        sizes = [Const(np.array(image, np.int64)), Const(np.array(block, np.int64))]
        for dtype in ("f32", "f16", "bf16"):
            yield Case("columns_%s_%s" % (name, dtype), "Col2Im", [("x", random(1, shape, dtype)), *sizes], ["y"], attrs, dtype=dtype, opset=18, oracle="reference")
        whole = np.random.default_rng(2).integers(-50, 50, shape)
        yield Case("columns_%s_i32" % name, "Col2Im", [("x", whole.astype(np.int32)), *sizes], ["y"], attrs, opset=18, oracle="reference")


def cases():
    yield from transposeds()
    yield from deforms()
    yield from columns()
