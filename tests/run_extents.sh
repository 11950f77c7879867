#!/bin/bash
# run_extents.sh - several runs of one session on the host target: extents that kernels count, and random draws.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip extents: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_extents.py" "$BUILD" "$WORK/models"
