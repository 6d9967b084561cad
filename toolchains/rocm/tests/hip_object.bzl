# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The least rule that compiles with the HIP toolchain: for the device, or host code."""

load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "family_of", "hip_toolchain")

def _hip_object_impl(ctx):
    hip = hip_toolchain(ctx)
    family = family_of(hip.families, ctx.attr.arch)
    output = ctx.actions.declare_file(ctx.label.name + (".hsaco" if ctx.attr.arch else ".o"))
    target = [
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "--offload-arch=" + ctx.attr.arch,
    ] if ctx.attr.arch else ["--cuda-host-only"]
    ctx.actions.run(
        executable = hip.compiler,
        arguments = hip.flags + ["-x", "hip", "-std=c++17", "-O3", "-fPIC"] + target +
                    family.flags + [
            "-c",
            ctx.file.src.path,
            "-o",
            output.path,
        ],
        inputs = depset([ctx.file.src], transitive = [hip.files, family.files]),
        outputs = [output],
        mnemonic = "HipObject",
    )
    return [
        DefaultInfo(files = depset([output])),
        OutputGroupInfo(identity = [_identity(ctx, hip)], inputs = hip.files),
    ]

def _identity(ctx, hip):
    identity = ctx.actions.declare_file(ctx.label.name + ".identity")
    ctx.actions.write(identity, hip.identity)
    return identity

hip_object = rule(
    implementation = _hip_object_impl,
    attrs = {
        "arch": attr.string(doc = "empty: host code"),
        "src": attr.label(allow_single_file = [".cpp"], mandatory = True),
    },
    toolchains = [HIP_TOOLCHAIN_TYPE],
)
