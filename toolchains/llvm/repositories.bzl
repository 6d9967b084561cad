# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the C++ toolchain: @llvm and @sysroot."""

load("//toolchains/debian:debian.bzl", "debian_packages")
load("//toolchains/llvm/private:llvm_tree.bzl", "llvm_tree")
load("//toolchains/llvm/private:sysroot.bzl", "SYSROOT_KEEP")

def llvm_repositories():
    """Declares @llvm (the programs) and @sysroot (headers and libraries of the target)."""
    llvm_tree(
        name = "llvm",
        build_file = Label("//toolchains/llvm:llvm.BUILD.bazel"),
    )
    debian_packages(
        name = "sysroot",
        build_file = Label("//toolchains/llvm:sysroot.BUILD.bazel"),
        group = "sysroot",
        keep = SYSROOT_KEEP,
    )
