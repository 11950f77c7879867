#!/usr/bin/env python3
"""run_properties.py - random small nodes of every operator against onnxruntime: values, dtypes, and the dims that gcc-plan infers.

    tests/run_properties.py BUILD WORK [--count N] [--seed S] [--target host|cuda] [OPERATOR...]

Draws N nodes an operator (5) from the seeds S, S + 1 ...; the models declare no dims of their outputs. Half of the nodes have symbols
for the dims of their inputs, given values only when they run. A failure's line ends in the options that draw that node alone.
Each plan is replayed twice over poisoned outputs (tests/conformance/run_model.c). --prepare and --compare as in
tests/conformance/run.py. Exit 1: a failure, or an operator of the support table that is neither drawn nor exempt."""
import argparse
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from onnx import helper, save

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "conformance")]
import run as conformance  # noqa: E402
import support  # noqa: E402
from op_models import tensor_type, to_proto  # noqa: E402
from property_cases import Const, Draw  # noqa: E402
from property_table import DRAWS, EXEMPT  # noqa: E402

BATCH = 20       # nodes of one model
ATTEMPTS = 60    # draws until the oracle takes one


class Case:
    """A drawn node that the oracle computed. DIMS: for each input its dims in the model, numbers or names of symbols."""

    def __init__(self, label, seed):
        self.label, self.seed, self.tried = label, seed, 0
        while self.tried < ATTEMPTS:
            draw = Draw([seed, zlib.crc32(label.encode()), self.tried])
            self.node, self.tried = DRAWS[label](draw), self.tried + 1
            try:
                self.expected = ORACLE.answer(self)
            except ValueError as error:
                self.error = error
                continue
            self.dims = self.symbolic_dims() if draw.chance(0.5) else [list(i.shape) for i in self.node.inputs if i is not None]
            return
        raise ValueError("no node of %s is taken by its oracle: %s" % (label, str(self.error)[:300]))

    def run_time(self):
        """(index, name, array) of the inputs that are no constants."""
        return [(i, "i%d_%d" % (self.seed, i), a) for i, a in enumerate(self.node.inputs) if a is not None and not isinstance(a, Const)]

    def outputs(self):
        return ["o%d_%d" % (self.seed, i) for i in range(self.node.outputs)]

    def symbolic_dims(self):
        """Equal extents have one symbol; ones stay numbers, since they broadcast, and zeros, since a range of symbols begins at 1."""
        return [[int(e) if e < 2 or i in self.node.fixed else "s%d_%d" % (self.seed, e) for e in a.shape]
                for i, a in enumerate(self.node.inputs) if a is not None]

    def symbols(self):
        present = [a for a in self.node.inputs if a is not None]
        pairs = [(d, e) for dims, a in zip(self.dims, present) if not isinstance(a, Const) for d, e in zip(dims, a.shape)]
        return {d: int(e) for d, e in pairs if isinstance(d, str)}

    def name(self):
        return "%s --seed %d" % (self.label, self.seed)


def graph_parts(case, dims):
    """Node, inputs, outputs, initializers; DIMS of the present inputs, or None: their own."""
    names, infos, constants, at = [], [], [], 0
    for i, array in enumerate(case.node.inputs):
        if array is None:
            names.append("")
            continue
        names.append("i%d_%d" % (case.seed, i))
        if isinstance(array, Const):
            constants.append(to_proto(np.asarray(array), names[-1]))
        else:
            infos.append(helper.make_tensor_value_info(names[-1], tensor_type(array.dtype), dims[at] if dims else array.shape))
        at += 1
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(case.node.op, names, case.outputs(), name="n%d" % case.seed, domain=case.node.domain, **case.node.attrs)
    return node, infos, constants


def model_of(cases, symbolic):
    parts = [graph_parts(case, case.dims if symbolic else None) for case in cases]
    results = []
    for case in cases:
        kinds = [tensor_type(e.dtype) for e in case.expected] if symbolic else [None] * case.node.outputs
        for name, kind in zip(case.outputs(), kinds):
            results.append(helper.make_tensor_value_info(name, kind, None) if kind else helper.ValueInfoProto(name=name))
    graph = helper.make_graph([p[0] for p in parts], "properties", [i for p in parts for i in p[1]], results, [k for p in parts for k in p[2]])
    first = cases[0].node
    opsets = {"": first.opset if not first.domain else 21, "com.microsoft": 1}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
    model.ir_version = 10
    return model


def compute(engine, model, feeds):
    if engine == "reference":
        from onnx.reference import ReferenceEvaluator
        return [np.asarray(o) for o in ReferenceEvaluator(model).run(None, feeds)]
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [np.asarray(o) for o in session.run(None, feeds)]


def serve(pipe):
    warnings.simplefilter("ignore")
    while True:
        try:
            pipe.send(compute(*pipe.recv()))
        except EOFError:
            return
        except Exception as error:  # whatever an engine says of a node that it does not take
            pipe.send(str(error))


class Oracle:
    """Another engine in a process of its own: some nodes without elements end it (a division by zero)."""

    process = pipe = None

    def answer(self, case):
        """The outputs; ValueError when it takes no such node."""
        if self.process is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        self.pipe.send((case.node.oracle, model_of([case], symbolic=False).SerializeToString(), {n: np.asarray(a) for _, n, a in case.run_time()}))
        try:
            found = self.pipe.recv()
        except EOFError:
            self.process = None
            raise ValueError("the engine ended") from None
        if isinstance(found, str):
            raise ValueError(found)
        return found


ORACLE = Oracle()


