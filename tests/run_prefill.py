#!/usr/bin/env python3
"""run_prefill.py - the ladder of prefill signatures: `prefill`, and `prefill_long` for what is longer.

    tests/run_prefill.py BUILD MODELS/bytes WORK

Which boxes gcc-plan makes of its options, of a recipe, and where memory would be the price. Then decoders with two prefill signatures, on the
host and as for a GPU (--emulate-gpu): prompts of lengths around the bounds of the boxes have the tokens and logits that onnxruntime has for the
whole prompt; captured = eager; growth; the proofs. Prints "N passed, N failed, 0 skipped"."""
import os
import re
import subprocess
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from counts import finish, report

LENGTHS, CAPACITY, STEPS, VOCABULARY = (1, 63, 64, 65, 70, 128, 200, 513, 600), 640, 3, 256
GPU = ("--emulate-gpu",)
NONE = None

# Options; a recipe; the bounds of prefill and prefill_long, or the fault. The symbol is SEQ.
BOXES = [
    ((), "", (1, 64), NONE),
    (GPU, "", (1, 64), (65, 512)),
    # the state's rows
    (GPU + ("--capacity", 200), "", (1, 64), (65, 200)),
    (GPU + ("--capacity", 128), "", (1, 64), (65, 128)),
    (GPU + ("--capacity", 127), "", (1, 64), NONE),
    (GPU + ("--capacity", 40), "", (1, 40), NONE),
    # a longest step that is asked for
    (("--prefill", 300), "", (1, 300), NONE),
    (GPU + ("--prefill", 64), "", (1, 64), NONE),
    (GPU + ("--prefill", 127), "", (1, 127), NONE),
    (GPU + ("--prefill", 300), "", (1, 64), (65, 300)),
    (GPU, "prefill: 300", (1, 64), (65, 300)),
    (GPU + ("--prefill", 2000), "", "signature 'prefill_long': tokens 65..2000; expected 1 to the capacity 1024", NONE),
    (GPU + ("--prefill", 300, "--capacity", 64), "", "signature 'prefill': tokens 1..300; expected 1 to the capacity 64", NONE),
    # rows in all sequences together
    (GPU + ("--rows", 2), "", (1, 64), (65, 256)),
    (GPU + ("--rows", 5), "", (1, 64), NONE),
    (GPU + ("--pin", "batch=4"), "", (1, 64), (65, 128)),
    # tokens that are given are the box
    (GPU + ("--max", "SEQ=300"), "", (1, 300), NONE),
    (GPU, "symbols: {SEQ: [1, 300]}", (1, 300), NONE),
    (GPU, "signatures: {prefill: {SEQ: [1, 300]}}", (1, 300), NONE),
    ((), "signatures: {prefill_long: {}}", (1, 64), (65, 512)),
    ((), "signatures: {prefill_long: {SEQ: [65, 200]}}", (1, 64), (65, 200)),
    ((), "signatures: {prefill: {SEQ: [1, 16]}, prefill_long: {SEQ: [9, 40]}}", (1, 16), (9, 40)),
    ((), "signatures: {prefill_long: {}}\nprefill: 64", "signature 'prefill_long': tokens 65..64; expected 1 to the capacity 1024", NONE),
    ((), "signatures: {prefill_short: {}}", "no signature is named 'prefill_short'; expected decode, prefill, prefill_long or main", NONE),
]
# The same where attention is elementary and its scores, of each token and row of state, take memory: 4 heads.
LARGE = [
    (GPU + ("--capacity", 32768), "", (1, 64), (65, 512)),
    (GPU + ("--capacity", 65536), "", (1, 64), (65, 256)),
    (GPU + ("--capacity", 262144), "", (1, 64), NONE),
    (GPU + ("--capacity", 65536, "--prefill", 512), "", (1, 64), (65, 512)),
]
# And where attention is one node, and what is large is so for any step: the state.
FUSED = [(GPU + ("--capacity", 1048576), "", (1, 64), (65, 512))]


