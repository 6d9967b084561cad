# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A rule that runs a py_tool, to be looked at by a test."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def _tool_report_impl(ctx):
    report = ctx.actions.declare_file(ctx.label.name + ".json")
    arguments = ctx.actions.args()
    arguments.add(report)
    arguments.add("an argument")
    run_py_tool(
        ctx,
        tool = ctx.attr.tool,
        arguments = [arguments],
        outputs = [report],
        mnemonic = "ToolReport",
    )
    return [DefaultInfo(files = depset([report]))]

tool_report = rule(
    implementation = _tool_report_impl,
    attrs = {"tool": attr.label(cfg = "exec", mandatory = True)},
)
