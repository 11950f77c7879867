#!/bin/bash
# run_timers.sh - gcc-plan --timers on the host target: what such a plan is, what its blocks stamp, and plan-run's table of it.
set -uo pipefail
passed=0 failed=0 skipped=0
cd "$WORK" || exit 1
gcc_plan=$BUILD/gcc-plan inspect=$BUILD/plan-inspect run=$BUILD/plan-run
model=$SRC/models/bytes/genai-int4/model.onnx
check() { # check NAME COMMAND...
    local name=$1 out; shift
    if out=$("$@" 2>&1); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name"; echo "$out" | tail -n 12; fi
}
skip() { skipped=$((skipped + 1)); echo "skip $1: $2"; }
refused() { # refused STATUS TEXT COMMAND...
    local want=$1 text=$2 said status; shift 2
    said=$("$@" 2>&1 >/dev/null); status=$?
    [ $status = "$want" ] && grep -qF -- "$text" <<<"$said" || { echo "status $status: $said"; return 1; }
}
stamps() { # stamps WAY PLAN FILE...: counts the lines of stamps_run
    local line
    while IFS= read -r line; do
        case $line in
        "ok "*) passed=$((passed + 1)) ;;
        "not ok "*) failed=$((failed + 1)); echo "FAIL $1 ${2##*/}: ${line#not ok }" ;;
        *) echo "    $line" ;;
        esac
    done < <(./stamps_run "$@" || echo "not ok stamps_run fails")
}
check "compile the program" "${CC:-cc}" -std=gnu11 -O1 -Wall ${GCC_PLAN_SANITIZE:-} -I"$SRC/runtime" -o stamps_run "$SRC/tests/stamps_run.c" "$BUILD/.libs/libplan.a" -lpthread -ldl -lm
check "compile" "$gcc_plan" "$model" -o plain.plan --target host --sample greedy --quiet
check "compile with --timers" "$gcc_plan" "$model" -o timed.plan --target host --sample greedy --quiet --timers
check "and as for a GPU" "$gcc_plan" "$model" -o emulated.plan --target host --sample greedy --quiet --timers --emulate-gpu --capacity 64 --prefill 8

# The plan.
options() { grep -q 'options .* timers' <<<"$("$inspect" timed.plan)" && ! grep -q timers <<<"$("$inspect" plain.plan)"; }
check "the summary says it, of this plan alone" options
text() { "$inspect" timed.plan --text >timed.txt && "$inspect" --assemble timed.txt -o same.plan && cmp timed.plan same.plan && grep -q 'kind=timers' timed.txt; }
check "the text form assembles to the same bytes" text
no_trace() { "$inspect" plain.plan --text >plain.txt && ! grep -q timers plain.txt; }
check "without --timers nothing is left of it" no_trace
contract() { "$inspect" "$1" --audit >audit.txt && grep -qx 'the contract holds for every launch' audit.txt && ! grep 'pointers, a number' audit.txt; }
for plan in timed emulated; do check "the audit of $plan.plan" contract $plan.plan; done
stray() { awk '/kind=timers/ && !done { sub(/value=0x[0-9a-f]*/, "value=0x100"); done = 1 } 1' timed.txt >stray.txt && "$inspect" --assemble stray.txt -o stray.plan &&
    ! "$inspect" stray.plan --audit >audit.txt && grep -q 'named places: expected an access for argument' audit.txt; }
check "the audit finds records in another buffer" stray
edges() { # of a decoder whose launches are no chain
    local other=$SRC/models/bytes/mobius-default-f16/model.onnx
    "$gcc_plan" "$other" --target host --dump segment >segment.txt && "$gcc_plan" "$other" --target host --dump segment --timers | diff segment.txt - && grep -q ' -> ' segment.txt
}
check "launches wait for each other as they do without" edges
tokens() { "$run" "$1" --target host --prompt-bytes 'The king' --generate 32 --text-output raw 2>/dev/null; }
same_tokens() { [ -n "$(tokens timed.plan)" ] && [ "$(tokens timed.plan)" = "$(tokens plain.plan)" ]; }
check "tokens are the same" same_tokens
capture() { "$run" timed.plan --target host --check-capture; }
check "captured is eager" capture

