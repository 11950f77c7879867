#!/bin/bash
# run_prefill.sh - the ladder of prefill signatures: which boxes gcc-plan makes, and prompts of lengths around their bounds against onnxruntime.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip prefill: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_prefill.py" "$BUILD" "$SRC/models/bytes" "$WORK"
