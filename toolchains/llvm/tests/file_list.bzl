# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of a target as a list that a test can read, with the files in its runfiles."""

def _file_list_impl(ctx):
    listing = ctx.actions.declare_file(ctx.label.name + ".txt")
    files = depset(ctx.files.srcs)
    lines = ctx.actions.args()
    lines.set_param_file_format("multiline")
    lines.add_all(files, map_each = _short_path)
    ctx.actions.write(listing, lines)
    return [DefaultInfo(
        files = depset([listing]),
        runfiles = ctx.runfiles([listing], transitive_files = files),
    )]

def _short_path(file):
    return file.short_path

file_list = rule(
    implementation = _file_list_impl,
    attrs = {"srcs": attr.label_list(mandatory = True, allow_files = True)},
)
