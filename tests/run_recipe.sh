#!/bin/sh
# Recipes: what --print-recipe prints, read back, prints the same and gives the same graph after the signature pass.
#
#   run_recipe.sh [GCC_PLAN]      on the committed decoder, and on the models of ../shared where they are
set -u
here=$(cd "$(dirname "$0")" && pwd)
plan=${1-${GCC_PLAN-./gcc-plan}}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

cat >"$work/full.yaml" <<'END'
states:
  - {input: "past_key_values.{N}.key", output: "present.{N}.key"}
  - input: "past_key_values.{N}.value"
    output: "present.{N}.value"
symbols: {batch: 2}
capacity: 128
prefill: 16
signatures: {prefill: {sequence_len: [2, 8]}}
feeds: {position_ids: caller}
END

# round NAME MODEL [OPTIONS]
round() {
    name=$1 model=$2
    shift 2
    if "$plan" --quiet --print-recipe "$@" "$model" >"$work/one.yaml" &&
        "$plan" --quiet --print-recipe --recipe "$work/one.yaml" "$model" >"$work/two.yaml" &&
        cmp "$work/one.yaml" "$work/two.yaml" &&
        "$plan" --quiet --dump signature "$@" "$model" >"$work/one.txt" &&
        "$plan" --quiet --dump signature --recipe "$work/one.yaml" "$model" >"$work/two.txt" &&
        cmp "$work/one.txt" "$work/two.txt"; then
        passed=$((passed + 1))
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "not ok $name"
    fi
}

model=$here/../models/bytes/mobius-default-f16/model.onnx
round deduced "$model"
round "written by hand" "$model" --recipe "$work/full.yaml"
round "changed by options" "$model" --recipe "$work/full.yaml" --capacity 64 --prefill 4 --max sequence_len=3 --pin batch=1
if command -v python3 >/dev/null 2>&1; then # files named in a recipe lie beside it; printed they are absolute
    python3 "$here/make_bad.py" "$work/bad" || exit 1
    printf 'bind: {x: x.pb}\n' >"$work/bad/bind.yaml"
    round "bound by an option" "$work/bad/good.onnx" --bind "x=$work/bad/x.pb"
    round "bound by the recipe" "$work/bad/good.onnx" --recipe "$work/bad/bind.yaml"
    round "states by their names" "$work/bad/states.onnx"
    "$plan" --quiet --print-recipe "$work/bad/states.onnx" | sed -n 's/^  - {input: \(.*\), output: \(.*\)}$/\1 \2/p' | tr -d '"' >"$work/found"
    if cmp - "$work/found" <<'END'; then
past.0.conv present.0.conv
past_key_values.1.decoder.key present.1.decoder.key
past_key_values_2 present_key_values_2
past_key_self_3 present_key_self_3
past_states.4.h present.4.h
cell5 updated_cell5
END
        passed=$((passed + 1))
        echo "ok the states that names tell"
    else
        failed=$((failed + 1))
        echo "not ok the states that names tell"
    fi
    round "a mask without states" "$work/bad/encoder.onnx" --max batch=3 --max seq=7
    if "$plan" --check --quiet "$work/bad/encoder.onnx" --max batch=3 --max seq=7; then
        passed=$((passed + 1))
        echo "ok a mask without states is the caller's"
    else
        failed=$((failed + 1))
        echo "not ok a mask without states is the caller's"
    fi
    round "an option binds before the recipe" "$work/bad/good.onnx" --recipe "$work/bad/bind_file.yaml" --bind "x=$work/bad/x.pb"
fi
for model in "$here"/../../shared/models/bytes/*/model.onnx; do
    if [ -f "$model" ]; then round "$(basename "$(dirname "$model")")" "$model"; fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
