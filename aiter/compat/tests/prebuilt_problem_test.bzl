# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arguments of te_prebuilt that are refused."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//aiter/compat:pins.bzl", "PINS")
load("//aiter/compat:prebuilt.bzl", "prebuilt_problem")

_COMMIT = "7a24cd87525834fa9aeaa021e6ee80ab7de028f9"

def _prebuilt_problem_test_impl(ctx):
    env = unittest.begin(ctx)
    for rocm in ["7", "7.2", "10.0"]:
        asserts.equals(env, "", prebuilt_problem(_COMMIT, rocm))
    for commit in ["", _COMMIT[:9], _COMMIT.upper(), "1234567" + _COMMIT[7:], _COMMIT + "0"]:
        asserts.equals(
            env,
            "aiter_commit is \"%s\", but must be all 40 digits of a commit of one of %s" %
            (commit, ", ".join(PINS)),
            prebuilt_problem(commit, "7"),
        )
    for rocm in ["", "7.", "7.2.1", "rocm-7"]:
        asserts.equals(
            env,
            "rocm is \"%s\", but must be a ROCm's version as \"7\" or \"7.2\"" % rocm,
            prebuilt_problem(_COMMIT, rocm),
        )
    return unittest.end(env)

prebuilt_problem_test = unittest.make(_prebuilt_problem_test_impl)
