# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A repository rule for files of a locked npm package."""

load("//toolchains/locks:fetch.bzl", "fetch_locked")

_REGISTRY = Label("//toolchains/npm:fetch.py")

def _npm_files_impl(rctx):
    attr = rctx.attr
    (entry,) = fetch_locked(rctx, _REGISTRY, ".archive", [attr.package])
    rctx.extract(entry["file"], ".package", "package")
    rctx.delete(".archive")
    for file, output in attr.files.items():
        rctx.symlink(".package/" + file, output)
    rctx.file(
        "BUILD.bazel",
        "exports_files(%r)\n" % attr.files.values(),
        executable = False,
    )

npm_files = repository_rule(
    implementation = _npm_files_impl,
    doc = "Files of an npm package, which lock.json has by its version and sha256.",
    attrs = {
        "files": attr.string_dict(
            mandatory = True,
            doc = "paths in the package -> the names that they get",
        ),
        "package": attr.string(mandatory = True, doc = "the package's name, with its scope"),
    },
)
