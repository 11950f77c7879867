"""shape_inputs.py - which inputs of a model decide shapes: those that an operand of this table is computed from, and sequences and
optionals, whose length does.

They are bound as constants (gcc-plan --bind) only where the model as it is, with all inputs left at run time, is refused."""

# Operands whose contents decide the shape of an output, the number of iterations, or which branch runs.
DECIDING = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Col2Im": [1, 2], "Compress": [1], "ConstantOfShape": [0],
    "CumProd": [1], "CumSum": [1], "DFT": [1, 2], "Dropout": [1, 2], "Expand": [1], "HammingWindow": [0], "HannWindow": [0], "If": [0], "Loop": [0, 1],
    "MaxUnpool": [2], "MelWeightMatrix": [0, 1, 2, 3, 4], "NonMaxSuppression": [0, 1, 2, 3, 4], "NonZero": [0], "OneHot": [1], "Pad": [1, 3],
    "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3], "STFT": [1, 3], "SequenceAt": [1], "SequenceErase": [1],
    "SequenceInsert": [2], "Slice": [1, 2, 3, 4], "Split": [1], "SplitToSequence": [1], "Squeeze": [1], "Tile": [1], "TopK": [1],
    "Unique": [0], "Unsqueeze": [1], "Upsample": [1],
}
REDUCTION_AXES = [1]
ONLY_SHAPES = ("Shape", "Size")  # what they give does not depend on contents


def inner_graphs(node):
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def all_nodes(graph):
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from all_nodes(inner)


def deciding_operands(node):
    operands = REDUCTION_AXES if node.op_type.startswith("Reduce") else DECIDING.get(node.op_type, [])
    return [node.input[i] for i in operands if i < len(node.input) and node.input[i]]


def deciding_inputs(model):
    """Names of graph inputs, in the order of the graph."""
    nodes = list(all_nodes(model.graph))
    producers = {output: node for node in nodes for output in node.output if output}
    wanted, seen = [name for node in nodes for name in deciding_operands(node)], set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        node = producers.get(name)
        if node is not None and node.op_type not in ONLY_SHAPES:
            wanted += [i for i in node.input if i] + [o.name for inner in inner_graphs(node) for o in inner.output]
    return [i.name for i in model.graph.input if i.name in seen or i.type.WhichOneof("value") in ("sequence_type", "optional_type")]
