# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compile groups that cannot be."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _failing(message):
    def _impl(ctx):
        env = analysistest.begin(ctx)
        asserts.expect_failure(env, message)
        return analysistest.end(env)

    return _impl

_lone_impl = _failing("a group of compiles has two at least")
_no_member_impl = _failing("has no attn_sum_heads_fp64 for gfx942")

lone_member_test = analysistest.make(_lone_impl, expect_failure = True)
no_member_test = analysistest.make(_no_member_impl, expect_failure = True)
