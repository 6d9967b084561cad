# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheels of all Python ABIs, in one build."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//toolchains/python:defs.bzl", "ABIS")

def _wheels_test_impl(ctx):
    env = analysistest.begin(ctx)
    wheels = analysistest.target_under_test(env)[DefaultInfo].files.to_list()
    asserts.equals(
        env,
        sorted(ABIS),
        sorted([file.basename.split("-")[2] for file in wheels]),
        "each ABI has a wheel: %s" % wheels,
    )
    return analysistest.end(env)

wheels_test = analysistest.make(_wheels_test_impl)
