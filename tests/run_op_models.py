#!/usr/bin/env python3
"""run_op_models.py - compiles the one-node models of a folder (tests/make_op_models.py) and compares what they compute.

    tests/run_op_models.py BUILD FOLDER [PATTERN] [--target host|cuda] [--keep]

BUILD has gcc-plan and .libs/libplan.so. Prints one line a failure, then the counts."""
import argparse
import ctypes
import glob
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import op_models  # noqa: E402


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("device", ctypes.c_int), ("threads", ctypes.c_int),
                ("log", ctypes.c_void_p), ("log_context", ctypes.c_void_p), ("allocate", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("context", ctypes.c_void_p), ("weights_folder", ctypes.c_char_p), ("fail_call", ctypes.c_uint64)]


class PlanError(Exception):
    pass


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.plan_error_message.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise PlanError("%s: %s" % (name, self.library.plan_error_message().decode()))


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


def compile_model(build, folder, plan, target):
    targets = "host" if target == "host" else "sm_90a"
    command = [os.path.join(build, "gcc-plan"), os.path.join(folder, "model.onnx"), "-o", plan, "--target=" + targets, "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise PlanError("gcc-plan: " + (result.stderr + result.stdout).strip()[:1000])


def execute(library, plan, folder, target):
    options = Options(size=ctypes.sizeof(Options), target=target.encode(), threads=1)
    handle, session = ctypes.c_void_p(), ctypes.c_void_p()
    library.call("plan_load", plan.encode(), ctypes.byref(options), ctypes.byref(handle))
    library.call("plan_session_open", handle, None, ctypes.byref(session))
    library.call("plan_session_warm", session)
    library.call("plan_session_capture", session)
    for name, array in numbered(folder, "input"):
        data = np.ascontiguousarray(array).tobytes()
        library.call("plan_session_write_input", session, b"main", name.encode(), data, ctypes.c_size_t(len(data)))
    library.call("plan_session_run", session, b"main", None, None, 0)
    results = []
    for name, array in numbered(folder, "output"):
        buffer, written = ctypes.create_string_buffer(max(array.nbytes, 1)), ctypes.c_size_t()
        library.call("plan_session_read_output", session, b"main", name.encode(), buffer, ctypes.c_size_t(array.nbytes), ctypes.byref(written))
        if written.value != array.nbytes:
            raise PlanError("output %s: expected %d bytes, found %d" % (name, array.nbytes, written.value))
        results.append(np.frombuffer(buffer.raw[:array.nbytes], array.dtype).reshape(array.shape))
    library.call("plan_session_close", session)
    library.call("plan_free", handle)
    return results


def compare(folder, results):
    rtol, atol, checks = settings(folder)
    for index, ((name, expected), found) in enumerate(zip(numbered(folder, "output"), results)):
        if index in checks:
            part = eval("np.s_[%s]" % checks[index], {"np": np})  # written by our own cases
            expected, found = expected[part], found[part]
        if expected.dtype.kind in "iub":
            good = expected == found
        else:
            wide = [a.astype(np.float64) for a in (expected, found)]
            good = np.isclose(wide[1], wide[0], rtol, atol, equal_nan=True)
        if not np.all(good):
            at = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0])
            raise PlanError("output %s%s: expected %s, found %s; %d of %d differ" %
                            (name, list(at), expected[at], found[at], np.size(good) - np.count_nonzero(good), np.size(good)))


def run_case(arguments, library, folder):
    """In a process of its own: a plan holds code, and may crash."""
    child = os.fork()
    if child == 0:
        try:
            with open(os.path.join(folder, "result.txt"), "w", encoding="utf-8") as out:
                try:
                    compare(folder, execute(library, os.path.join(folder, "model.plan"), folder, arguments.target))
                except Exception as error:
                    out.write(str(error))
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        return "killed by signal %d" % (status & 127)
    with open(os.path.join(folder, "result.txt"), encoding="utf-8") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--target", default="host")
    parser.add_argument("--compiled", action="store_true", help="the plans are there already")
    arguments = parser.parse_args()
    folders = sorted(os.path.dirname(p) for p in glob.glob(os.path.join(arguments.folder, "*", "*", "model.onnx")))
    folders = [f for f in folders if arguments.pattern in f]
    library = Library(os.path.join(arguments.build, ".libs", "libplan.so"))
    errors = {}

    def build_one(folder):
        try:
            if not arguments.compiled:
                compile_model(arguments.build, folder, os.path.join(folder, "model.plan"), arguments.target)
        except PlanError as error:
            errors[folder] = str(error)

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        list(pool.map(build_one, folders))
    for folder in folders:
        if folder not in errors:
            text = run_case(arguments, library, folder)
            if text:
                errors[folder] = text
    for folder in folders:
        if folder in errors:
            print("%s: %s" % (os.path.relpath(folder, arguments.folder), errors[folder]))
    print("%d passed, %d failed" % (len(folders) - len(errors), len(errors)))
    return 1 if errors or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
