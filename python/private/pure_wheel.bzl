# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A wheel of Python modules alone."""

load(":packing.bzl", "PACKING_ATTRS", "pack_wheel")

def _pure_wheel_impl(ctx):
    wheel = ctx.actions.declare_file("%s-%s-py3-none-any.whl" % (
        ctx.attr.distribution.replace("-", "_"),
        ctx.attr.version,
    ))
    below = ctx.label.package + "/"
    pack_wheel(
        ctx,
        wheel,
        python_tag = "py3",
        files = {file.short_path.removeprefix(below): file for file in ctx.files.srcs},
        more = ["--distribution=" + ctx.attr.distribution],
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

pure_wheel = rule(
    implementation = _pure_wheel_impl,
    doc = "A wheel of Python modules, for any Python and any platform.",
    attrs = PACKING_ATTRS | {
        "distribution": attr.string(mandatory = True, doc = "its name"),
        "srcs": attr.label_list(
            allow_files = [".py"],
            mandatory = True,
            doc = "modules, which have their places in the wheel below this package",
        ),
    },
)