class Suite:
    def __init__(self, build, models, work):
        self.build, self.models, self.work = build, models, work

    def call(self, tool, *arguments):
        return subprocess.run([os.path.join(self.build, tool), *map(str, arguments)], capture_output=True, text=True)

    def recipe(self, text):
        path = os.path.join(self.work, "recipe.yaml")
        with open(path, "w") as f:
            f.write(text + "\n")
        return ("--recipe", path)

    def model(self, name):
        return name if name.endswith(".onnx") else os.path.join(self.models, name, "model.onnx")

    def made(self, name, nodes):
        """A decoder without attention: NODES make y of the rows x of a table."""
        info, node, f = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT
        constants = [numpy_helper.from_array(np.array(v), n) for n, v in (("table", np.eye(8, dtype=np.float32)), ("zero", [0]), ("minus", [-1]), ("one", [1]), ("some", [32]))]
        nodes = [node("Gather", ["table", "input_ids"], ["x"]), *nodes, node("MatMul", ["y", "table"], ["logits"]), node("Cast", ["input_ids"], ["rows"], to=f),
                 node("Unsqueeze", ["rows", "zero"], ["rows3"]), node("Unsqueeze", ["rows3", "minus"], ["fresh"]),
                 node("Concat", ["past_key_values.0.key", "fresh"], ["present.0.key"], axis=2)]
        graph = helper.make_graph(nodes, name, [info("input_ids", TensorProto.INT64, [1, "seq"]), info("past_key_values.0.key", f, [1, 1, "past", 1])],
                                  [info("logits", f, None), info("present.0.key", f, [1, 1, "total", 1])], constants)
        path = os.path.join(self.work, name + ".onnx")
        with open(path, "wb") as file:
            file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
        return path

    def plan(self, name, *options):
        out = os.path.join(self.work, "model.plan")
        done = self.call("gcc-plan", self.model(name), "-o", out, "--target", "host", "--capacity", CAPACITY, "--quiet", "--verify-passes", *options)
        if done.returncode:
            sys.exit(f"{name} {options}: {done.stderr}")
        return out


def check_boxes(s, name, symbol, cases):
    for options, recipe, short, long in cases:
        what = f"{name} {' '.join(map(str, options))} {recipe!r}"
        options = [str(o).replace("SEQ", symbol) for o in options]
        given = s.recipe(recipe.replace("SEQ", symbol)) if recipe else ()
        done = s.call("gcc-plan", s.model(name), "--check", "--target", "host", *options, *given)
        if isinstance(short, str):
            report(done.returncode == 1 and short in done.stderr, f"{what}: {short}", done.stdout + done.stderr)
            continue
        want = f"{symbol}: decode 1, prefill {short[0]}..{short[1]}" + (f", prefill_long {long[0]}..{long[1]}" if long else "")
        found = re.search(rf"{symbol}: decode 1.*?(?=   |$)", done.stdout, re.M)
        report(done.returncode == 0 and found and found[0] == want, f"{what}: {want}", done.stdout + done.stderr)
        printed = s.call("gcc-plan", s.model(name), "--print-recipe", "--target", "host", *options, *given).stdout
        kept = [o for k, o in enumerate(options) if o == "--emulate-gpu" or "--rows" in options[max(k - 1, 0):k + 1]]
        again = s.call("gcc-plan", s.model(name), "--check", "--target", "host", *kept, *s.recipe(printed)).stdout
        report(want in again, f"{what}: the printed recipe too", printed + again)


def check_made(s):
    """Where a step of more tokens has launches for each, and where there is no such step."""
    info, node, f = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT
    body = helper.make_graph([node("Add", ["sum", "row"], ["next"]), node("Identity", ["next"], ["out"])], "body",
                             [info("sum", f, [1, 8]), info("row", f, [1, 8])], [info("next", f, [1, 8]), info("out", f, [1, 8])])
    scan = [node("Constant", [], ["start"], value=numpy_helper.from_array(np.zeros((1, 8), np.float32))),
            node("Scan", ["start", "x"], ["end", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1])]
    check_boxes(s, s.made("scan", scan), "seq", [(GPU, "", (1, 64), NONE), (GPU + ("--prefill", 200), "", (1, 64), (65, 200))])
    some = [node("Slice", ["x", "zero", "some", "one"], ["first"]), node("Add", ["x", "first"], ["y"])]
    check_boxes(s, s.made("some", some), "seq", [(GPU, "", (1, 32), NONE), (GPU + ("--prefill", 200), "", (1, 32), NONE)])


