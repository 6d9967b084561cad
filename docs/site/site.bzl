# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The rule of the site."""

load("//aiter:version.bzl", "VERSION")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _path_in_tree(file):
    """The path of a file in the tree of this repository, also where it is another's module."""
    root = file.owner.workspace_root
    return file.short_path.removeprefix("../" + root.removeprefix("external/") + "/")

def _site_impl(ctx):
    out = ctx.actions.declare_directory("html")
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    for file in ctx.files.srcs:
        arguments.add("--file=%s=%s" % (_path_in_tree(file), file.path))
    for file in ctx.files.modules:
        arguments.add("--module=%s=%s" % (
            _path_in_tree(file).removeprefix("python/"),
            file.path,
        ))
    for file in ctx.files.own:
        arguments.add("--own=%s=%s" % (
            _path_in_tree(file).removeprefix("docs/site/pages/"),
            file.path,
        ))
    arguments.add("--package_version=" + VERSION)
    arguments.add("--out=" + out.path)
    run_py_tool(
        ctx,
        tool = ctx.attr._build,
        arguments = [arguments],
        inputs = ctx.files.srcs + ctx.files.modules + ctx.files.own,
        outputs = [out],
        mnemonic = "Site",
        progress_message = "Making the site of the documents",
    )
    return [DefaultInfo(files = depset([out]))]

site = rule(
    implementation = _site_impl,
    doc = """A folder of HTML pages: the documents, and the package's API from its docstrings.

A document's link to a file that is not among `srcs` becomes plain text if that is a source file,
and fails the build if it is a document.""",
    attrs = {
        "modules": attr.label_list(allow_files = True, doc = "the package's modules"),
        "own": attr.label_list(allow_files = True, doc = "of pages/: all that is there"),
        "srcs": attr.label_list(allow_files = True, doc = "documents, and files they link to"),
        "_build": attr.label(cfg = "exec", default = "//docs/site:build"),
    },
)
