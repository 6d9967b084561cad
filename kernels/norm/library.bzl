# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""norm_library_sources: the table of configurations and the kernels' sources as C++."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def _impl(ctx):
    configurations = ctx.actions.declare_file("configurations.cc")
    sources = ctx.actions.declare_file("sources.cc")
    arguments = ctx.actions.args()
    arguments.add("--table", ctx.file.table)
    arguments.add_all(ctx.files.srcs, before_each = "--file")
    arguments.add("--configurations", configurations)
    arguments.add("--sources", sources)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_library,
        arguments = [arguments],
        inputs = [ctx.file.table] + ctx.files.srcs,
        outputs = [configurations, sources],
        mnemonic = "NormLibrary",
        progress_message = "Writing the norm kernels as C++ data %{label}",
    )
    return [DefaultInfo(files = depset([configurations, sources]))]

norm_library_sources = rule(
    implementation = _impl,
    doc = "Defines the variables that configurations.h and sources.h declare.",
    attrs = {
        "srcs": attr.label_list(
            allow_files = [".cpp", ".h"],
            mandatory = True,
            doc = "the kernels' sources and headers",
        ),
        "table": attr.label(allow_single_file = [".toml"], mandatory = True),
        "_write_library": attr.label(cfg = "exec", default = "//kernels/norm:write_library"),
    },
)
