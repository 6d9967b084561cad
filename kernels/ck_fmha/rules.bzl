# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""CK's sources, compiled as CK asks for it."""

load("//kernels:code_object.bzl", "code_object")
load("//kernels:hip_host_library.bzl", "hip_host_library")
load("//kernels/ck_fmha/private:copts.bzl", "CK_COPTS", "CK_DEVICE_COPTS", "CK_HOST_COPTS")

# Host code is the same for all choices: barriers change neither arguments nor grids.
_HOST_HEADERS = Label("@composable_kernel//:headers")
_DEVICE_HEADERS = select({
    Label("//kernels/ck_fmha:barriers.added"): Label("@composable_kernel_barriers//:headers"),
    "//conditions:default": Label("@composable_kernel//:headers"),
})

def ck_code_object(name, **kwargs):
    """A code_object whose source is CK's.

    Args:
      name: of the target.
      **kwargs: the rest of code_object's attributes.
    """
    code_object(
        name = name,
        copts = CK_COPTS + CK_DEVICE_COPTS,
        headers = _DEVICE_HEADERS,
        **kwargs
    )

def ck_host_library(name, deps = [], **kwargs):
    """A hip_host_library of CK's host code, which makes kernel arguments and grids.

    Args:
      name: of the target.
      deps: libraries beside the launch headers.
      **kwargs: the rest of hip_host_library's attributes.
    """
    hip_host_library(
        name = name,
        copts = CK_COPTS + CK_HOST_COPTS,
        headers = _HOST_HEADERS,
        deps = [Label("//kernels/ck_fmha:launch_headers")] + deps,
        **kwargs
    )
