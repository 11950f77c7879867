"""support.py - the support table of gcc-plan (--ops), and which of its rows a test uses."""
import os
import subprocess

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))


def rows(build):
    """(domain, name, first version, last version) of each row; the last of the newest is large."""
    text = subprocess.run([os.path.join(build, "gcc-plan"), "--ops"], capture_output=True, text=True, check=True).stdout
    found = []
    for words in (line.split() for line in text.splitlines()):
        if words[2] == "none":
            continue
        first, last = words[2].split("-")
        found.append((words[0], words[1], int(first), int(last) if last else 1 << 30))
    return found


def nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g)


def used_by_onnx():
    """(domain, name, version) of all nodes in ONNX's own tests that must pass (tests/conformance/passing.txt)."""
    used = set()
    data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    with open(os.path.join(HERE, "conformance", "passing.txt"), encoding="ascii") as file:
        tests = [line.strip() for line in file if not line.startswith(("#", "light/"))]
    for test in filter(None, tests):
        model = onnx.load(os.path.join(data, test, "model.onnx"), load_external_data=False)
        imported = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
        for node in nodes(model.graph):
            domain = node.domain or "ai.onnx"
            used.add((domain, node.op_type, imported.get(domain, 0)))
    return used


def unused(table, used):
    """Rows that nothing uses, a line each."""
    versions = {}
    for domain, name, version in used:
        versions.setdefault((domain, name), set()).add(version)
    return ["%s %s %d: no test uses this row" % (domain, name, first) for domain, name, first, last in table
            if not any(first <= v <= last for v in versions.get((domain, name), ()))]
