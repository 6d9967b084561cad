# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Composable Kernel's sources, compiled as upstream asks for it."""

load("//kernels:defs.bzl", "code_object_recipe", "hip_host_library")
load(
    "//kernels/ck_fmha/private:copts.bzl",
    "CK_COPTS",
    "CK_DEVICE_COPTS",
    "CK_HOST_COPTS",
    "CK_SHORTCUTS",
)

# Host code is the same for all choices: no patch changes arguments or grids.
_HOST_HEADERS = Label("@composable_kernel//:headers")

def _device_headers(section):
    """The headers that kernels of a section of headers.toml read."""
    tree = "@ck_headers//:%s." % section
    return select({
        Label("//kernels/ck_fmha:patches.none"): Label(tree + "composable_kernel_upstream"),
        Label("//kernels/ck_fmha:headers.plain"): Label(tree + "composable_kernel_plain"),
        "//conditions:default": Label(tree + "composable_kernel"),
    })

def ck_recipe(name, section, **kwargs):
    """A code_object_recipe for attention kernels of one section, in the same repository.

    Args:
      name: of the target.
      section: of headers.toml.
      **kwargs: testonly, visibility, ...
    """
    code_object_recipe(
        name = name,
        copts = CK_COPTS + CK_DEVICE_COPTS + select({
            Label("//kernels/ck_fmha:shortcuts.none"): [],
            "//conditions:default": CK_SHORTCUTS,
        }),
        headers = _device_headers(section),
        **kwargs
    )

def ck_host_library(name, deps = [], **kwargs):
    """A hip_host_library of upstream's host code, which makes kernel arguments and grids.

    Args:
      name: of the target.
      deps: libraries beside the launch headers.
      **kwargs: the rest of hip_host_library's attributes.
    """
    hip_host_library(
        name = name,
        copts = CK_COPTS + CK_HOST_COPTS,
        headers = _HOST_HEADERS,
        deps = [Label("//kernels/ck_fmha/launch")] + deps,
        **kwargs
    )
