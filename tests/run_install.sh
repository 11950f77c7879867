#!/bin/bash
# run_install.sh - `make install` into a folder, then a program that knows only plan.h and plan.pc.
set -uo pipefail
passed=0 failed=0 skipped=0
check() { # check NAME COMMAND...
    local name=$1 out; shift
    if out=$("$@" 2>&1); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name"; echo "$out" | tail -n 12; fi
}
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" -eq 0 ]; exit; }
root=$WORK/root
check "make install" make -s -C "$BUILD" AM_MAKEFLAGS=--no-print-directory install DESTDIR="$root"
pc=$(find "$root" -name plan.pc | head -n 1)
[ -n "$pc" ] || { echo "FAIL plan.pc is not installed"; failed=$((failed + 1)); finish; }
lib=$(dirname "$(dirname "$pc")")
bin=$(dirname "$lib")/bin
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$(dirname "$pc")
cflags=$(pkg-config --cflags plan) libs=$(pkg-config --libs plan)
sanitize=
case $(grep '^SANITIZE_CFLAGS = ' "$BUILD/Makefile") in *fsanitize*) sanitize=1 ;; esac

soname() { grep -q 'SONAME.*\[libplan\.so\.0\]' <<<"$(readelf -d "$lib/libplan.so")"; }
needs_libc_only() {
    local bad
    bad=$(readelf -d "$lib/libplan.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so|ld-linux|libdl\.so|libpthread\.so|libm\.so)')
    [ -z "$bad" ] || { echo "libplan needs $bad"; return 1; }
}
exports() { # exactly the functions of plan.h
    nm -D --defined-only "$lib/libplan.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | grep -v '^__\|^_init$\|^_fini$' | sort >"$WORK/exported"
    "${CC:-cc}" -E "$SRC/runtime/plan.h" | grep -oE '\bplan_[a-z_0-9]+\(' | tr -d '(' | sort -u >"$WORK/declared"
    diff "$WORK/declared" "$WORK/exported"
}
header_alone() { printf '#include <plan.h>\nint main(void) { return plan_version()[0] == 0; }\n' >"$WORK/alone.$1"
    "${@:2}" -Wall -Werror $cflags "$WORK/alone.$1" -o "$WORK/alone" $libs -Wl,-rpath,"$lib" && "$WORK/alone"; }
check "the soname" soname
if [ -z "$sanitize" ]; then
    check "the library needs libc alone" needs_libc_only
    check "exported are the functions of plan.h, no more" exports
    check "plan.h compiles alone as C" header_alone c ${CC:-cc} -std=c11 -pedantic
    if command -v c++ >/dev/null; then check "plan.h compiles alone as C++" header_alone cc c++; else skipped=$((skipped + 1)); echo "skip plan.h as C++: no C++ compiler"; fi
    if [ -x "$bin/gcc-plan" ]; then
        check "the installed compiler compiles the committed decoder" \
            "$bin/gcc-plan" "$SRC/models/bytes/mobius-default-f16/model.onnx" -o "$WORK/model.plan" --target host --sample greedy
        for file in "$SRC"/examples/*.c; do
            [ -e "$file" ] || continue
            name=$(basename "$file" .c)
            check "example $name against plan.pc" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror $cflags "$file" -o "$WORK/$name" $libs -Wl,-rpath,"$lib"
            check "example $name runs" timeout 300 "$WORK/$name" "$WORK/model.plan" 'The king'
            check "example $name against libplan.a" "${CC:-cc}" -std=c11 $cflags "$file" -o "$WORK/$name-static" \
                "$lib/libplan.a" $(pkg-config --static --libs-only-other --libs-only-l plan | sed 's/-lplan//') -lpthread -ldl
        done
    fi
else
    skipped=$((skipped + 6)); echo "skip install: the library is built with sanitizers, so programs without them cannot be linked to it"
fi
check "plan-run --version" "$bin/plan-run" --version
check "plan-inspect --version" "$bin/plan-inspect" --version
finish
