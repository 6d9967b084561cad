# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's objects as code objects of a build, and what the build takes from their table."""

load("//kernels:defs.bzl", "CodeObjectInfo", "CodeObjectsInfo")
load("//kernels/private:flags.bzl", "ArchsInfo", "ProvidersInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _instance(file, arch):
    """The name that launch.py gives an object: of its file, and its schedule's folder or arch."""
    folder = file.dirname.rpartition("/")[2]
    where = arch if folder.startswith("fmha_") else folder.lower()
    return "fmha_%s_%s" % (file.basename.removesuffix(".co"), where)

def _asm_code_objects_impl(ctx):
    infos = []
    arguments = ctx.actions.args()
    arguments.add_all(ctx.files.tables, before_each = "--table")
    outputs = []
    for file in ctx.files.srcs:
        instance = _instance(file, ctx.attr.arch)
        metadata = ctx.actions.declare_file(instance + ".json")
        spec = ctx.actions.declare_file(instance + ".spec")
        arguments.add("--object", "%s=%s" % (file.path, metadata.path))
        outputs += [metadata, spec]
        infos.append(CodeObjectInfo(
            arch = ctx.attr.arch,
            chosen = None,
            code_object = file,
            compiled = (),
            instance = instance,
            kit = None,
            metadata = metadata,
            proof = None,
            recipe = None,
            spec = spec,
        ))
    run_py_tool(
        ctx,
        tool = ctx.attr._describe,
        arguments = [arguments],
        inputs = ctx.files.srcs + ctx.files.tables,
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
    doc = "Objects that come as such, with descriptions held against their table.",
    attrs = {
        "arch": attr.string(mandatory = True, doc = "that of all of them"),
        "srcs": attr.label_list(allow_files = [".co"], mandatory = True),
        "tables": attr.label_list(allow_files = [".toml"], mandatory = True),
        "_describe": attr.label(cfg = "exec", default = ":describe_objects"),
    },
    provides = [CodeObjectsInfo],
)

def _asm_archs_check_impl(ctx):
    chosen = ctx.attr.archs[ArchsInfo].archs
    known = ctx.attr.known
    served = [arch for arch in chosen if arch in known]
    if ctx.attr.chosen[ProvidersInfo].providers == ["asm"] and not served:
        fail(("--//kernels:providers=asm has kernels for %s alone, but --//kernels:archs=%s: add " +
              "ck to the providers, or one of these archs") % (", ".join(known), ",".join(chosen)))
    return [CodeObjectsInfo(code_objects = depset())]

asm_archs_check = rule(
    implementation = _asm_archs_check_impl,
    doc = "No code objects. It stops a build that would have no kernel for any of its archs.",
    attrs = {
        "archs": attr.label(mandatory = True, providers = [ArchsInfo], doc = "the chosen archs"),
        "chosen": attr.label(
            mandatory = True,
            providers = [ProvidersInfo],
            doc = "the chosen providers",
        ),
        "known": attr.string_list(mandatory = True, doc = "the archs that there are objects for"),
    },
    provides = [CodeObjectsInfo],
)

def _asm_launch_impl(ctx):
    rows = ctx.outputs.rows
    forward = ctx.outputs.forward_header
    backward = ctx.outputs.backward_header
    arguments = ctx.actions.args()
    arguments.add_all(ctx.files.tables, before_each = "--table")
    arguments.add("--archs_file", ctx.file._archs_file)
    arguments.add_all(ctx.attr.archs[ArchsInfo].archs, before_each = "--arch")
    arguments.add("--rows", rows)
    arguments.add("--forward_header", forward)
    arguments.add("--backward_header", backward)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_launch,
        arguments = [arguments],
        inputs = ctx.files.tables + [ctx.file._archs_file],
        outputs = [rows, forward, backward],
        mnemonic = "AsmLaunch",
        progress_message = "Writing %{label}",
    )
    return [DefaultInfo(files = depset([rows, forward, backward]))]

asm_launch = rule(
    implementation = _asm_launch_impl,
    doc = """The rows of the launch table for the chosen archs, and the headers of kernel arguments,
of a table.""",
    attrs = {
        "archs": attr.label(mandatory = True, providers = [ArchsInfo], doc = "the chosen archs"),
        "backward_header": attr.output(mandatory = True),
        "forward_header": attr.output(mandatory = True),
        "rows": attr.output(mandatory = True),
        "tables": attr.label_list(allow_files = [".toml"], mandatory = True),
        "_archs_file": attr.label(default = "@archs//:archs.json", allow_single_file = True),
        "_write_launch": attr.label(cfg = "exec", default = ":write_launch"),
    },
)
