# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""dispatch_reference: upstream's dispatchers, and a launch table over the same instances."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//kernels:defs.bzl", "hip_host_library")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _sources_impl(ctx):
    outputs = {
        "--" + flag: ctx.actions.declare_file("%s/%s" % (ctx.label.name, file))
        for flag, file in {
            "bwd": "fmha_bwd_api.inc",
            "fwd": "fmha_fwd_api.inc",
            "table": "launch_table.blob",
        }.items()
    }
    arguments = ctx.actions.args()
    arguments.add("--fmha_dir", ctx.file._ck_generator.dirname)
    if ctx.attr.everything:
        arguments.add("--everything")
    for flag, output in outputs.items():
        arguments.add(flag, output)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_reference,
        arguments = [arguments],
        inputs = ctx.files._ck_codegen,
        outputs = outputs.values(),
        mnemonic = "DispatchReference",
        progress_message = "Writing upstream's dispatchers %{label}",
    )
    return [
        DefaultInfo(files = depset([outputs["--fwd"], outputs["--bwd"]])),
        OutputGroupInfo(table = [outputs["--table"]]),
    ]

_sources = rule(
    implementation = _sources_impl,
    attrs = {
        "everything": attr.bool(),
        "_ck_codegen": attr.label(default = "@composable_kernel//:generator"),
        "_ck_generator": attr.label(
            allow_single_file = True,
            default = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
        ),
        "_write_reference": attr.label(
            cfg = "exec",
            default = "//aiter/attention/dispatch_reference:write_reference",
        ),
    },
)

def dispatch_reference(*, name, everything = False, copts = [], **kwargs):
    """A C++ library that defines what upstream_dispatch.h declares, and the file NAME.table.

    Args:
      name: of the library.
      everything: whether instances are in it that no problem of the C ABI asks for.
      copts: for the two files that hold upstream's dispatchers.
      **kwargs: testonly, tags, visibility.
    """
    sources = name + ".sources"
    _sources(name = sources, everything = everything, **kwargs)
    native.filegroup(
        name = name + ".table",
        srcs = [sources],
        output_group = "table",
        **kwargs
    )
    cc_library(
        name = name + ".inc",
        hdrs = [sources],
        includes = [sources],
        **kwargs
    )
    hip_host_library(
        name = name,
        srcs = [
            "//aiter/attention/dispatch_reference:upstream_backward.cpp",
            "//aiter/attention/dispatch_reference:upstream_forward.cpp",
        ],
        copts = [
            "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
            "-Wno-deprecated-attributes",
        ] + copts,
        headers = "//kernels/ck_fmha:headers",
        deps = [
            "//aiter/attention/dispatch_reference:upstream_dispatch_h",
            name + ".inc",
        ],
        **kwargs
    )
