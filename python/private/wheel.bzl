# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A wheel: a deterministic zip file with a true name."""

load(":local_version.bzl", "KERNELS_ATTRS", "wheel_version")
load(":packing.bzl", "PACKING_ATTRS", "pack_wheel")

def _name_in_wheel(ctx, file):
    """Where a file of this package belongs: as it lies in it, or in its folder of this wheel."""
    prefix = ctx.label.package + "/"
    if ctx.label.workspace_name:
        prefix = "../%s/%s" % (ctx.label.workspace_name, prefix)
    path = file.short_path
    if not path.startswith(prefix):
        fail("%s: %s is not of package //%s: a wheel holds files of its own package" %
             (ctx.label, path, ctx.label.package))
    return path[len(prefix):].removeprefix(ctx.attr.folder)

def _wheel_impl(ctx):
    version = wheel_version(ctx)
    wheel = ctx.actions.declare_file(ctx.attr.folder + "-".join([
        ctx.attr.distribution.replace("-", "_"),
        version,
        ctx.attr.python_tag,
        ctx.attr.python_tag,
        "manylinux_%s_x86_64.whl" % ctx.attr.glibc.replace(".", "_"),
    ]))
    pack_wheel(
        ctx,
        wheel,
        python_tag = ctx.attr.python_tag,
        version = version,
        files = {_name_in_wheel(ctx, file): file for file in ctx.files.srcs} | {
            place: target[DefaultInfo].files.to_list()[0]
            for target, place in ctx.attr.placed.items()
        },
        more = ["--glibc=" + ctx.attr.glibc],
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

wheel = rule(
    implementation = _wheel_impl,
    doc = """Packs files of this package, by their places in it, into a wheel for Linux on x86-64.

Its version is a local one where the build's kernels are not the default ones.

The build fails unless `glibc` is the oldest that serves all shared objects in it.""",
    attrs = PACKING_ATTRS | KERNELS_ATTRS | {
        "distribution": attr.string(mandatory = True, doc = "name, as in `project`"),
        "folder": attr.string(
            doc = """of this package: the wheel's place, and that of files which other wheels have \
in another form; NAME/""",
        ),
        "glibc": attr.string(mandatory = True, doc = "2.35: the tag manylinux_2_35"),
        "placed": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "files of other packages, one each -> their places in the wheel",
        ),
        "python_tag": attr.string(mandatory = True, doc = "cp311: the interpreter and its ABI"),
        "srcs": attr.label_list(mandatory = True, allow_files = True),
    },
)
