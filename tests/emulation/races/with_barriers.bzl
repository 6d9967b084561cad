# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects compiled with given barriers, whatever --//kernels/ck_fmha:barriers says."""

_SETTING = "//kernels/ck_fmha:barriers"

def _barriers_transition_impl(_settings, attr):
    return {_SETTING: attr.barriers}

_barriers_transition = transition(
    implementation = _barriers_transition_impl,
    inputs = [],
    outputs = [_SETTING],
)

def _code_objects_with_barriers_impl(ctx):
    files = [target[DefaultInfo].files for target in ctx.attr.code_objects]
    return [DefaultInfo(files = depset(transitive = files))]

code_objects_with_barriers = rule(
    implementation = _code_objects_with_barriers_impl,
    doc = "The .hsaco files of code_object targets.",
    attrs = {
        "barriers": attr.string(mandatory = True, doc = "a value of the build setting"),
        "code_objects": attr.label_list(cfg = _barriers_transition, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
