# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""code_object: one kernel instance, compiled for the device only and for one architecture.

Four actions, each with just the inputs it needs, so that a change recompiles only what it touches:

    compile   source, headers, toolchain           -> NAME.hsaco
    key       source, headers' digest, flags       -> NAME.key       (README.md says what it covers)
    pack      NAME.hsaco                           -> NAME.hsaco.zst
    metadata  NAME.hsaco, NAME.key, NAME.hsaco.zst -> NAME.json      (and checks)
"""

load("//kernels:providers.bzl", "CodeObjectInfo", "HeaderTreeInfo")
load("//kernels/private:logical_path.bzl", "logical_path", "prefix_maps")
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "hip_toolchain")

_DEVICE_FLAGS = [
    "-x",
    "hip",
    "-std=c++17",
    "-O3",
    "-fPIC",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
]

def _compile_resources(_os, _inputs):
    """What a compile of CK's larger kernels takes; memory in MB."""
    return {"cpu": 1, "memory": 1200}

def _code_object_impl(ctx):
    instance = ctx.attr.instance or ctx.label.name
    arch = ctx.attr.arch
    hip = hip_toolchain(ctx)
    headers = ctx.attr.headers[HeaderTreeInfo]
    source = ctx.file.src

    flags = (
        hip.flags + _DEVICE_FLAGS + ["--offload-arch=" + arch] +
        ["-I" + include for include in headers.includes] +
        prefix_maps([headers.root, source.owner.workspace_root]) +
        ctx.attr.copts
    )
    code_object = ctx.actions.declare_file(ctx.label.name + ".hsaco")
    ctx.actions.run(
        executable = hip.compiler,
        arguments = flags + ["-c", source.path, "-o", code_object.path],
        inputs = depset([source], transitive = [hip.files, headers.headers]),
        outputs = [code_object],
        mnemonic = "HipCodeObject",
        resource_set = _compile_resources,
        progress_message = "Compiling %{label}",
    )

    key = ctx.actions.declare_file(ctx.label.name + ".key")
    arguments = ctx.actions.args()
    arguments.add("--source", source)
    arguments.add("--headers", headers.digest)
    arguments.add("--toolchain", hip.identity)
    arguments.add("--arch", arch)
    arguments.add("--out", key)
    arguments.add("--")
    arguments.add_all([logical_path(flag) for flag in flags])
    run_py_tool(
        ctx,
        tool = ctx.attr._key,
        arguments = [arguments],
        inputs = [source, headers.digest],
        outputs = [key],
        mnemonic = "CodeObjectKey",
        progress_message = "Computing the key of %{label}",
    )

    packed = ctx.actions.declare_file(ctx.label.name + ".hsaco.zst")
    ctx.actions.run(
        executable = ctx.executable._pack,
        arguments = [code_object.path, packed.path],
        inputs = [code_object],
        outputs = [packed],
        mnemonic = "CodeObjectPack",
        progress_message = "Packing %{label}",
    )

    data_symbol = "attn_code_object_%s_%s" % (instance, arch)
    metadata = ctx.actions.declare_file(ctx.label.name + ".json")
    arguments = ctx.actions.args()
    arguments.add("--code-object", code_object)
    arguments.add("--packed", packed)
    arguments.add("--key", key)
    arguments.add("--instance", instance)
    arguments.add("--arch", arch)
    arguments.add("--block-size", ctx.attr.block_size)
    arguments.add("--data-symbol", data_symbol)
    arguments.add("--out", metadata)
    run_py_tool(
        ctx,
        tool = ctx.attr._metadata,
        arguments = [arguments],
        inputs = [code_object, packed, key],
        outputs = [metadata],
        mnemonic = "CodeObjectMetadata",
        progress_message = "Checking %{label}",
    )

    return [
        DefaultInfo(files = depset([code_object])),
        OutputGroupInfo(key = [key], metadata = [metadata], packed = [packed]),
        CodeObjectInfo(
            arch = arch,
            code_object = code_object,
            data_symbol = data_symbol,
            instance = instance,
            key = key,
            metadata = metadata,
            packed = packed,
        ),
    ]

code_object = rule(
    implementation = _code_object_impl,
    doc = "A code object and what is known of it; output groups key, metadata, packed.",
    attrs = {
        "arch": attr.string(mandatory = True, doc = "one of archs.toml"),
        "block_size": attr.int(mandatory = True, doc = "work-items per workgroup, to be checked"),
        "copts": attr.string_list(doc = "flags beyond the toolchain's; they enter the key"),
        "headers": attr.label(mandatory = True, providers = [HeaderTreeInfo]),
        "instance": attr.string(
            doc = "the instance's name, which is its kernel's symbol; the target's by default",
        ),
        "src": attr.label(allow_single_file = [".cpp"], mandatory = True),
        "_key": attr.label(cfg = "exec", default = "//kernels/private:key"),
        "_metadata": attr.label(cfg = "exec", default = "//kernels/private:metadata"),
        "_pack": attr.label(cfg = "exec", default = "//kernels/pack", executable = True),
    },
    toolchains = [HIP_TOOLCHAIN_TYPE],
)
