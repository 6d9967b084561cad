# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The manifest of all kernels, where the package looks for it, with the packages that are not the
locked ones."""

load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

def _manifest_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add("--out", ctx.outputs.out)
    arguments.add("--manifest", ctx.file.src)
    arguments.add("--norms", ctx.file.norms)
    arguments.add("--lock", ctx.file.lock)
    arguments.add_all(ctx.files.used, before_each = "--used")
    arguments.add_all(ctx.files.machine_headers, before_each = "--machine_headers")
    run_py_tool(
        ctx,
        tool = ctx.attr._make_manifest,
        arguments = [arguments],
        inputs = [ctx.file.src, ctx.file.norms, ctx.file.lock] + ctx.files.used +
                 ctx.files.machine_headers,
        outputs = [ctx.outputs.out],
        mnemonic = "WheelManifest",
    )
    return [DefaultInfo(
        files = depset([ctx.outputs.out]),
        runfiles = ctx.runfiles(files = [ctx.outputs.out]),
    )]

manifest = rule(
    implementation = _manifest_impl,
    doc = """`src` by the name `out`, with the lists `norms` and `not_locked`.

The latter has the packages that the build used in the place of those that `lock` names. With
Python headers of the machine's there is `machine_headers`, too.""",
    attrs = {
        "lock": attr.label(
            default = "//toolchains/debian:lock.json",
            allow_single_file = True,
        ),
        "machine_headers": attr.label(
            mandatory = True,
            allow_files = True,  # as there may be none
            doc = "version and sha256 of Python headers that are the machine's; no file: locked",
        ),
        "norms": attr.label(
            mandatory = True,
            allow_single_file = [".json"],
            doc = "the norm kernels that are built in",
        ),
        "out": attr.output(mandatory = True),
        "src": attr.label(mandatory = True, allow_single_file = [".json"]),
        "used": attr.label_list(
            mandatory = True,
            allow_files = [".json"],
            doc = "debian_lock.json of the trees that the wheel is made with",
        ),
        "_make_manifest": attr.label(
            cfg = "exec",
            default = "//python/private:make_manifest",
            providers = [PyToolInfo],
        ),
    },
)
