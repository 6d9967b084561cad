# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of the Python toolchain's repositories."""

load(":repositories.bzl", "python_repositories")

def _python_impl(mctx):
    python_repositories()
    return mctx.extension_metadata(reproducible = True)

python = module_extension(
    implementation = _python_impl,
    doc = "Declares @python, @python_3_NN for every ABI, @host_python and @host_python_headers.",
)
