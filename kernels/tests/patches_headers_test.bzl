# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which headers a kernel is compiled against, by --//kernels/ck_fmha:patches."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//kernels/private:logical_path.bzl", "logical_path")

_SETTING = str(Label("//kernels/ck_fmha:patches"))

def _headers_test(repository):
    """A test implementation: flags, key and inputs know this CK repository and no other."""
    expected = [
        "-Iexternal/%s/include" % repository,
        "-Iexternal/%s/example/ck_tile/01_fmha" % repository,
    ]

    def _impl(ctx):
        env = analysistest.begin(ctx)
        actions = {action.mnemonic: action for action in analysistest.target_actions(env)}
        flags = [logical_path(flag) for flag in actions["HipCodeObject"].argv]
        includes = [flag for flag in flags if flag.startswith("-Iexternal/composable_kernel")]
        asserts.equals(env, expected, includes)
        roots = {
            logical_path(file.path).split("/")[1]: None
            for file in actions["HipCodeObject"].inputs.to_list()
            if "composable_kernel" in file.path
        }
        asserts.equals(env, [repository], roots.keys())
        return analysistest.end(env)

    return _impl

_default_impl = _headers_test("composable_kernel")
_none_impl = _headers_test("composable_kernel_upstream")

default_patches_test = analysistest.make(_default_impl, config_settings = {_SETTING: "default"})
no_patches_test = analysistest.make(_none_impl, config_settings = {_SETTING: "none"})
