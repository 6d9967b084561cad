# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""header_tree: headers for device code, and their digest, computed once for all that use them."""

load("//kernels/private:providers.bzl", "HeaderTreeInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _header_tree_impl(ctx):
    own = ctx.label.workspace_root
    root = own + "/" if own else ""
    includes = [(root + include).rstrip("/") or "." for include in ctx.attr.includes]
    behind = ctx.attr.behind[HeaderTreeInfo] if ctx.attr.behind else None
    digest = ctx.actions.declare_file(ctx.label.name + ".sha256")
    listing = ctx.actions.declare_file(ctx.label.name + ".listing")
    entries = ctx.actions.args()
    entries.add_all(ctx.files.hdrs, format_each = "--file=%s", map_each = _named_entry)
    entries.use_param_file("--flagfile=%s", use_always = True)
    entries.set_param_file_format("multiline")
    arguments = ctx.actions.args()
    arguments.add("--out", digest)
    arguments.add("--listing", listing)
    run_py_tool(
        ctx,
        tool = ctx.attr._header_digest,
        arguments = [arguments, entries],
        inputs = ctx.files.hdrs,
        outputs = [digest, listing],
        mnemonic = "HeaderDigest",
        progress_message = "Hashing the headers of %{label}",
    )
    return [
        DefaultInfo(files = depset(ctx.files.hdrs)),
        HeaderTreeInfo(
            digest = digest,
            headers = depset(ctx.files.hdrs),
            includes = includes + (behind.includes if behind else []),
            listing = listing,
            root = behind.root if behind else own,
        ),
    ]

def _named_entry(file):
    """NAME=PATH, the name being the path within the file's repository."""
    name = file.short_path
    if name.startswith("../"):
        name = name.split("/", 2)[2]
    return name + "=" + file.path

header_tree = rule(
    implementation = _header_tree_impl,
    doc = "Headers that code_object targets compile against.",
    attrs = {
        "behind": attr.label(
            doc = "a tree whose include directories come behind these, and which most of `hdrs` " +
                  "are of",
            providers = [HeaderTreeInfo],
        ),
        "hdrs": attr.label_list(allow_files = True, mandatory = True),
        "includes": attr.string_list(
            doc = "include directories, from the root of this target's repository; " +
                  "\"\" is the root",
            mandatory = True,
        ),
        "_header_digest": attr.label(
            cfg = "exec",
            default = "//kernels/code_object:header_digest",
        ),
    },
)
