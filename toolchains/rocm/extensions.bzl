# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extensions of the HIP toolchain's repositories, and of hipRTC's."""

load(":repositories.bzl", "hiprtc_repositories", "rocm_repositories")

def _rocm_impl(mctx):
    rocm_repositories()
    return mctx.extension_metadata(reproducible = True)

rocm = module_extension(
    implementation = _rocm_impl,
    doc = "Declares @rocm and @dlpack.",
)

def _hiprtc_impl(mctx):
    hiprtc_repositories()
    return mctx.extension_metadata(reproducible = True)

hiprtc = module_extension(
    implementation = _hiprtc_impl,
    doc = "Declares @hiprtc.",
)
