# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The module extension of the C++ toolchain's repositories."""

load(":repositories.bzl", "llvm_repositories")

def _llvm_impl(mctx):
    llvm_repositories()
    return mctx.extension_metadata(reproducible = True)

llvm = module_extension(
    implementation = _llvm_impl,
    doc = "Declares @llvm, @sysroot, @licences, @compiler_rt and @clang_tools.",
)
