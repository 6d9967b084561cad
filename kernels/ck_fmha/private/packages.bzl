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
    "compile_group",
)
load("//kernels/ck_fmha:defs.bzl", "ck_host_library")
load("//kernels/ck_fmha:groups.lock.bzl", "GROUPS")
load("//kernels/ck_fmha/private:groups.bzl", "group_of")
load("//kernels/ck_fmha/private:machine_options.bzl", "machine_options")

_PUBLIC = ["//visibility:public"]

# buildifier: disable=unnamed-macro
def instances_package(pipelines):
    """A package of the pool:

        INSTANCE.ARCH           the code object
        INSTANCE.ARCH.library   the same as a cc_library

    Args:
      pipelines: pipeline -> instance -> work-items per workgroup.
    """
    grouped = {}
    for pipeline, block_sizes in pipelines.items():
        for instance, block_size in block_sizes.items():
            for arch in ARCHS:
                if _instance(instance, block_size, pipeline, arch):
                    grouped[instance + ".cpp"] = True
    native.exports_files(grouped.keys(), visibility = ["@ck_fmha//groups:__pkg__"])

def _instance(instance, block_size, pipeline, arch):
    """The targets of an instance for an architecture. Returns its group's label, if it has one."""
    group, proven = group_of(native.package_name(), instance, arch)
    code_object(
        name = "%s.%s" % (instance, arch),
        src = instance + ".cpp",
        arch = arch,
        block_size = block_size,
        copts = machine_options(native.package_name(), pipeline, arch),
        group = group and select({
            Label("//kernels/ck_fmha:shortcuts.all"): group,
            Label("//kernels/ck_fmha:shortcuts.unproven"): group,
            "//conditions:default": None,
        }),
        instance = instance,
        proven = proven and select({
            Label("//kernels/ck_fmha:shortcuts.all"): proven,
            "//conditions:default": [],
        }),
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
    return group

# buildifier: disable=unnamed-macro
def groups_package():
    """The package of the pool's compile groups: GROUP.ARCH for each of groups.lock.bzl."""
    for arch, groups in GROUPS.items():
        for group, members in groups.items():
            compile_group(
                name = "%s.%s" % (group, arch),
                srcs = ["@ck_fmha//%s.cpp" % member for member in members],
                arch = arch,
                recipe = "@ck_fmha//:recipe",
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
