"""op_models.py - models of one node, or of a few, with inputs and expected outputs, for testing operator rows and what is fused.

A file tests/ops_<family>.py or tests/onerow_<family>.py has a function cases() that yields Case objects. tests/make_op_models.py
writes each into a folder of its own, laid out like ONNX's own test data: model.onnx, input_0.pb ..., output_0.pb ..., and case.txt
(relative and absolute tolerance, who computed the expected outputs, the operator: domain, name, version of the domain, and how
many launches of which kernels the plan must have).

Expected outputs never come from our kernels: they are given by hand, or computed by onnxruntime on the CPU, or, for what
it lacks, by the ONNX reference evaluator. Half types are computed in float32 from the same rounded inputs, so that the
expectation does not depend on another engine's rounding."""
import os

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BF16 = np.dtype(ml_dtypes.bfloat16)
F16 = np.dtype(np.float16)
F32 = np.dtype(np.float32)
TYPES = {"f32": F32, "f16": F16, "bf16": BF16}
TOLERANCES = {"f32": (2e-5, 2e-6), "f16": (2e-3, 1e-3), "bf16": (1.6e-2, 8e-3)}
OPSETS = {"": 24, "com.microsoft": 1}


def tensor_type(dtype):
    return TensorProto.BFLOAT16 if np.dtype(dtype) == BF16 else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def to_proto(array, name):
    array = np.asarray(array)
    if array.dtype == BF16:
        raw = np.ascontiguousarray(array).view(np.uint16).tobytes()
        return helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, raw, raw=True)
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def random(seed, shape, dtype="f32", scale=1.0):
    """Normally distributed, rounded to DTYPE."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * scale
    return np.asarray(values, dtype=np.float32).astype(TYPES[dtype])


class Case:
    """A model of one node. INPUTS: list of (name, array), None for an absent input, or a Const for an initializer.
    OUTPUTS: list of names, "" for an absent one. EXPECTED: arrays for the outputs that are named, or None: computed.
    TAIL: more nodes, (op, inputs, output, attributes) each, behind the one whose output then is `first`; they read
    constants as const_<index of the input>, and these stand behind the node's own inputs (OWN of them).
    TUNING: lines for gcc-plan --tuning.
    CHECK: (output index, slice) pairs say that only this part of an output is defined. OUTPUT_TYPES: of outputs whose type is
    not that of the oracle's."""

    def __init__(self, name, op, inputs, outputs, attrs=None, domain="", opset=None, expected=None, tolerance=None, dtype="f32",
                 oracle="ort", output_types=None, check=None, tail=(), own=None):
        self.name, self.op, self.inputs, self.outputs = name, op, inputs, outputs
        self.attrs, self.domain, self.opset = attrs or {}, domain, opset
        self.expected, self.dtype, self.oracle = expected, dtype, oracle
        self.tolerance = tolerance or TOLERANCES[dtype]
        self.output_types = output_types or {}
        self.check = check or {}
        self.tail, self.own = tail, own
        self.kernels = {}
        self.tuning = None

    def settle(self, expected):
        """The oracle's outputs, with what it leaves undefined."""
        return expected

    def parts(self, convert):
        """Nodes, inputs and constants of the model; CONVERT: applied to each array."""
        names, inputs, constants = [], [], []
        for index, item in enumerate(self.inputs):
            if item is None:
                names.append("")
            elif isinstance(item, Const):
                names.append("const_%d" % index)
                constants.append(to_proto(convert(item.array), names[-1]))
            else:
                names.append(item[0])
                if item[0] not in [v.name for v in inputs]:
                    inputs.append(value_info(item[0], convert(item[1])))
        names = names[:self.own]
        while names and not names[-1]:
            names.pop()
        made = ["first"] if self.tail else self.outputs
        node = helper.make_node(self.op, names, made, name="node", domain=self.domain, **self.attrs)
        return [node] + [helper.make_node(op, read, [output], name=output, **attrs) for op, read, output, attrs in self.tail], inputs, constants


class Const:
    def __init__(self, array):
        self.array = np.asarray(array)


