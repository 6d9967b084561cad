# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""compile_group: instances of one shape, compiled together as far as they share code.

Most of an instance's compile is spent on templates that its siblings use as well. A group is one
translation unit of its members, up to optimised IR; from there on each goes its own way:

    combine   sources             -> NAME.cpp
    compile   NAME.cpp, headers   -> NAME/INSTANCE.bc, for each member

code_object makes machine code of a member's module. Whether the member's own compile gives the same
is not known here: until that is proven, the code object's key is of the group.
"""

load(
    "//kernels/private:providers.bzl",
    "CodeObjectRecipeInfo",
    "CompileGroupInfo",
)
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/remote:pools.bzl", "LARGE_MEMORY")
load("//toolchains/rocm:hip.bzl", "family_of")

def _group_source(sources):
    """The translation unit of a group's members.

    Each member names its types alike, so each has a namespace. The first has none: the headers that
    it includes must not be in one, and their guards keep them out of the others.

    Args:
      sources: list of File.
    Returns:
      The text.
    """
    lines = ["// Generated. Do not edit.", "#include \"%s\"" % sources[0].path]
    for number, source in enumerate(sources[1:], 1):
        lines += [
            "namespace member_%d {" % number,
            "#include \"%s\"" % source.path,
            "} // namespace member_%d" % number,
        ]
    return "\n".join(lines) + "\n"

def _group_resources(_os, _inputs):
    """The resources of a compile of eight members; memory in MB."""
    return {"cpu": 1, "memory": 1300}

def _compile_group_impl(ctx):
    name = ctx.label.name
    recipe = ctx.attr.recipe[CodeObjectRecipeInfo]
    family = family_of(recipe.families, ctx.attr.arch)
    sources = ctx.files.srcs
    if len(sources) < 2:
        fail("srcs has %d members: a group of compiles has two at least" % len(sources))

    source = ctx.actions.declare_file(name + ".cpp")
    ctx.actions.write(source, _group_source(sources))

    instances = [file.basename.removesuffix(".cpp") for file in sources]
    modules = {
        instance: ctx.actions.declare_file("%s/%s.bc" % (name, instance))
        for instance in instances
    }

    # All of the group, which its members are taken from. It does not outlive the action.
    unit = modules.values()[0].dirname + "/unit.bc"
    extract = ctx.attr._extract[DefaultInfo].files_to_run
    arguments = ctx.actions.args()
    arguments.add("--extract", extract.executable)
    arguments.add("--unit", unit)
    arguments.add_all(modules.values(), format_each = "--out=%s")
    arguments.add_all(sources, format_each = "--source=%s")
    arguments.add("--")
    arguments.add(recipe.compiler)
    run_py_tool(
        ctx,
        tool = ctx.attr._compile,
        arguments = [
            arguments,
            recipe.arguments,
            "--offload-arch=" + ctx.attr.arch,
        ] + family.flags + [
            # Members are named by their paths from the execution root.
            "-iquote",
            ".",
            "-c",
            "-emit-llvm",
            "-o",
            unit,
            source.path,
        ],
        inputs = depset([source] + sources, transitive = [recipe.inputs, family.files]),
        outputs = modules.values(),
        tools = [extract, recipe.compiler],
        mnemonic = "HipCompileGroup",
        exec_group = LARGE_MEMORY,
        resource_set = _group_resources,
        progress_message = "Compiling %d kernels of %%{label}" % len(sources),
    )
    return [
        DefaultInfo(files = depset(modules.values())),
        CompileGroupInfo(arch = ctx.attr.arch, modules = modules, sources = sources),
    ]

compile_group = rule(
    implementation = _compile_group_impl,
    doc = "The optimised modules of several instances, one each, from one compile.",
    exec_groups = {LARGE_MEMORY: exec_group()},
    attrs = {
        "arch": attr.string(mandatory = True, doc = "one of kernels/archs"),
        "recipe": attr.label(mandatory = True, providers = [CodeObjectRecipeInfo]),
        "srcs": attr.label_list(
            allow_files = [".cpp"],
            mandatory = True,
            doc = "the members, each named as its kernel",
        ),
        "_compile": attr.label(cfg = "exec", default = "//kernels/code_object:compile_group"),
        "_extract": attr.label(cfg = "exec", default = "@llvm//:llvm-extract"),
    },
)
