# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension that declares the repositories of repositories.bzl."""

load(":repositories.bzl", "lint_repositories")

def _lint_impl(mctx):
    lint_repositories()
    return mctx.extension_metadata(reproducible = True)

lint = module_extension(implementation = _lint_impl)