# ---- compiling: many nodes in one model; where that is refused, each alone

def compile_cases(arguments, cases):
    """Pairs (Test, cases) that are ready to run; what is refused or fails is in ERRORS of the arguments, by case."""
    name = "%s_%d" % (cases[0].label, cases[0].seed) + ("" if len(cases) > 1 else "_alone")
    folder = os.path.join(arguments.folder, name)
    os.makedirs(folder, exist_ok=True)
    test = conformance.Test("property", name, os.path.join(folder, "model.onnx"), None)
    test.name, test.folder, test.plan = name, folder, os.path.join(folder, "plan")
    save(model_of(cases, symbolic=True), test.path)
    symbols = {k: v for case in cases for k, v in case.symbols().items()}
    status, text = conformance.gcc_plan(arguments, test, ["--max=%s=%d" % (k, max(2 * v, 2)) for k, v in symbols.items()])
    if status and len(cases) > 1:
        return [ready for case in cases for ready in compile_cases(arguments, [case])]
    if status:
        arguments.errors[cases[0].name()] = "gcc-plan ended with %d: %s" % (status, text[:600])
        return []
    free = free_symbols(arguments, test) if symbols else ()
    write_job(test, cases, {k: v for k, v in symbols.items() if k in free})
    return [(test, cases)]


def free_symbols(arguments, test):
    """Names of the symbols that a run gives values to; equations may have determined the others."""
    done = subprocess.run([os.path.join(arguments.build, "plan-inspect"), "--json", test.plan], capture_output=True, text=True, check=True)
    return {s["name"] for s in json.loads(done.stdout)["symbols"] if s["symbol_class"] == "ranged"}


def write_job(test, cases, symbols):
    lines = ["plan %s/plan\n" % test.name]
    for case in cases:
        for _, name, array in case.run_time():
            np.ascontiguousarray(array).tofile(os.path.join(test.folder, name))
            lines.append("in %s/%s %s\n" % (test.name, name, name))
    lines += ["sym %d %s\n" % (value, name) for name, value in symbols.items()]
    with open(os.path.join(test.folder, "list"), "w", encoding="ascii") as file:
        file.writelines(lines)


def draw_all(arguments):
    """Lists of cases that share a model. A draw that no oracle takes is a failure of ours."""
    batches = []
    for label in arguments.operators or DRAWS:
        cases = []
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            try:
                cases.append(Case(label, seed))
            except ValueError as error:
                arguments.errors["%s --seed %d" % (label, seed)] = str(error)
        batches += [cases[i:i + BATCH] for i in range(0, len(cases), BATCH)]
    return batches


# ---- judging

def judge(case, test, results):
    """None, or what is wrong with the first output that is not as expected."""
    if isinstance(results, str):
        return results
    for name, expected in zip(case.outputs(), case.expected):
        text = conformance.judge_output(test, name, expected, results.get(name))
        if text:
            return text
    return None


def judge_all(arguments, ready, parts):
    cases = {test.name: cases for test, cases in ready}
    for tests, dump in parts:
        results = conformance.read_dump(dump, tests)
        for test in tests:
            for case in cases[test.name]:
                text = judge(case, test, results.get(test.name, "failed run: nothing was written"))
                if text:
                    arguments.errors[case.name()] = text


def untested(build):
    """Operators of the support table that are neither drawn nor exempt."""
    names = {name if domain == "ai.onnx" else domain + "." + name for domain, name, _, _ in support.rows(build)}
    return ["%s: neither drawn nor exempt (tests/property_table.py)" % n for n in sorted(names - set(DRAWS) - set(EXEMPT))]


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="host", choices=["host", "cuda"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--compare", metavar="DUMP")
    parser.add_argument("--runner", help="a run_model that is built already")
    arguments = parser.parse_intermixed_args()
    arguments.errors = {}
    os.makedirs(arguments.folder, exist_ok=True)
    return arguments


def report(arguments, total, more):
    for name, text in sorted(arguments.errors.items()):
        print("%s: %s" % (text, name))
    for text in more:
        print(text)
    print("%d operators, %d nodes each, seeds from %d; %d operators exempt" % (len(arguments.operators or DRAWS), arguments.count, arguments.seed, len(EXEMPT)))
    print("%d passed, %d failed, 0 skipped" % (total - len(arguments.errors), len(arguments.errors) + len(more)))
    return 1 if arguments.errors or more or not total else 0


def main():
    arguments = parse_arguments()
    kept = os.path.join(arguments.folder, "prepared.pickle")
    if arguments.compare:
        with open(kept, "rb") as file:
            ready, arguments.errors, total = pickle.load(file)
        judge_all(arguments, ready, [([test for test, _ in ready], arguments.compare)])
        return report(arguments, total, [])
    batches = draw_all(arguments)
    total = sum(map(len, batches))
    program = conformance.build_runner(arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        ready = [pair for pairs in pool.map(lambda cases: compile_cases(arguments, cases), batches) for pair in pairs]
    tests = [test for test, _ in ready]
    if arguments.prepare:
        conformance.write_list(arguments, "list.txt", tests)
        with open(kept, "wb") as file:
            pickle.dump((ready, arguments.errors, total), file)
        print("%d plans prepared, %d failed" % (len(ready), len(arguments.errors)))
        return 1 if arguments.errors else 0
    judge_all(arguments, ready, conformance.run_lists(arguments, program, tests))
    return report(arguments, total, [] if arguments.operators else untested(arguments.build))


if __name__ == "__main__":
    sys.exit(main())
