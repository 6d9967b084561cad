# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: libFuzzer's, with all that they depend on under asan and ubsan.

    load("//toolchains/llvm:fuzz.bzl", "fuzz_target")

    fuzz_target(
        name = "pack_fuzz",
        srcs = ["pack_fuzz.cc"],
        deps = [":store"],
    )

`./bazelw test --config=long //aiter/runtime/store:pack_fuzz` makes a fixed number of runs, the same
ones each time. `./bazelw run //aiter/runtime/store:pack_fuzz` runs until something is found; behind
`--` are libFuzzer's options, a folder for its inputs, or a file to run again.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//toolchains/llvm/private:fuzz_test.bzl", "fuzz_test")

def fuzz_target(name, srcs, runs, deps = [], copts = [], max_len = 4096):
    """A test, tagged `long`, of a file with LLVMFuzzerTestOneInput.

    Args:
      name: of the test.
      srcs: C++ sources; fuzzer/FuzzedDataProvider.h is there to be included.
      runs: how many inputs the test tries.
      deps: of the sources.
      copts: flags beyond the toolchain's.
      max_len: the longest input, in bytes.
    """
    cc_binary(
        name = name + "_program",
        testonly = True,
        srcs = srcs,
        copts = copts,
        linkopts = ["-fsanitize=fuzzer"],
        # Built by way of the test alone, which asks for the instrumentation of all it depends on.
        tags = ["manual"],
        target_compatible_with = select({
            Label("//toolchains/llvm/sanitizers:fuzzer.enabled"): [],
            "//conditions:default": ["@platforms//:incompatible"],
        }),
        deps = deps + [
            Label("//toolchains/llvm/private:fuzzer_glibc"),
            Label("@compiler_rt//:fuzzer_headers"),
        ],
    )
    fuzz_test(
        name = name,
        size = "medium",
        max_len = max_len,
        program = name + "_program",
        runs = runs,
        tags = ["long"],
    )
