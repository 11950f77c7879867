#!/bin/bash
# cuda_trace.sh PLAN_RUN PLAN - the driver calls of 64 decoded tokens (and one that the prefill samples), seen from outside: between the first and the last
# graph launch of the replay there is nothing but graph launches. Needs a GPU and a C compiler.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=$1 plan=$2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
real=$(ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -1)
[ -n "$real" ] || real=$(ls /usr/local/nvidia/lib*/libcuda.so.1 /usr/lib/*/libcuda.so.1 2>/dev/null | head -1)
[ -n "$real" ] || { echo "skip cuda-trace: no libcuda.so.1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
cc -w -shared -fPIC -o "$work/libcuda.so.1" "$here/cuda_trace.c" -ldl || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
CUDA_TRACE_REAL=$real CUDA_TRACE=$work/trace LD_LIBRARY_PATH=$work:${LD_LIBRARY_PATH:-} \
    "$run" "$plan" --target cuda --prompt-bytes 'The king' --generate 65 >/dev/null 2>&1
# The longest run of graph launches without any other call in between (but for making the context current).
longest=$(awk '/^cuCtx/ { next } $1 == "cuGraphLaunch" { n++; if (n > best) best = n; next } { n = 0 } END { print best + 0 }' "$work/trace")
echo "driver calls of the run:"; sort "$work/trace" | uniq -c | sort -rn | sed 's/^/  /'
if [ "$longest" -ge 64 ]; then echo "ok - 64 tokens are $longest consecutive graph launches, with no other driver call between them"; echo "1 passed, 0 failed, 0 skipped"
else echo "not ok - at most $longest consecutive graph launches"; echo "0 passed, 1 failed, 0 skipped"; exit 1; fi
