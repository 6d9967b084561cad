# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The figures of code objects, a cached action each."""

load("//kernels:defs.bzl", "CodeObjectsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _machine_code_impl(ctx):
    code_objects = depset(
        transitive = [dep[CodeObjectsInfo].code_objects for dep in ctx.attr.deps],
    ).to_list()
    results = []
    for info in code_objects:
        result = ctx.actions.declare_file(
            "%s/%s.%s.json" % (ctx.label.name, info.instance, info.arch),
        )
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
            mnemonic = "MeasureMachineCode",
            progress_message = "Measuring %s for %s" % (info.instance, info.arch),
        )
        results.append(result)
    listing = ctx.actions.declare_file(ctx.label.name + ".list")
    ctx.actions.write(listing, "".join([result.short_path + "\n" for result in results]))
    return [DefaultInfo(files = depset([listing]), runfiles = ctx.runfiles(results))]

machine_code = rule(
    implementation = _machine_code_impl,
    doc = """The figures of code objects, a JSON file each: see figures.py.

The target's file lists them; they are its runfiles.""",
    attrs = {
        "deps": attr.label_list(mandatory = True, providers = [CodeObjectsInfo]),
        "_mca": attr.label(cfg = "exec", default = "@llvm//:llvm-mca", executable = True),
        "_measure": attr.label(
            cfg = "exec",
            default = "//tests/bench/machine_code:measure",
        ),
        "_objdump": attr.label(cfg = "exec", default = "@llvm//:llvm-objdump", executable = True),
    },
)
