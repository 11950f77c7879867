"""Writes a copy of a model in which every symbol has another, random name and no dim carries a text expression. With "each",
every dim gets a name of its own, so that no two are equal but by what the graph says.

    rename_symbols.py IN.onnx OUT.onnx SEED [each]
"""
import random
import re
import string
import sys

import onnx


def main(source, target, seed, each=""):
    model = onnx.load(source, load_external_data=False)
    rng = random.Random(int(seed))
    names = {}

    def rename(dim):
        if not dim.HasField("dim_param"):
            return
        old = dim.dim_param
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", old):
            dim.ClearField("dim_param")
            return
        if each:
            old = (old, len(names))
        if old not in names:
            names[old] = "q" + "".join(rng.choice(string.ascii_lowercase) for _ in range(12))
        dim.dim_param = names[old]

    graph = model.graph
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            rename(dim)
    onnx.save(model, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
