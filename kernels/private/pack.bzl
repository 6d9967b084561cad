# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects as a pack: code_object/embedded_pack.h has its format."""

load("//aiter:version.bzl", "VERSION")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _pair(info):
    return "%s=%s" % (info.metadata.path, info.code_object.path)

def object_arguments(ctx, infos):
    """Code objects as arguments --object=METADATA=CODE_OBJECT.

    Args:
      ctx: the rule's context.
      infos: list of CodeObjectInfo.
    Returns:
      Args, in a file where they are long.
    """
    files = ctx.actions.args()
    files.add_all(infos, format_each = "--object=%s", map_each = _pair)
    files.use_param_file("--flagfile=%s")
    files.set_param_file_format("multiline")
    return files

# As code_object/pack_writer.cc has it.
_OBJECTS_OF_THREAD = 64
_MOST_THREADS = 8

def _resources(_os, inputs):
    # Each code object has its metadata beside it.
    threads = inputs // 2 // _OBJECTS_OF_THREAD
    return {"cpu": max(1, min(threads, _MOST_THREADS)), "memory": 250 + inputs // 10}

def write_pack(ctx, infos, name = None):
    """Declares the action.

    Args:
      ctx: the rule's context; its rule has PACK_ATTRS.
      infos: list of CodeObjectInfo.
      name: of the pack, without .pack; the target's by default.
    Returns:
      The pack, a File.
    """
    pack = ctx.actions.declare_file((name or ctx.label.name) + ".pack")
    arguments = ctx.actions.args()
    arguments.add("--packer", ctx.executable._packer)
    arguments.add("--out", pack)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_pack,
        arguments = [arguments, object_arguments(ctx, infos)],
        inputs = [file for info in infos for file in (info.metadata, info.code_object)],
        outputs = [pack],
        tools = [ctx.executable._packer],
        mnemonic = "EmbeddedPack",
        progress_message = "Packing %{label}",
        resource_set = _resources,
    )
    return pack

def write_pack_file(ctx, pack, file, distribution):
    """Declares the action that puts the head of a pack file before a pack.

    Args:
      ctx: the rule's context; its rule has PACK_FILE_ATTRS.
      pack: File.
      file: name of the file, in the target's package.
      distribution: the name of the one that brings it: a library of another build says that it is
        to be installed.
    Returns:
      The file, a File: aiter/runtime/store/pack_file.h has its format.
    """
    made = ctx.actions.declare_file(file)
    arguments = ctx.actions.args()
    arguments.add("--pack", pack)
    arguments.add("--version", VERSION)
    arguments.add("--distribution", distribution)
    arguments.add("--out", made)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_pack_file,
        arguments = [arguments],
        inputs = [pack],
        outputs = [made],
        mnemonic = "PackFile",
    )
    return made

PACKER_ATTRS = {
    "_packer": attr.label(
        cfg = "exec",
        default = "//kernels/code_object:packer",
        executable = True,
    ),
}

PACK_FILE_ATTRS = {
    "_write_pack_file": attr.label(
        cfg = "exec",
        default = "//kernels/code_object:write_pack_file",
    ),
}

PACK_ATTRS = PACKER_ATTRS | {
    "_write_pack": attr.label(cfg = "exec", default = "//kernels/code_object:write_pack"),
}
