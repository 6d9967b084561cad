# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""refused_test: the analysis of a target fails, with a message."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _refused_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.message)
    return analysistest.end(env)

refused_test = analysistest.make(
    _refused_test_impl,
    attrs = {"message": attr.string(mandatory = True, doc = "part of the error")},
    expect_failure = True,
)
