# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files and providers of a variant set's targets."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _code_objects_test_impl(ctx):
    env = analysistest.begin(ctx)
    files = [file.basename for file in analysistest.target_under_test(env).files.to_list()]
    asserts.equals(env, sorted([name + ".hsaco" for name in ctx.attr.code_objects]), sorted(files))
    return analysistest.end(env)

code_objects_test = analysistest.make(
    _code_objects_test_impl,
    attrs = {"code_objects": attr.string_list(doc = "INSTANCE.ARCH of each")},
)
