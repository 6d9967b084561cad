# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The headers that a kernel's compile sees, and so those whose change compiles it again."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//kernels/private:logical_path.bzl", "logical_path")

# It is no other's, and each tree must say so.
_COMBINE = "include/ck_tile/ops/fmha/kernel/fmha_fwd_splitkv_combine_kernel.hpp"

_OF_ALL = "/ck_tile/ops/fmha.hpp"

def _headers(action, repository):
    """The paths of an action's inputs in a repository, sorted."""
    root = "external/%s/" % repository
    paths = [logical_path(file.path) for file in action.inputs.to_list()]
    return sorted([path.removeprefix(root) for path in paths if path.startswith(root)])

def _reach_test_impl(ctx):
    env = analysistest.begin(ctx)
    section = ctx.attr.section
    of_combine = section == "fwd_splitkv_combine"
    for action in analysistest.target_actions(env):
        # The object's description sees the digest of these.
        if action.mnemonic == "CodeObjectDescribe":
            recipes = [f.basename for f in action.inputs.to_list() if f.extension == "recipe"]
            asserts.equals(env, ["recipe.%s.recipe" % section], recipes)
            continue
        asserts.equals(env, "HipCodeObject", action.mnemonic)
        seen = _headers(action, "composable_kernel")
        asserts.equals(env, sorted(ctx.attr.headers), seen)
        asserts.equals(env, of_combine, _COMBINE in seen)
        asserts.equals(env, [section + _OF_ALL], _headers(action, "ck_headers"))
    return analysistest.end(env)

reach_test = analysistest.make(
    _reach_test_impl,
    attrs = {
        "headers": attr.string_list(doc = "of composable_kernel, that the section's kernels read"),
        "section": attr.string(doc = "of headers.toml"),
    },
)
