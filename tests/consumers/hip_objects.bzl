# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""hip_objects: sources as HIP, in all passes of the compiler."""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "family_of", "hip_toolchain")

def _hip_objects_impl(ctx):
    hip = hip_toolchain(ctx)
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    includes = (context.includes.to_list() + context.quote_includes.to_list() +
                context.system_includes.to_list())
    passes = {"host.o": (["--cuda-host-only"], depset())}
    for arch in ctx.attr.archs:
        family = family_of(hip.families, arch)
        passes[arch + ".co"] = (
            ["--cuda-device-only", "--no-gpu-bundle-output", "--offload-arch=" + arch] +
            family.flags,
            family.files,
        )
    outputs = []
    for source in ctx.files.srcs:
        stem = source.basename.rpartition(".")[0]
        for suffix, (flags, files) in passes.items():
            output = ctx.actions.declare_file("%s/%s.%s" % (ctx.label.name, stem, suffix))
            ctx.actions.run(
                executable = hip.compiler,
                arguments = hip.flags + ["-x", "hip", "-std=c++17", "-O3", "-fPIC"] + flags +
                            ["-I" + include for include in includes] +
                            ["-c", source.path, "-o", output.path],
                inputs = depset([source], transitive = [hip.files, files, context.headers]),
                outputs = [output],
                mnemonic = "HipObject",
            )
            outputs.append(output)
    return [DefaultInfo(files = depset(outputs))]

hip_objects = rule(
    implementation = _hip_objects_impl,
    doc = "NAME/SOURCE.host.o and NAME/SOURCE.ARCH.co of each source.",
    attrs = {
        "archs": attr.string_list(mandatory = True),
        "deps": attr.label_list(providers = [CcInfo], doc = "their headers"),
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
    },
    toolchains = [HIP_TOOLCHAIN_TYPE],
)