def golden(s, name):
    """A folder for each length: the prompt, and what onnxruntime makes of it whole."""
    session = onnxruntime.InferenceSession(s.model(name), providers=["CPUExecutionProvider"])
    types = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int64)": np.int64}
    states = [i for i in session.get_inputs() if i.name.startswith("past")]
    names = [o.name for o in session.get_outputs()]
    rng = np.random.default_rng(7)
    for length in LENGTHS:
        ids, found, total = rng.integers(0, VOCABULARY, length), [], 0
        prompt, past = ids, {i.name: np.zeros([d if isinstance(d, int) else 1 if k == 0 else 0 for k, d in enumerate(i.shape)], types[i.type]) for i in states}
        for _ in range(STEPS):
            total += len(ids)
            feed = {"input_ids": ids[None], "attention_mask": np.ones((1, total), np.int64), "position_ids": np.arange(total - len(ids), total)[None]}
            out = dict(zip(names, session.run(None, {k: v for k, v in feed.items() if k in {i.name for i in session.get_inputs()}} | past)))
            found.append(out["logits"][0, -1].astype(np.float32))
            ids, past = np.array([found[-1].argmax()]), {i.name: out[i.name.replace("past_key_values", "present")] for i in states}
        folder = os.path.join(s.work, f"{name}.{length}")
        os.makedirs(folder, exist_ok=True)
        ordered = [np.sort(z) for z in found]
        for file, row in (("prompts", prompt), ("tokens", [z.argmax() for z in found]), ("margins", [float(z[-1] - z[-2]) for z in ordered])):
            with open(os.path.join(folder, file + ".txt"), "w") as f:
                f.write(" ".join(map(str, row)) + "\n")
        for step, z in enumerate(found):
            with open(os.path.join(folder, "logits_%03d.pb" % step), "wb") as f:
                f.write(numpy_helper.from_array(z, "logits").SerializeToString())


def check_prompts(s, name, what, *options):
    plan = s.plan(name, *options)
    said = s.call("plan-inspect", plan).stdout
    report(all(re.search(rf"^{g} +1 segment, ", said, re.M) for g in ("decode", "prefill", "prefill_long")), f"{name} {what}: one segment each", said[:2000])
    for length in LENGTHS:
        done = s.call("plan-run", plan, "--target", "host", "--verify", os.path.join(s.work, f"{name}.{length}"))
        report(done.returncode == 0, f"{name} {what}: {length} tokens as onnxruntime", done.stdout + done.stderr)
    for option in ("--check-proofs", "--audit"):
        done = s.call("plan-inspect", plan, option)
        report(done.returncode == 0, f"{name} {what}: {option}", done.stdout[-400:] + done.stderr)


def check_runs(s, name, what, *options):
    """What plan-run compares with itself, through both signatures."""
    plan = s.plan(name, "--check-lengths", *options)
    done = s.call("plan-run", plan, "--target", "host", "--check-capture")
    report(done.returncode == 0 and "captured = eager" in done.stdout, f"{name} {what}: --check-capture", done.stdout + done.stderr)
    done = s.call("plan-run", plan, "--target", "host", "--check-growth")
    report(done.returncode == 0 and "in parts" in done.stdout, f"{name} {what}: --check-growth", done.stdout + done.stderr)
    done = s.call("plan-run", plan, "--target", "host", "--bench", "--context", 600, "--iterations", 3, "--warmup", 1)
    report(done.returncode == 0, f"{name} {what}: --bench at 600 tokens", done.stdout + done.stderr)


def check_text(s, name, ladder):
    """With a tail: the tokens of the plan with one prefill signature."""
    ids, texts = os.path.join(s.work, f"{name}.600", "prompts.txt"), []
    for options in (("--prefill", 64), ladder):
        done = s.call("plan-run", s.plan(name, "--sample", "greedy", *options), "--target", "host", "--prompt-ids", ids, "--generate", 24)
        texts.append(done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else done.stderr)
    report(texts[0] == texts[1] and texts[0], f"{name}: the text behind 600 tokens", f"{texts}")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    s = Suite(*sys.argv[1:])
    check_boxes(s, "mobius-default-f16", "sequence_len", BOXES)
    check_boxes(s, "optimum-plain-f32", "sequence_length", LARGE)
    check_boxes(s, "genai-int4", "sequence_length", FUSED)
    check_made(s)
    ladder = s.recipe("signatures: {prefill_long: {}}")
    for name in ("mobius-default-f16", "optimum-plain-f32"):
        golden(s, name)
        check_prompts(s, name, "on the host", *ladder)
    check_runs(s, "mobius-default-f16", "on the host", *ladder)
    check_text(s, "mobius-default-f16", ladder)
    check_prompts(s, "mobius-default-f16", "as for a GPU", *GPU)
    return finish()


sys.exit(main())
