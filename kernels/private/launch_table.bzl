# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""launch_table: the rows of launch_table/launch_table.h, and the manifest, of the shipped
kernels."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//kernels/private:code_object.bzl", "specs_alone")
load("//kernels/private:embed.bzl", "EMBED_ATTRS", "embedding_library")
load("//kernels/private:flags.bzl", "ArchsInfo")
load("//kernels/private:kernel_plan.bzl", "kernel_plan")
load("//kernels/private:providers.bzl", "CodeObjectsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "hip_toolchain")

def _described(info):
    return "--on_demand=" + json.encode({
        "arch": info.arch,
        "flags": info.kit.flags,
        "instance": info.instance,
        "proven": info.kit.proven,
        "recipe": info.recipe.path,
        "source": info.kit.source.path,
    })

def _launch_table_impl(ctx):
    name = ctx.label.name
    infos = []
    metadata = []
    specs = []
    archs = []
    if ctx.attr.code_objects:
        infos = ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list()
        metadata = [info.metadata for info in infos]
        specs = [info.spec for info in infos]
        archs = sorted({info.arch: None for info in infos})
    if ctx.attr.archs and archs != ctx.attr.archs[ArchsInfo].archs:
        fail("the code objects are for %s, the chosen archs are %s" %
             (archs, ctx.attr.archs[ArchsInfo].archs))
    built = {(info.instance, info.arch): None for info in infos}
    on_demand = [
        info
        for target in ctx.attr.on_demand
        for info in target[CodeObjectsInfo].code_objects.to_list()
        if (info.instance, info.arch) not in built
    ]
    blob = ctx.actions.declare_file(name + ".blob")
    source = ctx.actions.declare_file(name + ".cc")
    manifest = ctx.actions.declare_file(name + ".json")
    arguments = ctx.actions.args()
    arguments.add("--variant_set", ctx.attr.variant_set)
    arguments.add_all(archs, before_each = "--arch")
    if bool(archs) == bool(ctx.attr.rows_of_archs):
        fail("%s: give code_objects, or rows_of_archs where there are none" % ctx.label)
    arguments.add_all(archs or ctx.attr.rows_of_archs, before_each = "--rows_of_arch")
    arguments.add("--archs_file", ctx.file._archs_file)
    arguments.add("--toolchain", hip_toolchain(ctx).identity)
    arguments.add_all(ctx.files.rows, before_each = "--rows")
    arguments.add("--blob", blob)
    arguments.add("--source", source)
    arguments.add("--manifest", manifest)
    files = ctx.actions.args()
    files.add_all(metadata, format_each = "--metadata=%s")
    files.add_all(ctx.files.on_demand_rows, format_each = "--on_demand_rows=%s")
    files.add_all(on_demand, map_each = _described)
    files.use_param_file("--flagfile=%s")
    files.set_param_file_format("multiline")
    run_py_tool(
        ctx,
        tool = ctx.attr._write_table,
        arguments = [arguments, files],
        inputs = metadata + specs + ctx.files.rows + ctx.files.on_demand_rows +
                 [ctx.file._archs_file] + [info.kit.source for info in on_demand] +
                 {info.recipe: None for info in on_demand}.keys(),
        outputs = [blob, source, manifest],
        mnemonic = "LaunchTable",
        progress_message = "Writing the launch table %{label}",
    )
    deps = [dep[CcInfo] for dep in ctx.attr.deps + [ctx.attr._launch_table]]
    return [
        DefaultInfo(files = depset([blob])),
        OutputGroupInfo(
            manifest = [manifest],
            _validation = [kernel_plan(ctx, infos, ctx.file.compile_cost)],
        ),
        embedding_library(ctx, source = source, data = [blob], deps = deps),
    ]

launch_table = rule(
    implementation = _launch_table_impl,
    doc = """A C++ library that defines launch_table() of launch_table/launch_table.h.

Its file is the blob; output group manifest: the same as JSON, for people and tools.""",
    attrs = {
        "archs": attr.label(
            providers = [ArchsInfo],
            doc = "an archs_flag: what the code objects must be for",
        ),
        "code_objects": attr.label(
            providers = [CodeObjectsInfo],
            doc = "one per row and arch; without, the table says how to launch and no more",
        ),
        "compile_cost": attr.label(
            allow_single_file = [".toml"],
            doc = "figures that the compile time of the kernels is estimated by",
        ),
        "deps": attr.label_list(
            providers = [CcInfo],
            doc = "the launch functions that the rows name",
        ),
        "on_demand": attr.label(
            cfg = specs_alone,
            providers = [CodeObjectsInfo],
            doc = "kernels that the table has beside those of code_objects, for any archs; they " +
                  "are described by their specs and by locks, and none is compiled",
        ),
        "on_demand_rows": attr.label_list(
            allow_files = [".json"],
            doc = "the rows of these, as `rows`",
        ),
        "rows": attr.label_list(
            allow_files = [".json"],
            mandatory = True,
            doc = "the rows, in table order; see launch_table/table.py",
        ),
        "rows_of_archs": attr.string_list(
            doc = "of a table without code objects: the archs whose rows it has",
        ),
        "variant_set": attr.string(mandatory = True, doc = "the name in the table"),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
        "_archs_file": attr.label(
            default = "@archs//:archs.json",
            allow_single_file = True,
        ),
        "_launch_table": attr.label(
            default = "//kernels/launch_table",
            providers = [CcInfo],
        ),
        "_write_table": attr.label(cfg = "exec", default = "//kernels/launch_table:write_table"),
    } | EMBED_ATTRS,
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = [HIP_TOOLCHAIN_TYPE] + use_cc_toolchain(),
)
