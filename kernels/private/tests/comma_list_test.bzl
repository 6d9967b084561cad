# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests of the comma-list grammar."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//kernels/private:comma_list.bzl", "parse_comma_list")

_KNOWN = ["gfx950", "gfx942"]

def _comma_list_test_impl(ctx):
    env = unittest.begin(ctx)
    for text, expected in {
        "gfx942": ["gfx942"],
        "gfx950,gfx942": ["gfx942", "gfx950"],
        "gfx942, gfx942": ["gfx942"],
    }.items():
        asserts.equals(env, (expected, None), parse_comma_list(text, _KNOWN, "--f", "arch"))
    for text, expected in {
        "": "--f=: an empty name; known: gfx942, gfx950. Write --f=gfx942,gfx950",
        "gfx942,": "--f=gfx942,: an empty name; known: gfx942, gfx950. Write --f=gfx942,gfx950",
        "gfx942,gfx9999": "--f=gfx942,gfx9999: unknown arch \"gfx9999\"; " +
                          "known: gfx942, gfx950. Write --f=gfx942,gfx950",
    }.items():
        asserts.equals(env, (None, expected), parse_comma_list(text, _KNOWN, "--f", "arch"))
    return unittest.end(env)

_comma_list_test = unittest.make(_comma_list_test_impl)

def comma_list_test(name):
    _comma_list_test(name = name, size = "small")
