# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""pack_files: code objects as files that the library finds at run time, one for each arch."""

load("//aiter:version.bzl", "VERSION")
load("//kernels/private:pack.bzl", "PACK_ATTRS", "write_pack")
load("//kernels/private:providers.bzl", "CodeObjectsInfo", "PackFilesInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _pack_files_impl(ctx):
    by_arch = {}
    for info in ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list():
        by_arch.setdefault(info.arch, []).append(info)
    files = {}
    for arch, infos in by_arch.items():
        # The library names it where a kernel is missing (aiter/attention/code_object.cc).
        distribution = "aiter-attn-kernels-%s-%s" % (arch, ctx.attr.variant_set)
        pack = write_pack(ctx, infos, name = "%s/%s" % (ctx.label.name, distribution))
        file = ctx.actions.declare_file("%s/%s.attnpack" % (ctx.label.name, distribution))
        arguments = ctx.actions.args()
        arguments.add("--pack", pack)
        arguments.add("--version", VERSION)
        arguments.add("--distribution", distribution)
        arguments.add("--out", file)
        run_py_tool(
            ctx,
            tool = ctx.attr._write_pack_file,
            arguments = [arguments],
            inputs = [pack],
            outputs = [file],
            mnemonic = "PackFile",
        )
        files[distribution] = struct(arch = arch, file = file)
    return [
        DefaultInfo(files = depset([made.file for made in files.values()])),
        PackFilesInfo(files = files, variant_set = ctx.attr.variant_set),
    ]

pack_files = rule(
    implementation = _pack_files_impl,
    doc = "The pack file of each arch, by the name of the distribution that brings it.",
    attrs = {
        "code_objects": attr.label(mandatory = True, providers = [CodeObjectsInfo]),
        "variant_set": attr.string(mandatory = True, doc = "of the code objects"),
        "_write_pack_file": attr.label(
            cfg = "exec",
            default = "//kernels/code_object:write_pack_file",
        ),
    } | PACK_ATTRS,
    provides = [PackFilesInfo],
)
