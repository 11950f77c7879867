#!/usr/bin/env python3
"""run.py - ONNX's own tests, as they ship inside the PyPI package onnx==1.22.0: compiled, captured, replayed twice, compared.

    tests/conformance/run.py BUILD [PATTERN...]                     all steps on the host target
    tests/conformance/run.py BUILD --target cuda                    all steps on a machine with a GPU
    tests/conformance/run.py BUILD --target cuda --prepare FOLDER   any machine: plans, inputs, list and run_model into FOLDER
    FOLDER/run_model cuda FOLDER/list.txt DUMP                      the GPU machine: nothing else is needed there
    tests/conformance/run.py BUILD --target cuda --folder FOLDER --compare DUMP

BUILD has gcc-plan and .libs/libplan.a. A PATTERN is a part of a name (node/test_add); `^` and `$` anchor. What came of each test
is in RESULTS.md (RESULTS-cuda.md), unless there are patterns; --update writes passing.txt (passing-cuda.txt), the list of the
tests that must pass. Exit 1 and a line each: a test of that list that does not pass, a wrong result, a crash, a time-out, fewer
tests than there should be. A refusal by gcc-plan is no failure, but it is not passed either."""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import OptionalProto, SequenceProto, TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import report  # noqa: E402
from shape_inputs import deciding_inputs  # noqa: E402
from tolerances import differs, is_random  # noqa: E402

DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
EXPECTED = {"node": 1765, "simple": 23, "pytorch-operator": 35, "pytorch-converted": 82, "light": 9}
LIMIT = 120  # seconds for one compilation, or for one run


class Test:
    """kind/name, where its model and data lie, and, once run, `result` (report.PASSED ...), `text`, and `bound`: the inputs that
    were bound when compiling."""

    def __init__(self, kind, name, model, data):
        self.kind, self.name, self.path, self.data = kind, kind + "/" + name, model, data
        self.result, self.text, self.bound, self.plan, self.operator = None, "", [], None, "?"
        self.folder, self.random = None, False


def find_tests():
    tests = []
    for path in glob.glob(os.path.join(DATA, "*", "*", "model.onnx")):
        folder = os.path.dirname(path)
        kind = os.path.basename(os.path.dirname(folder))
        if kind in EXPECTED:
            tests.append(Test(kind, os.path.basename(folder), path, os.path.join(folder, "test_data_set_0")))
    for path in glob.glob(os.path.join(DATA, "light", "*.onnx")):
        tests.append(Test("light", os.path.basename(path)[:-5], path, path[:-5]))
    return sorted(tests, key=lambda t: (list(EXPECTED).index(t.kind), t.name))


def missing_tests(tests):
    found = collections.Counter(test.kind for test in tests)
    return ["%s: expected %d tests, found %d" % (kind, count, found[kind]) for kind, count in EXPECTED.items() if found[kind] < count]


# ---- data

PROTOS = {"tensor_type": TensorProto, "sequence_type": SequenceProto, "optional_type": OptionalProto}


def load_tensors(path, name, kind):
    """Pairs (name, array) of the tensors in the file, named as gcc-plan names the outputs for them: an array is None when it is no
    tensor of numbers."""
    proto = PROTOS[kind]()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    if kind == "optional_type":
        if proto.elem_type == OptionalProto.UNDEFINED or not (proto.HasField("tensor_value") or proto.HasField("sequence_value")):
            return []
        proto = proto.tensor_value if proto.HasField("tensor_value") else proto.sequence_value
    tensors = [(name, proto)]
    if isinstance(proto, SequenceProto):
        tensors = [("%s[%d]" % (name, i), tensor) for i, tensor in enumerate(proto.tensor_values)]
    return [(n, None if t.data_type == TensorProto.STRING else numpy_helper.to_array(t)) for n, t in tensors]


def load_tensor(path, kind):
    """The array, or None: it is no tensor."""
    return load_tensors(path, "", kind)[0][1] if kind == "tensor_type" else None


def model_inputs(model):
    constants = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def light_input(info):
    """As onnx.backend.test.runner makes it: the light nets ship without inputs."""
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def input_arrays(test, model):
    """(name, array or None, file or None) of each input."""
    result = []
    for index, info in enumerate(model_inputs(model)):
        if test.kind == "light":
            result.append((info.name, light_input(info), None))
            continue
        path = os.path.join(test.data, "input_%d.pb" % index)
        result.append((info.name, load_tensor(path, info.type.WhichOneof("value")), path))
    return result


def output_arrays(test, model):
    if test.kind == "light":
        paths = [test.data + "_output_%d.pb" % i for i in range(len(model.graph.output))]
    else:
        paths = [os.path.join(test.data, "output_%d.pb" % i) for i in range(len(model.graph.output))]
    return [pair for info, path in zip(model.graph.output, paths)
            for pair in load_tensors(path, info.name, info.type.WhichOneof("value"))]


