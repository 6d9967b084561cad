# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The names that @variant_sets reads out of files."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//kernels/ck_fmha/private:variant_sets_repository.bzl", "direction_names")

_TRAITS = """[enums.Dtype]
fp16 = 1

[directions.fwd]
kinds = ["fwd"]

[directions.bwd]
kinds = ["bwd_dot_do_o"]
[[kinds]]
name = "fwd"
"""

def _names_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ["fwd", "bwd"], direction_names(_TRAITS))
    return unittest.end(env)

_names_test = unittest.make(_names_test_impl)

def names_test(name):
    _names_test(name = name, size = "small")
