#!/bin/bash
# run_rows.sh - rows of a batch with lengths of their own (gcc-plan --rows): a batch of three, of lengths 1, 17 and 300 (1, 7 and 24
# in models/families), gives what three sessions of one row give, at each step, whatever the other rows do: rest, are set back, are
# fed a prompt. Which exports allow it, and why the others do not, is in the tables below.
#   tests/run_rows.sh [--all] [--target host|cuda]    --all: runs every family that allows it; otherwise one of each kind of graph
# GCC_PLAN_CUDA lists the targets to compile for with --target cuda, which runs what is equal and no more (default sm_80,sm_90a,ptx).
set -uo pipefail
# shellcheck source=tests/counts.sh
. "$(dirname "$0")/counts.sh"
needs_compiler rows
families=${MODELS:+$MODELS/families}
all= target=host
while [ $# -gt 0 ]; do
    case $1 in
    --all) all=--all; shift ;;
    --target) target=${2:?a target}; shift 2 ;;
    *) fail "$1" "no such option"; finish ;;
    esac
done
code=$target
[ "$target" = host ] || code=${GCC_PLAN_CUDA:-sm_80,sm_90a,ptx}

${CC:-cc} -std=gnu11 -O1 -Wall -I"$SRC/runtime" -o "$WORK/rows_run" "$SRC/tests/rows_run.c" "$BUILD/.libs/libplan.a" -lpthread -ldl -lm ||
    { fail rows_run "it does not build"; finish; }

# equal MODEL_FOLDER CAPACITY TOLERANCE LENGTH LENGTH LENGTH; OPTIONS: more for the rows' plan
OPTIONS=()
equal() {
    local name options=(--target "$code" --capacity "$2" --quiet)
    name=$(basename "$1")
    if ! "$GCC_PLAN" "$1/model.onnx" -o "$WORK/one.plan" "${options[@]}" >"$WORK/out" 2>&1 ||
        ! "$GCC_PLAN" "$1/model.onnx" -o "$WORK/rows.plan" "${options[@]}" "${OPTIONS[@]}" --rows 3 >"$WORK/out" 2>&1 ||
        ! "$BUILD/plan-inspect" "$WORK/rows.plan" --check-proofs >"$WORK/out" 2>&1 ||
        ! "$BUILD/plan-inspect" "$WORK/rows.plan" --audit >"$WORK/out" 2>&1 ||
        ! "$WORK/rows_run" "$target" "$WORK/rows.plan" "$WORK/one.plan" "${@:3}" >"$WORK/out" 2>&1; then
        fail "$name" "$(tail -n 3 "$WORK/out")"
    else
        pass
        echo "$name, lengths ${*:4}: $(cat "$WORK/out")"
    fi
}
# allowed MODEL_FOLDER: it compiles with rows.
allowed() {
    if "$GCC_PLAN" "$1/model.onnx" --rows 3 --check --quiet >"$WORK/out" 2>&1; then pass; else fail "$(basename "$1")" "$(head -n 2 "$WORK/out")"; fi
}
# refused MODEL_FOLDER TEXT: a fault of this text, which names a node or a state, and a remedy.
refused() {
    local name
    name=$(basename "$1")
    if "$GCC_PLAN" "$1/model.onnx" --rows 3 --check --quiet >"$WORK/out" 2>&1; then
        fail "$name" "expected a refusal"
    elif grep -qF -- "$2" "$WORK/out" && grep -q '^  remedy: compile without --rows' "$WORK/out"; then
        pass
    else
        fail "$name" "expected <$2>, found <$(head -n 1 "$WORK/out")>"
    fi
}

for name in genai-int4-cpu genai-int4 mobius-default-f16; do equal "$SRC/models/bytes/$name" 512 2e-2 1 17 300; done
OPTIONS=(--logits last)
equal "$SRC/models/bytes/genai-int4-cpu" 512 2e-2 1 17 300
echo "signatures: {prefill_long: {}}" >"$WORK/ladder.yaml"
OPTIONS=(--recipe "$WORK/ladder.yaml")
equal "$SRC/models/bytes/genai-int4-cpu" 512 2e-2 1 17 300
OPTIONS=()
if [ "$target" != host ]; then
    [ -n "$families" ] && [ -d "$families" ] && for name in llama llama_cpu llama_static gemma3_text mixtral; do equal "$families/$name" 48 2e-2 1 7 24; done
    finish
