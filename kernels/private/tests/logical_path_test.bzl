# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests of logical paths."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//kernels/private:logical_path.bzl", "logical_path", "prefix_maps")

def _logical_path_test_impl(ctx):
    env = unittest.begin(ctx)
    for text, expected in {
        "": "",
        "--sysroot=external/_main~llvm~sysroot": "--sysroot=external/sysroot",
        "-I.": "-I.",
        "-Iexternal/_main~ck~kernel/a~b/c": "-Iexternal/kernel/a~b/c",
        "-Iexternal/kernel/include": "-Iexternal/kernel/include",
        "-Iexternal/x++ck+kernel/include": "-Iexternal/kernel/include",
        "-fmap=external/_main~llvm~llvm=external/llvm": "-fmap=external/llvm=external/llvm",
    }.items():
        asserts.equals(env, expected, logical_path(text))
    asserts.equals(
        env,
        ["-ffile-prefix-map=external/_main~a~b=external/b"],
        prefix_maps(["", "external/_main~a~b"]),
    )
    return unittest.end(env)

_logical_path_test = unittest.make(_logical_path_test_impl)

def logical_path_test(name):
    _logical_path_test(name = name, size = "small")
