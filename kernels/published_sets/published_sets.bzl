# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""published_sets: the table of published_sets.h."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def _published_sets_impl(ctx):
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    arguments = ctx.actions.args()
    arguments.add("--pool", ctx.file._pool)
    arguments.add("--archs_file", ctx.file._archs_file)
    arguments.add_all(ctx.files.sets, before_each = "--set")
    arguments.add("--source", source)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_published_sets,
        arguments = [arguments],
        inputs = ctx.files.sets + [ctx.file._archs_file, ctx.file._pool],
        outputs = [source],
        mnemonic = "PublishedSets",
        progress_message = "Writing %{label}",
    )
    return [DefaultInfo(files = depset([source]))]

published_sets = rule(
    implementation = _published_sets_impl,
    doc = "A C++ source: which of the published variant sets have which kernels.",
    attrs = {
        "sets": attr.label_list(
            allow_files = [".toml"],
            mandatory = True,
            doc = "the variant set files",
        ),
        "_archs_file": attr.label(
            allow_single_file = True,
            default = "@archs//:archs.json",
        ),
        "_pool": attr.label(
            allow_single_file = True,
            default = "@ck_fmha//:pool.json",
        ),
        "_write_published_sets": attr.label(
            cfg = "exec",
            default = "//kernels/published_sets:write_published_sets",
        ),
    },
)
