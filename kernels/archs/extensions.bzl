# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of the archs' facts."""

load(":repositories.bzl", "archs_repositories")

def _archs_impl(mctx):
    archs_repositories()
    return mctx.extension_metadata(reproducible = True)

archs = module_extension(
    implementation = _archs_impl,
    doc = "Declares @archs.",
)
