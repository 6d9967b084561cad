# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Outputs of a target as built for a given Python ABI, under any command line."""

def _abi_transition_impl(_settings, attr):
    return {"//toolchains/python:abi": attr.abi}

_abi_transition = transition(
    implementation = _abi_transition_impl,
    inputs = [],
    outputs = ["//toolchains/python:abi"],
)

def _for_abi_test_impl(ctx):
    target = ctx.attr.test[0][DefaultInfo]
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nEXPECTED_ABI=%s exec ./%s \"$@\"\n" %
        (ctx.attr.abi, target.files_to_run.executable.short_path),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles(transitive_files = target.files).merge(target.default_runfiles),
    )]

for_abi_test = rule(
    implementation = _for_abi_test_impl,
    doc = "Runs another test as built for `abi`, with EXPECTED_ABI set to it.",
    attrs = {
        "abi": attr.string(mandatory = True),
        "test": attr.label(cfg = _abi_transition, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)
