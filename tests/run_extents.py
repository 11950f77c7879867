#!/usr/bin/env python3
"""run_extents.py - what happens from run to run of one session: extents that kernels count, read by what follows, and random draws.

    tests/run_extents.py BUILD WORK [--target host|cuda]

BUILD has gcc-plan and .libs/libplan.a. Expected values come from numpy. Prints "N passed, N failed, 0 skipped"."""
import argparse
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def info(name, dims, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def ints(name, values):
    return helper.make_tensor(name, INT64, [len(values)], values)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def squares(x, more):
    v = x[np.nonzero(x)]
    return {"square": v * v, "sum": np.float32((v * v).sum()), "shape": np.array(np.array(np.nonzero(x)).shape), "joined": np.concatenate([v, more])}


def rows(x, table, weights):
    picked = table[np.nonzero(x)[0]]
    return {"product": picked @ weights, "largest": picked.max(1)}


def nested(x, limit):
    c = x[x > limit]
    e = np.exp(c - (c.max() if c.size else 0))
    return {"unique": np.unique(c), "softmax": e / e.sum() if c.size else e, "places": np.array(np.nonzero(np.unique(c)))}


def top(x, k):
    return {"values": -np.sort(-x, axis=1)[:, :int(k[0])] * 2}


def make(name, nodes, inputs, outputs, constants=()):
    model = helper.make_model(helper.make_graph(nodes, name, inputs, outputs, list(constants)), opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    return model


def chains():
    """Name, model, expectation, and the inputs of several runs: the count rises, falls, and is zero."""
    rng = np.random.default_rng(1)
    sparse = lambda shape, density: (rng.integers(1, 9, shape) * (rng.random(shape) < density)).astype(np.float32)
    yield "squares", make("squares", [node("NonZero", "x", "at"), node("Transpose", "at", "t"), node("GatherND", "x t", "v"), node("Mul", "v v", "square"),
                                      node("ReduceSum", "square", "sum", keepdims=0), node("Shape", "at", "shape"), node("Concat", "v more", "joined", axis=0)],
                          [info("x", [3, 4]), info("more", [2])],
                          [info("square", ["n"]), info("sum", []), info("shape", [2], INT64), info("joined", ["m"])]), squares, [
        {"x": sparse((3, 4), d), "more": np.ones(2, np.float32)} for d in (0.5, 1, 0.2, 0)]
    table, weights = rng.standard_normal((10, 8)).astype(np.float32), rng.standard_normal((8, 5)).astype(np.float32)
    yield "rows", make("rows", [node("NonZero", "x", "at"), node("Squeeze", "at first", "i"), node("Gather", "table i", "picked"),
                                node("MatMul", "picked weights", "product"), node("ReduceMax", "picked last", "largest", keepdims=0)],
                       [info("x", [10]), info("table", [10, 8]), info("weights", [8, 5])], [info("product", ["n", 5]), info("largest", ["n"])],
                       [ints("first", [0]), ints("last", [1])]), rows, [
        {"x": sparse((10,), d), "table": table, "weights": weights} for d in (0.4, 1, 0.1, 0)]
    yield "nested", make("nested", [node("Greater", "x limit", "b"), node("Compress", "x b", "c"), node("Unique", "c", "unique"),
                                    node("Softmax", "c", "softmax"), node("NonZero", "unique", "places")],
                         [info("x", [50]), info("limit", [1])], [info("unique", ["k"]), info("softmax", ["j"]), info("places", [1, "q"], INT64)]), nested, [
        {"x": rng.integers(0, 10, 50).astype(np.float32), "limit": np.array([limit], np.float32)} for limit in (3, -1, 8, 20)]
    yield "top", make("top", [node("TopK", "x k", "v i"), node("Add", "v v", "values")], [info("x", [3, 20]), info("k", [1], INT64)],
                      [info("values", [3, "k"])]), top, [{"x": rng.standard_normal((3, 20)).astype(np.float32), "k": np.array([k])} for k in (4, 20, 1, 0)]


def draws():
    shape = [200, 500]
    p = np.linspace(0, 1, 100000, dtype=np.float32).reshape(shape)
    weights = np.log(np.array([[0.1, 0.2, 0.3, 0.4]], np.float32))
    yield "uniform", [node("RandomUniform", "", "y", shape=shape, low=-1.0, high=3.0, seed=7.0)], {}, lambda y: (abs(y.mean() - 1) < 0.02 and y.min() >= -1
        and y.max() <= 3 and abs(y.var() - 16 / 12) < 0.03 and abs(np.corrcoef(y.ravel()[1:], y.ravel()[:-1])[0, 1]) < 0.02)
    yield "normal", [node("RandomNormal", "", "y", shape=shape, mean=2.0, scale=0.5)], {}, lambda y: (abs(y.mean() - 2) < 0.01 and abs(y.std() - 0.5) < 0.01
        and abs((abs(y - 2) < 0.5).mean() - 0.6827) < 0.01 and abs((((y - 2) / 0.5) ** 4).mean() - 3) < 0.15)
    yield "bernoulli", [node("Bernoulli", "p", "y", seed=1.0)], {"p": p}, lambda y: (set(np.unique(y)) == {0, 1} and all(
        abs(y[k:k + 20].mean() - p[k:k + 20].mean()) < 0.03 for k in range(0, 200, 20)))
    yield "multinomial", [node("Multinomial", "w", "y", sample_size=40000, seed=3.0)], {"w": weights}, lambda y: all(
        abs((y == k).mean() - (k + 1) / 10) < 0.01 for k in range(4))


def draw_models():
    for name, nodes, inputs, check in draws():
        shape, kind = ([1, 40000], TensorProto.INT32) if name == "multinomial" else ([200, 500], FLOAT)
        nodes[0].input[:] = [i for i in nodes[0].input if i]
        yield name, make(name, nodes, [info(k, v.shape) for k, v in inputs.items()], [info("y", shape, kind)]), inputs, check


def compile_model(arguments, name, model, *more):
    path = os.path.join(arguments.work, name)
    onnx.save(model, path + ".onnx")
    target = "host" if arguments.target == "host" else "sm_90a"
    subprocess.run([os.path.join(arguments.build, "gcc-plan"), path + ".onnx", "-o", path + ".plan", "--target=" + target, "--quiet", "--threads=1",
                    *more], check=True)


def run(arguments, name, runs, outputs, symbol=None):
    """For each run its outputs by name. SYMBOL: how many rows its first input has."""
    path = os.path.join(arguments.work, name)
    with open(path + ".list", "w", encoding="ascii") as out:
        for number, inputs in enumerate(runs):
            for key, array in inputs.items():
                np.ascontiguousarray(array).tofile("%s.%d.%s" % (path, number, key))
                out.write("in %s %s.%d.%s\n" % (key, path, number, key))
            if symbol:
                out.write("size %s %d\n" % (symbol, len(next(iter(inputs.values())))))
            out.write("run\n" + "".join("out %s\n" % o for o in outputs))
    subprocess.run([os.path.join(arguments.work, "session_run"), arguments.target, path + ".plan", path + ".list", path + ".dump"], check=True)
    found = []
    with open(path + ".dump", "rb") as dump:
        for _ in runs:
            found.append({})
            for _ in outputs:
                name, size, *dims = dump.readline().split()
                found[-1][name.decode()] = ([int(d) for d in dims], dump.read(int(size)))
    return found


def chain_good(arguments, name, expect, runs):
    outputs = list(expect(**runs[0]))
    for number, (inputs, found) in enumerate(zip(runs, run(arguments, name, runs, outputs))):
        for key, wanted in expect(**inputs).items():
            dims, data = found[key]
            got = np.frombuffer(data, wanted.dtype)
            if tuple(dims) != wanted.shape or not np.allclose(got.reshape(wanted.shape), wanted, 1e-5, 1e-5):
                print("%s, run %d, %s: expected %s %s, found %s %s" % (name, number, key, wanted.shape, wanted, dims, got))
                return False
    return True


def draws_good(arguments, name, inputs, check):
    kind = np.int32 if name == "multinomial" else np.float32
    take = lambda found: [np.frombuffer(f["y"][1], kind).reshape(f["y"][0]) for f in found]
    one, two = (take(run(arguments, name, [inputs] * 3, ["y"])) for _ in range(2))
    same = all(np.array_equal(a, b) for a, b in zip(one, two))
    fresh = all((one[a] != one[b]).mean() > 0.1 for a, b in ((0, 1), (0, 2), (1, 2)))
    fits = all(check(y.astype(np.float64)) for y in one)
    if not (same and fresh and fits):
        print("%s: two sessions draw the same: %s; each run draws anew: %s; distribution fits: %s" % (name, same, fresh, fits))
    return same and fresh and fits


def sizes_good(arguments):
    """Kernels rely on 2 * ceil(n / 2) = n, which nothing solves: a run of another n is refused, and those at the ends of the range are out of it."""
    model = make("even", [node("Slice", "x zero end zero two", "half"), node("Concat", "half half", "both", axis=0), node("Add", "both x", "y")],
                 [info("x", ["n"])], [info("y", ["n"])], [ints("zero", [0]), ints("end", [1 << 62]), ints("two", [2])])
    compile_model(arguments, "even", model, "--max=n=9")
    path = os.path.join(arguments.work, "even")
    expected = {2: "", 3: "RANGE: difference of extents at 'y' (broadcast) #1: expected 0 to 0, found 1", 8: "",
                1: "RANGE: symbol 'n': expected 2 to 8, found 1", 9: "RANGE: symbol 'n': expected 2 to 8, found 9"}
    good = True
    for n, text in expected.items():
        with open(path + ".list", "w", encoding="ascii") as out:
            out.write("size n %d\nrun\n" % n)
        done = subprocess.run([os.path.join(arguments.work, "session_run"), arguments.target, path + ".plan", path + ".list", path + ".dump"],
                              capture_output=True, text=True, check=False)
        if done.stderr.strip() != text:
            print("even, n = %d: expected '%s', found '%s'" % (n, text, done.stderr.strip()))
            good = False
    return good


def shrinks_good(arguments):
    """The size of an input says how many rows there are, also after a run with as many as there may be."""
    compile_model(arguments, "shrinks", make("shrinks", [node("Add", "x x", "y")], [info("x", ["m", 3])], [info("y", ["m", 3])]), "--max=m=9")
    runs = [{"x": np.arange(3 * m, dtype=np.float32).reshape(m, 3) + m} for m in (9, 2, 9, 1)]
    for given, found in zip(runs, run(arguments, "shrinks", runs, ["y"], "m")):
        dims, data = found["y"]
        if dims != list(given["x"].shape) or data != (given["x"] + given["x"]).tobytes():
            print("shrinks: expected %s, found %s" % (list(given["x"].shape), dims))
            return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--target", default="host")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-I" + os.path.join(HERE, "..", "runtime"), "-o",
                    os.path.join(arguments.work, "session_run"), os.path.join(HERE, "session_run.c"),
                    os.path.join(arguments.build, ".libs", "libplan.a"), "-lpthread", "-ldl", "-lm"], check=True)
    results = []
    for name, model, expect, runs in chains():
        compile_model(arguments, name, model)
        results.append(chain_good(arguments, name, expect, runs))
    for name, model, inputs, check in draw_models():
        compile_model(arguments, name, model)
        results.append(draws_good(arguments, name, inputs, check))
    results += [sizes_good(arguments), shrinks_good(arguments)]
    print("%d passed, %d failed, 0 skipped" % (sum(results), len(results) - sum(results)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
