# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""traits: the files generated from traits.toml."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def _traits_impl(ctx):
    header = ctx.actions.declare_file("traits.h")
    mirror = ctx.actions.declare_file("traits.json")
    arguments = ctx.actions.args()
    arguments.add("--header", header)
    arguments.add("--json", mirror)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_traits,
        arguments = [arguments],
        outputs = [header, mirror],
        mnemonic = "Traits",
        progress_message = "Writing %{label}",
    )
    return [
        DefaultInfo(files = depset([header])),
        OutputGroupInfo(mirror = [mirror]),
    ]

traits = rule(
    implementation = _traits_impl,
    doc = "traits.h; output group mirror: traits.json.",
    attrs = {
        "_write_traits": attr.label(
            cfg = "exec",
            default = "//kernels/launch_table:write_traits",
        ),
    },
)
