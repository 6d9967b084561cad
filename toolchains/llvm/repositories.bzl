# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the C++ toolchain: @llvm, @sysroot and @compiler_rt."""

load("//toolchains/debian:debian.bzl", "debian_packages")
load("//toolchains/llvm/private:compiler_rt.bzl", "COMPILER_RT_KEEP")
load("//toolchains/llvm/private:llvm_tree.bzl", "llvm_tree")
load("//toolchains/llvm/private:sysroot.bzl", "SYSROOT_KEEP")

def llvm_repositories():
    """Declares @llvm (the programs) and @sysroot (headers and libraries of the target).

    And @compiler_rt, what sanitizers and fuzzers are linked with: fetched when one is asked for.
    """
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
    debian_packages(
        name = "compiler_rt",
        build_file = Label("//toolchains/llvm:compiler_rt.BUILD.bazel"),
        group = "compiler_rt",
        keep = COMPILER_RT_KEEP,
    )
