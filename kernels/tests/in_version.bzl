# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""in_version: a code object as it is built with a given --//kernels:code_object_version."""

_VERSION = "//kernels:code_object_version"

def _version_transition_impl(_settings, attr):
    return {_VERSION: attr.version}

_version_transition = transition(
    implementation = _version_transition_impl,
    inputs = [],
    outputs = [_VERSION],
)

def _in_version_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.code_object)
    return [DefaultInfo(files = depset([out]))]

in_version = rule(
    implementation = _in_version_impl,
    attrs = {
        "code_object": attr.label(
            mandatory = True,
            allow_single_file = True,
            cfg = _version_transition,
        ),
        "version": attr.string(mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
