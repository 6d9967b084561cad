# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Repositories that only linting needs, beside the locked Python distributions."""

load("//toolchains/debian:debian.bzl", "debian_packages")
load("//toolchains/npm:npm.bzl", "npm_files")
load("//toolchains/versions:llvm.bzl", "LLVM")

_CLANG_TIDY = "usr/lib/llvm-%s/bin/clang-tidy" % LLVM

def lint_repositories():
    """Declares @buildifier and @clang_tidy, which runs with the loader and libraries of @llvm."""
    npm_files(
        name = "buildifier",
        files = {"buildifier-linux_amd64": "buildifier"},
        package = "@bazel/buildifier",
    )
    debian_packages(
        name = "clang_tidy",
        build_file_content = """filegroup(
    name = "clang_tidy",
    srcs = ["%s"],
    visibility = ["//visibility:public"],
)
""" % _CLANG_TIDY,
        group = "clang_tidy",
        keep = [_CLANG_TIDY],
    )
