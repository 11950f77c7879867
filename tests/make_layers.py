"""Writes a copy of the llama family's graph with another number of layers: its second layer is repeated under new names, with
new weights of the same bytes.

    make_layers.py IN.onnx OUT.onnx LAYERS
"""
import copy
import re
import sys

import onnx


def main(source, target, layers):
    model = onnx.load(source)
    graph, layers = model.graph, int(layers)
    nodes = list(graph.node)
    # The body of layer 1: from the norm that adds what layer 0 made, to before the last norm, which adds what layer 1 made.
    start = next(i for i, n in enumerate(nodes) if any("layers.1." in x for x in n.input))
    end = next(i for i, n in enumerate(nodes) if "model.norm.weight" in n.input)
    body = nodes[start:end]
    carried = dict(zip(body[0].input[:2], nodes[end].input[:2]))  # of the layer before -> of this layer
    made = {x for n in body for x in n.output if x}

    def renamed(name, k):
        """NAME of layer 1 as it is called in layer K; the shared values keep theirs."""
        if name in carried:
            return renamed(carried[name], k - 1)
        if k == 1 or not name or (name not in made and ".1." not in name):
            return name
        changed = re.sub(r"(layers|past_key_values|present)\.1\.", rf"\1.{k}.", name)
        return changed if changed != name else f"{name}.{k}"

    extra = []
    for k in range(2, layers):
        for n in body:
            m = copy.deepcopy(n)
            m.name = f"{n.name}.{k}"
            m.input[:] = [renamed(x, k) for x in n.input]
            m.output[:] = [renamed(x, k) for x in n.output]
            extra.append(m)
        for field, pattern in ((graph.initializer, r"layers\.1\."), (graph.input, r"\.1\."), (graph.output, r"\.1\.")):
            for old in [x for x in field if re.search(pattern, x.name)]:
                new = field.add()
                new.CopyFrom(old)
                new.name = renamed(old.name, k)
    last = nodes[end]
    if layers > 2:
        last.input[0], last.input[1] = (renamed(x, layers - 1) for x in last.input[:2])
    del graph.node[:]
    graph.node.extend(nodes[:end] + extra + nodes[end:])
    del graph.value_info[:]
    onnx.checker.check_model(model, full_check=False)
    onnx.save(model, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
