#!/bin/bash
# gpu.sh - checks and times plans on a machine with an NVIDIA GPU.
#   tests/gpu.sh [MODEL_FOLDER...]                    build if needed, compile, then everything below
#   tests/gpu.sh --prepare FOLDER [MODEL_FOLDER...]   on any machine: programs, plans and goldens into FOLDER (no GPU used)
#   tests/gpu.sh --from FOLDER                        on the GPU machine: run what --prepare made
#   tests/gpu.sh --parts LIST ...                     only these, by commas: models families control rows sample ops conformance timing
#                                                     sanitizer (default: all; with --from: models timing sanitizer, for the others compile)
# For each model: tokens and logits against the goldens, captured against eager byte for byte, time per token at context
# 512; then compute-sanitizer's memcheck, racecheck and initcheck on two of them, where it is installed. The parts between: the
# suites of the same names, with plans for the card. Without a GPU all of this counts as skipped. A MODEL_FOLDER holds model.onnx and goldens; default: those of tests/models.sh.
# The times are those of tests/bench/decode, which also times models of full size and their peers.
# GCC_PLAN_CUDA lists the targets to compile for (default sm_80,sm_90a,sm_120,ptx). GCC_PLAN_GPU_SECONDS bounds the whole (900).
set -uo pipefail
SRC=${SRC:-$(cd "$(dirname "$0")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
MODELS=${MODELS:-${GCC_PLAN_MODELS:-}}
[ -z "$MODELS" ] && [ -d "$SRC/../shared/models" ] && MODELS=$SRC/../shared/models
export SRC MODELS
end=$((SECONDS + ${GCC_PLAN_GPU_SECONDS:-900}))
timed="mobius-default-f16 mobius-cuda-f16 genai-int4"
checked="mobius-default-f16 genai-int4"

prepare= from= parts=
while :; do
    case ${1:-} in
    --prepare) prepare=${2:?a folder}; shift 2 ;;
    --from) from=$(cd "${2:?a folder}" && pwd) || exit 2; shift 2 ;;
    --parts) parts=${2:?a list}; shift 2 ;;
    -*) echo "gpu.sh: unknown option $1" >&2; exit 2 ;;
    *) break ;;
    esac
done
suites="families control rows sample ops conformance"
all="models $suites timing sanitizer"
[ -z "$from" ] || all="models timing sanitizer"
parts=${parts:-$all}
for part in ${parts//,/ }; do
    case " $all " in *" $part "*) ;; *) echo "gpu.sh: no part is named '$part' here; expected some of $all" >&2; exit 2 ;; esac
done
wants() { case ",${parts// /,}," in *",$1,"*) ;; *) return 1 ;; esac; }

make_plans() { # make_plans FOLDER MODEL_FOLDER...
    local to=$1 name folder; shift
    if [ $# -eq 0 ]; then
        for folder in "$SRC"/models/bytes/*/ ${MODELS:+"$MODELS"/bytes/*/}; do
            [ -e "$folder/model.onnx" ] || continue
            name=$(basename "$folder")
            case " ${seen:-} " in *" $name "*) continue ;; esac
            seen="${seen:-} $name"
            set -- "$@" "$folder"
        done
    fi
    mkdir -p "$to"
    [ -x "$BUILD/gcc-plan" ] || "$SRC/scripts/build.sh" "$BUILD" || return 1
    WORK=$to/work "$SRC/tests/models.sh" --target cuda --compile-only --plans "$to" "$@" || return 1
    for folder; do
        name=$(basename "$folder")
        mkdir -p "$to/$name"
        cp "$folder"/*.txt "$folder"/logits_*.pb "$to/$name/"
        case " $timed " in *" $name "*) ;; *) continue ;; esac
        local model=$folder/model.onnx
        [ -e "$to/work/$name/model.onnx" ] && model=$to/work/$name/model.onnx
        "$BUILD/gcc-plan" "$model" -o "$to/$name.greedy.plan" --target "${GCC_PLAN_CUDA:-sm_80,sm_90a,sm_120,ptx}" --sample greedy \
            >/dev/null || return 1
    done
    rm -rf "$to/work"
    cp "$BUILD/plan-run" "$BUILD/plan-inspect" "$to/" || return 1
}

if [ -n "$prepare" ]; then
    make_plans "$prepare" "$@" && du -sh "$prepare"
    exit
fi

if ! grep -q 'libcuda\.so\.1' <<<"$(ldconfig -p 2>/dev/null)" && ! ls /usr/local/nvidia/lib*/libcuda.so.1 >/dev/null 2>&1 ||
    ! ls /dev/nvidia[0-9]* >/dev/null 2>&1 && ! nvidia-smi -L >/dev/null 2>&1; then
    echo "skip gpu: no NVIDIA driver or device on this machine (verify and check-capture of 11 models, 3 timings, 6 sanitizer runs)"
    echo "0 passed, 0 failed, 42 skipped"
    exit 0
fi

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null
toolchain=
[ -n "$from" ] || toolchain=$BUILD
if [ -z "$from" ]; then
    from=${WORK:-$BUILD/tests/work}/gpu
    if wants models || wants timing || wants sanitizer; then make_plans "$from" "$@" || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }; fi