def symbols(model, inputs):
    """Values of the named dims, from the data."""
    values = {}
    for info, (_, array, _) in zip(model_inputs(model), inputs):
        if array is not None:
            for dim, extent in zip(info.type.tensor_type.shape.dim, array.shape):
                if dim.WhichOneof("value") == "dim_param" and extent: # ranges begin at one
                    values[dim.dim_param] = extent
    return values


# ---- compiling

def gcc_plan(arguments, test, more):
    """Exit status, and what it said."""
    target = "host" if arguments.target == "host" else "sm_90a"
    command = [os.path.join(arguments.build, "gcc-plan"), test.path, "-o", test.plan, "--target=" + target, "--quiet", "--threads=1"]
    try:
        done = subprocess.run(command + more, capture_output=True, text=True, errors="replace", check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return -1, "gcc-plan took more than %d s" % LIMIT
    return done.returncode, (done.stderr + done.stdout).strip()


def bindings(test, names, inputs):
    more = []
    for name, _, path in inputs:
        if name in names and path:
            more += ["--bind", "%s=%s" % (name, path)]
            test.bound.append(name)
    return more


def has_lists(model):
    return any(info.type.WhichOneof("value") != "tensor_type" for info in model.graph.input)


def compile_test(arguments, test):
    """As it is; where that is refused, with the inputs bound that decide shapes. Writes the inputs of a plan beside it."""
    model = onnx.load(test.path)
    test.operator = report.operator_of(test, model)
    test.folder = os.path.join(arguments.folder, test.name)
    os.makedirs(test.folder, exist_ok=True)
    test.plan = os.path.join(test.folder, "plan")
    inputs = input_arrays(test, model)
    ranged = symbols(model, inputs)
    sizes = ["--max=%s=%d" % (name, max(2 * extent, 1)) for name, extent in ranged.items()]
    status, text = gcc_plan(arguments, test, sizes)
    if status == 1:
        more = bindings(test, deciding_inputs(model), inputs)
        if more:
            status, text = gcc_plan(arguments, test, sizes + more)
        if more and ranged and (status == 1 or has_lists(model)): # the length of a sequence may follow from that of a tensor
            pins = ["--pin=%s=%d" % (name, extent) for name, extent in ranged.items()]
            status, text = gcc_plan(arguments, test, pins + more)
            test.bound += ["%s = %d" % pair for pair in ranged.items()]
            ranged = {}
    if status:
        test.result = report.REFUSED if status == 1 else report.FAILED
        test.text = text if status == 1 else "gcc-plan ended with %d: %s" % (status, text[-600:])
        return
    lines = ["plan %s/plan\n" % test.name]
    for index, (name, array, _) in enumerate(inputs):
        if name in test.bound or array is None:
            continue
        with open(os.path.join(test.folder, "in%d" % index), "wb") as file:
            file.write(np.ascontiguousarray(array).tobytes())
        lines.append("in %s/in%d %s\n" % (test.name, index, name))
    lines += ["any 1 random\n"] if is_random(model) else []
    lines += ["sym %d %s\n" % (extent, name) for name, extent in ranged.items()]
    with open(os.path.join(test.folder, "list"), "w", encoding="utf-8") as file:
        file.writelines(lines)


def guarded(arguments, test):
    try:
        compile_test(arguments, test)
    except Exception as error:  # of this program: it must not hide the other tests
        test.result, test.text = report.FAILED, "run.py: %s: %s" % (type(error).__name__, error)


def build_runner(arguments):
    program = os.path.join(arguments.folder, "run_model")
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-I" + os.path.join(HERE, "..", "..", "runtime"), "-o",
               program, os.path.join(HERE, "run_model.c"), os.path.join(arguments.build, ".libs", "libplan.a"), "-lpthread", "-ldl", "-lm"]
    if arguments.runner:
        command = ["cp", arguments.runner, program]
    subprocess.run(command, check=True)
    return program


# ---- running

def write_list(arguments, name, tests):
    path = os.path.join(arguments.folder, name)
    with open(path, "w", encoding="utf-8") as out:
        for test in tests:
            with open(os.path.join(test.folder, "list"), encoding="utf-8") as file:
                out.write(file.read())
    return path


def run_lists(arguments, program, tests):
    """One process a job; each has every N-th test. Pairs (tests, dump)."""
    parts, running = [], []
    for part in range(arguments.jobs):
        chosen = tests[part::arguments.jobs]
        listed = write_list(arguments, "list%d.txt" % part, chosen)
        dump = os.path.join(arguments.folder, "dump%d" % part)
        if os.path.exists(dump):
            os.unlink(dump)
        running.append(subprocess.Popen([program, arguments.target, listed, dump, str(LIMIT)]))
        parts.append((chosen, dump))
    for process in running:
        process.wait()
    return parts


