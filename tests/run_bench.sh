#!/bin/bash
# run_bench.sh - tests/bench/decode on the host target: a model whose weights it writes, one that is there, one that is not.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip bench: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
[ -e "${MODELS:-}/bench/fill_weights.py" ] || { echo "skip bench: no fill_weights.py of the benchmark models"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_bench.py" "$BUILD" "$WORK" "$MODELS/bench/fill_weights.py"
