#!/bin/sh
# Bad inputs: each case of tests/bad/cases.txt is run, and its exit code and every byte of stderr compared.
#
#   run_bad.sh [GCC_PLAN]            compare (default: $GCC_PLAN, then ./gcc-plan)
#   run_bad.sh --write [GCC_PLAN]    write the table anew from what gcc-plan says now; read the difference before keeping it
#
# The table: "case NAME", "run ARGUMENTS", "exit N", then stderr, each line after "| ".
set -u
here=$(cd "$(dirname "$0")" && pwd)
write=no
if [ "${1-}" = --write ]; then write=yes; shift; fi
plan=${1-${GCC_PLAN-./gcc-plan}}
case $plan in /*) ;; *) plan=$(pwd)/$plan ;; esac
if ! command -v python3 >/dev/null 2>&1; then echo "0 passed, 0 failed, 1 skipped"; exit 77; fi
if [ ! -x "$plan" ]; then echo "run_bad.sh: no program $plan" >&2; exit 1; fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
python3 "$here/make_bad.py" "$work/bad" || exit 1
cd "$work/bad" || exit 1
passed=0 failed=0

finish() {
    if [ -z "$name" ]; then return; fi
    # shellcheck disable=SC2086
    "$plan" $arguments -o "$work/out.plan" >"$work/stdout" 2>"$work/stderr"
    status=$?
    if [ $write = yes ]; then
        if [ "$status" -gt 2 ]; then echo "run_bad.sh: $name ends with $status" >&2; exit 1; fi
        printf 'case %s\nrun %s\nexit %s\n' "$name" "$arguments" "$status"
        sed 's/^/| /' "$work/stderr"
        return
    fi
    if [ "$status" = "$code" ] && cmp -s "$work/stderr" "$work/expected" && [ ! -e "$work/out.plan" ]; then
        passed=$((passed + 1))
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "not ok $name: exit $status, expected $code"
        diff "$work/expected" "$work/stderr"
        rm -f "$work/out.plan"
    fi
}

name=
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    'case '*) finish; name=${line#case }; : >"$work/expected" ;;
    'run '*) arguments=${line#run } ;;
    'exit '*) code=${line#exit } ;;
    '| '*) printf '%s\n' "${line#| }" >>"$work/expected" ;;
    '|') echo >>"$work/expected" ;;
    *) if [ $write = yes ]; then finish; name=; printf '%s\n' "$line"; fi ;;
    esac
done <"$here/bad/cases.txt"
finish
if [ $write = yes ]; then exit 0; fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
