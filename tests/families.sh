#!/bin/bash
# families.sh - the small decoders of MODELS/families: each is compiled, has one segment for decode and one for prefill, gives
# the golden tokens and logits, is the same captured and eager, keeps every byte of its states through warming and capturing, and is
# at every length what its graph gives for that length.
#   tests/families.sh [--target host|cuda] [NAME...]            NAME: a folder of MODELS/families; default: all in INDEX.tsv
#   tests/families.sh --prepare FOLDER [NAME...]                on any machine: programs, plans and goldens for a GPU
#   tests/families.sh --from FOLDER [NAME...]                   on the GPU machine: run what --prepare made
# One table, then what is not as in the others, with its reason, then the counts: each model counts as five tests. Columns: `tokens`,
# those equal to the golden ones; `kept`, bytes of states that are the same before and after warming, capturing and capturing again
# (+: of them some belong to states that do not grow); `growth`, comparisons that were equal byte for byte and the largest difference
# of the others. GCC_PLAN_CUDA lists the targets to compile
# for (default sm_80,sm_90a,sm_120,ptx); GCC_PLAN_FAMILY_CAPACITY is the capacity (default 48, that of the static caches).
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
WORK=${WORK:-$BUILD/tests/work/families}
if [ -z "${MODELS+set}" ]; then
    MODELS=${GCC_PLAN_MODELS:-}
    [ -z "$MODELS" ] && [ -d "$SRC/../shared/models" ] && MODELS=$SRC/../shared/models
fi
target=host prepare= from= code= names=()
while [ $# -gt 0 ]; do
    case $1 in
    --target) target=$2; shift 2 ;;
    --prepare) prepare=${2:?a folder} target=cuda; shift 2 ;;
    --from) from=$(cd "${2:?a folder}" && pwd) || exit 2; target=cuda; shift 2 ;;
    -*) echo "families.sh: unknown option $1" >&2; exit 2 ;;
    *) names+=("$1"); shift ;;
    esac
done
code=$target
[ "$target" = cuda ] && code=${GCC_PLAN_CUDA:-sm_80,sm_90a,sm_120,ptx}
families=${from:-${MODELS:+$MODELS/families}}
plans=${prepare:-${from:-$WORK}}
programs=${from:-$BUILD}
if [ -z "$families" ] || [ ! -e "$families/INDEX.tsv" ]; then
    echo "skip families: MODELS names no folder with them; set GCC_PLAN_MODELS to a folder with families/INDEX.tsv"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
