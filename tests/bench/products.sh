#!/bin/bash
# products.sh - times matrix products and attention of the shapes that a prompt of 2048 tokens has, each as a plan of its own.
#   tests/bench/products.sh --prepare FOLDER    makes the plans (TARGET, default sm_90a); needs Python with onnx, no GPU
#   tests/bench/products.sh --from FOLDER [PART...]    times those whose name has PART in it, on this machine
# With TARGET=sm_90 the kernels are those of any device with mma.sync: for comparison with what sm_90a has besides (matmul_wide).
# BUILD names the build folder; there, only libplan and a C compiler are needed.
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-$SRC/build}
[ $# -ge 2 ] || { sed -n '2,7s/^# \?//p' "$0" >&2; exit 2; }
how=$1 folder=$2; shift 2
case $how in
--prepare)
    python=${PYTHON:-}
    [ -n "$python" ] || python=$("$SRC/tests/venv.sh" "$BUILD" 2>/dev/null) || { echo "products.sh: no Python environment with onnx" >&2; exit 1; }
    "$python" -B "$SRC/tests/bench/products.py" "$folder" || exit 1
    while read -r name operations; do
        "$BUILD/gcc-plan" "$folder/$name.onnx" -o "$folder/$name.plan" --target "${TARGET:-sm_90a}" --quiet || exit 1
        echo "$name $operations"
    done <"$folder/list.txt" ;;
--from)
    "${CC:-cc}" -std=c11 -O1 -Wall -Wextra -I"$SRC/runtime" -o "$folder/launches" "$SRC/tests/bench/launches.c" "$BUILD/.libs/libplan.a" \
        -lpthread -ldl -lm || exit 1
    while read -r name operations; do
        for part in "${@:-}"; do
            case $name in *"$part"*) echo "$name"; "$folder/launches" "$folder/$name.plan" main "$operations" || exit 1 ;; esac
        done
    done <"$folder/list.txt" ;;
*) echo "products.sh: unknown option $how" >&2; exit 2 ;;
esac
