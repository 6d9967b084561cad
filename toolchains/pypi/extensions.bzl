# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension that declares the repositories of repositories.bzl."""

load(":repositories.bzl", "pypi_repositories")

def _pypi_impl(mctx):
    pypi_repositories()
    return mctx.extension_metadata(reproducible = True)

pypi = module_extension(implementation = _pypi_impl)
