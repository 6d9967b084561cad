# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""ahead_of_time: how kernels that exist as source were compiled, as data of a C++ library."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//kernels/private:embed.bzl", "EMBED_ATTRS", "embedding_library")
load("//kernels/private:providers.bzl", "CodeObjectsInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

_SOURCE = """// Generated. Do not edit.
#include "kernels/code_object/ahead_of_time.h"
#include "kernels/private/embed.h"

{embeds}
namespace AITER_ATTN_NAMESPACE::kernels {{

AheadOfTimeKernels {function}();

AheadOfTimeKernels {function}() {{
{recipes}
  return {{recipes, count, "{flag}", "{archs}", "{list}", "{set_flag}"}};
}}

}}  // namespace AITER_ATTN_NAMESPACE::kernels
"""

_RECIPES = """  static const AheadOfTimeRecipe recipes[] = {{
{rows}  }};
  const size_t count = sizeof(recipes) / sizeof(recipes[0]);"""

_NO_RECIPES = """  const AheadOfTimeRecipe* const recipes = nullptr;
  const size_t count = 0;"""

def _text(name):
    return "{reinterpret_cast<const char*>(%s), static_cast<size_t>(%s_end - %s)}" % (
        name,
        name,
        name,
    )

def _write_manifest(ctx, infos):
    manifest = ctx.actions.declare_file(ctx.label.name + ".json")
    metadata = [info.metadata for info in infos]
    names = sorted({info.instance: None for info in infos})
    arguments = ctx.actions.args()
    arguments.add("--out", manifest)
    files = ctx.actions.args()
    files.add_all(metadata, format_each = "--metadata=%s")
    files.add_all([
        "--operation=%s=%s" % (name, ctx.attr.operations[name])
        for name in names
    ])
    files.use_param_file("--flagfile=%s")
    files.set_param_file_format("multiline")
    run_py_tool(
        ctx,
        tool = ctx.attr._write_built_in,
        arguments = [arguments, files],
        inputs = metadata,
        outputs = [manifest],
        mnemonic = "BuiltInKernels",
        progress_message = "Listing the kernels of %{label}",
    )
    return manifest

def _ahead_of_time_impl(ctx):
    infos = ctx.attr.code_objects[CodeObjectsInfo].code_objects.to_list()
    archs = {info.arch: info.code_object.extension for info in infos}
    embedded = {info.code_object.extension: info.recipe for info in infos}
    rows = [
        "      {\"%s\", %s},\n" % (arch, _text("%s_%s" % (ctx.attr.function, kind)))
        for arch, kind in archs.items()
    ]
    build_list = ctx.attr.build_list.label
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(source, _SOURCE.format(
        archs = " ".join(ctx.attr.build_archs),
        embeds = "".join([
            "ATTN_EMBED(%s_%s, \"%s\");\n" % (ctx.attr.function, name, file.path)
            for name, file in embedded.items()
        ]),
        flag = ctx.attr.build_flag,
        function = ctx.attr.function,
        # No path of the file's, which another repository's build has another of.
        list = "{}/{}".format(build_list.package, build_list.name),
        recipes = _RECIPES.format(rows = "".join(rows)) if infos else _NO_RECIPES,
        set_flag = ctx.attr.set_flag,
    ))
    return [
        DefaultInfo(files = depset(embedded.values())),
        OutputGroupInfo(manifest = [_write_manifest(ctx, infos)]),
        embedding_library(
            ctx,
            source = source,
            data = embedded.values(),
            deps = [ctx.attr._header[CcInfo]],
        ),
    ]

ahead_of_time = rule(
    implementation = _ahead_of_time_impl,
    doc = """A C++ library that defines a function which returns an AheadOfTimeKernels.

Output group manifest: a JSON list of the code objects, by kernel and arch.""",
    attrs = {
        "build_archs": attr.string_list(mandatory = True, doc = "the flag's values"),
        "build_flag": attr.string(
            mandatory = True,
            doc = "the flag that chooses the code objects, for messages",
        ),
        "build_list": attr.label(
            allow_single_file = True,
            mandatory = True,
            doc = "the file that says which kernels there are, for messages",
        ),
        "code_objects": attr.label(mandatory = True, providers = [CodeObjectsInfo]),
        "function": attr.string(mandatory = True, doc = "its name in namespace kernels"),
        "operations": attr.string_dict(
            mandatory = True,
            doc = "instance -> what it computes, for the manifest",
        ),
        "set_flag": attr.string(
            mandatory = True,
            doc = "the flag that chooses such a file, for messages",
        ),
        "_header": attr.label(
            default = "//kernels/code_object:ahead_of_time_h",
            providers = [CcInfo],
        ),
        "_write_built_in": attr.label(
            cfg = "exec",
            default = "//kernels/code_object:write_built_in",
        ),
    } | EMBED_ATTRS,
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain(),
)
