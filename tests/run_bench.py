#!/usr/bin/env python3
"""run_bench.py - what tests/bench/decode does with a model that it fills, a golden that is right or wrong, and parts that fail.

    tests/run_bench.py BUILD WORK FILL_WEIGHTS

The model is a table of logits by the last token; its golden tokens are computed here from the file that was written."""
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, STEPS, PROMPT = 96, 12, [3, 1, 4]
results = {"passed": 0, "failed": 0}


def report(good, name, detail=""):
    results["passed" if good else "failed"] += 1
    print(f"{'ok' if good else 'not ok'} {name}{'' if good else ': ' + detail}")


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def make_model(folder, fill):
    """tiny.onnx, whose table lies in tiny.bin, and tiny.tsv, by which fill_weights.py writes it."""
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[ROWS, ROWS], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "tiny.bin"), ("offset", "0"), ("length", str(4 * ROWS * ROWS))):
        table.external_data.add(key=key, value=value)
    shape = helper.make_tensor("shape", TensorProto.INT64, [4], [1, 1, -1, 1])
    nodes = [node("Gather", "table input_ids", "logits"), node("Cast", "input_ids", "rows", to=TensorProto.FLOAT), node("Reshape", "rows shape", "fresh"),
             node("Concat", "past_key_values.0.key fresh", "present.0.key", axis=2)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "tiny", [info("input_ids", TensorProto.INT64, [1, "seq"]), info("past_key_values.0.key", TensorProto.FLOAT, [1, 1, "past", 1])],
                              [info("logits", TensorProto.FLOAT, [1, "seq", ROWS]), info("present.0.key", TensorProto.FLOAT, [1, 1, "past + seq", 1])], [table, shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    with open(os.path.join(folder, "tiny.onnx"), "wb") as f:
        f.write(model.SerializeToString())
    with open(os.path.join(folder, "tiny.tsv"), "w") as f:
        f.write(f"name\telem_type\tdims\toffset\tlength\trule\ntable\t1\t{ROWS}x{ROWS}\t0\t{4 * ROWS * ROWS}\tnormal:1\n")
    shutil.copy(fill, folder)


def write_golden(folder, wrong):
    """Greedy tokens with their two best logits; WRONG: the step whose token is none of them, or -1."""
    subprocess.run([sys.executable, os.path.join(folder, "fill_weights.py"), os.path.join(folder, "tiny.tsv"), os.path.join(folder, "all.bin")], check=True)
    table, last = np.fromfile(os.path.join(folder, "all.bin"), "<f4").reshape(ROWS, ROWS), PROMPT[-1]
    with open(os.path.join(folder, "tiny.golden.txt"), "w") as f:
        f.write("prompt\t" + " ".join(map(str, PROMPT)) + "\n")
        for i in range(STEPS):
            best = np.argsort(-table[last])[:2]
            shown = [(int(b) + (7 if i == wrong else 0)) % ROWS for b in best]
            f.write(f"step {i}\t" + " ".join(f"{t}:{table[last][b]:.4f}" for t, b in zip(shown, best)) + "\n")
            last = int(best[0])


def decode(build, folder, *what):
    done = subprocess.run([sys.executable, os.path.join(HERE, "bench", "decode"), "--target", "host", "--build", build, "--models", folder,
                           "--work", os.path.join(folder, "work"), "--iterations", "3", "--warmup", "1", *what], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main(build, work, fill):
    folder = os.path.join(work, "models")
    os.makedirs(folder)
    make_model(folder, fill)
    write_golden(folder, -1)
    figures = os.path.join(work, "figures.json")
    status, text = decode(build, folder, "--contexts", "4,20", "--prefill", "32", "--no-torch", "--json", figures)
    report(status == 0 and re.search(r"\n7 passed, 0 failed, 0 skipped\n$", text) is not None,
           "all of a folder: weights, compile, capture, golden, two contexts, a prompt", text)
    report(re.search(r"^tiny with a prompt of 32: [0-9.]+ ms, [0-9.]+ us a token$", text, re.M) is not None, "the time of a prompt", text)
    report(f"tiny: {STEPS} of {STEPS} golden tokens" in text and "tiny: decode: captured = eager, byte for byte" in text, "golden tokens, captured as eager", text)
    report(len(re.findall(r"^tiny +(4|20)  +[0-9.]+ ", text, re.M)) == 2, "a row for each context", text)
    with open(figures) as f:
        rows = json.load(f)
    prompt = rows.pop()
    report(prompt["prompt"] == 32 and prompt["median_us"] > 0, "--json of a prompt", str(prompt))
    report([(r["model"], r["context"], r["launches"] > 2, r["median_us"] > 0) for r in rows] == [("tiny", 4, True, True), ("tiny", 20, True, True)], "--json", str(rows))
    report(os.listdir(os.path.join(folder, "work")) == [], "weights and plans are gone", str(os.listdir(os.path.join(folder, "work"))))
    write_golden(folder, 2)
    status, text = decode(build, folder, "--contexts", "4", "--no-torch", "tiny", "nothing", "--keep")
    report(status == 1 and re.search(r"FAILED tiny, golden: golden token 2: expected \d+, found \d+", text) is not None, "a wrong golden token is a failure", text)
    report("FAILED nothing" in text and re.search(r"^tiny +4 ", text, re.M) is not None and text.endswith("4 passed, 2 failed, 0 skipped\n"),
           "a model that is not there is a failure, and the rest is timed", text)
    report(sorted(os.listdir(os.path.join(folder, "work"))) == ["tiny.bin", "tiny.decode.plan", "tiny.ids", "tiny.onnx"], "--keep keeps them",
           str(os.listdir(os.path.join(folder, "work"))))
    shutil.copy(os.path.join(folder, "work", "tiny.bin"), folder)
    before = sorted(os.listdir(folder))
    status, text = decode(build, folder, "--contexts", "4", "--no-torch", "--no-verify", "--work", folder, "tiny")
    report(status == 0 and sorted(os.listdir(folder)) == before, "the models' own folder as --work: what was there before stays", text + str(os.listdir(folder)))
    status, text = decode(build, folder, "--contexts", "4", "--prefill", "8", "--no-verify", "--gguf", "tiny=none.gguf", "tiny")
    report("skip tiny, torch with a prompt of 8" in text and "FAILED tiny, llama.cpp with a prompt of 8" in text, "peers of a prompt that are not there", text)
    report(status == 1 and "skip tiny, torch at 4: there is no such architecture" in text and "FAILED tiny, llama.cpp at 4" in text and
           re.search(r"^tiny +4 ", text, re.M) is not None, "peers that are not there", text)
    print(f"{results['passed']} passed, {results['failed']} failed, 0 skipped")
    return 1 if results["failed"] else 0


sys.exit(main(*sys.argv[1:4]))
