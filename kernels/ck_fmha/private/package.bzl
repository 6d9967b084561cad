# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The targets of the generated repository."""

load("//kernels:chosen_archs.bzl", "chosen_archs")
load("//kernels:embedded_code_object.bzl", "code_object_group", "embedded_code_object")
load("//kernels/ck_fmha:rules.bzl", "ck_code_object", "ck_host_library")

# The targets are a whole package: there is none to name after the macro.
# buildifier: disable=unnamed-macro
def ck_fmha_package(archs, block_sizes, instances_of, launch_sources_of):
    """Declares, for the generated repository's root package:

        INSTANCE.ARCH          the code object
        INSTANCE.ARCH.embed    the library that embeds it
        SET.ARCH               all of a variant set for one architecture
        SET                    all of a variant set for the chosen architectures
        SET.launch             the host code that makes the set's kernel arguments
        SET.dispatcher         CK's own dispatchers over the set, as source

    Args:
      archs: the known architectures.
      block_sizes: instance -> work-items per workgroup.
      instances_of: variant set -> its instances.
      launch_sources_of: variant set -> its host sources.
    """
    for instance, block_size in block_sizes.items():
        for arch in archs:
            name = "%s.%s" % (instance, arch)
            ck_code_object(
                name = name,
                src = "instances/%s.cpp" % instance,
                arch = arch,
                block_size = block_size,
                instance = instance,
                tags = ["manual"],
            )
            embedded_code_object(
                name = name + ".embed",
                code_object = ":" + name,
                tags = ["manual"],
            )
    for variant_set, instances in instances_of.items():
        for arch in archs:
            code_object_group(
                name = "%s.%s" % (variant_set, arch),
                tags = ["manual"],
                deps = [":%s.%s.embed" % (instance, arch) for instance in instances],
            )
        code_object_group(
            name = variant_set,
            tags = ["manual"],
            deps = chosen_archs(archs, [":" + variant_set + ".%s"]),
        )
        ck_host_library(
            name = variant_set + ".launch",
            srcs = launch_sources_of[variant_set],
            tags = ["manual"],
        )
        native.filegroup(
            name = variant_set + ".dispatcher",
            srcs = [
                "dispatch/%s/fmha_bwd_api.cpp" % variant_set,
                "dispatch/%s/fmha_fwd_api.cpp" % variant_set,
            ],
        )
