# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the HIP toolchain: @rocm; and @dlpack, a header of the same kind; @hiprtc."""

load("//toolchains/debian:debian.bzl", "debian_packages")
load("//toolchains/rocm:paths.bzl", "BITCODE_FOLDER")

def rocm_repositories():
    """Declares @rocm (HIP headers, device libraries) and @dlpack (dlpack.h)."""
    debian_packages(
        name = "rocm",
        build_file = Label("//toolchains/rocm:rocm.BUILD.bazel"),
        group = "rocm",
        # Of the HIP toolchain: what a compile's outputs depend on beside the sources.
        identities = {
            Label("@llvm//:identity.bzl"): "llvm",
            Label("@sysroot//:lock_digest.bzl"): "sysroot",
        },
        keep = [
            "usr/include/hip/*",
            BITCODE_FOLDER + "/*",
            "usr/share/doc/*/copyright",
            "usr/share/hip/version",
        ],
    )
    debian_packages(
        name = "dlpack",
        build_file = Label("//toolchains/rocm:dlpack.BUILD.bazel"),
        group = "dlpack",
        keep = [
            "usr/include/dlpack/*",
            "usr/share/doc/*/copyright",
        ],
    )

def hiprtc_repositories():
    """Declares @hiprtc, the compiler that runs in a process, with its libraries, for tests."""
    debian_packages(
        name = "hiprtc",
        build_file = Label("//toolchains/rocm:hiprtc.BUILD.bazel"),
        group = "hiprtc",
        keep = [
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "usr/lib/x86_64-linux-gnu/lib*.so*",
        ],
    )
