# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of the HIP toolchain's repositories."""

load(":repositories.bzl", "rocm_repositories")

def _rocm_impl(mctx):
    rocm_repositories()
    return mctx.extension_metadata(reproducible = True)

rocm = module_extension(
    implementation = _rocm_impl,
    doc = "Declares @rocm and @dlpack.",
)
