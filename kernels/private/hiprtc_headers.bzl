# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""hiprtc_headers: the headers that hipRTC needs beside those of a kernel."""

load("//kernels/private:providers.bzl", "HeaderTreeInfo", "HipRtcHeadersInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "hip_toolchain")

def _hiprtc_headers_impl(ctx):
    hip = hip_toolchain(ctx)
    upstream = ctx.attr.upstream[HeaderTreeInfo]
    name = ctx.label.name
    folder = ctx.actions.declare_directory(name + ".tree")
    listing = ctx.actions.declare_file(name + ".listing")
    header = ctx.actions.declare_file("hiprtc_%s.h" % name)
    arguments = ctx.actions.args()
    arguments.add("--compiler", hip.compiler)
    arguments.add_all(hip.flags, format_each = "--flag=%s")
    arguments.add_all(upstream.includes, format_each = "--include=%s")
    arguments.add("--source", ctx.file.src)
    arguments.add("--prelude", ctx.file.prelude)
    arguments.add_all([folder], before_each = "--folder", expand_directories = False)
    arguments.add("--listing", listing)
    arguments.add("--header", header)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_headers,
        arguments = [arguments],
        inputs = depset(
            [ctx.file.src, ctx.file.prelude],
            transitive = [hip.files, upstream.headers],
        ),
        outputs = [folder, listing, header],
        tools = [hip.compiler],
        mnemonic = "HipRtcHeaders",
    )
    return [
        DefaultInfo(files = depset([folder])),
        OutputGroupInfo(header = [header]),
        HipRtcHeadersInfo(folder = folder, listing = listing),
    ]

hiprtc_headers = rule(
    implementation = _hiprtc_headers_impl,
    doc = "A folder with them; output group header: hiprtc_NAME.h, what the library knows of them.",
    attrs = {
        "prelude": attr.label(
            allow_single_file = [".h"],
            doc = "the header before a source",
            mandatory = True,
        ),
        "src": attr.label(
            allow_single_file = [".cpp"],
            doc = "includes all that a kernel's source can include",
            mandatory = True,
        ),
        "upstream": attr.label(mandatory = True, providers = [HeaderTreeInfo]),
        "_write_headers": attr.label(cfg = "exec", default = "//kernels/hiprtc:write_headers"),
    },
    toolchains = [HIP_TOOLCHAIN_TYPE],
)
