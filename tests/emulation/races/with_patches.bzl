# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects compiled with given patches, under any --//kernels/ck_fmha:patches."""

_SETTING = "//kernels/ck_fmha:patches"

def _patches_transition_impl(_settings, attr):
    return {_SETTING: attr.patches}

_patches_transition = transition(
    implementation = _patches_transition_impl,
    inputs = [],
    outputs = [_SETTING],
)

def _code_objects_with_patches_impl(ctx):
    files = [target[DefaultInfo].files for target in ctx.attr.code_objects]
    return [DefaultInfo(files = depset(transitive = files))]

code_objects_with_patches = rule(
    implementation = _code_objects_with_patches_impl,
    doc = "The .hsaco files of code_object targets.",
    attrs = {
        "code_objects": attr.label_list(cfg = _patches_transition, mandatory = True),
        "patches": attr.string(mandatory = True, doc = "a value of the build setting"),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
