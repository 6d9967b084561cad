# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of upstream's fused attention."""

load("//kernels/ck_fmha/private:variant_sets_repository.bzl", "variant_set_files")
load(
    ":repositories.bzl",
    "VARIANTS_README",
    "ck_fmha_repositories",
    "variant_set_repositories",
)

def _ck_fmha_impl(mctx):
    ck_fmha_repositories()
    variant_set_repositories(variant_set_files(mctx, VARIANTS_README))
    return mctx.extension_metadata(reproducible = True)

ck_fmha = module_extension(
    implementation = _ck_fmha_impl,
    doc = "Declares the repositories of repositories.bzl, and one per variant set.",
)
