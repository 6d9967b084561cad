# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""py_extension: a Python module that is compiled of C or C++."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_shared_library")
load("@rules_python//python:defs.bzl", "PyInfo")
load("//toolchains/versions:abis.bzl", "ABIS")
load(":abi.bzl", "HOST", "HOST_TAG")

def _extension_file_impl(ctx):
    (library,) = ctx.files.deps
    tag = "abi3" if ctx.attr.py_limited_api else ctx.attr.soabi
    module = ctx.actions.declare_file("%s.%s.so" % (ctx.attr.module_name or ctx.label.name, tag))
    ctx.actions.symlink(output = module, target_file = library)
    runfiles = ctx.runfiles([module] + ctx.files.data).merge_all([
        target[DefaultInfo].default_runfiles
        for target in ctx.attr.data + ctx.attr.deps
    ])
    repository = ctx.label.workspace_name or ctx.workspace_name
    folder = "/".join([part for part in [repository, ctx.label.package] if part])
    return [
        DefaultInfo(files = depset([module]), runfiles = runfiles),
        PyInfo(
            imports = depset([
                folder if path == "." else folder + "/" + path
                for path in ctx.attr.imports
            ]),
            transitive_sources = depset([module]),
        ),
    ]

_extension_file = rule(
    implementation = _extension_file_impl,
    doc = "A shared library by the name that CPython looks for, for py_library and its like.",
    attrs = {
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(mandatory = True, doc = "the shared library"),
        "imports": attr.string_list(),
        "module_name": attr.string(),
        "py_limited_api": attr.string(),
        "soabi": attr.string(mandatory = True),
    },
    provides = [PyInfo],
)

# Values of resolved_abi -> the ABI tag of wheels.
ABI_TAGS = {abi: abi for abi in ABIS} | {HOST: HOST_TAG}

# Attributes of every target that a py_extension is made of.
_COMMON = ["compatible_with", "tags", "target_compatible_with", "testonly"]

def py_extension(
        name,
        srcs = None,
        hdrs = None,
        copts = None,
        defines = None,
        local_defines = None,
        includes = None,
        linkopts = None,
        deps = None,
        dynamic_deps = None,
        exports_filter = None,
        user_link_flags = None,
        additional_linker_inputs = None,
        module_name = None,
        py_limited_api = None,
        visibility = None,
        **kwargs):
    """A Python extension module, for the ABI of --//toolchains/python:abi.

    The attributes are those of rules_python's py_extension, which the locked rules_python does not
    have yet. The file is PACKAGE/MODULE.cpython-311-x86_64-linux-gnu.so; py_library, py_binary and
    py_test take it as one of their deps.

    Args:
      name: of the target.
      srcs: C and C++ files of the module; or none, where deps have its PyInit function.
      hdrs: their headers.
      copts: how srcs are compiled.
      defines: macros for srcs and whoever depends on them.
      local_defines: macros for srcs alone.
      includes: include folders.
      linkopts: how srcs, as a library, want to be linked.
      deps: cc_library targets, linked in. Python's headers are added.
      dynamic_deps: cc_shared_library targets, found at run time.
      exports_filter: of cc_shared_library.
      user_link_flags: how the module is linked; $(location) knows additional_linker_inputs.
      additional_linker_inputs: files that user_link_flags name.
      module_name: the module's name, with folders of the package before it; default: name.
      py_limited_api: like "3.8": the module keeps to the limited API, and its file is named so.
      visibility: of the target.
      **kwargs: data, imports; and what is common to all rules.
    """
    common = {key: value for key, value in kwargs.items() if key in _COMMON}
    libraries = (deps or []) + [Label("//toolchains/python:python_headers")]
    if srcs or hdrs:
        cc_library(
            name = "_%s_impl" % name,
            srcs = srcs,
            hdrs = hdrs,
            copts = copts,
            defines = defines,
            includes = includes,
            linkopts = linkopts,
            local_defines = local_defines,
            deps = libraries,
            visibility = ["//visibility:private"],
            **common
        )
        libraries = [":_%s_impl" % name]
    optional = {
        "dynamic_deps": dynamic_deps,
        "exports_filter": exports_filter,
    }
    cc_shared_library(
        name = "_%s_shared" % name,
        additional_linker_inputs = additional_linker_inputs,
        deps = libraries,
        user_link_flags = user_link_flags,
        visibility = ["//visibility:private"],
        **(common | {key: value for key, value in optional.items() if value != None})
    )
    _extension_file(
        name = name,
        module_name = module_name,
        py_limited_api = py_limited_api,
        soabi = select({
            Label("//toolchains/python:%s.selected" % abi): "cpython-%s-x86_64-linux-gnu" %
                                                            tag.removeprefix("cp")
            for abi, tag in ABI_TAGS.items()
        }),
        visibility = visibility,
        deps = [":_%s_shared" % name],
        **kwargs
    )
