#!/usr/bin/env python3
"""run_op_models.py - compiles the small models of a folder (tests/make_op_models.py) and compares what they compute, and by which kernels.

    tests/run_op_models.py BUILD FOLDER [PATTERN] [--target host|cuda] [--option=--OPTION]     all steps
    tests/run_op_models.py BUILD FOLDER [PATTERN] --target cuda --prepare  all but running: FOLDER/list.txt, plans, inputs
    tests/run_op_models.py BUILD FOLDER --compare DUMP                     compare what `op_run cuda FOLDER/list.txt DUMP` wrote

BUILD has gcc-plan and .libs/libplan.a. Prints one line a failure, then the counts. --table, for the folder of all cases: also prints how many
each operator of com.microsoft has, at least ten, and fails when a row of `gcc-plan --ops` has none here nor in ONNX's own tests.
GCC_PLAN_CUDA names the target that --target cuda compiles for (sm_90a)."""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import op_models  # noqa: E402
import support  # noqa: E402


def load(path):
    proto = onnx.TensorProto()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    if proto.data_type == onnx.TensorProto.BFLOAT16:
        return proto.name, np.frombuffer(proto.raw_data, op_models.BF16).reshape(tuple(proto.dims))
    return proto.name, onnx.numpy_helper.to_array(proto)


def numbered(folder, kind):
    paths = glob.glob(os.path.join(folder, kind + "_*.pb"))
    return [load(path) for path in sorted(paths, key=lambda p: int(p.rsplit("_", 1)[1][:-3]))]


def settings(folder):
    tolerance, checks = {}, {}
    with open(os.path.join(folder, "case.txt"), encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] in ("rtol", "atol"):
                tolerance[words[0]] = float(words[1])
            if words[0] == "check":
                checks[int(words[1])] = " ".join(words[2:])
    return tolerance["rtol"], tolerance["atol"], checks


def compile_model(arguments, folder):
    """None, or what went wrong."""
    target = "host" if arguments.target == "host" else os.environ.get("GCC_PLAN_CUDA", "sm_90a")
    command = [os.path.join(arguments.build, "gcc-plan"), os.path.join(folder, "model.onnx"), "-o", os.path.join(folder, "model.plan"),
               "--target=" + target, "--quiet", "--threads=1"] + arguments.option
    if os.path.exists(os.path.join(folder, "tuning.txt")):
        command.append("--tuning=" + os.path.join(folder, "tuning.txt"))
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if result.returncode == 0 else "gcc-plan: " + (result.stderr + result.stdout).strip()[:1000]


def kernels_of(arguments, plan):
    """Launches of signature main by kernel, all of them as "launches", those with shared memory of their own choice as "shared", "blocks" of all of
    them, counted along x, and their "bytes"."""
    text = subprocess.run([os.path.join(arguments.build, "plan-inspect"), plan], capture_output=True, text=True, check=True).stdout
    part = text.split("\nmain ", 1)[1].split("\n\n")[0]
    names = re.findall(r"^ +\d+  (\w+)_\d+ ", part, re.M)
    found = collections.Counter(names)
    found.update(launches=len(names), shared=len(re.findall(r" x \d+ \+ \d+ ", part)), blocks=sum(map(int, re.findall(r"^ +\d+  \w+_\d+ +(\d+) x ", part, re.M))),
                 bytes=sum(map(int, re.findall(r"^ +\d+  \w+_\d+ +[\d,]+ x \d+(?: \+ \d+)? +(\d+) ", part, re.M))))
    return found



def wrong_kernels(arguments, folder):
    """None, or which kernels the plan has, where case.txt says others."""
    with open(os.path.join(folder, "case.txt"), encoding="ascii") as file:
        expected = {line.split()[1]: int(line.split()[2]) for line in file if line.startswith("kernel ")}
    found = kernels_of(arguments, os.path.join(folder, "model.plan")) if expected else {}
    if any(found[name] != count for name, count in expected.items()):
        return "kernels: expected %s, found %s" % (expected, dict(found))
    return None


def audited(arguments, folder):
    """None, or which clause of the contract a launch breaks."""
    result = subprocess.run([os.path.join(arguments.build, "plan-inspect"), os.path.join(folder, "model.plan"), "--audit"], capture_output=True, text=True, check=False)
    failures = [line for line in result.stdout.splitlines() if line.startswith("FAIL")] or [result.stderr.strip()[:300]]
    return None if result.returncode == 0 else "audit: " + failures[0]


def made(arguments, folder):
    """None, or what is wrong with the plan."""
    return compile_model(arguments, folder) or wrong_kernels(arguments, folder) or audited(arguments, folder)


def compile_all(arguments, folders):
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        texts = list(pool.map(lambda folder: made(arguments, folder), folders))
    return {folder: text for folder, text in zip(folders, texts) if text}


def build_runner(arguments):
    program = os.path.join(arguments.folder, "op_run")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-I" + os.path.join(HERE, "..", "runtime"), "-o", program,
                    os.path.join(HERE, "op_run.c"), os.path.join(arguments.build, ".libs", "libplan.a"), "-lpthread", "-ldl", "-lm"],
                   check=True)
    return program


