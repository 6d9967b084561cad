# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The messages about build settings with unknown values."""

load("@archs//:archs.bzl", "ARCHS")
load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _archs_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "//kernels:archs=gfx942,gfx9999: unknown arch " +
                                "\"gfx9999\"; known: %s." % ", ".join(ARCHS))
    return analysistest.end(env)

archs_test = analysistest.make(
    _archs_test_impl,
    config_settings = {str(Label("//kernels:archs")): "gfx942,gfx9999"},
    expect_failure = True,
)

def _variants_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "//kernels:variants=croe: unknown variant set; known: ")
    return analysistest.end(env)

variants_test = analysistest.make(
    _variants_test_impl,
    config_settings = {str(Label("//kernels:variants")): "croe"},
    expect_failure = True,
)

def _choice_test(setting, known):
    def _impl(ctx):
        env = analysistest.begin(ctx)
        expected = "//kernels/ck_fmha:%s=some: unknown choice; known: %s (" % (setting, known)
        asserts.expect_failure(env, expected)
        return analysistest.end(env)

    return _impl

def _code_object_version_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(
        env,
        "//kernels:code_object_version=4: unknown choice; known: 5 (for ROCm 6.0 and 6.1, too), " +
        "default (",
    )
    return analysistest.end(env)

code_object_version_test = analysistest.make(
    _code_object_version_test_impl,
    config_settings = {str(Label("//kernels:code_object_version")): "4"},
    expect_failure = True,
)

_patches_test_impl = _choice_test("patches", "default")
_shortcuts_test_impl = _choice_test("shortcuts", "all")

patches_test = analysistest.make(
    _patches_test_impl,
    config_settings = {str(Label("//kernels/ck_fmha:patches")): "some"},
    expect_failure = True,
)

shortcuts_test = analysistest.make(
    _shortcuts_test_impl,
    config_settings = {str(Label("//kernels/ck_fmha:shortcuts")): "some"},
    expect_failure = True,
)

def _providers_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "//kernels:providers=ck,isa: unknown provider \"isa\"; known: " +
                                "asm, ck. Write ")
    return analysistest.end(env)

providers_test = analysistest.make(
    _providers_test_impl,
    config_settings = {str(Label("//kernels:providers")): "ck,isa"},
    expect_failure = True,
)

def _no_objects_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "has kernels for gfx942, gfx950 alone, but " +
                                "--//kernels:archs=gfx90a: add ck to the providers, or one of " +
                                "these archs")
    return analysistest.end(env)

no_objects_test = analysistest.make(
    _no_objects_test_impl,
    config_settings = {
        str(Label("//kernels:archs")): "gfx90a",
        str(Label("//kernels:providers")): "asm",
    },
    expect_failure = True,
)
