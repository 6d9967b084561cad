# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""code_object_files: code objects of others, by the names of their files, as a cc_library."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _foreign_sources_impl(ctx):
    # In a folder of its own, which can be an include directory in the root package, too.
    header = ctx.actions.declare_file("%s.include/%s.h" % (ctx.attr.prefix, ctx.attr.prefix))
    source = ctx.actions.declare_file(ctx.attr.prefix + ".cc")
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add(ctx.attr.prefix, format = "--name=%s")
    arguments.add(header, format = "--header=%s")
    arguments.add(source, format = "--source=%s")
    arguments.add_all(ctx.files.srcs, format_each = "--file=%s")
    run_py_tool(
        ctx,
        tool = ctx.attr._write_foreign,
        arguments = [arguments],
        inputs = ctx.files.srcs,
        outputs = [header, source],
        mnemonic = "ForeignCodeObjects",
        progress_message = "Reading the archs of %{label}",
    )
    return [
        DefaultInfo(files = depset([source])),
        OutputGroupInfo(header = depset([header])),
    ]

_foreign_sources = rule(
    implementation = _foreign_sources_impl,
    attrs = {
        "prefix": attr.string(mandatory = True),
        "srcs": attr.label_list(mandatory = True, allow_files = [".co", ".hsaco"]),
        "_write_foreign": attr.label(
            cfg = "exec",
            default = "//kernels/code_object:write_foreign",
        ),
    },
)

def code_object_files(name, srcs, **kwargs):
    """A cc_library with code objects, which C finds by the names that they have in AITER's tree.

    #include <NAME.h>: NAME_find("hsa/ARCH/SUBDIR/FILE.co", &size), NAME_count(), NAME_path(index).
    The build fails where a file is not for the arch of its folder.

    Args:
      name: of the target, and of its functions: a C identifier.
      srcs: .co and .hsaco files in folders hsa/ARCH/SUBDIR, as of glob(["hsa/**"]).
      **kwargs: of cc_library: visibility, testonly, ...
    """
    common = {key: kwargs[key] for key in ["testonly", "tags"] if key in kwargs}
    _foreign_sources(
        name = name + ".sources",
        prefix = name,
        srcs = srcs,
        visibility = ["//visibility:private"],
        **common
    )
    native.filegroup(
        name = name + ".header",
        srcs = [":%s.sources" % name],
        output_group = "header",
        visibility = ["//visibility:private"],
        **common
    )
    cc_library(
        name = name,
        srcs = [":%s.sources" % name],
        hdrs = [":%s.header" % name],
        additional_compiler_inputs = srcs,
        includes = [name + ".include"],
        linkstatic = True,
        deps = [Label("//kernels/private:embed_h")],
        **kwargs
    )
