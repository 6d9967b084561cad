# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which headers kernels are compiled against, by --//kernels/ck_fmha:patches and :shortcuts."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//kernels/private:logical_path.bzl", "logical_path")

_PATCHES = str(Label("//kernels/ck_fmha:patches"))
_SHORTCUTS = str(Label("//kernels/ck_fmha:shortcuts"))

def _headers_test(repository):
    """A test implementation: flags and digest know this CK repository and no other."""
    expected = [
        "-Iexternal/ck_headers/bwd_dot_do_o",
        "-Iexternal/%s/include" % repository,
        "-Iexternal/%s/example/ck_tile/01_fmha" % repository,
    ]

    def _impl(ctx):
        env = analysistest.begin(ctx)
        (action,) = analysistest.target_actions(env)
        flags = [logical_path(flag) for flag in action.argv]
        includes = [flag for flag in flags if flag.startswith("-Iexternal/c")]
        asserts.equals(env, expected, includes)
        digests = [f.basename for f in action.inputs.to_list() if f.extension == "sha256"]
        asserts.equals(env, ["bwd_dot_do_o.%s.sha256" % repository], digests)
        return analysistest.end(env)

    return _impl

_default_impl = _headers_test("composable_kernel")
_none_impl = _headers_test("composable_kernel_upstream")
_plain_impl = _headers_test("composable_kernel_plain")

default_patches_test = analysistest.make(_default_impl, config_settings = {_PATCHES: "default"})
no_patches_test = analysistest.make(_none_impl, config_settings = {_PATCHES: "none"})
no_shortcuts_test = analysistest.make(_plain_impl, config_settings = {_SHORTCUTS: "none"})
