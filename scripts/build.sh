#!/bin/bash
# build.sh - all set-up: installs missing Debian packages (as root), makes configure, configures and builds.
#   scripts/build.sh [BUILD_FOLDER [CONFIGURE_ARGUMENT...]]       default folder: build
# What is there already is left alone. Set CC, JOBS or PLAN_NO_INSTALL=1 to choose.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build}
[ $# -gt 0 ] && shift
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}

missing=()
need() { # need PACKAGE COMMAND...
    local package=$1; shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}
need build-essential sh -c 'command -v "${CC:-cc}" && command -v make && test -e /usr/include/stdio.h'
need pkg-config command -v pkg-config
if [ ! -e "$source/configure" ]; then
    need autoconf command -v autoreconf
    need automake command -v automake
    need libtool command -v libtoolize
fi
case " $* " in
*" --disable-compiler "*) ;;
*)
    need protobuf-c-compiler command -v protoc-c
    need libprotobuf-c-dev pkg-config --exists libprotobuf-c
    need libyaml-dev pkg-config --exists yaml-0.1
    ;;
esac
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || [ -n "${PLAN_NO_INSTALL:-}" ] || ! command -v apt-get >/dev/null; then
        echo "build.sh: missing packages: ${missing[*]}; install them, or run this as root on Debian" >&2
        exit 1
    fi
    echo "installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    install() { apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2; }
    { apt-get update -qq >&2 && install; } || { sleep 5; apt-get update -qq >&2; install; }
fi

[ -e "$source/configure" ] || (cd "$source" && ./autogen.sh >/dev/null 2>&1) || { cd "$source" && ./autogen.sh; }
mkdir -p "$build" && cd "$build"
[ -e Makefile ] || "$source/configure" -q "$@"
exec make -s -j"$jobs"
