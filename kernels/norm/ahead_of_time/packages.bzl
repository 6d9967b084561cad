# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The targets of @norm_sets: a package for each set."""

load("@norm_sets//:known.bzl", "ARCHS")
load(
    "//kernels:defs.bzl",
    "ahead_of_time",
    "code_object",
    "code_object_group",
    "cubin",
    "embedded_pack",
)
load("//kernels/norm/ahead_of_time:names.bzl", "flags_for", "names_for", "work_items")

_PUBLIC = ["//visibility:public"]

def _kernel(name, kernel, arch):
    common = {
        "arch": arch,
        "copts": flags_for(kernel, arch),
        "instance": name,
        "src": Label("//kernels/norm:" + kernel["source"]),
        "tags": ["manual"],
        "visibility": _PUBLIC,
    }
    if arch.startswith("sm_"):
        cubin(
            name = "%s.%s" % (name, arch),
            recipe = Label("//kernels/norm:cubin_recipe"),
            **common
        )
    else:
        code_object(
            name = "%s.%s" % (name, arch),
            kernels = work_items(kernel, arch),
            recipe = Label("//kernels/norm:recipe"),
            **common
        )

def _chosen():
    labels = []
    for arch in ARCHS:
        labels += select({
            Label("//kernels/norm/ahead_of_time:%s.selected" % arch): [":" + arch],
            "//conditions:default": [],
        })
    return labels

def built_in(name, pack, kernels, code_objects, prefix = "", **kwargs):
    """Two libraries: the recipes of the kernels of a list that are built in, and their bytes.

    Args:
      name: of the library that defines kernels::PREFIXrow_kernels().
      pack: of the one that defines kernels::PREFIXnorm_pack().
      kernels: the list.
      code_objects: label of those that are built in.
      prefix: of the functions' names.
      **kwargs: of both targets, and the label of the set's file as build_list.
    """
    build_list = kwargs.pop("build_list")
    ahead_of_time(
        name = name,
        build_archs = ARCHS,
        build_flag = "--//kernels/norm/ahead_of_time:archs",
        build_list = build_list,
        code_objects = code_objects,
        function = prefix + "row_kernels",
        operations = {name: kernel["operation"] for name, kernel in kernels.items()},
        set_flag = "--//kernels/norm/ahead_of_time:set",
        **kwargs
    )
    embedded_pack(
        name = pack,
        code_objects = code_objects,
        function = prefix + "norm_pack",
        **kwargs
    )

# buildifier: disable=unnamed-macro
def norm_set_package(name, kernels):
    """The package of a set:

        NAME.ARCH      a kernel
        ARCH           all kernels for an arch
        chosen         those for the archs of --//kernels/norm/ahead_of_time:archs
        ahead_of_time  kernels::row_kernels() of these
        pack           kernels::norm_pack(), their bytes

    Args:
      name: of the set.
      kernels: its list.
    """
    for arch in ARCHS:
        names = names_for(kernels, arch)
        for kernel in names:
            _kernel(kernel, kernels[kernel], arch)
        code_object_group(
            name = arch,
            tags = ["manual"],
            visibility = _PUBLIC,
            deps = [":%s.%s" % (kernel, arch) for kernel in names],
        )
    code_object_group(
        name = "chosen",
        tags = ["manual"],
        deps = _chosen(),
    )
    built_in(
        name = "ahead_of_time",
        build_list = Label("//kernels/norm/sets:%s.toml" % name),
        code_objects = ":chosen",
        kernels = kernels,
        pack = "pack",
        tags = ["manual"],
        visibility = _PUBLIC,
    )
