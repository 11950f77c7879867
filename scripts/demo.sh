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
run() { echo "\$ $(basename "$1") ${*:2}" | sed "s|$source/||g"; "$@"; }
run "$build/gcc-plan" "$model" -o "$plan" --target host
run "$build/plan-run" "$plan" --target host --prompt-bytes "$prompt" --generate 64
