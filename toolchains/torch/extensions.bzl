# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension that declares the repository of repositories.bzl."""

load(":repositories.bzl", "torch_repositories")

def _torch_impl(mctx):
    torch_repositories()
    return mctx.extension_metadata(reproducible = True)

torch = module_extension(implementation = _torch_impl)
