#!/bin/bash
# run_logits.sh - gcc-plan --logits last: the last row as onnxruntime has it, what is made of it alone, and what stays of all rows.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip logits: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_logits.py" "$BUILD" "$WORK/models"
