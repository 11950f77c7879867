#!/bin/bash
# run_renamed.sh - a copy of a plain export with all symbols renamed at random, and all text dims dropped, gives the same
# plan but for names: proofs do not come from spelling. Of every model in MODELS/families such a copy has the same symbols, of
# the same classes, by the same equations, and the same state axes. With a name of its own for each dim it has as many symbols
# of each class, but for those that the graph equates, and the same state axes.
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

# What classify found, each symbol called by its number; what only a text says (that it was declared) is left out.
classification() {
    awk '/^symbol / { line = $0; sub(/^symbol [0-9]+ /, "", line)
             if (substr(line, 1, 1) == "\"") match(line, /^"([^"\\]|\\.)*"/); else match(line, /^[^ ]+/)
             name[++count] = substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 1); sub(/ keep=.*/, "", line); print "symbol", count line }
        /^solve / { line = $0; sub(/( node=[0-9]+)? rule=".*/, "", line); sub(/^solve [0-9]+ = /, "", line); print $1, $2, anonymous(line) }
        /^roles / { line = $0; sub(/.* step = /, "", line); print $1, $2, $3, $4, "step", anonymous(line) }
        /^state / { print $1, $2, $7 }
        # The longest name first: one may be part of another.
        function anonymous(line,   out, at, i, best) {
            for (out = ""; line != ""; line = substr(line, at)) {
                best = 0
                for (i = 1; i <= count; i++)
                    if (substr(line, 1, length(name[i])) == name[i] && (!best || length(name[i]) > length(name[best]))) best = i
                if (best && out !~ /[A-Za-z0-9_]$/) { out = out "#" best; at = length(name[best]) + 1 } else { out = out substr(line, 1, 1); at = 2 }
            }
            return out
        }'
}
# Symbols that stand for themselves, by class, and state axes.
essence() { classification | awk '$1 == "symbol" && $3 != "derived" { count[$3]++ } $1 == "state"
    END { print "fixed", count["fixed"] + 0, "growing", count["growing"] + 0, "unknown", count["unknown"] + 0, "data", count["data"] + 0 }'; }
same() { # same FILTER [each]
    "$python" "$SRC/tests/rename_symbols.py" "$model" "$work/copy.onnx" 1 ${2:+"$2"} &&
        "$BUILD/gcc-plan" "$model" --dump classify 2>/dev/null | "$1" >"$work/a.txt" &&
        "$BUILD/gcc-plan" "$work/copy.onnx" --dump signature 2>/dev/null >"$work/b.dump" &&
        "$BUILD/gcc-plan" "$work/copy.onnx" --dump classify 2>/dev/null | "$1" >"$work/b.txt" &&
        [ -s "$work/b.dump" ] && [ -s "$work/a.txt" ] && cmp -s "$work/a.txt" "$work/b.txt"
}
skipped=0
families=${MODELS:+$MODELS/families}
[ -n "$families" ] && [ -d "$families" ] || { echo "skip renamed families: MODELS names no folder with them"; skipped=1; }
for model in ${families:+"$families"/*/model.onnx}; do
    [ -e "$model" ] || continue
    name=$(basename "$(dirname "$model")")
    for kind in "classification" "essence each"; do
        # shellcheck disable=SC2086
        if same $kind; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "not ok - family $name renamed, $kind: $(diff "$work/a.txt" "$work/b.txt" | head -n 4)"
        fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
