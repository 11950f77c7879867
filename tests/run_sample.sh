#!/bin/bash
# run_sample.sh - the sampling tail on the host target: draws against the softmax, seeds, stop tokens.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip sample: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_sample.py" "$BUILD" "$WORK/models"