fi
refused "$SRC/models/bytes/optimum-plain-f32" "state 'past_key_values.0.key': rows cannot have lengths of their own: node '/model/layers.0/self_attn/Concat_5' writes it also for rows that rest"

# apart TEXT ARGUMENT...: what does not go with rows, by its text.
apart() {
    if "$GCC_PLAN" "$SRC/models/bytes/mobius-default-f16/model.onnx" --rows 3 --check --quiet "${@:2}" >"$WORK/out" 2>&1; then
        fail "${*:2}" "expected a refusal"
    elif grep -qF -- "$1" "$WORK/out"; then pass; else fail "${*:2}" "expected <$1>, found <$(head -n 1 "$WORK/out")>"; fi
}
apart "--sample greedy has one row, --rows several" --sample greedy
apart "--sample draw has one row, --rows several" --sample draw
apart "--check-lengths has one length, --rows one for each row" --check-lengths
apart "--tune-candidates has one length, --rows one for each row" --tune-candidates
echo "sample: draw" >"$WORK/draw.yaml"
apart "model.onnx: sample: draw has one row, --rows several" --recipe "$WORK/draw.yaml"

[ -n "$families" ] && [ -d "$families" ] || { skip families "MODELS names no folder with them"; finish; }
# Caches that Attention appends to, GroupQueryAttention, TensorScatter; masks by comparison, by CumSum and Slice; experts; a cache that
# layers share; learned positions; 4 bits.
run="llama llama_cpu llama_static gemma3_text gemma4_text_cpu mixtral gpt2 genai_llama_int4_cuda"
allow="apertus chatglm cohere2 deepseek_v2 falcon gemma gemma2_cpu gemma4_text genai_llama_fp16_cuda genai_llama_fp32_cpu genai_llama_int4_cpu
    glm4 gpt2_cpu gpt_neox gptj granite llama_cuda_f16 llama_f16 llama_l3 llama_onnx_standard nemotron olmoe opt phi phi3_cpu phi3_cuda_f16
    qwen2 qwen2_moe qwen3 qwen3_cuda_f16 qwen3_moe qwen3_moe_static qwen3_static smollm3 stablelm starcoder2 starcoder2_cpu youtu"
for name in $run; do equal "$families/$name" 48 2e-2 1 7 24; done
for name in $allow; do if [ "$all" = --all ]; then equal "$families/$name" 48 2e-2 1 7 24; else allowed "$families/$name"; fi; done
why="rows cannot have lengths of their own:"
# Recurrent state: a step of one row would advance the others.
for name in bamba jamba nemotron_h qwen3_5_text qwen3_5_text_cpu qwen3_5_text_onnx_standard; do
    refused "$families/$name" "state 'past_key_values.0.conv_state': $why a step replaces it as a whole, also for rows that rest"
done
for name in mamba mamba2 mamba2_f16 mamba2_onnx_standard; do
    refused "$families/$name" "state 'past_states.0.conv_state': $why a step replaces it as a whole, also for rows that rest"
done
# Biases and positions that are counted from the length of the cache.
refused "$families/bloom" "node 'transformer/Range_node_14' (Range-11): $why 'v_transformer.Squeeze_12' is made of the position, which is one number for all rows"
refused "$families/falcon_alibi" "node 'transformer/Range_node_13' (Range-11): $why 'v_transformer.Squeeze_11' is made of the position, which is one number for all rows"
# Caches that Concat appends to, before an attention of single operators.
refused "$families/gpt_oss" "state 'past_key_values.0.key': $why node 'model/layers.0/self_attn/Concat_node_54' writes it also for rows that rest"
refused "$families/llama_qnn" "state 'past_key_values.0.key': $why node 'node_Concat_89' writes it also for rows that rest"
# The rotary factors follow the largest position in the batch.
refused "$families/phi3" "node 'model/rotary_emb/ReduceMax_node_1' (ReduceMax-18): $why it makes one result of all rows"
named="$run $allow bamba jamba nemotron_h qwen3_5_text qwen3_5_text_cpu qwen3_5_text_onnx_standard mamba mamba2 mamba2_f16 mamba2_onnx_standard
    bloom falcon_alibi gpt_oss llama_qnn phi3"
for model in "$families"/*/model.onnx; do
    name=$(basename "$(dirname "$model")")
    grep -qw -- "$name" <<<"$named" || fail "$name" "this suite says nothing of it"
done
finish