fi
run=$from/plan-run
if [ -e "$run" ] && ! "$run" --version >/dev/null 2>&1; then # made on another system
    echo "building plan-run here"
    "$SRC/scripts/build.sh" "$BUILD-gpu" --disable-compiler || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
    cp "$BUILD-gpu/plan-run" "$BUILD-gpu/plan-inspect" "$from/"
fi

passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# part SECONDS COMMAND...: a program whose last line has counts
part() {
    local limit=$1 p f s left=$((end - SECONDS)); shift
    [ "$limit" -le "$left" ] || limit=$left
    timeout "$limit" "$@" 2>&1 | tee "$work/out"
    read -r p f s <<<"$(tail -n 1 "$work/out" | tr -c '0-9\n' ' ')"
    case "$p$f$s" in '' | *[!0-9]*) p=0 f=1 s=0 ;; esac
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + ${s:-0}))
}
if wants models; then
    folders=()
    for plan in "$from"/*.cuda.plan; do folders+=("$from/$(basename "$plan" .cuda.plan)"); done
    BUILD=$from WORK=$work/models part 900 "$SRC/tests/models.sh" --target cuda --plans "$from" "${folders[@]}"
fi

# The suites, with code for this card alone.
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
[ "${capability:-0}" -lt 90 ] || capability=${capability}a
python=${PYTHON:-$BUILD/venv/bin/python}
suite() { # suite NAME
    local made=$work/$1
    mkdir -p "$made"
    echo
    echo "suite $1, target cuda"
    case $1 in
    families) GCC_PLAN_CUDA=sm_$capability BUILD=$toolchain WORK=$made part 300 bash "$SRC/tests/families.sh" --target cuda ;;
    rows) GCC_PLAN_CUDA=sm_$capability BUILD=$toolchain WORK=$made part 200 bash "$SRC/tests/run_rows.sh" --target cuda ;;
    control | sample) part 200 "$python" -B "$SRC/tests/run_$1.py" "$toolchain" "$made" --target cuda ;;
    ops) if "$python" -B -W ignore "$SRC/tests/make_op_models.py" "$made" >"$work/make.log" 2>&1; then
            GCC_PLAN_CUDA=sm_$capability part 500 "$python" -B "$SRC/tests/run_op_models.py" "$toolchain" "$made" --target cuda
        else
            failed=$((failed + 1)); tail -n 5 "$work/make.log"
        fi ;;
    conformance) part 400 "$python" -B "$SRC/tests/conformance/run.py" "$toolchain" --target cuda --jobs "$(nproc)" --folder "$made" ;;
    esac
    rm -rf "$made"
}
for name in $suites; do
    wants "$name" || continue
    if [ ! -x "$python" ] && [ "$name" != families ] && [ "$name" != rows ]; then
        skipped=$((skipped + 1)); echo "skip $name: no Python environment with onnx and onnxruntime (tests/venv.sh)"
    elif [ $((end - SECONDS)) -lt 20 ]; then
        skipped=$((skipped + 1)); echo "skip $name: the time is up (GCC_PLAN_GPU_SECONDS)"
    else
        suite "$name"
    fi
done

plans=()
for name in $timed; do [ -e "$from/$name.greedy.plan" ] && plans+=("$from/$name.greedy.plan"); done
if wants timing && [ ${#plans[@]} -gt 0 ]; then
    echo
    echo "time per token at context 512"
    if command -v python3 >/dev/null; then
        part 360 python3 "$SRC/tests/bench/decode" --run "$run" --work "$work/bench" --contexts 512 --no-torch --no-verify "${plans[@]}"
    else
        skipped=$((skipped + ${#plans[@]})); echo "skip timing: no python3"
    fi
fi

echo
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda/compute-sanitizer/compute-sanitizer 2>/dev/null | head -n 1)
for name in $checked; do
    wants sanitizer || break
    plan=$from/$name.greedy.plan
    [ -e "$plan" ] || continue
    for tool in memcheck racecheck initcheck; do
        if [ -z "$sanitizer" ]; then
            skipped=$((skipped + 1)); echo "skip compute-sanitizer $tool $name: not installed"
        elif [ $((end - SECONDS)) -lt 20 ]; then
            skipped=$((skipped + 1)); echo "skip compute-sanitizer $tool $name: the time is up (GCC_PLAN_GPU_SECONDS)"
        elif timeout $((end - SECONDS)) "$sanitizer" --tool $tool --error-exitcode 9 "$run" "$plan" --target cuda \
            --prompt-bytes 'The king' --generate 8 >"$work/sanitizer" 2>&1; then
            passed=$((passed + 1)); echo "compute-sanitizer $tool $name: $(grep -a 'SUMMARY' "$work/sanitizer" | tail -n 1 | sed 's/^=* *//')"
        else
            failed=$((failed + 1)); echo "compute-sanitizer $tool $name FAILED"; grep -a '^=' "$work/sanitizer" | head -n 30
        fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
