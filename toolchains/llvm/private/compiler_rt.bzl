# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which of compiler-rt's files are used: the runtimes of three sanitizers, and libFuzzer."""

load("//toolchains/llvm/private:tools.bzl", "RESOURCES_FOLDER")

# Where they lie in @compiler_rt, and from the execution root: clang's resources when it links.
COMPILER_RT_LIBRARIES = RESOURCES_FOLDER + "/lib/linux/"
COMPILER_RT_RESOURCES = "%s/%s" % (
    Label("@compiler_rt//:BUILD.bazel").workspace_root,
    RESOURCES_FOLDER,
)

COMPILER_RT_KEEP = [
    "%slibclang_rt.%s*-x86_64.*" % (COMPILER_RT_LIBRARIES, library)
    for library in ["asan", "fuzzer", "tsan", "ubsan_standalone"]
] + [RESOURCES_FOLDER + "/include/fuzzer/*"]
