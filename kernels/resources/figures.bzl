# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The figures of code objects, by a cached action for each.

An aspect, so that a code object is measured once, whichever sets have it:

    bazel build --aspects=//kernels/resources:figures.bzl%code_object_figures \\
        --output_groups=figures LABEL...
"""

load("//kernels:defs.bzl", "CodeObjectInfo", "CodeObjectsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

_FiguresInfo = provider(
    doc = "The figures of code objects.",
    fields = {"figures": "depset of File: JSON of each, see measured.py"},
)

def _code_object_figures_impl(target, ctx):
    deps = getattr(ctx.rule.attr, "deps", [])
    direct = []
    if ctx.rule.kind == "asm_code_objects":
        # Their descriptions have all that is known of them: they are not disassembled.
        direct += [info.metadata for info in target[CodeObjectsInfo].code_objects.to_list()]
    if CodeObjectInfo in target:
        info = target[CodeObjectInfo]
        result = ctx.actions.declare_file(target.label.name + ".figures.json")
        arguments = ctx.actions.args()
        arguments.add("--code_object", info.code_object)
        arguments.add("--metadata", info.metadata)
        arguments.add("--spec", info.spec)
        arguments.add("--objdump", ctx.executable._objdump)
        arguments.add("--mca", ctx.executable._mca)
        arguments.add("--out", result)
        run_py_tool(
            ctx,
            tool = ctx.attr._measure,
            arguments = [arguments],
            inputs = [info.code_object, info.metadata, info.spec],
            outputs = [result],
            tools = [
                ctx.attr._mca[DefaultInfo].files_to_run,
                ctx.attr._objdump[DefaultInfo].files_to_run,
            ],
            mnemonic = "CodeObjectFigures",
            progress_message = "Measuring %s for %s" % (info.instance, info.arch),
        )
        direct.append(result)
    figures = depset(direct, transitive = [
        dep[_FiguresInfo].figures
        for dep in deps
        if _FiguresInfo in dep
    ])
    return [_FiguresInfo(figures = figures), OutputGroupInfo(figures = figures)]

code_object_figures = aspect(
    implementation = _code_object_figures_impl,
    doc = "Output group figures: those of the code objects of a target, and of what it groups.",
    attr_aspects = ["deps"],
    attrs = {
        "_mca": attr.label(cfg = "exec", default = "@llvm//:llvm-mca", executable = True),
        "_measure": attr.label(cfg = "exec", default = "//kernels/resources:measure"),
        "_objdump": attr.label(cfg = "exec", default = "@llvm//:llvm-objdump", executable = True),
    },
)

def _figures_impl(ctx):
    results = depset(transitive = [dep[_FiguresInfo].figures for dep in ctx.attr.deps])
    listing = ctx.actions.declare_file(ctx.label.name + ".list")
    paths = ctx.actions.args()
    paths.set_param_file_format("multiline")
    paths.add_all(results, map_each = _short_path)
    ctx.actions.write(listing, paths)
    return [DefaultInfo(
        files = depset([listing]),
        runfiles = ctx.runfiles(transitive_files = results),
    )]

def _short_path(file):
    return file.short_path

figures = rule(
    implementation = _figures_impl,
    doc = """The figures of code objects, for tests.

The target's file lists them; they are its runfiles.""",
    attrs = {"deps": attr.label_list(mandatory = True, aspects = [code_object_figures])},
)
