# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension that declares the repositories of repositories.bzl."""

load(":repositories.bzl", "remote_repositories")

def _remote_impl(mctx):
    remote_repositories()
    return mctx.extension_metadata(reproducible = True)

remote = module_extension(implementation = _remote_impl)
