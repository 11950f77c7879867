"""counts.py - what the checks of a Python suite come to, as counts.sh has it for those in shell."""
passed = failed = 0


def report(good, name, detail=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    print(f"{'ok' if good else 'not ok'} {name}{'' if good else ': ' + detail}")


def finish():
    """Prints the last line, and returns the exit status."""
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0
