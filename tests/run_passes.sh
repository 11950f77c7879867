#!/bin/bash
# run_passes.sh - tests of single passes, text in and text out, and round trips of whole models through the text form.
#
# A file in tests/passes/ holds many cases. A line "#@ NAME ARGUMENTS" begins one; what follows up to the next is its input
# text (the text form takes lines with # for comments) and what is expected:
#   #> LINE   all of standard output, in order        #~ LINE   this line occurs in standard output
#   #! LINE   all of standard error, in order         #? N      exit status (default 0)
#   #= NAME CLASS [EXPRESSION]   what standard output says of this symbol; then every symbol that is declared, unknown or
#             counted from data must be named (the terms of a sum in any order)
# The command is gcc-plan --from-text CASE --verify-passes ARGUMENTS; the case's own lines count, so its first line is 1.
# GCC_PLAN_UPDATE=1 writes the #> #! #? lines anew (a case with #~ keeps those); read the difference before committing it.
set -uo pipefail
# shellcheck source=tests/counts.sh
. "$(dirname "$0")/counts.sh"
needs_compiler passes

# Splits a file into cases $WORK/FILE.N; prints their names and arguments, each when its file is whole: they are run meanwhile.
split_cases() {
    awk -v to="$2" 'function done() { if (n) { close(file); print file, line } }
        /^#@ / { done(); n++; file = sprintf("%s.%03d", to, n); line = substr($0, 4) } n { print > file } END { done() }' "$1"
}

expected() { sed -n "s/^#$2 \{0,1\}//p" "$1"; }

