# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""kernel_sources: the sources of kernels and the headers that they read, for compilers of the
machine: aiter/runtime/kit/kernel_sources.h."""

load("//kernels/private:code_object.bzl", "KIT_ATTRS", "kernels_of_kit")
load("//kernels/private:pack.bzl", "PACKER_ATTRS", "PACK_FILE_ATTRS", "write_pack_file")
load("//kernels/private:providers.bzl", "HipRtcHeadersInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _kernel_sources_impl(ctx):
    infos = kernels_of_kit(ctx)
    trees = {info.kit.header_tree.listing: info.kit.header_tree for info in infos}
    hiprtc = ctx.attr._hiprtc_headers[HipRtcHeadersInfo]
    files = depset(
        [info.kit.source for info in infos] + trees.keys() + [hiprtc.folder, hiprtc.listing],
        transitive = [tree.headers for tree in trees.values()],
    )
    pack = ctx.actions.declare_file(ctx.label.name + ".pack")
    arguments = ctx.actions.args()
    arguments.add("--packer", ctx.executable._packer)
    arguments.add("--pack", pack)
    listed = ctx.actions.args()
    listed.add_all(files, format_each = "--file=%s")
    listed.use_param_file("--flagfile=%s", use_always = True)
    listed.set_param_file_format("multiline")
    run_py_tool(
        ctx,
        tool = ctx.attr._write_sources,
        arguments = [arguments, listed],
        inputs = files.to_list(),
        outputs = [pack],
        tools = [ctx.executable._packer],
        mnemonic = "KernelSources",
        progress_message = "Packing the sources of kernels %{label}",
    )
    file = write_pack_file(ctx, pack, ctx.label.name + ".attnpack", distribution = "aiter-attn")
    return [DefaultInfo(files = depset([file]), runfiles = ctx.runfiles(files = [file]))]

kernel_sources = rule(
    implementation = _kernel_sources_impl,
    doc = "NAME.attnpack. It is made without a compile.",
    attrs = {
        "_hiprtc_headers": attr.label(
            default = "//kernels/hiprtc:headers",
            providers = [HipRtcHeadersInfo],
        ),
        "_write_sources": attr.label(
            cfg = "exec",
            default = "//kernels/compile_kit:write_sources",
        ),
    } | KIT_ATTRS | PACKER_ATTRS | PACK_FILE_ATTRS,
)
