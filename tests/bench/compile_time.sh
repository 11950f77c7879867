#!/bin/bash
# compile_time.sh - how compile time grows with layers: one family's graph at 2, 8, 32 and 64 layers, for the host and for
# sm_90a: processor time of gcc-plan and the compilers it calls, the least of REPEATS runs (default 3); then the cost of a layer between two rows. Fails when the last
# row is more than 20 % above the straight line that fits the rows before it. PYTHON needs onnx.
#   tests/bench/compile_time.sh [--passes] [LAYERS...]          --passes: without kernels: what the passes alone take
#   tests/bench/compile_time.sh --families [TARGET]             instead: each model of MODELS/families, for TARGET (default host)
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-$SRC/build}
WORK=${WORK:-$(mktemp -d)}
MODELS=${MODELS:-${GCC_PLAN_MODELS:-$SRC/../shared/models}}
python=${PYTHON:-}
[ -n "$python" ] || python=$("$SRC/tests/venv.sh" "$BUILD" 2>/dev/null) || { echo "skip compile time: no Python environment with onnx"; exit 0; }
model=$MODELS/families/llama/model.onnx
[ -e "$model" ] || { echo "skip compile time: no $model"; exit 0; }
targets="host sm_90a"
[ "${1:-}" = --passes ] && { targets=passes; shift; }
[ $# -gt 0 ] || set -- 2 8 32 64
mkdir -p "$WORK"

TIMEFORMAT='%3U %3S'
compile() { # compile TARGET LAYERS: prints microseconds
    local best= took options=(--target "$1" --quiet -o "$WORK/out.plan")
    [ "$1" = passes ] && options=(--dump segment)
    for ((i = 0; i < ${REPEATS:-3}; i++)); do
        took=$({ time "$BUILD/gcc-plan" "$WORK/$2.onnx" "${options[@]}" >/dev/null 2>"$WORK/errors"; } 2>&1) || return 1
        took=$(awk '{ print int(($1 + $2) * 1000000) }' <<<"$took")
        if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
    done
    echo "$best"
}

if [ "${1:-}" = --families ]; then
    for folder in "$MODELS"/families/*/; do
        name=$(basename "$folder")
        ln -sf "$folder/model.onnx" "$WORK/$name.onnx"
        took=$(compile "${2:-host}" "$name") || { echo "$name: $(head -n 1 "$WORK/errors")" >&2; exit 1; }
        echo "$took $name"
    done | sort -n | awk '{ printf "%-28s %8.1f ms\n", $2, $1 / 1000 }'
    exit
fi
status=0
for layers; do "$python" "$SRC/tests/make_layers.py" "$model" "$WORK/$layers.onnx" "$layers" || exit 1; done
for target in $targets; do
    rows=
    for layers; do rows+="$layers $(compile "$target" "$layers")"$'\n' || exit 1; done
    printf '%s' "$rows" | awk -v target="$target" '
        NF < 2 { exit failed = 1 }
        { printf "%-8s %3d layers %9.1f ms", target, $1, $2 / 1000
          if (NR > 1) printf "  %7.2f ms a layer", ($2 - y[NR - 1]) / ($1 - x[NR - 1]) / 1000
          printf "\n"; x[NR] = $1; y[NR] = $2 }
        END { if (failed) exit 1
              if (NR < 3) exit
              for (i = 1; i < NR; i++) { n++; sx += x[i]; sy += y[i]; sxx += x[i] * x[i]; sxy += x[i] * y[i] }
              slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
              share = y[NR] / (sy / n + slope * (x[NR] - sx / n))
              printf "%-8s the last row is %.2f times the line through the others\n", target, share
              exit share > 1.2 }' || status=1
done
exit $status