# "NAME CLASS [EXPRESSION]" for each symbol of a dump; those that need not be named begin with "-".
classes() {
    awk 'function sum(text,  n, i, j, t, part) { n = split(text, part, / \+ /)
             for (i = 2; i <= n; i++) for (j = i; j > 1 && part[j] < part[j - 1]; j--) { t = part[j]; part[j] = part[j - 1]; part[j - 1] = t }
             t = part[1]; for (i = 2; i <= n; i++) t = t " + " part[i]; return t }
        MODE == "want" { word = $1 " " $2; sub(/^[^ ]+ [^ ]+ ?/, ""); print word ($0 == "" ? "" : " " sum($0)); next }
        /^symbol / { name[++n] = $3; gsub(/"/, "", name[n]); class[n] = $4; free[n] = !/ declared$/ && $4 != "unknown" && $4 != "data" }
        /^solve / { i = $2; sub(/^solve [0-9]+ = /, ""); sub(/( node=[0-9]+)? rule=".*/, ""); of[i] = " " sum($0) }
        END { for (i = 1; i <= n; i++) print (free[i] ? "-" : "") name[i], class[i] (class[i] == "derived" ? of[i] : "") }' MODE="$1"
}

# Output may hold the model's absolute folder nowhere: cases name no model.
run_case() {
    local file=$1 name=$2 status
    shift 2
    (cd "$WORK" && "$GCC_PLAN" --from-text "$(basename "$file")" --verify-passes "$@") >"$file.out" 2>"$file.err" </dev/null
    status=$?
    sed -i "s/^$(basename "$file"):/case:/" "$file.err"
    echo "$status" >"$file.status"
    if [ -n "${GCC_PLAN_UPDATE:-}" ]; then return; fi
    local want problem=
    want=$(expected "$file" '?')
    [ "$status" = "${want:-0}" ] || problem="exit status $status, expected ${want:-0}"
    if ! diff <(expected "$file" '!') "$file.err" >"$file.diff"; then
        problem="${problem:-standard error differs} $(head -n 6 "$file.diff")"
    elif grep -q '^#=' "$file"; then
        expected "$file" '=' | classes want | LC_ALL=C sort >"$file.want"
        classes have <"$file.out" | sed '/^-/d' | LC_ALL=C sort >"$file.have"
        [ -s "$file.have" ] || problem="${problem:-no symbols}"
        diff "$file.want" "$file.have" >"$file.diff" || problem="${problem:-classes differ} $(grep '^[<>]' "$file.diff" | head -n 6)"
    elif grep -q '^#~' "$file"; then
        while IFS= read -r line; do
            grep -qxF -- "$line" "$file.out" || problem="no line '$line'"
        done < <(expected "$file" '~')
    elif ! diff <(expected "$file" '>') "$file.out" >"$file.diff"; then
        problem="${problem:-standard output differs} $(head -n 6 "$file.diff")"
    fi
    if [ -z "$problem" ]; then pass; else fail "$name" "$problem"; fi
}

updated_case() {
    grep -v '^#[>!?]' "$1"
    [ "$(cat "$1.status")" = 0 ] || echo "#? $(cat "$1.status")"
    grep -q '^#[~=]' "$1" || sed 's/^/#> /; s/ *$//' "$1.out"
    sed 's/^/#! /; s/ *$//' "$1.err"
}

for path in "$SRC"/tests/passes/*.txt; do
    [ -e "$path" ] || continue
    base=$(basename "$path" .txt)
    names=()
    while read -r file name arguments; do
        # shellcheck disable=SC2086
        run_case "$file" "$base/$name" $arguments
        names+=("$file")
    done < <(split_cases "$path" "$WORK/$base")
    if [ -n "${GCC_PLAN_UPDATE:-}" ]; then
        { sed '/^#@ /,$d' "$path"; for file in "${names[@]}"; do updated_case "$file"; done; } >"$WORK/new" && cp "$WORK/new" "$path"
        pass
    fi
done

# Random graphs whose symbols are known from how they were made; all lengths of caches count as one, PAST. A name that inference
# minted is "?". RANDOM_GRAPHS is how many, from seed 1 on; every second of them that can also becomes a plan, whose proofs hold.
random_case() { # random_case SEED
    local file=$WORK/random.$1 names problem= limits
    awk -v seed="$1" -f "$SRC/tests/random_graphs.awk" >"$file" || { fail "random graph $1" "it was not made"; return; }
    names=$(sed -n 's/^#p //p' "$file" | paste -sd '|')
    if ! "$GCC_PLAN" --from-text "$file" --run infer --verify-passes --dump classify >"$file.out" 2>"$file.err"; then
        problem=$(head -n 2 "$file.err")
    else
        { sed -n 's/^#= //p' "$file" | sed -E "s/\\b($names)\\b/PAST/g" | classes want
            sed -n 's/^#p .*/PAST derived PAST/p' "$file" | sed '1s/.*/PAST growing/'; } | LC_ALL=C sort >"$file.want"
        sed -E "s/\\b($names)\\b/PAST/g" "$file.out" | classes have | sed -E -e '/^-/d' -e 's/^\?[0-9]+ /? /' | LC_ALL=C sort >"$file.have"
        [ -s "$file.want" ] || problem="no symbols"
        diff "$file.want" "$file.have" >"$file.diff" || problem="classes differ: $(grep '^[<>]' "$file.diff" | head -n 6)"
    fi
    if [ -z "$problem" ] && [ $(($1 % 2)) = 0 ] && ! grep -q '^#c' "$file"; then
        mapfile -t limits < <(sed -n 's/^#= \([^ ]*\) fixed/--max\n\1=8/p' "$file")
        { "$GCC_PLAN" --from-text "$file" --run infer -o "$file.plan" --target host --quiet --capacity 64 "${limits[@]}" && "$BUILD/plan-inspect" "$file.plan" --check-proofs &&
            "$BUILD/plan-inspect" "$file.plan" --audit; } >"$file.out" 2>&1 || problem="its plan: $(grep -m 2 -E '^FAIL|^unchecked|:' "$file.out")"
    fi
    if [ -z "$problem" ]; then pass; else fail "random graph, seed $1" "$problem"; fi
}
for ((seed = 1; seed <= ${RANDOM_GRAPHS:-60}; seed++)); do random_case $seed; done

# parse(print(g)) == g after each pass; and what runs on from a text is what runs on from the model.
round_trip() {
    local model=$1 name=$2 pass text=$WORK/trip options=()
    "$GCC_PLAN" "$model" --dump import >/dev/null 2>"$text.err"
    grep -q 'No such file' "$text.err" && options=(--weights=reference) # a graph without its weights
    for pass in import infer classify signature fuse alias; do
        if ! "$GCC_PLAN" "$model" --dump "$pass" --verify-passes "${options[@]}" >"$text.1" 2>"$text.err"; then
            fail "round trip $name $pass" "$(head -n 3 "$text.err")"
        elif ! "$GCC_PLAN" --from-text "$text.1" --dump text --verify-passes "${options[@]}" >"$text.2" 2>"$text.err"; then
            fail "round trip $name $pass" "$(head -n 3 "$text.err")"
        elif ! cmp -s "$text.1" "$text.2"; then
            fail "round trip $name $pass" "$(diff "$text.1" "$text.2" | head -n 4)"
        else
            pass
        fi
        [ "$pass" = import ] && cp "$text.1" "$text.import"
    done
    if "$GCC_PLAN" --from-text "$text.import" --run infer --dump alias "${options[@]}" >"$text.2" 2>"$text.err" && cmp -s "$text.1" "$text.2"; then
        pass
    else
        fail "from text $name" "$(head -n 3 "$text.err") $(diff "$text.1" "$text.2" | head -n 4)"
    fi
}

shopt -s nullglob
for model in "$SRC"/models/bytes/*/model.onnx; do
    round_trip "$model" "$(basename "$(dirname "$model")")"
done
models=("$MODELS"/bytes/*/model.onnx "$MODELS"/smollm2/*/*.onnx)
if [ -z "$MODELS" ] || [ ${#models[@]} = 0 ]; then
    skip "round trips of large models" "MODELS names no folder with them"
else
    for model in "${models[@]}"; do round_trip "$model" "${model#"$MODELS"/}"; done
fi

finish
