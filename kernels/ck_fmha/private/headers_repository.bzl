# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of the headers that kernels read, by the sections of headers.toml."""

load("//kernels/ck_fmha/private:generated_repositories.bzl", "generate")

_BUILD = """# Generated. Do not edit.
load("@aiter_attn//kernels/ck_fmha/private:header_trees.bzl", "header_trees")
load(":headers.bzl", "HEADERS")

header_trees(HEADERS)
"""

def _headers_repository_impl(rctx):
    rctx.report_progress("following upstream's headers")
    arguments = ["headers"]
    for label, name in rctx.attr.trees.items():
        root = rctx.path(label).dirname
        rctx.watch_tree(root.get_child("include"))
        rctx.watch_tree(root.get_child("example"))
        arguments += ["--tree", "%s=%s" % (name, root)]
    generate(rctx, arguments)
    rctx.file("BUILD.bazel", _BUILD, executable = False)

headers_repository = repository_rule(
    implementation = _headers_repository_impl,
    doc = "A header_tree for each section of headers.toml and repository of upstream's headers.",
    attrs = {
        "trees": attr.label_keyed_string_dict(
            mandatory = True,
            doc = "a file at the root of a repository of upstream's headers -> its name",
        ),
    },
)
