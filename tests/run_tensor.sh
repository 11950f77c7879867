#!/bin/bash
# run_tensor.sh - what is written for tensor cores, computed on the host lane by lane (--emulate-gpu): the cases of
# tests/ops_*.py whose names have "mma" in them, whether their plans have those kernels, and a decoder. The suite `ops` runs the same cases in
# the host's own form.
set -uo pipefail
[ -n "$PYTHON" ] || { echo "skip tensor: no Python environment with onnx (tests/venv.sh)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
models=$WORK/models
mkdir -p "$models"
"$PYTHON" -B "$SRC/tests/make_op_models.py" "$models" mma_ >"$WORK/make.log" 2>&1 || { tail -n 20 "$WORK/make.log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
"$PYTHON" -B "$SRC/tests/run_op_models.py" "$BUILD" "$models" --option=--emulate-gpu >"$WORK/run.log"
grep -v ' passed, ' "$WORK/run.log"
read -r passed _ failed _ <<<"$(tail -n 1 "$WORK/run.log")"
# Rows that do not lie on 16 bytes, blocks of 16, zero points that are no integers, one scale a row: these cases keep other kernels.
for plan in "$models"/*/*/model.plan; do
    name=$(basename "$(dirname "$plan")")
    case $name in
    *mma_inner_12_* | *_8_16_packed_* | *_8_32_values_* | mma_column_* | *mma_33x45_*) expected= ;;
    *mma_wide_850x*) expected='matmul_wide_[0-9]+ +4,19 x 256 ' ;; # 133 blocks of 128 rows were two rounds
    *mma_broad_*66x250x*) expected='matmul_rows_[0-9]+ +1,2,66 x 256 ' ;;
    *attention_mma_broad_* | *gqa_mma_broad_*) expected='attention_rows_[0-9]+ +[0-9,]+ x 256 ' ;;
    *mma_broad_*) expected='matmul_rows_[0-9]+ +[0-9,]+ x 256 ' ;;
    *mma_wide_*) expected='matmul_wide_[0-9]+ +[0-9,]+ x 256 ' ;;
    *) expected='(matmul|attention)_rows_[0-9]' ;;
    esac
    if [ -n "$expected" ]; then
        grep -qE "$expected" <<<"$("$BUILD/plan-inspect" "$plan")"
    else
        ! grep -qE '(matmul|attention)_(rows|wide)_[0-9]' <<<"$("$BUILD/plan-inspect" "$plan")"
    fi
    if [ $? = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name: kernels for tensor cores: expected '$expected'"; fi
done
# Decoders whose prompts go through these kernels, with their epilogues, have their golden tokens.
verify() { # NAME MODEL KERNEL OPTION...: KERNEL is in the plan
    local name=$1 model=$2 kernel=$3
    shift 3
    "$BUILD/gcc-plan" "$model" -o "$WORK/model.plan" --target host --emulate-gpu --sample greedy --quiet "$@" &&
        grep -q "${kernel}_[0-9]" <<<"$("$BUILD/plan-inspect" "$WORK/model.plan")" &&
        "$BUILD/plan-run" "$WORK/model.plan" --target host --verify "$SRC/models/bytes/$name" >"$WORK/verify.log" 2>&1
    if [ $? = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name"; tail -n 5 "$WORK/verify.log"; fi
}
cp "$SRC/models/bytes/mobius-cuda-f16/model.onnx" "$SRC/models/bytes/mobius-default-f16/model.onnx.data" "$WORK/"
verify mobius-cuda-f16 "$WORK/model.onnx" matmul_rows
verify genai-int4 "$SRC/models/bytes/genai-int4/model.onnx" matmul_wide --max sequence_length=160 # few rows, of many that there may be
echo "${passed:-0} passed, ${failed:-1} failed, 0 skipped"
[ "${failed:-1}" -eq 0 ]
