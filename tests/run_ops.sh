#!/bin/bash
# run_ops.sh - every operator alone: one-node models with expectations by another engine (tests/ops_*.py).
#   tests/run_ops.sh [--target cuda]     default: the host target. Without a GPU the cases of cuda count as skipped.
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
WORK=${WORK:-$BUILD/tests/work/ops}
PYTHON=${PYTHON-$BUILD/venv/bin/python}
target=host
[ "${1:-}" = --target ] && target=${2:?host or cuda}
[ -n "$PYTHON" ] || { echo "skip ops: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
models=$WORK/models
mkdir -p "$models"
"$PYTHON" -B -W ignore "$SRC/tests/make_op_models.py" "$models" >"$WORK/make.log" 2>&1 || { tail -n 20 "$WORK/make.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
if [ "$target" = cuda ] && ! ls /dev/nvidia[0-9]* >/dev/null 2>&1 && ! nvidia-smi -L >/dev/null 2>&1; then
    echo "skip ops: no NVIDIA device on this machine"
    echo "0 passed, 0 failed, $(find "$models" -name case.txt | wc -l) skipped"
    exit 0
fi
exec "$PYTHON" -B -W ignore "$SRC/tests/run_op_models.py" "$BUILD" "$models" --target "$target" --table
