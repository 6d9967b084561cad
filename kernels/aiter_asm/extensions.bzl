# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension that declares the repository of repositories.bzl."""

load(":repositories.bzl", "aiter_asm_repositories")

def _aiter_asm_impl(mctx):
    aiter_asm_repositories()
    return mctx.extension_metadata(reproducible = True)

aiter_asm = module_extension(implementation = _aiter_asm_impl)
