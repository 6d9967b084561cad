# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""stand_ins(): the libraries that JAX's ROCm plugin is linked with, without ROCm."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _sources_impl(ctx):
    files = {
        file.basename: file
        for target in ctx.attr.plugins
        for file in target[DefaultInfo].default_runfiles.files.to_list()
    }
    missing = [name for name in ctx.attr.needing if name not in files]
    if missing:
        fail("%s: the plugins have no %s" % (ctx.label, ", ".join(missing)))
    inputs = [files[name] for name in ctx.attr.needing]
    outputs = [
        ctx.actions.declare_file("%s/%s.%s" % (ctx.label.name, library, suffix))
        for library in ctx.attr.libraries
        for suffix in ["c", "lds"]
    ]
    arguments = ctx.actions.args()
    arguments.add_all(ctx.attr.libraries, before_each = "--library")
    arguments.add("--out", outputs[0].dirname)
    arguments.add_all(inputs)
    run_py_tool(
        ctx,
        tool = ctx.attr._tool,
        arguments = [arguments],
        inputs = inputs,
        outputs = outputs,
        mnemonic = "StandIns",
        progress_message = "Writing stand-ins of ROCm's libraries %{label}",
    )
    return [
        DefaultInfo(files = depset(outputs)),
        OutputGroupInfo(**{file.basename: depset([file]) for file in outputs}),
    ]

_sources = rule(
    implementation = _sources_impl,
    attrs = {
        "libraries": attr.string_list(mandatory = True),
        "needing": attr.string_list(mandatory = True),
        "plugins": attr.label_list(mandatory = True),
        "_tool": attr.label(cfg = "exec", default = "//tests/emulation/jax:stand_ins"),
    },
)

def stand_ins(*, name, plugins, needing, libraries):
    """A filegroup of shared libraries, by their sonames.

    Args:
      name: of the filegroup.
      plugins: Python distributions.
      needing: names of their files whose needs are met.
      libraries: soname -> what is linked in front of the stand-ins.
    """
    _sources(
        name = name + ".sources",
        testonly = True,
        libraries = libraries.keys(),
        needing = needing,
        plugins = plugins,
    )
    for library, deps in libraries.items():
        for suffix in ["c", "lds"]:
            native.filegroup(
                name = "%s.%s.%s" % (name, library, suffix),
                srcs = [name + ".sources"],
                output_group = "%s.%s" % (library, suffix),
                testonly = True,
            )
        cc_binary(
            name = library,
            testonly = True,
            srcs = ["%s.%s.c" % (name, library)],
            additional_linker_inputs = ["%s.%s.lds" % (name, library)],
            copts = [
                "-fno-builtin",
                "-w",
            ],
            linkopts = [
                "-Wl,--version-script=$(execpath %s.%s.lds)" % (name, library),
                "-Wl,-soname," + library,
            ],
            linkshared = True,
            deps = deps,
        )
    native.filegroup(name = name, srcs = libraries.keys(), testonly = True)
