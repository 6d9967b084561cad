# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Kernels of a variant set for the emulator, whatever //kernels:variants and :archs say."""

load("@ck_fmha//:known.bzl", "ARCHS", "VARIANT_SETS")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load("//kernels:embedded_code_object.bzl", "code_object_group")
load("//kernels:flags.bzl", "archs_flag", "variants_flag")
load("//kernels:launch_table_source.bzl", "launch_table_source")

def kernel_launches(name, variant_set, archs = ARCHS, tags = []):
    """Declares NAME.so (launches.cc over the set's launch table) and NAME.code_objects.

    Args:
      name: prefix of the targets.
      variant_set: a file of kernels/variants.
      archs: the architectures to compile for.
      tags: of the targets.
    """
    variants_flag(
        name = name + ".variants",
        build_setting_default = variant_set,
        known = VARIANT_SETS,
    )
    archs_flag(
        name = name + ".archs",
        build_setting_default = ",".join(archs),
        known = ARCHS,
    )
    code_object_group(
        name = name + ".code_objects",
        testonly = True,
        tags = tags,
        deps = ["@ck_fmha//:%s.%s" % (variant_set, arch) for arch in archs],
    )
    launch_table_source(
        name = name + ".table",
        testonly = True,
        tags = tags,
        archs = name + ".archs",
        code_objects = name + ".code_objects",
        instances = ["@ck_fmha//:instances.json"],
        variants = name + ".variants",
    )
    cc_library(
        name = name + ".launch_table",
        testonly = True,
        tags = tags,
        srcs = [name + ".table"],
        copts = ["-std=c++20"],
        linkstatic = True,
        deps = [
            name + ".code_objects",
            "//aiter:launch_table_h",
            "@ck_fmha//:%s.launch" % variant_set,
        ],
    )
    cc_binary(
        name = name + ".so",
        testonly = True,
        tags = tags,
        srcs = [
            "launches.cc",
            "launches.h",
        ],
        linkshared = True,
        deps = [name + ".launch_table"],
    )
