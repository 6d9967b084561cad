#!/bin/sh
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Runs the LLVM program of this script's own name with the loader and the libraries that lie
# beside it, so that it works on any x86-64 Linux host, whatever libc that has. The tree is
# found from $0: it may lie anywhere, also as links (a sandbox, runfiles, a remote worker).
tool=${0##*/}
root=${0%/*}/..
libs=$root/usr/lib/x86_64-linux-gnu
exec "$libs/ld-linux-x86-64.so.2" --inhibit-cache --library-path "$libs" --argv0 "$0" \
    @OPTIONS@"$root/@PROGRAMS@$tool" "$@"
