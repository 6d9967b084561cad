# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the HIP toolchain: @rocm; and @dlpack, a header of the same kind."""

load("//toolchains/debian:debian.bzl", "debian_packages")

def rocm_repositories():
    """Declares @rocm (HIP headers, device libraries) and @dlpack (dlpack.h)."""
    debian_packages(
        name = "rocm",
        build_file = Label("//toolchains/rocm:rocm.BUILD.bazel"),
        group = "rocm",
        keep = [
            "usr/include/hip/*",
            "usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode/*",
            "usr/share/hip/version",
        ],
    )
    debian_packages(
        name = "dlpack",
        build_file = Label("//toolchains/rocm:dlpack.BUILD.bazel"),
        group = "dlpack",
        keep = ["usr/include/dlpack/*"],
    )
