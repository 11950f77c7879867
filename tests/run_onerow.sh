#!/bin/bash
# run_onerow.sh - the kernels of decode steps, for one row: small models (tests/onerow_*.py) and decoders (tests/make_onerow_decoders.py), whether their
# plans have those kernels, and what they compute, in the host's own form and as on tensor cores, lane by lane (--emulate-gpu).
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip onerow: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
passed=0 failed=0
models=$WORK/models decoders=$WORK/decoders
mkdir -p "$models"
{ "$PYTHON" -B -W ignore "$SRC/tests/make_op_models.py" "$models" "" onerow && "$PYTHON" -B -W ignore "$SRC/tests/make_onerow_decoders.py" "$decoders"; } >"$WORK/make.log" 2>&1 ||
    { tail -n 20 "$WORK/make.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

check() {
    local name=$1
    shift
    if timeout 300 "$@" >"$WORK/check.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name"
        tail -n 5 "$WORK/check.log"
    fi
}

# "KERNEL COUNT" of a decode step, of those kernels that the file names.
kernels() {
    "$BUILD/plan-inspect" "$1" | awk -v names="$2" '/^[a-z]/ { decode = $1 == "decode" }
        decode && $1 ~ /^[0-9]+$/ { sub(/_[0-9]+$/, "", $2); count[$2]++ }
        END { while ((getline line < names) > 0) { split(line, word); print word[1], count[word[1]] + 0 } }'
}

# MODE, and the options of gcc-plan: captured steps after prompts of several lengths, rewound between them, are the golden ones; captured is
# eager; steps do not depend on what was before.
run_decoders() {
    local mode=$1 folder name tolerance
    shift
    for folder in "$decoders"/*/; do
        name=$(basename "$folder")
        case $name in *_bf16) tolerance=0.1 ;; *) tolerance=0.01 ;; esac
        check "$name $mode: compile" "$BUILD/gcc-plan" "$folder/model.onnx" -o "$folder/plan" --target host --capacity "$(cat "$folder/capacity.txt")" --check-lengths --quiet "$@"
        check "$name $mode: kernels" diff "$folder/kernels.txt" <(kernels "$folder/plan" "$folder/kernels.txt")
        check "$name $mode: goldens" "$BUILD/plan-run" "$folder/plan" --target host --verify "$folder" --tolerance $tolerance --margin $tolerance
        check "$name $mode: capture" "$BUILD/plan-run" "$folder/plan" --target host --check-capture
        check "$name $mode: growth" "$BUILD/plan-run" "$folder/plan" --target host --check-growth
    done
}

for mode in host emulated; do
    options=()
    [ $mode = host ] || options=(--emulate-gpu)
    "$PYTHON" -B -W ignore "$SRC/tests/run_op_models.py" "$BUILD" "$models" "${options[@]/#/--option=}" >"$WORK/run.log"
    grep -v ' passed, ' "$WORK/run.log" | sed "s/^/$mode: /"
    read -r good _ bad _ <<<"$(tail -n 1 "$WORK/run.log")"
    passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-1}))
    run_decoders $mode "${options[@]}"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