def read_output(file):
    words = file.readline().decode("utf-8", "replace").rstrip("\n").split(" ")
    dtype, size, rank = int(words[1]), int(words[2]), int(words[3])
    name = " ".join(words[4 + rank:])
    return name, dtype, [int(w) for w in words[4:4 + rank]], file.read(size)


def read_dump(path, tests):
    """For each test its outputs by name, or the text of a failure."""
    results = {}
    with open(path, "rb") as file:
        while True:
            words = file.readline().decode().split()
            if not words:
                return results
            line = file.readline().decode("utf-8", "replace").strip()
            test = tests[int(words[1])]
            if not line.startswith("ok "):
                results[test.name] = line
                continue
            outputs = [read_output(file) for _ in range(int(line.split()[1]))]
            results[test.name] = {name: rest for name, *rest in outputs}


def judge_output(test, name, expected, found):
    """None, or what is wrong."""
    if found is None:
        return "output '%s' is not in the plan" % name
    dtype, dims, data = found
    wanted = helper.np_dtype_to_tensor_dtype(expected.dtype)
    if dtype != wanted:
        return "output '%s': expected dtype %d, found %d" % (name, wanted, dtype)
    if tuple(dims) != expected.shape or len(data) != expected.nbytes:
        return "output '%s': expected shape %s, found %s (%d bytes)" % (name, list(expected.shape), dims, len(data))
    return differs(test, name, expected, np.frombuffer(data, expected.dtype).reshape(expected.shape))


def judge(test, result):
    test.result = report.FAILED
    if isinstance(result, str):
        test.text = result
        return
    model = onnx.load(test.path)
    test.random = is_random(model)
    wanted = output_arrays(test, model)
    more = sorted(set(result) - {name for name, _ in wanted})
    if more:
        test.text = "output '%s' is one too many" % more[0]
        return
    for name, expected in wanted:
        if expected is None:
            test.text = "output '%s' is no tensor" % name
            return
        test.text = judge_output(test, name, expected, result.get(name))
        if test.text:
            return
    test.result, test.text = report.PASSED, ""


def judge_all(parts):
    for tests, dump in parts:
        results = read_dump(dump, tests)
        for test in tests:
            judge(test, results.get(test.name, "failed run: nothing was written"))


# ---- what is kept between --prepare and --compare

def save_state(arguments, tests):
    with open(os.path.join(arguments.folder, "tests.json"), "w", encoding="utf-8") as file:
        json.dump({t.name: [t.result, t.text, t.bound, t.operator] for t in tests}, file)


def load_state(arguments, tests):
    with open(os.path.join(arguments.folder, "tests.json"), encoding="utf-8") as file:
        state = json.load(file)
    known = [test for test in tests if test.name in state]
    for test in known:
        test.result, test.text, test.bound, test.operator = state[test.name]
    return known


def matches(test, patterns):
    return not patterns or any(re.search(pattern, test.name) for pattern in patterns)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--target", default="host", choices=["host", "cuda"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--folder", help="for plans and inputs (default: conformance in BUILD)")
    parser.add_argument("--prepare", metavar="FOLDER")
    parser.add_argument("--compare", metavar="DUMP")
    parser.add_argument("--update", action="store_true", help="write the list of tests that must pass")
    parser.add_argument("--results", help="the file to write (default: RESULTS.md here)")
    parser.add_argument("--runner", help="a run_model that is built already")
    arguments = parser.parse_intermixed_args()
    arguments.folder = arguments.prepare or arguments.folder or os.path.join(arguments.build, "conformance")
    os.makedirs(arguments.folder, exist_ok=True)
    return arguments


def run(arguments, tests):
    """False: only prepared."""
    program = build_runner(arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda test: guarded(arguments, test), tests))
    ready = [test for test in tests if test.result is None]
    if arguments.prepare:
        write_list(arguments, "list.txt", ready)
        save_state(arguments, tests)
        print("%d plans, %d refused, %d failed" % (len(ready), sum(t.result == report.REFUSED for t in tests),
                                                   sum(t.result == report.FAILED for t in tests)))
        return False
    judge_all(run_lists(arguments, program, ready))
    return True


def main():
    arguments = parse_arguments()
    start = time.time()
    everything = find_tests()
    complaints = missing_tests(everything)
    tests = [test for test in everything if matches(test, arguments.patterns)]
    if arguments.compare:
        tests = load_state(arguments, tests)
        ready = [test for test in tests if test.result is None]
        judge_all([(ready, arguments.compare)])
    elif not run(arguments, tests):
        return 1 if complaints else 0
    seconds = time.time() - start
    suffix = "" if arguments.target == "host" else "-cuda"
    whole = not arguments.patterns
    if whole or arguments.results:
        report.write(arguments.results or os.path.join(HERE, "RESULTS%s.md" % suffix), arguments.target, tests)
    return report.conclude(tests, os.path.join(HERE, "passing%s.txt" % suffix), arguments.update and whole, complaints, seconds)


if __name__ == "__main__":
    sys.exit(main())