# The stamps.
for plan in timed emulated; do stamps decoder $plan.plan; done
stamps plain plain.plan
if [ -n "$PYTHON" ]; then
    control='import sys, control_models as c; case = [x for x in c.cases() if x.name == "if_node"][0]; open("if.onnx", "wb").write(case.model.SerializeToString()); case.runs[0]["x"].tofile("x.bin"); [r["cond"].tofile("cond_%d.bin" % r["cond"].item()) for r in case.runs]'
    check "a network with an If" env PYTHONPATH="$SRC/tests" "$PYTHON" -B -c "$control"
    for way in node seam; do
        check "compile it ($way)" "$gcc_plan" if.onnx -o if_$way.plan --target host --quiet --timers --conditions=$way
        stamps branch if_$way.plan x.bin cond_1.bin cond_0.bin
    done
else skip "a network with an If" "no Python environment"; fi

# plan-run. With one step the phases of the table add up to it, but for what is rounded.
bench() { "$run" "$@" --target host --bench --timers --context 40 --warmup 2; }
bench timed.plan --iterations 1 >one.txt
bench timed.plan --iterations 5 >five.txt
rows() { awk '$1 == "kernel" { table = 1; next } table' "$1"; }
launches=$("$inspect" timed.plan | sed -n 's/^decode .* \([0-9]*\) launches.*/\1/p')
times() { [ "$(rows one.txt | awk '{ n += $2 } END { print n }')" = "$launches" ]; }
check "the table has all launches" times
heading() { grep -qE '^timers are on, and cost time: with them a step takes [0-9.e+]+ us ' one.txt && grep -qE '^medians of 1 steps' one.txt && grep -qE '^medians of 5 steps' five.txt; }
check "it says what a step takes, and of how many" heading
shares() { rows five.txt | awk '{ sum += $5 } END { print (sum > 99 && sum < 101 ? "" : sum) }' | grep -x ''; }
check "shares add up" shares
ends() { ! rows five.txt | awk '$7 > $8 || $8 > $9 || $11 < 1 || $12 < 1 || $12 > $11 || $13 > $11 || $12 * $13 < $11' | grep .; }
check "first, median, last; blocks on threads" ends
grid=$("$inspect" timed.plan | awk '$2 ~ /^attention_one/ { split($3, g, ","); print g[1] * g[2] }' | sort -u)
idle() { rows one.txt | awk -v grid="$grid" '/^attention_one/ { print ($11 < grid ? "fewer" : $11) }' | grep -x fewer; } # position 40: not all cuts have keys
check "blocks without work do not count" idle
json() { "$run" timed.plan --target host --bench --timers --profile --context 40 --warmup 0 --iterations 1 --json | tee json.txt; "$PYTHON" -B -c '
import json
whole = json.load(open("json.txt"))
t = whole["timers"]
assert sum(k["times"] for k in whole["profile"]) == '"$launches"' and all(k["us"] > 0 for k in whole["profile"])
us = sum(k["us"] for k in t["kernels"])
assert t["steps"] == 1 and abs(us - t["step_us"]) < 1e-5 * us, (us, t["step_us"])
assert us <= t["span_us"] * 1.001 and sum(k["times"] for k in t["kernels"]) == '"$launches"'
assert all(abs(k["last_us"] + k["edge_us"] - k["phase_us"]) < 1e-5 * us for k in t["kernels"] if k["times"] == 1)'; }
if [ -n "$PYTHON" ]; then check "JSON, whose phases add up to the step" json; else skip "JSON" "no Python environment"; fi
check "a plan without timers" refused 1 "plain.plan: stamps: the plan has no timers; compile it with gcc-plan --timers" bench plain.plan
check "--timers without --bench" refused 2 "plan-run: --timers is part of --bench" "$run" timed.plan --target host --timers --generate 1 --prompt-bytes x
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
