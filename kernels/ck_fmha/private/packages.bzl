# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The targets of the generated repositories. Each macro declares a whole package."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("@variant_sets//:known.bzl", "ARCHS")
load(
    "//kernels:defs.bzl",
    "chosen_archs",
    "code_object",
    "code_object_group",
    "code_object_library",
)
load("//kernels/ck_fmha:defs.bzl", "ck_host_library")

_PUBLIC = ["//visibility:public"]

# buildifier: disable=unnamed-macro
def instances_package(block_sizes):
    """A package of the pool:

        INSTANCE.ARCH           the code object
        INSTANCE.ARCH.library   the same as a cc_library

    Args:
      block_sizes: instance -> work-items per workgroup.
    """
    for instance, block_size in block_sizes.items():
        for arch in ARCHS:
            code_object(
                name = "%s.%s" % (instance, arch),
                src = instance + ".cpp",
                arch = arch,
                block_size = block_size,
                instance = instance,
                recipe = "@ck_fmha//:recipe",
                tags = ["manual"],
                visibility = _PUBLIC,
            )
            code_object_library(
                name = "%s.%s.library" % (instance, arch),
                arch = arch,
                code_object = ":%s.%s" % (instance, arch),
                instance = instance,
                tags = ["manual"],
                visibility = _PUBLIC,
            )

# buildifier: disable=unnamed-macro
def variant_set_package(instances, launch_sources, testonly = False):
    """The package of a variant set:

        ARCH          its code objects for one architecture
        ARCH.library  the same as a cc_library
        code_objects  for the chosen architectures
        launch        the host code that makes their kernel arguments
        rows.json     their rows of the launch table

    Args:
      instances: instance -> its label.
      launch_sources: the host sources.
      testonly: of the targets.
    """
    for arch in ARCHS:
        code_object_group(
            name = arch,
            testonly = testonly,
            deps = ["%s.%s" % (label, arch) for label in instances.values()],
            tags = ["manual"],
            visibility = _PUBLIC,
        )
        cc_library(
            name = arch + ".library",
            testonly = testonly,
            tags = ["manual"],
            visibility = _PUBLIC,
            deps = ["%s.%s.library" % (label, arch) for label in instances.values()],
        )
    code_object_group(
        name = "code_objects",
        testonly = testonly,
        deps = chosen_archs([":%s"]),
        tags = ["manual"],
        visibility = _PUBLIC,
    )
    ck_host_library(
        name = "launch",
        testonly = testonly,
        srcs = launch_sources,
        tags = ["manual"],
        visibility = _PUBLIC,
    )
    native.exports_files(["rows.json"], visibility = _PUBLIC)

# buildifier: disable=unnamed-macro
def variant_set_aliases(repository):
    """The same targets by the set's name.

    Args:
      repository: of the variant set.
    """
    names = ["code_objects", "launch", "rows.json"]
    for arch in ARCHS:
        names += [arch, arch + ".library"]
    for name in names:
        native.alias(
            name = name,
            actual = "%s:%s" % (repository, name),
            tags = ["manual"],
            visibility = _PUBLIC,
        )
