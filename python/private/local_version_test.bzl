# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Unit tests of local_version.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(":local_version.bzl", "local_version")

def _local_version_test_impl(ctx):
    env = unittest.begin(ctx)
    for variants, archs, wanted in [
        ("core", ["gfx942"], "1.2"),
        ("core", ["gfx950"], "1.2+core.gfx950"),
        ("te", ["gfx942"], "1.2+te.gfx942"),
        ("beside_asm", ["gfx942", "gfx950"], "1.2+beside.asm.gfx942.gfx950"),
    ]:
        asserts.equals(env, wanted, local_version("1.2", variants, archs))
    return unittest.end(env)

local_version_test = unittest.make(_local_version_test_impl)
