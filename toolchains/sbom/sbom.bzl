# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The SBOM of a wheel, made of the locks."""

load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

def _wheel_sbom_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add("--out", ctx.outputs.out)
    arguments.add("--wheel_version", ctx.attr.version)
    arguments.add("--contents", ctx.file._contents)
    arguments.add("--copyrights", ctx.file._copyrights)
    arguments.add("--pypi_lock", ctx.file._pypi_lock)
    if ctx.attr.product:
        arguments.add("--product", ctx.attr.product)
        arguments.add_all(ctx.attr.distributions, before_each = "--distribution")
    arguments.add_all(ctx.files.used, before_each = "--tree")
    arguments.add_all(ctx.files.machine_headers, before_each = "--machine_headers")
    run_py_tool(
        ctx,
        tool = ctx.attr._write,
        arguments = [arguments],
        inputs = ctx.files.used + ctx.files.machine_headers + [
            ctx.file._contents,
            ctx.file._copyrights,
            ctx.file._pypi_lock,
        ],
        outputs = [ctx.outputs.out],
        mnemonic = "WheelSbom",
        progress_message = "Writing %{output}",
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

wheel_sbom = rule(
    implementation = _wheel_sbom_impl,
    doc = "The materials of the wheel, in CycloneDX's JSON.",
    attrs = {
        "distributions": attr.string_list(
            doc = "of another product: the Python distributions whose files are in it",
        ),
        "machine_headers": attr.label(
            allow_files = True,
            doc = "headers.json of the machine's Python, or no file",
        ),
        "out": attr.output(mandatory = True),
        "product": attr.string(
            doc = "another distribution than that of the library: all that is used is in it",
        ),
        "used": attr.label_list(
            mandatory = True,
            allow_files = [".json"],
            doc = "debian_lock.json of the trees that the wheel is made with",
        ),
        "version": attr.string(mandatory = True, doc = "of the wheel"),
        "_contents": attr.label(allow_single_file = True, default = ":contents.toml"),
        "_copyrights": attr.label(allow_single_file = True, default = ":copyrights.json"),
        "_pypi_lock": attr.label(
            allow_single_file = True,
            default = "//toolchains/pypi:lock.json",
        ),
        "_write": attr.label(
            cfg = "exec",
            default = ":write_wheel_sbom",
            providers = [PyToolInfo],
        ),
    },
)
