# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's objects as code objects of a build, and what the build takes from their table."""

load("//kernels:defs.bzl", "CodeObjectInfo", "CodeObjectsInfo")
load("//kernels/private:flags.bzl", "ArchsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _instance(file):
    """The name that write_launch.py gives an object: of its file and the folder of its schedule."""
    folder = file.dirname.rpartition("/")[2]
    return "fmha_%s_%s" % (file.basename.removesuffix(".co"), folder.lower())

def _asm_code_objects_impl(ctx):
    chosen = ctx.attr.archs[ArchsInfo].archs
    lacking = [arch for arch in chosen if arch != ctx.attr.arch]
    if lacking == chosen:
        fail("--//kernels:providers has asm, which has kernels for %s alone, " % ctx.attr.arch +
             "but --//kernels:archs=%s: leave asm out, or add %s" %
             (",".join(chosen), ctx.attr.arch))
    if lacking:
        # buildifier: disable=print
        print("asm has no kernels for %s, only for %s" % (", ".join(lacking), ctx.attr.arch))
    infos = []
    arguments = ctx.actions.args()
    arguments.add("--table", ctx.file.table)
    outputs = []
    for file in ctx.files.srcs:
        instance = _instance(file)
        metadata = ctx.actions.declare_file(instance + ".json")
        spec = ctx.actions.declare_file(instance + ".spec")
        arguments.add("--object", "%s=%s" % (file.path, metadata.path))
        outputs += [metadata, spec]
        infos.append(CodeObjectInfo(
            arch = ctx.attr.arch,
            code_object = file,
            instance = instance,
            metadata = metadata,
            recipe = None,
            spec = spec,
        ))
    run_py_tool(
        ctx,
        tool = ctx.attr._describe,
        arguments = [arguments],
        inputs = ctx.files.srcs + [ctx.file.table],
        outputs = outputs,
        mnemonic = "AsmDescribe",
        progress_message = "Describing %{label}",
    )
    return [
        DefaultInfo(files = depset(ctx.files.srcs)),
        CodeObjectsInfo(code_objects = depset(infos)),
    ]

asm_code_objects = rule(
    implementation = _asm_code_objects_impl,
    doc = """Objects that come as such, with descriptions held against their table.

The build stops where none of the chosen archs is theirs, and tells which others are not.""",
    attrs = {
        "arch": attr.string(mandatory = True, doc = "that of all of them"),
        "archs": attr.label(mandatory = True, providers = [ArchsInfo], doc = "the chosen archs"),
        "srcs": attr.label_list(allow_files = [".co"], mandatory = True),
        "table": attr.label(allow_single_file = [".toml"], mandatory = True),
        "_describe": attr.label(cfg = "exec", default = ":describe_objects"),
    },
    provides = [CodeObjectsInfo],
)

def _asm_launch_impl(ctx):
    rows = ctx.outputs.rows
    header = ctx.outputs.header
    arguments = ctx.actions.args()
    arguments.add("--table", ctx.file.table)
    arguments.add("--archs_file", ctx.file._archs_file)
    arguments.add("--rows", rows)
    arguments.add("--header", header)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_launch,
        arguments = [arguments],
        inputs = [ctx.file.table, ctx.file._archs_file],
        outputs = [rows, header],
        mnemonic = "AsmLaunch",
        progress_message = "Writing %{label}",
    )
    return [DefaultInfo(files = depset([rows, header]))]

asm_launch = rule(
    implementation = _asm_launch_impl,
    doc = "The rows of the launch table, and the header of kernel arguments, of a table.",
    attrs = {
        "header": attr.output(mandatory = True),
        "rows": attr.output(mandatory = True),
        "table": attr.label(allow_single_file = [".toml"], mandatory = True),
        "_archs_file": attr.label(default = "@archs//:archs.json", allow_single_file = True),
        "_write_launch": attr.label(cfg = "exec", default = ":write_launch"),
    },
)
