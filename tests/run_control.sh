#!/bin/bash
# run_control.sh - If, Loop and Scan, each way that they are realised, on the host target.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip control: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_control.py" "$BUILD" "$WORK/models"