if [ ${#names[@]} -eq 0 ]; then mapfile -t names < <(tail -n +2 "$families/INDEX.tsv" | cut -f 1); fi
mkdir -p "$WORK" "$plans"

passed=0 failed=0
result() { if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
column() { awk -F '\t' -v n="$1" -v k="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == k) c = i } $1 == n { print $c }' "$families/INDEX.tsv"; }
complain() { sed "s/^/$1: /" "$2" | tail -n 4 >>"$WORK/faults"; }

compile() { # compile NAME
    [ -e "$plans/$1.plan" ] && [ -n "$from" ] && return 0
    "$BUILD/gcc-plan" "$families/$1/model.onnx" -o "$plans/$1.plan" --target "$code" --sample none --check-lengths \
        --capacity "${GCC_PLAN_FAMILY_CAPACITY:-48}" --require-single-segment --quiet
}

if [ -n "$prepare" ]; then
    cp "$families/INDEX.tsv" "$BUILD/plan-run" "$BUILD/plan-inspect" "$prepare/" || exit 1
    for name in "${names[@]}"; do
        mkdir -p "$prepare/$name"
        cp "$families/$name"/*.txt "$families/$name"/logits_*.pb "$prepare/$name/" && compile "$name" || { echo "$name FAILED"; exit 1; }
    done
    du -sh "$prepare"
    exit
fi

: >"$WORK/faults"
: >"$WORK/exceptions"
forward=
except() { echo "$1: $2" >>"$WORK/exceptions"; }
rows=$WORK/table
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' name dtype segments 'launches d/p' tokens 'logit diff' capture kept growth >"$rows"
for name in "${names[@]}"; do
    log=$WORK/$name
    run=("$programs/plan-run" "$plans/$name.plan" --target "$target")
    case $(column "$name" prefill) in "1 token"*) run+=(--one-at-a-time) ;; esac
    segments=- launches=- tokens=- diff=- capture=- kept=- growth=-
    compile "$name" >"$log.compile" 2>&1 && "$programs/plan-inspect" "$plans/$name.plan" --require-single-segment >>"$log.compile" 2>&1
    compiled=$?
    result $compiled
    if [ $compiled -eq 0 ]; then
        "$programs/plan-inspect" "$plans/$name.plan" >"$log.inspect" 2>&1
        read -r segments launches < <(awk '$3 ~ /^segments?,$/ { s[$1] = $2; n[$1] = $4 }
            END { print s["decode"] "/" ("prefill" in s ? s["prefill"] : "-"), n["decode"] "/" ("prefill" in n ? n["prefill"] : "-") }' "$log.inspect")
        timeout 300 "${run[@]}" --verify "$families/$name" >"$log.verify" 2>&1
        status=$?
        result $status
        tokens=$(awk '/tokens equal/ { for (i = 1; i < NF; i++) if ($i == "of") { a += $(i - 1); b += $(i + 1) } } END { print (b ? a "/" b : "-") }' "$log.verify")
        diff=$(awk '/largest logit difference/ { sub(/.*largest logit difference /, ""); v = $1 + 0; if (!n++ || v > m) { m = v; t = $1 } } END { print (n ? t : "-") }' "$log.verify")
        [ $status -eq 0 ] || { tokens="$tokens FAILED"; complain "$name" "$log.verify"; }
        timeout 300 "${run[@]}" --check-capture >"$log.capture" 2>&1
        status=$?
        result $status
        if [ $status -eq 0 ]; then capture=equal; else capture=FAILED; complain "$name" "$log.capture"; fi
        # plan-run adds the checksum up over all states: before warming, after it, after capturing, after capturing again.
        kept=$(sed -n 's/.*warming and capturing changed none of \([0-9]*\) state bytes (checksum [0-9a-f]*).*/\1/p' "$log.capture")
        [ -n "$kept" ]
        result $?
        grep -q ' fixed$' "$families/$name/STATES.txt" 2>/dev/null && kept=${kept:+$kept +}
        [ -n "$kept" ] || { kept=FAILED; complain "$name" "$log.capture"; }
        case $segments in
        1/1) ;;
        1/-) except "$name" "no prefill, the graph takes one token a step: $(sed -n 's/^.* derived  *= 1  *(\(.*\))$/\1/p' "$log.inspect" | head -n 1)" ;;
        *) except "$name" "segments $segments: $(grep -m 2 '^  seam' "$log.inspect")" ;;
        esac
        timeout 300 "${run[@]}" --check-growth >"$log.growth" 2>&1
        status=$?
        result $status
        if [ $status -eq 0 ]; then
            growth=$(sed -n 's/.*; \([0-9]*\) of \([0-9]*\) comparisons.*difference \([^ ]*\) .*/\1\/\2, \3/p' "$log.growth")
            grep -q 'forward only' "$log.growth" && growth="$growth, forward" && forward="$forward $name"
        else
            growth=FAILED
            complain "$name" "$log.growth"
        fi
    else
        failed=$((failed + 4))
        complain "$name" "$log.compile"
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$(column "$name" dtype)" "$segments" "$launches" "$tokens" "$diff" "$capture" "$kept" \
        "$growth" >>"$rows"
    [ -n "$from" ] || rm -f "$plans/$name.plan"
done
cat "$WORK/faults"
echo "families, target $target"
awk -F '\t' '{ for (i = 1; i <= NF; i++) { c[NR, i] = $i; if (length($i) > w[i]) w[i] = length($i) } if (NF > n) n = NF }
    END { for (r = 1; r <= NR; r++) { s = ""; for (i = 1; i <= n; i++) s = s sprintf("%-" w[i] "s  ", c[r, i]); sub(/ +$/, "", s); print s } }' "$rows"
echo "exceptions"
[ -z "$forward" ] || except "growth is checked going forward only, for states that do not grow cannot be set back" "${forward# }"
if [ -s "$WORK/exceptions" ]; then sed 's/^/  /' "$WORK/exceptions"; else echo "  none"; fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
