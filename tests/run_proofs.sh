#!/bin/bash
# run_proofs.sh - plan-inspect --check-proofs and --audit: they accept every plan of models/bytes and of models/families, and
# reject plans in which one fact was changed, each for its reason. Plans are changed in their text form (mutate_plan.awk).
set -uo pipefail
# shellcheck source=tests/counts.sh
. "$(dirname "$0")/counts.sh"
inspect=$BUILD/plan-inspect
rejected=0
needs_compiler proofs

# accept NAME MODEL [OPTION...]: the plan stays in $WORK/NAME.plan when KEEP names it.
KEEP=" rows optimum-plain-f32 mobius-default-f16 genai-int4 mamba2_onnx_standard llama_static mamba2 "
accept() {
    local plan=$WORK/$1.plan option
    if ! "$GCC_PLAN" "$2" -o "$plan" --target host --quiet "${@:3}" >/dev/null 2>"$WORK/err"; then
        if grep -q 'No such file' "$WORK/err"; then skip "$1" "its weights are not here"; else fail "$1" "$(head -n 2 "$WORK/err")"; fi
        return
    fi
    for option in --check-proofs --audit; do
        if "$inspect" "$plan" $option >"$WORK/out" 2>&1; then pass; else fail "$1 $option" "$(grep -E '^FAIL|^unchecked|:' "$WORK/out" | head -n 3)"; fi
    done
    if grep -q ^unchecked "$WORK/out"; then fail "$1" "unchecked operators"; fi
    case $KEEP in *" $1 "*) ;; *) rm -f "$plan" ;; esac
}

# The text of a plan; its bytes of code and weights are zeros, for no check reads them.
text_of() {
    [ -e "$WORK/$1.txt" ] || "$inspect" "$WORK/$1.plan" --text |
        awk '/^(weights|code) / { print; if ($2 > 0) print "  zeros " $2; drop = 1; next } /^[a-z]/ { drop = 0 } !drop' >"$WORK/$1.txt"
}

# reject NAME OPTION EDITS PATTERN: exit status 1, and the first line that fails matches. OPTION+ for all lines.
reject() {
    local base=$1 option=$2 edits=$3 pattern=$4 status line
    if [ ! -e "$WORK/$base.plan" ]; then skip "$base $edits" "no such plan here"; return; fi
    text_of "$base"
    if ! awk -v edits="$edits" -f "$SRC/tests/mutate_plan.awk" "$WORK/$base.txt" "$WORK/$base.txt" >"$WORK/bad.txt" 2>"$WORK/err" ||
        ! "$inspect" --assemble "$WORK/bad.txt" -o "$WORK/bad.plan" 2>"$WORK/err"; then
        fail "$base $edits" "$(head -n 2 "$WORK/err")"
        return
    fi
    "$inspect" "$WORK/bad.plan" "$option" >"$WORK/out" 2>&1
    status=$?
    line=$(grep -m 1 -E '^(FAIL|unchecked)' "$WORK/out")
    if [ $status != 1 ]; then fail "$base $edits" "exit status $status, expected 1: $(head -n 1 "$WORK/out")"
    elif ! grep -qE -- "$pattern" <<<"$line"; then fail "$base $edits" "expected <$pattern>, found <$line>"
    else pass; rejected=$((rejected + 1)); fi
}

