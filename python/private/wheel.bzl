# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A wheel: a deterministic zip file with a true name."""

load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

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
    wheel = ctx.actions.declare_file(ctx.attr.folder + "-".join([
        ctx.attr.distribution.replace("-", "_"),
        ctx.attr.version,
        ctx.attr.python_tag,
        ctx.attr.python_tag,
        "manylinux_%s_x86_64.whl" % ctx.attr.glibc.replace(".", "_"),
    ]))
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add(wheel, format = "--output=%s")
    arguments.add(ctx.file.project, format = "--project=%s")
    arguments.add(ctx.attr.version, format = "--version=%s")
    arguments.add(ctx.attr.python_tag, format = "--python_tag=%s")
    arguments.add(ctx.attr.glibc, format = "--glibc=%s")
    arguments.add(ctx.file.readme, format = "--readme=%s")
    arguments.add(ctx.file.licence, format = "--licence=%s")
    arguments.add_all([
        "--other_licence=%s=%s" % (distribution, file.files.to_list()[0].path)
        for file, distribution in ctx.attr.other_licences.items()
    ])
    arguments.add(ctx.file.sbom, format = "--sbom=%s")
    arguments.add_all(
        ["--file=%s=%s" % (_name_in_wheel(ctx, file), file.path) for file in ctx.files.srcs],
    )
    run_py_tool(
        ctx,
        tool = ctx.attr._make_wheel,
        arguments = [arguments],
        inputs = ctx.files.srcs + ctx.files.other_licences + [
            ctx.file.licence,
            ctx.file.project,
            ctx.file.readme,
            ctx.file.sbom,
        ],
        outputs = [wheel],
        mnemonic = "Wheel",
        progress_message = "Packing %{output}",
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

wheel = rule(
    implementation = _wheel_impl,
    doc = """Packs files of this package, by their places in it, into a wheel for Linux on x86-64.

The build fails unless `glibc` is the oldest that serves all shared objects in it.""",
    attrs = {
        "distribution": attr.string(mandatory = True, doc = "name, as in `project`"),
        "folder": attr.string(
            doc = """of this package: the wheel's place, and that of files which other wheels have \
in another form; NAME/""",
        ),
        "glibc": attr.string(mandatory = True, doc = "2.35: the tag manylinux_2_35"),
        "licence": attr.label(mandatory = True, allow_single_file = True),
        "other_licences": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "a file, the licence of something that parts are from -> its name",
        ),
        "project": attr.label(
            mandatory = True,
            allow_single_file = [".toml"],
            doc = "TOML with a [project] table, that of a pyproject.toml",
        ),
        "python_tag": attr.string(mandatory = True, doc = "cp311: the interpreter and its ABI"),
        "readme": attr.label(mandatory = True, allow_single_file = [".md"]),
        "sbom": attr.label(
            mandatory = True,
            allow_single_file = [".cdx.json"],
            doc = "the software bill of materials, by its name",
        ),
        "srcs": attr.label_list(mandatory = True, allow_files = True),
        "version": attr.string(mandatory = True),
        "_make_wheel": attr.label(
            cfg = "exec",
            default = "//python/private:make_wheel",
            providers = [PyToolInfo],
        ),
    },
)
