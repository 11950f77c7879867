#!/bin/bash
# venv.sh - makes the Python environment of the tests in BUILD/venv, or finds it there, and prints its python.
#   tests/venv.sh [BUILD_FOLDER]
# Needs a package index; tests that use it are skipped, and counted so, where it was not made.
set -euo pipefail
build=${1:-${BUILD:-$(cd "$(dirname "$0")/.." && pwd)/build}}
packages="onnx==1.22.0 onnxruntime==1.32.0 numpy==2.3.5"
venv=$build/venv
if [ ! -x "$venv/bin/python" ] || [ ! -e "$venv/complete" ] || [ "$(cat "$venv/complete")" != "$packages" ]; then
    if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv; } >&2
    fi
    rm -rf "$venv"
    mkdir -p "$build"
    python3 -m venv "$venv" >&2
    # shellcheck disable=SC2086
    "$venv/bin/pip" install -q --disable-pip-version-check --only-binary=:all: $packages >&2
    echo "$packages" >"$venv/complete"
fi
echo "$venv/bin/python"
