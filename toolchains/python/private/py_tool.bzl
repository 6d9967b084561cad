# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Python programs that run in actions."""

load("//toolchains/versions:abis.bzl", "TOOLS_ABI")

PyToolInfo = provider(
    doc = "A Python program for actions; see run_py_tool.",
    fields = {
        "files": "depset of File: interpreter, program, modules and data",
        "interpreter": "File: the python3 to execute",
        "main": "File: the program",
        "path": "list of str: where modules are found, from the execution root",
    },
)

def _abi_impl(_settings, _attr):
    return {"//toolchains/python:abi": TOOLS_ABI}

# A program's imports are of the ABI that it runs on.
_abi = transition(
    implementation = _abi_impl,
    inputs = [],
    outputs = ["//toolchains/python:abi"],
)

# This repository, from the execution root; empty where it is the main one.
_OWN_ROOT = Label("//:BUILD.bazel").workspace_root

def _module_folders(ctx, imports):
    """Import paths, which start with a repository's name, as folders of the execution root."""
    folders = {}
    for root in [_OWN_ROOT, ctx.label.workspace_root]:
        folders[root or "."] = None
        folders["/".join([part for part in [ctx.bin_dir.path, root] if part])] = None
    for path in imports:
        repository, _, rest = path.partition("/")
        for root in ["", ctx.bin_dir.path + "/"]:
            if repository == ctx.workspace_name:
                folders[root + rest] = None
            else:
                folders["%sexternal/%s" % (root, path)] = None
    return folders.keys()

def _py_tool_impl(ctx):
    infos = [dep[PyInfo] for dep in ctx.attr.deps]
    files = depset(
        ctx.files.srcs + ctx.files.data + [ctx.file.main],
        transitive = [ctx.attr._files.files] +
                     [info.transitive_sources for info in infos] +
                     [dep[DefaultInfo].default_runfiles.files for dep in ctx.attr.deps],
    )
    imports = depset(transitive = [info.imports for info in infos])
    return [
        DefaultInfo(files = files),
        PyToolInfo(
            files = files,
            interpreter = ctx.file._interpreter,
            main = ctx.file.main,
            path = _module_folders(ctx, imports.to_list()),
        ),
    ]

py_tool = rule(
    implementation = _py_tool_impl,
    doc = """A Python program for actions, to be run by run_py_tool.

It runs on the Python of TOOLS_ABI, for every ABI that is built for. Modules of this repository and
of the target's own are imported by their full names (`from kernels.code_object import spec`); the
program's own folder is no place of modules.""",
    attrs = {
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(cfg = _abi, providers = [PyInfo], doc = "py_library targets"),
        "main": attr.label(mandatory = True, allow_single_file = [".py"]),
        "srcs": attr.label_list(allow_files = [".py"], doc = "modules beside `main`"),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
        "_files": attr.label(default = "@python//:tools_files"),
        "_interpreter": attr.label(
            allow_single_file = True,
            default = "@python//:tools_interpreter",
        ),
    },
)

def run_py_tool(ctx, *, tool, arguments, outputs, inputs = [], env = {}, **kwargs):
    """Declares an action that runs a py_tool. It needs no Python of the host's.

    Args:
      ctx: the rule's context.
      tool: the py_tool, from an attribute with `cfg = "exec"`.
      arguments: of the program: strings and Args. A persistent worker's param file comes last.
      outputs: list of File.
      inputs: list or depset of File, beside the tool's own.
      env: environment of the program.
      **kwargs: of ctx.actions.run: mnemonic, progress_message, execution_requirements, ...
    """
    info = tool[PyToolInfo]
    inputs = inputs if type(inputs) == "depset" else depset(inputs)
    ctx.actions.run(
        executable = info.interpreter,
        # -P: the program's folder is no place of modules. -S: nor is site-packages.
        arguments = ["-P", "-S", info.main.path] + arguments,
        inputs = depset(transitive = [inputs, info.files]),
        outputs = outputs,
        env = {
            "LC_ALL": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": ":".join(info.path),
        } | env,
        **kwargs
    )
