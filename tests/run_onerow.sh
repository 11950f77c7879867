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

${CC:-cc} -std=gnu11 -O1 -Wall -I"$SRC/runtime" -o "$WORK/rows_run" "$SRC/tests/rows_run.c" "$BUILD/.libs/libplan.a" -lpthread -ldl -lm ||
    { echo "FAIL rows_run does not build"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

clustered='attention_one_[0-9]+_cluster' # in a plan: its module for the host has a kernel for clusters (host_abi.h)
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
# eager; steps do not depend on what was before. Those with a tuning file have clusters of blocks (which the host has when it emulates a GPU): as rows
# with lengths of their own they give what steps of one row without clusters do.
run_decoders() {
    local mode=$1 folder name tolerance tuning options
    shift
    for folder in "$decoders"/*/; do
        name=$(basename "$folder")
        case $name in *_bf16) tolerance=0.1 ;; *) tolerance=0.01 ;; esac
        options=(--target host --capacity "$(cat "$folder/capacity.txt")" --prefill 64 --quiet "$@") tuning=() # long prompts: suite `prefill`
        [ ! -e "$folder/tuning.txt" ] || tuning=(--tuning "$folder/tuning.txt")
        check "$name $mode: compile" "$BUILD/gcc-plan" "$folder/model.onnx" -o "$folder/plan" --check-lengths "${options[@]}" "${tuning[@]}"
        check "$name $mode: kernels" diff "$folder/kernels.txt" <(kernels "$folder/plan" "$folder/kernels.txt")
        check "$name $mode: goldens" "$BUILD/plan-run" "$folder/plan" --target host --verify "$folder" --tolerance $tolerance --margin $tolerance
        check "$name $mode: capture" "$BUILD/plan-run" "$folder/plan" --target host --check-capture
        check "$name $mode: growth" "$BUILD/plan-run" "$folder/plan" --target host --check-growth
        if [ $mode = emulated ] && [ -e "$folder/tuning.txt" ]; then
            check "$name $mode: clusters" grep -qaE "$clustered" "$folder/plan"
            sed -n 's/^\(attention_cluster[^ ]*\) .*/\1 1/p' "$folder/tuning.txt" >"$folder/none.txt"
            check "$name $mode: compile for one row" "$BUILD/gcc-plan" "$folder/model.onnx" -o "$folder/one.plan" "${options[@]}" --tuning "$folder/none.txt"
            check "$name $mode: compile for rows" "$BUILD/gcc-plan" "$folder/model.onnx" -o "$folder/rows.plan" --rows 3 "${options[@]}" "${tuning[@]}"
            check "$name $mode: clusters of rows" grep -qaE "$clustered" "$folder/rows.plan"
            check "$name $mode: rows" "$WORK/rows_run" host "$folder/rows.plan" "$folder/one.plan" $tolerance 1 17 230
        fi
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
beside=$models/shared/plain_1_f16
product=$("$BUILD/gcc-plan" "$beside/model.onnx" --dump fuse | sed -n 's/.*MatMulNBits.*} \([^ ]*\) .*/\1/p')
check "a product beside experts is part of their launch" grep "part of launch 1 '.*: fc2'" <("$BUILD/plan-inspect" "$beside/model.plan" --why "$product")
# The last of these modes emulated.
for plan in "$models"/attention/cluster_*/model.plan; do check "$plan: clusters" grep -qaE "$clustered" "$plan"; done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
