# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""hostile_source: all that libraries define, to be defined once more."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def _hostile_source_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".cc")
    arguments = ctx.actions.args()
    arguments.add("--out", out)
    arguments.add_all(ctx.files.libraries, format_each = "--library=%s")
    run_py_tool(
        ctx,
        tool = ctx.attr._write_hostile,
        arguments = [arguments],
        inputs = ctx.files.libraries,
        outputs = [out],
        mnemonic = "Hostile",
        progress_message = "Listing what %{label} defines",
    )
    return [DefaultInfo(files = depset([out]))]

hostile_source = rule(
    implementation = _hostile_source_impl,
    doc = "A C++ source that defines the names of libraries, each of which ends the process.",
    attrs = {
        "libraries": attr.label_list(mandatory = True, allow_files = True),
        "_write_hostile": attr.label(cfg = "exec", default = "//tests/consumers:write_hostile"),
    },
)
