# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""many_objects: a library of one object many times, below a folder with a space in its name."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

def _many_objects_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    objects = [
        ctx.actions.declare_file("%s/a folder/%d.pic.o" % (ctx.label.name, i))
        for i in range(ctx.attr.count)
    ]
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add(ctx.file.archive, format = "--archive=%s")
    arguments.add("--")
    arguments.add_all(objects)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_many,
        arguments = [arguments],
        inputs = [ctx.file.archive],
        outputs = objects,
        mnemonic = "ManyObjects",
    )
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = cc_toolchain,
        ),
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            pic_objects = depset(objects),
        ),
        alwayslink = True,
        disallow_dynamic_library = True,
    )
    return [CcInfo(linking_context = linking_context)]

many_objects = rule(
    implementation = _many_objects_impl,
    doc = "The object of a code_object_library, `count` times.",
    attrs = {
        "archive": attr.label(mandatory = True, allow_single_file = [".a", ".lo"]),
        "count": attr.int(mandatory = True),
        "_write_many": attr.label(
            cfg = "exec",
            default = ":write_many",
            providers = [PyToolInfo],
        ),
    },
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
    provides = [CcInfo],
)
