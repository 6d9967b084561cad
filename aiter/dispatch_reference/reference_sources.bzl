# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""reference_sources: what write_reference.py writes."""

load("//toolchains/python:defs.bzl", "run_py_tool")

def _reference_sources_impl(ctx):
    outputs = {
        "--bwd": ctx.actions.declare_file("fmha_bwd_api.inc"),
        "--fwd": ctx.actions.declare_file("fmha_fwd_api.inc"),
        "--table": ctx.actions.declare_file("reference_launch_table.cc"),
    }
    arguments = ctx.actions.args()
    arguments.add("--fmha-dir", ctx.file._ck_generator.dirname)
    for flag, output in outputs.items():
        arguments.add(flag, output)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_reference,
        arguments = [arguments],
        inputs = ctx.files._ck_codegen,
        outputs = outputs.values(),
        mnemonic = "DispatchReference",
        progress_message = "Writing CK's dispatchers %{label}",
    )
    return [
        DefaultInfo(files = depset(outputs.values())),
        OutputGroupInfo(
            dispatchers = [outputs["--fwd"], outputs["--bwd"]],
            table = [outputs["--table"]],
        ),
    ]

reference_sources = rule(
    implementation = _reference_sources_impl,
    doc = "CK's dispatchers (output group dispatchers) and the launch table (table) over the same " +
          "instances.",
    attrs = {
        "_ck_codegen": attr.label(default = "@composable_kernel//:generator"),
        "_ck_generator": attr.label(
            allow_single_file = True,
            default = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
        ),
        "_write_reference": attr.label(
            cfg = "exec",
            default = "//aiter/dispatch_reference:write_reference",
        ),
    },
)
