# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A static archive of a library with debug information, under any command line."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _debug_impl(_settings, _attr):
    return {"//command_line_option:compilation_mode": "dbg"}

_debug = transition(
    implementation = _debug_impl,
    inputs = [],
    outputs = ["//command_line_option:compilation_mode"],
)

def _debug_archive_impl(ctx):
    linker_inputs = ctx.attr.library[0][CcInfo].linking_context.linker_inputs.to_list()
    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    ctx.actions.symlink(
        output = archive,
        target_file = linker_inputs[0].libraries[0].pic_static_library,
    )
    return [DefaultInfo(files = depset([archive]))]

debug_archive = rule(
    implementation = _debug_archive_impl,
    attrs = {
        "library": attr.label(cfg = _debug, mandatory = True, providers = [CcInfo]),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
