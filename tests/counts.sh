# counts.sh - what suites begin with (source it): SRC, BUILD, WORK, GCC_PLAN and MODELS as tests/run.sh sets them, or their
# defaults; the counts, and the last line.
SRC=${SRC:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
BUILD=${BUILD:-$SRC/build}
WORK=${WORK:-$(mktemp -d)}
GCC_PLAN=${GCC_PLAN:-$BUILD/gcc-plan}
MODELS=${MODELS:-}
passed=0 failed=0 skipped=0
mkdir -p "$WORK"

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)) && echo "FAIL $1: $2"; }
skip() { skipped=$((skipped + 1)) && echo "skip $1: $2"; }
# finish: the last line, and the exit status; a suite that ran nothing fails.
finish() {
    [ $((passed + failed + skipped)) -gt 0 ] || failed=1
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
# needs_compiler NAME: without gcc-plan in this build the suite is skipped.
needs_compiler() {
    [ -x "$GCC_PLAN" ] && return
    skip "$1" "there is no gcc-plan in this build"
    finish
}
