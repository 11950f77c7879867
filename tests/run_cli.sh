#!/bin/bash
# run_cli.sh - the three programs as a person uses them: usage, exit status, one plan by several ways, the committed decoder's text.
set -uo pipefail
passed=0 failed=0 skipped=0
cd "$WORK" || exit 1
gcc_plan=$BUILD/gcc-plan inspect=$BUILD/plan-inspect run=$BUILD/plan-run
model=$SRC/models/bytes/mobius-default-f16/model.onnx
check() { # check NAME COMMAND...
    local name=$1 out; shift
    if out=$("$@" 2>&1); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name"; echo "$out" | tail -n 12; fi
}
skip() { skipped=$((skipped + 1)); echo "skip $1: $2"; }
status_is() { # status_is STATUS COMMAND...
    local want=$1 got; shift
    "$@"; got=$?
    [ "$got" -eq "$want" ] || { echo "exit status: expected $want, found $got"; return 1; }
}
for program in gcc-plan plan-inspect plan-run; do
    check "$program --version" status_is 0 "$BUILD/$program" --version
    check "$program --help" status_is 0 "$BUILD/$program" --help
    check "$program without arguments is wrong usage" status_is 2 "$BUILD/$program"
    check "$program with an unknown option is wrong usage" status_is 2 "$BUILD/$program" --no-such-option
done
check "gcc-plan with a missing file" status_is 1 "$gcc_plan" no-such-file -o x.plan
check "plan-inspect with a missing file" status_is 1 "$inspect" no-such-file
check "plan-run with a missing file" status_is 1 "$run" no-such-file --target host --generate 1 --prompt-bytes x
documented() { # every option that --help names is in the manual page
    local option missing=0
    for option in $("$BUILD/$1" --help | grep -oE '^ *--[a-z-]+' | tr -d ' '); do
        [ "$option" = --help ] || grep -qF -- "${option//-/\\-}" "$SRC/doc/$1.1" || { echo "$option is not in doc/$1.1"; missing=1; }
    done
    return $missing
}
for program in gcc-plan plan-inspect plan-run; do check "the manual page has all options of $program" documented "$program"; done

check "gcc-plan --emulate-gpu without the host is wrong usage" status_is 2 "$gcc_plan" "$model" -o x.plan --target sm_90a,ptx --emulate-gpu
operators() { "$gcc_plan" --ops | diff "$SRC/doc/operators.txt" -; }
check "doc/operators.txt is what --ops prints" operators

# One input, one plan: whatever the folder, the number of threads, or the detour through text.
check "compile" "$gcc_plan" "$model" -o a.plan --target host --sample greedy --threads 1
[ -e a.plan ] || { echo "$passed passed, $((failed + 1)) failed, $skipped skipped"; exit 1; }
other_folder() { mkdir -p other/place && cp "$model" "$model.data" other/place/ && cd other/place && "$gcc_plan" model.onnx -o b.plan --target host --sample greedy --threads 2 &&
    cmp b.plan "$WORK/a.plan"; }
check "2 threads and another folder give the same bytes" other_folder
through_text() { "$inspect" a.plan --text >a.txt && "$inspect" --assemble a.txt -o c.plan && cmp a.plan c.plan; }
check "the text form assembles to the same bytes" through_text
recipe() { "$gcc_plan" "$model" --print-recipe >a.yaml && "$gcc_plan" "$model" -o d.plan --target host --sample greedy --recipe a.yaml && cmp a.plan d.plan; }
check "the printed recipe gives the same plan" recipe
one_segment() { "$inspect" a.plan --require-single-segment && "$inspect" a.plan | grep -E '^decode +1 segment, [0-9]+ launches, 0 seams'; }
check "decode is one segment" one_segment
audit() { "$inspect" a.plan --audit | tail -n 1; "$inspect" a.plan --audit >audit.txt && grep -qx 'the contract holds for every launch' audit.txt; }
check "--audit of a plan with a sampling tail" audit
why() { "$inspect" a.plan --why attention_mask | tee why.txt; grep -q growing why.txt && grep -q 'present' why.txt; }
check "--why attention_mask leads from the state pairs to its class" why
json() { "$inspect" a.plan --json | "$PYTHON" -m json.tool >/dev/null; }
if [ -n "$PYTHON" ]; then check "--json is JSON" json; else skip "--json is JSON" "no Python environment"; fi

