#!/bin/sh
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Starts a py_binary or py_test of %target% with the toolchain's Python. It stands in for Bazel's
# own stub, which is a Python program itself and so needs one on the host.
set -eu
if [ "%is_zipfile%" = True ]; then
    echo "$0: --build_python_zip is not supported by //toolchains/python" >&2
    exit 1
fi
case $0 in
/*) self=$0 ;;
*) self=$PWD/$0 ;;
esac

# Where the runfiles are: named by a caller, beside this script, or around it.
runfiles=
for folder in "${RUNFILES_DIR:-}" "${TEST_SRCDIR:-}" "$self.runfiles" \
    "${self%.runfiles/*}.runfiles"; do
    if [ -n "$folder" ] && [ -f "$folder/%main%" ]; then
        runfiles=$folder
        break
    fi
done
if [ -z "$runfiles" ]; then
    echo "$0: cannot find the runfiles with %main%; build with --build_runfile_links" >&2
    exit 1
fi
case $runfiles in
/*) ;;
*) runfiles=$PWD/$runfiles ;;
esac

# Modules of the program's own repository and of the main one are imported by their full names.
main=%main%
path=$runfiles:$runfiles/${main%%/*}
[ "${main%%/*}" = %workspace_name% ] || path=$path:$runfiles/%workspace_name%
imports=%imports%
while [ -n "$imports" ]; do
    path=$path:$runfiles/${imports%%:*}
    case $imports in
    *:*) imports=${imports#*:} ;;
    *) imports= ;;
    esac
done

# -P: the folder of the script is not a place of modules; here it would be the source tree.
export PYTHONPATH="$path" PYTHONSAFEPATH=1 RUNFILES_DIR="$runfiles"
# A sanitized library among the data brings the runtime that has to be there before it: see
# //toolchains/llvm/sanitizers. That of asan, the first by name, has ubsan's in it.
for runtime in "$runfiles"/*compiler_rt/usr/lib/*/lib/clang/*/lib/linux/libclang_rt.*.so; do
    if [ -f "$runtime" ]; then
        export LD_PRELOAD="$runtime"
        # Python and numpy keep thousands of allocations until the process ends.
        export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
        break
    fi
done
exec "$runfiles/%python_binary%" "$runfiles/%main%" "$@"
