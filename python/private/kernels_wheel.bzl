# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wheels of packs of kernels, which the library finds beside itself."""

load("//kernels:defs.bzl", "PackFilesInfo")
load(":packing.bzl", "PACKING_ATTRS", "pack_wheel")

# Beside the package; aiter/runtime/library_store.cc looks there.
_FOLDER = "aiter_attn_kernels"

def _kernels_wheel_impl(ctx):
    wheels = []
    for distribution, made in ctx.attr.packs[PackFilesInfo].files.items():
        wheel = ctx.actions.declare_file("%s-%s-py3-none-any.whl" % (
            distribution.replace("-", "_"),
            ctx.attr.version,
        ))
        pack_wheel(
            ctx,
            wheel,
            python_tag = "py3",
            files = {"%s/%s" % (_FOLDER, made.file.basename): made.file},
            more = ["--distribution=" + distribution],
        )
        wheels.append(wheel)
    return [DefaultInfo(files = depset(wheels), runfiles = ctx.runfiles(files = wheels))]

kernels_wheel = rule(
    implementation = _kernels_wheel_impl,
    doc = """A wheel for each pack file: of an arch, for any Python.

`project` has no name: each wheel has that of its pack.""",
    attrs = PACKING_ATTRS | {
        "packs": attr.label(mandatory = True, providers = [PackFilesInfo]),
    },
)
