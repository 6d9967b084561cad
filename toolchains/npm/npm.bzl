# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A repository rule for one file of a locked npm package."""

load("//toolchains/locks:fetch.bzl", "fetch_locked")

_REGISTRY = Label("//toolchains/npm:fetch.py")

def _npm_file_impl(rctx):
    attr = rctx.attr
    (entry,) = fetch_locked(rctx, _REGISTRY, ".archive", [attr.package])
    rctx.extract(entry["file"], ".package", "package")
    rctx.delete(".archive")
    rctx.symlink(".package/" + attr.file, attr.output)
    rctx.file(
        "BUILD.bazel",
        "exports_files([%r])\n" % attr.output,
        executable = False,
    )

npm_file = repository_rule(
    implementation = _npm_file_impl,
    doc = "One file of an npm package, which lock.json has by its version and sha256.",
    attrs = {
        "file": attr.string(mandatory = True, doc = "the file's path in the package"),
        "output": attr.string(mandatory = True, doc = "the name that it gets"),
        "package": attr.string(mandatory = True, doc = "the package's name, with its scope"),
    },
)
