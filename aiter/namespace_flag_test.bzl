# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests of --//aiter:namespace."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load(":namespace.bzl", "is_c_identifier")

def _identifier_test_impl(ctx):
    env = unittest.begin(ctx)
    for text in ["te", "aiter", "_x", "A1_b"]:
        asserts.true(env, is_c_identifier(text), text)
    for text in ["", "1a", "te-2", "a b", "a.b", "naïve"]:
        asserts.false(env, is_c_identifier(text), text)
    return unittest.end(env)

identifier_test = unittest.make(_identifier_test_impl)

def _refusal_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "\"te-2\" is not a C identifier; use letters, digits and")
    return analysistest.end(env)

refusal_test = analysistest.make(
    _refusal_test_impl,
    config_settings = {str(Label("//aiter:namespace")): "te-2"},
    expect_failure = True,
)
