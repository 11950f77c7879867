#!/bin/bash
# run_tensor.sh - what is written for tensor cores, computed on the host lane by lane (--emulate-gpu): the cases of
# tests/ops_*.py whose names have "mma" in them. The suite `ops` runs the same cases in the host's own form.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip tensor: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
models=$WORK/models
mkdir -p "$models"
"$PYTHON" -B "$SRC/tests/make_op_models.py" "$models" mma_ >"$WORK/make.log" 2>&1 || { tail -n 20 "$WORK/make.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
exec "$PYTHON" -B "$SRC/tests/run_op_models.py" "$BUILD" "$models" --option=--emulate-gpu
