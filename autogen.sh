#!/bin/sh
# Makes configure and Makefile.in; needs autoconf, automake, libtool and pkg-config.
cd "$(dirname "$0")" && mkdir -p m4 && exec autoreconf -fi
