# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests of logical paths."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(
    "//kernels/private:logical_path.bzl",
    "logical_path",
    "logical_prefix_maps",
    "prefix_maps",
)

def _logical_path_test_impl(ctx):
    env = unittest.begin(ctx)
    for text, expected in {
        "": "",
        "--sysroot=external/_main~llvm~sysroot": "--sysroot=external/sysroot",
        "-I.": "-I.",
        "-Iexternal/_main~ck~kernel/a~b/c": "-Iexternal/kernel/a~b/c",
        "-Iexternal/kernel/include": "-Iexternal/kernel/include",
        "-Iexternal/x++ck+kernel/include": "-Iexternal/kernel/include",
        "-Iexternal/+ck+kernel/include": "-Iexternal/kernel/include",
        "-fmap=external/_main~llvm~llvm=external/llvm": "-fmap=external/llvm=external/llvm",
        # Of a module that is not the main one: an extension's, and its own, of any version.
        "-Iexternal/aiter_attn~~ck~kernel": "-Iexternal/kernel",
        "-Iexternal/aiter_attn~1.0~ck~kernel": "-Iexternal/kernel",
        "-Iexternal/aiter_attn~": "-I.",
        "-Iexternal/aiter_attn~/a/b": "-Ia/b",
        "-Iexternal/aiter_attn~1.0": "-I.",
        "-Iexternal/aiter_attn+/a": "-Ia",
    }.items():
        asserts.equals(env, expected, logical_path(text))
    asserts.equals(
        env,
        ["-ffile-prefix-map=external/_main~a~b=external/b"],
        prefix_maps(["", "external/_main~a~b"]),
    )
    roots = ["external/aiter_attn~", "", "external/aiter_attn~~a~b"]
    asserts.equals(
        env,
        [
            "-ffile-prefix-map=external/aiter_attn~/=",
            "-ffile-prefix-map=external/aiter_attn~~a~b=external/b",
        ],
        prefix_maps(roots),
    )
    asserts.equals(
        env,
        ["-ffile-prefix-map=external/b=external/b"],
        logical_prefix_maps(roots),
    )
    asserts.equals(
        env,
        logical_prefix_maps(["", "", "external/_main~a~b"]),
        logical_prefix_maps(roots),
    )
    return unittest.end(env)

_logical_path_test = unittest.make(_logical_path_test_impl)

def logical_path_test(name):
    _logical_path_test(name = name, size = "small")
