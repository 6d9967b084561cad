# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Kernels of our own, as the variant sets have upstream's."""

load("@archs//:archs.bzl", "ARCHS")
load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load("//kernels/private:chosen_archs.bzl", "chosen_archs")
load(
    "//kernels/private:code_object.bzl",
    "code_object",
    "code_object_group",
    "code_object_recipe",
)
load("//kernels/private:code_object_library.bzl", "code_object_library")
load("//kernels/private:header_tree.bzl", "header_tree")

def own_kernels(name, instances):
    """Declares the kernels of a package that has its name: NAME/.

    Sources are by convention: NAME.h has the arguments and the grid, for device and host;
    NAME_kernel.h the device code; INSTANCE.cpp an instance; launch.cc the launch code,
    launch_test.cc its test; rows.json the rows of the launch table.

    Targets: `NAME`, the code objects for the chosen archs; `ARCH`, those for one, and
    `ARCH.library`; `INSTANCE.ARCH`, one of them; `headers`, their header tree; `NAME_h` and
    `launch` for the host; `launch_test`.

    Args:
      name: of the package.
      instances: names of its kernels.
    """
    header = name + ".h"
    native.exports_files(
        [i + ".cpp" for i in instances] + ["rows.json"],
        visibility = ["//kernels:inside"],
    )
    cc_library(
        name = name + "_h",
        hdrs = [header],
    )
    cc_library(
        name = "launch",
        srcs = ["launch.cc"],
        copts = ["-fvisibility=hidden"],
        deps = [
            name + "_h",
            "//kernels/launch_table",
        ],
    )
    cc_test(
        name = "launch_test",
        size = "small",
        srcs = ["launch_test.cc"],
        deps = [
            "launch",
            name + "_h",
            "//kernels/launch_table",
            "//tests/support:gtest",
            "//tests/support/attention:made_launch",
        ],
    )
    header_tree(
        name = "headers",
        hdrs = [
            header,
            name + "_kernel.h",
        ],
        includes = [""],
    )
    code_object_recipe(
        name = "recipe",
        headers = ":headers",
    )
    for arch in ARCHS:
        objects = ["%s.%s" % (instance, arch) for instance in instances]
        for instance in instances:
            code_object(
                name = "%s.%s" % (instance, arch),
                src = instance + ".cpp",
                arch = arch,
                block_size = 256,
                instance = instance,
                recipe = ":recipe",
                tags = ["manual"],
            )
            code_object_library(
                name = "%s.%s.library" % (instance, arch),
                arch = arch,
                code_object = "%s.%s" % (instance, arch),
                instance = instance,
                tags = ["manual"],
            )
        code_object_group(
            name = arch,
            tags = ["manual"],
            deps = objects,
        )
        cc_library(
            name = arch + ".library",
            tags = ["manual"],
            deps = [o + ".library" for o in objects],
        )
    code_object_group(
        name = name,
        deps = chosen_archs([":%s"]),
    )
