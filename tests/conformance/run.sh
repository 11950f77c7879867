#!/bin/bash
# run.sh - ONNX's own tests on the host target (tests/conformance/run.py); arguments go on to it.
#   BUILD=... PYTHON=... tests/conformance/run.sh [PATTERN...] [--update] [--jobs N]
# tests/run_conformance.sh calls it in a run of all suites.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
SRC=${SRC:-$(cd "$here/../.." && pwd)}
BUILD=${BUILD:-$SRC/build}
PYTHON=${PYTHON:-$BUILD/venv/bin/python}
exec "$PYTHON" -B "$here/run.py" "$BUILD" --folder "${WORK:-$BUILD/conformance}" "$@"
