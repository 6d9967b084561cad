# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of CK's fused attention."""

load(":repositories.bzl", "ck_fmha_repositories")

def _ck_fmha_impl(mctx):
    ck_fmha_repositories()
    return mctx.extension_metadata(reproducible = True)

ck_fmha = module_extension(
    implementation = _ck_fmha_impl,
    doc = "Declares @composable_kernel, @composable_kernel_barriers and @ck_fmha.",
)
