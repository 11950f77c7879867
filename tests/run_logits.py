#!/usr/bin/env python3
"""run_logits.py - gcc-plan --logits: small decoders whose logits are made in many ways, against onnxruntime.

    tests/run_logits.py BUILD WORK

Each is compiled with --logits all and last. Both must have the tokens and logits of onnxruntime, `last` must cut the rows off where the
case says, and its decode step must be the launches of `all`. Prints "N passed, N failed, 0 skipped"."""
import os
import re
import subprocess
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from counts import finish, report

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MS = "com.microsoft"
VOCABULARY, HIDDEN, PREFILL, STEPS = 64, 32, 32, 6
PROMPTS = (19, 1, 32, 7)


class Model:
    """Rows x that mix those before them (a sum along the sequence); a case makes logits of them."""

    def __init__(self, seed, batch=1, opset=21):
        self.nodes, self.constants, self.outputs, self.rng, self.batch, self.opset = [], [], [], np.random.default_rng(seed), batch, opset
        table, axis = self.weight((VOCABULARY, HIDDEN), 1.0), self.constant(np.array(1))
        self.add("Cast", ["input_ids"], ["rows"], to=FLOAT)
        self.add("Reshape", ["rows", self.constant(np.array([batch, 1, -1, 1]))], ["fresh"])
        self.add("Concat", ["past_key_values.0.key", "fresh"], ["present.0.key"], axis=2)
        self.x = self.add("CumSum", [self.add("Gather", [table, "input_ids"]), axis])

    def add(self, op, inputs, outputs=None, domain="", **attrs):
        outputs = outputs or [f"{op}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op}_{len(self.nodes)}", domain=domain, **attrs))
        return outputs[0]

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, shape, scale=0.2):
        return self.constant(self.rng.normal(0, scale, shape).astype(np.float32))

    def number(self, v):
        return self.constant(np.float32(v))

    def product(self, x, columns, out=None, rows=HIDDEN):
        return self.add("MatMul", [x, self.weight((rows, columns))], out and [out])

    def head(self, x):
        return self.product(x, VOCABULARY, "logits")

    def bytes(self):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "logits", [info("input_ids", INT64, [self.batch, "seq"]), info("past_key_values.0.key", FLOAT, [self.batch, 1, "past", 1])],
                                  [info("logits", FLOAT, None), info("present.0.key", FLOAT, [self.batch, 1, "total", 1])] + [info(o, FLOAT, None) for o in self.outputs],
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid(MS, 1)])
        model.ir_version = 10
        return model.SerializeToString()


def norm(m, x):
    """RMS norm in elementary operators."""
    mean = m.add("ReduceMean", [m.add("Mul", [x, x]), m.constant(np.array([-1]))], keepdims=1)
    return m.add("Mul", [m.add("Div", [x, m.add("Sqrt", [m.add("Add", [mean, m.number(1e-5)])])]), m.weight((HIDDEN,), 1.0)])


def product(m):
    m.head(m.x)


def softcap(m):
    y = m.add("Tanh", [m.add("Div", [m.product(m.x, VOCABULARY), m.number(3)])])
    m.add("Mul", [y, m.number(3)], ["logits"])


def biased(m):
    """A row of biases, a cast, a clip."""
    y = m.add("Add", [m.product(m.x, VOCABULARY), m.weight((1, 1, VOCABULARY))])
    y = m.add("Cast", [m.add("Cast", [y], to=TensorProto.DOUBLE)], to=FLOAT)
    m.add("Clip", [y, m.number(-2), m.number(2)], ["logits"])


def turned(m):
    """The head is the transposed table."""
    m.add("MatMul", [m.x, m.add("Transpose", [m.weight((VOCABULARY, HIDDEN))], perm=[1, 0])], ["logits"])


def fused(m):
    m.add("FusedMatMul", [m.x, m.weight((VOCABULARY, HIDDEN))], ["logits"], MS, transB=1, alpha=0.5)


