#!/bin/bash
# run_ops.sh - every operator alone: one-node models with expectations by another engine (tests/ops_*.py), on the host target.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip ops: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
models=$WORK/models
mkdir -p "$models"
"$PYTHON" -B "$SRC/tests/make_op_models.py" "$models" >"$WORK/make.log" 2>&1 || { tail -n 20 "$WORK/make.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
exec "$PYTHON" -B "$SRC/tests/run_op_models.py" "$BUILD" "$models"
