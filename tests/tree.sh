#!/bin/bash
# tree.sh - checks on the source folder itself: every source file is built, every test file is run, scripts parse.
set -uo pipefail
cd "${SRC:?}" || exit 1
passed=0 failed=0
check() { # check NAME COMMAND...
    local name=$1 out; shift
    if out=$("$@" 2>&1); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name"; echo "$out"; fi
}
named_in_makefile() {
    local file missing=0
    for file in runtime/*.[ch] plans/*.[ch] compiler/*.[ch] compiler/ops/*.[ch] passes/*.[ch] codegen/*.[ch] \
        codegen/kernels/*.cu codegen/kernels/*.h tests/unit/*.c; do
        [ -e "$file" ] || continue
        case $file in tests/unit/*) file=${file%.c} ;; esac
        grep -qE "(^|[[:space:]])${file//./\\.}([[:space:]]|\$)" Makefile.am || { echo "$file is not named in Makefile.am"; missing=1; }
    done
    return $missing
}
scripts_parse() { local file bad=0; for file in .ci/run scripts/*.sh tests/*.sh; do [ ! -e "$file" ] || bash -n "$file" || bad=1; done; return $bad; }
pipes_read_to_the_end() { # under pipefail the writer's SIGPIPE would be a failure, now and then
    ! grep -nE '[^|(]\| *(grep +-[a-zA-Z]*[qm]|awk [^|]*\<exit\>|sed [^|]*[0-9$/]q\>)' .ci/run scripts/*.sh tests/*.sh tests/*/*.sh
}
kernels_ascii() { ! LC_ALL=C grep -n '[^ -~	]' codegen/kernels/*.cu codegen/kernels/*.h runtime/host_abi.h; }
kernels_own_names() { # what a template defines is undefined behind it: the next one in its module would lack what stands before all
    local both
    defined() { sed -n 's/^ *# *define *\([A-Za-z0-9_]*\).*/\1/p' "$@" | sort -u; }
    both=$(comm -12 <(defined codegen/kernels/{prelude,timers,tiles,wgmma,experts}.h) <(defined codegen/kernels/*.cu $(ls codegen/kernels/*.h | grep -vE '/(prelude|timers|tiles|wgmma|experts)\.h$')))
    [ -z "$both" ] || { echo "defined by a template and before it: $both"; return 1; }
}
kernel_parts() { # embed.awk: an include is as if the lines stood there, and one that is not there an error
    local embed="awk -f $PWD/codegen/embed.awk" said
    (
        cd "${WORK:?}" && mkdir -p plain parts || exit 1
        printf 'first\n#if A\n  second\n#endif\nlast\n' >plain/kernel.cu
        printf '#include "outer.h"\nlast\n#include "missing.h"\n' >parts/missing.cu
        sed '/missing/d' parts/missing.cu >parts/kernel.cu
        printf 'first\n#if A\n#include "inner.h"\n#endif\n' >parts/outer.h
        printf '  second\n' >parts/inner.h
        diff <($embed plain/kernel.cu) <($embed parts/kernel.cu) || exit 1
        said=$($embed parts/missing.cu 2>&1 >/dev/null) && { echo "no error without the part"; exit 1; }
        [ "$said" = "parts/missing.cu:3: parts/missing.h cannot be read" ] || { echo "$said"; exit 1; }
    )
}
small_files() { # a person reads them
    local file; for file in README.md HACKING.md; do [ "$(wc -l <$file)" -le 90 ] || { echo "$file has over 90 lines"; return 1; }; done
}
manual_functions() { # every public function of the header, and no other
    diff <(sed -n 's/^PLAN_API.*\b\(plan_[a-z_]*\)(.*/\1/p' runtime/plan.h | sort) \
         <(sed -n '/^.SH FUNCTIONS/,/^.SH SEE/s/^\(plan_[a-z_]*\)$/\1/p' doc/plan.3 | sort)
}
manual_names() { # versions of grep differ in what status -L gives
    local without
    without=$(grep -L '^.SH NAME' doc/*.[13])
    [ -z "$without" ] || { echo "$without: no section .SH NAME"; return 1; }
}
under_20_mb() { # what git has; a copy without git is not asked
    local bytes
    bytes=$(git ls-files -z 2>/dev/null | xargs -0 -r stat -c %s 2>/dev/null | awk '{ s += $1 } END { print s + 0 }')
    [ "$bytes" -le 20000000 ] || { echo "the tree has $bytes bytes; expected at most 20000000"; return 1; }
}
check "every source file is named in Makefile.am" named_in_makefile
check "every script parses" scripts_parse
check "no script pipes into a reader that stops early" pipes_read_to_the_end
check "kernel texts are ASCII" kernels_ascii
check "kernel templates have parts" kernel_parts
check "kernel templates define no name that stands before them" kernels_own_names
check "README and HACKING are short" small_files
check "plan.3 lists the functions of plan.h" manual_functions
check "the manual pages have a name section" manual_names
check "the tree is under 20 MB" under_20_mb
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