# A network that is no decoder: whatever is asked of plan-run, it says so.
network() {
    local option
    "$PYTHON" -c 'import onnx.helper as h, onnx; t = lambda n: h.make_tensor_value_info(n, 1, [2, 3])
onnx.save(h.make_model(h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", [t("x")], [t("y")]), opset_imports=[h.make_opsetid("", 21)]), "relu.onnx")' &&
        "$gcc_plan" relu.onnx -o relu.plan --target host --quiet || return 1
    for option in --bench --check-capture --check-growth --endurance=10 --generate=3 --tune=relu.tune --verify=.; do
        status_is 1 "$run" relu.plan --target host "$option" >relu.txt 2>&1 && grep -qF "expected the plan of a decoder, with the step 'decode', found 'main'" relu.txt ||
            { echo "$option"; cat relu.txt; return 1; }
    done
}
if [ -n "$PYTHON" ]; then check "a network without a step is refused by name" network; else skip "a network without a step" "no Python environment"; fi

text() { "$run" a.plan --target host --prompt-bytes 'The king' --generate 64 >out.txt 2>err.txt; cat out.txt err.txt; grep -qF ' of England and the rest.' out.txt; }
check "generated text is the golden text" text
same_eager() { "$run" a.plan --target host --prompt-bytes 'The king' --generate 64 --eager >eager.txt && diff <(grep -av 'graph launches' out.txt | grep -av ' us' ) <(grep -av 'graph launches' eager.txt | grep -av ' us'); }
check "eager launches give the same text" same_eager
steady() { grep -aE '64 graph launches, 0 copies, 0 synchronisations' out.txt err.txt; }
check "64 tokens cost 64 graph launches and no host work" steady
bench() { "$run" a.plan --target host --bench --context 64 | tee bench.txt; grep -q median bench.txt; }
check "--bench" bench
loaded() { grep -E '^load [0-9.e+-]+ s \(weights [0-9.]+ [KM]B, [0-9.e+-]+ GB/s\)   warm [0-9.e+-]+ ms   capture [0-9.e+-]+ ms$' bench.txt; }
check "--bench says how long loading took" loaded
"$gcc_plan" "$model" -o short.plan --target host --sample draw --capacity 64 --quiet
endurance() { "$run" short.plan --target host --endurance 100 --temperature 1 --seed 1 | tee endurance.txt; grep -q '^100 steps, 3 times back to the start' endurance.txt &&
    grep -E '^memory before and after: device ([0-9]+) and \1 bytes, 0 allocations between; host ([0-9]+) and \2 bytes$' endurance.txt; }
check "100 steps take no memory" endurance

refused() { # refused TEXT COMMAND...: exit 1, and the message holds TEXT
    local text=$1 out; shift
    out=$("$@" 2>&1); [ $? -eq 1 ] || { echo "$out"; return 1; }
    [[ $out == *"$text"* ]] || { echo "$out"; return 1; }
}

# Tuning: a plan with all candidates is timed, what was found is a file, and a file decides.
tune() { "$gcc_plan" "$model" -o tune.plan --target host --capacity 256 --prefill 8 --tune-candidates --quiet && "$run" tune.plan --target host --tune tune.txt --context 8 &&
    grep -E '^attention_splits/[^ ]*,rows=256,f16 (1|2|4|8|16) # 1: [0-9.e+]+ us 2: [0-9.e+]+ us 4: [0-9.e+]+ us 8: [0-9.e+]+ us 16: [0-9.e+]+ us$' tune.txt; }
check "--tune writes the fastest value of each choice" tune
splits() { "$inspect" "$1" | awk '$2 ~ /^attention_[0-9]/ && !found++ { print $3 }'; } # grid of decode's first attention
tuned() { sed -nE 's/^(attention[^ ]+) [0-9]+ #.*/\1 2/p' tune.txt >two.txt && sed 's/ 2$/ 8/' two.txt >eight.txt &&
    "$gcc_plan" "$model" -o two.plan --target host --capacity 256 --prefill 8 --tuning two.txt --quiet &&
    "$gcc_plan" "$model" -o eight.plan --target host --capacity 256 --prefill 8 --tuning eight.txt --quiet &&
    splits two.plan && splits eight.plan && [[ $(splits two.plan) == 2,* && $(splits eight.plan) == 8,* ]]; }
check "--tuning decides" tuned
tuning_refused() { printf '%b' "$1" >bad.txt; refused "$2" "$gcc_plan" "$model" --check --quiet --capacity 256 --tuning bad.txt; }
key=$(awk '/^attention/ { print $1 }' tune.txt)
check "a tuning file with a value that is none" tuning_refused "\n$key 3\n" "bad.txt:2: key '$key': expected one of 1, 2, 4, 8, 16, found 3"
check "a tuning file with a bad line" tuning_refused 'key\n' "bad.txt:1: expected a key, a blank and an integer, found 'key'"
check "a tuning file with a key twice" tuning_refused 'a 1\na 2\n' "bad.txt:2: key 'a' stands in line 1 already"
check "no tuning file" refused "nothing.txt: the tuning file cannot be read" "$gcc_plan" "$model" --check --quiet --tuning nothing.txt
check "--tune of a plan without candidates" refused "it has no choices to time; compile with gcc-plan --tune-candidates" "$run" two.plan --target host --tune x.txt

pinned_prefill() { printf 'signatures:\n  prefill: {sequence_len: 2}\n' >two.yaml && "$gcc_plan" "$model" -o two.plan --target host --sample greedy --recipe two.yaml --quiet &&
    "$run" two.plan --target host --prompt-bytes 'The king ' --generate 24 | tee two.txt; grep -qF 'of England' two.txt; }
check "a prefill of exactly two tokens, and a prompt of nine" pinned_prefill

# What contradicts the model, or would destroy a file, is refused by name.
recipe_refused() { printf '%b' "$1" >bad.yaml; refused "$2" "$gcc_plan" "$model" --check --quiet --recipe bad.yaml; }
check "a feed of the wrong rank" recipe_refused 'feeds: {position_ids: length}\n' "bad.yaml:1:9: input 'position_ids' cannot be fed by 'length'; expected i64 or i32 of rank 0 or 1"
check "a feed of the wrong length" recipe_refused 'feeds: {position_ids: ones}\n' "input 'position_ids': is fed with ones up to the present extent"
check "decode of two tokens" recipe_refused 'signatures:\n  decode: {sequence_len: 2}\n' "signature 'decode': tokens 2..2; expected one token a step"
check "a batch of none" recipe_refused 'symbols: {batch: 0}\n' "symbol 'batch': 0 to 0; expected 1 or more"
check "a capacity beyond all bounds" refused "capacity 2147483647; expected below 1073741824" "$gcc_plan" "$model" --check --capacity 2147483647
mkdir -p own && cp "$model" "$model.data" own/ && cp a.yaml own/ && ln -sf nowhere own/link.plan && cp a.txt own/
check "-o on the model" refused "would overwrite the model; expected another file" "$gcc_plan" own/model.onnx -o own/model.onnx
check "-o on the weights" refused "would overwrite the model's weights" "$gcc_plan" own/model.onnx -o own/model.onnx.data
check "-o on the recipe" refused "would overwrite the recipe" "$gcc_plan" own/model.onnx --recipe own/a.yaml -o own/a.yaml
check "-o on a link" refused "expected a regular file or none" "$gcc_plan" own/model.onnx -o own/link.plan --target host
check "--assemble onto its text" refused "would overwrite the text" "$inspect" --assemble own/a.txt -o own/a.txt
check "the files are as they were" cmp own/model.onnx "$model"
ids_refused() { echo "$1" >ids; refused "$2" "$run" a.plan --target host --prompt-ids ids --generate 2; }
check "a token beyond the vocabulary" ids_refused 256 "token 0: expected 0 or more and below 256, found 256"
check "a token that is no int64" ids_refused 99999999999999999999 "ids: expected token ids"

# Nothing half-written.
no_room() { ! (ulimit -f 64; trap '' XFSZ; "$gcc_plan" "$model" -o full/x.plan --target host) && [ -z "$(ls -A full)" ]; }
mkdir -p full
check "a full disk leaves no file and is an error" no_room
no_folder() { status_is 1 "$gcc_plan" "$model" -o no/such/folder/x.plan --target host; }
check "a missing output folder is an error" no_folder
flipped() { "$PYTHON" -c 'd = bytearray(open("a.plan", "rb").read()); d[len(d) // 2] ^= 1; open("bad.plan", "wb").write(d)' &&
    status_is 1 "$run" bad.plan --target host --prompt-bytes x --generate 1 && status_is 1 "$inspect" bad.plan; }
if [ -n "$PYTHON" ]; then check "a flipped byte is refused" flipped; else skip "a flipped byte is refused" "no Python environment"; fi
too_long() { status_is 1 "$run" a.plan --target host --prompt-bytes 'The king' --generate 2000 >long.txt 2>&1; cat long.txt; grep -qF "the state holds 1024 rows" long.txt; }
check "generation beyond the capacity is an error that says so" too_long
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
