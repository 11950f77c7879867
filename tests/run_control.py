#!/usr/bin/env python3
"""run_control.py - If, Loop and Scan, each way that they are realised: constant, pinned, select, unrolled, launch loop, conditional node, seam.

    tests/run_control.py BUILD WORK [--target host|cuda] [--case PART] [--prepare | --compare]

For each case of control_models.py: the nodes and seams that plan-inspect, gcc-plan --require-single-segment and the session's counters
report; results captured, eager and with seams against onnxruntime's; proofs, audit and the text form. BUILD has gcc-plan, plan-inspect,
plan-run and .libs/libplan.a. Prints "N passed, N failed, N skipped".

With a GPU elsewhere: --target cuda --prepare here, then sh WORK/run.sh there, which writes into WORK, then --target cuda --compare here."""
import argparse
import os
import re
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

import control_models

HERE = os.path.dirname(os.path.abspath(__file__))


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def need(good, text):
    if not good:
        raise Failure(text)


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def build_runner(arguments):
    program = os.path.join(arguments.work, "session_run")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", *os.environ.get("GCC_PLAN_SANITIZE", "").split(),
                    "-I" + os.path.join(HERE, "..", "runtime"), "-o", program, os.path.join(HERE, "session_run.c"),
                    os.path.join(arguments.build, ".libs", "libplan.a"), "-lpthread", "-ldl", "-lm"], check=True)
    return program


def expected_of(case):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return [dict(zip(names, session.run(None, run))) for run in case.runs]


def compile_case(arguments, case, way):
    plan = os.path.join(arguments.work, "%s.%s.plan" % (case.name, way))
    target = "host" if arguments.target == "host" else "sm_90a"
    status, text = call(os.path.join(arguments.build, "gcc-plan"), os.path.join(arguments.work, case.name + ".onnx"), "-o", plan, "--target=" + target,
                        "--threads=1", *case.options, "--conditions=" + way)
    need(status == 0, "gcc-plan: " + text)
    return plan


def write_list(arguments, case, eager):
    """What a session does, with paths relative to the work folder."""
    name = "%s.%s.list" % (case.name, "eager" if eager else "graph")
    with open(os.path.join(arguments.work, name), "w", encoding="ascii") as out:
        out.write("eager %d\n" % eager)
        for number, inputs in enumerate(case.runs):
            for key, array in inputs.items():
                np.ascontiguousarray(array).tofile(os.path.join(arguments.work, "%s.%d.%s" % (case.name, number, key)))
                out.write("in %s %s.%d.%s\n" % (key, case.name, number, key))
            if case.sizes:
                out.write("size %s %d\n" % (case.sizes, inputs.get("rows", inputs["x"]).shape[0]))
            out.write("run\n" + "".join("out %s\n" % o.name for o in case.model.graph.output))
        out.write("counters\n")
    return name


def command(arguments, case, way, eager):
    return ["./session_run", arguments.target, "%s.%s.plan" % (case.name, way), write_list(arguments, case, eager), "%s.%s.%d.dump" % (case.name, way, eager)]


def read_dump(arguments, case, way, eager):
    """For each run its outputs by name: dims and bytes. Then the counters."""
    found = []
    with open(os.path.join(arguments.work, "%s.%s.%d.dump" % (case.name, way, eager)), "rb") as dump:
        for _ in case.runs:
            found.append({})
            for _ in case.model.graph.output:
                name, size, *dims = dump.readline().split()
                found[-1][name.decode()] = (tuple(int(d) for d in dims), dump.read(int(size)))
        return found, [int(n) for n in dump.readline().split()]


def run_plan(arguments, case, way, eager):
    words = command(arguments, case, way, eager)
    if not arguments.compare:
        done = subprocess.run(words, cwd=arguments.work, capture_output=True, text=True, check=False)
        need(done.returncode == 0, done.stdout + done.stderr)
    return read_dump(arguments, case, way, eager)


def compare(expected, found, what):
    for number, (wanted, got) in enumerate(zip(expected, found)):
        for name, array in wanted.items():
            dims, data = got[name]
            need(dims == array.shape, "%s, run %d, %s: expected dims %s, found %s" % (what, number, name, array.shape, dims))
            values = np.frombuffer(data, array.dtype).reshape(dims)
            need(np.allclose(values, array, 1e-5, 1e-5), "%s, run %d, %s: expected %s, found %s" % (what, number, name, array, values))


