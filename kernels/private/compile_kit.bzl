# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""compile_kit: all that makes code objects once more, on a machine that has the library alone.

It is made of the inputs of their compiles, each at its logical path, so that it is a tree in which
the flags of a spec hold as they are: the library compiles with these (aiter/runtime/kit/kit.h).
"""

load("//aiter:version.bzl", "VERSION")
load("//kernels/private:code_object.bzl", "KIT_ATTRS", "kernels_of_kit")
load("//kernels/private:logical_path.bzl", "logical_path")
load("//kernels/private:pack.bzl", "PACKER_ATTRS", "PACK_FILE_ATTRS", "write_pack_file")
load("//kernels/private:providers.bzl", "CompileKitInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

# A library of another build than the kit's says that it is to be installed.
_DISTRIBUTION = "aiter-attn-compile-kit"

def _place(file):
    """The path of an input of a compile in the kit."""
    if not file.is_source:
        fail("%s is made by the build: no flag of a spec can name it" % file.path)
    return logical_path(file.path)

def _add(files, place, file):
    if files.get(place, file) != file:
        fail("both %s and %s are %s in the kit" % (files[place].path, file.path, place))
    files[place] = file

def _sources(ctx, name, infos):
    """The kit's description, and its sources as a file of a pack."""
    description = ctx.actions.declare_file(name + ".parts/kit")
    pack = ctx.actions.declare_file(name + ".parts/sources.pack")
    recipes = {info.recipe: None for info in infos}.keys()
    sources = {info.kit.source: None for info in infos}.keys()
    arguments = ctx.actions.args()
    arguments.add("--version", VERSION)
    arguments.add_all({info.arch: None for info in infos}.keys(), format_each = "--arch=%s")
    arguments.add("--packer", ctx.executable._packer)
    arguments.add("--description", description)
    arguments.add("--pack", pack)
    files = ctx.actions.args()
    files.add_all(recipes, format_each = "--recipe=%s")
    files.add_all(sources, format_each = "--source=%s")
    files.use_param_file("--flagfile=%s")
    files.set_param_file_format("multiline")
    run_py_tool(
        ctx,
        tool = ctx.attr._write_kit,
        arguments = [arguments, files],
        inputs = recipes + sources,
        outputs = [description, pack],
        tools = [ctx.executable._packer],
        mnemonic = "CompileKit",
        progress_message = "Writing the compile kit %{label}",
    )
    packed = write_pack_file(ctx, pack, name + ".parts/sources.attnpack", _DISTRIBUTION)
    return description, packed

def _compile_kit_impl(ctx):
    infos = kernels_of_kit(ctx)
    description, packed = _sources(ctx, ctx.label.name, infos)
    files = {
        "kit": description,
        "launch": ctx.file._launch,
        "sources.attnpack": packed,
    }
    for file in depset(transitive = [info.kit.inputs for info in infos]).to_list():
        _add(files, _place(file), file)
    return [
        DefaultInfo(
            files = depset([description, packed]),
            runfiles = ctx.runfiles(root_symlinks = {
                "%s/%s" % (ctx.label.name, place): file
                for place, file in files.items()
            }),
        ),
        CompileKitInfo(files = files),
    ]

compile_kit = rule(
    implementation = _compile_kit_impl,
    doc = "A kit that makes code objects; in runfiles it is the folder NAME beside workspaces.",
    attrs = KIT_ATTRS | PACKER_ATTRS | PACK_FILE_ATTRS | {
        "_launch": attr.label(
            default = "//kernels/compile_kit:launch",
            allow_single_file = True,
        ),
        "_write_kit": attr.label(cfg = "exec", default = "//kernels/compile_kit:write_kit"),
    },
    provides = [CompileKitInfo],
)
