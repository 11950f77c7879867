#!/usr/bin/env python3
"""run_sample.py - the sampling tail: draws against distributions computed here from the logits, seeds, stop tokens.

    tests/run_sample.py BUILD WORK [--target host|cuda] [--draws N]

BUILD has gcc-plan, plan-run and .libs/libplan.a. The models are a table of logits, with a state that grows or
one that is updated in place. Prints "N passed, N failed, 0 skipped"."""
import argparse
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from counts import finish, report

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def info(name, dims, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def save(path, nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, "sample", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    onnx.save(model, path)


def make_model(path, table, state):
    """Logits of a token: its row of the table; with state 'recurrent' the row of (3 h + token + 1) mod rows, the new state h."""
    ids, out = info("input_ids", [1, "seq"], INT64), info("logits", [1, "seq", table.shape[1]])
    constants = {"table": table}
    if state == "growing":
        nodes = [node("Gather", "table input_ids", "logits"), node("Cast", "input_ids", "rows", to=FLOAT), node("Reshape", "rows shape", "fresh"),
                 node("Concat", "past_key_values.0.key fresh", "present.0.key", axis=2)]
        save(path, nodes, [ids, info("past_key_values.0.key", [1, 1, "past", 1])], [out, info("present.0.key", [1, 1, "past + seq", 1])],
             constants | {"shape": np.array([1, 1, -1, 1])})
    else:
        ids, out = info("input_ids", [1, 1], INT64), info("logits", [1, 1, table.shape[1]])
        nodes = [node("Mul", "past_states.0.ssm_state three", "tripled"), node("Add", "tripled input_ids", "sum"), node("Add", "sum one", "more"),
                 node("Mod", "more rows", "present.0.ssm_state"), node("Gather", "table present.0.ssm_state", "logits")]
        save(path, nodes, [ids, info("past_states.0.ssm_state", [1, 1], INT64)], [out, info("present.0.ssm_state", [1, 1], INT64)],
             constants | {"three": np.array([[3]]), "one": np.array([[1]]), "rows": np.array([[table.shape[0]]])})


class Tail:
    def __init__(self, arguments):
        self.build, self.work, self.target, self.draws = arguments.build, arguments.work, arguments.target, arguments.draws

    def plan(self, name, table, state, sample="draw"):
        path = os.path.join(self.work, name)
        make_model(path + ".onnx", table, state)
        extra = ["--capacity", "16384", "--prefill", "64"] if state == "growing" else []
        done = subprocess.run([os.path.join(self.build, "gcc-plan"), path + ".onnx", "-o", path + ".plan", "--target",
                               "host" if self.target == "host" else "sm_80,sm_90a,ptx", "--sample", sample, "--quiet", *extra], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        return path + ".plan"

    def run(self, plan, prompt, count, *options):
        """The tokens that follow the prompt."""
        ids = os.path.join(self.work, "ids.txt")
        with open(ids, "w") as f:
            f.write(" ".join(map(str, prompt)))
        done = subprocess.run([os.path.join(self.build, "plan-run"), plan, "--target", self.target, "--prompt-ids", ids, "--generate", str(count),
                               *map(str, options)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{plan} {options}: {done.stderr}")
        return np.array(done.stdout.split("\n")[0].split(), dtype=np.int64)


def distribution(logits, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, penalty=1.0):
    """What plan.h says, in float64: the temperature, top-k, top-p of what it keeps, min-p; ties by index."""
    z = np.where(logits < 0, logits * penalty, logits / penalty).astype(np.float64) / temperature
    order = np.lexsort((np.arange(z.size), -z))
    p = np.exp(z - z.max())[order]
    kept = np.ones(p.size, bool)
    if top_k:
        kept[top_k:] = False
    if top_p < 1:
        share = np.cumsum(p * kept) / (p * kept).sum()
        kept &= np.concatenate(([0], share[:-1])) < top_p
    kept &= p >= min_p * p[0]
    out = np.zeros(p.size)
    out[order] = p * kept / (p * kept).sum()
    return out


def chi_squared(tokens, expected):
    """How many standard deviations above its mean the statistic is; classes hold five expected draws at least."""
    if (expected[tokens] == 0).any():
        return np.inf
    order = np.argsort(-expected)
    wanted, found = expected[order] * tokens.size, np.bincount(tokens, minlength=expected.size)[order]
    e, o, classes = 0.0, 0.0, []
    for a, b in zip(wanted, found):
        e, o = e + a, o + b
        if e >= 5:
            classes.append((e, o))
            e, o = 0.0, 0.0
    if classes:
        classes[-1] = (classes[-1][0] + e, classes[-1][1] + o)
    if len(classes) < 2:
        return 0.0 if classes else np.inf
    statistic = sum((o - e) ** 2 / e for e, o in classes)
    return (statistic - (len(classes) - 1)) / np.sqrt(2 * (len(classes) - 1))


def flags(g):
    return [w for k, v in g.items() for w in ("--" + {"penalty": "repetition-penalty"}.get(k, k.replace("_", "-")), v)]


def check_draw(tail, plan, logits, draws, g, prompt=(0,)):
    tokens = tail.run(plan, prompt, draws, *flags(g), "--seed", 11)
    off = chi_squared(tokens, distribution(logits, **g))
    report(tokens.size == draws and off < 4, f"{os.path.basename(plan)} {g}: {draws} draws", f"the statistic is {off:.1f} deviations above its mean")


def check_draws(tail):
    rng = np.random.default_rng(5)
    small, wide = rng.normal(0, 2, 200).astype(np.float32), rng.normal(0, 0.6, 5000).astype(np.float32)
    equal = np.zeros(3000, np.float32)
    masked = np.where(np.arange(200) % 3 == 0, small, -np.inf).astype(np.float32)
    plan = tail.plan("small", np.tile(small, (2, 1)), "recurrent")
    for g in (dict(temperature=1.0), dict(temperature=0.6, top_k=20), dict(temperature=1.3, top_p=0.8), dict(temperature=1.0, min_p=0.1),
              dict(temperature=0.9, top_k=50, top_p=0.9, min_p=0.02), dict(temperature=2.0, top_k=1)):
        check_draw(tail, plan, small, tail.draws, g)
    for name, logits, settings in (
            ("wide", wide, [dict(temperature=1.0), dict(temperature=1.0, top_k=300), dict(temperature=1.0, top_p=0.7), dict(temperature=1.0, min_p=0.1),
                            dict(temperature=1.0, top_p=0.9, min_p=0.05)]),
            ("equal", equal, [dict(temperature=1.0, top_k=7), dict(temperature=1.0, top_p=0.5)]),
            ("masked", masked, [dict(temperature=1.0), dict(temperature=1.0, top_p=0.9)])):
        plan = tail.plan(name, np.tile(logits, (2, 1)), "recurrent")
        for g in settings:
            check_draw(tail, plan, logits, tail.draws // 10, g)
    infinite = small.copy()
    infinite[17] = np.inf
    plan = tail.plan("infinite", np.tile(infinite, (2, 1)), "recurrent")
    report((tail.run(plan, [0], 50, "--temperature", 1, "--seed", 3) == 17).all(), "an infinite logit is certain")
    report((tail.run(plan, [0], 50, "--temperature", 1, "--top-p", 0.9, "--seed", 3) == 17).all(), "an infinite logit is certain, with top-p")
    prompt = list(range(200))
    plan = tail.plan("penalised", np.tile(small, (200, 1)), "growing")
    check_draw(tail, plan, small, tail.draws, dict(temperature=1.0, penalty=1.7), prompt)


def check_penalty(tail):
    """Without a draw the tokens are known: the largest logit after the penalty on all that was fed."""
    table = np.random.default_rng(6).normal(0, 1, (90, 90)).astype(np.float32)
    prompt, expected = [5, 17, 5, 40], []
    fed = list(prompt)
    for _ in range(60):
        z = table[fed[-1]].copy()
        seen = list(set(fed))
        z[seen] = np.where(z[seen] < 0, z[seen] * np.float32(1.3), z[seen] / np.float32(1.3))
        expected.append(int(z.argmax()))
        fed.append(expected[-1])
    plan = tail.plan("penalty", table, "growing")
    for options in ([], ["--eager"], ["--one-at-a-time"]):
        tokens = tail.run(plan, prompt, 60, "--repetition-penalty", 1.3, *options)
        report(tokens.tolist() == expected, f"penalty without a draw {options}", f"{tokens.tolist()}, expected {expected}")
    report(tail.run(plan, prompt, 60).tolist() != expected, "the penalty matters")


def check_seeds(tail):
    table = np.random.default_rng(7).normal(0, 1, (70, 70)).astype(np.float32)
    for state in ("growing", "recurrent"):
        plan = tail.plan("seeds-" + state, table, state)
        draw = ["--temperature", 1, "--top-k", 30, "--seed"]
        first = tail.run(plan, [3, 1, 4], 100, *draw, 5)
        report((first == tail.run(plan, [3, 1, 4], 100, *draw, 5)).all(), f"{state}: a seed repeats itself")
        report((first == tail.run(plan, [3, 1, 4], 100, *draw, 5, "--eager")).all(), f"{state}: eager draws the same")
        report((first == tail.run(plan, [3, 1, 4], 100, *draw, 5, "--one-at-a-time")).all(), f"{state}: draws are counted by tokens, however they were fed")
        report((first != tail.run(plan, [3, 1, 4], 100, *draw, 6)).any(), f"{state}: another seed gives other tokens")
        end = first.tolist().index(first[9]) + 1
        report(tail.run(plan, [3, 1, 4], 100, *draw, 5, "--stop", f"70,{first[9]}").tolist() == first[:end].tolist(), f"{state}: --stop")


def check_stops(tail):
    program = os.path.join(tail.work, "sample_run")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O1", "-I" + os.path.join(HERE, "..", "runtime"), *os.environ.get("SAMPLE_CFLAGS", "").split(), "-o", program,
                    os.path.join(HERE, "sample_run.c"), os.path.join(tail.build, ".libs", "libplan.a"), "-lpthread", "-ldl", "-lm"], check=True)
    table = np.random.default_rng(8).normal(0, 1, (400, 400)).astype(np.float32)
    for state in ("growing", "recurrent"):
        for sample in ("greedy", "draw"):
            plan = tail.plan(f"stops-{state}-{sample}", table, state, sample)
            done = subprocess.run([program, tail.target, plan, "7", "300", "12"], capture_output=True, text=True)
            for line in done.stdout.splitlines():
                if line.startswith(("ok ", "not ok ")):
                    report(line.startswith("ok "), f"{state}, {sample}: {line.split('ok ', 1)[1]}")
                else:
                    print(line)
            report(done.returncode == 0, f"{state}, {sample}: sample_run", done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--target", default="host")
    parser.add_argument("--draws", type=int, default=10000)
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    tail = Tail(arguments)
    check_stops(tail)
    check_penalty(tail)
    check_seeds(tail)
    check_draws(tail)
    return finish()


sys.exit(main())
