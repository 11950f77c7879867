"""property_table.py - which operator is drawn by what (property_cases.py, property_moves.py), and which has no draw, and why."""
import numpy as np

import property_cases as c
import property_moves as m

ALL_INTS = (np.int64, np.int32, np.int8, np.uint8, np.uint16, np.uint32)
SIGNED = (np.float32, np.float64, np.int64, np.int32, np.int8)
ORDERED = (np.float32, np.float64, np.int64, np.int32)


def alpha(d):
    return {"alpha": 0.3}


def with_oracle(drawn):
    drawn.oracle = "reference"
    return drawn


def contrib(draw):
    """The same in com.microsoft."""
    def drawn_there(d):
        drawn = draw(d)
        drawn.domain, drawn.opset = c.MS, 1
        return drawn
    return drawn_there


DRAWS = {
    **{op: c.unary(op) for op in ("Exp", "Erf", "Sin", "Cos", "Tanh", "Atan", "Sinh", "Cosh", "Ceil", "Floor", "Round", "Sigmoid", "Relu", "HardSigmoid",
                                  "HardSwish", "Selu", "Softplus", "Softsign", "Asinh", "Reciprocal", "Identity")},
    **{op: c.unary(op, attrs=alpha) for op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu")},
    **{op: c.unary(op, 0.1, 9) for op in ("Log", "Sqrt")}, **{op: c.unary(op, -0.9, 0.9) for op in ("Asin", "Acos", "Atanh", "Tan")},
    "Acosh": c.unary("Acosh", 1.1, 9), "Mish": c.unary("Mish", opset=18), "Gelu": c.unary("Gelu", opset=20),
    "Shrink": c.unary("Shrink", attrs=lambda d: {"bias": 0.5, "lambd": 1.0}), "Swish": lambda d: with_oracle(c.unary("Swish", opset=24)(d)),
    **{op: c.unary(op, dtypes=SIGNED) for op in ("Abs", "Neg", "Sign")},
    "Not": c.unary("Not", dtypes=(np.bool_,)), "BitwiseNot": c.unary("BitwiseNot", dtypes=ALL_INTS), "IsInf": c.is_inf, "IsNaN": c.is_nan,
    **{op: c.binary(op, ORDERED) for op in ("Add", "Sub", "Mul", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")},
    "Equal": c.binary("Equal", ORDERED + (np.bool_,)), **{op: c.binary(op, (np.bool_,)) for op in ("And", "Or", "Xor")},
    **{op: c.binary(op, ALL_INTS) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{op: c.variadic(op) for op in ("Max", "Min", "Sum", "Mean")},
    "Div": c.divided("Div"), "Pow": c.power, "Mod": c.modulo, "BitShift": c.shift, "Where": c.select, "Clip": c.clip, "PRelu": c.prelu, "Cast": c.cast,
    "CastLike": c.cast_like, "Dropout": c.unary("Dropout"),
    "Shape": c.shape_of, "Size": c.size_of, "ConstantOfShape": c.constant_of_shape, "EyeLike": c.eye_like, "Range": c.ranged, "Expand": c.expand,
    "Reshape": c.reshape, "Flatten": c.flatten, "Squeeze": c.squeeze, "Unsqueeze": c.unsqueeze,
    **{op: c.reduction(op) for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSumSquare")},
    "ReduceSum": c.reduction("ReduceSum", (np.float32, np.int64)), **{op: c.reduction(op, ORDERED) for op in ("ReduceMax", "ReduceMin")},
    "ArgMax": c.arg("ArgMax"), "ArgMin": c.arg("ArgMin"), **{op: c.along_axis(op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    "LpNormalization": c.along_axis("LpNormalization", more=lambda d: {"p": 1 + d.below(2)}), "CumSum": c.running("CumSum"),
    "LayerNormalization": c.layer_norm, "RMSNormalization": c.rms_norm, "SimplifiedLayerNormalization": c.simplified_norm,
    "InstanceNormalization": c.instance_norm, "GroupNormalization": c.group_norm, "BatchNormalization": c.batch_norm, "LRN": c.lrn,
    "MeanVarianceNormalization": c.variance_norm,
    "MatMul": c.matmul(), "MatMulInteger": c.matmul_integer, "Gemm": c.gemm, "Einsum": c.einsum, "Det": c.det,
    "Transpose": m.transpose, "Concat": m.concat, "Split": m.split, "Slice": m.slice_, "Pad": m.pad, "Tile": m.tile, "Gather": m.gather,
    "GatherElements": m.gather_elements, "GatherND": m.gather_nd, "ScatterND": m.scatter_nd, "ScatterElements": m.scatter_elements("ScatterElements"),
    "Scatter": m.scatter_elements("Scatter"), "TensorScatter": m.tensor_scatter, "Trilu": m.trilu, "DepthToSpace": m.depth_to_space,
    "SpaceToDepth": m.space_to_depth, "ReverseSequence": m.reverse_sequence, "OneHot": m.one_hot, "TopK": m.top_k, "Compress": m.compress,
    "NonZero": m.non_zero, "Unique": m.unique, "CenterCropPad": m.center_crop_pad, "Col2Im": m.col2im,
    **{op: m.conv(op) for op in ("Conv", "ConvInteger", "ConvTranspose")}, **{op: m.pool(op) for op in ("MaxPool", "AveragePool", "LpPool")},
    **{op: m.global_pool(op) for op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")},
    "Resize": m.resize, "Upsample": m.upsample, "GridSample": m.grid_sample, "AffineGrid": m.affine_grid,
    "RNN": m.recurrent("RNN", 1), "GRU": m.recurrent("GRU", 3), "LSTM": m.recurrent("LSTM", 4),
    "QuantizeLinear": m.quantize, "DequantizeLinear": m.dequantize, "DynamicQuantizeLinear": m.dynamic_quantize, "QLinearMatMul": m.qlinear_matmul,
    **{"com.microsoft." + op: contrib(c.unary(op)) for op in ("Gelu", "QuickGelu")}, "com.microsoft.Trilu": contrib(m.trilu),
    "com.microsoft.BiasGelu": c.bias_gelu("BiasGelu"), "com.microsoft.FastGelu": c.bias_gelu("FastGelu"), "com.microsoft.FusedMatMul": c.fused_matmul,
    "com.microsoft.Inverse": c.inverse, "com.microsoft.QLinearAdd": m.qlinear_binary("QLinearAdd"), "com.microsoft.QLinearMul": m.qlinear_binary("QLinearMul"),
    "com.microsoft.SkipLayerNormalization": c.skip_norm("SkipLayerNormalization"),
    "com.microsoft.SkipSimplifiedLayerNormalization": c.skip_norm("SkipSimplifiedLayerNormalization"),
}


VECTORS = "its dims are heads and blocks that hang together: the vectors of tests/ops_*.py"
NODE_TESTS = "few shapes are legal: ONNX's node tests"
RANDOM = "what it draws is no one's else: tests/ops_random.py and run_extents.py look at shapes and distribution"
BODIES = "it has the shapes of its body: ONNX's node tests, tests/passes"
VALUES = "it stands for other nodes, or for values that are gone after infer: ONNX's node tests, tests/passes/sequence.txt, tests/ops_flex_attention.py, tests/ops_contrib.py"
EXEMPT = {
    **{op: VALUES for op in ("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
                             "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence",
                             "ai.onnx.preview.FlexAttention", "com.microsoft.GatedRMSNorm", "com.microsoft.LinearAttentionGate")},
    **{op: RANDOM for op in ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")},
    **{op: BODIES for op in ("If", "Loop", "Scan")},
    **{op: NODE_TESTS for op in ("BitCast", "BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix", "DFT", "STFT", "DeformConv", "MaxRoiPool",
                                 "MaxUnpool", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "NonMaxSuppression", "RoiAlign", "TfIdfVectorizer",
                                 "CumProd", "QLinearConv")},
    **{op: VECTORS for op in ("Attention", "RotaryEmbedding", "CausalConvWithState", "LinearAttention")},
    **{"com.microsoft." + op: VECTORS for op in (
        "Attention", "BiasSoftmax", "CausalConvWithState", "DequantizeLinear", "DynamicQuantizeMatMul", "EmbedLayerNormalization", "FusedGemm",
        "GatherBlockQuantized", "GroupQueryAttention", "LinearAttention", "MatMulIntegerToFloat", "MatMulNBits", "MoE", "MRotaryEmbedding", "MultiHeadAttention", "QGemm", "QLinearAveragePool",
        "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QMoE", "QuantizeLinear", "RotaryEmbedding",
        "SimplifiedLayerNormalization", "TransposeMatMul")},
}
