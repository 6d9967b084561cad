# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""header_files: the headers of libraries, as files."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _header_files_impl(ctx):
    return [DefaultInfo(files = depset(transitive = [
        dep[CcInfo].compilation_context.headers
        for dep in ctx.attr.deps
    ]))]

header_files = rule(
    implementation = _header_files_impl,
    doc = "The headers of libraries and of all that they depend on.",
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
)
