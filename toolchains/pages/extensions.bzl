# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extensions that declare the repositories of repositories.bzl."""

load(":repositories.bzl", "chart_js_repositories", "chromium_repositories")

def _chart_js_impl(mctx):
    chart_js_repositories()
    return mctx.extension_metadata(reproducible = True)

def _chromium_impl(mctx):
    chromium_repositories()
    return mctx.extension_metadata(reproducible = True)

chart_js = module_extension(implementation = _chart_js_impl)
chromium = module_extension(implementation = _chromium_impl)
