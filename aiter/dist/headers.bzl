# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""whole_header: a public header of the library in one file, which needs no other."""

load("//aiter:namespace.bzl", "NamespaceInfo")
load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

def _whole_header_impl(ctx):
    out = ctx.actions.declare_file(ctx.attr.out)
    arguments = ctx.actions.args()
    arguments.add("--out", out)
    arguments.add("--namespace", ctx.attr._namespace[NamespaceInfo].name)
    arguments.add_all(ctx.files.includes, before_each = "--include")
    arguments.add("--")
    arguments.add(ctx.file.header)
    run_py_tool(
        ctx,
        tool = ctx.attr._whole_header,
        arguments = [arguments],
        inputs = [ctx.file.header] + ctx.files.includes,
        outputs = [out],
        mnemonic = "WholeHeader",
        progress_message = "Writing %{output}",
    )
    return [DefaultInfo(files = depset([out]))]

whole_header = rule(
    implementation = _whole_header_impl,
    doc = "A header with those of the library that it includes, under --//aiter:namespace.",
    attrs = {
        "header": attr.label(mandatory = True, allow_single_file = True),
        "includes": attr.label_list(allow_files = True, doc = "headers that it may include"),
        "out": attr.string(mandatory = True),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
        "_whole_header": attr.label(
            cfg = "exec",
            default = "//aiter/dist:whole_header",
            providers = [PyToolInfo],
        ),
    },
)
