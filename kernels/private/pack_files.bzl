# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""pack_files: code objects as files that the library finds at run time, one for each arch."""

load("//kernels/private:pack.bzl", "PACK_ATTRS", "PACK_FILE_ATTRS", "write_pack", "write_pack_file")
load("//kernels/private:providers.bzl", "CodeObjectsInfo", "PackFilesInfo")

def _pack_files_impl(ctx):
    by_arch = {}
    for info in ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list():
        by_arch.setdefault(info.arch, []).append(info)
    files = {}
    for arch, infos in by_arch.items():
        # The library names it where a kernel is missing (aiter/attention/code_object.cc).
        distribution = "aiter-attn-kernels-%s-%s" % (arch, ctx.attr.variant_set)
        path = "%s/%s" % (ctx.label.name, distribution)
        pack = write_pack(ctx, infos, name = path)
        file = write_pack_file(ctx, pack, path + ".attnpack", distribution)
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
    } | PACK_ATTRS | PACK_FILE_ATTRS,
    provides = [PackFilesInfo],
)
