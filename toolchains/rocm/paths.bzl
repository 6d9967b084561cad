# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where things are in @rocm."""

load("//toolchains/versions:llvm.bzl", "DEVICE_LIBRARIES")

# ROCm's device libraries, as LLVM bitcode.
BITCODE_FOLDER = "usr/lib/llvm-{0}/lib/clang/{0}/amdgcn/bitcode".format(DEVICE_LIBRARIES)
