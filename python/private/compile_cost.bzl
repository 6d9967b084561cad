# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The seconds that kernels take to compile, where the package looks for them."""

load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

def _compile_cost_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add("--out", ctx.outputs.out)
    arguments.add("--figures", ctx.file.src)
    run_py_tool(
        ctx,
        tool = ctx.attr._make_compile_cost,
        arguments = [arguments],
        inputs = [ctx.file.src],
        outputs = [ctx.outputs.out],
        mnemonic = "CompileCost",
    )
    return [DefaultInfo(
        files = depset([ctx.outputs.out]),
        runfiles = ctx.runfiles(files = [ctx.outputs.out]),
    )]

compile_cost = rule(
    implementation = _compile_cost_impl,
    doc = "The estimates of `src` for kernels that are compiled alone, as JSON by the name `out`.",
    attrs = {
        "out": attr.output(mandatory = True),
        "src": attr.label(mandatory = True, allow_single_file = [".toml"]),
        "_make_compile_cost": attr.label(
            cfg = "exec",
            default = "//python/private:make_compile_cost",
            providers = [PyToolInfo],
        ),
    },
)
