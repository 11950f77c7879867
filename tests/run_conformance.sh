#!/bin/bash
# run_conformance.sh - the suite of ONNX's own tests, on the host target. GCC_PLAN_CONFORMANCE: a pattern of names, for a part.
# The committed RESULTS.md is written by hand-started runs (tests/conformance/run.sh); here it lies in WORK.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip conformance: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$SRC/tests/conformance/run.sh" --results "$WORK/RESULTS.md" ${GCC_PLAN_CONFORMANCE:+"$GCC_PLAN_CONFORMANCE"}