shopt -s nullglob
for model in "$SRC"/models/bytes/*/model.onnx; do accept "$(basename "$(dirname "$model")")" "$model"; done
accept rows "$SRC/models/bytes/mobius-default-f16/model.onnx" --rows 3
families=("$MODELS"/families/*/model.onnx)
if [ -z "$MODELS" ] || [ ${#families[@]} = 0 ]; then skip families "MODELS names no folder with them"; fi
for model in "${families[@]}"; do accept "$(basename "$(dirname "$model")")" "$model"; done

P="past_sequence_length" S="sequence_length"
plain() { reject optimum-plain-f32 --check-proofs "$@"; }
# An unchanged plan is accepted in this form too.
text_of optimum-plain-f32
"$inspect" --assemble "$WORK/optimum-plain-f32.txt" -o "$WORK/bad.plan" && "$inspect" "$WORK/bad.plan" --check-proofs >/dev/null && pass || fail unchanged "it is rejected"

# --- dims that one node contradicts
plain "dim|present.0.key|2|$P $S + 1 +" "Concat adds: output 0 dim 2: expected ($S \+ $P|$P \+ $S), found"
plain "dim|present.0.key|1|3" "Concat adds: output 0 dim 1: expected 2, found 3"
plain "dim|past_key_values.0.key|3|32" "Shape gives the dims: contents 3: expected 32, found 64"
plain "dim|@MatMul#1/out0|1|$P" "MatMul inner dims: output 0 dim 1"
plain "dim|@MatMul#2/in1|0|65" "MatMul inner dims: inner dims 0: expected 192, found 65"
plain "dim|@MatMul#2/in0|2|65" "output 0 dim 2: expected 192, found 65"
plain "dim|@Transpose#2/out0|1|$S" "Transpose permutes: output 0 dim 1"
plain "attr|@Transpose#2|perm=0,1,2,3" "Transpose permutes: output 0 dim 1"
plain "attr|@Transpose#2|perm=0,1,1,3" "a permutation of the axes"
plain "dim|@Reshape#12/out0|2|63" "Reshape keeps the product: elements 0"
plain "dim|@Softmax#1/out0|3|$P" "the input's shape: output 0 dim 3"
plain "dim|@Where#2/out0|0|7" "value '/model/rotary_emb/Where_output_0': contents: expected 7 elements, found 3"
plain "dim|@Unsqueeze#1/out0|0|2" "Unsqueeze adds dims of 1: output 0 dim 0"
plain "dim|@ReduceMean#1/out0|2|64" "reduced axes become 1 or go: output 0 dim 2: expected 1"
plain "dim|@Range#1/out0|0|$P" "Range counts its steps: output 0 dim 0"
plain "dim|@Gather#1/out0|1|$P" "Gather replaces an axis: output 0 dim 1"
plain "dim|@Flatten#1/out0|0|3" "Flatten keeps the product: output 0 dim 0"
plain "attr|@Concat#52|axis=1" "Concat adds: inputs: expected an axis inside the rank"
plain "attr|@Concat#52|axis=9" "an axis inside the rank"
# --- integer contents
plain "content|@Shape#1/out0|1|$S 1 +" "Shape gives the dims: contents 1"
plain "content|@Gather#2/out0|0|$S 1 +" "Gather replaces an axis: contents 0"
plain "content|@Add#1/out0|0|$P" "dims are equal or 1: contents 0: expected"
plain "content|@Concat#52/out0|1|$P" "Concat adds: contents 1: expected $S, found $P"
plain "dim|onnx::Unsqueeze_523|0|2" "value 'onnx::Unsqueeze_523': contents: expected 2 elements, found 1"
# --- order: facts that would prove themselves
plain "link|@Add#1/in0|@Add#1/out0" "order: inputs: expected values that are made before"
plain "link|@Cos#1/out0|@Sin#1/out0" "\(Mul-7\): order: inputs: expected values that are made before, found one that is not"
# --- an operator without a rule: only where something grows
plain "set|graph_nodes[5]|op|\"Foo-1\";set|nodes[5]|op|\"Foo-1\";set|nodes[785]|op|\"Foo-1\"" "^unchecked Foo-1: dims of 1 outputs, contents of 1; a growing dim passes through"
# --- symbols, the step map
plain "set|symbols[$P]|symbol_class|fixed" "symbol '$P': step map: expected growing, for a step changes it, found fixed"
plain "expr|steps[0]|$P" "symbol '$P': step map: expected one step in all signatures, found another in prefill"
plain "expr|steps[0]|$P 2 +" "step map: expected one step in all signatures, found another in prefill"
plain "set|symbols[$S]|symbol_class|growing" "symbol '$S': step map: expected a step that changes it"
plain "set|steps[0]|slot|1;set|steps[1]|slot|1" "symbol '$S': step map: expected growing"
plain "expr|steps[0]|$P 1 +;expr|steps[1]|$P 1 +" "state pair: the output's dims are the input's after a step: dim 2"
plain "expr|symbols[2]|$P" "dims are equal or 1: output 0 dim 1: expected $P, found ($S \+ $P|$P \+ $S)"
plain "set|symbols[2]|symbol_class|fixed" "class: expected an expression exactly when it is derived"
# --- states and bindings
plain "set|states[0]|growing_axis|1" "growing axis: expected 2, found 1"
plain "set|states[0]|growing_axis|none" "growing axis: expected 2, found none"
plain "set|states[0]|output|\"logits\"" "state 'past_key_values.0.key': state pair"
plain "expr|dims[2]|$S" "state 'past_key_values.0.key': the session's dims are the graph's: dim 2"
plain "expr|dims[33]|$P" "binding 'input_ids': its dims are the graph's: dim 1"
plain "set|dims[2]|upper|1000;set|states[0]|bytes|520000" "capacity: expected at least 524288 bytes for its output, found 520000"
# --- signatures: boxes, classes, buffers
plain "set|boxes[2]|hi|5000;set|model[0]|capacity|6000" "buffer '/model/Cast_2_output_0': expected at least 5001 bytes for the upper bounds"
plain "set|boxes[4]|hi|65" "buffer 'input_ids': expected at least 520 bytes for the upper bounds"
plain "set|values[present.0.key]|symbol_class|fixed" "growing exactly when its dims or contents are: expected growing, found fixed"
plain "set|values[logits]|symbol_class|growing" "growing exactly when its dims or contents are: expected fixed, found growing"
plain "set|buffers[logits]|bytes|1023" "buffer 'logits': expected at least 1024 bytes"
plain "set|nodes[3]|name|\"other\"" "signature 'decode': nodes: expected .*found 'other'"
# --- operators with a cache or a state
reject mobius-default-f16 --check-proofs "dim|@Attention#1/out1|2|1" "Attention: present = past \+ new: output 1 dim 2"
reject mobius-default-f16 --check-proofs "attr|@Attention#1|q_num_heads=7 kv_num_heads=2" "Attention: present = past \+ new: output 0 dim 2: expected 448, found 256"
reject mobius-default-f16 --check-proofs "dim|@RotaryEmbedding#1/out0|1|3" "the input's shape: output 0 dim 1"
reject mobius-default-f16 --check-proofs "dim|@Attention#1/in3|3|batch" "Unsqueeze adds dims of 1: output 0 dim 3: expected .*, found batch"
reject genai-int4 --check-proofs "dim|@com.microsoft::GroupQueryAttention#1/out1|2|1" "GroupQueryAttention: present = past \+ new: output 1 dim 2"
reject genai-int4 --check-proofs "attr|@com.microsoft::MatMulNBits#1|K=96 N=512 bits=4 block_size=32" "MatMulNBits K and N: scales, elements 0: expected 1536, found 3072"
reject genai-int4 --check-proofs "dim|@Split#1/out1|2|63" "Split by its contents: output 1 dim 2"
reject mamba2_onnx_standard --check-proofs "attr|@gcc-plan::LoopExit#1|loop=9 states=1 input_axes=0 output_axes=0" "a loop"
reject mamba2_onnx_standard --check-proofs "dim|@gcc-plan::LoopExit#1/out0|1|77" "a loop keeps its states"
reject mamba2_onnx_standard --check-proofs "dim|@Conv#1/out0|2|77" "Conv windows: output 0 dim 2"
reject llama_static --check-proofs "dim|@TensorScatter#1/out0|2|49" "TensorScatter keeps the cache's shape: output 0 dim"
reject mamba2 --check-proofs "dim|@com.microsoft::CausalConvWithState#1/out1|2|9" "CausalConvWithState: .*output 1 dim 2"
reject mamba2 --check-proofs "dim|@com.microsoft::LinearAttention#1/out1|1|9" "LinearAttention: .*output 1 dim 1"

# --- rows with lengths of their own
reject rows --check-proofs "set|states[0]|update|copied" "state 'past_key_values.0.key': rows: expected a node that writes rows that are fed, alone, found another"
reject rows --check-proofs "set|bindings[attention_mask]|feed|caller" "binding 'attention_mask': rows: expected no axis that grows, found one"
reject rows --check-proofs "set|model[0]|token_binding|none" "model 'model.onnx': rows: expected a decode signature whose tokens have as many rows, and a position, found none"
reject rows --check-proofs "attr|@RMSNormalization#1|axis=0 epsilon=1e-06 stash_type=1" "node '.*RMSNormalization_node_13': rows: expected that each row keeps to itself and to its length, found one that works along the axis of the rows"
# Of the first launch that appends: operand 5 of kv_append, the words that say which rows are fed.
text_of rows
first=$(sed -n 's/^launches\[.*append" arg=\([0-9]*\) .*/\1/p' "$WORK/rows.txt" | head -n 1)
reject rows --check-proofs "set|args[$((first + 5))]|value|0x0" "launch '.*append': rows: expected the words of the rows among its arguments, found none, though it writes a state"

# --- the audit: a kernel that reads a length from a launch argument, and other breaches
audit() { reject optimum-plain-f32 --audit "$@"; }
audit "set|args[1]|kind|i64;set|args[1]|region|weights;set|args[1]|value|0x40" "extents on the device: expected no length among the arguments, found that argument . is the number 64"
audit "set|args[1]|kind|iteration;set|args[1]|region|weights;set|args[1]|value|0x1" "extents on the device: expected the extents table beside an iteration number"
audit "set|args[0]|region|io;set|args[0]|value|0x300" "named places: expected an access for argument 0"
audit "set|accesses[1]|offset|1" "named places: expected one buffer with io\+0x1, 8 bytes, alive there"
audit "set|accesses[0]|mode|write" "named places: expected no write to region weights, found one"
audit "set|edges[0]|to|150" "order: expected a path of edges"
audit "set|accesses[2]|mode|read" "life: expected arena\+0x[0-9a-f]* written before"
# Only where the models of MODELS are here are all of them tried.
echo "$rejected mutated plans rejected"
[ "$skipped" -gt 0 ] || [ $rejected -ge 30 ] || fail "mutated proofs" "expected 30 or more that are rejected, found $rejected"
finish
