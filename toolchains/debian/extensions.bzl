# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension that declares the repositories of repositories.bzl for tests."""

load(
    ":repositories.bzl",
    "bazel_debs_repositories",
    "googletest_repositories",
    "other_system_repositories",
)

def _bazel_debs_impl(mctx):
    bazel_debs_repositories()
    return mctx.extension_metadata(reproducible = True)

bazel_debs = module_extension(implementation = _bazel_debs_impl)

def _googletest_impl(mctx):
    googletest_repositories()
    return mctx.extension_metadata(reproducible = True)

googletest = module_extension(implementation = _googletest_impl)

def _other_system_impl(mctx):
    other_system_repositories()
    return mctx.extension_metadata(reproducible = True)

other_system = module_extension(implementation = _other_system_impl)