class Graph(Case):
    """A model of several nodes, which its methods add; each returns the name of what it made. KERNELS: launches of the plan by
    kernel, "launches" all of them ("shared", "blocks": run_op_models.py). ORACLE: a Graph of the same inputs and outputs that computes what is
    expected; None: this one."""

    def __init__(self, name, dtype, kernels, tolerance=None, check=None):
        super().__init__(name, "", [], [], dtype=dtype, tolerance=tolerance, check=check)
        self.kernels, self.oracle_graph = kernels, None
        self.nodes, self.constants, self.made = [], [], 0

    def fresh(self, stem):
        self.made += 1
        return "%s_%d" % (stem, self.made)

    def input(self, name, array):
        self.inputs.append((name, array))
        return name

    def constant(self, array):
        name = self.fresh("const")
        self.constants.append((name, np.asarray(array)))
        return name

    def weight(self, shape, scale=1.0):
        """Random, of the model's type, different for each."""
        return self.constant(random(1000 + self.made, shape, self.dtype, scale))

    def node(self, op, inputs, outputs=1, domain="", **attrs):
        """OUTPUTS: how many, or their names, "" for an absent one. Returns the name, or the list of them."""
        names = [self.fresh(op.lower()) for _ in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(op, inputs, names, name=self.fresh("node"), domain=domain, **attrs))
        if not self.op:
            self.op, self.domain = op, domain
        return names[0] if len(names) == 1 else names

    def output(self, *names):
        self.outputs += names
        return self

    def parts(self, convert):
        inputs = [value_info(name, convert(array)) for name, array in self.inputs]
        return self.nodes, inputs, [to_proto(convert(array), name) for name, array in self.constants]


def value_info(name, array):
    return helper.make_tensor_value_info(name, tensor_type(array.dtype), array.shape)


def widen(array):
    array = np.asarray(array)
    return array.astype(np.float32) if array.dtype in (BF16, F16) else array


def build(case, wide, shapes=None):
    """The model; WIDE: with float32 in place of half types. SHAPES: of the outputs, as arrays; None: without."""
    nodes, inputs, constants = case.parts(widen if wide else np.asarray)
    results, at = [], 0
    for name in case.outputs:
        if not name:
            continue
        if shapes is None:
            results.append(onnx.ValueInfoProto(name=name))
        else:
            results.append(value_info(name, shapes[at]))
        at += 1
    graph = helper.make_graph(nodes, case.name, inputs, results, constants)
    opsets = dict(OPSETS)
    if case.opset:
        opsets[case.domain] = case.opset
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
    model.ir_version = 10
    return model


def feeds(case, wide):
    convert = widen if wide else np.asarray
    out = {}
    for item in case.inputs:
        if item is not None and not isinstance(item, Const):
            out[item[0]] = convert(item[1])
    return out


def compute(case):
    """Expected outputs, and who computed them."""
    if case.expected is not None:
        return [np.asarray(e) for e in case.expected], "by hand"
    model = build(getattr(case, "oracle_graph", None) or case, wide=True)
    if case.oracle == "ort":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        outputs, source = session.run(None, feeds(case, wide=True)), "onnxruntime " + onnxruntime.__version__
    else:
        from onnx.reference import ReferenceEvaluator
        outputs, source = ReferenceEvaluator(model).run(None, feeds(case, wide=True)), "onnx reference " + onnx.__version__
    return case.settle([narrow(case, i, np.asarray(o)) for i, o in enumerate(outputs)]), source


def narrow(case, index, array):
    """The oracle's float32 back to the node's own type."""
    if index in case.output_types:
        return array.astype(case.output_types[index])
    return array.astype(TYPES[case.dtype]) if array.dtype in (F32, BF16, F16) else array


def save(case, folder):
    expected, source = compute(case)
    os.makedirs(folder, exist_ok=True)
    onnx.save(build(case, wide=False, shapes=expected), os.path.join(folder, "model.onnx"))
    for index, (name, array) in enumerate(feeds(case, wide=False).items()):
        write(os.path.join(folder, "input_%d.pb" % index), to_proto(array, name))
    names = [name for name in case.outputs if name]
    for index, array in enumerate(expected):
        write(os.path.join(folder, "output_%d.pb" % index), to_proto(array, names[index]))
    with open(os.path.join(folder, "case.txt"), "w", encoding="ascii") as out:
        out.write("rtol %g\natol %g\nsource %s\n" % (*case.tolerance, source))
        out.write("operator %s %s %d\n" % (case.domain or "ai.onnx", case.op, case.opset or OPSETS[case.domain]))
        for kernel, count in case.kernels.items():
            out.write("kernel %s %d\n" % (kernel, count))
        for index, text in case.check.items():
            out.write("check %d %s\n" % (index, text))
    if case.tuning:
        with open(os.path.join(folder, "tuning.txt"), "w", encoding="ascii") as out:
            out.write(case.tuning + "\n")
    return source


def write(path, proto):
    with open(path, "wb") as out:
        out.write(proto.SerializeToString())
