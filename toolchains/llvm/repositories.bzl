# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the C++ toolchain: @llvm, @sysroot and what few builds need beside them."""

load("//toolchains/debian:debian.bzl", "debian_packages")
load("//toolchains/llvm/private:compiler_rt.bzl", "COMPILER_RT_KEEP")
load("//toolchains/llvm/private:llvm_tree.bzl", "llvm_tree")
load("//toolchains/llvm/private:sysroot.bzl", "SYSROOT_KEEP")
load("//toolchains/llvm/private:tools.bzl", "PROGRAMS_FOLDER")

_BUNDLER = PROGRAMS_FOLDER + "clang-offload-bundler"

def llvm_repositories():
    """Declares @llvm (the programs) and @sysroot (headers and libraries of the target).

    And @licences, the texts of licences of parts of @sysroot; @compiler_rt, which sanitizers
    and fuzzers are linked with; and @clang_tools, a program that runs with the loader and libraries
    of @llvm: fetched when one is asked for.
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
        name = "licences",
        build_file = Label("//toolchains/llvm:licences.BUILD.bazel"),
        group = "licences",
        keep = [
            "usr/share/common-licenses/*",
            "usr/share/doc/gcc-*-base/copyright",
        ],
    )
    debian_packages(
        name = "compiler_rt",
        build_file = Label("//toolchains/llvm:compiler_rt.BUILD.bazel"),
        group = "compiler_rt",
        keep = COMPILER_RT_KEEP,
    )
    debian_packages(
        name = "clang_tools",
        build_file_content = """filegroup(
    name = "clang-offload-bundler",
    srcs = ["%s"],
    visibility = ["//visibility:public"],
)
""" % _BUNDLER,
        group = "clang_tools",
        keep = [_BUNDLER],
    )