def write_list(arguments, folders):
    """The jobs, with inputs as raw bytes beside the models."""
    with open(os.path.join(arguments.folder, "list.txt"), "w", encoding="ascii") as out:
        for folder in folders:
            base = os.path.relpath(folder, arguments.folder)
            out.write("plan %s/model.plan\n" % base)
            for index, (name, array) in enumerate(numbered(folder, "input")):
                with open(os.path.join(folder, "input_%d.bin" % index), "wb") as file:
                    file.write(np.ascontiguousarray(array).tobytes())
                out.write("in %s %s/input_%d.bin\n" % (name, base, index))
            for name, array in numbered(folder, "output"):
                out.write("out %s %d\n" % (re.sub(r"^present\.", "past_key_values.", name), array.nbytes))  # a state has its input's name


def read_dump(path, folders):
    """For each folder its outputs, or the text of a failure."""
    results = {}
    with open(path, "rb") as file:
        for folder in folders:
            line = file.readline().decode("utf-8", "replace").strip()
            if line != "ok":
                results[folder] = line or "nothing was written"
                continue
            results[folder] = [np.frombuffer(file.read(a.nbytes), a.dtype).reshape(a.shape) for _, a in numbered(folder, "output")]
    return results


def differences(folder, results):
    """None, or the first difference."""
    rtol, atol, checks = settings(folder)
    for index, ((name, expected), found) in enumerate(zip(numbered(folder, "output"), results)):
        if index in checks:
            part = eval("np.s_[%s]" % checks[index], {"np": np})  # written by our own cases
            expected, found = expected[part], found[part]
        if expected.dtype.kind in "iub":
            good = expected == found
        else:
            good = np.isclose(found.astype(np.float64), expected.astype(np.float64), rtol, atol, equal_nan=True)
        if not np.all(good):
            at = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0])
            return "output %s%s: expected %s, found %s; %d of %d differ" % (
                name, list(at), expected[at], found[at], np.size(good) - np.count_nonzero(good), np.size(good))
    return None


def judge(path, folders):
    errors = {}
    for folder, result in read_dump(path, folders).items():
        text = result if isinstance(result, str) else differences(folder, result)
        if text:
            errors[folder] = text
    return errors


def operator_of(folder):
    """(domain, name, version of the domain)"""
    with open(os.path.join(folder, "case.txt"), encoding="ascii") as file:
        domain, name, opset = next(line.split()[1:] for line in file if line.startswith("operator "))
    return domain, name, int(opset)


def contrib_counts(table, folders, errors):
    """Prints the counts of com.microsoft; what is wrong with them, a line each."""
    good, bad = collections.Counter(), collections.Counter()
    for folder in folders:
        domain, name, _ = operator_of(folder)
        if domain == "com.microsoft":
            (bad if folder in errors else good)[name] += 1
    for name in sorted({name for domain, name, _, _ in table if domain == "com.microsoft"} | set(good) | set(bad)):
        print("com.microsoft %-34s %4d vectors passed, %d failed" % (name, good[name], bad[name]))
    return ["com.microsoft %s: %d vectors; expected at least 10" % (name, good[name] + bad[name]) for domain, name, _, _ in table
            if domain == "com.microsoft" and good[name] + bad[name] < 10]


def check_table(arguments, folders, errors):
    table = support.rows(arguments.build)
    used = {operator_of(folder) for folder in folders} | support.used_by_onnx()
    return contrib_counts(table, folders, errors) + support.unused(table, used)


def listed(arguments):
    with open(os.path.join(arguments.folder, "list.txt"), encoding="ascii") as file:
        return [os.path.join(arguments.folder, os.path.dirname(line.split()[1])) for line in file if line.startswith("plan ")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--target", default="host")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--compare")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--option", action="append", default=[], help="of gcc-plan; --option=--emulate-gpu")
    arguments = parser.parse_args()
    if arguments.compare:
        folders = listed(arguments)
        errors = judge(arguments.compare, folders)
    else:
        folders = sorted(os.path.dirname(p) for p in glob.glob(os.path.join(arguments.folder, "*", "*", "model.onnx")))
        folders = [folder for folder in folders if arguments.pattern in folder]
        errors = compile_all(arguments, folders)
        ready = [folder for folder in folders if folder not in errors]
        write_list(arguments, ready)
        program = build_runner(arguments)
        if not arguments.prepare:
            dump = os.path.join(arguments.folder, "dump.bin")
            subprocess.run([program, arguments.target, os.path.join(arguments.folder, "list.txt"), dump], check=True)
            errors.update(judge(dump, ready))
    for folder in folders:
        if folder in errors:
            print("%s: %s" % (os.path.relpath(folder, arguments.folder), errors[folder]))
    complaints = check_table(arguments, folders, errors) if arguments.table else []
    for text in complaints:
        print(text)
    print("%d %s, %d failed" % (len(folders) - len(errors), "prepared" if arguments.prepare else "passed", len(errors) + len(complaints)))
    return 1 if errors or complaints or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
