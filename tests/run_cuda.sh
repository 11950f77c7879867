#!/bin/bash
# run_cuda.sh - every kernel of the committed decoders compiles for sm_80, sm_90a and sm_120, and as PTX. Needs NVRTC, but no GPU.
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
export SRC BUILD
if ! grep -q "^NVRTC_LIBS = .*nvrtc" "$BUILD/Makefile" 2>/dev/null; then
    echo "skip cuda: this build has no NVRTC"
    echo "0 passed, 0 failed, 7 skipped"
    exit 0
fi
exec "$SRC/tests/models.sh" --target cuda --compile-only --plans "$WORK/plans" "$SRC"/models/bytes/*/
