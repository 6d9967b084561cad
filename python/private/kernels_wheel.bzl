# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wheels of packs of kernels, which the library finds beside itself."""

load("//kernels:defs.bzl", "PackFilesInfo")
load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

# Beside the package; aiter/runtime/library_store.cc looks there.
_FOLDER = "aiter_attn_kernels"

def _kernels_wheel_impl(ctx):
    wheels = []
    for distribution, made in ctx.attr.packs[PackFilesInfo].files.items():
        wheel = ctx.actions.declare_file("%s-%s-py3-none-any.whl" % (
            distribution.replace("-", "_"),
            ctx.attr.version,
        ))
        arguments = ctx.actions.args()
        arguments.add(wheel, format = "--output=%s")
        arguments.add(distribution, format = "--distribution=%s")
        arguments.add(ctx.file.project, format = "--project=%s")
        arguments.add(ctx.attr.version, format = "--version=%s")
        arguments.add("--python_tag=py3")
        arguments.add(ctx.file.readme, format = "--readme=%s")
        arguments.add(ctx.file.licence, format = "--licence=%s")
        arguments.add_all([
            "--other_licence=%s=%s" % (of, file.files.to_list()[0].path)
            for file, of in ctx.attr.other_licences.items()
        ])
        arguments.add(ctx.file.sbom, format = "--sbom=%s")
        arguments.add("--file=%s/%s=%s" % (_FOLDER, made.file.basename, made.file.path))
        run_py_tool(
            ctx,
            tool = ctx.attr._make_wheel,
            arguments = [arguments],
            inputs = ctx.files.other_licences + [
                ctx.file.licence,
                ctx.file.project,
                ctx.file.readme,
                ctx.file.sbom,
                made.file,
            ],
            outputs = [wheel],
            mnemonic = "Wheel",
            progress_message = "Packing %{output}",
        )
        wheels.append(wheel)
    return [DefaultInfo(files = depset(wheels), runfiles = ctx.runfiles(files = wheels))]

kernels_wheel = rule(
    implementation = _kernels_wheel_impl,
    doc = "A wheel for each pack file: of an arch, for any Python.",
    attrs = {
        "licence": attr.label(mandatory = True, allow_single_file = True),
        "other_licences": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "a file, the licence of something that kernels are from -> its name",
        ),
        "packs": attr.label(mandatory = True, providers = [PackFilesInfo]),
        "project": attr.label(
            mandatory = True,
            allow_single_file = [".toml"],
            doc = "TOML with a [project] table without a name",
        ),
        "readme": attr.label(mandatory = True, allow_single_file = [".md"]),
        "sbom": attr.label(mandatory = True, allow_single_file = [".cdx.json"]),
        "version": attr.string(mandatory = True, doc = "that of the library"),
        "_make_wheel": attr.label(
            cfg = "exec",
            default = "//python/private:make_wheel",
            providers = [PyToolInfo],
        ),
    },
)
