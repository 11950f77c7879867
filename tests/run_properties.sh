#!/bin/bash
# run_properties.sh - random small nodes of every operator against onnxruntime, five each. A long run: tests/run_properties.py BUILD WORK --count 200
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip properties: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
exec "$PYTHON" -B "$SRC/tests/run_properties.py" "$BUILD" "$WORK/models"
