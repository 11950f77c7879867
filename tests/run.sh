#!/bin/bash
# run.sh - the one test command: builds where that is needed, runs every suite and adds up their counts.
#   tests/run.sh [SUITE...]            suites: unit tree and the NAME of each tests/run_NAME.sh, models, families, gpu; default: all
#   tests/run.sh --list
# BUILD names the build folder (default: build beside the sources). `make check` calls this with it.
#
# A suite is a program that prints "N passed, N failed, N skipped" as its last line. It gets SRC (sources), BUILD (build
# folder), WORK (an empty folder of its own), PYTHON (with onnx, onnxruntime and numpy; empty where there is none) and
# MODELS (folder with the large test models; empty where there is none). A skipped test prints "skip NAME: reason".
# Tests of an NVIDIA GPU (suite gpu, tests/gpu.sh) count as skipped where there is none.
set -uo pipefail
SRC=$(cd "$(dirname "$0")/.." && pwd)
export SRC srcdir=$SRC
standalone=
if [ -z "${BUILD:-}" ]; then
    standalone=1
    BUILD=$SRC/build
fi
export BUILD GCC_PLAN=$BUILD/gcc-plan
export LC_ALL=C
limit=${GCC_PLAN_SUITE_SECONDS:-1800}

units=()
for file in "$SRC"/tests/unit/*.c; do
    [ -e "$file" ] && units+=("unit/$(basename "$file" .c)")
done
suites=("${units[@]}" tree)
for file in "$SRC"/tests/run_*.sh; do
    [ -e "$file" ] && name=$(basename "$file" .sh) && suites+=("${name#run_}")
done
suites+=(models families gpu)
if [ "${1:-}" = --list ]; then
    printf '%s\n' "${suites[@]}"
    exit 0
fi
if [ $# -gt 0 ]; then
    chosen=()
    for name; do
        if [ "$name" = unit ]; then chosen+=("${units[@]}"); else chosen+=("$name"); fi
    done
    suites=("${chosen[@]}")
fi

if [ -n "$standalone" ]; then
    "$SRC/scripts/build.sh" "$BUILD" || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
    [ ${#units[@]} -eq 0 ] || make -s -C "$BUILD" check-programs || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
    [ -n "${GCC_PLAN_NO_VENV:-}" ] || "$SRC/tests/venv.sh" "$BUILD" >/dev/null ||
        echo "run.sh: no Python environment; its tests are skipped" >&2
fi

PYTHON=${GCC_PLAN_PYTHON:-}
[ -z "$PYTHON" ] && [ -e "$BUILD/venv/complete" ] && PYTHON=$BUILD/venv/bin/python
MODELS=${GCC_PLAN_MODELS:-}
[ -z "$MODELS" ] && [ -d "$SRC/../shared/models" ] && MODELS=$(cd "$SRC/../shared/models" && pwd)
export PYTHON MODELS

command_of() {
    case $1 in
    unit/*) echo "$BUILD/tests/$1" ;;
    tree | models | families | gpu) echo "$SRC/tests/$1.sh" ;;
    *) echo "$SRC/tests/run_$1.sh" ;;
    esac
}

passed=0 failed=0 skipped=0
for name in "${suites[@]}"; do
    log=$BUILD/tests/$name.log
    export WORK=$BUILD/tests/work/$name
    rm -rf "$WORK"
    mkdir -p "$WORK" "$(dirname "$log")"
    start=$SECONDS
    program=$(command_of "$name")
    case $program in
    *.sh) timeout "$limit" bash "$program" >"$log" 2>&1 </dev/null ;;
    *) timeout "$limit" "$program" >"$log" 2>&1 </dev/null ;;
    esac
    status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
    read -r p f s <<<"$(echo "${line:-0 0 0}" | tr -c '0-9\n' ' ')"
    s=${s:-0}
    note=
    if [ -z "$line" ]; then
        f=1 note=" (no count line, exit status $status)"
    elif [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$f" -eq 0 ]; then
        f=1 note=" (exit status $status)"
    elif [ "$status" -eq 0 ] && [ "$f" -ne 0 ]; then
        note=" (exit status 0 with failures)"
    elif [ $((p + f + s)) -eq 0 ]; then
        f=1 note=" (ran no test)"
    fi
    [ "$status" = 124 ] && note=" (stopped after $limit s)"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -ne 0 ] || [ "$name" = models ] || [ "$name" = families ]; then
        tail -n 100 "$log" | grep -vxF "${line:-no line}" | sed 's/^/    /'
    else
        grep -a '^skip ' "$log" | sed 's/^/    /'
    fi
    printf '%-24s %5d passed %4d failed %4d skipped %5d s%s\n' "$name" "$p" "$f" "$s" $((SECONDS - start)) "$note"
    if [ "$f" -eq 0 ] && [ -z "${GCC_PLAN_KEEP:-}" ]; then rm -rf "$WORK"; fi
done
if [ $((passed)) -eq 0 ] && [ $((failed)) -eq 0 ]; then failed=1; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
