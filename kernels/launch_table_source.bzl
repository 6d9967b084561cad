# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""launch_table_source: the rows of aiter/launch_table.h, and the manifest, of what is shipped."""

load("//kernels:flags.bzl", "ArchsInfo", "VariantSetInfo")
load("//kernels:providers.bzl", "CodeObjectsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "hip_toolchain")

def _launch_table_source_impl(ctx):
    code_objects = ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list()
    metadata = [info.metadata for info in code_objects]
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    manifest = ctx.actions.declare_file(ctx.label.name + ".json")
    arguments = ctx.actions.args()
    arguments.add("--variant-set", ctx.attr.variants[VariantSetInfo].name)
    arguments.add_joined("--archs", ctx.attr.archs[ArchsInfo].archs, join_with = ",")
    arguments.add("--toolchain", hip_toolchain(ctx).identity)
    arguments.add_all(ctx.files.instances, before_each = "--instances")
    arguments.add("--source", source)
    arguments.add("--manifest", manifest)
    files = ctx.actions.args()
    files.add_all(metadata)
    files.use_param_file("@%s")
    files.set_param_file_format("multiline")
    run_py_tool(
        ctx,
        tool = ctx.attr._launch_table,
        arguments = [arguments, files],
        inputs = metadata + ctx.files.instances,
        outputs = [source, manifest],
        mnemonic = "LaunchTable",
        progress_message = "Writing the launch table %{label}",
    )
    return [
        DefaultInfo(files = depset([source])),
        OutputGroupInfo(manifest = [manifest]),
    ]

launch_table_source = rule(
    implementation = _launch_table_source_impl,
    doc = "The launch table's source; output group manifest: the same as JSON.",
    attrs = {
        "archs": attr.label(mandatory = True, providers = [ArchsInfo]),
        "code_objects": attr.label(mandatory = True, providers = [CodeObjectsInfo]),
        "instances": attr.label_list(
            allow_files = [".json"],
            mandatory = True,
            doc = "what is known of the instances; the first holds the variant sets",
        ),
        "variants": attr.label(mandatory = True, providers = [VariantSetInfo]),
        "_launch_table": attr.label(cfg = "exec", default = "//kernels/private:launch_table"),
    },
    toolchains = [HIP_TOOLCHAIN_TYPE],
)