def check_inspect(arguments, plan):
    inspect = os.path.join(arguments.build, "plan-inspect")
    for option, line in (("--check-proofs", "all proofs hold"), ("--audit", "the contract holds for every launch")):
        status, text = call(inspect, plan, option)
        need(status == 0 and text.rstrip().endswith(line), "%s: %s" % (option, text[-600:]))
    _, text = call(inspect, plan, "--text")
    with open(plan + ".txt", "w", encoding="utf-8") as out:
        out.write(text)
    copies = len(re.findall(r'buffers\[\d+\] name="(?:[^"]*/)?w(?:#\d+)?" region=weights', text))
    need(copies <= 1, "the constant w lies in the plan %d times" % copies)
    status, text = call(inspect, "--assemble", plan + ".txt", "-o", plan + ".again")
    need(status == 0 and open(plan, "rb").read() == open(plan + ".again", "rb").read(), "the text form gives other bytes: " + text)
    return call(inspect, plan)[1]


def check_audit(arguments):
    """The audit finds what is wrong with a block: (case, text to replace, by what, what it says)."""
    text = {name: open(os.path.join(arguments.work, name + ".node.plan.txt"), encoding="utf-8").read() for name in ("if_node", "while_condition")}
    for name, old, new, said in (
            ("if_node", "kind=else", "kind=if", "life: expected arena"),
            ("if_node", "accesses[7] mode=write region=arena offset=0 bytes=32", "accesses[7] mode=write region=arena offset=0 bytes=0",
             "launch 6 'z': life: expected arena"),
            ("if_node", "kind=condition region=weights value=0x1", "kind=condition region=weights value=0x0", "set the condition of block 1 'branch' before it and not in it, found none"),
            ("while_condition", "kind=while", "kind=if", "set the condition of block 0 'loop' before it and not in it, found another set")):
        need(old in text[name], "%s: no '%s' in its text" % (name, old))
        path = os.path.join(arguments.work, "mutated")
        with open(path + ".txt", "w", encoding="utf-8") as out:
            out.write(text[name].replace(old, new, 1))
        inspect = os.path.join(arguments.build, "plan-inspect")
        call(inspect, "--assemble", path + ".txt", "-o", path + ".plan")
        status, found = call(inspect, path + ".plan", "--audit")
        need(status == 1 and said in found, "audit of %s with %s: expected '%s', found %s" % (name, new, said, found))


def check_single(arguments, case, plan, seams):
    """--require-single-segment of both programs names all seams."""
    for words in ([os.path.join(arguments.build, "plan-inspect"), plan],
                  [os.path.join(arguments.build, "gcc-plan"), plan.rsplit(".", 2)[0] + ".onnx", "--check", "--quiet", "--target=host", *case.options,
                   "--conditions=" + ("seam" if seams else "node")]):
        for name in ("", "=main"):
            status, text = call(*words, "--require-single-segment" + name)
            named = re.findall(r"seam \d+ at node '([^']*)': requested: ", text)
            need(status == (1 if seams else 0) and sorted(named) == sorted(seams), "%s: expected seams %s, found status %d: %s" % (words[0], seams, status, text))


def check_results(arguments, case):
    """Captured, eager and with seams: the same bytes, which are close to onnxruntime's; and what the counters say."""
    expected = expected_of(case)
    captured, counters = run_plan(arguments, case, "node", False)
    compare(expected, captured, "captured")
    need(counters == [case.ifs, case.whiles, 0, len(case.runs)], "counters: expected %d IF, %d WHILE nodes, 0 decisions, %d graphs, found %s" % (
        case.ifs, case.whiles, len(case.runs), counters))
    eager, counters = run_plan(arguments, case, "node", True)
    need(eager == captured, "eager differs from captured")
    need((counters[2] > 0) == (case.ifs + case.whiles > 0), "eager: expected decisions exactly where there are blocks, found %d" % counters[2])
    if not case.seams:
        return
    parted, counters = run_plan(arguments, case, "seam", False)
    need(parted == captured, "with seams: differs from nodes")
    need(counters[:2] == [0, 0] and counters[2] > 0, "with seams: expected no nodes, and decisions, found %s" % counters)


