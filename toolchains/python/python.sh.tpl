#!/bin/sh
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Runs the tree's Python with the loader and the libraries that lie in the tree, so that it works
# on any x86-64 Linux host, whatever libc that has. It is there twice, as bin/python3 and, where
# Python looks for its library from, as usr/bin/python3: that one is sys.executable.
#   -s  not the user's site-packages    -B  no bytecode written into the tree
case $0 in
*/usr/bin/*) root=${0%/*}/../.. ;;
*) root=${0%/*}/.. ;;
esac
exec "$root/@LOADER@" --inhibit-cache \
    --library-path "$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu" \
    --argv0 "$root/usr/bin/python3" "$root/usr/bin/python@VERSION@" -s -B "$@"
