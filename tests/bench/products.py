#!/usr/bin/env python3
"""products.py - models of one product or one attention each, as a prompt of 2048 tokens has them, for tests/bench/products.sh.

    tests/bench/products.py FOLDER      writes NAME.onnx for each, and list.txt: a line NAME OPERATIONS (floating-point, of one run)

All operands are inputs, so that the files stay small."""
import os
import sys

import onnx
from onnx import TensorProto, helper

F16, BF16 = TensorProto.FLOAT16, TensorProto.BFLOAT16


def save(folder, name, node, inputs, output, operations, lines):
    """INPUTS: (name, type, dims)."""
    graph = helper.make_graph([node], name, [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*output)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 10
    onnx.save(model, os.path.join(folder, name + ".onnx"))
    lines.append("%s %d\n" % (name, operations))


def product(folder, lines, m, n, k, dtype, along_n=False):
    """B as the weights of a linear layer lie, [N, K], or ALONG_N, [K, N]."""
    name = "%s_%dx%dx%d_%s" % ("kn" if along_n else "nk", m, n, k, "f16" if dtype == F16 else "bf16")
    node = helper.make_node("Gemm", ["a", "b"], ["y"], name="product", transB=0 if along_n else 1)
    save(folder, name, node, [("a", dtype, [m, k]), ("b", dtype, [k, n] if along_n else [n, k])], ("y", dtype, [m, n]), 2 * m * n * k, lines)


def nbits(folder, lines, m, n, k, dtype, zeros, block=32):
    node = helper.make_node("MatMulNBits", ["a", "b", "s"] + ["z"] * zeros, ["y"], name="product", domain="com.microsoft", K=k, N=n, bits=4,
                            block_size=block)
    blocks = k // block
    inputs = [("a", dtype, [m, k]), ("b", TensorProto.UINT8, [n, blocks, block // 2]), ("s", dtype, [n, blocks])]
    inputs += [("z", TensorProto.UINT8, [n, (blocks + 1) // 2])] * zeros
    name = "4bit_%dx%dx%d_%s%s" % (m, n, k, "f16" if dtype == F16 else "bf16", "_zeros" if zeros else "")
    name += "_block%d" % block if block != 32 else ""
    save(folder, name, node, inputs, ("y", dtype, [m, n]), 2 * m * n * k, lines)


def attention(folder, lines, rows, heads, kv_heads, head):
    """Causal: half of the scores."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], name="attention", is_causal=1)
    inputs = [(name, BF16, [1, heads if name == "q" else kv_heads, rows, head]) for name in "qkv"]
    save(folder, "attention_%dx%dx%d" % (rows, heads, head), node, inputs, ("y", BF16, [1, heads, rows, head]),
         2 * rows * (rows + 1) * heads * head, lines)


def main():
    folder, lines = sys.argv[1], []
    os.makedirs(folder, exist_ok=True)
    product(folder, lines, 4096, 4096, 4096, F16)
    product(folder, lines, 4096, 4096, 4096, F16, along_n=True)
    for n, k in ((4096, 1024), (6144, 1024), (1024, 3072), (3072, 1024)):
        product(folder, lines, 2048, n, k, BF16)
    nbits(folder, lines, 2048, 9728, 896, F16, False)
    nbits(folder, lines, 2048, 896, 4864, F16, False)
    for n, k in ((34816, 5120), (5120, 17408), (16384, 5120), (5120, 6144)):
        nbits(folder, lines, 2048, n, k, BF16, True)
    nbits(folder, lines, 2048, 34816, 5120, F16, True)
    nbits(folder, lines, 2048, 34816, 5120, BF16, True, block=128)
    nbits(folder, lines, 256, 34816, 5120, BF16, True)
    attention(folder, lines, 2048, 14, 2, 64)
    attention(folder, lines, 2048, 16, 8, 128)
    attention(folder, lines, 2048, 24, 4, 256)
    with open(os.path.join(folder, "list.txt"), "w", encoding="ascii") as out:
        out.writelines(lines)


if __name__ == "__main__":
    main()