def check_plans(arguments, case):
    onnx.checker.check_model(case.model)
    onnx.save(case.model, os.path.join(arguments.work, case.name + ".onnx"))
    node = compile_case(arguments, case, "node")
    text = check_inspect(arguments, node)
    need(re.search(r"main +1 segment, \d+ launch(es)?, 0 seams", text), "expected one segment, found " + text)
    nodes = re.search(r"(\d+) IF nodes?, (\d+) WHILE nodes?", text)
    found = tuple(int(n) for n in nodes.groups()) if nodes else (0, 0)
    need(found == (case.ifs, case.whiles), "plan-inspect: expected %d IF and %d WHILE nodes, found %d and %d" % (case.ifs, case.whiles, *found))
    check_single(arguments, case, node, [])
    if not case.seams:
        return
    seam = compile_case(arguments, case, "seam")
    text = check_inspect(arguments, seam)
    need(re.search(r"main +\d+ segments, \d+ launches, %d seams?" % len(case.seams), text), "expected %d seams, found %s" % (len(case.seams), text))
    check_single(arguments, case, seam, case.seams)


def check_counters(arguments, case):
    status, text = call(os.path.join(arguments.build, "plan-run"), os.path.join(arguments.work, case.name + ".node.plan"), "--target=" + arguments.target,
                        "--counters", "--generate=2")
    need(status == 0 and "\ngraphs: 1 captured, %d IF nodes, %d WHILE nodes; 0 conditions read by the host\n" % (case.ifs, case.whiles) in text,
         "plan-run --counters: " + text)


def check_case(arguments, case):
    if not arguments.compare:
        check_plans(arguments, case)
    if arguments.prepare:
        with open(os.path.join(arguments.work, "run.sh"), "a", encoding="ascii") as out:
            for way, eager in (("node", False), ("node", True)) + ((("seam", False),) if case.seams else ()):
                out.write(" ".join(command(arguments, case, way, eager)) + "\n")
        return
    check_results(arguments, case)
    if not case.sizes and not arguments.compare:
        check_counters(arguments, case)


def check_refusals(arguments):
    """What has no bound is refused: the case, the node named, and the reason."""
    for case, said in control_models.refusals():
        path = os.path.join(arguments.work, case.name + ".onnx")
        onnx.save(case.model, path)
        status, text = call(os.path.join(arguments.build, "gcc-plan"), path, "--check", "--quiet", "--target=host", *case.options)
        need(status == 1 and text == said, "%s: expected '%s', found '%s'" % (case.name, said, text))


def check_targets(arguments):
    """A target without conditional nodes: seams, said so; an error where nodes are asked for. Needs a build with NVRTC."""
    model = os.path.join(arguments.work, "if_two.onnx")
    words = [os.path.join(arguments.build, "gcc-plan"), model, "--check", "--target=host,ptx"]
    status, text = call(*words)
    if "is not known to this build" in text:
        raise Skip("gcc-plan was built without NVRTC")
    for name in ("branch", "second"):
        need(status == 0 and re.search("note: signature 'main': a seam at node '%s': the host decides: target ptx: " % name, text) and
             re.search(r"seam \d+ at node '%s': no_conditional_nodes: " % name, text), "expected a note and a seam at '%s', found %s" % (name, text))
    status, text = call(*words, "--conditions=node")
    need(status == 1 and "--conditions=node: target ptx: " in text and "remedy: " in text, "expected an error, found " + text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--target", default="host")
    parser.add_argument("--case", default="")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    if not arguments.compare:
        build_runner(arguments)
        with open(os.path.join(arguments.work, "run.sh"), "w", encoding="ascii") as out:
            out.write("cd \"$(dirname \"$0\")\" || exit\n")
    passed = failed = skipped = 0
    checks = [(case.name, lambda case=case: check_case(arguments, case)) for case in control_models.cases()]
    if not arguments.prepare and not arguments.compare:
        checks += [(check.__name__[6:], lambda check=check: check(arguments)) for check in (check_audit, check_refusals, check_targets)]
    for name, check in checks:
        if arguments.case not in name:
            continue
        try:
            check()
            passed += 1
        except Skip as skip:
            print("skip %s: %s" % (name, skip))
            skipped += 1
        except (Failure, FileNotFoundError) as failure:
            print("FAIL %s: %s" % (name, failure))
            failed += 1
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
