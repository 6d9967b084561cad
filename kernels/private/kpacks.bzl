# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""kpacks: code objects as kpacks, ROCm's archives of kernels, one for each arch."""

load("//kernels/private:pack.bzl", "PACKER_ATTRS", "object_arguments")
load("//kernels/private:providers.bzl", "CodeObjectsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _kpacks_impl(ctx):
    by_arch = {}
    for info in ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list():
        by_arch.setdefault(info.arch, []).append(info)
    files = []
    for arch, infos in by_arch.items():
        kpack = ctx.actions.declare_file("%s/aiter_attn_%s.kpack" % (ctx.label.name, arch))
        arguments = ctx.actions.args()
        arguments.add("--packer", ctx.executable._packer)
        arguments.add("--arch", arch)
        arguments.add("--out", kpack)
        run_py_tool(
            ctx,
            tool = ctx.attr._write_kpack,
            arguments = [arguments, object_arguments(ctx, infos)],
            inputs = [file for info in infos for file in (info.metadata, info.code_object)],
            outputs = [kpack],
            tools = [ctx.executable._packer],
            mnemonic = "Kpack",
            progress_message = "Packing %{output}",
        )
        files.append(kpack)
    return [DefaultInfo(files = depset(files))]

kpacks = rule(
    implementation = _kpacks_impl,
    doc = "A kpack of each arch: aiter_attn_ARCH.kpack (code_object/write_kpack.py).",
    attrs = {
        "code_objects": attr.label(mandatory = True, providers = [CodeObjectsInfo]),
        "_write_kpack": attr.label(cfg = "exec", default = "//kernels/code_object:write_kpack"),
    } | PACKER_ATTRS,
)
