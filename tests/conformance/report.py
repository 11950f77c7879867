"""report.py - what came of the tests: RESULTS.md, the list of those that must pass, the count line."""
import collections
import os
import re

PASSED, REFUSED, FAILED = "passed", "refused", "failed"


def opset_of(model, domain):
    for entry in model.opset_import:
        if entry.domain in (domain, "ai.onnx" if not domain else domain):
            return entry.version
    return 0


def operator_of(test, model):
    """`Softmax-13`; tests of a function's body: `Softmax body`; of several nodes: `several nodes`."""
    nodes = model.graph.node
    if len(nodes) == 1:
        domain = nodes[0].domain
        return "%s%s-%d" % (domain + "::" if domain not in ("", "ai.onnx") else "", nodes[0].op_type, opset_of(model, domain))
    if "_expanded" in test.name:
        return "bodies of functions"
    return "several nodes" if test.kind == "node" else test.kind


# ---- reasons

def first_error(text):
    """The message without the model's file name."""
    line = text.strip().split("\n")[0] if text.strip() else "no message"
    return re.sub(r"^[^:\s]*\.onnx: ", "", line)


def missing_operators(text):
    """The operators that a model needs and gcc-plan lacks, or []."""
    found = []
    for line in text.split("\n"):
        match = re.match(r"^\s+((?:[\w.]+::)?[A-Z]\w*-\d+)\b", line)
        if match:
            found.append(match.group(1))
    return found


def reason_of(test):
    """The group that a test belongs to: its first message without names and numbers of its own."""
    operators = missing_operators(test.text)
    if operators:
        return "no operator: " + ", ".join(sorted({name.rsplit("-", 1)[0] for name in operators}))
    text = first_error(test.text)
    text = re.sub(r"node '[^']*' \(([^)]*?)(-\d+)?\)", r"\1", text)
    text = re.sub(r"'[^']*'", "'..'", text)
    text = re.sub(r"\[[^\]]*\]", "[..]", text)
    return re.sub(r"-?\b\d+(\.\d+)?(e[+-]?\d+)?\b|\?\d+", "N", text)[:160]


def groups(tests):
    """(reason, tests), most frequent first."""
    found = collections.defaultdict(list)
    for test in tests:
        found[reason_of(test)].append(test)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


# ---- RESULTS.md

def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def counts_row(name, tests):
    passed = [t for t in tests if t.result == PASSED]
    bound = sum(1 for t in passed if t.bound)
    return "| %s | %d | %d | %d | %d | %d | %d | %.1f %% |\n" % (
        name, len(tests), len(passed), len(passed) - bound, bound, sum(t.result == REFUSED for t in tests),
        sum(t.result == FAILED for t in tests), 100 * len(passed) / len(tests) if tests else 0)


COUNTS_HEAD = "| %s | tests | passed | as is | bound | refused | failed | rate |\n|---|---|---|---|---|---|---|---|\n"


def by(tests, key):
    found = collections.defaultdict(list)
    for test in tests:
        found[key(test)].append(test)
    return found


def write_groups(out, title, tests):
    out.write("\n## %s: %d\n\n" % (title, len(tests)))
    if tests:
        out.write("| tests | cause | for example |\n|---|---|---|\n")
    for reason, members in groups(tests):
        out.write("| %d | %s | %s |\n" % (len(members), cell(reason), members[0].name))


def write(path, target, tests):
    with open(path, "w", encoding="utf-8") as out:
        out.write("# ONNX's own tests (onnx 1.22.0) on target %s\n\n" % target)
        out.write("Written by tests/conformance/run.py. *As is*: all inputs left at run time; *bound*: the inputs that decide shapes "
                  "are constants (--bind).\n\n")
        out.write(COUNTS_HEAD % "kind")
        for kind, members in by(tests, lambda t: t.kind).items():
            out.write(counts_row(kind, members))
        out.write(counts_row("all", tests))
        write_groups(out, "Failed", [t for t in tests if t.result == FAILED])
        write_groups(out, "Refused", [t for t in tests if t.result == REFUSED])
        out.write("\n## By operator and opset\n\n" + COUNTS_HEAD % "operator")
        for name, members in sorted(by(tests, lambda t: t.operator).items()):
            out.write(counts_row(name, members))
        out.write("\n## By test\n\n| test | operator | result | |\n|---|---|---|---|\n")
        for test in tests:
            said = test.text if test.result == FAILED else first_error(test.text) if test.text else ""
            if missing_operators(test.text):
                said = reason_of(test)
            how = "bound: " + ", ".join(test.bound) if test.bound else "as is"
            out.write("| %s | %s | %s, %s | %s |\n" % (test.name, test.operator, test.result, cell(how), cell(said)[:300]))


# ---- the list of tests that must pass

def read_passing(path):
    if not os.path.exists(path):
        return set()
    with open(path, encoding="ascii") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def update_passing(path, tests):
    with open(path, "w", encoding="ascii") as file:
        file.write("# Tests that must pass (run.py --update writes this list).\n")
        for test in tests:
            if test.result == PASSED:
                file.write(test.name + "\n")


def conclude(tests, path, update, complaints, seconds):
    listed = read_passing(path)
    passed = {t.name for t in tests if t.result == PASSED}
    lost = [t for t in tests if t.name in listed and t.result == REFUSED]
    failed = [t for t in tests if t.result == FAILED]
    for reason, members in groups(lost + failed):
        print("%s: %d" % (reason, len(members)))
    for test in failed:
        print("failed %s%s: %s" % (test.name, " (was passing)" if test.name in listed else "", cell(test.text)[:400]))
    for test in lost:
        print("refused, but was passing: %s: %s" % (test.name, first_error(test.text)[:400]))
    for text in complaints:
        print(text)
    fresh = sorted(passed - listed)
    if fresh:
        print("%d tests pass that are not in %s (run with --update), first %s" % (len(fresh), os.path.basename(path), fresh[0]))
    if update:
        update_passing(path, tests)
    bound = sum(1 for t in tests if t.result == PASSED and t.bound)
    print("%d tests in %.0f s: %d passed (%d as they are, %d with inputs bound), %d refused, %d failed" % (
        len(tests), seconds, len(passed), len(passed) - bound, bound, sum(t.result == REFUSED for t in tests), len(failed)))
    bad = len(lost) + len(failed) + len(complaints)
    print("%d passed, %d failed, %d skipped" % (len(passed), bad, sum(t.result == REFUSED for t in tests) - len(lost)))
    return 1 if bad or not tests else 0
