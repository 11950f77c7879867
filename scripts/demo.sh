#!/bin/bash
# demo.sh - from nothing to text: builds, compiles the committed decoder for the host target, generates 64 tokens.
#   scripts/demo.sh [PROMPT]
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$source/build}
prompt=${1:-The king}
[ -x "$build/plan-run" ] && [ -x "$build/gcc-plan" ] || "$source/scripts/build.sh" "$build" >&2
plan=$build/demo.plan
model=$source/models/bytes/mobius-default-f16/model.onnx
run() { # shows the command as a person would type it, then runs it
    local word line
    line=$(basename "$1")
    for word in "${@:2}"; do
        case $word in *[!A-Za-z0-9_./=,-]*) word="'$word'" ;; esac
        line="$line ${word#"$source"/}"
    done
    echo "\$ $line"
    "$@"
}
run "$build/gcc-plan" "$model" -o "$plan" --target host --sample greedy
run "$build/plan-run" "$plan" --target host --prompt-bytes "$prompt" --generate 64
