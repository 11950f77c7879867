#!/bin/bash
# models.sh - compiles every decoder with goldens, checks that decode and prefill are one segment each, that the tokens are
# the golden ones and that captured equals eager; prints one table.
#   tests/models.sh [--target host|cuda] [--plans FOLDER] [--compile-only] [--no-capture] [MODEL_FOLDER...]
# Default: models/bytes, and what of MODELS/bytes is not there. --plans keeps the plans in FOLDER, and uses those that are
# there already, so that they can be made on one machine and run on another. Each model counts as three tests;
# --no-capture leaves out the comparison with eager launches, which takes the longest.
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
WORK=${WORK:-$BUILD/tests/work/models}
if [ -z "${MODELS+set}" ]; then
    MODELS=${GCC_PLAN_MODELS:-}
    [ -z "$MODELS" ] && [ -d "$SRC/../shared/models" ] && MODELS=$SRC/../shared/models
fi
target=host plans= compile_only= with_capture=1
folders=()
while [ $# -gt 0 ]; do
    case $1 in
    --target) target=$2; shift 2 ;;
    --plans) plans=$2; shift 2 ;;
    --compile-only) compile_only=1; shift ;;
    --no-capture) with_capture=; shift ;;
    -*) echo "models.sh: unknown option $1" >&2; exit 2 ;;
    *) folders+=("${1%/}"); shift ;;
    esac
done
plans=${plans:-$WORK/plans}
mkdir -p "$WORK" "$plans"
code=$target
[ "$target" = cuda ] && code=${GCC_PLAN_CUDA:-sm_80,sm_90a,sm_120,ptx}

committed="mobius-default-f16 mobius-static-f16 mobius-cuda-f16 optimum-plain-f32 genai-int4 genai-int4-cpu"
others="genai-int4-qdq-cpu dynamo-f32 mobius-standard-f32 genai-bf16 genai-int4-asym-cpu"
skipped=0
if [ ${#folders[@]} -eq 0 ]; then
    for name in $committed $others; do
        if [ -e "$SRC/models/bytes/$name/model.onnx" ]; then
            folders+=("$SRC/models/bytes/$name")
        elif [ -n "$MODELS" ] && [ -e "$MODELS/bytes/$name/model.onnx" ]; then
            folders+=("$MODELS/bytes/$name")
        else
            echo "skip $name: not in this copy of the sources; set GCC_PLAN_MODELS to a folder with bytes/$name"
            skipped=$((skipped + 3))
        fi
    done
fi

# The model's file, with the weight file that the three mobius f16 graphs share beside it.
place() { # place FOLDER NAME
    if [ -e "$1/model.onnx.data" ] || ! grep -aq 'model\.onnx\.data' "$1/model.onnx"; then echo "$1/model.onnx"; return; fi
    local shared=$SRC/models/bytes/mobius-default-f16/model.onnx.data to=$WORK/$2
    mkdir -p "$to"
    cp -f "$1/model.onnx" "$to/"
    ln -f "$shared" "$to/model.onnx.data" 2>/dev/null || cp -f "$shared" "$to/"
    echo "$to/model.onnx"
}

passed=0 failed=0
result() { if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
rows=$WORK/table
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' variant 'segments d/p' 'launches d/p' 'tokens equal' 'logit diff' capture seconds >"$rows"
for folder in "${folders[@]}"; do
    name=$(basename "$folder")
    plan=$plans/$name.$target.plan
    log=$WORK/$name.log
    : >"$log"
    start=$SECONDS
    model=
    [ -e "$plan" ] || model=$(place "$folder" "$name")
    { [ -z "$model" ] || "$BUILD/gcc-plan" "$model" -o "$plan" --target "$code" --sample none --require-single-segment &&
        "$BUILD/plan-inspect" "$plan" --require-single-segment; } >"$log.compile" 2>&1
    compiled=$?
    result $compiled
    "$BUILD/plan-inspect" "$plan" >"$log.inspect" 2>&1
    segments=$(awk '$3 ~ /^segments?,$/ { s[$1] = $2; n[$1] = $4 }
        END { if ("decode" in s) print s["decode"] "/" s["prefill"] " " n["decode"] "/" n["prefill"]; else print "- -" }' "$log.inspect")
    tokens=- diff=- capture=- verified=1
    if [ $compiled -eq 0 ] && [ -z "$compile_only" ]; then
        "$BUILD/plan-run" "$plan" --target "$target" --verify "$folder" >"$log.verify" 2>&1
        verified=$?
        tokens=$(awk '/tokens equal/ { for (i = 1; i < NF; i++) if ($i == "of") { a += $(i - 1); b += $(i + 1) } } END { print (b ? a " of " b : "-") }' "$log.verify")
        diff=$(awk '/largest logit difference/ { sub(/.*largest logit difference /, ""); v = $1 + 0; if (!n++ || v > m) { m = v; t = $1 } } END { print (n ? t : "-") }' "$log.verify")
        result $verified
        if [ -n "$with_capture" ]; then
            "$BUILD/plan-run" "$plan" --target "$target" --check-capture >"$log.capture" 2>&1
            capture=$?
            result $capture
            [ "$capture" -eq 0 ] && capture=equal || capture=FAILED
        fi
        [ "$verified" -eq 0 ] || tokens="$tokens FAILED"
    elif [ -z "$compile_only" ]; then
        failed=$((failed + 2))
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" ${segments/ /	} "$tokens" "$diff" "$capture" $((SECONDS - start)) >>"$rows"
    if [ $compiled -ne 0 ]; then sed "s/^/$name: /" "$log.compile" | head -n 20; fi
    if [ "$capture" = FAILED ]; then sed "s/^/$name: /" "$log.capture" | tail -n 8; fi
    if [ $compiled -eq 0 ] && [ -z "$compile_only" ] && [ "$verified" -ne 0 ]; then sed "s/^/$name: /" "$log.verify" | tail -n 8; fi
done
echo "target $target"
awk -F '\t' '{ for (i = 1; i <= NF; i++) { c[NR, i] = $i; if (length($i) > w[i]) w[i] = length($i) } if (NF > n) n = NF }
    END { for (r = 1; r <= NR; r++) { s = ""; for (i = 1; i <= n; i++) s = s sprintf("%-" w[i] "s  ", c[r, i]); sub(/ +$/, "", s); print s } }' "$rows"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
