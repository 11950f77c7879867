#!/bin/bash
# run_renamed.sh - a copy of a plain export with all symbols renamed at random, and all text dims dropped, gives the same
# plan but for names: proofs do not come from spelling.
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
work=${WORK:-$BUILD/tests/work}/renamed
python=${PYTHON:-}
[ -n "$python" ] || python=$("$SRC/tests/venv.sh" "$BUILD" 2>/dev/null) || {
    echo "skip renamed: no Python environment with onnx"; echo "0 passed, 0 failed, 2 skipped"; exit 0; }
mkdir -p "$work"
passed=0 failed=0
# Names and what is made of them: quoted strings, the table of strings, the checksum of the model file.
nameless() { "$BUILD/plan-inspect" "$1" --text | sed -e '/^strings\[/d' -e 's/"[^"]*"/""/g' -e 's/model_hash=[^ ]*//'; }
compare() { # compare SEED
    "$python" "$SRC/tests/rename_symbols.py" "$model" "$work/copy.onnx" "$1" &&
        "$BUILD/gcc-plan" "$model" -o "$work/a.plan" --target host --quiet >/dev/null &&
        "$BUILD/gcc-plan" "$work/copy.onnx" -o "$work/b.plan" --target host --quiet >/dev/null &&
        nameless "$work/a.plan" >"$work/a.txt" && nameless "$work/b.plan" >"$work/b.txt" && cmp "$work/a.txt" "$work/b.txt" &&
        ! cmp -s "$work/a.plan" "$work/b.plan"
}
model=$SRC/models/bytes/optimum-plain-f32/model.onnx
for seed in 1 2; do
    if compare $seed; then passed=$((passed + 1)); echo "ok - renamed with seed $seed"; else failed=$((failed + 1)); echo "not ok - renamed with seed $seed"; fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
