#!/usr/bin/env python3
"""make_op_models.py - writes the small models of all tests/ops_*.py files, or tests/KIND_*.py, into a folder.

    tests/make_op_models.py FOLDER [PATTERN [KIND]]      PATTERN: only cases whose FAMILY/NAME contains it

Prints one line a case that an oracle could not compute, then the counts. Exit code 1 when there was such a case or none at all."""
import glob
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import op_models  # noqa: E402


def main():
    if len(sys.argv) not in (2, 3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    folder, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    kind = sys.argv[3] if len(sys.argv) > 3 else "ops"
    made = failed = 0
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), kind + "_*.py"))):
        family = os.path.basename(path)[len(kind) + 1:-3]
        seen = set()
        for case in importlib.import_module(kind + "_" + family).cases():
            label = family + "/" + case.name
            if case.name in seen:
                print("%s: two cases have this name" % label)
                failed += 1
            seen.add(case.name)
            if pattern not in label:
                continue
            try:
                op_models.save(case, os.path.join(folder, family, case.name))
                made += 1
            except Exception as error:  # any oracle's refusal: named, and counted
                print("%s: %s" % (label, str(error).splitlines()[0][:200]))
                failed += 1
    print("%d cases, %d failed" % (made, failed))
    return 1 if failed or not made else 0


if __name__ == "__main__":
    sys.exit(main())
