# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The machine code of kernels with each choice of options, measured by a cached action for each.

An aspect on code_object targets; nothing of it is in a build that does not ask for it:

    bazel build --aspects=//kernels/options:tried.bzl%tried_options \\
        --output_groups=tried LABEL...
"""

load(
    "//kernels/private:code_object.bzl",
    "compile_resources",
    "module_arguments",
    "source_arguments",
)
load(
    "//kernels/private:providers.bzl",
    "CodeObjectInfo",
    "CodeObjectRecipeInfo",
    "CompileGroupInfo",
)
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/rocm:hip.bzl", "family_of")

def _module(target, ctx, info, recipe, family):
    """The optimised IR: that of the compile group, or of the kernel's own compile."""
    if ctx.rule.attr.group:
        return ctx.rule.attr.group[CompileGroupInfo].modules[info.instance]
    module = ctx.actions.declare_file(target.label.name + ".bc")
    source = info.kit.source
    ctx.actions.run(
        executable = recipe.compiler,
        arguments = source_arguments(recipe, info.arch) + family.flags +
                    ["-c", "-emit-llvm", source.path, "-o", module.path],
        inputs = depset([source], transitive = [recipe.inputs, family.files]),
        outputs = [module],
        mnemonic = "HipModule",
        resource_set = compile_resources,
        progress_message = "Compiling %{label} to IR",
    )
    return module

def _tried_options_impl(target, ctx):
    if ctx.rule.kind != "code_object":
        return []
    info = target[CodeObjectInfo]
    recipe = ctx.rule.attr.recipe[CodeObjectRecipeInfo]
    family = family_of(recipe.families, info.arch)
    source = info.kit.source
    described = ctx.actions.declare_file(target.label.name + ".described.json")
    ctx.actions.write(described, json.encode({
        "arch": info.arch,
        "copts": ctx.rule.attr.copts,
        "flags": family.flags,
        "instance": info.instance,
        "recipe": info.recipe.path,
        "source": source.path,
    }))

    module = _module(target, ctx, info, recipe, family)
    tried = ctx.actions.declare_file(target.label.name + ".tried.json")
    arguments = ctx.actions.args()
    arguments.add("--instance", info.instance)
    arguments.add("--arch", info.arch)
    arguments.add("--block_size", ctx.rule.attr.block_size)
    arguments.add("--choices", ctx.file._choices)
    arguments.add("--module", module)
    arguments.add("--mca", ctx.executable._mca)
    arguments.add("--objdump", ctx.executable._objdump)
    arguments.add("--out", tried)
    arguments.add("--")
    arguments.add(recipe.compiler)
    run_py_tool(
        ctx,
        tool = ctx.attr._try_options,
        arguments = [arguments] + module_arguments(recipe, info.arch) + family.flags,
        inputs = depset([module, ctx.file._choices], transitive = [recipe.inputs, family.files]),
        outputs = [tried],
        tools = [
            ctx.attr._mca[DefaultInfo].files_to_run,
            ctx.attr._objdump[DefaultInfo].files_to_run,
            recipe.compiler,
        ],
        mnemonic = "TryOptions",
        progress_message = "Trying options of %{label}",
    )
    return [OutputGroupInfo(
        described = depset([described, info.recipe, source]),
        tried = depset([tried]),
    )]

tried_options = aspect(
    implementation = _tried_options_impl,
    doc = """The figures that choose_options goes by, of a code object.

Output groups described: how it is compiled, with the files that say so; nothing is compiled for
them. tried: the figures of its machine code with each choice.""",
    attrs = {
        "_choices": attr.label(
            allow_single_file = True,
            default = "//kernels/ck_fmha/options:choices.json",
        ),
        "_mca": attr.label(cfg = "exec", default = "@llvm//:llvm-mca", executable = True),
        "_objdump": attr.label(cfg = "exec", default = "@llvm//:llvm-objdump", executable = True),
        "_try_options": attr.label(
            cfg = "exec",
            default = "//kernels/options:try_options",
        ),
    },
)