def nbits(m):
    packed = m.constant(m.rng.integers(0, 256, (VOCABULARY, 1, HIDDEN // 2), dtype=np.uint8))
    m.add("MatMulNBits", [m.x, packed, m.constant(m.rng.uniform(0.01, 0.1, VOCABULARY).astype(np.float32))], ["logits"], MS,
          K=HIDDEN, N=VOCABULARY, bits=4, block_size=32)


def block(m):
    """A norm, a gated product and a residual sum before: all but the sum along the sequence is of one row."""
    y = norm(m, m.x)
    gate, up = m.product(y, 48), m.product(y, 48)
    made = m.product(m.add("Mul", [m.add("Mul", [gate, m.add("Sigmoid", [gate])]), up]), HIDDEN, rows=48)
    m.head(norm(m, m.add("Add", [m.x, made])))


def skip(m):
    made = m.product(m.x, HIDDEN)
    m.head(m.add("SkipSimplifiedLayerNormalization", [m.x, made, m.weight((HIDDEN,), 1.0)], ["normed", "", "", "sum"], MS, epsilon=1e-5))


def layered(m):
    m.head(m.add("LayerNormalization", [m.x, m.weight((HIDDEN,), 1.0), m.weight((HIDDEN,))], axis=-1))


def hidden(m):
    """The rows that the head reads are an output too."""
    y = m.add("Mul", [m.x, m.number(0.5)])
    m.add("Identity", [m.product(y, HIDDEN)], ["hidden"])
    m.outputs.append("hidden")
    m.head("hidden")


def mixed(m):
    """Between two products all rows are needed, by a fold of them."""
    y = m.product(m.x, HIDDEN)
    z = m.add("ReduceMax", [y, m.constant(np.array([1]))], keepdims=1)
    m.head(m.add("Sub", [y, z]))


def positional(m):
    """The operand beside has a row for each token, which the step makes."""
    m.add("Mul", [m.product(m.x, VOCABULARY), m.add("Unsqueeze", [m.add("Sin", ["rows"]), m.constant(np.array([2]))])], ["logits"])


def squared(m):
    """A product of two rows' values: its second operand is no constant."""
    y = m.add("MatMul", [m.x, m.add("Transpose", [m.x], perm=[0, 2, 1])])
    m.head(m.add("MatMul", [m.add("Softmax", [y], axis=-1), m.x]))


def residual(m):
    """The sum behind a product of all rows may be part of its kernel, and the norm of that: they stay of all rows."""
    y = m.add("Softmax", [m.add("MatMul", [m.x, m.add("Transpose", [m.x], perm=[0, 2, 1])])], axis=-1)
    m.head(norm(m, m.add("Add", [m.add("MatMul", [y, m.x]), m.x])))


def whole(m):
    """A norm over rows and columns is not made row by row."""
    m.head(m.add("LayerNormalization", [m.x, m.weight((HIDDEN,), 1.0)], axis=1))


def read(m):
    """Another output is made of all rows of the logits."""
    m.head(m.x)
    m.add("ReduceMax", ["logits", m.constant(np.array([1, 2]))], ["largest"], keepdims=0)
    m.outputs.append("largest")


def looked_up(m):
    m.add("Gather", [m.weight((VOCABULARY, VOCABULARY)), "input_ids"], ["logits"])


def along(m):
    """A softmax along the rows."""
    y = m.add("Mul", [m.x, m.number(0.5)])
    m.head(m.add("Softmax", [y], axis=1))


def last_already(m):
    y = m.add("Slice", [m.x, m.constant(np.array([-1])), m.constant(np.array([2**31])), m.constant(np.array([1]))])
    m.head(y)


def flat(m):
    """Of rank 2."""
    y = m.add("Gather", [m.x, m.constant(np.array(-1))], axis=1)
    m.head(y)


def triangle(m):
    """What stays of a row depends on which it is."""
    m.head(m.add("Trilu", [m.x], upper=1))


def triangle_behind(m):
    m.add("Trilu", [m.product(m.x, VOCABULARY)], ["logits"], upper=0)


def renamed(m):
    m.add("Identity", [m.product(m.add("Dropout", [m.x]), VOCABULARY)], ["logits"])


# case, what the Slices read (None: the plan is that of `all`), whether the default with --sample cuts
CASES = [
    (product, ["CumSum_4"], True), (softcap, ["CumSum_4"], True), (biased, ["CumSum_4"], True), (turned, ["CumSum_4"], True), (fused, ["CumSum_4"], True),
    (nbits, ["CumSum_4"], True), (block, ["CumSum_4"], True), (skip, ["CumSum_4"], True), (layered, ["CumSum_4"], True), (hidden, ["hidden"], True),
    (mixed, ["MatMul_5"], True), (positional, ["CumSum_4", "Unsqueeze_7"], True), (squared, ["MatMul_8"], True), (residual, ["Mul_15"], True), (whole, ["LayerNormalization_5"], True), (read, ["logits: all rows"], False),
    (looked_up, ["logits: all rows"], False), (along, ["Softmax_6"], True), (last_already, None, False), (flat, None, False),
    (triangle, ["Trilu_5"], True), (triangle_behind, ["logits: all rows"], False), (renamed, ["Dropout_5"], True)]


class Suite:
    def __init__(self, build, work):
        self.build, self.work = build, work

    def call(self, tool, *arguments):
        return subprocess.run([os.path.join(self.build, tool), *map(str, arguments)], capture_output=True, text=True)

    def plan(self, name, out, *options):
        done = self.call("gcc-plan", self.path(name, "model.onnx"), "-o", self.path(name, out), "--target", "host", "--quiet", "--verify-passes",
                         "--capacity", 64, "--prefill", PREFILL, *options)
        if done.returncode:
            sys.exit(f"{name} {options}: {done.stderr}")
        return self.path(name, out)

    def path(self, name, file):
        return os.path.join(self.work, name, file)

    def golden(self, name, model):
        os.makedirs(os.path.join(self.work, name), exist_ok=True)
        with open(self.path(name, "model.onnx"), "wb") as f:
            f.write(model)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        rng, lines = np.random.default_rng(3), {"prompts": [], "tokens": [], "margins": []}
        for number, length in enumerate(PROMPTS):
            ids = rng.integers(0, VOCABULARY, length).tolist()
            lines["prompts"].append(ids)
            state, found = np.zeros((1, 1, 0, 1), np.float32), []
            for _ in range(STEPS):
                logits, state = session.run(["logits", "present.0.key"], {"input_ids": np.array([ids]), "past_key_values.0.key": state})
                found.append(logits.reshape(-1, VOCABULARY)[-1])
                ids = [int(found[-1].argmax())]
            lines["tokens"].append([int(z.argmax()) for z in found])
            lines["margins"].append([float(np.sort(z)[-1] - np.sort(z)[-2]) for z in found])
            for step, z in enumerate(found if not number else []):
                with open(self.path(name, "logits_%03d.pb" % step), "wb") as f:
                    f.write(numpy_helper.from_array(z, "logits").SerializeToString())
        for key, rows in lines.items():
            with open(self.path(name, key + ".txt"), "w") as f:
                f.writelines(" ".join(map(str, row)) + "\n" for row in rows)

    def check_verify(self, name, plan, what):
        done = self.call("plan-run", plan, "--target", "host", "--verify", os.path.join(self.work, name))
        report(done.returncode == 0, f"{name}: {what}, as onnxruntime", done.stdout + done.stderr)

    def inspect(self, plan):
        """Its options, the dims of the logits by signature, and the launches of decode."""
        text = self.call("plan-inspect", plan).stdout
        dims, launches, signature = {}, [], None
        for line in text.splitlines():
            signature = (re.match(r"(load|decode|prefill) ", line) or [None, signature])[1]
            found = re.match(r"  output  logits f32 \[(.*?)\]", line)
            if found:
                dims[signature] = found[1]
            if signature == "decode" and re.match(r" +\d+  ", line):
                launches.append(line)
        return re.search(r"options (.*?);", text)[1], dims, launches


def check_case(s, make, slices, default):
    name = make.__name__
    m = Model(len(name))
    make(m)
    s.golden(name, m.bytes())
    dump = s.call("gcc-plan", s.path(name, "model.onnx"), "--logits", "last", "--verify-passes", "--dump", "logits")
    names = {n: (quoted or plain) for n, quoted, plain in re.findall(r'(%\d+) (?:"([^"]*)"|(\S+)) \w+\[', dump.stdout)}
    found = sorted(names[v] for v in re.findall(r"= Slice-24\((%\d+)", dump.stdout))
    report(dump.returncode == 0 and found == sorted(slices or []), f"{name}: what the last row is taken of", f"{found} {dump.stderr}")
    every, last = s.plan(name, "all.plan", "--logits", "all"), s.plan(name, "last.plan", "--logits", "last")
    s.check_verify(name, last, "--logits last")
    options, dims, launches = s.inspect(last)
    options_all, dims_all, launches_all = s.inspect(every)
    report(dims["prefill"].endswith(f"1, {VOCABULARY}") and "seq" not in dims["prefill"], f"{name}: the logits are one row", f"{dims}")
    report("logits=" not in options_all and ("logits=last" in options) == (slices is not None), f"{name}: the plan says so", options)
    for option in ("--check-proofs", "--audit"):
        done = s.call("plan-inspect", last, option)
        report(done.returncode == 0, f"{name}: {option}", done.stdout[-400:] + done.stderr)
    if slices:
        why = s.call("plan-inspect", last, "--why", "logits").stdout
        report("'logits' is of the last row alone, of seq" in why, f"{name}: --why logits", why)
    if default or slices is None:
        report(launches == launches_all, f"{name}: decode is what it was", "\n" + "\n".join(launches + ["-"] + launches_all))
    sampled, plain = s.plan(name, "sampled.plan", "--sample", "greedy"), s.plan(name, "plain.plan", "--sample", "none")
    with open(plain, "rb") as a, open(every, "rb") as b:
        report(a.read() == b.read(), f"{name}: without a tail all rows are made")
    s.check_verify(name, sampled, "--sample greedy")
    options, dims, launches = s.inspect(sampled)
    want = "logits=last" if default else "logits=all" if slices else None
    report((want in options if want else "logits=" not in options) and ("seq" not in dims["prefill"]) == (want != "logits=all"),
           f"{name}: the default with a tail is {want}", f"{options} {dims}")
    if default:
        whole = s.plan(name, "whole.plan", "--sample", "greedy", "--logits", "all")
        s.check_verify(name, whole, "--sample greedy --logits all")
        options, dims, launches_all = s.inspect(whole)
        report("seq" in dims["prefill"] and launches == launches_all, f"{name}: --logits all with a tail", f"{options} {dims}")


def turned_logits(node, rows):
    """An encoder of two sequences of 16 tokens; NODE makes its logits, whose axis before the last is not that of the tokens."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["x"]), helper.make_node("MatMul", ["x", "head"], ["y"]), node]
    constants = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in (("table", (VOCABULARY, 8)), ("head", (8, VOCABULARY)))]
    graph = helper.make_graph(nodes, "turned", [info("input_ids", INT64, [2, 16])], [info("logits", FLOAT, rows)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def check_refusals(s):
    os.makedirs(os.path.join(s.work, "refused"), exist_ok=True)
    for perm, rows, found in (([1, 0, 2], [16, 2, VOCABULARY], 2), ([0, 2, 1], [2, VOCABULARY, 16], VOCABULARY)):
        with open(s.path("refused", "model.onnx"), "wb") as f:
            f.write(turned_logits(helper.make_node("Transpose", ["y"], ["logits"], perm=perm), rows))
        out = s.path("refused", f"{perm[0]}.plan")
        if os.path.exists(out):
            os.remove(out)
        done = s.call("gcc-plan", s.path("refused", "model.onnx"), "-o", out, "--target", "host", "--quiet", "--logits", "last")
        text = f"output 'logits': --logits last needs a row for each of the tokens of 'input_ids' along dim 1, found {found}"
        report(done.returncode == 1 and text in done.stderr and not os.path.exists(out), f"another axis {rows} is refused", done.stderr)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    s = Suite(*sys.argv[1:])
    for case in CASES:
        check_case(s, *case)
    check_refusals(s)
    return finish()


sys.exit(main())
